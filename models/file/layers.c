/* models/file/layers.c - a layer of a model's file: its irreps and paths, whether they agree, and
   its weights. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/file/reader.h"

typedef clb_model_reader reader;
enum { KEY_BYTES = CLB_MODEL_KEY, MAX_FEATURES = 1 << 16 };

/* "layers.N.what" */
static const char *layer_key(char key[KEY_BYTES], int layer, const char *what) {
  snprintf(key, KEY_BYTES, "layers.%d.%s", layer, what);
  return key;
}

/* "layers.N.what.1o" */
static const char *term_key(char key[KEY_BYTES], int layer, const char *what, const clb_term *t) {
  snprintf(key, KEY_BYTES, "layers.%d.%s.%d%c", layer, what, (int)t->l, t->parity > 0 ? 'e' : 'o');
  return key;
}

static int64_t take_term(reader *r, int layer, const char *what, const clb_term *t, int rank,
                         const int64_t *shape, double factor) {
  char key[KEY_BYTES];
  return clb_model_take(r, term_key(key, layer, what, t), rank, shape, factor);
}

static bool same_irrep(const clb_term *a, const clb_term *b) {
  return a->l == b->l && a->parity == b->parity;
}

static int find_irrep(const clb_irreps *irreps, const clb_term *t) {
  for (int i = 0; i < irreps->n; i++)
    if (same_irrep(&irreps->term[i], t)) return i;
  return -1;
}

int64_t clb_model_channels(const clb_irreps *irreps, const clb_term *of) {
  int64_t n = 0;
  for (int t = 0; t < irreps->n; t++)
    n += !of || same_irrep(&irreps->term[t], of) ? irreps->term[t].mul : 0;
  return n;
}

/* ---- a layer's irreps ---- */

/* Checks path q: the product must contain the message's irrep, and the message must have one
   channel per channel of the features. */
static void check_path(reader *r, const char *key, const clb_model_layer *y, int q,
                       const char *words) {
  const clb_instruction *p = &y->path[q];
  const clb_term *x = &y->in.term[p->in1], *z = &y->message.term[p->out];
  const int y_parity = r->out->sh.term[p->in2].parity;
  const int words_n = (int)strcspn(words, " ");
  if (z->l < abs(x->l - p->in2) || z->l > x->l + p->in2 || z->parity != x->parity * y_parity)
    clb_model_refuse(r, "'%s': path %d, \"%.*s\": %d%c times %d%c holds no %d%c", key, q, words_n,
                     words, (int)x->l, x->parity > 0 ? 'e' : 'o', (int)p->in2,
                     y_parity > 0 ? 'e' : 'o', (int)z->l, z->parity > 0 ? 'e' : 'o');
  if (z->mul != x->mul)
    clb_model_refuse(
        r,
        "'%s': path %d, \"%.*s\": its message has %d channels; they must be the %d of its features",
        key, q, words_n, words, (int)z->mul, (int)x->mul);
  for (int i = 0; i < q; i++)
    if (y->path[i].out == p->out)
      clb_model_refuse(r,
                       "'%s': paths %d and %d make one message; each path must have a term of "
                       "irreps_message to itself",
                       key, i, q);
}

static void read_paths(reader *r, int n) {
  char key[KEY_BYTES];
  clb_model_layer *y = &r->out->layer[n];
  const char *text = clb_model_text(r, layer_key(key, n, "paths"));
  for (int used = 0; !r->status && *text; text += used) {
    clb_instruction *q = &y->path[y->n_paths];
    if (y->n_paths == CLB_MAX_PATHS ||
        sscanf(text, "%9d,%9d,%9d%n", &q->in1, &q->in2, &q->out, &used) != 3 ||
        (text[used] && text[used] != ' ') || q->in1 < 0 || q->in1 >= y->in.n || q->in2 < 0 ||
        q->in2 > r->out->l_max || q->out < 0 || q->out >= y->message.n)
      clb_model_refuse(r,
                       "'%s' must be X,Y,Z for each path, terms of irreps_in, irreps_sh and "
                       "irreps_message; it is not where it says \"%.20s\"",
                       key, text);
    if (r->status) return;
    q->mode = CLB_UVU, q->has_weight = 1, q->path_weight = 1;
    check_path(r, key, y, y->n_paths, text);
    y->n_weights += y->in.term[q->in1].mul;
    y->n_paths++;
    used += text[used] == ' ';
  }
  if (!y->n_paths) clb_model_refuse(r, "'%s' is empty", key);
  else if (y->n_paths < y->message.n)
    clb_model_refuse(
        r, "'%s' has %d paths, but layers.%d.irreps_message %d terms; it must be one for each", key,
        y->n_paths, n, y->message.n);
}

