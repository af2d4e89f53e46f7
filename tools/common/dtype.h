/* tools/common/dtype.h - f64, f32, f16 and bf16 in memory. */
#ifndef CLB_TOOLS_COMMON_DTYPE_H
#define CLB_TOOLS_COMMON_DTYPE_H

#include <clebsch/clebsch.h>

size_t dtype_bytes(clb_dtype dtype);
/* Rounds to nearest, ties to even. */
void encode(clb_dtype dtype, const double *from, void *to, int64_t n);
void decode(clb_dtype dtype, const void *from, double *to, int64_t n);

#endif
