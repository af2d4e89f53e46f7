/* kernels/convolution/edge_results.c - results of a convolution that belong to edges: gradients of
   x, y and w, or of r; those of y, and of r, are summed over lanes, and over parts in local memory
   or over roles in an array (role_sum.c). */
#include "kernels/common/lane_sums.h"
#include "kernels/convolution/builder.h"

static ir_kernel *of(const clb_convolution *c) { return c->f.k; }
static ir_val i32(const clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I32, n); }
static ir_val less(const clb_convolution *c, ir_val a, ir_val b) {
  return ir_2(c->f.k, IR_LT, a, b);
}

/* Number of shuffles for sums of n values over the lanes. */
static int shuffles(int lanes, int n) {
  int width = 1, count = 0;
  while (width < n) width *= 2;
  for (int share = lanes / width; share > 1; share /= 2) count++;
  return width - 1 + count;
}

/* How many of n values are summed together at the least cost: as many as there are lanes, or the
   largest power of two below, if few are left over. */
static int summed_together(int lanes, int n) {
  enum { STORE = 4 }; /* cost of one more store, in shuffles */
  int half = 1;
  if (n > lanes) n = lanes;
  while (2 * half < n) half *= 2;
  return half < n && shuffles(lanes, half) + shuffles(lanes, n - half) + STORE < shuffles(lanes, n)
             ? half
             : n;
}

/* Without shuffles: each lane adds its partial sums of an edge to sums of its own. */
static void add_per_lane(clb_convolution *c, ir_val edge) {
  ir_kernel *k = of(c);
  int columns = clb_y_columns(c->f.p, c->f.s);
  ir_val start = ir_add(k, ir_mul(k, edge, i32(c, columns * c->results.pitch)), ir_lane(k));
  for (int i = 0; i < columns; i++) {
    ir_val at = ir_add(k, start, i32(c, i * c->results.pitch));
    if (c->results.y_sum[i] != IR_NONE)
      ir_store(k, c->results.local_sums, at, IR_NONE,
               ir_add(k, ir_load(k, c->results.local_sums, at, IR_NONE), c->results.y_sum[i]));
  }
}

/* Sums over lanes, stored (add: added) to an array from `start` (i32 or i64) on, by lanes `there`
   (IR_NONE: all). */
static void reduce_lanes(clb_convolution *c, ir_val array, ir_val start, ir_val there, bool add) {
  ir_kernel *k = of(c);
  const int columns = clb_y_columns(c->f.p, c->f.s);
  for (int first = 0, n, share; first < columns; first += n) {
    n = summed_together(c->unit.width, columns - first);
    ir_val sum = clb_sum_over_lanes(k, c->f.t, c->unit.width, c->results.y_sum + first, n, &share);
    ir_val element = ir_2(k, IR_DIV, c->unit.lane, i32(c, share)),
           number = ir_add(k, element, i32(c, first));
    if (ir_value_type(k, start) == IR_I64) number = ir_cast(k, IR_I64, number);
    ir_val at = ir_add(k, start, number);
    ir_val mask = ir_2(k, IR_AND, ir_2(k, IR_EQ, ir_mul(k, element, i32(c, share)), c->unit.lane),
                       less(c, element, i32(c, n)));
    if (add) sum = ir_add(k, sum, ir_load(k, array, at, mask));
    ir_store(k, array, at, clb_and(k, mask, there), sum);
  }
}

/* Adds the sums over lanes of an edge to those of the parts before. */
static void add_lane_sums(clb_convolution *c, ir_val edge) {
  ir_val start = ir_mul(of(c), edge, i32(c, clb_y_columns(c->f.p, c->f.s)));
  reduce_lanes(c, c->results.local_sums, start, IR_NONE, true);
}

/* Stores the role's sums of an edge. */
static void store_role_sums(clb_convolution *c) {
  ir_kernel *k = of(c);
  const int columns = clb_y_columns(c->f.p, c->f.s);
  ir_val own = ir_mul(k, ir_cast(k, IR_I64, c->unit.role), c->results.role_sums_pitch),
         start = ir_add(k, ir_add(k, c->results.role_sums_at, own),
                        ir_mul(k, clb_edge_in_block(c), ir_int(k, IR_I64, columns)));
  reduce_lanes(c, c->results.role_sums, start, c->unit.has_edge, false);
}

