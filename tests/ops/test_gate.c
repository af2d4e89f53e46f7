/* tests/ops/test_gate.c - gates by mathematical property, on every device that runs here:
   derivatives by differences, symmetries, layouts, rows, and what is refused. */
#define _GNU_SOURCE
#include "tests/ops/on_devices.h"

#include <math.h>

#include "src/problem/irreps.h"

/* ---- an op and its operands in f64 ---- */

typedef struct {
  clb_context *ctx;
  clb_op *op;
  int64_t n, offset, gap; /* gap: numbers between rows */
  clb_gate_sizes sizes;
} gate;

static gate open_gate(const char *device, clb_gate_desc d, int64_t n) {
  gate t = {.n = n};
  d.storage = d.arithmetic = CLB_F64;
  if (!d.passes) d.passes = 7;
  OK(t.ctx, clb_context_create(device, &t.ctx));
  OK(t.ctx, clb_gate_measure(t.ctx, &d, &t.sizes));
  OK(t.ctx, clb_gate_create(t.ctx, &d, &t.op));
  return t;
}

static void close_gate(gate *t) {
  clb_op_destroy(&t->op);
  clb_context_destroy(&t->ctx);
}

enum { X, G, A, Y, G_X, D_X, D_G, ARRAYS };
typedef struct {
  double *v[ARRAYS];
} arrays;

static int64_t width(const gate *t, int array) {
  return array == G || array == Y || array == D_G ? t->sizes.y : t->sizes.x;
}

static int64_t size_of(const gate *t, int array) { return t->n * width(t, array); }

static arrays make(const gate *t) {
  arrays a;
  uint64_t seed = 5;
  for (int i = 0; i < ARRAYS; i++) {
    a.v[i] = calloc((size_t)size_of(t, i) + 1, 8);
    for (int64_t e = 0; e < size_of(t, i) && i < Y; e++) a.v[i][e] = 2 * test_random(&seed);
  }
  return a;
}

static void drop(arrays *a) {
  for (int i = 0; i < ARRAYS; i++) free(a->v[i]);
}

/* Rows on the device, in NaNs: those of an input, or nothing else. */
static clb_rows rows_of(const gate *t, const double *x, int64_t columns) {
  const int64_t stride = columns + t->gap, size = t->offset + t->n * stride + 1;
  clb_rows r = {.offset = t->offset, .stride = stride};
  double *all = malloc(8 * (size_t)size);
  for (int64_t i = 0; i < size; i++) all[i] = NAN;
  for (int64_t i = 0; x && i < t->n * columns; i++)
    all[t->offset + i / columns * stride + i % columns] = x[i];
  OK(t->ctx, clb_buffer_create(t->ctx, 8 * (uint64_t)size, &r.buffer));
  OK(t->ctx, clb_buffer_write(r.buffer, 0, all, 8 * (uint64_t)size));
  free(all);
  return r;
}

/* Reads what every number of must have become another one, and no other. */
static void take(const gate *t, clb_rows *r, double *to, int64_t columns) {
  const int64_t stride = columns + t->gap, size = t->offset + t->n * stride + 1;
  double *all = malloc(8 * (size_t)size);
  OK(t->ctx, clb_buffer_read(r->buffer, 0, all, 8 * (uint64_t)size));
  for (int64_t i = 0; i < size; i++) {
    const int64_t row = (i - t->offset) / stride, c = (i - t->offset) % stride;
    const bool in_row = i >= t->offset && row < t->n && c < columns;
    assert_true(isnan(all[i]) == !in_row);
    if (in_row && to) to[row * columns + c] = all[i];
  }
  free(all);
  clb_buffer_destroy(&r->buffer);
}

