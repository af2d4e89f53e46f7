/* models/states.c - charges and spins of the structures that are computed. */
#include <stdlib.h>
#include <string.h>

#include "models/model_state.h"

static bool same(const clb_state *a, const clb_state *b) {
  return a->first == b->first && a->charge == b->charge && a->spin == b->spin;
}

clb_status clb_model_set_states(clb_model *m, int64_t n, const clb_model_atoms *atoms) {
  clb_network *net = &m->net;
  int64_t at = 0;
  if (!net->has_states) return CLB_OK;
  if (n > net->states_capacity) {
    clb_state *all = realloc(net->state, (size_t)n * sizeof *all);
    if (!all) return clb_network_no_memory(net);
    net->state = all;
    net->states_capacity = n;
  }
  if (n != net->n_states) m->seen = false;
  for (int64_t i = 0; i < n; i++) {
    const clb_state s = {at, atoms[i].charge, atoms[i].spin ? atoms[i].spin : 1};
    if (i >= net->n_states || !same(&s, &net->state[i])) m->seen = false;
    net->state[i] = s;
    at += atoms[i].n;
  }
  net->n_states = n;
  return CLB_OK;
}
