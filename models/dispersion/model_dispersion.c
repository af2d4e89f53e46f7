/* models/dispersion/model_dispersion.c - the dispersion that is added to a model's results. */
#include "models/dispersion/model_dispersion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/dispersion/d3.h"
#include "src/base/reserve.h"

#define FAIL(m, s, ...) clb_fail(&(m)->ctx->error, s, __VA_ARGS__)

enum { FINENESS = 5 }; /* bins of the radius, of columns' sides */

struct clb_model_dispersion {
  clb_dispersion *d3;
  clb_neighbours list; /* for its grids alone */
  clb_cell_grid grid;  /* of one structure */
  bool laid;           /* it is for n atoms, cell and flags of the list */
  int64_t n;
  bool set; /* elements are, of the species that occur */
  bool occurs[CLB_ELEMENTS];
  /* Of all processes: numbers, positions after them, and what is on the device. */
  double *all;
  int64_t capacity;
  int32_t *all_species;
  int64_t species_capacity;
  clb_buffer *positions, *species;
  const clb_model_exchange *exchange; /* in a call */
};

/* ---- create ---- */

static clb_status read_options(clb_context *ctx, const clb_model_options *o,
                               clb_dispersion_damping *d) {
  const double pairs = o->d3_cutoff != 0 ? o->d3_cutoff : 60 * CLB_D3_BOHR,
               counts =
                   o->d3_count_cutoff != 0 ? o->d3_count_cutoff : fmin(40 * CLB_D3_BOHR, pairs);
  *d = (clb_dispersion_damping){.radius = pairs, .count_radius = counts};
  if (!(isfinite(pairs) && counts > 0 && counts <= pairs))
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_model_open: d3_cutoff is %g and d3_count_cutoff %g Angstrom; they must be "
                    "above 0, and the latter no longer than the former",
                    pairs, counts);
  if (o->trains)
    return clb_fail(&ctx->error, CLB_ERROR_UNSUPPORTED,
                    "clb_model_open: d3 is '%s'; a model that trains has no dispersion", o->d3);
  if (!ctx->device->limits.f64)
    return clb_fail(&ctx->error, CLB_ERROR_UNSUPPORTED,
                    "clb_model_open: d3 is '%s'; dispersion needs double precision, which %s does "
                    "not have",
                    o->d3, ctx->device->info.name);
  return clb_d3_damping(&ctx->error, o->d3, d);
}

clb_status clb_model_check_dispersion(clb_context *ctx, const clb_model_options *o) {
  clb_dispersion_damping d;
  return o->d3 ? read_options(ctx, o, &d) : CLB_OK;
}

clb_status clb_model_create_dispersion(clb_model *m) {
  clb_dispersion_damping d;
  if (!m->options.d3) return CLB_OK;
  const clb_status s = read_options(m->ctx, &m->options, &d);
  m->options.d3 = NULL; /* the caller's */
  if (s) return s;
  clb_model_dispersion *y = m->dispersion = calloc(1, sizeof *y);
  if (!y) return FAIL(m, CLB_ERROR_MEMORY, "clb_model_open: no memory");
  y->list = (clb_neighbours){.cutoff = d.radius, .fineness = FINENESS};
  return clb_dispersion_create(m->ctx, m->type, &d, &y->d3);
}

void clb_model_free_dispersion(clb_model *m) {
  clb_model_dispersion *y = m->dispersion;
  if (!y) return;
  clb_dispersion_destroy(&y->d3);
  clb_neighbours_free(&y->list);
  clb_buffer_destroy(&y->positions);
  clb_buffer_destroy(&y->species);
  free(y->all);
  free(y->all_species);
  free(y);
  m->dispersion = NULL;
}

/* The species that occur, unless they are those of the last call. */
static clb_status set_elements(clb_model *m, const bool *occurs) {
  clb_model_dispersion *y = m->dispersion;
  if (y->set && !memcmp(y->occurs, occurs, sizeof y->occurs)) return CLB_OK;
  const clb_status s =
      clb_d3_set_elements(m->ctx, y->d3, m->net.n_species, m->net.atomic_number, occurs);
  y->set = !s;
  memcpy(y->occurs, occurs, sizeof y->occurs);
  return s;
}

/* ---- grids ---- */

