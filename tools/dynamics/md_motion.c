/* tools/dynamics/md_motion.c - velocity Verlet and BAOAB, and velocities. */
#include "tools/dynamics/md_motion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/philox.h"

/* CODATA 2018 */
static const double boltzmann = 8.617333262e-5; /* eV / K */
static const double force_unit =
    1.602176634e-19 / 1.66053906660e-27 * 1e-10 /* eV / (Angstrom u) in Angstrom / fs^2 */;

/* ---- the state ---- */

void md_state_make(md_state *s, int64_t n) {
  s->velocities = allocate((size_t)n, 3 * sizeof *s->velocities);
  s->listed = allocate((size_t)n, 3 * sizeof *s->listed);
}

void md_state_free(md_state *s) {
  free(s->velocities);
  free(s->listed);
}

static double mass(const md_system *y, int64_t i) { return atomic_weights[y->atoms.numbers[i]]; }

void md_momentum(const md_system *y, int64_t i, const double v[3], double p[3]) {
  for (int k = 0; k < 3; k++) p[k] = mass(y, i) * v[k] / sqrt(force_unit);
}

/* Uses the deviates of step -1, which no step of the run uses. */
void md_draw_velocities(const md_system *y, md_state *s, double temperature) {
  double momentum[3] = {0}, total = 0;
  for (int64_t i = 0; i < y->atoms.n; i++) {
    double *v = s->velocities + 3 * i;
    const double width = sqrt(boltzmann * temperature * force_unit / mass(y, i));
    normal_triple(s->seed, -1, i, v);
    for (int k = 0; k < 3; k++) momentum[k] += mass(y, i) * (v[k] *= width);
    total += mass(y, i);
  }
  for (int64_t i = 0; i < y->atoms.n; i++)
    for (int k = 0; k < 3; k++) s->velocities[3 * i + k] -= momentum[k] / total;
  const double drawn = md_temperature(y, &(md_motion){0}, md_kinetic(y, s)),
               scale = drawn > 0 ? sqrt(temperature / drawn) : 1;
  for (int64_t i = 0; i < 3 * y->atoms.n; i++) s->velocities[i] *= scale;
}

double md_kinetic(const md_system *y, const md_state *s) {
  double sum = 0;
  for (int64_t i = 0; i < y->atoms.n; i++) {
    const double *v = s->velocities + 3 * i;
    sum += mass(y, i) * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  }
  return sum / 2 / force_unit;
}

double md_temperature(const md_system *y, const md_motion *m, double kinetic) {
  const int64_t freedom = 3 * y->atoms.n - (m->friction > 0 ? 0 : 3);
  return freedom > 0 ? 2 * kinetic / ((double)freedom * boltzmann) : 0;
}

/* ---- steps ---- */

static bool compute(md_system *y, md_state *s, const double *positions) {
  clb_model_neighbours found;
  if (!md_system_compute(y, positions)) return false;
  if (clb_model_last_neighbours(y->model, &found)) return warn("%s", clb_error(y->ctx)), false;
  if (found.rebuilds != s->rebuilds)
    memmove(s->listed, positions, (size_t)y->atoms.n * 3 * sizeof *positions);
  s->rebuilds = found.rebuilds;
  return true;
}

bool md_start(md_system *y, md_state *s) {
  return compute(y, s, s->listed) && compute(y, s, y->atoms.positions);
}

static void kick(const md_system *y, md_state *s, double dt) {
  for (int64_t i = 0; i < y->atoms.n; i++)
    for (int k = 0; k < 3; k++)
      s->velocities[3 * i + k] += dt * force_unit / mass(y, i) * y->forces[3 * i + k];
}

static void drift(md_system *y, const md_state *s, double dt) {
  for (int64_t i = 0; i < 3 * y->atoms.n; i++) y->atoms.positions[i] += dt * s->velocities[i];
}

/* The exact solution of friction and noise alone over a time step dt. */
static void thermostat(const md_system *y, md_state *s, const md_motion *m) {
  const double keep = exp(-m->friction * m->dt),
               energy = -expm1(-2 * m->friction * m->dt) * boltzmann * m->temperature * force_unit;
  for (int64_t i = 0; i < y->atoms.n; i++) {
    double noise[3];
    const double width = sqrt(energy / mass(y, i));
    normal_triple(s->seed, s->step, i, noise);
    for (int k = 0; k < 3; k++)
      s->velocities[3 * i + k] = keep * s->velocities[3 * i + k] + width * noise[k];
  }
}

bool md_step(md_system *y, md_state *s, const md_motion *m) {
  kick(y, s, m->dt / 2);
  if (m->friction > 0) {
    drift(y, s, m->dt / 2);
    thermostat(y, s, m);
    drift(y, s, m->dt / 2);
  } else drift(y, s, m->dt);
  if (!compute(y, s, y->atoms.positions)) return false;
  kick(y, s, m->dt / 2);
  s->step++;
  s->time += m->dt;
  return true;
}
