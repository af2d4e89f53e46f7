/* kernels/convolution/frame_rotation.h - into the frame of the edge at hand and back, and the turn
   that a tangent of its vector makes (frame_rotation.c).

   What stands for the channels of a lane is worked on together, so that numbers of the frame are
   read once. */
#ifndef CLB_KERNELS_CONVOLUTION_FRAME_ROTATION_H
#define CLB_KERNELS_CONVOLUTION_FRAME_ROTATION_H

#include "kernels/convolution/builder.h"

typedef ir_val clb_channels[CLB_MAX_PER_LANE][MAX_M]; /* components of some; IR_NONE: 0 */

void clb_channels_clear(clb_channels v);
/* -v; IR_NONE: 0. */
ir_val clb_negative(const clb_convolution *c, ir_val v);

/* The generators J_x and J_z of a degree, [2l+1][2l+1] each, until the next call. */
const double (*clb_frame_generators(clb_convolution *c, int l))[MAX_M * MAX_M];

/* out_m = (d Z v)_m for |m| <= most, of n channels. */
void clb_into_frame(clb_convolution *c, int l, int n, clb_channels v, int most, clb_channels out);
/* sum += Z^T d^T v of components |m| <= most, where there are any. */
void clb_out_of_frame(clb_convolution *c, int l, int n, clb_channels v, int most, clb_channels sum);
/* sum_m += sign (J v)_m for |m| <= most, where J generates the tangent's turn; of v all components
   up to most + 1 are needed. */
void clb_add_rotation(clb_convolution *c, int l, int n, int sign, clb_channels v, int most,
                      clb_channels sum);

#endif
