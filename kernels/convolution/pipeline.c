/* kernels/convolution/pipeline.c - a convolution's operands of the next edges, copied into local
   memory while the current edge is computed.

   Each sub-group copies for itself, so that sub-groups need not wait for each other.  A stage holds
   the operands of one edge of each slice: the chunks of w and x of the sub-group's block of
   channels and the elements of y. */
#include <string.h>

#include "kernels/convolution/builder.h"

static ir_kernel *of(const clb_convolution *c) { return c->f.k; }
static ir_val i32(const clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I32, n); }
static ir_val i64(const clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I64, n); }

/* ---- the layout of a stage ---- */

/* Chunks of x that a part reads. */
static int count_x(const clb_tensor_product_problem *tp, const clb_parts *parts, int part) {
  int n = 0;
  for (int t = 0; t < tp->x.n; t++)
    if (clb_part_reads(tp, parts, part, t)) n += clb_width(&tp->x.term[t]);
  return n;
}

static int count_w(const clb_problem *p, const clb_parts *parts, int part) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  int n = 0;
  for (int q = 0; q < tp->n_paths; q++)
    n += parts->of_z[tp->path[q].out] == part && tp->path[q].has_weight;
  return p->convolution.spline ? 0 : n;
}

enum {
  LENGTH = 4, /* elements for an edge's length and its tangent in a stage, so that all offsets stay
                 aligned */
  LINE = 128  /* bytes of a line of local memory: copies of lines to other places than the start of
                 one take two turns each, half as much time again for a kernel on an H100 */
};
static int y_size(const clb_problem *p, const clb_schedule *s, int order) {
  return (clb_y_size(p, s, order) + 3) / 4 * 4;
}

/* Elements of an edge in a stage: whole lines, or, where a slice reads less than one at a time,
   padded so that slices read from different banks; INT32_MAX: too many chunks. */
static int size_of_edge(const clb_problem *p, const clb_parts *parts, const clb_schedule *s,
                        int part) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  int width = clb_slice_width(s, parts->mul[part], parts->per_lane[part]),
      n_x = count_x(tp, parts, part) * parts->per_lane[part],
      n_w = count_w(p, parts, part) * parts->per_lane[part];
  int size = p->convolution.spline ? LENGTH : 0;
  for (int order = 0; order < clb_orders(p); order++)
    size += clb_reads(tp, X, order) * n_x * width + clb_reads(tp, W, order) * n_w * width +
            clb_reads(tp, Y, order) * y_size(p, s, order);
  const int bytes = ir_type_bytes(clb_ir_type((clb_dtype)p->storage)), line = LINE / bytes;
  if (width == s->lanes || width * parts->per_lane[part] * bytes >= LINE)
    size = (size + line - 1) / line * line;
  else
    size += (s->lanes + (width > 4 ? width : 4) - size % s->lanes) %
            s->lanes; /* offsets stay aligned */
  return n_x > CLB_MAX_CHUNKS || n_w > CLB_MAX_CHUNKS ? INT32_MAX : size;
}

int clb_stage_size(const clb_problem *p, const clb_parts *parts, const clb_schedule *s) {
  int most = 0;
  for (int part = 0; part < parts->n; part++) {
    int slices = s->lanes / clb_slice_width(s, parts->mul[part], parts->per_lane[part]),
        size = size_of_edge(p, parts, s, part);
    if (size == INT32_MAX) return size;
    if (slices * size > most) most = slices * size;
  }
  return most;
}

void clb_stage_begin(clb_stage *g, const clb_convolution *c) {
  const clb_schedule *s = c->f.s;
  g->stages = s->convolution.pipeline_stages;
  if (!g->stages) return;
  memcpy(g->in, c->f.in, sizeof g->in);
  g->stage_size = clb_stage_size(c->f.p, &c->parts, s);
  g->array = ir_local(of(c), clb_ir_type((clb_dtype)c->f.p->storage),
                      (int64_t)s->subgroups * g->stages * g->stage_size);
  g->current = ir_var(of(c), i32(c, 0), true);
  bool uniform = s->convolution.edges_per_subgroup < 2;
  for (int i = 0; i < g->stages; i++) {
    g->sender[i] = ir_var(of(c), i32(c, 0), uniform);
    g->edge[i] = ir_var(of(c), i32(c, 0), uniform);
  }
  g->first_stage = ir_mul(of(c), ir_subgroup(of(c)), i32(c, (int64_t)g->stages * g->stage_size));
}

/* Elements of a chunk. */
static int chunk_size(const clb_convolution *c) { return c->unit.width * c->unit.per_lane; }

