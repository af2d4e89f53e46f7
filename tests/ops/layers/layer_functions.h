/* tests/ops/layers/layer_functions.h - what layers compute of one row or one edge, in plain C. */
#ifndef CLB_TESTS_OPS_LAYERS_LAYER_FUNCTIONS_H
#define CLB_TESTS_OPS_LAYERS_LAYER_FUNCTIONS_H

#include "tests/ops/layers/layer_pairs.h"

/* ---- radial basis ---- */

typedef struct {
  double r_max, a, p, q, w[CLB_MAX_BASIS], radii[SPECIES];
  int cutoff_p, n_basis; /* cutoff_p 0: XPLOR's from r_on on */
  bool transform, apart;
  double r_on;
  bool precise; /* arithmetic in the type of sums */
} radial_case;

typedef struct {
  const radial_case *c;
  double r_0;
} edge_case;

static inline double cutoff_of(const radial_case *c, double u) {
  const double on = c->r_on / c->r_max, o = on * on;
  if (c->cutoff_p) return polynomial(c->cutoff_p, u);
  if (u >= 1) return 0;
  return u < on ? 1 : pow(1 - u * u, 2) * (1 + 2 * u * u - 3 * o) / pow(1 - o, 3);
}

/* b_1 ... b_n and, if it is apart, f. */
static inline void basis_row(const void *user, const double *v, double *out) {
  const edge_case *e = user;
  const radial_case *c = e->c;
  const double r = length_of(v), f = cutoff_of(c, r / c->r_max),
               t = (r < c->r_max ? r : c->r_max) / e->r_0,
               d = c->transform ? 1 / (1 + c->a * pow(t, c->q) / (1 + pow(t, c->q - c->p))) : r;
  for (int k = 0; k < c->n_basis; k++)
    out[k] = 2 / c->r_max * sin(c->w[k] * d / c->r_max) / d * (c->apart ? 1 : f);
  if (c->apart) out[c->n_basis] = f;
}

/* MACE's transform; one with p < q; f apart with and without; many functions; XPLOR's cutoff with
   and without a transform. */
static const radial_case radial_cases[] = {
    {5, 1.0805, 4.5791, 0.9183, {0}, {0.31, 0.66, 1.11}, 5, 10, true, false, 0, false},
    {4, 0.7, 1.25, 2.5, {0}, {0.9, 1.7, 0.4}, 6, 3, true, true, 0, true},
    {3, 0, 0, 0, {0}, {1, 1, 1}, 2, 8, false, true, 0, false},
    {6, 2, 3, 1, {0}, {0.2, 2, 1}, 5, 19, true, true, 0, false},
    {5, 0, 0, 0, {0}, {1, 1, 1}, 0, 7, false, false, 3.5, true},
    {6, 2, 3, 1, {0}, {0.2, 2, 1}, 0, 19, true, false, 4, false}};
enum { RADIAL_CASES = sizeof radial_cases / sizeof *radial_cases };

static inline clb_op *radial_op(clb_context *ctx, clb_dtype type, radial_case *c) {
  clb_op *op;
  for (int k = 0; k < c->n_basis; k++) c->w[k] = 3.14159265358979323846 * (k + 1);
  const clb_agnesi transform = {c->a, c->p, c->q, SPECIES, c->radii};
  OK(ctx, clb_radial_pairs_create(
              ctx, type, c->precise ? clb_sum_type(ctx) : type,
              &(clb_radial_desc){c->r_max, c->cutoff_p, c->n_basis, c->w, c->r_on, 0},
              c->transform ? &transform : NULL, c->apart, &op));
  return op;
}

/* Of results that are rounded once, at most; else the usual one. */
static inline double radial_error(clb_context *ctx, clb_dtype type, const radial_case *c,
                                  double usual) {
  return type == CLB_F32 && c->precise && clb_sum_type(ctx) == CLB_F64 ? 1e-7 : usual;
}

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
  clb_row_factor factor;
} scale_case;

/* What rows are divided by. */
static inline double scale_divisor(const scale_case *c, double t) {
  return t + (c->factor == CLB_ROW_OVER_MORE);
}
/* t is +- 0.75 from here. */
static inline double scale_middle(const scale_case *c) { return c->factor == CLB_ROW_OVER; }

/* Of a row: its columns, then t. */
static inline void scale_row(const void *user, const double *x, double *out) {
  const scale_case *c = user;
  const double t = x[c->columns], s = c->factor ? 1 / scale_divisor(c, t) : t;
  for (int64_t i = 0; i < c->columns; i++) out[i] = s * x[i];
}

/* ---- repulsion ---- */

static const double charges[SPECIES] = {1, 8, 14}, screening[SPECIES] = {4.16, 7.76, 9.2},
                    radii[SPECIES] = {0.31, 0.66, 1.11},
                    reach[SPECIES * SPECIES] = {0.62, 0.97, 1.42, 1.0, 1.32, 1.77, 1.4, 1.8, 2.22};
static const clb_repulsion_desc zbl = {SPECIES,
                                       charges,
                                       screening,
                                       reach,
                                       {0.1818, 0.5099, 0.2802, 0.02817},
                                       {3.2, 0.9423, 0.4028, 0.2016},
                                       5,
                                       1.7};

typedef struct {
  int32_t species[2];
} pair_case;

static inline void repulsion_row(const void *user, const double *v, double *out) {
  const int32_t *s = ((const pair_case *)user)->species;
  const double r = length_of(v), x = (screening[s[0]] + screening[s[1]]) * r;
  double phi = 0;
  for (int k = 0; k < 4; k++) phi += zbl.coefficients[k] * exp(-zbl.exponents[k] * x);
  *out = 0.5 * 14.3996 * charges[s[0]] * charges[s[1]] / r * phi *
         polynomial(zbl.p, r / reach[s[0] * SPECIES + s[1]]) * (r < zbl.r_max);
}

#endif
