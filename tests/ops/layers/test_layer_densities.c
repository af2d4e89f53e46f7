/* tests/ops/layers/test_layer_densities.c - densities of atoms, and rows times numbers, against
   plain loops and central differences, on every device that runs here, and on the interpreter with
   a GPU's limits. */
#include "tests/ops/layers/layer_functions.h"

/* ---- densities ---- */

static void densities_once(clb_context *ctx, clb_dtype type, clb_op *op, const density_case *c,
                           int i) {
  uint64_t seed = 23;
  const bool dense = i % 2, add = i % 3 == 2, add_factor = i % 4 == 1;
  const int64_t width = c->n_basis + c->weighted;
  pairs p = pairs_of(ctx, i);
  table basis = random_table(ctx, type, p.n, c->n_basis, dense, 1, &seed),
        factor = random_table(ctx, type, p.n, 1, !dense, 1, &seed),
        g_rho = random_table(ctx, type, p.receivers, 1, dense, 1, &seed), rho[2], g_basis[2],
        g_factor[2];
  double *b = joined(&basis, c->weighted ? &factor : NULL), *g = plain(&g_rho),
         *must = calloc((size_t)p.receivers + 1, sizeof *must),
         *slope = calloc((size_t)(p.n * width + 1), sizeof *slope);
  for (int64_t e = 0; e < p.n; e++) {
    double value, *d = differences(density_row, c, b + width * e, g + p.end[0][e], 1, width, 1);
    density_row(c, b + width * e, &value);
    must[p.end[0][e]] += value;
    memcpy(slope + width * e, d, (size_t)width * sizeof *d);
    free(d);
  }
  for (int k = 0; k < 2; k++) {
    seed = 29;
    rho[k] = result_table(ctx, type, p.receivers, 1, !dense, false, &seed);
    g_basis[k] = result_table(ctx, type, p.n, c->n_basis, !dense, add, &seed);
    g_factor[k] = result_table(ctx, type, p.n, 1, dense, add_factor, &seed);
    OK(ctx, clb_density_forward(op, p.graph, rows_of(&basis), rows_of(&factor), rows_of(&rho[k])));
    OK(ctx, clb_density_backward(op, p.graph, rows_of(&basis), rows_of(&factor), rows_of(&g_rho),
                                 rows_of(&g_basis[k]), rows_of(&g_factor[k]), add, add_factor));
  }
  double *b_slope = columns_of(slope, p.n, width, 0, c->n_basis),
         *f_slope = c->weighted ? columns_of(slope, p.n, width, c->n_basis, 1) : NULL;
  expect_rows(ctx, "density", &rho[0], false, must, error_of(type));
  expect_rows(ctx, "density backward", &g_basis[0], add, b_slope, slope_error_of(type));
  if (c->weighted)
    expect_rows(ctx, "density backward by factors", &g_factor[0], add_factor, f_slope,
                slope_error_of(type));
  table *both[] = {rho, g_basis, g_factor}, *in[] = {&basis, &factor, &g_rho};
  for (int k = 0; k < 3; k++) {
    expect_same(ctx, &both[k][0], &both[k][1]);
    drop(&both[k][0].a);
    drop(&in[k]->a);
  }
  double *numbers[] = {b, g, must, slope, b_slope, f_slope};
  for (int k = 0; k < 6; k++) free(numbers[k]);
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
    for (int i = 0; i < SIZES; i++) densities_once(ctx, type, op, &c, i);
    clb_op_destroy(&op);
  }
}

/* ---- rows times numbers ---- */

