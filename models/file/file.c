/* models/file/file.c - reads a model's file and checks that its metadata and tensors agree. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/file/reader.h"

typedef clb_model_reader reader;
enum { KEY_BYTES = CLB_MODEL_KEY };
static const double min_r_max = 0.01, largest_r_max = 1000, largest_frequency = 1e6;

void clb_model_refuse(reader *r, const char *format, ...) {
  va_list args;
  clb_text t = {0};
  if (r->status) return;
  va_start(args, format);
  clb_text_vadd(&t, format, args);
  va_end(args);
  r->status = t.failed ? clb_fail(r->error, CLB_ERROR_MEMORY, "%s: no memory", r->path)
                       : clb_fail(r->error, CLB_ERROR_ARGUMENT, "%s: %s", r->path, t.s);
  clb_text_free(&t);
}

void clb_model_no_memory(reader *r) {
  if (!r->status)
    r->status = clb_fail(r->error, CLB_ERROR_MEMORY, "%s: no memory for the model", r->path);
}

/* ---- metadata ---- */

const char *clb_model_text(reader *r, const char *key) {
  const char *text = "";
  if (!r->status) r->status = clb_safetensors_text(r->error, r->file, key, &text);
  return r->status ? "" : text;
}

static double number_of(reader *r, const char *key) {
  double x = 1;
  if (!r->status) r->status = clb_safetensors_number(r->error, r->file, key, &x);
  return r->status ? 1 : x;
}

static int whole_of(reader *r, const char *key, int low, int high) {
  int64_t x = low;
  if (!r->status) r->status = clb_safetensors_whole(r->error, r->file, key, low, high, &x);
  return (int)x;
}

/* Index of the metadata's value among the allowed words. */
static int choice_of(reader *r, const char *key, const char *first, const char *second) {
  const char *text = clb_model_text(r, key);
  if (!r->status && strcmp(text, first) != 0 && (!second || strcmp(text, second) != 0))
    clb_model_refuse(r, "'%s' is \"%.60s\"; only \"%s\"%s%s%s is known", key, text, first,
                     second ? " or \"" : "", second ? second : "", second ? "\"" : "");
  return !r->status && strcmp(text, first) != 0;
}

void clb_model_irreps(reader *r, const char *key, clb_irreps *irreps) {
  const char *text = clb_model_text(r, key);
  if (r->status) return;
  r->status = clb_irreps_read(text, key, irreps, r->error);
  if (r->status)
    clb_fail(r->error, r->status, "%s: %s", r->path, r->error->text.s ? r->error->text.s : key);
  for (int t = 0; t < irreps->n && !r->status; t++)
    if (!irreps->term[t].mul)
      clb_model_refuse(r, "'%s' is \"%.60s\"; multiplicities must be positive", key, text);
}

static const struct {
  const char *name;
  clb_activation function;
} activations[] = {
    {"silu", CLB_SILU}, {"tanh", CLB_TANH}, {"abs", CLB_ABS}, {"identity", CLB_IDENTITY}};

static clb_model_activation activation_of(reader *r, const char *which) {
  char key[KEY_BYTES], scale[KEY_BYTES];
  snprintf(key, sizeof key, "activation_%s", which);
  snprintf(scale, sizeof scale, "activation_%s_scale", which);
  const char *text = clb_model_text(r, key);
  for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
    if (!strcmp(text, activations[i].name))
      return (clb_model_activation){activations[i].function, number_of(r, scale)};
  clb_model_refuse(r, "'%s' is \"%.60s\"; only silu, tanh, abs and identity are known", key, text);
  return (clb_model_activation){CLB_SILU, 1};
}

static void read_species(reader *r) {
  clb_model_file *f = r->out;
  const char *text = clb_model_text(r, "species");
  if (r->status) return;
  if (!(f->symbols = strdup(text))) clb_model_no_memory(r);
  for (char *s = f->symbols; s && *s;) {
    size_t n = strcspn(s, " ");
    if (f->n_species == CLB_ELEMENTS)
      clb_model_refuse(r, "'species' are more than %d", CLB_ELEMENTS);
    if (r->status) return;
    f->symbol[f->n_species] = s;
    const int element = f->atomic_number[f->n_species] = clb_element(s, n);
    if (!element)
      clb_model_refuse(r, "'species' has \"%.*s\", which is no element", (int)(n < 60 ? n : 60), s);
    for (int i = 0; i < f->n_species; i++)
      if (f->atomic_number[i] == element)
        clb_model_refuse(r, "'species' has %.*s twice, as species %d and %d", (int)n, s, i,
                         f->n_species);
    f->n_species++;
    if (!s[n]) break;
    s[n] = 0;
    s += n + 1;
  }
  if (!f->n_species) clb_model_refuse(r, "'species' is empty");
}

