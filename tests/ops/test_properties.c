/* tests/ops/test_properties.c - every op of `clebsch check`, on each of its problems in f64, by
   mathematical property: each pass is the derivative of the one before, rotations and inversions
   commute with it, and neither layout nor repetition changes a bit. The interpreter runs them with
   the limits of several devices in turn. */
#include "tests/ops/op_choices.h"

#include "src/runtime/context.h"
#include "tests/fakes/device_limits.h"
#include "tools/reference/reference_irreps.h"
#include "tools/reference/reference_spherical_harmonics.h"

static const int devices[] = {-1, LIMITS_NVIDIA, LIMITS_AMD, LIMITS_INTEL, LIMITS_NO_SUBGROUPS};
enum { DEVICES = sizeof devices / sizeof *devices };

/* A problem of an op in f64, with all passes, on one device. */
typedef struct {
  const tool_op *op;
  tool_kernel kernel;
  tool_data data;
  clb_context *ctx;
  clb_op *handle;
  int number; /* of its problem */
} subject;

static void make(const subject *s, clb_pass pass, test_run *t) {
  test_run_make(t, s->op, &s->kernel, pass, &s->data, s->data.rows);
}

static int outputs_from(const test_run *t) {
  int n = 0;
  while (n < t->n && !t->array[n].output) n++;
  return n;
}

static void print_subject(const subject *s, char *out, size_t size) {
  print_kernel(s->op, &s->kernel, out, size);
}

/* ---- derivatives ----
   The inputs of a pass are those of the pass before it, then one cotangent for each of its results;
   its own results are the gradients of  sum of cotangent . result  by those inputs. Along random
   directions d that is  sum of d . gradient,  and a difference quotient of order 8. */

static const double at[] = {1, 2, 3, 4}, weight[] = {4. / 5, -1. / 5, 4. / 105, -1. / 280};
enum { STENCIL = sizeof at / sizeof *at };

/* Exact for products, whose sums are polynomials of low degree; splines have kinks. */
static bool has_splines(const subject *s) {
  return s->op == &tool_op_convolution && ((const convolution_problem *)s->kernel.problem)->table;
}
static double step_of(const subject *s) { return has_splines(s) ? 1e-4 : 0.01; }
static double slope_tolerance(const subject *s) { return has_splines(s) ? 1e-5 : 1e-11; }

/* The sum, and what its rounding is proportional to. */
static double along(const subject *s, const test_run *before, const test_run *t, double *size) {
  double *got[MAX_ARRAYS] = {NULL}, sum = 0;
  take_results(s->ctx, s->handle, before, got);
  for (int o = outputs_from(before), c = o; o < before->n; o++, c++)
    for (size_t i = 0; i < elements_of(&before->array[o]); i++) {
      sum += got[o][i] * t->values[c][i];
      *size += fabs(got[o][i] * t->values[c][i]);
    }
  free_results(got);
  return sum;
}

static void move(const test_run *t, double *const *direction, double by, test_run *before) {
  for (int k = 0; k < outputs_from(before); k++)
    for (size_t i = 0; i < elements_of(&t->array[k]); i++)
      before->values[k][i] = t->values[k][i] + by * direction[k][i];
}

static int slopes_of_zero;

static bool bends_at_0(const subject *s) {
  return s->op == &tool_op_rms_norm || s->op == &tool_op_spherical_harmonics ||
         s->op == &tool_op_gate || s->op == &tool_op_norm_activation;
}

