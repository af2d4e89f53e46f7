/* kernels/convolution/edge.c - one edge of a convolution: its current channels, its operands,
   staged or loaded from global memory, and stores of its results. */
#include <string.h>

#include "kernels/convolution/builder.h"

static ir_kernel *of(const clb_convolution *c) { return c->f.k; }
static ir_val i32(const clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I32, n); }
static ir_val i64(const clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I64, n); }
static ir_val less(const clb_convolution *c, ir_val a, ir_val b) {
  return ir_2(c->f.k, IR_LT, a, b);
}

/* ---- channels and edge slots ---- */

void clb_select_channel(clb_convolution *c, int j) { clb_unit_select(&c->unit, &c->f, j); }

/* Vectors of x and w will be loaded again. */
static void invalidate_operands(clb_convolution *c) {
  for (int slot = 0; slot < SLOTS; slot++)
    for (int order = 0; order < ORDERS; order++) c->cached[slot][order].source = -1;
  for (int j = 0; j < CLB_MAX_PER_LANE; j++) clb_path_forget(&c->builder[j]);
}

bool clb_part_open(clb_convolution *c, int part, int *next_role) {
  bool opened = clb_unit_open(&c->unit, &c->f, &c->parts, part, next_role);
  invalidate_operands(c);
  return opened;
}

bool clb_weights_clear(const clb_convolution *c) {
  bool all = c->f.p->convolution.spline && c->f.p->pass == CLB_FORWARD;
  for (int q = 0; q < c->f.tp->n_paths; q++) all &= c->f.tp->path[q].has_weight;
  return all;
}

/* Whether a pass needs the second derivative of the table by r. */
static bool bends(const clb_convolution *c) {
  return clb_orders(c->f.p) > 1 && clb_reads(c->f.tp, W, 1);
}

static bool looks_ahead(const clb_convolution *c) { return c->s->roles && !c->stage.stages; }

ir_val clb_edge_loop_open(clb_convolution *c, ir_val first, ir_val last) {
  ir_kernel *k = of(c);
  if (looks_ahead(c)) {
    clb_ahead *a = &c->ahead;
    ir_val none = i32(c, 0), zero = ir_real(k, c->f.t, 0);
    a->turn = ir_var(k, none, true);
    a->sender = ir_var(k, none, false);
    a->edge = ir_var(k, none, false);
    if (c->f.p->convolution.spline) {
      a->place.row = ir_var(k, none, false);
      a->place.u = ir_var(k, zero, false);
      if (c->f.p->pass != CLB_FORWARD) a->place.rate = ir_var(k, zero, false);
      if (bends(c)) a->place.inverse = ir_var(k, zero, false);
    }
  }
  return ir_loop(of(c), first, last, i32(c, clb_slices(&c->unit, &c->f)));
}

void clb_edge_loop_close(clb_convolution *c) {
  ir_end(of(c));
  c->unit.has_edge = IR_NONE;
  if (c->unit.slice != IR_NONE) clb_select_channel(c, 0); /* all of its lanes have an edge */
}

ir_val clb_edge_in_block(const clb_convolution *c) {
  ir_kernel *k = of(c);
  return ir_cast(k, IR_I64, ir_sub(k, ir_cast(k, IR_I32, c->edge), c->walk.e0));
}

/* ---- operands ---- */

/* The weight W, or c = q W' for the tangent q along r (spline.h). */
static void spline(clb_convolution *c, int order, const clb_path *p, ir_val v[][MAX_M]) {
  ir_val knots[CLB_MAX_PER_LANE][CLB_SPLINE_ORDER];
  const int n = c->unit.per_lane;
  if (order) {
    clb_edge_vectors(c, W, 0, p); /* computes the derivative, too */
    for (int j = 0; j < n; j++) v[j][0] = ir_mul(of(c), c->spline.along, c->spline.by_r[j]);
    return;
  }
  clb_select_channel(c, 0);
  clb_spline_load(&c->spline, &c->f, p, &c->unit, knots);
  for (int j = 0; j < n; j++) v[j][0] = clb_spline_weight(&c->spline, &c->f, j, knots[j]);
}

