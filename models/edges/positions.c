/* models/edges/positions.c - positions that are on the device, read for the host. */
#include "models/edges/edge_list.h"

#include "src/base/reserve.h"

static clb_status read_rows(clb_edge_list *l, clb_buffer *from, int64_t n, const double **x) {
  clb_caller_pairs *p = &l->pairs;
  const uint64_t row = 3 * sizeof *p->positions;
  if (!clb_reserve(&p->positions, &p->position_capacity, n + 1, row))
    return clb_fail(&l->ctx->error, CLB_ERROR_MEMORY, "clb_model: no memory for %lld positions",
                    (long long)n);
  *x = p->positions;
  return clb_staged_read(from, 0, p->positions, (uint64_t)n * row);
}

clb_status clb_edges_read_positions(clb_edge_list *l, const clb_model_edges *e, const double **x) {
  *x = e->positions;
  return e->positions || !e->n_total ? CLB_OK : read_rows(l, e->positions_buffer, e->n_total, x);
}

clb_status clb_edges_host_positions(clb_edge_list *l, int64_t n, const double **x) {
  return l->motion.positions && n ? read_rows(l, l->motion.positions, n, x) : CLB_OK;
}
