/* kernels/tensor_product/host/public.c - the calls of the Clebsch-Gordan tensor product:
   descriptions are checked and made canonical. */
#include <stdlib.h>
#include <string.h>

#include "src/base/sizes.h"
#include "kernels/tensor_product/host/tensor_product.h"
#include "src/problem/irreps.h"
#include "src/tuning/autotune.h"
#include "kernels/tensor_product/host/shared_weights.h"

static clb_status take(clb_context *ctx, const clb_tensor_product_desc *given, size_t size,
                       clb_tensor_product_desc *desc) {
  return clb_take_struct(&ctx->error, "clb_tensor_product_desc", desc, sizeof *desc, given, size);
}

clb_status clb_tensor_product_create_sized(clb_context *ctx, const clb_tensor_product_desc *given,
                                           clb_op **op, size_t size) {
  clb_tuner tuner;
  clb_tensor_product_desc desc;
  clb_status s = clb_context_check(ctx, __func__);
  if (op) *op = NULL;
  if (s) return s;
  if (!given || !op)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_tensor_product_create: %s is NULL",
                    given ? "op" : "desc");
  if ((s = take(ctx, given, size, &desc))) return s;
  if (desc.layout_z == CLB_MERGED)
    return clb_fail(
        &ctx->error, CLB_ERROR_ARGUMENT,
        "clb_tensor_product_create: layout_z is CLB_MERGED, which only convolutions have");
  clb_problem *p = calloc(1, sizeof *p);
  if (!p) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_tensor_product_create: no memory");
  p->kind = CLB_TENSOR_PRODUCT;
  p->storage = (int32_t)desc.storage;
  p->arithmetic = (int32_t)desc.arithmetic;
  p->accumulate = desc.accumulate != 0;
  s = clb_tensor_product_read(&desc, &p->tensor_product, &ctx->error);
  unsigned passes = desc.passes & ~CLB_MEASURE;
  if (!s)
    s = (p->tensor_product.shared_weights ? clb_shared_weights_create : clb_op_create)(
        ctx, p, passes, clb_tuner_for(ctx, desc.passes, &clb_test_run_of_rows, &tuner), op);
  free(p);
  return s;
}

/* ---- properties of a description ---- */

/* given, size: the caller's description; desc: the same as the library has it. result: the call's
   output argument, which must not be NULL; *p: NULL on failure, else freed by the caller. */
static clb_status read_description(clb_context *ctx, const char *call,
                                   const clb_tensor_product_desc *given, size_t size,
                                   const void *result, const char *name,
                                   clb_tensor_product_desc *desc, clb_tensor_product_problem **p) {
  clb_status s = clb_context_check(ctx, call);
  *p = NULL;
  if (s) return s;
  if (!given || !result)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "%s: %s is NULL", call, given ? name : "desc");
  if ((s = take(ctx, given, size, desc))) return s;
  *p = calloc(1, sizeof **p);
  if (!*p) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "%s: no memory", call);
  s = clb_tensor_product_read(desc, *p, &ctx->error);
  if (!s) return CLB_OK;
  free(*p);
  *p = NULL;
  return s;
}

clb_status clb_tensor_product_measure_sized(clb_context *ctx, const clb_tensor_product_desc *given,
                                            clb_tensor_product_sizes *sizes, size_t size) {
  clb_tensor_product_desc desc;
  clb_tensor_product_problem *p;
  clb_status s =
      read_description(ctx, "clb_tensor_product_measure", given, size, sizes, "sizes", &desc, &p);
  if (sizes)
    *sizes = p ? (clb_tensor_product_sizes){p->x.dim, p->y.dim, p->z.dim, p->n_weights}
               : (clb_tensor_product_sizes){0};
  free(p);
  return s;
}

clb_status clb_tensor_product_weights_sized(clb_context *ctx, const clb_tensor_product_desc *given,
                                            int i, clb_weight_slice *slice, size_t size) {
  clb_tensor_product_desc desc;
  clb_tensor_product_problem *p;
  clb_status s =
      read_description(ctx, "clb_tensor_product_weights", given, size, slice, "slice", &desc, &p);
  if (slice) *slice = (clb_weight_slice){0};
  if (s) return s;
  if (i < 0 || i >= desc.n_instructions)
    s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                 "clb_tensor_product_weights: i is %d; there are %d instructions", i,
                 desc.n_instructions);
  else *slice = clb_tensor_product_slice(&desc, p, i);
  free(p);
  return s;
}

clb_status clb_tensor_product_mask_sized(clb_context *ctx, const clb_tensor_product_desc *given,
                                         unsigned char *mask, int64_t size, size_t desc_size) {
  clb_tensor_product_desc desc;
  clb_tensor_product_problem *p;
  clb_status s =
      read_description(ctx, "clb_tensor_product_mask", given, desc_size, mask, "mask", &desc, &p);
  if (s) return s;
  if (size != p->z.dim)
    s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_tensor_product_mask: size is %lld; Z is %d",
                 (long long)size, (int)p->z.dim);
  else memset(mask, 0, (size_t)size);
  for (int i = 0; i < desc.n_instructions && !s; i++) {
    const clb_term *t = &p->z.term[desc.instructions[i].out];
    if (desc.instructions[i].path_weight > 0 && clb_tensor_product_has_path(&desc, p, i))
      for (int m = 0; m < 2 * t->l + 1; m++)
        memset(mask + t->at + m * clb_component_stride(t), 1, (size_t)t->mul);
  }
  free(p);
  return s;
}

/* ---- passes ---- */

clb_status clb_tensor_product_forward(clb_op *op, int64_t n, clb_rows x, clb_rows y, clb_rows w,
                                      clb_rows z) {
  return clb_tensor_product_run(op, CLB_FORWARD, n, (const clb_rows[]){x, y, w, z});
}

clb_status clb_tensor_product_backward(clb_op *op, int64_t n, clb_rows x, clb_rows y, clb_rows w,
                                       clb_rows g, clb_rows g_x, clb_rows g_y, clb_rows g_w) {
  return clb_tensor_product_run(op, CLB_BACKWARD, n, (const clb_rows[]){x, y, w, g, g_x, g_y, g_w});
}

clb_status clb_tensor_product_double_backward(clb_op *op, int64_t n, clb_rows x, clb_rows y,
                                              clb_rows w, clb_rows g, clb_rows a, clb_rows b,
                                              clb_rows c, clb_rows d_x, clb_rows d_y, clb_rows d_w,
                                              clb_rows d_g) {
  return clb_tensor_product_run(op, CLB_DOUBLE_BACKWARD, n,
                                (const clb_rows[]){x, y, w, g, a, b, c, d_x, d_y, d_w, d_g});
}

clb_status clb_tensor_product_triple_backward(clb_op *op, int64_t n,
                                              const clb_triple_operands *operands) {
  clb_rows rows[CLB_TENSOR_PRODUCT_OPERANDS];
  if (!op) return clb_null(__func__, "op");
  if (!operands)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_tensor_product_triple_backward: operands is NULL");
  memcpy(rows, operands, sizeof rows);
  return clb_tensor_product_run(op, CLB_TRIPLE_BACKWARD, n, rows);
}
