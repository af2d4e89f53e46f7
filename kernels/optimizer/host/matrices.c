/* kernels/optimizer/host/matrices.c - what rules of matrices have besides the launches that all
   rules share: memory for the matrices, and the products. */
#include "kernels/optimizer/host/optimizer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/grouped/host/newton_schulz.h"
#include "kernels/grouped/host/soap.h"
#include "src/runtime/call.h"

/* ---- variants of Muon ---- */

static double of_columns(double rows, double columns) { return sqrt(fmax(1, columns / rows)); }
static double of_rows(double rows, double columns) { return sqrt(fmax(1, rows / columns)); }
static double of_rms(double rows, double columns) { return 0.2 * sqrt(fmax(rows, columns)); }

static const struct {
  bool halves, at_least; /* bf16; the norm is at least epsilon, which is not added to it */
  double epsilon, (*scale)(double rows, double columns);
} variants[] = {
    [CLB_MUON_OPTAX] = {false, false, 1e-8, of_columns},
    [CLB_MUON_NEQUIX] = {false, false, 1e-7, of_rows},
    [CLB_MUON_NEQUIP] = {true, false, 1e-7, of_rows},
    [CLB_MUON_TORCH] = {true, true, 1e-7, of_rows},
    [CLB_MUON_TORCH_RMS] = {true, true, 1e-7, of_rms},
};
enum { VARIANTS = sizeof variants / sizeof *variants };
_Static_assert((int)VARIANTS == CLB_MUON_TORCH_RMS + 1, "a variant of Muon is missing");

double clb_optimizer_muon_epsilon(clb_muon variant) { return variants[variant].epsilon; }

static bool has_rule(const clb_optimizer *o, int64_t tensor, clb_rule rule) {
  return o->groups[o->tensors[tensor].group].rule == rule &&
         clb_tensor_elements(&o->tensors[tensor]);
}

static bool is_of_matrices(const clb_optimizer_group *g) {
  return g->rule == CLB_MUON || g->rule == CLB_SOAP;
}
static bool in_halves(const clb_optimizer_group *g) {
  return g->rule == CLB_MUON && variants[g->muon].halves;
}

/* All matrices have the same arithmetic. */
clb_status clb_optimizer_check_matrices(clb_context *ctx, const clb_optimizer_desc *d) {
  int first = -1;
  for (int i = 0; i < d->n_groups; i++) {
    if (!is_of_matrices(&d->groups[i])) continue;
    if (first < 0) first = i;
    const bool halves = in_halves(&d->groups[i]);
    if (halves != in_halves(&d->groups[first]))
      return OPTIMIZER_FAIL(ctx,
                            "clb_optimizer_create: the matrices of groups %d and %d are in bf16 "
                            "and in the type of the parameters; both must be alike",
                            halves ? i : first, halves ? first : i);
  }
  return CLB_OK;
}

/* ---- the plan ---- */

static clb_status no_memory(clb_context *ctx) {
  return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_optimizer_create: no memory");
}

/* The type of the matrices; false: no rule is of matrices. */
static bool find_type(clb_optimizer *o) {
  clb_optimizer_problem *p = &o->problem.optimizer;
  int32_t type = o->problem.storage;
  for (int i = 0; i < o->desc.n_groups; i++) {
    p->gathers |= is_of_matrices(&o->groups[i]);
    p->soap |= o->groups[i].rule == CLB_SOAP;
    if (in_halves(&o->groups[i])) type = CLB_BF16;
  }
  p->matrices = p->gathers ? type : 0;
  return p->gathers;
}

/* Elements of a matrix, so that the next one starts at a multiple of a wide access. */
static int64_t aligned(int64_t elements) { return clb_divide_up(elements, 8) * 8; }

