/* kernels/tensor_product/host/tensor_product.c - the operands of each pass of the tensor product,
 * and how it is made and called. */
#include "kernels/tensor_product/host/tensor_product.h"

#include "kernels/tensor_product/host/shared_weights.h"
#include "kernels/tensor_product/host/split.h"

int clb_tensor_product_operands(const clb_problem *problem, clb_pass pass, const clb_rows *rows,
                                clb_operand *operands) {
  const clb_tensor_product_problem *p = &problem->tensor_product;
  const int64_t columns[] = {[CLB_OPERAND_X] = p->x.dim,
                             [CLB_OPERAND_Y] = p->y.dim,
                             [CLB_OPERAND_W] = p->n_weights,
                             [CLB_OPERAND_Z] = p->z.dim};
  const int n = clb_operands_fill(&clb_signature_tensor_product, pass, rows, columns, p->incoming,
                                  p->gradients, operands);
  for (int i = 0; i < n; i++) {
    clb_operand *o = &operands[i];
    /* For edges all inputs may be indexed. */
    o->indexed =
        (o->role == CLB_ROLE_INPUT || p->edges) && !o->written && p->indexed & (unsigned)o->of;
    o->wide = o->written && p->edges && (o->of == CLB_OPERAND_X || o->of == CLB_OPERAND_Z);
    if (o->of == CLB_OPERAND_W && p->shared_weights) clb_operand_share(o);
  }
  return n;
}

clb_status clb_tensor_product_make(clb_context *ctx, const clb_problem *problem, unsigned passes,
                                   const clb_tuner *tuner, clb_op **op) {
  return (problem->tensor_product.shared_weights
              ? clb_shared_weights_create
              : clb_split_product_create)(ctx, problem, passes, tuner, op);
}

clb_status clb_tensor_product_run_on(clb_op *op, clb_pass pass, int64_t n,
                                     const clb_operand *operands, int count) {
  return (op->problem.tensor_product.shared_weights
              ? clb_shared_weights_run
              : clb_split_product_run)(op, pass, n, operands, count);
}

clb_status clb_tensor_product_run(clb_op *op, clb_pass pass, int64_t n, const clb_rows *rows) {
  clb_operand operands[CLB_TENSOR_PRODUCT_OPERANDS];
  if (!op) return clb_op_null(CLB_TENSOR_PRODUCT, pass);
  int count = clb_tensor_product_operands(&op->problem, pass, rows, operands);
  if (op->problem.kind != CLB_TENSOR_PRODUCT) /* which is refused */
    return clb_op_run_rows(op, CLB_TENSOR_PRODUCT, pass, n, operands, count);
  return clb_tensor_product_run_on(op, pass, n, operands, count);
}
