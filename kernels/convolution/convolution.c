/* kernels/convolution/convolution.c - the graph convolution owned by its receiver: a group walks the edges of a row (kernels/graph/walk.h), results of z in registers.

   A pass gives either results of z (receiver_results.c) or those of edges (edge_results.c), never both: the host asks twice. */
#include "kernels/convolution/builder.h"

#include <stdio.h>
#include <stdlib.h>

static ir_kernel *of(clb_convolution *c) { return c->f.k; }
static ir_val i32(clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I32, n); }
static ir_val i64(clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I64, n); }
static ir_val less(clb_convolution *c, ir_val a, ir_val b) { return ir_2(c->f.k, IR_LT, a, b); }

/* ---- parts ---- */

/* Turns to block number j of the unit's. */
void clb_turn_to(clb_convolution *c, int j) {
  ir_kernel *k = of(c);
  int lanes = c->f.s->lanes;
  ir_val first = ir_add(k, c->first, i32(c, (int64_t)j * lanes));
  c->block = j;
  c->channel = ir_cast(k, IR_I64, ir_add(k, ir_add(k, c->first, c->lane), i32(c, (int64_t)j * lanes)));
  c->mask = c->mul % c->width ? less(c, c->lane, ir_sub(k, i32(c, c->mul), first)) : IR_NONE;
  c->write = clb_both(k, c->mask, c->there);
  clb_path_forget(&c->at);
}

/* Opens the blocks of channels of a part: the next units do some each, or this sub-group goes through them. */
bool clb_part_open(clb_convolution *c, int part, int *next_unit) {
  ir_kernel *k = of(c);
  int lanes = c->f.s->lanes, mul = c->parts.mul[part], together = c->parts.together[part], turns = (mul + lanes - 1) / lanes / together, units = c->f.s->units;
  ir_val turn = i32(c, 0);
  bool opened = units ? turns < units : turns > 1;
  if (units) {
    turn = *next_unit ? ir_sub(k, c->unit, i32(c, *next_unit)) : c->unit;
    if (opened) ir_if(k, ir_2(k, IR_AND, ir_2(k, IR_LE, i32(c, 0), turn), less(c, turn, i32(c, turns))));
  } else if (opened) turn = ir_loop(k, i32(c, 0), i32(c, turns), i32(c, 1));
  c->batch.turn = ir_add(k, turn, i32(c, *next_unit));
  *next_unit += turns;
  c->mul = mul;
  c->width = clb_slice_width(c->f.s, mul);
  bool sliced = c->width < lanes;
  c->first = sliced ? i32(c, 0) : ir_mul(k, turn, i32(c, (int64_t)lanes * together));
  c->lane = sliced ? ir_2(k, IR_MOD, ir_lane(k), i32(c, c->width)) : ir_lane(k);
  c->slice = sliced ? ir_2(k, IR_DIV, ir_lane(k), i32(c, c->width)) : IR_NONE;
  clb_turn_to(c, 0);
  return opened;
}

ir_val clb_slice_place(clb_convolution *c, ir_val place, ir_val last) {
  ir_kernel *k = of(c);
  return c->slice == IR_NONE ? place : ir_2(k, IR_MIN, ir_add(k, place, c->slice), ir_sub(k, last, i32(c, 1)));
}

/* Opens the turns of a part's slices. */
ir_val clb_turns_open(clb_convolution *c, ir_val first, ir_val last) { return ir_loop(of(c), first, last, i32(c, clb_slices(c))); }
void clb_turns_close(clb_convolution *c) {
  ir_end(of(c));
  c->there = IR_NONE;
}

/* ---- operands ---- */

/* W, or the c that what comes in along r makes. */
static ir_val spline(clb_convolution *c, int order) {
  if (!order) return clb_spline_weight(c);
  clb_path_weight(&c->at); /* and with it its derivative */
  return ir_mul(of(c), c->spline.along, c->spline.by_r);
}

/* Components of g, scaled. */
void clb_load_scaled(clb_convolution *c, int term, ir_val *v) {
  clb_form_load(&c->f, &c->f.in[Z][0], term, c->channel, c->mask, v);
  for (int i = 0; i < clb_width(&c->f.tp->z.term[term]); i++) v[i] = ir_mul(of(c), v[i], ir_real(of(c), c->f.t, c->scale[term][i]));
}

static void load(void *owner, int slot, int order, ir_val *v) {
  clb_convolution *c = owner;
  const clb_form_array *a = &c->f.in[slot][order];
  int term = clb_path_term(c->at.path, slot);
  if (slot == W && c->f.p->convolution.spline) v[0] = spline(c, order);
  else if (slot != Z && c->stage.stages) clb_stage_load(c, slot, order, v);
  else if (slot == W) v[0] = clb_form_load_weight(&c->f, a, c->at.path, c->channel, c->mask);
  else if (slot == X) clb_form_load(&c->f, a, term, c->channel, c->mask, v);
  else if (c->f.s->in_memory) clb_load_scaled(c, term, v);
  else
    for (int i = 0; i < clb_width(&c->f.tp->z.term[term]); i++) v[i] = c->z[c->block][term][i];
}

/* The elements of a term of y and its like, of the edge at hand. */
void clb_load_y(clb_convolution *c, int term) {
  ir_kernel *k = of(c);
  const clb_term *t = &c->f.tp->y.term[term];
  for (int order = 0; order < clb_orders(c->f.p); order++)
    for (int j = t->at; j < t->at + t->mul * clb_width(t) && clb_reads(c->f.tp, Y, order); j++) /* mul is 1 where a path is */
      c->at.y[order][j] = ir_cast(k, c->f.t, ir_load(k, c->f.in[Y][order].rows.buffer, ir_add(k, c->f.in[Y][order].base, i64(c, j)), IR_NONE));
}

