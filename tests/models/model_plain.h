/* tests/models/model_plain.h - energies straight from a model's file by the steps of
   docs/model-format.md, slowly; features here are x[c][m], term by term. For models of l <= 2,
   activations silu and tanh, a few atoms without a cell. */
#ifndef CLB_TESTS_MODELS_MODEL_PLAIN_H
#define CLB_TESTS_MODELS_MODEL_PLAIN_H

#include "models/file/safetensors.h"
#include "src/problem/wigner.h"
#include "tests/models/model_places.h"

enum { PLAIN_TERMS = 16, PLAIN_SIZE = 128, PLAIN_ATOMS = 8 };

typedef struct {
  int n, dim;
  struct {
    int mul, l, at;
    char parity;
  } term[PLAIN_TERMS];
} plain_irreps;

typedef struct {
  clb_safetensors *file;
  const atom_set *atoms;
  int layer;
  double r_max;
} plain_model;

static clb_error_sink plain_error;

static inline const char *plain_text(const plain_model *m, const char *key) {
  char name[64];
  const char *text;
  if (m->layer < 0) snprintf(name, sizeof name, "%s", key);
  else snprintf(name, sizeof name, "layers.%d.%s", m->layer, key);
  if (clb_safetensors_text(&plain_error, m->file, name, &text)) fail_msg("%s", plain_error.text.s);
  return text;
}

static inline const char *plain_said(const plain_model *m, const char *key) {
  return plain_text(&(plain_model){.file = m->file, .layer = -1}, key);
}
static inline double plain_number(const plain_model *m, const char *key) {
  return atof(plain_said(m, key));
}

/* A tensor's numbers, to be freed. */
static inline double *plain_tensor(const plain_model *m, const char *name) {
  char whole[64];
  if (m->layer < 0) snprintf(whole, sizeof whole, "%s", name);
  else snprintf(whole, sizeof whole, "layers.%d.%s", m->layer, name);
  const clb_tensor *t = clb_safetensors_find(m->file, whole);
  if (!t) fail_msg("no tensor %s", whole);
  double *x = malloc((size_t)t->count * sizeof *x);
  assert_non_null(x);
  assert_int_equal(clb_safetensors_read(&plain_error, m->file, whole, t->rank, t->shape, x),
                   CLB_OK);
  return x;
}

static inline double *plain_labelled(const plain_model *m, const char *what, int l, char parity) {
  char name[48];
  snprintf(name, sizeof name, "%s.%d%c", what, l, parity);
  return plain_tensor(m, name);
}

static inline plain_irreps plain_read(const char *text) {
  plain_irreps p = {0};
  for (int used; *text && sscanf(text, "%dx%d%c%n", &p.term[p.n].mul, &p.term[p.n].l,
                                 &p.term[p.n].parity, &used) == 3;
       text += used + (text[used] == '+')) {
    p.term[p.n].at = p.dim;
    p.dim += p.term[p.n].mul * (2 * p.term[p.n].l + 1);
    p.n++;
  }
  assert_true(p.dim <= PLAIN_SIZE);
  return p;
}

static inline double plain_activation(const plain_model *m, const char *which, double x) {
  char scale[48];
  snprintf(scale, sizeof scale, "%s_scale", which);
  return plain_number(m, scale) *
         (!strcmp(plain_said(m, which), "tanh") ? tanh(x) : x / (1 + exp(-x)));
}

static inline bool plain_is(const plain_model *m, const char *key, const char *value) {
  return !strcmp(plain_said(m, key), value);
}

/* [1] Basis functions x of the edge from j to i, r long, without the cutoff, which it returns. */
static inline double plain_basis(const plain_model *m, int64_t i, int64_t j, double r, double *x) {
  const double u = r / m->r_max, p = plain_number(m, "cutoff_p");
  const plain_model whole = {.file = m->file, .layer = -1};
  double *w = plain_tensor(&whole, "bessel_frequencies"), d = r;
  const int n = (int)plain_number(m, "n_basis");
  if (plain_is(m, "architecture", "mace") && plain_is(m, "distance_transform", "agnesi")) {
    double *radii = plain_tensor(&whole, "agnesi_radii");
    const double a = plain_number(m, "agnesi_a"), power = plain_number(m, "agnesi_p"),
                 q = plain_number(m, "agnesi_q"),
                 t = 2 * r / (radii[m->atoms->species[i]] + radii[m->atoms->species[j]]);
    d = 1 / (1 + a * pow(t, q) / (1 + pow(t, q - power)));
    free(radii);
  }
  for (int k = 0; k < n; k++) x[k] = 2 / m->r_max * sin(w[k] * d / m->r_max) / d;
  free(w);
  return 1 - (p + 1) * (p + 2) / 2 * pow(u, p) + p * (p + 2) * pow(u, p + 1) -
         p * (p + 1) / 2 * pow(u, p + 2);
}

