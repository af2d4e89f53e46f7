/* models/arch/nequip_block.c - the layers of a block of networks like NequIP's, and their weights.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/arch/nequip.h"

typedef clb_model_reader reader;
enum { KEY_BYTES = CLB_MODEL_KEY };
static const clb_term even_scalar = {.l = 0, .parity = 1};

typedef struct {
  reader *r;
  const clb_nequip *q;
  int n; /* its number */
  clb_nequip_irreps irreps;
} block;

/* ---- layers and tensors ---- */

#define LAYER(b, kind, what, in, out)                                                              \
  clb_model_layer((b)->r, &clb_##kind##_kind, sizeof(clb_##kind), (b)->n, what, in, out)

static int array(const block *b, clb_per per, const clb_irreps *irreps) {
  return clb_model_array(b->r, per, false, irreps);
}
static int columns(const block *b, int64_t n) {
  const clb_irreps irreps = clb_scalars(n);
  return array(b, CLB_PER_EDGE, &irreps);
}

/* "layers.N.what.1o" */
static int64_t take_term(const block *b, const char *what, const clb_term *t, int rank,
                         const int64_t *shape, double factor) {
  char key[KEY_BYTES];
  snprintf(key, sizeof key, "layers.%d.%s.%d%c", b->n, what, (int)t->l, t->parity > 0 ? 'e' : 'o');
  return clb_model_take(b->r, key, rank, shape, factor);
}

static void add_block(const block *b, clb_layer *y, int from, int to, int64_t weights) {
  if (!b->r->status) b->r->status = clb_linear_add(b->r->out, y->parameters, from, to, weights);
}

/* "layers.N.WHAT", where the file has it, becomes the first term of a sum: one number per channel
   of the even scalars. */
static void read_bias(const block *b, const char *what, int to, const clb_irreps *irreps) {
  const int at = clb_find_irrep(irreps, &even_scalar);
  clb_network *f = b->r->out;
  char key[KEY_BYTES];
  if (b->r->status || at < 0) return;
  if (!clb_safetensors_find(b->r->file, clb_nequip_key(key, b->n, what))) return;
  const int64_t mul = irreps->term[at].mul, from = clb_model_take(b->r, key, 1, &mul, 1),
                table = clb_model_reserve(b->r, f->n_species * (int64_t)irreps->dim);
  for (int s = 0; s < f->n_species && !b->r->status; s++)
    memcpy(f->weights + table + s * (int64_t)irreps->dim + irreps->term[at].at, f->weights + from,
           (size_t)mul * sizeof *f->weights);
  clb_layer *y = LAYER(b, embedding, what, -1, to);
  if (y) *(clb_embedding *)y->parameters = (clb_embedding){table};
}

/* ---- the block ---- */

/* [8], the second term */
static void read_self(const block *b, int to) {
  const clb_irreps *in = &b->irreps.in, *out = &b->irreps.linear;
  const int64_t species = b->r->out->n_species;
  const bool by_species = b->q->species_self;
  clb_layer *y = LAYER(b, linear, "self_connection", b->q->features, to);
  if (y) ((clb_linear *)y->parameters)->by_species = by_species;
  for (int from = 0; from < in->n && y; from++) {
    const int term = clb_find_irrep(out, &in->term[from]);
    if (term < 0) continue;
    const clb_term *t = &out->term[term];
    const int64_t mul = in->term[from].mul;
    const int64_t one[] = {mul, t->mul}, many[] = {mul, species, t->mul};
    add_block(b, y, from, term,
              take_term(b, "self_connection", t, by_species ? 3 : 2, by_species ? many : one,
                        1 / sqrt((double)(by_species ? mul * species : mul))));
  }
}

/* [5] */
static int read_sent(const block *b) {
  const clb_irreps *in = &b->irreps.in;
  const int x = array(b, CLB_PER_ATOM, in);
  read_bias(b, "linear_1_bias", x, in);
  clb_layer *y = LAYER(b, linear, "linear_1", b->q->features, x);
  for (int t = 0; t < in->n && y; t++) {
    const int64_t mul = in->term[t].mul;
    add_block(b, y, t, t,
              take_term(b, "linear_1", &in->term[t], 2, (const int64_t[]){mul, mul},
                        1 / sqrt((double)mul)));
  }
  clb_model_layer(b->r, &clb_exchange_kind, 1, b->n, "exchange", x, x);
  return x;
}

/* [4] */
static int read_radial(const block *b) {
  const int last = b->q->n_radial - 1, weights = columns(b, b->irreps.n_weights);
  int64_t hidden = 0;
  clb_layer *y = LAYER(b, radial, "radial", b->q->basis, weights);
  clb_radial *p = y ? y->parameters : NULL;
  if (!y) return weights;
  p->n = last + 1;
  p->width[0] = b->r->out->array[b->q->basis]->irreps.dim;
  for (int k = 0; k <= last && !b->r->status; k++) {
    char key[KEY_BYTES];
    snprintf(key, sizeof key, "layers.%d.radial.%d", b->n, k);
    const clb_tensor *t = clb_safetensors_find(b->r->file, key);
    const int64_t rows = p->width[k], to = k == last           ? b->irreps.n_weights
                                           : t && t->rank == 2 ? t->shape[1]
                                                               : 0;
    if (t && (to < 1 || to > CLB_MODEL_WIDTH))
      clb_model_refuse(b->r, "'%s' must have 1 to %d columns", key, CLB_MODEL_WIDTH);
    p->width[k + 1] = to;
    p->matrix[k] =
        clb_model_take(b->r, key, 2, (const int64_t[]){rows, to},
                       (k ? b->q->radial_scale : 1) / (b->q->fan_in ? sqrt((double)rows) : 1));
    hidden += k == last ? 0 : (to + 3) / 4 * 4;
  }
  if (!hidden) return weights;
  y->out[CLB_RADIAL_HIDDEN] = columns(b, hidden);
  y->work = columns(b, hidden);
  return weights;
}

/* [6, 7] */
static int read_convolution(const block *b, int x, int weights) {
  const clb_nequip_irreps *irreps = &b->irreps;
  const int message = array(b, CLB_PER_LOCAL, &irreps->message);
  clb_layer *y = LAYER(b, convolution, "convolution", x, message);
  clb_convolution *p = y ? y->parameters : NULL;
  if (!y) return message;
  p->message = irreps->message;
  p->n_paths = irreps->n_paths;
  memcpy(p->path, irreps->path, sizeof p->path);
  p->n_weights = irreps->n_weights;
  p->scale = 1 / sqrt(b->q->neighbours);
  y->in[CLB_CONVOLUTION_HARMONICS] = b->q->harmonics;
  y->in[CLB_CONVOLUTION_WEIGHTS] = weights;
  y->gradients = (1U << CLB_CONVOLUTION_INS) - 1;
  return message;
}

/* [8], the first term: the rows of one tensor are the message's terms of that irrep,
   concatenated. */
static void read_linear_2(const block *b, int message, int linear) {
  const clb_irreps *from = &b->irreps.message, *to = &b->irreps.linear;
  clb_layer *y = LAYER(b, linear, "linear_2", message, linear);
  for (int t = 0; t < to->n && y; t++) {
    const int64_t rows = clb_channels(from, &to->term[t]);
    int64_t at = rows ? take_term(b, "linear_2", &to->term[t], 2,
                                  (const int64_t[]){rows, to->term[t].mul}, 1 / sqrt((double)rows))
                      : 0;
    for (int i = 0; i < from->n; i++) {
      if (!clb_same_irrep(&from->term[i], &to->term[t])) continue;
      add_block(b, y, i, t, at);
      at += (int64_t)from->term[i].mul * to->term[t].mul;
    }
  }
}

/* [9] */
static int read_norm(const block *b, int linear) {
  const clb_irreps *irreps = &b->irreps.linear;
  const int out = array(b, CLB_PER_LOCAL, irreps);
  int64_t from[CLB_MAX_TERMS] = {0};
  for (int t = 0; t < irreps->n; t++) {
    const int64_t mul = irreps->term[t].mul;
    from[t] = take_term(b, "norm", &irreps->term[t], 1, &mul, 1);
  }
  int64_t at = clb_model_reserve(b->r, clb_channels(irreps, NULL));
  clb_layer *y = LAYER(b, norm, "norm", linear, out);
  if (y) *(clb_norm *)y->parameters = (clb_norm){b->q->norm_epsilon, at, NULL};
  for (int t = 0; t < irreps->n && y; t++) {
    const int64_t mul = irreps->term[t].mul;
    memcpy(b->r->out->weights + at, b->r->out->weights + from[t], (size_t)mul * sizeof(double));
    at += mul;
  }
  return out;
}

static clb_scaled_activation read_activation(reader *r, const char *which) {
  static const struct {
    const char *name;
    clb_activation function;
  } known[] = {
      {"silu", CLB_SILU}, {"tanh", CLB_TANH}, {"abs", CLB_ABS}, {"identity", CLB_IDENTITY}};
  char key[KEY_BYTES], scale[KEY_BYTES];
  snprintf(key, sizeof key, "activation_%s", which);
  snprintf(scale, sizeof scale, "activation_%s_scale", which);
  const char *text = clb_model_text(r, key);
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(text, known[i].name))
      return (clb_scaled_activation){known[i].function, clb_model_number(r, scale)};
  clb_model_refuse(r, "'%s' is \"%.60s\"; only silu, tanh, abs and identity are known", key, text);
  return (clb_scaled_activation){CLB_SILU, 1};
}

