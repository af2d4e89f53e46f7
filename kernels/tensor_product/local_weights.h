/* kernels/tensor_product/local_weights.h - weights that all rows share, in local memory, and the
   sums of gradients by them over the rows of each sub-group. Weights of a pair of channels of x and
   y lie side by side, padded so that several can be read together. */
#ifndef CLB_KERNELS_TENSOR_PRODUCT_LOCAL_WEIGHTS_H
#define CLB_KERNELS_TENSOR_PRODUCT_LOCAL_WEIGHTS_H

#include "kernels/tensor_product/channel_pair.h"

typedef struct {
  int64_t at[CLB_MAX_PATHS], n; /* where a path's are; all */
  ir_val weights[ORDERS], sums; /* local arrays; IR_NONE: not needed */
} clb_local_weights;

/* Bytes of a number of the problem's arithmetic. */
static inline int clb_arithmetic_bytes(const clb_problem *p) {
  return p->arithmetic == CLB_F64 ? 8 : 4;
}
/* Weights that can be read together. */
static inline int clb_local_weights_step(const clb_problem *p) {
  return 16 / clb_arithmetic_bytes(p);
}
int64_t clb_local_weights_bytes(const clb_problem *p, int pass, int subgroups);

/* Copies weights, and sets the sums to 0; called by whole groups. */
void clb_local_weights_start(clb_local_weights *l, clb_pair_builder *b);
/* i32: weight w of a pair of channels, u (i32) and v, of a path. */
ir_val clb_local_weight_at(clb_local_weights *l, clb_pair_builder *b, const clb_path *path,
                           ir_val u, int v, int w);
/* Writes the sums of the group's rows as row number `group` of output o; called by whole groups. */
void clb_local_weights_give(clb_local_weights *l, clb_pair_builder *b, int o);

#endif
