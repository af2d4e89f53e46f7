/* kernels/linear/linear_few.h - what the host has to know of the kernel for few rows. */
#ifndef CLB_KERNELS_LINEAR_LINEAR_FEW_H
#define CLB_KERNELS_LINEAR_LINEAR_FEW_H

#include "kernels/kernel.h"

enum { CLB_LINEAR_MOST_FEW = 1 << 24 }; /* rows: it counts components of rows, and tiles, in i32 */

/* Groups for n rows of a pass. */
int64_t clb_linear_few_groups(const clb_problem *p, const clb_schedule *s, int64_t n);
/* How sums are divided: into blocks of half the rows, and shared by twice the sub-groups, where
   units of the device would be idle; shared by none where there are many. */
typedef enum {
  CLB_LINEAR_SMALL,
  CLB_LINEAR_MEDIUM,
  CLB_LINEAR_LARGE,
  CLB_LINEAR_SIZES
} clb_linear_size;
/* The one for n rows, to whose schedule it changes that of the op. */
clb_linear_size clb_linear_few_size(const clb_problem *p, const clb_limits *limits, int64_t n,
                                    clb_schedule *s);
/* Whether it can do the problem's gate: each term that comes out is one segment, and a tile has all
   components of a row. */
bool clb_linear_few_gates(const clb_problem *p, const clb_limits *limits);
/* Whether it accesses several elements of an operand (CLB_OPERAND_X, ...) at once. */
bool clb_linear_few_is_wide(const clb_problem *p, int of);

#endif
