/* models/layers/edges/pairs.c - the species of edges, by which layers of edges choose rows of
   weights. */
#include "models/layers/kinds.h"

static clb_status build(clb_network *n, clb_layer *y) {
  return clb_pair_species_create(n->ctx, &((clb_pairs *)y->parameters)->op);
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_pairs *p = y->parameters;
  (void)adds;
  return clb_pair_species_run(p->op, n->graph, n->graph_species, n->n_species,
                              clb_value(n, y->out[0]).buffer);
}

static void free_ops(void *parameters) { clb_op_destroy(&((clb_pairs *)parameters)->op); }

const clb_layer_kind clb_pairs_kind = {.again = true,
                                       .build = build,
                                       .forward = forward,
                                       .need = clb_need_nothing,
                                       .free_ops = free_ops};
