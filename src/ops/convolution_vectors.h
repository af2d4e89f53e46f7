/* src/ops/convolution_vectors.h - edge vectors in place of a convolution's y and, where weights are
   splines, of lengths. */
#ifndef CLB_SRC_OPS_CONVOLUTION_VECTORS_H
#define CLB_SRC_OPS_CONVOLUTION_VECTORS_H

#include "src/ops/convolution.h"

typedef struct clb_convolution_vectors clb_convolution_vectors;

/* p: the convolution's problem, in terms of y (and of lengths). */
clb_status clb_convolution_vectors_create(clb_context *ctx, const clb_convolution_desc *desc,
                                          unsigned passes, clb_tuner tune, const clb_problem *p,
                                          clb_convolution_vectors **vectors);
void clb_convolution_vectors_destroy(clb_convolution_vectors **vectors);

/* Sets the table of the splines, if there are any. */
clb_status clb_convolution_vectors_set_table(const clb_convolution_vectors *v, clb_buffer *table,
                                             int64_t offset);

/* Bytes that it uses at the end of the workspace, from an offset that is a multiple of 256. */
int64_t clb_convolution_vectors_bytes(const clb_convolution_vectors *v, clb_pass pass,
                                      int64_t n_edges);

/* Keeps the caller's rows while rows in the workspace replace them. */
typedef struct {
  clb_rows vector, along, gradient; /* v, h and g_v (or d_v); no buffer: not there */
  clb_buffer rows;
} clb_convolution_vector_rows;

/* Takes its bytes from the end of the call's workspace and replaces vectors and weights by rows of
   harmonics and lengths, which it computes. */
clb_status clb_convolution_vectors_before(const clb_convolution_vectors *v, clb_convolution_call *c,
                                          clb_convolution_vector_rows *kept);
/* Turns gradients by these rows into gradients by vectors. */
clb_status clb_convolution_vectors_after(const clb_convolution_vectors *v,
                                         const clb_convolution_call *c,
                                         const clb_convolution_vector_rows *kept);

#endif
