/* tools/convert/nequix.c - Nequix's models: a line of JSON, then concatenated NPY arrays, which are
   identified only by their order. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/atoms/elements.h"
#include "tools/convert/convert.h"

enum { MAX_LAYERS = 64, MAX_SIZE = 1 << 16 };

typedef struct {
  const source_file *in;
  model *out;
  json_t *header;
  size_t at; /* of the next array */
  int64_t n_species, n_basis, mlp_size, mlp_layers;
  int n_layers, l_max;
  bool norm;
  irreps hidden, features;
} nequix;

/* ---- the header ---- */

static double number_of(const nequix *q, const char *key) {
  const json_t *x = json_object_get(q->header, key);
  if (!json_is_number(x)) fail_model(q->in->path, "its header has no number '%s'", key);
  return json_number_value(x);
}

static int64_t whole_of(const nequix *q, const char *key, int64_t low, int64_t high) {
  const double x = number_of(q, key);
  if (!(x >= (double)low && x <= (double)high) || x != floor(x))
    fail_model(q->in->path, "'%s' of its header is not a whole number from %lld to %lld", key,
               (long long)low, (long long)high);
  return (int64_t)x;
}

/* Natural parity, ascending degrees. */
static irreps irreps_of(const nequix *q, const char *key) {
  irreps out;
  bool good = read_irreps(json_string_value(json_object_get(q->header, key)), &out);
  for (int i = 0; i < out.n && good; i++) {
    const irrep t = out.term[i];
    good = t.mul && t.parity == (t.l % 2 ? -1 : 1) && (i ? t.l > out.term[i - 1].l : !t.l);
  }
  if (good) return out;
  fail_model(q->in->path,
             "'%s' of its header is not irreps of natural parity whose degrees start at 0 and grow",
             key);
}

static void read_species(nequix *q) {
  const json_t *numbers = json_object_get(q->header, "atomic_numbers");
  int known[CLB_ELEMENTS];
  int64_t before = 0;
  q->n_species = (int64_t)json_array_size(numbers);
  if (!q->n_species || q->n_species > CLB_ELEMENTS)
    fail_model(q->in->path, "'atomic_numbers' of its header is not a list of 1 to %d elements",
               CLB_ELEMENTS);
  for (int64_t i = 0; i < q->n_species; i++) {
    const int64_t z = json_integer_value(json_array_get(numbers, (size_t)i));
    if (z <= before || z > CLB_ELEMENTS)
      fail_model(q->in->path, "'atomic_numbers' of its header do not grow from 1 to %d",
                 CLB_ELEMENTS);
    known[i] = (int)(before = z);
  }
  put_species(q->out, known, (int)q->n_species);
}

static void read_header(nequix *q) {
  const unsigned char *end = memchr(q->in->bytes, '\n', q->in->n);
  json_error_t error;
  if (!end) fail_model(q->in->path, "not a Nequix model: it has no line of JSON");
  q->header = json_loadb((const char *)q->in->bytes, (size_t)(end - q->in->bytes),
                         JSON_REJECT_DUPLICATES, &error);
  if (!q->header)
    fail_model(q->in->path, "not a Nequix model: its first line is no JSON: %s", error.text);
  q->at = (size_t)(end - q->in->bytes) + 1;
  if (json_is_true(json_object_get(q->header, "index_weights")))
    fail_model(q->in->path, "a model with index_weights is not supported");
  if (!json_is_boolean(json_object_get(q->header, "layer_norm")))
    fail_model(q->in->path, "its header does not say 'layer_norm'");
  q->norm = json_is_true(json_object_get(q->header, "layer_norm"));
  q->n_layers = (int)whole_of(q, "n_layers", 1, MAX_LAYERS);
  q->l_max = (int)whole_of(q, "lmax", 0, MAX_DEGREE);
  q->n_basis = whole_of(q, "radial_basis_size", 1, MAX_SIZE);
  q->mlp_size = whole_of(q, "radial_mlp_size", 1, MAX_SIZE);
  q->mlp_layers = whole_of(q, "radial_mlp_layers", 0, 64);
  q->hidden = irreps_of(q, "hidden_irreps");
}

