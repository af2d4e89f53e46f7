/* kernels/graph/sort.c - the steps of sorting the edges of a graph (graph.h). */
#include "kernels/graph/sort.h"

#include <stdio.h>

enum {
  WIDTH = 2,
  PLACES_OF_GROUP = 1024
}; /* loads in flight per lane; slots per group of ROWS, if a group is one lane */

static ir_val i32(ir_kernel *k, int64_t x) { return ir_int(k, IR_I32, x); }
static ir_val i64(ir_kernel *k, int64_t x) { return ir_int(k, IR_I64, x); }
static ir_val both(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_AND, a, b); }
static ir_val less(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_LT, a, b); }
static ir_val minimum(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_MIN, a, b); }
static ir_val wide(ir_kernel *k, ir_val a) { return ir_cast(k, IR_I64, a); }
static ir_val input(ir_kernel *k) { return ir_buffer(k, IR_I32, false); }
static ir_val output(ir_kernel *k) { return ir_buffer(k, IR_I32, true); }

/* With one lane everything is uniform, so that a CPU's compiler sees scalars. */
static ir_val lane_of(ir_kernel *k, const clb_schedule *s) {
  return s->lanes == 1 ? i32(k, 0) : ir_lane(k);
}

int clb_graph_digit_bits(const clb_schedule *s) { return s->lanes == 1 ? 11 : 8; }
int clb_graph_stride(const clb_schedule *s) { return s->lanes * s->graph.entries_per_lane; }

/* ---- schedule ---- */

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)limits;
  bool known = p->graph.step >= 0 && p->graph.step < CLB_GRAPH_STEPS;
  return known ? CLB_OK
               : clb_fail(error, CLB_ERROR_INTERNAL, "graph: there is no step %d",
                          (int)p->graph.step);
}

/* A CPU uses one lane, which needs no ranks. Elsewhere a few loads are in flight at a time. */
static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  static const bool sequential[CLB_GRAPH_STEPS] = {[CLB_GRAPH_COUNT] = true,
                                                   [CLB_GRAPH_SCAN] = true,
                                                   [CLB_GRAPH_SCATTER] = true,
                                                   [CLB_GRAPH_ROWS] = true};
  bool flat = p->graph.step >= CLB_GRAPH_EDGES;
  int lanes = limits->lanes[CLB_F32], subgroups = !flat || limits->simd ? 1 : 256 / lanes;
  if (subgroups > limits->max_subgroups) subgroups = limits->max_subgroups;
  *s = (clb_schedule){.lanes = lanes,
                      .subgroups = subgroups < 1 ? 1 : subgroups,
                      .graph = {.entries_per_lane = limits->simd || flat ? 1 : WIDTH}};
  if (limits->simd && sequential[p->graph.step]) s->lanes = 1;
}

/* ---- the sequential steps: a group goes through a chunk of the list ---- */

typedef struct {
  ir_kernel *k;
  const clb_schedule *s;
  ir_val lane, end;      /* end: of the chunk */
  ir_val counter, shown; /* local: by digit; the digits of all lanes */
} sorter;

/* Opens the loop over the group's chunk; gives the position of lane 0. */
static ir_val begin_chunk(sorter *w, ir_val n, ir_val chunk) {
  ir_kernel *k = w->k;
  ir_val first = ir_mul(k, wide(k, ir_group(k)), chunk);
  w->end = minimum(k, ir_add(k, first, chunk), n);
  return ir_loop(k, first, w->end, i64(k, clb_graph_stride(w->s)));
}

static ir_val place_of(sorter *w, ir_val start, int iteration) {
  return ir_add(w->k, ir_add(w->k, start, i64(w->k, (int64_t)iteration * w->s->lanes)),
                wide(w->k, w->lane));
}

