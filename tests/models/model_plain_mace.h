/* tests/models/model_plain_mace.h - the same as model_plain.h for MACE: sums over all tensors of
   the product basis as they are defined. */
#ifndef CLB_TESTS_MODELS_MODEL_PLAIN_MACE_H
#define CLB_TESTS_MODELS_MODEL_PLAIN_MACE_H

#include "tests/models/model_plain.h"

/* [3] m /= rho + 1 */
static inline void plain_normalize(const plain_model *m, int64_t i, const plain_irreps *linear,
                                   double *o) {
  const atom_set *s = m->atoms;
  double *w = plain_tensor(m, "density"), rho = 0, x[PLAIN_SIZE];
  const int n = (int)plain_number(m, "n_basis");
  const bool apart = plain_is(m, "cutoff_of", "weights");
  for (int64_t j = 0; j < s->n; j++) {
    const double r = hypot(hypot(s->positions[3 * j] - s->positions[3 * i],
                                 s->positions[3 * j + 1] - s->positions[3 * i + 1]),
                           s->positions[3 * j + 2] - s->positions[3 * i + 2]);
    if (i == j || r >= m->r_max) continue;
    const double f = plain_basis(m, i, j, r, x);
    double sum = 0;
    for (int k = 0; k < n; k++) sum += x[k] * (apart ? 1 : f) * w[k] / sqrt(n);
    rho += tanh(sum * sum) * (apart ? f : 1);
  }
  for (int k = 0; k < linear->dim; k++) o[k] /= rho + 1;
  free(w);
}

/* One path: out[m'] += weight times the sum over all indices. */
static inline void plain_path(const double *u, int degree, int nu, int d, const double *a,
                              double weight, double *out) {
  int size = 1;
  for (int v = 0; v < nu; v++) size *= d;
  for (int k = 0; k <= 2 * degree; k++)
    for (int i = 0; i < size; i++) {
      double x = u[k * size + i] * weight;
      for (int v = 0, rest = i; v < nu; v++, rest /= d) x *= a[rest % d];
      out[k] += x;
    }
}

/* [5] */
static inline void plain_product(const plain_model *m, const plain_irreps *linear,
                                 const plain_irreps *to, int species, const double *x,
                                 double *out) {
  enum { MOST = 4096 };
  const int ell = linear->n - 1, d = (ell + 1) * (ell + 1), K = to->term[0].mul;
  char name[32];
  snprintf(name, sizeof name, "layers.%d.product", m->layer);
  const int64_t n_paths = clb_safetensors_find(m->file, name)->shape[1];
  int degrees[4], size;
  double *w = plain_tensor(m, "product"), *u = malloc(MOST * sizeof *u);
  clb_context *ctx = NULL;
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  assert_non_null(u);
  for (int t = 0; t < to->n; t++) degrees[t] = to->term[t].l;
  const clb_symmetric_contraction_desc desc = {.ell = ell,
                                               .correlation = atoi(plain_text(m, "correlation")),
                                               .degrees = degrees,
                                               .n_degrees = to->n,
                                               .channels = K,
                                               .n_species = 1};
  for (int t = 0; t < to->n; t++)
    for (int nu = 1; nu <= desc.correlation; nu++) {
      clb_symmetric_paths paths;
      assert_int_equal(clb_symmetric_contraction_paths(ctx, &desc, degrees[t], nu, &paths), CLB_OK);
      size = 2 * degrees[t] + 1;
      for (int v = 0; v < nu; v++) size *= d;
      assert_true(size <= MOST);
      for (int p = paths.first; p < paths.first + paths.count; p++) {
        assert_int_equal(clb_symmetric_contraction_basis(ctx, &desc, p, u, size), CLB_OK);
        for (int c = 0; c < K; c++) {
          double a[PLAIN_SIZE];
          for (int l = 0; l <= ell; l++)
            memcpy(&a[l * l], &x[linear->term[l].at + c * (2 * l + 1)],
                   (size_t)(2 * l + 1) * sizeof *a);
          plain_path(u, degrees[t], nu, d, a, w[(species * n_paths + p) * K + c],
                     &out[to->term[t].at + c * (2 * degrees[t] + 1)]);
        }
      }
    }
  free(w);
  free(u);
  clb_context_destroy(&ctx);
}

/* [7] */
static inline double plain_readout(const plain_model *m, const double *features) {
  double x[PLAIN_SIZE];
  const int matrices = atoi(plain_text(m, "readout_layers"));
  memcpy(x, features, sizeof x);
  for (int k = 0; k < matrices; k++) {
    char name[32], whole[64];
    double y[PLAIN_SIZE] = {0};
    snprintf(name, sizeof name, "readout.%d", k);
    snprintf(whole, sizeof whole, "layers.%d.%s", m->layer, name);
    const clb_tensor *t = clb_safetensors_find(m->file, whole);
    double *w = plain_tensor(m, name);
    for (int64_t o = 0; o < t->shape[1]; o++) {
      for (int64_t i = 0; i < t->shape[0]; i++)
        y[o] += x[i] * w[i * t->shape[1] + o] / sqrt((double)t->shape[0]);
      if (k < matrices - 1) y[o] = plain_activation(m, "readout_activation", y[o]);
    }
    memcpy(x, y, sizeof x);
    free(w);
  }
  return x[0];
}

