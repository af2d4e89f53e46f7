/* tools/ablation/rows.c - one pass of an op of independent rows, or of one that makes its own data;
   beside them naive kernels. */
#include <stdlib.h>
#include <string.h>

#include "tools/ablation/ablation.h"
#include "tools/ops/tensor_product_tool.h"
#include "tools/reference/reference_irreps.h"

/* One pass and its arrays. */
typedef struct {
  work *w;
  const ablation_case *c;
  const tool_op *op;
  const void *problem;
  int n, inputs;
  tool_array array[MAX_ARRAYS];
  op_call call;
} piece;

/* ---- the op ---- */

static bool is_plain(const char *irreps) { return !strchr(irreps, '+'); }

/* The problem of a kind, from the options that `bench` has for it; the caller frees it. */
static void *named_problem(const ablation_case *c, const tool_op **op) {
  static const struct {
    const char *kind, *option, *more[8];
    const tool_op *op;
  } kinds[] = {
      {"tensor_product", "--problem", {NULL}, &tool_op_tensor_product},
      {"symmetric_contraction", "--problem", {NULL}, &tool_op_symmetric_contraction},
      {"weight_gradient",
       "--x",
       {"--y", "0e", "--filter", "0e", "--shared", "--gradients", "w"},
       &tool_op_tensor_product},
      {"norm", "--irreps", {NULL}, &tool_op_rms_norm},
  };
  const char *argv[16] = {"bench"};
  int k = 0, n = 1;
  while (strcmp(kinds[k].kind, c->kind)) k++;
  argv[n++] = kinds[k].option, argv[n++] = c->problem;
  argv[n++] = "--layout", argv[n++] = c->layout;
  for (const char *const *more = kinds[k].more; *more; more++) argv[n++] = *more;
  *op = kinds[k].op;
  if (*op == &tool_op_rms_norm)
    argv[n++] = "--variant", argv[n++] = is_plain(c->problem) ? "plain" : "nequix";
  void *problem = allocate(1, (*op)->problem_bytes);
  parse_arguments((*op)->options, n, (char **)argv, ARGP_NO_HELP, problem);
  return problem;
}

/* Species come in blocks of equal ones; rows of x that are gathered are all of them, backwards. */
static clb_buffer *index_of(const piece *p, const tool_array *a) {
  const int64_t n = p->c->rows;
  int32_t *index = allocate((size_t)n, sizeof *index);
  for (int64_t r = 0; r < n; r++)
    index[r] = a->kinds ? kind_of_row(r, a->kinds) : (int32_t)(n - 1 - r);
  clb_buffer *made = work_ints(p->w, n, index);
  free(index);
  return made;
}

/* Operands and results in the order of the call. Returns whether a result is a sum over rows. */
static bool make_operands(piece *p) {
  bool sums = false;
  p->n = p->op->arrays(p->problem, p->c->pass, p->array);
  for (int i = 0; i < p->n; i++) {
    const tool_array *a = &p->array[i];
    const int64_t of = a->one_row ? 1 : p->c->rows;
    p->inputs += !a->output;
    if (!a->width) continue;
    clb_rows *rows = &p->call.rows[i];
    *rows = work_rows(p->w, of, a->width, NULL);
    if (a->output) work_output(p->w, *rows, of, a->width);
    if (a->kinds || a->indexed) rows->index = index_of(p, a);
    sums |= a->output && a->one_row;
  }
  return sums;
}

/* ---- naive kernels ---- */

static const float *address(const piece *p, int i) {
  return p->call.rows[i].buffer ? work_address(p->w, p->call.rows[i].buffer) : NULL;
}

static void add_naive_product(const piece *p) {
  static const naive_kernel kernels[][4] = {
      [CLB_FORWARD] = {NAIVE_product_z},
      [CLB_BACKWARD] = {NAIVE_product_g_x, NAIVE_product_g_y, NAIVE_product_g_w},
      [CLB_DOUBLE_BACKWARD] = {NAIVE_product_d_x, NAIVE_product_d_y, NAIVE_product_d_w,
                               NAIVE_product_d_g}};
  const float *in[7] = {0};
  tensor_desc *d = NULL;
  way *y = work_naive(p->w);
  if (!p->w->status) p->w->status = tensor_problem_describe(p->w->ctx, p->problem, &d);
  if (!p->w->status) {
    naive_arguments a = ablation_naive_product(p->w, &d->desc, p->array[1].width);
    for (int i = 0; i < p->inputs; i++) in[i] = address(p, i);
    a.x = in[0], a.y = in[1], a.w = in[2], a.g = in[3], a.a = in[4], a.b = in[5], a.c = in[6];
    for (int i = p->inputs; i < p->n; i++)
      way_add_naive_sum(p->w, y, kernels[p->c->pass][i - p->inputs], a, p->call.rows[i], p->c->rows,
                        p->array[i].width, p->c->rows);
  }
  free(d);
}

