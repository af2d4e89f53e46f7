/* src/ops/convolution_vectors.h - edge vectors in the place of a convolution's y and, where weights
   are splines, of lengths. */
#ifndef CLB_SRC_OPS_CONVOLUTION_VECTORS_H
#define CLB_SRC_OPS_CONVOLUTION_VECTORS_H

#include "src/ops/convolution.h"

typedef struct clb_convolution_vectors clb_convolution_vectors;

/* p: the convolution's problem, of rows of y (and of lengths). */
clb_status clb_convolution_vectors_create(clb_context *ctx, const clb_convolution_desc *desc,
                                          unsigned passes, clb_tuner tune, const clb_problem *p,
                                          clb_convolution_vectors **vectors);
void clb_convolution_vectors_destroy(clb_convolution_vectors **vectors);

/* That the splines are read from, if there are any. */
clb_status clb_convolution_vectors_set_table(const clb_convolution_vectors *v, clb_buffer *table,
                                             int64_t offset);

/* Bytes at the end of the workspace, which starts at a multiple of 256 bytes of it. */
int64_t clb_convolution_vectors_bytes(const clb_convolution_vectors *v, clb_pass pass,
                                      int64_t n_edges);

/* The caller's rows while those of the workspace stand in their places. */
typedef struct {
  clb_rows vector, along, gradient; /* v, h and g_v (or d_v); no buffer: not there */
  clb_buffer rows;
} clb_convolution_vector_rows;

/* Takes its bytes off the call's workspace and puts rows of harmonics and lengths in the places of
   vectors and weights. */
clb_status clb_convolution_vectors_before(const clb_convolution_vectors *v, clb_convolution_call *c,
                                          clb_convolution_vector_rows *kept);
/* Gradients of these rows become those of vectors. */
clb_status clb_convolution_vectors_after(const clb_convolution_vectors *v,
                                         const clb_convolution_call *c,
                                         const clb_convolution_vector_rows *kept);

#endif