/* The index of the first current channel of a term's component, or of a path's weight.  `wide`
   stays true if these channels are aligned to 16 bytes in rows that are. */
static ir_val first_of(clb_convolution *c, const clb_form_array *a, int term, const clb_path *p,
                       int component, int width, bool *wide) {
  clb_select_channel(c, 0);
  if (term < 0) {
    *wide &= p->weight_at % width == 0;
    return ir_add(of(c), clb_form_weight(&c->f, a, p), c->unit.channel);
  }
  const clb_term *t = &a->irreps->term[term];
  *wide &= a->layout == CLB_IR_MUL && (t->at + component * clb_component_stride(t)) % width == 0;
  return clb_form_component(&c->f, a, t, component, c->unit.channel);
}

/* The width of accesses to the n channels of a lane, of this element; `wide`: whether they may be
   aligned to it. */
static int access_width(const clb_convolution *c, const clb_form_array *a, bool *wide) {
  const int n = c->unit.per_lane, bytes = ir_type_bytes(a->rows.element),
            most = bytes < 4 ? 1 : 16 / bytes, width = n < most ? n : most;
  *wide =
      width > 1 && c->unit.channel_stride == 1 && !c->f.s->scalar_access && !c->s->unaligned_rows;
  return width;
}

/* Loads component i of a term of x, or (term -1) a path's weight, of all channels of a lane, in
   wide accesses.  Returns false if rows or channels do not allow that. */
static bool get_component(clb_convolution *c, const clb_form_array *a, int term, const clb_path *p,
                          int i, ir_val v[][MAX_M]) {
  ir_kernel *k = of(c);
  bool wide;
  const int width = access_width(c, a, &wide);
  ir_val all[CLB_MAX_PER_LANE], index = first_of(c, a, term, p, i, width, &wide);
  if (!wide || !c->s->roles) return false;
  for (int j = 0; j < c->unit.per_lane; j += width)
    ir_load_aligned(k, a->rows.buffer, ir_add(k, index, i64(c, j)), c->unit.mask, width, all + j);
  for (int j = 0; j < c->unit.per_lane; j++) v[j][i] = ir_cast(k, c->f.t, all[j]);
  return true;
}

/* The same of all components, as far as they can be read that way. */
static bool get_channels(clb_convolution *c, const clb_form_array *a, int term, const clb_path *p,
                         ir_val v[][MAX_M]) {
  const int n = term < 0 ? 1 : clb_width(&a->irreps->term[term]);
  for (int i = 0; i < n; i++)
    if (!get_component(c, a, term, p, i, v)) return false;
  return true;
}

const ir_val (*clb_edge_vectors(clb_convolution *c, int slot, int order,
                                const clb_path *p))[MAX_M] {
  const clb_form_array *a = &c->f.in[slot][order];
  clb_cached_operand *cached = &c->cached[slot][order];
  const int source = slot == X ? p->in1 : (int)(p - c->f.tp->path), at = c->unit.current;
  if (cached->source == source) return (const ir_val(*)[MAX_M])cached->v;
  cached->source = source;
  for (int j = 0; j < c->unit.per_lane; j++) clb_no_values(cached->v[j], MAX_M);
  if (slot == W && c->f.p->convolution.spline) spline(c, order, p, cached->v);
  else if (c->stage.stages) clb_stage_load(&c->stage, c, slot, order, p, cached->v);
  else if (!get_channels(c, a, slot == X ? p->in1 : -1, p, cached->v))
    for (int j = 0; j < c->unit.per_lane; j++) {
      clb_select_channel(c, j);
      if (slot == X) clb_form_load(&c->f, a, p->in1, c->unit.channel, c->unit.mask, cached->v[j]);
      else cached->v[j][0] = clb_form_load_weight(&c->f, a, p, c->unit.channel, c->unit.mask);
    }
  clb_select_channel(c, at);
  return (const ir_val(*)[MAX_M])cached->v;
}