/* Features after a layer from those before it; e[i] += its readout. */
static inline void plain_mace_layer(const plain_model *m, double x[][PLAIN_SIZE], double *e) {
  const plain_irreps in = plain_read(plain_text(m, "irreps_in")),
                     message = plain_read(plain_text(m, "irreps_message")),
                     linear = plain_read(plain_text(m, "irreps_linear")),
                     out = plain_read(plain_text(m, "irreps_out"));
  const int n_species = (int)clb_safetensors_find(m->file, "species_scale")->shape[0];
  const bool residual = !strcmp(plain_text(m, "self_connection"), "species");
  double sent[PLAIN_ATOMS][PLAIN_SIZE] = {{0}}, a[PLAIN_ATOMS][PLAIN_SIZE] = {{0}};
  for (int64_t i = 0; i < m->atoms->n; i++)
    plain_linear(m, "linear_1", &in, &in, x[i], 0, 1, sent[i]);
  plain_messages(m, &in, &message, 1 / plain_number(m, "avg_num_neighbors"), sent, a);
  for (int64_t i = 0; i < m->atoms->n; i++) {
    const int s = m->atoms->species[i];
    double o[PLAIN_SIZE] = {0}, mixed[PLAIN_SIZE] = {0}, b[PLAIN_SIZE] = {0},
           next[PLAIN_SIZE] = {0};
    plain_linear(m, "linear_2", &message, &linear, a[i], 0, 1, o);
    if (!strcmp(plain_text(m, "normalization"), "density")) plain_normalize(m, i, &linear, o);
    if (!residual) plain_linear(m, "linear_3", &linear, &linear, o, s, n_species, mixed);
    plain_product(m, &linear, &out, s, residual ? o : mixed, b);
    plain_linear(m, "linear_4", &out, &out, b, 0, 1, next);
    if (residual) plain_linear(m, "self_connection", &in, &out, x[i], s, n_species, next);
    memcpy(x[i], next, sizeof next);
    e[i] += plain_readout(m, x[i]);
  }
}

/* [8] */
static inline double plain_repulsion(const plain_model *m, const int *charges, int64_t i) {
  static const double powers[] = {3.2, 0.9423, 0.4028, 0.2016};
  const atom_set *s = m->atoms;
  double *c = plain_tensor(m, "zbl_coefficients"), *q = plain_tensor(m, "zbl_screening"),
         *radii = plain_tensor(m, "zbl_radii"), p = plain_number(m, "zbl_p"), sum = 0;
  for (int64_t j = 0; j < s->n; j++) {
    double r = 0, phi = 0;
    for (int k = 0; k < 3; k++) r += pow(s->positions[3 * j + k] - s->positions[3 * i + k], 2);
    r = sqrt(r);
    const int a = s->species[i], b = s->species[j];
    const double u = r / (radii[a] + radii[b]);
    if (i == j || u >= 1 || r >= m->r_max) continue;
    for (int k = 0; k < 4; k++) phi += c[k] * exp(-powers[k] * (q[a] + q[b]) * r);
    sum += 7.1998 * charges[a] * charges[b] / r * phi *
           (1 - (p + 1) * (p + 2) / 2 * pow(u, p) + p * (p + 2) * pow(u, p + 1) -
            p * (p + 1) / 2 * pow(u, p + 2));
  }
  free(c);
  free(q);
  free(radii);
  return sum;
}

/* charges: of the species */
static inline void plain_mace_energies(const char *path, const atom_set *atoms, const int *charges,
                                       double *e_atom) {
  plain_model m = {.atoms = atoms, .layer = -1};
  double x[PLAIN_ATOMS][PLAIN_SIZE] = {{0}}, e[PLAIN_ATOMS] = {0};
  assert_true(atoms->n <= PLAIN_ATOMS);
  if (clb_safetensors_open(&plain_error, path, &m.file)) fail_msg("%s", plain_error.text.s);
  m.r_max = plain_number(&m, "r_max");
  plain_embed(&m, x);
  const int n_layers = (int)plain_number(&m, "n_layers");
  for (m.layer = 0; m.layer < n_layers; m.layer++) plain_mace_layer(&m, x, e);
  m.layer = -1;
  double *scale = plain_tensor(&m, "species_scale"), *shift = plain_tensor(&m, "species_shift");
  for (int64_t i = 0; i < atoms->n; i++) {
    if (plain_is(&m, "pair_repulsion", "zbl")) e[i] += plain_repulsion(&m, charges, i);
    e_atom[i] = plain_number(&m, "energy_scale") *
                (scale[atoms->species[i]] * e[i] + shift[atoms->species[i]]);
  }
  free(scale);
  free(shift);
  clb_safetensors_close(&m.file);
}

#endif
