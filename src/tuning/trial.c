/* src/tuning/trial.c - what candidates are timed on: operands of small random numbers, and for a convolution a graph without order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/ops/convolution.h"
#include "src/ops/spherical_harmonics.h"
#include "src/ops/tensor_product.h"
#include "src/ir/interpret_values.h"
#include "src/tuning/autotune.h"

static double next(uint64_t *seed) { /* in [-1, 1) */
  uint64_t z = *seed += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)(int64_t)(z ^ z >> 31) * 0x1p-63;
}

/* ---- numbers as they are stored ---- */

static void put(int32_t type, void *to, int64_t i, double v) {
  switch (type) {
    case CLB_F64: ((double *)to)[i] = v; break;
    case CLB_F32: ((float *)to)[i] = (float)v; break;
    case CLB_F16: ((uint16_t *)to)[i] = ir_to_f16((float)v); break;
    default: ((uint16_t *)to)[i] = ir_to_bf16((float)v);
  }
}

static double get(int32_t type, const void *from, int64_t i) {
  switch (type) {
    case CLB_F64: return ((const double *)from)[i];
    case CLB_F32: return (double)((const float *)from)[i];
    case CLB_F16: return (double)ir_from_f16(((const uint16_t *)from)[i]);
    default: return (double)ir_from_bf16(((const uint16_t *)from)[i]);
  }
}

static int32_t type_of(const clb_trial *t, int i) { return t->operand[i].wide ? t->op->problem.arithmetic : t->op->problem.storage; }

bool clb_trial_agrees(const clb_trial *t, int i, const void *expected, const void *found) {
  static const double tolerance[] = {[CLB_F64] = 1e-10, [CLB_F32] = 1e-4, [CLB_F16] = 1e-2, [CLB_BF16] = 6e-2}; /* of the largest result */
  const clb_problem *p = &t->op->problem;
  double most = 0, worst = 0;
  int32_t type = type_of(t, i);
  for (int64_t j = 0, n = clb_trial_count(t, i); j < n; j++) {
    double x = get(type, expected, j), d = fabs(get(type, found, j) - x);
    most = fabs(x) > most ? fabs(x) : most;
    worst = d > worst || d != d ? d : worst;
    if (d != d) return false;
  }
  return worst <= tolerance[p->arithmetic == CLB_F32 && p->storage == CLB_F64 ? CLB_F32 : p->storage] * most;
}

/* ---- operands ---- */

/* Rows, of so many nodes or rows. */
static int64_t rows_of(const clb_trial *t, int i, int64_t size) {
  const clb_operand *o = &t->operand[i];
  return o->one_row ? 1 : t->desc && (o->of == CLB_Y || o->of == CLB_W) ? size * CLB_TRIAL_EDGES : size;
}

int64_t clb_trial_count(const clb_trial *t, int i) { return t->operand[i].columns * rows_of(t, i, t->size); }

/* As the caller of a convolution sees them: vectors, and lengths where weights are splines. */
static void list_convolution(clb_trial *t, const clb_rows *none) {
  clb_tensor_product_problem *tp = &t->op->problem.tensor_product;
  int gradients = tp->gradients;
  tp->gradients |= t->results ? CLB_Z : 0;
  t->n = clb_tensor_product_operands(tp, t->pass, none, t->operand);
  tp->gradients = gradients;
  for (int i = 0; i < t->n; i++) {
    clb_operand *o = &t->operand[i];
    if (o->of == CLB_W && o->columns && t->op->problem.convolution.spline) o->columns = t->desc->vectors ? 0 : 1;
    if (o->of == CLB_Y && o->columns && t->desc->vectors) o->columns = 3;
  }
}

int64_t clb_trial_begin(clb_trial *t) {
  static const clb_rows none[CLB_MAX_OPERANDS];
  const clb_problem *p = &t->op->problem;
  int64_t bytes = 0;
  if (t->desc) list_convolution(t, none);
  else if (p->kind == CLB_SPHERICAL_HARMONICS) t->n = clb_spherical_harmonics_operands(&p->spherical_harmonics, t->pass, none, t->operand);
  else t->n = clb_tensor_product_operands(&p->tensor_product, t->pass, none, t->operand);
  for (int i = 0; i < t->n; i++) {
    clb_operand *o = &t->operand[i];
    if (!t->desc && o->written) o->one_row = false; /* gradients of shared weights go to a workspace, row by row */
    o->rows = (clb_rows){.stride = o->one_row && !o->written ? 0 : CLB_DENSE};
    if (!o->one_row) bytes += o->columns * rows_of(t, i, 1) * clb_operand_bytes(t->op, o);
  }
  if (t->desc && t->pass != CLB_FORWARD) /* the workspace's gradients of x and rows of y, about */
    bytes += CLB_TRIAL_EDGES * (p->tensor_product.x.dim * clb_dtype_bytes(p->arithmetic) + 3 * p->tensor_product.y.dim * clb_dtype_bytes(p->storage));
  return bytes;
}