static void chunks_of_x(const clb_convolution *c, int part, clb_staged_operand *o) {
  const clb_irreps *x = &c->f.tp->x;
  for (int t = 0; t < x->n; t++) {
    int width = clb_width(&x->term[t]), side = c->f.tp->layout_x == CLB_MUL_IR;
    if (!clb_part_reads(c->f.tp, &c->parts, part, t)) continue;
    for (int m = 0; m < width; m++, o->n++) {
      o->from[o->n] = x->term[t].at + (int64_t)m * (side ? chunk_size(c) : x->term[t].mul);
      o->step[o->n] = side ? width : 1;
      o->source[o->n] = t;
      o->in_run[o->n] = side ? m : 0;
    }
  }
}

static void chunks_of_w(const clb_convolution *c, int part, clb_staged_operand *o) {
  const clb_tensor_product_problem *tp = c->f.tp;
  for (int q = 0; q < tp->n_paths && !c->f.p->convolution.spline; q++) {
    const clb_path *p = &tp->path[q];
    if (c->parts.of_z[p->out] != part || !p->has_weight) continue;
    o->step[o->n] = 1;
    o->source[o->n] = q;
    o->in_run[o->n] = 0;
    o->from[o->n++] = p->weight_at;
  }
}

static void lay_out(clb_stage *g, const clb_convolution *c, int part) {
  int at = 0;
  g->first = ir_cast(of(c), IR_I64, c->unit.first);
  for (int order = 0; order < clb_orders(c->f.p); order++) {
    clb_staged_operand *operands[] = {&g->w[order], &g->x[order]};
    const int slots[] = {W, X};
    for (int i = 0; i < 2; i++) {
      operands[i]->n = 0;
      (slots[i] == W ? chunks_of_w : chunks_of_x)(c, part, operands[i]);
      operands[i]->array = &g->in[slots[i]][order];
      operands[i]->at = at;
      if (!clb_reads(c->f.tp, slots[i], order)) operands[i]->n = 0;
      at += operands[i]->n * chunk_size(c);
    }
    g->y[order] = at;
    if (clb_reads(c->f.tp, Y, order)) at += y_size(c->f.p, c->f.s, order);
  }
  g->r = at;
  g->edge_size = size_of_edge(c->f.p, &c->parts, c->f.s, part);
}

/* ---- copies ---- */

/* i64: index in global memory of element `inside` (i32) of the chunk that this lane copies: one of
   first ... first + n - 1, of `share` lanes each.  Constants are added last, so that copies share
   the rest of their addresses. */
static ir_val chunk_element(const clb_convolution *c, const clb_staged_operand *o, int first,
                            int share, ir_val inside) {
  ir_kernel *k = of(c);
  int n = c->unit.width / share, there = o->n - first < n ? o->n - first : n;
  ir_val which = ir_2(k, IR_DIV, c->unit.lane, i32(c, share)),
         skipped = ir_mul(k, c->stage.first, i64(c, o->step[first]));
  ir_val near = ir_add(k, o->array->base, ir_add(k, skipped, ir_cast(k, IR_I64, inside)));
  int64_t apart = o->n > 1 ? o->from[1] - o->from[0] : 0;
  bool even = true;
  for (int j = 1; j < there; j++)
    even &=
        o->from[first + j] == o->from[first] + j * apart && o->step[first + j] == o->step[first];
  if (even && n == 1) return ir_add(k, near, i64(c, o->from[first]));
  if (even)
    return ir_add(k, ir_add(k, near, ir_mul(k, ir_cast(k, IR_I64, which), i64(c, apart))),
                  i64(c, o->from[first]));
  bool alike = true;
  for (int j = 1; j < there; j++) alike &= o->step[first + j] == o->step[first];
  if (!alike) near = ir_add(k, o->array->base, ir_cast(k, IR_I64, inside));
  ir_val start = IR_NONE;
  for (int j = 0; j < there; j++) {
    ir_val own = alike ? i64(c, o->from[first + j] - o->from[first])
                       : ir_add(k, i64(c, o->from[first + j]),
                                ir_mul(k, c->stage.first, i64(c, o->step[first + j])));
    start = start == IR_NONE ? own : ir_select(k, ir_2(k, IR_EQ, which, i32(c, j)), own, start);
  }
  near = ir_add(k, near, start);
  return alike ? ir_add(k, near, i64(c, o->from[first])) : near;
}

