/* tests/ops/layers/test_layer_pairs.c - what depends on pairs of atoms, the radial basis with a
   transform of distances, repulsion and vectors times factors, against plain loops and central
   differences, on every device that runs here, and on the interpreter with a GPU's limits. */
#include "tests/ops/layers/layer_functions.h"

/* ---- radial basis ---- */

static void radials_once(clb_context *ctx, clb_dtype type, clb_op *op, const radial_case *c,
                         int i) {
  uint64_t seed = 17;
  const bool dense = i % 2, add = i % 3 == 1;
  const int64_t width = c->n_basis + c->apart;
  pairs p = pairs_of(ctx, i);
  table v = vectors(ctx, type, p.n, dense, 0.4, c->r_max, &seed),
        g_basis = random_table(ctx, type, p.n, c->n_basis, !dense, 1, &seed),
        g_f = random_table(ctx, type, p.n, 1, dense, 1, &seed), basis[2], f[2], r[2], g_v[2];
  double *x = plain(&v), *g = joined(&g_basis, c->apart ? &g_f : NULL),
         *must = calloc((size_t)(p.n * width + 1), sizeof *must),
         *slope = calloc((size_t)(3 * p.n + 1), sizeof *slope),
         *r_must = calloc((size_t)p.n + 1, sizeof *r_must);
  for (int64_t e = 0; e < p.n; e++) {
    const edge_case one = {
        c, (c->radii[p.species[p.end[0][e]]] + c->radii[p.species[p.end[1][e]]]) / 2};
    double *d = differences(basis_row, &one, x + 3 * e, g + width * e, 1, 3, width);
    basis_row(&one, x + 3 * e, must + width * e);
    memcpy(slope + 3 * e, d, 3 * sizeof *d);
    r_must[e] = length_of(x + 3 * e);
    free(d);
  }
  for (int k = 0; k < 2; k++) {
    seed = 19;
    basis[k] = result_table(ctx, type, p.n, c->n_basis, dense, false, &seed);
    f[k] = result_table(ctx, type, p.n, 1, !dense, false, &seed);
    r[k] = result_table(ctx, type, p.n, 1, dense, false, &seed);
    g_v[k] = result_table(ctx, type, p.n, 3, !dense, add, &seed);
    OK(ctx, clb_radial_pairs_forward(op, p.graph, p.numbers, rows_of(&v),
                                     i % 2 ? rows_of(&r[k]) : (clb_rows){0}, rows_of(&basis[k]),
                                     rows_of(&f[k])));
    OK(ctx, clb_radial_pairs_backward(op, p.graph, p.numbers, rows_of(&v), rows_of(&g_basis),
                                      rows_of(&g_f), rows_of(&g_v[k]), add));
  }
  double *b_must = columns_of(must, p.n, width, 0, c->n_basis),
         *f_must = c->apart ? columns_of(must, p.n, width, c->n_basis, 1) : NULL;
  const double error = radial_error(ctx, type, c, error_of(type)),
               slope_error = radial_error(ctx, type, c, slope_error_of(type));
  expect_rows(ctx, "basis of pairs", &basis[0], false, b_must, error);
  expect_rows(ctx, "gradient of pairs", &g_v[0], add, slope, slope_error);
  if (c->apart) expect_rows(ctx, "cutoff apart", &f[0], false, f_must, error);
  if (i % 2) expect_rows(ctx, "lengths of pairs", &r[0], false, r_must, error);
  table *both[] = {basis, f, r, g_v}, *in[] = {&v, &g_basis, &g_f};
  for (int k = 0; k < 4; k++) {
    expect_same(ctx, &both[k][0], &both[k][1]);
    drop(&both[k][0].a);
  }
  for (int k = 0; k < 3; k++) drop(&in[k]->a);
  double *numbers[] = {x, g, must, slope, r_must, b_must, f_must};
  for (int k = 0; k < 7; k++) free(numbers[k]);
  drop_pairs(&p);
}

static void radials(void **state) {
  clb_context *ctx = context(state);
  EACH_TYPE((struct device *)*state, type)
  for (int k = 0; k < RADIAL_CASES; k++) {
    radial_case c = radial_cases[k];
    clb_op *op = radial_op(ctx, type, &c);
    for (int i = 0; i < SIZES; i++) radials_once(ctx, type, op, &c, i);
    clb_op_destroy(&op);
  }
}

/* Very short and very long edges: everything is finite, gradients at 0 are 0, and beyond the cutoff
   all is 0. */
