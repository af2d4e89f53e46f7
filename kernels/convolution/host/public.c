/* kernels/convolution/host/public.c - the calls of the graph convolution. */
#include "kernels/convolution/host/convolution.h"

#include <stdlib.h>

#include "src/base/sizes.h"
#include "src/problem/irreps.h"
#include "src/tuning/autotune.h"

/* The product is a struct of its own within the description, so that both can grow. */
static clb_status take(clb_context *ctx, const clb_convolution_desc *given, size_t size,
                       size_t product_size, clb_convolution_desc *desc) {
  enum { PRODUCT = sizeof desc->product };
  if (product_size > size)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_convolution_create: desc has %zu bytes, fewer than the %zu of its product",
                    size, product_size);
  clb_status s = clb_take_struct(&ctx->error, "clb_tensor_product_desc", &desc->product, PRODUCT,
                                 &given->product, product_size);
  return s ? s
           : clb_take_struct(&ctx->error, "clb_convolution_desc", (char *)desc + PRODUCT,
                             sizeof *desc - PRODUCT, (const char *)given + product_size,
                             size - product_size);
}

clb_status clb_convolution_create_sized(clb_context *ctx, const clb_convolution_desc *given,
                                        clb_op **op, size_t size, size_t product_size) {
  clb_tuner tuner;
  clb_convolution_desc d;
  clb_status s = clb_context_check(ctx, __func__);
  if (op) *op = NULL;
  if (s) return s;
  if (!given || !op)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_convolution_create: %s is NULL",
                    given ? "op" : "desc");
  s = take(ctx, given, size, product_size, &d);
  if (s) return s;
  clb_problem *p = calloc(1, sizeof *p);
  if (!p) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_convolution_create: no memory");
  s = clb_tensor_product_read(&d.product, &p->tensor_product, &ctx->error);
  if (!s) s = clb_convolution_fill(ctx, &d, p);
  const clb_convolution_table grid =
      clb_convolution_table_of(d.knots, d.first_knot, d.last_knot, d.break_at);
  const unsigned passes = d.product.passes;
  if (!s)
    s = clb_convolution_make(ctx, p, &grid, passes & ~CLB_MEASURE,
                             clb_tuner_for(ctx, passes, &clb_test_run_of_convolution, &tuner), op);
  free(p);
  return s;
}

/* Work is submitted for these numbers of nodes and edges. */
static clb_status run(clb_op *op, clb_pass pass, clb_graph *graph, const clb_rows *rows,
                      clb_buffer *workspace) {
  const clb_status s = clb_convolution_run(op, pass, graph, rows, workspace);
  return s ? s : clb_recording_watch(graph->ctx, &graph->counts);
}

clb_status clb_convolution_forward(clb_op *op, clb_graph *graph, clb_rows x, clb_rows y, clb_rows w,
                                   clb_rows z, clb_buffer *workspace) {
  return run(op, CLB_FORWARD, graph, (const clb_rows[]){x, y, w, z}, workspace);
}

clb_status clb_convolution_backward(clb_op *op, clb_graph *graph, clb_rows x, clb_rows y,
                                    clb_rows w, clb_rows g, clb_rows g_x, clb_rows g_y,
                                    clb_rows g_w, clb_buffer *workspace) {
  return run(op, CLB_BACKWARD, graph, (const clb_rows[]){x, y, w, g, g_x, g_y, g_w}, workspace);
}

clb_status clb_convolution_double_backward(clb_op *op, clb_graph *graph, clb_rows x, clb_rows y,
                                           clb_rows w, clb_rows g, clb_rows a, clb_rows b,
                                           clb_rows c, clb_rows d_x, clb_rows d_y, clb_rows d_w,
                                           clb_rows d_g, clb_buffer *workspace) {
  return run(op, CLB_DOUBLE_BACKWARD, graph,
             (const clb_rows[]){x, y, w, g, a, b, c, d_x, d_y, d_w, d_g}, workspace);
}
