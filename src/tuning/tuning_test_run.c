/* src/tuning/tuning_test_run.c - the data on which candidates are timed: operands of small random
 * numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/ir/interpreter/interpret_values.h"
#include "kernels/host/operand_lists.h"
#include "src/tuning/tuning_test_run.h"

double clb_test_run_next(uint64_t *seed) {
  uint64_t z = *seed += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)(int64_t)(z ^ z >> 31) * 0x1p-63;
}

/* ---- stored numbers ---- */

static double get(int32_t type, const void *from, int64_t i) {
  switch (type) {
    case CLB_F64: return ((const double *)from)[i];
    case CLB_F32: return (double)((const float *)from)[i];
    case CLB_F16: return (double)ir_from_f16(((const uint16_t *)from)[i]);
    default: return (double)ir_from_bf16(((const uint16_t *)from)[i]);
  }
}

static int32_t type_of(const clb_test_run *t, int i) {
  return t->operand[i].wide ? t->op->problem.arithmetic : t->op->problem.storage;
}

bool clb_test_run_agrees(const clb_test_run *t, int i, const void *expected, const void *found) {
  static const double tolerance[] = {
      [CLB_F64] = 1e-10, [CLB_F32] = 1e-4, [CLB_F16] = 1e-2, [CLB_BF16] = 6e-2}; /* relative to the
                                                                                    largest
                                                                                    result */
  const clb_problem *p = &t->op->problem;
  double most = 0, worst = 0;
  int32_t type = type_of(t, i);
  for (int64_t j = 0, n = clb_test_run_count(t, i); j < n; j++) {
    double x = get(type, expected, j), d = fabs(get(type, found, j) - x);
    most = fabs(x) > most ? fabs(x) : most;
    worst = d > worst || d != d ? d : worst;
    if (d != d) return false;
  }
  return worst <=
         tolerance[p->arithmetic == CLB_F32 && p->storage == CLB_F64 ? CLB_F32 : p->storage] * most;
}

/* ---- operands ---- */

static int64_t rows_of(const clb_test_run *t, int i, int64_t size) {
  const clb_operand *o = &t->operand[i];
  return o->one_row ? 1 : size * t->kind->rows(o);
}

int64_t clb_test_run_count(const clb_test_run *t, int i) {
  return t->operand[i].columns * rows_of(t, i, t->size);
}

int64_t clb_test_run_begin(clb_test_run *t) {
  int64_t bytes = 0;
  t->n = t->kind->operands(t);
  for (int i = 0; i < t->n; i++) {
    clb_operand *o = &t->operand[i];
    o->rows = (clb_rows){.stride = o->one_row && !o->written ? CLB_SAME_ROW : CLB_DENSE};
    if (!o->one_row) bytes += o->columns * rows_of(t, i, 1) * clb_operand_bytes(t->op, o);
  }
  return bytes + (t->kind->more_bytes ? t->kind->more_bytes(t) : 0);
}

/* Repeats one block of numbers, whose length is not a multiple of any row's. */
clb_status clb_test_run_fill(clb_test_run *t, int i) {
  enum { PIECE = 65521 };
  const clb_operand *o = &t->operand[i];
  double low = -1, high = 1;
  int64_t n = clb_test_run_count(t, i), piece = n < PIECE ? n : PIECE,
          bytes = clb_operand_bytes(t->op, o);
  uint64_t seed = (uint64_t)i + 1;
  void *from = malloc((size_t)(piece * bytes));
  clb_status s =
      from ? CLB_OK : clb_fail(&t->op->ctx->error, CLB_ERROR_MEMORY, "no memory to measure with");
  if (t->kind->range) t->kind->range(t, o, &low, &high);
  for (int64_t j = 0; j < piece && from; j++)
    clb_store_number(type_of(t, i), from, j,
                     low + (high - low) * (0.5 + 0.5 * clb_test_run_next(&seed)));
  for (int64_t at = 0; at < n && !s; at += piece)
    s = clb_buffer_write(o->rows.buffer, (uint64_t)(at * bytes), from,
                         (uint64_t)((n - at < piece ? n - at : piece) * bytes));
  free(from);
  return s;
}

/* ---- buffers ---- */

void clb_test_run_free(clb_test_run *t) {
  for (int i = 0; i < t->n; i++) {
    clb_buffer_destroy(&t->operand[i].rows.buffer);
    clb_buffer_destroy(&t->operand[i].rows.index);
  }
  clb_buffer_destroy(&t->workspace);
  clb_graph_destroy(&t->graph);
}

clb_status clb_test_run_numbers(clb_context *ctx, int64_t n, int64_t below, uint64_t seed,
                                clb_buffer **buffer) {
  int32_t *number = malloc(sizeof *number * (size_t)n);
  if (!number) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "no memory to measure with");
  for (int64_t i = 0; i < n; i++)
    number[i] = (int32_t)((double)below * (0.5 + 0.5 * clb_test_run_next(&seed)) * (1 - 1e-9));
  clb_status s = clb_buffer_create(ctx, sizeof *number * (uint64_t)n, buffer);
  if (!s) s = clb_buffer_write(*buffer, 0, number, sizeof *number * (uint64_t)n);
  free(number);
  return s;
}

clb_status clb_test_run_make(clb_test_run *t, int64_t size) {
  clb_status s = CLB_OK;
  clb_test_run_free(t);
  t->size = size;
  for (int i = 0; i < t->n && !s; i++) {
    clb_operand *o = &t->operand[i];
    if (!o->columns) continue;
    s = clb_buffer_create(t->op->ctx,
                          (uint64_t)(clb_test_run_count(t, i) * clb_operand_bytes(t->op, o)),
                          &o->rows.buffer);
    if (!s) s = clb_test_run_fill(t, i);
    if (!s && o->indexed)
      s = clb_test_run_numbers(t->op->ctx, size, size, (uint64_t)i + 50, &o->rows.index);
  }
  return s || !t->kind->make ? s : t->kind->make(t);
}

clb_status clb_test_run_once(clb_test_run *t) { return t->kind->run(t); }

/* ---- ops on independent rows ---- */

static int64_t one_each(const clb_operand *o) { return (void)o, 1; }

/* Gradients of shared weights go to a workspace, row by row. */
static int list_rows(clb_test_run *t) {
  static const clb_rows none[CLB_MAX_OPERANDS];
  const clb_problem *p = &t->op->problem;
  int n = clb_operands_of[p->kind](p, t->pass, none, t->operand);
  for (int i = 0; i < n; i++)
    if (t->operand[i].written) t->operand[i].one_row = false;
  return n;
}

static clb_status run_rows(clb_test_run *t) {
  return clb_op_run_rows(t->op, t->op->problem.kind, t->pass, t->size, t->operand, t->n);
}

const clb_test_run_kind clb_test_run_of_rows = {
    .first_size = 64, .rows = one_each, .operands = list_rows, .run = run_rows};
