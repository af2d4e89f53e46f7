/* models/run.c - runs the steps of a network's order, phase by phase; in blocks of atoms, a phase
   for one block after the other. */
#include "models/blocks.h"

/* What a step is the first to use, whatever its slot held before, must be written in this run: only
   the interpreter looks. Vectors have been written by now; where all blocks have their rows, these
   lie between those of other arrays. */
static void discard(const clb_network *n, int step) {
  for (int a = 0; a < n->n_arrays; a++) {
    for (int i = 0; i < CLB_STORED * CLB_SPANS; i++) {
      const int which = i / CLB_SPANS;
      const bool given = a == CLB_VECTORS && (which == CLB_VALUE || which == CLB_TANGENT);
      const clb_stored *x = &n->array[a]->stored[which];
      const clb_span *span = &x->span[i % CLB_SPANS];
      if (given || x->slot < 0 || span->first != step || span->last < step) continue;
      if (x->block || !n->blocked) clb_workspace_discard(n->ctx, &n->slot[x->slot].buffer->memory);
    }
  }
}

/* Of training: zeros in rows that a step is the first to add to. */
static clb_status put_zeros(clb_model *m, int step) {
  clb_network *n = &m->net;
  const clb_step *k = &n->step[step];
  const clb_layer *y = n->layer[k->layer];
  const bool along = k->sweep == CLB_SWEEP_ALONG, inputs = y->kind->bends & CLB_BENDS_INPUTS;
  clb_status s = CLB_OK;
  if (!y->kind->always_adds || (along && !(k->bends && inputs))) return s;
  for (int i = 0; i < CLB_LAYER_INS + CLB_LAYER_OUTS && !s; i++) {
    const bool in = i < CLB_LAYER_INS;
    const int a = in ? y->in[i] : along ? y->out[i - CLB_LAYER_INS] : -1;
    const clb_stored *x = a < 0 ? NULL : &n->array[a]->stored[in ? CLB_ADJOINT : CLB_TANGENT];
    for (int span = 0; x && x->slot >= 0 && span < CLB_SPANS && !s; span++)
      if (x->span[span].first == step && x->span[span].last >= step)
        s = clb_zero_run(m->zero, clb_row_count(n, a), n->array[a]->irreps.dim,
                         (in ? clb_adjoint : clb_tangent)(n, a));
  }
  return s;
}

static clb_status run_step(clb_model *m, int number) {
  clb_network *n = &m->net;
  const clb_step *step = &n->step[number];
  clb_layer *y = n->layer[step->layer];
  const clb_layer_kind *kind = y->kind;
  if (step->sweep == CLB_SWEEP_FORWARD) return kind->forward(n, y, step->adds);
  if (step->sweep == CLB_SWEEP_BACKWARD)
    return step->again && kind->again_backward ? kind->again_backward(n, y, step->adds)
                                               : kind->backward(n, y, step->adds);
  const clb_status s = put_zeros(m, number);
  if (s) return s;
  return step->sweep == CLB_SWEEP_ALONG ? kind->along(n, y, step->adds, step->bends)
                                        : kind->reverse(n, y, step->adds);
}

/* Steps first ... end - 1, for the atoms that layers work on. */
static clb_status run_steps(clb_model *m, int first, int end) {
  clb_network *n = &m->net;
  clb_status s = CLB_OK;
  for (int i = first; i < end && !s; i++) {
    if (m->results->memory.written) discard(n, i);
    s = run_step(m, i);
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
  const bool graph = need_graph(n, first, end);
  if (!n->blocked || n->layer[n->step[first].layer]->kind->whole || (n->trains && !graph))
    return run_steps(m, first, end);
  for (int64_t b = 0; b < m->n_blocks && !s; b++) {
    s = clb_blocks_enter(m, b, graph);
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

static clb_status run_phases(clb_model *m, int first, int end) {
  const clb_step *step = m->net.step;
  clb_status s = CLB_OK;
  for (int i = first, next; i < end && !s; i = next) {
    for (next = i + 1; next < end && step[next].phase == step[i].phase;) next++;
    s = run_phase(m, i, next);
  }
  return s;
}

clb_status clb_model_run_training(clb_model *m) {
  const clb_status s = run_phases(m, m->net.n_computing, m->net.n_steps);
  clb_blocks_leave(m);
  return s;
}

clb_status clb_model_run(clb_model *m, const clb_model_edges *edges, bool backward) {
  clb_network *n = &m->net;
  const clb_result_offsets at = clb_model_result_offsets(m);
  const int end = backward ? n->n_computing : n->n_forward;
  clb_workspace_discard(m->ctx, &m->results->memory);
  if (m->shows_found)
    clb_memory_mark(&m->results->memory, (uint64_t)at.found * sizeof(double), sizeof(double));
  n->edges = edges;
  n->e_atom = clb_model_result(m, at.e_atom);
  n->totals = clb_model_result(m, at.energy);
  n->goes_back = backward && !n->blocked;
  const clb_status s = run_phases(m, 0, end);
  return s ? s : run_ends(m);
}
