/* models/edges/locals.c - the edges that a caller's local atoms receive from local atoms and
   ghosts: found in every call among all atoms, on the device if it can, else on the host. There is
   nothing periodic, as ghosts are the images. */
#include "models/edges/edge_list.h"

#include <stdlib.h>

#define FAIL(l, s, ...) clb_fail(&(l)->ctx->error, s, __VA_ARGS__)

void clb_caller_atoms_free(clb_caller_atoms *a) {
  clb_cell_list_destroy(&a->search);
  clb_cell_list_destroy(&a->filter);
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
  int32_t **kept = l->pairs.kept;
  const clb_status s = clb_edges_reserve_kept(l, list->n_edges);
  int64_t n = 0;
  for (int64_t i = 0; i < list->n_edges && !s; i++)
    if (list->receivers[i] < e->n_local)
      kept[0][n] = list->senders[i], kept[1][n++] = list->receivers[i];
  return s ? s : clb_edges_take_pairs(l, e, n, kept[0], kept[1]);
}

static clb_status find_on_host(clb_edge_list *l, const clb_model_edges *e, const double *positions,
                               clb_model_edges *found) {
  static const bool open[3];
  clb_neighbours *list = &l->atoms.around;
  clb_neighbours_forget(list);
  clb_status s = clb_neighbours_update(list, e->n_total, positions, NULL, open, NULL);
  if (s) return FAIL(l, s, "clb_model_compute_edges: %s", list->error);
  s = take_pairs(l, e);
  return s ? s : clb_edges_near_pairs(l, e, positions, found);
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

static clb_status put_atoms(clb_edge_list *l, const clb_model_edges *e) {
  clb_caller_atoms *a = &l->atoms;
  clb_status s = CLB_OK;
  if (!l->make_vectors || !e->n_total) return s;
  if (!a->search) s = clb_cell_list_create(l->ctx, CLB_CELL_GHOSTS, &a->search);
  if (!s) s = clb_edges_put_rows(l, e);
  if (!s) clb_cell_list_set_rows(a->search, a->rows, e->n_local);
  return s;
}

clb_status clb_edges_of_locals(clb_edge_list *l, const clb_model_edges *e, clb_model_edges *found) {
  clb_caller_atoms *a = &l->atoms;
  const double *x = NULL;
  int64_t n_edges;
  clb_status s = e->same_graph ? CLB_OK : clb_edges_set_rows(l, e);
  if (!s && !e->same_graph) s = clb_edges_read_positions(l, e, &x);
  if (!s && !e->same_graph) s = lay_grid(l, e, x);
  if (!s && !e->same_graph) s = put_atoms(l, e);
  if (!s) s = clb_edges_count_local(l, e, a->search, &a->grid, e->n_total, &n_edges);
  if (!s && n_edges < 0) {
    s = clb_edges_read_positions(l, e, &x);
    return s ? s : find_on_host(l, e, x, found);
  }
  if (!s) clb_edges_found_local(l, e, n_edges, found);
  return s;
}
