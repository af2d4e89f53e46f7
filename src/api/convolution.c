/* src/api/convolution.c - the calls of the graph convolution. */
#include "src/ops/convolution/convolution.h"
#include "src/tuning/autotune.h"

clb_status clb_convolution_create(clb_context *ctx, const clb_convolution_desc *desc, clb_op **op) {
  clb_status s = clb_context_check(ctx);
  if (op) *op = NULL;
  if (s) return s;
  if (!desc || !op)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_convolution_create: %s is NULL",
                    desc ? "op" : "desc");
  return clb_convolution_make(ctx, desc, desc->product.passes & ~CLB_MEASURE,
                              clb_tuner_asked(ctx, desc->product.passes), op);
}

clb_status clb_convolution_forward(clb_op *op, clb_graph *graph, clb_rows x, clb_rows y, clb_rows w,
                                   clb_rows z, clb_buffer *workspace) {
  return clb_convolution_run(op, CLB_FORWARD, graph, (const clb_rows[]){x, y, w, z}, workspace);
}

clb_status clb_convolution_backward(clb_op *op, clb_graph *graph, clb_rows x, clb_rows y,
                                    clb_rows w, clb_rows g, clb_rows g_x, clb_rows g_y,
                                    clb_rows g_w, clb_buffer *workspace) {
  return clb_convolution_run(op, CLB_BACKWARD, graph, (const clb_rows[]){x, y, w, g, g_x, g_y, g_w},
                             workspace);
}

clb_status clb_convolution_double_backward(clb_op *op, clb_graph *graph, clb_rows x, clb_rows y,
                                           clb_rows w, clb_rows g, clb_rows a, clb_rows b,
                                           clb_rows c, clb_rows d_x, clb_rows d_y, clb_rows d_w,
                                           clb_rows d_g, clb_buffer *workspace) {
  return clb_convolution_run(op, CLB_DOUBLE_BACKWARD, graph,
                             (const clb_rows[]){x, y, w, g, a, b, c, d_x, d_y, d_w, d_g},
                             workspace);
}
