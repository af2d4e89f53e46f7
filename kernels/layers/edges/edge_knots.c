/* kernels/layers/edges/edge_knots.c - where edges lie between knots, h apart from 0 to R, and the
   factors of rows at four of them; a lane is an edge.

   With b the first of these, r = h (b + t): L_j(t), j < 4, are the cubics that are 1 at t = j and 0
   at the other three. b is such that r lies between the middle two, but at the ends of the knots
   and at one, `split`, where second derivatives may jump: no four lie on both sides of it. r is
   clamped to R, from where on slopes are 0. */
#include "kernels/layers/layer.h"

#define SHORTEST 1e-6

enum { FIRST, FORWARD, ALONG, BACKWARD, PASSES, ROWS = 4 };

typedef struct {
  clb_row_block rows;
  ir_kernel *k;
  ir_type t;
  const clb_edge_knots_problem *p;
  ir_val v[3], u, inverse; /* u: r / h; inverse: 1 / r, or 0 from R on */
} builder;

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)limits;
  const int32_t n = p->edge_knots.intervals, split = p->edge_knots.split;
  return p->edge_knots.r_max > 0 && n >= ROWS - 1 &&
                 (!split || (split >= ROWS - 1 && n - split >= ROWS - 1))
             ? CLB_OK
             : clb_fail(error, CLB_ERROR_ARGUMENT,
                        "r_max is %g, with %d intervals, %d before the split; r_max must be above "
                        "0, and there must be 3 intervals or more on each side",
                        p->edge_knots.r_max, (int)n, (int)split);
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, false, s);
  s->rows.columns_per_piece = ROWS;
}

static ir_val real(builder *b, double x) { return ir_real(b->k, b->t, x); }
static ir_val times(builder *b, ir_val x, ir_val y) { return ir_mul(b->k, x, y); }
static ir_val dot(builder *b, const ir_val *x, const ir_val *y) {
  return ir_fma(b->k, x[0], y[0], ir_fma(b->k, x[1], y[1], times(b, x[2], y[2])));
}

static void length(builder *b, const clb_row_array *v) {
  const double R = b->p->r_max;
  clb_rows_load(&b->rows, v, 0, 3, b->v);
  const ir_val r = ir_1(b->k, IR_SQRT, dot(b, b->v, b->v)),
               safe = ir_2(b->k, IR_MAX, r, real(b, SHORTEST * R)),
               inside = ir_2(b->k, IR_LT, r, real(b, R));
  b->u = times(b, ir_2(b->k, IR_MIN, r, real(b, R)), real(b, b->p->intervals / R));
  b->inverse = ir_select(b->k, inside, ir_2(b->k, IR_DIV, real(b, 1), safe), real(b, 0));
}

static ir_val edge_of(builder *b) {
  return ir_add(b->k, b->rows.first, ir_cast(b->k, IR_I64, ir_lane(b->k)));
}

static void put_first(builder *b, ir_val firsts) {
  ir_kernel *k = b->k;
  const int32_t n = b->p->intervals, split = b->p->split;
  const ir_val u = ir_2(k, IR_MIN, b->u, real(b, n - 1)),
               below = ir_sub(k, ir_cast(k, IR_I32, u), clb_i32(k, 1));
  ir_val first = ir_2(k, IR_MAX, ir_2(k, IR_MIN, below, clb_i32(k, n - 3)), clb_i32(k, 0));
  if (split)
    first = ir_select(k, ir_2(k, IR_LT, below, clb_i32(k, split - 1)),
                      ir_2(k, IR_MIN, first, clb_i32(k, split - 3)),
                      ir_2(k, IR_MAX, first, clb_i32(k, split)));
  ir_store(k, firsts, edge_of(b), b->rows.mask, first);
}

static void factors(builder *b, ir_val firsts, ir_val c[ROWS]) {
  ir_kernel *k = b->k;
  const ir_val first = ir_load(k, firsts, edge_of(b), b->rows.mask),
               t = ir_sub(k, b->u, ir_cast(k, b->t, first));
  ir_val from[ROWS];
  for (int j = 0; j < ROWS; j++) from[j] = ir_sub(k, t, real(b, j));
  const ir_val low = times(b, from[0], from[1]), high = times(b, from[2], from[3]);
  c[0] = times(b, times(b, from[1], high), real(b, -1. / 6));
  c[1] = times(b, times(b, from[0], high), real(b, 0.5));
  c[2] = times(b, times(b, low, from[3]), real(b, -0.5));
  c[3] = times(b, times(b, low, from[2]), real(b, 1. / 6));
}

static void pull(builder *b, const clb_row_array *g_c, const ir_val *c, const clb_row_array *g_v,
                 ir_val add) {
  ir_val g[ROWS], there[3], sum = real(b, 0);
  clb_rows_load(&b->rows, g_c, 0, ROWS, g);
  for (int j = 0; j < ROWS; j++) sum = ir_fma(b->k, g[j], c[j], sum);
  sum = times(b, sum, b->inverse);
  clb_row_block adding = b->rows;
  adding.mask = clb_wanted_lanes(b->k, add, b->rows.left);
  clb_rows_load(&adding, g_v, 0, 3, there);
  for (int i = 0; i < 3; i++) there[i] = ir_fma(b->k, sum, b->v[i], there[i]);
  clb_rows_store(&b->rows, g_v, 0, 3, there, false);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[PASSES] = {"edge_knots_first", "edge_knots", "edge_knots_along",
                                            "edge_knots_backward"};
  const clb_dtype type = (clb_dtype)p->storage;
  builder b = {.k = k, .t = clb_ir_type((clb_dtype)p->arithmetic), .p = &p->edge_knots};
  clb_row_array in, out;
  ir_val c[ROWS], q[3], add = IR_NONE;
  ir_begin(k, names[p->pass], s->lanes, s->subgroups, s->lanes * s->subgroups);
  clb_rows_begin(&b.rows, k, s, (clb_dtype)p->arithmetic);
  const clb_row_array v = clb_rows_array(&b.rows, type, false);
  if (p->pass >= ALONG) in = clb_rows_array(&b.rows, type, false);
  if (p->pass >= FORWARD) out = clb_rows_array(&b.rows, type, true);
  const ir_val firsts = ir_buffer(k, IR_I32, p->pass == FIRST);
  if (p->pass == BACKWARD) add = ir_scalar(k, IR_I32);
  clb_rows_start(&b.rows, type, ROWS);
  length(&b, &v);
  if (p->pass == FIRST) put_first(&b, firsts);
  else factors(&b, firsts, c);
  if (p->pass == ALONG) {
    clb_rows_load(&b.rows, &in, 0, 3, q);
    const ir_val speed = times(&b, dot(&b, b.v, q), b.inverse);
    for (int j = 0; j < ROWS; j++) c[j] = times(&b, c[j], speed);
  }
  if (p->pass == BACKWARD) pull(&b, &in, c, &out, add);
  else if (p->pass >= FORWARD) clb_rows_store(&b.rows, &out, 0, ROWS, c, false);
  ir_finish(k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%d intervals, r_max = %g", (int)p->edge_knots.intervals, p->edge_knots.r_max);
}

const clb_kernel_kind clb_kind_edge_knots = {.name = "edge_knots",
                                             .check = check,
                                             .schedule = schedule,
                                             .lower = lower,
                                             .print = print,
                                             .passes = PASSES};
