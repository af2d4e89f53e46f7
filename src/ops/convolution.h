/* src/ops/convolution.h - what stands behind an op that is a graph convolution, and a call of it on
   its way. */
#ifndef CLB_SRC_OPS_CONVOLUTION_H
#define CLB_SRC_OPS_CONVOLUTION_H

#include "src/ops/graph.h"

/* What follows other things in the workspace starts on a line of memory. */
enum { CLB_LINE = 256 };
static inline int64_t clb_align_256(int64_t bytes) {
  return (bytes + CLB_LINE - 1) / CLB_LINE * CLB_LINE;
}

/* An op with the passes of the bit set, tuned where tune is not NULL: desc has been checked to be
   there, its own passes are not read. */
clb_status clb_convolution_make(clb_context *ctx, const clb_convolution_desc *desc, unsigned passes,
                                clb_tuner tune, clb_op **op);
/* A pass with the rows of its call. */
clb_status clb_convolution_run(clb_op *op, clb_pass pass, clb_graph *graph, const clb_rows *rows,
                               clb_buffer *workspace);

/* Bytes of workspace: pieces of rows of results of z, and of gradients of x; for one edge,
   gradients of x and of weights that all edges share. */
typedef struct {
  int64_t z, x, edge_x, edge_w;
} clb_convolution_needs;

/* Operands in the order of the calls and of the kernels' arguments. */
typedef struct {
  clb_op *op;
  clb_pass pass;
  clb_graph *graph;
  clb_operand operand[CLB_MAX_OPERANDS];
  int n_operands;
  clb_memory workspace;
  clb_convolution_needs needs;
} clb_convolution_call;

#endif
