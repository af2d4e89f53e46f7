/* tests/dispersion/dispersion_run.h - dispersion of atoms on a device, without a model. */
#ifndef CLB_TESTS_DISPERSION_DISPERSION_RUN_H
#define CLB_TESTS_DISPERSION_DISPERSION_RUN_H

#include <jansson.h>
#include <math.h>

#include "models/atoms/neighbours.h"
#include "models/dispersion/d3.h"
#include "models/dispersion/d3_tables.h"
#include "tests/test.h"

enum { MOST = 94 };

typedef struct {
  int n, z[MOST];
  double x[3 * MOST], cell[9];
  bool periodic[3];
  const char *functional;
  double cutoffs[2]; /* of pairs, of coordination numbers */
  bool three_body;
} molecule;

typedef struct {
  double energy, virial[9], energies[MOST], forces[3 * MOST], virials[9 * MOST];
} dispersed;

/* What results had before. */
static const double old = 0.125;

static clb_buffer *buffer_of(clb_context *ctx, const void *from, size_t bytes) {
  clb_buffer *b;
  OK(ctx, clb_buffer_create(ctx, bytes + 1, &b));
  if (bytes) OK(ctx, clb_buffer_write(b, 0, from, bytes));
  return b;
}

static clb_rows results_of(clb_context *ctx, int64_t n) {
  double *x = malloc((size_t)(n + 1) * sizeof *x);
  for (int64_t i = 0; i <= n; i++) x[i] = old;
  const clb_rows r = {buffer_of(ctx, x, (size_t)(n + 1) * sizeof *x), 1, CLB_DENSE, NULL};
  free(x);
  return r;
}

static void take(clb_context *ctx, clb_rows r, int64_t n, double *to) {
  double *x = malloc((size_t)(n + 1) * sizeof *x);
  OK(ctx, clb_buffer_read(r.buffer, 0, x, (size_t)(n + 1) * sizeof *x));
  assert_true(x[0] == old);
  for (int64_t i = 0; i < n; i++) to[i] = x[i + 1] - old;
  free(x);
  clb_buffer_destroy(&r.buffer);
}

static clb_cell_grid grid_of(const molecule *a, int fineness) {
  clb_neighbours l = {.cutoff = a->cutoffs[0], .fineness = fineness};
  clb_cell_grid grid;
  bool rebuild;
  if (clb_neighbours_begin(&l, a->n, a->x, a->cell, a->periodic, &rebuild, &grid))
    fail_msg("%s", l.error);
  clb_neighbours_free(&l);
  return grid;
}

static clb_dispersion *dispersion_of(clb_context *ctx, clb_dtype type, const molecule *a) {
  clb_dispersion_damping damping = {.radius = a->cutoffs[0], .count_radius = a->cutoffs[1]};
  char name[40];
  clb_dispersion *d;
  snprintf(name, sizeof name, "%s%s", a->functional, a->three_body ? "-atm" : "");
  OK(ctx, clb_d3_damping(&ctx->error, name, &damping));
  OK(ctx, clb_dispersion_create(ctx, type, &damping, &d));
  return d;
}

/* Of several molecules, as systems of one call; sums are of all. Species are atomic numbers. Of a
   part of the atoms only its rows, its gather and its user are read; NULL: all have rows. */
static void disperse_part(clb_context *ctx, clb_dispersion *d, const molecule *all, int n_all,
                          int fineness, const clb_dispersion_atoms *part, dispersed *out) {
  enum { SPECIES = CLB_D3_ELEMENTS + 1 };
  int number[SPECIES], n = 0;
  bool occurs[SPECIES] = {false};
  for (int i = 0; i < n_all; i++) n += all[i].n;
  double *x = malloc((size_t)(3 * n + 1) * sizeof *x), *v = malloc((size_t)(9 * n + 1) * sizeof *v);
  int32_t *species = malloc((size_t)(n + 1) * 4), *system = malloc((size_t)(n + 1) * 4);
  clb_cell_grid *grid = calloc((size_t)n_all, sizeof *grid);
  int at = 0;
  for (int i = 0; i < SPECIES; i++) number[i] = i;
  for (int i = 0; i < n_all; i++) {
    const molecule *a = &all[i];
    grid[i] = grid_of(a, fineness);
    memcpy(x + 3 * at, a->x, (size_t)(3 * a->n) * sizeof *x);
    for (int j = 0; j < a->n; j++, at++) occurs[species[at] = a->z[j]] = true, system[at] = i;
  }
  OK(ctx, clb_d3_set_elements(ctx, d, SPECIES, number, occurs));
  clb_buffer *positions = buffer_of(ctx, x, (size_t)(3 * n) * sizeof *x),
             *kinds = buffer_of(ctx, species, (size_t)n * 4);
  const clb_dispersion_results r = {results_of(ctx, 1), results_of(ctx, 9), results_of(ctx, n),
                                    results_of(ctx, 3 * n), results_of(ctx, 9 * n)};
  clb_dispersion_atoms atoms = {n, n_all, grid, system, positions, kinds, .rows = n};
  if (part) {
    atoms.first = part->first, atoms.rows = part->rows;
    atoms.gather = part->gather, atoms.user = part->user;
  }
  OK(ctx, clb_dispersion_place(d, &atoms));
  OK(ctx, clb_dispersion_add(d, &r));
  double sums[10];
  take(ctx, r.energy, 1, sums);
  take(ctx, r.virial, 9, sums + 1);
  take(ctx, r.energies, n, v);
  at = 0;
  for (int i = 0; i < n_all; at += all[i++].n) {
    out[i].energy = sums[0];
    memcpy(out[i].virial, sums + 1, sizeof out[i].virial);
    memcpy(out[i].energies, v + at, (size_t)all[i].n * sizeof *v);
  }
  take(ctx, r.forces, 3 * n, x);
  take(ctx, r.virials, 9 * n, v);
  at = 0;
  for (int i = 0; i < n_all; at += all[i++].n) {
    memcpy(out[i].forces, x + 3 * at, (size_t)(3 * all[i].n) * sizeof *x);
    memcpy(out[i].virials, v + 9 * at, (size_t)(9 * all[i].n) * sizeof *v);
  }
  clb_buffer_destroy(&positions);
  clb_buffer_destroy(&kinds);
  free(x), free(v), free(species), free(system), free(grid);
}

static void disperse(clb_context *ctx, clb_dispersion *d, const molecule *all, int n_all,
                     int fineness, dispersed *out) {
  disperse_part(ctx, d, all, n_all, fineness, NULL, out);
}

static dispersed disperse_one(clb_context *ctx, clb_dtype type, const molecule *a) {
  static dispersed out;
  clb_dispersion *d = dispersion_of(ctx, type, a);
  disperse(ctx, d, a, 1, 6, &out);
  clb_dispersion_destroy(&d);
  return out;
}

static inline void near_to(const char *what, int64_t n, const double *x, const double *y,
                           double most) {
  for (int64_t i = 0; i < n; i++)
    if (!(fabs(x[i] - y[i]) <= most))
      fail_msg("%s[%d] is %.15g, not %.15g: off by %g, more than %g", what, (int)i, x[i], y[i],
               x[i] - y[i], most);
}

#endif
