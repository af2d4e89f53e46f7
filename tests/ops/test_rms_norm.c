/* tests/ops/test_rms_norm.c - norms by mathematical property, on every device that runs here:
   values of a straightforward sum, symmetries, rows, and what is refused; test_properties.c has
   their derivatives. */
#define _GNU_SOURCE
#include "tests/ops/on_devices.h"

#include <math.h>

enum { MOST = 1 << 17 };
/* ---- an op and its operands in f64, dense ---- */

typedef struct {
  clb_context *ctx;
  clb_op *op;
  int64_t n, D, W;
} norm;

/* The interpreter, which compiles nothing, runs all cases; the others run a share each. */
static bool is_anothers(const char *device, size_t number) {
  size_t own = 0;
  while (strcmp(devices[own], device)) own++;
  return strcmp(device, "cpu:interpreter") != 0 && !long_tests() && (number + own) % 6;
}

static norm open_norm(const char *device, clb_rms_norm_desc d, int64_t n) {
  norm t = {.n = n};
  clb_rms_norm_sizes sizes;
  d.storage = d.arithmetic = CLB_F64;
  if (!d.passes) d.passes = 7;
  OK(t.ctx, clb_context_create(device, &t.ctx));
  OK(t.ctx, clb_rms_norm_measure(t.ctx, &d, &sizes));
  OK(t.ctx, clb_rms_norm_create(t.ctx, &d, &t.op));
  t.D = sizes.x, t.W = sizes.w;
  assert_true(n * t.D <= MOST);
  return t;
}

static void close_norm(norm *t) {
  clb_op_destroy(&t->op);
  clb_context_destroy(&t->ctx);
}

static clb_rows rows_of(const norm *t, const double *x, int64_t n) {
  clb_rows r = {0};
  double *nans = malloc(8 * (size_t)n + 8);
  for (int64_t i = 0; i < n; i++) nans[i] = NAN;
  OK(t->ctx, clb_buffer_create(t->ctx, 8 * (uint64_t)n, &r.buffer));
  OK(t->ctx, clb_buffer_write(r.buffer, 0, x ? x : nans, 8 * (uint64_t)n));
  free(nans);
  return r;
}

static void take(const norm *t, clb_rows *r, double *to, int64_t n) {
  if (to) OK(t->ctx, clb_buffer_read(r->buffer, 0, to, 8 * (uint64_t)n));
  clb_buffer_destroy(&r->buffer);
}

enum { X, WEIGHT, G, A, C, Y, G_X, G_W, D_X, D_W, D_G, ARRAYS };
typedef struct {
  double *v[ARRAYS];
} arrays;

static int64_t size_of(const norm *t, int array) {
  return array == WEIGHT || array == C || array == G_W || array == D_W ? t->W : t->n * t->D;
}

static arrays make(const norm *t) {
  arrays a;
  uint64_t seed = 5;
  for (int i = 0; i < ARRAYS; i++) {
    a.v[i] = calloc((size_t)size_of(t, i) + 1, 8);
    for (int64_t e = 0; e < size_of(t, i) && i < Y; e++) a.v[i][e] = test_random(&seed);
  }
  return a;
}

static void drop(arrays *a) {
  for (int i = 0; i < ARRAYS; i++) free(a->v[i]);
}

/* Runs a pass on the arrays' values; results are read into them. */
static void run(const norm *t, clb_pass pass, arrays *a) {
  static const int lists[][9] = {
      {X, WEIGHT, Y, -1}, {X, WEIGHT, G, G_X, G_W, -1}, {X, WEIGHT, G, A, C, D_X, D_W, D_G, -1}};
  clb_rows r[8] = {{0}};
  for (int i = 0; lists[pass][i] >= 0; i++) {
    int of = lists[pass][i];
    r[i] = rows_of(t, of < Y ? a->v[of] : NULL, size_of(t, of));
  }
  if (pass == CLB_FORWARD) OK(t->ctx, clb_rms_norm_forward(t->op, t->n, r[0], r[1], r[2]));
  if (pass == CLB_BACKWARD)
    OK(t->ctx, clb_rms_norm_backward(t->op, t->n, r[0], r[1], r[2], r[3], r[4]));
  if (pass == CLB_DOUBLE_BACKWARD)
    OK(t->ctx,
       clb_rms_norm_double_backward(t->op, t->n, r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]));
  for (int i = 0; lists[pass][i] >= 0; i++) {
    int of = lists[pass][i];
    take(t, &r[i], of < Y ? NULL : a->v[of], size_of(t, of));
  }
}

/* ---- values and symmetries ---- */

