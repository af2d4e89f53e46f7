/* models/layers/norm.c - rows divided by the root of a mean of their squares: the norms of Nequix
   and EquFlashV2, and PyTorch's LayerNorm. */
#include <stdlib.h>
#include <string.h>

#include "models/layers/kinds.h"
#include "kernels/norm/host/rms_norm.h"

static clb_status create(clb_network *n, clb_layer *y, int gradients, bool adds, unsigned passes,
                         clb_op **op) {
  const clb_norm *p = y->parameters;
  clb_problem *problem = calloc(1, sizeof *problem);
  if (!problem) return clb_network_no_memory(n);
  problem->kind = CLB_RMS_NORM;
  problem->storage = problem->arithmetic = (int32_t)n->type;
  problem->rms_norm = (clb_rms_norm_problem){.irreps = n->array[y->in[0]]->irreps,
                                             .layout = CLB_IR_MUL,
                                             .variant = (int32_t)p->variant,
                                             .centre = p->centred,
                                             .bias = p->centred,
                                             .gradients = gradients,
                                             .incoming = CLB_OPERAND_X,
                                             .epsilon = p->epsilon};
  memcpy(problem->rms_norm.factor, p->factor, sizeof p->factor);
  problem->accumulate = adds;
  clb_status s = clb_rms_norm_make(n->ctx, problem, passes, NULL, op);
  free(problem);
  return s;
}

/* Backward ops for the order of layers as it is, besides those that are there. */
static clb_status make_back(clb_network *n, clb_layer *y) {
  clb_norm *p = y->parameters;
  clb_status s = CLB_OK;
  for (int i = 0; i < n->n_steps && !s; i++) {
    const unsigned adds = n->step[i].adds & 1;
    if (n->layer[n->step[i].layer] == y && n->step[i].sweep == CLB_SWEEP_BACKWARD && !p->back[adds])
      s = create(n, y, CLB_OPERAND_X, adds, CLB_PASS_BIT(CLB_BACKWARD), &p->back[adds]);
  }
  return s;
}

static clb_status build(clb_network *n, clb_layer *y) {
  clb_norm *p = y->parameters;
  const clb_status s = create(n, y, CLB_OPERAND_X, false, CLB_PASS_BIT(CLB_FORWARD), &p->op);
  return s ? s : make_back(n, y);
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

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_norm *p = y->parameters;
  return clb_rms_norm_run(p->back[adds & 1], CLB_BACKWARD, clb_row_count(n, y->in[0]),
                          (const clb_rows[]){clb_value(n, y->in[0]),
                                             weights(n, p),
                                             clb_gradient(n, y->out[0]),
                                             clb_gradient(n, y->in[0]),
                                             {0}});
}

/* ---- training ---- */

static clb_status derive(clb_network *n, clb_layer *y) {
  const clb_status s =
      create(n, y, CLB_OPERAND_X | CLB_OPERAND_W | CLB_OPERAND_Z, true,
             CLB_PASS_BIT(CLB_BACKWARD) | CLB_PASS_BIT(CLB_DOUBLE_BACKWARD), &y->derivatives);
  return s ? s
           : create(n, y, CLB_OPERAND_Z, false, CLB_PASS_BIT(CLB_DOUBLE_BACKWARD),
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
  clb_norm *p = parameters;
  clb_op **all[] = {&p->op, &p->back[0], &p->back[1], &p->along};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) clb_op_destroy(all[i]);
}

const clb_layer_kind clb_norm_kind = {.reads_in = 1,
                                      .again = true,
                                      .bends = CLB_BENDS_WEIGHTS | CLB_BENDS_INPUTS,
                                      .always_adds = true,
                                      .build = build,
                                      .reorder = make_back,
                                      .forward = forward,
                                      .backward = backward,
                                      .derive = derive,
                                      .along = along,
                                      .reverse = reverse,
                                      .free_ops = free_ops};
