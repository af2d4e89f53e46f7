/* models/arch/nequip.c - networks like NequIP's: NequIP, Nequix and SevenNet differ in what their
   metadata choose. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/arch/nequip.h"

typedef clb_model_reader reader;

/* ---- the first features ---- */

static void read_embedding(reader *r, clb_nequip *q) {
  clb_irreps in = {0};
  clb_model_irreps(r, "layers.0.irreps_in", &in);
  q->features = clb_arch_embedding(r, &in, clb_model_choice(r, "embedding", "linear", "one_hot"));
}

/* ---- the readout ---- */

enum { MATRICES = CLB_RADIAL_MATRICES };
static const clb_term even = {.l = 0, .parity = 1};

/* Matrices at[n], of width[k] rows and width[k + 1] columns. */
static int take_matrices(reader *r, int64_t channels, int64_t width[MATRICES + 1],
                         int64_t at[MATRICES]) {
  const int matrices = clb_model_whole(r, "readout_layers", 1, MATRICES);
  width[0] = channels;
  for (int k = 0; k < matrices && !r->status; k++) {
    char key[CLB_MODEL_KEY];
    snprintf(key, sizeof key, "readout.%d", k);
    const clb_tensor *t = clb_safetensors_find(r->file, key);
    width[k + 1] = k == matrices - 1 ? 1 : t && t->rank == 2 ? t->shape[1] : 0;
    if (width[k] < 1 || width[k] > CLB_MODEL_WIDTH)
      clb_model_refuse(r, "'%s' must have 1 to %d rows", key, CLB_MODEL_WIDTH);
    at[k] = clb_model_take(r, key, 2, (const int64_t[]){width[k], width[k + 1]},
                           r->status ? 1 : 1 / sqrt((double)width[k]));
  }
  return matrices;
}

/* All of them multiplied into one column: [channels]. */
static int64_t multiply(reader *r, int matrices, const int64_t width[MATRICES + 1],
                        const int64_t at[MATRICES]) {
  int64_t column = r->status ? 0 : at[matrices - 1];
  for (int k = matrices - 2; k >= 0 && !r->status; k--) {
    const int64_t product = clb_model_reserve(r, width[k]);
    double *w = r->out->weights;
    for (int64_t i = 0; i < width[k] && !r->status; i++)
      for (int64_t j = 0; j < width[k + 1]; j++)
        w[product + i] += w[at[k] + i * width[k + 1] + j] * w[column + j];
    column = product;
  }
  return column;
}

/* A matrix of the readout, from even scalars. */
static void add_matrix(reader *r, int from, int to, int64_t matrix) {
  const clb_irreps *in = &r->out->array[from]->irreps;
  clb_layer *y = clb_model_layer(r, &clb_linear_kind, sizeof(clb_linear), -1, "readout", from, to);
  for (int t = 0; t < in->n && y && !r->status; t++) {
    if (!clb_same_irrep(&in->term[t], &even)) continue;
    r->status = clb_linear_add(r->out, y->parameters, t, 0, matrix);
    matrix += in->term[t].mul * r->out->array[to]->irreps.term[0].mul;
  }
}

static int add_activation(reader *r, clb_scaled_activation f, int from) {
  const clb_irreps irreps = r->out->array[from]->irreps;
  const int to = clb_model_array(r, CLB_PER_LOCAL, false, &irreps);
  clb_layer *y = clb_model_layer(r, &clb_gate_kind, sizeof(clb_gate), -1, "readout", from, to);
  if (y) *(clb_gate *)y->parameters = (clb_gate){.scalars = irreps, .even = f};
  return to;
}

