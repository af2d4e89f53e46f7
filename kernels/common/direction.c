/* kernels/common/direction.c - the direction of an edge, and the rotation that turns it to the
   polar axis. */
#include "kernels/common/direction.h"

clb_direction clb_direction_of(ir_kernel *k, ir_type t, const ir_val *v) {
  clb_direction d;
  ir_val least = ir_real(k, t, 1e-12), zero = ir_real(k, t, 0), one = ir_real(k, t, 1),
         largest = ir_1(k, IR_ABS, v[0]), w[3];
  for (int i = 1; i < 3; i++) largest = ir_2(k, IR_MAX, largest, ir_1(k, IR_ABS, v[i]));
  ir_val shrink =
      ir_2(k, IR_DIV, one, ir_2(k, IR_MAX, largest, least)); /* so that nothing overflows */
  for (int i = 0; i < 3; i++) w[i] = ir_mul(k, v[i], shrink);
  ir_val h2 = ir_fma(k, w[0], w[0], ir_mul(k, w[2], w[2])), h = ir_1(k, IR_SQRT, h2),
         r = ir_1(k, IR_SQRT, ir_fma(k, w[1], w[1], h2));
  d.there = ir_2(k, IR_LE, ir_mul(k, least, shrink), r);
  ir_val inverse = ir_2(k, IR_DIV, one, ir_select(k, d.there, r, one)),
         level = ir_2(k, IR_LT, zero, h), by_h = ir_2(k, IR_DIV, one, ir_select(k, level, h, one));
  for (int i = 0; i < 3; i++) d.u[i] = ir_select(k, d.there, ir_mul(k, w[i], inverse), zero);
  d.across = ir_select(k, d.there, ir_mul(k, h, inverse), zero);
  d.inverse = ir_select(k, d.there, ir_mul(k, shrink, inverse), zero);
  d.cosine = ir_select(k, level, ir_mul(k, w[2], by_h), one);
  d.sine = ir_select(k, level, ir_mul(k, w[0], by_h), zero);
  return d;
}

void clb_angle_multiples(ir_kernel *k, int n, ir_val *cosine, ir_val *sine) {
  for (int m = 2; m <= n; m++) {
    cosine[m] =
        ir_fma(k, cosine[m - 1], cosine[1], ir_1(k, IR_NEG, ir_mul(k, sine[m - 1], sine[1])));
    sine[m] = ir_fma(k, sine[m - 1], cosine[1], ir_mul(k, cosine[m - 1], sine[1]));
  }
}

/* Rotated back by Ry(phi) Rx(beta). */
void clb_direction_gradient(ir_kernel *k, const clb_direction *d, const ir_val torque[2],
                            ir_val g[3]) {
  ir_val x = ir_mul(k, ir_1(k, IR_NEG, torque[1]), d->inverse),
         z = ir_mul(k, torque[0], d->inverse), tilted = ir_mul(k, d->u[1], z);
  g[0] = ir_fma(k, d->cosine, x, ir_mul(k, d->sine, tilted));
  g[1] = ir_1(k, IR_NEG, ir_mul(k, d->across, z));
  g[2] = ir_fma(k, d->cosine, tilted, ir_1(k, IR_NEG, ir_mul(k, d->sine, x)));
}
