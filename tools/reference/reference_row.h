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

/* ---- the ops ----
   Of a description types and passes are ignored. Arrays are dense, in the order of the calls; a and
   c may be NULL, which is zeros. wanted[i], scale[i]: of results, which may be NULL. */

/* Lengths of rows; x < 1: the description cannot be read. */
reference_place reference_gate_measure(const clb_gate_desc *d);
reference_place reference_norm_activation_measure(const clb_norm_activation_desc *d);
reference_place reference_norm_measure(const clb_rms_norm_desc *d);
reference_place reference_linear_measure(const clb_linear_desc *d);

typedef void reference_run(const void *desc, clb_pass pass, int64_t rows, double *const *values,
                           double *const *wanted, double *const *scale);
reference_run reference_gate_run, reference_norm_activation_run,
    reference_norm_run; /* of a clb_rms_norm_desc */
/* Weights of all kinds: row i has row of[i] of `weights` in all. */
void reference_linear_run(const clb_linear_desc *d, clb_pass pass, int64_t rows, const int32_t *of,
                          int64_t weights, double *const *values, double *const *wanted,
                          double *const *scale);

#endif
