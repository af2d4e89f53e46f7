/* model_file.c - reads a model's file: what its metadata say, what its tensors hold, and whether the two agree. */
#include "model_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "safetensors.h"

/* Everything is skipped after the first failure. */
typedef struct {
  clb_error_sink *error;
  clb_safetensors *file;
  const char *path;
  clb_model_file *out;
  clb_status status;
} reader;

enum { KEY_BYTES = 80, MAX_WIDTH = 1 << 20 };

static void __attribute__((format(printf, 2, 3))) refuse(reader *r, const char *format, ...) {
  va_list args;
  clb_text t = {0};
  if (r->status) return;
  va_start(args, format);
  clb_text_vadd(&t, format, args);
  va_end(args);
  r->status = clb_fail(r->error, CLB_ERROR_ARGUMENT, "%s: %s", r->path, t.s ? t.s : "no memory");
  clb_text_free(&t);
}

static void no_memory(reader *r) {
  if (!r->status) r->status = clb_fail(r->error, CLB_ERROR_MEMORY, "%s: no memory", r->path);
}

/* ---- metadata ---- */

static const char *text_of(reader *r, const char *key) {
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

/* Which of the words it is. */
static int choice_of(reader *r, const char *key, const char *first, const char *second) {
  const char *text = text_of(r, key);
  if (!r->status && strcmp(text, first) != 0 && (!second || strcmp(text, second) != 0))
    refuse(r, "'%s' is \"%s\"; only \"%s\"%s%s%s is known", key, text, first, second ? " or \"" : "", second ? second : "", second ? "\"" : "");
  return !r->status && strcmp(text, first) != 0;
}

static void irreps_of(reader *r, const char *key, clb_irreps *irreps) {
  const char *text = text_of(r, key);
  if (!r->status) r->status = clb_irreps_read(text, key, irreps, r->error);
  for (int t = 0; t < irreps->n && !r->status; t++)
    if (!irreps->term[t].mul) refuse(r, "'%s' is \"%s\"; multiplicities must be positive", key, text);
}

static const struct {
  const char *name;
  clb_activation function;
} activations[] = {{"silu", CLB_SILU}, {"tanh", CLB_TANH}, {"abs", CLB_ABS}, {"identity", CLB_IDENTITY}};

static clb_model_activation activation_of(reader *r, const char *which) {
  char key[KEY_BYTES], scale[KEY_BYTES];
  snprintf(key, sizeof key, "activation_%s", which);
  snprintf(scale, sizeof scale, "activation_%s_scale", which);
  const char *text = text_of(r, key);
  for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
    if (!strcmp(text, activations[i].name)) return (clb_model_activation){activations[i].function, number_of(r, scale)};
  refuse(r, "'%s' is \"%s\"; only silu, tanh, abs and identity are known", key, text);
  return (clb_model_activation){CLB_SILU, 1};
}

static void read_species(reader *r) {
  clb_model_file *f = r->out;
  const char *text = text_of(r, "species");
  if (r->status) return;
  if (!(f->symbols = strdup(text))) no_memory(r);
  for (char *s = f->symbols; s && *s;) {
    size_t n = strcspn(s, " ");
    if (f->n_species == CLB_ELEMENTS) refuse(r, "'species' are more than %d", CLB_ELEMENTS);
    if (r->status) return;
    f->symbol[f->n_species] = s;
    if (!(f->atomic_number[f->n_species++] = clb_element(s, n))) refuse(r, "'species' has \"%.*s\", which is no element", (int)n, s);
    if (!s[n]) break;
    s[n] = 0;
    s += n + 1;
  }
  if (!f->n_species) refuse(r, "'species' is empty");
}

static void read_header(reader *r) {
  clb_model_file *f = r->out;
  choice_of(r, "format", "clebsch model", NULL);
  choice_of(r, "format_version", "1", NULL);
  if (!r->status && !(f->architecture = strdup(text_of(r, "architecture")))) no_memory(r);
  read_species(r);
  f->r_max = number_of(r, "r_max");
  f->l_max = whole_of(r, "l_max", 0, CLB_MAX_L);
  choice_of(r, "radial_basis", "bessel", NULL);
  f->n_basis = whole_of(r, "n_basis", 1, CLB_MAX_BASIS);
  choice_of(r, "cutoff", "polynomial", NULL);
  f->cutoff_p = whole_of(r, "cutoff_p", 2, 64);
  f->n_radial = whole_of(r, "radial_layers", 1, CLB_MODEL_RADIAL);
  choice_of(r, "radial_activation", "silu", NULL);
  f->neighbours = number_of(r, "avg_num_neighbors");
  f->one_hot = choice_of(r, "embedding", "linear", "one_hot");
  f->n_layers = whole_of(r, "n_layers", 1, CLB_MODEL_LAYERS);
  f->species_self = choice_of(r, "self_connection", "linear", "species");
  f->rms = choice_of(r, "norm", "none", "rms");
  f->norm_epsilon = f->rms ? number_of(r, "norm_epsilon") : 0;
  if (!r->status && !(f->r_max > 0)) refuse(r, "'r_max' is %g; it must be positive", f->r_max);
  if (!r->status && !(f->neighbours > 0)) refuse(r, "'avg_num_neighbors' is %g; it must be positive", f->neighbours);
  if (!r->status && f->rms && !(f->norm_epsilon > 0)) refuse(r, "'norm_epsilon' is %g; it must be positive", f->norm_epsilon);
}

static void check_harmonics(reader *r) {
  clb_irreps sh = {0};
  irreps_of(r, "irreps_sh", &sh);
  bool good = sh.n == r->out->l_max + 1;
  for (int l = 0; l < sh.n && good; l++) good = sh.term[l].mul == 1 && sh.term[l].l == l && sh.term[l].parity == (l % 2 ? -1 : 1);
  if (!good) refuse(r, "'irreps_sh' must be degrees 0 to l_max, once each, of parity (-1)^l");
}

/* ---- tensors ---- */

/* Room for n more weights, set to 0; it starts at a multiple of 16. */
static int64_t make_room(reader *r, int64_t n) {
  clb_model_file *f = r->out;
  const int64_t at = (f->n_all_weights + 15) / 16 * 16, end = at + n;
  if (r->status) return 0;
  if (end > f->room) {
    const int64_t room = 2 * end;
    double *grown = realloc(f->weights, (size_t)room * sizeof *grown);
    if (!grown) {
      no_memory(r);
      return 0;
    }
    memset(grown + f->room, 0, (size_t)(room - f->room) * sizeof *grown);
    f->weights = grown;
    f->room = room;
  }
  f->n_all_weights = end;
  return at;
}

/* Appends a tensor times a factor. */
static int64_t take(reader *r, const char *name, int rank, const int64_t *shape, double factor) {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= shape[i];
  int64_t at = make_room(r, n);
  if (!r->status) r->status = clb_safetensors_read(r->error, r->file, name, rank, shape, r->out->weights + at);
  for (int64_t i = 0; i < n && !r->status; i++) {
    r->out->weights[at + i] *= factor;
    if (!isfinite(r->out->weights[at + i])) refuse(r, "'%s' holds a number that is not finite", name);
  }
  return r->status ? 0 : at;
}

/* "layers.N.what" */
static const char *layer_key(char key[KEY_BYTES], int layer, const char *what) {
  snprintf(key, KEY_BYTES, "layers.%d.%s", layer, what);
  return key;
}

static int64_t take_term(reader *r, int layer, const char *what, const clb_term *t, int rank, const int64_t *shape, double factor) {
  char key[KEY_BYTES];
  snprintf(key, sizeof key, "layers.%d.%s.%d%c", layer, what, (int)t->l, t->parity > 0 ? 'e' : 'o');
  return take(r, key, rank, shape, factor);
}

static bool same_irrep(const clb_term *a, const clb_term *b) { return a->l == b->l && a->parity == b->parity; }

static int find_irrep(const clb_irreps *irreps, const clb_term *t) {
  for (int i = 0; i < irreps->n; i++)
    if (same_irrep(&irreps->term[i], t)) return i;
  return -1;
}

/* ---- a layer's irreps ---- */

static void read_paths(reader *r, int n) {
  char key[KEY_BYTES];
  clb_model_layer *y = &r->out->layer[n];
  const char *text = text_of(r, layer_key(key, n, "paths"));
  for (int used = 0; !r->status && *text; text += used) {
    clb_instruction *q = &y->path[y->n_paths];
    if (y->n_paths == CLB_MAX_PATHS || sscanf(text, "%9d,%9d,%9d%n", &q->in1, &q->in2, &q->out, &used) != 3 || (text[used] && text[used] != ' ') || q->in1 < 0 ||
        q->in1 >= y->in.n || q->in2 < 0 || q->in2 > r->out->l_max || q->out < 0 || q->out >= y->message.n)
      refuse(r, "'%s' must be X,Y,Z for each path, terms of irreps_in, irreps_sh and irreps_message; it is not where it says \"%.20s\"", key, text);
    q->mode = CLB_UVU, q->has_weight = 1, q->path_weight = 1;
    y->n_weights += r->status ? 0 : y->in.term[q->in1].mul;
    y->n_paths++;
    if (!r->status && text[used]) used++;
  }
  if (!y->n_paths) refuse(r, "'%s' is empty", key);
}

static int64_t channels(const clb_irreps *irreps, const clb_term *of) {
  int64_t n = 0;
  for (int t = 0; t < irreps->n; t++) n += !of || same_irrep(&irreps->term[t], of) ? irreps->term[t].mul : 0;
  return n;
}

/* Whether the features of a layer are as FORMAT.md has them. */
static void check_irreps(reader *r, int n) {
  const clb_model_layer *y = &r->out->layer[n];
  const clb_irreps *parts[] = {&y->scalars, &y->gates, &y->gated};
  for (int t = 0; t < y->in.n; t++)
    if (find_irrep(&y->in, &y->in.term[t]) != t) refuse(r, "layers.%d.irreps_in has an irrep twice", n);
  for (int t = 0; t < y->linear.n; t++) {
    if (find_irrep(&y->linear, &y->linear.term[t]) != t) refuse(r, "layers.%d.irreps_linear has an irrep twice", n);
    int64_t sum = 0;
    for (int i = 0; i < 3; i++) sum += channels(parts[i], &y->linear.term[t]);
    if (sum != y->linear.term[t].mul) refuse(r, "layers.%d: irreps_scalars, irreps_gates and irreps_gated together are not irreps_linear", n);
  }
  for (int i = 0; i < 3; i++)
    for (int t = 0; t < parts[i]->n; t++) {
      if (find_irrep(&y->linear, &parts[i]->term[t]) < 0) refuse(r, "layers.%d: irreps_scalars, irreps_gates and irreps_gated together are not irreps_linear", n);
      if (i < 2 && parts[i]->term[t].l) refuse(r, "layers.%d: irreps_scalars and irreps_gates must be of degree 0", n);
    }
  if (channels(&y->gates, NULL) != channels(&y->gated, NULL)) refuse(r, "layers.%d: irreps_gates must have a channel for each of irreps_gated", n);
  bool good = y->out.n == y->scalars.n + y->gated.n;
  for (int t = 0; t < y->out.n && good; t++) {
    const clb_term *part = t < y->scalars.n ? &y->scalars.term[t] : &y->gated.term[t - y->scalars.n];
    good = same_irrep(&y->out.term[t], part) && y->out.term[t].mul == part->mul;
  }
  if (!good) refuse(r, "layers.%d.irreps_out must be irreps_scalars, then irreps_gated", n);
  if (n && memcmp(&y->in, &r->out->layer[n - 1].out, sizeof y->in) != 0) refuse(r, "layers.%d.irreps_in is not layers.%d.irreps_out", n, n - 1);
}

static void read_irreps(reader *r, int n) {
  clb_model_layer *y = &r->out->layer[n];
  const struct {
    const char *name;
    clb_irreps *irreps;
  } parts[] = {{"irreps_in", &y->in}, {"irreps_message", &y->message}, {"irreps_linear", &y->linear}, {"irreps_scalars", &y->scalars},
               {"irreps_gates", &y->gates}, {"irreps_gated", &y->gated}, {"irreps_out", &y->out}};
  char key[KEY_BYTES];
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) irreps_of(r, layer_key(key, n, parts[i].name), parts[i].irreps);
  if (!r->status) check_irreps(r, n);
  if (!r->status) read_paths(r, n);
}

