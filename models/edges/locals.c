/* models/edges/locals.c - the edges that a caller's local atoms receive from local atoms and
   ghosts: found in every call among all atoms, on the device if it can, else on the host. There is
   nothing periodic, as ghosts are the images. */
#include "models/edges/edge_list.h"

#include <stdlib.h>

#define FAIL(l, s, ...) clb_fail(&(l)->ctx->error, s, __VA_ARGS__)

void clb_caller_atoms_free(clb_caller_atoms *a) {
  clb_cell_list_destroy(&a->search);
  clb_buffer_destroy(&a->rows);
  clb_buffer_destroy(&a->senders);
  clb_neighbours_free(&a->around);
  free(a->row);
  *a = (clb_caller_atoms){0};
}

/* ---- on the host ---- */

/* Pairs that a local atom receives, as if the caller had listed them. */
static clb_status take_pairs(clb_edge_list *l, const clb_model_edges *e) {
  const clb_neighbours *list = &l->atoms.around;
  clb_caller_pairs *p = &l->pairs;
  const clb_status s = clb_edges_reserve_pairs(l, list->n_edges, 0);
  int64_t n = 0;
  for (int64_t i = 0; i < list->n_edges && !s; i++)
    if (list->receivers[i] < e->n_local)
      p->sender[n] = list->senders[i], p->receiver[n++] = list->receivers[i];
  return s ? s : clb_edges_take_pairs(l, e, n, p->sender, p->receiver);
}

static clb_status find_on_host(clb_edge_list *l, const clb_model_edges *e, const double *positions,
                               clb_model_edges *found) {
  static const bool open[3];
  clb_neighbours *list = &l->atoms.around;
  clb_neighbours_forget(list);
  clb_status s = clb_neighbours_update(list, e->n_total, positions, NULL, open, NULL);
  if (s) return FAIL(l, s, "clb_model_compute_edges: %s", list->error);
  l->source = CLB_EDGES_PAIRS;
  s = take_pairs(l, e);
  if (!s) s = clb_edges_near_pairs(l, e, positions, found);
  l->same = false; /* the device may have found those before */
  return s;
}

/* ---- on the device ---- */

/* A grid for where atoms are now. It remains right when they move: those that leave it are in its
   outermost bins, in which neighbours are no further apart. */
static clb_status lay_grid(clb_edge_list *l, const clb_model_edges *e, const double *positions) {
  static const bool open[3];
  clb_neighbours *list = &l->atoms.around;
  bool rebuild;
  list->cutoff = l->between.cutoff;
  clb_neighbours_forget(list);
  const clb_status s =
      clb_neighbours_begin(list, e->n_total, positions, NULL, open, &rebuild, &l->atoms.grid);
  return s ? FAIL(l, s, "clb_model_compute_edges: %s", list->error) : CLB_OK;
}

static clb_status put_rows(clb_edge_list *l, const clb_model_edges *e) {
  clb_caller_atoms *a = &l->atoms;
  clb_status s = CLB_OK;
  if (!l->make_vectors || !e->n_total) return s;
  if (!a->search) s = clb_cell_list_create(l->ctx, CLB_CELL_GHOSTS, &a->search);
  if (!s) s = clb_edges_reserve(l->ctx, &a->rows, e->n_total, sizeof *a->row);
  if (!s) s = clb_buffer_write(a->rows, 0, a->row, (uint64_t)e->n_total * sizeof *a->row);
  if (!s) clb_cell_list_set_rows(a->search, a->rows, e->n_local);
  return s;
}

/* The number of edges; -1: the device leaves them to the host. */
static clb_status count(clb_edge_list *l, const clb_model_edges *e, const double *positions,
                        int64_t *n_edges) {
  clb_caller_atoms *a = &l->atoms;
  *n_edges = l->make_vectors && !e->n_local ? 0 : -1;
  if (!l->make_vectors || !e->n_local || !clb_cell_grid_slots(&a->grid)) return CLB_OK;
  const clb_status s =
      e->positions_buffer ? CLB_OK : clb_edges_put_positions(l, e->n_total, positions);
  a->positions = e->positions_buffer ? e->positions_buffer : l->positions;
  return s ? s
           : clb_cell_list_count(a->search, &a->grid, l->between.cutoff, e->n_total, a->positions,
                                 n_edges);
}

/* ---- both ---- */

/* Positions on the host; NULL: not needed. */
static clb_status read_positions(clb_edge_list *l, const clb_model_edges *e, const double **x) {
  clb_caller_pairs *p = &l->pairs;
  *x = e->positions ? e->positions : p->positions;
  if (e->positions || !e->n_total) return CLB_OK;
  const clb_status s = clb_edges_reserve_pairs(l, 0, e->n_total);
  *x = p->positions;
  return s ? s
           : clb_buffer_read(e->positions_buffer, 0, p->positions,
                             (uint64_t)e->n_total * 3 * sizeof(double));
}

clb_status clb_edges_of_locals(clb_edge_list *l, const clb_model_edges *e, clb_model_edges *found) {
  const double *x = e->positions;
  int64_t n_edges;
  clb_status s = e->same_graph ? CLB_OK : clb_edges_set_rows(l, e);
  if (!s && !e->same_graph) s = read_positions(l, e, &x);
  if (!s && !e->same_graph) s = lay_grid(l, e, x);
  if (!s && !e->same_graph) s = put_rows(l, e);
  if (!s) s = count(l, e, x, &n_edges);
  if (s) return s;
  if (n_edges < 0) {
    s = read_positions(l, e, &x);
    return s ? s : find_on_host(l, e, x, found);
  }
  l->source = CLB_EDGES_LOCAL;
  l->same = false;
  *found = (clb_model_edges){.n_local = e->n_local,
                             .n_total = e->exchange ? e->n_total : e->n_local,
                             .n_edges = n_edges,
                             .same_graph = e->same_graph,
                             .species = e->species,
                             .counted = e->counted,
                             .exchange = e->exchange};
  return CLB_OK;
}

clb_status clb_edges_write_local(clb_edge_list *l, const clb_model_edges *e, clb_graph *g) {
  clb_caller_atoms *a = &l->atoms;
  const uint64_t bytes = sizeof(int32_t);
  clb_status s = clb_edges_reserve(l->ctx, &l->shifts, e->n_edges, bytes);
  if (!s) s = clb_edges_reserve(l->ctx, &a->senders, e->n_edges, bytes);
  if (!s) s = clb_graph_reserve(g, e->n_total, e->n_local, e->n_edges);
  if (!s && e->n_edges)
    s = clb_cell_list_fill(a->search, &g->buffer[CLB_GRAPH_SENDERS].memory,
                           &g->buffer[CLB_GRAPH_RECEIVERS].memory, &l->shifts->memory,
                           &a->senders->memory);
  return s ? s : clb_graph_sort(g, e->n_total, e->n_local, e->n_edges);
}
