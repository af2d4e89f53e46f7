/* tests/amd/instructions/vector_special.c - vector instructions that fit no common pattern:
   carries, lanes, packed and mixed precision, steps of a division. */
#include "tests/amd/lanes.h"

/* ---- carries ---- */

enum { ADD, SUB, SUBREV };

/* d = a + b + carry and similar; the carry out is a mask. */
static void run_carry(amd_wave *w, const amd_ins *i) {
  const uint32_t *a = amd_fetch(w, i, 0), *b = amd_fetch(w, i, 1),
                 *c = i->mask ? amd_fetch(w, i, 2) : amd_zeros, *mask = w->mask;
  uint32_t *d = w->v[i->d.index], *over = w->temporary[4];
  if (i->op->bytes == SUBREV) {
    const uint32_t *other = a;
    a = b;
    b = other;
  }
  if (i->op->bytes == ADD) {
    _Pragma("GCC ivdep") for (int l = 0; l < (w->lanes & ~31); l++) {
      uint32_t x = a[l], sum = x + b[l], whole = sum - c[l];
      over[l] = (sum < x || whole < sum ? ~0u : 0u) & mask[l];
      put(d, mask, l, whole);
    }
  } else {
    _Pragma("GCC ivdep") for (int l = 0; l < (w->lanes & ~31); l++) {
      uint32_t x = a[l], y = b[l], borrow = c[l];
      over[l] = (x < y || (x == y && borrow) ? ~0u : 0u) & mask[l];
      put(d, mask, l, x - y + borrow);
    }
  }
  if (i->select) amd_fail(w, i, "a carry into a part of a word is not emulated");
  amd_put_mask(w, i, i->carry, amd_gather(over, w->lanes));
}

/* ---- lanes ---- */

static void run_readfirstlane(amd_wave *w, const amd_ins *i) {
  int lane = w->exec ? __builtin_ctzll(w->exec) : 0;
  w->s[i->d.index] = amd_fetch(w, i, 0)[lane];
}
static void run_readlane(amd_wave *w, const amd_ins *i) {
  w->s[i->d.index] = amd_fetch(w, i, 0)[amd_word(w, i->s[1]) & (uint32_t)(w->lanes - 1)];
}
static void run_writelane(amd_wave *w, const amd_ins *i) {
  w->v[i->d.index][amd_word(w, i->s[1]) & (uint32_t)(w->lanes - 1)] = amd_word(w, i->s[0]);
}

/* ---- two f32 in 64 bits; op_sel and op_sel_hi say which half of each operand each half of the
   result takes ---- */

AMD_LANES(fma_f) {
  AMD_EACH put(d, m, i, bits_of(__builtin_fmaf(f32_of(a[i]), f32_of(b[i]), f32_of(c[i]))));
}
AMD_LANES(mul_f) {
  (void)c;
  AMD_EACH put(d, m, i, bits_of(f32_of(a[i]) * f32_of(b[i])));
}
AMD_LANES(add_f) {
  (void)c;
  AMD_EACH put(d, m, i, bits_of(f32_of(a[i]) + f32_of(b[i])));
}

static void run_packed(amd_wave *w, const amd_ins *i) {
  uint32_t *d = w->v[i->d.index], *r = w->temporary[4];
  memcpy(r, d, 2 * AMD_ROW * 4);
  if (i->omod || i->clamp) amd_fail(w, i, "omod and clamp are not emulated here");
  for (int half = 0; half < 2; half++) {
    const uint32_t *row[3] = {amd_zeros, amd_zeros, amd_zeros};
    for (int k = 0; k < i->n; k++) {
      amd_ins one = *i; /* its sign is a half's, not the operand's */
      one.s[k].neg = 0;
      row[k] = amd_fetch(w, &one, k) + ((half ? i->s[k].high : i->s[k].low) ? AMD_ROW : 0);
      if (i->s[k].where == AMD_CONSTANT && half && i->s[k].high && w->words[i->s[k].index][0])
        amd_fail(w, i, "the high half of a constant is not emulated");
      if (!(i->s[k].neg >> half & 1)) continue;
      uint32_t *t = w->temporary[5 + k];
      for (int l = 0; l < w->lanes; l++) t[l] = row[k][l] ^ 0x80000000u;
      row[k] = t;
    }
    i->lanes(r + half * AMD_ROW, row[0], row[1], row[2], w->mask, w->lanes);
  }
  memcpy(d, r, 2 * AMD_ROW * 4);
}

/* The low word from the first operand, the high one from the second. */
static void run_packed_mov(amd_wave *w, const amd_ins *i) {
  uint32_t *d = w->v[i->d.index], *r = w->temporary[4];
  const uint32_t *a = amd_fetch(w, i, 0) + (i->s[0].low ? AMD_ROW : 0),
                 *b = amd_fetch(w, i, 1) + (i->s[1].low ? AMD_ROW : 0);
  memcpy(r, a, AMD_ROW * 4);
  memcpy(r + AMD_ROW, b, AMD_ROW * 4);
  for (int l = 0; l < w->lanes; l++)
    put(d, w->mask, l, r[l]), put(d + AMD_ROW, w->mask, l, r[AMD_ROW + l]);
}

