/* tests/ops/layers/test_edge_spline.c - rows of edges interpolated between knots, on every device
   that runs here: cubics on both sides of a split, which are met there, come out as they are;
   gradients against those of four rows found in another way. */
#include "tests/ops/layers/layer_pairs.h"

#include "kernels/layers/host/edge_spline.h"

enum { INTERVALS = 13, KNOTS = INTERVALS + 1, SPLIT = 6, MOST = 70, PLACES = 4 };
static const double r_max = 2.6;

typedef struct {
  int64_t n, columns;
  int split;
} shape;

/* Of a column: a cubic up to the split, to which a multiple of its distance is added from there. */
static double function(const shape *s, int64_t column, double r) {
  const double at = r_max * s->split / INTERVALS, x = r / r_max, a = sin(1 + 0.7 * (double)column),
               b = cos(2 * (double)column);
  return a + b * x + a * b * x * x - b * x * x * x + (s->split && r > at ? 3 * a * (r - at) : 0);
}

/* The factors of four knots around r that lie on its side of the split. */
static int find_rows(const shape *s, double r, double factor[PLACES]) {
  const double u = fmin(r, r_max) * INTERVALS / r_max;
  int first = -1;
  for (int b = 0; b + 3 <= INTERVALS; b++) {
    const bool crosses = s->split && b < s->split && b + 3 > s->split,
               outside = s->split && (u < s->split) != (b + 3 <= s->split);
    if (crosses || outside) continue;
    if (first < 0 || fabs(u - b - 1.5) < fabs(u - first - 1.5)) first = b;
  }
  for (int j = 0; j < PLACES; j++) {
    factor[j] = 1;
    for (int i = 0; i < PLACES; i++)
      if (i != j) factor[j] *= (u - first - i) / (j - i);
  }
  return first;
}

static double speed_of(const double *v, const double *q) {
  const double r = length_of(v);
  return r < r_max ? (v[0] * q[0] + v[1] * q[1] + v[2] * q[2]) / r : 0;
}

/* What all must be: w, along q, the gradient by v of g along the same table, and that by the table.
 */
typedef struct {
  double *w, *along, *g_v, *g_table;
} expected;

static expected expect_all(const shape *s, const double *v, const double *q, const double *g) {
  const size_t rows = (size_t)(s->n * s->columns + 1);
  expected e = {calloc(rows, 8), calloc(rows, 8), calloc((size_t)(3 * s->n + 1), 8),
                calloc((size_t)(KNOTS * s->columns), 8)};
  for (int64_t i = 0; i < s->n; i++, v += 3, q += 3, g += s->columns) {
    const double r = fmin(length_of(v), r_max);
    double factor[PLACES], sum = 0;
    const int first = find_rows(s, r, factor);
    for (int64_t k = 0; k < s->columns; k++) {
      const double f = function(s, k, r);
      e.w[i * s->columns + k] = f;
      e.along[i * s->columns + k] = f * speed_of(v, q);
      sum += g[k] * f;
      for (int j = 0; j < PLACES; j++) e.g_table[(first + j) * s->columns + k] += g[k] * factor[j];
    }
    for (int d = 0; d < 3 && length_of(v) < r_max; d++)
      e.g_v[3 * i + d] = sum * v[d] / length_of(v);
  }
  return e;
}

static table make_functions(clb_context *ctx, clb_dtype type, const shape *s, bool dense) {
  table t = make_table(type, KNOTS, s->columns, dense);
  for (int64_t i = 0; i < KNOTS * s->columns; i++)
    put(type, t.a.host, t.offset + i / s->columns * t.stride + i % s->columns,
        function(s, i % s->columns, r_max * (double)(i / s->columns) / INTERVALS));
  upload(ctx, &t.a);
  return t;
}

typedef struct {
  clb_op *knots, *spline;
  clb_graph *graph;
  clb_buffer *workspace;
} ops;

static ops make_ops(clb_context *ctx, clb_dtype type, const shape *s) {
  ops o;
  OK(ctx, clb_edge_knots_create(ctx, type, type, r_max, INTERVALS, s->split, &o.knots));
  OK(ctx, clb_edge_spline_create(ctx, type, INTERVALS, s->columns, &o.spline));
  OK(ctx, clb_graph_create(ctx, 0, 0, &o.graph));
  OK(ctx, clb_buffer_create(ctx, clb_edge_spline_bytes(o.spline), &o.workspace));
  return o;
}

static void drop_ops(ops *o) {
  clb_op_destroy(&o->knots);
  clb_op_destroy(&o->spline);
  clb_graph_destroy(&o->graph);
  clb_buffer_destroy(&o->workspace);
}

