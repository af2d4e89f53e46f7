/* models/arch/esen/esen.c - eSEN's networks: maps by order in the frames of edges. Numbers in
   brackets are steps of docs/model-format.md. */
#include "models/arch/esen/esen_network.h"

#include <stdio.h>
#include <string.h>

typedef clb_model_reader reader;
enum { MAX_CHANNELS = 1 << 12, MAX_GAUSSIANS = 1 << 14 };

/* ---- edges ---- */

/* [1] */
static int read_gaussians(reader *r) {
  const int n = clb_model_whole(r, "n_basis", 2, MAX_GAUSSIANS),
            lengths = clb_arch_scalars(r, CLB_PER_EDGE, 1),
            functions = clb_arch_scalars(r, CLB_PER_EDGE, n);
  const double width = clb_model_number(r, "basis_width");
  if (!r->status && !(width > 0))
    clb_model_refuse(r, "'basis_width' is %g; it must be positive", width);
  clb_layer *y =
      clb_model_layer(r, &clb_edges_kind, sizeof(clb_edges), -1, "lengths", CLB_VECTORS, -1);
  if (y) y->out[CLB_EDGES_LENGTHS] = lengths;
  y = clb_model_layer(r, &clb_gaussians_kind, sizeof(clb_gaussians), -1, "basis", lengths,
                      functions);
  if (y) *(clb_gaussians *)y->parameters = (clb_gaussians){.r_max = r->out->r_max, .width = width};
  return functions;
}

static int read_cutoff(reader *r) {
  const int cutoff = clb_arch_scalars(r, CLB_PER_EDGE, 1),
            p = (clb_model_choice(r, "cutoff", "polynomial", NULL),
                 clb_model_whole(r, "cutoff_p", 2, 64));
  clb_layer *y =
      clb_model_layer(r, &clb_basis_kind, sizeof(clb_basis), -1, "cutoff", CLB_VECTORS, -1);
  if (!y) return cutoff;
  y->out[CLB_BASIS_CUTOFF] = cutoff;
  *(clb_basis *)y->parameters = (clb_basis){.cutoff_p = p, .r_max = r->out->r_max};
  return cutoff;
}

/* [2] */
static void read_rotations(reader *r, clb_esen *q) {
  clb_irreps irreps = {0};
  for (int order = 0; order <= 2 * q->m; order++)
    for (int l = (order + 1) / 2; l <= q->l; l++) {
      irreps.term[irreps.n++] = (clb_term){.mul = 1, .l = l, .parity = 1, .at = irreps.dim};
      irreps.dim += 2 * l + 1;
    }
  const int cutoff = read_cutoff(r);
  q->rotations = clb_model_array(r, CLB_PER_EDGE, false, &irreps);
  q->cut = clb_model_array(r, CLB_PER_EDGE, false, &irreps);
  clb_layer *y = clb_model_layer(r, &clb_rotation_kind, sizeof(clb_rotation), -1, "rotations",
                                 CLB_VECTORS, q->rotations);
  if (y) *(clb_rotation *)y->parameters = (clb_rotation){.l = q->l, .m = q->m};
  y = clb_model_layer(r, &clb_product_kind, sizeof(clb_product_layer), -1, "cutoff", q->rotations,
                      q->cut);
  if (!y) return;
  clb_product_layer *p = y->parameters;
  y->in[CLB_PRODUCT_Y] = cutoff;
  y->gradients = 1U << CLB_PRODUCT_X | 1U << CLB_PRODUCT_Y;
  p->x = irreps;
  for (int t = 0; t < irreps.n; t++)
    p->path[p->n_paths++] = (clb_instruction){t, 0, t, CLB_UVU, 0, 1};
}

/* ---- atoms ---- */

/* [3]: silu of rows by charge and spin. */
static int read_states(reader *r, const clb_esen *q) {
  if (r->status || !clb_arch_has_states(r)) return -1;
  const int states = clb_arch_scalars(r, CLB_PER_LOCAL, q->channels);
  const int64_t none = clb_model_reserve(r, r->out->n_species * q->channels);
  clb_layer *y = clb_model_layer(r, &clb_embedding_kind, sizeof(clb_embedding), -1,
                                 "charge and spin", -1, states);
  if (y) *(clb_embedding *)y->parameters = (clb_embedding){.table = none};
  clb_arch_states(r, states);
  return states;
}

/* [4] */
static void read_first_features(reader *r, clb_esen *q) {
  const int64_t species = r->out->n_species, width = q->features.dim,
                from =
                    clb_model_take(r, "embedding", 2, (const int64_t[]){species, q->channels}, 1),
                table = clb_model_reserve(r, species * width);
  const double factor = clb_model_number(r, "degree_scale");
  if (!r->status && !(factor > 0))
    clb_model_refuse(r, "'degree_scale' is %g; it must be positive", factor);
  const int weights =
                clb_arch_radial(r, 0, "degree", &q->radial, q->gaussians, (q->l + 1) * q->channels),
            sum = clb_esen_sum(r, q, 0, q->l + 1, weights, factor);
  q->x = clb_model_array(r, CLB_PER_LOCAL, false, &q->features);
  for (int64_t s = 0; s < species && !r->status; s++)
    clb_model_copy(r, table + s * width, from + s * q->channels, q->channels);
  clb_layer *y =
      clb_model_layer(r, &clb_embedding_kind, sizeof(clb_embedding), -1, "embedding", -1, q->x);
  if (y) *(clb_embedding *)y->parameters = (clb_embedding){.table = table};
  if (q->states >= 0) clb_esen_copy(r, -1, "charge and spin", q->states, q->x, 1);
  clb_esen_copy(r, -1, "degree", sum, q->x, q->l + 1);
}