/* Matrices with an activation between them; without, and where nothing learns, one matrix. */
static void read_energy(reader *r, clb_nequip *q) {
  const clb_irreps one = clb_scalars(1);
  if (r->status) return;
  const bool bends = clb_safetensors_says(r->file, "readout_activation");
  const clb_scaled_activation f = bends ? clb_arch_activation(r, "readout_activation")
                                        : (clb_scaled_activation){CLB_IDENTITY, 1};
  int64_t width[MATRICES + 1], at[MATRICES] = {0};
  int n = take_matrices(r, clb_channels(&r->out->array[q->features]->irreps, &even), width, at);
  if (!bends && !r->out->trains) {
    at[0] = multiply(r, n, width, at);
    n = 1;
  }
  int from = q->features;
  for (int k = 0; k < n && !r->status; k++) {
    const int to = k == n - 1 ? clb_model_array(r, CLB_PER_LOCAL, true, &one)
                              : clb_arch_scalars(r, CLB_PER_LOCAL, width[k + 1]);
    if (!r->status) add_matrix(r, from, to, at[k]);
    from = bends && k < n - 1 && !r->status ? add_activation(r, f, to) : to;
  }
  from = clb_arch_repelled(r, from, &q->energy);
  clb_layer *sum = clb_model_layer(r, &clb_energy_kind, sizeof(clb_energy), -1, "energy", from, -1);
  if (sum) *(clb_energy *)sum->parameters = q->energy;
}

/* The number of the value of `key` among words; if the file has none, `without`. */
static int word(reader *r, const char *key, const char *const *words, int n, int without) {
  return !r->status && clb_safetensors_says(r->file, key) ? clb_model_word(r, key, words, n)
                                                          : without;
}

static void read_kinds(reader *r, clb_nequip *q) {
  static const char *const norms[] = {"none", "rms", "centred"},
                           *const residuals[] = {"none", "identity", "linear"},
                           *const gates[] = {"gate", "bilinear"};
  q->norm = (clb_nequip_norm)clb_model_word(r, "norm", norms, 3);
  q->feed_forward_norm =
      word(r, "feed_forward_norm", (const char *const[]){"none", "centred"}, 2, 0)
          ? CLB_NEQUIP_CENTRED
          : CLB_NEQUIP_NO_NORM;
  const bool some = q->norm || q->feed_forward_norm;
  q->norm_epsilon = some ? clb_model_number(r, "norm_epsilon") : 0;
  if (!r->status && some && !(q->norm_epsilon > 0))
    clb_model_refuse(r, "'norm_epsilon' is %g; it must be positive", q->norm_epsilon);
  q->residual = (clb_nequip_residual)word(r, "residual", residuals, 3, 0);
  q->feed_forward_residual =
      (clb_nequip_residual)(1 + word(r, "feed_forward_residual", residuals + 1, 2, 0));
  q->bilinear = word(r, "nonlinear", gates, 2, 0);
  if (q->bilinear && (!q->residual || q->norm == CLB_NEQUIP_RMS))
    clb_model_refuse(
        r, "'nonlinear' is \"bilinear\", which needs a 'residual', and no 'norm' \"rms\"");
}

/* Steps that depend on one another forward are in this order; backward, gradients are summed in the
   reverse order. */
void clb_arch_nequip(reader *r) {
  clb_nequip q = {0};
  const double scale = clb_model_number(r, "energy_scale");
  const int64_t species = r->out->n_species;
  q.energy.scale = clb_model_take(r, "species_scale", 1, &species, scale);
  q.energy.shift = clb_model_take(r, "species_shift", 1, &species, scale);
  const int vectors = clb_arch_vectors(r);
  const clb_layer *basis = clb_arch_basis(r, vectors);
  q.basis = basis ? basis->out[0] : -1;
  q.harmonics = clb_arch_harmonics(r, vectors, &q.sh);
  q.radial = clb_arch_radial_read(r);
  q.neighbours = clb_arch_neighbours(r, &q.of_species);
  read_kinds(r, &q);
  r->out->n_blocks = clb_model_whole(r, "n_layers", 1, CLB_ARCH_BLOCKS);
  read_embedding(r, &q);
  for (int n = 0; n < r->out->n_blocks && !r->status; n++) clb_nequip_block(r, &q, n);
  read_energy(r, &q);
}
