/* src/base/hash.h - 128-bit hashes of kernels, problems and compilers. */
#ifndef CLB_SRC_BASE_HASH_H
#define CLB_SRC_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint64_t word[2];
} clb_hash;

/* Two independent 64-bit hashes of the parts, each part's length included. */
clb_hash clb_hash_parts(const void *const *parts, const size_t *bytes, int n);
/* One 64-bit hash, which starts from h; of many numbers, faster. */
uint64_t clb_hash_bytes(uint64_t h, const void *bytes, size_t n);
uint64_t clb_hash_doubles(uint64_t h, int64_t n, const double *x);

#endif
