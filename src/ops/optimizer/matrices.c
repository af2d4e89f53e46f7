/* src/ops/optimizer/matrices.c - what rules of matrices have besides the launches that all rules
   share: memory for the matrices, and the products. */
#include "src/ops/optimizer/optimizer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "src/ops/matrices/newton_schulz.h"
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

static bool is_muon(const clb_optimizer *o, int64_t tensor) {
  return o->groups[o->tensors[tensor].group].rule == CLB_MUON &&
         clb_tensor_elements(&o->tensors[tensor]);
}

/* All groups of Muon have the same arithmetic. */
clb_status clb_optimizer_check_muon(clb_context *ctx, const clb_optimizer_desc *d) {
  int first = -1;
  for (int i = 0; i < d->n_groups; i++) {
    if (d->groups[i].rule != CLB_MUON) continue;
    if (first < 0) first = i;
    if (variants[d->groups[i].muon].halves != variants[d->groups[first].muon].halves)
      return OPTIMIZER_FAIL(ctx,
                            "clb_optimizer_create: the variants of Muon of groups %d and %d "
                            "compute in bf16 and in the type of the parameters; both must be alike",
                            variants[d->groups[i].muon].halves ? i : first,
                            variants[d->groups[i].muon].halves ? first : i);
  }
  return CLB_OK;
}

/* ---- the plan ---- */

/* The type of the matrices; false: no rule is of matrices. */
static bool find_type(clb_optimizer *o) {
  clb_optimizer_problem *p = &o->problem.optimizer;
  p->matrices = o->problem.storage;
  for (int i = 0; i < o->desc.n_groups; i++)
    if (o->groups[i].rule == CLB_MUON) {
      p->gathers = 1;
      if (variants[o->groups[i].muon].halves) p->matrices = CLB_BF16;
    }
  if (!p->gathers) p->matrices = 0;
  return p->gathers;
}

/* Elements of a matrix, so that the next one starts at a multiple of a wide access. */
static int64_t aligned(int64_t elements) { return clb_divide_up(elements, 8) * 8; }

static clb_status plan_muon(clb_optimizer *o) {
  clb_newton_schulz_matrix *m = calloc((size_t)o->desc.n_tensors, sizeof *m);
  const clb_dtype storage = (clb_dtype)o->problem.optimizer.matrices;
  int64_t n = 0;
  if (!m) return clb_fail(&o->ctx->error, CLB_ERROR_MEMORY, "clb_optimizer_create: no memory");
  for (int64_t i = 0; i < o->desc.n_tensors; i++) {
    const clb_optimizer_tensor *t = &o->tensors[i];
    const clb_optimizer_group *g = &o->groups[t->group];
    if (!is_muon(o, i)) continue;
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
    if (!is_muon(o, i)) continue;
    o->matrix_places[i] = (clb_matrix_places){m[n].u, m[n].result};
    n++;
  }
  free(m);
  return s;
}

clb_status clb_optimizer_plan_matrices(clb_optimizer *o) {
  if (!find_type(o)) return CLB_OK;
  o->matrix_places = calloc((size_t)o->desc.n_tensors, sizeof *o->matrix_places);
  return o->matrix_places
             ? plan_muon(o)
             : clb_fail(&o->ctx->error, CLB_ERROR_MEMORY, "clb_optimizer_create: no memory");
}

uint64_t clb_optimizer_matrix_bytes(const clb_optimizer *o) {
  return (uint64_t)aligned(o->matrix_elements + 1) *
         (uint64_t)clb_dtype_bytes(o->problem.optimizer.matrices);
}

void clb_optimizer_free_matrices(clb_optimizer *o) {
  clb_newton_schulz_destroy(&o->newton_schulz);
  if (o->matrix.handle) clb_memory_free(o->ctx, &o->matrix);
  free(o->matrix_places);
}

clb_status clb_optimizer_run_matrices(clb_optimizer *o) {
  return clb_newton_schulz_run(o->newton_schulz, &o->matrix);
}
