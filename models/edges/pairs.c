/* models/edges/pairs.c - a caller's list of pairs, which may reach beyond the cutoff: it stays on
   the device, which finds the edges among them in every call if it can, else the host does. */
#include "models/edges/edge_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/reserve.h"

#define FAIL(l, s, ...) clb_fail(&(l)->ctx->error, s, __VA_ARGS__)

void clb_caller_pairs_free(clb_caller_pairs *p) {
  void *all[] = {p->start, p->sender, p->kept[0], p->kept[1], p->vectors, p->positions};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  clb_buffer_destroy(&p->starts);
  clb_buffer_destroy(&p->senders);
  *p = (clb_caller_pairs){0};
}

static clb_status reserve(clb_edge_list *l, void *array, int64_t *capacity, int64_t n,
                          size_t bytes) {
  return clb_reserve(array, capacity, n + 1, bytes)
             ? CLB_OK
             : FAIL(l, CLB_ERROR_MEMORY, "clb_model_compute_edges: no memory");
}

clb_status clb_edges_reserve_kept(clb_edge_list *l, int64_t n) {
  clb_caller_pairs *p = &l->pairs;
  clb_status s = CLB_OK;
  p->n_kept = 0;
  for (int i = 0; i < 2 && !s; i++)
    s = reserve(l, &p->kept[i], &p->kept_capacity[i], n, sizeof(int32_t));
  return s;
}

/* ---- the list ---- */

/* A list in memory of the host: the caller's, or `own`, to which it is read. */
static clb_status list_of(clb_edge_list *l, const char *name, const clb_index_list *list, int64_t n,
                          int32_t *own, const int32_t **found) {
  *found = own;
  if (!list->buffer == !list->host)
    return FAIL(l, CLB_ERROR_ARGUMENT,
                "clb_model_compute_edges: one of %s.host and %s.buffer must be NULL, the other not",
                name, name);
  if (list->offset < 0)
    return FAIL(l, CLB_ERROR_ARGUMENT,
                "clb_model_compute_edges: %s.offset is %lld; it must be at least 0", name,
                (long long)list->offset);
  if (list->host) *found = (const int32_t *)list->host + list->offset;
  return list->host ? CLB_OK
                    : clb_buffer_read(list->buffer, (uint64_t)list->offset * sizeof *own, own,
                                      (uint64_t)n * sizeof *own);
}

static clb_status check_pair(clb_edge_list *l, const clb_model_edges *e, int64_t i, int32_t s,
                             int32_t r) {
  const bool sender = s < 0 || s >= e->n_total;
  if (sender || r < 0 || r >= e->n_local)
    return FAIL(l, CLB_ERROR_ARGUMENT,
                "clb_model_compute_edges: %s[%lld] is %d; it must be 0 ... %lld",
                sender ? "senders" : "receivers", (long long)i, (int)(sender ? s : r),
                (long long)(sender ? e->n_total : e->n_local) - 1);
  if (l->atoms.row[s] == CLB_CELL_NO_ROW && l->atoms.row[r] != CLB_CELL_ABSENT)
    return FAIL(l, CLB_ERROR_ARGUMENT,
                "clb_model_compute_edges: senders[%lld] is %d, a ghost; it must be the image "
                "of a local atom, or be received in the exchange",
                (long long)i, (int)s);
  return CLB_OK;
}

static bool both_there(const clb_edge_list *l, int32_t s, int32_t r) {
  return l->atoms.row[s] != CLB_CELL_ABSENT && l->atoms.row[r] != CLB_CELL_ABSENT;
}

/* start[r + 1] is where the next pair of r goes, until all are there. */
clb_status clb_edges_take_pairs(clb_edge_list *l, const clb_model_edges *e, int64_t n_pairs,
                                const int32_t *senders, const int32_t *receivers) {
  clb_caller_pairs *p = &l->pairs;
  const int64_t n_starts = clb_cell_list_starts(e->n_local);
  clb_status s = reserve(l, &p->start, &p->start_capacity, n_starts, sizeof *p->start);
  if (!s) s = reserve(l, &p->sender, &p->sender_capacity, n_pairs, sizeof *p->sender);
  if (s) return s;
  int32_t *next = p->start + 1;
  memset(p->start, 0, (size_t)(n_starts + 1) * sizeof *p->start);
  for (int64_t i = 0; i < n_pairs; i++) {
    s = check_pair(l, e, i, senders[i], receivers[i]);
    if (s) return s;
    if (both_there(l, senders[i], receivers[i])) p->start[receivers[i] + 2]++;
  }
  for (int64_t r = 2; r <= n_starts; r++) p->start[r] += p->start[r - 1];
  for (int64_t i = 0; i < n_pairs; i++)
    if (both_there(l, senders[i], receivers[i])) p->sender[next[receivers[i]]++] = senders[i];
  p->n = p->start[n_starts];
  p->n_kept = 0;
  return s;
}

static clb_status set_list(clb_edge_list *l, const clb_model_edges *e) {
  clb_caller_pairs *p = &l->pairs;
  const int32_t *senders = NULL, *receivers = NULL;
  clb_status s = clb_edges_set_rows(l, e);
  if (!s && e->n_edges) s = clb_edges_reserve_kept(l, e->n_edges);
  if (!s && e->n_edges) s = list_of(l, "senders", &e->senders, e->n_edges, p->kept[0], &senders);
  if (!s && e->n_edges)
    s = list_of(l, "receivers", &e->receivers, e->n_edges, p->kept[1], &receivers);
  return s ? s : clb_edges_take_pairs(l, e, e->n_edges, senders, receivers);
}

