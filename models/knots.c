/* models/knots.c - how many knots splines have, where the caller leaves it to the library.

   Forces from splines through every second knot are compared with those from all knots, on a small
   cluster made of the model's elements. Errors of slopes, and so of forces, go with the third power
   of the distance between knots: those of all knots are about an eighth of that difference. A
   quarter of it is given as the error, because other atoms may be worse than these. */
#include <math.h>
#include <stdlib.h>

#include "models/layers/kinds.h"
#include "models/model_state.h"
#include "models/read.h"

enum { ATOMS = 64, SPECIES = 4, FIRST_KNOTS = 513, MAX_KNOTS = 4097 };
/* eV / Angstrom, or of the cluster's forces if they are larger than 1: two thirds of what model.h
   promises. */
static const double most_error = 1e-5 * 2 / 3;

/* ---- the cluster ---- */

/* Of covalent bonds, roughly: by the element's row in the periodic table. */
static double radius(int atomic_number) {
  static const struct {
    int last;
    double radius;
  } rows[] = {{2, 0.35}, {10, 0.72}, {18, 1.1}, {36, 1.25}, {54, 1.4}, {118, 1.5}};
  int i = 0;
  while (rows[i].last < atomic_number) i++;
  return rows[i].radius;
}

/* Uniform in [0, 1): equal numbers on all machines. */
static double draw(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) / (double)(1 << 24);
}

static bool far_from_others(const double *x, const double *radii, int i, int bonded) {
  for (int j = 0; j < i; j++) {
    double square = 0;
    for (int d = 0; d < 3; d++)
      square += (x[3 * i + d] - x[3 * j + d]) * (x[3 * i + d] - x[3 * j + d]);
    const double least = 1.4 * (radii[i] + radii[j]);
    if (j != bonded && square < least * least) return false;
  }
  return true;
}

/* Oxygen, hydrogen, silicon and carbon where the model has them; without two of these, elements
   from all over its list. */
static int choose_species(const clb_network *n, int32_t kinds[SPECIES]) {
  static const int usual[SPECIES] = {8, 1, 14, 6};
  int count = 0;
  for (int i = 0; i < SPECIES; i++)
    for (int s = 0; s < n->n_species; s++)
      if (n->atomic_number[s] == usual[i]) kinds[count++] = s;
  if (count >= 2) return count;
  count = n->n_species < SPECIES ? n->n_species : SPECIES;
  for (int i = 0; i < count; i++) kinds[i] = (int32_t)(i * n->n_species / count);
  return count;
}

/* Each atom is 0.95 to 1.15 bonds from one before it, and 1.4 or more from all others. */
static void make_cluster(const clb_network *n, int32_t *species, double *x) {
  int32_t kinds[SPECIES];
  const int count = choose_species(n, kinds);
  uint32_t state = 1;
  double radii[ATOMS];
  for (int i = 0; i < ATOMS; i++) {
    species[i] = kinds[i % count];
    radii[i] = radius(n->atomic_number[species[i]]);
    x[3 * i] = x[3 * i + 1] = x[3 * i + 2] = 0;
    for (bool good = i == 0; !good;) {
      const int j = (int)(draw(&state) * i);
      const double z = 2 * draw(&state) - 1, angle = 6.283185307179586 * draw(&state),
                   bond = (0.95 + 0.2 * draw(&state)) * (radii[i] + radii[j]),
                   across = bond * sqrt(1 - z * z);
      x[3 * i] = x[3 * j] + across * cos(angle);
      x[3 * i + 1] = x[3 * j + 1] + across * sin(angle);
      x[3 * i + 2] = x[3 * j + 2] + bond * z;
      good = far_from_others(x, radii, i, j);
    }
  }
}

/* ---- the error ---- */

static clb_status make_tables(clb_model *m, bool halved) {
  clb_network *n = &m->net;
  clb_status s = CLB_OK;
  n->halved = halved;
  m->seen = false;
  m->graph_number++;
  for (int l = 0; l < n->n_layers && !s; l++)
    if (n->layer[l]->kind->tables) s = n->layer[l]->kind->tables(n, n->layer[l]);
  return s;
}

/* Of the forces of the tables as they are now; leaves tables of all knots. 0: the model's numbers
   are not finite on the cluster. */
static clb_status find_error(clb_model *m) {
  int32_t species[ATOMS];
  double x[3 * ATOMS], coarse[3 * ATOMS], fine[3 * ATOMS], square = 0, off = 0;
  const clb_model_atoms atoms = {.n = ATOMS, .species = species, .positions = x};
  make_cluster(&m->net, species, x);
  m->edges.between.skin = 0;
  clb_status s = make_tables(m, true);
  if (!s) s = clb_model_compute(m, &atoms, &(clb_model_results){.forces = coarse});
  if (!s) s = make_tables(m, false);
  if (!s) s = clb_model_compute(m, &atoms, &(clb_model_results){.forces = fine});
  m->edges.between.skin = fmax(m->options.skin, 0);
  clb_edges_forget(&m->edges);
  m->edges.rebuilds = 0;
  if (s == CLB_ERROR_ARGUMENT) return make_tables(m, false);
  for (int i = 0; i < 3 * ATOMS && !s; i++) {
    off = fmax(off, fabs(fine[i] - coarse[i]));
    square += fine[i] * fine[i] / (3 * ATOMS);
  }
  m->info.table_force_error = off / 4 / fmax(1, sqrt(square));
  return s;
}

static bool has_tables(const clb_network *n) {
  for (int l = 0; l < n->n_layers; l++)
    if (n->layer[l]->kind == &clb_pair_table_kind ||
        (n->layer[l]->kind == &clb_convolution_kind &&
         n->layer[l]->in[CLB_CONVOLUTION_LENGTHS] >= 0))
      return true;
  return false;
}

clb_status clb_model_choose_knots(clb_model *m, const char *path) {
  for (int knots = FIRST_KNOTS;; knots = knots < MAX_KNOTS ? 2 * knots - 1 : 0) {
    clb_status s = clb_model_load(m, path, knots);
    if (s || !knots || !m->ctx->device->info.runs) return s;
    if (!has_tables(&m->net)) {
      m->info.knots = 0;
      return CLB_OK;
    }
    if ((s = find_error(m)) || m->info.table_force_error <= most_error) return s;
    clb_model_unload(m);
  }
}
