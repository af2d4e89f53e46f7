/* models/batch.c - clb_model_compute_many: structures as one graph without edges between them. */
#include "models/batch.h"
#include "models/dispersion/model_dispersion.h"
#include "src/base/reserve.h"
#include "src/base/sizes.h"

#include <stdlib.h>
#include <string.h>

#define FAIL(m, s, ...) clb_fail(&(m)->ctx->error, s, __VA_ARGS__)

typedef clb_structures batch;

static clb_status no_memory(clb_model *m) {
  return FAIL(m, CLB_ERROR_MEMORY, "clb_model_compute_many: no memory");
}

void clb_structures_free(batch *b) {
  void *const all[] = {b->species,  b->system,  b->positions, b->grid,  b->sender,
                       b->receiver, b->vectors, b->e_atom,    b->force, b->v_atom};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  b->species = b->system = b->sender = b->receiver = NULL;
  b->positions = b->vectors = b->e_atom = b->force = b->v_atom = NULL;
  b->grid = NULL;
  b->n_edges = b->edge_capacity = 0;
}

void clb_structures_take(batch *b, int64_t n, int64_t most) {
  b->n = b->n_atoms = 0;
  b->forces = b->stress = false;
  while (b->first + b->n < n) {
    const clb_model_results *r = &b->results[b->first + b->n];
    const int64_t atoms = b->atoms[b->first + b->n].n;
    if (b->n && b->n_atoms + atoms > most) break;
    b->n_atoms += atoms;
    b->forces |= r->forces != NULL;
    b->stress |= r->stress || r->v_atom;
    b->n++;
  }
}

static clb_status reserve_atoms(clb_model *m, batch *b) {
  const size_t n = (size_t)b->n_atoms + 1;
  b->species = malloc(n * sizeof *b->species);
  b->system = malloc(n * sizeof *b->system);
  b->positions = malloc(3 * n * sizeof *b->positions);
  b->grid = malloc(((size_t)b->n + 1) * sizeof *b->grid);
  b->e_atom = malloc(n * sizeof *b->e_atom);
  if (b->forces) b->force = malloc(3 * n * sizeof *b->force);
  if (b->stress) b->v_atom = malloc(9 * n * sizeof *b->v_atom);
  const bool good = b->species && b->system && b->positions && b->grid && b->e_atom &&
                    (b->force || !b->forces) && (b->v_atom || !b->stress);
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

/* Says of which structure a message is. */
static clb_status of_structure(clb_model *m, clb_status s, int64_t number) {
  const clb_text *text = &m->ctx->error.text;
  return s ? FAIL(m, s, "clb_model_compute_many: structure %lld: %s", (long long)number,
                  text->s ? text->s : "no memory")
           : s;
}

static clb_status lay_grid(clb_model *m, batch *b, const clb_model_atoms *a, clb_cell_grid *grid) {
  const bool periodic[3] = {a->periodic[0] != 0, a->periodic[1] != 0, a->periodic[2] != 0};
  bool rebuild;
  clb_neighbours_forget(&b->list);
  const clb_status s =
      clb_neighbours_begin(&b->list, a->n, a->positions, a->cell, periodic, &rebuild, grid);
  return s ? FAIL(m, s, "clb_model_compute: %s", b->list.error) : s;
}

/* Lists the atoms, and lays a grid for each structure. */
static clb_status list_atoms(clb_model *m, batch *b) {
  clb_status s = CLB_OK;
  int64_t at = 0;
  for (int64_t i = 0; i < b->n && !s; i++) {
    const clb_model_atoms *a = &b->atoms[b->first + i];
    if (a->n) memcpy(b->species + at, a->species, (size_t)a->n * sizeof *a->species);
    if (a->n) memcpy(b->positions + 3 * at, a->positions, 3 * (size_t)a->n * sizeof *a->positions);
    for (int64_t j = 0; j < a->n; j++) b->system[at + j] = (int32_t)i;
    s = of_structure(m, lay_grid(m, b, a, &b->grid[i]), b->first + i);
    at += a->n;
  }
  return s;
}

/* ---- edges that the host finds ---- */

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

static clb_status find_edges(clb_model *m, batch *b, clb_model_edges *found) {
  clb_status s = CLB_OK;
  int64_t at = 0;
  for (int64_t i = b->first; i < b->first + b->n && !s; i++) {
    s = of_structure(m, add_edges(m, b, &b->atoms[i], at), i);
    at += b->atoms[i].n;
  }
  *found = (clb_model_edges){.n_local = b->n_atoms,
                             .n_total = b->n_atoms,
                             .n_edges = b->n_edges,
                             .species = b->species,
                             .senders = {.host = b->sender},
                             .receivers = {.host = b->receiver},
                             .vectors = b->vectors};
  return s;
}

/* ---- a batch ---- */

/* The edges as the graph, and their vectors: by the device, unless it leaves them to the host. */
static clb_status set_edges(clb_model *m, batch *b, clb_model_edges *e) {
  clb_edge_list *l = &m->edges;
  const clb_edges_systems all = {.n = b->n,
                                 .n_atoms = b->n_atoms,
                                 .grid = b->grid,
                                 .system = b->system,
                                 .species = b->species,
                                 .positions = b->positions};
  clb_model_edges given;
  clb_status s = clb_edges_of_many(l, &all, e);
  const bool device = l->source == CLB_EDGES_MANY;
  if (!s && device && clb_model_repeats(m, e)) clb_edges_pad(l, e);
  if (!s && !device) s = find_edges(m, b, &given);
  if (!s && !device) s = clb_edges_of_caller(l, &given, e);
  if (!s) s = clb_model_set_states(m, b->n, b->atoms + b->first);
  if (!s) s = clb_model_set_graph(m, e);
  if (!s && device)
    s = clb_edges_vectors(l, m->net.whole, NULL, clb_all_values(&m->net, CLB_VECTORS), e);
  if (!s)
    s = clb_model_place_dispersion(m, b->n, b->atoms + b->first, b->n_atoms, b->system,
                                   b->positions);
  return s;
}

void clb_structures_hand_out(const batch *b) {
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
    clb_model_symmetrise(1, virial);
    for (int k = 0; k < 9 && r->stress; k++) r->stress[k] = virial[k] / clb_cell_volume(a->cell);
    if (r->v_atom) {
      memcpy(r->v_atom, b->v_atom + 9 * at, 9 * (size_t)a->n * sizeof *r->v_atom);
      clb_model_symmetrise(a->n, r->v_atom);
    }
    at += a->n;
  }
}

