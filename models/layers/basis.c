/* models/layers/basis.c - radial basis functions of edges: Bessel functions times a cutoff, or a
   spline. */
#include <math.h>
#include <string.h>

#include "models/layers/kinds.h"

static clb_status build(clb_network *n, clb_layer *y) {
  clb_basis *p = y->parameters;
  const bool apart = y->out[CLB_BASIS_CUTOFF] >= 0;
  p->agnesi.n_species = n->n_species;
  p->agnesi.radii = n->weights + p->radii;
  return clb_radial_pairs_create(n->ctx, n->type, clb_edge_arithmetic(n),
                                 &(clb_radial_desc){p->r_max, p->cutoff_p, p->n,
                                                    n->weights + p->frequencies, p->cutoff_on,
                                                    p->width},
                                 p->transformed ? &p->agnesi : NULL, apart, &p->op);
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_basis *p = y->parameters;
  (void)adds;
  return clb_radial_pairs_forward(p->op, n->graph, n->graph_species, clb_value(n, y->in[0]),
                                  (clb_rows){0}, clb_value(n, y->out[CLB_BASIS_FUNCTIONS]),
                                  clb_value(n, y->out[CLB_BASIS_CUTOFF]));
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_basis *p = y->parameters;
  return clb_radial_pairs_backward(p->op, n->graph, n->graph_species, clb_value(n, y->in[0]),
                                   clb_gradient(n, y->out[CLB_BASIS_FUNCTIONS]),
                                   clb_gradient(n, y->out[CLB_BASIS_CUTOFF]),
                                   clb_gradient(n, y->in[0]), adds & 1);
}

/* ---- training ---- */

static clb_status derive(clb_network *n, clb_layer *y) {
  clb_basis *p = y->parameters;
  clb_status s = p->width ? CLB_OK : clb_network_keep(n, p->frequencies, p->n);
  if (!s && p->transformed) s = clb_network_keep(n, p->radii, n->n_species);
  if (s) return s;
  return p->width ? clb_layer_add_training(p->op)
                  : clb_network_derive(n, p->op, y->out[CLB_BASIS_FUNCTIONS], &p->sums);
}

/* Frequencies are constants of the kernels. */
static clb_status renew(clb_network *n, clb_layer *y) {
  clb_basis *p = y->parameters;
  if (p->width || !memcmp(p->op->problem.radial.frequency, n->weights + p->frequencies,
                          (size_t)p->n * sizeof *n->weights))
    return CLB_OK;
  n->ops_renewed++;
  clb_op_destroy(&p->op);
  const clb_status s = build(n, y);
  return s ? s : clb_layer_add_training(p->op);
}

static clb_status along(clb_network *n, clb_layer *y, unsigned adds, bool bends) {
  (void)adds, (void)bends;
  const clb_basis *p = y->parameters;
  return clb_radial_pairs_along(
      p->op, n->graph, n->graph_species, clb_value(n, y->in[0]), clb_tangent(n, y->in[0]),
      clb_tangent(n, y->out[CLB_BASIS_FUNCTIONS]), clb_tangent(n, y->out[CLB_BASIS_CUTOFF]));
}

/* The functions' tangents are not needed any more: their place takes gradients of each edge. */
static clb_status reverse(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  const clb_basis *p = y->parameters;
  const int b = y->out[CLB_BASIS_FUNCTIONS];
  const clb_rows h = clb_gradient(n, b), place = clb_tangent(n, b);
  const int64_t edges = clb_row_count(n, b);
  if (p->width || !h.buffer || !edges) return CLB_OK;
  const clb_status s =
      clb_radial_pairs_frequencies(p->op, n->graph, n->graph_species, clb_value(n, y->in[0]),
                                   clb_tangent(n, y->in[0]), clb_adjoint(n, b), h, place);
  return s ? s
           : clb_column_sum_run(p->sums, edges, &place.buffer->memory, 0, place.stride,
                                &n->weight_gradient->memory, p->frequencies, true);
}

static void free_ops(void *parameters) {
  clb_op_destroy(&((clb_basis *)parameters)->op);
  clb_op_destroy(&((clb_basis *)parameters)->sums);
}

const clb_layer_kind clb_basis_kind = {.reads_in = 1,
                                       .late = true,
                                       .build = build,
                                       .forward = forward,
                                       .backward = backward,
                                       .derive = derive,
                                       .renew = renew,
                                       .along = along,
                                       .reverse = reverse,
                                       .free_ops = free_ops};

/* ---- on the host ---- */

void clb_cutoff_at(const clb_basis *f, double r, double *cut, double *slope) {
  const double u = r / f->r_max, p = f->cutoff_p;
  *cut = *slope = 0;
  if (u >= 1) return;
  if (p > 0) {
    const double c0 = (p + 1) * (p + 2) / 2, c1 = p * (p + 2), c2 = p * (p + 1) / 2;
    *cut = 1 - c0 * pow(u, p) + c1 * pow(u, p + 1) - c2 * pow(u, p + 2);
    *slope = (-c0 * p * pow(u, p - 1) + c1 * (p + 1) * pow(u, p) - c2 * (p + 2) * pow(u, p + 1)) /
             f->r_max;
    return;
  }
  const double on = f->cutoff_on / f->r_max, c = on * on, cube = pow(1 - c, 3);
  *cut = u < on ? 1 : (1 - u * u) * (1 - u * u) * (1 + 2 * u * u - 3 * c) / cube;
  *slope = u < on ? 0 : -12 * u * (1 - u * u) * (u * u - c) / cube / f->r_max;
}

/* Agnesi's distance d(r), and d'(r), which is 0 from r_max on. */
static double transform(const clb_basis *f, double r_0, double r, double *slope) {
  const clb_agnesi *t = &f->agnesi;
  const double u = fmin(r, f->r_max) / r_0, rest = pow(u, t->p - t->q),
               x = t->a * pow(u, t->p) / (1 + rest), d = 1 / (1 + x);
  *slope = r < f->r_max ? -d * d * x * (t->p - (t->p - t->q) * rest / (1 + rest)) / r : 0;
  return d;
}

void clb_basis_at(const clb_network *n, const clb_basis *f, double r_0, double r, double *b,
                  double *db) {
  const double min = 1e-6 * f->r_max;
  double d = r, slope = 1;
  if (f->transformed) d = transform(f, r_0, r, &slope);
  for (int k = 0; k < f->n; k++) {
    const double w = n->weights[f->frequencies + k] / f->r_max, s = 2 / f->r_max;
    b[k] = d < min ? s * w : s * sin(w * d) / d;
    db[k] = d < min ? 0 : s * (w * cos(w * d) - sin(w * d) / d) / d * slope;
  }
}
