/* tests/ops/layers/test_layer_pairs_along.c - what training needs of the radial basis and of
   repulsion: derivatives along tangents of vectors, and the gradient by frequencies, against plain
   loops and central differences, on every device that runs here, and on the interpreter with a
   GPU's limits. */
#include "tests/ops/layers/layer_along.h"

/* ---- radial basis ---- */

typedef struct {
  const radial_case *c;
  double r_0;
  const double *v, *q;
} radial_tangent;

/* df/dr */
static double cutoff_slope(const radial_case *c, double u) {
  const double p = c->cutoff_p, on = c->r_on / c->r_max, o = on * on;
  if (u >= 1) return 0;
  if (p > 0) return -p * (p + 1) * (p + 2) / 2 * pow(u, p - 1) * (1 - u) * (1 - u) / c->r_max;
  return u < on ? 0 : -12 * u * (1 - u * u) * (u * u - o) / pow(1 - o, 3) / c->r_max;
}

/* b_1 ... b_n of an edge for any frequencies, then their derivatives along q. */
static void basis_by_frequencies(const void *user, const double *w, double *out) {
  const radial_tangent *e = user;
  const radial_case *c = e->c;
  const double r = length_of(e->v), u = r / c->r_max, f = c->apart ? 1 : cutoff_of(c, u),
               f_slope = c->apart ? 0 : cutoff_slope(c, u),
               speed = (e->v[0] * e->q[0] + e->v[1] * e->q[1] + e->v[2] * e->q[2]) / r;
  double d = r, d_slope = 1;
  if (c->transform) {
    const double t = (u < 1 ? r : c->r_max) / e->r_0, rest = pow(t, c->q - c->p),
                 x = c->a * pow(t, c->q) / (1 + rest);
    d = 1 / (1 + x);
    d_slope = u < 1 ? -d * d * x * (c->q - (c->q - c->p) * rest / (1 + rest)) / r : 0;
  }
  for (int k = 0; k < c->n_basis; k++) {
    const double W = w[k] / c->r_max, front = 2 / c->r_max, wave = sin(W * d) / d;
    out[k] = front * wave * f;
    out[c->n_basis + k] =
        front * speed * ((W * cos(W * d) - wave) / d * d_slope * f + wave * f_slope);
  }
}

/* What the device must find. */
typedef struct {
  double *along, *by_frequencies; /* along: of b, then of f if it is apart */
} radial_results;

static radial_results radial_must(const pairs *p, const radial_case *c, const double *v,
                                  const double *q, const double *g, const double *h) {
  const int64_t n = c->n_basis, width = n + c->apart;
  radial_results must = {calloc((size_t)(p->n * width + 1), sizeof(double)),
                         calloc((size_t)(p->n * n + 1), sizeof(double))};
  double *both = malloc((size_t)(2 * n) * sizeof *both);
  for (int64_t e = 0; e < p->n; e++) {
    const double r_0 =
        (c->radii[p->species[p->end[0][e]]] + c->radii[p->species[p->end[1][e]]]) / 2;
    const edge_case one = {c, r_0};
    const radial_tangent tangent = {c, r_0, v + 3 * e, q + 3 * e};
    slope_along(basis_row, &one, v + 3 * e, q + 3 * e, 3, width, must.along + e * width);
    memcpy(both, g + e * n, (size_t)n * sizeof *both);
    memcpy(both + n, h + e * n, (size_t)n * sizeof *both);
    double *d = differences(basis_by_frequencies, &tangent, c->w, both, 1, n, 2 * n);
    memcpy(must.by_frequencies + e * n, d, (size_t)n * sizeof *d);
    free(d);
  }
  free(both);
  return must;
}

