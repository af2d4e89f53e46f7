/* models/layers/edges/density.c - how densely an atom is surrounded: a sum over its edges of a
   function of their radial basis. */
#include "kernels/layers/host/layer_call.h"
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

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_density *p = y->parameters;
  const int functions = y->in[CLB_DENSITY_FUNCTIONS], cutoff = y->in[CLB_DENSITY_CUTOFF];
  return clb_density_backward(p->op, n->graph, clb_value(n, functions), clb_value(n, cutoff),
                              clb_gradient(n, y->out[0]), clb_gradient(n, functions),
                              clb_gradient(n, cutoff), adds >> CLB_DENSITY_FUNCTIONS & 1,
                              adds >> CLB_DENSITY_CUTOFF & 1);
}

/* ---- training ---- */

static clb_status derive(clb_network *n, clb_layer *y) {
  clb_density *p = y->parameters;
  const clb_status s = clb_network_keep(n, p->weights, p->op->problem.density.n_basis);
  return s ? s : clb_network_derive(n, p->op, y->in[CLB_DENSITY_FUNCTIONS], &p->sums);
}

static clb_status renew(clb_network *n, clb_layer *y) {
  const clb_density *p = y->parameters;
  return clb_layer_write(p->op, n->type, n->weights + p->weights, p->op->problem.density.n_basis,
                         &p->op->reals);
}

static clb_status along(clb_network *n, clb_layer *y, unsigned adds, bool bends) {
  const clb_density *p = y->parameters;
  const int functions = y->in[CLB_DENSITY_FUNCTIONS], cutoff = y->in[CLB_DENSITY_CUTOFF];
  (void)adds, (void)bends;
  return clb_density_along(p->op, n->graph, clb_value(n, functions), clb_value(n, cutoff),
                           clb_tangent(n, functions), clb_tangent(n, cutoff),
                           clb_tangent(n, y->out[0]));
}

static clb_status reverse(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  clb_density *p = y->parameters;
  const int functions = y->in[CLB_DENSITY_FUNCTIONS], cutoff = y->in[CLB_DENSITY_CUTOFF];
  const int64_t edges = clb_row_count(n, functions), columns = n->array[functions]->irreps.dim;
  if (!clb_gradient(n, y->out[0]).buffer || !edges) return CLB_OK;
  clb_status s = clb_network_grow(n, &p->by_edge, edges * columns);
  if (!s)
    s = clb_density_reverse(p->op, n->graph, clb_value(n, functions), clb_value(n, cutoff),
                            clb_tangent(n, functions), clb_tangent(n, cutoff),
                            clb_adjoint(n, y->out[0]), clb_gradient(n, y->out[0]),
                            clb_adjoint(n, functions), clb_adjoint(n, cutoff),
                            (clb_rows){p->by_edge, 0, CLB_DENSE, NULL});
  return s ? s
           : clb_column_sum_run(p->sums, edges, &p->by_edge->memory, 0, columns,
                                &n->weight_gradient->memory, p->weights, true);
}

static void free_ops(void *parameters) {
  clb_density *p = parameters;
  clb_op_destroy(&p->op);
  clb_op_destroy(&p->sums);
  clb_buffer_destroy(&p->by_edge);
}

const clb_layer_kind clb_density_kind = {.reads_in =
                                             1U << CLB_DENSITY_FUNCTIONS | 1U << CLB_DENSITY_CUTOFF,
                                         .late = true,
                                         .always_adds = true,
                                         .build = build,
                                         .forward = forward,
                                         .backward = backward,
                                         .derive = derive,
                                         .renew = renew,
                                         .along = along,
                                         .reverse = reverse,
                                         .free_ops = free_ops};
