/* models/arch/nequip.c - networks like NequIP's: NequIP, Nequix and SevenNet differ in what their
   metadata choose. */
#include <math.h>
#include <stdio.h>

#include "models/arch/nequip.h"

typedef clb_model_reader reader;
enum { KEY_BYTES = CLB_MODEL_KEY, MAX_BLOCKS = 64 };
static const double largest_frequency = 1e6;

/* ---- edges ---- */

static void read_harmonics(reader *r, clb_nequip *q) {
  clb_irreps *sh = &q->sh;
  r->out->l_max = clb_model_whole(r, "l_max", 0, CLB_MAX_L);
  clb_model_irreps(r, "irreps_sh", sh);
  const bool even = sh->n > 1 && sh->term[1].parity > 0;
  bool good = sh->n == r->out->l_max + 1;
  for (int l = 0; l < sh->n && good; l++)
    good = sh->term[l].mul == 1 && sh->term[l].l == l &&
           sh->term[l].parity == (l % 2 && !even ? -1 : 1);
  if (!good)
    clb_model_refuse(r, "'irreps_sh' must be degrees 0 to l_max, once each, of parity (-1)^l, or "
                        "all even");
  q->harmonics = clb_model_array(r, CLB_PER_EDGE, false, sh);
  clb_layer *y = clb_model_layer(r, &clb_edges_kind, sizeof(clb_edges), -1, "harmonics",
                                 CLB_VECTORS, q->harmonics);
  if (y && clb_safetensors_says(r->file, "harmonics_of"))
    ((clb_edges *)y->parameters)->solid =
        clb_model_choice(r, "harmonics_of", "directions", "vectors");
}

static void read_cutoff(reader *r, clb_basis *p) {
  if (clb_model_choice(r, "cutoff", "polynomial", "xplor")) {
    p->cutoff_on = clb_model_number(r, "cutoff_on");
    if (!r->status && !(p->cutoff_on >= 0 && p->cutoff_on < p->r_max))
      clb_model_refuse(r, "'cutoff_on' is %g; it must be 0 or more, below r_max, %g", p->cutoff_on,
                       p->r_max);
  } else {
    p->cutoff_p = clb_model_whole(r, "cutoff_p", 2, 64);
  }
}

static void check_frequencies(reader *r, const clb_basis *p) {
  for (int k = 0; k < p->n && !r->status; k++) {
    const double w = r->out->weights[p->frequencies + k];
    if (w == 0 || !(fabs(w) <= largest_frequency))
      clb_model_refuse(
          r,
          "number %d of tensor 'bessel_frequencies' is %g; frequencies are not 0, and at most %g",
          k, w, largest_frequency);
  }
}

static void read_basis(reader *r, clb_nequip *q) {
  clb_model_choice(r, "radial_basis", "bessel", NULL);
  const int n = clb_model_whole(r, "n_basis", 1, CLB_MAX_BASIS);
  const int64_t shape = n;
  const clb_irreps irreps = clb_scalars(n);
  q->basis = clb_model_array(r, CLB_PER_EDGE, false, &irreps);
  clb_layer *y =
      clb_model_layer(r, &clb_basis_kind, sizeof(clb_basis), -1, "basis", CLB_VECTORS, q->basis);
  if (!y) return;
  clb_basis *p = y->parameters;
  p->n = n;
  p->r_max = r->out->r_max;
  read_cutoff(r, p);
  p->frequencies = clb_model_take(r, "bessel_frequencies", 1, &shape, 1);
  check_frequencies(r, p);
}

/* ---- the first features ---- */