/* Where registers are few, a batch's paths come in the order of the terms of y, whose elements and gradients then are at hand for a while only. */
bool clb_by_terms_of_y(const clb_convolution *c) { return c->f.s->batch && c->batch.sums == IR_NONE; }

/* Turns to a place: where its operands are, and the elements of y. */
void clb_edge_begin(clb_convolution *c, ir_val place, ir_val last) {
  ir_kernel *k = of(c);
  if (c->stage.stages) clb_stage_edge(c, place, last);
  ir_val at = ir_cast(k, IR_I64, clb_slice_place(c, place, last));
  c->there = c->slice == IR_NONE ? IR_NONE : less(c, ir_add(k, place, c->slice), last);
  int orders = clb_orders(c->f.p);
  if (!c->stage.stages) {
    c->sender = ir_cast(k, IR_I64, ir_load(k, c->other, at, IR_NONE));
    c->edge = ir_cast(k, IR_I64, ir_load(k, c->walk.edge, at, IR_NONE));
  }
  for (int slot = X; slot <= W && !c->stage.stages; slot++)
    for (int order = 0; order < orders; order++) clb_form_row(&c->f, &c->f.in[slot][order], slot == X ? c->sender : c->edge);
  for (int o = 0; o < c->f.form->n_outputs; o++) {
    int slot = c->f.form->output[o].slot;
    bool shares = (slot == X && !c->f.p->convolution.atomics) || (slot == W && c->f.tp->shared_weights);
    if (slot != Z) clb_form_row(&c->f, &c->f.out[o], shares ? ir_sub(k, c->edge, ir_cast(k, IR_I64, c->walk.e0)) : slot == X ? c->sender : c->edge);
  }
  for (int t = 0; t < c->f.tp->y.n && !c->stage.stages && !clb_by_terms_of_y(c); t++) clb_load_y(c, t);
  for (int i = 0; c->there != IR_NONE && clb_wanted_output(&c->f, Z) >= 0 && i < orders * c->f.tp->y.dim; i++) {
    int order = i / c->f.tp->y.dim, j = i % c->f.tp->y.dim;
    if (clb_reads(c->f.tp, Y, order)) c->at.y[order][j] = ir_select(k, c->there, c->at.y[order][j], ir_real(k, c->f.t, 0));
  }
  if (c->f.p->convolution.spline && !c->stage.stages) {
    ir_val r[ORDERS] = {IR_NONE, IR_NONE};
    for (int order = 0; order < orders; order++)
      if (clb_reads(c->f.tp, W, order)) r[order] = ir_cast(k, c->f.t, ir_load(k, c->f.in[W][order].rows.buffer, c->f.in[W][order].base, IR_NONE));
    clb_spline_find(c, r[0]);
    clb_spline_edge(c, r);
  }
  clb_path_forget(&c->at);
}

/* ---- the whole ---- */

static void whole(clb_convolution *c, ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  clb_form_begin(&c->f, k, p, s);
  clb_walk_parameters(&c->walk, k);
  for (int o = 0; o < c->f.form->n_outputs; o++) {
    int slot = c->f.form->output[o].slot;
    if ((slot == W && !p->convolution.spline) || (slot == X && !p->convolution.atomics && !s->in_memory)) ir_stream(k, c->f.out[o].rows.buffer);
  }
  c->other = ir_buffer(k, IR_I32, false);
  c->add = ir_scalar(k, IR_I32);
  c->width = s->lanes;
  c->slice = c->there = IR_NONE;
  int o_z = clb_wanted_output(&c->f, Z);
  if (s->batch && o_z >= 0) clb_parts_of_z(&p->tensor_product, s->part, &c->parts);
  else clb_parts_make(&p->tensor_product, s->batch ? 1 : s->part, s->nonzeros, s->units ? s->lanes : 0, &c->parts);
  const bool pairs = o_z < 0 && s->pairs && !p->convolution.spline; /* beside splines it is slower, on an H200 */
  if (!clb_z_scales(&p->tensor_product, &c->parts, pairs, c->scale)) snprintf(k->error, sizeof k->error, "no memory");
  c->at.pairs = s->pairs;
  c->unit = s->units ? ir_subgroup(k) : i32(c, 0);
  c->pitch = s->shuffles ? 1 : s->lanes + 1;
  c->shares = s->edges * (s->units ? s->units : 1) * clb_y_columns(p) * c->pitch;
  clb_stage_begin(c);
  clb_spline_parameters(c);
  clb_batch_begin(c);
  c->meeting = clb_wants_sums(p) ? ir_local(k, c->f.t, (int64_t)c->shares * (s->units ? 2 : 1)) : IR_NONE;
  clb_walk_begin(&c->walk, ir_cast(k, IR_I64, ir_group(k)));
  if (s->batch) clb_batch_limit(c);
  if (o_z >= 0) clb_results_of_z(c, o_z);
  else clb_results_of_edges(c);
}

void clb_convolution_lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[][2] = {{"convolution_forward", "convolution_forward"}, {"convolution_backward", "convolution_backward"},
                                         {"convolution_double_backward", "convolution_double_backward_z"}};
  clb_convolution *c = calloc(1, sizeof *c);
  ir_begin(k, names[p->pass][p->tensor_product.gradients >> 3 & 1], s->lanes, s->subgroups, 1);
  k->resident = s->resident;
  if (c && clb_path_begin(&c->at, &c->f, load, c)) whole(c, k, p, s);
  else snprintf(k->error, sizeof k->error, "no memory");
  if (c) clb_path_free(&c->at), clb_batch_free(c);
  free(c);
  ir_finish(k);
}
