/* tests/intel/instructions/integers.c - arithmetic and logic of integers, in 32 bits where every
   type fits and no bit above counts, else in 64. */
#include "tests/intel/registers.h"

#define SOURCES(type, get, is_logic)                                                               \
  type rows[3][INTEL_LANES], r[INTEL_LANES];                                                       \
  const int n = i->lanes;                                                                          \
  const type *a = get(t, i, &i->s[0], rows[0], is_logic),                                          \
             *b = i->n > 1 ? get(t, i, &i->s[1], rows[1], is_logic) : a,                           \
             *c = i->n > 2 ? get(t, i, &i->s[2], rows[2], is_logic) : a;                           \
  (void)b, (void)c

#define RUN(name, type, get, put, is_logic, expression)                                            \
  INTEL_CLONES static void name(intel_thread *t, const intel_ins *i) {                             \
    SOURCES(type, get, is_logic);                                                                  \
    INTEL_EACH(n, {                                                                                \
      type X = a[k], Y = b[k], Z = c[k];                                                           \
      (void)X, (void)Y, (void)Z;                                                                   \
      r[k] = (type)(expression);                                                                   \
    })                                                                                             \
    put(t, i, r);                                                                                  \
  }
#define BOTH(name, is_logic, expression)                                                           \
  RUN(name##_words, uint32_t, intel_words, intel_put_words, is_logic, expression)                  \
  RUN(name##_longs, uint64_t, intel_longs, intel_put_longs, is_logic, expression)

BOTH(add, false, X + Y)
BOTH(add3, false, X + Y + Z)
BOTH(mul, false, X *Y)
BOTH(mad, false, X + Y * Z)
BOTH(and_, true, X &Y)
BOTH(or_, true, X | Y)
BOTH(xor_, true, X ^ Y)
BOTH(not_, true, ~X)

/* Counts are taken modulo 32, or modulo 64 where the result or the first source has 64 bits; a
   right shift begins with the source's own bits, as an unsigned number or a signed one. */
RUN(shl_words, uint32_t, intel_words, intel_put_words, false, X << (Y & 31))
RUN(shl_longs, uint64_t, intel_longs, intel_put_longs, false, X << (Y & 63))
RUN(asr_words, uint32_t, intel_words, intel_put_words, false, (int32_t)X >> (Y & 31))
RUN(asr_longs, uint64_t, intel_longs, intel_put_longs, false, (int64_t)X >> (Y & 63))
RUN(shr_longs, uint64_t, intel_longs, intel_put_longs, false, X >> (Y & 63))
INTEL_CLONES static void shr_words(intel_thread *t, const intel_ins *i) {
  SOURCES(uint32_t, intel_words, false);
  int bytes = intel_type_bytes[i->s[0].type];
  uint32_t own = bytes == 4 ? ~0u : (1u << 8 * bytes) - 1;
  INTEL_EACH(n, r[k] = (a[k] & own) >> (b[k] & 31);)
  intel_put_words(t, i, r);
}

/* The table's bit k is the result where the sources' bits are those of k. */
INTEL_CLONES static void bfn(intel_thread *t, const intel_ins *i) {
  SOURCES(uint32_t, intel_words, true);
  uint32_t on[8];
  for (int e = 0; e < 8; e++) on[e] = 0u - (i->table >> e & 1u);
  INTEL_EACH(n, {
    uint32_t X = a[k], Y = b[k], Z = c[k];
    r[k] = (~X & ~Y & ~Z & on[0]) | (X & ~Y & ~Z & on[1]) | (~X & Y & ~Z & on[2]) |
           (X & Y & ~Z & on[3]) | (~X & ~Y & Z & on[4]) | (X & ~Y & Z & on[5]) |
           (~X & Y & Z & on[6]) | (X & Y & Z & on[7]);
  })
  intel_put_words(t, i, r);
}

static void lzd(intel_thread *t, const intel_ins *i) {
  SOURCES(uint32_t, intel_words, false);
  INTEL_EACH(n, r[k] = a[k] ? (uint32_t)__builtin_clz(a[k]) : 32;)
  intel_put_words(t, i, r);
}

/* The carry goes to acc0. */
static void addc(intel_thread *t, const intel_ins *i) {
  SOURCES(uint64_t, intel_longs, false);
  uint32_t lanes = intel_mask(t, i);
  for (int k = 0; k < n; k++) {
    r[k] = a[k] + b[k];
    uint32_t carry = (uint32_t)(r[k] >> 32);
    if (lanes >> k & 1) memcpy(t->g + INTEL_ACC + 4 * k, &carry, 4);
  }
  t->product_lanes = 0;
  intel_put_longs(t, i, r);
}

/* ---- products of 32 bits by 32: mul into acc0, then macl or mach ---- */

static void mul_accumulator(intel_thread *t, const intel_ins *i) {
  SOURCES(uint64_t, intel_longs, false);
  uint32_t lanes = intel_mask(t, i);
  for (int k = 0; k < n; k++) {
    r[k] = a[k] * b[k];
    if (lanes >> k & 1) t->product[k] = r[k];
  }
  t->product_lanes |= lanes;
  intel_put_longs(t, i, r);
}

/* acc0 + ((a * (b >> 16)) << 16). */
static bool whole_product(intel_thread *t, const intel_ins *i, uint64_t *r) {
  uint64_t rows[2][INTEL_LANES];
  const uint64_t *a = intel_longs(t, i, &i->s[0], rows[0], false),
                 *b = intel_longs(t, i, &i->s[1], rows[1], false);
  if (intel_mask(t, i) & ~t->product_lanes) {
    intel_fail(t, i, "acc0 does not hold a product");
    return false;
  }
  for (int k = 0; k < i->lanes; k++)
    r[k] = t->product[k] + (a[k] * (uint64_t)((int64_t)b[k] >> 16) << 16);
  return true;
}
static void macl(intel_thread *t, const intel_ins *i) {
  uint64_t r[INTEL_LANES];
  if (whole_product(t, i, r)) intel_put_longs(t, i, r);
}
static void mach(intel_thread *t, const intel_ins *i) {
  uint64_t r[INTEL_LANES];
  if (!whole_product(t, i, r)) return;
  for (int k = 0; k < i->lanes; k++) r[k] >>= 32;
  intel_put_longs(t, i, r);
}

const intel_op intel_integer_ops[] = {
    {"add", 2, false, add_words, add_longs, NULL, NULL},
    {"add3", 3, false, add3_words, add3_longs, NULL, NULL},
    {"mul", 2, false, mul_words, mul_longs, NULL, NULL},
    {"mad", 3, false, mad_words, mad_longs, NULL, NULL},
    {"and", 2, true, and__words, and__longs, NULL, NULL},
    {"or", 2, true, or__words, or__longs, NULL, NULL},
    {"xor", 2, true, xor__words, xor__longs, NULL, NULL},
    {"not", 1, true, not__words, not__longs, NULL, NULL},
    {"shl", 2, false, shl_words, shl_longs, NULL, NULL},
    {"shr", 2, false, shr_words, shr_longs, NULL, NULL},
    {"asr", 2, false, asr_words, asr_longs, NULL, NULL},
    {"bfn", 3, true, bfn, NULL, NULL, NULL},
    {"lzd", 1, false, lzd, NULL, NULL, NULL},
    {"addc", 2, false, addc, NULL, NULL, NULL},
    {"mul.acc0", 2, false, mul_accumulator, NULL, NULL, NULL},
    {"macl", 2, false, macl, NULL, NULL, NULL},
    {"mach", 2, false, mach, NULL, NULL, NULL},
    {0},
};
