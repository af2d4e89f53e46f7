/* kernels/convolution/frame.h - the frame of an edge, in which only Y_l0 is not 0.

   R = Rx(-beta) Ry(-phi) rotates the edge's vector to the polar axis y.  Ry acts on each pair of
   components m, -m by cosine and sine of m phi.  Rx acts by d^l(beta), which has a block of m >= 0,
   (l+1)^2 numbers, and one of m < 0, l^2.  A row of `size` numbers holds, for an edge, cos(m phi)
   and sin(m phi) of m = 1 ... L, then the two blocks of l = 1 ... L, each from a multiple of 4
   numbers on, and then, for l = 1 ... L, what all 2 l + 1 components give to m = 0 in the frame
   (the harmonics, but for a factor), which is all that paths from l = 0 need of it.  At a pole phi
   is 0; where the vector is shorter than 1e-12 all d are 0, and so are all paths that read them.

   A tangent h of the vector v has a row of its own: its components in the frame, where
   h . v / |v| is that along y, and 1 / |v| (0 where the vector is that short).  Moving v along h
   rotates the frame by omega = v x h / |v|^2, in the frame (h_z, 0, -h_x) / |v|. */
#ifndef CLB_KERNELS_CONVOLUTION_FRAME_H
#define CLB_KERNELS_CONVOLUTION_FRAME_H

#include "src/problem/problem.h"

enum { CLB_MAX_FRAME_L = 8 };

static inline int clb_frame_cosine(int m) { return 2 * m - 2; }
static inline int clb_frame_sine(int m) { return 2 * m - 1; }
/* Where the block of m >= 0 (below: m < 0) of degree l starts, in a row of degrees up to L. */
static inline int clb_frame_block(int L, int l, bool below) {
  int at = (2 * L + 3) / 4 * 4;
  for (int i = 1; i < l; i++) at += ((i + 1) * (i + 1) + 3) / 4 * 4 + (i * i + 3) / 4 * 4;
  return below ? at + ((l + 1) * (l + 1) + 3) / 4 * 4 : at;
}
static inline int clb_frame_axis(int L, int l) {
  return clb_frame_block(L, L + 1, false) + l * l - 1;
}
static inline int clb_frame_size(int L) { return (clb_frame_axis(L, L + 1) + 3) / 4 * 4; }

enum { CLB_TANGENT_X, CLB_TANGENT_Y, CLB_TANGENT_Z, CLB_TANGENT_INVERSE, CLB_TANGENT_SIZE };
/* Numbers that a role stores for the gradient of an edge's vector: the torque about x and z
   in the frame and, where there is one, the gradient of |v|. */
static inline int clb_frame_sums(clb_pass pass, bool spline) {
  return spline || pass == CLB_DOUBLE_BACKWARD ? 3 : 2;
}

/* The highest degree of x and z on paths with l of y > 0, which need the frame; 0: there are none.
 */
int clb_frame_degree(const clb_tensor_product_problem *tp);
/* The value of Y_l0 along the edge, in this normalization. */
double clb_frame_harmonic(int32_t normalization, int l);

#endif
