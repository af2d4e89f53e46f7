/* kernels/convolution/host/convolution_parts.h - what a graph convolution's op consists of. */
#ifndef CLB_KERNELS_CONVOLUTION_HOST_CONVOLUTION_PARTS_H
#define CLB_KERNELS_CONVOLUTION_HOST_CONVOLUTION_PARTS_H

#include "kernels/convolution/host/frames.h"
#include "kernels/convolution/host/messages.h"
#include "kernels/convolution/host/vectors.h"
#include "kernels/graph/host/row_sum.h"

typedef struct {
  clb_op *results; /* computes d_g of the double backward pass, unless that walks once, when it has
                      no kernel; NULL: not requested */
  clb_row_sum *x, *z; /* sums gradients of x by sender, and partial sums of split rows of z; NULL:
                         not needed */
  clb_op *y, *r;      /* sum the roles' shares of gradients of y and of lengths; NULL: not needed */
  clb_op *weights;    /* sums gradients of shared weights over edges; NULL: not needed */
  clb_convolution_vectors *vectors; /* NULL: y is given */
  clb_convolution_messages
      *messages; /* NULL: the product is channel-wise; else of the above only `vectors` is used */
  clb_convolution_table table;
} clb_convolution_parts;

/* Whether gradients of z come from the op's own kernel, with all others. */
bool clb_convolution_walks_once(const clb_op *op, clb_pass pass);

/* Fails unless op is a convolution with this pass, and the graph one of its context. */
clb_status clb_convolution_check_call(clb_op *op, clb_pass pass, const clb_graph *g);

#endif
