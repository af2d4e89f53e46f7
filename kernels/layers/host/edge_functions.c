/* kernels/layers/host/edge_functions.c - functions of edges: the calls. */
#include "kernels/layers/host/edge_functions.h"

#include "kernels/layers/host/layer_call.h"

static clb_dtype type_of(const clb_op *op) { return (clb_dtype)op->problem.storage; }

/* ---- Gaussians ---- */

clb_status clb_gaussians_create(clb_context *ctx, clb_dtype type, int64_t columns, double r_max,
                                double width, clb_op **op) {
  *op = NULL;
  if (columns < 2 || columns > INT32_MAX || !(r_max > 0) || !(width > 0))
    return clb_fail(
        &ctx->error, CLB_ERROR_ARGUMENT,
        "gaussians: columns is %lld, r_max %g, width %g; it must be at least 2, and above 0",
        (long long)columns, r_max, width);
  clb_problem *p = clb_layer_problem(ctx, CLB_GAUSSIANS, type, type);
  const double step = r_max / (double)(columns - 1), deviation = width * step;
  if (p) p->gaussians = (clb_gaussians_problem){columns, step, -0.5 / (deviation * deviation)};
  return clb_layer_create(ctx, p, CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD), op);
}

clb_status clb_gaussians_forward(clb_op *op, int64_t n, clb_rows r, clb_rows b) {
  clb_call c = clb_call_begin(op, CLB_GAUSSIANS, n, n);
  if (c.status) return c.status;
  clb_call_rows(&c, "r", type_of(op), 1, r, CLB_IN);
  clb_call_rows(&c, "b", type_of(op), op->problem.gaussians.columns, b, CLB_OUT);
  return clb_call_run(&c, CLB_FORWARD);
}

clb_status clb_gaussians_backward(clb_op *op, int64_t n, clb_rows r, clb_rows g_b, clb_rows g_r,
                                  bool add) {
  clb_call c = clb_call_begin(op, CLB_GAUSSIANS, n, n);
  if (c.status) return c.status;
  clb_call_rows(&c, "r", type_of(op), 1, r, CLB_IN);
  clb_call_rows(&c, "g_b", type_of(op), op->problem.gaussians.columns, g_b, CLB_IN);
  clb_call_rows(&c, "g_r", type_of(op), 1, g_r, CLB_OUT);
  clb_call_i32(&c, add);
  return clb_call_run(&c, CLB_BACKWARD);
}

/* ---- rotations ---- */

clb_status clb_edge_rotation_create(clb_context *ctx, clb_dtype type, int l, int m, bool adds,
                                    unsigned passes, clb_op **op) {
  clb_problem *p = clb_layer_problem(ctx, CLB_EDGE_ROTATION, type, type);
  if (p) p->edge_rotation = (clb_edge_rotation_problem){l, m};
  if (p) p->accumulate = adds;
  return clb_layer_create(ctx, p, passes, op);
}

static int64_t columns_of(const clb_op *op) {
  const clb_edge_rotation_problem *r = &op->problem.edge_rotation;
  return clb_edge_rotation_columns(r->l, r->m);
}

clb_status clb_edge_rotation_forward(clb_op *op, int64_t n, clb_rows v, clb_rows D) {
  clb_call c = clb_call_begin(op, CLB_EDGE_ROTATION, n, n);
  if (c.status) return c.status;
  clb_call_rows(&c, "v", type_of(op), 3, v, CLB_IN);
  clb_call_rows(&c, "D", type_of(op), columns_of(op), D, CLB_OUT);
  return clb_call_run(&c, CLB_FORWARD);
}

clb_status clb_edge_rotation_backward(clb_op *op, int64_t n, clb_rows v, clb_rows g_D,
                                      clb_rows g_v) {
  clb_call c = clb_call_begin(op, CLB_EDGE_ROTATION, n, n);
  if (c.status) return c.status;
  clb_call_rows(&c, "v", type_of(op), 3, v, CLB_IN);
  clb_call_rows(&c, "g_D", type_of(op), columns_of(op), g_D, CLB_IN);
  clb_call_rows(&c, "g_v", type_of(op), 3, g_v, CLB_OUT);
  return clb_call_run(&c, CLB_BACKWARD);
}
