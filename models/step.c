/* models/step.c - the device's part of a step: the network, and what follows from its gradients.

   Small systems spend their time on launches. A step that is the same as the one before it is
   recorded, and from then on replayed as one unit, until the graph or what is asked for changes. */
#include "models/blocks.h"

/* What the edges of a block, or of the whole, give to atoms. */
static clb_status derive_atoms(clb_model *m, const clb_model_edge_results *r) {
  clb_network *n = &m->net;
  const clb_rows v = clb_value(n, CLB_VECTORS), g_v = clb_gradient(n, CLB_VECTORS);
  const clb_result_offsets at = clb_model_result_offsets(m);
  clb_status s = CLB_OK;
  if (r->forces) s = clb_forces_run(m->forces, n->graph, g_v, clb_model_result(m, at.forces));
  if (!s && r->forces_buffer)
    s = clb_forces_run(m->forces, n->graph, g_v, (clb_rows){r->forces_buffer, 0, CLB_DENSE, NULL});
  if (!s && r->v_atom)
    s = clb_atom_virials_run(m->forces, n->graph, v, g_v,
                             (clb_rows){m->v_atom, 9 * n->at.first, CLB_DENSE, NULL});
  return s;
}

/* Runs what follows from the gradients by vectors. */
static clb_status derive(clb_model *m, const clb_model_edge_results *r) {
  clb_network *n = &m->net;
  const clb_rows v = clb_value(n, CLB_VECTORS), g_v = clb_gradient(n, CLB_VECTORS);
  const clb_result_offsets at = clb_model_result_offsets(m);
  clb_status s = CLB_OK;
  if (r->virial) s = clb_virial_run(m->virial, n->n_edges, v, g_v, clb_model_result(m, at.virial));
  if (s || !(r->forces || r->forces_buffer || r->v_atom)) return s;
  if (!n->blocked) return derive_atoms(m, r);
  for (int64_t b = 0; b < m->n_blocks && !s; b++) {
    s = clb_blocks_enter(m, b, true);
    if (!s) s = derive_atoms(m, r);
  }
  clb_blocks_leave(m);
  return s;
}

static clb_status run(clb_model *m, const clb_model_edges *e, const clb_model_edge_results *r) {
  const bool backward = r->forces || r->forces_buffer || r->d_vectors || r->d_vectors_buffer ||
                        r->virial || r->v_atom;
  const clb_status s = clb_model_run(m, e, backward);
  return s ? s : derive(m, r);
}

/* What the launches depend on. Buffers of a caller may be others at the same address, and an
   exchange calls the caller: both are left out. */
static uint64_t key_of(const clb_model *m, const clb_model_edges *e,
                       const clb_model_edge_results *r) {
  const bool fixed = !e->exchange && !e->vectors_buffer && !r->forces_buffer &&
                     !r->d_vectors_buffer && !m->net.blocked &&
                     m->net.n_local <= CLB_RECORDED_ATOMS;
  const unsigned wanted =
      (r->forces ? 1U : 0) | (r->d_vectors ? 2U : 0) | (r->virial ? 4U : 0) | (r->v_atom ? 8U : 0);
  return fixed ? (uint64_t)m->graph_number << CLB_WANTED_BITS | wanted : 0;
}

typedef struct {
  clb_model *m;
  const clb_model_edges *e;
  const clb_model_edge_results *r;
} step;

static clb_status run_step(void *user) {
  const step *x = user;
  return run(x->m, x->e, x->r);
}

clb_status clb_model_submit(clb_model *m, const clb_model_edges *e,
                            const clb_model_edge_results *r) {
  const clb_status s = r->v_atom ? clb_model_reserve_v_atom(m) : CLB_OK;
  return s ? s
           : clb_repeat(m->ctx, &m->step, key_of(m, e, r), "the model's step", run_step,
                        &(step){m, e, r});
}