/* [10] */
static int read_gate(const block *b, int in) {
  const clb_nequip_irreps *irreps = &b->irreps;
  const int out = array(b, CLB_PER_LOCAL, &irreps->out);
  clb_layer *y = LAYER(b, gate, "gate", in, out);
  clb_gate *p = y ? y->parameters : NULL;
  bool some[2] = {false};
  if (!y) return out;
  p->scalars = irreps->scalars;
  p->gates = irreps->gates;
  p->gated = irreps->gated;
  for (int t = 0; t < p->scalars.n; t++) some[p->scalars.term[t].parity < 0] = true;
  if (some[0]) p->even = read_activation(b->r, "even");
  if (some[1]) p->odd = read_activation(b->r, "odd");
  if (p->gates.n) p->gate = read_activation(b->r, "gate");
  return out;
}

/* The self connection comes before linear_1, so that backward the gradient by linear_1 is the first
   term of the sum. */
static void read_layers(const block *b, clb_nequip *q) {
  int linear = array(b, CLB_PER_LOCAL, &b->irreps.linear);
  read_bias(b, "linear_2_bias", linear, &b->irreps.linear);
  read_self(b, linear);
  const int x = read_sent(b), weights = read_radial(b), message = read_convolution(b, x, weights);
  read_linear_2(b, message, linear);
  if (q->rms) linear = read_norm(b, linear);
  q->features = read_gate(b, linear);
}

void clb_nequip_block(reader *r, clb_nequip *q, int n) {
  block *b = calloc(1, sizeof *b);
  if (!b) clb_model_no_memory(r);
  if (b) {
    *b = (block){.r = r, .q = q, .n = n};
    clb_nequip_read_irreps(r, q, n, &b->irreps);
  }
  if (!r->status) read_layers(b, q);
  free(b);
}
