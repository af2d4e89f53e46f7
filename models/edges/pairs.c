/* models/edges/pairs.c - a caller's list of pairs, which may reach beyond the cutoff: the edges
   among them, and their vectors from positions. */
#include "models/edges/edge_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(l, s, ...) clb_fail(&(l)->ctx->error, s, __VA_ARGS__)

void clb_caller_pairs_free(clb_caller_pairs *p) {
  void *all[] = {p->sender, p->receiver, p->row, p->kept[0], p->kept[1], p->vectors, p->positions};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  *p = (clb_caller_pairs){0};
}

/* ---- memory ---- */

static clb_status resize(clb_edge_list *l, void **array, int64_t n, size_t bytes) {
  free(*array);
  *array = malloc((size_t)n * bytes);
  return *array ? CLB_OK : FAIL(l, CLB_ERROR_MEMORY, "clb_model_compute_edges: no memory");
}

clb_status clb_edges_reserve_pairs(clb_edge_list *l, int64_t pairs, int64_t atoms) {
  clb_caller_pairs *p = &l->pairs;
  clb_status s = CLB_OK;
  if (pairs >= p->capacity) {
    const int64_t n = pairs + pairs / 4 + 1;
    int32_t **lists[] = {&p->sender, &p->receiver, &p->row, &p->kept[0], &p->kept[1]};
    p->capacity = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && !s; i++)
      s = resize(l, (void **)lists[i], n, sizeof(int32_t));
    if (!s) s = resize(l, (void **)&p->vectors, n, 3 * sizeof(double));
    if (!s) p->capacity = n;
  }
  if (!s && atoms >= p->atom_capacity) {
    const int64_t n = atoms + atoms / 4 + 1;
    p->atom_capacity = 0;
    s = resize(l, (void **)&p->positions, n, 3 * sizeof(double));
    if (!s) p->atom_capacity = n;
  }
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

clb_status clb_edges_take_pairs(clb_edge_list *l, const clb_model_edges *e, int64_t n_pairs,
                                const int32_t *senders, const int32_t *receivers) {
  clb_caller_pairs *p = &l->pairs;
  const int32_t *row = l->atoms.row;
  int64_t n = 0;
  for (int64_t i = 0; i < n_pairs; i++) {
    const int32_t s = senders[i], r = receivers[i];
    if (s < 0 || s >= e->n_total || r < 0 || r >= e->n_local)
      return FAIL(l, CLB_ERROR_ARGUMENT,
                  "clb_model_compute_edges: %s[%lld] is %d; it must be 0 ... %lld",
                  s < 0 || s >= e->n_total ? "senders" : "receivers", (long long)i,
                  (int)(s < 0 || s >= e->n_total ? s : r),
                  (long long)(s < 0 || s >= e->n_total ? e->n_total : e->n_local) - 1);
    if (row[s] == CLB_CELL_ABSENT || row[r] == CLB_CELL_ABSENT) continue;
    if (row[s] == CLB_CELL_NO_ROW)
      return FAIL(l, CLB_ERROR_ARGUMENT,
                  "clb_model_compute_edges: senders[%lld] is %d, a ghost; it must be the image "
                  "of a local atom, or be received in the exchange",
                  (long long)i, (int)s);
    p->sender[n] = s, p->receiver[n] = r, p->row[n++] = row[s];
  }
  p->n = n;
  p->n_kept = 0;
  return CLB_OK;
}

static clb_status set_list(clb_edge_list *l, const clb_model_edges *e) {
  clb_caller_pairs *p = &l->pairs;
  const int32_t *senders = NULL, *receivers = NULL;
  clb_status s = clb_edges_set_rows(l, e);
  if (!s) s = clb_edges_reserve_pairs(l, e->n_edges, e->n_total);
  if (!s && e->n_edges) s = list_of(l, "senders", &e->senders, e->n_edges, p->sender, &senders);
  if (!s && e->n_edges)
    s = list_of(l, "receivers", &e->receivers, e->n_edges, p->receiver, &receivers);
  return s ? s : clb_edges_take_pairs(l, e, e->n_edges, senders, receivers);
}

/* ---- edges ---- */

/* The pairs within the cutoff; same: they are those of the last call. */
static clb_status find_edges(clb_edge_list *l, const double *x, int64_t *n_edges, bool *same) {
  static const double shortest = 1e-15;
  clb_caller_pairs *p = &l->pairs;
  const double r2 = l->between.cutoff * l->between.cutoff;
  double *v = p->vectors;
  int64_t n = 0;
  bool as_before = true;
  for (int64_t i = 0; i < p->n; i++) {
    const double *a = x + 3 * (int64_t)p->sender[i], *b = x + 3 * (int64_t)p->receiver[i];
    v[0] = a[0] - b[0], v[1] = a[1] - b[1], v[2] = a[2] - b[2];
    const double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    if (square >= r2 && isfinite(square)) continue;
    if (!(square >= shortest * shortest && isfinite(square)))
      return FAIL(
          l, CLB_ERROR_ARGUMENT,
          "clb_model_compute_edges: positions[%d] and positions[%d] are (%g, %g, %g) apart; "
          "they must be finite, and at least %g Angstrom apart",
          (int)p->sender[i], (int)p->receiver[i], v[0], v[1], v[2], shortest);
    as_before &= n < p->n_kept && p->kept[0][n] == p->row[i] && p->kept[1][n] == p->receiver[i];
    p->kept[0][n] = p->row[i], p->kept[1][n] = p->receiver[i];
    n++;
    v += 3;
  }
  *same = as_before && n == p->n_kept;
  p->n_kept = *n_edges = n;
  return CLB_OK;
}

clb_status clb_edges_near_pairs(clb_edge_list *l, const clb_model_edges *e, const double *positions,
                                clb_model_edges *found) {
  clb_caller_pairs *p = &l->pairs;
  bool as_before = false;
  *found = (clb_model_edges){.n_local = e->n_local,
                             .n_total = e->exchange ? e->n_total : e->n_local,
                             .same_graph = e->same_graph,
                             .species = e->species,
                             .senders.host = p->kept[0],
                             .receivers.host = p->kept[1],
                             .vectors = p->vectors,
                             .counted = e->counted,
                             .exchange = e->exchange};
  const clb_status s = find_edges(l, positions, &found->n_edges, &as_before);
  l->same = e->same_graph && as_before;
  return s;
}

clb_status clb_edges_among_pairs(clb_edge_list *l, const clb_model_edges *e,
                                 clb_model_edges *found) {
  clb_caller_pairs *p = &l->pairs;
  clb_status s = e->same_graph ? CLB_OK : set_list(l, e);
  if (!s && !e->positions && e->n_total)
    s = clb_buffer_read(e->positions_buffer, 0, p->positions,
                        (uint64_t)e->n_total * 3 * sizeof(double));
  return s ? s : clb_edges_near_pairs(l, e, e->positions ? e->positions : p->positions, found);
}
