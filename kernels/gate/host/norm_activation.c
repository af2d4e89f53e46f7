/* kernels/gate/host/norm_activation.c - the operands of norm activations. */
#include "kernels/host/operand_lists.h"

static int64_t channels(const clb_irreps *irreps) {
  int64_t n = 0;
  for (int i = 0; i < irreps->n; i++) n += irreps->term[i].mul;
  return n;
}

int clb_norm_activation_operands(const clb_problem *problem, clb_pass pass, const clb_rows *rows,
                                 clb_operand *operands) {
  const clb_norm_activation_problem *p = &problem->norm_activation;
  const int64_t columns[] = {[CLB_OPERAND_X] = p->irreps.dim,
                             [CLB_OPERAND_W] = p->bias ? channels(&p->irreps) : 0,
                             [CLB_OPERAND_Z] = p->irreps.dim};
  return clb_operands_fill(&clb_signature_norm_activation, pass, rows, columns, CLB_ALL_OPERANDS,
                           CLB_ALL_OPERANDS, operands);
}