/* ---- a layer's weights ---- */

static void add_block(clb_model_map *m, int from, int to, int64_t weights) { m->block[m->n++] = (clb_model_block){from, to, weights}; }

static void read_radial(reader *r, int n, bool fan_in, double scale) {
  clb_model_layer *y = &r->out->layer[n];
  y->radial_width[0] = r->out->n_basis;
  for (int k = 0; k < r->out->n_radial && !r->status; k++) {
    char key[KEY_BYTES];
    snprintf(key, sizeof key, "layers.%d.radial.%d", n, k);
    const clb_tensor *t = clb_safetensors_find(r->file, key);
    const int64_t rows = y->radial_width[k], columns = k == r->out->n_radial - 1 ? y->n_weights : t && t->rank == 2 ? t->shape[1] : 0;
    if (t && (columns < 1 || columns > MAX_WIDTH)) refuse(r, "'%s' must have 1 to %d columns", key, MAX_WIDTH);
    y->radial_width[k + 1] = columns;
    y->radial[k] = take(r, key, 2, (const int64_t[]){rows, columns}, (k ? scale : 1) / (fan_in ? sqrt((double)rows) : 1));
  }
}

/* Blocks of linear_2: the rows of one tensor are the messages' terms of that irrep, one after the other. */
static void read_linear_2(reader *r, int n) {
  clb_model_layer *y = &r->out->layer[n];
  for (int to = 0; to < y->linear.n; to++) {
    const clb_term *t = &y->linear.term[to];
    const int64_t rows = channels(&y->message, t);
    int64_t at = rows ? take_term(r, n, "linear_2", t, 2, (const int64_t[]){rows, t->mul}, 1 / sqrt((double)rows)) : 0;
    for (int from = 0; from < y->message.n; from++) {
      if (!same_irrep(&y->message.term[from], t)) continue;
      add_block(&y->linear_2, from, to, at);
      at += (int64_t)y->message.term[from].mul * t->mul;
    }
  }
}

