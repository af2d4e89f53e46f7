/* models/build.c - a network on a device: its weights, its ops and the memory that it takes. */
#include "models/layers/kinds.h"
#include "models/model_state.h"
#include "models/passes/passes.h"

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
  return s ? s : clb_model_upload(m, m->net.device_weights, m->type, n, m->net.weights);
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
  return s;
}

static void set_info(clb_model *m) {
  const clb_network *n = &m->net;
  const bool f64 = m->edges.make_vectors;
  m->info =
      (clb_model_info){.architecture = n->architecture,
                       .r_max = n->r_max,
                       .n_layers = n->n_blocks,
                       .l_max = n->l_max,
                       .n_species = n->n_species,
                       .symbols = n->symbol,
                       .atomic_numbers = n->atomic_number,
                       .parameters = n->parameters,
                       .bytes_per_edge = 40 + (f64 ? sizeof(int32_t) : 0),
                       .bytes_per_atom = 56 + 4 * (uint64_t)clb_dtype_bytes((int32_t)m->sum_type) +
                                         2 * sizeof(int32_t) + (f64 ? 3 * sizeof(double) : 0),
                       .knots = n->knots,
                       .table_error = n->table_error,
                       .table_slope_error = n->table_slope_error};
  for (int l = 0; l < n->n_layers; l++)
    if (n->layer[l]->kind == &clb_convolution_kind)
      m->info.weights += ((const clb_convolution_layer *)n->layer[l]->parameters)->n_weights;
  for (int l = 0; l < n->n_layers; l++)
    if (n->layer[l]->kind == &clb_exchange_kind) {
      const int64_t columns = n->array[n->layer[l]->in[0]]->irreps.dim;
      m->info.exchanges++;
      if (columns > m->info.exchange_columns) m->info.exchange_columns = columns;
    }
  for (int i = 0; i < n->n_slots; i++)
    *(n->slot[i].per_edge ? &m->info.bytes_per_edge : &m->info.bytes_per_atom) +=
        (uint64_t)n->slot[i].bytes;
}

clb_status clb_model_build(clb_model *m) {
  clb_network *n = &m->net;
  n->ctx = m->ctx;
  n->type = m->type;
  n->atomics = m->options.atomics != 0;
  clb_status s = clb_pass_tables(n);
  clb_pass_moves(n);
  if (!s) s = clb_pass_frames(n);
  if (!s) s = clb_pass_order(n);
  if (!s) s = upload_weights(m);
  if (!s) s = make_ops(m);
  if (!s) s = clb_pass_memory(n);
  set_info(m);
  return s ? s : clb_graph_create(m->ctx, 0, 0, &n->graph);
}

/* What a step is the first to use, whatever its slot held before, must be written in this run: only
   the interpreter looks. Vectors have been written by now. */
static void discard(const clb_network *n, int step) {
  for (int a = 0; a < n->n_arrays; a++) {
    const clb_stored *both[] = {a == CLB_VECTORS ? NULL : &n->array[a]->value,
                                &n->array[a]->gradient};
    for (int i = 0; i < 4; i++) {
      const clb_stored *x = both[i / 2];
      if (!x || x->slot < 0 || x->span[i % 2].first != step || x->span[i % 2].last < step) continue;
      clb_workspace_discard(n->ctx, &n->slot[x->slot].buffer->memory);
    }
  }
}

clb_status clb_model_run(clb_model *m, const clb_model_edges *edges, bool backward) {
  clb_network *n = &m->net;
  const clb_result_offsets at = clb_model_result_offsets(m);
  clb_status s = CLB_OK;
  clb_workspace_discard(m->ctx, &m->results->memory);
  n->edges = edges;
  n->species = (clb_rows){m->species_of, 0, CLB_DENSE, NULL};
  n->energy_species = (clb_rows){m->species_of, n->n_total, CLB_DENSE, NULL};
  n->e_atom = clb_model_result(m, at.e_atom);
  n->totals = clb_model_result(m, at.energy);
  for (int i = 0; i < (backward ? n->n_steps : n->n_forward) && !s; i++) {
    const clb_step *step = &n->step[i];
    if (m->results->memory.written) discard(n, i);
    clb_layer *y = n->layer[step->layer];
    s = (step->backward ? y->kind->backward : y->kind->forward)(n, y, step->adds);
  }
  return s;
}
