/* tests/ops/layers/layer_functions.h - what layers compute of one row or one edge, in plain C. */
#ifndef CLB_TESTS_OPS_LAYERS_LAYER_FUNCTIONS_H
#define CLB_TESTS_OPS_LAYERS_LAYER_FUNCTIONS_H

#include "tests/ops/layers/layer_pairs.h"

/* ---- densities ---- */

typedef struct {
  int n_basis;
  double weights[CLB_MAX_BASIS];
  bool weighted;
} density_case;

/* Of one edge: b_1 ... b_n, and its factor. */
static inline void density_row(const void *user, const double *b, double *out) {
  const density_case *c = user;
  double q = 0;
  for (int k = 0; k < c->n_basis; k++) q += b[k] * c->weights[k];
  *out = tanh(q * q) * (c->weighted ? b[c->n_basis] : 1);
}

/* ---- rows times numbers ---- */

typedef struct {
  int64_t columns;
  bool reciprocal;
} scale_case;

/* Of a row: its columns, then t. */
static inline void scale_row(const void *user, const double *x, double *out) {
  const scale_case *c = user;
  const double t = x[c->columns], s = c->reciprocal ? 1 / (1 + t) : t;
  for (int64_t i = 0; i < c->columns; i++) out[i] = s * x[i];
}

#endif
