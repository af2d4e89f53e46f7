/* models/training/gradient.c - clb_model_gradient: a batch's loss, and its gradient by parameters.
 */
#include <stdlib.h>
#include <string.h>

#include "models/batch.h"
#include "models/training/loss.h"
#include "models/training/training.h"
#include "src/base/sizes.h"

#define FAIL(m, s, ...) clb_fail(&(m)->ctx->error, s, __VA_ARGS__)

/* Structures of a batch, with what is computed and derived of them. */
typedef struct {
  int64_t n, n_atoms;
  clb_model_atoms *atoms;    /* [n] */
  clb_labels *labels;        /* [n] */
  clb_model_results *result; /* [n]: places in the arrays below */
  double *energy, *force, *stress;
  clb_loss_result loss;
} structures;

static clb_status no_memory(clb_model *m) {
  return FAIL(m, CLB_ERROR_MEMORY, "clb_model_gradient: no memory");
}

static void free_structures(structures *x) {
  void *const all[] = {x->atoms,  x->labels,         x->result,        x->energy,        x->force,
                       x->stress, x->loss.by_energy, x->loss.by_force, x->loss.by_stress};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* ---- what is given ---- */

typedef struct {
  const void *atoms, *labels;
  size_t atoms_size, labels_size;
} given;

static clb_status take(clb_model *m, const given *from, structures *x) {
  clb_error_sink *e = &m->ctx->error;
  clb_status s = CLB_OK;
  x->atoms = calloc((size_t)x->n + 1, sizeof *x->atoms);
  x->labels = calloc((size_t)x->n + 1, sizeof *x->labels);
  x->result = calloc((size_t)x->n + 1, sizeof *x->result);
  if (!x->atoms || !x->labels || !x->result) return no_memory(m);
  for (int64_t i = 0; i < x->n && !s; i++) {
    s = clb_take_struct(e, "clb_model_atoms", &x->atoms[i], sizeof *x->atoms,
                        (const char *)from->atoms + (size_t)i * from->atoms_size, from->atoms_size);
    if (!s)
      s = clb_take_struct(e, "clb_labels", &x->labels[i], sizeof *x->labels,
                          (const char *)from->labels + (size_t)i * from->labels_size,
                          from->labels_size);
  }
  return s ? s : clb_structures_check(m, x->n, x->atoms, x->result);
}

static bool has_volume(const clb_model_atoms *a) { return a->cell && clb_cell_volume(a->cell) > 0; }

static clb_status check_labels(clb_model *m, const structures *x, const clb_loss *loss) {
  for (int64_t i = 0; i < x->n; i++)
    if (x->labels[i].stress && !has_volume(&x->atoms[i]))
      return FAIL(m, CLB_ERROR_ARGUMENT,
                  "clb_model_gradient: structure %lld has a stress, but no cell with a volume",
                  (long long)i);
  return clb_loss_check(&m->ctx->error, loss, x->n, x->atoms, x->labels);
}

/* Places for what is computed. */
static clb_status reserve(clb_model *m, structures *x) {
  const size_t n = (size_t)x->n;
  int64_t at = 0;
  for (int64_t i = 0; i < x->n; i++) x->n_atoms += x->atoms[i].n;
  const size_t atoms = (size_t)x->n_atoms;
  double **const all[] = {&x->energy,         &x->force,         &x->stress,
                          &x->loss.by_energy, &x->loss.by_force, &x->loss.by_stress};
  for (size_t i = 0; i < 6; i++) {
    const size_t count = i % 3 == 0 ? n : i % 3 == 1 ? 3 * atoms : 9 * n;
    if (!(*all[i] = calloc(count + 1, sizeof(double)))) return no_memory(m);
  }
  for (int64_t i = 0; i < x->n; i++) {
    x->result[i] = (clb_model_results){.energy = x->energy + i, .forces = x->force + 3 * at};
    if (has_volume(&x->atoms[i])) x->result[i].stress = x->stress + 9 * i;
    at += x->atoms[i].n;
  }
  return CLB_OK;
}

/* ---- what follows from the loss ---- */

/* The derivative by each atom's energy. */
static double *by_atoms(const structures *x) {
  double *to = malloc(((size_t)x->n_atoms + 1) * sizeof *to), *next = to;
  for (int64_t i = 0; i < x->n && to; i++)
    for (int64_t j = 0; j < x->atoms[i].n; j++) *next++ = x->loss.by_energy[i];
  return to;
}

/* S of a structure. */
static void strain(const structures *x, int64_t i, double s[9]) {
  const double *b = x->loss.by_stress + 9 * i,
               volume = has_volume(&x->atoms[i]) ? clb_cell_volume(x->atoms[i].cell) : 1;
  for (int k = 0; k < 9; k++) s[k] = (b[k] + b[k % 3 * 3 + k / 3]) / (2 * volume);
}

static clb_status find_gradient(clb_model *m, const structures *x, const int32_t *system,
                                double *gradient) {
  double *by_energy = by_atoms(x), *strains = malloc(9 * (size_t)x->n * sizeof *strains),
         *by_weights = malloc((size_t)m->net.n_weights * sizeof *by_weights + 1);
  clb_status s = by_energy && strains && by_weights ? CLB_OK : no_memory(m);
  for (int64_t i = 0; i < x->n && !s; i++) strain(x, i, strains + 9 * i);
  if (!s)
    s = clb_training_sweep(m,
                           &(clb_training_loss){.n = x->n,
                                                .n_atoms = x->n_atoms,
                                                .by_energy = by_energy,
                                                .by_force = x->loss.by_force,
                                                .strain = strains,
                                                .system = system},
                           by_weights);
  if (!s) clb_parameters_gradient(&m->net.parameter, by_weights, gradient);
  free(strains);
  free(by_energy);
  free(by_weights);
  return s ? s : clb_model_finite(m, "the loss's gradient", m->net.parameter.n, 1, gradient);
}

/* ---- the call ---- */

static void hand_out(const structures *x, const clb_gradient_results *r) {
  if (r->loss) *r->loss = x->loss.loss;
  if (r->terms) memcpy(r->terms, x->loss.terms, sizeof x->loss.terms);
  if (r->energies) memcpy(r->energies, x->energy, (size_t)x->n * sizeof *x->energy);
  if (r->forces) memcpy(r->forces, x->force, 3 * (size_t)x->n_atoms * sizeof *x->force);
  if (r->stresses) memcpy(r->stresses, x->stress, 9 * (size_t)x->n * sizeof *x->stress);
}

static clb_status compute(clb_model *m, structures *x, const clb_loss *loss,
                          const clb_gradient_results *r) {
  clb_model_edges e;
  clb_structures b = {.atoms = x->atoms, .results = x->result, .list = {.cutoff = m->net.r_max}};
  clb_structures_take(&b, x->n, INT64_MAX);
  clb_status s = clb_structures_set(m, &b, &e);
  if (!s)
    s = clb_model_evaluate(
        m, &e,
        &(clb_model_edge_results){.e_atom = b.e_atom, .forces = b.force, .v_atom = b.v_atom});
  if (!s) clb_structures_hand_out(&b);
  if (!s)
    s = clb_loss_compute(&m->ctx->error, loss, x->n, x->atoms, x->labels, x->result, &x->loss);
  if (!s && r->gradient) s = find_gradient(m, x, b.system, r->gradient);
  clb_edges_forget(&m->edges);
  clb_structures_free(&b);
  clb_neighbours_free(&b.list);
  if (!s) hand_out(x, r);
  return s;
}

clb_status clb_model_gradient_sized(clb_model *m, int64_t n, const clb_model_atoms *atoms,
                                    const clb_labels *labels, const clb_loss *loss,
                                    const clb_gradient_results *results, size_t atoms_size,
                                    size_t labels_size, size_t loss_size, size_t results_size) {
  clb_loss l;
  clb_gradient_results r;
  clb_status s = clb_training_check(m, "clb_model_gradient");
  if (s) return s;
  if (n < 1 || !atoms || !labels || !loss || !results)
    return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model_gradient: %s",
                n < 1     ? "there are no structures"
                : !atoms  ? "atoms is NULL"
                : !labels ? "labels is NULL"
                : !loss   ? "loss is NULL"
                          : "results is NULL");
  clb_error_sink *e = &m->ctx->error;
  structures x = {.n = n};
  s = clb_take_struct(e, "clb_loss", &l, sizeof l, loss, loss_size);
  if (!s) s = clb_take_struct(e, "clb_gradient_results", &r, sizeof r, results, results_size);
  if (!s) s = take(m, &(given){atoms, labels, atoms_size, labels_size}, &x);
  if (!s) s = check_labels(m, &x, &l);
  if (!s) s = reserve(m, &x);
  if (!s) s = compute(m, &x, &l, &r);
  free_structures(&x);
  return s;
}