int clb_local_g_size(const clb_problem *p, const clb_parts *parts, const clb_schedule *s) {
  int most = 0;
  for (int part = 0; part < parts->n && s->convolution.one_walk == 2; part++) {
    int n = 0;
    for (int t = 0; t < p->tensor_product.z.n; t++)
      if (parts->of_z[t] == part) n += clb_width(&p->tensor_product.z.term[t]);
    if (n * parts->per_lane[part] * s->lanes > most) most = n * parts->per_lane[part] * s->lanes;
  }
  return most;
}

/* i32: where this lane's channels of the first component of a term are, each component `apart`
   elements after the one before; and how many channels are accessed at once. */
static ir_val local_g_at(const clb_convolution *c, int term, int *apart, int *width) {
  ir_kernel *k = of(c);
  const int n = c->unit.per_lane, most = 16 / ir_type_bytes(c->f.t);
  int before = 0;
  for (int t = 0; t < term; t++)
    if (c->parts.of_z[t] == c->parts.of_z[term]) before += clb_width(&c->f.tp->z.term[t]);
  *apart = n * c->f.s->lanes;
  *width = n < most ? n : most;
  ir_val own = ir_mul(k, ir_subgroup(k), i32(c, clb_local_g_size(c->f.p, &c->parts, c->f.s)));
  return ir_add(k, ir_add(k, own, ir_mul(k, ir_lane(k), i32(c, n))),
                i32(c, (int64_t)before * *apart));
}

void clb_keep_g(clb_convolution *c, int part) {
  for (int t = 0; t < c->f.tp->z.n && c->local_g != IR_NONE; t++) {
    int apart, width;
    if (c->parts.of_z[t] != part) continue;
    ir_val at = local_g_at(c, t, &apart, &width), v[CLB_MAX_PER_LANE];
    for (int i = 0; i < clb_width(&c->f.tp->z.term[t]) * c->unit.per_lane; i += width) {
      const int component = i / c->unit.per_lane, j = i % c->unit.per_lane;
      for (int q = 0; q < width; q++) v[q] = c->g[j + q][t][component];
      (width > 1 ? ir_store_aligned : ir_store_wide)(
          of(c), c->local_g, ir_add(of(c), at, i32(c, (int64_t)component * apart + j)), IR_NONE,
          width, v);
    }
  }
}

const ir_val (*clb_edge_g(clb_convolution *c, int term))[MAX_M] {
  clb_cached_operand *cached = &c->cached[Z][0];
  int apart, width;
  if (cached->source == term) return (const ir_val(*)[MAX_M])cached->v;
  cached->source = term;
  for (int j = 0; j < c->unit.per_lane && c->local_g == IR_NONE; j++)
    memcpy(cached->v[j], c->g[j][term], sizeof cached->v[j]);
  if (c->local_g == IR_NONE) return (const ir_val(*)[MAX_M])cached->v;
  ir_val at = local_g_at(c, term, &apart, &width), v[CLB_MAX_PER_LANE];
  for (int i = 0; i < clb_width(&c->f.tp->z.term[term]) * c->unit.per_lane; i += width) {
    const int component = i / c->unit.per_lane, j = i % c->unit.per_lane;
    (width > 1 ? ir_load_aligned : ir_load_wide)(
        of(c), c->local_g, ir_add(of(c), at, i32(c, (int64_t)component * apart + j)), IR_NONE,
        width, v);
    for (int q = 0; q < width; q++) cached->v[j + q][component] = v[q];
  }
  return (const ir_val(*)[MAX_M])cached->v;
}

void clb_load_scaled(clb_convolution *c, int term, ir_val *v) {
  clb_form_load(&c->f, &c->f.in[Z][0], term, c->unit.channel, c->unit.mask, v);
  for (int i = 0; i < clb_width(&c->f.tp->z.term[term]); i++)
    v[i] = ir_mul(of(c), v[i], ir_real(of(c), c->f.t, c->scale[term][i]));
}

