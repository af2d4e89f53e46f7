/* kernels/convolution/host/messages.h - graph convolutions of products that are not channel-wise:
   messages of a block of edges at a time, then their sums. */
#ifndef CLB_KERNELS_CONVOLUTION_HOST_MESSAGES_H
#define CLB_KERNELS_CONVOLUTION_HOST_MESSAGES_H

#include "kernels/convolution/host/convolution.h"

typedef struct clb_convolution_messages clb_convolution_messages;

/* op: the convolution, whose problem says which results of nodes and edges there are; it gets the
   kernels of its product, for clb_op_source and the like. */
clb_status clb_convolution_messages_create(clb_op *op, unsigned passes, const clb_tuner *tuner,
                                           clb_convolution_messages **messages);
void clb_convolution_messages_destroy(clb_convolution_messages **messages);

/* Bytes that it uses at the start of the workspace. */
int64_t clb_convolution_messages_bytes(const clb_op *op, clb_pass pass, const clb_graph *graph);
clb_status clb_convolution_messages_run(const clb_convolution_messages *m,
                                        const clb_convolution_call *c);

#endif
