/* kernels/convolution/host/frames.c - the frames of a convolution's edges, from their vectors, and
   gradients of vectors from torques. */
#include "kernels/convolution/host/frames.h"

#include <stdlib.h>

#include "kernels/convolution/frame.h"
#include "src/runtime/call.h"

struct clb_convolution_frames {
  clb_op *op; /* forward: rows; backward: gradients; double backward: tangents */
};

bool clb_convolution_in_frame(const clb_op *convolution, clb_pass pass) {
  return convolution->kernel[pass] && convolution->choice[pass].schedule.convolution.frame;
}

clb_status clb_convolution_frames_create(const clb_op *convolution, bool adds, int degrees,
                                         bool lengths, clb_convolution_frames **frames) {
  clb_context *ctx = convolution->ctx;
  const clb_problem *of = &convolution->problem;
  unsigned in_frame = 0, passes = CLB_PASS_BIT(CLB_FORWARD);
  for (int pass = 0; pass < CLB_PASSES; pass++)
    in_frame |= clb_convolution_in_frame(convolution, (clb_pass)pass) ? CLB_PASS_BIT(pass) : 0;
  *frames = NULL;
  if (!in_frame) return CLB_OK;
  if (in_frame >> CLB_BACKWARD && of->tensor_product.gradients & CLB_OPERAND_Y)
    passes |= CLB_PASS_BIT(CLB_BACKWARD);
  if (of->tensor_product.incoming & CLB_OPERAND_Y)
    passes |= in_frame & CLB_PASS_BIT(CLB_DOUBLE_BACKWARD);
  clb_problem *p = calloc(1, sizeof *p);
  clb_convolution_frames *f = *frames = calloc(1, sizeof *f);
  clb_status s = p && f
                     ? CLB_OK
                     : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_convolution_create: no memory");
  if (!s) {
    p->kind = CLB_EDGE_FRAME;
    p->storage = of->storage;
    p->arithmetic = of->arithmetic;
    p->accumulate = adds;
    p->edge_frame.l = clb_frame_degree(&of->tensor_product);
    p->edge_frame.harmonics = degrees <= p->edge_frame.l + 1 ? degrees : 0;
    p->edge_frame.lengths = lengths;
    s = clb_op_create(ctx, p, passes, NULL, &f->op);
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

/* Rows from number `first` on. */
static void call_rows(clb_call *c, const clb_rows *r, int64_t columns, int64_t first) {
  clb_operand o = {.rows = *r, .columns = columns};
  o.rows.offset += first * clb_operand_stride(&o);
  clb_call_operand(c, &o);
}

static clb_call start(const clb_convolution_frames *f, int64_t n) {
  clb_call c = clb_call_start(f->op->ctx);
  c.op = f->op;
  clb_call_i64(&c, n);
  return c;
}

bool clb_convolution_frames_harmonics(const clb_convolution_frames *f) {
  return f->op->problem.edge_frame.harmonics;
}

clb_status clb_convolution_frames_run(const clb_convolution_frames *f, int64_t n,
                                      const clb_rows *vectors, const clb_rows *out,
                                      const clb_rows *harmonics, const clb_rows *lengths) {
  const clb_edge_frame_problem *p = &f->op->problem.edge_frame;
  clb_call c = start(f, n);
  call_rows(&c, vectors, 3, 0);
  call_rows(&c, out, clb_convolution_frames_columns(f), 0);
  if (p->harmonics) call_rows(&c, harmonics, (int64_t)p->harmonics * p->harmonics, 0);
  if (p->lengths) call_rows(&c, lengths, 1, 0);
  return clb_call_run(&c, CLB_FORWARD);
}

clb_status clb_convolution_frames_tangents(const clb_convolution_frames *f, int64_t n,
                                           const clb_rows *vectors, const clb_rows *tangents,
                                           const clb_rows *out) {
  clb_call c = start(f, n);
  call_rows(&c, vectors, 3, 0);
  call_rows(&c, tangents, 3, 0);
  call_rows(&c, out, CLB_TANGENT_SIZE, 0);
  return clb_call_run(&c, CLB_DOUBLE_BACKWARD);
}

clb_status clb_convolution_frames_torques(const clb_convolution_frames *f, int64_t e0, int64_t e1,
                                          const clb_rows *vectors, const clb_torques *torques,
                                          const clb_rows *gradient) {
  clb_call c = start(f, e1 - e0);
  call_rows(&c, vectors, 3, e0);
  clb_call_memory(&c, torques->memory);
  clb_call_i64(&c, torques->at);
  clb_call_i64(&c, torques->pitch);
  clb_call_i32(&c, torques->roles);
  clb_call_i32(&c, torques->columns);
  call_rows(&c, gradient, 3, e0);
  return clb_call_run(&c, CLB_BACKWARD);
}