void clb_edge_load(void *owner, int slot, int order, ir_val *v) {
  const clb_channel *channel = owner;
  clb_convolution *c = channel->c;
  const clb_path *p = c->builder[channel->number].path;
  const int term = clb_path_term(p, slot),
            n = slot == W ? 1
                          : clb_width(slot == X ? &c->f.tp->x.term[term] : &c->f.tp->z.term[term]);
  if (slot == Z && c->f.s->accumulate_in_memory) {
    clb_load_scaled(c, term, v);
    return;
  }
  const ir_val *from = slot == Z ? clb_edge_g(c, term)[channel->number]
                                 : clb_edge_vectors(c, slot, order, p)[channel->number];
  for (int i = 0; i < n; i++) v[i] = from[i];
}

void clb_load_y(clb_convolution *c, int term) {
  ir_kernel *k = of(c);
  const clb_term *t = &c->f.tp->y.term[term];
  for (int order = 0; order < clb_orders(c->f.p); order++)
    for (int j = t->at; j < t->at + t->mul * clb_width(t) && clb_reads(c->f.tp, Y, order);
         j++) /* mul is 1 in terms that have paths */
      c->builder[0].y[order][j] =
          ir_cast(k, c->f.t,
                  ir_load(k, c->f.in[Y][order].rows.buffer,
                          ir_add(k, c->f.in[Y][order].base, i64(c, j)), IR_NONE));
}

bool clb_by_terms_of_y(const clb_convolution *c) {
  return c->s->edges_per_batch && c->batch.sums == IR_NONE;
}

/* Starts an edge whose operands are staged: its ends, the spline at its length, the elements of y.
 */
static void staged(clb_convolution *c, ir_val edge_slot, ir_val last) {
  ir_kernel *k = of(c);
  clb_stage *g = &c->stage;
  clb_stage_edge(g, c, edge_slot, last, &c->sender, &c->edge);
  if (c->f.p->convolution.spline) {
    ir_val own[ORDERS] = {IR_NONE, IR_NONE};
    for (int order = 0; order < clb_orders(c->f.p); order++)
      if (clb_reads(c->f.tp, W, order))
        own[order] = ir_cast(
            k, c->f.t, ir_load(k, g->array, ir_add(k, g->base, i32(c, g->r + order)), IR_NONE));
    clb_spline_edge(&c->spline, &c->f, own);
  }
  for (int order = 0; order < clb_orders(c->f.p) && !c->frame.l; order++)
    if (clb_reads(c->f.tp, Y, order)) clb_stage_y(g, c, order, c->builder[0].y[order]);
}

/* Finds the ends and places of the next edges, each lane one. */
static void find_edges(clb_convolution *c, ir_val edge_slot, ir_val last) {
  ir_kernel *k = of(c);
  clb_ahead *a = &c->ahead;
  const int slices = clb_slices(&c->unit, &c->f);
  ir_val own = ir_add(k, edge_slot, ir_mul(k, c->unit.lane, i32(c, slices)));
  if (c->unit.slice != IR_NONE) own = ir_add(k, own, c->unit.slice);
  ir_val at = ir_cast(k, IR_I64, ir_2(k, IR_MIN, own, ir_sub(k, last, i32(c, 1)))),
         edge = ir_load(k, c->walk.edge, at, IR_NONE);
  ir_set(k, a->sender, ir_load(k, c->other, at, IR_NONE));
  ir_set(k, a->edge, edge);
  if (!c->f.p->convolution.spline) return;
  clb_form_array r = c->f.in[W][0];
  clb_form_row(&c->f, &r, ir_cast(k, IR_I64, edge));
  const clb_spline_place p = clb_spline_place_of(
      &c->spline, &c->f, ir_cast(k, c->f.t, ir_load(k, r.rows.buffer, r.base, IR_NONE)));
  ir_set(k, a->place.row, p.row);
  ir_set(k, a->place.u, p.u);
  if (c->f.p->pass != CLB_FORWARD) ir_set(k, a->place.rate, p.rate);
  if (bends(c)) ir_set(k, a->place.inverse, p.inverse);
}

/* What a variable of clb_ahead has for the current edge. */
static ir_val passed(clb_convolution *c, ir_val var, ir_val lane) {
  return ir_shuffle(of(c), ir_get(of(c), var), lane);
}

