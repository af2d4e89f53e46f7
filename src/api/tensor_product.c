/* src/api/tensor_product.c - the calls of the Clebsch-Gordan tensor product: what the user said, checked and made canonical. */
#include <stdlib.h>
#include <string.h>

#include "src/runtime/context.h"
#include "src/problem/irreps.h"
#include "src/tuning/autotune.h"
#include "src/ops/shared_weights.h"

clb_status clb_tensor_product_create(clb_context *ctx, const clb_tensor_product_desc *desc, clb_op **op) {
  clb_status s = clb_context_check(ctx);
  if (op) *op = NULL;
  if (s) return s;
  if (!desc || !op) return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_tensor_product_create: %s is NULL", desc ? "op" : "desc");
  if (desc->layout_z == CLB_MERGED) return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_tensor_product_create: layout_z is CLB_MERGED, which only convolutions have");
  clb_problem *p = calloc(1, sizeof *p);
  if (!p) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_tensor_product_create: no memory");
  p->kind = CLB_TENSOR_PRODUCT;
  p->storage = (int32_t)desc->storage;
  p->arithmetic = (int32_t)desc->arithmetic;
  p->accumulate = desc->accumulate != 0;
  s = clb_tensor_product_read(desc, &p->tensor_product, &ctx->error);
  if (!s) s = (p->tensor_product.shared_weights ? clb_shared_weights_create : clb_op_create)(ctx, p, clb_measure_asked(ctx, desc->passes), op);
  free(p);
  return s;
}

/* ---- what a description holds ---- */

/* result: the call's own argument, which must be there; *p: NULL on failure, else to be freed. */
static clb_status read_description(clb_context *ctx, const char *call, const clb_tensor_product_desc *desc, const void *result, const char *name,
                                   clb_tensor_product_problem **p) {
  clb_status s = clb_context_check(ctx);
  *p = NULL;
  if (s) return s;
  if (!desc || !result) return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "%s: %s is NULL", call, desc ? name : "desc");
  *p = calloc(1, sizeof **p);
  if (!*p) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "%s: no memory", call);
  s = clb_tensor_product_read(desc, *p, &ctx->error);
  if (!s) return CLB_OK;
  free(*p);
  *p = NULL;
  return s;
}

clb_status clb_tensor_product_measure(clb_context *ctx, const clb_tensor_product_desc *desc, clb_tensor_product_sizes *sizes) {
  clb_tensor_product_problem *p;
  clb_status s = read_description(ctx, "clb_tensor_product_measure", desc, sizes, "sizes", &p);
  if (sizes) *sizes = p ? (clb_tensor_product_sizes){p->x.dim, p->y.dim, p->z.dim, p->n_weights} : (clb_tensor_product_sizes){0};
  free(p);
  return s;
}

clb_status clb_tensor_product_weights(clb_context *ctx, const clb_tensor_product_desc *desc, int i, clb_weight_slice *slice) {
  clb_tensor_product_problem *p;
  clb_status s = read_description(ctx, "clb_tensor_product_weights", desc, slice, "slice", &p);
  if (slice) *slice = (clb_weight_slice){0};
  if (s) return s;
  if (i < 0 || i >= desc->n_instructions)
    s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_tensor_product_weights: i is %d; there are %d instructions", i, desc->n_instructions);
  else *slice = clb_tensor_product_slice(desc, p, i);
  free(p);
  return s;
}

clb_status clb_tensor_product_mask(clb_context *ctx, const clb_tensor_product_desc *desc, unsigned char *mask, int64_t size) {
  clb_tensor_product_problem *p;
  clb_status s = read_description(ctx, "clb_tensor_product_mask", desc, mask, "mask", &p);
  if (s) return s;
  if (size != p->z.dim) s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_tensor_product_mask: size is %lld; Z is %d", (long long)size, (int)p->z.dim);
  else memset(mask, 0, (size_t)size);
  for (int i = 0; i < desc->n_instructions && !s; i++) {
    const clb_term *t = &p->z.term[desc->instructions[i].out];
    if (desc->instructions[i].path_weight > 0 && clb_tensor_product_has_path(desc, p, i))
      for (int m = 0; m < 2 * t->l + 1; m++) memset(mask + t->at + m * clb_apart(t), 1, (size_t)t->mul);
  }
  free(p);
  return s;
}

/* ---- passes ---- */

/* OPERAND: x, y or w, which may be indexed (of edges all that is read); INCOMING: a, b or c; GRADIENT: given if asked for. */
enum role { OPERAND, OTHER, INCOMING, RESULT, GRADIENT };
enum { MOST = sizeof(clb_triple_operands) / sizeof(clb_rows) };

