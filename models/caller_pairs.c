/* models/caller_pairs.c - a caller's list of pairs, which may reach beyond r_max: the edges among
   them, and their vectors from positions. */
#include "models/model_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(m, s, ...) clb_fail(&(m)->ctx->error, s, __VA_ARGS__)

void clb_caller_pairs_free(clb_caller_pairs *l) {
  void *all[] = {l->sender, l->receiver, l->row, l->kept[0], l->kept[1], l->vectors, l->positions};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  *l = (clb_caller_pairs){0};
}

/* ---- memory ---- */

static clb_status resize(clb_model *m, void **array, int64_t n, size_t bytes) {
  free(*array);
  *array = malloc((size_t)n * bytes);
  return *array ? CLB_OK : FAIL(m, CLB_ERROR_MEMORY, "clb_model_compute_edges: no memory");
}

static clb_status grow(clb_model *m, int64_t pairs, int64_t atoms) {
  clb_caller_pairs *l = &m->pairs;
  clb_status s = CLB_OK;
  if (pairs >= l->capacity) {
    const int64_t n = pairs + pairs / 4 + 1;
    int32_t **lists[] = {&l->sender, &l->receiver, &l->row, &l->kept[0], &l->kept[1]};
    l->capacity = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && !s; i++)
      s = resize(m, (void **)lists[i], n, sizeof(int32_t));
    if (!s) s = resize(m, (void **)&l->vectors, n, 3 * sizeof(double));
    if (!s) l->capacity = n;
  }
  if (!s && atoms >= l->atom_capacity) {
    const int64_t n = atoms + atoms / 4 + 1;
    l->atom_capacity = 0;
    s = resize(m, (void **)&l->positions, n, 3 * sizeof(double));
    if (!s) l->atom_capacity = n;
  }
  return s;
}

/* ---- the list ---- */

/* A list in memory of the host: the caller's, or `own`, to which it is read. */
static clb_status list_of(clb_model *m, const char *name, const clb_index_list *list, int64_t n,
                          int32_t *own, const int32_t **found) {
  *found = own;
  if (!list->buffer == !list->host)
    return FAIL(m, CLB_ERROR_ARGUMENT,
                "clb_model_compute_edges: one of %s.host and %s.buffer must be NULL, the other not",
                name, name);
  if (list->offset < 0)
    return FAIL(m, CLB_ERROR_ARGUMENT,
                "clb_model_compute_edges: %s.offset is %lld; it must be at least 0", name,
                (long long)list->offset);
  if (list->host) *found = (const int32_t *)list->host + list->offset;
  return list->host ? CLB_OK
                    : clb_buffer_read(list->buffer, (uint64_t)list->offset * sizeof *own, own,
                                      (uint64_t)n * sizeof *own);
}

static clb_status check_images(clb_model *m, const clb_model_edges *e) {
  for (int64_t i = 0; e->images && i < e->n_total - e->n_local; i++)
    if (e->images[i] < -1 || e->images[i] >= e->n_local)
      return FAIL(m, CLB_ERROR_ARGUMENT,
                  "clb_model_compute_edges: images[%lld] is %d; it must be that of a local atom, "
                  "below %lld, or -1",
                  (long long)i, (int)e->images[i], (long long)e->n_local);
  return CLB_OK;
}

/* The row of an atom's features; -1: it has none. */
static int64_t row_of(const clb_model_edges *e, const unsigned char *received, int64_t atom) {
  const int64_t ghost = atom - e->n_local, image = ghost < 0 || !e->images ? -1 : e->images[ghost];
  return image >= 0 ? image : ghost >= 0 && !received[ghost] ? -1 : atom;
}

/* Which ghosts an exchange receives; lists are checked with the graph. */
static clb_status mark_received(clb_model *m, const clb_model_edges *e, unsigned char **received) {
  const int64_t n = e->n_total - e->n_local;
  *received = calloc((size_t)n + 1, 1);
  if (!*received) return FAIL(m, CLB_ERROR_MEMORY, "clb_model_compute_edges: no memory");
  for (int64_t i = 0; e->exchange && e->exchange->receive && i < e->exchange->n_receive; i++) {
    const int64_t ghost = e->exchange->receive[i] - e->n_local;
    if (ghost >= 0 && ghost < n) (*received)[ghost] = 1;
  }
  return CLB_OK;
}