static void lower_check(ir_kernel *k, const clb_schedule *s, ir_type type) {
  sorter w = {.k = k, .s = s, .lane = lane_of(k, s)};
  ir_val from[2], offset[2], limit[2], to[2], good = IR_NONE, none = i32(k, INT32_MAX);
  for (int i = 0; i < 2; i++) from[i] = ir_buffer(k, type, false), offset[i] = ir_scalar(k, IR_I64);
  ir_val n = ir_scalar(k, IR_I64), chunk = ir_scalar(k, IR_I64);
  for (int i = 0; i < 2; i++) limit[i] = ir_cast(k, type, ir_scalar(k, IR_I32));
  ir_val first_receiver = ir_cast(k, type, ir_scalar(k, IR_I32));
  for (int i = 0; i < 2; i++) to[i] = output(k);
  ir_val found = output(k), bad = ir_var(k, none, false), start = begin_chunk(&w, n, chunk);
  for (int u = 0; u < s->graph.entries_per_lane; u++) {
    ir_val place = place_of(&w, start, u), mask = less(k, place, w.end), value[2];
    for (int i = 0; i < 2; i++) value[i] = ir_load(k, from[i], ir_add(k, place, offset[i]), mask);
    value[1] = ir_sub(k, value[1], first_receiver);
    for (int i = 0; i < 2; i++) {
      ir_val fits =
          both(k, ir_2(k, IR_LE, ir_int(k, type, 0), value[i]), less(k, value[i], limit[i]));
      good = i ? both(k, good, fits) : fits;
      ir_store(k, to[i], place, mask, ir_cast(k, IR_I32, value[i]));
    }
    ir_val here =
        ir_select(k, both(k, mask, ir_1(k, IR_NOT, good)), ir_cast(k, IR_I32, place), none);
    ir_set(k, bad, minimum(k, ir_get(k, bad), here));
  }
  ir_end(k);
  ir_val first = ir_get(k, bad);
  for (int d = s->lanes / 2; d; d /= 2) first = minimum(k, first, ir_shuffle_xor(k, first, d));
  ir_store(k, found, ir_add(k, ir_group(k), w.lane), less(k, w.lane, i32(k, 1)), first);
}

/* Digit `which` of a node, counted from the last. */
static ir_val digit_of(sorter *w, ir_val node, ir_val which) {
  ir_kernel *k = w->k;
  int bits = clb_graph_digit_bits(w->s);
  ir_val digit = ir_2(k, IR_MOD, node, i32(k, 1 << bits));
  for (int d = 1; d * bits < 31; d++) {
    ir_val other = ir_2(k, IR_MOD, ir_2(k, IR_DIV, node, i32(k, 1 << d * bits)), i32(k, 1 << bits));
    digit = ir_select(k, ir_2(k, IR_EQ, which, i32(k, d)), other, digit);
  }
  return digit;
}

/* The value of the digit's counter for this lane, with lanes counted one after the other. */
static ir_val count_up(sorter *w, ir_val digit, ir_val mask) {
  ir_kernel *k = w->k;
  int lanes = w->s->lanes;
  ir_val one = i32(k, 1), zero = i32(k, 0), before = zero, all = zero, seen[IR_MAX_WIDTH];
  if (lanes == 1) {
    ir_val at = ir_load(k, w->counter, digit, mask);
    ir_store(k, w->counter, digit, mask, ir_add(k, at, one));
    return at;
  }
  ir_store(k, w->shown, w->lane, IR_NONE, ir_select(k, mask, digit, i32(k, -1)));
  ir_barrier(k, false);
  for (int j = 0; j < lanes; j++) {
    if (j % IR_MAX_WIDTH == 0)
      ir_load_wide(k, w->shown, i32(k, j), IR_NONE,
                   lanes - j < IR_MAX_WIDTH ? lanes - j : IR_MAX_WIDTH, seen);
    ir_val same = ir_2(k, IR_EQ, seen[j % IR_MAX_WIDTH], digit);
    all = ir_add(k, all, ir_select(k, same, one, zero));
    before = ir_add(k, before, ir_select(k, both(k, same, less(k, i32(k, j), w->lane)), one, zero));
  }
  ir_val at = ir_load(k, w->counter, digit, mask),
         last = ir_2(k, IR_EQ, ir_add(k, before, one), all);
  ir_barrier(k, false);
  ir_store(k, w->counter, digit, both(k, mask, last), ir_add(k, at, all));
  return ir_add(k, at, before);
}

/* Loops over all digits, `lanes` at a time: gives this lane's digit, and its position in the
   table. */
static ir_val begin_digits(sorter *w, ir_val *in_table, ir_val groups) {
  ir_kernel *k = w->k;
  ir_val first =
             ir_loop(k, i32(k, 0), i32(k, 1 << clb_graph_digit_bits(w->s)), i32(k, w->s->lanes)),
         digit = ir_add(k, first, w->lane);
  *in_table = ir_add(k, ir_mul(k, wide(k, digit), groups), wide(k, ir_group(k)));
  return digit;
}