/* In the order of the calls and of the kernels' arguments. */
static const struct {
  int count;
  struct {
    const char *name;
    int of; /* whose shape it has */
    enum role role;
  } operand[MOST];
} passes[CLB_PASSES] = {
    [CLB_FORWARD] = {4, {{"x", CLB_X, OPERAND}, {"y", CLB_Y, OPERAND}, {"w", CLB_W, OPERAND}, {"z", CLB_Z, RESULT}}},
    [CLB_BACKWARD] = {7, {{"x", CLB_X, OPERAND}, {"y", CLB_Y, OPERAND}, {"w", CLB_W, OPERAND}, {"g", CLB_Z, OTHER},
                          {"g_x", CLB_X, GRADIENT}, {"g_y", CLB_Y, GRADIENT}, {"g_w", CLB_W, GRADIENT}}},
    [CLB_DOUBLE_BACKWARD] = {11, {{"x", CLB_X, OPERAND}, {"y", CLB_Y, OPERAND}, {"w", CLB_W, OPERAND}, {"g", CLB_Z, OTHER},
                                  {"a", CLB_X, INCOMING}, {"b", CLB_Y, INCOMING}, {"c", CLB_W, INCOMING},
                                  {"d_x", CLB_X, GRADIENT}, {"d_y", CLB_Y, GRADIENT}, {"d_w", CLB_W, GRADIENT}, {"d_g", CLB_Z, GRADIENT}}},
    [CLB_TRIPLE_BACKWARD] = {18, {{"x", CLB_X, OPERAND}, {"y", CLB_Y, OPERAND}, {"w", CLB_W, OPERAND}, {"g", CLB_Z, OTHER},
                                  {"a", CLB_X, INCOMING}, {"b", CLB_Y, INCOMING}, {"c", CLB_W, INCOMING},
                                  {"p", CLB_X, OTHER}, {"q", CLB_Y, OTHER}, {"r", CLB_W, OTHER}, {"s", CLB_Z, OTHER},
                                  {"e_x", CLB_X, GRADIENT}, {"e_y", CLB_Y, GRADIENT}, {"e_w", CLB_W, GRADIENT}, {"e_g", CLB_Z, GRADIENT},
                                  {"e_a", CLB_X, GRADIENT}, {"e_b", CLB_Y, GRADIENT}, {"e_c", CLB_W, GRADIENT}}},
};

int clb_tensor_product_operands(const clb_tensor_product_problem *p, clb_pass pass, const clb_rows *rows, clb_operand *operands) {
  const int64_t columns[] = {[CLB_X] = p->x.dim, [CLB_Y] = p->y.dim, [CLB_W] = p->n_weights, [CLB_Z] = p->z.dim};
  for (int i = 0; i < passes[pass].count; i++) {
    int of = passes[pass].operand[i].of;
    enum role role = passes[pass].operand[i].role;
    bool absent = (role == INCOMING && !(p->incoming & of)) || (role == GRADIENT && !(p->gradients & of));
    operands[i] = (clb_operand){.name = passes[pass].operand[i].name, .rows = rows[i], .columns = absent ? 0 : columns[of], .of = of,
                                .written = role == RESULT || role == GRADIENT, .indexed = (role == OPERAND || p->edges) && !(role == RESULT || role == GRADIENT) && p->indexed & of};
    operands[i].wide = operands[i].written && p->edges && (of == CLB_X || of == CLB_Z);
    if (of != CLB_W || !p->shared_weights) continue;
    operands[i].one_row = true;
    operands[i].rows.stride = role == GRADIENT ? CLB_DENSE : 0;
    operands[i].rows.index = NULL;
  }
  return passes[pass].count;
}

static clb_status run_pass(clb_op *op, clb_pass pass, int64_t n, const clb_rows *rows) {
  clb_operand operands[MOST];
  if (!op) return CLB_ERROR_ARGUMENT;
  int count = clb_tensor_product_operands(&op->problem.tensor_product, pass, rows, operands);
  if (op->problem.tensor_product.shared_weights && op->problem.kind == CLB_TENSOR_PRODUCT) return clb_shared_weights_run(op, pass, n, operands, count);
  return clb_op_run_rows(op, CLB_TENSOR_PRODUCT, pass, n, operands, count);
}

clb_status clb_tensor_product_forward(clb_op *op, int64_t n, clb_rows x, clb_rows y, clb_rows w, clb_rows z) {
  return run_pass(op, CLB_FORWARD, n, (const clb_rows[]){x, y, w, z});
}

clb_status clb_tensor_product_backward(clb_op *op, int64_t n, clb_rows x, clb_rows y, clb_rows w, clb_rows g, clb_rows g_x, clb_rows g_y,
                                       clb_rows g_w) {
  return run_pass(op, CLB_BACKWARD, n, (const clb_rows[]){x, y, w, g, g_x, g_y, g_w});
}

clb_status clb_tensor_product_double_backward(clb_op *op, int64_t n, clb_rows x, clb_rows y, clb_rows w, clb_rows g, clb_rows a, clb_rows b,
                                              clb_rows c, clb_rows d_x, clb_rows d_y, clb_rows d_w, clb_rows d_g) {
  return run_pass(op, CLB_DOUBLE_BACKWARD, n, (const clb_rows[]){x, y, w, g, a, b, c, d_x, d_y, d_w, d_g});
}

clb_status clb_tensor_product_triple_backward(clb_op *op, int64_t n, const clb_triple_operands *operands) {
  clb_rows rows[MOST];
  if (!op) return CLB_ERROR_ARGUMENT;
  if (!operands) return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "clb_tensor_product_triple_backward: operands is NULL");
  memcpy(rows, operands, sizeof rows);
  return run_pass(op, CLB_TRIPLE_BACKWARD, n, rows);
}
