/* models/edges/search.c - a search for the edges between atoms: on the device if it can, else on
   the host. */
#include "models/edges/edge_list.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/layers/host/layers.h"

#define FAIL(l, s, ...) clb_fail(&(l)->ctx->error, s, __VA_ARGS__)

clb_status clb_edges_check_places(clb_error_sink *error, const clb_neighbours *list,
                                  const double *positions) {
  static const double nearest = 1e-3; /* the precision of files */
  for (int64_t e = 0; e < list->n_edges; e++) {
    double v[3];
    clb_neighbours_vector(list, positions, e, v);
    const double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    if (square < nearest * nearest)
      return clb_fail(error, CLB_ERROR_ARGUMENT,
                      "clb_model_compute: positions[%d] and positions[%d] are one place, %g "
                      "Angstrom apart; they must be %g apart or more",
                      (int)list->receivers[e], (int)list->senders[e], sqrt(square), nearest);
  }
  return CLB_OK;
}

clb_status clb_edges_reserve(clb_context *ctx, clb_buffer **buffer, int64_t n, uint64_t bytes) {
  if (*buffer && (*buffer)->memory.bytes >= (uint64_t)n * bytes) return CLB_OK;
  const clb_status s = clb_wait(ctx);
  if (s) return s;
  clb_buffer_destroy(buffer);
  return clb_buffer_create(ctx, (uint64_t)(n ? clb_with_headroom(n) : 1) * bytes, buffer);
}

clb_status clb_edges_put_positions(clb_edge_list *l, int64_t n, const double *positions) {
  const uint64_t row = 3 * sizeof *positions;
  const double start = clb_seconds_now();
  clb_status s = clb_edges_reserve(l->ctx, &l->positions, n, row);
  if (!s && n) s = clb_posted_write(l->positions, 0, positions, (uint64_t)n * row);
  l->copying += clb_seconds_now() - start;
  return s;
}

/* Counts edges on the device; -1: it leaves them to the host, as devices without f64 do. */
static clb_status count(clb_edge_list *l, const clb_model_atoms *a, const clb_cell_grid *grid,
                        int64_t *n_edges) {
  const double radius = l->between.cutoff + l->between.skin;
  clb_status s = CLB_OK;
  *n_edges = -1;
  if (!l->make_vectors || !clb_cell_grid_slots(grid)) return CLB_OK;
  const clb_buffer *places = l->motion.positions;
  if (!l->search) s = clb_cell_list_create(l->ctx, CLB_CELL_ONE, &l->search);
  if (!s && !places) s = clb_edges_put_positions(l, a->n, a->positions);
  return s ? s
           : clb_cell_list_count(l->search, grid, radius, a->n, places ? places : l->positions,
                                 n_edges);
}

clb_status clb_edges_search(clb_edge_list *l, const clb_model_atoms *a, const bool periodic[3],
                            const clb_cell_grid *grid) {
  clb_neighbours *list = &l->between;
  int64_t n_edges;
  const clb_status counted = count(l, a, grid, &n_edges);
  if (counted && counted != CLB_ERROR_MEMORY) return counted;
  l->source = !counted && n_edges >= 0 ? CLB_EDGES_DEVICE : CLB_EDGES_HOST;
  const double *x = a->positions;
  clb_status s = CLB_OK;
  if (l->source == CLB_EDGES_DEVICE) s = clb_neighbours_set_count(list, x, n_edges);
  else {
    s = clb_edges_host_positions(l, a->n, &x);
    if (s) return s;
    s = clb_neighbours_update(list, a->n, x, a->cell, periodic, NULL);
  }
  if (counted) return counted;
  if (s) return FAIL(l, s, "clb_model_compute: %s", list->error);
  return l->source == CLB_EDGES_DEVICE ? CLB_OK : clb_edges_check_places(&l->ctx->error, list, x);
}

/* Of systems that were not known. */
static clb_status learn(clb_edge_list *l, const clb_edges_systems *all, int64_t n_edges) {
  int32_t *start = l->known.start;
  const clb_status s = clb_cell_list_read_starts(l->search_many, start);
  start[all->n_atoms] = (int32_t)n_edges;
  bool rise = !s && !start[0];
  for (int64_t i = 0; i < all->n_atoms && rise; i++) rise = start[i] <= start[i + 1];
  if (!s && !rise)
    return FAIL(l, CLB_ERROR_DRIVER,
                "%s counts %lld edges in a wrong order; kernels do not run "
                "rightly there",
                l->ctx->device->info.name, (long long)n_edges);
  if (!s) clb_known_edges_add(&l->known, all);
  return s;
}