static void put_header(nequix *q) {
  model *m = q->out;
  const irreps sh = harmonic_irreps(q->l_max, false);
  put_string(m, "nequix", "architecture");
  read_species(q);
  const double r_max = number_of(q, "cutoff"), neighbours = number_of(q, "avg_n_neighbors");
  if (!(r_max > 0 && neighbours > 0))
    fail_model(q->in->path, "'cutoff' and 'avg_n_neighbors' of its header must be positive");
  put_edges(m, r_max, &sh, "bessel", q->n_basis);
  put_polynomial(m, number_of(q, "radial_polynomial_p"));
  put_number(m, q->n_layers, "n_layers");
  put_number(m, (double)q->mlp_layers + 1, "radial_layers");
  put_string(m, "none", "radial_normalization");
  put_silu(m, 1, (const char *[]){"radial_activation"}, 1);
  put_number(m, neighbours, "avg_num_neighbors");
  put_string(m, "one_hot", "embedding");
  put_string(m, "linear", "self_connection");
  put_string(m, q->norm ? "rms" : "none", "norm");
  if (q->norm) put_string(m, "1e-12", "norm_epsilon");
  /* 1 / sqrt(mean of silu^2) over the sample of normal deviates drawn by the original program */
  put_silu(m, 1.6765620560798837, (const char *[]){"activation_even", "activation_gate"}, 2);
  put_string(m, "1", "readout_layers");
  put_string(m, "1", "energy_scale");
}

/* ---- arrays ---- */

typedef struct {
  bool f64;
  int rank;
  int64_t shape[MAX_RANK];
  const unsigned char *data;
} npy;

/* The dict of an NPY header, as NumPy writes it: {'descr': '<f4', 'fortran_order': False, 'shape':
   (8, 64), } */
static bool parse_npy(const char *text, npy *a) {
  int used = 0;
  char width;
  if (sscanf(text, "{'descr': '<f%c', 'fortran_order': False, 'shape': (%n", &width, &used) != 1 ||
      !used || (width != '4' && width != '8'))
    return false;
  *a = (npy){.f64 = width == '8'};
  for (const char *s = text + used;; s += used) {
    long long extent;
    used = 0;
    if (*s == ')') return true;
    if (a->rank == MAX_RANK || sscanf(s, "%9lld%n", &extent, &used) != 1 || extent < 0)
      return false;
    a->shape[a->rank++] = extent;
    used += s[used] == ',';
    used += s[used] == ' ';
  }
}

/* Reads the array at q->at and advances past it. */
static npy next_array(nequix *q, const char *name) {
  const unsigned char *p = q->in->bytes + q->at;
  const size_t left = q->in->n - q->at;
  char text[512];
  npy a;
  if (left < 10 || memcmp(p, "\x93NUMPY\1\0", 8) != 0)
    fail_model(q->in->path, "byte %zu: no NPY array (version 1), where '%s' should be", q->at,
               name);
  const size_t header = p[8] | (size_t)p[9] << 8;
  if (left - 10 < header) fail_model(q->in->path, "byte %zu: cut short in '%s'", q->at, name);
  snprintf(text, sizeof text, "%.*s", (int)header, (const char *)p + 10);
  if (!parse_npy(text, &a))
    fail_model(
        q->in->path,
        "byte %zu: '%s' is not an array of float or double, at most %d-dimensional, in C order",
        q->at, name, MAX_RANK);
  size_t bytes = a.f64 ? 8 : 4;
  for (int i = 0; i < a.rank; i++)
    if (__builtin_mul_overflow(bytes, (size_t)a.shape[i], &bytes)) bytes = SIZE_MAX;
  if (left - 10 - header < bytes)
    fail_model(q->in->path, "byte %zu: cut short in '%s'", q->at, name);
  a.data = p + 10 + header;
  q->at += 10 + header + bytes;
  return a;
}

/* The next array must be [rows], or [rows][columns] where columns > 0. Scalars before it are
   skipped, as they are not used in the computation. */
static npy expected(nequix *q, int64_t rows, int64_t columns, const char *name) {
  npy a;
  do a = next_array(q, name);
  while (!a.rank);
  if (a.rank != (columns ? 2 : 1) || a.shape[0] != rows || a.shape[1] != columns)
    fail_model(q->in->path, "'%s' is [%lld, %lld], not [%lld, %lld]", name, (long long)a.shape[0],
               (long long)a.shape[1], (long long)rows, (long long)columns);
  return a;
}

