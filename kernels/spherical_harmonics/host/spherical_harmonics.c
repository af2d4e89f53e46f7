/* kernels/spherical_harmonics/host/spherical_harmonics.c - the operands of each pass of the
 * spherical harmonics. */
#include "kernels/host/operand_lists.h"

int clb_spherical_harmonics_operands(const clb_problem *problem, clb_pass pass,
                                     const clb_rows *rows, clb_operand *operands) {
  const clb_spherical_harmonics_problem *p = &problem->spherical_harmonics;
  int64_t columns[CLB_OPERAND_Z + 1] = {[CLB_OPERAND_X] = 3};
  for (int i = 0; i < p->n_degrees; i++) columns[CLB_OPERAND_Y] += 2 * p->degrees[i] + 1;
  return clb_operands_fill(&clb_signature_spherical_harmonics, pass, rows, columns,
                           CLB_ALL_OPERANDS, CLB_ALL_OPERANDS, operands);
}
