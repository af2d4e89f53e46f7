/* models/arch/arch_parts.c - parts of several architectures: edges, first features, energies. */
#include "models/arch/arch_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef clb_model_reader reader;
static const double largest_frequency = 1e6;

const char *clb_arch_key(char key[CLB_MODEL_KEY], int block, const char *what) {
  snprintf(key, CLB_MODEL_KEY, "layers.%d.%s", block, what);
  return key;
}

int64_t clb_arch_take(reader *r, int block, const char *what, const clb_term *t, int rank,
                      const int64_t *shape, double factor) {
  char key[CLB_MODEL_KEY];
  snprintf(key, sizeof key, "layers.%d.%s.%d%c", block, what, (int)t->l, t->parity > 0 ? 'e' : 'o');
  return clb_model_take(r, key, rank, shape, factor);
}

int clb_arch_scalars(reader *r, clb_per per, int64_t n) {
  const clb_irreps irreps = clb_scalars(n);
  return clb_model_array(r, per, false, &irreps);
}

clb_scaled_activation clb_arch_activation(reader *r, const char *key) {
  const char *names[CLB_ACTIVATIONS];
  char scale[CLB_MODEL_KEY];
  for (int f = 0; f < CLB_ACTIVATIONS; f++) names[f] = clb_activation_name((clb_activation)f);
  snprintf(scale, sizeof scale, "%s_scale", key);
  const int f = clb_model_word(r, key, names, CLB_ACTIVATIONS);
  return (clb_scaled_activation){(clb_activation)f, clb_model_number(r, scale)};
}

/* ---- edges ---- */

int clb_arch_vectors(reader *r) {
  const clb_irreps vector = clb_scalars(3);
  const int64_t species = r->out->n_species, count = species * species;
  if (r->status || !clb_safetensors_says(r->file, "cutoffs") ||
      !clb_model_choice(r, "cutoffs", "one", "pairs"))
    return CLB_VECTORS;
  const int64_t at = clb_model_take(r, "pair_cutoffs", 2, (const int64_t[]){species, species}, 1),
                factors = clb_model_reserve(r, count);
  for (int64_t i = 0; i < count && !r->status; i++) {
    const double cutoff = r->out->weights[at + i], r_max = r->out->r_max;
    if (!(cutoff > 0 && cutoff <= r_max * (1 + 1e-9)))
      clb_model_refuse(
          r, "number %d of tensor 'pair_cutoffs' is %g; it must be above 0, at most r_max, %g",
          (int)i, cutoff, r_max);
    r->out->weights[factors + i] = r_max / cutoff;
  }
  const int longer = clb_model_array(r, CLB_PER_EDGE, true, &vector);
  clb_layer *y = clb_model_layer(r, &clb_stretch_kind, sizeof(clb_stretch), -1, "stretch",
                                 CLB_VECTORS, longer);
  if (y) ((clb_stretch *)y->parameters)->factors = factors;
  return longer;
}

