/* models/edges/rows.c - where the features of a caller's atoms are: ghosts that are images have
   those of local atoms, others their own. */
#include "models/edges/edge_list.h"

#include "src/base/reserve.h"

#define FAIL(l, s, ...) clb_fail(&(l)->ctx->error, s, __VA_ARGS__)

static clb_status check_images(clb_edge_list *l, const clb_model_edges *e) {
  for (int64_t i = 0; e->images && i < e->n_total - e->n_local; i++)
    if (e->images[i] < -1 || e->images[i] >= e->n_local)
      return FAIL(l, CLB_ERROR_ARGUMENT,
                  "clb_model_compute_edges: images[%lld] is %d; it must be that of a local atom, "
                  "below %lld, or -1",
                  (long long)i, (int)e->images[i], (long long)e->n_local);
  return CLB_OK;
}

/* Lists of the exchange are checked with the graph. */
static void find_rows(const clb_model_edges *e, int32_t *row) {
  const int64_t n_ghosts = e->n_total - e->n_local, n_local = e->n_local;
  for (int64_t i = 0; i < n_local; i++) row[i] = (int32_t)i;
  for (int64_t i = 0; i < n_ghosts; i++)
    row[n_local + i] = e->images && e->images[i] >= 0 ? e->images[i] : CLB_CELL_NO_ROW;
  for (int64_t i = 0; e->exchange && e->exchange->receive && i < e->exchange->n_receive; i++) {
    const int32_t ghost = e->exchange->receive[i];
    const bool there = ghost >= n_local && ghost < e->n_total;
    if (there && row[ghost] == CLB_CELL_NO_ROW) row[ghost] = ghost;
  }
  for (int64_t i = 0; i < e->n_total; i++)
    if (e->species[i] < 0) row[i] = CLB_CELL_ABSENT;
}

clb_status clb_edges_set_rows(clb_edge_list *l, const clb_model_edges *e) {
  clb_caller_atoms *a = &l->atoms;
  if (e->n_total && !e->species)
    return FAIL(l, CLB_ERROR_ARGUMENT, "clb_model_compute_edges: species is NULL");
  const clb_status s = check_images(l, e);
  if (s) return s;
  if (!clb_reserve(&a->row, &a->row_capacity, e->n_total + 1, sizeof *a->row))
    return FAIL(l, CLB_ERROR_MEMORY, "clb_model_compute_edges: no memory");
  find_rows(e, a->row);
  return CLB_OK;
}
