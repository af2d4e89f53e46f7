/* kernels/symmetric_contraction/host/symmetric_contraction.h - the host side of symmetric
 * contractions. */
#ifndef CLB_KERNELS_SYMMETRIC_CONTRACTION_HOST_SYMMETRIC_CONTRACTION_H
#define CLB_KERNELS_SYMMETRIC_CONTRACTION_HOST_SYMMETRIC_CONTRACTION_H

#include "kernels/host/operand_lists.h"

/* op->parts of a symmetric contraction. */
typedef struct {
  clb_op *sums;        /* by block of rows and species; its forward pass adds them up */
  clb_buffer *partial; /* [max_blocks][n_species][W], of arithmetic precision */
  clb_buffer *present; /* [max_blocks][n_species] int32: which rows of `partial` there are */
  int64_t max_blocks;
  unsigned by_rows; /* bit set: passes in which the op's own kernel has something to compute */
} clb_symmetric_parts;

clb_status clb_symmetric_contraction_make(clb_context *ctx, const clb_problem *p, unsigned passes,
                                          const clb_tuner *tuner, clb_op **op);
/* rows: the operands of a pass in the order of the calls. */
clb_status clb_symmetric_contraction_run(clb_op *op, clb_pass pass, int64_t n,
                                         const clb_rows *rows);
/* The same of one of its two kernels alone: that of gradients by weights, or the other. */
clb_status clb_symmetric_contraction_run_part(clb_op *op, clb_pass pass, int64_t n,
                                              const clb_rows *rows, bool weights);

extern const clb_test_run_kind clb_test_run_of_contraction; /* how the tuner calls it */

#endif