/* The edge in a place of a list, by the list's stride. */
static ir_val edge_at(ir_kernel *k, ir_val list, ir_val place, ir_val stride, ir_val mask) {
  const ir_val pairs = ir_2(k, IR_EQ, stride, i32(k, 2)),
               at = ir_add(k, ir_mul(k, place, wide(k, stride)), i64(k, 1));
  return ir_select(k, pairs, ir_load(k, list, at, both(k, mask, pairs)), ir_cast(k, IR_I32, place));
}

/* COUNT and PLACE share their loop. */
static void lower_sort(ir_kernel *k, const clb_schedule *s, bool moves) {
  sorter w = {.k = k, .s = s, .lane = lane_of(k, s)};
  ir_val list = input(k), stride = ir_scalar(k, IR_I32), n = ir_scalar(k, IR_I64),
         chunk = ir_scalar(k, IR_I64), which = ir_scalar(k, IR_I32);
  ir_val table = ir_buffer(k, IR_I32, !moves), base = moves ? input(k) : IR_NONE,
         to = moves ? output(k) : IR_NONE, in_table;
  ir_val apart = wide(k, stride), node[WIDTH], edge[WIDTH], mask[WIDTH];
  ir_val groups = ir_2(k, IR_DIV, ir_add(k, n, ir_sub(k, chunk, i64(k, 1))), chunk);
  w.counter = ir_local(k, IR_I32, 1 << clb_graph_digit_bits(s));
  if (s->lanes > 1) w.shown = ir_local(k, IR_I32, s->lanes);
  ir_val digit = begin_digits(&w, &in_table, groups),
         start = moves ? ir_load(k, table, in_table, IR_NONE) : i32(k, 0);
  if (moves) start = ir_add(k, start, ir_load(k, base, digit, IR_NONE));
  ir_store(k, w.counter, digit, IR_NONE, start);
  ir_end(k);
  if (s->lanes > 1) ir_barrier(k, false);

  start = begin_chunk(&w, n, chunk);
  for (int u = 0; u < s->graph.entries_per_lane; u++) {
    ir_val place = place_of(&w, start, u), at = ir_mul(k, place, apart);
    mask[u] = less(k, place, w.end);
    node[u] = ir_load(k, list, at, mask[u]);
    if (moves) edge[u] = edge_at(k, list, place, stride, mask[u]);
  }
  for (int u = 0; u < s->graph.entries_per_lane; u++) {
    ir_val at = count_up(&w, digit_of(&w, node[u], which), mask[u]);
    if (moves)
      ir_store_wide(k, to, ir_mul(k, wide(k, at), i64(k, 2)), mask[u], 2,
                    (ir_val[]){node[u], edge[u]});
  }
  ir_end(k);
  if (moves) return;
  if (s->lanes > 1) ir_barrier(k, false);
  digit = begin_digits(&w, &in_table, groups);
  ir_store(k, table, in_table, IR_NONE, ir_load(k, w.counter, digit, IR_NONE));
  ir_end(k);
}

/* An exclusive prefix sum. */
static void lower_scan(ir_kernel *k, const clb_schedule *s) {
  ir_val numbers = output(k), length = ir_scalar(k, IR_I64), sums = output(k), lane = lane_of(k, s),
         zero = i32(k, 0);
  ir_val row = ir_mul(k, wide(k, ir_group(k)), length), before = ir_var(k, zero, true);
  ir_val first = ir_loop(k, i64(k, 0), length, i64(k, s->lanes)),
         i = ir_add(k, first, wide(k, lane)), mask = less(k, i, length);
  ir_val own = ir_load(k, numbers, ir_add(k, row, i), mask), sum = own;
  for (int d = 1; d < s->lanes; d *= 2) {
    ir_val far = ir_sub(k, lane, i32(k, d)), other = ir_shuffle(k, sum, ir_2(k, IR_MAX, far, zero));
    sum = ir_add(k, sum, ir_select(k, ir_2(k, IR_LE, zero, far), other, zero));
  }
  ir_store(k, numbers, ir_add(k, row, i), mask, ir_add(k, ir_get(k, before), ir_sub(k, sum, own)));
  ir_set(
      k, before,
      ir_add(k, ir_get(k, before), s->lanes == 1 ? sum : ir_shuffle(k, sum, i32(k, s->lanes - 1))));
  ir_end(k);
  ir_store(k, sums, ir_add(k, ir_group(k), lane), less(k, lane, i32(k, 1)), ir_get(k, before));
}

