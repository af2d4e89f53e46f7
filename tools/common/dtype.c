/* tools/common/dtype.c - f64, f32, f16 and bf16 in memory. */
#include "tools/common/dtype.h"

#include <math.h>
#include <string.h>

size_t dtype_bytes(clb_dtype dtype) {
  static const size_t bytes[] = {4, 8, 2, 2};
  return bytes[dtype];
}

/* A 16-bit format: bits of fraction, and the exponent of its smallest normal number. */
typedef struct {
  int fraction, min;
} half_format;

static half_format format_of(clb_dtype dtype) {
  return dtype == CLB_F16 ? (half_format){10, -14} : (half_format){7, -126};
}

static uint16_t half_from(half_format f, double x) {
  unsigned sign = signbit(x) ? 0x8000u : 0, infinite = 0x7fffu >> f.fraction << f.fraction;
  if (isnan(x)) return (uint16_t)(sign | infinite | 1u << (f.fraction - 1));
  int e = f.min;
  x = fabs(x);
  if (isfinite(x) && x > ldexp(1, f.min)) frexp(x, &e), e -= 1;
  double ulps = isfinite(x) ? nearbyint(ldexp(x, f.fraction - e))
                            : INFINITY; /* the fraction, with its leading 1 if normal */
  if (!(ulps < 0x1p20) || e > 1 - f.min) return (uint16_t)(sign | infinite);
  /* Counting in units of the last place is continuous across exponents. */
  unsigned bits = (unsigned)ulps + ((unsigned)(e - f.min) << f.fraction);
  return (uint16_t)(sign | (bits < infinite ? bits : infinite));
}

static double half_to(half_format f, uint16_t bits) {
  unsigned exponent = (bits & 0x7fffu) >> f.fraction, fraction = bits & ((1u << f.fraction) - 1);
  double x;
  if (exponent == 0x7fffu >> f.fraction) x = fraction ? NAN : INFINITY;
  else if (!exponent) x = ldexp(fraction, f.min - f.fraction);
  else x = ldexp(fraction + (1u << f.fraction), f.min - f.fraction + (int)exponent - 1);
  return bits & 0x8000u ? -x : x;
}

void encode(clb_dtype dtype, const double *from, void *to, int64_t n) {
  if (dtype == CLB_F64) memcpy(to, from, (size_t)n * 8);
  else if (dtype == CLB_F32)
    for (int64_t i = 0; i < n; i++) ((float *)to)[i] = (float)from[i];
  else
    for (int64_t i = 0; i < n; i++) ((uint16_t *)to)[i] = half_from(format_of(dtype), from[i]);
}

void decode(clb_dtype dtype, const void *from, double *to, int64_t n) {
  if (dtype == CLB_F64) memcpy(to, from, (size_t)n * 8);
  else if (dtype == CLB_F32)
    for (int64_t i = 0; i < n; i++) to[i] = (double)((const float *)from)[i];
  else
    for (int64_t i = 0; i < n; i++) to[i] = half_to(format_of(dtype), ((const uint16_t *)from)[i]);
}
