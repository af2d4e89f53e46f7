/* models/compute_edges.c - clb_model_compute_edges: what simulation codes give, and checks of it.
 */
#include "models/dispersion/model_dispersion.h"
#include "src/base/sizes.h"

#include <string.h>

#define FAIL(m, s, ...) clb_fail(&(m)->ctx->error, s, __VA_ARGS__)

static clb_status check_counts(clb_model *m, const clb_model_edges *e) {
  const struct {
    const char *name;
    int64_t n;
  } counts[] = {{"n_local", e->n_local}, {"n_total", e->n_total}, {"n_edges", e->n_edges}};
  for (int i = 0; i < 3; i++)
    if (counts[i].n < 0 || counts[i].n >= INT32_MAX)
      return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model: %s is %lld; it must be 0 ... 2^31 - 2",
                  counts[i].name, (long long)counts[i].n);
  if (e->n_total < e->n_local)
    return FAIL(m, CLB_ERROR_ARGUMENT,
                "clb_model: n_total is %lld; it must be n_local, %lld, or more",
                (long long)e->n_total, (long long)e->n_local);
  if (!e->exchange && !clb_edges_are_pairs(e) && e->n_total != e->n_local)
    return FAIL(m, CLB_ERROR_ARGUMENT,
                "clb_model: n_total is %lld; without an exchange it must be n_local, %lld",
                (long long)e->n_total, (long long)e->n_local);
  return CLB_OK;
}

/* A buffer of n rows of 3 numbers of this type, or NULL. */
static clb_status check_buffer(clb_model *m, const char *name, const clb_buffer *b, clb_dtype type,
                               int64_t n) {
  if (b && b->ctx != m->ctx)
    return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model: %s belongs to another context", name);
  if (b && b->memory.bytes / (uint64_t)(3 * clb_dtype_bytes((int32_t)type)) < (uint64_t)n)
    return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model: %s has %llu bytes; %lld vectors do not fit",
                name, (unsigned long long)b->memory.bytes, (long long)n);
  return CLB_OK;
}

/* Vectors or positions, once. */
static clb_status check_places(clb_model *m, const clb_model_edges *e,
                               const clb_model_edge_results *r) {
  const int given = !!e->vectors + !!e->vectors_buffer + !!e->positions + !!e->positions_buffer;
  const bool needed = e->n_edges || given;
  if (needed && given != 1)
    return FAIL(m, CLB_ERROR_ARGUMENT,
                "clb_model_compute_edges: %d of vectors, vectors_buffer, positions and "
                "positions_buffer are not NULL; it must be one of them",
                given);
  if (clb_edges_are_pairs(e) && (r->d_vectors || r->d_vectors_buffer))
    return FAIL(
        m, CLB_ERROR_ARGUMENT,
        "clb_model_compute_edges: d_vectors is for calls with vectors; with positions there "
        "are forces");
  if (e->search && (!clb_edges_are_pairs(e) || e->n_edges))
    return FAIL(m, CLB_ERROR_ARGUMENT,
                "clb_model_compute_edges: search is %d, %s; a search takes positions, and n_edges "
                "must be 0",
                e->search, e->n_edges ? "but n_edges is not 0" : "but there are no positions");
  if (!clb_edges_are_pairs(e) && e->images)
    return FAIL(m, CLB_ERROR_ARGUMENT,
                "clb_model_compute_edges: images are for calls with positions; with vectors, "
                "senders can be local atoms themselves");
  clb_status s = check_buffer(m, "vectors_buffer", e->vectors_buffer, m->type, e->n_edges);
  if (!s) s = check_buffer(m, "positions_buffer", e->positions_buffer, CLB_F64, e->n_total);
  if (!s) s = check_buffer(m, "d_vectors_buffer", r->d_vectors_buffer, m->type, e->n_edges);
  return s ? s : check_buffer(m, "forces_buffer", r->forces_buffer, m->sum_type, e->n_total);
}

/* Their squares must be finite in both precisions, and they must have a direction. */
static clb_status check_vectors(clb_model *m, int64_t n, const double *v) {
  static const double shortest = 1e-15, longest = 1e15;
  for (int64_t i = 0; v && i < n; i++, v += 3) {
    const double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    if (!(square >= shortest * shortest && square <= longest * longest))
      return FAIL(m, CLB_ERROR_ARGUMENT,
                  "clb_model_compute_edges: vectors[%lld] is (%g, %g, %g); it must be finite, and "
                  "from %g to %g Angstrom long",
                  (long long)i, v[0], v[1], v[2], shortest, longest);
  }
  return CLB_OK;
}

/* Forces on ghosts that have no rows of their own are 0. */
static clb_status clear_forces(clb_model *m, const clb_model_edges *e,
                               const clb_model_edge_results *r) {
  const int64_t first = 3 * m->net.n_total, n = 3 * e->n_total - first,
                bytes = clb_dtype_bytes((int32_t)m->sum_type);
  for (int64_t i = 0; r->forces && i < n; i++) r->forces[first + i] = 0;
  if (!r->forces_buffer || n <= 0) return CLB_OK;
  void *zeros = clb_staging(m->ctx, (size_t)(n * bytes));
  if (!zeros) return FAIL(m, CLB_ERROR_MEMORY, "clb_model_compute_edges: no memory");
  memset(zeros, 0, (size_t)(n * bytes));
  return clb_buffer_write(r->forces_buffer, (uint64_t)(first * bytes), zeros,
                          (uint64_t)(n * bytes));
}