/* 16 bytes per lane: several chunks at once, or one chunk in several copies. */
static void copy_vectors(const clb_convolution *c, const clb_staged_operand *o, ir_val stage,
                         int width) {
  ir_kernel *k = of(c);
  int lanes = c->unit.width, vectors = chunk_size(c) / width,
      share = vectors < lanes ? vectors : lanes, chunks = lanes / share;
  ir_val lane = ir_2(k, IR_MOD, c->unit.lane, i32(c, share));
  for (int first = 0; first < o->n; first += chunks)
    for (int vector = 0; vector < vectors; vector += share) {
      ir_val at = ir_add(k, ir_add(k, stage, ir_mul(k, c->unit.lane, i32(c, width))),
                         i32(c, o->at + (int64_t)first * chunk_size(c) + vector * width));
      ir_val inside = ir_mul(k, ir_add(k, lane, i32(c, vector)), i32(c, width)),
             from = chunk_element(c, o, first, share, inside);
      ir_val mask = o->n - first < chunks
                        ? ir_2(k, IR_LT, c->unit.lane, i32(c, (int64_t)(o->n - first) * share))
                        : IR_NONE;
      ir_copy_aligned(k, c->stage.array, at, o->array->rows.buffer, from, mask, width);
    }
}

static void copy_elements(const clb_convolution *c, const clb_staged_operand *o, ir_val stage) {
  ir_kernel *k = of(c);
  int lanes = c->unit.width, size = chunk_size(c);
  for (int i = 0; i < o->n * c->unit.per_lane; i++) {
    int j = i / c->unit.per_lane, skipped = i % c->unit.per_lane * lanes;
    ir_val inside = ir_add(k, c->unit.lane, i32(c, skipped)),
           at = ir_add(k, ir_add(k, stage, c->unit.lane),
                       i32(c, o->at + (int64_t)j * size + skipped)),
           from = chunk_element(c, o, j, lanes, inside), mask = IR_NONE;
    if (c->unit.mul % lanes) /* of a run of chunks only these elements exist */
      mask = ir_2(k, IR_LT, ir_add(k, inside, i32(c, (int64_t)o->in_run[j] * size)),
                  ir_mul(k, ir_sub(k, i32(c, c->unit.mul), c->unit.first), i32(c, o->step[j])));
    ir_copy(k, c->stage.array, at, o->array->rows.buffer, from, mask, 1);
  }
}

static void copy_y(const clb_convolution *c, int order, ir_val stage, int width) {
  ir_kernel *k = of(c);
  const clb_form_array *a = &c->stage.in[Y][order];
  int n = clb_y_size(c->f.p, c->f.s, order), lanes = c->unit.width;
  for (int first = 0; first < n; first += lanes * width) {
    ir_val lane = ir_mul(k, c->unit.lane, i32(c, width)), element = ir_add(k, lane, i32(c, first)),
           at = ir_add(k, ir_add(k, stage, lane), i32(c, c->stage.y[order] + first));
    ir_val from = ir_add(k, ir_add(k, a->base, ir_cast(k, IR_I64, lane)), i64(c, first)),
           mask = n - first < lanes * width ? ir_2(k, IR_LT, element, i32(c, n)) : IR_NONE;
    if (width > 1) ir_copy_aligned(k, c->stage.array, at, a->rows.buffer, from, mask, width);
    else ir_copy(k, c->stage.array, at, a->rows.buffer, from, mask, 1);
  }
}

/* Whether all chunks are full and aligned to 16 bytes, in rows that are. */
static bool is_aligned(const clb_convolution *c, int width) {
  const clb_stage *g = &c->stage;
  bool all = !c->f.s->scalar_access && !c->s->unaligned_rows && c->unit.mul % c->unit.width == 0 &&
             c->unit.width % width == 0 && clb_y_size(c->f.p, c->f.s, 0) % width == 0 &&
             g->stage_size % width == 0 && g->edge_size % width == 0;
  for (int order = 0; order < clb_orders(c->f.p); order++) {
    for (int j = 0; j < g->w[order].n; j++) all &= g->w[order].from[j] % width == 0;
    for (int j = 0; j < g->x[order].n; j++) all &= g->x[order].from[j] % width == 0;
  }
  return all;
}

static void copy_operands(const clb_convolution *c, ir_val stage, int width) {
  for (int order = 0; order < clb_orders(c->f.p); order++) {
    const clb_staged_operand *operands[] = {&c->stage.w[order], &c->stage.x[order]};
    for (int i = 0; i < 2; i++) {
      if (width > 1) copy_vectors(c, operands[i], stage, width);
      else copy_elements(c, operands[i], stage);
    }
    if (clb_reads(c->f.tp, Y, order)) copy_y(c, order, stage, width);
  }
}

