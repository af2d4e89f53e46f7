/* tests/ops/layers/test_layer_along.c - what training needs of densities, and of rows times
   numbers: derivatives along tangents of inputs, and the gradients of sums of values and of such
   derivatives, against plain loops and central differences, on every device that runs here, and on
   the interpreter with a GPU's limits. */
#include "tests/ops/layers/layer_along.h"

/* ---- densities ---- */

typedef struct {
  const density_case *c;
  const double *b, *a; /* functions, then the factor; their tangents */
} density_tangent;

/* The part of an edge of rho, then of rho along a. */
static void density_both(const void *user, const double *b, double *out) {
  const density_tangent *s = user;
  const density_case *c = s->c;
  const double f = c->weighted ? b[c->n_basis] : 1, a_f = c->weighted ? s->a[c->n_basis] : 0;
  double q = 0, turn = 0;
  for (int k = 0; k < c->n_basis; k++) q += b[k] * c->weights[k], turn += s->a[k] * c->weights[k];
  const double value = tanh(q * q);
  out[0] = f * value;
  out[1] = a_f * value + f * 2 * q * (1 - value * value) * turn;
}

static void density_both_by_weights(const void *user, const double *weights, double *out) {
  const density_tangent *s = user;
  density_case c = *s->c;
  memcpy(c.weights, weights, (size_t)c.n_basis * sizeof *weights);
  density_both(&(density_tangent){&c, s->b, s->a}, s->b, out);
}

/* What the device must find: along tangents, and gradients of sum g rho + h rho_along by all that
   edges have, and by the weights. */
typedef struct {
  double *along, *by_edges, *by_weights;
} density_results;

static density_results density_must(const pairs *p, const density_case *c, const double *b,
                                    const double *a, const double *g, const double *h) {
  const int64_t width = c->n_basis + c->weighted;
  density_results must = {calloc((size_t)p->receivers + 1, sizeof(double)),
                          calloc((size_t)(p->n * width + 1), sizeof(double)),
                          calloc((size_t)(p->n * c->n_basis + 1), sizeof(double))};
  for (int64_t e = 0; e < p->n; e++) {
    const int32_t i = p->end[0][e];
    const density_tangent one = {c, b + e * width, a + e * width};
    const double by[2] = {g[i], h[i]};
    double slope, *d = differences(density_both, &one, one.b, by, 1, width, 2),
                  *w = differences(density_both_by_weights, &one, c->weights, by, 1, c->n_basis, 2);
    slope_along(density_row, c, one.b, one.a, width, 1, &slope);
    must.along[i] += slope;
    memcpy(must.by_edges + e * width, d, (size_t)width * sizeof *d);
    memcpy(must.by_weights + e * c->n_basis, w, (size_t)c->n_basis * sizeof *w);
    free(d);
    free(w);
  }
  return must;
}

static void densities_once(clb_context *ctx, clb_dtype type, clb_op *op, const density_case *c,
                           int i) {
  uint64_t seed = 53;
  const bool dense = i % 2;
  const int64_t width = c->n_basis + c->weighted;
  pairs p = pairs_of(ctx, i);
  table basis = random_table(ctx, type, p.n, c->n_basis, dense, 1, &seed),
        factor = random_table(ctx, type, p.n, 1, !dense, 1, &seed),
        a_basis = random_table(ctx, type, p.n, c->n_basis, !dense, 1, &seed),
        a_factor = random_table(ctx, type, p.n, 1, dense, 1, &seed),
        g = random_table(ctx, type, p.receivers, 1, dense, 1, &seed),
        h = random_table(ctx, type, p.receivers, 1, !dense, 1, &seed), along[2], d_basis[2],
        d_factor[2], g_weights[2],
        g_basis = result_table(ctx, type, p.n, c->n_basis, dense, false, &seed),
        g_factor = result_table(ctx, type, p.n, 1, dense, false, &seed);
  double *b = joined(&basis, c->weighted ? &factor : NULL),
         *a = joined(&a_basis, c->weighted ? &a_factor : NULL), *by_rho = plain(&g),
         *by_along = plain(&h);
  const density_results must = density_must(&p, c, b, a, by_rho, by_along);
  for (int k = 0; k < 2; k++) {
    seed = 59;
    along[k] = result_table(ctx, type, p.receivers, 1, !dense, false, &seed);
    d_basis[k] = result_table(ctx, type, p.n, c->n_basis, !dense, true, &seed);
    d_factor[k] = result_table(ctx, type, p.n, 1, dense, true, &seed);
    g_weights[k] = result_table(ctx, type, p.n, c->n_basis, dense, false, &seed);
    OK(ctx, clb_density_along(op, p.graph, rows_of(&basis), rows_of(&factor), rows_of(&a_basis),
                              rows_of(&a_factor), rows_of(&along[k])));
    OK(ctx, clb_density_reverse(op, p.graph, rows_of(&basis), rows_of(&factor), rows_of(&a_basis),
                                rows_of(&a_factor), rows_of(&g), rows_of(&h), rows_of(&d_basis[k]),
                                rows_of(&d_factor[k]), rows_of(&g_weights[k])));
  }
  double *b_slope = columns_of(must.by_edges, p.n, width, 0, c->n_basis),
         *f_slope = c->weighted ? columns_of(must.by_edges, p.n, width, c->n_basis, 1) : NULL;
  const double error = slope_error_of(type);
  expect_rows(ctx, "density along", &along[0], false, must.along, error);
  expect_rows(ctx, "density reverse", &d_basis[0], true, b_slope, error);
  if (c->weighted)
    expect_rows(ctx, "density reverse by factors", &d_factor[0], true, f_slope, error);
  expect_rows(ctx, "density reverse by weights", &g_weights[0], false, must.by_weights, error);
  OK(ctx, clb_density_backward(op, p.graph, rows_of(&basis), rows_of(&factor), rows_of(&h),
                               rows_of(&g_basis), rows_of(&g_factor), false, false));
  expect_adjoint(ctx, "density", (const table *const[][2]){{&h, &along[0]}}, 1,
                 (const table *const[][2]){{&g_basis, &a_basis}, {&g_factor, &a_factor}},
                 1 + c->weighted);
  table *both[] = {along, d_basis, d_factor, g_weights};
  for (int k = 0; k < 4; k++) expect_same(ctx, &both[k][0], &both[k][1]);
  drop_tables((table *[]){&basis, &factor, &a_basis, &a_factor, &g, &h, along, d_basis, d_factor,
                          g_weights, &g_basis, &g_factor},
              12);
  double *numbers[] = {b,       a,          by_rho,        by_along,       b_slope,
                       f_slope, must.along, must.by_edges, must.by_weights};
  for (int k = 0; k < 9; k++) free(numbers[k]);
  drop_pairs(&p);
}

