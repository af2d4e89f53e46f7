/* models/arch/nequip_block.c - the layers of a block of networks like NequIP's, and their weights.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "models/arch/nequip.h"

typedef clb_model_reader reader;

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

/* ---- the block ---- */

/* A matrix for each species: that of the last map, divided as messages of the species are. */
static void divide_by_species(const block *b) {
  clb_network *n = b->r->out;
  clb_linear *p = n->layer[n->n_layers - 1]->parameters;
  const clb_irreps *in = &b->irreps.messages.in;
  p->by_species = true;
  for (int i = 0; i < p->n && !b->r->status; i++) {
    const int64_t mul = in->term[p->block[i].from].mul, species = n->n_species,
                  from = p->block[i].weights, to = clb_model_reserve(b->r, mul * species * mul);
    p->block[i].weights = to;
    for (int64_t row = 0; row < mul * species && !b->r->status; row++)
      clb_arch_copy_times(b->r, to + row * mul, from + row / species * mul, mul,
                          1 / sqrt(n->weights[b->q->of_species + row % species]));
  }
}

/* [5] */
static int read_sent(const block *b, int features) {
  const clb_irreps *in = &b->irreps.messages.in;
  const int x = array(b, CLB_PER_ATOM, in);
  clb_arch_bias(b->r, b->n, "linear_1_bias", x, true);
  clb_arch_linear(b->r, b->n, "linear_1", features, x, CLB_ARCH_ONE);
  if (!b->r->status && b->q->neighbours == 0) divide_by_species(b);
  clb_model_layer(b->r, &clb_exchange_kind, sizeof(clb_exchange), b->n, "exchange", x, x);
  return x;
}

/* ---- norms [5, 9] ---- */

/* A weight for each channel, and of a centred norm a bias for each even scalar. */
static int64_t take_norm(const block *b, const char *what, const clb_irreps *irreps, bool centred) {
  const clb_term even = {.l = 0, .parity = 1};
  const int64_t scalars = centred ? clb_channels(irreps, &even) : 0;
  int64_t from[CLB_MAX_TERMS + 1] = {0};
  char key[CLB_MODEL_KEY], bias[32];
  for (int t = 0; t < irreps->n; t++) {
    const int64_t mul = irreps->term[t].mul;
    from[t] = clb_arch_take(b->r, b->n, what, &irreps->term[t], 1, &mul, 1);
  }
  snprintf(bias, sizeof bias, "%s_bias", what);
  if (scalars)
    from[irreps->n] = clb_model_take(b->r, clb_arch_key(key, b->n, bias), 1, &scalars, 1);
  const int64_t first = clb_model_reserve(b->r, clb_channels(irreps, NULL) + scalars);
  int64_t at = first;
  for (int t = 0; t < irreps->n; t++) {
    clb_model_copy(b->r, at, from[t], irreps->term[t].mul);
    at += irreps->term[t].mul;
  }
  if (scalars) clb_model_copy(b->r, at, from[irreps->n], scalars);
  return first;
}

static int read_norm(const block *b, const char *what, int from, clb_nequip_norm kind) {
  if (b->r->status || kind == CLB_NEQUIP_NO_NORM) return from;
  const clb_irreps irreps = b->r->out->array[from]->irreps;
  const bool centred = kind == CLB_NEQUIP_CENTRED;
  const int out = array(b, CLB_PER_LOCAL, &irreps);
  const int64_t at = take_norm(b, what, &irreps, centred);
  clb_layer *y = LAYER(b, norm, what, from, out);
  clb_norm *p = y ? y->parameters : NULL;
  int most = 0;
  if (!y) return out;
  *p = (clb_norm){.variant = centred ? CLB_RMS_TERMS : CLB_RMS_NEQUIX,
                  .centred = centred,
                  .epsilon = b->q->norm_epsilon,
                  .weights = at};
  for (int t = 0; t < irreps.n; t++) most = irreps.term[t].l > most ? irreps.term[t].l : most;
  for (int t = 0; t < irreps.n && centred; t++) {
    const clb_term *x = &irreps.term[t];
    p->factor[t] = 1 / ((double)x->mul * (2 * x->l + 1) * (most + 1));
  }
  return out;
}

/* [8] to -1: there must be none. */
static void read_self(const block *b, int from, int to) {
  static const char *const words[] = {"none", "linear", "species", "embedding"};
  char own[CLB_MODEL_KEY];
  const char *of_all = "self_connection", *key = clb_safetensors_says(b->r->file, of_all)
                                                     ? of_all
                                                     : clb_arch_key(own, b->n, of_all);
  const int i = clb_model_word(b->r, key, words, to < 0 ? 1 : 4);
  if (i) clb_arch_linear(b->r, b->n, of_all, from, to, (clb_arch_matrices)(i - 1));
}

