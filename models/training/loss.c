/* models/training/loss.c - the losses of model.h: terms of energies, forces and stresses, with
   their derivatives by what was predicted. */
#include "models/training/loss.h"

#include <math.h>
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

clb_status clb_loss_check(clb_error_sink *error, const clb_loss *loss, int64_t n,
                          const clb_model_atoms *atoms, const clb_labels *labels) {
  clb_status s = check_loss(error, loss);
  for (int64_t g = 0; g < n && !s; g++) {
    const clb_labels *l = &labels[g];
    if (l->weight && !good_factor(*l->weight))
      return FAIL(error, "weight of structure %lld is %g; it must be finite, and not below 0",
                  (long long)g, *l->weight);
    if (l->stress && !atoms[g].cell)
      return FAIL(error, "structure %lld has a stress, but no cell", (long long)g);
    s = check_numbers(error, g, "energy", 1, l->energy);
    if (!s) s = check_numbers(error, g, "forces", 3 * atoms[g].n, l->forces);
    if (!s) s = check_numbers(error, g, "stress", 9, l->stress);
  }
  return s;
}

/* ---- terms ---- */

/* f(d), and its derivative. */
static double measure(const clb_loss *l, double d, double *slope) {
  const double size = fabs(d), sign = (d > 0) - (d < 0);
  if (l->function == CLB_LOSS_MSE) {
    *slope = 2 * d;
    return d * d;
  }
  if (l->function == CLB_LOSS_MAE) {
    *slope = sign;
    return size;
  }
  *slope = size <= l->delta ? d : sign * l->delta;
  return size <= l->delta ? d * d / 2 : l->delta * (size - l->delta / 2);
}

/* part sum_i f(unit (x_i - label_i)); by[i] = factor times its derivative by x_i. */
static double sum_of(const clb_loss *l, double part, double factor, double unit, int64_t n,
                     const double *x, const double *label, double *by) {
  double sum = 0, slope;
  for (int64_t i = 0; x && label && i < n; i++) {
    if (isnan(label[i])) continue;
    sum += part * measure(l, unit * (x[i] - label[i]), &slope);
    by[i] = factor * part * unit * slope;
  }
  return sum;
}

/* part sum_i |F_i - label_i|; by[i][3] = factor times its derivatives by F_i. */
static double sum_of_lengths(double part, double factor, int64_t n, const double *force,
                             const double *label, double *by) {
  double sum = 0;
  for (int64_t i = 0; force && label && i < 3 * n; i += 3) {
    const double d[] = {force[i] - label[i], force[i + 1] - label[i + 1],
                        force[i + 2] - label[i + 2]};
    const double length = hypot(hypot(d[0], d[1]), d[2]);
    if (isnan(label[i]) || isnan(label[i + 1]) || isnan(label[i + 2])) continue;
    sum += part * length;
    for (int k = 0; k < 3 && length > 0; k++) by[i + k] = factor * part * (d[k] / length);
  }
  return sum;
}

/* What a structure, of w = its weight, adds to the terms. */
static void add_structure(const clb_loss *l, double w, double n_structures, double n_atoms,
                          int64_t n, const clb_labels *known, const clb_model_results *computed,
                          clb_loss_result *to) {
  const double unit = l->stress_unit > 0 ? l->stress_unit : 1;
  if (n > 0) {
    to->terms[0] += sum_of(l, w / n_structures, l->energy, 1 / (double)n, 1, computed->energy,
                           known->energy, to->by_energy);
    to->terms[1] += l->force_norm ? sum_of_lengths(w / n_atoms, l->forces, n, computed->forces,
                                                   known->forces, to->by_force)
                                  : sum_of(l, w / (3 * n_atoms), l->forces, 1, 3 * n,
                                           computed->forces, known->forces, to->by_force);
  }
  to->terms[2] += sum_of(l, w / (9 * n_structures), l->stress, unit, 9, computed->stress,
                         known->stress, to->by_stress);
}

clb_status clb_loss_compute(clb_error_sink *error, const clb_loss *loss, int64_t n,
                            const clb_model_atoms *atoms, const clb_labels *labels,
                            const clb_model_results *computed, clb_loss_result *result) {
  const clb_status s = clb_loss_check(error, loss, n, atoms, labels);
  clb_loss_result at = {0, {0}, result->by_energy, result->by_force, result->by_stress};
  int64_t n_atoms = 0;
  for (int64_t g = 0; g < n; g++) n_atoms += atoms[g].n;
  if (s) return s;
  for (int64_t i = 0; i < n; i++) at.by_energy[i] = 0;
  for (int64_t i = 0; i < 3 * n_atoms; i++) at.by_force[i] = 0;
  for (int64_t i = 0; i < 9 * n; i++) at.by_stress[i] = 0;
  for (int64_t g = 0; g < n; g++) {
    add_structure(loss, labels[g].weight ? *labels[g].weight : 1, (double)n, (double)n_atoms,
                  atoms[g].n, &labels[g], &computed[g], &at);
    at.by_energy++;
    at.by_force += 3 * atoms[g].n;
    at.by_stress += 9;
  }
  memcpy(result->terms, at.terms, sizeof at.terms);
  result->loss =
      loss->energy * at.terms[0] + loss->forces * at.terms[1] + loss->stress * at.terms[2];
  return CLB_OK;
}
