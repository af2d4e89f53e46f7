/* models/layers/density.c - how densely an atom is surrounded: a sum over its edges of a function
   of their radial basis. */
#include "models/layers/kinds.h"

static clb_status build(clb_network *n, clb_layer *y) {
  clb_density *p = y->parameters;
  return clb_density_create(n->ctx, n->type,
                            (int)n->array[y->in[CLB_DENSITY_FUNCTIONS]]->irreps.dim,
                            n->weights + p->weights, y->in[CLB_DENSITY_CUTOFF] >= 0, &p->op);
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_density *p = y->parameters;
  (void)adds;
  return clb_density_forward(p->op, n->graph, clb_value(n, y->in[CLB_DENSITY_FUNCTIONS]),
                             clb_value(n, y->in[CLB_DENSITY_CUTOFF]), clb_value(n, y->out[0]));
}

/* Its two gradients are both added to, or both overwritten: whoever reads a cutoff reads basis
   functions, too. */
static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_density *p = y->parameters;
  const int functions = y->in[CLB_DENSITY_FUNCTIONS], cutoff = y->in[CLB_DENSITY_CUTOFF];
  return clb_density_backward(p->op, n->graph, clb_value(n, functions), clb_value(n, cutoff),
                              clb_gradient(n, y->out[0]), clb_gradient(n, functions),
                              clb_gradient(n, cutoff), adds & 1);
}

static void free_ops(void *parameters) { clb_op_destroy(&((clb_density *)parameters)->op); }

const clb_layer_kind clb_density_kind = {.reads_in =
                                             1U << CLB_DENSITY_FUNCTIONS | 1U << CLB_DENSITY_CUTOFF,
                                         .build = build,
                                         .forward = forward,
                                         .backward = backward,
                                         .free_ops = free_ops};