int clb_arch_harmonics(reader *r, int vectors, clb_irreps *sh) {
  r->out->l_max = clb_model_whole(r, "l_max", 0, CLB_MAX_L);
  clb_model_irreps(r, "irreps_sh", sh);
  const bool even = sh->n > 1 && sh->term[1].parity > 0;
  r->out->parity = !even;
  bool good = sh->n == r->out->l_max + 1;
  for (int l = 0; l < sh->n && good; l++)
    good = sh->term[l].mul == 1 && sh->term[l].l == l &&
           sh->term[l].parity == (l % 2 && !even ? -1 : 1);
  if (!good)
    clb_model_refuse(r, "'irreps_sh' must be degrees 0 to l_max, once each, of parity (-1)^l, or "
                        "all even");
  const int harmonics = clb_model_array(r, CLB_PER_EDGE, false, sh);
  clb_layer *y =
      clb_model_layer(r, &clb_edges_kind, sizeof(clb_edges), -1, "harmonics", vectors, harmonics);
  if (y && clb_safetensors_says(r->file, "harmonics_of"))
    ((clb_edges *)y->parameters)->solid =
        clb_model_choice(r, "harmonics_of", "directions", "vectors");
  return harmonics;
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

clb_layer *clb_arch_basis(reader *r, int vectors) {
  clb_model_choice(r, "radial_basis", "bessel", NULL);
  const int n = clb_model_whole(r, "n_basis", 1, CLB_MAX_BASIS);
  const int64_t shape = n;
  const int functions = clb_arch_scalars(r, CLB_PER_EDGE, n);
  clb_layer *y =
      clb_model_layer(r, &clb_basis_kind, sizeof(clb_basis), -1, "basis", vectors, functions);
  if (!y) return NULL;
  clb_basis *p = y->parameters;
  p->n = n;
  p->r_max = r->out->r_max;
  read_cutoff(r, p);
  p->frequencies = clb_model_take(r, "bessel_frequencies", 1, &shape, 1);
  check_frequencies(r, p);
  return y;
}

/* ---- atoms ---- */

int clb_arch_embedding(reader *r, const clb_irreps *features, bool one_hot) {
  const int64_t n = features->dim, species = r->out->n_species;
  if (!r->status && (features->n != 1 || features->term[0].l || features->term[0].parity < 0 ||
                     (one_hot && n != species)))
    clb_model_refuse(r, "layers.0.irreps_in must be scalars, with 'one_hot' one of each species");
  const int64_t table = one_hot ? clb_model_reserve(r, species * species)
                                : clb_model_take(r, "embedding", 2, (const int64_t[]){species, n},
                                                 1 / sqrt((double)species));
  for (int64_t s = 0; s < species && one_hot && !r->status; s++)
    r->out->weights[table + s * species + s] = 1;
  const int array = clb_model_array(r, CLB_PER_LOCAL, false, features);
  clb_layer *y =
      clb_model_layer(r, &clb_embedding_kind, sizeof(clb_embedding), -1, "embedding", -1, array);
  if (y) *(clb_embedding *)y->parameters = (clb_embedding){.table = table};
  return array;
}

void clb_arch_bias(reader *r, int block, const char *what, int to, bool optional) {
  const clb_term even_scalar = {.l = 0, .parity = 1};
  char key[CLB_MODEL_KEY];
  if (r->status) return;
  clb_network *f = r->out;
  const clb_irreps irreps = f->array[to]->irreps;
  const int at = clb_find_irrep(&irreps, &even_scalar);
  if (at < 0) return;
  if (block < 0) snprintf(key, sizeof key, "%s", what);
  else clb_arch_key(key, block, what);
  if (!clb_safetensors_find(r->file, key) && optional) return;
  const int64_t mul = irreps.term[at].mul, from = clb_model_take(r, key, 1, &mul, 1),
                table = clb_model_reserve(r, f->n_species * (int64_t)irreps.dim);
  for (int s = 0; s < f->n_species && !r->status; s++)
    clb_model_copy(r, table + s * (int64_t)irreps.dim + irreps.term[at].at, from, mul);
  clb_layer *y =
      clb_model_layer(r, &clb_embedding_kind, sizeof(clb_embedding), block, what, -1, to);
  if (y) *(clb_embedding *)y->parameters = (clb_embedding){.table = table};
}

/* ---- charge and spin ---- */

/* Rows of a tensor, if the file has it, from that of the number "WHAT_first" on. */
static void read_state(reader *r, clb_states *p, int k, const char *what, int64_t columns) {
  enum { MAX_STATES = 1 << 16 };
  char key[CLB_MODEL_KEY];
  snprintf(key, sizeof key, "embedding_%s", what);
  const clb_tensor *t = r->status ? NULL : clb_safetensors_find(r->file, key);
  if (!t) return;
  p->count[k] = t->rank == 2 ? t->shape[0] : 1;
  if (p->count[k] < 1 || p->count[k] > MAX_STATES)
    clb_model_refuse(r, "'%s' must have 1 to %d rows", key, MAX_STATES);
  p->table[k] = clb_model_take(r, key, 2, (const int64_t[]){p->count[k], columns}, 1);
  snprintf(key, sizeof key, "%s_first", what);
  p->first[k] = clb_model_whole(r, key, -MAX_STATES, MAX_STATES);
}

bool clb_arch_has_states(const reader *r) {
  return clb_safetensors_find(r->file, "embedding_charge") ||
         clb_safetensors_find(r->file, "embedding_spin");
}

void clb_arch_states(reader *r, int to) {
  clb_layer *y =
      clb_model_layer(r, &clb_states_kind, sizeof(clb_states), -1, "charge and spin", -1, to);
  for (int k = 0; k < 2 && y; k++)
    read_state(r, y->parameters, k, k ? "spin" : "charge", r->out->array[to]->irreps.dim);
}

/* ---- energies ---- */

int64_t clb_arch_positive(reader *r, const char *name) {
  const int64_t species = r->out->n_species, at = clb_model_take(r, name, 1, &species, 1);
  for (int64_t s = 0; s < species && !r->status; s++)
    if (!(r->out->weights[at + s] > 0))
      clb_model_refuse(r, "number %d of tensor '%s' is %g; it must be positive", (int)s, name,
                       r->out->weights[at + s]);
  return at;
}

double clb_arch_neighbours(reader *r, int64_t *of_species) {
  if (r->status) return 0;
  if (!clb_safetensors_says(r->file, "avg_num_neighbors") &&
      clb_safetensors_find(r->file, "avg_num_neighbors")) {
    *of_species = clb_arch_positive(r, "avg_num_neighbors");
    return 0;
  }
  const double neighbours = clb_model_number(r, "avg_num_neighbors");
  if (!r->status && !(neighbours > 0))
    clb_model_refuse(r, "'avg_num_neighbors' is %g; it must be positive", neighbours);
  return neighbours;
}

void clb_arch_copy_times(reader *r, int64_t to, int64_t from, int64_t n, double factor) {
  clb_parameters *p = &r->out->parameter;
  const int64_t first = p->n_pieces;
  clb_model_copy(r, to, from, n);
  for (int64_t i = 0; i < n && !r->status; i++) r->out->weights[to + i] *= factor;
  for (int64_t i = first; i < p->n_pieces; i++) p->piece[i].factor *= factor;
}

/* Where pairs cease to repel each other: R_i + R_j, or where the factors of their vectors say. */
static int64_t read_reach(reader *r) {
  const int64_t n = r->out->n_species, reach = clb_model_reserve(r, n * n);
  const bool radii = !r->status && clb_safetensors_find(r->file, "zbl_radii");
  int64_t at = radii ? clb_arch_positive(r, "zbl_radii") : -1;
  for (int l = 0; l < r->out->n_layers && !radii; l++)
    if (r->out->layer[l]->kind == &clb_stretch_kind)
      at = ((const clb_stretch *)r->out->layer[l]->parameters)->factors;
  for (int64_t i = 0; i < n * n && !r->status; i++) {
    double *w = r->out->weights;
    w[reach + i] = radii ? w[at + i / n] + w[at + i % n] : r->out->r_max / (at < 0 ? 1 : w[at + i]);
  }
  return reach;
}

static void take_four(reader *r, const char *name, double x[4]) {
  const int64_t four = 4, at = clb_model_take(r, name, 1, &four, 1);
  for (int i = 0; i < 4 && !r->status; i++) x[i] = r->out->weights[at + i];
}

void clb_arch_repulsion(reader *r, int energies) {
  static const double exponents[] = {3.2, 0.9423, 0.4028, 0.2016}; /* MACE's */
  clb_layer *y = clb_model_layer(r, &clb_repulsion_kind, sizeof(clb_repulsion), -1, "repulsion",
                                 CLB_VECTORS, energies);
  if (!y) return;
  clb_repulsion *p = y->parameters;
  p->p = clb_model_whole(r, "zbl_p", 1, 64);
  p->charges = clb_model_reserve(r, r->out->n_species);
  take_four(r, "zbl_coefficients", p->coefficients);
  memcpy(p->exponents, exponents, sizeof exponents);
  if (!r->status && clb_safetensors_find(r->file, "zbl_exponents"))
    take_four(r, "zbl_exponents", p->exponents);
  p->screening = clb_arch_positive(r, "zbl_screening");
  p->reach = read_reach(r);
  for (int s = 0; s < r->out->n_species && !r->status; s++)
    r->out->weights[p->charges + s] = r->out->atomic_number[s];
}

int clb_arch_repelled(reader *r, int scalar, clb_energy *energy) {
  const clb_irreps one = clb_scalars(1);
  if (r->status || !clb_safetensors_says(r->file, "pair_repulsion") ||
      !clb_model_choice(r, "pair_repulsion", "none", "zbl"))
    return scalar;
  const int energies = clb_model_array(r, CLB_PER_LOCAL, true, &one);
  clb_layer *y =
      clb_model_layer(r, &clb_linear_kind, sizeof(clb_linear), -1, "scale", scalar, energies);
  if (y) {
    ((clb_linear *)y->parameters)->by_species = true;
    r->status = clb_linear_add(r->out, y->parameters, 0, 0, energy->scale);
  }
  energy->scale = clb_model_reserve(r, r->out->n_species);
  for (int s = 0; s < r->out->n_species && !r->status; s++) r->out->weights[energy->scale + s] = 1;
  clb_arch_repulsion(r, energies);
  return energies;
}
