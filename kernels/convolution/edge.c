/* kernels/convolution/edge.c - one edge of a convolution: the channels and the place at hand, and
   its operands, staged or from where they are. */
#include "kernels/convolution/builder.h"

static ir_kernel *of(const clb_convolution *c) { return c->f.k; }
static ir_val i32(const clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I32, n); }
static ir_val i64(const clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I64, n); }
static ir_val less(const clb_convolution *c, ir_val a, ir_val b) {
  return ir_2(c->f.k, IR_LT, a, b);
}

/* ---- channels and places ---- */

void clb_turn_to(clb_convolution *c, int j) {
  clb_unit_select(&c->unit, &c->f, j);
  clb_path_forget(&c->at);
}

bool clb_part_open(clb_convolution *c, int part, int *next_role) {
  bool opened = clb_unit_open(&c->unit, &c->f, &c->parts, part, next_role);
  clb_path_forget(&c->at);
  return opened;
}

ir_val clb_turns_open(const clb_convolution *c, ir_val first, ir_val last) {
  return ir_loop(of(c), first, last, i32(c, clb_slices(&c->unit, &c->f)));
}

void clb_turns_close(clb_convolution *c) {
  ir_end(of(c));
  c->unit.there = IR_NONE;
}

/* ---- operands ---- */

/* W, or the c that what comes in along r makes. */
static ir_val spline(clb_convolution *c, int order) {
  ir_val v[4];
  if (!order) {
    if (c->stage.stages && clb_stages_knots(c->f.p)) clb_stage_knots(&c->stage, c, v);
    else clb_spline_knots(&c->spline, &c->f, c->at.path, &c->unit, v);
    return clb_spline_weight(&c->spline, &c->f, v);
  }
  clb_path_weight(&c->at); /* and with it its derivative */
  return ir_mul(of(c), c->spline.along, c->spline.by_r);
}

/* Components of g, scaled. */
void clb_load_scaled(clb_convolution *c, int term, ir_val *v) {
  clb_form_load(&c->f, &c->f.in[Z][0], term, c->unit.channel, c->unit.mask, v);
  for (int i = 0; i < clb_width(&c->f.tp->z.term[term]); i++)
    v[i] = ir_mul(of(c), v[i], ir_real(of(c), c->f.t, c->scale[term][i]));
}

void clb_edge_load(void *owner, int slot, int order, ir_val *v) {
  clb_convolution *c = owner;
  const clb_form_array *a = &c->f.in[slot][order];
  int term = clb_path_term(c->at.path, slot);
  if (slot == W && c->f.p->convolution.spline) v[0] = spline(c, order);
  else if (slot != Z && c->stage.stages) clb_stage_load(&c->stage, c, slot, order, v);
  else if (slot == W)
    v[0] = clb_form_load_weight(&c->f, a, c->at.path, c->unit.channel, c->unit.mask);
  else if (slot == X) clb_form_load(&c->f, a, term, c->unit.channel, c->unit.mask, v);
  else if (c->f.s->accumulate_in_memory) clb_load_scaled(c, term, v);
  else
    for (int i = 0; i < clb_width(&c->f.tp->z.term[term]); i++) v[i] = c->z[c->unit.block][term][i];
}

/* The elements of a term of y and its like, of the edge at hand. */
void clb_load_y(clb_convolution *c, int term) {
  ir_kernel *k = of(c);
  const clb_term *t = &c->f.tp->y.term[term];
  for (int order = 0; order < clb_orders(c->f.p); order++)
    for (int j = t->at; j < t->at + t->mul * clb_width(t) && clb_reads(c->f.tp, Y, order);
         j++) /* mul is 1 where a path is */
      c->at.y[order][j] = ir_cast(k, c->f.t,
                                  ir_load(k, c->f.in[Y][order].rows.buffer,
                                          ir_add(k, c->f.in[Y][order].base, i64(c, j)), IR_NONE));
}

/* Where registers are few, a batch's paths come in the order of the terms of y, whose elements and
   gradients then are at hand for a while only. */
bool clb_by_terms_of_y(const clb_convolution *c) {
  return c->s->edges_per_batch && c->batch.sums == IR_NONE;
}

