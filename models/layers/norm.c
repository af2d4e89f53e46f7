/* models/layers/norm.c - Nequix's norm: rows divided by the root of their mean square. */
#include <stdlib.h>

#include "models/layers/kinds.h"
#include "kernels/norm/host/rms_norm.h"

static clb_status build(clb_network *n, clb_layer *y) {
  clb_norm *p = y->parameters;
  clb_problem *problem = calloc(1, sizeof *problem);
  if (!problem) return clb_network_no_memory(n);
  problem->kind = CLB_RMS_NORM;
  problem->storage = problem->arithmetic = (int32_t)n->type;
  problem->rms_norm = (clb_rms_norm_problem){.irreps = n->array[y->in[0]]->irreps,
                                             .layout = CLB_IR_MUL,
                                             .variant = CLB_RMS_NEQUIX,
                                             .gradients = CLB_OPERAND_X,
                                             .incoming = CLB_OPERAND_X,
                                             .epsilon = p->epsilon};
  clb_status s = clb_rms_norm_make(
      n->ctx, problem, CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD), NULL, &p->op);
  free(problem);
  return s;
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

static void free_ops(void *parameters) { clb_op_destroy(&((clb_norm *)parameters)->op); }

const clb_layer_kind clb_norm_kind = {.reads_in = 1,
                                      .overwrites = 1,
                                      .again = true,
                                      .build = build,
                                      .forward = forward,
                                      .backward = backward,
                                      .free_ops = free_ops};
