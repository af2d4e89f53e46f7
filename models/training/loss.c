/* models/training/loss.c - the losses of model.h: what is refused, labels on the device, and sums
   of what it makes of each structure. */
#include "models/training/loss.h"

#include "kernels/layers/host/layers.h"
#include "kernels/layers/host/structure_loss.h"
#include "models/atoms/neighbours.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(e, ...) clb_fail(e, CLB_ERROR_ARGUMENT, "clb_model_gradient: " __VA_ARGS__)

/* ---- checks ---- */

static bool good_factor(double x) { return isfinite(x) && x >= 0; }

static clb_status check_loss(clb_error_sink *error, const clb_loss *l) {
  const struct {
    const char *name;
    double value;
  } factors[] = {{"energy", l->energy},
                 {"forces", l->forces},
                 {"stress", l->stress},
                 {"stress_unit", l->stress_unit}};
  if (l->function != CLB_LOSS_MSE && l->function != CLB_LOSS_MAE && l->function != CLB_LOSS_HUBER)
    return FAIL(error, "function of the loss is %d, which is no clb_loss_function",
                (int)l->function);
  for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
    if (!good_factor(factors[i].value))
      return FAIL(error, "%s of the loss is %g; it must be finite, and not below 0",
                  factors[i].name, factors[i].value);
  if (l->function == CLB_LOSS_HUBER && !(isfinite(l->delta) && l->delta > 0))
    return FAIL(error, "delta of the Huber loss is %g; it must be finite, and above 0", l->delta);
  return CLB_OK;
}

static clb_status check_numbers(clb_error_sink *error, int64_t structure, const char *name,
                                int64_t n, const double *x) {
  for (int64_t i = 0; x && i < n; i++)
    if (isinf(x[i]))
      return FAIL(error, "%s[%lld] of structure %lld is %g; what is not known is NaN", name,
                  (long long)i, (long long)structure, x[i]);
  return CLB_OK;
}

/* 0: there is none. */
static double volume_of(const clb_model_atoms *a) { return a->cell ? clb_cell_volume(a->cell) : 0; }

clb_status clb_loss_check(clb_error_sink *error, const clb_loss *loss, int64_t n,
                          const clb_model_atoms *atoms, const clb_labels *labels) {
  clb_status s = check_loss(error, loss);
  for (int64_t g = 0; g < n && !s; g++) {
    const clb_labels *l = &labels[g];
    if (l->weight && !good_factor(*l->weight))
      return FAIL(error, "weight of structure %lld is %g; it must be finite, and not below 0",
                  (long long)g, *l->weight);
    if (l->stress && !(volume_of(&atoms[g]) > 0))
      return FAIL(error, "structure %lld has a stress, but no cell with a volume", (long long)g);
    s = check_numbers(error, g, "energy", 1, l->energy);
    if (!s) s = check_numbers(error, g, "forces", 3 * atoms[g].n, l->forces);
    if (!s) s = check_numbers(error, g, "stress", 9, l->stress);
  }
  return s;
}

/* ---- labels ---- */

clb_status clb_batch_loss_create(clb_context *ctx, clb_dtype type, clb_batch_loss *l) {
  *l = (clb_batch_loss){.ctx = ctx};
  return clb_structure_loss_create(ctx, type, &l->op);
}

void clb_batch_loss_free(clb_batch_loss *l) {
  clb_op_destroy(&l->op);
  clb_buffer_destroy(&l->system);
  clb_buffer_destroy(&l->known);
  clb_buffer_destroy(&l->made);
}

static void copy_known(int64_t n, const double *from, double *to) {
  for (int64_t i = 0; i < n; i++) to[i] = from ? from[i] : NAN;
}

static clb_status put_known(clb_batch_loss *l, const clb_model_atoms *atoms,
                            const clb_labels *labels) {
  const clb_dtype type = clb_sum_type(l->ctx);
  const int64_t count = CLB_KNOWN_COLUMNS * l->n + 3 * l->n_atoms;
  double *known = malloc((size_t)count * sizeof *known + 1);
  if (!known) return clb_fail(&l->ctx->error, CLB_ERROR_MEMORY, "clb_model_gradient: no memory");
  double *forces = known + CLB_KNOWN_COLUMNS * l->n;
  for (int64_t g = 0; g < l->n; g++, labels++) {
    double *row = known + CLB_KNOWN_COLUMNS * g;
    row[CLB_KNOWN_WEIGHT] = labels->weight ? *labels->weight : 1;
    row[CLB_KNOWN_VOLUME] = volume_of(&atoms[g]);
    copy_known(1, labels->energy, row + CLB_KNOWN_ENERGY);
    copy_known(9, labels->stress, row + CLB_KNOWN_STRESS);
    copy_known(3 * atoms[g].n, labels->forces, forces);
    forces += 3 * atoms[g].n;
  }
  clb_status s = clb_buffer_grow(l->ctx, &l->known, count, clb_dtype_bytes((int32_t)type));
  if (!s) s = clb_numbers_write(l->known, type, 0, count, known);
  free(known);
  return s;
}