static void derivative(const subject *s, clb_pass pass) {
  test_run t, before;
  double *got[MAX_ARRAYS] = {NULL}, *direction[MAX_ARRAYS] = {NULL}, slope = 0, quotient = 0,
         size = 0, h = step_of(s);
  uint64_t seed = 77;
  make(s, pass, &t);
  make(s, (clb_pass)(pass - 1), &before);
  for (size_t i = 0; bends_at_0(s) && i < elements_of(&t.array[0]); i++)
    t.values[0][i] += t.values[0][i] < 0 ? -1 : 1;
  take_results(s->ctx, s->handle, &t, got);
  int inputs = outputs_from(&before);
  assert_int_equal(outputs_from(&t), before.n);
  assert_int_equal(t.n - before.n, inputs);
  for (int k = 0; k < inputs; k++) {
    direction[k] = calloc(elements_of(&t.array[k]) + 1, sizeof *direction[k]);
    for (size_t i = 0; i < elements_of(&t.array[k]); i++) {
      direction[k][i] = test_random(&seed);
      slope += direction[k][i] * got[before.n + k][i];
      size += fabs(direction[k][i] * got[before.n + k][i]);
    }
  }
  for (int i = 0; i < STENCIL; i++)
    for (int sign = -1; sign <= 1; sign += 2) {
      double scale = 0;
      move(&t, direction, sign * at[i] * h, &before);
      quotient += sign * weight[i] / h * along(s, &before, &t, &scale);
      size += scale * 1e-2; /* rounding of sums, over steps */
    }
  if (!(fabs(quotient - slope) <= slope_tolerance(s) * size)) {
    char text[512];
    print_subject(s, text, sizeof text);
    fail_msg("%s %s, pass %d: slope %.15g, differences %.15g, size %g", s->op->name, text,
             (int)pass, slope, quotient, size);
  }
  slopes_of_zero += slope == 0;
  free_results(got);
  free_results(direction);
  test_run_free(&t);
  test_run_free(&before);
}

static void derivatives(const subject *s) {
  for (int pass = CLB_BACKWARD; pass < PASSES; pass++)
    if (s->op->passes >> pass & 1) derivative(s, (clb_pass)pass);
}

/* ---- rows ---- */

/* Dense rows, and again: not a bit differs, nor with gaps, save that norms take the sums of wide
   accesses in another order. */
static void layouts(const subject *s, clb_pass pass) {
  static const tool_layout all[] = {LAYOUT_DENSE, LAYOUT_DENSE, LAYOUT_ALIGNED, LAYOUT_PADDED};
  const bool same = s->op != &tool_op_rms_norm;
  expect_layouts(s->ctx, s->op, &s->kernel, s->handle, pass, s->data, all, same ? 4 : 2);
  for (int i = 2; i < 4 && !same; i++)
    expect_layouts(s->ctx, s->op, &s->kernel, s->handle, pass, s->data, all + i, 1);
}

/* And with one row for all, and one row alone. */
static void rows(const subject *s) {
  for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
    if (!(s->op->passes >> pass & 1)) continue;
    layouts(s, (clb_pass)pass);
    for (int i = 0; i < 2; i++) {
      const tool_data data = {
          .rows = i ? 1 : s->data.rows, i ? LAYOUT_DENSE : LAYOUT_REPEAT, false};
      expect_pass(s->ctx, s->op, &s->kernel, s->handle, (clb_pass)pass, &data);
    }
  }
}

/* ---- rotations and inversion ---- */

enum { MAX_L = 12, MAX_BLOCKS = 600 };

/* Element (u, m) of a block is at start + u * by_channel + m * by_order of a row. */
typedef struct {
  int l, parity, mul, start, by_channel, by_order;
} block;
typedef struct {
  int n;
  block of[MAX_BLOCKS];
} blocks; /* none: every element is a scalar */

/* D[l][m][m'] of the rotation by 1 radian about (1, 2, -2)/3. */
static double D[MAX_L + 1][2 * MAX_L + 1][2 * MAX_L + 1];

/* From those of l - 1 and 1: 3j symbols couple both to l. */
static void rotate_next(int l) {
  const int n = 2 * l + 1, p = 2 * l - 1;
  static double C[(2 * MAX_L - 1) * 3 * (2 * MAX_L + 1)],
      half[(2 * MAX_L - 1) * 3 * (2 * MAX_L + 1)];
  reference_3j(l - 1, 1, l, C);
  memset(half, 0, sizeof half);
  for (int i = 0; i < p; i++) /* half: C with both of its first indices rotated */
    for (int j = 0; j < 3; j++)
      for (int a = 0; a < p; a++)
        for (int b = 0; b < 3; b++)
          for (int k = 0; k < n; k++)
            half[(a * 3 + b) * n + k] += C[(i * 3 + j) * n + k] * D[l - 1][i][a] * D[1][j][b];
  for (int k = 0; k < n; k++)
    for (int m = 0; m < n; m++)
      for (int ij = 0; ij < p * 3; ij++) D[l][k][m] += n * half[ij * n + k] * C[ij * n + m];
}

