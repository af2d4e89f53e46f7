/* kernels/tensor_product/modes.c - which channels a path's mode connects: loops over u, v, w, given
   a channel of one result. */
#include "kernels/tensor_product/modes.h"

#include "kernels/tensor_product/form.h"

static ir_val number(ir_kernel *k, int64_t n) { return ir_int(k, IR_I32, n); }

/* ---- lanes ---- */

static ir_val lane_in_span(ir_kernel *k, const clb_schedule *s) {
  int span = s->product.lanes_per_row;
  return span == s->lanes ? ir_lane(k) : ir_2(k, IR_MOD, ir_lane(k), number(k, span));
}

ir_val clb_row_of_lane(ir_kernel *k, const clb_schedule *s) {
  return ir_2(k, IR_DIV, ir_lane(k), number(k, s->product.lanes_per_row));
}

ir_val clb_first_of_span(ir_kernel *k, const clb_schedule *s, ir_val row_mask) {
  return clb_and(k, ir_2(k, IR_EQ, lane_in_span(k, s), number(k, 0)), row_mask);
}

ir_val clb_sum_of_span(ir_kernel *k, const clb_schedule *s, ir_val v) {
  if (s->product.lanes_per_row == s->lanes) return ir_reduce_add(k, v);
  for (int with = s->product.lanes_per_row / 2; with; with /= 2)
    v = ir_add(k, v, ir_shuffle_xor(k, v, with));
  return v;
}

clb_mode_block clb_mode_block_open(ir_kernel *k, const clb_schedule *s, int span, ir_val n,
                                   ir_val row_mask, ir_val *channel, ir_val *mask) {
  int64_t constant = ir_int_value(k, n, -1);
  clb_mode_block block = {constant < 0 || constant > span};
  ir_val first = block.opened ? ir_loop(k, number(k, 0), n, number(k, span)) : number(k, 0);
  *channel = span == 1 ? first : ir_add(k, first, lane_in_span(k, s));
  *mask = span == 1 || (constant >= 0 && constant % span == 0)
              ? row_mask
              : clb_and(k, ir_2(k, IR_LT, *channel, n), row_mask);
  return block;
}

void clb_mode_block_close(ir_kernel *k, clb_mode_block block) {
  if (block.opened) ir_end(k);
}

/* ---- modes ---- */

static bool half(int mode) { return mode == CLB_UVU_HALF || mode == CLB_UVW_HALF; }
static bool diagonal(int mode) { return mode == CLB_UUW || mode == CLB_UUU; }
static bool mixes(int mode) { return mode == CLB_UVW || mode == CLB_UUW || mode == CLB_UVW_HALF; }

bool clb_mode_mixes(int mode) { return mixes(mode); }
bool clb_mode_has_partner(int mode) { return !diagonal(mode); }

int64_t clb_path_weights(const clb_tensor_product_problem *tp, const clb_path *p) {
  int64_t u = tp->x.term[p->in1].mul, v = tp->y.term[p->in2].mul, w = tp->z.term[p->out].mul;
  int64_t pairs = diagonal(p->mode) ? u : half(p->mode) ? u * (u - 1) / 2 : u * v;
  return mixes(p->mode) ? pairs * w : pairs;
}

static ir_val times_plus(ir_kernel *k, ir_val a, ir_val b, ir_val c) {
  return ir_add(k, ir_mul(k, a, b), c);
}

/* The index of the first pair in row u, among pairs u < v. */
static ir_val first_of_row(const clb_connection *c, ir_val u) {
  ir_kernel *k = c->k;
  ir_val twice =
      ir_mul(k, u, ir_sub(k, ir_sub(k, ir_mul(k, c->n.mul_x, number(k, 2)), u), number(k, 1)));
  return ir_2(k, IR_DIV, twice, number(k, 2));
}

/* The index of the current pair, row by row. */
static ir_val pair(const clb_connection *c) {
  ir_kernel *k = c->k;
  if (diagonal(c->mode)) return c->u;
  if (!half(c->mode)) return times_plus(k, c->u, c->n.mul_y, c->v);
  return ir_add(k, first_of_row(c, c->u), ir_sub(k, ir_sub(k, c->v, c->u), number(k, 1)));
}

static ir_val loop(clb_connection *c, ir_val from, ir_val to) {
  c->opened++;
  return ir_loop(c->k, from, to, number(c->k, 1));
}

