/* tests/training/gradient_sample.h - labelled structures, and the gradient of a loss of them
   against central differences of the loss. */
#ifndef CLB_TESTS_TRAINING_GRADIENT_SAMPLE_H
#define CLB_TESTS_TRAINING_GRADIENT_SAMPLE_H

#include "tests/tools/convert_runner.h"
#include "tests/models/model_places.h"

enum { STRUCTURES = 3 };

/* Three structures: a skewed cell with all labels, an open cluster without stress, and a cell
   without forces. */
typedef struct {
  clb_model_atoms atoms[STRUCTURES];
  clb_labels labels[STRUCTURES];
  int32_t species[STRUCTURES][8];
  double positions[STRUCTURES][24], energy[STRUCTURES], forces[STRUCTURES][24];
  double stress[STRUCTURES][9], weight[STRUCTURES];
} sample;

static const double cell[9] = {4.1, 0.3, 0.1, 0, 4.4, -0.2, 0.2, 0, 4.2};

static inline sample make_sample(int n_species) {
  static const int count[STRUCTURES] = {5, 4, 3};
  sample s = {0};
  uint64_t seed = 11;
  for (int g = 0; g < STRUCTURES; g++) {
    for (int i = 0; i < count[g]; i++) {
      s.species[g][i] = (i + g) % n_species;
      for (int d = 0; d < 3; d++)
        s.positions[g][3 * i + d] = 1.9 * (i >> d & 1) + 0.25 * test_random(&seed);
      for (int d = 0; d < 3; d++) s.forces[g][3 * i + d] = test_random(&seed);
    }
    s.energy[g] = test_random(&seed);
    s.weight[g] = 1 + 0.5 * g;
    for (int k = 0; k < 9; k++) s.stress[g][k] = 0.01 * (k / 3 + k % 3);
  }
  return s;
}

/* Pointers within the sample, which stays where it is. */
static inline void set_sample(sample *s) {
  static const int count[STRUCTURES] = {5, 4, 3};
  for (int g = 0; g < STRUCTURES; g++) {
    const int periodic = g != 1;
    s->atoms[g] = (clb_model_atoms){count[g],
                                    s->species[g],
                                    s->positions[g],
                                    periodic ? cell : NULL,
                                    {periodic, periodic, periodic},
                                    .charge = g - 1,
                                    .spin = 2 - g % 2};
    s->labels[g] = (clb_labels){&s->energy[g], g == 2 ? NULL : s->forces[g],
                                periodic ? s->stress[g] : NULL, &s->weight[g]};
  }
}

static const clb_loss losses[] = {
    {.function = CLB_LOSS_MSE, .energy = 1, .forces = 3, .stress = 0.01, .stress_unit = 1602},
    {.function = CLB_LOSS_HUBER, .delta = 0.4, .energy = 2, .forces = 1, .stress = 5},
    {.function = CLB_LOSS_MAE, .energy = 1, .forces = 1, .stress = 5, .force_norm = 1}};
enum { LOSSES = sizeof losses / sizeof *losses };

static inline double *numbers_for(const opened *o, int64_t *n) {
  clb_model_info info;
  assert_int_equal(clb_model_describe(o->model, &info), CLB_OK);
  *n = info.parameters;
  double *x = malloc((size_t)*n * sizeof *x);
  assert_non_null(x);
  for (int64_t i = 0; i < *n; i++) x[i] = NAN;
  return x;
}

static inline double find(opened *o, const sample *s, const clb_loss *loss, double *gradient) {
  double value = NAN;
  if (clb_model_gradient(o->model, STRUCTURES, s->atoms, s->labels, loss,
                         &(clb_gradient_results){.loss = &value, .gradient = gradient}))
    fail_msg("%s", clb_error(o->ctx));
  return value;
}

static inline double loss_at(opened *o, const sample *s, const clb_loss *loss,
                             const double *parameters) {
  if (clb_model_set_parameters(o->model, parameters)) fail_msg("%s", clb_error(o->ctx));
  return find(o, s, loss, NULL);
}

/* Of a made model, which is closed then. */
static inline double *gradient_of(opened o, int which, int64_t *n) {
  sample s = make_sample(made_models[which].n_species);
  set_sample(&s);
  double *g = numbers_for(&o, n);
  find(&o, &s, &losses[1], g);
  close_model(&o);
  return g;
}

/* By what part of the size of `wanted` it differs. */
static inline double part_off(int64_t n, const double *found, const double *wanted) {
  double size = 0, off = 0;
  for (int64_t i = 0; i < n; i++) {
    size += wanted[i] * wanted[i];
    off += (found[i] - wanted[i]) * (found[i] - wanted[i]);
  }
  return sqrt(off / size);
}

/* ---- central differences ---- */

/* Of the loss along random numbers in one tensor, of fourth order. */
static inline double slope_of(opened *o, const sample *s, const clb_loss *loss, const double *x,
                              int64_t n, const clb_tensor_info *t, const double *along) {
  static const double place[] = {-2, -1, 1, 2}, weight[] = {1, -8, 8, -1};
  const double h = 1e-3;
  double *moved = malloc((size_t)n * sizeof *moved), sum = 0;
  assert_non_null(moved);
  memcpy(moved, x, (size_t)n * sizeof *moved);
  for (int k = 0; k < 4; k++) {
    for (int64_t i = 0; i < t->count; i++)
      moved[t->first + i] = x[t->first + i] + place[k] * h * along[i];
    sum += weight[k] * loss_at(o, s, loss, moved);
  }
  free(moved);
  return sum / (12 * h);
}

/* Not trained: radii, cutoffs and neighbours of species, zbl_*. */
static inline bool is_trained(const char *name) {
  static const char *const fixed[] = {"agnesi_radii", "pair_cutoffs", "avg_num_neighbors"};
  bool trained = strncmp(name, "zbl_", 4) != 0;
  for (int i = 0; i < 3; i++) trained &= strcmp(name, fixed[i]) != 0;
  return trained;
}

static inline void expect_slopes(opened *o, const sample *s, const clb_loss *loss) {
  int64_t n;
  double *g = numbers_for(o, &n), *x = numbers_for(o, &n), *along = numbers_for(o, &n), size = 0;
  uint64_t seed = 3;
  clb_tensor_info t;
  int tensors = 0;
  assert_int_equal(clb_model_parameters(o->model, x), CLB_OK);
  assert_true(find(o, s, loss, g) > 0);
  for (int64_t i = 0; i < n; i++) size += g[i] * g[i];
  for (int64_t k = 0; !clb_model_tensor(o->model, k, &t); k++) {
    double expected = 0;
    if (!is_trained(t.name)) continue;
    for (int64_t i = 0; i < t.count; i++) along[i] = test_random(&seed) / sqrt((double)t.count);
    for (int64_t i = 0; i < t.count; i++) expected += g[t.first + i] * along[i];
    const double slope = slope_of(o, s, loss, x, n, &t, along);
    if (fabs(slope - expected) > 1e-7 * (fabs(slope) + 0.01 * sqrt(size)))
      fail_msg("%s: %.12g, but by differences %.12g", t.name, expected, slope);
    tensors++;
  }
  assert_true(tensors > 10);
  loss_at(o, s, loss, x);
  free(g);
  free(x);
  free(along);
}

#endif
