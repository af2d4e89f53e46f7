/* models/batch.c - clb_model_compute_many: structures as one graph without edges between them. */
#include "models/model_state.h"
#include "src/base/reserve.h"
#include "src/base/sizes.h"

#include <stdlib.h>
#include <string.h>

#define FAIL(m, s, ...) clb_fail(&(m)->ctx->error, s, __VA_ARGS__)

/* Structures first ... first + n - 1 of all, one after the other in arrays. */
typedef struct {
  const clb_model_atoms *atoms;
  const clb_model_results *results;
  int64_t first, n, n_atoms, n_edges, edge_capacity;
  bool forces, stress;                  /* wanted for some structure */
  int32_t *species, *sender, *receiver; /* [n_atoms], [n_edges], [n_edges] */
  double *vectors;                      /* [n_edges][3] */
  double *e_atom, *force, *v_atom;      /* [n_atoms], [n_atoms][3], [n_atoms][9] */
  clb_neighbours list;                  /* of one structure */
} batch;

static clb_status no_memory(clb_model *m) {
  return FAIL(m, CLB_ERROR_MEMORY, "clb_model_compute_many: no memory");
}

static void free_arrays(batch *b) {
  void *const all[] = {b->species, b->sender, b->receiver, b->vectors,
                       b->e_atom,  b->force,  b->v_atom};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  b->species = b->sender = b->receiver = NULL;
  b->vectors = b->e_atom = b->force = b->v_atom = NULL;
  b->n_edges = b->edge_capacity = 0;
}

/* Takes the next structures, one at least, of `most` atoms together. */
static void take_structures(batch *b, int64_t n, int64_t most) {
  b->n = b->n_atoms = 0;
  b->forces = b->stress = false;
  while (b->first + b->n < n) {
    const clb_model_results *r = &b->results[b->first + b->n];
    const int64_t atoms = b->atoms[b->first + b->n].n;
    if (b->n && b->n_atoms + atoms > most) break;
    b->n_atoms += atoms;
    b->forces |= r->forces != NULL;
    b->stress |= r->stress != NULL;
    b->n++;
  }
}

static clb_status reserve_atoms(clb_model *m, batch *b) {
  const size_t n = (size_t)b->n_atoms + 1;
  b->species = malloc(n * sizeof *b->species);
  b->e_atom = malloc(n * sizeof *b->e_atom);
  if (b->forces) b->force = malloc(3 * n * sizeof *b->force);
  if (b->stress) b->v_atom = malloc(9 * n * sizeof *b->v_atom);
  const bool good =
      b->species && b->e_atom && (b->force || !b->forces) && (b->v_atom || !b->stress);
  return good ? CLB_OK : no_memory(m);
}

static clb_status reserve_edges(clb_model *m, batch *b, int64_t n) {
  int64_t room[] = {b->edge_capacity, b->edge_capacity, b->edge_capacity}; /* which grow alike */
  if (!clb_reserve(&b->sender, &room[0], n, sizeof *b->sender) ||
      !clb_reserve(&b->receiver, &room[1], n, sizeof *b->receiver) ||
      !clb_reserve(&b->vectors, &room[2], n, 3 * sizeof *b->vectors))
    return no_memory(m);
  b->edge_capacity = room[2];
  return CLB_OK;
}

/* Appends the edges of a structure whose atoms begin at number `at`. */
static clb_status add_edges(clb_model *m, batch *b, const clb_model_atoms *a, int64_t at) {
  const bool periodic[3] = {a->periodic[0] != 0, a->periodic[1] != 0, a->periodic[2] != 0};
  clb_neighbours *list = &b->list;
  clb_status s = clb_neighbours_update(list, a->n, a->positions, a->cell, periodic, NULL);
  if (s) return FAIL(m, s, "clb_model_compute: %s", list->error);
  s = clb_edges_check_places(&m->ctx->error, list, a->positions);
  if (!s) s = reserve_edges(m, b, b->n_edges + list->n_edges);
  if (s) return s;
  for (int64_t e = 0; e < list->n_edges; e++) {
    b->sender[b->n_edges + e] = (int32_t)at + list->senders[e];
    b->receiver[b->n_edges + e] = (int32_t)at + list->receivers[e];
  }
  clb_neighbours_vectors(list, a->positions, b->vectors + 3 * b->n_edges);
  b->n_edges += list->n_edges;
  return CLB_OK;
}

/* Says of which structure a message is. */
static clb_status of_structure(clb_model *m, clb_status s, int64_t number) {
  const clb_text *text = &m->ctx->error.text;
  return s ? FAIL(m, s, "clb_model_compute_many: structure %lld: %s", (long long)number,
                  text->s ? text->s : "no memory")
           : s;
}