/* For information only. */
static void read_architecture(reader *r) {
  static const char *const known[] = {"nequip", "nequix", "sevennet"};
  const char *text = clb_model_text(r, "architecture");
  int i = 0;
  while (i < 3 && strcmp(text, known[i]) != 0) i++;
  if (i == 3)
    clb_model_refuse(r, "'architecture' is \"%.60s\"; only nequip, nequix and sevennet are known",
                     text);
  if (!r->status && !(r->out->architecture = strdup(text))) clb_model_no_memory(r);
}

static void read_cutoff(reader *r) {
  if (choice_of(r, "cutoff", "polynomial", "xplor")) r->out->cutoff_on = number_of(r, "cutoff_on");
  else r->out->cutoff_p = whole_of(r, "cutoff_p", 2, 64);
}

static void read_header(reader *r) {
  clb_model_file *f = r->out;
  choice_of(r, "format", "clebsch model", NULL);
  choice_of(r, "format_version", "1", NULL);
  read_architecture(r);
  read_species(r);
  f->r_max = number_of(r, "r_max");
  f->l_max = whole_of(r, "l_max", 0, CLB_MAX_L);
  choice_of(r, "radial_basis", "bessel", NULL);
  f->n_basis = whole_of(r, "n_basis", 1, CLB_MAX_BASIS);
  read_cutoff(r);
  f->n_radial = whole_of(r, "radial_layers", 1, CLB_MODEL_RADIAL);
  choice_of(r, "radial_activation", "silu", NULL);
  f->neighbours = number_of(r, "avg_num_neighbors");
  f->one_hot = choice_of(r, "embedding", "linear", "one_hot");
  f->n_layers = whole_of(r, "n_layers", 1, CLB_MODEL_LAYERS);
  f->species_self = choice_of(r, "self_connection", "linear", "species");
  f->rms = choice_of(r, "norm", "none", "rms");
  f->norm_epsilon = f->rms ? number_of(r, "norm_epsilon") : 0;
  if (!(f->r_max >= min_r_max && f->r_max <= largest_r_max))
    clb_model_refuse(r, "'r_max' is %g; it must be from %g to %g Angstrom", f->r_max, min_r_max,
                     largest_r_max);
  if (!r->status && !f->cutoff_p && !(f->cutoff_on >= 0 && f->cutoff_on < f->r_max))
    clb_model_refuse(r, "'cutoff_on' is %g; it must be 0 or more, below r_max, %g", f->cutoff_on,
                     f->r_max);
  if (!r->status && !(f->neighbours > 0))
    clb_model_refuse(r, "'avg_num_neighbors' is %g; it must be positive", f->neighbours);
  if (!r->status && f->rms && !(f->norm_epsilon > 0))
    clb_model_refuse(r, "'norm_epsilon' is %g; it must be positive", f->norm_epsilon);
}

static void check_harmonics(reader *r) {
  clb_irreps *sh = &r->out->sh;
  clb_model_irreps(r, "irreps_sh", sh);
  if (r->status) return;
  r->out->solid = clb_safetensors_says(r->file, "harmonics_of") &&
                  choice_of(r, "harmonics_of", "directions", "vectors");
  const bool even = sh->n > 1 && sh->term[1].parity > 0;
  bool good = sh->n == r->out->l_max + 1;
  for (int l = 0; l < sh->n && good; l++)
    good = sh->term[l].mul == 1 && sh->term[l].l == l &&
           sh->term[l].parity == (l % 2 && !even ? -1 : 1);
  if (!good)
    clb_model_refuse(r, "'irreps_sh' must be degrees 0 to l_max, once each, of parity (-1)^l, or "
                        "all even");
}

/* ---- tensors ---- */

bool clb_model_has(reader *r, const char *name, int rank, const int64_t *shape) {
  const clb_tensor *t;
  if (!r->status) r->status = clb_safetensors_want(r->error, r->file, name, rank, shape, &t);
  if (!r->status) r->used[t - clb_safetensors_at(r->file, 0)] = true;
  return !r->status;
}

int64_t clb_model_reserve(reader *r, int64_t n) {
  clb_model_file *f = r->out;
  const int64_t at = (f->n_all_weights + 15) / 16 * 16, end = at + n;
  if (r->status) return 0;
  if (end > f->capacity) {
    const int64_t capacity = 2 * end;
    double *grown = realloc(f->weights, (size_t)capacity * sizeof *grown);
    if (!grown) {
      clb_model_no_memory(r);
      return 0;
    }
    memset(grown + f->capacity, 0, (size_t)(capacity - f->capacity) * sizeof *grown);
    f->weights = grown;
    f->capacity = capacity;
  }
  f->n_all_weights = end;
  return at;
}

