/* models/arch/mace_block.c - the layers of a block of MACE's networks: interaction, product basis,
   readout. Numbers in brackets are steps of docs/model-format.md. */
#include "models/arch/mace_network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef clb_model_reader reader;
enum { MAX_CHANNELS = 1 << 16, MAX_READOUT = 3 /* matrices */ };

typedef struct {
  reader *r;
  const clb_mace *q;
  int n; /* its number */
  clb_arch_product messages;
  clb_irreps in, linear, out;
} block;

#define LAYER(b, kind, what, in, out)                                                              \
  clb_model_layer((b)->r, &clb_##kind##_kind, sizeof(clb_##kind), (b)->n, what, in, out)

static int array(const block *b, const clb_irreps *irreps) {
  return clb_model_array(b->r, CLB_PER_LOCAL, false, irreps);
}

/* ---- irreps ---- */

/* Degrees from 0 on, K channels of each, of natural parity. */
static void read_uniform(const block *b, const char *what, clb_irreps *irreps) {
  char key[CLB_MODEL_KEY];
  clb_model_irreps(b->r, clb_arch_key(key, b->n, what), irreps);
  bool good = irreps->n >= 1 && irreps->n <= CLB_MAX_ELL + 1;
  for (int l = 0; l < irreps->n && good; l++)
    good = irreps->term[l].l == l && irreps->term[l].parity == (l % 2 ? -1 : 1) &&
           irreps->term[l].mul == irreps->term[0].mul;
  if (!good)
    clb_model_refuse(b->r,
                     "'%s' must be degrees 0, 1, ... of parity (-1)^l, at most %d, with as "
                     "many channels each",
                     key, CLB_MAX_ELL);
  if (!b->r->status && irreps->term[0].mul > MAX_CHANNELS)
    clb_model_refuse(b->r, "'%s' has %d channels; they are at most %d", key,
                     (int)irreps->term[0].mul, MAX_CHANNELS);
}

static void read_irreps(block *b) {
  char key[CLB_MODEL_KEY];
  const clb_irreps *in = &b->in;
  read_uniform(b, "irreps_in", &b->in);
  b->messages.in = b->in;
  if (clb_safetensors_says(b->r->file, clb_arch_key(key, b->n, "irreps_edge")))
    read_uniform(b, "irreps_edge", &b->messages.in);
  read_uniform(b, "irreps_linear", &b->linear);
  read_uniform(b, "irreps_out", &b->out);
  clb_model_irreps(b->r, clb_arch_key(key, b->n, "irreps_message"), &b->messages.out);
  if (b->r->status) return;
  if (memcmp(in, &b->r->out->array[b->q->features]->irreps, sizeof *in) != 0)
    clb_model_refuse(b->r, "layers.%d.irreps_in is not layers.%d.irreps_out", b->n, b->n - 1);
  if (b->linear.n != b->r->out->l_max + 1)
    clb_model_refuse(b->r, "layers.%d.irreps_linear must have degrees 0 to l_max, %d", b->n,
                     b->r->out->l_max);
  if (b->out.term[0].mul != in->term[0].mul || b->linear.term[0].mul != in->term[0].mul)
    clb_model_refuse(b->r,
                     "layers.%d: irreps_in, irreps_linear and irreps_out must have as many "
                     "channels, not %d, %d and %d",
                     b->n, (int)in->term[0].mul, (int)b->linear.term[0].mul,
                     (int)b->out.term[0].mul);
  b->messages.sh = &b->q->sh;
  clb_arch_paths(b->r, b->n, &b->messages);
}

/* ---- the interaction ---- */

static int scaled(const block *b, const char *what, int rows, int numbers, clb_row_factor factor) {
  if (b->r->status) return rows;
  const clb_array *a = b->r->out->array[rows];
  const clb_irreps irreps = a->irreps;
  const int out = clb_model_array(b->r, a->per, false, &irreps);
  clb_layer *y = LAYER(b, scale, what, rows, out);
  if (!y) return rows;
  ((clb_scale *)y->parameters)->factor = factor;
  y->in[CLB_SCALE_NUMBERS] = numbers;
  y->gradients = 1U << CLB_SCALE_ROWS | 1U << CLB_SCALE_NUMBERS;
  return out;
}

/* [2] */
static int read_messages(const block *b) {
  const clb_mace *q = b->q;
  const int x = clb_model_array(b->r, CLB_PER_ATOM, false, &b->messages.in);
  clb_arch_linear(b->r, b->n, "linear_1", q->features, x, CLB_ARCH_ONE);
  clb_model_layer(b->r, &clb_exchange_kind, sizeof(clb_exchange), b->n, "exchange", x, x);
  int weights = clb_arch_radial(b->r, b->n, "radial", &q->radial, q->basis, b->messages.n_weights);
  if (q->cutoff >= 0) weights = scaled(b, "cutoff", weights, q->cutoff, CLB_ROW_TIMES);
  return clb_arch_convolution(b->r, b->n, &b->messages, 1 / q->neighbours, x, q->harmonics,
                              weights);
}

/* Of edges, with weights at an offset; returns its array. */
static int density_of(const block *b, int edges, int64_t weights) {
  const int density = clb_arch_scalars(b->r, CLB_PER_LOCAL, 1);
  clb_layer *y = LAYER(b, density, "density", edges, density);
  if (!y) return density;
  ((clb_density *)y->parameters)->weights = weights;
  y->in[CLB_DENSITY_CUTOFF] = b->q->cutoff;
  y->gradients = 1U << CLB_DENSITY_FUNCTIONS | 1U << CLB_DENSITY_CUTOFF;
  return density;
}

/* A matrix of one number, [1][1]. */
static void read_number(const block *b, const char *what, int from, int to) {
  char key[CLB_MODEL_KEY];
  const int64_t one = 1;
  clb_layer *y = LAYER(b, linear, what, from, to);
  const int64_t at = clb_model_take(b->r, clb_arch_key(key, b->n, what), 1, &one, 1);
  if (y && !b->r->status) b->r->status = clb_linear_add(b->r->out, y->parameters, 0, 0, at);
}

/* alpha + beta rho, rho the density of what a network of edges gives. */
static int read_divisor(const block *b) {
  char key[CLB_MODEL_KEY];
  clb_arch_radial_desc d = b->q->radial;
  d.n = clb_model_whole(b->r, clb_arch_key(key, b->n, "density_layers"), 1, CLB_RADIAL_MATRICES);
  const int64_t one = clb_model_reserve(b->r, 1);
  if (!b->r->status) b->r->out->weights[one] = 1;
  const int edges = clb_arch_radial(b->r, b->n, "density", &d, b->q->basis, 1),
            density = density_of(b, edges, one), to = clb_arch_scalars(b->r, CLB_PER_LOCAL, 1);
  clb_arch_bias(b->r, b->n, "density_alpha", to, false);
  read_number(b, "density_beta", density, to);
  return to;
}

/* Scalars, as many gates, and what is gated: the input of a gate to b->linear. */
static clb_irreps gate_input(const block *b) {
  clb_irreps in = b->linear;
  int64_t mul[CLB_MAX_TERMS];
  for (int l = 0; l < in.n; l++) mul[l] = in.term[l].mul * (l ? 1 : in.n);
  clb_irreps_shrink(&in, mul);
  return in;
}

static int read_gate(const block *b, int from) {
  const int out = array(b, &b->linear);
  const int64_t mul = b->linear.term[0].mul;
  clb_layer *y = LAYER(b, gate, "gate", from, out);
  if (!y) return out;
  clb_gate *p = y->parameters;
  int64_t gated[CLB_MAX_TERMS] = {0};
  for (int l = 1; l < b->linear.n; l++) gated[l] = mul;
  *p = (clb_gate){.scalars = clb_scalars(mul),
                  .gates = clb_scalars(mul * (b->linear.n - 1)),
                  .gated = b->linear,
                  .even = b->q->scalar,
                  .gate = b->q->gate};
  if (b->linear.n == 1) p->gates = (clb_irreps){0};
  clb_irreps_shrink(&p->gated, gated);
  return out;
}

/* [3] of an interaction with a gate: messages over a density, and a residual. */
static int read_gated(const block *b, int messages) {
  const clb_irreps in = gate_input(b);
  const int x = array(b, &b->messages.in), m = array(b, &in), mixed = array(b, &b->linear);
  clb_arch_linear(b->r, b->n, "linear_1", b->q->features, x, CLB_ARCH_ONE);
  clb_arch_linear(b->r, b->n, "linear_2", messages, m, CLB_ARCH_ONE);
  const int sum = scaled(b, "normalization", m, read_divisor(b), CLB_ROW_OVER);
  clb_arch_linear(b->r, b->n, "linear_residual", x, sum, CLB_ARCH_ONE);
  clb_arch_linear(b->r, b->n, "linear_3", read_gate(b, sum), mixed, CLB_ARCH_ONE);
  return mixed;
}

/* [3] */
static int read_density(const block *b, int m) {
  char key[CLB_MODEL_KEY];
  if (!clb_model_choice(b->r, clb_arch_key(key, b->n, "normalization"), "none", "density"))
    return m;
  const int64_t n = b->r->out->array[b->q->basis]->irreps.dim,
                weights = clb_model_take(b->r, clb_arch_key(key, b->n, "density"), 1, &n,
                                         1 / sqrt((double)n));
  return scaled(b, "normalization", m, density_of(b, b->q->basis, weights), CLB_ROW_OVER_MORE);
}

/* by_species: [4] */
static int read_mixed(const block *b, int messages, bool by_species) {
  const int linear = array(b, &b->linear);
  clb_arch_linear(b->r, b->n, "linear_2", messages, linear, CLB_ARCH_ONE);
  const int m = read_density(b, linear);
  if (!by_species) return m;
  const int mixed = array(b, &b->linear);
  clb_arch_linear(b->r, b->n, "linear_3", m, mixed, CLB_ARCH_SPECIES);
  return mixed;
}

/* ---- the product basis, and the readout ---- */

/* [5] */
static int read_product(const block *b, int m) {
  char key[CLB_MODEL_KEY];
  const int out = array(b, &b->out);
  clb_layer *y = LAYER(b, product_basis, "product", m, out);
  if (!y) return out;
  clb_product_basis *p = y->parameters;
  p->correlation =
      clb_model_whole(b->r, clb_arch_key(key, b->n, "correlation"), 1, CLB_MAX_CORRELATION);
  const int64_t paths = clb_product_basis_paths(p, &b->linear, &b->out);
  p->weights =
      clb_model_take(b->r, clb_arch_key(key, b->n, "product"), 3,
                     (const int64_t[]){b->r->out->n_species, paths, b->out.term[0].mul}, 1);
  return out;
}

/* A matrix of the readout, with a bias if there is one: from the scalars of an array to another
   array. */
static void read_matrix(const block *b, int k, int64_t rows, int64_t columns, int from, int to) {
  char what[16], key[CLB_MODEL_KEY];
  snprintf(what, sizeof what, "readout.%d.bias", k);
  if (k) clb_arch_bias(b->r, b->n, what, to, true);
  snprintf(what, sizeof what, "readout.%d", k);
  clb_layer *y = LAYER(b, linear, what, from, to);
  const int64_t shape[] = {rows, columns};
  if (!y) return;
  const int64_t at =
      clb_model_take(b->r, clb_arch_key(key, b->n, what), 2, shape, 1 / sqrt((double)rows));
  if (!b->r->status) b->r->status = clb_linear_add(b->r->out, y->parameters, 0, 0, at);
}

/* Columns of a matrix that is not the last. */
static int64_t width_of(const block *b, int k) {
  char what[16], key[CLB_MODEL_KEY];
  snprintf(what, sizeof what, "readout.%d", k);
  return clb_model_columns(b->r, clb_arch_key(key, b->n, what));
}

/* [7] */
static void read_readout(const block *b, int features) {
  char key[CLB_MODEL_KEY];
  const bool last = b->n == b->r->out->n_blocks - 1;
  int64_t rows = b->out.term[0].mul;
  const int matrices =
      clb_model_whole(b->r, clb_arch_key(key, b->n, "readout_layers"), last, MAX_READOUT);
  for (int k = 0, from = features; k < matrices && !b->r->status; k++) {
    const int64_t columns = k == matrices - 1 ? 1 : width_of(b, k);
    if (b->r->status) return;
    const clb_irreps hidden = clb_scalars(columns);
    const int to = k == matrices - 1 ? b->q->energies : array(b, &hidden);
    read_matrix(b, k, rows, columns, from, to);
    if (k == matrices - 1) return;
    clb_layer *y = LAYER(b, gate, "readout_activation", to, from = array(b, &hidden));
    if (y) *(clb_gate *)y->parameters = (clb_gate){.scalars = hidden, .even = b->q->readout};
    rows = columns;
  }
}

/* ---- the block ---- */

static void read_layers(const block *b, clb_mace *q) {
  char key[CLB_MODEL_KEY];
  static const char *const connections[] = {"none", "species", "linear"};
  const int connection =
                clb_model_word(b->r, clb_arch_key(key, b->n, "self_connection"), connections, 3),
            out = array(b, &b->out);
  if (connection)
    clb_arch_linear(b->r, b->n, "self_connection", q->features, out,
                    connection == 1 ? CLB_ARCH_SPECIES : CLB_ARCH_ONE);
  const int messages = read_messages(b),
            m = q->gated ? read_gated(b, messages) : read_mixed(b, messages, !connection);
  clb_arch_linear(b->r, b->n, "linear_4", read_product(b, m), out, CLB_ARCH_ONE); /* [6] */
  q->features = out;
  read_readout(b, out);
}

void clb_mace_block(reader *r, clb_mace *q, int n) {
  block *b = calloc(1, sizeof *b);
  if (!b) clb_model_no_memory(r);
  if (b) {
    *b = (block){.r = r, .q = q, .n = n};
    read_irreps(b);
  }
  if (!r->status) read_layers(b, q);
  free(b);
}
