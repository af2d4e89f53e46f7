/* src/ops/layers/call.h - how the ops of layers.h are created, and their operands checked and
   passed to kernels. */
#ifndef CLB_SRC_OPS_LAYERS_CALL_H
#define CLB_SRC_OPS_LAYERS_CALL_H

#include "src/ops/graph.h"

/* A zeroed problem; NULL: no memory, and the error is set. */
clb_problem *clb_layer_problem(clb_context *ctx, int32_t kind, clb_dtype storage,
                               clb_dtype arithmetic);
/* Compiles the passes of the bit set; frees the problem, which may be NULL. */
clb_status clb_layer_create(clb_context *ctx, clb_problem *p, unsigned passes, clb_op **op);
/* Uploads numbers as `type` to the device; does nothing where the device only compiles. On failure
   the op is destroyed. */
clb_status clb_layer_upload(clb_op **op, clb_dtype type, const double *from, int64_t n,
                            clb_memory *to);
clb_schedule clb_layer_schedule_of(const clb_op *op, int pass);

enum { CLB_MAX_ARGS = 24 };
typedef enum { CLB_IN, CLB_OUT, CLB_OPTIONAL_OUT } clb_role;

/* One call: begin, then arguments in the kernel's order, then launch, which reports the first
   error. */
typedef struct {
  clb_op *op;
  int64_t n; /* rows of operands */
  clb_arg arg[CLB_MAX_ARGS];
  int n_args;
  clb_status status;
} clb_layer_call;
clb_layer_call clb_call_begin(clb_op *op, int32_t kind, int64_t n, int64_t units);
void clb_call_rows(clb_layer_call *c, const char *name, clb_dtype type, int64_t columns,
                   clb_rows rows, clb_role role);
/* int32 numbers, one per row: buffer and offset. */
void clb_call_numbers(clb_layer_call *c, const char *name, clb_rows numbers);
/* What clb_received, clb_ends and its species declare. Species: of all atoms of the graph. */
void clb_call_received(clb_layer_call *c, const clb_graph *graph);
void clb_call_species(clb_layer_call *c, const clb_graph *graph, clb_rows species);
void clb_call_ends(clb_layer_call *c, const clb_graph *graph, clb_rows species);
void clb_call_argument(clb_layer_call *c, clb_arg a);
void clb_call_memory(clb_layer_call *c, const clb_memory *m);
void clb_call_i32(clb_layer_call *c, int64_t x);
void clb_call_i64(clb_layer_call *c, int64_t x);
void clb_call_real(clb_layer_call *c, double x); /* of the op's arithmetic */
/* Launches nothing if the call has 0 work items. */
clb_status clb_call_launch(clb_layer_call *c, int pass);

#endif