int64_t clb_model_take(reader *r, const char *name, int rank, const int64_t *shape, double factor) {
  if (!clb_model_has(r, name, rank, shape)) return 0;
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= shape[i];
  const int64_t at = clb_model_reserve(r, n);
  if (!r->status)
    r->status = clb_safetensors_read(r->error, r->file, name, rank, shape, r->out->weights + at);
  for (int64_t i = 0; i < n && !r->status; i++) {
    const double x = r->out->weights[at + i];
    if (!isfinite(r->out->weights[at + i] *= factor))
      clb_model_refuse(r, "number %lld of tensor '%s', %g, times %g is not finite", (long long)i,
                       name, x, factor);
  }
  return r->status ? 0 : at;
}

static void check_frequencies(reader *r) {
  for (int k = 0; k < r->out->n_basis && !r->status; k++) {
    const double w = r->out->weights[r->out->frequencies + k];
    if (w == 0 || !(fabs(w) <= largest_frequency))
      clb_model_refuse(
          r,
          "number %d of tensor 'bessel_frequencies' is %g; frequencies are not 0, and at most %g",
          k, w, largest_frequency);
  }
}

/* Unused tensors are an error: the file would hold a different model from the one that its metadata
 describe. */
static void check_all_used(reader *r) {
  for (int i = 0; i < clb_safetensors_size(r->file); i++)
    if (!r->used[i])
      clb_model_refuse(r, "tensor '%.60s' has no place in the model that the metadata describe",
                       clb_safetensors_at(r->file, i)->name);
}

/* Checks that all weights are finite, including products of tensors. */
static void check_weights(reader *r) {
  for (int64_t i = 0; i < r->out->n_all_weights; i++)
    if (!isfinite(r->out->weights[i]))
      clb_model_refuse(r, "its matrices multiply to numbers that are not finite");
}

/* ---- the first layer: its features depend on the species alone ---- */

/* out += x times a map's block */
static void apply(const clb_model_file *f, const clb_model_block *b, int64_t species, int64_t in,
                  int64_t out, const double *x, double *sum) {
  const int64_t first = f->species_self ? species * out : 0,
                stride = f->species_self ? f->n_species * out : out;
  for (int64_t i = 0; i < in; i++)
    for (int64_t o = 0; o < out; o++)
      sum[o] += x[i] * f->weights[b->weights + first + i * stride + o];
}

static void fill_first(reader *r, int64_t embedding) {
  clb_model_file *f = r->out;
  clb_model_layer *y = &f->layer[0];
  const int64_t n = y->in.dim, species = f->n_species;
  y->first_x = clb_model_reserve(r, species * n);
  y->first_o = clb_model_reserve(r, species * y->linear.dim);
  for (int64_t s = 0; s < species && !r->status; s++) {
    const double *x = f->weights + embedding + s * n;
    const clb_model_block *one = &y->linear_1.block[0];
    const double *w = f->weights + one->weights;
    for (int64_t i = 0; i < n; i++)
      for (int64_t o = 0; o < n; o++) f->weights[y->first_x + s * n + o] += x[i] * w[i * n + o];
    for (int b = 0; b < y->self.n; b++) {
      const clb_term *to = &y->linear.term[y->self.block[b].to];
      apply(f, &y->self.block[b], s, n, to->mul, x,
            f->weights + y->first_o + s * y->linear.dim + to->at);
    }
    for (int64_t i = 0; i < n && y->bias_1; i++)
      f->weights[y->first_x + s * n + i] += f->weights[y->bias_1 + s * n + i];
    for (int64_t i = 0; i < y->linear.dim && y->bias_2; i++)
      f->weights[y->first_o + s * y->linear.dim + i] +=
          f->weights[y->bias_2 + s * y->linear.dim + i];
  }
  y->linear_1.n = y->self.n = 0;
}

static void read_first(reader *r) {
  clb_model_file *f = r->out;
  if (r->status) return;
  const clb_irreps *in = &f->layer[0].in;
  const int64_t n = in->dim, species = f->n_species;
  if (in->n != 1 || in->term[0].l || in->term[0].parity < 0 || (f->one_hot && n != species)) {
    clb_model_refuse(r, "layers.0.irreps_in must be scalars, with 'one_hot' one of each species");
    return;
  }
  const int64_t embedding = f->one_hot
                                ? clb_model_reserve(r, species * species)
                                : clb_model_take(r, "embedding", 2, (const int64_t[]){species, n},
                                                 1 / sqrt((double)species));
  for (int64_t s = 0; f->one_hot && s < species && !r->status; s++)
    f->weights[embedding + s * species + s] = 1;
  fill_first(r, embedding);
}

