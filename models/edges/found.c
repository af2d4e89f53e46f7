/* models/edges/found.c - edges of a caller's local atoms that the device finds in every call: among
   all atoms (locals.c), or among listed pairs (pairs.c). */
#include "models/edges/edge_list.h"

clb_status clb_edges_put_rows(clb_edge_list *l, const clb_model_edges *e) {
  clb_caller_atoms *a = &l->atoms;
  const clb_status s = clb_edges_reserve(l->ctx, &a->rows, e->n_total, sizeof *a->row);
  return s || !e->n_total
             ? s
             : clb_buffer_write(a->rows, 0, a->row, (uint64_t)e->n_total * sizeof *a->row);
}

clb_status clb_edges_count_local(clb_edge_list *l, const clb_model_edges *e, clb_cell_list *list,
                                 const clb_cell_grid *grid, int64_t n, int64_t *n_edges) {
  clb_caller_atoms *a = &l->atoms;
  *n_edges = l->make_vectors && !e->n_local ? 0 : -1;
  if (!l->make_vectors || !e->n_local || (grid && !clb_cell_grid_slots(grid))) return CLB_OK;
  const clb_status s =
      e->positions_buffer ? CLB_OK : clb_edges_put_positions(l, e->n_total, e->positions);
  a->positions = e->positions_buffer ? e->positions_buffer : l->positions;
  return s ? s : clb_cell_list_count(list, grid, l->between.cutoff, n, a->positions, n_edges);
}

void clb_edges_found_local(clb_edge_list *l, const clb_model_edges *e, int64_t n_edges,
                           clb_model_edges *found) {
  l->source = CLB_EDGES_LOCAL;
  l->same = false;
  *found = (clb_model_edges){.n_local = e->n_local,
                             .n_total = e->exchange ? e->n_total : e->n_local,
                             .n_edges = n_edges,
                             .same_graph = e->same_graph,
                             .species = e->species,
                             .counted = e->counted,
                             .exchange = e->exchange};
}

clb_status clb_edges_write_local(clb_edge_list *l, const clb_model_edges *e, clb_graph *g) {
  clb_caller_atoms *a = &l->atoms;
  const uint64_t bytes = sizeof(int32_t);
  clb_status s = clb_edges_reserve(l->ctx, &l->shifts, e->n_edges, bytes);
  if (!s) s = clb_edges_reserve(l->ctx, &a->senders, e->n_edges, bytes);
  if (!s) s = clb_graph_reserve(g, e->n_total, e->n_local, e->n_edges);
  if (!s && e->n_edges)
    s = clb_cell_list_fill(
        l->searched ? a->search : a->filter, e->n_edges, &g->buffer[CLB_GRAPH_SENDERS].memory,
        &g->buffer[CLB_GRAPH_RECEIVERS].memory, &l->shifts->memory, &a->senders->memory);
  return s ? s : clb_graph_sort(g, e->n_total, e->n_local, e->n_edges);
}
