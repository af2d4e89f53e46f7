/* models/layers/energy.c - the energy of each atom, and their sum. */
#include <stdlib.h>

#include "kernels/linear/host/linear.h"
#include "models/layers/kinds.h"

/* One species more: of atoms whose energy does not count. */
typedef struct {
  double scale[CLB_ELEMENTS + 1], shift[CLB_ELEMENTS + 1];
} numbers;

static numbers numbers_of(const clb_network *n, const clb_energy *p) {
  numbers x = {0};
  for (int i = 0; i < n->n_species; i++)
    x.scale[i] = n->weights[p->scale + i], x.shift[i] = n->weights[p->shift + i];
  return x;
}

static clb_status build(clb_network *n, clb_layer *y) {
  clb_energy *p = y->parameters;
  const numbers x = numbers_of(n, p);
  const clb_status s =
      clb_energy_create(n->ctx, n->type, n->n_species + 1, x.scale, x.shift, &p->op);
  n->energy = p->op;
  return s;
}

static clb_status run(clb_network *n, const clb_layer *y, clb_rows g_x) {
  const clb_energy *p = y->parameters;
  return clb_energy_forward(p->op, n->at.n, n->energy_species, clb_value(n, y->in[0]), n->e_atom,
                            n->totals, g_x);
}

/* Where backward follows, it does both in one launch. */
static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  return n->goes_back ? CLB_OK : run(n, y, (clb_rows){0});
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_energy *p = y->parameters;
  (void)adds;
  if (n->goes_back) return run(n, y, clb_gradient(n, y->in[0]));
  return clb_energy_backward(p->op, n->at.n, n->energy_species, clb_gradient(n, y->in[0]));
}

/* ---- training: e = scale x + shift of an atom is a linear map of its species ---- */

static clb_status derive(clb_network *n, clb_layer *y) {
  const clb_energy *p = y->parameters;
  clb_status s = clb_network_keep(n, p->scale, n->n_species);
  if (!s) s = clb_network_keep(n, p->shift, n->n_species);
  if (!s)
    s = clb_network_species_map(n, n->n_species, 1, CLB_OPERAND_X | CLB_OPERAND_W, &y->derivatives);
  return s ? s
           : clb_network_species_map(n, n->n_species, 1, CLB_OPERAND_W,
                                     &((clb_energy *)y->parameters)->weights);
}

static clb_status renew(clb_network *n, clb_layer *y) {
  const clb_energy *p = y->parameters;
  const numbers x = numbers_of(n, p);
  return clb_energy_set(p->op, x.scale, x.shift);
}

static clb_status reverse(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_energy *p = y->parameters;
  const clb_rows w = {n->device_weights, p->scale, CLB_DENSE, n->species.buffer},
                 g_scale = clb_weight_gradient(n, w),
                 g_shift = {n->weight_gradient, p->shift, CLB_DENSE, NULL},
                 one = {n->one, 0, CLB_SAME_ROW, NULL},
                 g = {n->by_energy, n->at.first, CLB_DENSE, NULL}, along = clb_tangent(n, y->in[0]);
  (void)adds;
  clb_status s = clb_linear_run(
      y->derivatives, CLB_BACKWARD, n->at.n,
      (const clb_rows[]){clb_value(n, y->in[0]), w, g, clb_adjoint(n, y->in[0]), g_scale});
  if (!s)
    s = clb_linear_run(p->weights, CLB_BACKWARD, n->at.n,
                       (const clb_rows[]){one, w, g, {0}, g_shift});
  return s || !along.buffer ? s
                            : clb_linear_run(p->weights, CLB_BACKWARD, n->at.n,
                                             (const clb_rows[]){one, w, along, {0}, g_scale});
}

static void free_ops(void *parameters) {
  clb_op_destroy(&((clb_energy *)parameters)->op);
  clb_op_destroy(&((clb_energy *)parameters)->weights);
}

const clb_layer_kind clb_energy_kind = {.ends = true,
                                        .build = build,
                                        .forward = forward,
                                        .backward = backward,
                                        .always_adds = true,
                                        .derive = derive,
                                        .renew = renew,
                                        .reverse = reverse,
                                        .free_ops = free_ops};