/* ---- the readout ---- */

/* Multiplies all its matrices into one column. */
static void read_readout(reader *r) {
  clb_model_file *f = r->out;
  if (r->status) return;
  const clb_term even = {.l = 0, .parity = 1};
  const int64_t n = clb_model_channels(&f->layer[f->n_layers - 1].scalars, &even);
  const int matrices = whole_of(r, "readout_layers", 1, CLB_MODEL_RADIAL);
  int64_t width[CLB_MODEL_RADIAL + 1] = {n}, at[CLB_MODEL_RADIAL] = {0};
  for (int k = 0; k < matrices && !r->status; k++) {
    char key[KEY_BYTES];
    snprintf(key, sizeof key, "readout.%d", k);
    const clb_tensor *t = clb_safetensors_find(r->file, key);
    width[k + 1] = k == matrices - 1 ? 1 : t && t->rank == 2 ? t->shape[1] : 0;
    if (width[k] < 1 || width[k] > CLB_MODEL_WIDTH)
      clb_model_refuse(r, "'%s' must have 1 to %d rows", key, CLB_MODEL_WIDTH);
    at[k] = clb_model_take(r, key, 2, (const int64_t[]){width[k], width[k + 1]},
                           r->status ? 1 : 1 / sqrt((double)width[k]));
  }
  f->readout = r->status ? 0 : at[matrices - 1];
  for (int k = matrices - 2; k >= 0 && !r->status; k--) {
    const int64_t product = clb_model_reserve(r, width[k]);
    for (int64_t i = 0; i < width[k] && !r->status; i++)
      for (int64_t j = 0; j < width[k + 1]; j++)
        f->weights[product + i] +=
            f->weights[at[k] + i * width[k + 1] + j] * f->weights[f->readout + j];
    f->readout = product;
  }
}

/* ---- the file ---- */

static bool any(const clb_model_file *f, bool gates, int parity) {
  for (int n = 0; n < f->n_layers; n++) {
    const clb_irreps *part = gates ? &f->layer[n].gates : &f->layer[n].scalars;
    for (int t = 0; t < part->n; t++)
      if (gates || part->term[t].parity == parity) return true;
  }
  return false;
}

static void read_all(reader *r) {
  clb_model_file *f = r->out;
  read_header(r);
  check_harmonics(r);
  const bool fan_in = choice_of(r, "radial_normalization", "none", "fan_in");
  const double radial_scale = number_of(r, "radial_activation_scale"),
               energy_scale = number_of(r, "energy_scale");
  const int64_t species = f->n_species, basis = f->n_basis;
  f->frequencies = clb_model_take(r, "bessel_frequencies", 1, &basis, 1);
  check_frequencies(r);
  f->scale = clb_model_take(r, "species_scale", 1, &species, energy_scale);
  f->shift = clb_model_take(r, "species_shift", 1, &species, energy_scale);
  if (!r->status && !(f->layer = calloc((size_t)f->n_layers, sizeof *f->layer)))
    clb_model_no_memory(r);
  for (int n = 0; n < f->n_layers && !r->status; n++)
    clb_model_read_layer(r, n, fan_in, radial_scale);
  if (!r->status && any(f, false, 1)) f->even = activation_of(r, "even");
  if (!r->status && any(f, false, -1)) f->odd = activation_of(r, "odd");
  if (!r->status && any(f, true, 0)) f->gate = activation_of(r, "gate");
  read_first(r);
  read_readout(r);
  check_all_used(r);
  check_weights(r);
  for (int i = 0; i < clb_safetensors_size(r->file) && !r->status; i++)
    f->parameters += clb_safetensors_at(r->file, i)->count;
}

clb_status clb_model_file_read(clb_error_sink *error, const char *path, clb_model_file *out) {
  reader r = {.error = error, .path = path, .out = out};
  memset(out, 0, sizeof *out);
  r.status = clb_safetensors_open(error, path, &r.file);
  if (!r.status && !(r.used = calloc((size_t)clb_safetensors_size(r.file) + 1, sizeof *r.used)))
    clb_model_no_memory(&r);
  if (!r.status) read_all(&r);
  free(r.used);
  clb_safetensors_close(&r.file);
  if (!r.status) r.status = clb_model_file_prune(error, out);
  if (!r.status) clb_model_file_merge(out);
  return r.status;
}

void clb_model_file_free(clb_model_file *f) {
  free(f->architecture);
  free(f->symbols);
  free(f->layer);
  free(f->weights);
  memset(f, 0, sizeof *f);
}
