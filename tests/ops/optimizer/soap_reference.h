/* tests/ops/optimizer/soap_reference.h - SOAP in double precision, one matrix at a time. */
#ifndef CLB_TESTS_OPS_OPTIMIZER_SOAP_REFERENCE_H
#define CLB_TESTS_OPS_OPTIMIZER_SOAP_REFERENCE_H

#include "tests/ops/matrices/matrices_reference.h"

enum { LEFT, RIGHT, SIDES };

/* turns: which sides are rotated; sum: L, R; basis: its rows are vectors. */
typedef struct {
  int64_t rows, columns;
  bool turns[SIDES];
  double *p, *m, *v, *sum[SIDES], *basis[SIDES];
} soap_reference;

static inline double *numbers(int64_t n) { return calloc((size_t)n + 1, sizeof(double)); }

static inline int64_t soap_side(const soap_reference *x, int side) {
  return side == LEFT ? x->rows : x->columns;
}

static inline soap_reference soap_begin(int64_t rows, int64_t columns, int64_t longest,
                                        const double *p) {
  soap_reference x = {.rows = rows, .columns = columns};
  const int64_t n = rows * columns;
  x.p = numbers(n), x.m = numbers(n), x.v = numbers(n);
  memcpy(x.p, p, (size_t)n * sizeof *p);
  for (int side = 0; side < SIDES; side++) {
    const int64_t s = soap_side(&x, side);
    x.turns[side] = n && rows != 1 && columns != 1 && s <= longest;
    x.sum[side] = numbers(x.turns[side] ? s * s : 0);
    x.basis[side] = numbers(x.turns[side] ? s * s : 0);
  }
  return x;
}

static inline void soap_end(soap_reference *x) {
  double *all[] = {x->p, x->m, x->v, x->sum[0], x->sum[1], x->basis[0], x->basis[1]};
  for (int i = 0; i < 7; i++) free(all[i]);
}

/* Eigenvectors of a symmetric matrix as rows of e, the largest eigenvalue first: two-sided
   rotations. a is overwritten. */
static inline void soap_eigenvectors(double *a, int64_t n, double *e) {
  for (int64_t i = 0; i < n * n; i++) e[i] = i % (n + 1) == 0;
  for (int sweep = 0; sweep < 30; sweep++)
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) {
        const double angle = 0.5 * atan2(2 * a[p * n + q], a[p * n + p] - a[q * n + q]),
                     c = cos(angle), s = sin(angle);
        for (int64_t k = 0; k < n; k++) {
          const double x = a[p * n + k], y = a[q * n + k], u = e[p * n + k], w = e[q * n + k];
          a[p * n + k] = c * x + s * y, a[q * n + k] = c * y - s * x;
          e[p * n + k] = c * u + s * w, e[q * n + k] = c * w - s * u;
        }
        for (int64_t k = 0; k < n; k++) {
          const double x = a[k * n + p], y = a[k * n + q];
          a[k * n + p] = c * x + s * y, a[k * n + q] = c * y - s * x;
        }
      }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++)
      if (a[j * n + j] > a[i * n + i]) {
        const double d = a[i * n + i];
        a[i * n + i] = a[j * n + j], a[j * n + j] = d;
        for (int64_t k = 0; k < n; k++) {
          const double x = e[i * n + k];
          e[i * n + k] = e[j * n + k], e[j * n + k] = x;
        }
      }
}

/* Rows made orthonormal one after the other: Gram-Schmidt, twice. */
static inline void soap_orthogonalise(double *s, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    for (int again = 0; again < 2; again++) {
      double size = 0;
      for (int64_t j = 0; j < i; j++) {
        double d = 0;
        for (int64_t k = 0; k < n; k++) d += s[i * n + k] * s[j * n + k];
        for (int64_t k = 0; k < n; k++) s[i * n + k] -= d * s[j * n + k];
      }
      for (int64_t k = 0; k < n; k++) size += s[i * n + k] * s[i * n + k];
      for (int64_t k = 0; k < n; k++) s[i * n + k] /= sqrt(size);
    }
}

/* y = E_L x E_R^T, or E_L^T x E_R. */
static inline void soap_turn(const soap_reference *x, const double *from, bool back, double *to) {
  const int64_t r = x->rows, c = x->columns;
  double *half = numbers(r * c);
  const reference_matrix given = {from, c, 1}, left = {x->basis[LEFT], back ? 1 : r, back ? r : 1},
                         right = {x->basis[RIGHT], back ? c : 1, back ? 1 : c};
  if (x->turns[LEFT]) reference_product(left, given, r, c, r, half);
  else memcpy(half, from, (size_t)(r * c) * sizeof *half);
  if (x->turns[RIGHT]) reference_product((reference_matrix){half, c, 1}, right, r, c, c, to);
  else memcpy(to, half, (size_t)(r * c) * sizeof *half);
  free(half);
}

static inline void soap_follow(soap_reference *x, const double *g, double beta) {
  for (int side = 0; side < SIDES; side++) {
    const int64_t n = soap_side(x, side), k = soap_side(x, !side), c = x->columns;
    const reference_matrix a = {g, side == LEFT ? c : 1, side == LEFT ? 1 : c},
                           b = {g, a.column, a.row};
    if (!x->turns[side]) continue;
    double *product = numbers(n * n);
    reference_product(a, b, n, n, k, product);
    for (int64_t i = 0; i < n * n; i++)
      x->sum[side][i] = beta * x->sum[side][i] + (1 - beta) * product[i];
    free(product);
  }
}

/* The bases that follow: the first ones, or after one power iteration. */
static inline void soap_new_basis(soap_reference *x, int side, bool first) {
  const int64_t n = soap_side(x, side);
  double *s = numbers(n * n);
  if (first) {
    memcpy(s, x->sum[side], (size_t)(n * n) * sizeof *s);
    soap_eigenvectors(s, n, x->basis[side]);
  } else {
    reference_product((reference_matrix){x->basis[side], n, 1},
                      (reference_matrix){x->sum[side], n, 1}, n, n, n, s);
    soap_orthogonalise(s, n);
    memcpy(x->basis[side], s, (size_t)(n * n) * sizeof *s);
  }
  free(s);
}

/* Step number `step`, from 0 on, with the bases that there are; those that follow are not made. */
static inline void soap_step(soap_reference *x, const clb_optimizer_group *g, int step,
                             const double *gradient) {
  const int64_t n = x->rows * x->columns;
  const double size = step ? g->lr * sqrt(1 - pow(g->beta2, step)) / (1 - pow(g->beta1, step)) : 0;
  double *turned = numbers(n), *mean = numbers(n);
  for (int64_t i = 0; i < n && step; i++)
    x->m[i] = g->beta1 * x->m[i] + (1 - g->beta1) * gradient[i];
  soap_turn(x, gradient, false, turned);
  soap_turn(x, x->m, false, mean);
  for (int64_t i = 0; i < n && step; i++) {
    x->v[i] = g->beta2 * x->v[i] + (1 - g->beta2) * turned[i] * turned[i];
    mean[i] /= sqrt(x->v[i]) + g->epsilon;
  }
  soap_turn(x, mean, true, turned);
  for (int64_t i = 0; i < n && step; i++)
    x->p[i] = (x->p[i] - size * turned[i]) * (1 - g->lr * g->weight_decay);
  soap_follow(x, gradient, g->beta2);
  free(turned);
  free(mean);
}

#endif