/* Plain rows of any width: y sqrt(mean x^2 + e) = (w + offset) x. */
static void widths(void **state) {
  static const int list[] = {1,  2,  3,  7,  8,   15,  16,  17,   32,
                             33, 64, 77, 91, 128, 255, 513, 1030, 4097};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    char text[32];
    int D = list[i];
    if (is_anothers(*state, i)) continue;
    snprintf(text, sizeof text, "%dx0e", D);
    norm t = open_norm(
        *state,
        (clb_rms_norm_desc){.irreps = text, .epsilon = 0.5, .weight_offset = 1, .passes = 3},
        D > 1000 ? 3 : 37);
    arrays a = make(&t);
    run(&t, CLB_FORWARD, &a);
    run(&t, CLB_BACKWARD, &a);
    double *g_w = calloc((size_t)D, 8);
    for (int64_t r = 0; r < t.n; r++) {
      const double *x = a.v[X] + r * D, *g = a.v[G] + r * D, *w = a.v[WEIGHT];
      double s = 0.5, pull = 0;
      for (int k = 0; k < D; k++) s += x[k] * x[k] / D, pull += g[k] * (w[k] + 1) * x[k];
      for (int k = 0; k < D; k++) {
        double y = (w[k] + 1) * x[k] / sqrt(s),
               g_x = g[k] * (w[k] + 1) / sqrt(s) - pull * x[k] / D / (s * sqrt(s));
        assert_true(fabs(a.v[Y][r * D + k] - y) <= 1e-13);
        assert_true(fabs(a.v[G_X][r * D + k] - g_x) <= 1e-12);
        g_w[k] += g[k] * x[k] / sqrt(s);
      }
    }
    for (int k = 0; k < D; k++) assert_true(fabs(a.v[G_W][k] - g_w[k]) <= 1e-11);
    free(g_w);
    drop(&a);
    close_norm(&t);
  }
}

/* A turn of the components of 1o in all channels, and of 2e in two of its directions, turns the
   result; and the two layouts are one thing. */
static void symmetries(void **state) {
  enum { ROWS = 5, D = 4 + 3 * 6 + 5 * 2 };
  static const double factors[] = {0.3, 0.2, 0.7};
  const double c = cos(1), s = sin(1);
  for (int variant = CLB_RMS_PLAIN; variant <= CLB_RMS_TERMS; variant++) {
    if (is_anothers(*state, (size_t)variant)) continue;
    clb_rms_norm_desc d = {.irreps = "4x0e+6x1o+2x2e",
                           .variant = (clb_rms_variant)variant,
                           .epsilon = 1e-3,
                           .centre = 1,
                           .bias = 1,
                           .passes = CLB_PASS_BIT(CLB_FORWARD),
                           .factors = factors,
                           .n_factors = 3};
    norm t = open_norm(*state, d, ROWS);
    arrays a = make(&t);
    double before[ROWS * D], turned[ROWS * D];
    run(&t, CLB_FORWARD, &a);
    memcpy(before, a.v[Y], sizeof before);
    for (int what = 0; what < 2; what++) /* of what: x, and the first y */
      for (int r = 0; r < ROWS; r++)
        for (int at = 4; at < D; at += at < 22 ? 3 : 5) {
          double *x = (what ? before : a.v[X]) + r * D + at, x0 = x[0], x1 = x[1];
          x[0] = c * x0 - s * x1, x[1] = s * x0 + c * x1;
        }
    run(&t, CLB_FORWARD, &a);
    for (int i = 0; i < ROWS * D; i++) assert_true(fabs(a.v[Y][i] - before[i]) <= 1e-13);
    for (int r = 0; r < ROWS; r++) /* to ir_mul */
      for (int i = 0, at = 0; i < 3; at += (2 * i + 1) * (i == 0 ? 4 : i == 1 ? 6 : 2), i++)
        for (int u = 0, mul = i == 0 ? 4 : i == 1 ? 6 : 2; u < mul; u++)
          for (int m = 0; m < 2 * i + 1; m++) {
            int64_t from = r * D + at + u * (2 * i + 1) + m, to = r * D + at + m * mul + u;
            turned[to] = a.v[X][from], before[to] = a.v[Y][from];
          }
    memcpy(a.v[X], turned, sizeof turned);
    close_norm(&t);
    d.layout = CLB_IR_MUL;
    t = open_norm(*state, d, ROWS);
    run(&t, CLB_FORWARD, &a);
    for (int i = 0; i < ROWS * D; i++) assert_true(fabs(a.v[Y][i] - before[i]) <= 1e-13);
    drop(&a);
    close_norm(&t);
  }
}

/* ---- rows ---- */

/* Offsets, strides, one row for all, results in place of operands, no rows; what lies between rows
   stays, and equal calls give equal bits. */
