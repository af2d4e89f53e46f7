/* tests/ops/test_norm_activation.c - norm activations by mathematical property, on every device
   that runs here: derivatives by differences, symmetries, zeros, and what is refused. */
#define _GNU_SOURCE
#include "tests/ops/on_devices.h"

#include <math.h>

enum { N = 5, D = 3 * 3 + 4 + 5 * 2, W = 3 + 4 + 2 };
#define IRREPS "3x1o+4x0o+2x2e"
/* ---- an op and its operands in f64, whose results start as NaN ---- */

typedef struct {
  clb_context *ctx;
  clb_op *op;
  bool bias;
} norm;

enum { X, B, G, A, C, Y, G_X, G_B, D_X, D_B, D_G, ARRAYS };
typedef struct {
  double v[ARRAYS][N * D];
} arrays;

static int width(int array) {
  return array == B || array == C || array == G_B || array == D_B ? W : D;
}

static norm open_norm(const char *device, clb_norm_activation_desc d) {
  norm t = {.bias = d.bias};
  d.irreps = IRREPS;
  d.storage = d.arithmetic = CLB_F64;
  if (!d.passes) d.passes = 7;
  OK(t.ctx, clb_context_create(device, &t.ctx));
  OK(t.ctx, clb_norm_activation_create(t.ctx, &d, &t.op));
  return t;
}

static void close_norm(norm *t) {
  clb_op_destroy(&t->op);
  clb_context_destroy(&t->ctx);
}

static void make(arrays *a) {
  uint64_t seed = 5;
  for (int i = 0; i < ARRAYS; i++)
    for (int e = 0; e < N * D; e++) a->v[i][e] = i < Y ? test_random(&seed) : NAN;
}

static void run(const norm *t, clb_pass pass, arrays *a) {
  static const int lists[][9] = {
      {X, B, Y, -1}, {X, B, G, G_X, G_B, -1}, {X, B, G, A, C, D_X, D_B, D_G, -1}};
  clb_rows r[8] = {{0}};
  for (int i = 0; lists[pass][i] >= 0; i++) {
    const int of = lists[pass][i];
    if (width(of) == W && !t->bias) continue;
    for (int e = 0; of >= Y && e < N * D; e++) a->v[of][e] = NAN;
    OK(t->ctx, clb_buffer_create(t->ctx, 8 * (uint64_t)(N * width(of)), &r[i].buffer));
    OK(t->ctx, clb_buffer_write(r[i].buffer, 0, a->v[of], 8 * (uint64_t)(N * width(of))));
  }
  if (pass == CLB_FORWARD) OK(t->ctx, clb_norm_activation_forward(t->op, N, r[0], r[1], r[2]));
  if (pass == CLB_BACKWARD)
    OK(t->ctx, clb_norm_activation_backward(t->op, N, r[0], r[1], r[2], r[3], r[4]));
  if (pass == CLB_DOUBLE_BACKWARD)
    OK(t->ctx, clb_norm_activation_double_backward(t->op, N, r[0], r[1], r[2], r[3], r[4], r[5],
                                                   r[6], r[7]));
  for (int i = 0; lists[pass][i] >= 0; i++) {
    const int of = lists[pass][i];
    if (r[i].buffer && of >= Y)
      OK(t->ctx, clb_buffer_read(r[i].buffer, 0, a->v[of], 8 * (uint64_t)(N * width(of))));
    clb_buffer_destroy(&r[i].buffer);
  }
}

static double dot(const arrays *a, int x, int y) {
  double sum = 0;
  for (int i = 0; i < N * width(x); i++) sum += a->v[x][i] * a->v[y][i];
  return sum;
}

/* The interpreter, which compiles nothing, runs all cases; the others run a share each. */
static bool is_anothers(const char *device, int number) {
  int own = 0;
  while (strcmp(devices[own], device)) own++;
  return strcmp(device, "cpu:interpreter") != 0 && !long_tests() && (number + own) % 8;
}

/* ---- derivatives: each pass is that of the one before ---- */

