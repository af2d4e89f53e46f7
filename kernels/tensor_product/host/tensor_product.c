/* kernels/tensor_product/host/tensor_product.c - the operands of each pass of the tensor product,
 * and a call of it. */
#include "kernels/tensor_product/host/tensor_product.h"

#include "src/base/signature.h"
#include "kernels/tensor_product/host/shared_weights.h"
#include "kernels/tensor_product/host/split.h"

int clb_tensor_product_operands(const clb_problem *problem, clb_pass pass, const clb_rows *rows,
                                clb_operand *operands) {
  const clb_tensor_product_problem *p = &problem->tensor_product;
  const int64_t columns[] = {[CLB_OPERAND_X] = p->x.dim,
                             [CLB_OPERAND_Y] = p->y.dim,
                             [CLB_OPERAND_W] = p->n_weights,
                             [CLB_OPERAND_Z] = p->z.dim};
  clb_signature_operand o[CLB_SIGNATURE_OPERANDS];
  const int n = clb_signature_operands(&clb_signature_tensor_product, (int)pass, o);
  for (int i = 0; i < n; i++) {
    const unsigned of = (unsigned)o[i].of;
    const bool written = clb_role_is_written(o[i].role),
               absent = (o[i].role == CLB_ROLE_INCOMING && !(p->incoming & of)) ||
                        (o[i].role == CLB_ROLE_GRADIENT && !(p->gradients & of));
    /* For edges all inputs may be indexed. */
    operands[i] = (clb_operand){.name = o[i].name,
                                .rows = rows[i],
                                .columns = absent ? 0 : columns[of],
                                .of = o[i].of,
                                .written = written,
                                .indexed = (o[i].role == CLB_ROLE_INPUT || p->edges) && !written &&
                                           p->indexed & of};
    operands[i].wide = written && p->edges && (of == CLB_OPERAND_X || of == CLB_OPERAND_Z);
    if (of != CLB_OPERAND_W || !p->shared_weights) continue;
    operands[i].one_row = true;
    operands[i].rows.stride = o[i].role == CLB_ROLE_GRADIENT ? CLB_DENSE : CLB_SAME_ROW;
    operands[i].rows.index = NULL;
  }
  return n;
}

clb_status clb_tensor_product_run(clb_op *op, clb_pass pass, int64_t n, const clb_rows *rows) {
  clb_operand operands[CLB_TENSOR_PRODUCT_OPERANDS];
  if (!op) return clb_op_null(CLB_TENSOR_PRODUCT, pass);
  int count = clb_tensor_product_operands(&op->problem, pass, rows, operands);
  if (op->problem.kind != CLB_TENSOR_PRODUCT) /* which is refused */
    return clb_op_run_rows(op, CLB_TENSOR_PRODUCT, pass, n, operands, count);
  return (op->problem.tensor_product.shared_weights
              ? clb_shared_weights_run
              : clb_split_product_run)(op, pass, n, operands, count);
}
