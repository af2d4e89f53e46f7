/* tests/amd/instructions/vector_words.c - vector instructions on words: integers and f32. */
#include "tests/amd/lanes.h"

#define WORDS(name, expression)                                                                    \
  AMD_LANES(name) {                                                                                \
    (void)a, (void)b, (void)c;                                                                     \
    AMD_EACH {                                                                                     \
      uint32_t A = a[i], B = b[i], C = c[i];                                                       \
      (void)A, (void)B, (void)C;                                                                   \
      put(d, m, i, (uint32_t)(expression));                                                        \
    }                                                                                              \
  }
#define FLOATS(name, expression)                                                                   \
  AMD_LANES(name) {                                                                                \
    (void)a, (void)b, (void)c;                                                                     \
    AMD_EACH {                                                                                     \
      float A = f32_of(a[i]), B = f32_of(b[i]), C = f32_of(c[i]);                                  \
      (void)A, (void)B, (void)C;                                                                   \
      put(d, m, i, bits_of(expression));                                                           \
    }                                                                                              \
  }

static inline int32_t sign(uint32_t x) { return (int32_t)x; }
static inline int32_t sign24(uint32_t x) { return (int32_t)(x << 8) >> 8; }
static inline uint32_t low24(uint32_t x) { return x & 0xffffff; }
static inline uint32_t extract(uint32_t x, uint32_t at, uint32_t bits) {
  return bits ? x >> at & (0xffffffffu >> (32 - bits)) : 0;
}
static inline uint32_t extract_signed(uint32_t x, uint32_t at, uint32_t bits) {
  return bits ? (uint32_t)((int32_t)(extract(x, at, bits) << (32 - bits)) >> (32 - bits)) : 0;
}
static inline uint32_t reversed(uint32_t x) {
  x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
  x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(x);
}
/* Byte `which` of {a, b}: 0-3 of b, 4-7 of a, 8-11 signs, 12 zero, above all ones. */
static inline uint32_t permuted(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t all = (uint64_t)a << 32 | b;
  uint32_t r = 0;
  for (int k = 0; k < 4; k++) {
    uint32_t s = selector >> 8 * k & 0xff, byte;
    if (s < 8) byte = (uint32_t)(all >> 8 * s) & 0xff;
    else if (s < 12) byte = all >> (16 * (s - 8) + 15) & 1 ? 0xff : 0;
    else byte = s == 12 ? 0 : 0xff;
    r |= byte << 8 * k;
  }
  return r;
}