static void run(const gate *t, clb_pass pass, arrays *a) {
  static const int lists[][6] = {{X, Y, -1}, {X, G, G_X, -1}, {X, G, A, D_X, D_G, -1}};
  clb_rows r[5] = {{0}};
  for (int i = 0; lists[pass][i] >= 0; i++) {
    const int of = lists[pass][i];
    r[i] = rows_of(t, of < Y ? a->v[of] : NULL, width(t, of));
  }
  if (pass == CLB_FORWARD) OK(t->ctx, clb_gate_forward(t->op, t->n, r[0], r[1]));
  if (pass == CLB_BACKWARD) OK(t->ctx, clb_gate_backward(t->op, t->n, r[0], r[1], r[2]));
  if (pass == CLB_DOUBLE_BACKWARD)
    OK(t->ctx, clb_gate_double_backward(t->op, t->n, r[0], r[1], r[2], r[3], r[4]));
  for (int i = 0; lists[pass][i] >= 0; i++) {
    const int of = lists[pass][i];
    take(t, &r[i], of < Y ? NULL : a->v[of], width(t, of));
  }
}

static double dot(const gate *t, const arrays *a, int x, int y) {
  double sum = 0;
  for (int64_t i = 0; i < size_of(t, x); i++) sum += a->v[x][i] * a->v[y][i];
  return sum;
}

#define ACTIVATIONS "silu,tanh,sigmoid,relu,2*ssp,abs,identity,abs"
static const clb_gate_desc cases[] = {
    {.irreps_scalars = "5x0e+7x0o+3x0e+1x0e+9x0e+2x0o+4x0e+1x0e",
     .act_scalars = ACTIVATIONS,
     .irreps_gates = "7x0e+6x0o",
     .act_gates = "ssp,tanh",
     .irreps_gated = "6x1o+3x2e+4x0e",
     .normalize = 1},
    {.irreps_scalars = "3x0e", .act_scalars = "silu"},
    {.irreps_gates = "17x0o", .act_gates = "abs", .irreps_gated = "16x1e+1x4e", .normalize = 1},
    {.irreps_scalars = "2x0e",
     .act_scalars = "relu",
     .irreps_gates = "5x0e+4x0e",
     .act_gates = "sigmoid, 1.5 * silu",
     .irreps_gated = "9x3o",
     .irreps_x = "9x3o+11x0e"},
};
enum { CASES = sizeof cases / sizeof *cases };

/* The interpreter, which compiles nothing, runs all cases; the others run a share each. */
static bool is_anothers(const char *device, int number) {
  int own = 0;
  while (strcmp(devices[own], device)) own++;
  return strcmp(device, "cpu:interpreter") != 0 && !long_tests() && (number + own) % 3;
}

/* ---- derivatives: each pass is that of the one before ---- */

/* The slope of sum g y (first) or sum a g_x along a direction of an input, by differences. */
static void expect_slope(const gate *t, bool first, arrays *a, int input, int gradient) {
  const double e = 1e-5;
  const int64_t n = size_of(t, input);
  double *x = a->v[input], *kept = malloc(8 * (size_t)n), *along = malloc(8 * (size_t)n), value[2],
         want = 0, size = 1;
  uint64_t seed = 77 + (uint64_t)input;
  memcpy(kept, x, 8 * (size_t)n);
  for (int64_t i = 0; i < n; i++) {
    along[i] = test_random(&seed);
    want += along[i] * a->v[gradient][i];
    size += fabs(along[i] * a->v[gradient][i]);
  }
  for (int side = 0; side < 2; side++) {
    for (int64_t i = 0; i < n; i++) x[i] = kept[i] + (side ? -e : e) * along[i];
    run(t, first ? CLB_FORWARD : CLB_BACKWARD, a);
    value[side] = first ? dot(t, a, G, Y) : dot(t, a, A, G_X);
  }
  memcpy(x, kept, 8 * (size_t)n);
  const double slope = (value[0] - value[1]) / (2 * e);
  if (!(fabs(slope - want) <= 1e-8 * size))
    fail_msg("slope of input %d is %.12g by differences, %.12g", input, slope, want);
  free(kept), free(along);
}