static void make_rotations(void) {
  const double a[3] = {1. / 3, 2. / 3, -2. / 3}, c = cos(1), s = sin(1);
  D[0][0][0] = 1;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      D[1][i][j] =
          (1 - c) * a[i] * a[j] + (i == j ? c : (j == (i + 1) % 3 ? -s : s) * a[3 - i - j]);
  for (int l = 2; l <= MAX_L; l++) rotate_next(l);
}

/* Adds the terms of irreps; a merged one shares its rows of m with its neighbours of that irrep. */
static void add_irreps(blocks *b, const char *text, clb_layout layout) {
  static reference_irreps irreps;
  assert_true(reference_irreps_read(text, &irreps));
  for (int t = 0; t < irreps.n; t++) {
    const reference_irrep *is = &irreps.term[t];
    int first = t, before = 0, all = 0;
    while (layout == CLB_MERGED && first && irreps.term[first - 1].l == is->l &&
           irreps.term[first - 1].parity == is->parity)
      before += irreps.term[--first].mul;
    for (int i = first; i < irreps.n && irreps.term[i].l == is->l &&
                        irreps.term[i].parity == is->parity && (i <= t || layout == CLB_MERGED);
         i++)
      all += irreps.term[i].mul;
    const bool channels_last = layout != CLB_MUL_IR;
    assert_true(b->n < MAX_BLOCKS);
    b->of[b->n++] = (block){is->l,
                            is->parity,
                            is->mul,
                            irreps.term[first].at + before,
                            channels_last ? 1 : 2 * is->l + 1,
                            channels_last ? layout == CLB_MERGED ? all : is->mul : 1};
  }
}

/* One multiplicity of these degrees, whose parity is that of harmonics. */
static void add_degrees(blocks *b, const int *degrees, int n, int mul, clb_layout layout) {
  int before = 0, width = 0;
  for (int i = 0; i < n; i++) width += 2 * degrees[i] + 1;
  for (int i = 0; i < n; before += 2 * degrees[i++] + 1) {
    const int l = degrees[i], by_channel = layout == CLB_BY_CHANNEL ? width : 2 * l + 1;
    b->of[b->n++] = (block){l,
                            l % 2 ? -1 : 1,
                            mul,
                            layout == CLB_BY_CHANNEL ? before : before * mul,
                            layout == CLB_IR_MUL ? 1 : by_channel,
                            layout == CLB_IR_MUL ? mul : 1};
  }
}

static void add_vector(blocks *b) { b->of[b->n++] = (block){1, -1, 1, 0, 3, 1}; }

static void describe_product(clb_context *ctx, const tensor_problem *p, int of, blocks *b) {
  tensor_desc *d;
  OK(ctx, tensor_problem_describe(ctx, p, &d));
  if (of == CLB_OPERAND_X) add_irreps(b, d->desc.irreps_x, d->desc.layout_x);
  if (of == CLB_OPERAND_Y) add_irreps(b, d->desc.irreps_y, d->desc.layout_y);
  if (of == CLB_OPERAND_Z) add_irreps(b, d->desc.irreps_z, d->desc.layout_z);
  free(d);
}

/* What an operand that is shaped like `of` consists of. */
static void describe(const subject *s, int of, blocks *b) {
  static const int up_to[] = {0, 1, 2, 3, 4};
  const void *problem = s->kernel.problem;
  b->n = 0;
  if (s->op == &tool_op_tensor_product) describe_product(s->ctx, problem, of, b);
  if (s->op == &tool_op_convolution) {
    const convolution_problem *p = problem;
    if (of == CLB_OPERAND_Y && p->vectors) add_vector(b);
    else describe_product(s->ctx, &p->product, of, b);
  }
  if (s->op == &tool_op_rms_norm && of != CLB_OPERAND_W) {
    const clb_rms_norm_desc *d = problem;
    add_irreps(b, d->irreps, d->layout);
  }
  if (s->op == &tool_op_norm_activation && of != CLB_OPERAND_W) {
    const clb_norm_activation_desc *d = problem;
    add_irreps(b, d->irreps, d->layout);
  }
  if (s->op == &tool_op_linear && of != CLB_OPERAND_W) {
    const clb_linear_desc *d = problem;
    if (of == CLB_OPERAND_X) add_irreps(b, d->irreps_in, d->layout_in);
    else add_irreps(b, d->irreps_out, d->layout_out);
  }
  if (s->op == &tool_op_spherical_harmonics) {
    const clb_spherical_harmonics_desc *d = problem;
    if (of == CLB_OPERAND_X) add_vector(b);
    else add_degrees(b, d->degrees, d->n_degrees, 1, CLB_MUL_IR);
  }
  if (s->op == &tool_op_symmetric_contraction && of != CLB_OPERAND_W) {
    const clb_symmetric_contraction_desc *d = problem;
    if (of == CLB_OPERAND_X) add_degrees(b, up_to, d->ell + 1, d->channels, d->layout_x);
    else add_degrees(b, d->degrees, d->n_degrees, d->channels, d->layout_z);
  }
}

