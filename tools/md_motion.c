/* md_motion.c - velocity Verlet and BAOAB, random numbers, velocities. */
#include "md_motion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* CODATA 2018 */
static const double boltzmann = 8.617333262e-5;                                             /* eV / K */
static const double force_unit = 1.602176634e-19 / 1.66053906660e-27 * 1e-10 /* eV / (Angstrom u) in Angstrom / fs^2 */;

/* ---- random numbers ---- */

void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
  uint32_t x[4] = {counter[0], counter[1], counter[2], counter[3]}, k[2] = {key[0], key[1]};
  for (int round = 0; round < 10; round++) {
    const uint64_t a = (uint64_t)0xd2511f53u * x[0], b = (uint64_t)0xcd9e8d57u * x[2];
    const uint32_t next[4] = {(uint32_t)(b >> 32) ^ x[1] ^ k[0], (uint32_t)b, (uint32_t)(a >> 32) ^ x[3] ^ k[1], (uint32_t)a};
    memcpy(x, next, sizeof x);
    k[0] += 0x9e3779b9u;
    k[1] += 0xbb67ae85u;
  }
  memcpy(out, x, sizeof x);
}

/* Box and Muller's, of words in (0, 2^32). */
void normal_triple(uint64_t seed, int64_t step, int64_t atom, double out[3]) {
  const uint32_t counter[4] = {(uint32_t)atom, (uint32_t)((uint64_t)atom >> 32), (uint32_t)step, (uint32_t)((uint64_t)step >> 32)};
  const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  uint32_t word[4];
  double u[4];
  philox(counter, key, word);
  for (int i = 0; i < 4; i++) u[i] = ((double)word[i] + 0.5) * 0x1p-32;
  const double pi = 3.14159265358979323846, r = sqrt(-2 * log(u[0])), q = sqrt(-2 * log(u[2]));
  out[0] = r * cos(2 * pi * u[1]);
  out[1] = r * sin(2 * pi * u[1]);
  out[2] = q * cos(2 * pi * u[3]);
}

/* ---- the state ---- */

void md_state_make(md_state *s, int64_t n) {
  s->velocities = allocate((size_t)n, 3 * sizeof *s->velocities);
  s->listed = allocate((size_t)n, 3 * sizeof *s->listed);
}

void md_state_free(md_state *s) {
  free(s->velocities);
  free(s->listed);
}

static double mass(const md_system *y, int64_t i) {
  return atomic_weights[y->atoms.numbers[i]];
}

/* The deviates of step -1: no step of the run has them. */
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
  if (clb_model_last_neighbours(y->model, &found)) return complain("%s", clb_error(y->ctx)), false;
  if (found.rebuilds != s->rebuilds) memmove(s->listed, positions, (size_t)y->atoms.n * 3 * sizeof *positions);
  s->rebuilds = found.rebuilds;
  return true;
}

bool md_start(md_system *y, md_state *s) {
  return compute(y, s, s->listed) && compute(y, s, y->atoms.positions);
}

static void kick(const md_system *y, md_state *s, double dt) {
  for (int64_t i = 0; i < y->atoms.n; i++)
    for (int k = 0; k < 3; k++) s->velocities[3 * i + k] += dt * force_unit / mass(y, i) * y->forces[3 * i + k];
}

static void drift(md_system *y, const md_state *s, double dt) {
  for (int64_t i = 0; i < 3 * y->atoms.n; i++) y->atoms.positions[i] += dt * s->velocities[i];
}

/* The exact solution of friction and noise alone over dt. */
static void thermostat(const md_system *y, md_state *s, const md_motion *m) {
  const double keep = exp(-m->friction * m->dt), energy = -expm1(-2 * m->friction * m->dt) * boltzmann * m->temperature * force_unit;
  for (int64_t i = 0; i < y->atoms.n; i++) {
    double noise[3];
    const double width = sqrt(energy / mass(y, i));
    normal_triple(s->seed, s->step, i, noise);
    for (int k = 0; k < 3; k++) s->velocities[3 * i + k] = keep * s->velocities[3 * i + k] + width * noise[k];
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
