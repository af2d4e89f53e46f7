/* tools/reference/reference_row.h - one row of the operands of a pass of an op that makes z of x,
   or of x and w; and its two derivatives, in the order of the calls: forward           x w, z
     backward          x w g, g_x g_w
     double backward   x w g a c, d_x d_w d_g */
#ifndef CLB_TOOLS_REFERENCE_REFERENCE_ROW_H
#define CLB_TOOLS_REFERENCE_REFERENCE_ROW_H

#include <clebsch/clebsch.h>

/* A result, and what rounding errors of its elements are relative to; NULL: not wanted. */
typedef struct {
  double *v, *scale;
} reference_result;

typedef struct {
  const double *x, *w, *g, *a, *c;   /* NULL: the pass has none, or it is left out */
  reference_result of_x, of_w, of_z; /* forward, of_z is z */
} reference_row;

/* Of x, w and z: numbers of a row, and which row of those. */
typedef struct {
  int64_t x, w, z;
} reference_place;
reference_row reference_row_at(clb_pass pass, int has_w, reference_place width, reference_place row,
                               double *const *values, double *const *wanted, double *const *scale);

/* All results are 0; rows: how many rows of x, w and z there are. */
void reference_zero(clb_pass pass, int has_w, reference_place width, reference_place rows,
                    double *const *wanted, double *const *scale);

void reference_put(reference_result r, int64_t i, double value, double size);
void reference_add(reference_result r, int64_t i, double value, double size);

#endif