/* Where operands are staged: the ends of the edge, the spline at its length, the elements of y. */
static void staged(clb_convolution *c, ir_val place, ir_val last) {
  ir_kernel *k = of(c);
  clb_stage *g = &c->stage;
  clb_stage_edge(g, c, place, last, &c->sender, &c->edge);
  if (c->f.p->convolution.spline) {
    ir_val own[ORDERS] = {IR_NONE, IR_NONE};
    for (int order = 0; order < clb_orders(c->f.p); order++)
      if (clb_reads(c->f.tp, W, order))
        own[order] = ir_cast(
            k, c->f.t, ir_load(k, g->array, ir_add(k, g->base, i32(c, g->r + order)), IR_NONE));
    if (!clb_stages_knots(c->f.p)) clb_spline_find(&c->spline, &c->f, own[0]);
    clb_spline_edge(&c->spline, &c->f, own);
  }
  for (int order = 0; order < clb_orders(c->f.p) && !c->frame.l; order++)
    if (clb_reads(c->f.tp, Y, order)) clb_stage_y(g, c, order, c->at.y[order]);
}

/* Turns to a place: where its operands are, and the elements of y. */
void clb_edge_begin(clb_convolution *c, ir_val place, ir_val last) {
  ir_kernel *k = of(c);
  if (c->stage.stages) staged(c, place, last);
  ir_val at = ir_cast(k, IR_I64, clb_slice_place(&c->unit, &c->f, place, last));
  c->unit.there =
      c->unit.slice == IR_NONE ? IR_NONE : less(c, ir_add(k, place, c->unit.slice), last);
  int orders = clb_orders(c->f.p);
  if (!c->stage.stages) {
    c->sender = ir_cast(k, IR_I64, ir_load(k, c->other, at, IR_NONE));
    c->edge = ir_cast(k, IR_I64, ir_load(k, c->walk.edge, at, IR_NONE));
  }
  for (int slot = X; slot <= W && !c->stage.stages; slot++)
    for (int order = 0; order < orders; order++)
      clb_form_row(&c->f, &c->f.in[slot][order], slot == X ? c->sender : c->edge);
  for (int o = 0; o < c->f.form->n_outputs; o++) {
    int slot = c->f.form->output[o].slot;
    bool shares =
        (slot == X && !c->f.p->convolution.atomics) || (slot == W && c->f.tp->shared_weights);
    if (slot != Z)
      clb_form_row(&c->f, &c->f.out[o],
                   shares      ? ir_sub(k, c->edge, ir_cast(k, IR_I64, c->walk.e0))
                   : slot == X ? c->sender
                               : c->edge);
  }
  for (int t = 0; t < c->f.tp->y.n && !c->stage.stages && !c->frame.l && !clb_by_terms_of_y(c); t++)
    clb_load_y(c, t);
  for (int i = 0; c->unit.there != IR_NONE && clb_wanted_output(&c->f, Z) >= 0 && !c->frame.l &&
                  i < orders * c->f.tp->y.dim;
       i++) {
    int order = i / c->f.tp->y.dim, j = i % c->f.tp->y.dim;
    if (clb_reads(c->f.tp, Y, order))
      c->at.y[order][j] = ir_select(k, c->unit.there, c->at.y[order][j], ir_real(k, c->f.t, 0));
  }
  if (c->f.p->convolution.spline && !c->stage.stages) {
    ir_val r[ORDERS] = {IR_NONE, IR_NONE};
    for (int order = 0; order < orders; order++)
      if (clb_reads(c->f.tp, W, order))
        r[order] = ir_cast(
            k, c->f.t, ir_load(k, c->f.in[W][order].rows.buffer, c->f.in[W][order].base, IR_NONE));
    clb_spline_find(&c->spline, &c->f, r[0]);
    clb_spline_edge(&c->spline, &c->f, r);
  }
  clb_path_forget(&c->at);
}

/* ---- results ---- */

void clb_store_x(clb_convolution *c, int term, int o, bool add) {
  ir_kernel *k = of(c);
  const clb_form_array *a = &c->f.out[o];
  const clb_term *t = &c->f.tp->x.term[term];
  if (!c->f.p->convolution.atomics) {
    clb_form_put(&c->f, a, term, c->unit.channel, c->unit.write, c->results.x_sum[term], add);
    return;
  }
  for (int i = 0; i < clb_width(t); i++)
    if (c->results.x_sum[term][i] != IR_NONE)
      ir_atomic_add(k, a->rows.buffer, clb_form_component(&c->f, a, t, i, c->unit.channel),
                    c->unit.write, c->results.x_sum[term][i]);
}
