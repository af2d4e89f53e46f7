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

/* ---- repulsion ---- */

static const double charges[SPECIES] = {1, 8, 14}, screening[SPECIES] = {4.16, 7.76, 9.2},
                    radii[SPECIES] = {0.31, 0.66, 1.11};
static const clb_repulsion_desc zbl = {
    SPECIES, charges, screening, radii, {0.1818, 0.5099, 0.2802, 0.02817}, 5, 1.7};

typedef struct {
  int32_t species[2];
} pair_case;

static inline void repulsion_row(const void *user, const double *v, double *out) {
  static const double exponents[] = {3.2, 0.9423, 0.4028, 0.2016};
  const int32_t *s = ((const pair_case *)user)->species;
  const double r = length_of(v), x = (screening[s[0]] + screening[s[1]]) * r;
  double phi = 0;
  for (int k = 0; k < 4; k++) phi += zbl.coefficients[k] * exp(-exponents[k] * x);
  *out = 0.5 * 14.3996 * charges[s[0]] * charges[s[1]] / r * phi *
         polynomial(zbl.p, r / (radii[s[0]] + radii[s[1]])) * (r < zbl.r_max);
}

#endif