/* Keeps the pairs of atoms that are there. */
static clb_status take(clb_model *m, const clb_model_edges *e, const int32_t *senders,
                       const int32_t *receivers, const unsigned char *received) {
  clb_caller_pairs *l = &m->pairs;
  int64_t n = 0;
  for (int64_t i = 0; i < e->n_edges; i++) {
    const int32_t s = senders[i], r = receivers[i];
    if (s < 0 || s >= e->n_total || r < 0 || r >= e->n_local)
      return FAIL(m, CLB_ERROR_ARGUMENT,
                  "clb_model_compute_edges: %s[%lld] is %d; it must be 0 ... %lld",
                  s < 0 || s >= e->n_total ? "senders" : "receivers", (long long)i,
                  (int)(s < 0 || s >= e->n_total ? s : r),
                  (long long)(s < 0 || s >= e->n_total ? e->n_total : e->n_local) - 1);
    if (e->species[s] < 0 || e->species[r] < 0) continue;
    const int64_t row = row_of(e, received, s);
    if (row < 0)
      return FAIL(m, CLB_ERROR_ARGUMENT,
                  "clb_model_compute_edges: senders[%lld] is %d, a ghost; it must be the image "
                  "of a local atom, or be received in the exchange",
                  (long long)i, (int)s);
    l->sender[n] = s, l->receiver[n] = r, l->row[n++] = (int32_t)row;
  }
  l->n = n;
  return CLB_OK;
}

static clb_status set_list(clb_model *m, const clb_model_edges *e) {
  clb_caller_pairs *l = &m->pairs;
  const int32_t *senders = NULL, *receivers = NULL;
  if (e->n_total && !e->species)
    return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model_compute_edges: species is NULL");
  clb_status s = check_images(m, e);
  if (!s) s = grow(m, e->n_edges, e->n_total);
  if (!s && e->n_edges) s = list_of(m, "senders", &e->senders, e->n_edges, l->sender, &senders);
  if (!s && e->n_edges)
    s = list_of(m, "receivers", &e->receivers, e->n_edges, l->receiver, &receivers);
  unsigned char *received = NULL;
  if (!s) s = mark_received(m, e, &received);
  if (!s) s = take(m, e, senders, receivers, received);
  free(received);
  l->n_given = e->n_edges, l->n_local = e->n_local, l->n_total = e->n_total;
  return s;
}

/* ---- edges ---- */

/* The pairs within r_max; same: they are those of the last call. */
static clb_status find_edges(clb_model *m, const double *x, int64_t *n_edges, bool *same) {
  static const double shortest = 1e-15;
  clb_caller_pairs *l = &m->pairs;
  const double r2 = m->net.r_max * m->net.r_max;
  double *v = l->vectors;
  int64_t n = 0;
  bool as_before = true;
  for (int64_t i = 0; i < l->n; i++) {
    const double *a = x + 3 * (int64_t)l->sender[i], *b = x + 3 * (int64_t)l->receiver[i];
    v[0] = a[0] - b[0], v[1] = a[1] - b[1], v[2] = a[2] - b[2];
    const double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    if (square >= r2 && isfinite(square)) continue;
    if (!(square >= shortest * shortest && isfinite(square)))
      return FAIL(
          m, CLB_ERROR_ARGUMENT,
          "clb_model_compute_edges: positions[%d] and positions[%d] are (%g, %g, %g) apart; "
          "they must be finite, and at least %g Angstrom apart",
          (int)l->sender[i], (int)l->receiver[i], v[0], v[1], v[2], shortest);
    as_before &= n < l->n_kept && l->kept[0][n] == l->row[i] && l->kept[1][n] == l->receiver[i];
    l->kept[0][n] = l->row[i], l->kept[1][n] = l->receiver[i];
    n++;
    v += 3;
  }
  *same = as_before && n == l->n_kept;
  l->n_kept = *n_edges = n;
  return CLB_OK;
}

clb_status clb_caller_pairs_edges(clb_model *m, const clb_model_edges *e, clb_model_edges *edges) {
  clb_caller_pairs *l = &m->pairs;
  const double *x = e->positions;
  bool same = false;
  clb_status s = e->same_graph ? CLB_OK : set_list(m, e);
  if (!e->same_graph) l->n_kept = -1;
  if (!s && !x && e->n_total)
    s = clb_buffer_read(e->positions_buffer, 0, l->positions, (uint64_t)e->n_total * 3 * sizeof *x);
  *edges = (clb_model_edges){.n_local = e->n_local,
                             .n_total = e->exchange ? e->n_total : e->n_local,
                             .same_graph = e->same_graph,
                             .species = e->species,
                             .senders.host = l->kept[0],
                             .receivers.host = l->kept[1],
                             .vectors = l->vectors,
                             .counted = e->counted,
                             .exchange = e->exchange};
  if (!s) s = find_edges(m, x ? x : l->positions, &edges->n_edges, &same);
  if (!s && !(e->same_graph && same)) s = clb_model_set_graph(m, CLB_SOURCE_POSITIONS, edges);
  if (s) m->edges = CLB_SOURCE_NONE;
  return s;
}
