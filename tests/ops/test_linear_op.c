/* tests/ops/test_linear_op.c - linear maps of irreps by mathematical property, on every device that
   runs here: the tensor product by 1, derivatives by differences, symmetry, rows, parts, and what
   is refused. */
#define _GNU_SOURCE
#include "tests/fakes/device_limits.h"
#include "src/runtime/context.h"
#include "tests/ops/on_devices.h"

#include <math.h>

/* The interpreter, which compiles nothing, runs all cases; the others run a share each. */
static bool is_anothers(const char *device, int number) {
  int own = 0;
  while (strcmp(devices[own], device)) own++;
  return strcmp(device, "cpu:interpreter") != 0 && leaves_to_another(own % 3, 3, number);
}

/* ---- an op and its operands in f64, dense ---- */

typedef struct {
  clb_context *ctx;
  clb_op *op;
  int64_t n, W_rows; /* rows, and rows of w */
  clb_linear_sizes size;
  clb_buffer *species; /* NULL: not by species */
} linear;

static linear open_linear(const char *device, clb_linear_desc d, int64_t n) {
  linear t = {.n = n, .W_rows = d.weights_per_row ? n : d.n_species ? d.n_species : 1};
  d.storage = d.arithmetic = CLB_F64;
  if (!d.passes) d.passes = 7;
  OK(t.ctx, clb_context_create(device, &t.ctx));
  OK(t.ctx, clb_linear_measure(t.ctx, &d, &t.size));
  OK(t.ctx, clb_linear_create(t.ctx, &d, &t.op));
  if (!d.n_species) return t;
  int32_t *species = calloc((size_t)n + 1, sizeof *species);
  for (int64_t i = 0; i < n; i++) species[i] = (int32_t)(i * i % 7 % d.n_species);
  OK(t.ctx, clb_buffer_create(t.ctx, 4 * (uint64_t)n + 4, &t.species));
  OK(t.ctx, clb_buffer_write(t.species, 0, species, 4 * (uint64_t)n + 4));
  free(species);
  return t;
}

static void close_linear(linear *t) {
  clb_buffer_destroy(&t->species);
  clb_op_destroy(&t->op);
  clb_context_destroy(&t->ctx);
}

/* NULL: not a number, to be overwritten. */
static clb_rows rows_of(const linear *t, const double *x, int64_t n) {
  clb_rows r = {0};
  double *nans = malloc(8 * (size_t)n + 8);
  for (int64_t i = 0; i < n; i++) nans[i] = NAN;
  OK(t->ctx, clb_buffer_create(t->ctx, 8 * (uint64_t)n + 8, &r.buffer));
  OK(t->ctx, clb_buffer_write(r.buffer, 0, x ? x : nans, 8 * (uint64_t)n));
  free(nans);
  return r;
}

enum { X, WEIGHT, G, A, C, Z, G_X, G_W, D_X, D_W, D_G, ARRAYS };
static const int lists[][9] = {
    {X, WEIGHT, Z, -1}, {X, WEIGHT, G, G_X, G_W, -1}, {X, WEIGHT, G, A, C, D_X, D_W, D_G, -1}};
typedef struct {
  double *v[ARRAYS];
} arrays;

static int64_t size_of(const linear *t, int array) {
  switch (array) {
    case X:
    case A:
    case G_X:
    case D_X: return t->n * t->size.x;
    case G:
    case Z:
    case D_G: return t->n * t->size.z;
    default: return t->W_rows * t->size.w;
  }
}

static arrays make(const linear *t) {
  arrays a;
  uint64_t seed = 5;
  for (int i = 0; i < ARRAYS; i++) {
    a.v[i] = calloc((size_t)size_of(t, i) + 1, 8);
    for (int64_t e = 0; e < size_of(t, i) && i < Z; e++) a.v[i][e] = test_random(&seed);
  }
  return a;
}

static void drop(arrays *a) {
  for (int i = 0; i < ARRAYS; i++) free(a->v[i]);
}

