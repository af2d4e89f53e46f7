/* models/layers/edges/splines.c - radial networks of models that train, as functions of lengths: a
   network gives its outputs and their slopes at knots, between which edges' weights and slopes are
   interpolated (kernels/layers/host/edge_spline.h). What is of knots alone has few rows; its layers
   are those of any other network. */
#include <math.h>
#include <stdlib.h>

#include "models/layers/kinds.h"

/* ---- places: vectors -> factors of rows at knots ---- */

static clb_status build_places(clb_network *n, clb_layer *y) {
  clb_places *p = y->parameters;
  return clb_edge_knots_create(n->ctx, n->type, clb_edge_arithmetic(n), n->grid.r_max,
                               n->grid.intervals, n->grid.split, &p->op);
}

static clb_status forward_places(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_places *p = y->parameters;
  (void)adds;
  return clb_edge_knots_forward(p->op, n->by_knots, clb_value(n, y->in[0]),
                                clb_value(n, y->out[0]));
}

static clb_status backward_places(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_places *p = y->parameters;
  return clb_edge_knots_backward(p->op, n->by_knots, clb_value(n, y->in[0]),
                                 clb_gradient(n, y->out[0]), clb_gradient(n, y->in[0]), adds & 1);
}

static clb_status along_places(clb_network *n, clb_layer *y, unsigned adds, bool bends) {
  const clb_places *p = y->parameters;
  (void)adds, (void)bends;
  return clb_edge_knots_along(p->op, n->by_knots, clb_value(n, y->in[0]), clb_tangent(n, y->in[0]),
                              clb_tangent(n, y->out[0]));
}

static void free_places(void *parameters) { clb_op_destroy(&((clb_places *)parameters)->op); }

const clb_layer_kind clb_places_kind = {.reads_in = 1,
                                        .build = build_places,
                                        .forward = forward_places,
                                        .backward = backward_places,
                                        .along = along_places,
                                        .free_ops = free_places};

clb_status clb_places_sort(clb_network *n, const clb_graph *edges, clb_graph *sorted) {
  for (int l = 0; l < n->n_layers; l++) {
    const clb_places *p = n->layer[l]->parameters;
    if (n->layer[l]->kind != &clb_places_kind) continue;
    return clb_edge_knots_sort(p->op, edges->n_edges, clb_value(n, CLB_VECTORS), sorted);
  }
  return CLB_OK;
}

/* ---- spline: factors, and a network's outputs at knots -> weights of paths ---- */

static clb_status build_spline(clb_network *n, clb_layer *y) {
  return clb_edge_spline_create(n->ctx, n->type, n->grid.intervals, n->array[y->out[0]]->irreps.dim,
                                &((clb_spline_layer *)y->parameters)->op);
}

static clb_status forward_spline(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_spline_layer *p = y->parameters;
  (void)adds;
  return clb_edge_spline_forward(p->op, n->by_knots, clb_value(n, y->in[CLB_SPLINE_TABLE]),
                                 clb_value(n, y->in[CLB_SPLINE_PLACES]), clb_value(n, y->out[0]));
}

static clb_status backward_spline(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_spline_layer *p = y->parameters;
  (void)adds;
  return clb_edge_spline_backward(
      p->op, n->by_knots, clb_slopes(n, clb_value(n, y->in[CLB_SPLINE_TABLE])),
      clb_gradient(n, y->out[0]), clb_gradient(n, y->in[CLB_SPLINE_PLACES]));
}

/* Of the first block the adjoint is overwritten. */
static clb_status along_spline(clb_network *n, clb_layer *y, unsigned adds, bool bends) {
  const clb_spline_layer *p = y->parameters;
  const int table = y->in[CLB_SPLINE_TABLE];
  const clb_rows c = clb_tangent(n, y->in[CLB_SPLINE_PLACES]);
  (void)adds;
  const clb_status s = clb_edge_spline_forward(
      p->op, n->by_knots, clb_slopes(n, clb_value(n, table)), c, clb_tangent(n, y->out[0]));
  return s || !bends ? s
                     : clb_edge_spline_sum(p->op, n->by_knots, c, clb_gradient(n, y->out[0]),
                                           clb_slopes(n, clb_adjoint(n, table)), n->graph->adds,
                                           n->workspace);
}

static clb_status reverse_spline(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_spline_layer *p = y->parameters;
  (void)adds;
  return clb_edge_spline_sum(p->op, n->by_knots, clb_value(n, y->in[CLB_SPLINE_PLACES]),
                             clb_adjoint(n, y->out[0]), clb_adjoint(n, y->in[CLB_SPLINE_TABLE]),
                             n->graph->adds, n->workspace);
}