/* Adds the path's contribution to the sums of z. */
static void add_to_z(clb_convolution *c, const clb_path *p, int o) {
  const int width = clb_width(&c->f.tp->z.term[p->out]), j = c->unit.current;
  ir_val sum[MAX_M];
  clb_no_values(sum, MAX_M);
  for (int i = 0; i < width; i++) sum[i] = ir_get(of(c), c->z[j][p->out][i]);
  clb_path_z(&c->builder[j], o, sum);
  for (int i = 0; i < width; i++) ir_set(of(c), c->z[j][p->out][i], sum[i]);
}

static void one_path(clb_convolution *c, const clb_path *p, int o_x, int o_y, int o_w) {
  const int o_z = clb_wanted_output(&c->f, Z);
  const bool wanted = o_w >= 0 && p->has_weight, spline = c->f.p->convolution.spline;
  ir_val g[CLB_MAX_PER_LANE][MAX_M];
  for (int j = 0; j < c->unit.per_lane; j++) {
    clb_path_builder *builder = &c->builder[j];
    clb_select_channel(c, j);
    clb_path_open(builder, p, c->scale[p->out]);
    if (o_x >= 0) clb_path_x(builder, o_x, c->results.x_sum[p->in1][j]);
    if (wanted) g[j][0] = clb_path_w(builder, o_w);
    if (wanted && spline) {
      clb_path_weight(builder); /* loads its spline coefficients, too */
      clb_spline_add(&c->spline, &c->f, 0, j, g[j][0]);
      if (c->spline.along != IR_NONE)
        clb_spline_add(&c->spline, &c->f, 1, j, clb_path_w(builder, BY_C));
    }
    if (o_z >= 0) add_to_z(c, p, o_z);
    if (o_y >= 0) clb_path_y(builder, o_y, c->results.y_sum + c->f.tp->y.term[p->in2].at);
  }
  if (wanted && !spline) clb_store_channels(c, o_w, -1, p, g, c->unit.write, c->f.out[o_w].adds);
}

/* The part's components of g, scaled. */
static void load_z(clb_convolution *c, int part) {
  for (int j = 0; j < c->parts.per_lane[part] && !c->f.s->accumulate_in_memory; j++) {
    clb_select_channel(c, j);
    for (int t = 0; t < c->f.tp->z.n; t++)
      if (c->parts.of_z[t] == part) clb_load_scaled(c, t, c->g[j][t]);
  }
  clb_keep_g(c, part);
}

/* All paths from a term of x with a term of y (-1: any), for edge `number` of the batch.  stored,
   and the returned value: whether gradients of x are in memory already. */
static bool paths_of(clb_convolution *c, int x, int y, ir_val number, bool stored) {
  const clb_tensor_product_problem *tp = c->f.tp;
  int o_x = clb_wanted_output(&c->f, X), o_y = clb_wanted_output(&c->f, Y),
      o_w = clb_wanted_output(&c->f, W), n = 0;
  bool shares = y >= 0 && c->batch.partial_sums != IR_NONE;
  for (int q = 0; q < tp->n_paths; q++) {
    if (tp->path[q].in1 != x || (y >= 0 && tp->path[q].in2 != y)) continue;
    if (!n++ && y >= 0) clb_load_y(c, y);
    if (n == 1 && shares)
      clb_batch_load_sums(c, x, tp->y.term[y].at, clb_width(&tp->y.term[y]), number,
                          c->results.y_sum);
    one_path(c, &tp->path[q], o_x, o_y, o_w);
    if (o_x < 0 || !c->f.s->accumulate_in_memory) continue;
    clb_store_x(c, x, o_x, c->results.x_sum[x], stored);
    stored = true;
    for (int j = 0; j < CLB_MAX_PER_LANE; j++) clb_no_values(c->results.x_sum[x][j], MAX_M);
  }
  if (n && shares)
    clb_batch_store_sums(c, x, tp->y.term[y].at, clb_width(&tp->y.term[y]), number,
                         c->results.y_sum);
  return stored;
}

