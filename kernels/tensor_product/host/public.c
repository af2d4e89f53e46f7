/* kernels/tensor_product/host/public.c - the calls of the Clebsch-Gordan tensor product:
   descriptions are checked and made canonical. */
#include <stdlib.h>
#include <string.h>

#include "kernels/host/description.h"
#include "kernels/tensor_product/host/tensor_product.h"
#include "src/problem/irreps.h"
#include "src/tuning/autotune.h"

static const char type[] = "clb_tensor_product_desc";

/* desc: the description as the library has it; *p: NULL on failure, else freed by the caller. */
static clb_status read_description(const clb_description *d, clb_tensor_product_desc *desc,
                                   clb_problem **p) {
  clb_status s = clb_description_take(d, desc, sizeof *desc, CLB_TENSOR_PRODUCT, p);
  if (s) return s;
  clb_problem_set_types(*p, desc->storage, desc->arithmetic, desc->accumulate);
  s = clb_tensor_product_read(desc, &(*p)->tensor_product, &d->ctx->error);
  if (s) free(*p), *p = NULL;
  return s;
}

clb_status clb_tensor_product_create_sized(clb_context *ctx, const clb_tensor_product_desc *given,
                                           clb_op **op, size_t size) {
  clb_tuner tuner;
  clb_tensor_product_desc desc;
  clb_problem *p;
  if (op) *op = NULL;
  clb_status s = read_description(
      &(clb_description){ctx, "clb_tensor_product_create", type, given, size, op, "op"}, &desc, &p);
  if (!s && desc.layout_z == CLB_MERGED)
    s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                 "clb_tensor_product_create: layout_z is CLB_MERGED, which only convolutions have");
  if (!s)
    s = clb_tensor_product_make(ctx, p, desc.passes & ~CLB_MEASURE,
                                clb_tuner_for(ctx, desc.passes, &clb_test_run_of_rows, &tuner), op);
  free(p);
  return s;
}

/* ---- properties of a description ---- */

clb_status clb_tensor_product_measure_sized(clb_context *ctx, const clb_tensor_product_desc *given,
                                            clb_tensor_product_sizes *sizes, size_t size) {
  clb_tensor_product_desc desc;
  clb_problem *p;
  clb_status s = read_description(
      &(clb_description){ctx, "clb_tensor_product_measure", type, given, size, sizes, "sizes"},
      &desc, &p);
  const clb_tensor_product_problem *t = s ? NULL : &p->tensor_product;
  if (sizes)
    *sizes = t ? (clb_tensor_product_sizes){t->x.dim, t->y.dim, t->z.dim, t->n_weights}
               : (clb_tensor_product_sizes){0};
  free(p);
  return s;
}

clb_status clb_tensor_product_weights_sized(clb_context *ctx, const clb_tensor_product_desc *given,
                                            int i, clb_weight_slice *slice, size_t size) {
  clb_tensor_product_desc desc;
  clb_problem *p;
  clb_status s = read_description(
      &(clb_description){ctx, "clb_tensor_product_weights", type, given, size, slice, "slice"},
      &desc, &p);
  if (slice) *slice = (clb_weight_slice){0};
  if (s) return s;
  if (i < 0 || i >= desc.n_instructions)
    s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                 "clb_tensor_product_weights: i is %d; there are %d instructions", i,
                 desc.n_instructions);
  else *slice = clb_tensor_product_slice(&desc, &p->tensor_product, i);
  free(p);
  return s;
}

clb_status clb_tensor_product_mask_sized(clb_context *ctx, const clb_tensor_product_desc *given,
                                         unsigned char *mask, int64_t size, size_t desc_size) {
  clb_tensor_product_desc desc;
  clb_problem *p;
  clb_status s = read_description(
      &(clb_description){ctx, "clb_tensor_product_mask", type, given, desc_size, mask, "mask"},
      &desc, &p);
  if (s) return s;
  const clb_tensor_product_problem *t = &p->tensor_product;
  if (size != t->z.dim)
    s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_tensor_product_mask: size is %lld; Z is %d",
                 (long long)size, (int)t->z.dim);
  else memset(mask, 0, (size_t)size);
  for (int i = 0; i < desc.n_instructions && !s; i++) {
    const clb_term *z = &t->z.term[desc.instructions[i].out];
    if (desc.instructions[i].path_weight > 0 && clb_tensor_product_has_path(&desc, t, i))
      for (int m = 0; m < 2 * z->l + 1; m++)
        memset(mask + z->at + m * clb_component_stride(z), 1, (size_t)z->mul);
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