/* Rows start anywhere, and what lies between them stays. */
static void derivatives(void **state) {
  for (int i = 0; i < 2 * CASES; i++) {
    clb_gate_desc d = cases[i / 2];
    d.layout = i % 2 ? CLB_IR_MUL : CLB_MUL_IR;
    if (is_anothers(*state, i)) continue;
    gate t = open_gate(*state, d, i % 3 ? 11 : 1);
    t.offset = i % 2 * 3, t.gap = i % 4;
    arrays a = make(&t);
    run(&t, CLB_BACKWARD, &a);
    expect_slope(&t, true, &a, X, G_X);
    run(&t, CLB_DOUBLE_BACKWARD, &a);
    expect_slope(&t, false, &a, X, D_X);
    expect_slope(&t, false, &a, G, D_G);
    drop(&a);
    close_gate(&t);
  }
}

/* ---- symmetries ---- */

/* Applies to each channel: an inversion, and a turn of its first two components; or, to_ir_mul,
   changes the layout. */
static void change(const gate *t, const char *text, double *v, bool to_ir_mul) {
  static clb_irreps irreps;
  OK(t->ctx, clb_irreps_read(text, "", &irreps, &(clb_error_sink){0}));
  double *row = malloc(8 * (size_t)irreps.dim + 8);
  for (int64_t r = 0; r < t->n; r++, v += irreps.dim) {
    for (int i = 0; i < irreps.n; i++) {
      const clb_term *term = &irreps.term[i];
      const int ir = 2 * term->l + 1;
      for (int u = 0; u < term->mul; u++)
        for (int m = 0; m < ir; m++) {
          const double *x = v + term->at + u * ir;
          const double turned = ir == 1 || m > 1 ? x[m]
                                : m              ? sin(1) * x[0] + cos(1) * x[1]
                                                 : cos(1) * x[0] - sin(1) * x[1];
          if (to_ir_mul) row[term->at + m * term->mul + u] = x[m];
          else row[term->at + u * ir + m] = term->parity * turned;
        }
    }
    memcpy(v, row, 8 * (size_t)irreps.dim);
  }
  free(row);
}

static void symmetries(void **state) {
  for (int i = 0; i < CASES; i++) {
    clb_gate_desc d = cases[i];
    d.passes = CLB_PASS_BIT(CLB_FORWARD);
    if (is_anothers(*state, i)) continue;
    for (int layouts = 0; layouts < 2; layouts++) {
      gate t = open_gate(*state, d, 5);
      arrays a = make(&t);
      run(&t, CLB_FORWARD, &a);
      double *before = malloc(8 * (size_t)size_of(&t, Y));
      memcpy(before, a.v[Y], 8 * (size_t)size_of(&t, Y));
      change(&t, t.sizes.irreps_x, a.v[X], layouts);
      change(&t, t.sizes.irreps_y, before, layouts);
      d.layout = layouts ? CLB_IR_MUL : CLB_MUL_IR;
      close_gate(&t);
      t = open_gate(*state, d, 5);
      run(&t, CLB_FORWARD, &a);
      for (int64_t e = 0; e < size_of(&t, Y); e++)
        assert_true(fabs(a.v[Y][e] - before[e]) <= 1e-13 * (1 + fabs(before[e])));
      free(before);
      drop(&a);
      close_gate(&t);
    }
  }
}

/* ---- values ---- */