/* [10] Adds an array, by maps of unit matrices between irreps of both, or by a map of its own. */
static void read_residual(const block *b, const char *what, clb_nequip_residual kind, int from,
                          int to) {
  if (b->r->status) return;
  if (kind == CLB_NEQUIP_LINEAR) {
    clb_arch_linear(b->r, b->n, what, from, to, CLB_ARCH_ONE);
    return;
  }
  const clb_irreps *in = &b->r->out->array[from]->irreps, *out = &b->r->out->array[to]->irreps;
  clb_layer *unit = LAYER(b, linear, what, from, to);
  for (int t = 0; t < out->n && unit && !b->r->status; t++) {
    const int64_t mul = out->term[t].mul;
    const int i = clb_find_irrep(in, &out->term[t]);
    if (i < 0) continue;
    if (in->term[i].mul != mul) {
      clb_model_refuse(b->r, "layers.%d: what is added has %d channels of an irrep, not %d", b->n,
                       (int)in->term[i].mul, (int)mul);
      return;
    }
    const int64_t at = clb_model_reserve(b->r, mul * mul);
    for (int64_t c = 0; c < mul && !b->r->status; c++) b->r->out->weights[at + c * (mul + 1)] = 1;
    if (!b->r->status) b->r->status = clb_linear_add(b->r->out, unit->parameters, i, t, at);
  }
}

/* [10] x + feed_forward_2(gate(feed_forward_1(norm(x)))) */
static int read_feed_forward(const block *b, int x) {
  const clb_nequip_nonlinear *f = &b->irreps.feed_forward;
  if (!b->irreps.feeds) return x;
  const int normed = read_norm(b, "norm_2", x, b->q->feed_forward_norm),
            out = array(b, CLB_PER_LOCAL, &b->irreps.out);
  clb_arch_terms parts[CLB_NEQUIP_PARTS], to;
  int n_parts = 1;
  if (f->bilinear) {
    n_parts = clb_nequip_bilinear(b->r, b->n, f, "feed_forward_1", normed, parts);
  } else {
    const int linear = array(b, CLB_PER_LOCAL, &f->linear);
    clb_arch_linear(b->r, b->n, "feed_forward_1", normed, linear, CLB_ARCH_ONE);
    parts[0] = clb_arch_all(b->r, clb_nequip_gate(b->r, b->n, f, linear));
  }
  read_residual(b, "feed_forward_residual", b->q->feed_forward_residual, x, out);
  to = clb_arch_all(b->r, out);
  clb_arch_maps(b->r, b->n, "feed_forward_2", parts, n_parts, &to, 1, CLB_ARCH_ONE);
  return out;
}

static int read_messages(const block *b, int x) {
  const clb_nequip *q = b->q;
  const clb_arch_product *m = &b->irreps.messages;
  const int weights =
      clb_arch_radial(b->r, b->n, "radial", &q->radial, q->basis, m->n_weights); /* [4] */
  return clb_arch_convolution(b->r, b->n, m, q->neighbours != 0 ? 1 / sqrt(q->neighbours) : 1, x,
                              q->harmonics, weights); /* [6, 7] */
}

/* The self connection comes before linear_1, so that backward the gradient by linear_1 is the first
   term of the sum. */
static int read_gated(const block *b, int normed) {
  const clb_nequip_nonlinear *f = &b->irreps.nonlinear;
  const int linear = array(b, CLB_PER_LOCAL, &f->linear);
  clb_arch_bias(b->r, b->n, "linear_2_bias", linear, true);
  read_self(b, b->q->features, linear);
  const int message = read_messages(b, read_sent(b, normed));
  clb_arch_linear(b->r, b->n, "linear_2", message, linear, CLB_ARCH_ONE); /* [8] */
  const bool after = b->q->norm == CLB_NEQUIP_RMS;
  return clb_nequip_gate(b->r, b->n, f, after ? read_norm(b, "norm", linear, b->q->norm) : linear);
}

static void read_layers(const block *b, clb_nequip *q) {
  const bool before = q->norm == CLB_NEQUIP_CENTRED;
  const int x = q->features, normed = before ? read_norm(b, "norm_1", x, q->norm) : x;
  clb_arch_terms parts[CLB_NEQUIP_PARTS], to;
  int n_parts = 1;
  if (b->irreps.nonlinear.bilinear) {
    read_self(b, x, -1);
    const int message = read_messages(b, read_sent(b, normed));
    n_parts = clb_nequip_bilinear(b->r, b->n, &b->irreps.nonlinear, "linear_2", message, parts);
  } else {
    parts[0] = clb_arch_all(b->r, read_gated(b, normed));
  }
  q->features = parts[0].array;
  if (q->residual) {
    q->features = array(b, CLB_PER_LOCAL, &b->irreps.out);
    read_residual(b, "residual", q->residual, x, q->features);
    to = clb_arch_all(b->r, q->features);
    clb_arch_maps(b->r, b->n, "linear_3", parts, n_parts, &to, 1, CLB_ARCH_ONE); /* [10] */
  }
  q->features = read_feed_forward(b, q->features);
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
