/* kernels/common/lane_sums.c - sums of a lane's values, and over lanes of many at once. */
#include "kernels/common/lane_sums.h"

static ir_val plus(ir_kernel *k, ir_val a, ir_val b) {
  return a == IR_NONE ? b : b == IR_NONE ? a : ir_add(k, a, b);
}

ir_val clb_sum_pairwise(ir_kernel *k, const ir_val *v, int n) {
  return n == 1
             ? *v
             : ir_add(k, clb_sum_pairwise(k, v, n / 2), clb_sum_pairwise(k, v + n / 2, n - n / 2));
}

ir_val clb_sum_over_lanes(ir_kernel *k, ir_type t, int lanes, const ir_val *v, int n, int *share) {
  ir_val sum[CLB_MAX_SUMMED_LANES], zero = ir_real(k, t, 0);
  int width = 1, step = lanes / 2;
  while (width < n) width *= 2;
  *share = lanes / width;
  for (int i = 0; i < width; i++) sum[i] = i < n ? v[i] : IR_NONE;
  for (int half = width / 2; half;
       half /= 2, step /= 2) { /* lanes in which the bit `step` is set keep the upper half */
    ir_val upper = ir_2(
        k, IR_EQ,
        ir_2(k, IR_MOD, ir_2(k, IR_DIV, ir_lane(k), ir_int(k, IR_I32, step)), ir_int(k, IR_I32, 2)),
        ir_int(k, IR_I32, 1));
    for (int i = 0; i < half; i++) {
      ir_val low = sum[i], high = sum[i + half];
      if (low == IR_NONE && high == IR_NONE) continue;
      low = low == IR_NONE ? zero : low;
      high = high == IR_NONE ? zero : high;
      sum[i] = plus(k, ir_select(k, upper, high, low),
                    ir_shuffle_xor(k, ir_select(k, upper, low, high), step));
    }
  }
  ir_val total = sum[0] == IR_NONE ? zero : sum[0];
  for (; step; step /= 2) total = ir_add(k, total, ir_shuffle_xor(k, total, step));
  return total;
}