static void read_embedding(reader *r, clb_nequip *q) {
  clb_irreps in = {0};
  clb_model_irreps(r, "layers.0.irreps_in", &in);
  const bool one_hot = clb_model_choice(r, "embedding", "linear", "one_hot");
  const int64_t n = in.dim, species = r->out->n_species;
  if (!r->status &&
      (in.n != 1 || in.term[0].l || in.term[0].parity < 0 || (one_hot && n != species)))
    clb_model_refuse(r, "layers.0.irreps_in must be scalars, with 'one_hot' one of each species");
  const int64_t table = one_hot ? clb_model_reserve(r, species * species)
                                : clb_model_take(r, "embedding", 2, (const int64_t[]){species, n},
                                                 1 / sqrt((double)species));
  for (int64_t s = 0; s < species && one_hot && !r->status; s++)
    r->out->weights[table + s * species + s] = 1;
  q->features = clb_model_array(r, CLB_PER_LOCAL, false, &in);
  clb_layer *y = clb_model_layer(r, &clb_embedding_kind, sizeof(clb_embedding), -1, "embedding", -1,
                                 q->features);
  if (y) *(clb_embedding *)y->parameters = (clb_embedding){table};
}

/* ---- the readout ---- */

/* All its matrices multiplied into one column: [channels]. */
static int64_t read_matrices(reader *r, int64_t channels) {
  const int matrices = clb_model_whole(r, "readout_layers", 1, CLB_RADIAL_MATRICES);
  int64_t width[CLB_RADIAL_MATRICES + 1] = {channels}, at[CLB_RADIAL_MATRICES] = {0};
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

static void read_energy(reader *r, clb_nequip *q) {
  static const clb_term even = {.l = 0, .parity = 1};
  const clb_irreps one = clb_scalars(1);
  if (r->status) return;
  const clb_irreps *in = &r->out->array[q->features]->irreps;
  int64_t column = read_matrices(r, clb_channels(in, &even));
  const int scalar = clb_model_array(r, CLB_PER_LOCAL, true, &one);
  clb_layer *readout =
      clb_model_layer(r, &clb_linear_kind, sizeof(clb_linear), -1, "readout", q->features, scalar);
  for (int t = 0; t < in->n && readout && !r->status; t++) {
    if (!clb_same_irrep(&in->term[t], &even)) continue;
    r->status = clb_linear_add(r->out, readout->parameters, t, 0, column);
    column += in->term[t].mul;
  }
  clb_layer *sum =
      clb_model_layer(r, &clb_energy_kind, sizeof(clb_energy), -1, "energy", scalar, -1);
  if (sum) *(clb_energy *)sum->parameters = q->energy;
}

/* Steps that depend on one another forward are in this order; backward, gradients are summed in the
   reverse order. */
void clb_arch_nequip(reader *r) {
  clb_nequip q = {0};
  const double scale = clb_model_number(r, "energy_scale");
  const int64_t species = r->out->n_species;
  q.energy.scale = clb_model_take(r, "species_scale", 1, &species, scale);
  q.energy.shift = clb_model_take(r, "species_shift", 1, &species, scale);
  read_basis(r, &q);
  read_harmonics(r, &q);
  q.n_radial = clb_model_whole(r, "radial_layers", 1, CLB_RADIAL_MATRICES);
  clb_model_choice(r, "radial_activation", "silu", NULL);
  q.radial_scale = clb_model_number(r, "radial_activation_scale");
  q.fan_in = clb_model_choice(r, "radial_normalization", "none", "fan_in");
  q.neighbours = clb_model_number(r, "avg_num_neighbors");
  q.species_self = clb_model_choice(r, "self_connection", "linear", "species");
  q.rms = clb_model_choice(r, "norm", "none", "rms");
  q.norm_epsilon = q.rms ? clb_model_number(r, "norm_epsilon") : 0;
  if (!r->status && !(q.neighbours > 0))
    clb_model_refuse(r, "'avg_num_neighbors' is %g; it must be positive", q.neighbours);
  if (!r->status && q.rms && !(q.norm_epsilon > 0))
    clb_model_refuse(r, "'norm_epsilon' is %g; it must be positive", q.norm_epsilon);
  r->out->n_blocks = clb_model_whole(r, "n_layers", 1, MAX_BLOCKS);
  read_embedding(r, &q);
  for (int n = 0; n < r->out->n_blocks && !r->status; n++) clb_nequip_block(r, &q, n);
  read_energy(r, &q);
}
