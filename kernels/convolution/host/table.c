/* kernels/convolution/host/table.c - the knots and the coefficients of a convolution's splines. */
#include "kernels/convolution/host/table.h"

#include <stdlib.h>

#include "kernels/convolution/spline.h"

enum { LEAST_INTERVALS = 3 };

clb_convolution_table clb_convolution_table_of(int knots, double first, double last,
                                               double break_at) {
  clb_convolution_table t = {knots, first, last, CLB_SPLINE_STRETCH, 0, NULL};
  const double x = (break_at - first) / (last - first), s = t.stretch, n = knots - 1;
  int at = break_at != 0 && x > 0 && x < 1 ? (int)(n * (1 + s) * x / (x + s) + 0.5) : 0;
  if (knots % 2) at += at % 2; /* then every second knot makes a table, too */
  /* t = n (1 + s) x / (x + s) is the whole number `at` */
  if (at < LEAST_INTERVALS || at > knots - 1 - LEAST_INTERVALS || at <= n * x) return t;
  t.stretch = x * (1 - at / n) / (at / n - x);
  t.split = at;
  return t;
}

int clb_convolution_table_rows(const clb_convolution_table *t) {
  return t->knots + 2 + (t->split ? CLB_SPLINE_ORDER - 1 : 0);
}

double clb_convolution_table_knot(const clb_convolution_table *t, double i) {
  const double s = t->stretch, x = i / (t->knots - 1);
  return x < 1 ? t->first + (t->last - t->first) * (s * x / (1 + s - x)) : t->last;
}

void clb_convolution_table_at(const clb_convolution_table *t, int64_t width,
                              const double *coefficients, double knot, double *w, double *dw) {
  const double s = t->stretch, x = 1 + s - knot / (t->knots - 1);
  const double rate = (t->knots - 1) * x * x / (s * (1 + s) * (t->last - t->first)); /* dt / dr */
  const int i = knot < t->knots - 2 ? (int)knot : t->knots - 2;
  const double *c =
      coefficients + (t->split && i >= t->split ? i + CLB_SPLINE_ORDER - 1 : i) * width;
  const double u = knot - i, v = 1 - u;
  const double value[] = {v * v * v / 6, (4 + u * u * (3 * u - 6)) / 6,
                          (4 + v * v * (3 * v - 6)) / 6, u * u * u / 6},
               slope[] = {-v * v / 2, u * (3 * u - 4) / 2, v * (4 - 3 * v) / 2, u * u / 2};
  for (int64_t j = 0; j < width; j++) {
    w[j] = dw[j] = 0;
    for (int k = 0; k < CLB_SPLINE_ORDER; k++) {
      w[j] += value[k] * c[k * width + j];
      dw[j] += rate * slope[k] * c[k * width + j];
    }
  }
}

/* ---- coefficients ---- */

/* Coefficients c[-1 ... n] of the splines with c[i-1] + 4 c[i] + c[i+1] = 6 values[i] whose third
   derivatives are continuous at the second knot and at the last but one:
     c[-1] - 4 c[0] + 6 c[1] - 4 c[2] + c[3] = 0, so 6 c[1] = 8 values[1] - values[0] - values[2],
   and likewise at the other end.  What is left is tridiagonal.  factor: n numbers. */
static void solve_one(int n, int64_t width, const double *values, double *coefficients,
                      double *factor) {
  double *c = coefficients + width;
  const double *f = values;
  const int64_t w = width;
  for (int64_t j = 0; j < w; j++) {
    c[w + j] = (8 * f[w + j] - f[j] - f[2 * w + j]) / 6;
    c[(n - 2) * w + j] = (8 * f[(n - 2) * w + j] - f[(n - 3) * w + j] - f[(n - 1) * w + j]) / 6;
  }
  for (int i = 2; i < n - 2; i++) {
    factor[i] = i > 2 ? 1 / (4 - factor[i - 1]) : 0.25;
    for (int64_t j = i * w; j < (i + 1) * w; j++) c[j] = (6 * f[j] - c[j - w]) * factor[i];
  }
  for (int i = n - 3; i >= 2; i--)
    for (int64_t j = i * w; j < (i + 1) * w; j++) c[j] -= factor[i] * c[j + w];
  for (int64_t i = 1; i >= 0; i--)
    for (int64_t j = i * w; j < (i + 1) * w; j++) c[j - w] = 6 * f[j] - 4 * c[j] - c[j + w];
  for (int64_t i = n - 2; i < n; i++)
    for (int64_t j = i * w; j < (i + 1) * w; j++) c[j + w] = 6 * f[j] - 4 * c[j] - c[j - w];
}

void clb_convolution_table_solve(const clb_convolution_table *t, int64_t width,
                                 const double *values, double *coefficients, double *factor) {
  const int end = t->split ? t->split + 1 : t->knots; /* knots of the first spline */
  solve_one(end, width, values, coefficients, factor);
  if (t->split)
    solve_one(t->knots - t->split, width, values + t->split * width,
              coefficients + (end + 2) * width, factor);
}

clb_status clb_convolution_table_set(clb_convolution_table *t, const clb_op *op,
                                     const double *values) {
  const clb_problem *p = &op->problem;
  const int64_t width = p->tensor_product.n_weights, stride = clb_spline_stride(p),
                rows = clb_convolution_table_rows(t), bytes = clb_dtype_bytes(p->arithmetic);
  double *c = malloc((size_t)(rows * (width + 1)) * sizeof *c);
  char *stored = calloc((size_t)(rows * stride * bytes + 1), 1);
  clb_buffer *made = NULL;
  clb_status s = c && stored ? CLB_OK
                             : clb_fail(&op->ctx->error, CLB_ERROR_MEMORY,
                                        "clb_convolution_set_table: no memory");
  if (!s && !t->coefficients)
    s = clb_buffer_create(op->ctx, (uint64_t)(rows * stride * bytes), &made);
  if (!s) clb_convolution_table_solve(t, width, values, c, c + rows * width);
  for (int64_t i = 0; i < rows * width && !s; i++)
    clb_store_number(p->arithmetic, stored, i / width * stride + i % width, c[i]);
  clb_buffer *to = t->coefficients ? t->coefficients : made;
  if (!s) s = clb_buffer_write(to, 0, stored, (uint64_t)(rows * stride * bytes));
  if (s) clb_buffer_destroy(&made);
  else t->coefficients = to;
  free(c);
  free(stored);
  return s;
}

void clb_call_spline(clb_call *c, const clb_op *op, const clb_convolution_table *t) {
  const double stretch = t->stretch, reals[] = {t->first, t->last, stretch * (t->last - t->first),
                                                (t->knots - 1) * (1 + stretch)};
  clb_call_memory(c, &t->coefficients->memory);
  for (int i = 0; i < 4; i++) clb_call_real(c, op->problem.arithmetic, reals[i]);
  clb_call_i32(c, t->knots);
  clb_call_i32(c, t->split ? t->split : t->knots);
}
