/* kernels/linear/host/linear.h - the host side of linear maps of irreps. */
#ifndef CLB_KERNELS_LINEAR_HOST_LINEAR_H
#define CLB_KERNELS_LINEAR_HOST_LINEAR_H

#include "kernels/host/operand_lists.h"

/* Fills the (zeroed) problem but for types and pass. */
clb_status clb_linear_read(const clb_linear_desc *desc, clb_linear_problem *p,
                           clb_error_sink *error);
clb_status clb_linear_make(clb_context *ctx, const clb_problem *p, unsigned passes, clb_op **op);
/* The same with products of a BLAS in place of kernels, for many rows, if there is one and it can
   do these passes: of one row of weights that are used as they are, with tangents of x alone. Such
   an op has no source. */
clb_status clb_linear_make_by_library(clb_context *ctx, const clb_problem *p, unsigned passes,
                                      clb_op **op);
/* rows: the operands of a pass in the order of the calls. */
clb_status clb_linear_run(clb_op *op, clb_pass pass, int64_t n, const clb_rows *rows);
/* Whether n rows are so few that one launch does a pass. */
bool clb_linear_has_few(const clb_op *op, clb_pass pass, int64_t n);

#endif