/* Start of the edge of this lane's slice in stage `number`. */
static ir_val edge_in_stage(const clb_convolution *c, ir_val number) {
  ir_kernel *k = of(c);
  ir_val stage = ir_add(k, c->stage.first_stage, ir_mul(k, number, i32(c, c->stage.stage_size)));
  return c->unit.slice == IR_NONE
             ? stage
             : ir_add(k, stage, ir_mul(k, c->unit.slice, i32(c, c->stage.edge_size)));
}

/* Starts copies of an edge slot's operands into stage `number`, and commits them as one group,
   empty beyond the last slot. */
static void prefetch(clb_stage *g, const clb_convolution *c, ir_val edge_slot, ir_val last,
                     ir_val sender, ir_val edge, ir_val number) {
  ir_kernel *k = of(c);
  int width = 16 / (int)ir_type_bytes(ir_element_type(k, g->array));
  ir_if(k, ir_2(k, IR_LT, edge_slot, last));
  for (int slot = X; slot <= W; slot++)
    for (int order = 0; order < clb_orders(c->f.p); order++)
      clb_form_row(&c->f, &g->in[slot][order], ir_cast(k, IR_I64, slot == X ? sender : edge));
  ir_val stage = edge_in_stage(c, number);
  if (c->f.p->convolution.spline) {
    for (int order = 0; order < clb_orders(c->f.p); order++) {
      const clb_form_array *a = &g->in[W][order];
      if (clb_reads(c->f.tp, W, order))
        ir_copy(k, g->array, ir_add(k, stage, i32(c, g->r + order)), a->rows.buffer, a->base,
                ir_2(k, IR_LT, c->unit.lane, i32(c, 1)), 1);
    }
  }
  copy_operands(c, stage, is_aligned(c, width) ? width : 1);
  ir_end(k);
  ir_copy_commit(k);
}

static void load_ends(const clb_convolution *c, ir_val edge_slot, ir_val last, ir_val *sender,
                      ir_val *edge) {
  ir_kernel *k = of(c);
  ir_val there = ir_2(k, IR_LT, edge_slot, last),
         at = ir_cast(k, IR_I64, clb_slice_edge_slot(&c->unit, &c->f, edge_slot, last));
  *sender = ir_load(k, c->other, at, there);
  *edge = ir_load(k, c->walk.edge, at, there);
}

/* ---- the loop over edges ---- */

void clb_stage_open(clb_stage *g, const clb_convolution *c, int part, ir_val first, ir_val last) {
  ir_kernel *k = of(c);
  ir_val sender, edge;
  lay_out(g, c, part);
  ir_set(k, g->current, i32(c, 0));
  if (!c->s->roles)
    ir_barrier(k, false); /* the part before has been read; a role does one part only */
  ir_val stage = ir_loop(k, i32(c, 0), i32(c, g->stages - 1), i32(c, 1)),
         edge_slot = ir_add(k, first, ir_mul(k, stage, i32(c, clb_slices(&c->unit, &c->f))));
  load_ends(c, edge_slot, last, &sender, &edge);
  prefetch(g, c, edge_slot, last, sender, edge, stage);
  ir_end(k);
  for (int i = 0; i < g->stages; i++) {
    load_ends(c, ir_add(k, first, i32(c, i * clb_slices(&c->unit, &c->f))), last, &sender, &edge);
    ir_set(k, g->sender[i], sender);
    ir_set(k, g->edge[i], edge);
  }
}

/* Shifts the ends of edges by one and loads those of one more. */
static void advance_ends(clb_stage *g, const clb_convolution *c, ir_val ahead, ir_val last) {
  ir_kernel *k = of(c);
  ir_val sender, edge, next = ir_add(k, ahead, i32(c, clb_slices(&c->unit, &c->f)));
  load_ends(c, next, last, &sender, &edge);
  for (int i = 0; i < g->stages; i++) {
    ir_set(k, g->sender[i], i + 1 < g->stages ? ir_get(k, g->sender[i + 1]) : sender);
    ir_set(k, g->edge[i], i + 1 < g->stages ? ir_get(k, g->edge[i + 1]) : edge);
  }
}

