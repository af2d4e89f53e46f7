/* models/passes/join.c - pairs of linear maps of one array, and the gate that it comes out of,
   become one layer, which on a device with lanes is one launch where there are few rows. */
#include "models/layers/kinds.h"
#include "models/passes/passes.h"

static bool touches(const clb_layer *y, int array) {
  bool some = false;
  for (int i = 0; i < CLB_LAYER_INS; i++) some |= y->in[i] == array;
  for (int i = 0; i < CLB_LAYER_OUTS; i++) some |= y->out[i] == array;
  return some;
}

static bool maps(const clb_network *n, const clb_layer *y) {
  const clb_linear *p = y->kind == &clb_linear_kind ? y->parameters : NULL;
  return p && p->transposes && p->n && n->array[y->out[0]]->irreps.n &&
         n->array[y->in[0]]->per != CLB_PER_EDGE;
}

/* Whether the first can be done where the second is: nothing between them reads or writes its
   result, or changes what it reads. */
static bool can_join(const clb_network *n, int first, int second) {
  const clb_layer *a = n->layer[first], *b = n->layer[second];
  if (!maps(n, a) || !maps(n, b) || a->in[0] != b->in[0] || a->out[0] == b->out[0]) return false;
  const clb_irreps *x = &n->array[a->out[0]]->irreps, *y = &n->array[b->out[0]]->irreps;
  const clb_linear *p = a->parameters, *q = b->parameters;
  bool can = x->n + y->n <= CLB_MAX_TERMS && p->n + q->n <= CLB_MAX_PATHS &&
             !(p->by_species && q->by_species);
  for (int l = first + 1; l < second; l++) {
    can &= !touches(n->layer[l], a->out[0]);
    for (int i = 0; i < CLB_LAYER_OUTS; i++) can &= n->layer[l]->out[i] != a->in[0];
  }
  return can && n->n_weights <= INT32_MAX;
}

static clb_status join_maps(clb_network *n) {
  clb_status s = CLB_OK;
  for (int a = 0; a < n->n_layers && !s; a++)
    for (int b = a + 1; b < n->n_layers && !s; b++) {
      if (!can_join(n, a, b)) continue;
      s = clb_linear_join(n, n->layer[a], n->layer[b]);
      if (!s) clb_network_remove(n, a--);
      break;
    }
  return s;
}

/* Whether the maps in layer `to` alone read what comes out of the gate, which nothing else writes,
   and nothing between them writes what goes in. Not in f64, whose exponentials are long: in kernels
   of maps Intel's compiler calls functions for them. */
static bool can_gate(const clb_network *n, int gate, int to) {
  const clb_layer *a = n->layer[gate], *b = n->layer[to];
  if (a->kind != &clb_gate_kind || b->in[0] != a->out[0] ||
      n->array[a->out[0]]->per == CLB_PER_KNOT)
    return false;
  bool can = n->type == CLB_F32 && (b->kind == &clb_linear_group_kind || maps(n, b));
  for (int l = 0; l < n->n_layers; l++) {
    can &= l == gate || l == to || !touches(n->layer[l], a->out[0]);
    for (int i = 0; i < CLB_LAYER_OUTS && l > gate && l < to; i++)
      can &= n->layer[l]->out[i] != a->in[0];
  }
  return can;
}

clb_status clb_pass_join(clb_network *n) {
  clb_status s = join_maps(n);
  for (int a = 0; a < n->n_layers && !s; a++)
    for (int b = a + 1; b < n->n_layers && !s; b++) {
      if (!can_gate(n, a, b)) continue;
      s = clb_linear_join_gate(n, n->layer[a], n->layer[b]);
      if (!s) clb_network_remove(n, a--);
      break;
    }
  return s;
}
