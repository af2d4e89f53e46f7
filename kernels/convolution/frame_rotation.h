/* kernels/convolution/frame_rotation.h - rotations into the frame of the current edge and back, and
   the infinitesimal rotation that a tangent of its vector makes (frame_rotation.c).

   All channels of a lane are rotated together, so that numbers of the frame are read once. */
#ifndef CLB_KERNELS_CONVOLUTION_FRAME_ROTATION_H
#define CLB_KERNELS_CONVOLUTION_FRAME_ROTATION_H

#include "kernels/convolution/builder.h"

typedef ir_val clb_channels[CLB_MAX_PER_LANE][MAX_M]; /* components of each channel; IR_NONE: 0 */

void clb_channels_clear(clb_channels v);
/* -v; IR_NONE: 0. */
ir_val clb_negative(const clb_convolution *c, ir_val v);

/* The generators J_x and J_z of a degree, [2l+1][2l+1] each, until the next call. */
const double (*clb_frame_generators(clb_convolution *c, int l))[MAX_M * MAX_M];

/* out_m = (d Z v)_m for |m| <= most, of n channels. */
void clb_into_frame(clb_convolution *c, int l, int n, clb_channels v, int most, clb_channels out);
/* sum += Z^T d^T v of components |m| <= most, where there are any. */
void clb_out_of_frame(clb_convolution *c, int l, int n, clb_channels v, int most, clb_channels sum);
/* The same of m = 0 alone: out_0, and what a vector that has only v_0 there gives outside. */
void clb_axis_into_frame(clb_convolution *c, int l, int n, clb_channels v, ir_val *out);
void clb_axis_out_of_frame(clb_convolution *c, int l, int n, const ir_val *v, clb_channels sum);
/* Adds to T the torque about x and z of gradients g of n such vectors. */
void clb_axis_torque(clb_convolution *c, int l, int n, const ir_val *v, clb_channels g, ir_val *T);
/* sum_m += sign (J v)_m for |m| <= most, where J generates the tangent's rotation; v must have all
   components up to |m| = most + 1. */
void clb_add_rotation(clb_convolution *c, int l, int n, int sign, clb_channels v, int most,
                      clb_channels sum);

#endif
