/* tests/ops/layers/test_edge_functions.c - Gaussians of lengths, and rotations into frames of
   edges, on every device that runs here, and on the interpreter with a GPU's limits. */
#include "tests/ops/layers/layer_pairs.h"

#include "kernels/layers/host/edge_functions.h"
#include "tools/reference/reference_irreps.h"

enum { L = 4, N = 2 * L + 1 };

/* ---- rotations ---- */

typedef struct {
  double of[L + 1][N][N];
} rotation;

/* From those of l - 1 and 1: 3j symbols couple both to l. */
static void rotate_next(rotation *D, int l) {
  static double C[N * 3 * N], half[N * 3 * N];
  const int n = 2 * l + 1, p = 2 * l - 1;
  reference_3j(l - 1, 1, l, C);
  memset(half, 0, sizeof half);
  for (int i = 0; i < p * 3; i++)
    for (int a = 0; a < p * 3; a++)
      for (int k = 0; k < n; k++)
        half[a * n + k] += C[i * n + k] * D->of[l - 1][i / 3][a / 3] * D->of[1][i % 3][a % 3];
  for (int k = 0; k < n; k++)
    for (int m = 0; m < n; m++) {
      D->of[l][k][m] = 0;
      for (int a = 0; a < p * 3; a++) D->of[l][k][m] += n * half[a * n + k] * C[a * n + m];
    }
}

/* Of Rx(-beta) Ry(-phi), which turns v to y. */
static void make_rotation(const double *v, rotation *D) {
  const double r = length_of(v), h = hypot(v[0], v[2]), c = h > 0 ? v[2] / h : 1,
               s = h > 0 ? v[0] / h : 0, up = v[1] / r, across = h / r,
               y[3][3] = {{c, 0, -s}, {0, 1, 0}, {s, 0, c}},
               x[3][3] = {{1, 0, 0}, {0, up, across}, {0, -across, up}};
  D->of[0][0][0] = 1;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      D->of[1][i][j] = 0;
      for (int k = 0; k < 3; k++) D->of[1][i][j] += x[i][k] * y[k][j];
    }
  for (int l = 2; l <= L; l++) rotate_next(D, l);
}

typedef struct {
  int l, m;
  double x[2][L + 1][N]; /* two rows of one channel */
} rotation_case;

/* Calls for the orders of a row, in its order. */
typedef void (*visit)(const rotation_case *c, int l, int m, void *user);
static void each_order(const rotation_case *c, visit f, void *user) {
  for (int i = 0; i <= 2 * c->m; i++)
    for (int l = (i + 1) / 2; l <= c->l; l++) f(c, l, i % 2 ? (i + 1) / 2 : -i / 2, user);
}

typedef struct {
  const rotation *D;
  double *out;
} writing;
static void write_order(const rotation_case *c, int l, int m, void *user) {
  writing *w = user;
  (void)c;
  memcpy(w->out, w->D->of[l][l + m], sizeof(double) * (size_t)(2 * l + 1));
  w->out += 2 * l + 1;
}

static void rotation_row(const void *user, const double *v, double *out) {
  rotation D;
  make_rotation(v, &D);
  each_order(user, write_order, &(writing){&D, out});
}

static double turned(const rotation_case *c, const rotation *D, int row, int l, int m) {
  double sum = 0;
  for (int i = 0; i <= 2 * l; i++) sum += D->of[l][l + m][i] * c->x[row][l][i];
  return sum;
}

/* sum (1 + l + |m| / 2) (D x)_m (D y)_m, over orders of both signs: no turn about y changes it; and
   for orders above 0 sums (D x)_m (D y)_-m - (D x)_-m (D y)_m, which do not either. */
static double weight(int l, int m) { return 1 + l + abs(m) / 2.; }
static void add_order(const rotation_case *c, int l, int m, void *user) {
  writing *w = user;
  *w->out += weight(l, m) *
             (turned(c, w->D, 0, l, m) * turned(c, w->D, 1, l, m) +
              (m > 0 ? 1 : -1) * turned(c, w->D, 0, l, m) * turned(c, w->D, 1, l, -m) * (m != 0));
}
static void loss(const void *user, const double *v, double *out) {
  rotation D;
  make_rotation(v, &D);
  *out = 0;
  each_order(user, add_order, &(writing){&D, out});
}

