/* models/arch/mace.c - MACE's networks. Numbers in brackets are steps of docs/model-format.md. */
#include "models/arch/mace_network.h"

#include <math.h>
#include <stdio.h>

typedef clb_model_reader reader;

/* ---- [1] ---- */

/* The exponents of the transform's powers. */
static double exponent(reader *r, const char *key) {
  enum { MOST = 64 };
  const double x = clb_model_number(r, key);
  if (!r->status && !(fabs(x) <= MOST))
    clb_model_refuse(r, "'%s' is %g; it must be from -%d to %d", key, x, MOST, MOST);
  return x;
}

static void read_transform(reader *r, clb_basis *p) {
  p->transformed = clb_model_choice(r, "distance_transform", "none", "agnesi");
  if (!p->transformed) return;
  p->agnesi.a = clb_model_number(r, "agnesi_a");
  if (!r->status && !(p->agnesi.a > 0))
    clb_model_refuse(r, "'agnesi_a' is %g; it must be positive", p->agnesi.a);
  p->agnesi.p = exponent(r, "agnesi_p");
  p->agnesi.q = exponent(r, "agnesi_q");
  p->radii = clb_arch_positive(r, "agnesi_radii");
}

static void read_edges(reader *r, clb_mace *q) {
  clb_layer *basis = clb_arch_basis(r, CLB_VECTORS);
  if (!basis) return;
  read_transform(r, basis->parameters);
  q->basis = basis->out[CLB_BASIS_FUNCTIONS];
  q->cutoff = -1;
  if (clb_model_choice(r, "cutoff_of", "basis", "weights"))
    q->cutoff = basis->out[CLB_BASIS_CUTOFF] = clb_arch_scalars(r, CLB_PER_EDGE, 1);
  q->harmonics = clb_arch_harmonics(r, CLB_VECTORS, &q->sh);
  if (!r->status && r->out->l_max > CLB_MAX_ELL)
    clb_model_refuse(r, "'l_max' is %d; of a product basis it is at most %d", r->out->l_max,
                     CLB_MAX_ELL);
  for (int l = 0; l < q->sh.n && !r->status; l++)
    if (q->sh.term[l].parity != (l % 2 ? -1 : 1))
      clb_model_refuse(r, "'irreps_sh' must have parity (-1)^l");
}

/* ---- energies ---- */

static void read_energy(reader *r, const clb_mace *q) {
  const double scale = clb_model_number(r, "energy_scale");
  const int64_t species = r->out->n_species;
  clb_layer *y =
      clb_model_layer(r, &clb_energy_kind, sizeof(clb_energy), -1, "energy", q->energies, -1);
  if (!y) return;
  *(clb_energy *)y->parameters =
      (clb_energy){.scale = clb_model_take(r, "species_scale", 1, &species, scale),
                   .shift = clb_model_take(r, "species_shift", 1, &species, scale)};
}

/* Older files have it in their weights. */
static void read_neighbours(reader *r, clb_mace *q) {
  q->neighbours = 1;
  if (r->status || !clb_safetensors_says(r->file, "avg_num_neighbors")) return;
  q->neighbours = clb_model_number(r, "avg_num_neighbors");
  if (!r->status && !(q->neighbours > 0))
    clb_model_refuse(r, "'avg_num_neighbors' is %g; it must be positive", q->neighbours);
}

/* ---- [3]: charge and spin ---- */

static void read_states(reader *r, const clb_mace *q) {
  if (r->status) return;
  const int64_t columns = r->out->array[q->features]->irreps.dim;
  if (clb_arch_has_states(r)) clb_arch_states(r, q->features);
  if (r->status || !clb_safetensors_find(r->file, "embedding_readout")) return;
  clb_layer *y = clb_model_layer(r, &clb_linear_kind, sizeof(clb_linear), -1, "embedding_readout",
                                 q->features, q->energies);
  const int64_t at = clb_model_take(r, "embedding_readout", 1, &columns, 1 / sqrt((double)columns));
  if (y && !r->status) r->status = clb_linear_add(r->out, y->parameters, 0, 0, at);
}

/* ---- the network ---- */

/* Files without the key have none. */
static void read_interactions(reader *r, clb_mace *q) {
  if (r->status || !clb_safetensors_says(r->file, "interaction")) return;
  clb_model_choice(r, "interaction", "gate", NULL);
  q->gated = true;
  if (!r->status && !q->radial.normalized)
    clb_model_refuse(r, "'interaction' is \"gate\", but 'radial_normalization' not \"layer\"");
  q->scalar = clb_arch_activation(r, "scalar_activation");
  q->gate = clb_arch_activation(r, "gate_activation");
}

void clb_arch_mace(reader *r) {
  clb_mace q = {.energies = -1};
  clb_irreps in = {0};
  const clb_irreps one = clb_scalars(1);
  read_edges(r, &q);
  read_neighbours(r, &q);
  q.radial = clb_arch_radial_read(r);
  clb_model_choice(r, "readout_activation", "silu", NULL);
  q.readout = (clb_scaled_activation){CLB_SILU, clb_model_number(r, "readout_activation_scale")};
  read_interactions(r, &q);
  r->out->n_blocks = clb_model_whole(r, "n_layers", 1, CLB_ARCH_BLOCKS);
  clb_model_choice(r, "embedding", "linear", NULL);
  clb_model_irreps(r, "layers.0.irreps_in", &in);
  q.features = clb_arch_embedding(r, &in, false);
  q.energies = clb_model_array(r, CLB_PER_LOCAL, true, &one);
  read_states(r, &q);
  if (clb_model_choice(r, "pair_repulsion", "none", "zbl")) clb_arch_repulsion(r, q.energies);
  for (int n = 0; n < r->out->n_blocks && !r->status; n++) clb_mace_block(r, &q, n);
  read_energy(r, &q);
}
