/* kernels/norm/team.c - which lanes process a row, and the rows of a group. */
#include "kernels/norm/norm.h"

static ir_val start_of(clb_norm_kernel *b, const clb_row_array *a, ir_val row) {
  return ir_add(b->l.k, clb_layer_row(&b->l, a, row), b->place);
}

/* Which lane of which team this is; its unit: the group, or the sub-group in all groups. */
static ir_val begin_team(clb_norm_kernel *b) {
  ir_kernel *k = b->l.k;
  const clb_schedule *s = b->l.s;
  ir_val unit = ir_group(k), lane = ir_lane(k);
  b->member = b->rows > 1 ? ir_2(k, IR_MOD, lane, clb_i32(k, b->team)) : lane;
  if (k->subgroups > 1) {
    ir_val before = ir_mul(k, ir_subgroup(k), clb_i32(k, s->lanes));
    if (b->together) b->member = ir_add(k, before, lane);
    else unit = ir_add(k, ir_mul(k, unit, clb_i32(k, k->subgroups)), ir_subgroup(k));
  }
  b->place = ir_mul(k, ir_cast(k, IR_I64, b->member), clb_i64(k, b->width));
  return ir_cast(k, IR_I64, unit);
}

void clb_norm_begin_rows(clb_norm_kernel *b) {
  ir_kernel *k = b->l.k;
  ir_val unit = begin_team(b);
  b->partial_start = ir_add(k,
                            ir_mul(k, ir_cast(k, IR_I64, ir_group(k)),
                                   clb_i64(k, clb_norm_partial_columns(b->norm, &b->plan))),
                            b->place);
  b->row_mask = IR_NONE;
  if (b->local) b->row = ir_local(k, b->in[NORM_X].element, (int64_t)b->n_in * b->norm->irreps.dim);
  b->spread = IR_NONE;
  if (!b->kept && b->l.s->norm.weights_kept) {
    b->spread = ir_local(k, b->l.t, (b->c ? 2 : 1) * (int64_t)b->norm->irreps.dim);
    clb_norm_chunks(b, clb_norm_spread_weights);
  }
  if (b->weights_kept) clb_norm_chunks(b, clb_norm_keep_weights);
  clb_norm_partial_begin(b);
  clb_norm_exchange_begin(b);
  ir_val first = ir_mul(k, unit, b->apart),
         end = ir_2(k, IR_MIN, ir_add(k, first, b->span), b->l.n),
         row = ir_loop(k, first, end, b->step);
  if (b->rows > 1) {
    row = ir_add(k, row, ir_cast(k, IR_I64, ir_2(k, IR_DIV, ir_lane(k), clb_i32(k, b->team))));
    b->row_mask = ir_2(k, IR_LT, row, end);
  }
  for (int i = 0; i < b->n_in; i++) b->start[i] = start_of(b, &b->in[i], row);
  for (int i = 0; i < 2; i++) b->out_start[i] = start_of(b, &b->out[i], row);
  if (b->kept) clb_norm_chunks(b, clb_norm_keep_inputs);
  if (!b->local) return;
  ir_copy_commit(k);
  ir_copy_wait(k, 0);
}

void clb_norm_end_rows(clb_norm_kernel *b) {
  ir_end(b->l.k);
  b->row_mask = IR_NONE;
  clb_norm_partial_end(b);
}