static void rows(void **state) {
  enum { D = 20, STRIDE = 23, OFFSET = 5 };
  static const int64_t numbers[] = {0, 1, 33, 259};
  for (size_t i = 0; i < 4; i++) {
    int64_t n = numbers[i], size = OFFSET + n * STRIDE + 3;
    norm t = open_norm(
        *state,
        (clb_rms_norm_desc){
            .irreps = "5x0e+5x1o", .variant = CLB_RMS_NEQUIX, .epsilon = 1e-12, .passes = 3},
        n);
    arrays a = make(&t);
    double *x = malloc(8 * (size_t)size), *y = malloc(8 * (size_t)size), g_w[10];
    for (int64_t e = 0; e < size; e++) {
      int64_t r = (e - OFFSET) / STRIDE, k = (e - OFFSET) % STRIDE;
      x[e] = e >= OFFSET && r < n && k < D ? a.v[X][r * D + k] : 1000;
    }
    for (int64_t r = 1; r < n; r++) memcpy(a.v[G] + r * D, a.v[G], 8 * D);
    run(&t, CLB_FORWARD, &a);
    run(&t, CLB_BACKWARD, &a);
    clb_rows in = rows_of(&t, x, size), w = rows_of(&t, a.v[WEIGHT], 10),
             g = rows_of(&t, a.v[G], n ? D : 1), slope = rows_of(&t, x, size),
             of_w = rows_of(&t, NULL, 10);
    in.offset = slope.offset = OFFSET;
    in.stride = slope.stride = STRIDE;
    g.stride = CLB_SAME_ROW;
    OK(t.ctx, clb_rms_norm_backward(t.op, n, in, w, g, slope, of_w));
    OK(t.ctx, clb_rms_norm_forward(t.op, n, in, w, in));
    take(&t, &in, x, size), take(&t, &slope, y, size), take(&t, &of_w, g_w, 10);
    take(&t, &w, NULL, 0), take(&t, &g, NULL, 0);
    for (int64_t e = 0; e < size; e++) {
      int64_t r = (e - OFFSET) / STRIDE, k = (e - OFFSET) % STRIDE;
      bool in_row = e >= OFFSET && r < n && k < D;
      assert_true(x[e] == (in_row ? a.v[Y][r * D + k] : 1000));
      assert_true(y[e] == (in_row ? a.v[G_X][r * D + k] : 1000));
    }
    for (int k = 0; k < 10; k++) assert_true(g_w[k] == (n ? a.v[G_W][k] : 0));
    free(x), free(y);
    drop(&a);
    close_norm(&t);
  }
}

/* What is not asked for is neither read nor written, and the rest is as before. */
static void parts(void **state) {
  const clb_rms_norm_desc d = {.irreps = "12x0e+4x1o", .epsilon = 1e-3, .bias = 1, .centre = 1};
  norm all = open_norm(*state, d, 9);
  arrays a = make(&all);
  memset(a.v[C], 0, 8 * (size_t)all.W);
  run(&all, CLB_DOUBLE_BACKWARD, &a);
  run(&all, CLB_BACKWARD, &a);
  for (int bits = 0; bits < 3; bits++) {
    static const unsigned asked[] = {CLB_OPERAND_X, CLB_OPERAND_W, CLB_OPERAND_Z | CLB_OPERAND_X};
    clb_rms_norm_desc some = d;
    some.gradients = asked[bits];
    some.incoming = CLB_OPERAND_X;
    some.passes = CLB_PASS_BIT(CLB_DOUBLE_BACKWARD);
    norm t = open_norm(*state, some, 9);
    clb_rows r[5], none = {0}, out[3] = {none, none, none};
    for (int i = 0; i < 4; i++)
      r[i] =
          rows_of(&t, a.v[(int[]){X, WEIGHT, G, A}[i]], size_of(&t, (int[]){X, WEIGHT, G, A}[i]));
    double *got = malloc(8 * (size_t)(t.n * t.D));
    static const int results[] = {D_X, D_W, D_G};
    static const unsigned of[] = {CLB_OPERAND_X, CLB_OPERAND_W, CLB_OPERAND_Z};
    for (int i = 0; i < 3; i++)
      if (some.gradients & of[i]) out[i] = rows_of(&t, NULL, size_of(&t, results[i]));
    OK(t.ctx, clb_rms_norm_double_backward(t.op, t.n, r[0], r[1], r[2], r[3], none, out[0], out[1],
                                           out[2]));
    for (int i = 0; i < 3; i++) {
      if (!(some.gradients & of[i])) continue;
      take(&t, &out[i], got, size_of(&t, results[i]));
      for (int64_t e = 0; e < size_of(&t, results[i]); e++)
        assert_true(fabs(got[e] - a.v[results[i]][e]) <= 1e-12);
    }
    for (int i = 0; i < 4; i++) take(&t, &r[i], NULL, 0);
    free(got);
    close_norm(&t);
  }
  drop(&a);
  close_norm(&all);
}

