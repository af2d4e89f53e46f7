/* tests/amd/instructions/vector_wide.c - vector instructions on 64 bits: integers and f64. */
#include "tests/amd/lanes.h"

#define LONGS(name, expression)                                                                    \
  AMD_LANES(name) {                                                                                \
    (void)a, (void)b, (void)c;                                                                     \
    AMD_EACH put64(d, m, i, (uint64_t)(expression));                                               \
  }
#define DOUBLES(name, expression)                                                                  \
  AMD_LANES(name) {                                                                                \
    (void)a, (void)b, (void)c;                                                                     \
    AMD_EACH {                                                                                     \
      double A = getd(a, i), B = getd(b, i), C = getd(c, i);                                       \
      (void)A, (void)B, (void)C;                                                                   \
      put64(d, m, i, bits_of_f64(expression));                                                     \
    }                                                                                              \
  }
/* A word from a double. */
#define NARROW(name, expression)                                                                   \
  AMD_LANES(name) {                                                                                \
    (void)a, (void)b, (void)c;                                                                     \
    AMD_EACH {                                                                                     \
      double A = getd(a, i);                                                                       \
      put(d, m, i, (uint32_t)(expression));                                                        \
    }                                                                                              \
  }

LONGS(mov, get64(a, i))
LONGS(lshlrev, get64(b, i) << (a[i] & 63))
LONGS(lshrrev, get64(b, i) >> (a[i] & 63))
LONGS(ashrrev, (int64_t)get64(b, i) >> (a[i] & 63))
LONGS(lshl_add, (get64(a, i) << (b[i] & 7)) + get64(c, i))

/* As in f32: a signalling NaN is returned as a quiet one. */
static inline bool loud(uint64_t a) {
  return (a & 0x7ff8000000000000) == 0x7ff0000000000000 && a & 0x7ffffffffffff;
}
static inline uint64_t chosen(double x, double y, uint64_t better) {
  uint64_t a = bits_of_f64(x), b = bits_of_f64(y);
  if (loud(a) || loud(b)) return (loud(a) ? a : b) | 0x8000000000000;
  return x != x ? b : y != y ? a : better;
}
static inline uint64_t less(double x, double y) {
  uint64_t a = bits_of_f64(x), b = bits_of_f64(y);
  return chosen(x, y, x == y ? a | b : x < y ? a : b);
}
static inline uint64_t more(double x, double y) {
  uint64_t a = bits_of_f64(x), b = bits_of_f64(y);
  return chosen(x, y, x == y ? a & b : x > y ? a : b);
}
LONGS(min_d, less(getd(a, i), getd(b, i)))
LONGS(max_d, more(getd(a, i), getd(b, i)))

DOUBLES(add_d, A + B)
DOUBLES(mul_d, A *B)
DOUBLES(fma_d, __builtin_fma(A, B, C))
DOUBLES(trunc_d, __builtin_trunc(A))
DOUBLES(rndne_d, __builtin_rint(A))
DOUBLES(floor_d, __builtin_floor(A))
DOUBLES(ceil_d, __builtin_ceil(A))
DOUBLES(fract_d, A - __builtin_floor(A) < 0x1.fffffffffffffp-1 ? A - __builtin_floor(A)
                                                               : 0x1.fffffffffffffp-1)
DOUBLES(cvt_d_f, (double)f32_of(a[i]))
DOUBLES(cvt_d_i, (double)(int32_t)a[i])
DOUBLES(cvt_d_u, (double)a[i])
static inline double scaled(double x, uint32_t by) {
  int32_t n = (int32_t)by;
  return __builtin_ldexp(x, n > 5000 ? 5000 : n < -5000 ? -5000 : n);
}
DOUBLES(ldexp_d, scaled(A, b[i]))

/* Accurate to 2^29 units in the last place: here off by a quarter of that, up or down depending on
   the operand's bits. */
