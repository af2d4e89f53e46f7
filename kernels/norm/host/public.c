/* kernels/norm/host/public.c - the calls of norms. */
#include "kernels/norm/host/rms_norm.h"

#include <stdlib.h>

#include "kernels/host/description.h"
#include "src/tuning/autotune.h"

static clb_status read_description(const clb_description *d, unsigned *passes, clb_problem **p) {
  clb_rms_norm_desc desc;
  const clb_status s = clb_description_take(d, &desc, sizeof desc, CLB_RMS_NORM, p);
  if (s) return s;
  clb_problem_set_types(*p, desc.storage, desc.arithmetic, desc.accumulate);
  *passes = desc.passes;
  return clb_rms_norm_read(&desc, &(*p)->rms_norm, &d->ctx->error);
}

clb_status clb_rms_norm_create_sized(clb_context *ctx, const clb_rms_norm_desc *desc, clb_op **op,
                                     size_t size) {
  clb_tuner tuner;
  unsigned passes = 0;
  clb_problem *p;
  if (op) *op = NULL;
  clb_status s = read_description(
      &(clb_description){ctx, "clb_rms_norm_create", "clb_rms_norm_desc", desc, size, op, "op"},
      &passes, &p);
  if (!s)
    s = clb_rms_norm_make(ctx, p, passes & ~CLB_MEASURE,
                          clb_tuner_for(ctx, passes, &clb_test_run_of_norm, &tuner), op);
  free(p);
  return s;
}

clb_status clb_rms_norm_measure_sized(clb_context *ctx, const clb_rms_norm_desc *desc,
                                      clb_rms_norm_sizes *sizes, size_t size) {
  unsigned passes;
  clb_problem *p;
  clb_status s =
      read_description(&(clb_description){ctx, "clb_rms_norm_measure", "clb_rms_norm_desc", desc,
                                          size, sizes, "sizes"},
                       &passes, &p);
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