static void add_naive_weight_gradient(const piece *p) {
  const naive_arguments a = {.x = address(p, 0),
                             .y = address(p, 1),
                             .g = address(p, 3),
                             .out = (float *)address(p, p->n - 1),
                             .n = p->array[0].width,
                             .rows = p->c->rows,
                             .X = p->array[0].width};
  way_add_naive(p->w, work_naive(p->w), NAIVE_weight_gradient, &a);
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

static void add_naive_norm(const piece *p) {
  const bool plain = is_plain(p->c->problem);
  work *w = p->w;
  way *y = work_naive(w);
  naive_arguments a = {.x = address(p, 0),
                       .w = address(p, 1),
                       .n = p->c->rows,
                       .rows = p->c->rows,
                       .X = p->array[0].width,
                       .epsilon = 1e-6F}; /* the op's default */
  if (!plain) describe_irreps(w, p->c->problem, &a);
  a.out = (float *)address(p, p->inputs);
  if (p->c->pass == CLB_FORWARD) {
    way_add_naive(w, y, plain ? NAIVE_norm_y : NAIVE_irreps_norm_y, &a);
    return;
  }
  a.g = address(p, 2);
  a.scale = work_address(w, work_rows(w, p->c->rows, 1, NULL).buffer);
  way_add_naive(w, y, plain ? NAIVE_norm_g_x : NAIVE_irreps_norm_g_x, &a);
  a.out = (float *)address(p, p->inputs + 1);
  a.n = p->array[1].width;
  way_add_naive(w, y, plain ? NAIVE_norm_g_w : NAIVE_irreps_norm_g_w, &a);
}

static void add_naive(const piece *p) {
  if (p->op == &tool_op_rms_norm) add_naive_norm(p);
  else if (!strcmp(p->c->kind, "weight_gradient")) add_naive_weight_gradient(p);
  else add_naive_product(p);
}

/* ---- the cases ---- */

void ablation_rows(work *w, ablation_case *c) {
  piece p = {.w = w, .c = c, .op = c->op, .problem = c->of_op};
  void *named = c->op ? NULL : named_problem(c, &p.op);
  if (named) p.problem = named;
  p.call = (op_call){.tool = p.op, .pass = c->pass, .n = c->rows};
  const bool sums = make_operands(&p), splits = p.op != &tool_op_symmetric_contraction;
  const tool_kernel kernel = {.problem = p.problem, .storage = CLB_F32, .arithmetic = CLB_F32};
  for (int i = 0; i < SWITCHES; i++) {
    const ablation_switch *off = &ablation_switches[i];
    if (!work_wants(w, off->way) || (off->way == NO_SPLIT_ROWS && !splits)) continue;
    work_disable(w, off->without);
    p.call.op = work_op(w, p.op, &kernel, c->pass);
    work_disable(w, 0);
    way *y = work_way(w, off->way, 0, false);
    y->apart = sums && off->without & CLB_SPLIT_ROWS;
    way_add(w, y, p.call);
  }
  if (w->naive) add_naive(&p);
  free(named);
}

void ablation_test_run(work *w, ablation_case *c) {
  w->kernel = (tool_kernel){.problem = c->of_op, .storage = CLB_F32, .arithmetic = CLB_F32};
  w->test_run = allocate(1, sizeof *w->test_run);
  test_run_make(w->test_run, c->op, &w->kernel, c->pass, NULL, 0);
  test_run_answer(w->test_run);
  w->tolerance = tolerance_of(c->op, &w->kernel);
  c->rows = c->op->on_graph->rows(w->test_run->graph);
  for (int i = 0; i < SWITCHES && !w->status; i++) {
    const ablation_switch *off = &ablation_switches[i];
    if (!work_wants(w, off->way)) continue;
    op_call call = {.tool = c->op,
                    .pass = c->pass,
                    .test_run = w->test_run,
                    .set = allocate(1, sizeof *call.set)};
    work_disable(w, off->without);
    call.op = work_op(w, c->op, &w->kernel, c->pass);
    if (!w->status) w->status = test_run_set_make(w->test_run, w->ctx, call.op, call.set);
    work_disable(w, 0);
    way *y = work_way(w, off->way, 0, false);
    y->apart = off->without & CLB_SPLIT_ROWS; /* which belongs to its graph */
    way_add(w, y, call);
  }
}
