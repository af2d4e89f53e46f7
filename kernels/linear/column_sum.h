/* kernels/linear/column_sum.h - what column sums and moves of columns share. */
#ifndef CLB_KERNELS_LINEAR_COLUMN_SUM_H
#define CLB_KERNELS_LINEAR_COLUMN_SUM_H

#include "kernels/common/rows.h"

void clb_column_schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s);
/* The sum of the rows first ... end - 1 (i64) of `array`, whose elements for lanes of the mask
   start at `base` and are `stride` apart, in a fixed order. */
ir_val clb_column_sum_rows(ir_kernel *k, ir_type t, ir_val array, ir_val base, ir_val stride,
                           ir_val first, ir_val end, ir_val mask);

#endif