WORDS(mov, A)
WORDS(not_, ~A)
WORDS(bfrev, reversed(A))
WORDS(add, A + B)
WORDS(sub, A - B)
WORDS(subrev, B - A)
WORDS(and_, A &B)
WORDS(or_, A | B)
WORDS(xor_, A ^ B)
WORDS(xnor, ~(A ^ B))
WORDS(lshlrev, B << (A & 31))
WORDS(lshrrev, B >> (A & 31))
WORDS(ashrrev, sign(B) >> (A & 31))
WORDS(min_i, sign(A) < sign(B) ? A : B)
WORDS(max_i, sign(A) > sign(B) ? A : B)
WORDS(min_u, A < B ? A : B)
WORDS(max_u, A > B ? A : B)
WORDS(min3_i, sign(A) < sign(B) ? (sign(A) < sign(C) ? A : C) : (sign(B) < sign(C) ? B : C))
WORDS(max3_i, sign(A) > sign(B) ? (sign(A) > sign(C) ? A : C) : (sign(B) > sign(C) ? B : C))
WORDS(min3_u, A < B ? (A < C ? A : C) : (B < C ? B : C))
WORDS(max3_u, A > B ? (A > C ? A : C) : (B > C ? B : C))
WORDS(mul_lo, A *B)
WORDS(mul_hi_u, ((uint64_t)A * B) >> 32)
WORDS(mul_hi_i, (uint64_t)((int64_t)sign(A) * sign(B)) >> 32)
WORDS(mul_u24, (uint64_t)low24(A) * low24(B))
WORDS(mul_i24, (uint64_t)((int64_t)sign24(A) * sign24(B)))
WORDS(mul_hi_u24, ((uint64_t)low24(A) * low24(B)) >> 32)
WORDS(mul_hi_i24, (uint64_t)((int64_t)sign24(A) * sign24(B)) >> 32)
WORDS(mad_u24, (uint64_t)low24(A) * low24(B) + C)
WORDS(mad_i24, (uint64_t)((int64_t)sign24(A) * sign24(B)) + C)
WORDS(add3, A + B + C)
WORDS(lshl_add, (A << (B & 31)) + C)
WORDS(add_lshl, (A + B) << (C & 31))
WORDS(lshl_or, (A << (B & 31)) | C)
WORDS(and_or, (A & B) | C)
WORDS(or3, A | B | C)
WORDS(xor3, A ^ B ^ C)
WORDS(xad, (A ^ B) + C)
WORDS(bfi, (A & B) | (~A & C))
WORDS(bfe_u, extract(A, B & 31, C & 31))
WORDS(bfe_i, extract_signed(A, B & 31, C & 31))
WORDS(alignbit, (((uint64_t)A << 32) | B) >> (C & 31))
WORDS(alignbyte, (((uint64_t)A << 32) | B) >> 8 * (C & 3))
WORDS(perm, permuted(A, B, C))
WORDS(ffbh, A ? (uint32_t)__builtin_clz(A) : ~0u)
WORDS(ffbl, A ? (uint32_t)__builtin_ctz(A) : ~0u)
WORDS(bcnt, (uint32_t)__builtin_popcount(A) + B)
WORDS(cndmask, (A & ~C) | (B & C))

/* As IEEE 754-2008's minNum: a number rather than a quiet NaN, but a signalling NaN is returned as
   a quiet one; of two zeros the one whose sign fits. */
static inline uint32_t loud(uint32_t a) {
  return (a & 0x7fc00000) == 0x7f800000 && a & 0x3fffff ? ~0u : 0;
}
static inline uint32_t chosen(uint32_t a, uint32_t b, uint32_t better) {
  float x = f32_of(a), y = f32_of(b);
  uint32_t quiet = loud(a) ? a | 0x400000 : b | 0x400000, number = x != x ? b : y != y ? a : better;
  return loud(a) | loud(b) ? quiet : number;
}
static inline uint32_t less(uint32_t a, uint32_t b) {
  float x = f32_of(a), y = f32_of(b);
  return chosen(a, b, x == y ? a | b : x < y ? a : b);
}
static inline uint32_t more(uint32_t a, uint32_t b) {
  float x = f32_of(a), y = f32_of(b);
  return chosen(a, b, x == y ? a & b : x > y ? a : b);
}
static inline uint32_t middle(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t top = more(more(a, b), c);
  if (f32_of(a) != f32_of(a) || f32_of(b) != f32_of(b) || f32_of(c) != f32_of(c))
    return less(less(a, b), c);
  return top == a ? more(b, c) : top == b ? more(a, c) : more(a, b);
}

WORDS(min_f, less(A, B))
WORDS(max_f, more(A, B))
WORDS(min3_f, less(less(A, B), C))
WORDS(max3_f, more(more(A, B), C))
WORDS(med3_f, middle(A, B, C))
WORDS(maxmin_f, less(more(A, B), C))
WORDS(minmax_f, more(less(A, B), C))

FLOATS(add_f, A + B)
FLOATS(sub_f, A - B)
FLOATS(subrev_f, B - A)
FLOATS(mul_f, A *B)
FLOATS(fma_f, __builtin_fmaf(A, B, C))
FLOATS(mac_f, A *B + C)
FLOATS(trunc_f, __builtin_truncf(A))
FLOATS(rndne_f, __builtin_rintf(A))
FLOATS(floor_f, __builtin_floorf(A))
FLOATS(ceil_f, __builtin_ceilf(A))
FLOATS(fract_f, A - __builtin_floorf(A) < 0x1.fffffep-1f ? A - __builtin_floorf(A) : 0x1.fffffep-1f)
FLOATS(cvt_f_i, (float)sign(a[i]))
FLOATS(cvt_f_u, (float)a[i])
FLOATS(cvt_f_byte, (float)(a[i] & 0xff))
FLOATS(exp_f, __builtin_exp2f(A))
FLOATS(log_f, (float)__builtin_log2((double)A))