static void densities(void **state) {
  clb_context *ctx = context(state);
  static const int counts[] = {1, 10, 3, 33};
  EACH_TYPE((struct device *)*state, type)
  for (int k = 0; k < 4; k++) {
    uint64_t seed = 3;
    density_case c = {.n_basis = counts[k], .weighted = k % 2};
    clb_op *op;
    for (int w = 0; w < c.n_basis; w++) c.weights[w] = test_random(&seed);
    OK(ctx, clb_density_create(ctx, type, c.n_basis, c.weights, c.weighted, &op));
    OK(ctx, clb_layer_add_training(op));
    for (int i = 0; i < SIZES; i++) densities_once(ctx, type, op, &c, i);
    clb_op_destroy(&op);
  }
}

/* ---- rows times numbers ---- */

typedef struct {
  const scale_case *c;
  const double *a; /* a_x, then a_t */
} scale_tangent;

/* y, then y along a. */
static void scale_both(const void *user, const double *x, double *out) {
  const scale_tangent *s = user;
  const int64_t columns = s->c->columns;
  const double t = x[columns], scale = s->c->factor ? 1 / scale_divisor(s->c, t) : t,
               slope = s->c->factor ? -scale * scale : 1;
  scale_row(s->c, x, out);
  for (int64_t i = 0; i < columns; i++)
    out[columns + i] = scale * s->a[i] + slope * s->a[columns] * x[i];
}