/* With normalize the mean of squares is 1: factors by Simpson's rule on 200,000 points. */
static void values(void **state) {
  static const struct {
    const char *name;
    double factor;
  } list[] = {{"silu", 1.67653247033112},
              {"tanh", 1.59253741972288},
              {"sigmoid", 1.84622854533867},
              {"relu", 1.41421356237310},
              {"abs", 1},
              {"ssp", 1.8755962561351},
              {"identity", 1}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    const double x[] = {-700, -3, -1e-3, 0, 1e-8, 0.3, 2, 800};
    double y[8], plain[8];
    if (is_anothers(*state, (int)i)) continue;
    for (int normalize = 0; normalize < 2; normalize++) {
      gate t = open_gate(*state,
                         (clb_gate_desc){.irreps_scalars = "8x0e",
                                         .act_scalars = list[i].name,
                                         .normalize = normalize,
                                         .passes = CLB_PASS_BIT(CLB_FORWARD)},
                         1);
      clb_rows in = rows_of(&t, x, 8), out = rows_of(&t, NULL, 8);
      OK(t.ctx, clb_gate_forward(t.op, 1, in, out));
      take(&t, &in, NULL, 8), take(&t, &out, normalize ? y : plain, 8);
      close_gate(&t);
    }
    for (int e = 0; e < 8; e++) {
      const double s = 1 / (1 + exp(-x[e])),
                   all[] = {x[e] * s,   tanh(x[e]),
                            s,          fmax(x[e], 0),
                            fabs(x[e]), fmax(x[e], 0) + log1p(exp(-fabs(x[e]))) - log(2),
                            x[e]};
      assert_true(fabs(plain[e] - all[i]) <= 1e-14 * (i == 5) + 1e-15 * fabs(all[i]));
      assert_true(fabs(y[e] - list[i].factor * plain[e]) <= 1e-12 * fabs(y[e]));
    }
  }
}

/* At zero, where abs and relu have their kinks, every result is finite, and slopes of these are 0;
   without rows, and without irreps, nothing is done. */
static void corners(void **state) {
  gate t = open_gate(*state, cases[0], 3);
  arrays a = make(&t);
  memset(a.v[X], 0, 8 * (size_t)size_of(&t, X));
  for (int pass = 0; pass < 3; pass++) run(&t, (clb_pass)pass, &a);
  for (int i = Y; i < ARRAYS; i++)
    for (int64_t e = 0; e < size_of(&t, i); e++) assert_true(isfinite(a.v[i][e]));
  t.n = 0;
  for (int pass = 0; pass < 3; pass++) run(&t, (clb_pass)pass, &a);
  OK(t.ctx, clb_gate_forward(t.op, 0, (clb_rows){0}, (clb_rows){0}));
  drop(&a);
  close_gate(&t);
  t = open_gate(*state,
                (clb_gate_desc){.irreps_scalars = "1x0e+1x0e",
                                .act_scalars = "relu,abs",
                                .passes = CLB_PASS_BIT(CLB_BACKWARD)},
                1);
  a = make(&t);
  memset(a.v[X], 0, 8 * (size_t)size_of(&t, X));
  run(&t, CLB_BACKWARD, &a);
  for (int e = 0; e < 2; e++) assert_true(a.v[G_X][e] == 0);
  drop(&a);
  close_gate(&t);
  t = open_gate(*state, (clb_gate_desc){.irreps_scalars = ""}, 3);
  assert_true(t.sizes.x == 0 && t.sizes.y == 0 && !*t.sizes.irreps_x);
  OK(t.ctx, clb_gate_forward(t.op, 3, (clb_rows){0}, (clb_rows){0}));
  close_gate(&t);
}

/* The order of x and y. */
static void orders(void **state) {
  gate t = open_gate(*state, cases[0], 1);
  assert_string_equal(t.sizes.irreps_x, "15x0o+34x0e+6x1o+3x2e");
  assert_string_equal(t.sizes.irreps_y,
                      "5x0e+7x0o+3x0e+1x0e+9x0e+2x0e+4x0e+1x0e+6x1o+1x2e+2x2o+4x0o");
  close_gate(&t);
}

/* ---- what is refused ---- */