/* [1, 4] h of the edge from j to i */
static inline void plain_radial(const plain_model *m, int64_t i_atom, int64_t j_atom, double r,
                                double *h) {
  double x[PLAIN_SIZE], y[PLAIN_SIZE];
  const bool apart = plain_is(m, "architecture", "mace") && plain_is(m, "cutoff_of", "weights");
  int n = (int)plain_number(m, "n_basis"), layers = (int)plain_number(m, "radial_layers");
  const double f = plain_basis(m, i_atom, j_atom, r, x);
  for (int k = 0; k < n && !apart; k++) x[k] *= f;
  for (int k = 0; k < layers; k++) {
    char name[32], whole[64];
    snprintf(name, sizeof name, "radial.%d", k);
    snprintf(whole, sizeof whole, "layers.%d.%s", m->layer, name);
    const int columns = (int)clb_safetensors_find(m->file, whole)->shape[1];
    double *matrix = plain_tensor(m, name),
           divisor = plain_is(m, "radial_normalization", "fan_in") ? sqrt(n) : 1;
    for (int o = 0; o < columns; o++) {
      y[o] = 0;
      for (int i = 0; i < n; i++) y[o] += x[i] * matrix[i * columns + o] / divisor;
      if (k < layers - 1) y[o] = plain_activation(m, "radial_activation", y[o]);
    }
    free(matrix);
    n = columns;
    memcpy(x, y, sizeof x);
  }
  for (int k = 0; k < n; k++) h[k] = x[k] * (apart ? f : 1);
}

/* [2] */
static inline void plain_harmonics(const double *v, double r, double *y) {
  const double a = v[0] / r, b = v[1] / r, c = v[2] / r, s = sqrt(15);
  const double all[] = {1,
                        sqrt(3) * a,
                        sqrt(3) * b,
                        sqrt(3) * c,
                        s * a * c,
                        s * a * b,
                        sqrt(5) * (b * b - (a * a + c * c) / 2),
                        s * b * c,
                        s / 2 * (c * c - a * a)};
  memcpy(y, all, sizeof all);
}

/* [5, 8] out += x W / sqrt(rows), term by term of one irrep; rows of the matrix count on from one
   term to the next. */
static inline void plain_linear(const plain_model *m, const char *what, const plain_irreps *in,
                                const plain_irreps *to, const double *x, int species, int n_species,
                                double *out) {
  for (int t = 0; t < to->n; t++) {
    const int width = to->term[t].mul, size = 2 * to->term[t].l + 1;
    int rows = 0, row = 0;
    for (int i = 0; i < in->n; i++)
      rows += in->term[i].l == to->term[t].l && in->term[i].parity == to->term[t].parity
                  ? in->term[i].mul
                  : 0;
    double *w = rows ? plain_labelled(m, what, to->term[t].l, to->term[t].parity) : NULL;
    for (int i = 0; i < in->n; i++) {
      if (in->term[i].l != to->term[t].l || in->term[i].parity != to->term[t].parity) continue;
      for (int c = 0; c < in->term[i].mul; c++, row++)
        for (int v = 0; v < width; v++)
          for (int k = 0; k < size; k++)
            out[to->term[t].at + v * size + k] += x[in->term[i].at + c * size + k] *
                                                  w[(row * n_species + species) * width + v] /
                                                  sqrt(rows * n_species);
    }
    free(w);
  }
}

