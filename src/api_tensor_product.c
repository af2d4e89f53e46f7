/* api_tensor_product.c - the calls of the Clebsch-Gordan tensor product: what the user said, checked and made canonical. */
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "irreps.h"

clb_status clb_tensor_product_create(clb_context *ctx, const clb_tensor_product_desc *desc, clb_op **op) {
  clb_status s = clb_context_check(ctx);
  if (op) *op = NULL;
  if (s) return s;
  if (!desc || !op) return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_tensor_product_create: %s is NULL", desc ? "op" : "desc");
  clb_problem *p = calloc(1, sizeof *p);
  if (!p) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_tensor_product_create: no memory");
  p->kind = CLB_TENSOR_PRODUCT;
  p->storage = (int32_t)desc->storage;
  p->arithmetic = (int32_t)desc->arithmetic;
  p->accumulate = desc->accumulate != 0;
  s = clb_tensor_product_read(desc, &p->tensor_product, &ctx->error);
  if (!s) s = clb_op_create(ctx, p, desc->passes, op);
  free(p);
  return s;
}

clb_status clb_tensor_product_measure(clb_context *ctx, const clb_tensor_product_desc *desc, clb_tensor_product_sizes *sizes) {
  clb_status s = clb_context_check(ctx);
  if (s) return s;
  if (!desc || !sizes) return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_tensor_product_measure: %s is NULL", desc ? "sizes" : "desc");
  clb_tensor_product_problem *p = calloc(1, sizeof *p);
  if (!p) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_tensor_product_measure: no memory");
  s = clb_tensor_product_read(desc, p, &ctx->error);
  *sizes = (clb_tensor_product_sizes){0};
  if (!s) *sizes = (clb_tensor_product_sizes){p->x.dim, p->y.dim, p->z.dim, p->n_weights};
  free(p);
  return s;
}

/* ---- passes ---- */

clb_status clb_tensor_product_forward(clb_op *op, int64_t n, clb_rows x, clb_rows y, clb_rows w, clb_rows z) {
  if (!op) return CLB_ERROR_ARGUMENT;
  const clb_tensor_product_problem *p = &op->problem.tensor_product;
  clb_operand operands[] = {{"x", x, p->x.dim, false}, {"y", y, p->y.dim, false}, {"w", w, p->n_weights, false}, {"z", z, p->z.dim, true}};
  return clb_op_run_rows(op, CLB_TENSOR_PRODUCT, CLB_FORWARD, n, operands, 4);
}

clb_status clb_tensor_product_backward(clb_op *op, int64_t n, clb_rows x, clb_rows y, clb_rows w, clb_rows g, clb_rows g_x, clb_rows g_y,
                                       clb_rows g_w) {
  if (!op) return CLB_ERROR_ARGUMENT;
  const clb_tensor_product_problem *p = &op->problem.tensor_product;
  clb_operand operands[] = {{"x", x, p->x.dim, false},    {"y", y, p->y.dim, false},    {"w", w, p->n_weights, false},  {"g", g, p->z.dim, false},
                            {"g_x", g_x, p->x.dim, true}, {"g_y", g_y, p->y.dim, true}, {"g_w", g_w, p->n_weights, true}};
  return clb_op_run_rows(op, CLB_TENSOR_PRODUCT, CLB_BACKWARD, n, operands, 7);
}

clb_status clb_tensor_product_double_backward(clb_op *op, int64_t n, clb_rows x, clb_rows y, clb_rows w, clb_rows g, clb_rows a, clb_rows b,
                                              clb_rows c, clb_rows d_x, clb_rows d_y, clb_rows d_w, clb_rows d_g) {
  if (!op) return CLB_ERROR_ARGUMENT;
  const clb_tensor_product_problem *p = &op->problem.tensor_product;
  clb_operand operands[] = {{"x", x, p->x.dim, false},    {"y", y, p->y.dim, false},    {"w", w, p->n_weights, false},   {"g", g, p->z.dim, false},
                            {"a", a, p->x.dim, false},    {"b", b, p->y.dim, false},    {"c", c, p->n_weights, false},   {"d_x", d_x, p->x.dim, true},
                            {"d_y", d_y, p->y.dim, true}, {"d_w", d_w, p->n_weights, true}, {"d_g", d_g, p->z.dim, true}};
  return clb_op_run_rows(op, CLB_TENSOR_PRODUCT, CLB_DOUBLE_BACKWARD, n, operands, 11);
}

