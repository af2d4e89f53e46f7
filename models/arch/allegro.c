/* models/arch/allegro.c - Allegro's networks, whose features live on edges. Numbers in brackets are
   steps of docs/model-format.md. */
#include "models/arch/allegro_network.h"

#include <math.h>
#include <string.h>

typedef clb_model_reader reader;
enum { MAX_CHANNELS = 1 << 16 };

/* ---- two bodies ---- */

/* [2]: a row for each pair of species: the receiver's numbers, then the sender's. */
static int read_types(reader *r, int64_t width) {
  const int64_t species = r->out->n_species, half = width / 2,
                table = clb_model_reserve(r, species * species * width);
  const int64_t shape[] = {species, half};
  for (int i = 0; i < 2; i++)
    clb_arch_fill_pairs(
        r, table, width, i * half, i,
        clb_model_take(r, i ? "embedding.sender" : "embedding.receiver", 2, shape, 1), half);
  const int types = clb_arch_scalars(r, CLB_PER_EDGE, width);
  clb_arch_pair_rows(r, -1, "embedding", clb_arch_pairs(r), table, types);
  return types;
}

/* A product whose paths have no weights: of each term of x with its own of y, into its own of
   `out`, or into the only one. */
static int plain_product(reader *r, const char *what, int x, int y, const clb_irreps *as,
                         const clb_irreps *out, clb_mode mode) {
  const int z = clb_model_array(r, CLB_PER_EDGE, false, out);
  clb_layer *layer =
      clb_model_layer(r, &clb_product_kind, sizeof(clb_product_layer), -1, what, x, z);
  if (!layer) return z;
  clb_product_layer *p = layer->parameters;
  layer->in[CLB_PRODUCT_Y] = y;
  layer->gradients = 1U << CLB_PRODUCT_X | 1U << CLB_PRODUCT_Y;
  p->x = *as;
  for (int t = 0; t < as->n; t++)
    p->path[p->n_paths++] = (clb_instruction){t, t, out->n > 1 ? t : 0, mode, 0, 1};
  return z;
}

/* [1] of a spline; [2]: for each pair of species a number of each function for each scalar. */
static int read_spline(reader *r, int vectors) {
  const int64_t species = r->out->n_species,
                width = clb_model_whole(r, "n_embedding", 1, MAX_CHANNELS);
  const int n = clb_model_whole(r, "n_basis", 1, CLB_MAX_BASIS),
            span = clb_model_whole(r, "spline_span", 0, n);
  clb_irreps each = {0}, weights = {0};
  for (int k = 0; k < n && !r->status; k++) {
    each.term[each.n++] = (clb_term){.mul = 1, .parity = 1, .at = k};
    weights.term[weights.n++] =
        (clb_term){.mul = (int32_t)width, .parity = 1, .at = (int32_t)(k * width)};
  }
  each.dim = n, weights.dim = (int32_t)(n * width);
  const int functions = clb_model_array(r, CLB_PER_EDGE, false, &each),
            types = clb_arch_scalars(r, CLB_PER_EDGE, n * width);
  clb_layer *y =
      clb_model_layer(r, &clb_basis_kind, sizeof(clb_basis), -1, "basis", vectors, functions);
  if (!y) return CLB_VECTORS;
  *(clb_basis *)y->parameters =
      (clb_basis){.n = n, .r_max = r->out->r_max, .cutoff_p = 1, .width = span + 1};
  const int64_t shape[] = {species, species, n, width};
  clb_arch_pair_rows(r, -1, "embedding", clb_arch_pairs(r),
                     clb_model_take(r, "embedding.spline", 4, shape, 1), types);
  const clb_irreps sum = clb_scalars(width);
  return plain_product(r, "embedding", types, functions, &weights, &sum, CLB_UVU);
}

