/* tests/ops/stored.h - numbers in the memory of a device, one at a time. */
#ifndef CLB_TESTS_OPS_STORED_H
#define CLB_TESTS_OPS_STORED_H

#include "tools/common/dtype.h"

static inline void put(clb_dtype type, void *to, int64_t i, double x) {
  encode(type, &x, (char *)to + i * (int64_t)dtype_bytes(type), 1);
}

static inline double number_at(clb_dtype type, const void *from, int64_t i) {
  double x;
  decode(type, (const char *)from + i * (int64_t)dtype_bytes(type), &x, 1);
  return x;
}

#endif
