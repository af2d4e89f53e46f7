/* kernels/convolution/host/convolution.h - the parts of a graph convolution's op, and a call of it.
 */
#ifndef CLB_KERNELS_CONVOLUTION_HOST_CONVOLUTION_H
#define CLB_KERNELS_CONVOLUTION_HOST_CONVOLUTION_H

#include "kernels/convolution/host/table.h"
#include "kernels/graph/host/graph.h"

/* Each array in the workspace starts at a multiple of 256 bytes. */
enum { CLB_LINE = 256 };
static inline int64_t clb_align_256(int64_t bytes) {
  return (bytes + CLB_LINE - 1) / CLB_LINE * CLB_LINE;
}

/* Checks a description and fills a problem that has its tensor product: all the rest. */
clb_status clb_convolution_fill(clb_context *ctx, const clb_convolution_desc *desc, clb_problem *p);
/* Creates an op of such a problem, which changes, with the passes of the bit set, tuned if tuner is
   not NULL.  grid: without coefficients. */
clb_status clb_convolution_make(clb_context *ctx, clb_problem *p, const clb_convolution_table *grid,
                                unsigned passes, const clb_tuner *tuner, clb_op **op);
/* What depends on the vectors of edges alone: rows of frames, of harmonics (as irreps_y), and
   lengths, which the convolutions of a model share.  It is the owner's to make them before the
   first pass (kernels/convolution/host/frames.h). */
typedef struct {
  clb_rows frames, harmonics, lengths;
} clb_convolution_shared;
/* Elements of a row of frames of a convolution of vectors, whose problem changes, if its backward
   pass works there; else 0. */
int64_t clb_convolution_frame_columns(clb_context *ctx, clb_problem *p);
/* From now on op, for which the above is not 0, reads what is shared, which must outlive it, and
   not vectors, for which any rows of edges stand. In place of gradients of vectors there are rows
   of what its roles leave of each edge, of which clb_convolution_frames_torques makes them. */
void clb_convolution_share(clb_op *op, const clb_convolution_shared *shared);
/* Numbers of an edge that are sums over channels in a pass: gradients of y, or torques, and that of
   its length. */
int clb_convolution_edge_sums(const clb_op *op, clb_pass pass);
/* Roles that leave such sums; 0: none. */
int32_t clb_convolution_roles(const clb_op *op, clb_pass pass);
/* Whether the forward pass reads harmonics, not frames. */
bool clb_convolution_reads_harmonics(const clb_op *op);
/* Bytes of workspace with which a pass processes so many edges at a time. */
int64_t clb_convolution_bytes(const clb_op *op, clb_pass pass, const clb_graph *graph,
                              int64_t edges);
/* Runs a pass on the rows of its call. */
clb_status clb_convolution_run(clb_op *op, clb_pass pass, clb_graph *graph, const clb_rows *rows,
                               clb_buffer *workspace);

/* Bytes of workspace: for partial sums of split rows of z and of gradients of x; and per edge, for
   gradients of x and of shared weights, and the roles' shares of gradients of y. */
typedef struct {
  int64_t z, x, edge_x, edge_w, edge_y;
} clb_convolution_needs;

typedef struct clb_convolution_vector_rows clb_convolution_vector_rows;
/* Operands in the order of the calls and of the kernels' arguments. */
typedef struct {
  clb_op *op;
  clb_pass pass;
  clb_graph *graph;
  clb_operand operand[CLB_MAX_OPERANDS];
  int n_operands;
  clb_memory workspace;
  clb_convolution_needs needs;
  clb_convolution_vector_rows *vectors; /* what is kept of them; NULL: y is given */
} clb_convolution_call;

extern const clb_test_run_kind clb_test_run_of_convolution; /* how the tuner calls it */

#endif