static void read_self(reader *r, int n) {
  clb_model_layer *y = &r->out->layer[n];
  const int64_t species = r->out->n_species;
  for (int from = 0; from < y->in.n; from++) {
    const int to = find_irrep(&y->linear, &y->in.term[from]);
    if (to < 0) continue;
    const clb_term *t = &y->linear.term[to];
    const int64_t in = y->in.term[from].mul;
    const int64_t one[] = {in, t->mul}, many[] = {in, species, t->mul};
    const bool by_species = r->out->species_self;
    add_block(&y->self, from, to, take_term(r, n, "self_connection", t, by_species ? 3 : 2, by_species ? many : one, 1 / sqrt((double)(by_species ? in * species : in))));
  }
}

static void read_norm(reader *r, int n) {
  clb_model_layer *y = &r->out->layer[n];
  y->norm = make_room(r, channels(&y->linear, NULL));
  int64_t at = y->norm;
  for (int t = 0; t < y->linear.n && !r->status; t++) {
    const clb_term *term = &y->linear.term[t];
    const int64_t from = take_term(r, n, "norm", term, 1, (const int64_t[]){term->mul}, 1);
    if (!r->status) memcpy(r->out->weights + at, r->out->weights + from, (size_t)term->mul * sizeof *r->out->weights);
    at += term->mul;
  }
}