/* u and v of pair number q; of pairs u < v, u is the last row that starts at or before q. */
static void find_pair(clb_connection *c, ir_val q) {
  ir_kernel *k = c->k;
  if (diagonal(c->mode)) {
    c->u = c->v = q;
    return;
  }
  if (!half(c->mode)) {
    c->u = ir_2(k, IR_DIV, q, c->n.mul_y);
    c->v = ir_sub(k, q, ir_mul(k, c->u, c->n.mul_y));
    return;
  }
  ir_val zero = number(k, 0), one = number(k, 1), u = ir_var(k, zero, false),
         start = ir_var(k, zero, false);
  ir_val row = ir_loop(k, one, ir_sub(k, c->n.mul_x, one), one);
  ir_val next = first_of_row(c, row), reached = ir_2(k, IR_LE, next, q);
  ir_set(k, u, ir_select(k, reached, row, ir_get(k, u)));
  ir_set(k, start, ir_select(k, reached, next, ir_get(k, start)));
  ir_end(k);
  c->u = ir_get(k, u);
  c->v = ir_add(k, ir_add(k, ir_sub(k, q, ir_get(k, start)), c->u), one);
}

static void narrow(clb_connection *c, ir_val mask) {
  c->pair_mask = clb_and(c->k, c->pair_mask, mask);
}

/* Loops over the partner's channels, with lanes over them or one after the other. */
static ir_val partner(clb_connection *c, const clb_schedule *s, ir_val n, bool across) {
  ir_kernel *k = c->k;
  int span = s->product.lanes_per_row;
  int64_t constant = ir_int_value(k, n, -1);
  ir_val zero = number(k, 0), lane, other;
  if (!across) return loop(c, zero, n);
  lane = lane_in_span(k, s);
  if (constant >= 0 && constant <= span) other = lane;
  else {
    c->opened++;
    other = ir_add(k, ir_loop(k, zero, n, number(k, span)), lane);
  }
  if (constant < 0 || constant % span) narrow(c, ir_2(k, IR_LT, other, n));
  return other;
}

static void open_z(clb_connection *c, ir_val channel) {
  ir_val zero = number(c->k, 0);
  if (mixes(c->mode)) c->w = channel;
  if (c->mode == CLB_UVUV || c->mode == CLB_UVU_HALF) {
    find_pair(c, channel);
    return;
  }
  c->u = c->mode == CLB_UVU || c->mode == CLB_UUU ? channel : loop(c, zero, c->n.mul_x);
  if (diagonal(c->mode)) c->v = c->u;
  else if (c->mode == CLB_UVV) c->v = channel;
  else c->v = loop(c, half(c->mode) ? ir_add(c->k, c->u, number(c->k, 1)) : zero, c->n.mul_y);
}

static void open_weight(clb_connection *c, ir_val channel) {
  ir_val q = channel;
  if (mixes(c->mode)) {
    q = ir_2(c->k, IR_DIV, channel, c->n.mul_z);
    c->w = ir_sub(c->k, channel, ir_mul(c->k, q, c->n.mul_z));
  }
  find_pair(c, q);
}

void clb_connection_open_pair(clb_connection *c, ir_kernel *k, int mode, clb_extents n, ir_val q,
                              ir_val w, ir_val mask, ir_val row_mask) {
  *c = (clb_connection){
      .k = k, .mode = mode, .n = n, .w = w, .pair_mask = mask, .row_mask = row_mask};
  find_pair(c, q);
}

void clb_connection_open(clb_connection *c, ir_kernel *k, const clb_schedule *s, int mode,
                         clb_extents n, int slot, ir_val channel, ir_val mask, ir_val row_mask,
                         bool across) {
  *c = (clb_connection){.k = k,
                        .mode = mode,
                        .n = n,
                        .u = IR_NONE,
                        .v = IR_NONE,
                        .w = IR_NONE,
                        .pair_mask = mask,
                        .row_mask = row_mask};
  if (slot == Z) open_z(c, channel);
  else if (slot == W) open_weight(c, channel);
  else if (diagonal(mode)) c->u = c->v = channel;
  else if (slot == X) {
    c->u = channel;
    c->v = partner(c, s, n.mul_y, across);
  } else {
    c->v = channel;
    c->u = partner(c, s, n.mul_x, across);
  }
  if ((slot == X || slot == Y) && half(mode)) narrow(c, ir_2(k, IR_LT, c->u, c->v));
}

void clb_connection_close(clb_connection *c) {
  while (c->opened) ir_end(c->k), c->opened--;
}

void clb_connection_open_w(clb_connection *c, int step) {
  c->w = ir_loop(c->k, number(c->k, 0), c->n.mul_z, number(c->k, step));
}
void clb_connection_close_w(clb_connection *c) { ir_end(c->k); }

ir_val clb_connection_z(const clb_connection *c) {
  if (mixes(c->mode)) return c->w;
  if (c->mode == CLB_UVU || c->mode == CLB_UUU) return c->u;
  return c->mode == CLB_UVV ? c->v : pair(c);
}

ir_val clb_connection_weight(const clb_connection *c) {
  return mixes(c->mode) ? times_plus(c->k, pair(c), c->n.mul_z, c->w) : pair(c);
}

ir_val clb_connection_mask(const clb_connection *c, ir_val index) {
  return ir_is_uniform(c->k, index) ? c->row_mask : c->pair_mask;
}
