/* kernels/linear/linear_few.h - what the host has to know of the kernel for few rows. */
#ifndef CLB_KERNELS_LINEAR_LINEAR_FEW_H
#define CLB_KERNELS_LINEAR_LINEAR_FEW_H

#include "kernels/kernel.h"

enum { CLB_LINEAR_MOST_FEW = 1 << 24 }; /* rows: it counts components of rows, and tiles, in i32 */

/* Groups for n rows of a pass. */
int64_t clb_linear_few_groups(const clb_problem *p, const clb_schedule *s, int64_t n);
/* Changes a schedule to that for so few rows that its groups would leave units of the device idle:
   smaller blocks, and more sub-groups that share sums. */
void clb_linear_few_smaller(const clb_problem *p, const clb_limits *limits, clb_schedule *s);
/* Whether it accesses several elements of an operand (CLB_OPERAND_X, ...) at once. */
bool clb_linear_few_is_wide(const clb_problem *p, int of);

#endif