static clb_status count_many(clb_edge_list *l, const clb_edges_systems *all, int64_t *n_edges) {
  const int64_t known = l->knows ? clb_known_edges_find(&l->known, all) : -1;
  const double radius = l->between.cutoff;
  clb_cell_list *search = l->search_many;
  bool fits;
  if (known == -2) return FAIL(l, CLB_ERROR_MEMORY, "clb_model_gradient: no memory");
  if (known < 0) {
    const clb_status s =
        clb_cell_list_count_many(search, all->n, all->grid, all->system, radius, all->n_atoms,
                                 l->positions, l->show_many, n_edges);
    return s || *n_edges < 0 || !l->knows ? s : learn(l, all, *n_edges);
  }
  clb_status s = clb_cell_list_take(search, all->n, all->grid, all->system, radius, all->n_atoms,
                                    l->positions, &fits);
  if (!s && fits) s = clb_cell_list_submit_count(search, l->show_many);
  *n_edges = !s && fits ? known : -1;
  return s;
}

clb_status clb_edges_search_many(clb_edge_list *l, const clb_edges_systems *all, int64_t *n_edges) {
  const clb_dtype type = l->make_vectors ? (clb_dtype)l->make_vectors->problem.storage : CLB_F64;
  clb_status s = CLB_OK;
  *n_edges = -1;
  l->source = CLB_EDGES_NONE;
  if (!l->make_vectors || !all->n_atoms || l->between.cutoff == 0) return CLB_OK;
  if (!l->search_many) s = clb_cell_list_create(l->ctx, CLB_CELL_MANY, &l->search_many);
  if (!s && !l->make_vectors_many)
    s = clb_edge_vectors_create(l->ctx, type, true, &l->make_vectors_many);
  if (!s) s = clb_edges_put_positions(l, all->n_atoms, all->positions);
  if (!s) s = count_many(l, all, n_edges);
  if (!s && *n_edges >= 0) l->source = CLB_EDGES_MANY;
  return s;
}

clb_status clb_edges_place(clb_edge_list *l, const clb_model_atoms *a, const clb_cell_grid *grid,
                           bool *fits) {
  const clb_buffer *places = l->motion.positions;
  clb_status s = places ? CLB_OK : clb_edges_put_positions(l, a->n, a->positions);
  if (!s)
    s = clb_cell_list_take(l->search, 1, grid, NULL, l->between.cutoff + l->between.skin, a->n,
                           places ? places : l->positions, fits);
  return s || !*fits ? s : clb_neighbours_set_count(&l->between, a->positions, l->room.found);
}

/* ---- what was found ---- */

clb_status clb_edges_write_counted(clb_edge_list *l, clb_graph *g) {
  const int64_t n = l->n_local;
  clb_status s = clb_edges_reserve(l->ctx, &l->shifts, l->n_given, sizeof(int32_t));
  if (!s) s = clb_graph_reserve(g, n, n, l->n_given);
  if (s || l->room.n_edges) return s ? s : clb_edges_find(l, g);
  s = clb_cell_list_fill(l->source == CLB_EDGES_MANY ? l->search_many : l->search, l->n_given,
                         &g->buffer[CLB_GRAPH_SENDERS].memory,
                         &g->buffer[CLB_GRAPH_RECEIVERS].memory, &l->shifts->memory, NULL);
  return s ? s : clb_graph_sort(g, n, n, l->n_given);
}

clb_status clb_edges_write_shifts(clb_edge_list *l) {
  const clb_neighbours *list = &l->between;
  const uint64_t bytes = (uint64_t)list->n_edges * sizeof(int32_t);
  clb_status s = clb_edges_reserve(l->ctx, &l->shifts, list->n_edges, sizeof(int32_t));
  int32_t *packed = s ? NULL : malloc(bytes + 1);
  if (!s && !packed) s = FAIL(l, CLB_ERROR_MEMORY, "clb_model_compute: no memory");
  bool fit = !s;
  for (int64_t e = 0; e < list->n_edges && fit; e++)
    fit = (packed[e] = clb_edge_shift(list->shifts + 3 * e)) >= 0;
  if (fit) l->source = CLB_EDGES_SHIFTS;
  if (fit && bytes) s = clb_buffer_write(l->shifts, 0, packed, bytes);
  free(packed);
  return s;
}
