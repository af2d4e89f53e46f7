/* models/layers/repulsion.c - repulsion of nuclei (ZBL). */
#include <string.h>

#include "models/layers/kinds.h"

static clb_status build(clb_network *n, clb_layer *y) {
  clb_repulsion *p = y->parameters;
  clb_repulsion_desc d = {.n_species = n->n_species,
                          .charges = n->weights + p->charges,
                          .screening = n->weights + p->screening,
                          .reach = n->weights + p->reach,
                          .p = p->p,
                          .r_max = n->r_max};
  memcpy(d.coefficients, p->coefficients, sizeof d.coefficients);
  memcpy(d.exponents, p->exponents, sizeof d.exponents);
  return clb_repulsion_create(n->ctx, n->type, &d, &p->op);
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_repulsion *p = y->parameters;
  return clb_repulsion_forward(p->op, n->graph, n->graph_species, clb_value(n, y->in[0]),
                               clb_value(n, y->out[0]), adds & 1);
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_repulsion *p = y->parameters;
  return clb_repulsion_backward(p->op, n->graph, n->graph_species, clb_value(n, y->in[0]),
                                clb_gradient(n, y->out[0]), clb_gradient(n, y->in[0]), adds & 1);
}

/* ---- training: it has no parameters that are trained ---- */

static clb_status derive(clb_network *n, clb_layer *y) {
  (void)n;
  return clb_layer_add_training(((clb_repulsion *)y->parameters)->op);
}

static clb_status along(clb_network *n, clb_layer *y, unsigned adds, bool bends) {
  (void)bends;
  const clb_repulsion *p = y->parameters;
  return clb_repulsion_along(p->op, n->graph, n->graph_species, clb_value(n, y->in[0]),
                             clb_tangent(n, y->in[0]), clb_tangent(n, y->out[0]), adds & 1);
}

static void free_ops(void *parameters) { clb_op_destroy(&((clb_repulsion *)parameters)->op); }

const clb_layer_kind clb_repulsion_kind = {.reads_in = 1,
                                           .sums = true,
                                           .build = build,
                                           .forward = forward,
                                           .backward = backward,
                                           .derive = derive,
                                           .along = along,
                                           .free_ops = free_ops};
