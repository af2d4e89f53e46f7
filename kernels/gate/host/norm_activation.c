/* kernels/gate/host/norm_activation.c - the operands of norm activations. */
#include "kernels/host/operand_lists.h"
#include "src/base/signature.h"

static int64_t channels(const clb_irreps *irreps) {
  int64_t n = 0;
  for (int i = 0; i < irreps->n; i++) n += irreps->term[i].mul;
  return n;
}

int clb_norm_activation_operands(const clb_problem *problem, clb_pass pass, const clb_rows *rows,
                                 clb_operand *operands) {
  const clb_norm_activation_problem *p = &problem->norm_activation;
  clb_signature_operand o[CLB_SIGNATURE_OPERANDS];
  const int n = clb_signature_operands(&clb_signature_norm_activation, (int)pass, o);
  const int64_t biases = p->bias ? channels(&p->irreps) : 0;
  for (int i = 0; i < n; i++)
    operands[i] = (clb_operand){.name = o[i].name,
                                .rows = rows[i],
                                .columns = o[i].of == CLB_OPERAND_W ? biases : p->irreps.dim,
                                .written = clb_role_is_written(o[i].role)};
  return n;
}