void clb_stage_edge(clb_stage *g, const clb_convolution *c, ir_val edge_slot, ir_val last,
                    ir_val *sender, ir_val *edge) {
  ir_kernel *k = of(c);
  ir_val current = ir_get(k, g->current),
         before = ir_select(k, ir_2(k, IR_EQ, current, i32(c, 0)), i32(c, g->stages - 1),
                            ir_sub(k, current, i32(c, 1)));
  ir_val ahead = ir_add(k, edge_slot, i32(c, (g->stages - 1) * clb_slices(&c->unit, &c->f)));
  ir_copy_wait(k, g->stages - 2);
  ir_barrier(k, false);
  prefetch(g, c, ahead, last, ir_get(k, g->sender[g->stages - 1]),
           ir_get(k, g->edge[g->stages - 1]), before);
  *sender = ir_cast(k, IR_I64, ir_get(k, g->sender[0]));
  *edge = ir_cast(k, IR_I64, ir_get(k, g->edge[0]));
  advance_ends(g, c, ahead, last);
  g->base = edge_in_stage(c, current);
}

/* n numbers of the current stage from `at` on. */
static void numbers(const clb_stage *g, const clb_convolution *c, int at, int n, ir_val *v) {
  ir_kernel *k = of(c);
  const int width = 16 / (int)ir_type_bytes(ir_element_type(k, g->array));
  const bool aligned = at % width == 0 && g->edge_size % width == 0 && g->stage_size % width == 0;
  for (int i = 0, w; i < n; i += w) {
    w = n - i < width ? 1 : width;
    (aligned && w == width ? ir_load_aligned : ir_load_wide)(
        k, g->array, ir_add(k, g->base, i32(c, at + i)), IR_NONE, w, v + i);
  }
}

void clb_stage_y(const clb_stage *g, const clb_convolution *c, int order, ir_val *y) {
  numbers(g, c, g->y[order], c->f.tp->y.dim, y);
  for (int j = 0; j < c->f.tp->y.dim; j++) y[j] = ir_cast(of(c), c->f.t, y[j]);
}

void clb_stage_numbers(const clb_stage *g, const clb_convolution *c, int order, int at, ir_val *v) {
  numbers(g, c, g->y[order] + at, CLB_FRAME_QUAD, v);
}

void clb_stage_next(clb_stage *g, const clb_convolution *c) {
  ir_kernel *k = of(c);
  ir_val next = ir_add(k, ir_get(k, g->current), i32(c, 1));
  ir_set(k, g->current, ir_select(k, ir_2(k, IR_EQ, next, i32(c, g->stages)), i32(c, 0), next));
}

/* Index of the first chunk of a term or path. */
static int find_chunk(const clb_staged_operand *o, int64_t number) {
  int first = 0;
  while (o->source[first] != number) first++;
  return first;
}

/* n elements per lane from element `from` of a chunk on; lanes are `step` elements apart. */
static void elements(const clb_stage *g, const clb_convolution *c, const clb_staged_operand *o,
                     int chunk, int from, int step, int n, ir_val *v) {
  ir_kernel *k = of(c);
  int at = o->at + chunk * chunk_size(c) + from,
      most = 16 / (int)ir_type_bytes(ir_element_type(k, g->array));
  for (int i = 0, w; i < n; i += w) {
    w = most;
    while (w > 1 &&
           (n - i < w || (at + i) % w || step % w || g->edge_size % w || g->stage_size % w))
      w /= 2;
    ir_val index =
        ir_add(k, ir_add(k, g->base, ir_mul(k, c->unit.lane, i32(c, step))), i32(c, at + i));
    bool wide = w > 1 && w * (int)ir_type_bytes(ir_element_type(k, g->array)) >= 8;
    if (!wide) w = 1;
    (wide ? ir_load_aligned : ir_load_wide)(k, g->array, index, c->unit.mask, w, v + i);
  }
}

void clb_stage_load(const clb_stage *g, const clb_convolution *c, int slot, int order,
                    const clb_path *p, ir_val v[][MAX_M]) {
  ir_kernel *k = of(c);
  const clb_tensor_product_problem *tp = c->f.tp;
  const clb_staged_operand *o = slot == W ? &g->w[order] : &g->x[order];
  const int n = c->unit.per_lane, first = find_chunk(o, slot == W ? p - tp->path : p->in1),
            width = slot == W ? 1 : clb_width(&tp->x.term[p->in1]);
  const bool side = slot == X && tp->layout_x == CLB_MUL_IR;
  ir_val all[CLB_MAX_PER_LANE * MAX_M];
  if (side) elements(g, c, o, first, 0, n * width, n * width, all);
  for (int m = 0; m < width; m++) {
    if (!side) elements(g, c, o, first + m, 0, n, n, all);
    for (int j = 0; j < n; j++) v[j][m] = ir_cast(k, c->f.t, all[side ? j * width + m : j]);
  }
}
