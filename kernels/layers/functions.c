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
