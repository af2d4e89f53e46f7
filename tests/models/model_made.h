/* tests/models/model_made.h - small models of random numbers, in files of docs/model-format.md: all
   that the architectures can do, in few channels. */
#ifndef CLB_TESTS_MODELS_MODEL_MADE_H
#define CLB_TESTS_MODELS_MODEL_MADE_H

#include "tests/test.h"

#include <jansson.h>
#include <stdbool.h>

typedef struct {
  const char *in, *message, *paths, *linear, *scalars, *gates, *gated, *out;
} made_layer;

/* A layer of MACE. */
typedef struct {
  const char *self, *normalization;
  int correlation, product_paths, readout_layers;
} made_product;

typedef struct {
  const char *architecture, *species, *irreps_sh, *embedding, *norm, *normalization;
  const char *self;                                   /* NULL: species and linear in turn */
  const char *readout_activation, *radial_activation; /* NULL: none, silu */
  int feed_forward;                                   /* layer that has one; 0: none */
  int n_species, l_max, n_layers, readout_layers;
  made_layer layer[4];
  const char *cutoff_of, *transform, *repulsion; /* of MACE */
  made_product product[2];
} made_model;

static const made_model made_models[] = {
    {.architecture = "nequix",
     .species = "H C O",
     .irreps_sh = "1x0e+1x1o+1x2e",
     .embedding = "one_hot",
     .self = "linear",
     .norm = "rms",
     .normalization = "none",
     .n_species = 3,
     .l_max = 2,
     .n_layers = 3,
     .readout_layers = 1,
     .layer = {{"3x0e", "3x0e+3x1o+3x2e", "0,0,0 0,1,1 0,2,2", "7x0e+3x1o", "4x0e", "3x0e", "3x1o",
                "4x0e+3x1o"},
               {"4x0e+3x1o", "4x0e+3x0e+4x1o+3x1o+3x1o+4x2e+3x2e",
                "0,0,0 1,1,1 0,1,2 1,0,3 1,2,4 0,2,5 1,1,6", "9x0e+3x1o+2x2e", "4x0e", "5x0e",
                "3x1o+2x2e", "4x0e+3x1o+2x2e"},
               {"4x0e+3x1o+2x2e", "4x0e+3x0e+2x0e", "0,0,0 1,1,1 2,2,2", "4x0e", "4x0e", "", "",
                "4x0e"}}},
    {.architecture = "nequix",
     .species = "H O",
     .irreps_sh = "1x0e+1x1o",
     .embedding = "one_hot",
     .self = "linear",
     .norm = "rms",
     .normalization = "fan_in",
     .n_species = 2,
     .l_max = 1,
     .n_layers = 3,
     .readout_layers = 1,
     .layer = {{"2x0e", "2x0e+2x1o", "0,0,0 0,1,1", "7x0e+3x1o", "4x0e", "3x0e", "3x1o",
                "4x0e+3x1o"},
               {"4x0e+3x1o", "4x0e+3x0e+4x1o+3x1o+3x1e", "0,0,0 0,1,2 1,0,3 1,1,1 1,1,4",
                "9x0e+3x1o+2x1e", "4x0e", "5x0e", "2x1e+3x1o", "4x0e+2x1e+3x1o"},
               {"4x0e+2x1e+3x1o", "2x0o+4x0e+3x0e", "0,0,1 1,1,0 2,1,2", "2x0o+4x0e", "2x0o+4x0e",
                "", "", "2x0o+4x0e"}}},
    {.architecture = "nequip",
     .species = "H O",
     .irreps_sh = "1x0e+1x1o",
     .embedding = "linear",
     .norm = "none",
     .feed_forward = 1,
     .readout_activation = "tanh",
     .radial_activation = "tanh",
     .normalization = "fan_in",
     .n_species = 2,
     .l_max = 1,
     .n_layers = 4,
     .readout_layers = 2,
     .layer = {{"4x0e", "4x0e+4x1o", "0,0,0 0,1,1", "7x0e+3x1o", "4x0e", "3x0e", "3x1o",
                "4x0e+3x1o"},
               {"4x0e+3x1o", "4x0e+3x0e+4x1o+3x1o+3x1e", "0,0,0 0,1,2 1,0,3 1,1,1 1,1,4",
                "9x0e+3x1o+2x1e", "4x0e", "5x0e", "2x1e+3x1o", "4x0e+2x1e+3x1o"},
               {"4x0e+2x1e+3x1o", "2x0o+4x0e+3x0e+4x1o+2x1o+3x1o+2x1e+3x1e",
                "0,0,1 0,1,3 1,0,6 1,1,0 1,1,4 2,0,5 2,1,2 2,1,7", "2x0o+9x0e+3x1o+2x1e",
                "4x0e+2x0o", "5x0e", "2x1e+3x1o", "4x0e+2x0o+2x1e+3x1o"},
               {"4x0e+2x0o+2x1e+3x1o", "2x0o+4x0e+3x0e+4x1o+3x1e", "0,0,1 0,1,3 1,0,0 3,1,2 3,1,4",
                "2x0o+9x0e+3x1o+2x1e", "4x0e+2x0o", "5x0e", "2x1e+3x1o", "4x0e+2x0o+2x1e+3x1o"}}},
    {.architecture = "mace",
     .species = "H Li",
     .irreps_sh = "1x0e+1x1o",
     .embedding = "linear",
     .normalization = "fan_in",
     .n_species = 2,
     .l_max = 1,
     .n_layers = 2,
     .layer = {{.in = "2x0e",
                .message = "2x0e+2x1o",
                .paths = "0,0,0 0,1,1",
                .linear = "2x0e+2x1o",
                .out = "2x0e+2x1o"},
               {.in = "2x0e+2x1o",
                .message = "2x0e+2x0e+2x1o+2x1o",
                .paths = "0,0,0 1,1,1 0,1,2 1,0,3",
                .linear = "2x0e+2x1o",
                .out = "2x0e"}},
     .cutoff_of = "basis",
     .transform = "agnesi",
     .repulsion = "zbl",
     .product = {{"none", "density", 4, 14, 1}, {"species", "none", 2, 3, 2}}},
    {.architecture = "mace",
     .species = "H C O",
     .irreps_sh = "1x0e+1x1o+1x2e",
     .embedding = "linear",
     .normalization = "fan_in",
     .n_species = 3,
     .l_max = 2,
     .n_layers = 2,
     .layer = {{.in = "3x0e",
                .message = "3x0e+3x1o+3x2e",
                .paths = "0,0,0 0,1,1 0,2,2",
                .linear = "3x0e+3x1o+3x2e",
                .out = "3x0e+3x1o"},
               {.in = "3x0e+3x1o",
                .message = "3x0e+3x0e+3x1o+3x1o+3x1o+3x2e+3x2e",
                .paths = "0,0,0 1,1,1 0,1,2 1,0,3 1,2,4 0,2,5 1,1,6",
                .linear = "3x0e+3x1o+3x2e",
                .out = "3x0e"}},
     .cutoff_of = "weights",
     .transform = "none",
     .repulsion = "none",
     .product = {{"species", "none", 3, 17, 1}, {"species", "density", 2, 4, 2}}}};
