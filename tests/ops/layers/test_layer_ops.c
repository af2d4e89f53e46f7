/* tests/ops/layers/test_layer_ops.c - norm, species and pointwise ops against plain loops and
   central differences, on every device that runs here, and on the interpreter with a GPU's limits.
 */
#include "tests/ops/layers/layer_rows.h"

#include "src/problem/irreps.h"

static const int64_t sizes[] = {0, 1, 5, 33};
enum { SIZES = sizeof sizes / sizeof *sizes };

static double error_of(clb_dtype type) { return type == CLB_F64 ? 1e-12 : 3e-6; }
static double slope_error_of(clb_dtype type) {
  return type == CLB_F64 ? 1e-9 : 1e-5;
} /* of the differences; f32 */

#define EACH_TYPE(d, type)                                                                         \
  for (clb_dtype type = CLB_F32; type <= ((d)->f64 ? CLB_F64 : CLB_F32); type++)

/* Activations, written a second time. */
/* ---- pointwise ---- */

static const int64_t widths[] = {0, 1, 3, 64, 129, 300};
enum { WIDTHS = sizeof widths / sizeof *widths };

static void gathers(void **state) {
  clb_context *ctx = context(state);
  enum { SPECIES = 7 };
  EACH_TYPE((struct device *)*state, type) {
    clb_op *op[2];
    for (int adds = 0; adds < 2; adds++) OK(ctx, clb_gather_create(ctx, type, adds, &op[adds]));
    for (int turn = 0; turn < SIZES * WIDTHS; turn++) {
      const bool add = turn % 5 == 2;
      int64_t n = sizes[turn / WIDTHS], columns = widths[turn % WIDTHS];
      uint64_t seed = 3;
      int32_t *species = calloc((size_t)n + 1, sizeof *species);
      clb_buffer *index;
      for (int64_t i = 0; i < n; i++) species[i] = (int32_t)pick(&seed, SPECIES);
      OK(ctx, clb_buffer_create(ctx, (uint64_t)n * 4 + 1, &index));
      OK(ctx, clb_buffer_write(index, 0, species, (uint64_t)n * 4));
      table from = random_table(ctx, type, SPECIES, columns, turn % 2, 1, &seed),
            out = result_table(ctx, type, n, columns, turn % 3, add, &seed);
      double *all = plain(&from), *must = calloc((size_t)(n * columns + 1), sizeof *must);
      for (int64_t i = 0; i < n * columns; i++)
        must[i] = all[species[i / columns] * columns + i % columns];
      clb_rows rows = rows_of(&from);
      rows.index = index;
      OK(ctx, clb_gather_run(op[add], n, columns, rows, rows_of(&out)));
      expect_rows(ctx, "gather", &out, add, must, add ? error_of(type) : 0);
      free(species);
      free(all);
      free(must);
      clb_buffer_destroy(&index);
      drop(&from.a);
      drop(&out.a);
    }
    for (int adds = 0; adds < 2; adds++) clb_op_destroy(&op[adds]);
  }
}

typedef struct {
  double scale, factor;
  int64_t columns;
} silu_case;

static double silu(double x) { return x / (1 + exp(-x)); }

static void silu_row(const void *user, const double *x, double *out) {
  const silu_case *c = user;
  for (int64_t i = 0; i < c->columns; i++) out[i] = c->factor * silu(c->scale * x[i]);
}

static void silus_once(clb_context *ctx, clb_dtype type, clb_op *op, silu_case c, int64_t n,
                       bool dense, bool in_place) {
  uint64_t seed = 5;
  table a = random_table(ctx, type, n, c.columns, dense, 6, &seed),
        g = random_table(ctx, type, n, c.columns, dense, 1, &seed);
  table h = result_table(ctx, type, n, c.columns, dense, false, &seed),
        g_a = result_table(ctx, type, n, c.columns, dense, false, &seed);
  double *x = plain(&a), *gradient = plain(&g),
         *must = apply(silu_row, &c, x, n, c.columns, c.columns);
  double *slope = differences(silu_row, &c, x, gradient, n, c.columns, c.columns);
  OK(ctx, clb_activation_backward(op, n, c.columns, rows_of(&a), rows_of(&g),
                                  rows_of(in_place ? &g : &g_a)));
  OK(ctx, clb_activation_forward(op, n, c.columns, rows_of(&a), rows_of(in_place ? &a : &h)));
  expect_rows(ctx, "silu", in_place ? &a : &h, false, must, error_of(type));
  expect_rows(ctx, "silu backward", in_place ? &g : &g_a, false, slope, slope_error_of(type));
  table *all[] = {&a, &g, &h, &g_a};
  for (int i = 0; i < 4; i++) drop(&all[i]->a);
  free(x);
  free(gradient);
  free(must);
  free(slope);
}