static void rotate(const blocks *b, bool inverts, const tool_array *a, double *values) {
  for (int64_t r = 0; r < a->rows; r++)
    for (int i = 0; i < b->n; i++)
      for (int u = 0; u < b->of[i].mul; u++) {
        const block *is = &b->of[i];
        double out[2 * MAX_L + 1] = {0},
                               *row = values + r * a->width + is->start + u * is->by_channel;
        const int n = 2 * is->l + 1;
        for (int m = 0; m < n; m++)
          for (int k = 0; k < n; k++) out[m] += D[is->l][m][k] * row[k * is->by_order];
        for (int m = 0; m < n; m++) row[m * is->by_order] = (inverts ? is->parity : 1) * out[m];
      }
}

static void expect_near(const subject *s, const test_run *t, int a, const double *got,
                        const double *want) {
  double largest = 1;
  char text[512];
  for (size_t i = 0; i < elements_of(&t->array[a]); i++) largest = fmax(largest, fabs(want[i]));
  for (size_t i = 0; i < elements_of(&t->array[a]); i++)
    if (!(fabs(got[i] - want[i]) <= 1e-11 * largest)) {
      print_subject(s, text, sizeof text);
      fail_msg("%s %s, pass %d: element %zu of %s is %.15g, not %.15g", s->op->name, text,
               (int)t->pass, i, t->array[a].name, got[i], want[i]);
    }
}

/* Results of rotated inputs are rotated results; with an inversion, too. */
static void equivariant(const subject *s, clb_pass pass) {
  static blocks b;
  double *plain[MAX_ARRAYS] = {NULL}, *got[MAX_ARRAYS] = {NULL};
  test_run t;
  make(s, pass, &t);
  take_results(s->ctx, s->handle, &t, plain);
  for (int inverts = 0; inverts < 2; inverts++) { /* after the second turn: by 2 radians */
    for (int a = 0; a < t.n; a++) {
      double *values = t.array[a].output ? plain[a] : t.values[a];
      describe(s, t.array[a].of, &b);
      if (t.array[a].width) rotate(&b, inverts, &t.array[a], values);
    }
    take_results(s->ctx, s->handle, &t, got);
    for (int a = 0; a < t.n; a++)
      if (t.array[a].output) expect_near(s, &t, a, got[a], plain[a]);
    free_results(got);
  }
  free_results(plain);
  test_run_free(&t);
}

/* Gates sort their irreps, and change parities: tests of gates look at that. */
static void equivariance(const subject *s) {
  if (s->op == &tool_op_gate) return;
  const clb_spherical_harmonics_desc *d = s->kernel.problem;
  for (int i = 0; s->op == &tool_op_spherical_harmonics && i < d->n_degrees; i++)
    if (d->degrees[i] > MAX_L) return; /* of which there are no 3j symbols */
  for (int pass = CLB_FORWARD; pass < PASSES; pass++)
    if (s->op->passes >> pass & 1) equivariant(s, (clb_pass)pass);
}

/* ---- sets of gradients, and of incoming ones ---- */

/* Of 15 x 7 sets every problem tries some, and all problems together each; every second one adds to
   what the outputs hold. */
