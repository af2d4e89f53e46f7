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

/* Copies weights times a factor. */
static void copy_times(reader *r, int64_t to, int64_t from, int64_t n, double factor) {
  clb_parameters *p = &r->out->parameter;
  const int64_t first = p->n_pieces;
  clb_model_copy(r, to, from, n);
  for (int64_t i = 0; i < n && !r->status; i++) r->out->weights[to + i] *= factor;
  for (int64_t i = first; i < p->n_pieces; i++) p->piece[i].factor *= factor;
}

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
      copy_times(b->r, to + row * mul, from + row / species * mul, mul,
                 1 / sqrt(n->weights[b->q->of_species + row % species]));
  }
}

/* [5] */
static int read_sent(const block *b) {
  const clb_irreps *in = &b->irreps.messages.in;
  const int x = array(b, CLB_PER_ATOM, in);
  clb_arch_bias(b->r, b->n, "linear_1_bias", x, true);
  clb_arch_linear(b->r, b->n, "linear_1", b->q->features, x, CLB_ARCH_ONE);
  if (!b->r->status && b->q->neighbours == 0) divide_by_species(b);
  clb_model_layer(b->r, &clb_exchange_kind, sizeof(clb_exchange), b->n, "exchange", x, x);
  return x;
}

/* [9] */
static int read_norm(const block *b, int linear) {
  const clb_irreps *irreps = &b->irreps.linear;
  const int out = array(b, CLB_PER_LOCAL, irreps);
  int64_t from[CLB_MAX_TERMS] = {0};
  for (int t = 0; t < irreps->n; t++) {
    const int64_t mul = irreps->term[t].mul;
    from[t] = clb_arch_take(b->r, b->n, "norm", &irreps->term[t], 1, &mul, 1);
  }
  int64_t at = clb_model_reserve(b->r, clb_channels(irreps, NULL));
  clb_layer *y = LAYER(b, norm, "norm", linear, out);
  if (y) *(clb_norm *)y->parameters = (clb_norm){.epsilon = b->q->norm_epsilon, .weights = at};
  for (int t = 0; t < irreps->n && y; t++) {
    const int64_t mul = irreps->term[t].mul;
    clb_model_copy(b->r, at, from[t], mul);
    at += mul;
  }
  return out;
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
  if (some[0]) p->even = clb_arch_activation(b->r, "activation_even");
  if (some[1]) p->odd = clb_arch_activation(b->r, "activation_odd");
  if (p->gates.n) p->gate = clb_arch_activation(b->r, "activation_gate");
  return out;
}

/* [8] */
static void read_self(const block *b, int from, int to) {
  static const char *const words[] = {"linear", "species", "embedding", "none"};
  char own[CLB_MODEL_KEY];
  const char *of_all = "self_connection", *key = clb_safetensors_says(b->r->file, of_all)
                                                     ? of_all
                                                     : clb_arch_key(own, b->n, of_all);
  const int i = clb_model_word(b->r, key, words, 4);
  if (i < 3) clb_arch_linear(b->r, b->n, of_all, from, to, (clb_arch_matrices)i);
}

/* [10] x + feed_forward_2(gate(feed_forward_1(x))); x itself by a map of unit matrices. */
static int read_feed_forward(const block *b, int x) {
  char key[CLB_MODEL_KEY];
  const clb_irreps *irreps = &b->irreps.out;
  if (b->r->status || !clb_safetensors_says(b->r->file, clb_arch_key(key, b->n, "feed_forward")))
    return x;
  clb_model_choice(b->r, key, "gate", NULL);
  const int linear = array(b, CLB_PER_LOCAL, &b->irreps.linear);
  clb_arch_linear(b->r, b->n, "feed_forward_1", x, linear, CLB_ARCH_ONE);
  const int gated = read_gate(b, linear), out = array(b, CLB_PER_LOCAL, irreps);
  clb_layer *unit = LAYER(b, linear, "residual", x, out);
  for (int t = 0; t < irreps->n && unit && !b->r->status; t++) {
    const int64_t mul = irreps->term[t].mul, at = clb_model_reserve(b->r, mul * mul);
    for (int64_t i = 0; i < mul && !b->r->status; i++) b->r->out->weights[at + i * (mul + 1)] = 1;
    if (!b->r->status) b->r->status = clb_linear_add(b->r->out, unit->parameters, t, t, at);
  }
  clb_arch_linear(b->r, b->n, "feed_forward_2", gated, out, CLB_ARCH_ONE);
  return out;
}

/* The self connection comes before linear_1, so that backward the gradient by linear_1 is the first
   term of the sum. */
static void read_layers(const block *b, clb_nequip *q) {
  const clb_arch_product *m = &b->irreps.messages;
  int linear = array(b, CLB_PER_LOCAL, &b->irreps.linear);
  clb_arch_bias(b->r, b->n, "linear_2_bias", linear, true);
  read_self(b, q->features, linear);
  const int x = read_sent(b),
            weights =
                clb_arch_radial(b->r, b->n, "radial", &q->radial, q->basis, m->n_weights), /* [4] */
      message =
          clb_arch_convolution(b->r, b->n, m, q->neighbours != 0 ? 1 / sqrt(q->neighbours) : 1, x,
                               q->harmonics, weights);                    /* [6, 7] */
  clb_arch_linear(b->r, b->n, "linear_2", message, linear, CLB_ARCH_ONE); /* [8] */
  if (q->rms) linear = read_norm(b, linear);
  q->features = read_feed_forward(b, read_gate(b, linear));
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
