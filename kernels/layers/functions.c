/* kernels/layers/functions.c - functions of a real number that several kernels of layers use. */
#include "kernels/layers/functions.h"

/* In a form without cancellation near u = 1:
     (1 - u)^3 sum_{i<p} (i+1)(i+2)/2 u^i,  slope - p(p+1)(p+2)/2 u^(p-1) (1 - u)^2. */
void clb_polynomial_cutoff(ir_kernel *k, ir_type t, int p, ir_val u, ir_val left, double unit,
                           ir_val *value, ir_val *slope) {
  ir_val zero = ir_real(k, t, 0), square = ir_mul(k, left, left);
  ir_val sum = ir_real(k, t, (p + 1.0) * p / 2), power = ir_real(k, t, 1);
  for (int i = p - 2; i >= 0; i--) sum = ir_fma(k, sum, u, ir_real(k, t, (i + 1.0) * (i + 2) / 2));
  for (int i = 1; i < p; i++) power = ir_mul(k, power, u);
  *value = ir_mul(k, ir_mul(k, square, left), sum);
  *slope = ir_mul(k, ir_mul(k, ir_real(k, t, -p * (p + 1.0) * (p + 2) / 2 / unit), power), square);
  ir_val beyond = ir_2(k, IR_EQ, left, zero); /* whatever the powers of u are there */
  *value = ir_select(k, beyond, zero, *value);
  *slope = ir_select(k, beyond, zero, *slope);
}

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