/* A vector has no side to be rotated. A tensor's gate is that of its first chunk. */
static clb_status plan_soap(clb_optimizer *o) {
  clb_soap_matrix *m = calloc((size_t)o->desc.n_tensors, sizeof *m);
  const int64_t chunk = clb_optimizer_chunk_size(o);
  int64_t n = 0, gate = 0;
  if (!m) return no_memory(o->ctx);
  for (int64_t i = 0; i < o->desc.n_tensors; i++) {
    const clb_optimizer_tensor *t = &o->tensors[i];
    const clb_optimizer_group *g = &o->groups[t->group];
    const bool vector = t->rows == 1 || t->columns == 1;
    if (has_rule(o, i, CLB_SOAP))
      m[n++] = (clb_soap_matrix){.rows = t->rows,
                                 .columns = t->columns,
                                 .left = !vector && t->rows <= g->longest_side,
                                 .right = !vector && t->columns <= g->longest_side,
                                 .beta = g->beta2,
                                 .gate = gate};
    gate += clb_divide_up(clb_tensor_elements(t), chunk);
  }
  clb_status s = clb_soap_create(o->ctx, (clb_dtype)o->problem.storage, m, n, &o->matrix_elements,
                                 &o->matrices_kept, &o->soap);
  n = 0;
  for (int64_t i = 0; i < o->desc.n_tensors && !s; i++) {
    if (!has_rule(o, i, CLB_SOAP)) continue;
    const clb_soap_matrix *x = &m[n++];
    o->matrix_places[i] =
        (clb_matrix_places){x->gradient, x->mean, x->rotated, x->rotated_mean, x->direction};
  }
  free(m);
  return s;
}

static clb_status plan_muon(clb_optimizer *o) {
  clb_newton_schulz_matrix *m = calloc((size_t)o->desc.n_tensors, sizeof *m);
  const clb_dtype storage = (clb_dtype)o->problem.optimizer.matrices;
  int64_t n = 0;
  if (!m) return no_memory(o->ctx);
  o->matrix_elements = aligned(o->matrix_elements);
  for (int64_t i = 0; i < o->desc.n_tensors; i++) {
    const clb_optimizer_tensor *t = &o->tensors[i];
    const clb_optimizer_group *g = &o->groups[t->group];
    if (!has_rule(o, i, CLB_MUON)) continue;
    const bool at_least = variants[g->muon].at_least;
    m[n++] = (clb_newton_schulz_matrix){
        .rows = t->rows,
        .columns = t->columns,
        .u = o->matrix_elements,
        .floor = at_least ? g->epsilon : 0,
        .epsilon = at_least ? 0 : g->epsilon,
        .scale = variants[g->muon].scale((double)t->rows, (double)t->columns)};
    o->matrix_elements += aligned(clb_tensor_elements(t));
  }
  clb_status s = clb_newton_schulz_create(o->ctx, storage, storage == CLB_F64 ? CLB_F64 : CLB_F32,
                                          m, n, &o->matrix_elements, &o->newton_schulz);
  n = 0;
  for (int64_t i = 0; i < o->desc.n_tensors && !s; i++) {
    if (!has_rule(o, i, CLB_MUON)) continue;
    o->matrix_places[i] = (clb_matrix_places){.gathered = m[n].u, .direction = m[n].result};
    n++;
  }
  free(m);
  return s;
}

clb_status clb_optimizer_plan_matrices(clb_optimizer *o) {
  if (!find_type(o)) return CLB_OK;
  bool muon = false;
  for (int i = 0; i < o->desc.n_groups; i++) muon |= o->groups[i].rule == CLB_MUON;
  o->matrix_places = calloc((size_t)o->desc.n_tensors, sizeof *o->matrix_places);
  clb_status s = o->matrix_places ? CLB_OK : no_memory(o->ctx);
  if (!s && o->problem.optimizer.soap) s = plan_soap(o);
  return s || !muon ? s : plan_muon(o);
}

uint64_t clb_optimizer_matrix_bytes(const clb_optimizer *o) {
  return (uint64_t)aligned(o->matrix_elements + 1) *
         (uint64_t)clb_dtype_bytes(o->problem.optimizer.matrices);
}

void clb_optimizer_free_matrices(clb_optimizer *o) {
  clb_newton_schulz_destroy(&o->newton_schulz);
  clb_soap_destroy(&o->soap);
  if (o->matrix.handle) clb_memory_free(o->ctx, &o->matrix);
  if (o->gates.handle) clb_memory_free(o->ctx, &o->gates);
  free(o->matrix_places);
}

clb_status clb_optimizer_rotate(clb_optimizer *o) {
  return o->soap ? clb_soap_rotate(o->soap, &o->matrix, &o->gates) : CLB_OK;
}

clb_status clb_optimizer_run_matrices(clb_optimizer *o) {
  const clb_status s = o->soap ? clb_soap_rotate_back(o->soap, &o->matrix, &o->gates) : CLB_OK;
  return s || !o->newton_schulz ? s : clb_newton_schulz_run(o->newton_schulz, &o->matrix);
}