static void read_layer(reader *r, int n, bool fan_in, double radial_scale) {
  clb_model_layer *y = &r->out->layer[n];
  read_irreps(r, n);
  read_radial(r, n, fan_in, radial_scale);
  for (int t = 0; t < y->in.n && !r->status; t++) {
    const int64_t mul = y->in.term[t].mul;
    add_block(&y->linear_1, t, t, take_term(r, n, "linear_1", &y->in.term[t], 2, (const int64_t[]){mul, mul}, 1 / sqrt((double)mul)));
  }
  if (!r->status) read_linear_2(r, n);
  if (!r->status) read_self(r, n);
  if (!r->status && r->out->rms) read_norm(r, n);
}

/* ---- the first layer: its features depend on the species alone ---- */

/* out += x times a map's block */
static void apply(const clb_model_file *f, const clb_model_block *b, int64_t species, int64_t in, int64_t out, const double *x, double *sum) {
  const int64_t first = f->species_self ? species * out : 0, stride = f->species_self ? f->n_species * out : out;
  for (int64_t i = 0; i < in; i++)
    for (int64_t o = 0; o < out; o++) sum[o] += x[i] * f->weights[b->weights + first + i * stride + o];
}

static void fill_first(reader *r, int64_t embedding) {
  clb_model_file *f = r->out;
  clb_model_layer *y = &f->layer[0];
  const int64_t n = y->in.dim, species = f->n_species;
  y->first_x = make_room(r, species * n);
  y->first_o = make_room(r, species * y->linear.dim);
  for (int64_t s = 0; s < species && !r->status; s++) {
    const double *x = f->weights + embedding + s * n;
    const clb_model_block *one = &y->linear_1.block[0];
    const double *w = f->weights + one->weights;
    for (int64_t i = 0; i < n; i++)
      for (int64_t o = 0; o < n; o++) f->weights[y->first_x + s * n + o] += x[i] * w[i * n + o];
    for (int b = 0; b < y->self.n; b++) {
      const clb_term *to = &y->linear.term[y->self.block[b].to];
      apply(f, &y->self.block[b], s, n, to->mul, x, f->weights + y->first_o + s * y->linear.dim + to->at);
    }
  }
  y->linear_1.n = y->self.n = 0;
}

