/* src/ops/convolution/frames.c - the frames of a convolution's edges, from their vectors, and
   gradients of vectors from torques. */
#include "src/ops/convolution/frames.h"

#include <stdlib.h>

#include "kernels/convolution/frame.h"

struct clb_convolution_frames {
  clb_op *op; /* forward: rows; backward: gradients */
};

bool clb_convolution_in_frame(const clb_op *convolution, clb_pass pass) {
  return convolution->kernel[pass] && convolution->choice[pass].schedule.convolution.frame;
}

clb_status clb_convolution_frames_create(const clb_op *convolution,
                                         clb_convolution_frames **frames) {
  clb_context *ctx = convolution->ctx;
  const clb_problem *of = &convolution->problem;
  bool some = false, back = clb_convolution_in_frame(convolution, CLB_BACKWARD) &&
                            of->tensor_product.gradients & CLB_OPERAND_Y;
  for (int pass = 0; pass < CLB_PASSES; pass++)
    some |= clb_convolution_in_frame(convolution, (clb_pass)pass);
  *frames = NULL;
  if (!some) return CLB_OK;
  clb_problem *p = calloc(1, sizeof *p);
  clb_convolution_frames *f = *frames = calloc(1, sizeof *f);
  clb_status s = p && f
                     ? CLB_OK
                     : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_convolution_create: no memory");
  if (!s) {
    p->kind = CLB_EDGE_FRAME;
    p->storage = of->storage;
    p->arithmetic = of->arithmetic;
    p->accumulate = of->accumulate;
    p->edge_frame = (clb_edge_frame_problem){clb_frame_degree(&of->tensor_product),
                                             of->convolution.spline ? 3 : 2};
    s = clb_op_create(ctx, p, CLB_PASS_BIT(CLB_FORWARD) | (back ? CLB_PASS_BIT(CLB_BACKWARD) : 0),
                      NULL, &f->op);
  }
  free(p);
  return s; /* the convolution that it is a part of destroys it */
}

void clb_convolution_frames_destroy(clb_convolution_frames **frames) {
  if (!*frames) return;
  clb_op_destroy(&(*frames)->op);
  free(*frames);
  *frames = NULL;
}

int64_t clb_convolution_frames_columns(const clb_convolution_frames *f) {
  return clb_frame_size(f->op->problem.edge_frame.l);
}

/* buffer, offset, stride of rows from number `first` on. */
static void put_rows(clb_arg *args, const clb_rows *r, int64_t columns, int64_t first) {
  int64_t stride = r->stride == CLB_DENSE ? columns : r->stride;
  args[0] = (clb_arg){.type = IR_VOID, .memory = &r->buffer->memory};
  args[1] = (clb_arg){.type = IR_I64, .i64 = r->offset + first * stride};
  args[2] = (clb_arg){.type = IR_I64, .i64 = stride};
}

static clb_status launch(const clb_convolution_frames *f, clb_pass pass, int64_t n,
                         const clb_arg *args, int n_args) {
  const clb_kernel *kernel = f->op->kernel[pass];
  return n ? clb_launch(f->op->ctx, kernel, (n - 1) / kernel->ir.rows + 1, args, n_args) : CLB_OK;
}

clb_status clb_convolution_frames_run(const clb_convolution_frames *f, int64_t n,
                                      const clb_rows *vectors, const clb_rows *out) {
  clb_arg args[7] = {{.type = IR_I64, .i64 = n}};
  put_rows(args + 1, vectors, 3, 0);
  put_rows(args + 4, out, clb_convolution_frames_columns(f), 0);
  return launch(f, CLB_FORWARD, n, args, 7);
}

clb_status clb_convolution_frames_torques(const clb_convolution_frames *f, int64_t e0, int64_t e1,
                                          const clb_rows *vectors, const clb_memory *shares,
                                          int64_t at, int32_t roles, const clb_rows *gradient) {
  clb_arg args[10] = {{.type = IR_I64, .i64 = e1 - e0}};
  put_rows(args + 1, vectors, 3, e0);
  args[4] = (clb_arg){.type = IR_VOID, .memory = shares};
  args[5] = (clb_arg){.type = IR_I64, .i64 = at};
  args[6] = (clb_arg){.type = IR_I32, .i32 = roles};
  put_rows(args + 7, gradient, 3, e0);
  return launch(f, CLB_BACKWARD, e1 - e0, args, 10);
}