static void all_paths(clb_convolution *c, int part, ir_val number) {
  const clb_tensor_product_problem *tp = c->f.tp;
  int o_x = clb_wanted_output(&c->f, X);
  for (int t = 0; t < tp->x.n; t++) {
    if (c->parts.of_x[t] != part) continue;
    bool stored = false;
    for (int j = 0; j < CLB_MAX_PER_LANE; j++) clb_no_values(c->results.x_sum[t][j], MAX_M);
    for (int y = clb_by_terms_of_y(c) ? 0 : -1; y < (clb_by_terms_of_y(c) ? tp->y.n : 0); y++)
      stored |= paths_of(c, t, y, number, stored);
    if (o_x >= 0 && !stored) clb_store_x(c, t, o_x, c->results.x_sum[t], false);
  }
}

/* Edge slots first ... last - 1, for one part. */
static void walk_edges(clb_convolution *c, int part, ir_val first, ir_val last) {
  ir_kernel *k = of(c);
  ir_val edge_slot = clb_edge_loop_open(c, first, last);
  clb_edge_begin(c, edge_slot, last);
  if (c->s->edges_per_batch) clb_batch_prefetch(c, edge_slot);
  int columns = clb_y_columns(c->f.p, c->f.s),
      of_y = columns - (c->f.p->convolution.spline
                            ? 1
                            : 0); /* with splines the last column is the gradient of r */
  clb_no_values(c->results.y_sum, columns);
  if (c->batch.partial_sums != IR_NONE)
    clb_batch_load_sums(c, -1, of_y, columns - of_y, ir_sub(k, edge_slot, first), c->results.y_sum);
  if (c->frame.l) clb_frame_begin(c), clb_frame_to_edge(c, part);
  else all_paths(c, part, ir_sub(k, edge_slot, first));
  if (c->f.p->convolution.spline)
    c->results.y_sum[of_y] = clb_spline_slope(&c->spline, &c->f, c->results.y_sum[of_y]);
  if (c->batch.partial_sums != IR_NONE)
    clb_batch_store_sums(c, -1, of_y, columns - of_y, ir_sub(k, edge_slot, first),
                         c->results.y_sum);
  else if (c->results.role_sums != IR_NONE) store_role_sums(c);
  else if (c->results.local_sums != IR_NONE)
    (c->s->shuffle_sums ? add_lane_sums : add_per_lane)(c, ir_sub(k, edge_slot, first));
  if (c->stage.stages) clb_stage_next(&c->stage, c);
  clb_edge_loop_close(c);
}

/* One sub-group adds up the sums of all parts, starting from 0. */
static void clear_local_sums(clb_convolution *c) {
  ir_kernel *k = of(c);
  int lanes = c->f.s->lanes;
  if (!c->s->shuffle_sums) { /* each lane clears its own sums */
    ir_val row = ir_loop(k, i32(c, 0), i32(c, c->results.n_sums), i32(c, c->results.pitch));
    ir_store(k, c->results.local_sums, ir_add(k, row, ir_lane(k)), IR_NONE, ir_real(k, c->f.t, 0));
    ir_end(k);
    return;
  }
  int64_t n = (int64_t)c->s->edges_per_round * clb_y_columns(c->f.p, c->f.s);
  ir_val at = ir_add(k, ir_loop(k, i32(c, 0), i32(c, n), i32(c, lanes)), ir_lane(k));
  ir_store(k, c->results.local_sums, at, less(c, at, i32(c, n)), ir_real(k, c->f.t, 0));
  ir_end(k);
}

/* The sum over lanes of their own sums, from `at` on. */
static ir_val sum_of_lanes(clb_convolution *c, ir_val at, ir_val mask) {
  ir_kernel *k = of(c);
  ir_val sum = ir_var(k, ir_real(k, c->f.t, 0), false),
         lane = ir_loop(k, i32(c, 0), i32(c, c->f.s->lanes), i32(c, 1));
  ir_set(k, sum,
         ir_add(k, ir_get(k, sum), ir_load(k, c->results.local_sums, ir_add(k, at, lane), mask)));
  ir_end(k);
  return ir_get(k, sum);
}