static void pass_edge(clb_convolution *c, ir_val edge_slot, ir_val last) {
  ir_kernel *k = of(c);
  clb_ahead *a = &c->ahead;
  const bool spline = c->f.p->convolution.spline;
  ir_val turn = ir_get(k, a->turn), lane = turn;
  ir_if(k, ir_2(k, IR_EQ, turn, i32(c, 0)));
  find_edges(c, edge_slot, last);
  ir_end(k);
  if (c->unit.slice != IR_NONE)
    lane = ir_add(k, ir_mul(k, c->unit.slice, i32(c, c->unit.width)), turn);
  c->sender = ir_cast(k, IR_I64, passed(c, a->sender, lane));
  c->edge = ir_cast(k, IR_I64, passed(c, a->edge, lane));
  ir_val next = ir_add(k, turn, i32(c, 1));
  ir_set(k, a->turn, ir_select(k, ir_2(k, IR_EQ, next, i32(c, c->unit.width)), i32(c, 0), next));
  if (!spline) return;
  ir_val zero = ir_real(k, c->f.t, 0), along = IR_NONE;
  clb_spline_place p = {.rate = zero, .inverse = zero};
  p.row = passed(c, a->place.row, lane);
  p.u = passed(c, a->place.u, lane);
  if (c->f.p->pass != CLB_FORWARD) p.rate = passed(c, a->place.rate, lane);
  if (bends(c)) {
    p.inverse = passed(c, a->place.inverse, lane);
    clb_form_row(&c->f, &c->f.in[W][1], c->edge);
    along = ir_cast(k, c->f.t, ir_load(k, c->f.in[W][1].rows.buffer, c->f.in[W][1].base, IR_NONE));
  }
  clb_spline_at(&c->spline, &c->f, &p, along);
}

void clb_edge_begin(clb_convolution *c, ir_val edge_slot, ir_val last) {
  ir_kernel *k = of(c);
  if (c->stage.stages) staged(c, edge_slot, last);
  else if (looks_ahead(c)) pass_edge(c, edge_slot, last);
  ir_val at = ir_cast(k, IR_I64, clb_slice_edge_slot(&c->unit, &c->f, edge_slot, last));
  c->unit.has_edge =
      c->unit.slice == IR_NONE ? IR_NONE : less(c, ir_add(k, edge_slot, c->unit.slice), last);
  if (c->unit.slice != IR_NONE) clb_select_channel(c, 0); /* sets the lanes that write */
  int orders = clb_orders(c->f.p);
  if (!c->stage.stages && !looks_ahead(c)) {
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
                   shares      ? clb_edge_in_block(c)
                   : slot == X ? c->sender
                               : c->edge);
  }
  for (int t = 0; t < c->f.tp->y.n && !c->stage.stages && !c->frame.l && !clb_by_terms_of_y(c); t++)
    clb_load_y(c, t);
  if (c->f.p->convolution.spline && !c->stage.stages && !looks_ahead(c)) {
    ir_val r[ORDERS] = {IR_NONE, IR_NONE};
    for (int order = 0; order < orders; order++)
      if (clb_reads(c->f.tp, W, order))
        r[order] = ir_cast(
            k, c->f.t, ir_load(k, c->f.in[W][order].rows.buffer, c->f.in[W][order].base, IR_NONE));
    clb_spline_edge(&c->spline, &c->f, r);
  }
  const bool adds = c->unit.has_edge != IR_NONE && clb_wanted_output(&c->f, Z) >= 0;
  for (int i = 0; i < CLB_SPLINE_ORDER && adds && clb_weights_clear(c); i++)
    c->spline.value[i] = ir_select(k, c->unit.has_edge, c->spline.value[i], ir_real(k, c->f.t, 0));
  for (int i = 0; adds && !c->frame.l && !clb_weights_clear(c) && i < orders * c->f.tp->y.dim;
       i++) {
    int order = i / c->f.tp->y.dim, j = i % c->f.tp->y.dim;
    if (clb_reads(c->f.tp, Y, order))
      c->builder[0].y[order][j] =
          ir_select(k, c->unit.has_edge, c->builder[0].y[order][j], ir_real(k, c->f.t, 0));
  }
  for (int j = 1; j < c->unit.per_lane; j++)
    memcpy(c->builder[j].y, c->builder[0].y, sizeof c->builder[0].y);
  invalidate_operands(c);
}

