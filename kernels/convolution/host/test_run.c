/* kernels/convolution/host/test_run.c - a convolution is timed on an unordered graph, with a
   table and a workspace if it needs them. */
#include <stdlib.h>

#include "kernels/convolution/host/convolution_parts.h"
#include "kernels/host/operand_lists.h"
#include "src/tuning/tuning_test_run.h"

enum { EDGES = 64 }; /* edges per node */

static int64_t rows_of_node(const clb_operand *o) {
  return o->of == CLB_OPERAND_Y || o->of == CLB_OPERAND_W ? EDGES : 1;
}

static int list_operands(clb_test_run *t) {
  static const clb_rows none[CLB_MAX_OPERANDS];
  clb_problem *p = &t->op->problem;
  int gradients = p->tensor_product.gradients;
  if (t->part && t->pass == CLB_DOUBLE_BACKWARD) p->tensor_product.gradients |= CLB_OPERAND_Z;
  int n = clb_convolution_operands(p, t->pass, none, t->operand);
  p->tensor_product.gradients = gradients;
  return n;
}

/* Approximate bytes of gradients of x and rows of y in the workspace. */
static int64_t workspace_bytes(const clb_test_run *t) {
  const clb_problem *p = &t->op->problem;
  if (t->pass == CLB_FORWARD) return 0;
  return EDGES * (p->tensor_product.x.dim * clb_dtype_bytes(p->arithmetic) +
                  3 * p->tensor_product.y.dim * clb_dtype_bytes(p->storage));
}

static const clb_convolution_table *table_of(const clb_test_run *t) {
  return &((const clb_convolution_parts *)t->op->parts)->table;
}

/* Lengths, given or those of vectors, lie within the grid of the splines. */
static void range(const clb_test_run *t, const clb_operand *o, double *low, double *high) {
  const clb_convolution_table *table = table_of(t);
  if (!table->knots) return;
  if (o->of == CLB_OPERAND_W && o->columns == 1) *low = table->first, *high = table->last;
  if (o->of == CLB_OPERAND_Y && t->op->problem.convolution.vectors)
    *high = table->last / 2, *low = -*high;
}

static clb_status make_graph(clb_test_run *t) {
  clb_context *ctx = t->op->ctx;
  int64_t edges = t->size * EDGES;
  clb_buffer *senders = NULL;
  int32_t *receivers = malloc(sizeof *receivers * (size_t)edges);
  clb_status s = receivers ? clb_graph_create(ctx, t->size, edges, &t->graph)
                           : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "no memory to measure with");
  for (int64_t e = 0; e < edges && receivers; e++) receivers[e] = (int32_t)(e / EDGES);
  if (!s) s = clb_test_run_numbers(ctx, edges, t->size, 99, &senders);
  if (!s)
    s = clb_graph_update(t->graph, t->size, t->size, edges, CLB_I32,
                         (clb_index_list){.buffer = senders}, (clb_index_list){.host = receivers});
  free(receivers);
  clb_buffer_destroy(&senders);
  return s;
}

static clb_status make_table(const clb_test_run *t, int64_t knots) {
  const int64_t n = knots * (int64_t)t->op->problem.tensor_product.n_weights;
  uint64_t seed = 98;
  double *values = malloc((size_t)(n + 1) * sizeof *values);
  for (int64_t i = 0; values && i < n; i++) values[i] = clb_test_run_next(&seed);
  clb_status s = values
                     ? clb_convolution_set_table(t->op, values)
                     : clb_fail(&t->op->ctx->error, CLB_ERROR_MEMORY, "no memory to measure with");
  free(values);
  return s;
}

/* A workspace for all edges at once; candidates with more roles need a larger one. */
static clb_status make_workspace(clb_test_run *t) {
  uint64_t min_bytes, max_bytes = 0;
  clb_status s = clb_convolution_workspace(t->op, t->pass, t->graph, &min_bytes, &max_bytes);
  if (s || !max_bytes || (t->workspace && t->workspace->memory.bytes >= max_bytes)) return s;
  s = clb_wait(t->op->ctx);
  clb_buffer_destroy(&t->workspace);
  return s ? s : clb_buffer_create(t->op->ctx, max_bytes, &t->workspace);
}

static clb_status make_convolution(clb_test_run *t) {
  const int knots = table_of(t)->knots;
  clb_status s = make_graph(t);
  if (!s && knots) s = make_table(t, knots);
  return s ? s : make_workspace(t);
}

static clb_status run(clb_test_run *t) {
  clb_rows r[CLB_MAX_OPERANDS];
  clb_status s = make_workspace(t);
  for (int i = 0; i < t->n; i++) r[i] = t->operand[i].rows;
  return s ? s : clb_convolution_run(t->op, t->pass, t->graph, r, t->workspace);
}

const clb_test_run_kind clb_test_run_of_convolution = {.of = CLB_CONVOLUTION,
                                                       .first_size = 4,
                                                       .rows = rows_of_node,
                                                       .operands = list_operands,
                                                       .more_bytes = workspace_bytes,
                                                       .range = range,
                                                       .make = make_convolution,
                                                       .run = run};