clb_status clb_structures_set(clb_model *m, batch *b, clb_model_edges *e) {
  clb_status s = reserve_atoms(m, b);
  if (!s) s = list_atoms(m, b);
  return s ? s : set_edges(m, b, e);
}

static clb_status compute_batch(clb_model *m, batch *b) {
  clb_model_edges e;
  clb_status s = clb_structures_set(m, b, &e);
  if (!s)
    s = clb_model_evaluate(
        m, &e,
        &(clb_model_edge_results){.e_atom = b->e_atom, .forces = b->force, .v_atom = b->v_atom});
  clb_edges_forget(&m->edges);
  if (!s) clb_structures_hand_out(b);
  clb_structures_free(b);
  return s;
}

/* With half as many atoms where memory does not suffice. */
static clb_status compute_all(clb_model *m, batch *b, int64_t n) {
  int64_t most = m->batch_atoms;
  clb_status s = CLB_OK;
  while (b->first < n && !s) {
    clb_structures_take(b, n, most);
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

clb_status clb_structures_check(clb_model *m, int64_t n, const clb_model_atoms *atoms,
                                const clb_model_results *results) {
  clb_status s = CLB_OK;
  for (int64_t i = 0; i < n && !s; i++) {
    s = clb_model_check_atoms(m, &atoms[i], &results[i]);
    if (!s) s = check_species(m, &atoms[i]);
    s = of_structure(m, s, i);
  }
  return s;
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
    s = of_structure(m, s, i);
  }
  if (!s) s = clb_structures_check(m, n, a, r);
  batch b = {.atoms = a, .results = r, .list = {.cutoff = m->net.r_max}};
  if (!s) s = compute_all(m, &b, n);
  clb_neighbours_free(&b.list);
  free(a);
  free(r);
  return s;
}
