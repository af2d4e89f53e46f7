/* models/edges/edge_list.c - edges of any source: what a call does with them. */
#include "models/edges/edge_list.h"

#include <stdlib.h>

#include "kernels/layers/host/layers.h"
#include "src/base/reserve.h"

#define FAIL(l, s, ...) clb_fail(&(l)->ctx->error, s, __VA_ARGS__)

clb_status clb_edges_create(clb_edge_list *l, clb_context *ctx, clb_dtype type) {
  l->ctx = ctx;
  return ctx->device->limits.f64 ? clb_edge_vectors_create(ctx, type, false, &l->make_vectors)
                                 : CLB_OK;
}

void clb_edges_free(clb_edge_list *l) {
  clb_op_destroy(&l->make_vectors);
  clb_op_destroy(&l->make_vectors_many);
  clb_edges_leave_room(l);
  clb_cell_list_destroy(&l->search);
  clb_cell_list_destroy(&l->search_many);
  clb_buffer_destroy(&l->positions);
  clb_buffer_destroy(&l->shifts);
  clb_neighbours_free(&l->between);
  clb_known_edges_free(&l->known);
  clb_caller_atoms_free(&l->atoms);
  clb_caller_pairs_free(&l->pairs);
  free(l->vectors);
}

void clb_edges_forget(clb_edge_list *l) {
  l->source = CLB_EDGES_NONE;
  clb_edges_leave_room(l);
  clb_neighbours_forget(&l->between);
}

clb_status clb_edges_check_same(clb_edge_list *l, const clb_model_edges *e) {
  const bool kind = clb_edges_are_pairs(e) ? l->source >= CLB_EDGES_PAIRS
                                           : l->source == CLB_EDGES_GIVEN,
             same = kind && l->exchanged == !!e->exchange && l->searched == !!e->search &&
                    l->n_given == e->n_edges && l->n_local == e->n_local &&
                    l->n_total == e->n_total;
  return same ? CLB_OK
              : FAIL(l, CLB_ERROR_ARGUMENT,
                     "clb_model: same_graph is %d; the counts differ from those of the last call, "
                     "or that call failed or was not of edges like these",
                     e->same_graph);
}

static void given(clb_edge_list *l, const clb_model_edges *e) {
  l->n_given = e->n_edges, l->n_local = e->n_local, l->n_total = e->n_total;
  l->exchanged = e->exchange, l->searched = e->search;
}

clb_status clb_edges_of_caller(clb_edge_list *l, const clb_model_edges *e, clb_model_edges *found) {
  clb_neighbours_forget(&l->between);
  clb_edges_leave_room(l);
  given(l, e);
  if (e->search) return clb_edges_of_locals(l, e, found);
  if (clb_edges_are_pairs(e)) return clb_edges_among_pairs(l, e, found);
  l->source = CLB_EDGES_GIVEN;
  l->same = e->same_graph;
  *found = *e;
  return CLB_OK;
}

/* 0 where the edges of a skin take more time than a search: a third more edges of every layer at
   0.5 Angstrom, and half of that at 0.25, against the launches of a search, for which small systems
   wait on GPUs; and where it is not in room, against a wait of the host, too. */
static double best_skin(const clb_edge_list *l, const clb_model_atoms *a) {
  enum { MANY_WEIGHTS = 3 << 17, MANY_ATOMS = 800 };
  const bool closed = a->periodic[0] && a->periodic[1] && a->periodic[2],
             room = closed && a->n <= l->room.most_atoms,
             many = a->n >= MANY_ATOMS || (room && a->n * l->weights >= MANY_WEIGHTS);
  if (l->make_vectors && (l->ctx->device->limits.simd || many)) return 0;
  return room ? 0.25 : 0.5;
}

/* Whether to search, and in which grid. Those of open directions reach as far as the atoms do. */
static clb_status begin(clb_edge_list *l, const clb_model_atoms *a, const bool periodic[3],
                        bool *rebuild, clb_cell_grid *grid) {
  const bool open = !(periodic[0] && periodic[1] && periodic[2]);
  clb_neighbours *list = &l->between;
  const double *x = a->positions;
  if (!l->motion.positions)
    return clb_neighbours_begin(list, a->n, x, a->cell, periodic, rebuild, grid);
  clb_status s =
      clb_neighbours_begin_moved(list, a->n, l->motion.moved, a->cell, periodic, rebuild, grid);
  if (s || !*rebuild || !open) return s;
  s = clb_edges_host_positions(l, a->n, &x);
  return s ? s : clb_neighbours_begin(list, a->n, x, a->cell, periodic, rebuild, grid);
}

/* In the room that there is; else on the host or by its help, and then there may be room. */
static clb_status search(clb_edge_list *l, const clb_model_atoms *a, const bool periodic[3],
                         const clb_cell_grid *grid) {
  clb_edge_room *r = &l->room;
  const bool closed = periodic[0] && periodic[1] && periodic[2],
             fills = r->found >= r->n_edges / 2 || r->n_edges < 1024;
  bool fits = closed && r->n_edges && r->n_atoms == a->n && fills && clb_cell_grid_slots(grid);
  clb_status s = fits ? clb_edges_place(l, a, grid, &fits) : CLB_OK;
  if (s || fits) return r->due = fits, s;
  clb_edges_leave_room(l);
  s = clb_edges_search(l, a, periodic, grid);
  if (!s && closed && l->source == CLB_EDGES_DEVICE && a->n <= r->most_atoms)
    clb_edges_make_room(l, a->n, l->between.n_edges);
  return s;
}

