/* tools/reference/reference_spherical_harmonics.h - spherical harmonics and two derivatives,
   computed slowly, with more than double precision. */
#ifndef CLB_TOOLS_REFERENCE_REFERENCE_SPHERICAL_HARMONICS_H
#define CLB_TOOLS_REFERENCE_REFERENCE_SPHERICAL_HARMONICS_H

#include <clebsch/clebsch.h>

enum { REFERENCE_MAX_DEGREE = 20 };

/* Of the description only degrees, normalization and normalize matter.  Arrays are dense rows as
   in clebsch.h.

   Each output comes with its scale, to which errors are compared. With |Y_l|, |J_l|, |H_l| the
   Euclidean norms of all values, first and second derivatives of one degree at x, which depend on
   |x| alone, and g_l the degree's part of g_y:
     y      |Y_l|
     g_x    sum_l |g_l| |J_l|
     d_x    sum_l |g_l| |H_l| |h|
     d_g_y  |J_l| |h|
   With `normalize` they are divided by |x| once per derivative, and |H_l| becomes |H_l| + 3 |J_l|
   to account for the rotation of x / |x|. These bound the sums of absolute values of the terms, and
   do not vanish where a harmonic happens to be zero. */
void reference_forward(const clb_spherical_harmonics_desc *desc, int64_t n, const double *x,
                       double *y, double *y_scale);
void reference_backward(const clb_spherical_harmonics_desc *desc, int64_t n, const double *x,
                        const double *g_y, double *g_x, double *g_x_scale);
void reference_double_backward(const clb_spherical_harmonics_desc *desc, int64_t n, const double *x,
                               const double *g_y, const double *h, double *d_x, double *d_g_y,
                               double *d_x_scale, double *d_g_y_scale);

#endif