/* One piece again and again, whose length is no multiple of any row's. */
clb_status clb_trial_fill(clb_trial *t, int i) {
  enum { PIECE = 65521 };
  const clb_operand *o = &t->operand[i];
  bool lengths = t->desc && t->desc->knots && o->of == CLB_W && o->columns == 1;
  double low = lengths ? t->desc->first_knot : -1, high = lengths ? t->desc->last_knot : 1;
  int64_t n = clb_trial_count(t, i), piece = n < PIECE ? n : PIECE, bytes = clb_operand_bytes(t->op, o);
  uint64_t seed = (uint64_t)i + 1;
  void *from = malloc((size_t)(piece * bytes));
  clb_status s = from ? CLB_OK : clb_fail(&t->op->ctx->error, CLB_ERROR_MEMORY, "no memory to measure with");
  if (t->desc && t->desc->knots && t->desc->vectors && o->of == CLB_Y) high = t->desc->last_knot / 2, low = -high;
  for (int64_t j = 0; j < piece && from; j++) put(type_of(t, i), from, j, low + (high - low) * (0.5 + 0.5 * next(&seed)));
  for (int64_t at = 0; at < n && !s; at += piece) s = clb_buffer_write(o->rows.buffer, (uint64_t)(at * bytes), from, (uint64_t)((n - at < piece ? n - at : piece) * bytes));
  free(from);
  return s;
}

/* ---- buffers ---- */

void clb_trial_free(clb_trial *t) {
  for (int i = 0; i < t->n; i++) {
    clb_buffer_destroy(&t->operand[i].rows.buffer);
    clb_buffer_destroy(&t->operand[i].rows.index);
  }
  clb_buffer_destroy(&t->workspace);
  clb_buffer_destroy(&t->table);
  clb_graph_destroy(&t->graph);
}

static clb_status make_numbers(clb_context *ctx, int64_t n, int64_t below, uint64_t seed, clb_buffer **buffer) {
  int32_t *number = malloc(sizeof *number * (size_t)n);
  if (!number) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "no memory to measure with");
  for (int64_t i = 0; i < n; i++) number[i] = (int32_t)((double)below * (0.5 + 0.5 * next(&seed)) * (1 - 1e-9));
  clb_status s = clb_buffer_create(ctx, sizeof *number * (uint64_t)n, buffer);
  if (!s) s = clb_buffer_write(*buffer, 0, number, sizeof *number * (uint64_t)n);
  free(number);
  return s;
}

static clb_status make_graph(clb_trial *t) {
  clb_context *ctx = t->op->ctx;
  int64_t edges = t->size * CLB_TRIAL_EDGES;
  clb_buffer *senders = NULL;
  int32_t *receivers = malloc(sizeof *receivers * (size_t)edges);
  clb_status s = receivers ? clb_graph_create(ctx, t->size, edges, &t->graph) : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "no memory to measure with");
  for (int64_t e = 0; e < edges && receivers; e++) receivers[e] = (int32_t)(e / CLB_TRIAL_EDGES);
  if (!s) s = make_numbers(ctx, edges, t->size, 99, &senders);
  if (!s) s = clb_graph_update(t->graph, t->size, t->size, edges, CLB_I32, (clb_index_list){.buffer = senders}, (clb_index_list){.host = receivers});
  free(receivers);
  clb_buffer_destroy(&senders);
  return s;
}

static clb_status make_table(clb_trial *t) {
  const clb_problem *p = &t->op->problem;
  uint64_t bytes = (uint64_t)(2 * t->desc->knots * (int64_t)p->tensor_product.n_weights * clb_dtype_bytes(p->storage)), seed = 98;
  void *from = malloc(bytes ? bytes : 1);
  clb_status s = from ? clb_buffer_create(t->op->ctx, bytes, &t->table) : clb_fail(&t->op->ctx->error, CLB_ERROR_MEMORY, "no memory to measure with");
  for (int64_t i = 0; from && i < 2 * (int64_t)t->desc->knots * p->tensor_product.n_weights; i++) put(p->storage, from, i, next(&seed));
  if (!s) s = clb_buffer_write(t->table, 0, from, bytes);
  if (!s) s = clb_convolution_set_table(t->op, t->table, 0);
  free(from);
  return s;
}

static clb_status make_convolution(clb_trial *t) {
  uint64_t least, most = 0;
  clb_status s = make_graph(t);
  if (!s && t->desc->knots) s = make_table(t);
  if (!s) s = clb_convolution_workspace(t->op, t->pass, t->graph, &least, &most);
  return s || !most ? s : clb_buffer_create(t->op->ctx, most, &t->workspace);
}

clb_status clb_trial_make(clb_trial *t, int64_t size) {
  clb_status s = CLB_OK;
  clb_trial_free(t);
  t->size = size;
  for (int i = 0; i < t->n && !s; i++) {
    clb_operand *o = &t->operand[i];
    if (!o->columns) continue;
    s = clb_buffer_create(t->op->ctx, (uint64_t)(clb_trial_count(t, i) * clb_operand_bytes(t->op, o)), &o->rows.buffer);
    if (!s) s = clb_trial_fill(t, i);
    if (!s && o->indexed) s = make_numbers(t->op->ctx, size, size, (uint64_t)i + 50, &o->rows.index);
  }
  return s || !t->desc ? s : make_convolution(t);
}

clb_status clb_trial_run(clb_trial *t) {
  clb_rows r[CLB_MAX_OPERANDS];
  if (!t->desc) return clb_op_run_rows(t->op, t->op->problem.kind, t->pass, t->size, t->operand, t->n);
  for (int i = 0; i < t->n; i++) r[i] = t->operand[i].rows;
  return clb_convolution_run(t->op, t->pass, t->graph, r, t->workspace);
}
