/* models/device_search.c - edges between atoms that the device finds by itself. */
#include "models/model_state.h"

clb_status clb_model_count_edges(clb_model *m, const clb_model_atoms *a, const clb_cell_grid *grid,
                                 int64_t *n_edges) {
  const double radius = m->neighbours.cutoff + m->neighbours.skin;
  clb_status s = CLB_OK;
  *n_edges = -1;
  if (!m->edge_vectors || !clb_cell_grid_slots(grid)) return CLB_OK;
  if (!m->cells) s = clb_cell_list_create(m->ctx, &m->cells);
  if (!s) s = clb_model_reserve_atoms(m, a->n);
  if (!s) s = clb_model_upload(m, m->positions, CLB_F64, 3 * a->n, a->positions);
  if (!s) s = clb_cell_list_count(m->cells, grid, radius, a->n, m->positions, n_edges);
  return s;
}
