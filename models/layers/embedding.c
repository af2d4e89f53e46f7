/* models/layers/embedding.c - rows of a table by species, of atoms or of edges: first features, and
   biases. */
#include <stdlib.h>

#include "kernels/linear/host/linear.h"
#include "models/layers/kinds.h"

static clb_status build(clb_network *n, clb_layer *y) {
  clb_embedding *p = y->parameters;
  bool adds = false;
  for (int i = 0; i < n->n_forward; i++) adds |= n->layer[n->step[i].layer] == y && n->step[i].adds;
  return adds ? clb_gather_create(n->ctx, n->type, true, &p->adding) : clb_network_gather(n);
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_embedding *p = y->parameters;
  const int64_t columns = n->array[y->out[0]]->irreps.dim;
  return clb_gather_run(adds ? p->adding : n->gather, clb_row_count(n, y->out[0]), columns,
                        (clb_rows){n->device_weights, p->table, columns,
                                   clb_row_species(n, y->in[CLB_EMBEDDING_PAIRS])},
                        clb_value(n, y->out[0]));
}

/* ---- training: a row of the table is a linear map of the number 1 ---- */

static clb_status derive(clb_network *n, clb_layer *y) {
  return clb_network_species_map(n, clb_species_count(n, y->in[CLB_EMBEDDING_PAIRS]),
                                 n->array[y->out[0]]->irreps.dim, CLB_OPERAND_W, &y->derivatives);
}

static clb_status reverse(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  const clb_embedding *p = y->parameters;
  const clb_rows w = {n->device_weights, p->table, CLB_DENSE,
                      clb_row_species(n, y->in[CLB_EMBEDDING_PAIRS])};
  return clb_linear_run(y->derivatives, CLB_BACKWARD, clb_row_count(n, y->out[0]),
                        (const clb_rows[]){{n->one, 0, CLB_SAME_ROW, NULL},
                                           w,
                                           clb_adjoint(n, y->out[0]),
                                           {0},
                                           clb_weight_gradient(n, w)});
}

static void need(const clb_network *n, const clb_layer *y, clb_needed needed) {
  if (y->in[CLB_EMBEDDING_PAIRS] >= 0) clb_need(n, y->in[CLB_EMBEDDING_PAIRS], needed, -1);
}

static void keep(clb_network *n, clb_layer *y, clb_needed needed) {
  const clb_embedding *p = y->parameters;
  clb_keep_columns(n, y->out[0], needed, p->table,
                   clb_species_count(n, y->in[CLB_EMBEDDING_PAIRS]));
}

static void free_ops(void *parameters) { clb_op_destroy(&((clb_embedding *)parameters)->adding); }

const clb_layer_kind clb_embedding_kind = {.sums = true,
                                           .build = build,
                                           .forward = forward,
                                           .need = need,
                                           .keep = keep,
                                           .derive = derive,
                                           .reverse = reverse,
                                           .free_ops = free_ops};