/* Reciprocals and roots are accurate to one unit in the last place, on which the compiler's integer
   division relies: here one of the two numbers next to the exact one, by the operand's bits, where
   the result is an ordinary number.  Next below a power of two it is the nearest, without which the
   division of floats would not be rounded correctly. */
static inline uint32_t rough(double exact, uint32_t operand) {
  const float near = (float)exact;
  const uint32_t bits = bits_of(near), exponent = bits >> 23 & 255;
  const bool other = (operand * 2654435761u) >> 31, away = fabs((double)near) < fabs(exact);
  if (amd_plain_run || exponent < 2 || exponent > 253 || (double)near == exact || !other ||
      (operand & 0x7fffff) == 0x7fffff)
    return bits;
  return away ? bits + 1 : bits - 1;
}
WORDS(rcp_f, rough(1 / (double)f32_of(A), A))
WORDS(rsq_f, rough(1 / sqrt((double)f32_of(A)), A))
WORDS(sqrt_f, rough(sqrt((double)f32_of(A)), A))

/* Rounded toward zero, clamped to the type's range; NaN becomes 0. */
WORDS(cvt_i_f, f32_of(A) != f32_of(A) ? 0
               : f32_of(A) >= 0x1p31f ? 0x7fffffff
               : f32_of(A) < -0x1p31f ? 0x80000000u
                                      : (uint32_t)(int32_t)f32_of(A))
WORDS(cvt_u_f, !(f32_of(A) > 0)       ? 0
               : f32_of(A) >= 0x1p32f ? 0xffffffffu
                                      : (uint32_t)(int64_t)f32_of(A))
WORDS(ldexp_f, bits_of(__builtin_ldexpf(f32_of(A), sign(B) > 1000    ? 1000
                                                   : sign(B) < -1000 ? -1000
                                                                     : sign(B))))

#define V(name, types, lanes)                                                                      \
  { "v_" name, types, amd_run_vector, lanes, 0 }
