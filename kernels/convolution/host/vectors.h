/* kernels/convolution/host/vectors.h - edge vectors in place of a convolution's y and, where
   weights are splines, of lengths. */
#ifndef CLB_KERNELS_CONVOLUTION_HOST_VECTORS_H
#define CLB_KERNELS_CONVOLUTION_HOST_VECTORS_H

#include "kernels/convolution/host/convolution.h"
#include "kernels/convolution/host/frames.h"

typedef struct {
  const clb_op *op;                     /* the convolution */
  clb_convolution_frames *frames;       /* NULL: not needed */
  const clb_convolution_shared *shared; /* NULL: forward and backward make their own */
  clb_op *harmonics, *adding;           /* adding: accumulates into d_v; NULL: not needed */
  clb_op *lengths, *lengths_along;      /* NULL: not needed */
  clb_op *first;       /* a convolution that computes only g_y (and g_r); NULL: not needed */
  int64_t dim, stride; /* of rows of y; stride: a multiple of 16 bytes */
  int64_t bytes;       /* per element */
} clb_convolution_vectors;

/* op: the convolution, of rows of y (and of lengths), or of edges' frames, as its passes want. */
clb_status clb_convolution_vectors_create(const clb_op *op, const clb_convolution_table *grid,
                                          unsigned passes, const clb_tuner *tuner,
                                          clb_convolution_vectors **vectors);
void clb_convolution_vectors_destroy(clb_convolution_vectors **vectors);

/* Sets the table of the splines, if there are any. */
clb_status clb_convolution_vectors_set_table(const clb_convolution_vectors *v,
                                             const double *values);

/* Has forward and backward read what is shared instead of making it themselves. */
void clb_convolution_vectors_share(clb_convolution_vectors *v,
                                   const clb_convolution_shared *shared);

/* Bytes that it uses at the end of the workspace, from an offset that is a multiple of 256. */
int64_t clb_convolution_vectors_bytes(const clb_convolution_vectors *v, clb_pass pass,
                                      int64_t n_edges);
/* Bytes of the convolution's own part, of which it uses the first before the convolution starts. */
int64_t clb_convolution_vectors_bytes_before(const clb_convolution_vectors *v, clb_pass pass,
                                             const clb_graph *graph, int64_t edges);

/* Keeps the caller's rows while rows in the workspace replace them. */
struct clb_convolution_vector_rows {
  clb_rows vector, along, gradient; /* v, h and g_v (or d_v); no buffer: not there */
  clb_rows torques;                 /* where roles leave them, not in the workspace; or no buffer */
  clb_buffer rows;
};

/* Takes its bytes from the end of the call's workspace and replaces vectors and weights by rows of
   harmonics and lengths, which it computes. */
clb_status clb_convolution_vectors_before(const clb_convolution_vectors *v, clb_convolution_call *c,
                                          clb_convolution_vector_rows *kept);
/* Whether a pass leaves torques to the caller. */
bool clb_convolution_vectors_leaves(const clb_convolution_vectors *v, clb_pass pass);
/* Gradients of the vectors of edges e0 ... e1 - 1, where the pass works in the frame. */
clb_status clb_convolution_vectors_torques(const clb_convolution_vectors *v,
                                           const clb_convolution_vector_rows *kept, int64_t e0,
                                           int64_t e1, const clb_torques *torques);
/* Turns gradients by these rows into gradients by vectors. */
clb_status clb_convolution_vectors_after(const clb_convolution_vectors *v,
                                         const clb_convolution_call *c,
                                         const clb_convolution_vector_rows *kept);

#endif
