/* models/passes/transpose.c - matrices of linear maps for backward. */
#include "models/layers/kinds.h"
#include "models/passes/passes.h"

clb_status clb_pass_transpose(clb_network *n) {
  clb_status s = CLB_OK;
  for (int l = 0; l < n->n_layers && !s && !n->ctx->device->limits.simd; l++)
    if (n->layer[l]->kind == &clb_linear_kind) s = clb_linear_transpose(n, n->layer[l]);
  return s;
}
