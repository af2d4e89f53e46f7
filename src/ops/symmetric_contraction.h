/* src/ops/symmetric_contraction.h - the host side of symmetric contractions. */
#ifndef CLB_SRC_OPS_SYMMETRIC_CONTRACTION_H
#define CLB_SRC_OPS_SYMMETRIC_CONTRACTION_H

#include "src/ops/public_op.h"

clb_status clb_symmetric_contraction_make(clb_context *ctx, const clb_problem *p, unsigned passes,
                                          clb_op **op);
/* rows: the operands of a pass in the order of the calls. */
clb_status clb_symmetric_contraction_run(clb_op *op, clb_pass pass, int64_t n,
                                         const clb_rows *rows);

#endif