static inline double rough(double exact, double operand) {
  uint64_t bits = bits_of_f64(exact), from = bits_of_f64(operand), exponent = bits >> 52 & 2047;
  bool odd = (from * 0x9e3779b97f4a7c15) >> 63;
  if (amd_plain_run || exponent < 2 || exponent > 2045 || !(from & 0xfffffffffffff)) return exact;
  bits += odd ? 1u << 27 : 0u - (uint64_t)(1u << 27);
  return f64_of((uint32_t)bits, (uint32_t)(bits >> 32));
}
DOUBLES(rcp_d, rough(1 / A, A))
DOUBLES(rsq_d, rough(1 / __builtin_sqrt(A), A))
DOUBLES(sqrt_d, rough(__builtin_sqrt(A), A))

NARROW(cvt_f_d, bits_of((float)A))
NARROW(cvt_i_d, A != A         ? 0
                : A >= 0x1p31  ? 0x7fffffff
                : A <= -0x1p31 ? 0x80000000u
                               : (uint32_t)(int32_t)A)
NARROW(cvt_u_d, !(A > 0) ? 0 : A >= 0x1p32 ? 0xffffffffu : (uint32_t)(int64_t)A)

/* ---- 32 x 32 + 64, with the carry as a second result ---- */

static void run_mad(amd_wave *w, const amd_ins *i, bool sign) {
  const uint32_t *a = amd_fetch(w, i, 0), *b = amd_fetch(w, i, 1), *c = amd_fetch(w, i, 2);
  uint32_t *d = w->v[i->d.index];
  uint64_t carries = 0;
  for (int l = 0; l < w->lanes; l++) {
    uint64_t product =
                 sign ? (uint64_t)((int64_t)(int32_t)a[l] * (int32_t)b[l]) : (uint64_t)a[l] * b[l],
             addend = get64(c, l), sum = product + addend;
    bool over = sign ? ((int64_t)((product ^ sum) & (addend ^ sum)) < 0) : sum < product;
    carries |= (uint64_t)over << l;
    put64(d, w->mask, l, sum);
  }
  amd_put_mask(w, i, i->carry, carries & w->exec);
}
static void run_mad_u(amd_wave *w, const amd_ins *i) { run_mad(w, i, false); }
static void run_mad_i(amd_wave *w, const amd_ins *i) { run_mad(w, i, true); }

#define V(name, types, lanes)                                                                      \
  { "v_" name, types, amd_run_vector, lanes, 0 }
const amd_op amd_vector_ops_64[] = {V("mov_b64", "qq", mov),
                                    V("lshlrev_b64", "quq", lshlrev),
                                    V("lshrrev_b64", "quq", lshrrev),
                                    V("ashrrev_i64", "qui", ashrrev),
                                    V("lshl_add_u64", "qquq", lshl_add),
                                    V("min_f64", "ddd", min_d),
                                    V("max_f64", "ddd", max_d),
                                    V("add_f64", "ddd", add_d),
                                    V("mul_f64", "ddd", mul_d),
                                    V("fma_f64", "dddd", fma_d),
                                    V("fmac_f64", "ddd=", fma_d),
                                    V("trunc_f64", "dd", trunc_d),
                                    V("rndne_f64", "dd", rndne_d),
                                    V("floor_f64", "dd", floor_d),
                                    V("ceil_f64", "dd", ceil_d),
                                    V("fract_f64", "dd", fract_d),
                                    V("cvt_f64_f32", "df", cvt_d_f),
                                    V("cvt_f64_i32", "du", cvt_d_i),
                                    V("cvt_f64_u32", "du", cvt_d_u),
                                    V("ldexp_f64", "ddu", ldexp_d),
                                    V("rcp_f64", "dd", rcp_d),
                                    V("rsq_f64", "dd", rsq_d),
                                    V("sqrt_f64", "dd", sqrt_d),
                                    V("cvt_f32_f64", "fd", cvt_f_d),
                                    V("cvt_i32_f64", "ud", cvt_i_d),
                                    V("cvt_u32_f64", "ud", cvt_u_d),
                                    {"v_mad_u64_u32", "qMuuq", run_mad_u, NULL, 0},
                                    {"v_mad_i64_i32", "qMuui", run_mad_i, NULL, 0},
                                    {0}};
