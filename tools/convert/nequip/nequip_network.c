/* tools/convert/nequip/nequip_network.c - NequIP's networks from 0.7 on, package or checkpoint:
   all that is not of one layer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/atoms/elements.h"
#include "tools/cli/tool.h"
#include "tools/convert/nequip/nequip_reader.h"

static const double pi = 3.14159265358979323846;

/* ---- types ---- */

void nequip_put_types(nequip *q, value names, int *atomic_number) {
  if (!names || names->kind != PICKLE_LIST || !names->n || names->n > NEQUIP_TYPES)
    fail_model(q->t->path, "it has no list of 1 to %d types of atoms", NEQUIP_TYPES);
  q->n_species = (int64_t)names->n;
  for (size_t i = 0; i < names->n; i++) {
    const char *name = item(q->t, names, i, PICKLE_TEXT)->text;
    if (!(atomic_number[i] = clb_element(name, strlen(name))))
      fail_model(q->t->path, "its type '%s' is not an element", name);
    for (size_t k = 0; k < i; k++)
      if (atomic_number[k] == atomic_number[i])
        fail_model(q->t->path, "two of its types are %s, which is not supported", name);
  }
  put_species(q->out, atomic_number, (int)names->n);
}

/* ---- edges ---- */

/* Cutoffs of pairs of types, receiver and sender, if they have their own. */
static bool put_cutoffs(nequip *q, double r_max) {
  const int64_t n = q->n_species, shape[] = {n, n};
  const weights w = nequip_weights(q, "edge_norm._rmax_recip");
  if (w.count == 1 && n > 1) return false;
  if (w.count == 1 && nequip_near(element(&w, 0) * r_max, 1)) return false;
  double *cutoffs = allocate((size_t)w.count, sizeof *cutoffs);
  for (int64_t i = 0; i < w.count; i++) cutoffs[i] = 1 / element(&w, i);
  if (w.count != n * n)
    fail_model(q->t->path, "it has %lld cutoffs, not one or %lld", (long long)w.count,
               (long long)(n * n));
  put_string(q->out, "pairs", "cutoffs");
  put_shaped(q->out, cutoffs, 2, shape, "pair_cutoffs");
  free(cutoffs);
  return true;
}

void nequip_put_edges(nequip *q, const nequip_settings *s, const char *basis, int64_t n) {
  if (!q->sh.n) fail_model(q->t->path, "it has no harmonics");
  for (int i = 0; i < q->sh.n; i++)
    if (q->sh.term[i].mul != 1 || q->sh.term[i].l != i)
      fail_model(q->t->path, "harmonics that are not of degrees 0, 1, 2, ..., once each");
  put_edges(q->out, s->r_max, &q->sh, basis, n);
  put_cutoffs(q, s->r_max);
}

int64_t nequip_put_basis(nequip *q, const nequip_settings *s, const char *frequencies_at) {
  const weights w = nequip_weights(q, frequencies_at);
  double *frequencies = allocate((size_t)w.count, sizeof *frequencies);
  for (int64_t i = 0; i < w.count; i++) frequencies[i] = pi * element(&w, i);
  nequip_put_edges(q, s, "bessel", w.count);
  put_polynomial(q->out, s->p);
  put_doubles(q->out, frequencies, w.count, "bessel_frequencies");
  free(frequencies);
  return w.count;
}

/* ---- networks of scalars ---- */

/* NequIP gives the variance that a network would lose to relu back: to all matrices but the first
   one. */
static double factor_of(int k, bool active) { return k && active ? sqrt(2) : 1; }

/* Matrices PREFIX.0, PREFIX.1, ... from FIRST on; `active`: with activations between them, which
   are modules, too. Returns their number. */
static int put_matrices(nequip *q, const char *from, bool active, int64_t rows, int64_t columns,
                        const char *prefix) {
  const int step = active ? 2 : 1;
  int n = 0;
  while (n < NEQUIP_MATRICES && nequip_has(q, named("%s%d.weight", from, step * n).text)) n++;
  if (!n) fail_model(q->t->path, "it has no tensor '%s0.weight'", from);
  for (int k = 0; k < n; k++) {
    const weights w = nequip_weights(q, named("%s%d.weight", from, step * k).text);
    if (w.rank != 2 || w.shape[0] != rows || (k == n - 1 && w.shape[1] != columns))
      fail_model(q->t->path, "its tensor '%s%d.weight' does not fit its inputs and outputs", from,
                 step * k);
    put_part(q->out, &w, 0, 1, 2, w.shape, named("%s.%d", prefix, k).text);
    rows = w.shape[1];
  }
  return n;
}

/* Deep ones without activations. */
static int put_linear_readout(nequip *q, int64_t rows) {
  int n = 0;
  static const char at[] = "per_atom_energy_readout.mlp_module.mlp.weights.";
  for (; n < NEQUIP_MATRICES && nequip_has(q, named("%s%d", at, n).text); n++) {
    const weights w = nequip_weights(q, named("%s%d", at, n).text);
    if (w.rank != 2 || w.shape[0] != rows)
      fail_model(q->t->path, "its tensor '%s%d' does not fit its inputs", at, n);
    put_part(q->out, &w, 0, 1, 2, w.shape, named("readout.%d", n).text);
    rows = w.shape[1];
  }
  return n;
}

