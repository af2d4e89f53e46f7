/* src/ops/spherical_harmonics.h - the host side of the spherical harmonics. */
#ifndef CLB_SRC_OPS_SPHERICAL_HARMONICS_H
#define CLB_SRC_OPS_SPHERICAL_HARMONICS_H

#include "src/runtime/context.h"

/* The operands of a pass, in the order of the calls and of the kernels' arguments; returns how many. */
int clb_spherical_harmonics_operands(const clb_spherical_harmonics_problem *p, clb_pass pass, const clb_rows *rows, clb_operand *operands);
clb_status clb_spherical_harmonics_run(clb_op *op, clb_pass pass, int64_t n, const clb_rows *rows);

#endif
