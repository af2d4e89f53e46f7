/* models/layers/energy.c - the energy of each atom, and their sum. */
#include <stdlib.h>

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

/* ---- training: a number for each atom, on the host ---- */

static clb_status renew(clb_network *n, clb_layer *y) {
  const clb_energy *p = y->parameters;
  const numbers x = numbers_of(n, p);
  return clb_energy_set(p->op, x.scale, x.shift);
}

/* Of e = scale x + shift, whose tangent is scale times that of x. x: [n_local], then tangents. */
static void add_up(const clb_network *n, const clb_energy *p, double *x, double *scale,
                   double *shift) {
  const int64_t atoms = n->n_local;
  for (int64_t i = 0; i < atoms; i++) {
    const int32_t s = n->energy_species_of[i];
    if (s < n->n_species) {
      scale[s] += n->by_energy[i] * x[i] + x[atoms + i];
      shift[s] += n->by_energy[i];
    }
    x[i] = s < n->n_species ? n->by_energy[i] * n->weights[p->scale + s] : 0;
  }
}

static clb_status reverse(clb_network *n, clb_layer *y) {
  const clb_energy *p = y->parameters;
  const int64_t atoms = n->n_local;
  double scale[CLB_ELEMENTS] = {0}, shift[CLB_ELEMENTS] = {0};
  if (!atoms) return CLB_OK;
  double *x = malloc(2 * (size_t)atoms * sizeof *x);
  clb_status s = x ? CLB_OK : clb_network_no_memory(n);
  if (!s) s = clb_network_read(n, clb_value(n, y->in[0]).buffer, n->type, atoms, x);
  if (!s) s = clb_network_read(n, clb_tangent(n, y->in[0]).buffer, n->type, atoms, x + atoms);
  if (!s) {
    add_up(n, p, x, scale, shift);
    s = clb_network_write(n, clb_adjoint(n, y->in[0]).buffer, n->type, 0, atoms, x);
  }
  if (!s) s = clb_network_write(n, n->weight_gradient, n->type, p->scale, n->n_species, scale);
  if (!s) s = clb_network_write(n, n->weight_gradient, n->type, p->shift, n->n_species, shift);
  free(x);
  return s;
}

static void free_ops(void *parameters) { clb_op_destroy(&((clb_energy *)parameters)->op); }

const clb_layer_kind clb_energy_kind = {.ends = true,
                                        .build = build,
                                        .forward = forward,
                                        .backward = backward,
                                        .renew = renew,
                                        .reverse = reverse,
                                        .free_ops = free_ops};