/* ---- the flat steps: a lane handles one slot, row or split ---- */

static ir_val own_index(ir_kernel *k, const clb_schedule *s) {
  ir_val group = wide(k, ir_group(k));
  if (s->subgroups > 1)
    group = ir_add(k, ir_mul(k, group, i64(k, s->subgroups)), wide(k, ir_subgroup(k)));
  return ir_add(k, ir_mul(k, group, i64(k, s->lanes)), wide(k, lane_of(k, s)));
}

static void lower_edges(ir_kernel *k, const clb_schedule *s) {
  ir_val list = input(k), stride = ir_scalar(k, IR_I32), others = input(k),
         n = ir_scalar(k, IR_I64), n_ends = ir_scalar(k, IR_I64), edges = output(k),
         ends = output(k);
  ir_val place = own_index(k, s), mask = less(k, place, n), ended = less(k, place, n_ends);
  ir_val edge = edge_at(k, list, place, stride, mask);
  ir_store(k, edges, place, mask, edge);
  ir_store(k, ends, place, ended, ir_load(k, others, edge, ended));
}

/* The parameters of ROWS. */
typedef struct {
  ir_val list, apart, n, n_rows, turns, top, starts; /* n, apart: i64 */
} row_search;

/* One row per lane: a binary search that adds powers of two to the number of slots known to belong
   to earlier rows. */
static void search_rows(ir_kernel *k, const clb_schedule *s, const row_search *r) {
  ir_val index = own_index(k, s), mask = ir_2(k, IR_LE, index, wide(k, r->n_rows)),
         row = ir_cast(k, IR_I32, index), n = ir_cast(k, IR_I32, r->n);
  ir_val known = ir_var(k, i32(k, 0), false), step = ir_var(k, r->top, true);
  ir_loop(k, i32(k, 0), r->turns, i32(k, 1));
  ir_val next = ir_add(k, ir_get(k, known), ir_get(k, step)),
         inside = both(k, mask, ir_2(k, IR_LE, next, n));
  ir_val node =
      ir_load(k, r->list, ir_mul(k, wide(k, ir_sub(k, next, i32(k, 1))), r->apart), inside);
  ir_set(k, known, ir_select(k, both(k, inside, less(k, node, row)), next, ir_get(k, known)));
  ir_set(k, step, ir_2(k, IR_DIV, ir_get(k, step), i32(k, 2)));
  ir_end(k);
  ir_store(k, r->starts, index, mask, ir_get(k, known));
}

/* A group of one lane goes through some slots: at each it starts the rows after that of the
   previous slot; slot n counts as one of row n_rows. */
static void scan_rows(ir_kernel *k, const row_search *r) {
  ir_val one = i32(k, 1), first = ir_mul(k, wide(k, ir_group(k)), i64(k, PLACES_OF_GROUP)),
         before = ir_sub(k, first, i64(k, 1));
  ir_val node = ir_load(k, r->list, ir_mul(k, before, r->apart), less(k, i64(k, 0), first));
  ir_val row =
      ir_var(k, ir_select(k, less(k, i64(k, 0), first), ir_add(k, node, one), i32(k, 0)), true);
  ir_val place = ir_loop(
             k, first,
             minimum(k, ir_add(k, first, i64(k, PLACES_OF_GROUP)), ir_add(k, r->n, i64(k, 1))),
             i64(k, 1)),
         inside = less(k, place, r->n);
  ir_val end = ir_add(
      k, ir_select(k, inside, ir_load(k, r->list, ir_mul(k, place, r->apart), inside), r->n_rows),
      one);
  ir_val start = ir_loop(k, ir_get(k, row), end, one);
  ir_store(k, r->starts, start, IR_NONE, ir_cast(k, IR_I32, place));
  ir_end(k);
  ir_set(k, row, end);
  ir_end(k);
}

static void lower_rows(ir_kernel *k, const clb_schedule *s) {
  row_search r;
  r.list = input(k);
  r.apart = wide(k, ir_scalar(k, IR_I32));
  r.n = ir_scalar(k, IR_I64);
  r.n_rows = ir_scalar(k, IR_I32);
  r.turns = ir_scalar(k, IR_I32);
  r.top = ir_scalar(k, IR_I32);
  r.starts = output(k);
  if (s->lanes > 1) search_rows(k, s, &r);
  else scan_rows(k, &r);
}

/* The only row to which split s can belong is that of slot s P; after the last row there is none.
 */
