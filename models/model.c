/* models/model.c - the calls of model.h. */
#include "models/read.h"
#include "models/model_state.h"
#include "src/base/sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(m, s, ...) clb_fail(&(m)->ctx->error, s, __VA_ARGS__)

/* ---- open ---- */

clb_status clb_model_load(clb_model *m, const char *path, int knots) {
  clb_context *ctx = m->ctx;
  clb_status s = clb_model_read(&ctx->error, path, &m->net);
  m->net.knots = knots;
  m->neighbours.cutoff = m->net.r_max;
  m->neighbours.skin = m->options.skin;
  m->batch_atoms = 1 << 15;
  if (!s && (s = clb_model_build(m)))
    clb_fail(&ctx->error, s, "%s: %s", path, ctx->error.text.s ? ctx->error.text.s : "no memory");
  return s;
}

void clb_model_unload(clb_model *m) {
  clb_model_forget_step(m);
  clb_op **ops[] = {&m->edge_vectors, &m->virial, &m->forces};
  clb_buffer **buffers[] = {&m->positions, &m->shifts, &m->species_of, &m->results, &m->v_atom};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) clb_op_destroy(ops[i]);
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) clb_buffer_destroy(buffers[i]);
  clb_cell_list_destroy(&m->cells);
  clb_network_free(&m->net);
  clb_neighbours_free(&m->neighbours);
  clb_caller_pairs_free(&m->pairs);
  free(m->species);
  free(m->vectors);
  *m = (clb_model){.ctx = m->ctx, .type = m->type, .sum_type = m->sum_type, .options = m->options};
}

void clb_model_destroy(clb_model **model) {
  if (!model || !*model) return;
  clb_context *ctx = (*model)->ctx;
  clb_model_unload(*model);
  free(*model);
  *model = NULL;
  clb_context_release(ctx);
}

/* ---- description ---- */

clb_status clb_model_describe_sized(const clb_model *m, clb_model_info *info, size_t size) {
  if (!m) return clb_null(__func__, "model");
  if (!info) return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model_describe: info is NULL");
  clb_give_struct(&m->info, sizeof m->info, info, size);
  return CLB_OK;
}

int clb_model_species(const clb_model *m, int atomic_number) {
  for (int s = 0; m && s < m->net.n_species; s++)
    if (m->net.atomic_number[s] == atomic_number) return s;
  return -1;
}

clb_status clb_model_last_neighbours_sized(const clb_model *m, clb_model_neighbours *neighbours,
                                           size_t size) {
  if (!m) return clb_null(__func__, "model");
  if (!neighbours)
    return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model_last_neighbours: neighbours is NULL");
  const clb_model_neighbours all = {m->neighbours.n_edges, m->rebuilds};
  clb_give_struct(&all, sizeof all, neighbours, size);
  return CLB_OK;
}

/* ---- edges ---- */

clb_status clb_model_evaluate(clb_model *m, const clb_model_edges *e,
                              const clb_model_edge_results *r) {
  clb_network *n = &m->net;
  n->vectors = e->vectors_buffer;
  n->g_vectors = r->d_vectors_buffer;
  const clb_rows v = clb_value(n, CLB_VECTORS), g_v = clb_gradient(n, CLB_VECTORS);
  clb_status s =
      e->vectors ? clb_model_upload(m, v.buffer, m->type, 3 * e->n_edges, e->vectors) : CLB_OK;
  if (!s) s = clb_model_submit(m, e, r);
  if (!s) s = clb_model_read_results(m, r->energy, r->virial, r->forces, r->e_atom);
  if (!s && r->v_atom) s = clb_model_download(m, m->v_atom, m->sum_type, 9 * n->n_local, r->v_atom);
  if (!s && r->v_atom) s = clb_model_finite(m, "v_atom", n->n_local, 9, r->v_atom);
  if (!s && r->d_vectors)
    s = clb_model_download(m, g_v.buffer, m->type, 3 * e->n_edges, r->d_vectors);
  n->vectors = n->g_vectors = NULL;
  return s || !r->d_vectors ? s : clb_model_finite(m, "d_vectors", e->n_edges, 3, r->d_vectors);
}

