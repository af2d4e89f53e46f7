/* tools/certify/checks.c - see checks.h.  Derivatives are differences of fourth order in random
   directions, in which a fault at any atom shows. */
#include "tools/certify/checks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/atoms/neighbours.h"
#include "tools/cli/tool.h"
#include "tools/common/random.h"

typedef struct {
  double energy, *forces, stress[9];
} answer;

/* Atoms of its own. */
typedef struct {
  clb_model_atoms a;
  double *x, cell[9];
  int32_t *species;
} copy;

typedef struct {
  const certify_engine *engine;
  const clb_model_atoms *given;
  const double *masses;
  copy base;      /* the given atoms, displaced a little so that there are forces */
  answer at_base; /* exact */
  double volume;  /* 0: there is no stress */
  uint64_t seed;
  bool failed;
  certify_line *line; /* the next one */
} run;

/* ---- atoms ---- */

static copy copy_of(const clb_model_atoms *a, int64_t times) {
  copy c = {.a = *a,
            .x = allocate((size_t)(3 * times * a->n), sizeof *c.x),
            .species = allocate((size_t)(times * a->n), sizeof *c.species)};
  for (int64_t t = 0; t < times; t++) {
    memcpy(c.x + 3 * t * a->n, a->positions, (size_t)(3 * a->n) * sizeof *c.x);
    memcpy(c.species + t * a->n, a->species, (size_t)a->n * sizeof *c.species);
  }
  if (a->cell) memcpy(c.cell, a->cell, sizeof c.cell);
  c.a.n = times * a->n;
  return c;
}

static void free_copy(copy *c) {
  free(c->x);
  free(c->species);
}

static bool ask(run *r, bool exact, copy *c, answer *y) {
  c->a.positions = c->x;
  c->a.species = c->species;
  if (c->a.cell) c->a.cell = c->cell;
  *y = (answer){.forces = allocate((size_t)(3 * c->a.n), sizeof *y->forces)};
  if (!r->failed)
    r->failed = !r->engine->compute(
        r->engine->user, exact, &c->a,
        &(clb_model_results){
            .energy = &y->energy, .forces = y->forces, .stress = r->volume > 0 ? y->stress : NULL});
  return !r->failed;
}

static double draw(run *r) { return random_number(&r->seed); }

static double dot(int64_t n, const double *a, const double *b) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

static double largest(int64_t n, const double *a) {
  double most = 0;
  for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(a[i]));
  return most;
}

static void report(run *r, const char *name, const char *law, double error, double limit) {
  *r->line++ = (certify_line){.name = name, .law = law, .error = error, .limit = limit};
}

static void skip(run *r, const char *name, const char *law, const char *why) {
  *r->line++ = (certify_line){.name = name, .law = law, .skipped = why};
}

/* ---- derivatives ---- */

static const double stencil_at[4] = {-2, -1, 1, 2},
                    stencil[4] = {1. / 12, -8. / 12, 8. / 12, -1. / 12};

/* A step of differences: as small as rounding of the energy allows, by which the error of a slope
   of this size stays far below its limit, since the curvature of cutoffs may jump (XPLOR's does),
   and an edge whose length passes there within a step is an error. */
static double step_of(const run *r, double size) {
  return fmin(fmax(1e-8 * fabs(r->at_base.energy) / size, 1e-6), 1e-3);
}

/* The slope of energies, and of forces, along d[n][3]. */
static void along(run *r, double h, const double *d, double *slope, double *bend) {
  const int64_t n = 3 * r->base.a.n;
  *slope = 0;
  memset(bend, 0, (size_t)n * sizeof *bend);
  for (int s = 0; s < 4; s++) {
    copy c = copy_of(&r->base.a, 1);
    answer y;
    for (int64_t i = 0; i < n; i++) c.x[i] += stencil_at[s] * h * d[i];
    if (ask(r, true, &c, &y)) {
      *slope += stencil[s] / h * (y.energy - r->at_base.energy);
      for (int64_t i = 0; i < n; i++) bend[i] += stencil[s] / h * y.forces[i];
    }
    free(y.forces);
    free_copy(&c);
  }
}

