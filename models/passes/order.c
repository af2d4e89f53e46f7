/* models/passes/order.c - the order in which layers run: forward that of the list, backward the
   reverse, with some layers again or in pieces in between. */
#include "models/passes/passes.h"

#include <stdlib.h>

void clb_pass_moves(clb_network *n) {
  n->array[CLB_VECTORS]->moves = true;
  for (int l = 0; l < n->n_layers; l++) {
    const clb_layer *y = n->layer[l];
    for (int i = 0; i < CLB_LAYER_INS; i++)
      for (int o = 0; o < CLB_LAYER_OUTS; o++)
        if (y->gradients >> i & 1 && y->in[i] >= 0 && n->array[y->in[i]]->moves && y->out[o] >= 0)
          n->array[y->out[o]]->moves = true;
  }
}

static clb_status add_step(clb_network *n, clb_step step) {
  clb_step *all = realloc(n->step, (size_t)(n->n_steps + 1) * sizeof *all);
  if (!all) return clb_network_no_memory(n);
  n->step = all;
  all[n->n_steps++] = step;
  return CLB_OK;
}

static clb_status refuse(const clb_network *n, const clb_layer *y, const char *what) {
  return clb_fail(n->error, CLB_ERROR_UNSUPPORTED, "%s cannot add to %s that another layer writes",
                  y->name, what);
}

/* Which outputs a layer adds to: those that a layer before it writes. */
static unsigned forward_adds(const clb_network *n, int layer) {
  unsigned adds = 0;
  for (int l = 0; l < layer && !clb_in_place(n->layer[layer]); l++)
    for (int i = 0; i < CLB_LAYER_OUTS; i++)
      for (int o = 0; o < CLB_LAYER_OUTS; o++)
        if (n->layer[layer]->out[o] >= 0 && n->layer[l]->out[i] == n->layer[layer]->out[o])
          adds |= 1U << o;
  return adds;
}

static bool has_gradient(const clb_network *n, int array) {
  return array >= 0 && n->array[array]->has_gradient;
}

/* Runs the layer again that wrote an array, unless it has already. */
static clb_status run_again(clb_network *n, int array) {
  const int layer = array < 0 ? -1 : clb_network_writer(n, array);
  if (layer < 0 || !n->layer[layer]->again) return CLB_OK;
  for (int s = n->n_forward; s < n->n_steps; s++)
    if (n->step[s].layer == layer) return CLB_OK;
  clb_status s = CLB_OK;
  for (int i = 0; i < CLB_LAYER_INS && !s; i++) s = run_again(n, n->layer[layer]->in[i]);
  return s ? s : add_step(n, (clb_step){layer, false, forward_adds(n, layer)});
}

/* The layer whose backward must follow that of each layer that reads an array at once, as one of
   several such layers overwrites its gradient; -1: there is none. */
static int in_pieces(const clb_network *n, int array) {
  bool overwritten = false;
  for (int l = 0; l < n->n_layers; l++)
    for (int i = 0; i < CLB_LAYER_INS; i++)
      overwritten |= n->layer[l]->in[i] == array && n->layer[l]->kind->overwrites >> i & 1;
  return overwritten && clb_network_readers(n, array) > 1 ? clb_network_writer(n, array) : -1;
}

static clb_status run_backward(clb_network *n, int layer, bool *done) {
  const clb_layer *y = n->layer[layer];
  unsigned adds = 0;
  int piece = -1;
  clb_status s = CLB_OK;
  for (int i = 0; i < CLB_LAYER_INS && !s; i++)
    if (y->kind->reads_in >> i & 1) s = run_again(n, y->in[i]);
  for (int i = 0; i < CLB_LAYER_OUTS && !s; i++)
    if (y->kind->reads_out >> i & 1) s = run_again(n, y->out[i]);
  for (int i = 0; i < CLB_LAYER_INS; i++) {
    clb_array *in = y->in[i] < 0 ? NULL : n->array[y->in[i]];
    if (!in || !in->moves || !(y->gradients >> i & 1)) continue;
    const int writer = in_pieces(n, y->in[i]);
    if (writer >= 0) piece = writer;
    else if (in->has_gradient) adds |= 1U << i;
    in->has_gradient = true;
  }
  if (!s && adds & y->kind->overwrites) s = refuse(n, y, "a gradient");
  if (!s) s = add_step(n, (clb_step){layer, true, adds});
  done[layer] = true;
  return s || piece < 0 ? s : run_backward(n, piece, done);
}

clb_status clb_pass_order(clb_network *n) {
  bool *done = calloc((size_t)n->n_layers, sizeof *done);
  clb_status s = done ? CLB_OK : clb_network_no_memory(n);
  n->n_steps = 0;
  for (int a = 0; a < n->n_arrays; a++) n->array[a]->has_gradient = false;
  for (int l = 0; l < n->n_layers && !s; l++) {
    const unsigned adds = forward_adds(n, l);
    s = adds && !n->layer[l]->kind->sums ? refuse(n, n->layer[l], "an array")
                                         : add_step(n, (clb_step){l, false, adds});
  }
  n->n_forward = n->n_steps;
  for (int l = n->n_layers - 1; l >= 0 && !s; l--) {
    const clb_layer *y = n->layer[l];
    bool wanted = y->kind->ends;
    for (int o = 0; o < CLB_LAYER_OUTS; o++) wanted |= has_gradient(n, y->out[o]);
    if (wanted && y->kind->backward && !done[l]) s = run_backward(n, l, done);
  }
  free(done);
  return s;
}