/* Submits a pass; r: its operands. */
static clb_status submit(const linear *t, clb_pass pass, clb_rows *r) {
  r[1].index = t->species;
  if (pass == CLB_FORWARD) return clb_linear_forward(t->op, t->n, r[0], r[1], r[2]);
  if (pass == CLB_BACKWARD) return clb_linear_backward(t->op, t->n, r[0], r[1], r[2], r[3], r[4]);
  return clb_linear_double_backward(t->op, t->n, r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]);
}

/* Runs a pass on the arrays' values; results are read into them, or added to them. Operands of
   `without` are empty. */
static void run_without(const linear *t, clb_pass pass, arrays *a, unsigned without) {
  clb_rows r[8] = {{0}};
  for (int i = 0; lists[pass][i] >= 0; i++) {
    const int of = lists[pass][i];
    if (!(without >> of & 1))
      r[i] = rows_of(t, of < Z || t->op->problem.accumulate ? a->v[of] : NULL, size_of(t, of));
  }
  OK(t->ctx, submit(t, pass, r));
  for (int i = 0; lists[pass][i] >= 0; i++) {
    const int of = lists[pass][i];
    if (without >> of & 1) continue;
    if (of >= Z)
      OK(t->ctx, clb_buffer_read(r[i].buffer, 0, a->v[of], 8 * (uint64_t)size_of(t, of)));
    clb_buffer_destroy(&r[i].buffer);
  }
}

static void run(const linear *t, clb_pass pass, arrays *a) { run_without(t, pass, a, 0); }

static void expect_near(const double *a, const double *b, int64_t n, const char *what) {
  for (int64_t i = 0; i < n; i++)
    if (!(fabs(a[i] - b[i]) <= 1e-11 * (1 + fabs(b[i]))))
      fail_msg("%s: element %lld is %.15g, not %.15g", what, (long long)i, a[i], b[i]);
}

/* ---- problems ---- */

#define IN "7x0e+5x1o+3x0o+9x2e+0x1o+2x1e"
#define OUT "5x1o+20x0e+3x2e+1x0o+6x1o+2x3o"
static const clb_linear_instruction pairs[] = {{1, 4}, {0, 1}, {3, 2}, {0, 1}};
static const int biases[] = {0, 1, 0, 0, 0, 0};

