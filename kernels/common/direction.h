/* kernels/common/direction.h - the direction of an edge, and the rotation R = Rx(-beta) Ry(-phi)
   that turns it to the polar axis y. A lane is an edge. */
#ifndef CLB_KERNELS_COMMON_DIRECTION_H
#define CLB_KERNELS_COMMON_DIRECTION_H

#include "src/ir/ir.h"

/* Of a vector v: its direction u, 1 / |v|, sin(beta), and cosine and sine of phi (phi = 0 at the
   poles); `there` is false where v is shorter than 1e-12 and has no direction: then all others but
   those of phi are 0. */
typedef struct {
  ir_val u[3], inverse, across, cosine, sine, there;
} clb_direction;
clb_direction clb_direction_of(ir_kernel *k, ir_type t, const ir_val *v);

/* Cosines and sines of 1 ... n times an angle, from those of the angle, [1]. */
void clb_angle_multiples(ir_kernel *k, int n, ir_val *cosine, ir_val *sine);

/* The gradient of v by its direction, of what gives the frame the torque T_x, T_z about its axes
   across the edge: (-T_z, 0, T_x) / |v|, rotated back. The torque about the edge does nothing. */
void clb_direction_gradient(ir_kernel *k, const clb_direction *d, const ir_val torque[2],
                            ir_val g[3]);

#endif
