/* kernels/norm/host/public.c - the calls of norms. */
#include "kernels/norm/host/rms_norm.h"

#include <stdlib.h>

#include "src/base/sizes.h"
#include "src/tuning/autotune.h"

/* The problem of a description, to be freed; NULL: *s says why. */
static clb_problem *read_description(clb_context *ctx, const char *call,
                                     const clb_rms_norm_desc *given, size_t size,
                                     const void *result, const char *name, unsigned *passes,
                                     clb_status *s) {
  clb_rms_norm_desc desc;
  *s = clb_context_check(ctx, call);
  if (*s) return NULL;
  if (!given || !result) {
    *s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "%s: %s is NULL", call, given ? name : "desc");
    return NULL;
  }
  *s = clb_take_struct(&ctx->error, "clb_rms_norm_desc", &desc, sizeof desc, given, size);
  if (*s) return NULL;
  clb_problem *p = calloc(1, sizeof *p);
  if (!p) {
    *s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "%s: no memory", call);
    return NULL;
  }
  p->kind = CLB_RMS_NORM;
  p->storage = (int32_t)desc.storage;
  p->arithmetic = (int32_t)desc.arithmetic;
  p->accumulate = desc.accumulate != 0;
  *passes = desc.passes;
  *s = clb_rms_norm_read(&desc, &p->rms_norm, &ctx->error);
  return p;
}

clb_status clb_rms_norm_create_sized(clb_context *ctx, const clb_rms_norm_desc *desc, clb_op **op,
                                     size_t size) {
  clb_tuner tuner;
  unsigned passes = 0;
  clb_status s;
  if (op) *op = NULL;
  clb_problem *p = read_description(ctx, "clb_rms_norm_create", desc, size, op, "op", &passes, &s);
  if (!s)
    s = clb_rms_norm_make(ctx, p, passes & ~CLB_MEASURE,
                          clb_tuner_for(ctx, passes, &clb_test_run_of_norm, &tuner), op);
  free(p);
  return s;
}

clb_status clb_rms_norm_measure_sized(clb_context *ctx, const clb_rms_norm_desc *desc,
                                      clb_rms_norm_sizes *sizes, size_t size) {
  unsigned passes;
  clb_status s;
  clb_problem *p =
      read_description(ctx, "clb_rms_norm_measure", desc, size, sizes, "sizes", &passes, &s);
  if (sizes) *sizes = (clb_rms_norm_sizes){0, 0};
  if (!s) *sizes = (clb_rms_norm_sizes){p->rms_norm.irreps.dim, clb_rms_norm_weights(&p->rms_norm)};
  free(p);
  return s;
}

clb_status clb_rms_norm_forward(clb_op *op, int64_t n, clb_rows x, clb_rows w, clb_rows y) {
  return clb_rms_norm_run(op, CLB_FORWARD, n, (const clb_rows[]){x, w, y});
}

clb_status clb_rms_norm_backward(clb_op *op, int64_t n, clb_rows x, clb_rows w, clb_rows g,
                                 clb_rows g_x, clb_rows g_w) {
  return clb_rms_norm_run(op, CLB_BACKWARD, n, (const clb_rows[]){x, w, g, g_x, g_w});
}

clb_status clb_rms_norm_double_backward(clb_op *op, int64_t n, clb_rows x, clb_rows w, clb_rows g,
                                        clb_rows a, clb_rows c, clb_rows d_x, clb_rows d_w,
                                        clb_rows d_g) {
  return clb_rms_norm_run(op, CLB_DOUBLE_BACKWARD, n,
                          (const clb_rows[]){x, w, g, a, c, d_x, d_w, d_g});
}
