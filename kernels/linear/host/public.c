/* kernels/linear/host/public.c - the calls of linear maps of irreps. */
#include "kernels/linear/host/linear.h"

#include <stdlib.h>

#include "src/base/sizes.h"

/* The problem of a description, to be freed; NULL: *s says why. */
static clb_problem *read_description(clb_context *ctx, const char *call,
                                     const clb_linear_desc *given, size_t size, const void *result,
                                     const char *name, unsigned *passes, clb_status *s) {
  clb_linear_desc desc;
  *s = clb_context_check(ctx, call);
  if (*s) return NULL;
  if (!given || !result) {
    *s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "%s: %s is NULL", call, given ? name : "desc");
    return NULL;
  }
  *s = clb_take_struct(&ctx->error, "clb_linear_desc", &desc, sizeof desc, given, size);
  if (*s) return NULL;
  clb_problem *p = calloc(1, sizeof *p);
  if (!p) {
    *s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "%s: no memory", call);
    return NULL;
  }
  p->kind = CLB_LINEAR;
  p->storage = (int32_t)desc.storage;
  p->arithmetic = (int32_t)desc.arithmetic;
  p->accumulate = desc.accumulate != 0;
  *passes = desc.passes & ~CLB_MEASURE;
  *s = clb_linear_read(&desc, &p->linear, &ctx->error);
  return p;
}

clb_status clb_linear_create_sized(clb_context *ctx, const clb_linear_desc *desc, clb_op **op,
                                   size_t size) {
  unsigned passes = 0;
  clb_status s;
  if (op) *op = NULL;
  clb_problem *p = read_description(ctx, "clb_linear_create", desc, size, op, "op", &passes, &s);
  if (!s) s = clb_linear_make(ctx, p, passes, op);
  free(p);
  return s;
}

clb_status clb_linear_measure_sized(clb_context *ctx, const clb_linear_desc *desc,
                                    clb_linear_sizes *sizes, size_t size) {
  unsigned passes;
  clb_status s;
  clb_problem *p =
      read_description(ctx, "clb_linear_measure", desc, size, sizes, "sizes", &passes, &s);
  if (sizes) *sizes = (clb_linear_sizes){0, 0, 0};
  if (!s) *sizes = (clb_linear_sizes){p->linear.in.dim, p->linear.out.dim, p->linear.n_weights};
  free(p);
  return s;
}

clb_status clb_linear_forward(clb_op *op, int64_t n, clb_rows x, clb_rows w, clb_rows z) {
  return clb_linear_run(op, CLB_FORWARD, n, (const clb_rows[]){x, w, z});
}

clb_status clb_linear_backward(clb_op *op, int64_t n, clb_rows x, clb_rows w, clb_rows g,
                               clb_rows g_x, clb_rows g_w) {
  return clb_linear_run(op, CLB_BACKWARD, n, (const clb_rows[]){x, w, g, g_x, g_w});
}

clb_status clb_linear_double_backward(clb_op *op, int64_t n, clb_rows x, clb_rows w, clb_rows g,
                                      clb_rows a, clb_rows c, clb_rows d_x, clb_rows d_w,
                                      clb_rows d_g) {
  return clb_linear_run(op, CLB_DOUBLE_BACKWARD, n,
                        (const clb_rows[]){x, w, g, a, c, d_x, d_w, d_g});
}