static clb_status find_edges(clb_model *m, batch *b) {
  clb_status s = CLB_OK;
  int64_t at = 0;
  for (int64_t i = b->first; i < b->first + b->n && !s; i++) {
    const clb_model_atoms *a = &b->atoms[i];
    if (a->n) memcpy(b->species + at, a->species, (size_t)a->n * sizeof *a->species);
    s = of_structure(m, add_edges(m, b, a, at), i);
    at += a->n;
  }
  return s;
}

static void hand_out(const batch *b) {
  int64_t at = 0;
  for (int64_t i = b->first; i < b->first + b->n; i++) {
    const clb_model_atoms *a = &b->atoms[i];
    const clb_model_results *r = &b->results[i];
    double energy = 0, virial[9] = {0};
    for (int64_t j = at; j < at + a->n; j++) {
      energy += b->e_atom[j];
      for (int k = 0; k < 9 && r->stress; k++) virial[k] += b->v_atom[9 * j + k];
    }
    if (r->energy) *r->energy = energy;
    if (r->e_atom) memcpy(r->e_atom, b->e_atom + at, (size_t)a->n * sizeof *r->e_atom);
    if (r->forces) memcpy(r->forces, b->force + 3 * at, 3 * (size_t)a->n * sizeof *r->forces);
    for (int k = 0; k < 9 && r->stress; k++)
      r->stress[k] = (virial[k] + virial[k % 3 * 3 + k / 3]) / 2 / clb_cell_volume(a->cell);
    at += a->n;
  }
}

static clb_status compute_batch(clb_model *m, batch *b) {
  clb_status s = reserve_atoms(m, b);
  if (!s) s = find_edges(m, b);
  if (!s)
    s = clb_model_compute_edges(
        m,
        &(clb_model_edges){.n_local = b->n_atoms,
                           .n_total = b->n_atoms,
                           .n_edges = b->n_edges,
                           .species = b->species,
                           .senders = {.host = b->sender},
                           .receivers = {.host = b->receiver},
                           .vectors = b->vectors},
        &(clb_model_edge_results){.e_atom = b->e_atom, .forces = b->force, .v_atom = b->v_atom});
  if (!s) hand_out(b);
  free_arrays(b);
  return s;
}

/* With half as many atoms where memory does not suffice. */
static clb_status compute_all(clb_model *m, batch *b, int64_t n) {
  int64_t most = m->batch_atoms;
  clb_status s = CLB_OK;
  while (b->first < n && !s) {
    take_structures(b, n, most);
    s = compute_batch(m, b);
    if (s == CLB_ERROR_MEMORY && b->n > 1) s = CLB_OK, most = b->n_atoms / 2;
    else b->first += b->n;
  }
  return s;
}

static clb_status check_species(clb_model *m, const clb_model_atoms *a) {
  for (int64_t i = 0; i < a->n; i++)
    if (a->species[i] < 0 || a->species[i] >= m->net.n_species)
      return FAIL(m, CLB_ERROR_ARGUMENT, "species[%lld] is %d; it must be 0 ... %d", (long long)i,
                  a->species[i], m->net.n_species - 1);
  return CLB_OK;
}

clb_status clb_model_compute_many_sized(clb_model *m, int64_t n, const clb_model_atoms *atoms,
                                        const clb_model_results *results, size_t atoms_size,
                                        size_t results_size) {
  clb_status s = CLB_OK;
  if (!m) return clb_null(__func__, "model");
  if (n < 0) return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model_compute_many: n is %lld", (long long)n);
  if (n && (!atoms || !results))
    return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model_compute_many: %s is NULL",
                atoms ? "results" : "atoms");
  clb_error_sink *e = &m->ctx->error;
  clb_model_atoms *a = calloc((size_t)n + 1, sizeof *a);
  clb_model_results *r = calloc((size_t)n + 1, sizeof *r);
  if (!a || !r) s = no_memory(m);
  for (int64_t i = 0; i < n && !s; i++) {
    const char *from = (const char *)atoms + (size_t)i * atoms_size,
               *to = (const char *)results + (size_t)i * results_size;
    s = clb_take_struct(e, "clb_model_atoms", &a[i], sizeof *a, from, atoms_size);
    if (!s) s = clb_take_struct(e, "clb_model_results", &r[i], sizeof *r, to, results_size);
    if (!s) s = clb_model_check_atoms(m, &a[i], &r[i]);
    if (!s) s = check_species(m, &a[i]);
    s = of_structure(m, s, i);
  }
  batch b = {.atoms = a, .results = r, .list = {.cutoff = m->net.r_max}};
  if (!s) s = compute_all(m, &b, n);
  clb_neighbours_free(&b.list);
  free(a);
  free(r);
  return s;
}
