/* tests/amd/instructions/vector_half.c - vector instructions on 16 bits. */
#include "tests/amd/lanes.h"

#define SHORTS(name, expression)                                                                   \
  AMD_LANES(name) {                                                                                \
    (void)a, (void)b, (void)c;                                                                     \
    AMD_EACH {                                                                                     \
      uint32_t A = a[i] & 0xffff, B = b[i] & 0xffff, C = c[i];                                     \
      (void)A, (void)B, (void)C;                                                                   \
      put(d, m, i, (uint32_t)(expression)&0xffff);                                                 \
    }                                                                                              \
  }
#define HALVES(name, expression)                                                                   \
  AMD_LANES(name) {                                                                                \
    (void)a, (void)b, (void)c;                                                                     \
    AMD_EACH {                                                                                     \
      float A = f32_of_half(a[i]), B = f32_of_half(b[i]), C = f32_of_half(c[i]);                   \
      (void)A, (void)B, (void)C;                                                                   \
      put(d, m, i, half_of(expression));                                                           \
    }                                                                                              \
  }

static inline int32_t sign(uint32_t x) { return (int16_t)x; }

SHORTS(add, A + B)
SHORTS(sub, A - B)
SHORTS(subrev, B - A)
SHORTS(mul_lo, A *B)
SHORTS(mad, A *B + C)
SHORTS(lshlrev, B << (A & 15))
SHORTS(lshrrev, B >> (A & 15))
SHORTS(ashrrev, sign(B) >> (A & 15))
SHORTS(min_i, sign(A) < sign(B) ? A : B)
SHORTS(max_i, sign(A) > sign(B) ? A : B)
SHORTS(min_u, A < B ? A : B)
SHORTS(max_u, A > B ? A : B)

/* Sums and products of two halves are exact enough in f32 that rounding twice is rounding once. */
HALVES(add_h, A + B)
HALVES(sub_h, A - B)
HALVES(mul_h, A *B)
HALVES(cvt_h_f, f32_of(a[i]))

AMD_LANES(cvt_f_h) {
  (void)b, (void)c;
  AMD_EACH put(d, m, i, bits_of(f32_of_half(a[i])));
}
AMD_LANES(pack) {
  (void)c;
  AMD_EACH put(d, m, i, (a[i] & 0xffff) | b[i] << 16);
}

#define V(name, types, lanes)                                                                      \
  { "v_" name, types, amd_run_vector, lanes, 0 }
const amd_op amd_vector_ops_16[] = {
    V("add_u16", "www", add),         V("add_nc_u16", "www", add),
    V("sub_u16", "www", sub),         V("sub_nc_u16", "www", sub),
    V("subrev_u16", "www", subrev),   V("mul_lo_u16", "www", mul_lo),
    V("mad_u16", "wwww", mad),        V("mad_legacy_u16", "wwww", mad),
    V("lshlrev_b16", "www", lshlrev), V("lshrrev_b16", "www", lshrrev),
    V("ashrrev_i16", "www", ashrrev), V("min_i16", "www", min_i),
    V("max_i16", "www", max_i),       V("min_u16", "www", min_u),
    V("max_u16", "www", max_u),       V("add_f16", "hhh", add_h),
    V("sub_f16", "hhh", sub_h),       V("mul_f16", "hhh", mul_h),
    V("cvt_f16_f32", "hf", cvt_h_f),  V("cvt_f32_f16", "fh", cvt_f_h),
    V("pack_b32_f16", "uhh", pack),   {0}};