/* Its gradient by the numbers of a row. */
static void slope_of_order(const rotation_case *c, int l, int m, void *user) {
  writing *w = user;
  const double sign = m > 0 ? 1 : m < 0 ? -1 : 0;
  for (int i = 0; i <= 2 * l; i++)
    *w->out++ = weight(l, m) *
                ((turned(c, w->D, 1, l, m) + sign * turned(c, w->D, 1, l, -m)) * c->x[0][l][i] +
                 (turned(c, w->D, 0, l, m) - sign * turned(c, w->D, 0, l, -m)) * c->x[1][l][i]);
}

static int columns_of_case(const rotation_case *c) { return clb_edge_rotation_columns(c->l, c->m); }

static void rotations_once(clb_context *ctx, clb_dtype type, rotation_case *c, int64_t n, bool add,
                           bool poles) {
  uint64_t seed = 3;
  const int columns = columns_of_case(c);
  const unsigned both = CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD);
  clb_op *op;
  for (int i = 0; i < 2 * (L + 1) * N; i++) (&c->x[0][0][0])[i] = test_random(&seed);
  OK(ctx, clb_edge_rotation_create(ctx, type, c->l, c->m, add, both, &op));
  table v = vectors(ctx, type, n, n % 2, 0.5, 3, &seed);
  for (int64_t e = 0; e < n && poles; e++)
    for (int i = 0; i < 3; i++)
      put(type, v.a.host, v.offset + e * v.stride + i, i == 1 ? (e % 2 ? -1.5 : 1.5) : 0);
  OK(ctx, clb_buffer_write(v.a.buffer, 0, v.a.host, (uint64_t)v.a.n * dtype_bytes(type)));
  double *x = plain(&v), *D = apply(rotation_row, c, x, n, 3, columns), *one = malloc(8);
  table g = make_table(type, n, columns, true), out[2], g_v[2];
  *one = 1;
  double *must = calloc((size_t)(3 * n) + 1, sizeof *must);
  for (int64_t e = 0; e < n; e++) {
    rotation at_e;
    double row[(L + 1) * N * N], *d = differences(loss, c, x + 3 * e, one, 1, 3, 1);
    make_rotation(x + 3 * e, &at_e);
    each_order(c, slope_of_order, &(writing){&at_e, row});
    for (int i = 0; i < columns; i++) put(type, g.a.host, e * columns + i, row[i]);
    memcpy(must + 3 * e, d, 3 * sizeof *d);
    free(d);
  }
  upload(ctx, &g.a);
  for (int k = 0; k < 2; k++) {
    seed = 19;
    out[k] = result_table(ctx, type, n, columns, n % 3, false, &seed);
    g_v[k] = result_table(ctx, type, n, 3, n % 2, add, &seed);
    OK(ctx, clb_edge_rotation_forward(op, n, rows_of(&v), rows_of(&out[k])));
    OK(ctx, clb_edge_rotation_backward(op, n, rows_of(&v), rows_of(&g), rows_of(&g_v[k])));
  }
  if (!add) expect_rows(ctx, "rotations", &out[0], false, D, error_of(type));
  expect_rows(ctx, "gradient of rotations", &g_v[0], add, must, 10 * slope_error_of(type));
  expect_same(ctx, &out[0], &out[1]);
  expect_same(ctx, &g_v[0], &g_v[1]);
  table *all[] = {&v, &g, &out[0], &g_v[0]};
  for (int k = 0; k < 4; k++) drop(&all[k]->a);
  double *numbers[] = {x, D, one, must};
  for (int k = 0; k < 4; k++) free(numbers[k]);
  clb_op_destroy(&op);
}