static void read_first(reader *r) {
  clb_model_file *f = r->out;
  if (r->status) return;
  const clb_irreps *in = &f->layer[0].in;
  const int64_t n = in->dim, species = f->n_species;
  if (in->n != 1 || in->term[0].l || in->term[0].parity < 0 || (f->one_hot && n != species)) refuse(r, "layers.0.irreps_in must be scalars, with 'one_hot' one of each species");
  int64_t embedding = f->one_hot ? make_room(r, species * species) : take(r, "embedding", 2, (const int64_t[]){species, n}, 1 / sqrt((double)species));
  for (int64_t s = 0; f->one_hot && s < species && !r->status; s++) f->weights[embedding + s * species + s] = 1;
  fill_first(r, embedding);
}

/* ---- the readout ---- */

/* All its matrices in one column. */
static void read_readout(reader *r) {
  clb_model_file *f = r->out;
  if (r->status) return;
  const clb_term even = {.l = 0, .parity = 1};
  const int64_t n = channels(&f->layer[f->n_layers - 1].scalars, &even);
  const int matrices = whole_of(r, "readout_layers", 1, CLB_MODEL_RADIAL);
  int64_t width[CLB_MODEL_RADIAL + 1] = {n}, at[CLB_MODEL_RADIAL] = {0};
  for (int k = 0; k < matrices && !r->status; k++) {
    char key[KEY_BYTES];
    snprintf(key, sizeof key, "readout.%d", k);
    const clb_tensor *t = clb_safetensors_find(r->file, key);
    width[k + 1] = k == matrices - 1 ? 1 : t && t->rank == 2 ? t->shape[1] : 0;
    if (width[k] < 1 || width[k] > MAX_WIDTH) refuse(r, "'%s' must have 1 to %d rows", key, MAX_WIDTH);
    at[k] = take(r, key, 2, (const int64_t[]){width[k], width[k + 1]}, r->status ? 1 : 1 / sqrt((double)width[k]));
  }
  f->readout = r->status ? 0 : at[matrices - 1];
  for (int k = matrices - 2; k >= 0 && !r->status; k--) {
    const int64_t product = make_room(r, width[k]);
    for (int64_t i = 0; i < width[k] && !r->status; i++)
      for (int64_t j = 0; j < width[k + 1]; j++) f->weights[product + i] += f->weights[at[k] + i * width[k + 1] + j] * f->weights[f->readout + j];
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
  const double radial_scale = number_of(r, "radial_activation_scale"), energy_scale = number_of(r, "energy_scale");
  const int64_t species = f->n_species, basis = f->n_basis;
  f->frequencies = take(r, "bessel_frequencies", 1, &basis, 1);
  f->scale = take(r, "species_scale", 1, &species, energy_scale);
  f->shift = take(r, "species_shift", 1, &species, energy_scale);
  if (!r->status && !(f->layer = calloc((size_t)f->n_layers, sizeof *f->layer))) no_memory(r);
  for (int n = 0; n < f->n_layers && !r->status; n++) read_layer(r, n, fan_in, radial_scale);
  if (!r->status && any(f, false, 1)) f->even = activation_of(r, "even");
  if (!r->status && any(f, false, -1)) f->odd = activation_of(r, "odd");
  if (!r->status && any(f, true, 0)) f->gate = activation_of(r, "gate");
  read_first(r);
  read_readout(r);
  for (int i = 0; i < clb_safetensors_size(r->file) && !r->status; i++) f->parameters += clb_safetensors_at(r->file, i)->count;
}

clb_status clb_model_file_read(clb_error_sink *error, const char *path, clb_model_file *out) {
  reader r = {.error = error, .path = path, .out = out};
  memset(out, 0, sizeof *out);
  r.status = clb_safetensors_open(error, path, &r.file);
  if (!r.status) read_all(&r);
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