static void silus(void **state) {
  clb_context *ctx = context(state);
  EACH_TYPE((struct device *)*state, type) {
    clb_op *op;
    silu_case c = {0.7, 1.6791767924, 0};
    OK(ctx, clb_activation_create(ctx, type, CLB_SILU, c.scale, c.factor, &op));
    for (int turn = 0; turn < SIZES * WIDTHS; turn++) {
      c.columns = widths[turn % WIDTHS];
      silus_once(ctx, type, op, c, sizes[turn / WIDTHS], turn % 2, turn / 2 % 2);
    }
    clb_op_destroy(&op);
  }
}

/* Far out nothing overflows to NaN. */
static void silus_far_out(void **state) {
  clb_context *ctx = context(state);
  EACH_TYPE((struct device *)*state, type) {
    static const double far[] = {-1e4, -800, -100, -0.0, 100, 800, 1e4};
    enum { N = sizeof far / sizeof *far };
    uint64_t seed = 1;
    clb_op *op;
    table a = make_table(type, 1, N, true), h = result_table(ctx, type, 1, N, true, false, &seed),
          g = make_table(type, 1, N, true), g_a = result_table(ctx, type, 1, N, true, false, &seed);
    double value[N], slope[N];
    for (int i = 0; i < N; i++) {
      put(type, a.a.host, i, far[i]);
      put(type, g.a.host, i, 1);
      value[i] = far[i] < 0 ? 0 : far[i];
      slope[i] = far[i] == 0 ? 0.5 : far[i] < 0 ? 0 : 1;
    }
    upload(ctx, &a.a);
    upload(ctx, &g.a);
    OK(ctx, clb_activation_create(ctx, type, CLB_SILU, 1, 1, &op));
    OK(ctx, clb_activation_forward(op, 1, N, rows_of(&a), rows_of(&h)));
    OK(ctx, clb_activation_backward(op, 1, N, rows_of(&a), rows_of(&g), rows_of(&g_a)));
    expect_rows(ctx, "silu far out", &h, false, value, 1e-6);
    expect_rows(ctx, "silu backward far out", &g_a, false, slope, 1e-6);
    clb_op_destroy(&op);
    table *all[] = {&a, &g, &h, &g_a};
    for (int i = 0; i < 4; i++) drop(&all[i]->a);
  }
}

/* ---- mistakes, and targets ---- */

static void refuses(void **state) {
  clb_context *ctx = context(state);
  clb_op *op, *other;
  uint64_t seed = 1;
  table x = random_table(ctx, CLB_F32, 3, 40, true, 1, &seed),
        y = random_table(ctx, CLB_F32, 3, 40, true, 1, &seed);
  OK(ctx, clb_activation_create(ctx, CLB_F32, CLB_SILU, 1, 1, &op));
  OK(ctx, clb_edge_vectors_create(ctx, CLB_F32, false, &other));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "not pointwise",
         clb_activation_backward(other, 3, 40, rows_of(&x), rows_of(&y), rows_of(&y)));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "bytes of g_h",
         clb_activation_backward(op, 4, 40, (clb_rows){x.a.buffer, 0, CLB_SAME_ROW, NULL},
                                 rows_of(&y), rows_of(&y)));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer of g_a is NULL",
         clb_activation_backward(op, 3, 40, rows_of(&x), rows_of(&y), (clb_rows){0}));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "stride of g_a is 39",
         clb_activation_backward(op, 3, 40, rows_of(&x), rows_of(&y),
                                 (clb_rows){x.a.buffer, 0, 39, NULL}));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "n is -1",
         clb_activation_backward(op, -1, 40, rows_of(&x), rows_of(&y), rows_of(&y)));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "another function",
         clb_gather_run(op, 0, 40, rows_of(&x), rows_of(&y)));
  clb_op_destroy(&op);
  clb_op_destroy(&other);
  drop(&x.a);
  drop(&y.a);
}

static void compiles(void **state) {
  struct device *d = *state;
  skip_where_sanitized(d->name);
  clb_context *ctx = context(state);
  EACH_TYPE(d, type) {
    clb_op *op[2];
    OK(ctx, clb_activation_create(ctx, type, CLB_SILU, 1, 1, &op[0]));
    OK(ctx, clb_gather_create(ctx, type, false, &op[1]));
    NOT_OK(ctx, CLB_ERROR_UNSUPPORTED, "only compiles",
           clb_activation_forward(op[0], 0, 1, (clb_rows){0}, (clb_rows){0}));
    for (int i = 0; i < 2; i++) {
      assert_true(op[i]->kernel[0]->binary.n > 0 && (i == 1 || op[i]->kernel[1]->binary.n > 0));
      clb_op_destroy(&op[i]);
    }
  }
}

int main(void) {
  static const named_test tests[] = {{"gathers", gathers, false},
                                     {"silus", silus, false},
                                     {"silus_far_out", silus_far_out, false},
                                     {"refuses", refuses, false}};
  return run_on_all("layer_ops", tests, sizeof tests / sizeof *tests, compiles);
}