static void once(clb_context *ctx, clb_dtype type, const shape *s, ops *o, bool add) {
  uint64_t seed = 5;
  const bool dense = !add;
  const double error = type == CLB_F64 ? 1e-12 : 2e-5;
  table v = vectors(ctx, type, s->n, dense, 0.01, r_max, &seed),
        q = random_table(ctx, type, s->n, 3, !dense, 1, &seed),
        g = random_table(ctx, type, s->n, s->columns, dense, 1, &seed),
        t = make_functions(ctx, type, s, dense), c = make_table(type, s->n, PLACES, dense),
        a = make_table(type, s->n, PLACES, !dense), g_c = make_table(type, s->n, PLACES, true),
        w = make_table(type, s->n, s->columns, !dense),
        along = make_table(type, s->n, s->columns, dense),
        g_v = result_table(ctx, type, s->n, 3, dense, add, &seed),
        g_t = result_table(ctx, type, KNOTS, s->columns, dense, add, &seed);
  table *made[] = {&c, &a, &g_c, &w, &along};
  for (int i = 0; i < 5; i++) upload(ctx, &made[i]->a);
  double *at_v = plain(&v), *at_q = plain(&q), *at_g = plain(&g);
  const expected e = expect_all(s, at_v, at_q, at_g);
  OK(ctx, clb_graph_reserve(o->graph, 0, INTERVALS, s->n));
  OK(ctx, clb_edge_knots_sort(o->knots, s->n, rows_of(&v), o->graph));
  OK(ctx, clb_edge_knots_forward(o->knots, o->graph, rows_of(&v), rows_of(&c)));
  OK(ctx, clb_edge_knots_along(o->knots, o->graph, rows_of(&v), rows_of(&q), rows_of(&a)));
  OK(ctx, clb_edge_spline_forward(o->spline, o->graph, rows_of(&t), rows_of(&c), rows_of(&w)));
  OK(ctx, clb_edge_spline_forward(o->spline, o->graph, rows_of(&t), rows_of(&a), rows_of(&along)));
  OK(ctx, clb_edge_spline_backward(o->spline, o->graph, rows_of(&t), rows_of(&g), rows_of(&g_c)));
  OK(ctx,
     clb_edge_knots_backward(o->knots, o->graph, rows_of(&v), rows_of(&g_c), rows_of(&g_v), add));
  OK(ctx, clb_edge_spline_sum(o->spline, o->graph, rows_of(&c), rows_of(&g), rows_of(&g_t), add,
                              o->workspace));
  expect_rows(ctx, "rows", &w, false, e.w, error);
  expect_rows(ctx, "rows along", &along, false, e.along, error);
  expect_rows(ctx, "gradient by vectors", &g_v, add, e.g_v, 10 * error);
  expect_rows(ctx, "gradient by the table", &g_t, add, e.g_table, 4 * error);
  table *all[] = {&v, &q, &g, &t, &c, &a, &g_c, &w, &along, &g_v, &g_t};
  for (int i = 0; i < 11; i++) drop(&all[i]->a);
  double *numbers[] = {at_v, at_q, at_g, e.w, e.along, e.g_v, e.g_table};
  for (int i = 0; i < 7; i++) free(numbers[i]);
}

static void splines(void **state) {
  static const shape shapes[] = {{61, MOST, SPLIT}, {7, 5, 0}, {0, 5, 0}};
  clb_context *ctx = context(state);
  EACH_TYPE((struct device *)*state, type)
  for (int i = 0; i < 3; i++) {
    ops o = make_ops(ctx, type, &shapes[i]);
    for (int add = 0; add < 2; add++) once(ctx, type, &shapes[i], &o, add);
    drop_ops(&o);
  }
}

static void refuses(void **state) {
  clb_context *ctx = context(state);
  clb_op *op;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "with 9 intervals, 8 before the split",
         clb_edge_knots_create(ctx, CLB_F32, CLB_F32, 1, 9, 8, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "there are 3 knots",
         clb_edge_spline_create(ctx, CLB_F32, 2, 4, &op));
  assert_null(op);
}

static void compiles(void **state) {
  struct device *d = *state;
  skip_where_sanitized(d->name);
  clb_context *ctx = context(state);
  ops o = make_ops(ctx, CLB_F32, &(shape){1, MOST, SPLIT});
  for (int pass = 0; pass < 4; pass++)
    assert_true(o.knots->kernel[pass]->binary.n > 0 && o.spline->kernel[pass]->binary.n > 0);
  drop_ops(&o);
}

int main(void) {
  static const named_test all[] = {{"splines", splines, false}, {"refuses", refuses, false}};
  return run_on_all("edge_spline", all, sizeof all / sizeof *all, compiles);
}