static void radials_at_the_ends(void **state) {
  clb_context *ctx = context(state);
  static const double points[][3] = {{0, 0, 0},    {1e-30, 0, 0}, {0, -1e-6, 0},
                                     {1e-2, 0, 0}, {0, 5, 0},     {0, 0, 1e6}};
  enum { N = sizeof points / sizeof *points, B = 10 };
  EACH_TYPE((struct device *)*state, type) {
    uint64_t seed = 1;
    radial_case c = radial_cases[0];
    clb_op *op = radial_op(ctx, type, &c);
    pairs p = make_pairs(ctx, 4, 4, N, 0);
    table v = make_table(type, N, 3, true), g = random_table(ctx, type, N, B, true, 1, &seed),
          basis = result_table(ctx, type, N, B, true, false, &seed),
          g_v = result_table(ctx, type, N, 3, true, false, &seed);
    for (int i = 0; i < 3 * N; i++) put(type, v.a.host, i, points[i / 3][i % 3]);
    upload(ctx, &v.a);
    OK(ctx, clb_radial_pairs_forward(op, p.graph, p.numbers, rows_of(&v), (clb_rows){0},
                                     rows_of(&basis), (clb_rows){0}));
    OK(ctx, clb_radial_pairs_backward(op, p.graph, p.numbers, rows_of(&v), rows_of(&g),
                                      (clb_rows){0}, rows_of(&g_v), false));
    void *b = download(ctx, &basis.a), *gradient = download(ctx, &g_v.a);
    for (int i = 0; i < N * B; i++) {
      /* d is 1 at r = 0 */
      const double is = at(&basis, b, i / B, i % B),
                   must = i / B < 3 ? 2 / c.r_max * sin(c.w[i % B] / c.r_max) : 0;
      if (!(i / B == 3 ? fabs(is) < 1 : fabs(is - must) < 1e-5))
        fail_msg("b_%d of point %d is %g", i % B, i / B, is);
    }
    for (int i = 0; i < 3 * N; i++) {
      const double is = at(&g_v, gradient, i / 3, i % 3);
      if (!(fabs(is) <= (i < 3 || i / 3 >= 4 ? 0 : 10)))
        fail_msg("component %d of the gradient is %g", i, is);
    }
    free(b);
    free(gradient);
    clb_op_destroy(&op);
    table *all[] = {&v, &g, &basis, &g_v};
    for (int i = 0; i < 4; i++) drop(&all[i]->a);
    drop_pairs(&p);
  }
}

/* ---- repulsion ---- */

static void repulsions_once(clb_context *ctx, clb_dtype type, clb_op *op, int i) {
  uint64_t seed = 37;
  const bool dense = i % 2, add = i % 3 == 2;
  pairs p = pairs_of(ctx, i);
  table v = vectors(ctx, type, p.n, dense, 0.3, 2.5, &seed),
        g = random_table(ctx, type, p.receivers, 1, !dense, 1, &seed), out[2], g_v[2];
  double *x = plain(&v), *gradient = plain(&g),
         *must = calloc((size_t)p.receivers + 1, sizeof *must),
         *slope = calloc((size_t)(3 * p.n + 1), sizeof *slope);
  for (int64_t e = 0; e < p.n; e++) {
    const pair_case one = {{p.species[p.end[0][e]], p.species[p.end[1][e]]}};
    double value, *d = differences(repulsion_row, &one, x + 3 * e, gradient + p.end[0][e], 1, 3, 1);
    repulsion_row(&one, x + 3 * e, &value);
    must[p.end[0][e]] += value;
    memcpy(slope + 3 * e, d, 3 * sizeof *d);
    free(d);
  }
  for (int k = 0; k < 2; k++) {
    seed = 41;
    out[k] = result_table(ctx, type, p.receivers, 1, dense, add, &seed);
    g_v[k] = result_table(ctx, type, p.n, 3, !dense, add, &seed);
    OK(ctx, clb_repulsion_forward(op, p.graph, p.numbers, rows_of(&v), rows_of(&out[k]), add));
    OK(ctx, clb_repulsion_backward(op, p.graph, p.numbers, rows_of(&v), rows_of(&g),
                                   rows_of(&g_v[k]), add));
  }
  expect_rows(ctx, "repulsion", &out[0], add, must, error_of(type));
  expect_rows(ctx, "repulsion backward", &g_v[0], add, slope, slope_error_of(type));
  table *both[] = {out, g_v};
  for (int k = 0; k < 2; k++) {
    expect_same(ctx, &both[k][0], &both[k][1]);
    drop(&both[k][0].a);
  }
  drop(&v.a);
  drop(&g.a);
  double *numbers[] = {x, gradient, must, slope};
  for (int k = 0; k < 4; k++) free(numbers[k]);
  drop_pairs(&p);
}

static void repulsions(void **state) {
  clb_context *ctx = context(state);
  EACH_TYPE((struct device *)*state, type) {
    clb_op *op;
    OK(ctx, clb_repulsion_create(ctx, type, &zbl, &op));
    for (int i = 0; i < SIZES; i++) repulsions_once(ctx, type, op, i);
    clb_op_destroy(&op);
  }
}

/* ---- mistakes, and targets ---- */

/* ---- vectors times factors ---- */

