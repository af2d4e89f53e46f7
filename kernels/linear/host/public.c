/* kernels/linear/host/public.c - the calls of linear maps of irreps. */
#include "kernels/linear/host/linear.h"

#include <stdlib.h>

#include "kernels/host/description.h"

static clb_status read_description(const clb_description *d, unsigned *passes, clb_problem **p) {
  clb_linear_desc desc;
  const clb_status s = clb_description_take(d, &desc, sizeof desc, CLB_LINEAR, p);
  if (s) return s;
  clb_problem_set_types(*p, desc.storage, desc.arithmetic, desc.accumulate);
  *passes = desc.passes;
  return clb_linear_read(&desc, &(*p)->linear, &d->ctx->error);
}

clb_status clb_linear_create_sized(clb_context *ctx, const clb_linear_desc *desc, clb_op **op,
                                   size_t size) {
  unsigned passes = 0;
  clb_problem *p;
  if (op) *op = NULL;
  clb_status s = read_description(
      &(clb_description){ctx, "clb_linear_create", "clb_linear_desc", desc, size, op, "op"},
      &passes, &p);
  if (!s) s = clb_linear_make(ctx, p, passes & ~CLB_MEASURE, op);
  free(p);
  return s;
}

clb_status clb_linear_measure_sized(clb_context *ctx, const clb_linear_desc *desc,
                                    clb_linear_sizes *sizes, size_t size) {
  unsigned passes;
  clb_problem *p;
  clb_status s = read_description(
      &(clb_description){ctx, "clb_linear_measure", "clb_linear_desc", desc, size, sizes, "sizes"},
      &passes, &p);
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
