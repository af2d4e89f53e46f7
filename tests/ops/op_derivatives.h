/* tests/ops/op_derivatives.h - passes are derivatives of one another: by difference quotients, and
   as far as derivatives are linear and symmetric. */
#ifndef CLB_TESTS_OPS_OP_DERIVATIVES_H
#define CLB_TESTS_OPS_OP_DERIVATIVES_H

#include "tests/ops/op_runs.h"

/* A problem of an op in f64, with all passes, on one device. */
typedef struct {
  const tool_op *op;
  tool_kernel kernel;
  tool_data data;
  clb_context *ctx;
  clb_op *handle;
  int number; /* of its problem */
} subject;

static inline void make(const subject *s, clb_pass pass, test_run *t) {
  test_run_make(t, s->op, &s->kernel, pass, &s->data, s->data.rows);
}

static inline int outputs_from(const test_run *t) {
  int n = 0;
  while (n < t->n && !t->array[n].output) n++;
  return n;
}

static inline void print_subject(const subject *s, char *out, size_t size) {
  print_kernel(s->op, &s->kernel, out, size);
}

static inline void expect_near(const subject *s, const test_run *t, int a, const double *got,
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

/* ---- derivatives ----
   The inputs of a pass are those of the pass before it, then one cotangent for each of its results;
   its own results are the gradients of  sum of cotangent . result  by those inputs. Along random
   directions d that is  sum of d . gradient,  and a difference quotient of order 8. */

static const double at[] = {1, 2, 3, 4}, weight[] = {4. / 5, -1. / 5, 4. / 105, -1. / 280};
enum { STENCIL = sizeof at / sizeof *at };

/* Exact for products, whose sums are polynomials of low degree; splines have kinks. */
static inline bool has_splines(const subject *s) {
  return s->op == &tool_op_convolution && ((const convolution_problem *)s->kernel.problem)->table;
}
static inline double step_of(const subject *s) { return has_splines(s) ? 1e-4 : 0.01; }
static inline double slope_tolerance(const subject *s) { return has_splines(s) ? 1e-5 : 1e-11; }

/* The sum, and what its rounding is proportional to. */
static inline double along(const subject *s, const test_run *before, const test_run *t,
                           double *size) {
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

static inline void move(const test_run *t, double *const *direction, double by, test_run *before) {
  for (int k = 0; k < outputs_from(before); k++)
    for (size_t i = 0; i < elements_of(&t->array[k]); i++)
      before->values[k][i] = t->values[k][i] + by * direction[k][i];
}

static int slopes_of_zero;

static inline bool bends_at_0(const subject *s) {
  return s->op == &tool_op_rms_norm || s->op == &tool_op_spherical_harmonics ||
         s->op == &tool_op_gate || s->op == &tool_op_norm_activation;
}

static inline void derivative(const subject *s, clb_pass pass) {
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

static inline void derivatives(const subject *s) {
  for (int pass = CLB_BACKWARD; pass < PASSES; pass++)
    if (s->op->passes >> pass & 1) derivative(s, (clb_pass)pass);
}

/* ---- what passes are, whatever the op ---- */

/* Copies inputs [from, to) of a run. */
static inline void fill_with(test_run *t, int from, int to, uint64_t seed, double factor) {
  for (int a = from; a < to; a++)
    for (size_t i = 0; i < elements_of(&t->array[a]); i++)
      t->values[a][i] = factor * t->values[a][i] + test_random(&seed);
}

/* Results are linear in what comes in along those of the pass before; forward, products are in x.
 */
static inline void linearity(const subject *s) {
  if (leaves_to_another(s->number % 2, 2, 0)) return;
  for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
    test_run t, before;
    double *sum[MAX_ARRAYS] = {NULL}, *got[MAX_ARRAYS] = {NULL};
    int from = 0, to = 1;
    if (!(s->op->passes >> pass & 1)) continue;
    if (!pass && s->op != &tool_op_tensor_product && s->op != &tool_op_convolution) continue;
    make(s, (clb_pass)pass, &t);
    if (pass) {
      make(s, (clb_pass)(pass - 1), &before);
      from = outputs_from(&before), to = outputs_from(&t);
      test_run_free(&before);
    }
    if (t.array[0].indexed && !pass) to = 0; /* its rows are another array's */
    fill_with(&t, from, to, 21, 0);
    take_results(s->ctx, s->handle, &t, sum);
    fill_with(&t, from, to, 22, 0);
    take_results(s->ctx, s->handle, &t, got);
    for (int a = 0; a < t.n; a++)
      for (size_t i = 0; t.array[a].output && i < elements_of(&t.array[a]); i++)
        sum[a][i] += got[a][i];
    free_results(got);
    fill_with(&t, from, to, 21, 1);
    take_results(s->ctx, s->handle, &t, got);
    for (int a = 0; a < t.n && to; a++)
      if (t.array[a].output) expect_near(s, &t, a, got[a], sum[a]);
    free_results(got);
    free_results(sum);
    test_run_free(&t);
  }
}

/* Second derivatives are symmetric: u . H v = v . H u for directions u and v of the inputs. */
static inline void symmetry(const subject *s) {
  test_run t, before;
  double *got[MAX_ARRAYS] = {NULL}, product[2] = {0}, size = 0;
  if (!(s->op->passes >> CLB_DOUBLE_BACKWARD & 1)) return;
  if (leaves_to_another(s->number % 2, 2, 0)) return;
  make(s, CLB_DOUBLE_BACKWARD, &t);
  make(s, CLB_BACKWARD, &before);
  const int from = outputs_from(&before), to = outputs_from(&t);
  for (int turn = 0; turn < 2; turn++) {
    fill_with(&t, from, to, 31 + (uint64_t)turn, 0);
    take_results(s->ctx, s->handle, &t, got);
    fill_with(&t, from, to, 32 - (uint64_t)turn, 0); /* the other direction */
    for (int k = from; k < to; k++)
      for (size_t i = 0; i < elements_of(&t.array[k]); i++) {
        const double term = t.values[k][i] * got[to + k - from][i];
        product[turn] += term, size += fabs(term);
      }
    free_results(got);
  }
  test_run_free(&t);
  test_run_free(&before);
  if (!(fabs(product[0] - product[1]) <= 1e-12 * size)) {
    char text[512];
    print_subject(s, text, sizeof text);
    fail_msg("%s %s: %.15g and %.15g of %g", s->op->name, text, product[0], product[1], size);
  }
}

#endif