static void stretches_once(clb_context *ctx, clb_dtype type, clb_op *op, int i) {
  uint64_t seed = 43;
  const bool dense = i % 2, add = i % 3 == 1;
  pairs p = pairs_of(ctx, i);
  table v = vectors(ctx, type, p.n, dense, 0.3, 2.5, &seed), out[2];
  double *x = plain(&v);
  for (int64_t k = 0; k < 3 * p.n; k++)
    x[k] *= reach[p.species[p.end[0][k / 3]] * SPECIES + p.species[p.end[1][k / 3]]];
  for (int k = 0; k < 2; k++) {
    seed = 47;
    out[k] = result_table(ctx, type, p.n, 3, !dense, add, &seed);
    OK(ctx, clb_stretch_run(op, p.graph, p.numbers, rows_of(&v), rows_of(&out[k]), add));
  }
  expect_rows(ctx, "stretch", &out[0], add, x, error_of(type));
  expect_same(ctx, &out[0], &out[1]);
  drop(&out[0].a);
  drop(&v.a);
  free(x);
  drop_pairs(&p);
}

static void stretches(void **state) {
  clb_context *ctx = context(state);
  EACH_TYPE((struct device *)*state, type) {
    clb_op *op;
    OK(ctx, clb_stretch_create(ctx, type, SPECIES, reach, &op));
    for (int i = 0; i < SIZES; i++) stretches_once(ctx, type, op, i);
    clb_op_destroy(&op);
  }
}

static void refuses(void **state) {
  clb_context *ctx = context(state);
  clb_op *op;
  uint64_t seed = 1;
  double w[4] = {1, 2, 3, 4}, bad[SPECIES * SPECIES] = {1, -1, 1};
  const clb_radial_desc desc = {5, 5, 4, w, 0, 0};
  clb_agnesi t = {1, 4, 1, SPECIES, bad};
  clb_repulsion_desc r = zbl;
  table x = random_table(ctx, CLB_F32, 20, 4, true, 1, &seed);
  pairs p = make_pairs(ctx, 4, 4, 9, 0);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "radius 1 is -1",
         clb_radial_pairs_create(ctx, CLB_F32, CLB_F32, &desc, &t, false, &op));
  t.radii = NULL;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "the number of its radii",
         clb_radial_pairs_create(ctx, CLB_F32, CLB_F32, &desc, &t, false, &op));
  t.radii = radii, t.a = 0;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "a must be above 0",
         clb_radial_pairs_create(ctx, CLB_F32, CLB_F32, &desc, &t, false, &op));
  t.a = 1, t.q = 65;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "q = 65",
         clb_radial_pairs_create(ctx, CLB_F32, CLB_F32, &desc, &t, false, &op));
  t.q = 1;
  OK(ctx, clb_radial_pairs_create(ctx, CLB_F32, CLB_F32, &desc, &t, false, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "is for pairs",
         clb_radial_forward(op, 9, rows_of(&x), (clb_rows){0}, rows_of(&x)));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer of species is NULL",
         clb_radial_pairs_forward(op, p.graph, (clb_rows){0}, rows_of(&x), (clb_rows){0},
                                  rows_of(&x), (clb_rows){0}));
  clb_op_destroy(&op);
  r.r_max = 0;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "r_max is 0", clb_repulsion_create(ctx, CLB_F32, &r, &op));
  r = zbl, r.p = 0;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "p is 0", clb_repulsion_create(ctx, CLB_F32, &r, &op));
  assert_null(op);
  r = zbl, r.reach = bad;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "reach 1 is -1", clb_repulsion_create(ctx, CLB_F32, &r, &op));
  r.n_species = 0;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "n_species is 0", clb_repulsion_create(ctx, CLB_F32, &r, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "n_species is 0",
         clb_stretch_create(ctx, CLB_F32, 0, reach, &op));
  drop(&x.a);
  drop_pairs(&p);
}

static void compiles(void **state) {
  struct device *d = *state;
  skip_where_sanitized(d->name);
  clb_context *ctx = context(state);
  EACH_TYPE(d, type) {
    radial_case c = radial_cases[3];
    clb_op *op[2] = {radial_op(ctx, type, &c), NULL};
    OK(ctx, clb_repulsion_create(ctx, type, &zbl, &op[1]));
    for (int i = 0; i < 2; i++) {
      for (int pass = 0; pass < 4 - 2 * i; pass++) assert_true(op[i]->kernel[pass]->binary.n > 0);
      clb_op_destroy(&op[i]);
    }
  }
}

int main(void) {
  static const named_test tests[] = {{"radials", radials, false},
                                     {"radials_at_the_ends", radials_at_the_ends, false},
                                     {"repulsions", repulsions, false},
                                     {"stretches", stretches, false},
                                     {"refuses", refuses, false}};
  return run_on_all("layer_pairs", tests, sizeof tests / sizeof *tests, compiles);
}
