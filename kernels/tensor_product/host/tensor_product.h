/* kernels/tensor_product/host/tensor_product.h - the host side of the tensor product. */
#ifndef CLB_KERNELS_TENSOR_PRODUCT_HOST_TENSOR_PRODUCT_H
#define CLB_KERNELS_TENSOR_PRODUCT_HOST_TENSOR_PRODUCT_H

#include "kernels/host/operand_lists.h"

enum {
  CLB_TENSOR_PRODUCT_OPERANDS = sizeof(clb_triple_operands) / sizeof(clb_rows)
}; /* of the pass that has the most */

/* Creates the op of a problem, in the way that suits its weights. */
clb_status clb_tensor_product_make(clb_context *ctx, const clb_problem *problem, unsigned passes,
                                   const clb_tuner *tuner, clb_op **op);
/* Runs one on operands as clb_tensor_product_operands fills them, or on some rows of these. */
clb_status clb_tensor_product_run_on(clb_op *op, clb_pass pass, int64_t n,
                                     const clb_operand *operands, int count);
clb_status clb_tensor_product_run(clb_op *op, clb_pass pass, int64_t n, const clb_rows *rows);

#endif