/* x + y */
static int add(reader *r, const clb_esen *q, int n, int x, int y) {
  const int sum = clb_model_array(r, CLB_PER_LOCAL, false, &q->features);
  clb_esen_copy(r, n, "residual", x, sum, q->l + 1);
  clb_esen_copy(r, n, "residual", y, sum, q->l + 1);
  return sum;
}

static void read_block(reader *r, clb_esen *q, int n) {
  const int normed = clb_esen_norm(r, q, n, "norm_1", q->x);
  if (q->states >= 0) clb_esen_copy(r, n, "charge and spin", q->states, normed, 1);
  q->x = add(r, q, n, q->x, clb_esen_edges(r, q, n, normed));
  q->x = add(r, q, n, q->x, clb_esen_atoms(r, q, n, clb_esen_norm(r, q, n, "norm_2", q->x)));
}

/* [11] */
static int read_readout(reader *r, const clb_esen *q) {
  const clb_irreps one = clb_scalars(1);
  const int matrices = clb_model_whole(r, "readout_layers", 1, CLB_RADIAL_MATRICES);
  int from = clb_esen_norm(r, q, -1, "norm", q->x);
  int64_t rows = q->channels;
  for (int k = 0; k < matrices && !r->status; k++) {
    char key[CLB_MODEL_KEY], bias[CLB_MODEL_KEY];
    snprintf(key, sizeof key, "readout.%d", k);
    snprintf(bias, sizeof bias, "readout.%d.bias", k);
    const int64_t columns = k + 1 < matrices ? clb_model_columns(r, key) : 1;
    int to = k + 1 < matrices ? clb_arch_scalars(r, CLB_PER_LOCAL, columns)
                              : clb_model_array(r, CLB_PER_LOCAL, true, &one);
    clb_arch_bias(r, -1, bias, to, false);
    const int64_t at = clb_model_take(r, key, 2, (const int64_t[]){rows, columns}, 1);
    clb_esen_block(r, clb_esen_linear(r, -1, "readout", from, to), 0, 0, at);
    from = to;
    rows = columns;
    if (k + 1 == matrices) continue;
    from = clb_arch_scalars(r, CLB_PER_LOCAL, columns);
    clb_layer *y = clb_model_layer(r, &clb_gate_kind, sizeof(clb_gate), -1, "readout", to, from);
    if (y)
      *(clb_gate *)y->parameters =
          (clb_gate){.scalars = clb_scalars(columns), .even = {CLB_SILU, 1}};
  }
  return from;
}

/* As many points as there are paths for. */
static void read_grid(reader *r, clb_esen *q) {
  if (!clb_model_choice(r, "feed_forward", "spectral", "grid")) return;
  q->points = clb_model_whole(r, "grid_points", 1, CLB_MAX_PATHS / (q->l + 1));
  const int64_t shape[] = {q->points, (int64_t)(q->l + 1) * (q->l + 1)};
  q->to_grid = clb_model_take(r, "grid.to", 2, shape, 1);
  q->from_grid = clb_model_take(r, "grid.from", 2, shape, 1);
}

void clb_arch_esen(reader *r) {
  clb_esen q = {0};
  const int64_t species = r->out->n_species;
  const double scale = clb_model_number(r, "energy_scale");
  const clb_energy energy = {.scale = clb_model_take(r, "species_scale", 1, &species, scale),
                             .shift = clb_model_take(r, "species_shift", 1, &species, scale)};
  if (r->out->trains) clb_model_refuse(r, "eSEN's models do not train");
  q.l = r->out->l_max = clb_model_whole(r, "l_max", 1, CLB_MAX_EDGE_ROTATION_L);
  q.m = clb_model_whole(r, "m_max", 0, q.l);
  q.channels = clb_model_whole(r, "n_channels", 1, MAX_CHANNELS);
  q.hidden = clb_model_whole(r, "n_hidden", 1, MAX_CHANNELS);
  q.norm_epsilon = clb_model_number(r, "norm_epsilon");
  read_grid(r, &q);
  r->out->n_blocks = clb_model_whole(r, "n_layers", 1, CLB_ARCH_BLOCKS);
  if (!r->status && !(q.norm_epsilon > 0))
    clb_model_refuse(r, "'norm_epsilon' is %g; it must be positive", q.norm_epsilon);
  q.features = clb_esen_features(q.l, q.channels);
  q.gaussians = read_gaussians(r);
  q.radial = clb_arch_radial_read(r);
  if (!r->status && !q.radial.normalized)
    clb_model_refuse(r, "'radial_normalization' must be \"layer\"");
  read_rotations(r, &q);
  q.states = read_states(r, &q);
  read_first_features(r, &q);
  for (int n = 0; n < r->out->n_blocks && !r->status; n++) read_block(r, &q, n);
  const int energies = read_readout(r, &q);
  clb_layer *y =
      clb_model_layer(r, &clb_energy_kind, sizeof(clb_energy), -1, "energy", energies, -1);
  if (y) *(clb_energy *)y->parameters = energy;
}
