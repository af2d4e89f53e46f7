/* kernels/common/activate.c - activations and their derivatives. */
#include "kernels/common/activate.h"

/* The IR has no logarithm, but roots and exp. With s = x^(1/64), near 1, and z = (s - 1) / (s + 1),
   log x = 128 (z + z^3/3 + z^5/5 + ...); one step of Halley's method for exp(y) = x makes of an
   error e one of e^3 / 12, and removes the rounding that the roots have magnified. */
ir_val clb_logarithm(ir_kernel *k, ir_type t, ir_val x) {
  ir_val s = x, one = ir_real(k, t, 1);
  for (int i = 0; i < 6; i++) s = ir_1(k, IR_SQRT, s);
  ir_val z = ir_2(k, IR_DIV, ir_sub(k, s, one), ir_add(k, s, one)), z2 = ir_mul(k, z, z),
         sum = ir_fma(k, z2, ir_real(k, t, 128. / 7), ir_real(k, t, 128. / 5));
  sum = ir_fma(k, z2, sum, ir_real(k, t, 128. / 3));
  ir_val y = ir_mul(k, z, ir_fma(k, z2, sum, ir_real(k, t, 128))), e = ir_1(k, IR_EXP, y),
         miss = ir_2(k, IR_DIV, ir_sub(k, x, e), ir_add(k, x, e));
  return ir_fma(k, ir_real(k, t, 2), miss, y);
}

/* s = 1 / (1 + exp(-x)) */
static ir_val logistic(ir_kernel *k, ir_type t, ir_val x, ir_val *d) {
  ir_val one = ir_real(k, t, 1);
  *d = ir_add(k, one, ir_1(k, IR_EXP, ir_1(k, IR_NEG, x)));
  return ir_2(k, IR_DIV, one, *d);
}

/* silu = x s; its slope is s (1 + x (1 - s)), then s (1 - s) (2 + x (1 - 2 s)). */
static void silu(ir_kernel *k, ir_type t, ir_val x, ir_val *value, ir_val *slope, ir_val *bend) {
  ir_val one = ir_real(k, t, 1), d, s = logistic(k, t, x, &d);
  *value = ir_2(k, IR_DIV, x, d);
  *slope = ir_mul(k, s, ir_fma(k, x, ir_sub(k, one, s), one));
  if (!bend) return;
  ir_val odd = ir_fma(k, ir_real(k, t, -2), s, one);
  *bend = ir_mul(k, ir_mul(k, s, ir_sub(k, one, s)), ir_fma(k, x, odd, ir_real(k, t, 2)));
}

static void sigmoid(ir_kernel *k, ir_type t, ir_val x, ir_val *value, ir_val *slope, ir_val *bend) {
  ir_val one = ir_real(k, t, 1), d, s = logistic(k, t, x, &d);
  *value = s;
  *slope = ir_mul(k, s, ir_sub(k, one, s));
  if (bend) *bend = ir_mul(k, *slope, ir_fma(k, ir_real(k, t, -2), s, one));
}

/* log((1 + exp(x)) / 2) = max(x, 0) + log((1 + exp(-|x|)) / 2) */
static void ssp(ir_kernel *k, ir_type t, ir_val x, ir_val *value, ir_val *slope, ir_val *bend) {
  ir_val half = ir_real(k, t, 0.5), e = ir_1(k, IR_EXP, ir_1(k, IR_NEG, ir_1(k, IR_ABS, x)));
  ir_val positive = ir_2(k, IR_MAX, x, ir_real(k, t, 0));
  sigmoid(k, t, x, value, slope, bend);
  ir_val s = *value;
  *value = ir_add(k, positive, clb_logarithm(k, t, ir_fma(k, half, e, half)));
  if (bend) *bend = *slope;
  *slope = s;
}

/* Small x: Lambert's continued fraction x / (1 + x^2 / (3 + x^2 / (5 + ...))) as one quotient;
   otherwise by exp(-2|x|), without cancellation. */
static void tanh_of(ir_kernel *k, ir_type t, ir_val x, ir_val *value, ir_val *slope, ir_val *bend) {
  int levels = t == IR_F64 ? 9 : 5;
  ir_val one = ir_real(k, t, 1), zero = ir_real(k, t, 0), x2 = ir_mul(k, x, x),
         size = ir_1(k, IR_ABS, x);
  ir_val above[2] = {zero, x},
         below[2] = {one, one}; /* the fractions with one level less, and the current ones */
  for (int i = 1; i < levels; i++) {
    ir_val odd = ir_real(k, t, 2 * i + 1), a = ir_fma(k, odd, above[1], ir_mul(k, x2, above[0])),
           c = ir_fma(k, odd, below[1], ir_mul(k, x2, below[0]));
    above[0] = above[1], above[1] = a, below[0] = below[1], below[1] = c;
  }
  ir_val e = ir_1(k, IR_EXP, ir_mul(k, ir_real(k, t, -2), size)),
         large = ir_2(k, IR_DIV, ir_sub(k, one, e), ir_add(k, one, e));
  large = ir_select(k, ir_2(k, IR_LT, x, zero), ir_1(k, IR_NEG, large), large);
  *value = ir_select(k, ir_2(k, IR_LT, size, ir_real(k, t, 0.5)),
                     ir_2(k, IR_DIV, above[1], below[1]), large);
  *slope = ir_mul(k, ir_sub(k, one, *value), ir_add(k, one, *value));
  if (bend) *bend = ir_mul(k, ir_mul(k, ir_real(k, t, -2), *value), *slope);
}

static void relu(ir_kernel *k, ir_type t, ir_val x, ir_val *value, ir_val *slope, ir_val *bend) {
  ir_val zero = ir_real(k, t, 0);
  *value = ir_select(k, ir_2(k, IR_LT, x, zero), zero, x);
  *slope = ir_select(k, ir_2(k, IR_LE, x, zero), zero, ir_real(k, t, 1));
  if (bend) *bend = zero;
}

static void abs_of(ir_kernel *k, ir_type t, ir_val x, ir_val *value, ir_val *slope, ir_val *bend) {
  ir_val zero = ir_real(k, t, 0),
         plus = ir_select(k, ir_2(k, IR_LT, zero, x), ir_real(k, t, 1), zero);
  *value = ir_1(k, IR_ABS, x);
  *slope = ir_select(k, ir_2(k, IR_LT, x, zero), ir_real(k, t, -1), plus);
  if (bend) *bend = zero;
}

static void identity(ir_kernel *k, ir_type t, ir_val x, ir_val *value, ir_val *slope,
                     ir_val *bend) {
  *value = x;
  *slope = ir_real(k, t, 1);
  if (bend) *bend = ir_real(k, t, 0);
}

void clb_activate(ir_kernel *k, ir_type t, int activation, ir_val x, ir_val *value, ir_val *slope,
                  ir_val *bend) {
  static void (*const functions[])(ir_kernel *, ir_type, ir_val, ir_val *, ir_val *, ir_val *) = {
      [CLB_SILU] = silu,       [CLB_TANH] = tanh_of, [CLB_ABS] = abs_of, [CLB_IDENTITY] = identity,
      [CLB_SIGMOID] = sigmoid, [CLB_RELU] = relu,    [CLB_SSP] = ssp};
  functions[activation](k, t, x, value, slope, bend);
}