static clb_status put_list(clb_edge_list *l, const clb_model_edges *e) {
  clb_caller_pairs *p = &l->pairs;
  clb_cell_list **filter = &l->atoms.filter;
  const int64_t n_starts = clb_cell_list_starts(e->n_local);
  clb_status s = CLB_OK;
  if (!l->make_vectors || !e->n_local) return s;
  if (!*filter) s = clb_cell_list_create(l->ctx, CLB_CELL_PAIRS, filter);
  if (!s) s = clb_edges_put_rows(l, e);
  if (!s) s = clb_edges_reserve(l->ctx, &p->starts, n_starts, sizeof *p->start);
  if (!s) s = clb_edges_reserve(l->ctx, &p->senders, p->n, sizeof *p->sender);
  if (!s) s = clb_buffer_write(p->starts, 0, p->start, (uint64_t)n_starts * sizeof *p->start);
  if (!s && p->n)
    s = clb_buffer_write(p->senders, 0, p->sender, (uint64_t)p->n * sizeof *p->sender);
  if (!s) clb_cell_list_set_pairs(*filter, l->atoms.rows, p->starts, p->senders);
  return s;
}

/* ---- edges, on the host ---- */

static const double shortest = 1e-15;

static clb_status refuse_pair(clb_edge_list *l, int32_t sender, int64_t receiver, const double *v) {
  return FAIL(l, CLB_ERROR_ARGUMENT,
              "clb_model_compute_edges: positions[%d] and positions[%d] are (%g, %g, %g) apart; "
              "they must be finite, and at least %g Angstrom apart",
              (int)sender, (int)receiver, v[0], v[1], v[2], shortest);
}

/* The pairs within the cutoff; same: they are those of the last call. */
static clb_status find_edges(clb_edge_list *l, int64_t n_local, const double *x, int64_t *n_edges,
                             bool *same) {
  clb_caller_pairs *p = &l->pairs;
  const double r2 = l->between.cutoff * l->between.cutoff;
  double *v = p->vectors;
  int64_t n = 0;
  bool as_before = true;
  for (int64_t r = 0; r < n_local; r++)
    for (int64_t i = p->start[r]; i < p->start[r + 1]; i++) {
      const int32_t sender = p->sender[i], row = l->atoms.row[sender];
      const double *a = x + 3 * (int64_t)sender, *b = x + 3 * r;
      for (int k = 0; k < 3; k++) v[k] = a[k] - b[k];
      const double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
      if (square >= r2 && isfinite(square)) continue;
      if (!(square >= shortest * shortest && isfinite(square))) return refuse_pair(l, sender, r, v);
      as_before &= n < p->n_kept && p->kept[0][n] == row && p->kept[1][n] == (int32_t)r;
      p->kept[0][n] = row, p->kept[1][n] = (int32_t)r;
      n++;
      v += 3;
    }
  *same = as_before && n == p->n_kept;
  p->n_kept = *n_edges = n;
  return CLB_OK;
}

static clb_status reserve_edges(clb_edge_list *l) {
  clb_caller_pairs *p = &l->pairs;
  const int64_t n = p->n_kept;
  clb_status s = clb_edges_reserve_kept(l, p->n);
  p->n_kept = n;
  return s ? s : reserve(l, &p->vectors, &p->vector_capacity, p->n, 3 * sizeof *p->vectors);
}

clb_status clb_edges_near_pairs(clb_edge_list *l, const clb_model_edges *e, const double *positions,
                                clb_model_edges *found) {
  clb_caller_pairs *p = &l->pairs;
  const bool before = l->source == CLB_EDGES_PAIRS; /* else the device found those of the graph */
  bool as_before = false;
  clb_status s = reserve_edges(l);
  if (s) return s;
  l->source = CLB_EDGES_PAIRS;
  *found = (clb_model_edges){.n_local = e->n_local,
                             .n_total = e->exchange ? e->n_total : e->n_local,
                             .same_graph = e->same_graph,
                             .species = e->species,
                             .senders.host = p->kept[0],
                             .receivers.host = p->kept[1],
                             .vectors = p->vectors,
                             .counted = e->counted,
                             .exchange = e->exchange};
  s = find_edges(l, e->n_local, positions, &found->n_edges, &as_before);
  l->same = before && e->same_graph && as_before;
  return s;
}

/* ---- on the device, else on the host ---- */

clb_status clb_edges_among_pairs(clb_edge_list *l, const clb_model_edges *e,
                                 clb_model_edges *found) {
  const double *x;
  int64_t n_edges;
  clb_status s = e->same_graph ? CLB_OK : set_list(l, e);
  if (!s && !e->same_graph) s = put_list(l, e);
  if (!s) s = clb_edges_count_local(l, e, l->atoms.filter, NULL, e->n_local, &n_edges);
  if (!s && n_edges < 0) {
    s = clb_edges_read_positions(l, e, &x);
    return s ? s : clb_edges_near_pairs(l, e, x, found);
  }
  if (!s) clb_edges_found_local(l, e, n_edges, found);
  return s;
}
