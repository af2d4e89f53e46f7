/* models/layers/embedding.c - rows of a table by species: of atoms' first features, and biases. */
#include "models/layers/kinds.h"

static clb_status build(clb_network *n, clb_layer *y) {
  (void)y;
  return clb_network_gather(n);
}

/* Adding is not needed: as the first layer that writes an array it comes before the others. */
static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_embedding *p = y->parameters;
  const int64_t columns = n->array[y->out[0]]->irreps.dim;
  (void)adds;
  return clb_gather_run(n->gather, clb_row_count(n, y->out[0]), columns,
                        (clb_rows){n->device_weights, p->table, columns, n->species.buffer},
                        clb_value(n, y->out[0]));
}

static void keep(clb_network *n, clb_layer *y, clb_needed needed) {
  const clb_embedding *p = y->parameters;
  clb_keep_columns(n, y->out[0], needed, p->table, n->n_species);
}

const clb_layer_kind clb_embedding_kind = {
    .build = build, .forward = forward, .need = clb_need_nothing, .keep = keep};
