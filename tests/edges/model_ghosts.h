/* tests/edges/model_ghosts.h - atoms with ghosts and a list of pairs, as simulation codes have
 * them. */
#ifndef CLB_TESTS_EDGES_MODEL_GHOSTS_H
#define CLB_TESTS_EDGES_MODEL_GHOSTS_H

#include "tests/models/model_places.h"

enum { MAX_PAIRS = 16384, MAX_TOTAL = 1024 };
static const clb_model_options f64 = {.dtype = CLB_F64, .knots = CLB_NO_KNOTS};

/* Pairs with a skin; a ghost is an image of an atom, of which there are as many as the pairs need.
 */
typedef struct {
  int64_t n, n_total, n_pairs;
  int32_t species[MAX_TOTAL], owner[MAX_TOTAL], shift[MAX_TOTAL][3];
  int32_t senders[MAX_PAIRS], receivers[MAX_PAIRS], received[MAX_TOTAL];
  double positions[3 * MAX_TOTAL];
  clb_model_exchange exchange;
  int calls;
} ghost_set;

static inline int32_t ghost_of(ghost_set *g, const atom_set *a, int32_t atom,
                               const int32_t *shift) {
  for (int64_t i = g->n; i < g->n_total; i++)
    if (g->owner[i] == atom && !memcmp(g->shift[i], shift, sizeof g->shift[i])) return (int32_t)i;
  assert_true(g->n_total < MAX_TOTAL);
  g->owner[g->n_total] = atom;
  g->species[g->n_total] = a->species[atom];
  memcpy(g->shift[g->n_total], shift, sizeof g->shift[0]);
  return (int32_t)g->n_total++;
}

static inline void place(ghost_set *g, const atom_set *a) {
  memcpy(g->positions, a->positions, sizeof(double) * 3 * (size_t)g->n);
  for (int64_t i = g->n; i < g->n_total; i++)
    for (int k = 0; k < 3; k++) {
      double x = a->positions[3 * g->owner[i] + k];
      for (int d = 0; d < 3; d++) x += g->shift[i][d] * a->cell[3 * d + k];
      g->positions[3 * i + k] = x;
    }
}

/* Rows in the order in which ghosts are numbered, both ways. */
static inline clb_status move(void *user, int backward, int64_t columns, clb_dtype type,
                              const void *from, void *to) {
  ghost_set *g = user;
  (void)backward;
  g->calls++;
  memcpy(to, from, (size_t)g->exchange.n_send * (size_t)columns * (type == CLB_F64 ? 8 : 4));
  return CLB_OK;
}

static inline ghost_set *ghosts_of(const atom_set *a, double reach) {
  ghost_set *g = calloc(1, sizeof *g);
  clb_neighbours list = {.cutoff = reach};
  const bool periodic[3] = {a->periodic[0], a->periodic[1], a->periodic[2]};
  static const int32_t home[3];
  assert_non_null(g);
  if (clb_neighbours_update(&list, a->n, a->positions, a->cell, periodic, NULL))
    fail_msg("%s", list.error);
  assert_true(list.n_edges < MAX_PAIRS);
  g->n = g->n_total = a->n;
  g->n_pairs = list.n_edges;
  memcpy(g->species, a->species, sizeof(int32_t) * (size_t)a->n);
  for (int64_t i = 0; i < list.n_edges; i++) {
    const int32_t *shift = list.shifts + 3 * i;
    g->receivers[i] = list.receivers[i];
    g->senders[i] =
        memcmp(shift, home, sizeof home) ? ghost_of(g, a, list.senders[i], shift) : list.senders[i];
  }
  clb_neighbours_free(&list);
  for (int64_t i = g->n; i < g->n_total; i++) g->received[i - g->n] = (int32_t)i;
  const int64_t n = g->n_total - g->n;
  g->exchange = (clb_model_exchange){.n_send = n,
                                     .n_receive = n,
                                     .send = g->owner + g->n,
                                     .receive = g->received,
                                     .move = move,
                                     .user = g};
  place(g, a);
  return g;
}

static inline clb_model_edges call_of(const ghost_set *g, bool images) {
  clb_model_edges e = {.n_local = g->n,
                       .n_total = g->n_total,
                       .n_edges = g->n_pairs,
                       .species = g->species,
                       .senders = {.host = g->senders},
                       .receivers = {.host = g->receivers},
                       .positions = g->positions};
  if (images) e.images = g->owner + g->n;
  else e.exchange = &g->exchange;
  return e;
}

typedef struct {
  double energy, e_atom[MAX_ATOMS], forces[3 * MAX_TOTAL], v_atom[9 * MAX_ATOMS], virial[9];
} ghost_result;

static inline ghost_result *compute(opened *o, const clb_model_edges *e) {
  ghost_result *r = malloc(sizeof *r);
  assert_non_null(r);
  for (size_t i = 0; i < sizeof *r / sizeof(double); i++) ((double *)r)[i] = NAN;
  const clb_model_edge_results want = {.energy = &r->energy,
                                       .e_atom = r->e_atom,
                                       .forces = r->forces,
                                       .v_atom = r->v_atom,
                                       .virial = r->virial};
  if (clb_model_compute_edges(o->model, e, &want)) fail_msg("%s", clb_error(o->ctx));
  return r;
}

/* Forces on ghosts go home; parts of the virial must sum up to it. */
static inline computed of_atoms(const ghost_set *g, const ghost_result *r, const double *cell) {
  const double *c = cell;
  const double volume =
      fabs(c[0] * (c[4] * c[8] - c[5] * c[7]) - c[1] * (c[3] * c[8] - c[5] * c[6]) +
           c[2] * (c[3] * c[7] - c[4] * c[6]));
  computed all = {.energy = r->energy};
  memcpy(all.e_atom, r->e_atom, sizeof(double) * (size_t)g->n);
  for (int64_t i = 0; i < 3 * g->n_total; i++)
    all.forces[3 * (i / 3 < g->n ? i / 3 : g->owner[i / 3]) + i % 3] += r->forces[i];
  for (int i = 0; i < 9; i++) {
    double sum = 0;
    for (int64_t k = 0; k < g->n; k++)
      sum += (r->v_atom[9 * k + i] + r->v_atom[9 * k + i % 3 * 3 + i / 3]) / 2;
    all.stress[i] = sum / volume;
    close_to("virial", 1, &r->virial[i], &sum, 1e-4 * (1 + fabs(sum)));
  }
  return all;
}

static inline void refuse(opened *o, const clb_model_edges *e, const char *what) {
  static double energy, forces[3 * MAX_TOTAL];
  const clb_model_edge_results want = {.energy = &energy, .forces = forces};
  const clb_status s = clb_model_compute_edges(o->model, e, &want);
  if (s != CLB_ERROR_ARGUMENT || !strstr(clb_error(o->ctx), what))
    fail_msg("status %d, not \"%s\": %s", s, what, clb_error(o->ctx));
}

#endif