static clb_status put_system(clb_batch_loss *l, const clb_model_atoms *atoms,
                             const int32_t *system) {
  const int64_t count = l->n_atoms + l->n + 1;
  const uint64_t bytes = (uint64_t)count * sizeof *system;
  clb_status s = clb_buffer_grow(l->ctx, &l->system, count, sizeof *system);
  int32_t *all = s ? NULL : clb_staging(l->ctx, bytes);
  if (s) return s;
  if (!all) return clb_fail(&l->ctx->error, CLB_ERROR_MEMORY, "clb_model_gradient: no memory");
  int32_t *first = all + l->n_atoms;
  if (l->n_atoms) memcpy(all, system, (size_t)l->n_atoms * sizeof *system);
  first[0] = 0;
  for (int64_t g = 0; g < l->n; g++) first[g + 1] = first[g] + (int32_t)atoms[g].n;
  return clb_buffer_write(l->system, 0, all, bytes);
}

clb_status clb_batch_loss_set(clb_batch_loss *l, const clb_loss *loss, int64_t n,
                              const clb_model_atoms *atoms, const clb_labels *labels,
                              const int32_t *system) {
  l->loss = *loss;
  l->n = n;
  l->n_atoms = 0;
  for (int64_t g = 0; g < n; g++) l->n_atoms += atoms[g].n;
  clb_status s = put_known(l, atoms, labels);
  if (!s) s = put_system(l, atoms, system);
  return s ? s
           : clb_buffer_grow(l->ctx, &l->made, CLB_MADE_COLUMNS * n,
                             clb_dtype_bytes((int32_t)clb_sum_type(l->ctx)));
}

/* ---- terms ---- */

/* B structures and N atoms as in model.h, of the batch. */
static clb_loss_form form_of(const clb_batch_loss *l) {
  const clb_loss *loss = &l->loss;
  const double structures = (double)l->n, atoms = (double)l->n_atoms;
  const bool mse = loss->function == CLB_LOSS_MSE, mae = loss->function == CLB_LOSS_MAE;
  return (clb_loss_form){.least = mae,
                         .most = mse   ? INFINITY
                                 : mae ? 1
                                       : loss->delta,
                         .scale = mse ? 2 : 1,
                         .half = mae ? 0 : 0.5,
                         .unit = loss->stress_unit > 0 ? loss->stress_unit : 1,
                         .part = {1 / structures,
                                  l->n_atoms ? 1 / (loss->force_norm ? atoms : 3 * atoms) : 0,
                                  1 / (9 * structures)},
                         .factor = {loss->energy, loss->forces, loss->stress},
                         .norm = loss->force_norm != 0};
}

static clb_rows rows_at(clb_buffer *b, int64_t offset) {
  return (clb_rows){b, offset, CLB_DENSE, NULL};
}

clb_status clb_batch_loss_run(const clb_batch_loss *l, const clb_batch_loss_rows *r) {
  const clb_loss_form form = form_of(l);
  return clb_structure_loss_run(
      l->op, &form,
      &(clb_loss_operands){.n = l->n,
                           .n_atoms = l->n_atoms,
                           .first = rows_at(l->system, l->n_atoms),
                           .e_atom = r->e_atom,
                           .forces = r->forces,
                           .v_atom = r->v_atom,
                           .known = rows_at(l->known, 0),
                           .known_forces = rows_at(l->known, CLB_KNOWN_COLUMNS * l->n),
                           .made = rows_at(l->made, 0),
                           .by_energy = r->by_energy,
                           .moves = r->moves,
                           .strains = r->strains});
}

clb_status clb_batch_loss_read(const clb_batch_loss *l, clb_loss_result *r) {
  const double factor[] = {l->loss.energy, l->loss.forces, l->loss.stress};
  const int64_t count = CLB_MADE_COLUMNS * l->n;
  double *made = malloc((size_t)count * sizeof *made + 1);
  clb_status s = made ? clb_numbers_read(l->made, clb_sum_type(l->ctx), 0, count, made)
                      : clb_fail(&l->ctx->error, CLB_ERROR_MEMORY, "clb_model_gradient: no memory");
  *r = (clb_loss_result){0};
  for (const double *x = made; !s && x < made + count; x += CLB_MADE_COLUMNS)
    for (int k = 0; k < 3; k++) {
      r->terms[k] += x[CLB_MADE_TERMS + k];
      for (int i = 0; i < 3; i++) r->errors[k][i] += x[CLB_MADE_ERRORS + 3 * k + i];
    }
  for (int k = 0; k < 3; k++) r->loss += factor[k] * r->terms[k];
  free(made);
  return s;
}