enum { MADE_MODELS = sizeof made_models / sizeof *made_models, MADE_AGNESI = 3 };

static inline bool made_mace(const made_model *m) { return !strcmp(m->architecture, "mace"); }
/* The self connection of a layer. */
static inline const char *made_self(const made_model *m, int l) {
  return m->self ? m->self : l % 2 ? "linear" : "species";
}

/* ---- the file ---- */

typedef struct {
  json_t *header, *metadata;
  double *data;
  size_t n;
  uint64_t seed;
} made_file;

static inline void made_say(made_file *f, int layer, const char *key, const char *value) {
  char name[64];
  if (layer < 0) snprintf(name, sizeof name, "%s", key);
  else snprintf(name, sizeof name, "layers.%d.%s", layer, key);
  json_object_set_new(f->metadata, name, json_string(value));
}

/* A tensor of random numbers in [middle - width, middle + width); shape ends at 0. */
static inline void made_within(made_file *f, const char *name, const int *shape, double middle,
                               double width) {
  json_t *extents = json_array();
  size_t n = 1;
  for (int i = 0; i < 3 && shape[i]; i++) {
    json_array_append_new(extents, json_integer(shape[i]));
    n *= (size_t)shape[i];
  }
  f->data = realloc(f->data, (f->n + n) * sizeof *f->data);
  assert_non_null(f->data);
  for (size_t i = 0; i < n; i++) f->data[f->n + i] = middle + width * test_random(&f->seed);
  json_object_set_new(f->header, name,
                      json_pack("{s:s, s:o, s:[i, i]}", "dtype", "F64", "shape", extents,
                                "data_offsets", (int)(f->n * 8), (int)((f->n + n) * 8)));
  f->n += n;
}

