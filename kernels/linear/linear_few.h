/* kernels/linear/linear_few.h - linear maps of irreps of few rows. */
#ifndef CLB_KERNELS_LINEAR_LINEAR_FEW_H
#define CLB_KERNELS_LINEAR_LINEAR_FEW_H

#include "kernels/kernel.h"

/* Groups that a pass of n rows takes. */
int64_t clb_linear_few_groups(const clb_problem *p, int lanes, int64_t n);

#endif