/* ---- f32 fma of operands that are f32 or a half of a word as f16 ---- */

enum { WHOLE, LOW, HIGH };

static float mixed(const amd_operand *o, uint32_t word) {
  float x = !o->high ? f32_of(word) : f32_of_half(o->low ? word >> 16 : word);
  if (o->abs) x = __builtin_fabsf(x);
  return o->neg ? -x : x;
}

static void run_mix(amd_wave *w, const amd_ins *i) {
  uint32_t *d = w->v[i->d.index];
  amd_ins bare = *i;
  for (int k = 0; k < 3; k++) {
    bare.s[k].neg = bare.s[k].abs = 0;
    if (i->s[k].where == AMD_CONSTANT && i->s[k].high && w->words[i->s[k].index][0])
      amd_fail(w, i, "a constant of f16 is not emulated here");
  }
  const uint32_t *a = amd_fetch(w, &bare, 0), *b = amd_fetch(w, &bare, 1),
                 *c = amd_fetch(w, &bare, 2);
  for (int l = 0; l < w->lanes; l++) {
    float x = __builtin_fmaf(mixed(&i->s[0], a[l]), mixed(&i->s[1], b[l]), mixed(&i->s[2], c[l]));
    if (i->clamp) x = x > 0 ? x < 1 ? x : 1 : 0;
    uint32_t old = d[l], r = i->op->bytes == WHOLE ? bits_of(x)
                             : i->op->bytes == LOW ? (old & 0xffff0000u) | half_of(x)
                                                   : (old & 0xffffu) | half_of(x) << 16;
    put(d, w->mask, l, r);
  }
}

/* ---- a division: operands scaled, the quotient unscaled, special cases mended ---- */

static inline int exponent(double x, bool wide) { /* biased, as stored */
  return wide ? (int)(bits_of_f64(x) >> 52 & 2047) : (int)(bits_of((float)x) >> 23 & 255);
}
static inline bool tiny(double x, bool wide) {
  return x != 0 && __builtin_fabs(x) < (wide ? 0x1p-1022 : 0x1p-126);
}
/* Whether a / b is a denormal of the type; f64's is judged as rounded. */
static inline bool tiny_ratio(double a, double b, bool wide) {
  return wide ? tiny(a / b, true) : tiny((float)a / (float)b, false);
}

/* x, the denominator or the numerator, scaled where the plain steps would overflow or lose bits;
   true: the quotient must be scaled back. */
static bool scale(double *x, double denominator, double numerator, bool wide) {
  int far = wide ? 768 : 96, few = wide ? 53 : 23, step = wide ? 128 : 64,
      difference = exponent(numerator, wide) - exponent(denominator, wide);
  bool below = *x == denominator, above = *x == numerator;
  if (numerator == 0 || denominator == 0) return *x = NAN, false;
  if (difference >= far) {
    if (below) *x = ldexp(*x, step);
    return true;
  }
  if (tiny(denominator, wide)) return *x = ldexp(*x, step), false;
  bool small = tiny_ratio(numerator, denominator, wide);
  if (tiny_ratio(1, denominator, wide)) {
    if (!small || below) *x = ldexp(*x, -step);
    return small;
  }
  if (small) {
    if (above) *x = ldexp(*x, step);
    return true;
  }
  if (exponent(numerator, wide) <= few) *x = ldexp(*x, step);
  return false;
}

static void run_div_scale(amd_wave *w, const amd_ins *i) {
  const uint32_t *a = amd_fetch(w, i, 0), *b = amd_fetch(w, i, 1), *c = amd_fetch(w, i, 2);
  uint32_t *d = w->v[i->d.index];
  bool wide = i->result == 'd';
  uint64_t mask = 0;
  for (int l = 0; l < w->lanes; l++) {
    double x = wide ? getd(a, l) : (double)f32_of(a[l]),
           below = wide ? getd(b, l) : (double)f32_of(b[l]),
           above = wide ? getd(c, l) : (double)f32_of(c[l]);
    mask |= (uint64_t)scale(&x, below, above, wide) << l;
    if (wide) put64(d, w->mask, l, bits_of_f64(x));
    else put(d, w->mask, l, bits_of((float)x));
  }
  amd_put_mask(w, i, i->carry, mask & w->exec);
}

/* x y + z, scaled before it is rounded: a quotient may be a denormal. */
#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 quad;
#else
typedef long double quad;
#endif
static double scaled_fma(double x, double y, double z, int by) {
  quad power = by > 0 ? (quad)ldexp(1, by) : 1 / (quad)ldexp(1, -by);
  return isfinite(x) && isfinite(y) && isfinite(z) ? (double)(((quad)x * (quad)y + (quad)z) * power)
                                                   : fma(x, y, z);
}
static float scaled_fmaf(float x, float y, float z, int by) {
  return (float)ldexp(fma((double)x, (double)y, (double)z), by);
}