/* ---- results ---- */

typedef enum { OVERWRITE, ADD, ADD_ATOMIC } store_mode;

/* Stores or adds n channels of a lane from `index` on, `width` at a time. */
static void put(clb_convolution *c, const clb_form_array *a, ir_val index, int n, int width,
                const ir_val *v, ir_val mask, store_mode mode) {
  ir_kernel *k = of(c);
  for (int j = 0; j < n; j += width) {
    ir_val at = ir_add(k, index, i64(c, (int64_t)j * c->unit.channel_stride)),
           old[CLB_MAX_PER_LANE], sum[CLB_MAX_PER_LANE];
    if (mode == ADD_ATOMIC) {
      if (width > 1) ir_atomic_add_aligned(k, a->rows.buffer, at, mask, width, v + j);
      else ir_atomic_add(k, a->rows.buffer, at, mask, v[j]);
      continue;
    }
    const bool add = mode == ADD;
    if (add) (width > 1 ? ir_load_aligned : ir_load_wide)(k, a->rows.buffer, at, mask, width, old);
    for (int i = 0; i < width; i++) {
      sum[i] = add ? ir_add(k, v[j + i], ir_cast(k, c->f.t, old[i])) : v[j + i];
      sum[i] = ir_cast(k, ir_register_type(a->rows.element), sum[i]);
    }
    (width > 1 ? ir_store_aligned : ir_store_wide)(k, a->rows.buffer, at, mask, width, sum);
  }
}

/* The same of component i of a term, or of a path's weight. */
static void put_component(clb_convolution *c, int o, int term, const clb_path *p, int i,
                          ir_val v[][MAX_M], ir_val mask, store_mode mode) {
  ir_kernel *k = of(c);
  const clb_form_array *a = &c->f.out[o];
  const int n = c->unit.per_lane;
  bool wide, none = true;
  const int width = access_width(c, a, &wide);
  ir_val channels[CLB_MAX_PER_LANE], index = first_of(c, a, term, p, i, width, &wide);
  for (int j = 0; j < n; j++) {
    none &= v[j][i] == IR_NONE;
    channels[j] = v[j][i] == IR_NONE ? ir_real(k, c->f.t, 0) : v[j][i];
  }
  if (none && mode == ADD_ATOMIC) return;
  if (wide) put(c, a, index, n, width, channels, mask, mode);
  else if (term >= 0 && a->layout == CLB_MUL_IR)
    for (int j = 0; j < n; j++) {
      clb_select_channel(c, j);
      put(c, a, clb_form_component(&c->f, a, &a->irreps->term[term], i, c->unit.channel), 1, 1,
          channels + j, mask, mode);
    }
  else put(c, a, index, n, 1, channels, mask, mode);
}

void clb_store_channels(clb_convolution *c, int o, int term, const clb_path *p, ir_val v[][MAX_M],
                        ir_val mask, bool add) {
  const clb_form_array *a = &c->f.out[o];
  const int components = term < 0 ? 1 : clb_width(&a->irreps->term[term]);
  const bool side =
      term >= 0 && a->layout == CLB_MUL_IR; /* a channel's components are contiguous */
  for (int j = 0; side && j < c->unit.per_lane; j++) {
    clb_select_channel(c, j);
    clb_form_put(&c->f, a, term, c->unit.channel, mask, v[j], add);
  }
  for (int i = 0; !side && i < components; i++)
    put_component(c, o, term, p, i, v, mask, add ? ADD : OVERWRITE);
}

void clb_store_x(clb_convolution *c, int term, int o, ir_val v[][MAX_M], bool add) {
  if (!c->f.p->convolution.atomics) clb_store_channels(c, o, term, NULL, v, c->unit.write, add);
  else
    for (int i = 0; i < clb_width(&c->f.tp->x.term[term]); i++)
      put_component(c, o, term, NULL, i, v, c->unit.write, ADD_ATOMIC);
}