static void radials_once(clb_context *ctx, clb_dtype type, clb_op *op, const radial_case *c,
                         int i) {
  uint64_t seed = 71;
  const bool dense = i % 2;
  const int64_t n = c->n_basis;
  pairs p = pairs_of(ctx, i);
  table v = vectors(ctx, type, p.n, dense, 0.4, c->r_max, &seed),
        q = random_table(ctx, type, p.n, 3, !dense, 1, &seed),
        g = random_table(ctx, type, p.n, n, !dense, 1, &seed),
        h = random_table(ctx, type, p.n, n, dense, 1, &seed),
        h_f = random_table(ctx, type, p.n, 1, dense, 1, &seed), along[2], f_along[2], g_w[2],
        g_v = result_table(ctx, type, p.n, 3, !dense, false, &seed);
  double *x = plain(&v), *a = plain(&q), *by_basis = plain(&g), *by_along = plain(&h);
  const radial_results must = radial_must(&p, c, x, a, by_basis, by_along);
  for (int k = 0; k < 2; k++) {
    along[k] = result_table(ctx, type, p.n, n, dense, false, &seed);
    f_along[k] = result_table(ctx, type, p.n, 1, !dense, false, &seed);
    g_w[k] = result_table(ctx, type, p.n, n, !dense, false, &seed);
    OK(ctx, clb_radial_pairs_along(op, p.graph, p.numbers, rows_of(&v), rows_of(&q),
                                   rows_of(&along[k]), rows_of(&f_along[k])));
    OK(ctx, clb_radial_pairs_frequencies(op, p.graph, p.numbers, rows_of(&v), rows_of(&q),
                                         rows_of(&g), rows_of(&h), rows_of(&g_w[k])));
  }
  double *b_must = columns_of(must.along, p.n, n + c->apart, 0, n),
         *f_must = c->apart ? columns_of(must.along, p.n, n + 1, n, 1) : NULL;
  const double error = radial_error(ctx, type, c, slope_error_of(type));
  expect_rows(ctx, "basis along", &along[0], false, b_must, error);
  if (c->apart) expect_rows(ctx, "cutoff along", &f_along[0], false, f_must, error);
  expect_rows(ctx, "gradient by frequencies", &g_w[0], false, must.by_frequencies, error);
  OK(ctx, clb_radial_pairs_backward(op, p.graph, p.numbers, rows_of(&v), rows_of(&h), rows_of(&h_f),
                                    rows_of(&g_v), false));
  expect_adjoint(ctx, "basis", (const table *const[][2]){{&h, &along[0]}, {&h_f, &f_along[0]}},
                 1 + c->apart, (const table *const[][2]){{&g_v, &q}}, 1);
  expect_same(ctx, &along[0], &along[1]);
  expect_same(ctx, &f_along[0], &f_along[1]);
  expect_same(ctx, &g_w[0], &g_w[1]);
  drop_tables((table *[]){&v, &q, &g, &h, &h_f, along, f_along, g_w, &g_v}, 9);
  double *numbers[] = {x, a, by_basis, by_along, b_must, f_must, must.along, must.by_frequencies};
  for (int k = 0; k < 8; k++) free(numbers[k]);
  drop_pairs(&p);
}

static void radials(void **state) {
  clb_context *ctx = context(state);
  EACH_TYPE((struct device *)*state, type)
  for (int k = 0; k < RADIAL_CASES; k++) {
    radial_case c = radial_cases[k];
    clb_op *op = radial_op(ctx, type, &c);
    OK(ctx, clb_layer_add_training(op));
    OK(ctx, clb_layer_add_training(op)); /* has been done */
    for (int i = 0; i < SIZES; i++) radials_once(ctx, type, op, &c, i);
    clb_op_destroy(&op);
  }
}

/* Edges of no length do not move along anything, and b_k is 2 w_k / r_max^2 there (without a
   transform); beyond the cutoff all is 0. */
static void radials_at_the_ends(void **state) {
  clb_context *ctx = context(state);
  static const double points[][3] = {{0, 0, 0}, {0, -1e-30, 0}, {0, 5, 0}, {0, 0, 1e6}};
  enum { N = sizeof points / sizeof *points, B = 7 };
  EACH_TYPE((struct device *)*state, type) {
    uint64_t seed = 1;
    radial_case c = radial_cases[4];
    clb_op *op = radial_op(ctx, type, &c);
    OK(ctx, clb_layer_add_training(op));
    pairs p = make_pairs(ctx, 4, 4, N, 0);
    table v = make_table(type, N, 3, true), q = random_table(ctx, type, N, 3, true, 1, &seed),
          g = random_table(ctx, type, N, B, true, 1, &seed),
          h = random_table(ctx, type, N, B, true, 1, &seed),
          along = result_table(ctx, type, N, B, true, false, &seed),
          g_w = result_table(ctx, type, N, B, true, false, &seed);
    for (int i = 0; i < 3 * N; i++) put(type, v.a.host, i, points[i / 3][i % 3]);
    upload(ctx, &v.a);
    OK(ctx, clb_radial_pairs_along(op, p.graph, p.numbers, rows_of(&v), rows_of(&q),
                                   rows_of(&along), (clb_rows){0}));
    OK(ctx, clb_radial_pairs_frequencies(op, p.graph, p.numbers, rows_of(&v), rows_of(&q),
                                         rows_of(&g), rows_of(&h), rows_of(&g_w)));
    double *by = plain(&g), *none = calloc(N * B, sizeof *none);
    for (int i = 0; i < N * B; i++) by[i] *= i / B < 2 ? 2 / (c.r_max * c.r_max) : 0;
    expect_rows(ctx, "basis along, at the ends", &along, false, none, 1e-20);
    expect_rows(ctx, "frequencies at the ends", &g_w, false, by, slope_error_of(type));
    free(by);
    free(none);
    clb_op_destroy(&op);
    drop_tables((table *[]){&v, &q, &g, &h, &along, &g_w}, 6);
    drop_pairs(&p);
  }
}

/* ---- repulsion ---- */

