/* kernels/host/operand_lists.c - the operands of the public ops by kind, and a call of one on rows.
 */
#include "kernels/host/operand_lists.h"

clb_list_operands *const clb_operands_of[CLB_KERNEL_KINDS] = {
#define INNER(NAME, name)
#define PLAIN(NAME, name)
#define PUBLIC(NAME, name) [CLB_##NAME] = clb_##name##_operands,
#include "src/problem/kinds.def"
};

clb_status clb_public_op_run(clb_op *op, int32_t kind, clb_pass pass, int64_t n,
                             const clb_rows *rows) {
  clb_operand operands[CLB_MAX_OPERANDS];
  if (!op) return clb_op_null(kind, pass);
  int count =
      op->problem.kind == kind ? clb_operands_of[kind](&op->problem, pass, rows, operands) : 0;
  return clb_op_run_rows(op, kind, pass, n, operands, count);
}
