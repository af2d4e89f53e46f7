/* kernels/host/operand_lists.h - the operands of the public ops: one function per kind. */
#ifndef CLB_KERNELS_HOST_OPERAND_LISTS_H
#define CLB_KERNELS_HOST_OPERAND_LISTS_H

#include "src/runtime/context.h"

/* Lists the operands of a pass, in the order of the calls and of the kernels' arguments; returns
   how many, at most CLB_MAX_OPERANDS. */
typedef int clb_list_operands(const clb_problem *p, clb_pass pass, const clb_rows *rows,
                              clb_operand *operands);

#define INNER(NAME, name)
#define PLAIN(NAME, name)
#define PUBLIC(NAME, name) clb_list_operands clb_##name##_operands;
#include "src/problem/kinds.def"
extern clb_list_operands *const clb_operands_of[CLB_KERNEL_KINDS]; /* NULL: the kind is not
                                                                      public */

/* Runs an op of this kind on operands of n rows each. */
clb_status clb_public_op_run(clb_op *op, int32_t kind, clb_pass pass, int64_t n,
                             const clb_rows *rows);

#endif
