/* kernels/convolution/edge_results.c - results of a convolution that belong to edges: gradients of
   x, y and w, or of r; those of y meet in local memory, where the sub-groups' shares of some edges
   at a time are added in order. */
#include "kernels/common/lane_sums.h"
#include "kernels/convolution/builder.h"

static ir_kernel *of(const clb_convolution *c) { return c->f.k; }
static ir_val i32(const clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I32, n); }
static ir_val less(const clb_convolution *c, ir_val a, ir_val b) {
  return ir_2(c->f.k, IR_LT, a, b);
}

static void store_x(clb_convolution *c, int term, int o, bool add) {
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

/* Shuffles that summing n values over the lanes takes. */
static int shuffles(int lanes, int n) {
  int width = 1, count = 0;
  while (width < n) width *= 2;
  for (int share = lanes / width; share > 1; share /= 2) count++;
  return width - 1 + count;
}

/* Of n values, as many as are best summed together: all that the lanes take, or the largest power
   of two in them, if those left over are few. */
static int summed_together(int lanes, int n) {
  enum { STORE = 4 }; /* what one more store is worth */
  int half = 1;
  if (n > lanes) n = lanes;
  while (2 * half < n) half *= 2;
  return half < n && shuffles(lanes, half) + shuffles(lanes, n - half) + STORE < shuffles(lanes, n)
             ? half
             : n;
}

/* Without shuffles each lane adds its shares of the gradient of y of an edge to its own. */
static void keep(clb_convolution *c, ir_val edge) {
  ir_kernel *k = of(c);
  int columns = clb_y_columns(c->f.p);
  ir_val start = ir_add(k, ir_mul(k, edge, i32(c, columns * c->results.pitch)), ir_lane(k));
  for (int i = 0; i < columns; i++) {
    ir_val at = ir_add(k, start, i32(c, i * c->results.pitch));
    if (c->results.y_sum[i] != IR_NONE)
      ir_store(k, c->results.meeting, at, IR_NONE,
               ir_add(k, ir_load(k, c->results.meeting, at, IR_NONE), c->results.y_sum[i]));
  }
}

/* Adds the lanes' shares of the gradient of y of an edge, the first slice's, and hands the
   sub-group's to the others; nobody reads those of slices without one. */
static void meet(clb_convolution *c, ir_val edge) {
  ir_kernel *k = of(c);
  int columns = clb_y_columns(c->f.p), units = c->s->subgroups_per_row;
  if (c->unit.slice != IR_NONE) edge = ir_add(k, edge, c->unit.slice);
  ir_val row = units ? ir_add(k, ir_mul(k, edge, i32(c, units)), c->unit.number) : edge,
         start = ir_add(k, c->results.turn, ir_mul(k, row, i32(c, columns)));
  for (int first = 0, n, share; first < columns; first += n) {
    n = summed_together(c->unit.width, columns - first);
    ir_val sum = clb_sum_over_lanes(k, c->f.t, c->unit.width, c->results.y_sum + first, n, &share);
    ir_val element = ir_2(k, IR_DIV, c->unit.lane, i32(c, share)),
           at = ir_add(k, start, ir_add(k, element, i32(c, first)));
    ir_val mask = ir_2(k, IR_AND, ir_2(k, IR_EQ, ir_mul(k, element, i32(c, share)), c->unit.lane),
                       less(c, element, i32(c, n)));
    if (!units) sum = ir_add(k, sum, ir_load(k, c->results.meeting, at, mask));
    ir_store(k, c->results.meeting, at, mask, sum);
  }
}

static void one_path(clb_convolution *c, const clb_path *p, int o_x, int o_y, int o_w) {
  clb_path_open(&c->at, p, c->scale[p->out]);
  if (o_x >= 0) clb_path_x(&c->at, o_x, c->results.x_sum[p->in1]);
  if (o_w >= 0 && p->has_weight) {
    ir_val g = clb_path_w(&c->at, o_w);
    if (c->f.p->convolution.spline) {
      clb_path_weight(&c->at); /* and with it its knots */
      clb_spline_add(&c->spline, &c->f, 0, g);
      if (c->spline.along != IR_NONE)
        clb_spline_add(&c->spline, &c->f, 1, clb_path_w(&c->at, BY_C));
    } else clb_form_store_weight(&c->f, &c->f.out[o_w], p, c->unit.channel, c->unit.write, g);
  }
  if (o_y >= 0) clb_path_y(&c->at, o_y, c->results.y_sum + c->f.tp->y.term[p->in2].at);
}

/* The part's components of g, scaled; into the variables of held[], if there are any, or from
   there. */
static void load_z(clb_convolution *c, int part) {
  ir_kernel *k = of(c);
  const clb_irreps *z = &c->f.tp->z;
  for (int j = 0, n = 0; j < c->parts.together[part] && !c->f.s->accumulate_in_memory; j++) {
    clb_turn_to(c, j);
    for (int t = 0; t < z->n; t++) {
      ir_val *v = c->z[j][t];
      if (c->parts.of_z[t] != part) continue;
      clb_load_scaled(c, t, v);
      for (int i = 0; i < clb_width(&z->term[t]); i++, n++)
        if (c->results.n_held) ir_set(k, c->results.held[n], v[i]);
    }
  }
}

/* Of the block at hand, of which `n` components come before. */
static int recall_z(clb_convolution *c, int part, int n) {
  for (int t = 0; t < c->f.tp->z.n; t++)
    for (int i = 0; c->parts.of_z[t] == part && i < clb_width(&c->f.tp->z.term[t]); i++, n++)
      c->z[c->unit.block][t][i] = ir_get_here(of(c), c->results.held[n]);
  return n;
}

static int most_z(const clb_tensor_product_problem *tp, const clb_parts *parts) {
  int most = 0;
  for (int part = 0; part < parts->n; part++) {
    int n = 0;
    for (int t = 0; t < tp->z.n; t++)
      n += parts->of_z[t] == part ? clb_width(&tp->z.term[t]) * parts->together[part] : 0;
    if (n > most) most = n;
  }
  return most;
}

/* The paths from a term of x to which a term of y (-1: any) belongs; number: of the edge in its
   batch.  Whether gradients of x are in memory now. */
static bool paths_of(clb_convolution *c, int x, int y, ir_val number, bool stored) {
  const clb_tensor_product_problem *tp = c->f.tp;
  int o_x = clb_wanted_output(&c->f, X), o_y = clb_wanted_output(&c->f, Y),
      o_w = clb_wanted_output(&c->f, W), n = 0;
  bool shares = y >= 0 && c->batch.shares != IR_NONE;
  for (int q = 0; q < tp->n_paths; q++) {
    if (tp->path[q].in1 != x || (y >= 0 && tp->path[q].in2 != y)) continue;
    if (!n++ && y >= 0) clb_load_y(c, y);
    if (n == 1 && shares)
      clb_batch_recall(c, x, tp->y.term[y].at, clb_width(&tp->y.term[y]), number, c->results.y_sum);
    one_path(c, &tp->path[q], o_x, o_y, o_w);
    if (o_x < 0 || !c->f.s->accumulate_in_memory) continue;
    store_x(c, x, o_x, stored);
    stored = true;
    clb_none(c->results.x_sum[x], MAX_M);
  }
  if (n && shares)
    clb_batch_keep(c, x, tp->y.term[y].at, clb_width(&tp->y.term[y]), number, c->results.y_sum);
  return stored;
}

static void one_block(clb_convolution *c, int part, ir_val number) {
  const clb_tensor_product_problem *tp = c->f.tp;
  int o_x = clb_wanted_output(&c->f, X);
  for (int t = 0; t < tp->x.n; t++) {
    if (c->parts.of_x[t] != part) continue;
    bool stored = false;
    clb_none(c->results.x_sum[t], MAX_M);
    for (int y = clb_by_terms_of_y(c) ? 0 : -1; y < (clb_by_terms_of_y(c) ? tp->y.n : 0); y++)
      stored |= paths_of(c, t, y, number, stored);
    if (o_x >= 0 && !stored) store_x(c, t, o_x, false);
  }
}

/* Places first ... last - 1 of a part; end: of the row's. */
static void walk_edges(clb_convolution *c, int part, ir_val first, ir_val last, ir_val end) {
  ir_kernel *k = of(c);
  ir_val place = clb_turns_open(c, first, last);
  clb_edge_begin(c, place, end);
  if (c->s->edges_per_batch) clb_batch_ask(c, place);
  int columns = clb_y_columns(c->f.p), of_y = c->f.tp->y.dim; /* the rest is the gradient of r */
  clb_none(c->results.y_sum, columns);
  if (c->batch.shares != IR_NONE)
    clb_batch_recall(c, -1, of_y, columns - of_y, ir_sub(k, place, first), c->results.y_sum);
  for (int j = 0, n = 0; j < c->parts.together[part]; j++) {
    clb_turn_to(c, j);
    if (c->results.n_held) n = recall_z(c, part, n);
    one_block(c, part, ir_sub(k, place, first));
  }
  if (c->f.p->convolution.spline)
    c->results.y_sum[of_y] = clb_spline_slope(&c->spline, &c->f, c->results.y_sum[of_y]);
  if (c->batch.shares != IR_NONE)
    clb_batch_keep(c, -1, of_y, columns - of_y, ir_sub(k, place, first), c->results.y_sum);
  else if (c->results.meeting != IR_NONE)
    (c->s->shuffle_sums ? meet : keep)(c, ir_sub(k, place, first));
  if (c->stage.stages) clb_stage_next(&c->stage, c);
  clb_turns_close(c);
}

/* Where one sub-group does all parts, their shares are added up: from 0. */
static void clear_meeting(clb_convolution *c) {
  ir_kernel *k = of(c);
  int lanes = c->f.s->lanes;
  if (!c->s->shuffle_sums) { /* each lane its own */
    ir_val row = ir_loop(k, i32(c, 0), i32(c, c->results.shares), i32(c, c->results.pitch));
    ir_store(k, c->results.meeting, ir_add(k, row, ir_lane(k)), IR_NONE, ir_real(k, c->f.t, 0));
    ir_end(k);
    return;
  }
  int64_t n = (int64_t)c->s->edges_per_round * clb_y_columns(c->f.p);
  ir_val at = ir_add(k, ir_loop(k, i32(c, 0), i32(c, n), i32(c, lanes)), ir_lane(k));
  ir_store(k, c->results.meeting, at, less(c, at, i32(c, n)), ir_real(k, c->f.t, 0));
  ir_end(k);
}

/* The sum of what the lanes keep from `at` on. */
static ir_val sum_kept(clb_convolution *c, ir_val at, ir_val mask) {
  ir_kernel *k = of(c);
  ir_val sum = ir_var(k, ir_real(k, c->f.t, 0), false),
         lane = ir_loop(k, i32(c, 0), i32(c, c->f.s->lanes), i32(c, 1));
  ir_set(k, sum,
         ir_add(k, ir_get(k, sum), ir_load(k, c->results.meeting, ir_add(k, at, lane), mask)));
  ir_end(k);
  return ir_get(k, sum);
}

/* Adds the units' shares and writes the rows of places first ... last - 1: `columns` of the sums
   from number `from` on. */
static void store_sums(clb_convolution *c, int o, int from, int columns, ir_val first,
                       ir_val last) {
  ir_kernel *k = of(c);
  const clb_form_array *a = &c->f.out[o];
  int units = c->s->subgroups_per_row ? c->s->subgroups_per_row : 1,
      threads = c->f.s->subgroups * c->f.s->lanes;
  ir_val n = ir_mul(k, ir_sub(k, last, first), i32(c, columns)),
         thread = ir_add(k, ir_mul(k, ir_subgroup(k), i32(c, c->f.s->lanes)), ir_lane(k));
  ir_val i = ir_add(k, ir_loop(k, i32(c, 0), n, i32(c, threads)), thread), mask = less(c, i, n),
         row = ir_2(k, IR_DIV, i, i32(c, columns));
  ir_val column = ir_sub(k, i, ir_mul(k, row, i32(c, columns))), sum = IR_NONE,
         near = ir_2(k, IR_MIN, row, i32(c, c->s->edges_per_round - 1));
  for (int u = 0; u < units; u++) {
    ir_val at = ir_add(k,
                       ir_mul(k, ir_add(k, ir_mul(k, near, i32(c, units)), i32(c, u)),
                              i32(c, clb_y_columns(c->f.p))),
                       ir_add(k, ir_add(k, column, c->results.turn), i32(c, from)));
    ir_val share = c->s->shuffle_sums ? ir_load(k, c->results.meeting, at, mask)
                                      : sum_kept(c, ir_mul(k, at, i32(c, c->results.pitch)), mask);
    sum = sum == IR_NONE ? share : ir_add(k, sum, share);
  }
  ir_val edge =
      ir_cast(k, IR_I64, ir_load(k, c->walk.edge, ir_cast(k, IR_I64, ir_add(k, first, row)), mask));
  ir_val index = ir_add(k, ir_add(k, ir_mul(k, edge, a->rows.stride), a->rows.offset),
                        ir_cast(k, IR_I64, column));
  if (c->f.p->accumulate && !c->f.p->convolution.vectors)
    sum = ir_add(k, sum, ir_cast(k, c->f.t, ir_load(k, a->rows.buffer, index, mask)));
  ir_store(k, a->rows.buffer, index, mask, ir_cast(k, ir_register_type(a->rows.element), sum));
  ir_end(k);
}

/* Whether a part adds to shares of y that other lanes have from the part before: where an edge is
   not the same lanes' in both. */
static bool changes_hands(const clb_convolution *c, int part) {
  if (!part || c->results.meeting == IR_NONE || c->batch.shares != IR_NONE || c->stage.stages)
    return false; /* staged, they meet anyway */
  return clb_slice_width(c->f.s, c->parts.mul[part]) !=
         clb_slice_width(c->f.s, c->parts.mul[part - 1]);
}

/* One sub-group does one part after the other, for some edges at a time if gradients of y are added
   up. */
static void edges_in_turn(clb_convolution *c, ir_val first, ir_val last) {
  int next_unit = 0;
  for (int part = 0; part < c->parts.n; part++) {
    if (changes_hands(c, part)) ir_barrier(of(c), false);
    bool opened = clb_part_open(c, part, &next_unit);
    load_z(c, part);
    for (int q = 0; c->s->edges_per_batch && !c->f.s->accumulate_in_memory && q < c->f.tp->n_paths;
         q++) /* of no edge: made ahead of the loop over them */
      if (c->parts.of_x[c->f.tp->path[q].in1] == part)
        clb_path_pairs(&c->at, &c->f.tp->path[q], c->scale[c->f.tp->path[q].out]);
    if (c->stage.stages) clb_stage_open(&c->stage, c, part, first, last);
    walk_edges(c, part, first, last, last);
    if (opened) ir_end(of(c));
  }
}

/* A unit for each block of channels: g is loaded once, and operands are on their way across the
   batches. */
static void start_units(clb_convolution *c) {
  int next_unit = 0;
  c->results.n_held = c->f.s->accumulate_in_memory ? 0 : most_z(c->f.tp, &c->parts);
  for (int i = 0; i < c->results.n_held; i++)
    c->results.held[i] = ir_var(of(c), ir_real(of(c), c->f.t, 0), false);
  for (int part = 0; part < c->parts.n; part++) {
    bool opened = clb_part_open(c, part, &next_unit);
    if (c->stage.stages) clb_stage_open(&c->stage, c, part, c->walk.first, c->walk.last);
    load_z(c, part);
    if (opened) ir_end(of(c));
  }
}

static void edges_by_units(clb_convolution *c, ir_val first, ir_val last) {
  int next_unit = 0;
  for (int part = 0; part < c->parts.n; part++) {
    bool opened = clb_part_open(c, part, &next_unit);
    if (c->stage.stages) clb_stage_plan(&c->stage, c, part);
    walk_edges(c, part, first, last, c->walk.last);
    if (opened) ir_end(of(c));
  }
}

/* Element i of the sums is cleared and stored by lane i mod lanes. */
static bool own_when_stored(const clb_convolution *c) {
  bool splines = c->f.p->convolution.spline && clb_wanted_output(&c->f, W) >= 0;
  return c->s->shuffle_sums && !c->s->subgroups_per_row && !splines &&
         clb_y_columns(c->f.p) == c->f.tp->y.dim;
}

/* And that lane is the one that adds to it in that part; between parts of which lanes differ they
   meet. */
static bool own_when_added(const clb_convolution *c, int part) {
  int n = c->f.tp->y.dim, width = clb_slice_width(c->f.s, c->parts.mul[part]);
  return own_when_stored(c) && (n == width || (n % width == 0 && width == c->f.s->lanes));
}

void clb_edge_results_begin(clb_edge_results *r, const clb_convolution *c) {
  const clb_convolution_settings *s = c->s;
  const int units = s->subgroups_per_row ? s->subgroups_per_row : 1,
            halves = s->subgroups_per_row ? 2 : 1;
  r->pitch = s->shuffle_sums ? 1 : c->f.s->lanes + 1;
  r->shares = s->edges_per_round * units * clb_y_columns(c->f.p) * r->pitch;
  r->meeting =
      clb_wants_sums(c->f.p) ? ir_local(of(c), c->f.t, (int64_t)r->shares * halves) : IR_NONE;
}

void clb_results_of_edges(clb_convolution *c) {
  ir_kernel *k = of(c);
  bool units = c->s->subgroups_per_row;
  int o_y = clb_wanted_output(&c->f, Y), o_w = clb_wanted_output(&c->f, W),
      columns = c->f.tp->y.dim;
  int last_part = c->parts.n - 1, first_part = c->batch.shares == IR_NONE ? 0 : last_part;
  ir_val other = i32(c, c->results.shares), turn = ir_var(k, i32(c, 0), true);
  clb_form_row(&c->f, &c->f.in[Z][0], c->walk.row);
  if (units) start_units(c);
  c->results.turn = i32(c, 0);
  if (c->results.meeting == IR_NONE && !c->s->edges_per_batch) {
    (units ? edges_by_units : edges_in_turn)(c, c->walk.first, c->walk.last);
    return;
  }
  ir_val first = ir_loop(k, c->walk.first, c->walk.last, i32(c, c->s->edges_per_round)),
         last = ir_2(k, IR_MIN, c->walk.last, ir_add(k, first, i32(c, c->s->edges_per_round)));
  if (units) { /* two halves of the meeting place by turns, so that one barrier will do */
    c->results.turn = ir_get(k, turn);
    edges_by_units(c, first, last);
    ir_set(k, turn, ir_sub(k, other, c->results.turn));
  } else {
    if (!own_when_stored(c)) ir_barrier(k, false);
    if (c->results.meeting != IR_NONE) clear_meeting(c);
    if (c->batch.shares != IR_NONE)
      clb_batch_clear(c, c->batch.shares,
                      (int64_t)c->s->edges_per_batch * clb_y_columns(c->f.p) * c->f.s->lanes);
    if (c->s->shuffle_sums && !own_when_added(c, first_part)) ir_barrier(k, false);
    edges_in_turn(c, first, last);
    if (c->batch.shares != IR_NONE) {
      ir_val place = ir_loop(k, first, last, i32(c, 1));
      clb_none(c->results.y_sum, clb_y_columns(c->f.p));
      clb_batch_recall(c, -1, 0, clb_y_columns(c->f.p), ir_sub(k, place, first), c->results.y_sum);
      meet(c, ir_sub(k, place, first));
      ir_end(k);
    }
  }
  if (!own_when_added(c, last_part)) ir_barrier(k, c->f.s->subgroups > 1);
  if (o_y >= 0) store_sums(c, o_y, 0, columns, first, last);
  if (o_w >= 0 && c->f.p->convolution.spline) store_sums(c, o_w, columns, 1, first, last);
  ir_end(k);
}