/* Stores sums of edge slots first ... last - 1: `columns` of them from column `from` on. */
static void store_sums(clb_convolution *c, int o, int from, int columns, ir_val first,
                       ir_val last) {
  ir_kernel *k = of(c);
  const clb_form_array *a = &c->f.out[o];
  int lanes = c->f.s->lanes;
  ir_val n = ir_mul(k, ir_sub(k, last, first), i32(c, columns)),
         i = ir_add(k, ir_loop(k, i32(c, 0), n, i32(c, lanes)), ir_lane(k)), mask = less(c, i, n),
         row = ir_2(k, IR_DIV, i, i32(c, columns));
  ir_val column = ir_sub(k, i, ir_mul(k, row, i32(c, columns))),
         near = ir_2(k, IR_MIN, row, i32(c, c->s->edges_per_round - 1)),
         at = ir_add(k, ir_mul(k, near, i32(c, clb_y_columns(c->f.p, c->f.s))),
                     ir_add(k, column, i32(c, from)));
  ir_val sum = c->s->shuffle_sums ? ir_load(k, c->results.local_sums, at, mask)
                                  : sum_of_lanes(c, ir_mul(k, at, i32(c, c->results.pitch)), mask);
  ir_val edge =
      ir_cast(k, IR_I64, ir_load(k, c->walk.edge, ir_cast(k, IR_I64, ir_add(k, first, row)), mask));
  ir_val index = ir_add(k, ir_add(k, ir_mul(k, edge, a->rows.stride), a->rows.offset),
                        ir_cast(k, IR_I64, column));
  if (c->f.p->accumulate && !c->f.p->convolution.vectors)
    sum = ir_add(k, sum, ir_cast(k, c->f.t, ir_load(k, a->rows.buffer, index, mask)));
  ir_store(k, a->rows.buffer, index, mask, ir_cast(k, ir_register_type(a->rows.element), sum));
  ir_end(k);
}

static bool has_paths(const clb_tensor_product_problem *tp, const clb_parts *parts, int part) {
  for (int q = 0; q < tp->n_paths; q++)
    if (parts->of_z[tp->path[q].out] == part) return true;
  return false;
}

/* One part, for edge slots first ... last - 1. */
static void part_of_edges(clb_convolution *c, int part, ir_val first, ir_val last) {
  load_z(c, part);
  for (int q = 0; c->s->edges_per_batch && !c->f.s->accumulate_in_memory && q < c->f.tp->n_paths;
       q++) /* the same for all edges: computed before the loop over them */
    if (c->parts.of_x[c->f.tp->path[q].in1] == part)
      clb_path_pairs(&c->builder[0], &c->f.tp->path[q], c->scale[c->f.tp->path[q].out]);
  const int stages = c->stage.stages;
  if (!has_paths(c->f.tp, &c->parts, part)) c->stage.stages = 0; /* no operand is read */
  if (c->stage.stages) clb_stage_open(&c->stage, c, part, first, last);
  walk_edges(c, part, first, last);
  c->stage.stages = stages;
}

/* One sub-group does one part after the other, for edge slots first ... last - 1. */
static void all_parts(clb_convolution *c, ir_val first, ir_val last) {
  for (int part = 0, next_role = 0; part < c->parts.n; part++) {
    bool opened = clb_part_open(c, part, &next_role);
    part_of_edges(c, part, first, last);
    if (opened) ir_end(of(c));
  }
}

static void rows_open(clb_convolution *c) {
  clb_rows_open(&c->f, &c->walk);
  if (c->s->edges_per_batch) clb_batch_find_last_slot(&c->batch, c);
  clb_form_row(&c->f, &c->f.in[Z][0], c->walk.row);
}

/* A row of a part, whose sums of z are results, too. */
static void one_walk(clb_convolution *c, int part, int o) {
  clb_z_rows_open(c, o);
  clb_form_row(&c->f, &c->f.in[Z][0], c->walk.row);
  clb_z_sums_begin(c, part);
  part_of_edges(c, part, c->walk.first, c->walk.last);
  clb_z_sums_store(c, part, o);
  clb_z_rows_close(c, o);
}