static void put_next(nequix *q, int64_t rows, int64_t columns, const char *name) {
  const npy a = expected(q, rows, columns, name);
  put_tensor(q->out, a.data, a.f64, a.rank, a.shape, "%s", name);
}

/* ---- one layer ---- */

/* All paths into `out`; messages have one term per path. */
static void find_paths(nequix *q, int layer, const irreps *out, irreps *messages) {
  const irreps sh = harmonic_irreps(q->l_max, false);
  path_terms paths[MAX_TERMS];
  const int n = find_all_paths(q->in->path, &q->features, &sh, out, paths, MAX_TERMS);
  *messages = own_messages(paths, n, &q->features, out);
  put_paths(q->out, layer, paths, n, messages);
}

static void put_by_irrep(nequix *q, int layer, const char *what, irrep t, int64_t rows,
                         int64_t columns) {
  char label[LABEL_BYTES];
  put_next(q, rows, columns, named("layers.%d.%s.%s", layer, what, irrep_label(t, label)).text);
}

static void put_radial(nequix *q, int layer, int64_t n_weights) {
  for (int64_t i = 0, rows = q->n_basis; i <= q->mlp_layers; i++, rows = q->mlp_size)
    put_next(q, rows, i < q->mlp_layers ? q->mlp_size : n_weights,
             named("layers.%d.radial.%lld", layer, (long long)i).text);
}

static void convert_layer(nequix *q, int layer) {
  irreps messages, out = q->hidden;
  int64_t n_weights = 0;
  if (layer == q->n_layers - 1) out.n = 1;
  put_irreps(q->out, &q->features, "layers.%d.irreps_in", layer);
  find_paths(q, layer, &out, &messages);
  const irreps linear = put_gate(q->out, named("layers.%d", layer).text, &out);
  put_irreps(q->out, &out, "layers.%d.irreps_out", layer);
  for (int i = 0; i < messages.n; i++) n_weights += messages.term[i].mul;
  put_radial(q, layer, n_weights);
  for (int i = 0; i < q->features.n; i++)
    put_by_irrep(q, layer, "linear_1", q->features.term[i], q->features.term[i].mul,
                 q->features.term[i].mul);
  for (int i = 0; i < linear.n; i++)
    put_by_irrep(q, layer, "linear_2", linear.term[i], channels_of(&messages, linear.term[i]),
                 linear.term[i].mul);
  for (int i = 0; i < q->features.n; i++) {
    const int64_t columns = channels_of(&linear, q->features.term[i]);
    if (columns)
      put_by_irrep(q, layer, "self_connection", q->features.term[i], q->features.term[i].mul,
                   columns);
  }
  for (int i = 0; q->norm && i < linear.n; i++)
    put_by_irrep(q, layer, "norm", linear.term[i], linear.term[i].mul, 0);
  q->features = out;
}

/* ---- the network ---- */

static void put_frequencies(nequix *q) {
  double *frequencies = calloc((size_t)q->n_basis, sizeof *frequencies);
  if (!frequencies) fail_model(q->in->path, "out of memory");
  for (int64_t k = 0; k < q->n_basis; k++) frequencies[k] = (double)(k + 1) * M_PI;
  put_doubles(q->out, frequencies, q->n_basis, "bessel_frequencies");
  free(frequencies);
}

/* An atom's energy is scale * network + shift + the species' own. */
static void put_energies(nequix *q) {
  const npy own = expected(q, q->n_species, 0, "species_shift");
  double scale[CLB_ELEMENTS], shift[CLB_ELEMENTS];
  for (int64_t i = 0; i < q->n_species; i++) {
    scale[i] = number_of(q, "scale");
    shift[i] = number_of(q, "shift") + number_at(own.data, own.f64, i);
  }
  put_per_species(q->out, scale, shift, q->n_species);
}

bool is_nequix(const source_file *in) { return in->n >= 1 && *in->bytes == '{'; }

void convert_nequix(const source_file *in, model *out) {
  nequix *q = &(nequix){.in = in, .out = out};
  read_header(q);
  put_header(q);
  put_frequencies(q);
  put_energies(q);
  q->features = (irreps){1, {{(int)q->n_species, 0, 1}}};
  for (int i = 0; i < q->n_layers; i++) convert_layer(q, i);
  put_next(q, q->hidden.term[0].mul, 1, "readout.0");
  json_decref(q->header);
}