static inline void made_tensor(made_file *f, const char *name, const int *shape, double middle) {
  made_within(f, name, shape, middle, 1);
}

/* Channels of an irrep ("1o") in irreps. */
static inline int made_channels(const char *irreps, const char *label) {
  int sum = 0, mul, used;
  char each[8];
  for (const char *s = irreps; *s && sscanf(s, "%dx%7[0-9eo]%n", &mul, each, &used) == 2;
       s += used + (s[used] == '+'))
    sum += !strcmp(each, label) ? mul : 0;
  return sum;
}

static inline int made_path_channels(const char *paths, const char *in) {
  int x, used, sum = 0;
  for (const char *s = paths; *s && sscanf(s, "%d,%*d,%*d%n", &x, &used) == 1;
       s += used + (s[used] == ' ')) {
    const char *t = in;
    for (; x; x--) t = strchr(t, '+') + 1;
    sum += atoi(t);
  }
  return sum;
}

/* What only MACE has. */
static inline void made_mace_tensors(made_file *f, const made_model *m, int l) {
  static const char *const labels[] = {"0e", "1o", "2e"};
  const made_layer *y = &m->layer[l];
  const made_product *p = &m->product[l];
  const int mul = made_channels(y->out, "0e");
  char name[64];
  for (int i = 0; i < 3; i++) {
    const int out = made_channels(y->out, labels[i]);
    const bool all = !strcmp(p->self, "none");
    snprintf(name, sizeof name, "layers.%d.linear_4.%s", l, labels[i]);
    if (out) made_tensor(f, name, (const int[]){out, out, 0}, 0);
    snprintf(name, sizeof name, "layers.%d.%s.%s", l, all ? "linear_3" : "self_connection",
             labels[i]);
    if (all ? made_channels(y->linear, labels[i]) : out && made_channels(y->in, labels[i]))
      made_tensor(f, name, (const int[]){mul, m->n_species, mul}, 0);
  }
  snprintf(name, sizeof name, "layers.%d.product", l);
  made_tensor(f, name, (const int[]){m->n_species, p->product_paths, mul}, 0);
  snprintf(name, sizeof name, "layers.%d.density", l);
  if (!strcmp(p->normalization, "density")) made_tensor(f, name, (const int[]){3, 0}, 0);
  for (int k = 0; k < p->readout_layers; k++) {
    const int columns = k == p->readout_layers - 1 ? 1 : 5;
    snprintf(name, sizeof name, "layers.%d.readout.%d", l, k);
    made_tensor(f, name, (const int[]){k ? 5 : mul, columns, 0}, 0);
  }
}

