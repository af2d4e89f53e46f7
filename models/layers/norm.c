/* models/layers/norm.c - rows divided by the root of their mean square: Nequix's norm, and
   PyTorch's LayerNorm. */
#include <stdlib.h>

#include "models/layers/kinds.h"
#include "kernels/norm/host/rms_norm.h"

static clb_status create(clb_network *n, clb_layer *y, int gradients, unsigned passes,
                         clb_op **op) {
  const clb_norm *p = y->parameters;
  clb_problem *problem = calloc(1, sizeof *problem);
  if (!problem) return clb_network_no_memory(n);
  problem->kind = CLB_RMS_NORM;
  problem->storage = problem->arithmetic = (int32_t)n->type;
  problem->rms_norm = (clb_rms_norm_problem){.irreps = n->array[y->in[0]]->irreps,
                                             .layout = CLB_IR_MUL,
                                             .variant = p->layer ? CLB_RMS_PLAIN : CLB_RMS_NEQUIX,
                                             .centre = p->layer,
                                             .bias = p->layer,
                                             .gradients = gradients,
                                             .incoming = CLB_OPERAND_X,
                                             .epsilon = p->epsilon};
  problem->accumulate = (gradients & CLB_OPERAND_W) != 0;
  clb_status s = clb_rms_norm_make(n->ctx, problem, passes, NULL, op);
  free(problem);
  return s;
}

static clb_status build(clb_network *n, clb_layer *y) {
  return create(n, y, CLB_OPERAND_X, CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD),
                &((clb_norm *)y->parameters)->op);
}

static clb_rows weights(const clb_network *n, const clb_norm *p) {
  return (clb_rows){.buffer = n->device_weights, .offset = p->weights};
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_norm *p = y->parameters;
  (void)adds;
  return clb_rms_norm_run(
      p->op, CLB_FORWARD, clb_row_count(n, y->in[0]),
      (const clb_rows[]){clb_value(n, y->in[0]), weights(n, p), clb_value(n, y->out[0])});
}

/* Its input has no other reader. */
static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_norm *p = y->parameters;
  (void)adds;
  return clb_rms_norm_run(p->op, CLB_BACKWARD, clb_row_count(n, y->in[0]),
                          (const clb_rows[]){clb_value(n, y->in[0]),
                                             weights(n, p),
                                             clb_gradient(n, y->out[0]),
                                             clb_gradient(n, y->in[0]),
                                             {0}});
}

/* ---- training ---- */

static clb_status derive(clb_network *n, clb_layer *y) {
  const clb_status s =
      create(n, y, CLB_OPERAND_X | CLB_OPERAND_W | CLB_OPERAND_Z,
             CLB_PASS_BIT(CLB_BACKWARD) | CLB_PASS_BIT(CLB_DOUBLE_BACKWARD), &y->derivatives);
  return s ? s
           : create(n, y, CLB_OPERAND_Z, CLB_PASS_BIT(CLB_DOUBLE_BACKWARD),
                    &((clb_norm *)y->parameters)->along);
}

/* Tangents do not depend on the gradient; where nothing bends there is none. */
static clb_status along(clb_network *n, clb_layer *y, unsigned adds, bool bends) {
  const clb_norm *p = y->parameters;
  const clb_rows w = weights(n, p), x = clb_value(n, y->in[0]);
  (void)adds;
  if (!bends)
    return clb_rms_norm_run(
        p->along, CLB_DOUBLE_BACKWARD, clb_row_count(n, y->in[0]),
        (const clb_rows[]){
            x, w, x, clb_tangent(n, y->in[0]), {0}, {0}, {0}, clb_tangent(n, y->out[0])});
  return clb_rms_norm_run(y->derivatives, CLB_DOUBLE_BACKWARD, clb_row_count(n, y->in[0]),
                          (const clb_rows[]){x,
                                             w,
                                             clb_gradient(n, y->out[0]),
                                             clb_tangent(n, y->in[0]),
                                             {0},
                                             clb_adjoint(n, y->in[0]),
                                             clb_weight_gradient(n, w),
                                             clb_tangent(n, y->out[0])});
}

static clb_status reverse(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  const clb_rows w = weights(n, y->parameters);
  return clb_rms_norm_run(y->derivatives, CLB_BACKWARD, clb_row_count(n, y->in[0]),
                          (const clb_rows[]){clb_value(n, y->in[0]), w, clb_adjoint(n, y->out[0]),
                                             clb_adjoint(n, y->in[0]), clb_weight_gradient(n, w)});
}

static void free_ops(void *parameters) {
  clb_op_destroy(&((clb_norm *)parameters)->op);
  clb_op_destroy(&((clb_norm *)parameters)->along);
}

const clb_layer_kind clb_norm_kind = {.reads_in = 1,
                                      .overwrites = 1,
                                      .again = true,
                                      .bends = CLB_BENDS_WEIGHTS | CLB_BENDS_INPUTS,
                                      .always_adds = true,
                                      .build = build,
                                      .forward = forward,
                                      .backward = backward,
                                      .derive = derive,
                                      .along = along,
                                      .reverse = reverse,
                                      .free_ops = free_ops};