static void expect_slope(const norm *t, bool first, arrays *a, int input, int gradient) {
  const double e = 1e-5;
  const int n = N * width(input);
  double kept[N * D], along[N * D], value[2], want = 0, size = 1;
  uint64_t seed = 77 + (uint64_t)input;
  memcpy(kept, a->v[input], sizeof kept);
  for (int i = 0; i < n; i++) {
    along[i] = test_random(&seed);
    want += along[i] * a->v[gradient][i];
    size += fabs(along[i] * a->v[gradient][i]);
  }
  for (int side = 0; side < 2; side++) {
    for (int i = 0; i < n; i++) a->v[input][i] = kept[i] + (side ? -e : e) * along[i];
    run(t, first ? CLB_FORWARD : CLB_BACKWARD, a);
    value[side] = first ? dot(a, G, Y) : dot(a, A, G_X) + (t->bias ? dot(a, C, G_B) : 0);
  }
  memcpy(a->v[input], kept, sizeof kept);
  const double slope = (value[0] - value[1]) / (2 * e);
  if (!(fabs(slope - want) <= 2e-8 * size))
    fail_msg("slope of input %d is %.12g by differences, %.12g", input, slope, want);
}

/* Of all activations, normalised or not, with biases or not; and of rows below epsilon. */
static void derivatives(void **state) {
  static const char *const names[] = {"silu", "2*tanh", "sigmoid", "ssp", "identity", "relu"};
  for (int i = 0; i < 24; i++) {
    const bool normalize = i / 2 % 2;
    if (is_anothers(*state, i / 4 + i)) continue;
    norm t = open_norm(*state, (clb_norm_activation_desc){.act = names[i / 4],
                                                          .layout = i % 3 ? CLB_MUL_IR : CLB_IR_MUL,
                                                          .normalize = normalize,
                                                          .epsilon = normalize ? 0.3 : 0,
                                                          .bias = i % 2});
    static arrays a;
    make(&a);
    run(&t, CLB_BACKWARD, &a);
    expect_slope(&t, true, &a, X, G_X);
    if (t.bias) expect_slope(&t, true, &a, B, G_B);
    run(&t, CLB_DOUBLE_BACKWARD, &a);
    expect_slope(&t, false, &a, X, D_X);
    expect_slope(&t, false, &a, G, D_G);
    if (t.bias) expect_slope(&t, false, &a, B, D_B);
    close_norm(&t);
  }
}

/* ---- symmetries, sizes, zeros ---- */

/* The first channel of 1o is turned and inverted; rows are as large as numbers can be. */
static void symmetries(void **state) {
  static arrays a, b;
  norm t =
      open_norm(*state, (clb_norm_activation_desc){
                            .act = "sigmoid", .normalize = 1, .passes = CLB_PASS_BIT(CLB_FORWARD)});
  make(&a);
  for (int e = 0; e < D; e++) a.v[X][D + e] *= 1e200, a.v[X][2 * D + e] *= 1e-200;
  b = a;
  for (int r = 0; r < N; r++) {
    double *x = b.v[X] + r * D, x0 = x[0], x1 = x[1];
    x[0] = -cos(1) * x0 + sin(1) * x1, x[1] = -sin(1) * x0 - cos(1) * x1, x[2] = -x[2];
  }
  run(&t, CLB_FORWARD, &a);
  run(&t, CLB_FORWARD, &b);
  for (int r = 0; r < N; r++) {
    const double *y = a.v[Y] + r * D, *x = a.v[X] + r * D, *z = b.v[Y] + r * D,
                 want[] = {-cos(1) * y[0] + sin(1) * y[1], -sin(1) * y[0] - cos(1) * y[1], -y[2]},
                 big = fmax(fabs(x[0]), fmax(fabs(x[1]), fabs(x[2]))),
                 length = big * sqrt(pow(x[0] / big, 2) + pow(x[1] / big, 2) + pow(x[2] / big, 2)),
                 least = fmax(length, 1e-8);
    for (int m = 0; m < 3; m++) {
      assert_true(fabs(z[m] - want[m]) <= 1e-13 * fabs(want[m]) + 1e-14);
      assert_true(fabs(y[m] - x[m] / least / (1 + exp(-least))) <= 1e-14);
    }
  }
  close_norm(&t);
}

