/* kernels/common/lane_sums.h - sums in a fixed order: of a lane's values, and over lanes of many
   values at once (lane_sums.c). */
#ifndef CLB_KERNELS_COMMON_LANE_SUMS_H
#define CLB_KERNELS_COMMON_LANE_SUMS_H

#include "src/ir/ir.h"

enum { CLB_MAX_SUMMED_LANES = 1024 };

/* The sum of n values, n > 0: that of one half and that of the other. */
ir_val clb_sum_pairwise(ir_kernel *k, const ir_val *v, int n);

/* Sums v[0 ... n-1] (IR_NONE: 0) over the lanes, n <= lanes <= CLB_MAX_SUMMED_LANES: the sum of
   element t is returned in the lanes whose number / *share is t. Each step halves the number of
   values per lane, not only the number of lanes. */
ir_val clb_sum_over_lanes(ir_kernel *k, ir_type t, int lanes, const ir_val *v, int n, int *share);

#endif
