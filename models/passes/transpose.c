/* models/passes/transpose.c - matrices of linear maps: a row of them for each species,
   and transposed for backward. */
#include "models/layers/kinds.h"
#include "models/passes/passes.h"

clb_status clb_pass_transpose(clb_network *n) {
  clb_status s = CLB_OK;
  for (int l = 0; l < n->n_layers && !s; l++) {
    clb_layer *y = n->layer[l];
    if (y->kind != &clb_linear_kind) continue;
    const clb_linear *p = y->parameters;
    if (p->by_species || n->trains) s = clb_linear_make_rows(n, y);
    if (!s && !n->trains && !n->ctx->device->limits.simd) s = clb_linear_transpose(n, y);
  }
  return s;
}
