/* tests/models/model_places.h - models opened on devices, atoms, and the results for them. */
#ifndef CLB_TESTS_MODELS_MODEL_PLACES_H
#define CLB_TESTS_MODELS_MODEL_PLACES_H

#include <clebsch/model.h>

#include <math.h>
#include <unistd.h>

#include "models/atoms/neighbours.h"
#include "models/model_state.h"
#include "tests/fakes/device_limits.h"
#include "tests/models/model_made.h"

enum { MAX_ATOMS = 128 };

typedef struct {
  int64_t n;
  int32_t species[MAX_ATOMS];
  double positions[3 * MAX_ATOMS], cell[9];
  int periodic[3], charge, spin;
} atom_set;

typedef struct {
  double energy, e_atom[MAX_ATOMS], forces[3 * MAX_ATOMS], stress[9];
} computed;

typedef struct {
  clb_context *ctx;
  clb_model *model;
} opened;

/* limits: of another device, for which kernels are then made; NULL: its own. */
static inline opened open_file_as(const char *device, const clb_limits *limits, const char *path,
                                  const clb_model_options *options) {
  opened o = {0};
  if (clb_context_create(device, &o.ctx)) fail_msg("%s: %s", device, clb_error(o.ctx));
  if (limits) o.ctx->device->limits = *limits;
  if (clb_model_open(o.ctx, path, options, &o.model)) fail_msg("%s: %s", device, clb_error(o.ctx));
  return o;
}

static inline opened open_file(const char *device, const char *path,
                               const clb_model_options *options) {
  return open_file_as(device, NULL, path, options);
}

/* A model in the folder of data: "allegro/bessel", of three species, "esen/cut", of 19. */
static inline opened open_data(const char *device, const clb_limits *limits, const char *name,
                               const clb_model_options *options) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s.safetensors", getenv("CLB_TEST_DATA"), name);
  return open_file_as(device, limits, path, options);
}

/* Whether there is such a device here. */
static inline bool is_here(const char *device) {
  clb_context *ctx = NULL;
  const bool here = !clb_context_create(device, &ctx);
  clb_context_destroy(&ctx);
  return here;
}

static inline void close_model(opened *o) {
  clb_model_destroy(&o->model);
  clb_context_destroy(&o->ctx);
}

/* A made model; its file is removed once it is open. */
static inline opened open_made_as(const char *device, const clb_limits *limits, int which,
                                  const clb_model_options *options) {
  char path[] = "/tmp/clebsch_made_XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  made_write(&made_models[which], path, NULL, NULL);
  opened o = open_file_as(device, limits, path, options);
  unlink(path);
  return o;
}
static inline opened open_made(const char *device, int which, const clb_model_options *options) {
  return open_made_as(device, NULL, which, options);
}

static inline computed compute_atoms(opened *o, const atom_set *a) {
  computed c = {0};
  const clb_model_atoms atoms = {a->n,
                                 a->species,
                                 a->positions,
                                 a->cell,
                                 {a->periodic[0], a->periodic[1], a->periodic[2]},
                                 .charge = a->charge,
                                 .spin = a->spin};
  if (clb_model_compute(o->model, &atoms,
                        &(clb_model_results){&c.energy, c.e_atom, c.forces,
                                             clb_cell_volume(a->cell) > 0 ? c.stress : NULL, NULL}))
    fail_msg("%s", clb_error(o->ctx));
  return c;
}

/* Of the atoms as they are, without a recording. */
static inline computed compute_one_by_one(opened *o, const atom_set *a) {
  clb_model_forget_step(o->model);
  o->model->step.last = 0;
  return compute_atoms(o, a);
}

static inline void expect_equal(const computed *c, const computed *wanted) {
  assert_memory_equal(c, wanted, sizeof *c);
}

static inline double energy_of(opened *o, const atom_set *a) { return compute_atoms(o, a).energy; }

/* Random atoms, no two too close, in a skewed cell that is smaller than the cutoff in one
   direction. */
static inline atom_set random_atoms(int64_t n, int n_species, bool periodic, uint64_t seed) {
  atom_set a = {.n = n,
                .cell = {4.1, 0.2, -0.3, 0.9, 3.8, 0.1, -0.4, 0.6, 2.4},
                .periodic = {periodic, periodic, periodic}};
  for (int64_t i = 0; i < n; i++) {
    double f[3];
    for (int d = 0; d < 3; d++) f[d] = test_random(&seed);
    for (int k = 0; k < 3; k++)
      a.positions[3 * i + k] = f[0] * a.cell[k] + f[1] * a.cell[3 + k] + f[2] * a.cell[6 + k];
    a.species[i] = (int32_t)(i % n_species);
  }
  return a;
}

static inline void close_to(const char *what, int64_t n, const double *x, const double *y,
                            double max) {
  for (int64_t i = 0; i < n; i++)
    if (!(fabs(x[i] - y[i]) <= max))
      fail_msg("%s[%d] is %.15g, not %.15g: off by %g, more than %g", what, (int)i, x[i], y[i],
               x[i] - y[i], max);
}

static inline double largest(int64_t n, const double *x) {
  double max = 0;
  for (int64_t i = 0; i < n; i++) max = fmax(max, fabs(x[i]));
  return max;
}

static inline void expect_same(const computed *c, const computed *wanted, int64_t n, double max) {
  close_to("energy", 1, &c->energy, &wanted->energy, max);
  close_to("e_atom", n, c->e_atom, wanted->e_atom, max);
  close_to("force", 3 * n, c->forces, wanted->forces, max * (1 + largest(3 * n, wanted->forces)));
  close_to("stress", 9, c->stress, wanted->stress, max * (1 + largest(9, wanted->stress)));
}

#endif
