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
  return s || !n->trains ? s : clb_training_create(m);
}

static void set_info(clb_model *m) {
  const clb_network *n = &m->net;
  m->info = (clb_model_info){.architecture = n->architecture,
                             .r_max = n->r_max,
                             .n_layers = n->n_blocks,
                             .l_max = n->l_max,
                             .n_species = n->n_species,
                             .symbols = n->symbol,
                             .atomic_numbers = n->atomic_number,
                             .parameters = n->parameters,
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
}

/* In blocks and, as it is left, as a whole. */
static clb_status count_bytes(clb_model *m) {
  clb_model_info *info = &m->info;
  for (int blocked = m->net.trains ? 0 : 1; blocked >= 0; blocked--) {
    const clb_status s = clb_blocks_order(m, blocked, false);
    if (s) return s;
    const clb_model_bytes b = clb_model_count_bytes(m);
    *(blocked ? &info->block_bytes_per_atom : &info->bytes_per_atom) = b.atom;
    *(blocked ? &info->block_bytes_per_edge : &info->bytes_per_edge) = b.edge;
  }
  return CLB_OK;
}

clb_status clb_model_build(clb_model *m) {
  clb_network *n = &m->net;
  n->ctx = m->ctx;
  n->type = m->type;
  n->atomics = m->options.atomics != 0;
  clb_status s = clb_pass_tables(n);
  clb_pass_moves(n);
  if (!s && !n->trains) s = clb_pass_frames(n);
  if (!s && !n->trains) s = clb_pass_transpose(n);
  if (!s) s = clb_pass_order(n);
  if (!s) s = upload_weights(m);
  if (!s) s = make_ops(m);
  set_info(m);
  return s ? s : count_bytes(m);
}

/* ---- a run ---- */

/* What a step is the first to use, whatever its slot held before, must be written in this run: only
   the interpreter looks. Vectors have been written by now; where all blocks have their rows, these
   lie between those of other arrays. */
static void discard(const clb_network *n, int step) {
  for (int a = 0; a < n->n_arrays; a++) {
    const clb_stored *both[] = {a == CLB_VECTORS ? NULL : &n->array[a]->value,
                                &n->array[a]->gradient};
    for (int i = 0; i < 2 * CLB_SPANS; i++) {
      const clb_stored *x = both[i / CLB_SPANS];
      const clb_span *span = x ? &x->span[i % CLB_SPANS] : NULL;
      if (!x || x->slot < 0 || span->first != step || span->last < step) continue;
      if (x->block || !n->blocked) clb_workspace_discard(n->ctx, &n->slot[x->slot].buffer->memory);
    }
  }
}

/* Steps first ... end - 1, for the atoms that layers work on. */
static clb_status run_steps(clb_model *m, int first, int end) {
  clb_network *n = &m->net;
  clb_status s = CLB_OK;
  for (int i = first; i < end && !s; i++) {
    const clb_step *step = &n->step[i];
    clb_layer *y = n->layer[step->layer];
    if (m->results->memory.written) discard(n, i);
    s = (step->backward ? y->kind->backward : y->kind->forward)(n, y, step->adds);
  }
  return s;
}

static bool need_graph(const clb_network *n, int first, int end) {
  bool need = false;
  for (int s = first; s < end; s++) {
    const clb_layer *y = n->layer[n->step[s].layer];
    for (int i = 0; i < CLB_LAYER_INS; i++)
      need |= y->in[i] >= 0 && n->array[y->in[i]]->per == CLB_PER_EDGE;
  }
  return need;
}

static clb_status run_phase(clb_model *m, int first, int end) {
  clb_network *n = &m->net;
  clb_status s = CLB_OK;
  clb_blocks_leave(m);
  if (!n->blocked || n->layer[n->step[first].layer]->kind->whole) return run_steps(m, first, end);
  for (int64_t b = 0; b < m->n_blocks && !s; b++) {
    s = clb_blocks_enter(m, b, need_graph(n, first, end));
    if (!s) s = run_steps(m, first, end);
  }
  return s;
}

/* In blocks: what the model's results are computed from is there only now. */
static clb_status run_ends(clb_model *m) {
  clb_network *n = &m->net;
  clb_status s = CLB_OK;
  clb_blocks_leave(m);
  for (int l = 0; l < n->n_layers && n->blocked && !s; l++)
    if (n->layer[l]->kind->ends) s = n->layer[l]->kind->forward(n, n->layer[l], 0);
  return s;
}

clb_status clb_model_run(clb_model *m, const clb_model_edges *edges, bool backward) {
  clb_network *n = &m->net;
  const clb_result_offsets at = clb_model_result_offsets(m);
  const int end = backward ? n->n_steps : n->n_forward;
  clb_status s = CLB_OK;
  clb_workspace_discard(m->ctx, &m->results->memory);
  n->edges = edges;
  n->e_atom = clb_model_result(m, at.e_atom);
  n->totals = clb_model_result(m, at.energy);
  for (int i = 0, next; i < end && !s; i = next) {
    for (next = i + 1; next < end && n->step[next].phase == n->step[i].phase;) next++;
    s = run_phase(m, i, next);
  }
  return s ? s : run_ends(m);
}