static inline void made_layer_tensors(made_file *f, const made_model *m, int l) {
  static const char *const labels[] = {"0e", "0o", "1e", "1o", "2e"};
  const made_layer *y = &m->layer[l];
  char name[64];
  const int radial[][3] = {{3, 6}, {6, made_path_channels(y->paths, y->in)}};
  for (int k = 0; k < 2; k++) {
    snprintf(name, sizeof name, "layers.%d.radial.%d", l, k);
    made_tensor(f, name, radial[k], 0);
  }
  for (int i = 0; i < 5; i++) {
    const int in = made_channels(y->in, labels[i]), message = made_channels(y->message, labels[i]),
              linear = made_channels(y->linear, labels[i]), out = made_channels(y->out, labels[i]);
    const bool forward = l && l == m->feed_forward, mace = made_mace(m),
               species = !mace && !strcmp(made_self(m, l), "species");
    const struct {
      const char *what;
      int shape[3];
      bool there;
      double middle;
    } tensors[] = {{"linear_1", {in, in}, in, 0},
                   {"linear_2", {message, linear}, linear, 0},
                   {"norm", {linear}, linear && !mace && !strcmp(m->norm, "rms"), 2},
                   {"self_connection",
                    {in, species ? m->n_species : linear, species ? linear : 0},
                    !mace && in && linear,
                    0},
                   {"feed_forward_1", {out, linear}, forward && out, 0},
                   {"feed_forward_2", {out, out}, forward && out, 0}};
    for (int t = 0; t < 6; t++) {
      snprintf(name, sizeof name, "layers.%d.%s.%s", l, tensors[t].what, labels[i]);
      if (tensors[t].there) made_tensor(f, name, tensors[t].shape, tensors[t].middle);
    }
  }
}

static inline void made_say_all(made_file *f, int layer, const char *const all[][2], size_t n) {
  for (size_t i = 0; i < n; i++)
    if (all[i][1]) made_say(f, layer, all[i][0], all[i][1]);
}

static inline void made_mace_metadata(made_file *f, const made_model *m) {
  const char *const all[][2] = {{"cutoff_of", m->cutoff_of},
                                {"distance_transform", m->transform},
                                {"agnesi_a", "1.1"},
                                {"agnesi_p", "4.5"},
                                {"agnesi_q", "0.9"},
                                {"pair_repulsion", m->repulsion},
                                {"zbl_p", "6"},
                                {"readout_activation", "silu"},
                                {"readout_activation_scale", "1.6"}};
  made_say_all(f, -1, all, sizeof all / sizeof *all);
  for (int l = 0; l < m->n_layers; l++) {
    const made_product *p = &m->product[l];
    char number[2][16];
    snprintf(number[0], sizeof *number, "%d", p->correlation);
    snprintf(number[1], sizeof *number, "%d", p->readout_layers);
    const char *const each[][2] = {{"normalization", p->normalization},
                                   {"self_connection", p->self},
                                   {"correlation", number[0]},
                                   {"readout_layers", number[1]}};
    made_say_all(f, l, each, sizeof each / sizeof *each);
  }
}