/* Checks that the features of a layer are as described in docs/model-format.md. */
static void check_irreps(reader *r, int n) {
  const clb_model_layer *y = &r->out->layer[n];
  const clb_irreps *parts[] = {&y->scalars, &y->gates, &y->gated};
  for (int t = 0; t < y->in.n; t++)
    if (find_irrep(&y->in, &y->in.term[t]) != t)
      clb_model_refuse(r, "layers.%d.irreps_in has an irrep twice", n);
  for (int t = 0; t < y->linear.n; t++) {
    if (find_irrep(&y->linear, &y->linear.term[t]) != t)
      clb_model_refuse(r, "layers.%d.irreps_linear has an irrep twice", n);
    int64_t sum = 0;
    for (int i = 0; i < 3; i++) sum += clb_model_channels(parts[i], &y->linear.term[t]);
    if (sum != y->linear.term[t].mul)
      clb_model_refuse(
          r,
          "layers.%d: irreps_scalars, irreps_gates and irreps_gated together are not irreps_linear",
          n);
  }
  for (int i = 0; i < 3; i++)
    for (int t = 0; t < parts[i]->n; t++) {
      if (find_irrep(&y->linear, &parts[i]->term[t]) < 0)
        clb_model_refuse(r,
                         "layers.%d: irreps_scalars, irreps_gates and irreps_gated together are "
                         "not irreps_linear",
                         n);
      if (i < 2 && parts[i]->term[t].l)
        clb_model_refuse(r, "layers.%d: irreps_scalars and irreps_gates must be of degree 0", n);
    }
  if (clb_model_channels(&y->gates, NULL) != clb_model_channels(&y->gated, NULL))
    clb_model_refuse(r, "layers.%d: irreps_gates must have a channel for each of irreps_gated", n);
  bool good = y->out.n == y->scalars.n + y->gated.n;
  for (int t = 0; t < y->out.n && good; t++) {
    const clb_term *part =
        t < y->scalars.n ? &y->scalars.term[t] : &y->gated.term[t - y->scalars.n];
    good = same_irrep(&y->out.term[t], part) && y->out.term[t].mul == part->mul;
  }
  if (!good)
    clb_model_refuse(r, "layers.%d.irreps_out must be irreps_scalars, then irreps_gated", n);
  if (n && memcmp(&y->in, &r->out->layer[n - 1].out, sizeof y->in) != 0)
    clb_model_refuse(r, "layers.%d.irreps_in is not layers.%d.irreps_out", n, n - 1);
}

/* Refuses features that no tensor contributes to: their size would be whatever the metadata say. */
static void check_reach(reader *r, int n) {
  const clb_model_layer *y = &r->out->layer[n];
  for (int t = 0; t < y->linear.n && !r->out->rms; t++) {
    const clb_term *z = &y->linear.term[t];
    if (find_irrep(&y->message, z) < 0 && find_irrep(&y->in, z) < 0)
      clb_model_refuse(r,
                       "layers.%d.irreps_linear has %dx%d%c, which neither a message nor the "
                       "features before hold",
                       n, (int)z->mul, (int)z->l, z->parity > 0 ? 'e' : 'o');
  }
}

static void check_sizes(reader *r, int n) {
  const clb_model_layer *y = &r->out->layer[n];
  if (y->in.dim > MAX_FEATURES || y->linear.dim > MAX_FEATURES)
    clb_model_refuse(r, "layers.%d.%s has %d numbers per atom; they are at most %d", n,
                     y->in.dim > MAX_FEATURES ? "irreps_in" : "irreps_linear",
                     (int)(y->in.dim > MAX_FEATURES ? y->in.dim : y->linear.dim), MAX_FEATURES);
}

static void read_irreps(reader *r, int n) {
  clb_model_layer *y = &r->out->layer[n];
  const struct {
    const char *name;
    clb_irreps *irreps;
  } parts[] = {{"irreps_in", &y->in},         {"irreps_message", &y->message},
               {"irreps_linear", &y->linear}, {"irreps_scalars", &y->scalars},
               {"irreps_gates", &y->gates},   {"irreps_gated", &y->gated},
               {"irreps_out", &y->out}};
  char key[KEY_BYTES];
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    clb_model_irreps(r, layer_key(key, n, parts[i].name), parts[i].irreps);
  check_sizes(r, n);
  if (!r->status) check_irreps(r, n);
  if (!r->status) read_paths(r, n);
  if (!r->status) check_reach(r, n);
}

/* ---- a layer's weights ---- */

