/* tests/ops/op_runs.h - the ops of `clebsch check` in tests: one pass on its data, which have
   guards and gaps, compared with the reference; or its bare results. */
#ifndef CLB_TESTS_OPS_OP_RUNS_H
#define CLB_TESTS_OPS_OP_RUNS_H

#include "tests/test.h"

#include <math.h>

#include "src/base/signature.h"
#include "tools/data/test_run.h"
#include "tools/ops/convolution/convolution_tool.h"

static inline void expect_error_within(const tool_op *op, const tool_kernel *kernel, clb_pass pass,
                                       const tool_data *data, double error) {
  char problem[512];
  print_kernel(op, kernel, problem, sizeof problem);
  /* A position on the grid of splines has an error of KNOTS eps, and so have second derivatives. */
  const double growth = kernel->storage == CLB_F64 && op->growth ? op->growth(kernel->problem) : 1;
  if (!(error <= growth * growth * tolerance_of(op, kernel)))
    fail_msg("%s %s, pass %d, type %d, %lld rows, layout %d: error %g", op->name, problem,
             (int)pass, (int)kernel->storage, (long long)data->rows, (int)data->layout, error);
}

/* Runs a pass and compares all that it wrote. */
static inline void expect_pass(clb_context *ctx, const tool_op *op, const tool_kernel *kernel,
                               clb_op *handle, clb_pass pass, const tool_data *data) {
  test_run t;
  double error = INFINITY;
  test_run_make(&t, op, kernel, pass, data, data->rows);
  test_run_answer(&t);
  OK(ctx, test_run_try(&t, ctx, handle, &error));
  test_run_free(&t);
  expect_error_within(op, kernel, pass, data, error);
}

static inline size_t elements_of(const tool_array *a) { return (size_t)(a->rows * a->width); }

/* Runs a pass on what t->values holds; got[a] becomes a malloc'ed array for each output. */
static inline void take_results(clb_context *ctx, clb_op *handle, const test_run *t, double **got) {
  test_run_set set;
  for (int a = 0; a < t->n; a++)
    got[a] = t->array[a].output ? calloc(elements_of(&t->array[a]) + 1, sizeof **got) : NULL;
  OK(ctx, test_run_set_make(t, ctx, handle, &set));
  OK(ctx, test_run_once(t, handle, &set));
  OK(ctx, test_run_read(t, &set, got));
  test_run_set_free(t, &set);
}

static inline void free_results(double **got) {
  for (int a = 0; a < MAX_ARRAYS; a++) free(got[a]), got[a] = NULL;
}

/* Not a bit may differ. */
static inline void expect_same(const test_run *t, double *const *got, double *const *again) {
  for (int a = 0; a < t->n; a++)
    if (t->array[a].output && memcmp(got[a], again[a], elements_of(&t->array[a]) * sizeof **got))
      fail_msg("%s, pass %d, %s: other bits", t->op->name, (int)t->pass, t->array[a].name);
}

/* Right by the reference, and nothing but rows is written; got: the results. */
static inline void expect_right(clb_context *ctx, clb_op *handle, test_run *t, double **got) {
  test_run_set set;
  double error = INFINITY;
  test_run_answer(t);
  OK(ctx, test_run_set_make(t, ctx, handle, &set));
  OK(ctx, test_run_once(t, handle, &set));
  OK(ctx, test_run_error(t, &set, &error));
  for (int a = 0; a < t->n; a++)
    got[a] = t->array[a].output ? calloc(elements_of(&t->array[a]) + 1, sizeof **got) : NULL;
  OK(ctx, test_run_read(t, &set, got));
  test_run_set_free(t, &set);
  expect_error_within(t->op, t->kernel, t->pass, &t->data, error);
}

/* Right with each of these layouts; not a bit differs from the first. */
static inline void expect_layouts(clb_context *ctx, const tool_op *op, const tool_kernel *kernel,
                                  clb_op *handle, clb_pass pass, tool_data data,
                                  const tool_layout *layouts, int n) {
  double *first[MAX_ARRAYS] = {NULL}, *got[MAX_ARRAYS] = {NULL};
  test_run t;
  data.layout = layouts[0];
  test_run_make(&t, op, kernel, pass, &data, data.rows);
  expect_right(ctx, handle, &t, first);
  for (int i = 1; i < n; i++) {
    t.data.layout = layouts[i];
    expect_right(ctx, handle, &t, got);
    expect_same(&t, first, got);
    free_results(got);
  }
  free_results(first);
  test_run_free(&t);
}

static inline clb_op *op_with(clb_context *ctx, const tool_op *op, const tool_kernel *kernel,
                              unsigned passes) {
  clb_op *handle = NULL;
  OK(ctx, op->create(ctx, kernel, passes, &handle));
  return handle;
}

/* Each of these passes, compiled alone. */
static inline void expect_passes(clb_context *ctx, const tool_op *op, const tool_kernel *kernel,
                                 unsigned passes, const tool_data *data) {
  for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
    if (!(passes >> pass & 1)) continue;
    clb_op *handle = op_with(ctx, op, kernel, CLB_PASS_BIT(pass));
    expect_pass(ctx, op, kernel, handle, (clb_pass)pass, data);
    clb_op_destroy(&handle);
  }
}

/* ---- what tests know of each op ---- */

static inline const clb_signature *signature_of(const tool_op *op) {
  return op->on_graph ? &clb_signature_tensor_product : op->signature;
}

typedef struct {
  unsigned *gradients, *incoming; /* of a problem; NULL: the op has none */
  size_t bytes;                   /* of the problem */
} choices;

#define CHOICES(type, desc)                                                                        \
  ((choices){&((type *)problem)->desc gradients, &((type *)problem)->desc incoming, sizeof(type)})
static inline choices choices_of(const tool_op *op, void *problem) {
  if (op == &tool_op_tensor_product) return CHOICES(tensor_problem, desc.);
  if (op == &tool_op_convolution) return CHOICES(convolution_problem, product.desc.);
  if (op == &tool_op_symmetric_contraction) return CHOICES(clb_symmetric_contraction_desc, );
  if (op == &tool_op_rms_norm) return CHOICES(clb_rms_norm_desc, );
  if (op == &tool_op_linear) return CHOICES(clb_linear_desc, );
  return (choices){NULL, NULL, 0};
}

static inline bool has_all(const tool_op *op, const void *problem) {
  const choices c = choices_of(op, (void *)problem);
  return !c.gradients || !(*c.gradients | *c.incoming);
}

/* Whether an earlier case has this problem. */
static inline bool seen(const tool_op *op, int k) {
  char text[512], earlier[512];
  op->print(op->cases[k].kernel.problem, text, sizeof text);
  for (int i = 0; i < k; i++) {
    op->print(op->cases[i].kernel.problem, earlier, sizeof earlier);
    if (!strcmp(text, earlier)) return true;
  }
  return false;
}

#endif