/* At x = 0: g_x = act(b) g, or act(epsilon + b) g / epsilon; everything is finite. */
static void zeros(void **state) {
  for (int normalize = 0; normalize < 2; normalize++) {
    static arrays a;
    norm t = open_norm(
        *state, (clb_norm_activation_desc){.act = "silu", .normalize = normalize, .bias = 1});
    make(&a);
    memset(a.v[X], 0, sizeof a.v[X]);
    for (int pass = 0; pass < 3; pass++) run(&t, (clb_pass)pass, &a);
    for (int i = Y; i < ARRAYS; i++)
      for (int e = 0; e < N * width(i); e++) assert_true(isfinite(a.v[i][e]));
    for (int m = 0; m < 3; m++) {
      const double b = a.v[B][0] + (normalize ? 1e-8 : 0), f = b / (1 + exp(-b)),
                   want = a.v[G][m] * (normalize ? f * 1e8 : f);
      assert_true(a.v[Y][m] == 0 && fabs(a.v[G_X][m] - want) <= 1e-13 * fabs(want));
    }
    OK(t.ctx, clb_norm_activation_forward(t.op, 0, (clb_rows){0}, (clb_rows){0}, (clb_rows){0}));
    close_norm(&t);
  }
}

static void expect(double found, double want) {
  if (!(fabs(found - want) <= 1e-14 + 1e-13 * fabs(want)))
    fail_msg("%.17g, not %.17g", found, want);
}

/* y = sign(x) act(|x| + b) has derivatives without quotients of small numbers. */
static void small_scalars(void **state) {
  enum { AT = 3 * 3, BIAS = 3, SCALARS = 4 };
  static arrays a;
  norm t =
      open_norm(*state, (clb_norm_activation_desc){.act = "sigmoid", .normalize = 1, .bias = 1});
  make(&a);
  for (int i = 0; i < N * SCALARS; i++)
    a.v[X][i / SCALARS * D + AT + i % SCALARS] = i % 2 ? 3e-7 : -3e-7;
  run(&t, CLB_BACKWARD, &a);
  run(&t, CLB_DOUBLE_BACKWARD, &a);
  for (int i = 0; i < N * SCALARS; i++) {
    const int e = i / SCALARS * D + AT + i % SCALARS, w = i / SCALARS * W + BIAS + i % SCALARS;
    const double sign = i % 2 ? 1 : -1, f = 1 / (1 + exp(-3e-7 - a.v[B][w])), slope = f * (1 - f),
                 bend = slope * (1 - 2 * f), p = sign * a.v[G][e],
                 moved = sign * a.v[A][e] + a.v[C][w];
    expect(a.v[G_X][e], slope * a.v[G][e]);
    expect(a.v[G_B][w], slope * p);
    expect(a.v[D_G][e], slope * moved * sign);
    expect(a.v[D_X][e], bend * moved * p * sign);
    expect(a.v[D_B][w], bend * moved * p);
  }
  close_norm(&t);
}

static void refuses(void **state) {
  clb_context *ctx = NULL;
  clb_op *op = NULL;
  const clb_norm_activation_desc good = {
      .irreps = "2x1o", .act = "silu", .normalize = 1, .bias = 1, .passes = 1};
  OK(ctx, clb_context_create(*state, &ctx));
#define WITH(words, ...)                                                                           \
  do {                                                                                             \
    clb_norm_activation_desc d = good;                                                             \
    __VA_ARGS__;                                                                                   \
    NOT_OK(ctx, CLB_ERROR_ARGUMENT, words, clb_norm_activation_create(ctx, &d, &op));              \
    assert_null(op);                                                                               \
  } while (0)
  WITH("irreps is NULL", d.irreps = NULL);
  WITH("act is \"gelu\"", d.act = "gelu");
  WITH("act is \"silu,tanh\", 2 activations", d.act = "silu,tanh");
  WITH("layout is 3", d.layout = CLB_BY_CHANNEL);
  WITH("epsilon is -1", d.epsilon = -1);
  WITH("epsilon is nan", d.epsilon = NAN);
  WITH("epsilon is 0.1; without normalize", d.epsilon = 0.1, d.normalize = 0);
#undef WITH
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "desc is NULL", clb_norm_activation_create(ctx, NULL, &op));
  OK(ctx, clb_norm_activation_create(ctx, &good, &op));
  clb_rows x = {0};
  OK(ctx, clb_buffer_create(ctx, 4 * 6, &x.buffer));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer of w is NULL",
         clb_norm_activation_forward(op, 1, x, (clb_rows){0}, x));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "2 rows of 6 elements",
         clb_norm_activation_forward(op, 2, x, x, x));
  clb_buffer_destroy(&x.buffer);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(derivatives), cmocka_unit_test(symmetries), cmocka_unit_test(zeros),
      cmocka_unit_test(small_scalars), cmocka_unit_test(refuses)};
  return run_on_devices("norm_activation", tests, sizeof tests / sizeof *tests);
}
