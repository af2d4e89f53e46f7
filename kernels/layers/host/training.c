/* kernels/layers/host/training.c - compiles what only training needs of an op. */
#include <string.h>

#include "kernels/layers/host/layer_call.h"
#include "kernels/layers/host/layers.h"

/* ---- a radial basis: an op of its own ---- */

static void destroy_along(clb_op *op) {
  clb_op *along = op->parts;
  clb_op_destroy(&along);
}

static clb_status add_along(clb_op *op) {
  clb_op *along;
  if (op->parts) return CLB_OK;
  clb_problem *p = clb_layer_problem(op->ctx, CLB_RADIAL_ALONG, 0, 0);
  if (!p) return CLB_ERROR_MEMORY;
  memcpy(p, &op->problem, sizeof *p);
  p->kind = CLB_RADIAL_ALONG;
  p->pass = 0;
  clb_status s = clb_layer_create(op->ctx, p, p->radial.width ? 1 : 3, &along);
  op->parts = along;
  op->destroy_parts = destroy_along;
  return s;
}

/* ---- others: passes that their ops lack ---- */

static clb_status add_passes(clb_op *op) {
  clb_status s = CLB_OK;
  for (int pass = 0; pass < clb_kernel_kinds[op->problem.kind]->passes && !s; pass++)
    if (!op->kernel[pass]) {
      op->choice[pass].estimate = clb_layer_schedule_of(op, pass);
      s = clb_op_set_schedule(op, (clb_pass)pass, &op->choice[pass].estimate);
    }
  return s;
}

clb_status clb_layer_add_training(clb_op *op) {
  if (!op) return CLB_ERROR_ARGUMENT;
  const int32_t kind = op->problem.kind;
  if (kind == CLB_RADIAL && op->problem.radial.n_basis) return add_along(op);
  if (kind == CLB_DENSITY || kind == CLB_ROW_SCALE || kind == CLB_REPULSION) return add_passes(op);
  return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "%s has no passes of training",
                  clb_kernel_kinds[kind]->name);
}
