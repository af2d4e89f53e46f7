/* models/layers/table.c - splines through the weights of a convolution's paths, in place of the
   radial network. */
#include <math.h>
#include <stdlib.h>

#include "models/layers/kinds.h"
#include "src/ops/convolution/table.h"

/* x dx times the cutoff. */
static void apply_cutoff(int64_t n, double cut, double slope, double *x, double *dx) {
  for (int64_t i = 0; i < n; i++) {
    dx[i] = dx[i] * cut + x[i] * slope;
    x[i] *= cut;
  }
}

/* The weights and their derivatives at length r: w[n_weights], dw[n_weights]. */
static clb_status weights_at(clb_network *n, const clb_convolution *p, double r, double *w,
                             double *dw) {
  double b[CLB_MAX_BASIS], db[CLB_MAX_BASIS], cut, slope;
  clb_basis_at(n, &p->basis, r, b, db);
  clb_cutoff_at(&p->basis, r, &cut, &slope);
  if (!p->cut) apply_cutoff(p->basis.n, cut, slope, b, db);
  const clb_status s = clb_radial_at(n, &p->radial, b, db, w, dw);
  if (p->cut) apply_cutoff(p->n_weights, cut, slope, w, dw);
  return s;
}

/* Largest errors of the splines and of their slopes, taken where they are largest in each interval:
   in the middle, and where u (1 - u) (1 - 2 u) is extreme; relative to the largest weight. */
static clb_status find_error(clb_network *n, const clb_convolution *p,
                             const clb_convolution_table *t, const double *coefficients, double max,
                             double *w) {
  static const double places[] = {0.5, 0.21};
  const int64_t width = p->n_weights;
  double off[2] = {0}, *made = w + 2 * width;
  clb_status s = CLB_OK;
  for (int i = 0; i < 2 * (t->knots - 1) && !s; i++) {
    const double knot = i / 2 + places[i % 2];
    s = weights_at(n, p, clb_convolution_table_knot(t, knot), w, w + width);
    clb_convolution_table_at(t, width, coefficients, knot, made, made + width);
    for (int64_t j = 0; j < 2 * width && !s; j++)
      off[j / width] = fmax(off[j / width], fabs(made[j] - w[j]));
  }
  double *worst[] = {&n->table_error, &n->table_slope_error};
  for (int i = 0; i < 2; i++)
    if (off[i] > *worst[i] * max) *worst[i] = off[i] / max;
  return s;
}

clb_status clb_convolution_tabulate(clb_network *n, const clb_convolution *p,
                                    const clb_convolution_desc *d) {
  const clb_convolution_table t =
      clb_convolution_table_of(d->knots, d->first_knot, d->last_knot, d->break_at);
  const int64_t width = p->n_weights, knots = t.knots;
  double *w = malloc((size_t)(4 * width + knots) * sizeof *w),
         *values = malloc((size_t)(knots * width) * sizeof *values),
         *coefficients =
             malloc((size_t)(clb_convolution_table_rows(&t) * width) * sizeof *coefficients),
         max = 0;
  clb_status s = w && values && coefficients ? CLB_OK : clb_network_no_memory(n);
  for (int k = 0; k < knots && !s; k++)
    s = weights_at(n, p, clb_convolution_table_knot(&t, k), values + k * width, w);
  for (int64_t i = 0; i < knots * width && !s; i++) max = fmax(max, fabs(values[i]));
  if (!s) s = clb_convolution_set_table(p->op, values);
  if (!s) {
    clb_convolution_table_solve(&t, width, values, coefficients, w + 4 * width);
    s = find_error(n, p, &t, coefficients, max, w);
  }
  free(w);
  free(values);
  free(coefficients);
  return s;
}
