/* kernels/dynamics/noise.c - Philox, and the transform of Box and Muller. Logarithm, sine and
   cosine are made of sums and products, as devices' own differ. */
#include "kernels/dynamics/noise.h"

#include "kernels/layers/layer.h"

/* ---- random words ---- */

static void add_to(ir_kernel *k, ir_val *x, int64_t increment) {
  *x = ir_add(k, *x, clb_i32(k, increment));
}

void clb_philox(ir_kernel *k, const ir_val counter[4], const ir_val key[2], ir_val word[4]) {
  const ir_val by[] = {clb_i32(k, 0xd2511f53), clb_i32(k, 0xcd9e8d57)};
  ir_val x[] = {counter[0], counter[1], counter[2], counter[3]}, keys[] = {key[0], key[1]};
  for (int round = 0; round < 10; round++) {
    ir_val high[2], low[2];
    for (int i = 0; i < 2; i++) {
      high[i] = ir_2(k, IR_MUL_HIGH, x[2 * i], by[i]);
      low[i] = ir_mul(k, x[2 * i], by[i]);
    }
    for (int i = 0; i < 2; i++) {
      const ir_val mixed = ir_2(k, IR_XOR, x[2 * i + 1], keys[i]);
      x[2 * i] = ir_2(k, IR_XOR, high[1 - i], mixed);
      x[2 * i + 1] = low[1 - i];
    }
    add_to(k, &keys[0], 0x9e3779b9);
    add_to(k, &keys[1], 0xbb67ae85);
  }
  for (int i = 0; i < 4; i++) word[i] = x[i];
}

/* ---- normal deviates ---- */

static ir_val real(ir_kernel *k, double x) { return ir_real(k, IR_F64, x); }

/* (w + 1/2) / 2^32 of the word without a sign, exactly. */
static ir_val uniform(ir_kernel *k, ir_val w) {
  const ir_val low = ir_cast(k, IR_F64, w), high = ir_add(k, low, real(k, 0x1p32)),
               x = ir_select(k, ir_2(k, IR_LT, low, real(k, 0)), high, low);
  return ir_mul(k, ir_add(k, x, real(k, 0.5)), real(k, 0x1p-32));
}

/* c[0] + c[1] x + ... */
static ir_val polynomial(ir_kernel *k, ir_val x, int n, const double *c) {
  ir_val sum = real(k, c[n - 1]);
  for (int i = n - 1; i-- > 0;) sum = ir_fma(k, x, sum, real(k, c[i]));
  return sum;
}

/* From 2^-33 to 1: with x = 2^e m, 1/2 <= m^2 < 2 and f = (m - 1) / (m + 1) it is
   e log 2 + 2 f (1 + f^2 / 3 + f^4 / 5 + ...). */
static ir_val logarithm(ir_kernel *k, ir_val x) {
  enum { TERMS = 12 };
  const ir_val one = real(k, 1), zero = real(k, 0);
  ir_val m = x, e = zero;
  double c[TERMS];
  for (int i = 0; i < TERMS; i++) c[i] = 2. / (2 * i + 1);
  for (int shift = 32; shift; shift /= 2) {
    const double size = (double)(INT64_C(1) << shift);
    const ir_val small = ir_2(k, IR_LT, m, real(k, 1 / size));
    m = ir_mul(k, m, ir_select(k, small, real(k, size), one));
    e = ir_sub(k, e, ir_select(k, small, real(k, shift), zero));
  }
  const ir_val small = ir_2(k, IR_LT, m, real(k, 0x1.6a09e667f3bcdp-1)); /* sqrt(1/2) */
  m = ir_mul(k, m, ir_select(k, small, real(k, 2), one));
  e = ir_sub(k, e, ir_select(k, small, one, zero));
  const ir_val f = ir_2(k, IR_DIV, ir_sub(k, m, one), ir_add(k, m, one)),
               sum = ir_mul(k, f, polynomial(k, ir_mul(k, f, f), TERMS, c));
  return ir_fma(k, e, real(k, 0x1.62e42fefa39efp-1), sum); /* log 2 */
}

/* Cosine and sine of 2 pi x, from 0 to 1: with h = x - 1/2 and a = pi / 2 - |2 pi h|, they are -sin
   a and -cos a, the latter with the sign of h. */
static void circle(ir_kernel *k, ir_val x, ir_val *cosine, ir_val *sine) {
  enum { TERMS = 12 };
  double c[2][TERMS] = {{1}, {1}};
  for (int i = 1; i < TERMS; i++)
    for (int odd = 0; odd < 2; odd++)
      c[odd][i] = -c[odd][i - 1] / ((2 * i + odd) * (2 * i + odd - 1));
  const ir_val h = ir_sub(k, x, real(k, 0.5)),
               quarter = ir_sub(k, real(k, 0.25), ir_1(k, IR_ABS, h)),
               a = ir_mul(k, quarter, real(k, 0x1.921fb54442d18p2)), /* 2 pi */
      square = ir_mul(k, a, a), even = polynomial(k, square, TERMS, c[0]),
               odd = ir_mul(k, a, polynomial(k, square, TERMS, c[1]));
  *cosine = ir_1(k, IR_NEG, odd);
  *sine = ir_select(k, ir_2(k, IR_LT, h, real(k, 0)), even, ir_1(k, IR_NEG, even));
}

void clb_normal_triple(ir_kernel *k, const ir_val word[4], ir_val normal[3]) {
  for (int pair = 0; pair < 2; pair++) {
    const ir_val size = logarithm(k, uniform(k, word[2 * pair])),
                 r = ir_1(k, IR_SQRT, ir_mul(k, real(k, -2), size));
    ir_val cosine, sine;
    circle(k, uniform(k, word[2 * pair + 1]), &cosine, &sine);
    normal[2 * pair] = ir_mul(k, r, cosine);
    if (!pair) normal[1] = ir_mul(k, r, sine);
  }
}