static const clb_linear_desc problems[] = {
    {.irreps_in = IN, .irreps_out = OUT, .bias = 1},
    {.irreps_in = IN, .irreps_out = OUT, .bias = 1, .layout_in = CLB_IR_MUL, .n_species = 3},
    {.irreps_in = IN, .irreps_out = OUT, .layout_out = CLB_IR_MUL, .weights_per_row = 1},
    {.irreps_in = IN,
     .irreps_out = OUT,
     .instructions = pairs,
     .n_instructions = 4,
     .biases = biases,
     .n_biases = 6,
     .path_normalization = CLB_PATH_PATH},
    {.irreps_in = "4x12e+1x0e", .irreps_out = "3x12e+40x0e", .path_normalization = CLB_PATH_NONE},
    {.irreps_in = "2x1o", .irreps_out = "3x0e+2x2e", .bias = 1}, /* biases alone */
    {.irreps_in = "2x1o", .irreps_out = "3x2e"},                 /* no weights at all */
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

/* ---- values ---- */

/* The fully connected product by y = 1 of 1x0e has the same weights and normalisation. */
static void products(void **state) {
  static clb_instructions found;
  linear t = open_linear(*state, (clb_linear_desc){.irreps_in = IN, .irreps_out = OUT}, 21);
  clb_op *op;
  OK(t.ctx, clb_fully_connected(t.ctx, IN, "1x0e", OUT, &found));
  const clb_tensor_product_desc d = {.irreps_x = found.irreps_x,
                                     .irreps_y = found.irreps_y,
                                     .irreps_z = found.irreps_z,
                                     .instructions = found.instructions,
                                     .n_instructions = found.n_instructions,
                                     .shared_weights = 1,
                                     .storage = CLB_F64,
                                     .arithmetic = CLB_F64,
                                     .passes = 1};
  OK(t.ctx, clb_tensor_product_create(t.ctx, &d, &op));
  arrays a = make(&t);
  const double one = 1;
  double *z = calloc((size_t)size_of(&t, Z), 8);
  clb_rows r[] = {rows_of(&t, a.v[X], size_of(&t, X)), rows_of(&t, &one, 1),
                  rows_of(&t, a.v[WEIGHT], t.size.w), rows_of(&t, NULL, size_of(&t, Z))};
  r[1].stride = CLB_SAME_ROW;
  OK(t.ctx, clb_tensor_product_forward(op, t.n, r[0], r[1], r[2], r[3]));
  OK(t.ctx, clb_buffer_read(r[3].buffer, 0, z, 8 * (uint64_t)size_of(&t, Z)));
  run(&t, CLB_FORWARD, &a);
  expect_near(a.v[Z], z, size_of(&t, Z), "the product by 1");
  for (int i = 0; i < 4; i++) clb_buffer_destroy(&r[i].buffer);
  free(z);
  clb_op_destroy(&op);
  drop(&a);
  close_linear(&t);
}

/* e3nn's factors, by hand: ones in all places. */
static void normalisations(void **state) {
  static const clb_linear_instruction both[] = {{0, 0}, {1, 0}, {1, 1}};
  static const struct {
    clb_path_normalization kind;
    double first, second; /* of the two terms of z */
  } wanted[] = {{CLB_PATH_ELEMENT, 12 / 3.4641016151377544, 3},
                {CLB_PATH_PATH, 3 / 2.449489742783178 + 9 / 4.242640687119285, 3},
                {CLB_PATH_NONE, 12, 9}};
  for (int i = 0; i < 3; i++) {
    linear t = open_linear(*state,
                           (clb_linear_desc){.irreps_in = "3x0e+9x0e",
                                             .irreps_out = "2x0e+1x0e",
                                             .instructions = both,
                                             .n_instructions = 3,
                                             .bias = 1,
                                             .path_normalization = wanted[i].kind},
                           2);
    arrays a = make(&t);
    for (int64_t e = 0; e < size_of(&t, X); e++) a.v[X][e] = 1;
    for (int64_t e = 0; e < t.size.w; e++) a.v[WEIGHT][e] = e < 33 ? 1 : 100 * (double)(e - 32);
    assert_int_equal(t.size.w, 3 * 2 + 9 * 2 + 9 + 3);
    run(&t, CLB_FORWARD, &a);
    const double z[] = {wanted[i].first + 100, wanted[i].first + 200, wanted[i].second + 300};
    for (int r = 0; r < 2; r++) expect_near(a.v[Z] + 3 * r, z, 3, "a factor");
    drop(&a);
    close_linear(&t);
  }
}

/* ---- derivatives: each pass is that of the one before ---- */

static double dot(const linear *t, const arrays *a, int x, int y) {
  double sum = 0;
  for (int64_t i = 0; i < size_of(t, x); i++) sum += a->v[x][i] * a->v[y][i];
  return sum;
}

/* What a pass is the derivative of, after running it: sum g z, or sum a g_x + c g_w. */
static double value(const linear *t, bool first, arrays *a) {
  run(t, first ? CLB_FORWARD : CLB_BACKWARD, a);
  return first ? dot(t, a, G, Z) : dot(t, a, A, G_X) + dot(t, a, C, G_W);
}

/* The map is bilinear, so that a long step is exact. */
static void expect_slope(const linear *t, bool first, arrays *a, int input, int gradient) {
  const int64_t n = size_of(t, input);
  double *x = a->v[input], *kept = malloc(8 * (size_t)n + 8), *along = malloc(8 * (size_t)n + 8),
         want = 0, size = 1;
  uint64_t seed = 77 + (uint64_t)input;
  memcpy(kept, x, 8 * (size_t)n);
  for (int64_t i = 0; i < n; i++) {
    along[i] = test_random(&seed);
    want += along[i] * a->v[gradient][i];
    size += fabs(along[i] * a->v[gradient][i]);
    x[i] = kept[i] + along[i];
  }
  const double up = value(t, first, a);
  for (int64_t i = 0; i < n; i++) x[i] = kept[i] - along[i];
  const double down = value(t, first, a);
  memcpy(x, kept, 8 * (size_t)n);
  if (!(fabs((up - down) / 2 - want) <= 1e-11 * size))
    fail_msg("slope of input %d is %.12g by differences, %.12g", input, (up - down) / 2, want);
  free(kept), free(along);
}

static void derivatives(void **state) {
  for (int i = 0; i < PROBLEMS; i++) {
    if (is_anothers(*state, i)) continue;
    linear t = open_linear(*state, problems[i], 19);
    arrays a = make(&t);
    run(&t, CLB_BACKWARD, &a);
    expect_slope(&t, true, &a, X, G_X);
    expect_slope(&t, true, &a, WEIGHT, G_W);
    run(&t, CLB_DOUBLE_BACKWARD, &a);
    expect_slope(&t, false, &a, X, D_X);
    expect_slope(&t, false, &a, WEIGHT, D_W);
    expect_slope(&t, false, &a, G, D_G);
    drop(&a);
    close_linear(&t);
  }
}

/* ---- symmetry: any matrix on the components of a degree commutes with the map ---- */

static void mix(double *row, const int *term, int n) { /* term: pairs of mul and width */
  for (int i = 0; i < n; i++)
    for (int u = 0; u < term[2 * i]; u++, row += term[2 * i + 1]) {
      double was[5];
      memcpy(was, row, 8 * (size_t)term[2 * i + 1]);
      for (int m = 0; m < term[2 * i + 1] && term[2 * i + 1] > 1; m++) {
        row[m] = 0;
        for (int k = 0; k < term[2 * i + 1]; k++) row[m] += cos(m + 3 * k) * was[k];
      }
    }
}

static void symmetry(void **state) {
  static const int in[] = {4, 1, 6, 3, 2, 5}, out[] = {3, 5, 7, 3, 20, 1};
  linear t = open_linear(
      *state,
      (clb_linear_desc){.irreps_in = "4x0e+6x1o+2x2e", .irreps_out = "3x2e+7x1o+20x0e", .bias = 1},
      6);
  arrays a = make(&t);
  double *before = malloc(8 * (size_t)size_of(&t, Z));
  run(&t, CLB_FORWARD, &a);
  memcpy(before, a.v[Z], 8 * (size_t)size_of(&t, Z));
  for (int r = 0; r < 6; r++) mix(a.v[X] + r * t.size.x, in, 3), mix(before + r * t.size.z, out, 3);
  run(&t, CLB_FORWARD, &a);
  expect_near(a.v[Z], before, size_of(&t, Z), "turned rows");
  free(before);
  drop(&a);
  close_linear(&t);
}

/* ---- rows and parts ---- */

/* Sums over many rows, the same twice; and over none, which give zeros or leave what is there. */
static void sums(void **state) {
  enum { ROWS = 1111 };
  for (int species = 0; species <= 2; species += 2) {
    clb_linear_desc d = {
        .irreps_in = "3x0e+2x1o", .irreps_out = "5x0e+1x1o", .bias = 1, .n_species = species};
    linear t = open_linear(*state, d, ROWS);
    arrays a = make(&t);
    double *first = malloc(8 * (size_t)size_of(&t, G_W));
    run(&t, CLB_BACKWARD, &a);
    memcpy(first, a.v[G_W], 8 * (size_t)size_of(&t, G_W));
    expect_slope(&t, true, &a, WEIGHT, G_W);
    run(&t, CLB_BACKWARD, &a);
    assert_memory_equal(first, a.v[G_W], 8 * (size_t)size_of(&t, G_W));
    t.n = 0;
    run(&t, CLB_BACKWARD, &a);
    for (int64_t i = 0; i < size_of(&t, G_W); i++) assert_true(a.v[G_W][i] == 0);
    free(first);
    drop(&a);
    close_linear(&t);
  }
}

/* What is not asked for is neither read nor written, and the rest is as before. */
static void parts(void **state) {
  static const struct {
    unsigned gradients, incoming, without;
  } cases[] = {{CLB_OPERAND_X, CLB_OPERAND_W, 1u << A | 1u << D_W | 1u << D_G},
               {CLB_OPERAND_W, CLB_OPERAND_X, 1u << C | 1u << D_X | 1u << D_G},
               {CLB_OPERAND_Z | CLB_OPERAND_W, CLB_OPERAND_W, 1u << A | 1u << D_X},
               {CLB_OPERAND_Z | CLB_OPERAND_X, CLB_OPERAND_X, 1u << C | 1u << D_W}};
  for (int problem = 0; problem < 4; problem++)
    for (int i = 0; i < 4; i++) {
      if (is_anothers(*state, problem + i)) continue;
      clb_linear_desc d = problems[problem];
      linear all = open_linear(*state, d, 9);
      arrays a = make(&all), b = make(&all);
      for (int what = A; what <= C; what++)
        if (cases[i].without >> what & 1) memset(a.v[what], 0, 8 * (size_t)size_of(&all, what));
      run(&all, CLB_DOUBLE_BACKWARD, &a);
      close_linear(&all);
      d.gradients = cases[i].gradients;
      d.incoming = cases[i].incoming;
      d.passes = CLB_PASS_BIT(CLB_DOUBLE_BACKWARD);
      linear t = open_linear(*state, d, 9);
      run_without(&t, CLB_DOUBLE_BACKWARD, &b, cases[i].without);
      for (int what = D_X; what <= D_G; what++)
        if (!(cases[i].without >> what & 1))
          expect_near(b.v[what], a.v[what], size_of(&t, what), "a part");
      drop(&a), drop(&b);
      close_linear(&t);
    }
}

/* The interpreter is taken for a GPU of few units. */
static linear open_small_gpu(const char *device, int limits, int units, clb_linear_desc d,
                             int64_t n) {
  linear t = open_linear(device, d, n);
  if (strcmp(device, "cpu:interpreter")) return t;
  t.ctx->device->limits = device_limits[limits].limits;
  t.ctx->device->limits.units = units;
  d.storage = d.arithmetic = CLB_F64;
  d.passes = 7;
  clb_op_destroy(&t.op);
  OK(t.ctx, clb_linear_create(t.ctx, &d, &t.op));
  return t;
}

/* Rows alone, in a kernel for few rows where a device has one, are as among many. */
static void compare_rows(const char *device, int limits, int units, const clb_linear_desc *d) {
  static const int results[] = {Z, G_X, D_X, D_G};
  linear t = open_small_gpu(device, limits, units, *d, 16 * (int64_t)units + 8);
  const int64_t many = 16 * t.ctx->device->limits.units + 8;
  for (int64_t few = 1; few < 16; few += 12) {
    t.n = many;
    arrays a = make(&t), b = make(&t);
    for (clb_pass pass = 0; pass <= CLB_DOUBLE_BACKWARD; pass++) {
      t.n = many, run(&t, pass, &a);
      t.n = few, run(&t, pass, &b);
    }
    for (int r = 0; r < 4; r++)
      expect_near(b.v[results[r]], a.v[results[r]], size_of(&t, results[r]), "a row alone");
    drop(&a), drop(&b);
  }
  close_linear(&t);
}

static void few_rows(void **state) {
  static const int limits[PROBLEMS] = {
      LIMITS_SMALL_GROUPS, 0, 0, LIMITS_NVIDIA, LIMITS_TWO_SUBGROUPS, LIMITS_AMD,
      LIMITS_NO_SUBGROUPS};
  for (int i = 0; i < PROBLEMS; i++) {
    if (is_anothers(*state, i) || problems[i].n_species || problems[i].weights_per_row) continue;
    for (int accumulate = 0; accumulate < 2; accumulate++) {
      clb_linear_desc d = problems[i];
      d.accumulate = accumulate;
      compare_rows(*state, limits[i], 1, &d);
    }
  }
}

/* Tiles of all shapes: multiplicities of 1 to 7; channels that are accessed together, in rows that
   start at multiples of their number and (7 of the first row) elsewhere; blocks of few rows, where
   those of many would leave units idle; species of which each has its weights. */
static void tiles_of_few_rows(void **state) {
  static const clb_linear_desc tiles[] = {{.irreps_in = "1x0e+2x1o+3x0o+4x2e+5x1e+6x1o+7x0e",
                                           .irreps_out = "7x1o+6x0e+5x0o+4x1e+3x2e+2x0e+1x1o",
                                           .layout_in = CLB_IR_MUL,
                                           .layout_out = CLB_IR_MUL,
                                           .bias = 1},
                                          {.irreps_in = "68x0e+8x1o+4x2e",
                                           .irreps_out = "36x0e+12x1o+8x2e",
                                           .layout_in = CLB_IR_MUL,
                                           .layout_out = CLB_IR_MUL},
                                          {.irreps_in = "4x0e+1x1o",
                                           .irreps_out = "8x0e+6x1o",
                                           .layout_in = CLB_IR_MUL,
                                           .layout_out = CLB_IR_MUL},
                                          {.irreps_in = "20x0e+140x1o",
                                           .irreps_out = "6x0e+4x1o",
                                           .layout_in = CLB_IR_MUL,
                                           .layout_out = CLB_IR_MUL,
                                           .n_species = 3,
                                           .bias = 1}};
  static const int limits[] = {LIMITS_NVIDIA, LIMITS_AMD, LIMITS_INTEL, LIMITS_SMALL_GROUPS};
  for (int i = 0; i < 4 && !strcmp(*state, "cpu:interpreter"); i++)
    for (int small = 0; small < 2; small++) {
      clb_linear_desc d = tiles[i];
      d.accumulate = small;
      compare_rows(*state, limits[(i + small) % 4], small ? 12 : 1, &d);
    }
}

/* ---- what is refused ---- */

static void refuses_descriptions(void **state) {
  static const clb_linear_instruction far[] = {{0, 0}, {2, 0}}, unlike[] = {{0, 0}, {1, 0}};
  static const int vector[] = {0, 1};
  clb_context *ctx = NULL;
  clb_op *op = NULL;
  clb_linear_sizes sizes;
  const clb_linear_desc good = {.irreps_in = "8x0e+1o", .irreps_out = "4x0e+2x1o", .passes = 7};
  OK(ctx, clb_context_create(*state, &ctx));
#define WITH(words, ...)                                                                           \
  do {                                                                                             \
    clb_linear_desc d = good;                                                                      \
    __VA_ARGS__;                                                                                   \
    NOT_OK(ctx, CLB_ERROR_ARGUMENT, words, clb_linear_create(ctx, &d, &op));                       \
    assert_null(op);                                                                               \
  } while (0)
  WITH("irreps_in is NULL", d.irreps_in = NULL);
  WITH("irreps_out is \"8x\"", d.irreps_out = "8x");
  WITH("n_instructions is 2", d.n_instructions = 2);
  WITH("n_instructions is -1; it must be 0 ... 512", d.instructions = far, d.n_instructions = -1);
  WITH("instruction 1 is of terms 2 and 0", d.instructions = far, d.n_instructions = 2);
  WITH("instruction 1 joins 1o of term 1 with 0e of term 0", d.instructions = unlike,
       d.n_instructions = 2);
  WITH("biases has term 1 of irreps_out, 1o", d.biases = vector, d.n_biases = 2);
  WITH("n_biases is 1; irreps_out has 2 terms", d.biases = vector, d.n_biases = 1);
  WITH("biases is NULL and n_biases is 2", d.n_biases = 2);
  WITH("bias is 1; it must be 0", d.biases = vector, d.n_biases = 2, d.bias = 1);
  WITH("path_normalization is 3", d.path_normalization = (clb_path_normalization)3);
  WITH("layout_in is 3", d.layout_in = CLB_BY_CHANNEL);
  WITH("layout_out is 2", d.layout_out = CLB_MERGED);
  WITH("n_species is -1", d.n_species = -1);
  WITH("n_species is 2; with weights_per_row", d.n_species = 2, d.weights_per_row = 1);
  WITH("gradients is 0x2", d.gradients = CLB_OPERAND_Y);
  WITH("incoming is 0x8", d.incoming = CLB_OPERAND_Z);
  WITH("passes is 0", d.passes = 0);
  WITH("2^31 - 1 weights", d.irreps_in = "70000x0e", d.irreps_out = "70000x0e");
  WITH("storage is 7", d.storage = (clb_dtype)7);
  clb_linear_desc third = good;
  third.passes = 8;
  NOT_OK(ctx, CLB_ERROR_UNSUPPORTED, "up to double backward", clb_linear_create(ctx, &third, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "desc is NULL", clb_linear_create(ctx, NULL, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "sizes is NULL", clb_linear_measure(ctx, &good, NULL));
  OK(ctx, clb_linear_measure(ctx, &good, &sizes));
  assert_true(sizes.x == 11 && sizes.z == 10 && sizes.w == 34);
  clb_context_destroy(&ctx);
}

static void refuses_rows(void **state) {
  linear t = open_linear(*state, (clb_linear_desc){.irreps_in = "8x0e", .irreps_out = "4x0e"}, 3);
  clb_rows x = rows_of(&t, NULL, 40), small = rows_of(&t, NULL, 6), none = {0}, near = x;
#define NO(words, call) NOT_OK(t.ctx, CLB_ERROR_ARGUMENT, words, call)
  NO("buffer of w is NULL", clb_linear_forward(t.op, 3, x, none, x));
  NO("56 bytes of w", clb_linear_forward(t.op, 3, x, small, x));
  NO("9 rows of 8 elements", clb_linear_forward(t.op, 9, x, x, x));
  NO("n is -1", clb_linear_forward(t.op, -1, x, x, x));
  near.stride = 3;
  NO("the stride of z is 3", clb_linear_forward(t.op, 2, x, x, near));
  near.stride = 0, near.index = small.buffer;
  NO("the index of x must be NULL", clb_linear_forward(t.op, 2, near, x, x));
  clb_op_destroy(&t.op);
  const clb_linear_desc d = {.irreps_in = "2x0e",
                             .irreps_out = "3x0e",
                             .n_species = 3,
                             .storage = CLB_F64,
                             .arithmetic = CLB_F64,
                             .passes = 3};
  OK(t.ctx, clb_linear_create(t.ctx, &d, &t.op));
  NO("the index of w is NULL", clb_linear_forward(t.op, 2, x, x, x));
  near = small, near.index = x.buffer;
  NO("3 rows of 6 elements", clb_linear_forward(t.op, 2, x, near, x));
  near = x, near.index = x.buffer;
  NO("the index of g_w must be NULL", clb_linear_backward(t.op, 2, x, near, x, x, near));
  NO("3 rows of 6 elements", clb_linear_backward(t.op, 2, x, near, x, x, small));
  clb_buffer_destroy(&x.buffer);
  clb_buffer_destroy(&small.buffer);
  close_linear(&t);
}

int main(void) {
  static const struct CMUnitTest tests[] = {cmocka_unit_test(products),
                                            cmocka_unit_test(normalisations),
                                            cmocka_unit_test(derivatives),
                                            cmocka_unit_test(symmetry),
                                            cmocka_unit_test(sums),
                                            cmocka_unit_test(parts),
                                            cmocka_unit_test(few_rows),
                                            cmocka_unit_test(tiles_of_few_rows),
                                            cmocka_unit_test(refuses_descriptions),
                                            cmocka_unit_test(refuses_rows)};
  return run_on_devices("linear", tests, sizeof tests / sizeof *tests);
}
