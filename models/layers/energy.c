/* models/layers/energy.c - the energy of each atom, and their sum. */
#include "models/layers/kinds.h"

/* One species more: of atoms whose energy does not count. */
static clb_status build(clb_network *n, clb_layer *y) {
  clb_energy *p = y->parameters;
  double scale[CLB_ELEMENTS + 1] = {0}, shift[CLB_ELEMENTS + 1] = {0};
  for (int i = 0; i < n->n_species; i++)
    scale[i] = n->weights[p->scale + i], shift[i] = n->weights[p->shift + i];
  const clb_status s = clb_energy_create(n->ctx, n->type, n->n_species + 1, scale, shift, &p->op);
  n->energy = p->op;
  return s;
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_energy *p = y->parameters;
  (void)adds;
  return clb_energy_forward(p->op, n->at.n, n->energy_species, clb_value(n, y->in[0]), n->e_atom,
                            n->totals);
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_energy *p = y->parameters;
  (void)adds;
  return clb_energy_backward(p->op, n->at.n, n->energy_species, clb_gradient(n, y->in[0]));
}

static void free_ops(void *parameters) { clb_op_destroy(&((clb_energy *)parameters)->op); }

const clb_layer_kind clb_energy_kind = {
    .ends = true, .build = build, .forward = forward, .backward = backward, .free_ops = free_ops};