static void scales_once(clb_context *ctx, clb_dtype type, clb_op *op, const scale_case *c,
                        int64_t n, int turn) {
  uint64_t seed = 31;
  const bool dense = turn % 2, in_place = turn % 3 == 1, add = turn % 4 == 2;
  const int64_t width = c->columns + 1;
  table x = random_table(ctx, type, n, c->columns, dense, 1, &seed),
        t = random_table_around(ctx, type, n, 1, !dense, scale_middle(c), 0.75, &seed),
        g = random_table(ctx, type, n, c->columns, dense, 1, &seed),
        y = result_table(ctx, type, n, c->columns, dense, false, &seed),
        g_x = result_table(ctx, type, n, c->columns, !dense, false, &seed),
        g_t = result_table(ctx, type, n, 1, dense, add, &seed);
  double *all = joined(&x, &t), *gradient = plain(&g),
         *must = apply(scale_row, c, all, n, width, c->columns),
         *slope = differences(scale_row, c, all, gradient, n, width, c->columns),
         *x_slope = columns_of(slope, n, width, 0, c->columns),
         *t_slope = columns_of(slope, n, width, c->columns, 1);
  OK(ctx, clb_row_scale_backward(op, n, rows_of(&x), rows_of(&t), rows_of(&g),
                                 rows_of(in_place ? &g : &g_x), rows_of(&g_t), add));
  OK(ctx, clb_row_scale_forward(op, n, rows_of(&x), rows_of(&t), rows_of(in_place ? &x : &y)));
  expect_rows(ctx, "row_scale", in_place ? &x : &y, false, must, error_of(type));
  expect_rows(ctx, "row_scale backward", in_place ? &g : &g_x, false, x_slope,
              slope_error_of(type));
  expect_rows(ctx, "row_scale backward by t", &g_t, add, t_slope, slope_error_of(type));
  table *tables[] = {&x, &t, &g, &y, &g_x, &g_t};
  for (int k = 0; k < 6; k++) drop(&tables[k]->a);
  double *numbers[] = {all, gradient, must, slope, x_slope, t_slope};
  for (int k = 0; k < 6; k++) free(numbers[k]);
}

static void scales(void **state) {
  clb_context *ctx = context(state);
  static const int64_t columns[] = {1, 7, 89, 640}, rows[] = {0, 1, 5, 33};
  EACH_TYPE((struct device *)*state, type)
  for (int k = 0; k < 12; k++) {
    const scale_case c = {columns[k / 3], (clb_row_factor)(k % 3)};
    clb_op *op;
    OK(ctx, clb_row_scale_create(ctx, type, c.columns, c.factor, &op));
    for (int i = 0; i < 4; i++) scales_once(ctx, type, op, &c, rows[i], i + 4 * k);
    clb_op_destroy(&op);
  }
}

/* ---- mistakes, and targets ---- */

static void refuses(void **state) {
  clb_context *ctx = context(state);
  clb_op *op;
  uint64_t seed = 1;
  double w[4] = {1, 2, 3, 4};
  table x = random_table(ctx, CLB_F32, 20, 4, true, 1, &seed);
  pairs p = make_pairs(ctx, 4, 4, 9, 0);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "n_basis is 0",
         clb_density_create(ctx, CLB_F32, 0, w, false, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "n_basis is 65",
         clb_density_create(ctx, CLB_F32, 65, w, false, &op));
  OK(ctx, clb_density_create(ctx, CLB_F32, 4, w, true, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer of factor is NULL",
         clb_density_forward(op, p.graph, rows_of(&x), (clb_rows){0}, rows_of(&x)));
  clb_op_destroy(&op);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "columns is 0",
         clb_row_scale_create(ctx, CLB_F32, 0, CLB_ROW_TIMES, &op));
  drop(&x.a);
  drop_pairs(&p);
}

static void compiles(void **state) {
  struct device *d = *state;
  skip_where_sanitized(d->name);
  clb_context *ctx = context(state);
  EACH_TYPE(d, type) {
    const double w[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    clb_op *op[3];
    OK(ctx, clb_density_create(ctx, type, 10, w, false, &op[0]));
    OK(ctx, clb_density_create(ctx, type, 10, w, true, &op[1]));
    OK(ctx, clb_row_scale_create(ctx, type, 89, CLB_ROW_OVER_MORE, &op[2]));
    for (int i = 0; i < 3; i++) {
      for (int pass = 0; pass < 2; pass++) assert_true(op[i]->kernel[pass]->binary.n > 0);
      clb_op_destroy(&op[i]);
    }
  }
}

int main(void) {
  static const named_test tests[] = {
      {"densities", densities, false}, {"scales", scales, false}, {"refuses", refuses, false}};
  return run_on_all("layer_densities", tests, sizeof tests / sizeof *tests, compiles);
}