static clb_status workspace(clb_network *n, clb_layer *y, clb_pass pass, uint64_t *min,
                            uint64_t *max) {
  const clb_spline_layer *p = y->parameters;
  (void)n;
  *min = *max = pass == CLB_DOUBLE_BACKWARD ? clb_edge_spline_bytes(p->op) : 0;
  return CLB_OK;
}

static void free_spline(void *parameters) { clb_op_destroy(&((clb_spline_layer *)parameters)->op); }

const clb_layer_kind clb_spline_kind = {.reads_in = 1U << CLB_SPLINE_TABLE,
                                        .overwrites = 1U << CLB_SPLINE_PLACES,
                                        .bends = CLB_BENDS_INPUTS,
                                        .build = build_spline,
                                        .forward = forward_spline,
                                        .backward = backward_spline,
                                        .workspace = workspace,
                                        .along = along_spline,
                                        .reverse = reverse_spline,
                                        .free_ops = free_spline};

/* ---- knots: functions of a basis at knots, and their slopes ---- */

/* Vectors of the knots' lengths, closer than a float is: of two components, and then unit vectors
   along them. */
static clb_status put_vectors(clb_network *n, clb_buffer *to) {
  const int64_t count = n->grid.intervals + 1;
  double *x = calloc((size_t)(6 * count), sizeof *x);
  if (!x) return clb_network_no_memory(n);
  for (int64_t i = 0; i < count; i++) {
    const double r = n->grid.r_max * (double)i / (double)n->grid.intervals,
                 first = (double)(float)(r * (1 - 0x1p-20)), second = sqrt(r * r - first * first);
    double *v = x + 3 * i, *q = v + 3 * count;
    v[0] = first, v[1] = second;
    q[0] = r > 0 ? first / r : 1, q[1] = r > 0 ? second / r : 0;
  }
  const clb_status s = clb_numbers_write(to, n->type, 0, 6 * count, x);
  free(x);
  return s;
}

static clb_status build_knots(clb_network *n, clb_layer *y) {
  clb_knots *p = y->parameters;
  const int64_t count = n->grid.intervals + 1, bytes = clb_dtype_bytes((int32_t)n->type),
                width = clb_array_stride(n->array[y->out[0]]);
  clb_status s = clb_graph_create(n->ctx, 0, 0, &p->graph);
  if (!s) s = clb_buffer_create(n->ctx, (uint64_t)(6 * count * bytes), &p->vectors);
  if (!s) s = clb_buffer_create(n->ctx, (uint64_t)(count * width * bytes), &p->by_knot);
  if (!s) p->graph->n_edges = count; /* knots stand for edges */
  return s ? s : put_vectors(n, p->vectors);
}

static clb_rows vectors_of(const clb_network *n, const clb_knots *p, bool along) {
  return (clb_rows){p->vectors, along ? 3 * (n->grid.intervals + 1) : 0, CLB_DENSE, NULL};
}

static clb_status forward_knots(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_knots *p = y->parameters;
  const clb_basis *basis = p->basis->parameters;
  const clb_rows none = {0}, v = vectors_of(n, p, false), out = clb_value(n, y->out[0]);
  (void)adds;
  const clb_status s = clb_radial_pairs_forward(basis->op, p->graph, none, v, none, out, none);
  return s ? s
           : clb_radial_pairs_along(basis->op, p->graph, none, v, vectors_of(n, p, true),
                                    clb_slopes(n, out), none);
}

static clb_status reverse_knots(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_knots *p = y->parameters;
  const clb_basis *basis = p->basis->parameters;
  const clb_rows none = {0}, g = clb_adjoint(n, y->out[0]),
                 by_knot = {p->by_knot, 0, g.stride, NULL};
  (void)adds;
  const clb_status s =
      clb_radial_pairs_frequencies(basis->op, p->graph, none, vectors_of(n, p, false),
                                   vectors_of(n, p, true), g, clb_slopes(n, g), by_knot);
  return s ? s
           : clb_column_sum_run(basis->sums, p->graph->n_edges, &p->by_knot->memory, 0, g.stride,
                                &n->weight_gradient->memory, basis->frequencies, true);
}

static void free_knots(void *parameters) {
  clb_knots *p = parameters;
  clb_graph_destroy(&p->graph);
  clb_buffer_destroy(&p->vectors);
  clb_buffer_destroy(&p->by_knot);
}

const clb_layer_kind clb_knots_kind = {.build = build_knots,
                                       .forward = forward_knots,
                                       .reverse = reverse_knots,
                                       .free_ops = free_knots};
