/* models/passes/prune.c - drops what nobody reads. Channels are marked from the end of the list to
   its beginning, until no more are; then every layer keeps its part. */
#include "models/passes/passes.h"

#include <stdlib.h>

static bool any(const clb_network *n, int array, clb_needed needed) {
  const int64_t count = array < 0 ? 0 : clb_channels(&n->array[array]->irreps, NULL);
  for (int64_t c = 0; c < count; c++)
    if (needed[array][c]) return true;
  return false;
}

static bool is_needed(const clb_network *n, const clb_layer *y, clb_needed needed) {
  bool some = y->kind->ends;
  for (int i = 0; i < CLB_LAYER_OUTS; i++) some |= any(n, y->out[i], needed);
  return some;
}

static void mark(const clb_network *n, const clb_layer *y, clb_needed needed) {
  if (!is_needed(n, y, needed)) return;
  if (y->kind->need) {
    y->kind->need(n, y, needed);
    return;
  }
  for (int i = 0; i < CLB_LAYER_INS; i++)
    if (y->in[i] >= 0) clb_need(n, y->in[i], needed, -1);
  for (int i = 0; i < CLB_LAYER_OUTS; i++)
    if (y->out[i] >= 0) clb_need(n, y->out[i], needed, -1);
}

static int64_t marked(const clb_network *n, clb_needed needed) {
  int64_t count = 0;
  for (int a = 0; a < n->n_arrays; a++)
    for (int64_t c = clb_channels(&n->array[a]->irreps, NULL) - 1; c >= 0; c--)
      count += needed[a][c];
  return count;
}

static void keep(clb_network *n, clb_needed needed) {
  bool read;
  for (int l = n->n_layers - 1; l >= 0; l--)
    if (!is_needed(n, n->layer[l], needed)) clb_network_remove(n, l);
    else if (n->layer[l]->kind->keep) n->layer[l]->kind->keep(n, n->layer[l], needed);
  for (int a = 0; a < n->n_arrays; a++) {
    clb_irreps *irreps = &n->array[a]->irreps;
    int64_t mul[CLB_MAX_TERMS];
    read = clb_network_readers(n, a) > 0;
    for (int t = 0; t < irreps->n; t++) mul[t] = clb_needed_in(n, a, needed, t);
    if (read) clb_irreps_shrink(irreps, mul);
  }
}

clb_status clb_pass_prune(clb_network *n) {
  bool **needed = calloc((size_t)n->n_arrays, sizeof *needed), failed = !needed;
  for (int a = 0; a < n->n_arrays && !failed; a++) {
    needed[a] = calloc((size_t)clb_channels(&n->array[a]->irreps, NULL) + 1, sizeof **needed);
    failed = !needed[a];
  }
  for (int64_t before = -1, now = 0; now != before && !failed;) {
    for (int l = n->n_layers - 1; l >= 0; l--) mark(n, n->layer[l], needed);
    before = now;
    now = marked(n, needed);
  }
  /* Where the energy does not depend on positions, layers stay that make the forces 0. */
  if (!failed && any(n, CLB_VECTORS, needed)) keep(n, needed);
  for (int a = 0; a < n->n_arrays && needed; a++) free(needed[a]);
  free(needed);
  return failed ? clb_network_no_memory(n) : CLB_OK;
}