static void check_forces(run *r) {
  const int64_t n = 3 * r->base.a.n;
  double *d[2], *bend[2], error = 0, size = sqrt(dot(n, r->at_base.forces, r->at_base.forces));
  size += 0.01 * sqrt((double)n);
  for (int k = 0; k < 2; k++) {
    double slope;
    d[k] = allocate((size_t)n, sizeof *d[k]);
    bend[k] = allocate((size_t)n, sizeof *bend[k]);
    for (int64_t i = 0; i < n; i++) d[k][i] = draw(r);
    along(r, step_of(r, size), d[k], &slope, bend[k]);
    error = fmax(error, fabs(slope + dot(n, r->at_base.forces, d[k])) / size);
  }
  const double ab = dot(n, d[0], bend[1]), ba = dot(n, d[1], bend[0]),
               scale = sqrt(dot(n, bend[0], bend[0])) + 0.01 * sqrt((double)n);
  report(r, "forces", "forces are the slope of the energy", error, 1e-6);
  report(r, "curl", "second derivatives are symmetric", fabs(ab - ba) / scale, 1e-5);
  for (int k = 0; k < 2; k++) {
    free(d[k]);
    free(bend[k]);
  }
}

/* Rows of n vectors times a matrix. */
static void transform(double *v, int64_t n, const double m[9]) {
  for (int64_t i = 0; i < n; i++, v += 3) {
    const double x[3] = {v[0], v[1], v[2]};
    for (int k = 0; k < 3; k++) v[k] = x[0] * m[k] + x[1] * m[3 + k] + x[2] * m[6 + k];
  }
}

static void check_stress(run *r) {
  static const char *const name = "stress", *const law = "stress is the slope by strain";
  const double size = r->volume * sqrt(dot(9, r->at_base.stress, r->at_base.stress)) +
                      0.01 * (double)r->base.a.n,
               h = step_of(r, size);
  double error = 0;
  if (!(r->volume > 0)) {
    skip(r, name, law, "the cell has no volume");
    return;
  }
  for (int k = 0; k < 2; k++) {
    double strain[9], slope = 0;
    for (int i = 0; i < 3; i++)
      for (int j = 0; j <= i; j++) strain[3 * i + j] = strain[3 * j + i] = draw(r);
    for (int s = 0; s < 4; s++) {
      copy c = copy_of(&r->base.a, 1);
      answer y;
      double m[9];
      for (int i = 0; i < 9; i++) m[i] = (i % 4 ? 0 : 1) + stencil_at[s] * h * strain[i];
      transform(c.x, c.a.n, m);
      transform(c.cell, 3, m);
      if (ask(r, true, &c, &y)) slope += stencil[s] / h * (y.energy - r->at_base.energy);
      free(y.forces);
      free_copy(&c);
    }
    const double expected = r->volume * dot(9, r->at_base.stress, strain);
    error = fmax(error, fabs(slope - expected) / size);
  }
  report(r, name, law, error, 1e-6);
}

/* ---- symmetries ---- */

/* How far an answer is from the one at the base of `times` as many atoms, whose atom i is
   atom[i] there and whose forces and stress are turned by m. */
static double distance(const run *r, const answer *y, const int64_t *atom, int64_t times,
                       const double m[9]) {
  const int64_t n = r->base.a.n;
  const double scale = 1 + largest(3 * n, r->at_base.forces), per_atom = (double)(times * n),
               energy = (y->energy - (double)times * r->at_base.energy) / per_atom;
  double error = fabs(energy) / (1 + fabs(r->at_base.energy / (double)n));
  for (int64_t i = 0; i < times * n; i++) {
    double f[3];
    memcpy(f, r->at_base.forces + 3 * (atom ? atom[i] : i % n), sizeof f);
    transform(f, 1, m);
    for (int k = 0; k < 3; k++) error = fmax(error, fabs(y->forces[3 * i + k] - f[k]) / scale);
  }
  if (!(r->volume > 0)) return error;
  double s[9], turned[9];
  memcpy(s, r->at_base.stress, sizeof s);
  transform(s, 3, m);
  for (int i = 0; i < 9; i++) turned[i] = s[i / 3 + i % 3 * 3];
  transform(turned, 3, m);
  const double size = 1e-3 + largest(9, r->at_base.stress);
  for (int i = 0; i < 9; i++)
    error = fmax(error, fabs(y->stress[i] - turned[i % 3 * 3 + i / 3]) / size);
  return error;
}