static void put_readout(nequip *q, const nequip_settings *s) {
  const irreps *x = &q->features;
  const int64_t rows = x->n ? x->term[0].mul : 0;
  if (x->n != 1 || x->term[0].l || x->term[0].parity < 0)
    fail_model(q->t->path, "its last features are not even scalars alone");
  int n = put_linear_readout(q, rows);
  if (!n)
    n = put_matrices(q, "per_atom_energy_readout.mlp_module.mlp.", *s->readout, rows, 1, "readout");
  put_number(q->out, n, "readout_layers");
  if (n > 1 && *s->readout) {
    put_string(q->out, s->readout, "readout_activation");
    put_number(q->out, factor_of(1, true), "readout_activation_scale");
  }
}

/* ---- energies ---- */

/* One number, one for each type, or none. */
static void put_per_type(nequip *q, const char *path, double without, const char *name) {
  const weights w = nequip_weights(q, path);
  double x[NEQUIP_TYPES];
  if (w.count > 1 && w.count != q->n_species)
    fail_model(q->t->path, "its tensor '%s' has %lld numbers, not %lld", path, (long long)w.count,
               (long long)q->n_species);
  for (int64_t i = 0; i < q->n_species; i++)
    x[i] = w.count ? element(&w, w.count > 1 ? i : 0) : without;
  put_doubles(q->out, x, q->n_species, name);
}

/* LAMMPS' constants; metal units. */
static void put_repulsion(nequip *q, const nequip_settings *s) {
  static const double exponents[] = {0.20162, 0.40290, 0.94229, 3.19980},
                      coefficients[] = {0.02817, 0.28022, 0.50986, 0.18175};
  static const double half_coulomb = 14.399645 / 2, power = 0.23, length = 0.46850,
                      known_charge = 7.1998; /* of the format */
  const weights z = nequip_count(q, "pair_potential.atomic_numbers", q->n_species),
                c = nequip_count(q, "pair_potential._qqr2exesquare", 1);
  double screening[NEQUIP_TYPES], c_of[4];
  if (!nequip_near(element(&c, 0), half_coulomb))
    fail_model(q->t->path,
               "its ZBL potential is in other units than 'metal', eV and Angstrom: %g, not %g",
               element(&c, 0), half_coulomb);
  for (int64_t i = 0; i < q->n_species; i++) {
    screening[i] = pow(element(&z, i), power) / length;
    if (element(&z, i) != s->atomic_number[i])
      fail_model(q->t->path, "its ZBL potential has type %lld as element %g, not %d", (long long)i,
                 element(&z, i), s->atomic_number[i]);
  }
  put_string(q->out, "zbl", "pair_repulsion");
  put_number(q->out, s->repulsion_p, "zbl_p");
  for (int i = 0; i < 4; i++) c_of[i] = coefficients[i] * element(&c, 0) / known_charge;
  put_doubles(q->out, c_of, 4, "zbl_coefficients");
  put_doubles(q->out, exponents, 4, "zbl_exponents");
  put_doubles(q->out, screening, q->n_species, "zbl_screening");
}

void nequip_put_energies(nequip *q, const nequip_settings *s) {
  put_string(q->out, "1", "energy_scale");
  put_per_type(q, "per_type_energy_scale_shift.scales", 1, "species_scale");
  put_per_type(q, "per_type_energy_scale_shift.shifts", 0, "species_shift");
  if (s->repels) put_repulsion(q, s);
  else put_string(q->out, "none", "pair_repulsion");
}

/* ---- the network ---- */

static int64_t put_embedding(nequip *q) {
  const weights w = nequip_weights(q, "type_embed.embed_module.weight");
  if (w.rank != 2 || w.shape[0] != q->n_species)
    fail_model(q->t->path, "its types have no rows of features each");
  put_string(q->out, "linear", "embedding");
  put_part(q->out, &w, 0, sqrt((double)q->n_species), 2, w.shape, "embedding");
  q->features = (irreps){1, {{(int)w.shape[1], 0, 1}}};
  return w.shape[1];
}

void nequip_put_neighbours(nequip *q, const nequip_settings *s) {
  for (int i = 0; i < s->n_neighbours; i++)
    if (!(s->neighbours[i] > 0))
      fail_model(q->t->path, "it has avg_num_neighbors = %g", s->neighbours[i]);
  if (s->n_neighbours == 1) put_number(q->out, s->neighbours[0], "avg_num_neighbors");
  else put_doubles(q->out, s->neighbours, s->n_neighbours, "avg_num_neighbors");
}

void nequip_put_network(nequip *q, const nequip_settings *s) {
  put_string(q->out, "nequip", "architecture");
  const int64_t n_basis = nequip_put_basis(q, s, "bessel_encode.bessel_weights"),
                width = put_embedding(q);
  nequip_put_neighbours(q, s);
  put_string(q->out, "fan_in", "radial_normalization");
  put_string(q->out, "silu", "radial_activation");
  put_number(q->out, factor_of(1, true), "radial_activation_scale");
  nequip_layer *l = allocate(1, sizeof *l);
  for (int n = 0; n < s->n_layers; n++) {
    nequip_find_layer(q, &s->hidden[n], l);
    put_number(q->out,
               put_matrices(q, named("layer%d_convnet.conv.edge_mlp.mlp.", n).text, true, n_basis,
                            l->n_weights, named("layers.%d.radial", n).text),
               "radial_layers");
    const bool self = nequip_has(q, named("layer%d_convnet.conv.sc.weight", n).text);
    put_string(q->out, self ? "embedding" : "none", "layers.%d.self_connection", n);
    nequip_put_layer(q, n, l, width);
  }
  free(l);
  put_number(q->out, s->n_layers, "n_layers");
  put_string(q->out, "none", "norm");
  put_readout(q, s);
  nequip_put_energies(q, s);
}