/* ---- atoms ---- */

clb_status clb_model_check_atoms(clb_model *m, const clb_model_atoms *a,
                                 const clb_model_results *r) {
  if (a->n < 0 || a->n >= INT32_MAX)
    return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model_compute: n is %lld; it must be 0 ... 2^31 - 2",
                (long long)a->n);
  if (a->n && (!a->positions || !a->species))
    return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model_compute: %s is NULL",
                a->positions ? "species" : "positions");
  for (int d = 0; d < 3; d++)
    if (a->periodic[d] && !a->cell)
      return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model_compute: cell is NULL, but periodic[%d] is %d",
                  d, a->periodic[d]);
  if (r->stress && !(a->cell && clb_cell_volume(a->cell) > 0))
    return FAIL(
        m, CLB_ERROR_ARGUMENT,
        "clb_model_compute: stress was requested, but cell %s: it is a derivative by strain "
        "over the volume that the three rows span",
        a->cell ? "has no volume" : "is NULL");
  return CLB_OK;
}

/* Computes vectors on the host, if the device cannot. */
static clb_status host_vectors(clb_model *m, const clb_model_atoms *a, clb_model_edges *e) {
  const clb_neighbours *list = &m->neighbours;
  if (list->n_edges > m->vectors_capacity) {
    free(m->vectors);
    m->vectors_capacity = list->n_edges + list->n_edges / 4;
    if (!(m->vectors = malloc((size_t)m->vectors_capacity * 3 * sizeof *m->vectors)))
      m->vectors_capacity = 0;
    if (!m->vectors) return FAIL(m, CLB_ERROR_MEMORY, "clb_model_compute: no memory");
  }
  clb_neighbours_vectors(list, a->positions, m->vectors);
  e->vectors = m->vectors;
  return CLB_OK;
}

static clb_status device_vectors(clb_model *m, const clb_model_atoms *a, bool there) {
  const clb_neighbours *list = &m->neighbours;
  const clb_rows positions = {m->positions, 0, CLB_DENSE, NULL},
                 shifts = {m->shifts, 0, CLB_DENSE, NULL};
  const clb_status s =
      there ? CLB_OK : clb_model_upload(m, positions.buffer, CLB_F64, 3 * a->n, a->positions);
  return s ? s
           : clb_edge_vectors_run(m->edge_vectors, m->net.graph, positions, shifts, list->cell,
                                  clb_value(&m->net, CLB_VECTORS));
}

clb_status clb_model_check_places(clb_model *m, const clb_neighbours *list,
                                  const double *positions) {
  static const double nearest = 1e-3; /* the precision of files */
  for (int64_t e = 0; e < list->n_edges; e++) {
    double v[3];
    clb_neighbours_vector(list, positions, e, v);
    const double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    if (square < nearest * nearest)
      return FAIL(m, CLB_ERROR_ARGUMENT,
                  "clb_model_compute: positions[%d] and positions[%d] are one place, %g Angstrom "
                  "apart; they must be %g apart or more",
                  (int)list->receivers[e], (int)list->senders[e], sqrt(square), nearest);
  }
  return CLB_OK;
}

/* Makes the list anew, on the device if it can, else on the host. */
static clb_status make_list(clb_model *m, const clb_model_atoms *a, const bool periodic[3],
                            const clb_cell_grid *grid, clb_edge_source *source) {
  clb_neighbours *list = &m->neighbours;
  int64_t n_edges;
  clb_status s = clb_model_count_edges(m, a, grid, &n_edges);
  if (s == CLB_ERROR_MEMORY &&
      !clb_neighbours_update(list, a->n, a->positions, a->cell, periodic, NULL))
    clb_model_explain_memory(m, a->n, list->n_edges);
  if (s) return s;
  *source = n_edges >= 0 ? CLB_SOURCE_DEVICE : CLB_SOURCE_HOST;
  if (*source == CLB_SOURCE_DEVICE) s = clb_neighbours_set_count(list, a->positions, n_edges);
  else s = clb_neighbours_update(list, a->n, a->positions, a->cell, periodic, NULL);
  if (s) return FAIL(m, s, "clb_model_compute: %s", list->error);
  return *source == CLB_SOURCE_DEVICE ? CLB_OK : clb_model_check_places(m, list, a->positions);
}