/* [6, 7] a = the sum of messages times `factor` */
static inline void plain_messages(const plain_model *m, const plain_irreps *in,
                                  const plain_irreps *message, double factor,
                                  double x[][PLAIN_SIZE], double a[][PLAIN_SIZE]) {
  const atom_set *s = m->atoms;
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t j = 0; j < s->n; j++) {
      double v[3], r = 0, h[PLAIN_SIZE], y[9], C[125];
      for (int k = 0; k < 3; k++)
        v[k] = s->positions[3 * j + k] - s->positions[3 * i + k], r += v[k] * v[k];
      r = sqrt(r);
      if (i == j || r >= m->r_max) continue;
      plain_radial(m, i, j, r, h);
      plain_harmonics(v, r, y);
      int first = 0, X, Y, Z, used;
      for (const char *path = plain_text(m, "paths");
           *path && sscanf(path, "%d,%d,%d%n", &X, &Y, &Z, &used) == 3;
           path += used + (path[used] == ' ')) {
        const int l1 = in->term[X].l, l2 = Y, l3 = message->term[Z].l;
        clb_wigner_3j(l1, l2, l3, C);
        for (int c = 0; c < in->term[X].mul; c++)
          for (int k = 0; k < (2 * l1 + 1) * (2 * l2 + 1) * (2 * l3 + 1); k++) {
            const int m1 = k / ((2 * l2 + 1) * (2 * l3 + 1)), m2 = k / (2 * l3 + 1) % (2 * l2 + 1),
                      m3 = k % (2 * l3 + 1);
            a[i][message->term[Z].at + c * (2 * l3 + 1) + m3] +=
                sqrt(2 * l3 + 1) * C[k] * x[j][in->term[X].at + c * (2 * l1 + 1) + m1] *
                y[l2 * l2 + m2] * h[first + c] * factor;
          }
        first += in->term[X].mul;
      }
    }
}

/* [9] */
static inline void plain_norm(const plain_model *m, const plain_irreps *linear, double *o) {
  double t = plain_number(m, "norm_epsilon");
  for (int i = 0; i < linear->n; i++) {
    const int size = 2 * linear->term[i].l + 1;
    for (int k = 0; k < linear->term[i].mul * size; k++)
      t += pow(o[linear->term[i].at + k], 2) / (linear->n * size * size);
  }
  for (int i = 0; i < linear->n; i++) {
    const int size = 2 * linear->term[i].l + 1;
    double *w = plain_labelled(m, "norm", linear->term[i].l, linear->term[i].parity);
    for (int k = 0; k < linear->term[i].mul * size; k++)
      o[linear->term[i].at + k] *= w[k / size] / sqrt(t);
    free(w);
  }
}

/* [10] */
static inline void plain_gate(const plain_model *m, const plain_irreps *linear, const double *o,
                              double *out) {
  plain_irreps part[3];
  double value[3][PLAIN_SIZE];
  int taken[PLAIN_TERMS] = {0};
  static const char *const names[] = {"irreps_scalars", "irreps_gates", "irreps_gated"};
  for (int p = 0; p < 3; p++) {
    part[p] = plain_read(plain_text(m, names[p]));
    for (int t = 0; t < part[p].n; t++) {
      int from = 0;
      while (linear->term[from].l != part[p].term[t].l ||
             linear->term[from].parity != part[p].term[t].parity)
        from++;
      const int size = 2 * part[p].term[t].l + 1, count = part[p].term[t].mul * size;
      memcpy(&value[p][part[p].term[t].at], &o[linear->term[from].at + taken[from] * size],
             (size_t)count * sizeof **value);
      taken[from] += part[p].term[t].mul;
    }
  }
  for (int t = 0; t < part[0].n; t++)
    for (int k = 0; k < part[0].term[t].mul; k++)
      out[part[0].term[t].at + k] =
          plain_activation(m, part[0].term[t].parity == 'e' ? "activation_even" : "activation_odd",
                           value[0][part[0].term[t].at + k]);
  for (int t = 0, gate = 0; t < part[2].n; t++)
    for (int k = 0; k < part[2].term[t].mul; k++, gate++)
      for (int c = 0, size = 2 * part[2].term[t].l + 1; c < size; c++)
        out[part[0].dim + part[2].term[t].at + k * size + c] =
            plain_activation(m, "activation_gate", value[1][gate]) *
            value[2][part[2].term[t].at + k * size + c];
}

/* [10] */
static inline void plain_feed_forward(const plain_model *m, const plain_irreps *linear, double *x) {
  char key[64];
  double o[PLAIN_SIZE] = {0}, gated[PLAIN_SIZE] = {0};
  snprintf(key, sizeof key, "layers.%d.feed_forward", m->layer);
  if (!clb_safetensors_says(m->file, key)) return;
  const plain_irreps out = plain_read(plain_text(m, "irreps_out"));
  plain_linear(m, "feed_forward_1", &out, linear, x, 0, 1, o);
  plain_gate(m, linear, o, gated);
  plain_linear(m, "feed_forward_2", &out, &out, gated, 0, 1, x);
}

