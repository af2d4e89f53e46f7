/* kernels/tensor_product/host/split.h - channel-wise products with too many paths for one kernel on
 * a GPU: a kernel for the paths of some terms of x, after the other. */
#ifndef CLB_KERNELS_TENSOR_PRODUCT_HOST_SPLIT_H
#define CLB_KERNELS_TENSOR_PRODUCT_HOST_SPLIT_H

#include "src/runtime/context.h"

/* Instead of clb_op_create, for a problem whose weights are not shared: splits the passes that
   would otherwise be driven by tables. */
clb_status clb_split_product_create(clb_context *ctx, const clb_problem *problem, unsigned passes,
                                    const clb_tuner *tuner, clb_op **op);
/* Instead of clb_op_run_rows, for an op created so. */
clb_status clb_split_product_run(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operands,
                                 int n_operands);

#endif