/* The grid of a structure. Where all directions are periodic it needs no positions. */
static clb_status lay(clb_model *m, const clb_model_atoms *a, const double *x,
                      clb_cell_grid *grid) {
  clb_neighbours *l = &m->dispersion->list;
  const bool periodic[3] = {a->periodic[0] != 0, a->periodic[1] != 0, a->periodic[2] != 0};
  bool rebuild;
  clb_neighbours_forget(l);
  const clb_status s =
      x ? clb_neighbours_begin(l, a->n, x, a->cell, periodic, &rebuild, grid)
        : clb_neighbours_begin_moved(l, a->n, true, a->cell, periodic, &rebuild, grid);
  return s ? FAIL(m, s, "clb_model_compute: d3: %s", l->error) : CLB_OK;
}

static bool is_same(const clb_model_dispersion *y, const clb_model_atoms *a) {
  bool same = y->laid && y->n == a->n;
  for (int d = 0; d < 3; d++) {
    same = same && y->list.periodic[d] == (a->periodic[d] != 0);
    for (int k = 0; k < 3 && same && a->periodic[d]; k++)
      same = y->list.cell[d][k] == a->cell[3 * d + k];
  }
  return same;
}

/* Atoms that leave the range of a grid's open directions are found as well, if not as fast: one is
   made anew only where positions are at hand. */
static clb_status lay_one(clb_model *m, const clb_model_atoms *a, const double *positions,
                          bool *changed) {
  clb_model_dispersion *y = m->dispersion;
  const bool open = !(a->periodic[0] && a->periodic[1] && a->periodic[2]);
  const double *x = open ? positions : NULL;
  clb_cell_grid grid;
  *changed = false;
  if (is_same(y, a) && !x) return CLB_OK;
  y->laid = false;
  clb_status s = open && !x ? clb_edges_host_positions(&m->edges, a->n, &x) : CLB_OK;
  if (!s) s = lay(m, a, x, &grid);
  if (s) return s;
  *changed = y->n != a->n || memcmp(&grid, &y->grid, sizeof grid);
  y->grid = grid;
  y->n = a->n;
  y->laid = true;
  return CLB_OK;
}

static clb_status no_memory(clb_model *m) {
  return FAIL(m, CLB_ERROR_MEMORY, "clb_model_compute: no memory for dispersion");
}

static clb_status place_one(clb_model *m, const clb_model_atoms *a, clb_dispersion_atoms *to,
                            const double *positions) {
  bool changed;
  clb_status s = lay_one(m, a, positions, &changed);
  int32_t *system = !s && changed ? calloc((size_t)a->n + 1, sizeof *system) : NULL;
  if (!s && changed && !system) s = no_memory(m);
  to->grids = changed ? &m->dispersion->grid : NULL;
  to->system = system;
  if (!s) s = clb_dispersion_place(m->dispersion->d3, to);
  if (s) m->dispersion->laid = false, m->dispersion->n = 0;
  free(system);
  return s;
}

static clb_status place_many(clb_model *m, const clb_model_atoms *a, clb_dispersion_atoms *to,
                             const int32_t *system, const double *positions) {
  clb_cell_grid *grids = calloc((size_t)to->n_systems + 1, sizeof *grids);
  clb_status s = grids ? CLB_OK : no_memory(m);
  m->dispersion->laid = false;
  m->dispersion->n = 0;
  for (int64_t i = 0; i < to->n_systems && !s; positions += 3 * a[i++].n)
    if (a[i].n) s = lay(m, &a[i], positions, &grids[i]);
  to->grids = grids;
  to->system = system;
  if (!s) s = clb_dispersion_place(m->dispersion->d3, to);
  free(grids);
  return s;
}

/* ---- atoms ---- */

clb_status clb_model_place_dispersion(clb_model *m, int64_t n_structures,
                                      const clb_model_atoms *structures, int64_t n,
                                      const int32_t *system, const double *positions) {
  clb_edge_list *l = &m->edges;
  if (!m->dispersion) return CLB_OK;
  const bool there = l->motion.positions || l->source == CLB_EDGES_SHIFTS ||
                     l->source == CLB_EDGES_DEVICE || l->source == CLB_EDGES_MANY;
  clb_status s = set_elements(m, m->occurs);
  if (!s && !there) s = clb_edges_put_positions(l, n, positions);
  if (s) return s;
  clb_dispersion_atoms to = {.n = n,
                             .n_systems = n_structures,
                             .positions = l->motion.positions ? l->motion.positions : l->positions,
                             .species = m->species_of,
                             .rows = n};
  return system ? place_many(m, structures, &to, system, positions)
                : place_one(m, structures, &to, positions);
}

