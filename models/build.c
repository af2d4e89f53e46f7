/* models/build.c - a network on a device: its weights, its ops and the memory that it takes. */
#include "models/blocks.h"
#include "models/layers/kinds.h"
#include "models/passes/passes.h"
#include "models/training/training.h"

#include <float.h>
#include <math.h>

static clb_status upload_weights(clb_model *m) {
  const int64_t n = m->net.n_weights;
  for (int64_t i = 0; i < n && m->type == CLB_F32; i++)
    if (fabs(m->net.weights[i]) > FLT_MAX)
      return clb_fail(&m->ctx->error, CLB_ERROR_ARGUMENT,
                      "a weight is %g, more than single precision holds; CLB_F64 takes it",
                      m->net.weights[i]);
  clb_status s = clb_buffer_create(m->ctx, (uint64_t)(n * clb_dtype_bytes((int32_t)m->type)),
                                   &m->net.device_weights);
  return s ? s : clb_numbers_write(m->net.device_weights, m->type, 0, n, m->net.weights);
}

/* The last layer first: what it does not read need not be made. */
static clb_status make_ops(clb_model *m) {
  clb_network *n = &m->net;
  clb_context *c = m->ctx;
  clb_status s = clb_edges_create(&m->edges, c, m->type);
  if (!s) s = clb_virial_create(c, m->type, &m->virial);
  if (!s) s = clb_forces_create(c, m->type, &m->forces);
  for (int l = n->n_layers - 1; l >= 0 && !s; l--) {
    clb_layer *y = n->layer[l];
    if (y->kind->build) s = y->kind->build(n, y);
    if (s)
      clb_fail(&c->error, s, "%s: %s", y->name, c->error.text.s ? c->error.text.s : "no memory");
  }
  return s || !n->trains ? s : clb_training_create(m);
}

static void set_info(clb_model *m) {
  const clb_network *n = &m->net;
  m->info = (clb_model_info){.architecture = n->architecture,
                             .r_max = n->r_max,
                             .n_layers = n->n_blocks,
                             .l_max = n->l_max,
                             .parity = n->parity,
                             .n_species = n->n_species,
                             .symbols = n->symbol,
                             .atomic_numbers = n->atomic_number,
                             .parameters = n->parameters,
                             .knots = n->trains ? (int)n->grid.intervals : n->knots,
                             .table_error = n->table_error,
                             .table_slope_error = n->table_slope_error};
  for (int l = 0; l < n->n_layers; l++)
    if (n->layer[l]->kind == &clb_convolution_kind)
      m->info.weights += ((const clb_convolution_layer *)n->layer[l]->parameters)->n_weights;
  for (int l = 0; l < n->n_layers; l++) {
    const clb_states *p = n->layer[l]->kind == &clb_states_kind ? n->layer[l]->parameters : NULL;
    int *const known[] = {m->info.charges, m->info.spins};
    for (int k = 0; k < 2 && p; k++)
      for (int i = 0; i < 2 && p->count[k]; i++)
        known[k][i] = p->first[k] + (i ? (int)p->count[k] - 1 : 0);
  }
  for (int l = 0; l < n->n_layers; l++)
    if (n->layer[l]->kind == &clb_exchange_kind) {
      const int64_t columns = n->array[n->layer[l]->in[0]]->irreps.dim;
      m->info.exchanges++;
      if (columns > m->info.exchange_columns) m->info.exchange_columns = columns;
    }
}

/* In blocks and as a whole; or, if it trains, in blocks alone. It is left for small systems. */
static clb_status count_bytes(clb_model *m) {
  clb_model_info *info = &m->info;
  for (int blocked = 1; blocked >= (m->net.trains ? 1 : 0); blocked--) {
    const clb_status s = clb_blocks_order(m, blocked, false, true);
    if (s) return s;
    const clb_model_bytes b = clb_model_count_bytes(m);
    if (blocked) info->block_bytes_per_atom = b.atom, info->block_bytes_per_edge = b.edge;
    info->bytes_per_atom = b.atom;
    info->bytes_per_edge = b.edge;
    m->frugal = b;
  }
  const clb_status s = m->net.trains ? CLB_OK : clb_blocks_order(m, false, false, false);
  m->usual = clb_model_count_bytes(m);
  m->spare = 256 << 20;
  return s;
}

clb_status clb_model_build(clb_model *m) {
  clb_network *n = &m->net;
  n->ctx = m->ctx;
  n->type = m->type;
  n->atomics = m->options.atomics != 0;
  n->blocked = n->trains; /* the only order that they have */
  clb_status s = clb_pass_tables(n);
  clb_pass_moves(n);
  if (!s && !n->trains) s = clb_pass_frames(n);
  if (!s) s = clb_pass_transpose(n);
  if (!s) s = clb_pass_join(n);
  if (!s) s = clb_pass_order(n);
  if (!s) s = upload_weights(m);
  if (!s) s = make_ops(m);
  set_info(m);
  return s ? s : count_bytes(m);
}