/* Updates the graph to the neighbours of these atoms, and the species. */
static clb_status update_graph(clb_model *m, const clb_model_atoms *a, bool *rebuilt,
                               clb_model_edges *e) {
  const bool periodic[3] = {a->periodic[0] != 0, a->periodic[1] != 0, a->periodic[2] != 0};
  clb_neighbours *list = &m->neighbours;
  clb_edge_source source = m->edges;
  clb_cell_grid grid;
  if (!clb_edges_of_atoms(source)) list->built = false; /* the graph is another one */
  clb_status s = clb_neighbours_begin(list, a->n, a->positions, a->cell, periodic, rebuilt, &grid);
  if (s) return FAIL(m, s, "clb_model_compute: %s", list->error);
  if (*rebuilt) s = make_list(m, a, periodic, &grid, &source);
  if (s) return s;
  *e = (clb_model_edges){.n_local = a->n,
                         .n_total = a->n,
                         .n_edges = list->n_edges,
                         .species = a->species,
                         .senders = {.host = list->senders},
                         .receivers = {.host = list->receivers}};
  m->rebuilds += *rebuilt;
  if (*rebuilt) s = clb_model_set_graph(m, source, e);
  else s = clb_model_set_species(m, source, e);
  if (!s && !*rebuilt) s = clb_model_prepare_species(m);
  return s || m->edges != CLB_SOURCE_HOST || !*rebuilt || !m->edge_vectors
             ? s
             : clb_model_set_shifts(m);
}

/* Updates the graph and its vectors. */
static clb_status find_edges(clb_model *m, const clb_model_atoms *a, clb_model_edges *e) {
  bool rebuilt = false;
  clb_status s = update_graph(m, a, &rebuilt, e);
  if (!s && m->edges == CLB_SOURCE_HOST) s = host_vectors(m, a, e);
  else if (!s) s = device_vectors(m, a, rebuilt && m->edges == CLB_SOURCE_DEVICE);
  if (s) m->edges = CLB_SOURCE_NONE;
  return s;
}

static clb_status compute(clb_model *m, const clb_model_atoms *a, const clb_model_results *r) {
  clb_model_edges e;
  double virial[9];
  clb_status s = clb_model_check_atoms(m, a, r);
  if (!s) s = find_edges(m, a, &e);
  if (!s)
    s = clb_model_evaluate(m, &e,
                           &(clb_model_edge_results){.energy = r->energy,
                                                     .e_atom = r->e_atom,
                                                     .forces = r->forces,
                                                     .virial = r->stress ? virial : NULL});
  for (int i = 0; i < 9 && r->stress && !s; i++)
    r->stress[i] = virial[i] / clb_cell_volume(a->cell);
  return s;
}

clb_status clb_model_compute_sized(clb_model *m, const clb_model_atoms *atoms,
                                   const clb_model_results *results, size_t atoms_size,
                                   size_t results_size) {
  clb_model_atoms a;
  clb_model_results r;
  if (!m) return clb_null(__func__, "model");
  if (!atoms || !results)
    return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model_compute: %s is NULL",
                atoms ? "results" : "atoms");
  clb_error_sink *e = &m->ctx->error;
  clb_status s = clb_take_struct(e, "clb_model_atoms", &a, sizeof a, atoms, atoms_size);
  if (!s) s = clb_take_struct(e, "clb_model_results", &r, sizeof r, results, results_size);
  return s ? s : compute(m, &a, &r);
}