static const double unit[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
static const double symmetry_limit = 1e-9;

static void compare(run *r, const char *name, const char *law, copy *c, const int64_t *atom,
                    int64_t times, const double m[9]) {
  answer y;
  const double error = ask(r, true, c, &y) ? distance(r, &y, atom, times, m) : NAN;
  report(r, name, law, error, symmetry_limit);
  free(y.forces);
  free_copy(c);
}

static void check_rotation(run *r) {
  double q[4], norm = 0;
  for (int i = 0; i < 4; i++) q[i] = draw(r) + (i ? 0 : 0.1);
  for (int i = 0; i < 4; i++) norm += q[i] * q[i];
  for (int i = 0; i < 4; i++) q[i] /= sqrt(norm);
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  const double rotation[9] = {
      1 - 2 * (y * y + z * z), 2 * (x * y + w * z),     2 * (x * z - w * y),
      2 * (x * y - w * z),     1 - 2 * (x * x + z * z), 2 * (y * z + w * x),
      2 * (x * z + w * y),     2 * (y * z - w * x),     1 - 2 * (x * x + y * y)};
  copy c = copy_of(&r->base.a, 1);
  transform(c.x, c.a.n, rotation);
  transform(c.cell, 3, rotation);
  compare(r, "rotation", "all turns with the atoms", &c, NULL, 1, rotation);
}

static void check_inversion(run *r) {
  static const char *const name = "inversion", *const law =
                                                   "a mirrored structure has mirrored forces";
  static const double m[9] = {-1, 0, 0, 0, -1, 0, 0, 0, -1};
  if (!r->engine->parity) {
    skip(r, name, law, "the model's features have no parity");
    return;
  }
  copy c = copy_of(&r->base.a, 1);
  transform(c.x, c.a.n, m);
  compare(r, name, law, &c, NULL, 1, m);
}

static void check_permutation(run *r) {
  const int64_t n = r->base.a.n;
  copy c = copy_of(&r->base.a, 1);
  int64_t *atom = allocate((size_t)n, sizeof *atom);
  for (int64_t i = 0; i < n; i++) atom[i] = i;
  for (int64_t i = n - 1; i > 0; i--) {
    const int64_t j = (int64_t)((draw(r) + 1) / 2 * (double)(i + 1)), other = atom[j];
    atom[j] = atom[i];
    atom[i] = other;
  }
  for (int64_t i = 0; i < n; i++) {
    memcpy(c.x + 3 * i, r->base.x + 3 * atom[i], 3 * sizeof *c.x);
    c.species[i] = r->base.species[atom[i]];
  }
  compare(r, "order", "the order of atoms does not matter", &c, atom, 1, unit);
  free(atom);
}

/* Of all atoms by one vector, and of each by some vectors of the cell. */
static void check_translation(run *r) {
  copy c = copy_of(&r->base.a, 1);
  const double by[3] = {3 * draw(r), 3 * draw(r), 3 * draw(r)};
  for (int64_t i = 0; i < c.a.n; i++)
    for (int d = 0; d < 3; d++) {
      c.x[3 * i + d] += by[d];
      const double times = c.a.periodic[d] ? round(1.4 * draw(r)) : 0;
      for (int k = 0; k < 3 && times != 0; k++) c.x[3 * i + k] += times * c.cell[3 * d + k];
    }
  compare(r, "translation", "neither a shift nor a wrap matters", &c, NULL, 1, unit);
}

/* Two side by side: in a cell of twice the length, or far apart. */
static void check_size(run *r) {
  const int64_t n = r->base.a.n;
  copy c = copy_of(&r->base.a, 2);
  const int d = c.a.periodic[0] ? 0 : c.a.periodic[1] ? 1 : 2;
  const double along_x = 2 * largest(3 * n, r->base.x) + 100;
  for (int64_t i = n; i < 2 * n; i++)
    for (int k = 0; k < 3; k++)
      c.x[3 * i + k] += c.a.periodic[d] ? c.cell[3 * d + k] : k ? 0 : along_x;
  for (int k = 0; k < 3 && c.a.periodic[d]; k++) c.cell[3 * d + k] *= 2;
  const bool stress = c.a.periodic[d]; /* of a cell that is as full as before */
  const double volume = r->volume;
  if (!stress) r->volume = 0;
  compare(r, "size", "twice the atoms have twice the energy", &c, NULL, 2, unit);
  r->volume = volume;
}

/* ---- the fast engine ---- */

static const double force_unit = 0.00964853321233; /* eV / (Angstrom u) in Angstrom / fs^2 */

static double kinetic(const run *r, const double *v) {
  double sum = 0;
  for (int64_t i = 0; i < r->given->n; i++) sum += r->masses[i] * dot(3, v + 3 * i, v + 3 * i) / 2;
  return sum / force_unit;
}

static double gauss(run *r) {
  double sum = 0;
  for (int i = 0; i < 12; i++) sum += draw(r) / 2;
  return sum;
}

/* Half a kick. */
static void kick(const run *r, double *v, const double *f, double dt) {
  for (int64_t i = 0; i < 3 * r->given->n; i++)
    v[i] += dt / 2 * force_unit * f[i] / r->masses[i / 3];
}

static void check_dynamics(run *r) {
  enum { ENDS = 20 };
  const double dt = 0.25, kt = 0.0258520;
  const int64_t n = r->given->n;
  copy c = copy_of(r->given, 1);
  answer y;
  double *v = allocate((size_t)(3 * n), sizeof *v), first = 0, last = 0, most = 1e-3 * (double)n;
  for (int64_t i = 0; i < 3 * n; i++) v[i] = gauss(r) * sqrt(force_unit * kt / r->masses[i / 3]);
  ask(r, false, &c, &y);
  for (int step = 0; step < CERTIFY_STEPS && !r->failed; step++) {
    if (step % ENDS == 0) progress("step %d of %d at constant energy", step, CERTIFY_STEPS);
    kick(r, v, y.forces, dt);
    for (int64_t i = 0; i < 3 * n; i++) c.x[i] += dt * v[i];
    free(y.forces);
    ask(r, false, &c, &y);
    kick(r, v, y.forces, dt);
    const double motion = kinetic(r, v);
    most = fmax(most, motion);
    if (step < ENDS) first += (y.energy + motion) / ENDS;
    if (step >= CERTIFY_STEPS - ENDS) last += (y.energy + motion) / ENDS;
  }
  progress(NULL);
  report(r, "energy", "200 steps of dynamics keep the energy", fabs(last - first) / most, 5e-3);
  free(y.forces);
  free(v);
  free_copy(&c);
}

static void check_fast(run *r) {
  const int64_t n = 3 * r->base.a.n;
  answer before, after;
  ask(r, false, &r->base, &before);
  check_dynamics(r);
  ask(r, false, &r->base, &after);
  int64_t other = before.energy != after.energy;
  for (int64_t i = 0; i < n; i++) other += !(before.forces[i] == after.forces[i]);
  report(r, "bits", "the same atoms have the same bits again", (double)other, 0);
  const answer *exact = &r->at_base;
  const double scale = 1 + largest(n, exact->forces);
  double error =
      fabs(before.energy - exact->energy) / ((double)r->base.a.n + fabs(exact->energy)) * 10;
  for (int64_t i = 0; i < n; i++)
    error = fmax(error, fabs(before.forces[i] - exact->forces[i]) / scale);
  report(r, "precision", "f32 and splines are near f64 and networks", error, 3e-5);
  free(before.forces);
  free(after.forces);
}

bool certify(const certify_engine *engine, const clb_model_atoms *atoms, const double *masses,
             certify_line lines[CERTIFY_LINES]) {
  run r = {.engine = engine,
           .given = atoms,
           .masses = masses,
           .base = copy_of(atoms, 1),
           .volume = atoms->cell ? clb_cell_volume(atoms->cell) : 0,
           .seed = 1,
           .line = lines};
  for (int64_t i = 0; i < 3 * atoms->n; i++) r.base.x[i] += 0.03 * draw(&r);
  if (ask(&r, true, &r.base, &r.at_base)) {
    check_forces(&r);
    check_stress(&r);
    check_rotation(&r);
    check_inversion(&r);
    check_permutation(&r);
    check_translation(&r);
    check_size(&r);
    check_fast(&r);
  }
  free(r.at_base.forces);
  free_copy(&r.base);
  return !r.failed;
}
