/* tools/ablation/op.c - one pass of an op on the data of `bench`, and naive kernels of it. */
#include <stdlib.h>
#include <string.h>

#include "tools/ablation/ablation.h"
#include "tools/ops/convolution/convolution_tool.h"
#include "tools/reference/reference_irreps.h"

/* One pass, its arrays and their buffers for naive kernels. */
typedef struct {
  work *w;
  const ablation_case *c;
  const tool_op *op;
  int inputs;
  const test_run *t;
  const clb_rows *rows;
  clb_graph *graph; /* of a convolution */
} piece;

/* ---- the op ---- */

static bool is_plain(const char *irreps) { return !strchr(irreps, '+'); }

/* The problem of a kind; the caller frees it. */
static void *named_problem(const ablation_case *c, const tool_op **op) {
  static const struct {
    const char *kind, *option, *more;
    const tool_op *op;
  } kinds[] = {
      {"tensor_product", "problem", "", &tool_op_tensor_product},
      {"symmetric_contraction", "problem", "", &tool_op_symmetric_contraction},
      {"weight_gradient", "x", "--y 0e --filter 0e --shared --gradients w",
       &tool_op_tensor_product},
      {"norm", "irreps", "--variant nequix", &tool_op_rms_norm},
      {"convolution_given", "problem", "", &tool_op_convolution},
  };
  int k = 0;
  while (strcmp(kinds[k].kind, c->kind)) k++;
  *op = kinds[k].op;
  return problem_of(*op, "--%s %s --layout %s %s%s %s", kinds[k].option, c->problem, c->layout,
                    c->graph ? "--graph " : "", c->graph ? c->graph : "",
                    *op == &tool_op_rms_norm && is_plain(c->problem) ? "" : kinds[k].more);
}

/* ---- naive kernels ---- */

static const float *address(const piece *p, int i) {
  return p->rows[i].buffer ? work_address(p->w, p->rows[i].buffer) : NULL;
}

/* A kernel for each result: by rows of z, x, y and w. */
static void add_naive_product(const piece *p, variant *y) {
  static const naive_kernel
      of_rows[][4] = {[CLB_FORWARD] = {NAIVE_product_z},
                      [CLB_BACKWARD] = {NAIVE_product_g_x, NAIVE_product_g_y, NAIVE_product_g_w},
                      [CLB_DOUBLE_BACKWARD] = {NAIVE_product_d_x, NAIVE_product_d_y,
                                               NAIVE_product_d_w, NAIVE_product_d_g}},
      of_graphs[][4] = {
          [CLB_FORWARD] = {NAIVE_convolution_z},
          [CLB_BACKWARD] = {NAIVE_convolution_g_x, NAIVE_convolution_g_y, NAIVE_convolution_g_w}};
  const bool convolves = p->op->on_graph != NULL;
  const convolution_problem *problem = p->t->kernel->problem;
  const float *in[7] = {0};
  tensor_desc *d = NULL;
  work *w = p->w;
  if (!w->status)
    w->status =
        tensor_problem_describe(w->ctx, convolves ? &problem->product : p->t->kernel->problem, &d);
  if (!w->status) {
    naive_arguments a = ablation_naive_product(w, &d->desc, p->t->array[1].width);
    if (convolves)
      ablation_naive_edges(w, p->graph, p->c->pass ? CLB_BY_SENDER : CLB_BY_RECEIVER, &a);
    for (int i = 0; i < p->inputs; i++) in[i] = address(p, i);
    a.x = in[0], a.y = in[1], a.w = in[2], a.g = in[3], a.a = in[4], a.b = in[5], a.c = in[6];
    for (int i = p->inputs; i < p->t->n; i++) {
      const tool_array *out = &p->t->array[i];
      const int64_t n = convolves ? out->rows : p->c->rows;
      variant_add_naive_sum(w, y, (convolves ? of_graphs : of_rows)[p->c->pass][i - p->inputs], a,
                            p->rows[i], n, out->width, n);
    }
  }
  free(d);
}

static void add_naive_weight_gradient(const piece *p, variant *y) {
  const naive_arguments a = {.x = address(p, 0),
                             .y = address(p, 1),
                             .g = address(p, 3),
                             .out = (float *)address(p, p->t->n - 1),
                             .n = p->t->array[0].width,
                             .rows = p->c->rows,
                             .X = p->t->array[0].width};
  variant_add_naive(p->w, y, NAIVE_weight_gradient, &a);
}

/* What irreps are made of, in layout mul_ir: for each element what its square weighs and the number
   of its weight, and for each weight its first element. */