static void add_block(clb_model_map *m, int from, int to, int64_t weights) {
  m->block[m->n++] = (clb_model_block){from, to, weights};
}

static void read_radial(reader *r, int n, bool fan_in, double scale) {
  clb_model_layer *y = &r->out->layer[n];
  y->radial_width[0] = r->out->n_basis;
  for (int k = 0; k < r->out->n_radial && !r->status; k++) {
    char key[KEY_BYTES];
    snprintf(key, sizeof key, "layers.%d.radial.%d", n, k);
    const clb_tensor *t = clb_safetensors_find(r->file, key);
    const int64_t rows = y->radial_width[k], columns = k == r->out->n_radial - 1 ? y->n_weights
                                                       : t && t->rank == 2       ? t->shape[1]
                                                                                 : 0;
    if (t && (columns < 1 || columns > CLB_MODEL_WIDTH))
      clb_model_refuse(r, "'%s' must have 1 to %d columns", key, CLB_MODEL_WIDTH);
    y->radial_width[k + 1] = columns;
    y->radial[k] = clb_model_take(r, key, 2, (const int64_t[]){rows, columns},
                                  (k ? scale : 1) / (fan_in ? sqrt((double)rows) : 1));
  }
}

/* Blocks of linear_2: the rows of one tensor are the message's terms of that irrep,
   concatenated. */
static void read_linear_2(reader *r, int n) {
  clb_model_layer *y = &r->out->layer[n];
  for (int to = 0; to < y->linear.n; to++) {
    const clb_term *t = &y->linear.term[to];
    const int64_t rows = clb_model_channels(&y->message, t);
    int64_t at = rows ? take_term(r, n, "linear_2", t, 2, (const int64_t[]){rows, t->mul},
                                  1 / sqrt((double)rows))
                      : 0;
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
    add_block(&y->self, from, to,
              take_term(r, n, "self_connection", t, by_species ? 3 : 2, by_species ? many : one,
                        1 / sqrt((double)(by_species ? in * species : in))));
  }
}

static void read_norm(reader *r, int n) {
  clb_model_layer *y = &r->out->layer[n];
  int64_t from[CLB_MAX_TERMS] = {0};
  for (int t = 0; t < y->linear.n && !r->status; t++) {
    const int64_t mul = y->linear.term[t].mul;
    from[t] = take_term(r, n, "norm", &y->linear.term[t], 1, &mul, 1);
  }
  int64_t at = y->norm = clb_model_reserve(r, clb_model_channels(&y->linear, NULL));
  for (int t = 0; t < y->linear.n && !r->status; t++) {
    const int64_t mul = y->linear.term[t].mul;
    memcpy(r->out->weights + at, r->out->weights + from[t], (size_t)mul * sizeof *r->out->weights);
    at += mul;
  }
}

/* "layers.N.WHAT_bias", where the file has it: one number per channel of the even scalars. */
static int64_t read_bias(reader *r, int n, const char *what, const clb_irreps *irreps) {
  static const clb_term even = {.l = 0, .parity = 1};
  const clb_model_file *f = r->out;
  const int at = find_irrep(irreps, &even);
  char key[KEY_BYTES];
  if (r->status || at < 0 || !clb_safetensors_find(r->file, layer_key(key, n, what))) return 0;
  const int64_t mul = irreps->term[at].mul, from = clb_model_take(r, key, 1, &mul, 1),
                table = clb_model_reserve(r, f->n_species * (int64_t)irreps->dim);
  for (int s = 0; s < f->n_species && !r->status; s++)
    memcpy(f->weights + table + s * (int64_t)irreps->dim + irreps->term[at].at, f->weights + from,
           (size_t)mul * sizeof *f->weights);
  return table;
}

void clb_model_read_layer(reader *r, int n, bool fan_in, double radial_scale) {
  clb_model_layer *y = &r->out->layer[n];
  read_irreps(r, n);
  read_radial(r, n, fan_in, radial_scale);
  for (int t = 0; t < y->in.n && !r->status; t++) {
    const int64_t mul = y->in.term[t].mul;
    add_block(&y->linear_1, t, t,
              take_term(r, n, "linear_1", &y->in.term[t], 2, (const int64_t[]){mul, mul},
                        1 / sqrt((double)mul)));
  }
  if (!r->status && r->out->rms) read_norm(r, n);
  if (!r->status) read_linear_2(r, n);
  if (!r->status) read_self(r, n);
  y->bias_1 = read_bias(r, n, "linear_1_bias", &y->in);
  y->bias_2 = read_bias(r, n, "linear_2_bias", &y->linear);
}