static void subsets(const subject *s) {
  const unsigned all = CLB_OPERAND_X | CLB_OPERAND_W | CLB_OPERAND_Z |
                       (s->op->signature->n == 3 ? CLB_OPERAND_Y : 0);
  const int turns = s->op->n_cases < 24 ? s->op->n_cases / 3 + 1 : 20;
  char problem[sizeof(convolution_problem) + sizeof(tensor_problem)];
  choices c = choices_of(s->op, problem);
  if (!c.gradients) return;
  assert_true(c.bytes <= sizeof problem);
  memcpy(problem, s->kernel.problem, c.bytes);
  for (int set = s->number % turns; set < 15 * 7; set += turns) {
    const unsigned gradients = 1 + (unsigned)set / 7, incoming = 1 + (unsigned)set % 7;
    const tool_kernel kernel = {problem, CLB_F64, CLB_F64, set % 2};
    clb_op *op = NULL;
    if ((gradients | incoming) & ~all) continue;
    *c.gradients = gradients, *c.incoming = incoming;
    OK(s->ctx, s->op->create(s->ctx, &kernel, s->op->passes, &op));
    for (int pass = CLB_BACKWARD; pass < PASSES; pass++)
      if (s->op->passes >> pass & 1 && !(pass == CLB_BACKWARD && gradients == CLB_OPERAND_Z))
        expect_pass(s->ctx, s->op, &kernel, op, (clb_pass)pass, &s->data);
    clb_op_destroy(&op);
  }
}

/* ---- the matrix ---- */

typedef struct {
  const char *name;
  void (*run)(const subject *s);
  bool whole; /* not of problems that leave gradients out */
} property;
static const property properties[] = {{"derivatives", derivatives, true},
                                      {"equivariance", equivariance, true},
                                      {"rows", rows, false},
                                      {"subsets", subsets, true}};
enum { PROPERTIES = sizeof properties / sizeof *properties };

static clb_context *contexts[DEVICES];

static clb_context *context_of(int i) {
  if (contexts[i]) return contexts[i];
  OK(NULL, clb_context_create("cpu:interpreter", &contexts[i]));
  if (devices[i] >= 0) contexts[i]->device->limits = device_limits[devices[i]].limits;
  return contexts[i];
}

/* Rows of the problem's data; edges of a graph, which is small. */
static int64_t rows_of(const tool_op *op) { return op->on_graph ? SANITIZED ? 20 : 40 : 5; }

typedef struct {
  int number;
  const tool_op *op;
  const property *is;
} cell;

enum { MAX_CASES = 80 };
static clb_op *ops[TOOL_OPS][MAX_CASES]; /* made once */

static void all_problems(void **state) {
  const cell *c = *state;
  const int turns = SANITIZED ? 4 : 2;
  assert_true(c->op->n_cases <= MAX_CASES);
  for (int k = 0, n = 0; k < c->op->n_cases; k++) {
    const void *problem = c->op->cases[k].kernel.problem;
    clb_op **made = &ops[c->number][k];
    subject s = {.op = c->op,
                 .kernel = {problem, CLB_F64, CLB_F64, false},
                 .data = {.rows = rows_of(c->op)},
                 .number = n};
    if (leaves_to_another(k % turns, turns, (int)(c->is - properties))) continue;
    if (seen(c->op, k) || (c->is->whole && !has_all(c->op, problem))) continue;
    s.ctx = context_of(k % DEVICES);
    n++;
    if (!*made) OK(s.ctx, c->op->create(s.ctx, &s.kernel, c->op->passes, made));
    s.handle = *made;
    c->is->run(&s);
  }
  assert_true(slopes_of_zero <= 4); /* of constant harmonics */
}

static int close_all(void **state) {
  (void)state;
  for (int i = 0; i < TOOL_OPS * MAX_CASES; i++) clb_op_destroy(&ops[i / MAX_CASES][i % MAX_CASES]);
  for (int i = 0; i < DEVICES; i++) clb_context_destroy(&contexts[i]);
  return 0;
}

int main(void) {
  static cell cells[TOOL_OPS * PROPERTIES];
  static char names[TOOL_OPS * PROPERTIES][64];
  static struct CMUnitTest tests[TOOL_OPS * PROPERTIES];
  make_rotations();
  for (int i = 0; i < TOOL_OPS * PROPERTIES; i++) {
    cells[i] = (cell){i / PROPERTIES, tool_ops[i / PROPERTIES], &properties[i % PROPERTIES]};
    snprintf(names[i], sizeof names[i], "%s of %s", cells[i].is->name, cells[i].op->name);
    tests[i] = (struct CMUnitTest){names[i], all_problems, NULL, NULL, &cells[i]};
  }
  return cmocka_run_group_tests_name("properties", tests, NULL, close_all);
}