static void scales_once(clb_context *ctx, clb_dtype type, clb_op *op, const scale_case *c,
                        int64_t n, int turn) {
  uint64_t seed = 43;
  const bool dense = turn % 2;
  const int64_t width = c->columns + 1;
  table x = random_table(ctx, type, n, c->columns, dense, 1, &seed),
        t = random_table_around(ctx, type, n, 1, !dense, scale_middle(c), 0.75, &seed),
        a_x = random_table(ctx, type, n, c->columns, !dense, 1, &seed),
        a_t = random_table(ctx, type, n, 1, dense, 1, &seed),
        g = random_table(ctx, type, n, c->columns, dense, 1, &seed),
        h = random_table(ctx, type, n, c->columns, !dense, 1, &seed), along[2], d_x[2], d_t[2],
        g_x = result_table(ctx, type, n, c->columns, dense, false, &seed),
        g_t = result_table(ctx, type, n, 1, dense, false, &seed);
  double *all = joined(&x, &t), *a = joined(&a_x, &a_t), *by_y = plain(&g), *by_along = plain(&h),
         *must = calloc((size_t)(n * c->columns + 1), sizeof *must),
         *slope = calloc((size_t)(n * width + 1), sizeof *slope),
         *both = calloc((size_t)(2 * c->columns), sizeof *both);
  for (int64_t i = 0; i < n; i++) {
    const scale_tangent one = {c, a + i * width};
    slope_along(scale_row, c, all + i * width, one.a, width, c->columns, must + i * c->columns);
    memcpy(both, by_y + i * c->columns, (size_t)c->columns * sizeof *both);
    memcpy(both + c->columns, by_along + i * c->columns, (size_t)c->columns * sizeof *both);
    double *d = differences(scale_both, &one, all + i * width, both, 1, width, 2 * c->columns);
    memcpy(slope + i * width, d, (size_t)width * sizeof *d);
    free(d);
  }
  for (int k = 0; k < 2; k++) {
    seed = 47;
    along[k] = result_table(ctx, type, n, c->columns, dense, false, &seed);
    d_x[k] = result_table(ctx, type, n, c->columns, !dense, true, &seed);
    d_t[k] = result_table(ctx, type, n, 1, dense, true, &seed);
    OK(ctx, clb_row_scale_along(op, n, rows_of(&x), rows_of(&t), rows_of(&a_x), rows_of(&a_t),
                                rows_of(&along[k])));
    OK(ctx, clb_row_scale_reverse(op, n, rows_of(&x), rows_of(&t), rows_of(&a_x), rows_of(&a_t),
                                  rows_of(&g), rows_of(&h), rows_of(&d_x[k]), rows_of(&d_t[k])));
  }
  double *x_slope = columns_of(slope, n, width, 0, c->columns),
         *t_slope = columns_of(slope, n, width, c->columns, 1);
  expect_rows(ctx, "row_scale along", &along[0], false, must, slope_error_of(type));
  expect_rows(ctx, "row_scale reverse", &d_x[0], true, x_slope, slope_error_of(type));
  expect_rows(ctx, "row_scale reverse by t", &d_t[0], true, t_slope, slope_error_of(type));
  OK(ctx, clb_row_scale_backward(op, n, rows_of(&x), rows_of(&t), rows_of(&h), rows_of(&g_x),
                                 rows_of(&g_t), false));
  expect_adjoint(ctx, "row_scale", (const table *const[][2]){{&h, &along[0]}}, 1,
                 (const table *const[][2]){{&g_x, &a_x}, {&g_t, &a_t}}, 2);
  expect_same(ctx, &along[0], &along[1]);
  expect_same(ctx, &d_x[0], &d_x[1]);
  expect_same(ctx, &d_t[0], &d_t[1]);
  drop_tables((table *[]){&x, &t, &a_x, &a_t, &g, &h, along, d_x, d_t, &g_x, &g_t}, 11);
  double *numbers[] = {all, a, by_y, by_along, must, slope, both, x_slope, t_slope};
  for (int k = 0; k < 9; k++) free(numbers[k]);
}

static void scales(void **state) {
  clb_context *ctx = context(state);
  static const int64_t columns[] = {1, 7, 89, 300}, rows[] = {0, 1, 5, 33};
  EACH_TYPE((struct device *)*state, type)
  for (int k = 0; k < 12; k++) {
    const scale_case c = {columns[k / 3], (clb_row_factor)(k % 3)};
    clb_op *op;
    OK(ctx, clb_row_scale_create(ctx, type, c.columns, c.factor, &op));
    OK(ctx, clb_layer_add_training(op));
    for (int i = 0; i < 4; i++) scales_once(ctx, type, op, &c, rows[i], i + k);
    clb_op_destroy(&op);
  }
}

/* ---- mistakes, and targets ---- */

static void refuses(void **state) {
  clb_context *ctx = context(state);
  clb_op *op;
  uint64_t seed = 1;
  table x = random_table(ctx, CLB_F32, 20, 4, true, 1, &seed);
  const clb_rows rows = rows_of(&x), none = {0};
  OK(ctx, clb_row_scale_create(ctx, CLB_F32, 4, CLB_ROW_TIMES, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "created without this",
         clb_row_scale_along(op, 4, rows, rows, rows, rows, rows));
  OK(ctx, clb_layer_add_training(op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer of a_t is NULL",
         clb_row_scale_along(op, 4, rows, rows, rows, none, rows));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer of d_t is NULL",
         clb_row_scale_reverse(op, 4, rows, rows, rows, rows, rows, rows, rows, none));
  clb_op_destroy(&op);
  OK(ctx, clb_gather_create(ctx, CLB_F32, false, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "pointwise has no passes of training",
         clb_layer_add_training(op));
  clb_op_destroy(&op);
  assert_int_equal(clb_layer_add_training(NULL), CLB_ERROR_ARGUMENT);
  drop(&x.a);
}

static void compiles(void **state) {
  struct device *d = *state;
  skip_where_sanitized(d->name);
  clb_context *ctx = context(state);
  EACH_TYPE(d, type) {
    const double w[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    clb_op *op[2];
    OK(ctx, clb_row_scale_create(ctx, type, 89, CLB_ROW_OVER_MORE, &op[0]));
    OK(ctx, clb_density_create(ctx, type, 10, w, true, &op[1]));
    for (int i = 0; i < 2; i++) {
      OK(ctx, clb_layer_add_training(op[i]));
      for (int pass = 0; pass < 4; pass++) assert_true(op[i]->kernel[pass]->binary.n > 0);
      clb_op_destroy(&op[i]);
    }
  }
}

int main(void) {
  static const named_test tests[] = {
      {"densities", densities, false}, {"scales", scales, false}, {"refuses", refuses, false}};
  return run_on_all("layer_along", tests, sizeof tests / sizeof *tests, compiles);
}