/* On a GPU: each role loops over the edges of its rows. */
static void roles_of_edges(clb_convolution *c) {
  const int o_z = clb_wanted_output(&c->f, Z);
  for (int part = 0, next_role = 0; part < c->parts.n; part++) {
    bool opened = clb_part_open(c, part, &next_role);
    if (o_z >= 0) one_walk(c, part, o_z);
    else {
      rows_open(c);
      part_of_edges(c, part, c->walk.first, c->walk.last);
      clb_rows_close(&c->f);
    }
    if (opened) ir_end(of(c));
  }
}

/* Whether one lane, i mod lanes, both clears and stores element i of the sums: then no barrier is
   needed between the rounds. */
static bool one_lane_clears_and_stores(const clb_convolution *c) {
  bool splines = c->f.p->convolution.spline && clb_wanted_output(&c->f, W) >= 0;
  return c->s->shuffle_sums && !splines && clb_y_columns(c->f.p, c->f.s) == c->f.tp->y.dim;
}

/* Whether that lane is also the one that adds to it. */
static bool one_lane_adds(const clb_convolution *c) {
  return one_lane_clears_and_stores(c) && c->f.tp->y.dim % c->f.s->lanes == 0;
}

void clb_edge_results_begin(clb_edge_results *r, const clb_convolution *c) {
  const clb_schedule *s = c->f.s;
  r->pitch = s->convolution.shuffle_sums ? 1 : s->lanes + 1;
  r->n_sums = s->convolution.edges_per_round * clb_y_columns(c->f.p, c->f.s) * r->pitch;
  r->role_sums = r->role_sums_at = r->role_sums_pitch = IR_NONE;
  if (s->convolution.roles && clb_wants_sums(c->f.p)) {
    r->role_sums = ir_buffer(of(c), c->f.t, true);
    r->role_sums_at = ir_scalar(of(c), IR_I64);
    r->role_sums_pitch = ir_scalar(of(c), IR_I64);
  }
  r->local_sums = clb_wants_sums(c->f.p) && !s->convolution.roles
                      ? ir_local(of(c), c->f.t, r->n_sums)
                      : IR_NONE;
}

void clb_results_of_edges(clb_convolution *c) {
  ir_kernel *k = of(c);
  int o_y = clb_wanted_output(&c->f, Y), o_w = clb_wanted_output(&c->f, W),
      columns = c->f.tp->y.dim;
  if (c->s->roles) {
    roles_of_edges(c);
    return;
  }
  rows_open(c);
  if (c->results.local_sums == IR_NONE && !c->s->edges_per_batch) {
    all_parts(c, c->walk.first, c->walk.last);
    return;
  }
  ir_val first = ir_loop(k, c->walk.first, c->walk.last, i32(c, c->s->edges_per_round)),
         last = ir_2(k, IR_MIN, c->walk.last, ir_add(k, first, i32(c, c->s->edges_per_round)));
  if (!one_lane_clears_and_stores(c)) ir_barrier(k, false);
  if (c->results.local_sums != IR_NONE) clear_local_sums(c);
  if (c->batch.partial_sums != IR_NONE)
    clb_batch_clear(c, c->batch.partial_sums,
                    (int64_t)c->s->edges_per_batch * clb_y_columns(c->f.p, c->f.s) * c->f.s->lanes);
  if (c->s->shuffle_sums && !(one_lane_adds(c) && c->batch.partial_sums == IR_NONE))
    ir_barrier(k, false);
  all_parts(c, first, last);
  if (c->batch.partial_sums != IR_NONE) {
    ir_val edge_slot = ir_loop(k, first, last, i32(c, 1));
    c->unit.width = c->f.s->lanes; /* whatever the last part had */
    c->unit.lane = ir_lane(k);
    clb_no_values(c->results.y_sum, clb_y_columns(c->f.p, c->f.s));
    clb_batch_load_sums(c, -1, 0, clb_y_columns(c->f.p, c->f.s), ir_sub(k, edge_slot, first),
                        c->results.y_sum);
    add_lane_sums(c, ir_sub(k, edge_slot, first));
    ir_end(k);
  }
  if (!one_lane_adds(c)) ir_barrier(k, false);
  if (o_y >= 0) store_sums(c, o_y, 0, columns, first, last);
  if (o_w >= 0 && c->f.p->convolution.spline) store_sums(c, o_w, columns, 1, first, last);
  ir_end(k);
}
