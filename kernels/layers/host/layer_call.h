/* kernels/layers/host/layer_call.h - how the ops of layers.h are created, and their operands
   checked and passed to kernels. */
#ifndef CLB_KERNELS_LAYERS_HOST_LAYER_CALL_H
#define CLB_KERNELS_LAYERS_HOST_LAYER_CALL_H

#include "kernels/graph/host/graph.h"
#include "src/runtime/call.h"

/* A zeroed problem; NULL: no memory, and the error is set. */
clb_problem *clb_layer_problem(clb_context *ctx, int32_t kind, clb_dtype storage,
                               clb_dtype arithmetic);
/* Compiles the passes of the bit set; frees the problem, which may be NULL. */
clb_status clb_layer_create(clb_context *ctx, clb_problem *p, unsigned passes, clb_op **op);
/* Uploads numbers as `type` to the device; does nothing where the device only compiles. On failure
   the op is destroyed. */
clb_status clb_layer_upload(clb_op **op, clb_dtype type, const double *from, int64_t n,
                            clb_memory *to);
/* Other numbers in place of those that were uploaded, for calls from now on. */
clb_status clb_layer_write(clb_op *op, clb_dtype type, const double *from, int64_t n,
                           const clb_memory *to);
/* What clb_layer_add_training does for a radial basis. */
clb_status clb_radial_add_training(clb_op *op);
clb_schedule clb_layer_schedule_of(const clb_op *op, int pass);

/* What clb_received, clb_ends and its species declare. Species: of all atoms of the graph. */
void clb_call_received(clb_call *c, const clb_graph *graph);
void clb_call_species(clb_call *c, const clb_graph *graph, clb_rows species);
void clb_call_ends(clb_call *c, const clb_graph *graph, clb_rows species);

#endif