/* The caller's edges as the graph. */
static clb_status set_edges(clb_model *m, const clb_model_edges *e, clb_model_edges *found,
                            double *finding) {
  const double start = clb_seconds_now(), copying = m->edges.copying;
  clb_status s = clb_edges_of_caller(&m->edges, e, found);
  m->net.copying = m->edges.copying - copying;
  *finding = clb_seconds_now() - start - m->net.copying;
  if (!s)
    s = clb_model_set_states(
        m, 1, &(clb_model_atoms){.n = e->n_local, .charge = e->charge, .spin = e->spin});
  if (!s) s = clb_model_set_graph(m, found);
  if (!s && m->edges.source == CLB_EDGES_LOCAL)
    s = clb_edges_vectors(&m->edges, m->net.whole, e->positions,
                          clb_all_values(&m->net, CLB_VECTORS), found);
  if (s) clb_edges_forget(&m->edges);
  return s;
}

/* What dispersion lacks; NULL: nothing. */
static const char *lacks(const clb_model_edges *e, const clb_model_edge_results *r) {
  if (!clb_edges_are_pairs(e) && (e->n_local || e->n_edges)) return "there are no positions";
  if (e->exchange && !e->exchange->gather) return "the exchange has no gather";
  if (e->counted) return "some atoms may not count";
  if (r->forces_buffer) return "forces_buffer is not NULL";
  if (e->n_total > e->n_local && !e->images && !e->exchange) return "images is NULL";
  if ((e->n_total > e->n_local || e->periodic[0] || e->periodic[1] || e->periodic[2]) && !e->cell)
    return "cell is NULL";
  for (int64_t i = 0; i < e->n_total - e->n_local && !e->same_graph && !e->exchange; i++)
    if (e->images[i] < 0) return "a ghost is no image";
  for (int64_t i = 0; i < e->n_local && e->species && !e->same_graph; i++)
    if (e->species[i] < 0) return "an atom is absent";
  return NULL;
}

static clb_status check_dispersion(clb_model *m, const clb_model_edges *e,
                                   const clb_model_edge_results *r) {
  const char *what = m->dispersion ? lacks(e, r) : NULL;
  return what ? FAIL(m, CLB_ERROR_UNSUPPORTED,
                     "clb_model_compute_edges: %s, but the model was opened with d3, which needs "
                     "all atoms, by positions, and their cell",
                     what)
              : CLB_OK;
}

/* Whether the local atoms are some of all. */
static clb_status check_all(clb_model *m, const clb_model_edges *e) {
  const clb_model_exchange *x = e->exchange;
  if (!m->dispersion || !x) return CLB_OK;
  return x->n_all >= e->n_local && x->n_all < INT32_MAX && x->first >= 0 &&
                 x->first <= x->n_all - e->n_local
             ? CLB_OK
             : FAIL(m, CLB_ERROR_ARGUMENT,
                    "clb_model_compute_edges: exchange.first is %lld and n_all %lld; the %lld "
                    "local atoms must be some of all, fewer than 2^31 - 1",
                    (long long)x->first, (long long)x->n_all, (long long)e->n_local);
}

static clb_status place_dispersion(clb_model *m, const clb_model_edges *e) {
  const double *x = NULL;
  if (!m->dispersion) return CLB_OK;
  const clb_status s = clb_edges_read_positions(&m->edges, e, &x);
  if (!s && e->exchange) return clb_model_place_all(m, e, x);
  const clb_model_atoms a = {.n = e->n_local,
                             .species = e->species,
                             .positions = x,
                             .cell = e->cell,
                             .periodic = {e->periodic[0], e->periodic[1], e->periodic[2]}};
  return s ? s : clb_model_place_dispersion(m, 1, &a, a.n, NULL, x);
}

static clb_status compute(clb_model *m, const clb_model_edges *e, const clb_model_edge_results *r) {
  clb_model_edges found;
  const double start = clb_seconds_now();
  double finding;
  m->net.exchanging = 0;
  m->timed = r->seconds != NULL;
  clb_status s = check_counts(m, e);
  if (!s) s = check_dispersion(m, e, r);
  if (!s) s = check_all(m, e);
  if (!s && e->same_graph) s = clb_edges_check_same(&m->edges, e);
  if (!s) s = check_places(m, e, r);
  if (!s) s = check_vectors(m, e->n_edges, e->vectors);
  if (!s) s = set_edges(m, e, &found, &finding);
  if (!s) s = place_dispersion(m, e);
  if (!s) s = clb_model_evaluate(m, &found, r);
  if (!s && clb_edges_are_pairs(e)) s = clear_forces(m, e, r);
  m->timed = false;
  if (s || !r->seconds) return s;
  const double seconds[] = {clb_seconds_now() - start, finding, m->net.exchanging, m->net.copying};
  memcpy(r->seconds, seconds, sizeof seconds);
  return s;
}

clb_status clb_model_compute_edges_sized(clb_model *m, const clb_model_edges *edges,
                                         const clb_model_edge_results *results, size_t edges_size,
                                         size_t exchange_size, size_t results_size) {
  clb_model_edges e;
  clb_model_exchange x;
  clb_model_edge_results r;
  if (!m) return clb_null(__func__, "model");
  if (!edges || !results)
    return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model_compute_edges: %s is NULL",
                edges ? "results" : "edges");
  clb_error_sink *error = &m->ctx->error;
  clb_status s = clb_take_struct(error, "clb_model_edges", &e, sizeof e, edges, edges_size);
  if (!s) s = clb_take_struct(error, "clb_model_exchange", &x, sizeof x, e.exchange, exchange_size);
  if (!s) s = clb_take_struct(error, "clb_model_edge_results", &r, sizeof r, results, results_size);
  if (!s && e.exchange) e.exchange = &x;
  return s ? s : compute(m, &e, &r);
}
