/* models/file/radial.c - the radial network on the host, in double precision, with its derivative,
   for making tables. */
#include <math.h>
#include <stdlib.h>

#include "models/file/file.h"

/* The cutoff and its derivative by r, inside r_max. */
static void cutoff_of(const clb_model_file *f, double r, double *cut, double *slope) {
  const double u = r / f->r_max, p = f->cutoff_p;
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

/* b_k(r) and b_k'(r), 0 from r_max on. */
static void basis_of(const clb_model_file *f, double r, double *b, double *db) {
  const double min = 1e-6 * f->r_max;
  double cut = 0, slope = 0;
  if (r < f->r_max) cutoff_of(f, r, &cut, &slope);
  for (int k = 0; k < f->n_basis; k++) {
    const double w = f->weights[f->frequencies + k] / f->r_max, s = 2 / f->r_max;
    const double wave = r < min ? s * w : s * sin(w * r) / r,
                 turn = r < min ? 0 : s * (w * cos(w * r) - sin(w * r) / r) / r;
    b[k] = wave * cut;
    db[k] = turn * cut + wave * slope;
  }
}

/* One matrix: x and dx of `rows` numbers to y and dy of `columns`. */
static void multiply(const double *w, int64_t rows, int64_t columns, const double *x,
                     const double *dx, double *y, double *dy) {
  for (int64_t o = 0; o < columns; o++) y[o] = dy[o] = 0;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t o = 0; o < columns; o++) {
      y[o] += x[i] * w[i * columns + o];
      dy[o] += dx[i] * w[i * columns + o];
    }
}

static void activate(int64_t n, double *x, double *dx) {
  for (int64_t i = 0; i < n; i++) {
    const double s = 1 / (1 + exp(-x[i]));
    dx[i] *= s * (1 + x[i] * (1 - s));
    x[i] *= s;
  }
}

clb_status clb_model_file_radial(clb_error_sink *error, const clb_model_file *f, int layer,
                                 double r, double *w, double *dw) {
  const clb_model_layer *y = &f->layer[layer];
  int64_t widest = 1;
  for (int k = 0; k < f->n_radial; k++)
    widest = y->radial_width[k] > widest ? y->radial_width[k] : widest;
  double *x = malloc((size_t)widest * 4 * sizeof *x), *dx = x + widest, *to = x + 2 * widest,
         *dto = x + 3 * widest;
  if (!x) return clb_fail(error, CLB_ERROR_MEMORY, "no memory");
  basis_of(f, r, x, dx);
  for (int k = 0; k < f->n_radial; k++) {
    const int64_t rows = y->radial_width[k], columns = y->radial_width[k + 1];
    const bool last = k == f->n_radial - 1;
    multiply(f->weights + y->radial[k], rows, columns, x, dx, last ? w : to, last ? dw : dto);
    if (last) break;
    activate(columns, to, dto);
    for (int64_t i = 0; i < columns; i++) x[i] = to[i], dx[i] = dto[i];
  }
  free(x);
  return CLB_OK;
}
