/* convolution.c - the graph convolution owned by its receiver: a group walks the edges of a row (kernels/walk.h), results of z in registers.

   A pass gives either results of z or those of edges, never both: the host asks twice.  Gradients of y meet in local memory, where the
   sub-groups' shares of some edges at a time are added in order. */
#include "convolution.h"

#include <stdio.h>
#include <stdlib.h>

static ir_kernel *of(clb_convolution *c) { return c->f.k; }
static ir_val i32(clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I32, n); }
static ir_val i64(clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I64, n); }
static ir_val less(clb_convolution *c, ir_val a, ir_val b) { return ir_2(c->f.k, IR_LT, a, b); }

/* ---- parts ---- */

/* Turns to block number j of the unit's. */
static void turn_to(clb_convolution *c, int j) {
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
static bool open_part(clb_convolution *c, int part, int *next_unit) {
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
  turn_to(c, 0);
  return opened;
}

ir_val clb_slice_place(clb_convolution *c, ir_val place, ir_val last) {
  ir_kernel *k = of(c);
  return c->slice == IR_NONE ? place : ir_2(k, IR_MIN, ir_add(k, place, c->slice), ir_sub(k, last, i32(c, 1)));
}

/* Opens the turns of a part's slices. */
static ir_val open_turns(clb_convolution *c, ir_val first, ir_val last) { return ir_loop(of(c), first, last, i32(c, clb_slices(c))); }
static void close_turns(clb_convolution *c) {
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
static void load_scaled(clb_convolution *c, int term, ir_val *v) {
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
  else if (c->f.s->in_memory) load_scaled(c, term, v);
  else
    for (int i = 0; i < clb_width(&c->f.tp->z.term[term]); i++) v[i] = c->z[c->block][term][i];
}

/* The elements of a term of y and its like, of the edge at hand. */
static void load_y(clb_convolution *c, int term) {
  ir_kernel *k = of(c);
  const clb_term *t = &c->f.tp->y.term[term];
  for (int order = 0; order < clb_orders(c->f.p); order++)
    for (int j = t->at; j < t->at + t->mul * clb_width(t) && clb_reads(c->f.tp, Y, order); j++) /* mul is 1 where a path is */
      c->at.y[order][j] = ir_cast(k, c->f.t, ir_load(k, c->f.in[Y][order].rows.buffer, ir_add(k, c->f.in[Y][order].base, i64(c, j)), IR_NONE));
}

/* Where registers are few, a batch's paths come in the order of the terms of y, whose elements and gradients then are at hand for a while only. */
static bool by_terms_of_y(const clb_convolution *c) { return c->f.s->batch && c->batch.sums == IR_NONE; }

/* Turns to a place: where its operands are, and the elements of y. */
static void begin_edge(clb_convolution *c, ir_val place, ir_val last) {
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
  for (int t = 0; t < c->f.tp->y.n && !c->stage.stages && !by_terms_of_y(c); t++) load_y(c, t);
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

/* ---- results of z ---- */

/* Of a part's component of z so far. */
static ir_val sum_so_far(clb_convolution *c, int term, int i) {
  if (!c->f.s->batch) return ir_real(of(c), c->f.t, 0);
  return ir_load(of(c), c->batch.sums, clb_batch_sum(c, term, i), c->mask);
}

static void add_z(clb_convolution *c, const clb_path *p, int o) {
  ir_kernel *k = of(c);
  ir_val sum[MAX_M], *var = c->z[c->block][p->out];
  int width = clb_width(&c->f.tp->z.term[p->out]);
  bool in_memory = c->f.s->in_memory, in_sums = in_memory && c->f.s->batch;
  clb_path_open(&c->at, p, c->scale[p->out]);
  clb_none(sum, MAX_M);
  for (int i = 0; i < width; i++) sum[i] = in_sums ? sum_so_far(c, p->out, i) : in_memory ? IR_NONE : ir_get(k, var[i]);
  clb_path_z(&c->at, o, sum);
  for (int i = 0; i < width; i++)
    if (in_sums) ir_store(k, c->batch.sums, clb_batch_sum(c, p->out, i), c->mask, sum[i]);
    else if (!in_memory) ir_set(k, var[i], sum[i]);
    else if (sum[i] != IR_NONE) sum[i] = ir_mul(k, sum[i], ir_real(k, c->f.t, c->scale[p->out][i]));
  if (in_memory && !in_sums) clb_form_put(&c->f, &c->f.out[o], p->out, c->channel, c->mask, sum, true);
}

/* Each path of each edge adds to results in memory: they start as 0, unless they are added to. */
static void clear_part(clb_convolution *c, int part, int o) {
  ir_kernel *k = of(c);
  ir_val nothing[MAX_M];
  clb_none(nothing, MAX_M);
  ir_if(k, ir_1(k, IR_NOT, ir_2(k, IR_EQ, c->add, i32(c, 1))));
  for (int j = 0; j < c->parts.together[part]; j++) {
    turn_to(c, j);
    for (int t = 0; t < c->f.tp->z.n; t++)
      if (c->parts.of_z[t] == part) clb_form_put(&c->f, &c->f.out[o], t, c->channel, c->mask, nothing, false);
  }
  ir_end(k);
}

static void walk_z(clb_convolution *c, int part, int o, ir_val first, ir_val last) {
  ir_kernel *k = of(c);
  const clb_irreps *z = &c->f.tp->z;
  int together = c->parts.together[part];
  if (c->f.s->in_memory && !c->f.s->batch) clear_part(c, part, o);
  for (int j = 0; j < together && !c->f.s->in_memory; j++) {
    turn_to(c, j);
    for (int t = 0; t < z->n; t++)
      for (int i = 0; i < clb_width(&z->term[t]) && c->parts.of_z[t] == part; i++) c->z[j][t][i] = ir_var(k, sum_so_far(c, t, i), false);
  }
  if (c->stage.stages) clb_stage_open(c, part, first, last);
  ir_val place = open_turns(c, first, last);
  begin_edge(c, place, last);
  if (c->f.s->batch) clb_batch_ask(c, place);
  if (c->batch.n_products) clb_batch_turn(c, ir_sub(k, place, first));
  for (int j = 0; j < together; j++) {
    turn_to(c, j);
    for (int q = 0; q < c->f.tp->n_paths; q++)
      if (c->parts.of_z[c->f.tp->path[q].out] == part) add_z(c, &c->f.tp->path[q], o);
  }
  if (c->stage.stages) clb_stage_next(c);
  close_turns(c);
}

/* Of a component: the sub-group's sum, the slices' added up. */
static ir_val sum_of_row(clb_convolution *c, int block, int term, int i) {
  ir_kernel *k = of(c);
  ir_val sum = ir_get(k, c->z[block][term][i]);
  for (int apart = c->width; apart < c->f.s->lanes; apart *= 2) sum = ir_add(k, sum, ir_shuffle_xor(k, sum, apart));
  return sum;
}

/* Overwrites or adds, as the caller of the kernel says. */
static void store_z(clb_convolution *c, int term, int o, const ir_val *v) {
  ir_kernel *k = of(c);
  ir_if(k, ir_2(k, IR_EQ, c->add, i32(c, 1)));
  clb_form_put(&c->f, &c->f.out[o], term, c->channel, c->mask, v, true);
  ir_else(k);
  clb_form_put(&c->f, &c->f.out[o], term, c->channel, c->mask, v, false);
  ir_end(k);
}

static void store_part(clb_convolution *c, int part, int o) {
  ir_kernel *k = of(c);
  for (int j = 0; j < c->parts.together[part]; j++) {
    turn_to(c, j);
    if (c->slice != IR_NONE) c->mask = less(c, ir_lane(k), i32(c, c->mul)); /* the first one writes */
    for (int t = 0; t < c->f.tp->z.n; t++) {
      ir_val v[MAX_M];
      if (c->parts.of_z[t] != part) continue;
      for (int i = 0; i < clb_width(&c->f.tp->z.term[t]); i++) v[i] = ir_mul(k, c->f.s->batch ? sum_so_far(c, t, i) : sum_of_row(c, j, t, i), ir_real(k, c->f.t, c->scale[t][i]));
      store_z(c, t, o, v);
    }
  }
}

/* Terms that no path reaches are 0. */
static void store_unreached(clb_convolution *c, int o) {
  ir_kernel *k = of(c);
  ir_val nothing[MAX_M];
  clb_none(nothing, MAX_M);
  for (int t = 0; t < c->f.tp->z.n; t++) {
    int mul = c->f.tp->z.term[t].mul, lanes = c->f.s->lanes;
    if (c->parts.of_z[t] >= 0 || !mul) continue;
    ir_val first = ir_mul(k, ir_loop(k, i32(c, 0), i32(c, (mul + lanes - 1) / lanes), i32(c, 1)), i32(c, lanes)), lane = ir_add(k, first, ir_lane(k));
    clb_form_put(&c->f, &c->f.out[o], t, ir_cast(k, IR_I64, lane), less(c, lane, i32(c, mul)), nothing, false);
    ir_end(k);
  }
}

/* One batch of edges after the other; in between the sums lie in local memory. */
static void batches_of_z(clb_convolution *c, int o) {
  ir_kernel *k = of(c);
  clb_batch_clear(c, c->batch.sums, c->f.tp->z.dim);
  ir_val first = ir_loop(k, c->walk.first, c->walk.last, i32(c, c->f.s->batch)), last = ir_2(k, IR_MIN, c->walk.last, ir_add(k, first, i32(c, c->f.s->batch)));
  ir_barrier(k, false);
  if (c->batch.n_products) {
    ir_val place = ir_loop(k, first, last, i32(c, 1));
    begin_edge(c, place, last);
    clb_batch_multiply(c, ir_sub(k, place, first));
    ir_end(k);
    ir_barrier(k, false);
  }
  for (int part = 0, next_unit = 0; part < c->parts.n; part++) {
    bool opened = open_part(c, part, &next_unit);
    walk_z(c, part, o, first, last);
    for (int t = 0; t < c->f.tp->z.n && !c->f.s->in_memory; t++)
      for (int i = 0; c->parts.of_z[t] == part && i < clb_width(&c->f.tp->z.term[t]); i++)
        ir_store(k, c->batch.sums, clb_batch_sum(c, t, i), c->mask, ir_get(k, c->z[0][t][i]));
    if (opened) ir_end(k);
  }
  ir_end(k);
  ir_barrier(k, false);
}

static void results_of_z(clb_convolution *c, int o) {
  ir_kernel *k = of(c);
  int next_unit = 0;
  ir_if(k, ir_2(k, IR_OR, less(c, c->add, i32(c, 2)), less(c, i32(c, 0), c->walk.count)));
  clb_form_row(&c->f, &c->f.out[o], c->walk.index);
  if (c->f.s->batch) batches_of_z(c, o);
  for (int part = 0; part < c->parts.n; part++) {
    bool opened = open_part(c, part, &next_unit);
    if (!c->f.s->batch) walk_z(c, part, o, c->walk.first, c->walk.last);
    if (c->f.s->batch || !c->f.s->in_memory) store_part(c, part, o);
    if (opened) ir_end(k);
  }
  ir_if(k, ir_2(k, IR_AND, ir_1(k, IR_NOT, ir_2(k, IR_EQ, c->add, i32(c, 1))), ir_2(k, IR_EQ, c->unit, i32(c, 0))));
  store_unreached(c, o);
  ir_end(k);
  ir_end(k);
}

/* ---- results of edges ---- */

static void store_x(clb_convolution *c, int term, int o, bool add) {
  ir_kernel *k = of(c);
  const clb_form_array *a = &c->f.out[o];
  const clb_term *t = &c->f.tp->x.term[term];
  if (!c->f.p->convolution.atomics) {
    clb_form_put(&c->f, a, term, c->channel, c->write, c->x_sum[term], add);
    return;
  }
  for (int i = 0; i < clb_width(t); i++)
    if (c->x_sum[term][i] != IR_NONE) ir_atomic_add(k, a->rows.buffer, clb_form_component(&c->f, a, t, i, c->channel), c->write, c->x_sum[term][i]);
}

/* Shuffles that summing n values over the lanes takes. */
static int shuffles(int lanes, int n) {
  int width = 1, count = 0;
  while (width < n) width *= 2;
  for (int share = lanes / width; share > 1; share /= 2) count++;
  return width - 1 + count;
}

/* Of n values, as many as are best summed together: all that the lanes take, or the largest power of two in them, if those left over are few. */
static int summed_together(int lanes, int n) {
  enum { STORE = 4 }; /* what one more store is worth */
  int half = 1;
  if (n > lanes) n = lanes;
  while (2 * half < n) half *= 2;
  return half < n && shuffles(lanes, half) + shuffles(lanes, n - half) + STORE < shuffles(lanes, n) ? half : n;
}

/* Adds the lanes' shares of the gradient of y of an edge, the first slice's, and hands the sub-group's to the others; nobody reads those of slices
   without one. */
static void meet(clb_convolution *c, ir_val edge) {
  ir_kernel *k = of(c);
  int columns = clb_y_columns(c->f.p), units = c->f.s->units;
  if (c->slice != IR_NONE) edge = ir_add(k, edge, c->slice);
  ir_val row = units ? ir_add(k, ir_mul(k, edge, i32(c, units)), c->unit) : edge, start = ir_add(k, c->turn, ir_mul(k, row, i32(c, columns)));
  for (int first = 0, n, share; first < columns; first += n) {
    n = summed_together(c->width, columns - first);
    ir_val sum = clb_sum_over_lanes(k, c->f.t, c->width, c->y_sum + first, n, &share);
    ir_val element = ir_2(k, IR_DIV, c->lane, i32(c, share)), at = ir_add(k, start, ir_add(k, element, i32(c, first)));
    ir_val mask = ir_2(k, IR_AND, ir_2(k, IR_EQ, ir_mul(k, element, i32(c, share)), c->lane), less(c, element, i32(c, n)));
    if (!units) sum = ir_add(k, sum, ir_load(k, c->meeting, at, mask));
    ir_store(k, c->meeting, at, mask, sum);
  }
}

static void one_path(clb_convolution *c, const clb_path *p, int o_x, int o_y, int o_w) {
  clb_path_open(&c->at, p, c->scale[p->out]);
  if (o_x >= 0) clb_path_x(&c->at, o_x, c->x_sum[p->in1]);
  if (o_w >= 0 && p->has_weight) {
    ir_val g = clb_path_w(&c->at, o_w);
    if (c->f.p->convolution.spline) {
      clb_path_weight(&c->at); /* and with it its knots */
      clb_spline_add(c, 0, g);
      if (c->spline.along != IR_NONE) clb_spline_add(c, 1, clb_path_w(&c->at, BY_C));
    } else clb_form_store_weight(&c->f, &c->f.out[o_w], p, c->channel, c->write, g);
  }
  if (o_y >= 0) clb_path_y(&c->at, o_y, c->y_sum + c->f.tp->y.term[p->in2].at);
}

/* The part's components of g, scaled; into the variables of held[], if there are any, or from there. */
static void load_z(clb_convolution *c, int part) {
  ir_kernel *k = of(c);
  const clb_irreps *z = &c->f.tp->z;
  for (int j = 0, n = 0; j < c->parts.together[part] && !c->f.s->in_memory; j++) {
    turn_to(c, j);
    for (int t = 0; t < z->n; t++) {
      ir_val *v = c->z[j][t];
      if (c->parts.of_z[t] != part) continue;
      load_scaled(c, t, v);
      for (int i = 0; i < clb_width(&z->term[t]); i++, n++)
        if (c->n_held) ir_set(k, c->held[n], v[i]);
    }
  }
}

/* Of the block at hand, of which `n` components come before. */
static int recall_z(clb_convolution *c, int part, int n) {
  for (int t = 0; t < c->f.tp->z.n; t++)
    for (int i = 0; c->parts.of_z[t] == part && i < clb_width(&c->f.tp->z.term[t]); i++, n++) c->z[c->block][t][i] = ir_get_here(of(c), c->held[n]);
  return n;
}

static int most_z(const clb_tensor_product_problem *tp, const clb_parts *parts) {
  int most = 0;
  for (int part = 0; part < parts->n; part++) {
    int n = 0;
    for (int t = 0; t < tp->z.n; t++) n += parts->of_z[t] == part ? clb_width(&tp->z.term[t]) * parts->together[part] : 0;
    if (n > most) most = n;
  }
  return most;
}

/* The paths from a term of x to which a term of y (-1: any) belongs; number: of the edge in its batch.  Whether gradients of x are in memory now. */
static bool paths_of(clb_convolution *c, int x, int y, ir_val number, bool stored) {
  const clb_tensor_product_problem *tp = c->f.tp;
  int o_x = clb_wanted_output(&c->f, X), o_y = clb_wanted_output(&c->f, Y), o_w = clb_wanted_output(&c->f, W), n = 0;
  bool shares = y >= 0 && c->batch.shares != IR_NONE;
  for (int q = 0; q < tp->n_paths; q++) {
    if (tp->path[q].in1 != x || (y >= 0 && tp->path[q].in2 != y)) continue;
    if (!n++ && y >= 0) load_y(c, y);
    if (n == 1 && shares) clb_batch_recall(c, x, tp->y.term[y].at, clb_width(&tp->y.term[y]), number);
    one_path(c, &tp->path[q], o_x, o_y, o_w);
    if (o_x < 0 || !c->f.s->in_memory) continue;
    store_x(c, x, o_x, stored);
    stored = true;
    clb_none(c->x_sum[x], MAX_M);
  }
  if (n && shares) clb_batch_keep(c, x, tp->y.term[y].at, clb_width(&tp->y.term[y]), number);
  return stored;
}

static void one_block(clb_convolution *c, int part, ir_val number) {
  const clb_tensor_product_problem *tp = c->f.tp;
  int o_x = clb_wanted_output(&c->f, X);
  for (int t = 0; t < tp->x.n; t++) {
    if (c->parts.of_x[t] != part) continue;
    bool stored = false;
    clb_none(c->x_sum[t], MAX_M);
    for (int y = by_terms_of_y(c) ? 0 : -1; y < (by_terms_of_y(c) ? tp->y.n : 0); y++) stored |= paths_of(c, t, y, number, stored);
    if (o_x >= 0 && !stored) store_x(c, t, o_x, false);
  }
}

/* Places first ... last - 1 of a part; end: of the row's. */
static void walk_edges(clb_convolution *c, int part, ir_val first, ir_val last, ir_val end) {
  ir_kernel *k = of(c);
  ir_val place = open_turns(c, first, last);
  begin_edge(c, place, end);
  if (c->f.s->batch) clb_batch_ask(c, place);
  int columns = clb_y_columns(c->f.p), of_y = c->f.tp->y.dim; /* the rest is the gradient of r */
  clb_none(c->y_sum, columns);
  for (int i = 0; i < 2; i++) clb_none(c->spline.sum[i], 3);
  if (c->batch.shares != IR_NONE) clb_batch_recall(c, -1, of_y, columns - of_y, ir_sub(k, place, first));
  for (int j = 0, n = 0; j < c->parts.together[part]; j++) {
    turn_to(c, j);
    if (c->n_held) n = recall_z(c, part, n);
    one_block(c, part, ir_sub(k, place, first));
  }
  if (c->f.p->convolution.spline) c->y_sum[of_y] = clb_spline_slope(c, c->y_sum[of_y]);
  if (c->batch.shares != IR_NONE) clb_batch_keep(c, -1, of_y, columns - of_y, ir_sub(k, place, first));
  else if (c->meeting != IR_NONE) meet(c, ir_sub(k, place, first));
  if (c->stage.stages) clb_stage_next(c);
  close_turns(c);
}

/* Where one sub-group does all parts, their shares are added up: from 0. */
static void clear_meeting(clb_convolution *c) {
  ir_kernel *k = of(c);
  int lanes = c->f.s->lanes;
  int64_t n = (int64_t)c->f.s->edges * clb_y_columns(c->f.p);
  ir_val at = ir_add(k, ir_loop(k, i32(c, 0), i32(c, n), i32(c, lanes)), ir_lane(k));
  ir_store(k, c->meeting, at, less(c, at, i32(c, n)), ir_real(k, c->f.t, 0));
  ir_end(k);
}

/* Adds the units' shares and writes the rows of places first ... last - 1: `columns` of the sums from number `from` on. */
static void store_sums(clb_convolution *c, int o, int from, int columns, ir_val first, ir_val last) {
  ir_kernel *k = of(c);
  const clb_form_array *a = &c->f.out[o];
  int units = c->f.s->units ? c->f.s->units : 1, threads = c->f.s->subgroups * c->f.s->lanes;
  ir_val n = ir_mul(k, ir_sub(k, last, first), i32(c, columns)), thread = ir_add(k, ir_mul(k, ir_subgroup(k), i32(c, c->f.s->lanes)), ir_lane(k));
  ir_val i = ir_add(k, ir_loop(k, i32(c, 0), n, i32(c, threads)), thread), mask = less(c, i, n), row = ir_2(k, IR_DIV, i, i32(c, columns));
  ir_val column = ir_sub(k, i, ir_mul(k, row, i32(c, columns))), sum = IR_NONE, near = ir_2(k, IR_MIN, row, i32(c, c->f.s->edges - 1));
  for (int u = 0; u < units; u++) {
    ir_val at = ir_add(k, ir_mul(k, ir_add(k, ir_mul(k, near, i32(c, units)), i32(c, u)), i32(c, clb_y_columns(c->f.p))), ir_add(k, ir_add(k, column, c->turn), i32(c, from)));
    ir_val share = ir_load(k, c->meeting, at, mask);
    sum = sum == IR_NONE ? share : ir_add(k, sum, share);
  }
  ir_val edge = ir_cast(k, IR_I64, ir_load(k, c->walk.edge, ir_cast(k, IR_I64, ir_add(k, first, row)), mask));
  ir_val index = ir_add(k, ir_add(k, ir_mul(k, edge, a->rows.stride), a->rows.offset), ir_cast(k, IR_I64, column));
  if (c->f.p->accumulate && !c->f.p->convolution.vectors) sum = ir_add(k, sum, ir_cast(k, c->f.t, ir_load(k, a->rows.buffer, index, mask)));
  ir_store(k, a->rows.buffer, index, mask, ir_cast(k, ir_register_type(a->rows.element), sum));
  ir_end(k);
}

/* One sub-group does one part after the other, for some edges at a time if gradients of y are added up. */
static void edges_in_turn(clb_convolution *c, ir_val first, ir_val last) {
  int next_unit = 0;
  for (int part = 0; part < c->parts.n; part++) {
    bool opened = open_part(c, part, &next_unit);
    load_z(c, part);
    for (int q = 0; c->f.s->batch && !c->f.s->in_memory && q < c->f.tp->n_paths; q++) /* of no edge: made ahead of the loop over them */
      if (c->parts.of_x[c->f.tp->path[q].in1] == part) clb_path_pairs(&c->at, &c->f.tp->path[q], c->scale[c->f.tp->path[q].out]);
    if (c->stage.stages) clb_stage_open(c, part, first, last);
    walk_edges(c, part, first, last, last);
    if (opened) ir_end(of(c));
  }
}

/* A unit for each block of channels: g is loaded once, and operands are on their way across the batches. */
static void start_units(clb_convolution *c) {
  int next_unit = 0;
  c->n_held = c->f.s->in_memory ? 0 : most_z(c->f.tp, &c->parts);
  for (int i = 0; i < c->n_held; i++) c->held[i] = ir_var(of(c), ir_real(of(c), c->f.t, 0), false);
  for (int part = 0; part < c->parts.n; part++) {
    bool opened = open_part(c, part, &next_unit);
    if (c->stage.stages) clb_stage_open(c, part, c->walk.first, c->walk.last);
    load_z(c, part);
    if (opened) ir_end(of(c));
  }
}

static void edges_by_units(clb_convolution *c, ir_val first, ir_val last) {
  int next_unit = 0;
  for (int part = 0; part < c->parts.n; part++) {
    bool opened = open_part(c, part, &next_unit);
    if (c->stage.stages) clb_stage_plan(c, part);
    walk_edges(c, part, first, last, c->walk.last);
    if (opened) ir_end(of(c));
  }
}

static void results_of_edges(clb_convolution *c) {
  ir_kernel *k = of(c);
  bool units = c->f.s->units;
  int o_y = clb_wanted_output(&c->f, Y), o_w = clb_wanted_output(&c->f, W), columns = c->f.tp->y.dim;
  ir_val other = i32(c, c->shares), turn = ir_var(k, i32(c, 0), true);
  clb_form_row(&c->f, &c->f.in[Z][0], c->walk.row);
  if (units) start_units(c);
  c->turn = i32(c, 0);
  if (c->meeting == IR_NONE && !c->f.s->batch) {
    (units ? edges_by_units : edges_in_turn)(c, c->walk.first, c->walk.last);
    return;
  }
  ir_val first = ir_loop(k, c->walk.first, c->walk.last, i32(c, c->f.s->edges)), last = ir_2(k, IR_MIN, c->walk.last, ir_add(k, first, i32(c, c->f.s->edges)));
  if (units) { /* two halves of the meeting place by turns, so that one barrier will do */
    c->turn = ir_get(k, turn);
    edges_by_units(c, first, last);
    ir_set(k, turn, ir_sub(k, other, c->turn));
  } else {
    ir_barrier(k, false);
    if (c->meeting != IR_NONE) clear_meeting(c);
    if (c->batch.shares != IR_NONE) clb_batch_clear(c, c->batch.shares, (int64_t)c->f.s->batch * clb_y_columns(c->f.p) * c->f.s->lanes);
    ir_barrier(k, false);
    edges_in_turn(c, first, last);
    if (c->batch.shares != IR_NONE) {
      ir_val place = ir_loop(k, first, last, i32(c, 1));
      clb_none(c->y_sum, clb_y_columns(c->f.p));
      clb_batch_recall(c, -1, 0, clb_y_columns(c->f.p), ir_sub(k, place, first));
      meet(c, ir_sub(k, place, first));
      ir_end(k);
    }
  }
  ir_barrier(k, c->f.s->subgroups > 1);
  if (o_y >= 0) store_sums(c, o_y, 0, columns, first, last);
  if (o_w >= 0 && c->f.p->convolution.spline) store_sums(c, o_w, columns, 1, first, last);
  ir_end(k);
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
  clb_z_scales(&p->tensor_product, &c->parts, o_z < 0 && s->pairs && !p->convolution.spline, c->scale); /* beside splines it is slower, on an H200 */
  c->at.pairs = s->pairs;
  c->unit = s->units ? ir_subgroup(k) : i32(c, 0);
  c->shares = s->edges * (s->units ? s->units : 1) * clb_y_columns(p);
  clb_stage_begin(c);
  clb_spline_parameters(c);
  clb_batch_begin(c);
  c->meeting = clb_wants_sums(p) ? ir_local(k, c->f.t, (int64_t)c->shares * (s->units ? 2 : 1)) : IR_NONE;
  clb_walk_begin(&c->walk, ir_cast(k, IR_I64, ir_group(k)));
  if (s->batch) clb_batch_limit(c);
  if (o_z >= 0) results_of_z(c, o_z);
  else results_of_edges(c);
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
