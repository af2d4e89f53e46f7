/* src/problem/rotation.h - how real spherical harmonics turn with the frame: Y(R v) = D(R) Y(v), in
   the basis of wigner.h. */
#ifndef CLB_SRC_PROBLEM_ROTATION_H
#define CLB_SRC_PROBLEM_ROTATION_H

#include <stdbool.h>

enum { CLB_MAX_ROTATED_L = 12 };

/* The generator J[2l+1][2l+1] of rotations about axis 0 (x), 1 (y) or 2 (z): D(R) = exp(t J) for
   the angle t.  0 < l <= CLB_MAX_ROTATED_L. */
void clb_rotation_generator(int l, int axis, double *J);

/* D of the rotation about x by -t: sum over m = 0 ... l of cosine[m] cos(m t) + sine[m] sin(m t),
   each [2l+1][2l+1].  Zeros are exact.  false: no memory. */
bool clb_rotation_series(int l, double *cosine, double *sine);

#endif