static void describe_irreps(work *w, const char *text, naive_arguments *a) {
  reference_irreps *irreps = allocate(1, sizeof *irreps);
  if (!reference_irreps_read(text, irreps)) fatal("bench: '%s' are no irreps", text);
  float *square = allocate((size_t)irreps->dim, sizeof *square);
  int32_t *weight = allocate((size_t)irreps->dim, sizeof *weight),
          *start = allocate((size_t)irreps->dim + 1, sizeof *start), weights = 0, at = 0;
  for (int t = 0; t < irreps->n; t++) {
    const int width = 2 * irreps->term[t].l + 1;
    for (int u = 0; u < irreps->term[t].mul; u++, weights++) {
      start[weights] = at;
      for (int m = 0; m < width; m++, at++)
        square[at] = 1.0F / (float)(irreps->n * width * width), weight[at] = weights;
    }
  }
  start[weights] = at;
  a->coefficient = work_address(w, work_rows(w, at, 1, square).buffer);
  a->channel = work_address(w, work_ints(w, at, weight));
  a->start = work_address(w, work_ints(w, weights + 1, start));
  free(square), free(weight), free(start), free(irreps);
}

static void add_naive_norm(const piece *p, variant *y) {
  const bool plain = is_plain(p->c->problem);
  work *w = p->w;
  naive_arguments a = {.x = address(p, 0),
                       .w = address(p, 1),
                       .n = p->c->rows,
                       .rows = p->c->rows,
                       .X = p->t->array[0].width,
                       .epsilon = 1e-6F}; /* the op's default */
  if (!plain) describe_irreps(w, p->c->problem, &a);
  a.out = (float *)address(p, p->inputs);
  if (p->c->pass == CLB_FORWARD) {
    variant_add_naive(w, y, plain ? NAIVE_norm_y : NAIVE_irreps_norm_y, &a);
    return;
  }
  a.g = address(p, 2);
  a.scale = work_address(w, work_rows(w, p->c->rows, 1, NULL).buffer);
  variant_add_naive(w, y, plain ? NAIVE_norm_g_x : NAIVE_irreps_norm_g_x, &a);
  a.out = (float *)address(p, p->inputs + 1);
  a.n = p->t->array[1].width;
  variant_add_naive(w, y, plain ? NAIVE_norm_g_w : NAIVE_irreps_norm_g_w, &a);
}

static void add_naive(const piece *p, variant *y) {
  if (p->op == &tool_op_rms_norm) add_naive_norm(p, y);
  else if (!strcmp(p->c->kind, "weight_gradient")) add_naive_weight_gradient(p, y);
  else add_naive_product(p, y);
}

/* ---- the cases ---- */

static void make_data(work *w, const tool_op *op, ablation_case *c) {
  w->kernel = (tool_kernel){
      .problem = c->op ? c->of_op : w->problem, .storage = CLB_F32, .arithmetic = CLB_F32};
  w->test_run = allocate(1, sizeof *w->test_run);
  test_run_make(w->test_run, op, &w->kernel, c->pass,
                op->on_graph ? NULL : &(tool_data){.rows = c->rows}, op->distinct_rows);
  test_run_answer(w->test_run);
  w->tolerance = tolerance_of(op, &w->kernel);
  if (op->on_graph) c->rows = op->on_graph->rows(w->test_run->graph);
}

static test_run_set *make_set(work *w, variant *y, clb_op *op) {
  y->set = allocate(1, sizeof *y->set);
  if (!w->status) w->status = test_run_set_make(w->test_run, w->ctx, op, y->set);
  return y->set;
}

void ablation_op(work *w, ablation_case *c) {
  const tool_op *op = c->op;
  bool apart; /* a split belongs to a graph, or to a second kernel that sums rows */
  if (!op) w->problem = named_problem(c, &op);
  make_data(w, op, c);
  piece p = {.w = w, .c = c, .op = op, .t = w->test_run};
  apart = op->on_graph != NULL;
  for (int i = 0; i < p.t->n; i++) {
    p.inputs += !p.t->array[i].output;
    apart |= p.t->array[i].output && p.t->array[i].one_row;
  }
  for (int i = 0; i < SWITCHES && !w->status; i++) {
    const ablation_switch *off = &ablation_switches[i];
    if (!work_wants(w, off->variant) || (off->variant == NO_SPLIT_ROWS &&
                                         op == &tool_op_symmetric_contraction)) /* which has none */
      continue;
    op_call call = {.tool = op, .pass = c->pass, .test_run = w->test_run};
    variant *y = work_variant(w, off->variant, 0, false);
    work_disable(w, off->without);
    call.op = work_op(w, op, &w->kernel, c->pass);
    call.set = make_set(w, y, call.op);
    work_disable(w, 0);
    y->apart = apart && off->without & CLB_SPLIT_ROWS;
    variant_add(w, y, call);
  }
  if (!w->naive || w->status) return;
  variant *y = work_naive(w);
  ablation_graphs all = {0};
  p.rows = make_set(w, y, w->variant[0].call[0].op)->rows;
  if (c->graph) ablation_make_graphs(w, c, false, &all);
  p.graph = all.graph;
  add_naive(&p, y);
  graph_free(&all.g);
}
