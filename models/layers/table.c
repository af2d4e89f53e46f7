/* models/layers/table.c - splines through the weights of a convolution's paths, in place of the
   radial network. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/layers/kinds.h"

clb_convolution_table clb_radial_grid(const clb_network *n, const clb_radial_function *f) {
  const double first = n->r_max / 12; /* shorter than any bond */
  /* where second derivatives jump; 0: nowhere in the table */
  const double break_at = f->basis.cutoff_on > first ? f->basis.cutoff_on : 0;
  return clb_convolution_table_of(n->knots, first, n->r_max, break_at);
}

/* x dx times the cutoff. */
static void apply_cutoff(int64_t n, double cut, double slope, double *x, double *dx) {
  for (int64_t i = 0; i < n; i++) {
    dx[i] = dx[i] * cut + x[i] * slope;
    x[i] *= cut;
  }
}

static int64_t width_of(const clb_radial_function *f) { return f->radial.width[f->radial.n]; }

/* The weights and their derivatives at length r: w[W], dw[W]. */
static clb_status weights_at(clb_network *n, const clb_radial_function *f,
                             const clb_edge_species *e, double r, double *w, double *dw) {
  double b[CLB_MAX_BASIS], db[CLB_MAX_BASIS], cut, slope;
  clb_basis_at(n, &f->basis, e->r_0, r, b, db);
  clb_cutoff_at(&f->basis, r, &cut, &slope);
  if (!f->apart) apply_cutoff(f->basis.n, cut, slope, b, db);
  const clb_status s = clb_radial_at(n, &f->radial, e, b, db, w, dw);
  if (f->cut) apply_cutoff(width_of(f), cut, slope, w, dw);
  return s;
}

/* Largest errors of the splines and of their slopes, taken where they are largest in each interval:
   in the middle, and where u (1 - u) (1 - 2 u) is extreme; relative to the largest weight. w: 4 W
   numbers. */
static clb_status find_error(clb_network *n, const clb_radial_function *f,
                             const clb_convolution_table *t, const clb_edge_species *e,
                             const double *coefficients, double max, double *w) {
  static const double places[] = {0.5, 0.21};
  const int64_t width = width_of(f);
  double off[2] = {0}, *made = w + 2 * width;
  clb_status s = CLB_OK;
  for (int i = 0; i < 2 * (t->knots - 1) && !s; i++) {
    const double knot = i / 2 + places[i % 2];
    s = weights_at(n, f, e, clb_convolution_table_knot(t, knot), w, w + width);
    clb_convolution_table_at(t, width, coefficients, knot, made, made + width);
    for (int64_t j = 0; j < 2 * width && !s; j++)
      off[j / width] = fmax(off[j / width], fabs(made[j] - w[j]));
  }
  double *worst[] = {&n->table_error, &n->table_slope_error};
  for (int i = 0; i < 2; i++)
    if (off[i] > *worst[i] * max) *worst[i] = off[i] / max;
  return s;
}

/* Replaces values[knots][W] at every second knot by those of the splines through the others, which
   are splines on all knots, too: the table of half as many knots, in the place of this one. w: 2 W
   + knots numbers. */
static clb_status halve(clb_network *n, const clb_convolution_table *t, int64_t width,
                        double *values, double *w) {
  clb_convolution_table half = *t;
  half.knots = (t->knots + 1) / 2;
  half.split = t->split / 2;
  const int64_t rows = clb_convolution_table_rows(&half);
  double *x = malloc((size_t)((half.knots + rows) * width) * sizeof *x);
  if (!x) return clb_network_no_memory(n);
  for (int k = 0; k < half.knots; k++)
    memcpy(x + k * width, values + 2 * k * width, (size_t)width * sizeof *x);
  double *coefficients = x + half.knots * width;
  clb_convolution_table_solve(&half, width, x, coefficients, w + 2 * width);
  for (int k = 1; k < t->knots; k += 2)
    clb_convolution_table_at(&half, width, coefficients, k / 2.0, values + k * width, w);
  free(x);
  return CLB_OK;
}

clb_status clb_radial_table(clb_network *n, const clb_radial_function *f,
                            const clb_convolution_table *t, const clb_edge_species *e,
                            double *values, double *coefficients) {
  const int64_t width = width_of(f), knots = t->knots;
  double *w = malloc((size_t)(4 * width + knots) * sizeof *w), max = 0;
  clb_status s = w ? CLB_OK : clb_network_no_memory(n);
  for (int k = 0; k < knots && !s; k++)
    s = weights_at(n, f, e, clb_convolution_table_knot(t, k), values + k * width, w);
  for (int64_t i = 0; i < knots * width && !s; i++) max = fmax(max, fabs(values[i]));
  if (!s && n->halved) {
    s = halve(n, t, width, values, w);
    if (!s) clb_convolution_table_solve(t, width, values, coefficients, w + 4 * width);
  } else if (!s) {
    clb_convolution_table_solve(t, width, values, coefficients, w + 4 * width);
    s = find_error(n, f, t, e, coefficients, max, w);
  }
  free(w);
  return s;
}