/* ---- atoms of all processes ---- */

/* Of clb_dispersion_atoms. */
static clb_status gather(void *user, int64_t columns, const double *from, double *to) {
  clb_model *m = user;
  const clb_model_exchange *x = m->dispersion->exchange;
  const double start = clb_seconds_now();
  const clb_status s = x->gather(x->user, columns, from, to);
  m->net.exchanging += clb_seconds_now() - start;
  return s ? FAIL(m, s, "clb_model_compute_edges: exchange.gather failed") : CLB_OK;
}

static clb_status gather_species(clb_model *m, const clb_model_edges *e) {
  clb_model_dispersion *y = m->dispersion;
  const int64_t n = e->exchange->n_all;
  bool occurs[CLB_ELEMENTS] = {false};
  double *own = y->all + 3 * n;
  for (int64_t i = 0; i < e->n_local; i++) own[i] = e->species[i];
  clb_status s = clb_reserve(&y->all_species, &y->species_capacity, n + 1, sizeof *y->all_species)
                     ? gather(m, 1, own, y->all)
                     : no_memory(m);
  for (int64_t i = 0; i < n && !s; i++) {
    if (!(y->all[i] >= 0 && y->all[i] < m->net.n_species))
      s = FAIL(m, CLB_ERROR_ARGUMENT,
               "clb_model_compute_edges: exchange.gather gave species %g of atom %lld of all; it "
               "must be 0 ... %d",
               y->all[i], (long long)i, m->net.n_species - 1);
    else occurs[y->all_species[i] = (int32_t)y->all[i]] = true;
  }
  if (!s) s = set_elements(m, occurs);
  if (!s) s = clb_edges_reserve(m->ctx, &y->species, n, sizeof *y->all_species);
  if (!s && n)
    s = clb_staged_write(y->species, 0, y->all_species, (uint64_t)n * sizeof *y->all_species);
  return s;
}

clb_status clb_model_place_all(clb_model *m, const clb_model_edges *e, const double *positions) {
  clb_model_dispersion *y = m->dispersion;
  const int64_t n = e->exchange->n_all;
  const uint64_t row = 3 * sizeof *y->all;
  y->exchange = e->exchange;
  clb_status s =
      clb_reserve(&y->all, &y->capacity, 4 * n + 1, sizeof *y->all) ? CLB_OK : no_memory(m);
  if (!s && !e->same_graph) s = gather_species(m, e);
  if (!s) s = gather(m, 3, positions, y->all);
  if (!s) s = clb_edges_reserve(m->ctx, &y->positions, n, row);
  if (!s && n) s = clb_staged_write(y->positions, 0, y->all, (uint64_t)n * row);
  if (s) return s;
  const clb_model_atoms a = {
      .n = n, .cell = e->cell, .periodic = {e->periodic[0], e->periodic[1], e->periodic[2]}};
  clb_dispersion_atoms to = {.n = n,
                             .n_systems = 1,
                             .positions = y->positions,
                             .species = y->species,
                             .first = e->exchange->first,
                             .rows = e->n_local,
                             .gather = gather,
                             .user = m};
  return place_one(m, &a, &to, y->all);
}

/* ---- results ---- */

clb_status clb_model_add_dispersion(clb_model *m, const clb_model_edge_results *r) {
  static const clb_rows none;
  if (!m->dispersion) return CLB_OK;
  const clb_result_offsets at = clb_model_result_offsets(m);
  const clb_dispersion_results to = {
      .energy = clb_model_result(m, at.energy),
      .virial = r->virial ? clb_model_result(m, at.virial) : none,
      .energies = clb_model_result(m, at.e_atom),
      .forces = r->forces ? clb_model_result(m, at.forces) : none,
      .virials = r->v_atom ? (clb_rows){m->v_atom, 0, CLB_DENSE, NULL} : none};
  return clb_dispersion_add(m->dispersion->d3, &to);
}
