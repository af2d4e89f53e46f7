/* kernels/layers/edges/edge_spline.c - rows of edges from a table of rows at knots, and both
   gradients; lanes are columns.

   w_e = sum over j < 4 of c_e,j T_b(e)+j.  A sub-group does an edge; edges follow each other by b,
   so that rows of the table are read from a cache.  g_c_e,j = g_w_e . T_b(e)+j.  The gradient by T
   comes in two steps: a sub-group sums columns of c_e,j g_w_e over the edges of one b, in the order
   in which these are sorted; then those of four b are added up for each row of T. */
#include "kernels/layers/layer.h"

enum { FORWARD, BACKWARD, SUM, TOTAL, PASSES, ROWS = 4, TOGETHER = 4 };

typedef struct {
  clb_row_kernel l;
  clb_row_array table, rows; /* rows: w, or g_w */
  ir_val c[ROWS], from[ROWS], row, sum[ROWS];
  bool backward;
} builder;

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  const clb_edge_spline_problem *e = &p->edge_spline;
  return e->knots >= ROWS && e->columns > 0
             ? clb_layer_check(p, limits, error)
             : clb_fail(error, CLB_ERROR_ARGUMENT,
                        "there are %d knots and %d columns; they must be at least 4 and 1",
                        (int)e->knots, (int)e->columns);
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, p->pass == BACKWARD, s);
}

static void column(void *user, ir_val at, ir_val mask) {
  builder *b = user;
  ir_kernel *k = b->l.k;
  ir_val value[ROWS], w;
  for (int j = 0; j < ROWS; j++) value[j] = clb_layer_load(&b->l, &b->table, b->from[j], at, mask);
  if (b->backward) {
    w = clb_layer_load(&b->l, &b->rows, b->row, at, mask);
    for (int j = 0; j < ROWS; j++)
      ir_set(k, b->sum[j], ir_fma(k, w, value[j], ir_get(k, b->sum[j])));
    return;
  }
  w = ir_mul(k, b->c[0], value[0]);
  for (int j = 1; j < ROWS; j++) w = ir_fma(k, b->c[j], value[j], w);
  clb_layer_store(&b->l, &b->rows, b->row, at, mask, w);
}

static void lower_rows(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  builder b = {.backward = p->pass == BACKWARD};
  clb_layer_begin(&b.l, k, b.backward ? "edge_spline_backward" : "edge_spline", s, p->arithmetic);
  const ir_val sorted = ir_buffer(k, IR_I32, false), firsts = ir_buffer(k, IR_I32, false);
  b.table = clb_layer_array(&b.l, p->storage, false);
  b.rows = clb_layer_array(&b.l, p->storage, !b.backward);
  const clb_row_array c = clb_layer_array(&b.l, p->storage, b.backward);
  clb_layer_start(&b.l);
  const ir_val edge = ir_cast(k, IR_I64, ir_load(k, sorted, b.l.unit, IR_NONE)),
               first = ir_cast(k, IR_I64, ir_load(k, firsts, edge, IR_NONE)),
               start = clb_layer_row(&b.l, &c, edge);
  b.row = clb_layer_row(&b.l, &b.rows, edge);
  for (int j = 0; j < ROWS; j++) {
    b.from[j] = clb_layer_row(&b.l, &b.table, ir_add(k, first, clb_i64(k, j)));
    if (b.backward) b.sum[j] = ir_var(k, ir_real(k, b.l.t, 0), false);
    else b.c[j] = clb_layer_load(&b.l, &c, start, clb_i64(k, j), IR_NONE);
  }
  clb_layer_channels(&b.l, p->edge_spline.columns, column, &b);
  for (int j = 0; j < ROWS && b.backward; j++)
    clb_layer_store(&b.l, &c, start, clb_i64(k, j), clb_first_lane(k),
                    ir_reduce_add(k, ir_get(k, b.sum[j])));
  clb_layer_finish(&b.l);
}

/* ---- the gradient by the table ---- */

/* What a unit does: a column of each lane (with 4, sums took a third longer on an H200), of a row,
   or of edges with such a first row; bound: of their slots. */
typedef struct {
  ir_val row, at, mask, bound[2];
} place;

static place find(builder *b, const clb_problem *p) {
  ir_kernel *k = b->l.k;
  const int64_t lanes = b->l.s->lanes, columns = p->edge_spline.columns;
  const ir_val blocks = clb_i64(k, (columns - 1) / lanes + 1),
               block = ir_2(k, IR_MOD, b->l.unit, blocks);
  place x = {.at = ir_add(k, ir_mul(k, block, clb_i64(k, lanes)), ir_cast(k, IR_I64, ir_lane(k)))};
  x.row = ir_2(k, IR_DIV, b->l.unit, blocks);
  x.mask = ir_2(k, IR_LT, x.at, clb_i64(k, columns));
  return x;
}

static void find_slots(builder *b, ir_val starts, ir_val first, ir_val bound[2]) {
  ir_kernel *k = b->l.k;
  for (int i = 0; i < 2; i++)
    bound[i] = ir_load(k, starts, ir_add(k, first, clb_i64(k, i)), IR_NONE);
}