static inline void made_metadata(made_file *f, const made_model *m) {
  char number[4][16];
  const int counts[] = {m->l_max, m->n_layers, m->readout_layers};
  for (int i = 0; i < 3; i++) snprintf(number[i], sizeof number[i], "%d", counts[i]);
  const char *const all[][2] = {
      {"format", "clebsch model"},
      {"format_version", "1"},
      {"architecture", m->architecture},
      {"species", m->species},
      {"r_max", "3.1"},
      {"irreps_sh", m->irreps_sh},
      {"l_max", number[0]},
      {"radial_basis", "bessel"},
      {"n_basis", "3"},
      {"cutoff", "polynomial"},
      {"cutoff_p", "6"},
      {"radial_layers", "2"},
      {"radial_normalization", m->normalization},
      {"radial_activation", m->radial_activation ? m->radial_activation : "silu"},
      {"radial_activation_scale", "1.7"},
      {"avg_num_neighbors", "5.5"},
      {"embedding", m->embedding},
      {"n_layers", number[1]},
      {"self_connection", m->self},
      {"norm", m->norm},
      {"norm_epsilon", "1e-3"},
      {"activation_even", "silu"},
      {"activation_even_scale", "1.6"},
      {"activation_gate", "silu"},
      {"activation_gate_scale", "1.4"},
      {"activation_odd", "tanh"},
      {"activation_odd_scale", "1.2"},
      {"readout_layers", number[2]},
      {"readout_activation", m->readout_activation},
      {"readout_activation_scale", m->readout_activation ? "1.3" : NULL},
      {"energy_scale", "0.7"}};
  made_say_all(f, -1, all, sizeof all / sizeof *all);
  for (int l = 0; l < m->n_layers; l++) {
    const made_layer *y = &m->layer[l];
    const char *const parts[][2] = {
        {"irreps_in", y->in},
        {"irreps_message", y->message},
        {"paths", y->paths},
        {"irreps_linear", y->linear},
        {"irreps_scalars", y->scalars},
        {"irreps_gates", y->gates},
        {"irreps_gated", y->gated},
        {"irreps_out", y->out},
        {"feed_forward", l && l == m->feed_forward ? "gate" : NULL},
        {"self_connection", m->self || made_mace(m) ? NULL : made_self(m, l)}};
    made_say_all(f, l, parts, sizeof parts / sizeof *parts);
  }
  if (made_mace(m)) made_mace_metadata(f, m);
}

/* What a network has besides its layers. */
static inline void made_network_tensors(made_file *f, const made_model *m) {
  const int species[] = {m->n_species, 0};
  made_tensor(f, "bessel_frequencies", (const int[]){3, 0}, 5);
  made_tensor(f, "species_scale", species, 2);
  made_tensor(f, "species_shift", species, 0);
  if (!strcmp(m->embedding, "linear"))
    made_tensor(f, "embedding", (const int[]){m->n_species, made_channels(m->layer[0].in, "0e"), 0},
                0);
  if (m->transform && !strcmp(m->transform, "agnesi"))
    made_within(f, "agnesi_radii", species, 1, 0.3);
  if (!m->repulsion || strcmp(m->repulsion, "zbl") != 0) return;
  made_within(f, "zbl_coefficients", (const int[]){4, 0}, 0.05, 0.02);
  made_within(f, "zbl_radii", species, 1.5, 0.3); /* twice that may be more than r_max */
  made_within(f, "zbl_screening", species, 3, 1);
}

/* Writes the model; a key of metadata may be changed first (NULL: none; a NULL value removes it).
 */
static inline void made_write(const made_model *m, const char *path, const char *key,
                              const char *value) {
  made_file f = {.header = json_object(), .metadata = json_object(), .seed = 7};
  made_metadata(&f, m);
  if (key && value) json_object_set_new(f.metadata, key, json_string(value));
  else if (key) json_object_del(f.metadata, key);
  made_network_tensors(&f, m);
  for (int l = 0; l < m->n_layers; l++) {
    made_layer_tensors(&f, m, l);
    if (made_mace(m)) made_mace_tensors(&f, m, l);
  }
  for (int k = 0; k < m->readout_layers; k++) {
    char name[32];
    snprintf(name, sizeof name, "readout.%d", k);
    made_tensor(&f, name,
                (const int[]){k ? 3 : made_channels(m->layer[m->n_layers - 1].scalars, "0e"),
                              k == m->readout_layers - 1 ? 1 : 3, 0},
                0);
  }
  json_object_set_new(f.header, "__metadata__", f.metadata);
  char *text = json_dumps(f.header, JSON_COMPACT);
  FILE *out = fopen(path, "wb");
  assert_true(text && out);
  const uint64_t n = strlen(text);
  for (int i = 0; i < 8; i++) fputc((int)(n >> 8 * i & 255), out);
  assert_int_equal(fwrite(text, 1, n, out), n);
  assert_int_equal(fwrite(f.data, sizeof *f.data, f.n, out), f.n);
  assert_int_equal(fclose(out), 0);
  free(text);
  json_decref(f.header);
  free(f.data);
}

#endif