static void refuses(void **state) {
  clb_context *ctx = NULL;
  clb_op *op = NULL;
  clb_gate_sizes sizes;
  const clb_gate_desc good = {.irreps_scalars = "4x0e+2x0o",
                              .act_scalars = "silu,tanh",
                              .irreps_gates = "3x0e",
                              .act_gates = "sigmoid",
                              .irreps_gated = "3x1o",
                              .passes = 3};
  OK(ctx, clb_context_create(*state, &ctx));
#define WITH(words, ...)                                                                           \
  do {                                                                                             \
    clb_gate_desc d = good;                                                                        \
    __VA_ARGS__;                                                                                   \
    NOT_OK(ctx, CLB_ERROR_ARGUMENT, words, clb_gate_create(ctx, &d, &op));                         \
    assert_null(op);                                                                               \
  } while (0)
  WITH("irreps_scalars is \"8x\"", d.irreps_scalars = "8x");
  WITH("term 0 of irreps_scalars has degree 1", d.irreps_scalars = "2x1o+1x0e");
  WITH("term 0 of irreps_gates has degree 2", d.irreps_gates = "3x2e");
  WITH("fewer channels", d.irreps_gates = "2x0e");
  WITH("more channels", d.irreps_gates = "4x0e");
  WITH("act_scalars is \"(NULL)\"", d.act_scalars = NULL);
  WITH("act_scalars is \"\"; it must be silu, tanh", d.act_scalars = "");
  WITH("act_scalars is \"gelu\"", d.act_scalars = "gelu");
  WITH("act_scalars is \"silu,\"", d.act_scalars = "silu,");
  WITH("act_scalars is \"silu tanh\"", d.act_scalars = "silu tanh");
  WITH("act_scalars is \"2silu\"", d.act_scalars = "2silu");
  WITH("act_scalars is \"1e999*silu\"", d.act_scalars = "1e999*silu");
  WITH("3 activations; it must have 1, or 2", d.act_scalars = "silu,tanh,tanh");
  WITH("act_scalars: silu of 2x0o would have no parity", d.act_scalars = "silu");
  WITH("act_gates: relu of 3x0o", d.irreps_gates = "3x0o", d.act_gates = "relu");
  WITH("layout is 3", d.layout = CLB_BY_CHANNEL);
  WITH("lacks 3x1o of irreps_gated", d.irreps_x = "7x0e+2x0o+2x1o");
  WITH("only 3 are scalars, gates or gated", d.irreps_x = "7x0e+2x0o+4x1o");
  WITH("irreps_x is \"x\"", d.irreps_x = "x");
  WITH("2^31 - 1", d.irreps_scalars = "2147483647x0e+9x0o");
  WITH("storage is 7", d.storage = (clb_dtype)7);
#undef WITH
  clb_gate_desc far = good;
  far.passes = CLB_PASS_BIT(CLB_TRIPLE_BACKWARD);
  NOT_OK(ctx, CLB_ERROR_UNSUPPORTED, "up to double backward", clb_gate_create(ctx, &far, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "desc is NULL", clb_gate_create(ctx, NULL, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "sizes is NULL", clb_gate_measure(ctx, &good, NULL));
  OK(ctx, clb_gate_measure(ctx, &good, &sizes));
  assert_true(sizes.x == 18 && sizes.y == 15);
  OK(ctx, clb_gate_create(ctx, &good, &op));
  clb_rows x = {0}, small = {0}, none = {0}, near = {0};
  OK(ctx, clb_buffer_create(ctx, 4 * 18 * 3, &x.buffer));
  OK(ctx, clb_buffer_create(ctx, 4 * 15, &small.buffer));
  near = x, near.stride = 14;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer of y is NULL", clb_gate_forward(op, 3, x, none));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "60 bytes of g", clb_gate_backward(op, 2, x, small, x));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "4 rows of 18 elements", clb_gate_forward(op, 4, x, x));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "n is -1", clb_gate_forward(op, -1, x, x));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "the stride of y is 14", clb_gate_forward(op, 2, x, near));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "without its double backward pass",
         clb_gate_double_backward(op, 1, x, x, x, x, x));
  clb_buffer_destroy(&x.buffer);
  clb_buffer_destroy(&small.buffer);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(derivatives), cmocka_unit_test(symmetries), cmocka_unit_test(values),
      cmocka_unit_test(corners),     cmocka_unit_test(orders),     cmocka_unit_test(refuses)};
  return run_on_devices("gate", tests, sizeof tests / sizeof *tests);
}
