/* tests/ops/test_properties.c - every op of `clebsch check`, on each of its problems in f64, by
   mathematical property: each pass is the derivative of the one before, rotations and inversions
   commute with it, and neither layout nor repetition changes a bit. The interpreter runs them with
   the limits of several devices in turn; other devices that are here run some. */
#include "tests/ops/op_derivatives.h"
#include "tests/ops/op_rotations.h"
#include "tests/ops/places.h"

static const int devices[] = {-1, LIMITS_NVIDIA, LIMITS_AMD, LIMITS_INTEL, LIMITS_NO_SUBGROUPS};
enum { DEVICES = sizeof devices / sizeof *devices };

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
      describe(s->ctx, s->op, s->kernel.problem, t.array[a].of, &b);
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

/* ---- rows by number ---- */

/* Rows by number give the bits of the rows that they name. */
static void indexed_rows(const subject *s) {
  if (s->op != &tool_op_tensor_product || (!long_tests() && s->number % 4)) return;
  tensor_problem p = *(const tensor_problem *)s->kernel.problem;
  const tool_kernel kernel = {&p, F64, false};
  clb_op *op[2];
  for (int i = 0; i < 2; i++) {
    p.desc.indexed = i ? 0 : 1 + (unsigned)s->number % 7;
    if (p.desc.shared_weights) p.desc.indexed &= ~(unsigned)CLB_OPERAND_W;
    op[i] = op_with(s->ctx, s->op, &kernel, s->op->passes);
  }
  for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
    double *want[MAX_ARRAYS] = {NULL}, *got[MAX_ARRAYS] = {NULL};
    test_run by_number, gathered;
    p.desc.indexed = 1 + (unsigned)s->number % 7;
    if (p.desc.shared_weights) p.desc.indexed &= ~(unsigned)CLB_OPERAND_W;
    test_run_make(&by_number, s->op, &kernel, (clb_pass)pass, &s->data, s->data.rows);
    take_results(s->ctx, op[0], &by_number, got);
    p.desc.indexed = 0;
    test_run_make(&gathered, s->op, &kernel, (clb_pass)pass, &s->data, s->data.rows);
    for (int a = 0; a < gathered.n; a++)
      memcpy(gathered.values[a], by_number.values[a],
             sizeof(double) * elements_of(&gathered.array[a]));
    take_results(s->ctx, op[1], &gathered, want);
    expect_same(&gathered, want, got);
    free_results(want);
    free_results(got);
    test_run_free(&by_number);
    test_run_free(&gathered);
  }
  clb_op_destroy(&op[0]);
  clb_op_destroy(&op[1]);
}

/* ---- the matrix ---- */

typedef struct {
  const char *name;
  void (*run)(const subject *s);
  bool whole;    /* not of problems that leave gradients out */
  bool compiles; /* other ops than the problem's */
} property;
static const property properties[] = {{"derivatives", derivatives, true, false},
                                      {"linearity", linearity, true, false},
                                      {"symmetry", symmetry, true, false},
                                      {"equivariance", equivariance, true, false},
                                      {"rows", rows, false, false},
                                      {"indexed_rows", indexed_rows, false, true},
                                      {"subsets", subsets, true, true}};
enum { PROPERTIES = sizeof properties / sizeof *properties };

static clb_context *contexts[DEVICES];

static clb_context *context_as(int i) {
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
  place *at; /* NULL: the interpreter */
} cell;

static subject subject_of(const cell *c, int k, int number) {
  return (subject){.op = c->op,
                   .kernel = {c->op->cases[k].kernel.problem, CLB_F64, CLB_F64, false},
                   .data = {.rows = rows_of(c->op)},
                   .number = number};
}

static bool is_taken(const cell *c, int k) {
  return !seen(c->op, k) && (!c->is->whole || has_all(c->op, c->op->cases[k].kernel.problem));
}

enum { MAX_CASES = 80 };
static clb_op *ops[TOOL_OPS][MAX_CASES]; /* made once */

static void all_problems(void **state) {
  const cell *c = *state;
  const int turns = 4;
  assert_true(c->op->n_cases <= MAX_CASES);
  for (int k = 0, n = 0; k < c->op->n_cases; k++) {
    clb_op **made = &ops[c->number][k];
    subject s = subject_of(c, k, n);
    if (leaves_to_another(k % turns, turns, (int)(c->is - properties)) || !is_taken(c, k)) continue;
    s.ctx = context_as(k % DEVICES);
    n++;
    if (!*made) *made = op_with(s.ctx, c->op, &s.kernel, c->op->passes);
    s.handle = *made;
    c->is->run(&s);
  }
  assert_true(slopes_of_zero <= 4); /* of constant harmonics */
}

/* On a device that compiles: of those problems that have all gradients the smallest ones, from a
   few dozen numbers on; all properties have the same, so that they are compiled once. */
static void some_problems(void **state) {
  const cell *c = *state;
  for (int n = 0, below = 40; n < many(c->at, 1, 1, 3); n++) {
    int best = -1, size = 0;
    for (int k = 0; k < c->op->n_cases; k++) {
      const subject s = subject_of(c, k, k);
      int all = 0;
      test_run t;
      if (seen(c->op, k) || !has_all(c->op, s.kernel.problem)) continue;
      make(&s, CLB_FORWARD, &t);
      for (int a = 0; a < t.n; a++) all += t.array[a].width;
      test_run_free(&t);
      if (all > below && (best < 0 || all < size)) best = k, size = all;
    }
    if (best < 0) return;
    below = size;
    subject s = subject_of(c, best, n);
    s.ctx = context_of(c->at);
    s.handle = op_with(s.ctx, c->op, &s.kernel, c->op->passes);
    c->is->run(&s);
    clb_op_destroy(&s.handle);
  }
}

static int close_all(void **state) {
  for (int i = 0; i < TOOL_OPS * MAX_CASES; i++) clb_op_destroy(&ops[i / MAX_CASES][i % MAX_CASES]);
  for (int i = 0; i < DEVICES; i++) clb_context_destroy(&contexts[i]);
  return close_places(state);
}

int main(void) {
  enum { CELLS = TOOL_OPS * PROPERTIES };
  static cell cells[CELLS * (MAX_PLACES + 1)];
  static char names[CELLS * (MAX_PLACES + 1)][160];
  static struct CMUnitTest tests[CELLS * (MAX_PLACES + 1)];
  int n = 0;
  make_rotations();
  if (!SANITIZED) find_places(NULL, 0); /* sanitizers cannot check compiled kernels */
  for (int p = -1; p < n_places; p++)
    for (int i = 0; i < CELLS; i++) {
      place *on = p < 0 ? NULL : &places[p];
      const int number = i / PROPERTIES, is = i % PROPERTIES;
      if (on && (on->effort == THOROUGH ||
                 (on->effort == SLOW &&
                  (properties[is].compiles || leaves_to_another(on->turn, n_slow, number)))))
        continue;
      cells[n] = (cell){number, tool_ops[number], &properties[is], on};
      snprintf(names[n], sizeof names[n], "%s of %s%s%s%s", properties[is].name,
               tool_ops[number]->name, on ? " [" : "", on ? on->name : "", on ? "]" : "");
      tests[n] =
          (struct CMUnitTest){names[n], on ? some_problems : all_problems, NULL, NULL, &cells[n]};
      n++;
    }
  return _cmocka_run_group_tests("properties", tests, (size_t)n, NULL, close_all);
}
