/* kernels/convolution/host/table.h - the knots and the coefficients of a convolution's splines
   (kernels/convolution/spline.h). */
#ifndef CLB_KERNELS_CONVOLUTION_HOST_TABLE_H
#define CLB_KERNELS_CONVOLUTION_HOST_TABLE_H

#include "src/runtime/call.h"

typedef struct {
  int knots;                   /* 0: weights are given */
  double first, last, stretch; /* stretch: s of clb_spline */
  int split; /* the knot at which one spline ends and another begins; 0: there is one spline */
  clb_buffer *coefficients; /* NULL: not set */
} clb_convolution_table;

/* break_at: where second derivatives may jump; 0: nowhere.  s is then such that a knot lies there.
   Where fewer than 3 intervals would be on a side, there is no break. */
clb_convolution_table clb_convolution_table_of(int knots, double first, double last,
                                               double break_at);
/* Coefficients of a weight: 2 more than knots, for each spline. */
int clb_convolution_table_rows(const clb_convolution_table *t);

/* The length at knot i, which may lie between two. */
double clb_convolution_table_knot(const clb_convolution_table *t, double i);
/* Coefficients[rows][width] of splines through values[knots][width]. factor: knots numbers. */
void clb_convolution_table_solve(const clb_convolution_table *t, int64_t width,
                                 const double *values, double *coefficients, double *factor);
/* The splines w[width] of these coefficients and their derivatives by r, at the length at `knot`,
   which lies in the grid. */
void clb_convolution_table_at(const clb_convolution_table *t, int64_t width,
                              const double *coefficients, double knot, double *w, double *dw);
/* Has the convolution's splines pass through values[knots][W]. */
clb_status clb_convolution_table_set(clb_convolution_table *t, const clb_op *op,
                                     const double *values);
/* The arguments of clb_spline_parameters. */
void clb_call_spline(clb_call *c, const clb_op *op, const clb_convolution_table *t);

#endif
