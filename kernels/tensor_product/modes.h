/* kernels/tensor_product/modes.h - loops over the channels u, v, w that a path's mode connects,
   given a channel of one result. */
#ifndef CLB_KERNELS_TENSOR_PRODUCT_MODES_H
#define CLB_KERNELS_TENSOR_PRODUCT_MODES_H

#include "kernels/kernel.h"

/* Extents of a path's channels; IR values, constant or read from a table (i32). */
typedef struct {
  ir_val mul_x, mul_y, mul_z;
} clb_extents;

/* The current channels (i32) of a path; u of x, v of y, w of z if the mode mixes. */
typedef struct {
  ir_kernel *k;
  int mode;
  clb_extents n;
  ir_val u, v, w;
  ir_val pair_mask, row_mask; /* lanes whose channels exist; lanes that have a row */
  int opened;
} clb_connection;

/* A loop over blocks of channels. */
typedef struct {
  bool opened;
} clb_mode_block;

/* `span` lanes at a time over n channels: gives the lane's channel (i32), and whether it has a
   channel and a row. span 1: the same channel in all lanes. */
clb_mode_block clb_mode_block_open(ir_kernel *k, const clb_schedule *s, int span, ir_val n,
                                   ir_val row_mask, ir_val *channel, ir_val *mask);
void clb_mode_block_close(ir_kernel *k, clb_mode_block block);

/* i32: index of the row among those of the sub-group */
ir_val clb_row_of_lane(ir_kernel *k, const clb_schedule *s);
ir_val clb_first_of_span(ir_kernel *k, const clb_schedule *s, ir_val row_mask);
ir_val clb_sum_of_span(ir_kernel *k, const clb_schedule *s, ir_val v);

bool clb_mode_mixes(int mode);       /* z has an index of its own: uvw, u<vw, uuw */
bool clb_mode_has_partner(int mode); /* u and v differ */
int64_t clb_path_weights(const clb_tensor_product_problem *tp, const clb_path *p);

/* Opens the loops in whose body each lane has one term of the path's contribution to `channel` of a
   result; slot: X, Y, W, Z of form.h. across: `channel` is the same in all lanes, which cover the
   partner's channels. */
void clb_connection_open(clb_connection *c, ir_kernel *k, const clb_schedule *s, int mode,
                         clb_extents n, int slot, ir_val channel, ir_val mask, ir_val row_mask,
                         bool across);
/* Selects weight w of pair number q, which is the same in all lanes, of a path that mixes. */
void clb_connection_open_pair(clb_connection *c, ir_kernel *k, int mode, clb_extents n, ir_val q,
                              ir_val w, ir_val mask, ir_val row_mask);
void clb_connection_close(clb_connection *c);
/* The inner loop over w, for gradients of x and y, `step` at a time. */
void clb_connection_open_w(clb_connection *c, int step);
void clb_connection_close_w(clb_connection *c);

ir_val clb_connection_z(const clb_connection *c);      /* the channel of z */
ir_val clb_connection_weight(const clb_connection *c); /* the number of the weight in its path */
/* The mask for reading at this index. */
ir_val clb_connection_mask(const clb_connection *c, ir_val index);

#endif