static void repulsions_once(clb_context *ctx, clb_dtype type, clb_op *op, int i) {
  uint64_t seed = 61;
  const bool dense = i % 2, add = i % 3 == 2;
  pairs p = pairs_of(ctx, i);
  table v = vectors(ctx, type, p.n, dense, 0.3, 2.5, &seed),
        q = random_table(ctx, type, p.n, 3, !dense, 1, &seed),
        h = random_table(ctx, type, p.receivers, 1, dense, 1, &seed), out[2],
        plain_out = result_table(ctx, type, p.receivers, 1, dense, false, &seed),
        g_v = result_table(ctx, type, p.n, 3, dense, false, &seed);
  double *x = plain(&v), *a = plain(&q), *must = calloc((size_t)p.receivers + 1, sizeof *must);
  for (int64_t e = 0; e < p.n; e++) {
    const pair_case one = {{p.species[p.end[0][e]], p.species[p.end[1][e]]}};
    double slope;
    slope_along(repulsion_row, &one, x + 3 * e, a + 3 * e, 3, 1, &slope);
    must[p.end[0][e]] += slope;
  }
  for (int k = 0; k < 2; k++) {
    seed = 67;
    out[k] = result_table(ctx, type, p.receivers, 1, !dense, add, &seed);
    OK(ctx, clb_repulsion_along(op, p.graph, p.numbers, rows_of(&v), rows_of(&q), rows_of(&out[k]),
                                add));
  }
  expect_rows(ctx, "repulsion along", &out[0], add, must, slope_error_of(type));
  OK(ctx, clb_repulsion_along(op, p.graph, p.numbers, rows_of(&v), rows_of(&q), rows_of(&plain_out),
                              false));
  OK(ctx, clb_repulsion_backward(op, p.graph, p.numbers, rows_of(&v), rows_of(&h), rows_of(&g_v),
                                 false));
  expect_adjoint(ctx, "repulsion", (const table *const[][2]){{&h, &plain_out}}, 1,
                 (const table *const[][2]){{&g_v, &q}}, 1);
  expect_same(ctx, &out[0], &out[1]);
  drop_tables((table *[]){&v, &q, &h, out, &plain_out, &g_v}, 6);
  double *numbers[] = {x, a, must};
  for (int k = 0; k < 3; k++) free(numbers[k]);
  drop_pairs(&p);
}

static void repulsions(void **state) {
  clb_context *ctx = context(state);
  EACH_TYPE((struct device *)*state, type) {
    clb_op *op;
    OK(ctx, clb_repulsion_create(ctx, type, &zbl, &op));
    OK(ctx, clb_layer_add_training(op));
    for (int i = 0; i < SIZES; i++) repulsions_once(ctx, type, op, i);
    clb_op_destroy(&op);
  }
}

/* ---- mistakes, and targets ---- */

static void refuses(void **state) {
  clb_context *ctx = context(state);
  uint64_t seed = 1;
  table x = random_table(ctx, CLB_F32, 20, 10, true, 1, &seed);
  const clb_rows rows = rows_of(&x), none = {0};
  radial_case c = radial_cases[0];
  pairs p = make_pairs(ctx, 4, 4, 1, 0);
  clb_op *op = radial_op(ctx, CLB_F32, &c);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "created without this",
         clb_radial_pairs_along(op, p.graph, p.numbers, rows, rows, rows, rows));
  OK(ctx, clb_layer_add_training(op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer of q is NULL",
         clb_radial_pairs_along(op, p.graph, p.numbers, rows, none, rows, rows));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "this op is radial, not repulsion",
         clb_repulsion_along(op, p.graph, p.numbers, rows, rows, rows, false));
  clb_op_destroy(&op);
  drop_pairs(&p);
  OK(ctx, clb_lengths_create(ctx, CLB_F32, CLB_F32, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "radial has no passes of training", clb_layer_add_training(op));
  clb_op_destroy(&op);
  drop(&x.a);
}

static void compiles(void **state) {
  struct device *d = *state;
  skip_where_sanitized(d->name);
  clb_context *ctx = context(state);
  EACH_TYPE(d, type) {
    radial_case c = radial_cases[1];
    clb_op *radial = radial_op(ctx, type, &c), *op;
    OK(ctx, clb_layer_add_training(radial));
    for (int pass = 0; pass < 2; pass++)
      assert_true(((clb_op *)radial->parts)->kernel[pass]->binary.n > 0);
    clb_op_destroy(&radial);
    OK(ctx, clb_repulsion_create(ctx, type, &zbl, &op));
    OK(ctx, clb_layer_add_training(op));
    for (int pass = 0; pass < 3; pass++) assert_true(op->kernel[pass]->binary.n > 0);
    clb_op_destroy(&op);
  }
}

int main(void) {
  static const named_test tests[] = {{"radials", radials, false},
                                     {"radials_at_the_ends", radials_at_the_ends, false},
                                     {"repulsions", repulsions, false},
                                     {"refuses", refuses, false}};
  return run_on_all("layer_pairs_along", tests, sizeof tests / sizeof *tests, compiles);
}
