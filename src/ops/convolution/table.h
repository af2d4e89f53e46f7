/* src/ops/convolution/table.h - the knots and the coefficients of a convolution's splines
   (kernels/convolution/spline.h). */
#ifndef CLB_SRC_OPS_CONVOLUTION_TABLE_H
#define CLB_SRC_OPS_CONVOLUTION_TABLE_H

#include "src/runtime/context.h"

typedef struct {
  int knots; /* 0: weights are given */
  double first, last;
  clb_buffer *coefficients; /* NULL: not set */
} clb_convolution_table;

/* The length at knot i, which may lie between two. */
double clb_convolution_table_knot(const clb_convolution_table *t, double i);
/* Coefficients[knots + 2][width] of splines through values[knots][width]. factor: knots numbers. */
void clb_convolution_table_solve(int knots, int64_t width, const double *values,
                                 double *coefficients, double *factor);
/* The splines w[width] of these coefficients and their derivatives by r, at the length at `knot`,
   which lies in the grid. */
void clb_convolution_table_at(const clb_convolution_table *t, int64_t width,
                              const double *coefficients, double knot, double *w, double *dw);
/* Has the convolution's splines pass through values[knots][W]. */
clb_status clb_convolution_table_set(clb_convolution_table *t, const clb_op *op,
                                     const double *values);
enum { CLB_TABLE_ARGUMENTS = 6 };
/* Those of clb_spline_parameters. */
void clb_convolution_table_arguments(const clb_convolution_table *t, const clb_op *op,
                                     clb_arg args[CLB_TABLE_ARGUMENTS]);

#endif
