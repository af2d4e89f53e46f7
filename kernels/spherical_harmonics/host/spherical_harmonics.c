/* kernels/spherical_harmonics/host/spherical_harmonics.c - the operands of each pass of the
 * spherical harmonics. */
#include "src/base/signature.h"
#include "kernels/host/operand_lists.h"

int clb_spherical_harmonics_operands(const clb_problem *problem, clb_pass pass,
                                     const clb_rows *rows, clb_operand *operands) {
  const clb_spherical_harmonics_problem *p = &problem->spherical_harmonics;
  clb_signature_operand o[CLB_SIGNATURE_OPERANDS];
  const int n = clb_signature_operands(&clb_signature_spherical_harmonics, (int)pass, o);
  int64_t columns = 0;
  for (int i = 0; i < p->n_degrees; i++) columns += 2 * p->degrees[i] + 1;
  for (int i = 0; i < n; i++)
    operands[i] = (clb_operand){.name = o[i].name,
                                .rows = rows[i],
                                .columns = o[i].of == CLB_OPERAND_Y ? columns : 3,
                                .written = clb_role_is_written(o[i].role)};
  return n;
}