/* Features after a layer from those before it. */
static inline void plain_layer(const plain_model *m, double x[][PLAIN_SIZE]) {
  const plain_irreps in = plain_read(plain_text(m, "irreps_in")),
                     message = plain_read(plain_text(m, "irreps_message")),
                     linear = plain_read(plain_text(m, "irreps_linear"));
  double sent[PLAIN_ATOMS][PLAIN_SIZE] = {{0}}, a[PLAIN_ATOMS][PLAIN_SIZE] = {{0}};
  const bool each = !clb_safetensors_says(m->file, "self_connection"),
             species =
                 !strcmp(each ? plain_text(m, "self_connection") : plain_said(m, "self_connection"),
                         "species");
  const int n_species = (int)clb_safetensors_find(m->file, "species_scale")->shape[0];
  for (int64_t i = 0; i < m->atoms->n; i++)
    plain_linear(m, "linear_1", &in, &in, x[i], 0, 1, sent[i]);
  plain_messages(m, &in, &message, 1 / sqrt(plain_number(m, "avg_num_neighbors")), sent, a);
  for (int64_t i = 0; i < m->atoms->n; i++) {
    double o[PLAIN_SIZE] = {0};
    plain_linear(m, "linear_2", &message, &linear, a[i], 0, 1, o);
    plain_linear(m, "self_connection", &in, &linear, x[i], species ? m->atoms->species[i] : 0,
                 species ? n_species : 1, o);
    if (plain_is(m, "norm", "rms")) plain_norm(m, &linear, o);
    memset(x[i], 0, sizeof x[i]);
    plain_gate(m, &linear, o, x[i]);
    plain_feed_forward(m, &linear, x[i]);
  }
}

/* [3] */
static inline void plain_embed(const plain_model *m, double x[][PLAIN_SIZE]) {
  const bool one_hot = plain_is(m, "embedding", "one_hot");
  double *table = one_hot ? NULL : plain_tensor(m, "embedding");
  const clb_tensor *t = one_hot ? NULL : clb_safetensors_find(m->file, "embedding");
  for (int64_t i = 0; i < m->atoms->n; i++) {
    if (one_hot) x[i][m->atoms->species[i]] = 1;
    for (int64_t c = 0; !one_hot && c < t->shape[1]; c++)
      x[i][c] = table[m->atoms->species[i] * t->shape[1] + c] / sqrt((double)t->shape[0]);
  }
  free(table);
}

/* [11, 12] */
static inline double plain_energy(const plain_model *m, const plain_irreps *features,
                                  const double *all, int species) {
  double x[PLAIN_SIZE] = {0};
  const int matrices = (int)plain_number(m, "readout_layers");
  double *scale = plain_tensor(m, "species_scale"), *shift = plain_tensor(m, "species_shift"),
         energy;
  for (int t = 0, n = 0; t < features->n; t++)
    for (int c = 0;
         !features->term[t].l && features->term[t].parity == 'e' && c < features->term[t].mul; c++)
      x[n++] = all[features->term[t].at + c];
  for (int k = 0; k < matrices; k++) {
    char name[32];
    double y[PLAIN_SIZE] = {0};
    snprintf(name, sizeof name, "readout.%d", k);
    const clb_tensor *t = clb_safetensors_find(m->file, name);
    double *w = plain_tensor(m, name);
    for (int64_t i = 0; i < t->shape[0]; i++)
      for (int64_t o = 0; o < t->shape[1]; o++)
        y[o] += x[i] * w[i * t->shape[1] + o] / sqrt((double)t->shape[0]);
    for (int64_t o = 0; k < matrices - 1 && o < t->shape[1]; o++)
      if (clb_safetensors_says(m->file, "readout_activation"))
        y[o] = plain_activation(m, "readout_activation", y[o]);
    memcpy(x, y, sizeof y);
    free(w);
  }
  energy = plain_number(m, "energy_scale") * (scale[species] * x[0] + shift[species]);
  free(scale);
  free(shift);
  return energy;
}

static inline void plain_energies(const char *path, const atom_set *atoms, double *e_atom) {
  plain_model m = {.atoms = atoms, .layer = -1};
  double x[PLAIN_ATOMS][PLAIN_SIZE] = {{0}};
  assert_true(atoms->n <= PLAIN_ATOMS);
  if (clb_safetensors_open(&plain_error, path, &m.file)) fail_msg("%s", plain_error.text.s);
  m.r_max = plain_number(&m, "r_max");
  plain_embed(&m, x);
  const int n_layers = (int)plain_number(&m, "n_layers");
  for (m.layer = 0; m.layer < n_layers; m.layer++) plain_layer(&m, x);
  m.layer = n_layers - 1;
  const plain_irreps features = plain_read(plain_text(&m, "irreps_out"));
  m.layer = -1;
  for (int64_t i = 0; i < atoms->n; i++)
    e_atom[i] = plain_energy(&m, &features, x[i], atoms->species[i]);
  clb_safetensors_close(&m.file);
}

#endif