clb_status clb_edges_of_atoms(clb_edge_list *l, const clb_model_atoms *a, clb_model_edges *found) {
  const bool periodic[3] = {a->periodic[0] != 0, a->periodic[1] != 0, a->periodic[2] != 0};
  clb_neighbours *list = &l->between;
  clb_cell_grid grid;
  bool rebuild;
  if (l->auto_skin) list->skin = best_skin(l, a);
  clb_status s = begin(l, a, periodic, &rebuild, &grid);
  if (s) return FAIL(l, s, "clb_model_compute: %s", list->error);
  if (rebuild) s = search(l, a, periodic, &grid);
  if (s) return s;
  const clb_edge_room *room = &l->room;
  *found = (clb_model_edges){.n_local = a->n,
                             .n_total = a->n,
                             .n_edges = room->n_edges ? room->n_edges : list->n_edges,
                             .species = a->species,
                             .senders = {.host = list->senders},
                             .receivers = {.host = list->receivers}};
  given(l, found);
  l->same = !rebuild || room->due;
  l->rebuilds += rebuild;
  return CLB_OK;
}

clb_status clb_edges_of_many(clb_edge_list *l, const clb_edges_systems *all,
                             clb_model_edges *found) {
  int64_t n_edges;
  clb_neighbours_forget(&l->between);
  clb_edges_leave_room(l);
  const clb_status s = clb_edges_search_many(l, all, &n_edges);
  if (s || l->source == CLB_EDGES_NONE) return s;
  *found = (clb_model_edges){.n_local = all->n_atoms,
                             .n_total = all->n_atoms,
                             .n_edges = n_edges,
                             .species = all->species};
  given(l, found);
  l->found_many = n_edges;
  l->same = false;
  return CLB_OK;
}

static clb_status write(clb_edge_list *l, const clb_model_edges *e, clb_graph *graph) {
  if (l->source == CLB_EDGES_DEVICE || l->source == CLB_EDGES_MANY)
    return clb_edges_write_counted(l, graph);
  if (l->source == CLB_EDGES_LOCAL) return clb_edges_write_local(l, e, graph);
  const clb_status s = clb_graph_update(graph, e->n_total, e->n_local, e->n_edges, CLB_I32,
                                        e->senders, e->receivers);
  return !s && l->source == CLB_EDGES_HOST && l->make_vectors ? clb_edges_write_shifts(l) : s;
}

clb_status clb_edges_write(clb_edge_list *l, const clb_model_edges *e, clb_graph *graph) {
  enum { MOST_ATOMS = 20000 }; /* fewer launches make up for the wait */
  const clb_status s = write(l, e, graph);
  return s || e->n_total > MOST_ATOMS ? s : clb_graph_find_splits(graph, l->room.n_edges);
}

/* ---- vectors ---- */

static clb_status vectors_on_host(clb_edge_list *l, const double *positions,
                                  clb_model_edges *found) {
  const clb_neighbours *list = &l->between;
  const clb_status s = clb_edges_host_positions(l, list->n, &positions);
  if (s) return s;
  if (!clb_reserve(&l->vectors, &l->vectors_capacity, list->n_edges, 3 * sizeof *l->vectors))
    return FAIL(l, CLB_ERROR_MEMORY, "clb_model_compute: no memory");
  clb_neighbours_vectors(list, positions, l->vectors);
  found->vectors = l->vectors;
  return CLB_OK;
}

static clb_status vectors_on_device(clb_edge_list *l, clb_graph *graph, const double *positions,
                                    clb_rows vectors) {
  const bool placed = l->room.due || (l->source == CLB_EDGES_DEVICE && !l->same),
             many = l->source == CLB_EDGES_MANY, moves = l->motion.positions,
             there = many || moves || placed; /* from the search */
  clb_buffer *places = moves ? l->motion.positions : l->positions;
  clb_status s = there ? CLB_OK : clb_edges_put_positions(l, l->n_local, positions);
  if (!s && l->room.due) s = clb_edges_find(l, graph);
  clb_edge_cells cells = {.cell = (const double(*)[3])l->between.cell,
                          .far = 1.25 * (l->between.cutoff + l->between.skin)};
  if (many)
    cells = (clb_edge_cells){.table = clb_cell_list_grids(l->search_many),
                             .system = clb_cell_list_systems(l->search_many),
                             .row = CLB_CELL_NUMBERS,
                             .far = cells.far};
  return s ? s
           : clb_edge_vectors_run(many ? l->make_vectors_many : l->make_vectors, graph,
                                  (clb_rows){places, 0, CLB_DENSE, NULL},
                                  (clb_rows){l->shifts, 0, CLB_DENSE, NULL}, &cells, vectors);
}

/* Their places are on the device. */
static clb_status vectors_of_locals(clb_edge_list *l, const clb_graph *graph, clb_rows vectors) {
  static const double open[3][3];
  const clb_caller_atoms *a = &l->atoms;
  const clb_edge_cells none = {.cell = open};
  return clb_edge_vectors_from(l->make_vectors, graph, &a->senders->memory,
                               (clb_rows){a->positions, 0, CLB_DENSE, NULL},
                               (clb_rows){l->shifts, 0, CLB_DENSE, NULL}, &none, vectors);
}

clb_status clb_edges_vectors(clb_edge_list *l, clb_graph *graph, const double *positions,
                             clb_rows vectors, clb_model_edges *found) {
  if (l->source == CLB_EDGES_LOCAL) return vectors_of_locals(l, graph, vectors);
  return l->source == CLB_EDGES_HOST ? vectors_on_host(l, positions, found)
                                     : vectors_on_device(l, graph, positions, vectors);
}