/* [1], [2] */
static int read_pair_scalars(reader *r) {
  const int vectors = clb_arch_vectors(r);
  if (clb_model_choice(r, "radial_basis", "bessel", "spline")) return read_spline(r, vectors);
  const clb_layer *basis = clb_arch_basis(r, vectors);
  const int64_t width = 2 * (int64_t)clb_model_whole(r, "n_embedding", 1, MAX_CHANNELS);
  if (!basis) return CLB_VECTORS;
  const double unit = r->out->r_max * r->out->r_max / (2 * acos(-1));
  const clb_allegro_scalars functions = {
      .n = 1, .array = {basis->out[CLB_BASIS_FUNCTIONS]}, .scale = 1};
  const clb_irreps irreps = clb_scalars(width);
  const int radial = clb_allegro_map(r, -1, "radial", &functions, width, unit);
  return plain_product(r, "embedding", radial, read_types(r, width), &irreps, &irreps, CLB_UUU);
}

/* [4]: for each degree a number of each channel, times the harmonics. */
static int read_features(reader *r, const clb_allegro *q, const clb_allegro_scalars *from) {
  const int array = clb_allegro_map(r, -1, "tensors", from, q->sh.n * q->channels, 1);
  const clb_irreps features = clb_allegro_channels(&q->sh, q->sh.n, q->channels);
  clb_irreps weights = features;
  weights.dim = 0;
  for (int l = 0; l < weights.n; l++) {
    weights.term[l] = (clb_term){.mul = (int32_t)q->channels, .parity = 1, .at = weights.dim};
    weights.dim += (int32_t)q->channels;
  }
  return plain_product(r, "tensors", array, q->harmonics, &weights, &features, CLB_UVU);
}

/* ---- the network ---- */

static void read_energy(reader *r, const clb_allegro *q) {
  const clb_allegro_scalars hidden = clb_allegro_hidden(r, -1, "readout", "readout", &q->scalars);
  const int edges = clb_allegro_map(r, -1, "energy", &hidden, 1, 1),
            sum = clb_allegro_sum(r, q, -1, 0, 1, edges, sqrt(0.5));
  const double scale = clb_model_number(r, "energy_scale");
  const int64_t species = r->out->n_species;
  clb_energy energy = {.scale = clb_model_reserve(r, species),
                       .shift = clb_model_take(r, "species_shift", 1, &species, scale)};
  const int64_t scales = clb_model_take(r, "species_scale", 1, &species, scale);
  for (int64_t s = 0; s < species && !r->status; s++)
    clb_arch_copy_times(r, energy.scale + s, scales + s, 1, clb_allegro_share(r, q, s));
  const int scaled = clb_arch_repelled(r, sum, &energy);
  clb_layer *y = clb_model_layer(r, &clb_energy_kind, sizeof(clb_energy), -1, "energy", scaled, -1);
  if (y) *(clb_energy *)y->parameters = energy;
}

void clb_arch_allegro(reader *r) {
  clb_allegro q = {.scalars = {.scale = 1}};
  clb_allegro_scalars pair = {.n = 1, .scale = 1};
  pair.array[0] = read_pair_scalars(r);
  q.harmonics = clb_arch_harmonics(r, CLB_VECTORS, &q.sh);
  q.n_scalars = clb_model_whole(r, "n_scalars", 1, MAX_CHANNELS);
  q.channels = clb_model_whole(r, "n_channels", 1, MAX_CHANNELS);
  q.neighbours = clb_arch_neighbours(r, &q.of_species);
  r->out->n_blocks = clb_model_whole(r, "n_layers", 1, CLB_ARCH_BLOCKS);
  const clb_allegro_scalars hidden =
      clb_allegro_hidden(r, -1, "two_body", "two_body", &pair); /* [3] */
  pair = (clb_allegro_scalars){.n = 1, .scale = 1};
  pair.array[0] = clb_allegro_map(r, -1, "pairs", &hidden, q.n_scalars, 1);
  q.features = read_features(r, &q, &pair);
  q.scalars.array[q.scalars.n++] =
      clb_allegro_map(r, -1, "scalars", &pair, q.n_scalars, 1); /* [5] */
  q.weights = clb_allegro_map(r, 0, "environment", &pair, q.sh.n * q.channels, 1);
  for (int n = 0; n < r->out->n_blocks && !r->status; n++) clb_allegro_layer(r, &q, n);
  read_energy(r, &q);
}