const amd_op amd_vector_ops[] = {V("mov_b32", "uu", mov),
                                 V("not_b32", "uu", not_),
                                 V("bfrev_b32", "uu", bfrev),
                                 V("accvgpr_read_b32", "uu", mov),
                                 V("accvgpr_write_b32", "uu", mov),
                                 V("accvgpr_mov_b32", "uu", mov),
                                 V("add_u32", "uuu", add),
                                 V("add_nc_u32", "uuu", add),
                                 V("sub_u32", "uuu", sub),
                                 V("sub_nc_u32", "uuu", sub),
                                 V("subrev_u32", "uuu", subrev),
                                 V("subrev_nc_u32", "uuu", subrev),
                                 V("add_i32", "uuu", add),
                                 V("sub_i32", "uuu", sub),
                                 V("add_nc_i32", "uuu", add),
                                 V("sub_nc_i32", "uuu", sub),
                                 V("and_b32", "uuu", and_),
                                 V("or_b32", "uuu", or_),
                                 V("xor_b32", "uuu", xor_),
                                 V("xnor_b32", "uuu", xnor),
                                 V("lshlrev_b32", "uuu", lshlrev),
                                 V("lshrrev_b32", "uuu", lshrrev),
                                 V("ashrrev_i32", "uuu", ashrrev),
                                 V("min_i32", "uuu", min_i),
                                 V("max_i32", "uuu", max_i),
                                 V("min_u32", "uuu", min_u),
                                 V("max_u32", "uuu", max_u),
                                 V("min3_i32", "uuuu", min3_i),
                                 V("max3_i32", "uuuu", max3_i),
                                 V("min3_u32", "uuuu", min3_u),
                                 V("max3_u32", "uuuu", max3_u),
                                 V("mul_lo_u32", "uuu", mul_lo),
                                 V("mul_hi_u32", "uuu", mul_hi_u),
                                 V("mul_hi_i32", "uuu", mul_hi_i),
                                 V("mul_u32_u24", "uuu", mul_u24),
                                 V("mul_i32_i24", "uuu", mul_i24),
                                 V("mul_hi_u32_u24", "uuu", mul_hi_u24),
                                 V("mul_hi_i32_i24", "uuu", mul_hi_i24),
                                 V("mad_u32_u24", "uuuu", mad_u24),
                                 V("mad_i32_i24", "uuuu", mad_i24),
                                 V("add3_u32", "uuuu", add3),
                                 V("lshl_add_u32", "uuuu", lshl_add),
                                 V("add_lshl_u32", "uuuu", add_lshl),
                                 V("lshl_or_b32", "uuuu", lshl_or),
                                 V("and_or_b32", "uuuu", and_or),
                                 V("or3_b32", "uuuu", or3),
                                 V("xor3_b32", "uuuu", xor3),
                                 V("xad_u32", "uuuu", xad),
                                 V("bfi_b32", "uuuu", bfi),
                                 V("bfe_u32", "uuuu", bfe_u),
                                 V("bfe_i32", "uuuu", bfe_i),
                                 V("alignbit_b32", "uuuu", alignbit),
                                 V("alignbyte_b32", "uuuu", alignbyte),
                                 V("perm_b32", "uuuu", perm),
                                 V("ffbh_u32", "uu", ffbh),
                                 V("clz_i32_u32", "uu", ffbh),
                                 V("ffbl_b32", "uu", ffbl),
                                 V("ctz_i32_b32", "uu", ffbl),
                                 V("bcnt_u32_b32", "uuu", bcnt),
                                 V("cndmask_b32", "fffm", cndmask),
                                 V("min_f32", "fff", min_f),
                                 V("max_f32", "fff", max_f),
                                 V("min3_f32", "ffff", min3_f),
                                 V("max3_f32", "ffff", max3_f),
                                 V("med3_f32", "ffff", med3_f),
                                 V("maxmin_f32", "ffff", maxmin_f),
                                 V("minmax_f32", "ffff", minmax_f),
                                 V("add_f32", "fff", add_f),
                                 V("sub_f32", "fff", sub_f),
                                 V("subrev_f32", "fff", subrev_f),
                                 V("mul_f32", "fff", mul_f),
                                 V("fma_f32", "ffff", fma_f),
                                 V("fmac_f32", "fff=", fma_f),
                                 V("fmamk_f32", "ffff", fma_f),
                                 V("fmaak_f32", "ffff", fma_f),
                                 V("mac_f32", "fff=", mac_f),
                                 V("mad_f32", "ffff", mac_f),
                                 V("madmk_f32", "ffff", mac_f),
                                 V("madak_f32", "ffff", mac_f),
                                 V("trunc_f32", "ff", trunc_f),
                                 V("rndne_f32", "ff", rndne_f),
                                 V("floor_f32", "ff", floor_f),
                                 V("ceil_f32", "ff", ceil_f),
                                 V("fract_f32", "ff", fract_f),
                                 V("cvt_f32_i32", "fu", cvt_f_i),
                                 V("cvt_f32_u32", "fu", cvt_f_u),
                                 V("cvt_f32_ubyte0", "fu", cvt_f_byte),
                                 V("cvt_i32_f32", "uf", cvt_i_f),
                                 V("cvt_u32_f32", "uf", cvt_u_f),
                                 V("exp_f32", "ff", exp_f),
                                 V("log_f32", "ff", log_f),
                                 V("rcp_f32", "ff", rcp_f),
                                 V("rcp_iflag_f32", "ff", rcp_f),
                                 V("rsq_f32", "ff", rsq_f),
                                 V("sqrt_f32", "ff", sqrt_f),
                                 V("ldexp_f32", "ffu", ldexp_f),
                                 {0}};
