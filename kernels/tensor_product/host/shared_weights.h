/* kernels/tensor_product/host/shared_weights.h - tensor products with one row of weights for all
 * rows. */
#ifndef CLB_KERNELS_TENSOR_PRODUCT_HOST_SHARED_WEIGHTS_H
#define CLB_KERNELS_TENSOR_PRODUCT_HOST_SHARED_WEIGHTS_H

#include "src/runtime/context.h"

/* Instead of clb_op_create, for a problem with shared weights. */
clb_status clb_shared_weights_create(clb_context *ctx, const clb_problem *problem, unsigned passes,
                                     const clb_tuner *tuner, clb_op **op);
/* Operands as for clb_op_run_rows; those of weights are one row. */
clb_status clb_shared_weights_run(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operands,
                                  int n_operands);

#endif