/* Scaled if div_scale's mask (vcc) says so: up if the quotient is large, else down. */
static void run_div_fmas(amd_wave *w, const amd_ins *i) {
  const uint32_t *a = amd_fetch(w, i, 0), *b = amd_fetch(w, i, 1), *c = amd_fetch(w, i, 2);
  uint32_t *d = w->v[i->d.index];
  uint64_t vcc = amd_mask_of(w, i->s[3]);
  bool wide = i->result == 'd';
  for (int l = 0; l < w->lanes; l++) {
    bool scaled = vcc >> l & 1;
    if (wide) {
      double x = getd(a, l), y = getd(b, l), z = getd(c, l);
      put64(d, w->mask, l,
            bits_of_f64(scaled ? scaled_fma(x, y, z, exponent(z, true) > 1023 ? 128 : -128)
                               : fma(x, y, z)));
    } else {
      float x = f32_of(a[l]), y = f32_of(b[l]), z = f32_of(c[l]);
      put(d, w->mask, l,
          bits_of(scaled ? scaled_fmaf(x, y, z, exponent((double)z, false) > 127 ? 64 : -64)
                         : fmaf(x, y, z)));
    }
  }
}

static double fixed(double quotient, double denominator, double numerator, bool wide) {
  double one = (bits_of_f64(denominator) ^ bits_of_f64(numerator)) >> 63 ? -1 : 1;
  bool infinite_above = isinf(numerator), infinite_below = isinf(denominator);
  if (isnan(numerator)) return numerator;
  if (isnan(denominator)) return denominator;
  if ((numerator == 0 && denominator == 0) || (infinite_above && infinite_below))
    return (double)-NAN;
  if (denominator == 0 || infinite_above) return one * HUGE_VAL;
  if (infinite_below || numerator == 0) return one * 0.0;
  if (exponent(numerator, wide) - exponent(denominator, wide) < (wide ? -1075 : -150))
    return one * 0.0;
  return isnan(quotient) ? one * HUGE_VAL
                         : copysign(quotient, one); /* too large: infinity - infinity on the way */
}

static void run_div_fixup(amd_wave *w, const amd_ins *i) {
  const uint32_t *a = amd_fetch(w, i, 0), *b = amd_fetch(w, i, 1), *c = amd_fetch(w, i, 2);
  uint32_t *d = w->v[i->d.index];
  for (int l = 0; l < w->lanes; l++)
    if (i->result == 'd')
      put64(d, w->mask, l, bits_of_f64(fixed(getd(a, l), getd(b, l), getd(c, l), true)));
    else
      put(d, w->mask, l,
          bits_of((float)fixed((double)f32_of(a[l]), (double)f32_of(b[l]), (double)f32_of(c[l]),
                               false)));
}

#define CARRY(name, types, what)                                                                   \
  { "v_" name, types, run_carry, NULL, what }
const amd_op amd_lane_ops[] = {CARRY("add_co_u32", "uMuu", ADD),
                               CARRY("addc_co_u32", "uMuum", ADD),
                               CARRY("add_co_ci_u32", "uMuum", ADD),
                               CARRY("sub_co_u32", "uMuu", SUB),
                               CARRY("subb_co_u32", "uMuum", SUB),
                               CARRY("sub_co_ci_u32", "uMuum", SUB),
                               CARRY("subrev_co_u32", "uMuu", SUBREV),
                               CARRY("subbrev_co_u32", "uMuum", SUBREV),
                               CARRY("subrev_co_ci_u32", "uMuum", SUBREV),
                               {"v_readfirstlane_b32", "uu", run_readfirstlane, NULL, 0},
                               {"v_readlane_b32", "uuu", run_readlane, NULL, 0},
                               {"v_writelane_b32", "uuu", run_writelane, NULL, 0},
                               {"v_pk_fma_f32", "pppp", run_packed, fma_f, 0},
                               {"v_pk_mul_f32", "ppp", run_packed, mul_f, 0},
                               {"v_pk_add_f32", "ppp", run_packed, add_f, 0},
                               {"v_pk_mov_b32", "qqq", run_packed_mov, NULL, 0},
                               {"v_fma_mix_f32", "xxxx", run_mix, NULL, WHOLE},
                               {"v_fma_mixlo_f16", "xxxx", run_mix, NULL, LOW},
                               {"v_fma_mixhi_f16", "xxxx", run_mix, NULL, HIGH},
                               {"v_div_scale_f32", "fMfff", run_div_scale, NULL, 0},
                               {"v_div_scale_f64", "dMddd", run_div_scale, NULL, 0},
                               {"v_div_fmas_f32", "ffffm", run_div_fmas, NULL, 0},
                               {"v_div_fmas_f64", "ddddm", run_div_fmas, NULL, 0},
                               {"v_div_fixup_f32", "ffff", run_div_fixup, NULL, 0},
                               {"v_div_fixup_f64", "dddd", run_div_fixup, NULL, 0},
                               {0}};
