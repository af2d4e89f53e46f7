/* tests/ops/layers/test_linear_library.c - linear maps by a BLAS, where a device has one: all
   passes against plain sums, of few and of many rows, overwriting and adding. */
#include "tests/ops/layers/linear_products.h"
#include "tests/ops/on_devices.h"

#include "kernels/linear/host/linear.h"

enum { IN = 5 + 3 * 3 + 2 * 5, OUT = 4 + 6 * 3, WEIGHTS = 5 * 4 + 3 * 6, STRIDE_IN = IN + 4 };
enum { X, W, G, A, OUT_X, OUT_W, OUT_Z, ARRAYS };

/* Terms that a path joins: places, channels and components. */
static const struct {
  int in, out, u, w, components, weight;
} paths[] = {{0, 0, 5, 4, 1, 0}, {5, 4, 3, 6, 3, 20}};

typedef struct {
  double *x[ARRAYS];
} host;

static double *reals(int64_t n, uint64_t *seed) {
  double *x = malloc((size_t)(n + 1) * sizeof *x);
  assert_non_null(x);
  for (int64_t i = 0; i < n; i++) x[i] = (float)test_random(seed);
  return x;
}

/* Adds to z = x W, g_x = g W^T and g_w = x^T g. */
static void add_sums(int64_t n, const double *x, const double *w, const double *g, double *z,
                     double *g_x, double *g_w) {
  for (int64_t r = 0; r < n; r++)
    for (int p = 0; p < 2; p++)
      for (int m = 0; m < paths[p].components; m++)
        for (int u = 0; u < paths[p].u; u++)
          for (int v = 0; v < paths[p].w; v++) {
            const int64_t i = r * STRIDE_IN + paths[p].in + m * paths[p].u + u,
                          o = r * OUT + paths[p].out + m * paths[p].w + v,
                          k = paths[p].weight + u * paths[p].w + v;
            if (z) z[o] += x[i] * w[k];
            if (g_x) g_x[i] += g[o] * w[k];
            if (g_w) g_w[k] += x[i] * g[o];
          }
}

static void expect(clb_context *ctx, const array *got, const double *expected, int64_t rows,
                   int64_t columns, int64_t stride, double tolerance) {
  void *there = download(ctx, got);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < stride && r * stride + c < got->n - 1; c++) {
      const double x = number_at(got->type, there, r * stride + c);
      if (c >= columns) assert_true(isnan(x));
      else if (!(fabs(x - expected[r * stride + c]) <= tolerance))
        fail_msg("[%lld][%lld] is %.9g, not %.9g", (long long)r, (long long)c, x,
                 expected[r * stride + c]);
    }
  free(there);
}

static clb_op *create(clb_context *ctx, clb_dtype type, bool add) {
  clb_op *op;
  clb_problem *p = calloc(1, sizeof *p);
  assert_non_null(p);
  OK(ctx, clb_linear_read(&(clb_linear_desc){.irreps_in = "5x0e+3x1o+2x2e",
                                             .irreps_out = "4x0e+6x1o",
                                             .path_normalization = CLB_PATH_NONE,
                                             .layout_in = CLB_IR_MUL,
                                             .layout_out = CLB_IR_MUL,
                                             .incoming = CLB_OPERAND_X},
                          &p->linear, &ctx->error));
  p->kind = CLB_LINEAR;
  p->storage = p->arithmetic = (int32_t)type;
  p->accumulate = add;
  OK(ctx, clb_linear_make_by_library(ctx, p, 7, &op));
  free(p);
  return op;
}

static void try_rows(clb_context *ctx, clb_dtype type, bool add, int64_t n) {
  const int64_t length[ARRAYS] = {n * STRIDE_IN, WEIGHTS, n * OUT, n * STRIDE_IN,
                                  n * STRIDE_IN, WEIGHTS, n * OUT};
  const double tolerance = (type == CLB_F64 ? 1e-13 : 1e-5) * (double)(n + 16);
  uint64_t seed = 5;
  clb_op *op = create(ctx, type, add);
  double *start[ARRAYS];
  for (int i = 0; i < ARRAYS; i++) start[i] = reals(length[i], &seed);
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++) {
    array a[ARRAYS];
    double *result[ARRAYS];
    clb_rows row[ARRAYS];
    for (int i = 0; i < ARRAYS; i++) {
      const bool rows_of_x = i == X || i == A || i == OUT_X;
      a[i] = make(type, length[i]);
      for (int64_t k = 0; k < length[i] && (i < OUT_X || add); k++)
        if (!rows_of_x || k % STRIDE_IN < IN) put(type, a[i].host, k, start[i][k]);
      upload(ctx, &a[i]);
      result[i] = calloc((size_t)length[i] + 1, sizeof(double));
      assert_non_null(result[i]);
      if (add) memcpy(result[i], start[i], (size_t)length[i] * sizeof(double));
      row[i] = (clb_rows){a[i].buffer, 0, rows_of_x ? STRIDE_IN : CLB_DENSE, NULL};
    }
    const clb_rows forward[] = {row[X], row[W], row[OUT_Z]},
                   backward[] = {row[X], row[W], row[G], row[OUT_X], row[OUT_W]},
                   twice[] = {row[X], row[W],     row[G],     row[A],
                              {0},    row[OUT_X], row[OUT_W], row[OUT_Z]};
    OK(ctx, clb_linear_run(op, (clb_pass)pass, n,
                           pass == CLB_FORWARD    ? forward
                           : pass == CLB_BACKWARD ? backward
                                                  : twice));
    const double *x = start[pass == CLB_DOUBLE_BACKWARD ? A : X];
    add_sums(n, x, start[W], start[G], pass == CLB_BACKWARD ? NULL : result[OUT_Z],
             pass == CLB_BACKWARD ? result[OUT_X] : NULL, pass ? result[OUT_W] : NULL);
    if (pass != CLB_BACKWARD) expect(ctx, &a[OUT_Z], result[OUT_Z], n, OUT, OUT, tolerance);
    if (pass) expect(ctx, &a[OUT_X], result[OUT_X], n, IN, STRIDE_IN, tolerance);
    if (pass) expect(ctx, &a[OUT_W], result[OUT_W], 1, WEIGHTS, WEIGHTS, tolerance);
    for (int i = 0; i < ARRAYS; i++) {
      drop(&a[i]);
      free(result[i]);
    }
  }
  for (int i = 0; i < ARRAYS; i++) free(start[i]);
  clb_op_destroy(&op);
}

static void passes(void **state) {
  static const int64_t rows[] = {0, 1, 37, 600, 1543};
  clb_context *ctx;
  OK(NULL, clb_context_create(*state, &ctx));
  for (int type = CLB_F32; type <= CLB_F64; type++)
    for (int add = 0; add < 2; add++)
      for (int i = 0; i < 5; i++) try_rows(ctx, (clb_dtype)type, add, rows[i]);
  clb_context_destroy(&ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {{"passes", passes, NULL, NULL, NULL}};
  return run_on_devices("linear_library", tests, 1);
}
