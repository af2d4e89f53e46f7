/* kernels/common/activation.c - activations and their slopes. */
#include "kernels/common/activation.h"

/* silu = x s, s = 1 / (1 + exp(-x)); its slope is s (1 + x (1 - s)). */
static void silu(ir_kernel *k, ir_type t, ir_val x, ir_val *value, ir_val *slope) {
  ir_val one = ir_real(k, t, 1), d = ir_add(k, one, ir_1(k, IR_EXP, ir_1(k, IR_NEG, x))),
         s = ir_2(k, IR_DIV, one, d);
  *value = ir_2(k, IR_DIV, x, d);
  *slope = ir_mul(k, s, ir_fma(k, x, ir_sub(k, one, s), one));
}

/* Small x: Lambert's continued fraction x / (1 + x^2 / (3 + x^2 / (5 + ...))) as one quotient;
   otherwise by exp(-2|x|), without cancellation. */
static void tanh_of(ir_kernel *k, ir_type t, ir_val x, ir_val *value, ir_val *slope) {
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
}

static void abs_of(ir_kernel *k, ir_type t, ir_val x, ir_val *value, ir_val *slope) {
  ir_val zero = ir_real(k, t, 0),
         plus = ir_select(k, ir_2(k, IR_LT, zero, x), ir_real(k, t, 1), zero);
  *value = ir_1(k, IR_ABS, x);
  *slope = ir_select(k, ir_2(k, IR_LT, x, zero), ir_real(k, t, -1), plus);
}

static void identity(ir_kernel *k, ir_type t, ir_val x, ir_val *value, ir_val *slope) {
  *value = x;
  *slope = ir_real(k, t, 1);
}

void clb_activate(ir_kernel *k, ir_type t, int activation, ir_val x, ir_val *value, ir_val *slope) {
  static void (*const functions[])(ir_kernel *, ir_type, ir_val, ir_val *, ir_val *) = {
      silu, tanh_of, abs_of, identity}; /* by clb_activation */
  functions[activation](k, t, x, value, slope);
}