/* Of all degrees and orders; at the poles, where phi means nothing; of no edges. */
static void rotations(void **state) {
  static const int cases[][2] = {{1, 0}, {2, 2}, {3, 1}, {4, 4}};
  clb_context *ctx = context(state);
  EACH_TYPE((struct device *)*state, type)
  for (int i = 0; i < 4; i++) {
    rotation_case c = {.l = cases[i][0], .m = cases[i][1]};
    rotations_once(ctx, type, &c, 70, i % 2, false);
    rotations_once(ctx, type, &c, 3, false, i > 0);
    rotations_once(ctx, type, &c, 0, false, false);
  }
}

/* ---- Gaussians ---- */

typedef struct {
  int64_t columns;
  double r_max, width;
} gaussians_case;

static void gaussians_row(const void *user, const double *r, double *out) {
  const gaussians_case *c = user;
  const double step = c->r_max / (double)(c->columns - 1);
  for (int64_t k = 0; k < c->columns; k++)
    out[k] = exp(-0.5 * pow((*r - (double)k * step) / (c->width * step), 2));
}

static void gaussians_once(clb_context *ctx, clb_dtype type, const gaussians_case *c, int64_t n,
                           bool add) {
  uint64_t seed = 7;
  clb_op *op;
  OK(ctx, clb_gaussians_create(ctx, type, c->columns, c->r_max, c->width, &op));
  table r = random_table_around(ctx, type, n, 1, n % 2, c->r_max / 2, c->r_max / 2, &seed),
        g = random_table(ctx, type, n, c->columns, n % 3, 1, &seed),
        b = result_table(ctx, type, n, c->columns, n % 2, false, &seed),
        g_r = result_table(ctx, type, n, 1, n % 3, add, &seed);
  double *x = plain(&r), *gradient = plain(&g),
         *must = apply(gaussians_row, c, x, n, 1, c->columns),
         *slope = differences(gaussians_row, c, x, gradient, n, 1, c->columns);
  OK(ctx, clb_gaussians_forward(op, n, rows_of(&r), rows_of(&b)));
  OK(ctx, clb_gaussians_backward(op, n, rows_of(&r), rows_of(&g), rows_of(&g_r), add));
  expect_rows(ctx, "Gaussians", &b, false, must, error_of(type));
  expect_rows(ctx, "gradient of Gaussians", &g_r, add, slope, 10 * slope_error_of(type));
  table *all[] = {&r, &g, &b, &g_r};
  for (int k = 0; k < 4; k++) drop(&all[k]->a);
  double *numbers[] = {x, gradient, must, slope};
  for (int k = 0; k < 4; k++) free(numbers[k]);
  clb_op_destroy(&op);
}

static void gaussians(void **state) {
  static const gaussians_case cases[] = {{2, 3, 1}, {7, 5, 2}, {130, 6, 2}};
  clb_context *ctx = context(state);
  EACH_TYPE((struct device *)*state, type)
  for (int i = 0; i < 3; i++) {
    gaussians_once(ctx, type, &cases[i], 50, i % 2);
    gaussians_once(ctx, type, &cases[i], 0, false);
  }
}

static void refuses(void **state) {
  clb_context *ctx = context(state);
  clb_op *op;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "columns is 1", clb_gaussians_create(ctx, CLB_F32, 1, 5, 2, &op));
  assert_null(op);
}

static void compiles(void **state) {
  struct device *d = *state;
  skip_where_sanitized(d->name);
  clb_context *ctx = context(state);
  EACH_TYPE(d, type) {
    clb_op *op;
    OK(ctx, clb_edge_rotation_create(ctx, type, 2, 2, false, 3, &op));
    for (int pass = 0; pass < 2; pass++) assert_true(op->kernel[pass]->binary.n > 0);
    clb_op_destroy(&op);
    OK(ctx, clb_gaussians_create(ctx, type, 40, 5, 2, &op));
    for (int pass = 0; pass < 2; pass++) assert_true(op->kernel[pass]->binary.n > 0);
    clb_op_destroy(&op);
  }
}

int main(void) {
  static const named_test all[] = {{"rotations", rotations, false},
                                   {"gaussians", gaussians, false},
                                   {"refuses", refuses, false}};
  return run_on_all("edge_functions", all, sizeof all / sizeof *all, compiles);
}