static void lower_splits(ir_kernel *k, const clb_schedule *s) {
  ir_val list = input(k), stride = ir_scalar(k, IR_I32), starts = input(k),
         n = ir_scalar(k, IR_I64), length = ir_scalar(k, IR_I64), n_rows = ir_scalar(k, IR_I64),
         splits = output(k), segments = output(k), split_rows = output(k), index = own_index(k, s);
  ir_val mask = less(k, index, n), split = ir_add(k, index, i64(k, 1));
  const ir_val node = ir_load(k, list, ir_mul(k, ir_mul(k, split, length), wide(k, stride)), mask),
               row = minimum(k, node, ir_sub(k, ir_cast(k, IR_I32, n_rows), i32(k, 1)));
  ir_val a = wide(k, ir_load(k, starts, row, mask)),
         b = wide(k, ir_load(k, starts, ir_add(k, row, i32(k, 1)), mask));
  ir_val part = ir_sub(k, split, ir_2(k, IR_DIV, a, length)),
         first = ir_add(k, a, ir_mul(k, part, length));
  ir_val used = both(k, less(k, i64(k, 0), part), less(k, first, b)),
         count = ir_select(k, used, minimum(k, length, ir_sub(k, b, first)), i64(k, 0));
  ir_val number = ir_cast(k, IR_I32, index),
         first_one = both(k, used, ir_2(k, IR_EQ, part, i64(k, 1)));
  ir_val later = ir_select(
      k, first_one, ir_2(k, IR_DIV, ir_sub(k, ir_sub(k, b, a), i64(k, 1)), length), i64(k, 0));
  const ir_val segment[] = {row, ir_cast(k, IR_I32, first), ir_cast(k, IR_I32, count)};
  ir_store_wide(k, splits, ir_mul(k, index, i64(k, 3)), mask, 3, segment);
  ir_store_wide(k, segments, ir_mul(k, ir_add(k, n_rows, index), i64(k, 3)), mask, 3, segment);
  ir_store_wide(k, split_rows, ir_mul(k, index, i64(k, 3)), mask, 3,
                (ir_val[]){row, number, ir_cast(k, IR_I32, later)});
}

/* One row per lane. */
static void lower_list(ir_kernel *k, const clb_schedule *s) {
  ir_val starts = input(k), n_rows = ir_scalar(k, IR_I32), length = ir_scalar(k, IR_I32),
         segments = output(k), index = own_index(k, s);
  ir_val mask = less(k, index, wide(k, n_rows)), row = ir_cast(k, IR_I32, index),
         at = ir_mul(k, index, i64(k, 3));
  ir_val a = ir_load(k, starts, index, mask),
         n = ir_sub(k, ir_load(k, starts, ir_add(k, index, i64(k, 1)), mask), a);
  ir_store_wide(k, segments, at, mask, 3, (ir_val[]){row, a, minimum(k, n, length)});
}

/* ---- the kind ---- */

static const char *const names[CLB_GRAPH_STEPS] = {
    "graph_check", "graph_check_wide", "graph_count",  "graph_scan",    "graph_place",
    "graph_edges", "graph_rows",       "graph_splits", "graph_segments"};

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  bool one_lane = p->graph.step == CLB_GRAPH_ROWS && s->lanes == 1;
  ir_begin(k, names[p->graph.step], s->lanes, s->subgroups,
           one_lane ? PLACES_OF_GROUP : s->lanes * s->subgroups);
  switch ((clb_graph_step)p->graph.step) {
    case CLB_GRAPH_CHECK: lower_check(k, s, IR_I32); break;
    case CLB_GRAPH_CHECK_WIDE: lower_check(k, s, IR_I64); break;
    case CLB_GRAPH_COUNT: lower_sort(k, s, false); break;
    case CLB_GRAPH_SCAN: lower_scan(k, s); break;
    case CLB_GRAPH_SCATTER: lower_sort(k, s, true); break;
    case CLB_GRAPH_EDGES: lower_edges(k, s); break;
    case CLB_GRAPH_ROWS: lower_rows(k, s); break;
    case CLB_GRAPH_SPLITS: lower_splits(k, s); break;
    default: lower_list(k, s);
  }
  ir_finish(k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%s", names[p->graph.step]);
}

const clb_kernel_kind clb_kind_graph = {
    .name = "graph", .check = check, .schedule = schedule, .lower = lower, .print = print};
