/* models/training/loss.c - the losses of model.h: what is refused, labels on the device, and sums
   of what it makes of each structure. */
#include "models/training/loss.h"

#include "kernels/layers/host/layers.h"
#include "kernels/layers/host/structure_loss.h"
#include "models/atoms/neighbours.h"
#include "src/base/reserve.h"

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
  free(l->unseen);
  free(l->seen);
}

static clb_status no_memory(const clb_batch_loss *l) {
  return clb_fail(&l->ctx->error, CLB_ERROR_MEMORY, "clb_model_gradient: no memory");
}

static void copy_known(int64_t n, const double *from, double *to) {
  for (int64_t i = 0; i < n; i++) to[i] = from ? from[i] : NAN;
}

static clb_status put_known(clb_batch_loss *l, const clb_model_atoms *atoms,
                            const clb_labels *labels) {
  const clb_dtype type = clb_sum_type(l->ctx);
  const int64_t count = CLB_KNOWN_COLUMNS * l->n + 3 * l->n_atoms;
  double *known = malloc((size_t)count * sizeof *known + 1);
  if (!known) return no_memory(l);
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
  const int64_t count = l->n_atoms + l->n + 2;
  const uint64_t bytes = (uint64_t)count * sizeof *system;
  clb_status s = clb_buffer_grow(l->ctx, &l->system, count, sizeof *system);
  int32_t *all = s ? NULL : clb_staging(l->ctx, bytes);
  if (s) return s;
  if (!all) return no_memory(l);
  int32_t *first = all + l->n_atoms + 1;
  if (l->n_atoms) memcpy(all, system, (size_t)l->n_atoms * sizeof *system);
  all[l->n_atoms] = (int32_t)l->at;
  first[0] = 0;
  for (int64_t g = 0; g < l->n; g++) first[g + 1] = first[g] + (int32_t)atoms[g].n;
  return clb_posted_write(l->system, 0, all, bytes);
}

clb_status clb_batch_loss_set(clb_batch_loss *l, const clb_loss *loss, int64_t n,
                              const clb_model_atoms *atoms, const clb_labels *labels,
                              const int32_t *system) {
  l->loss = *loss;
  l->n = n;
  l->n_atoms = 0;
  for (int64_t g = 0; g < n; g++) l->n_atoms += atoms[g].n;
  clb_status s = put_known(l, atoms, labels);
  return s ? s : put_system(l, atoms, system);
}

/* Of the numbers that nobody has seen. */
static int64_t end_of(const clb_batch_loss *l) {
  if (!l->n_unseen) return 0;
  const clb_unseen_loss *last = &l->unseen[l->n_unseen - 1];
  return last->at + CLB_MADE_COLUMNS * last->n + (last->edges >= 0);
}

clb_status clb_batch_loss_place(clb_batch_loss *l, int64_t n, clb_rows *edges) {
  enum { ROOM = 1 << 17 }; /* numbers: 1 MiB, of some 10,000 structures */
  const int64_t bytes = clb_dtype_bytes((int32_t)clb_sum_type(l->ctx)),
                need = CLB_MADE_COLUMNS * n + 1;
  clb_status s = CLB_OK;
  l->at = end_of(l);
  if (l->at && (uint64_t)(l->at + need) > l->made->memory.bytes / (uint64_t)bytes) {
    s = clb_batch_loss_see(l);
    l->at = 0;
  }
  if (!s) s = clb_buffer_grow(l->ctx, &l->made, need < ROOM ? ROOM : need, bytes);
  *edges = (clb_rows){l->made, l->at + CLB_MADE_COLUMNS * n, CLB_DENSE, NULL};
  return s;
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

/* ---- what the host sees ---- */

clb_status clb_batch_loss_keep(clb_batch_loss *l, int64_t edges) {
  if (!clb_reserve(&l->unseen, &l->unseen_capacity, l->n_unseen + 1, sizeof *l->unseen))
    return no_memory(l);
  l->unseen[l->n_unseen++] =
      (clb_unseen_loss){l->at, l->n, edges, {l->loss.energy, l->loss.forces, l->loss.stress}};
  return CLB_OK;
}

static clb_loss_result sum_up(const clb_unseen_loss *b, const double *made) {
  clb_loss_result r = {0};
  const double *end = made + b->at + CLB_MADE_COLUMNS * b->n;
  for (const double *x = made + b->at; x < end; x += CLB_MADE_COLUMNS)
    for (int k = 0; k < 3; k++) {
      r.terms[k] += x[CLB_MADE_TERMS + k];
      for (int i = 0; i < 3; i++) r.errors[k][i] += x[CLB_MADE_ERRORS + 3 * k + i];
    }
  for (int k = 0; k < 3; k++) r.loss += b->factor[k] * r.terms[k];
  return r;
}

static clb_status check_edges(const clb_batch_loss *l, const clb_unseen_loss *b,
                              const double *made) {
  const double found = b->edges < 0 ? -1 : made[b->at + CLB_MADE_COLUMNS * b->n];
  return found == (double)b->edges
             ? CLB_OK
             : clb_fail(&l->ctx->error, CLB_ERROR_DRIVER,
                        "clb_model_gradient: a batch that had %lld edges before has %g now on %s; "
                        "kernels do not run rightly there",
                        (long long)b->edges, found, l->ctx->device->info.name);
}

clb_status clb_batch_loss_see(clb_batch_loss *l) {
  const int64_t n = l->n_unseen, count = end_of(l);
  if (!n) return CLB_OK;
  double *made = malloc((size_t)count * sizeof *made + 1);
  clb_status s = CLB_OK;
  if (!made || !clb_reserve(&l->seen, &l->seen_capacity, l->n_seen + n, sizeof *l->seen))
    s = no_memory(l);
  if (!s) s = clb_numbers_read(l->made, clb_sum_type(l->ctx), 0, count, made);
  l->n_unseen = 0;
  for (int64_t i = 0; i < n && !s; i++) {
    s = check_edges(l, &l->unseen[i], made);
    l->seen[l->n_seen++] = sum_up(&l->unseen[i], made);
  }
  free(made);
  return s;
}

clb_status clb_batch_loss_read(clb_batch_loss *l, clb_loss_result *r) {
  const clb_status s = clb_batch_loss_see(l);
  if (!s) *r = l->seen[--l->n_seen];
  return s;
}