/* ---- what is refused ---- */

#define REFUSED(ctx, words, call)                                                                  \
  do {                                                                                             \
    assert_int_not_equal(call, CLB_OK);                                                            \
    if (!strstr(clb_error(ctx), words))                                                            \
      fail_msg("'%s' is not in the message: %s", words, clb_error(ctx));                           \
  } while (0)

static void refuses(void **state) {
  clb_context *ctx = NULL;
  clb_op *op = NULL;
  clb_rms_norm_sizes sizes;
  const clb_rms_norm_desc good = {.irreps = "8x0e", .passes = 3};
  OK(ctx, clb_context_create(*state, &ctx));
#define WITH(words, ...)                                                                           \
  do {                                                                                             \
    clb_rms_norm_desc d = good;                                                                    \
    __VA_ARGS__;                                                                                   \
    REFUSED(ctx, words, clb_rms_norm_create(ctx, &d, &op));                                        \
    assert_null(op);                                                                               \
  } while (0)
  WITH("irreps is NULL", d.irreps = NULL);
  WITH("irreps is \"8x\"", d.irreps = "8x");
  WITH("0 numbers", d.irreps = "");
  WITH("65537 numbers", d.irreps = "65537x0e");
  WITH("layout is 3", d.layout = CLB_BY_CHANNEL);
  WITH("variant is 9", d.variant = (clb_rms_variant)9);
  WITH("there are 0 factors", d.variant = CLB_RMS_TERMS);
  WITH("factors: number 0 is -1", d.variant = CLB_RMS_TERMS, d.factors = &(const double){-1},
       d.n_factors = 1);
  WITH("epsilon is -1", d.epsilon = -1);
  WITH("epsilon is nan", d.epsilon = NAN);
  WITH("epsilon is inf", d.epsilon = INFINITY);
  WITH("weight_offset is", d.weight_offset = NAN);
  WITH("gradients is 0x2", d.gradients = CLB_OPERAND_Y);
  WITH("incoming is 0x8", d.incoming = CLB_OPERAND_Z);
  WITH("up to double backward", d.passes = 8);
  WITH("storage is 7", d.storage = (clb_dtype)7);
  REFUSED(ctx, "desc is NULL", clb_rms_norm_create(ctx, NULL, &op));
  REFUSED(ctx, "sizes is NULL", clb_rms_norm_measure(ctx, &good, NULL));
  OK(ctx, clb_rms_norm_measure(ctx, &good, &sizes));
  assert_true(sizes.x == 8 && sizes.w == 8);
  OK(ctx, clb_rms_norm_create(ctx, &good, &op));
  clb_rows x = {0}, small = {0}, none = {0};
  OK(ctx, clb_buffer_create(ctx, 4 * 8 * 3, &x.buffer));
  OK(ctx, clb_buffer_create(ctx, 4 * 7, &small.buffer));
  REFUSED(ctx, "buffer of w is NULL", clb_rms_norm_forward(op, 3, x, none, x));
  REFUSED(ctx, "28 bytes of w", clb_rms_norm_forward(op, 3, x, small, x));
  REFUSED(ctx, "4 rows of 8 elements", clb_rms_norm_forward(op, 4, x, x, x));
  REFUSED(ctx, "n is -1", clb_rms_norm_forward(op, -1, x, x, x));
  REFUSED(ctx, "bytes of g_w", clb_rms_norm_backward(op, 3, x, x, x, x, small));
  REFUSED(ctx, "without its double backward pass",
          clb_rms_norm_double_backward(op, 3, x, x, x, x, x, x, x, x));
  clb_rows near = x;
  near.stride = 7;
  REFUSED(ctx, "the stride of y is 7", clb_rms_norm_forward(op, 2, x, x, near));
  near.stride = 0, near.index = small.buffer;
  REFUSED(ctx, "the index of x must be NULL", clb_rms_norm_forward(op, 2, near, x, x));
  clb_buffer_destroy(&x.buffer);
  clb_buffer_destroy(&small.buffer);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
}

int main(void) {
  static const struct CMUnitTest tests[] = {cmocka_unit_test(widths), cmocka_unit_test(symmetries),
                                            cmocka_unit_test(rows), cmocka_unit_test(parts),
                                            cmocka_unit_test(refuses)};
  return run_on_devices("rms_norm", tests, sizeof tests / sizeof *tests);
}