/* TOGETHER edges from a slot on. */
static void add_edges(builder *b, const clb_row_array *c, ir_val sorted, ir_val slots,
                      const place *x, ir_val sums[ROWS]) {
  ir_kernel *k = b->l.k;
  ir_val factor[ROWS][TOGETHER], g[TOGETHER];
  for (int t = 0; t < TOGETHER; t++) {
    const ir_val slot = ir_add(k, slots, clb_i32(k, t)), inside = ir_2(k, IR_LT, slot, x->bound[1]),
                 edge = ir_cast(k, IR_I64, ir_load(k, sorted, ir_cast(k, IR_I64, slot), inside)),
                 start = clb_layer_row(&b->l, c, edge), row = clb_layer_row(&b->l, &b->rows, edge);
    for (int j = 0; j < ROWS; j++)
      factor[j][t] = clb_layer_load(&b->l, c, start, clb_i64(k, j), inside);
    g[t] = clb_layer_load(&b->l, &b->rows, row, x->at, ir_2(k, IR_AND, inside, x->mask));
  }
  for (int j = 0; j < ROWS; j++) {
    ir_val sum = ir_get(k, sums[j]);
    for (int t = 0; t < TOGETHER; t++) sum = ir_fma(k, g[t], factor[j][t], sum);
    ir_set(k, sums[j], sum);
  }
}

/* part[first row][j][columns] of first rows that some edge has. */
static void lower_sum(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  builder b = {.backward = true};
  ir_val sums[ROWS];
  clb_layer_begin(&b.l, k, "edge_spline_sum", s, p->arithmetic);
  const ir_val starts = ir_buffer(k, IR_I32, false), sorted = ir_buffer(k, IR_I32, false);
  const clb_row_array c = clb_layer_array(&b.l, p->storage, false);
  b.rows = clb_layer_array(&b.l, p->storage, false);
  const ir_val part = ir_buffer(k, b.l.t, true), columns = clb_i64(k, p->edge_spline.columns);
  clb_layer_start(&b.l);
  place x = find(&b, p);
  find_slots(&b, starts, x.row, x.bound);
  ir_if(k, ir_2(k, IR_LT, x.bound[0], x.bound[1]));
  for (int j = 0; j < ROWS; j++) sums[j] = ir_var(k, ir_real(k, b.l.t, 0), false);
  const ir_val slots = ir_loop(k, x.bound[0], x.bound[1], clb_i32(k, TOGETHER));
  add_edges(&b, &c, sorted, slots, &x, sums);
  ir_end(k);
  for (int j = 0; j < ROWS; j++) {
    const ir_val row = ir_add(k, ir_mul(k, x.row, clb_i64(k, ROWS)), clb_i64(k, j)),
                 start = ir_mul(k, row, columns);
    ir_store(k, part, ir_add(k, start, x.at), x.mask, ir_get(k, sums[j]));
  }
  ir_end(k);
  clb_layer_finish(&b.l);
}

static void lower_total(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  builder b = {.backward = true};
  clb_layer_begin(&b.l, k, "edge_spline_total", s, p->arithmetic);
  const ir_val starts = ir_buffer(k, IR_I32, false), part = ir_buffer(k, b.l.t, false);
  b.table = clb_layer_array(&b.l, p->storage, true);
  const ir_val adds = ir_scalar(k, IR_I32), columns = clb_i64(k, p->edge_spline.columns);
  clb_layer_start(&b.l);
  place x = find(&b, p);
  const ir_val row = clb_layer_row(&b.l, &b.table, x.row),
               wanted = ir_2(k, IR_LT, clb_i32(k, 0), adds),
               last = clb_i64(k, p->edge_spline.knots - ROWS);
  ir_val sum = clb_layer_load(&b.l, &b.table, row, x.at, ir_2(k, IR_AND, wanted, x.mask));
  for (int j = 0; j < ROWS; j++) {
    const ir_val wish = ir_sub(k, x.row, clb_i64(k, j)),
                 first = ir_2(k, IR_MAX, ir_2(k, IR_MIN, wish, last), clb_i64(k, 0));
    find_slots(&b, starts, first, x.bound);
    const ir_val some = ir_2(k, IR_AND, ir_2(k, IR_EQ, wish, first),
                             ir_2(k, IR_LT, x.bound[0], x.bound[1])),
                 of = ir_add(k, ir_mul(k, first, clb_i64(k, ROWS)), clb_i64(k, j)),
                 at = ir_add(k, ir_mul(k, of, columns), x.at);
    sum = ir_add(k, sum, ir_load(k, part, at, ir_2(k, IR_AND, some, x.mask)));
  }
  clb_layer_store(&b.l, &b.table, row, x.at, x.mask, sum);
  clb_layer_finish(&b.l);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  (p->pass == SUM ? lower_sum : p->pass == TOTAL ? lower_total : lower_rows)(p, s, k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%d knots, %d columns", (int)p->edge_spline.knots, (int)p->edge_spline.columns);
}

const clb_kernel_kind clb_kind_edge_spline = {.name = "edge_spline",
                                              .check = check,
                                              .schedule = schedule,
                                              .lower = lower,
                                              .print = print,
                                              .passes = PASSES};
