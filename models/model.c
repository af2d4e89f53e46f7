/* models/model.c - the calls of model.h. */
#include "models/read.h"
#include "models/blocks.h"
#include "models/dispersion/model_dispersion.h"
#include "models/training/training.h"
#include "src/base/sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(m, s, ...) clb_fail(&(m)->ctx->error, s, __VA_ARGS__)

/* ---- open ---- */

/* Of a search that the host waits for; on CPUs it costs less than room for more edges. */
static bool waits_cost(const clb_model *m) {
  return !m->ctx->device->limits.simd && !m->options.trains && !m->options.block_atoms;
}

clb_status clb_model_load(clb_model *m, const char *path, int knots) {
  clb_context *ctx = m->ctx;
  clb_status s = clb_model_read(&ctx->error, path, knots, m->options.trains != 0, &m->net);
  m->edges.between.cutoff = m->net.r_max;
  m->edges.auto_skin = m->options.skin == CLB_AUTO_SKIN;
  m->edges.between.skin = fmax(m->options.skin, 0);
  m->edges.knows = m->options.trains != 0;
  m->edges.room.most_atoms = waits_cost(m) ? CLB_RECORDED_ATOMS : 0;
  m->training.recorded_use = ctx->device->limits.simd ? 0 : CLB_RECORDED_USE;
  m->batch_atoms = 1 << 15;
  if (!s && (s = clb_model_build(m)))
    clb_fail(&ctx->error, s, "%s: %s", path, ctx->error.text.s ? ctx->error.text.s : "no memory");
  if (!s) m->edges.weights = m->info.weights;
  return s;
}

void clb_model_unload(clb_model *m) {
  clb_model_forget_step(m);
  clb_op **ops[] = {&m->virial, &m->forces, &m->zero};
  clb_buffer **buffers[] = {&m->species_of, &m->results, &m->v_atom};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) clb_op_destroy(ops[i]);
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) clb_buffer_destroy(buffers[i]);
  clb_training_free(m);
  clb_model_free_dispersion(m);
  clb_edges_free(&m->edges);
  clb_blocks_free(m);
  clb_network_free(&m->net);
  free(m->species);
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
  const clb_model_neighbours all = {m->edges.between.n_edges, m->edges.rebuilds};
  clb_give_struct(&all, sizeof all, neighbours, size);
  return CLB_OK;
}

/* ---- edges ---- */

clb_status clb_model_start(clb_model *m, const clb_model_edges *e,
                           const clb_model_edge_results *r) {
  const clb_rows v = clb_all_values(&m->net, CLB_VECTORS);
  clb_status s =
      e->vectors ? clb_numbers_write(v.buffer, m->type, 0, 3 * e->n_edges, e->vectors) : CLB_OK;
  if (!s) s = clb_model_submit(m, e, r);
  return s ? s : clb_model_add_dispersion(m, r);
}

clb_status clb_model_finish(clb_model *m, const clb_model_edges *e,
                            const clb_model_edge_results *r) {
  clb_network *n = &m->net;
  const clb_rows g_v = clb_all_gradients(n, CLB_VECTORS);
  clb_status s = clb_model_read_results(m, r->energy, r->virial, r->forces, r->e_atom);
  if (s || clb_model_outgrown(m)) return s;
  if (r->v_atom) s = clb_numbers_read(m->v_atom, m->sum_type, 0, 9 * n->n_local, r->v_atom);
  if (!s && r->v_atom) s = clb_model_finite(m, "v_atom", n->n_local, 9, r->v_atom);
  if (!s && r->d_vectors)
    s = clb_numbers_read(g_v.buffer, m->type, 0, 3 * e->n_edges, r->d_vectors);
  return s || !r->d_vectors ? s : clb_model_finite(m, "d_vectors", e->n_edges, 3, r->d_vectors);
}

clb_status clb_model_evaluate(clb_model *m, const clb_model_edges *e,
                              const clb_model_edge_results *r) {
  m->net.vectors = e->vectors_buffer;
  m->net.g_vectors = r->d_vectors_buffer;
  clb_status s = clb_model_start(m, e, r);
  if (!s) s = clb_model_finish(m, e, r);
  m->net.vectors = m->net.g_vectors = NULL;
  return s;
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

clb_status clb_model_set_edges(clb_model *m, const clb_model_atoms *a, clb_model_edges *e) {
  clb_edge_list *l = &m->edges;
  clb_status s = clb_edges_of_atoms(l, a, e);
  if (s == CLB_ERROR_MEMORY && l->between.n_edges)
    clb_model_explain_memory(m, a->n, l->between.n_edges);
  if (!s) s = clb_model_set_states(m, 1, a);
  if (!s) s = clb_model_set_graph(m, e);
  if (!s)
    s = clb_edges_vectors(l, m->net.whole, a->positions, clb_all_values(&m->net, CLB_VECTORS), e);
  if (!s) s = clb_model_place_dispersion(m, 1, a, a->n, NULL, a->positions);
  if (s) clb_edges_forget(l);
  return s;
}

clb_status clb_model_compute_atoms(clb_model *m, const clb_model_atoms *a,
                                   const clb_model_results *r) {
  clb_model_edges e;
  double virial[9];
  const clb_model_edge_results wanted = {.energy = r->energy,
                                         .e_atom = r->e_atom,
                                         .forces = r->forces,
                                         .virial = r->stress ? virial : NULL,
                                         .v_atom = r->v_atom};
  clb_status s = clb_model_check_atoms(m, a, r);
  if (!s) do {
      s = clb_model_set_edges(m, a, &e);
      if (!s) s = clb_model_evaluate(m, &e, &wanted);
    } while (!s && clb_model_outgrown(m));
  for (int i = 0; i < 9 && r->stress && !s; i++)
    r->stress[i] = virial[i] / clb_cell_volume(a->cell);
  if (!s && r->v_atom) clb_model_symmetrise(a->n, r->v_atom);
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
  return s ? s : clb_model_compute_atoms(m, &a, &r);
}