/* ---- channel-wise ---- */

typedef struct {
  clb_irreps x, y, filter, z;
  int n; /* paths; those beyond CLB_MAX_PATHS are only counted */
  struct {
    int in1, in2, order; /* by l, then the parity of (-1)^l first */
    clb_term out;
  } path[CLB_MAX_PATHS];
} channel_wise;

static bool among(const clb_irreps *irreps, int l, int parity) {
  for (int i = 0; i < irreps->n; i++)
    if (irreps->term[i].l == l && irreps->term[i].parity == parity) return true;
  return false;
}

static void find_paths(channel_wise *c) {
  for (int i = 0; i < c->x.n; i++)
    for (int j = 0; j < c->y.n; j++) {
      const clb_term *x = &c->x.term[i], *y = &c->y.term[j];
      int parity = x->parity * y->parity;
      for (int l = abs(x->l - y->l); l <= x->l + y->l; l++) {
        if (!among(&c->filter, l, parity)) continue;
        int at = c->n++, order = 2 * l + (parity != (l % 2 ? -1 : 1));
        if (at >= CLB_MAX_PATHS) continue;
        for (; at && c->path[at - 1].order > order; at--) c->path[at] = c->path[at - 1]; /* stable */
        c->path[at].in1 = i;
        c->path[at].in2 = j;
        c->path[at].order = order;
        c->path[at].out = (clb_term){x->mul, l, parity, 0};
      }
    }
}

static clb_status give_paths(clb_context *ctx, channel_wise *c, char *irreps_z, size_t irreps_z_size, clb_instruction *instructions, int max_instructions) {
  clb_text text = {0};
  clb_status s = CLB_OK;
  if (c->n > CLB_MAX_PATHS) return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_channel_wise: there are %d paths; at most %d are supported", c->n, CLB_MAX_PATHS);
  for (int i = 0; i < c->n; i++) c->z.term[c->z.n++] = c->path[i].out;
  clb_irreps_print(&c->z, &text);
  if (text.failed) s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_channel_wise: no memory");
  else if (text.n >= irreps_z_size)
    s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_channel_wise: irreps_z_size is %zu; %zu bytes are needed", irreps_z_size, text.n + 1);
  else if (c->n > max_instructions)
    s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_channel_wise: max_instructions is %d; there are %d", max_instructions, c->n);
  else {
    memcpy(irreps_z, text.s, text.n + 1);
    for (int i = 0; i < c->n; i++) instructions[i] = (clb_instruction){c->path[i].in1, c->path[i].in2, i, CLB_UVU, 1, 1};
  }
  clb_text_free(&text);
  return s;
}

clb_status clb_channel_wise(clb_context *ctx, const char *irreps_x, const char *irreps_y, const char *filter, char *irreps_z, size_t irreps_z_size,
                            clb_instruction *instructions, int max_instructions, int *n_instructions) {
  clb_status s = clb_context_check(ctx);
  if (s) return s;
  if (!n_instructions || (!irreps_z && irreps_z_size) || (!instructions && max_instructions > 0))
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_channel_wise: %s is NULL", !n_instructions ? "n_instructions" : instructions ? "irreps_z" : "instructions");
  channel_wise *c = calloc(1, sizeof *c);
  if (!c) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_channel_wise: no memory");
  s = clb_irreps_read(irreps_x, "irreps_x", &c->x, &ctx->error);
  if (!s) s = clb_irreps_read(irreps_y, "irreps_y", &c->y, &ctx->error);
  if (!s) s = clb_irreps_read(filter, "filter", &c->filter, &ctx->error);
  if (!s) find_paths(c);
  *n_instructions = c->n;
  if (!s) s = give_paths(ctx, c, irreps_z, irreps_z_size, instructions, max_instructions);
  free(c);
  return s;
}
