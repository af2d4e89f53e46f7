/* models/layers/edges/functions.c - Gaussians of lengths, and rotations into frames of edges. */
#include "kernels/layers/host/edge_functions.h"
#include "models/layers/kinds.h"

/* ---- Gaussians ---- */

static clb_status build_gaussians(clb_network *n, clb_layer *y) {
  clb_gaussians *p = y->parameters;
  return clb_gaussians_create(n->ctx, n->type, n->array[y->out[0]]->irreps.dim, p->r_max, p->width,
                              &p->op);
}

static clb_status gaussians_forward(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  return clb_gaussians_forward(((clb_gaussians *)y->parameters)->op, n->at.n_edges,
                               clb_value(n, y->in[0]), clb_value(n, y->out[0]));
}

static clb_status gaussians_backward(clb_network *n, clb_layer *y, unsigned adds) {
  return clb_gaussians_backward(((clb_gaussians *)y->parameters)->op, n->at.n_edges,
                                clb_value(n, y->in[0]), clb_gradient(n, y->out[0]),
                                clb_gradient(n, y->in[0]), adds & 1);
}

static void free_gaussians(void *parameters) { clb_op_destroy(&((clb_gaussians *)parameters)->op); }

const clb_layer_kind clb_gaussians_kind = {.reads_in = 1,
                                           .again = true,
                                           .build = build_gaussians,
                                           .forward = gaussians_forward,
                                           .backward = gaussians_backward,
                                           .free_ops = free_gaussians};

/* ---- rotations ---- */

/* Backward ops for the order of layers as it is, besides those that are there. */
static clb_status make_back(clb_network *n, clb_layer *y) {
  clb_rotation *p = y->parameters;
  clb_status s = CLB_OK;
  for (int i = 0; i < n->n_steps && !s; i++) {
    const unsigned adds = n->step[i].adds & 1;
    if (n->layer[n->step[i].layer] == y && n->step[i].sweep == CLB_SWEEP_BACKWARD && !p->back[adds])
      s = clb_edge_rotation_create(n->ctx, n->type, p->l, p->m, adds, CLB_PASS_BIT(CLB_BACKWARD),
                                   &p->back[adds]);
  }
  return s;
}

static clb_status build_rotation(clb_network *n, clb_layer *y) {
  clb_rotation *p = y->parameters;
  const clb_status s = clb_edge_rotation_create(n->ctx, n->type, p->l, p->m, false,
                                                CLB_PASS_BIT(CLB_FORWARD), &p->op);
  return s ? s : make_back(n, y);
}

static clb_status rotation_forward(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  return clb_edge_rotation_forward(((clb_rotation *)y->parameters)->op, n->at.n_edges,
                                   clb_value(n, y->in[0]), clb_value(n, y->out[0]));
}

static clb_status rotation_backward(clb_network *n, clb_layer *y, unsigned adds) {
  return clb_edge_rotation_backward(((clb_rotation *)y->parameters)->back[adds & 1], n->at.n_edges,
                                    clb_value(n, y->in[0]), clb_gradient(n, y->out[0]),
                                    clb_gradient(n, y->in[0]));
}

static void free_rotation(void *parameters) {
  clb_rotation *p = parameters;
  clb_op **all[] = {&p->op, &p->back[0], &p->back[1]};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) clb_op_destroy(all[i]);
}

const clb_layer_kind clb_rotation_kind = {.reads_in = 1,
                                          .again = true,
                                          .build = build_rotation,
                                          .reorder = make_back,
                                          .forward = rotation_forward,
                                          .backward = rotation_backward,
                                          .free_ops = free_rotation};
