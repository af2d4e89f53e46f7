/* kernels/layers/host/layers.c - what networks need besides convolutions, harmonics and matrix
   products: the calls of pointwise ops. */
#include "kernels/layers/host/layers.h"

#include <stdlib.h>
#include <string.h>

#include "src/problem/irreps.h"
#include "kernels/layers/host/layer_call.h"
#include "src/problem/activation.h"

/* ---- pointwise ---- */

static clb_status create_pointwise(clb_context *ctx, clb_dtype type,
                                   clb_pointwise_problem pointwise, unsigned passes, clb_op **op) {
  clb_problem *p = clb_layer_problem(ctx, CLB_POINTWISE, type, type);
  if (p) p->pointwise = pointwise;
  return clb_layer_create(ctx, p, passes, op);
}

clb_status clb_gather_create(clb_context *ctx, clb_dtype type, bool adds, clb_op **op) {
  return create_pointwise(ctx, type, (clb_pointwise_problem){.function = CLB_POINTWISE_GATHER},
                          adds ? 2 : 1, op);
}

clb_status clb_zero_create(clb_context *ctx, clb_dtype type, clb_op **op) {
  return create_pointwise(ctx, type, (clb_pointwise_problem){.function = CLB_POINTWISE_ZERO}, 1,
                          op);
}

clb_status clb_activation_create(clb_context *ctx, clb_dtype type, clb_activation f, double scale,
                                 double factor, clb_op **op) {
  return create_pointwise(
      ctx, type, (clb_pointwise_problem){CLB_POINTWISE_ACTIVATION, f, scale, factor}, 3, op);
}

typedef struct {
  const char *name;
  clb_rows rows;
} operand;

/* Arguments: n inputs, then the output. Contiguous rows are treated as one long row. */
static clb_status run_pointwise(clb_op *op, int32_t function, int64_t n, int64_t columns,
                                const operand *o, int n_in) {
  clb_call c = clb_call_begin(op, CLB_POINTWISE, n, columns < 0 ? -1 : 0);
  if (c.status) return c.status;
  if (op->problem.pointwise.function != function)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                    "pointwise: this op is for another function");
  int64_t width = clb_layer_schedule_of(op, 0).layer.columns_per_subgroup, all = 0, rows = n;
  bool dense = !o[0].rows.index && !__builtin_mul_overflow(n, columns, &all);
  for (int i = 0; i <= n_in; i++)
    dense = dense && (o[i].rows.stride == CLB_DENSE || o[i].rows.stride == columns);
  int64_t length = dense ? all : columns, blocks = length / width + (length % width != 0);
  if (dense) rows = 1;
  if (__builtin_mul_overflow(rows, blocks, &c.arg[0].i64))
    return clb_fail(&op->ctx->error, CLB_ERROR_UNSUPPORTED,
                    "pointwise: more rows than one launch can process");
  clb_call_i64(&c, length);
  clb_call_i64(&c, blocks);
  for (int i = 0; i <= n_in; i++)
    clb_call_rows(&c, o[i].name, (clb_dtype)op->problem.storage, columns, o[i].rows,
                  i < n_in ? CLB_IN : CLB_OUT);
  const bool gathers = function == CLB_POINTWISE_GATHER;
  if (gathers) clb_call_memory(&c, n ? &o[0].rows.index->memory : NULL);
  return clb_call_run(&c, gathers ? !op->kernel[0] : n_in > 1);
}

clb_status clb_gather_run(clb_op *op, int64_t n, int64_t columns, clb_rows table, clb_rows out) {
  if (!op) return CLB_ERROR_ARGUMENT;
  if (n > 0 && !table.index)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "pointwise: the index of table is NULL");
  if (n > 0 && (table.index->ctx != op->ctx || (uint64_t)n > table.index->memory.bytes / 4))
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                    "pointwise: the index of table has no %lld numbers of 4 bytes, or belongs to "
                    "another context",
                    (long long)n);
  return run_pointwise(op, CLB_POINTWISE_GATHER, n, columns,
                       (const operand[]){{"table", table}, {"out", out}}, 1);
}

clb_status clb_zero_run(clb_op *op, int64_t n, int64_t columns, clb_rows out) {
  return run_pointwise(op, CLB_POINTWISE_ZERO, n, columns, (const operand[]){{"out", out}}, 0);
}

clb_status clb_activation_forward(clb_op *op, int64_t n, int64_t columns, clb_rows a, clb_rows h) {
  return run_pointwise(op, CLB_POINTWISE_ACTIVATION, n, columns,
                       (const operand[]){{"a", a}, {"h", h}}, 1);
}

clb_status clb_activation_backward(clb_op *op, int64_t n, int64_t columns, clb_rows a, clb_rows g_h,
                                   clb_rows g_a) {
  return run_pointwise(op, CLB_POINTWISE_ACTIVATION, n, columns,
                       (const operand[]){{"a", a}, {"g_h", g_h}, {"g_a", g_a}}, 2);
}
