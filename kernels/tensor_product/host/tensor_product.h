/* kernels/tensor_product/host/tensor_product.h - the host side of the tensor product. */
#ifndef CLB_KERNELS_TENSOR_PRODUCT_HOST_TENSOR_PRODUCT_H
#define CLB_KERNELS_TENSOR_PRODUCT_HOST_TENSOR_PRODUCT_H

#include "kernels/host/operand_lists.h"

enum {
  CLB_TENSOR_PRODUCT_OPERANDS = sizeof(clb_triple_operands) / sizeof(clb_rows)
}; /* of the pass that has the most */

clb_status clb_tensor_product_run(clb_op *op, clb_pass pass, int64_t n, const clb_rows *rows);

#endif
