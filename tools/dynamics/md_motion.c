/* tools/dynamics/md_motion.c - velocity Verlet and the thermostat in its middle; velocities. */
#include "tools/dynamics/md_motion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/atoms/neighbours.h"
#include "tools/common/philox.h"

/* CODATA 2018 */
const double md_boltzmann = 8.617333262e-5,
             md_force_unit = 1.602176634e-19 / 1.66053906660e-27 * 1e-10;

/* ---- the state ---- */

void md_state_make(md_state *s, int64_t n) {
  s->velocities = allocate((size_t)n, 3 * sizeof *s->velocities);
  s->listed = allocate((size_t)n, 3 * sizeof *s->listed);
}

void md_state_free(md_state *s) {
  free(s->velocities);
  free(s->listed);
  md_noise_free(&s->noise);
}

static double mass(const md_system *y, int64_t i) { return atomic_weights[y->atoms.numbers[i]]; }

void md_momentum(const md_system *y, int64_t i, const double v[3], double p[3]) {
  for (int k = 0; k < 3; k++) p[k] = mass(y, i) * v[k] / sqrt(md_force_unit);
}

/* Uses the deviates of step -1, which no step of the run uses. */
void md_draw_velocities(const md_system *y, md_state *s, double temperature) {
  double momentum[3] = {0}, total = 0;
  for (int64_t i = 0; i < y->atoms.n; i++) {
    double *v = s->velocities + 3 * i;
    const double width = sqrt(md_boltzmann * temperature * md_force_unit / mass(y, i));
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
  return sum / 2 / md_force_unit;
}

double md_freedom(const md_system *y, const md_motion *m) {
  return 3 * (double)y->atoms.n - (m->thermostat == MD_LANGEVIN ? 0 : 3);
}

double md_temperature(const md_system *y, const md_motion *m, double kinetic) {
  const double freedom = md_freedom(y, m);
  return freedom > 0 ? 2 * kinetic / (freedom * md_boltzmann) : 0;
}

double md_volume(const md_system *y) { return clb_cell_volume(&y->atoms.cell[0][0]); }

double md_pressure(const md_system *y, double kinetic) {
  return 2 * kinetic / (3 * md_volume(y)) -
         (y->stress[0][0] + y->stress[1][1] + y->stress[2][2]) / 3;
}

double md_conserved(const md_system *y, const md_state *s, const md_motion *m, double kinetic) {
  return y->energy + kinetic + s->heat + md_chain_energy(y, s, m) +
         (m->barostat ? md_barostat_energy(y, s, m) : 0);
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

static inline double square(const double v[3]) { return v[0] * v[0] + v[1] * v[1] + v[2] * v[2]; }

/* Squares and masses until the last atom. */
static inline void view_atom(md_view *w, int64_t i, double mass_of_it, const double v[3],
                             const double f[3]) {
  const double speed = square(v), force = square(f);
  w->kinetic += mass_of_it * speed;
  if (speed > w->speed) w->speed = speed, w->fastest = i;
  if (force > w->force) w->force = force, w->strongest = i;
}

static md_view viewed(const md_view *w) {
  return (md_view){w->kinetic / 2 / md_force_unit, sqrt(w->speed), sqrt(w->force), w->fastest,
                   w->strongest};
}

bool md_start(md_system *y, md_state *s) {
  md_view w = {0};
  if (!compute(y, s, s->listed) || !compute(y, s, y->atoms.positions)) return false;
  for (int64_t i = 0; i < y->atoms.n; i++)
    view_atom(&w, i, mass(y, i), s->velocities + 3 * i, y->forces + 3 * i);
  s->view = viewed(&w);
  return true;
}

static inline void kick_atom(const md_system *y, double dt, int64_t i, double v[3]) {
  const double by = dt * md_force_unit / mass(y, i);
  for (int k = 0; k < 3; k++) v[k] += by * y->forces[3 * i + k];
}

/* With a cell that stretches at the rate h: dx/dt = v + h x, dv/dt = -h v. */
typedef struct {
  double grow, reach;
} flow;

static flow flow_of(const md_state *s, double dt) {
  const double h = s->stretch;
  return (flow){exp(h * dt), h != 0 ? sinh(h * dt) / h : dt};
}

static inline void drift_atom(flow f, double x[3], double v[3]) {
  for (int k = 0; k < 3; k++) x[k] = f.grow * x[k] + f.reach * v[k];
  for (int k = 0; k < 3 && f.grow != 1; k++) v[k] /= f.grow;
}

static void drift_cell(md_system *y, flow f) {
  for (int k = 0; k < 9; k++) y->atoms.cell[k / 3][k % 3] *= f.grow;
}

/* Kick and drift in one pass: the host's passes are as long as the device's pauses. */
static void kick_and_drift(md_system *y, md_state *s, double kick, double drift) {
  const flow f = flow_of(s, drift);
  for (int64_t i = 0; i < y->atoms.n; i++) {
    double *v = s->velocities + 3 * i;
    kick_atom(y, kick, i, v);
    drift_atom(f, y->atoms.positions + 3 * i, v);
  }
  drift_cell(y, f);
}

static void drift(md_system *y, md_state *s, double dt) {
  const flow f = flow_of(s, dt);
  for (int64_t i = 0; i < y->atoms.n; i++)
    drift_atom(f, y->atoms.positions + 3 * i, s->velocities + 3 * i);
  drift_cell(y, f);
}

static void kick_and_view(const md_system *y, md_state *s, double dt) {
  md_view w = {0};
  for (int64_t i = 0; i < y->atoms.n; i++) {
    double *v = s->velocities + 3 * i;
    kick_atom(y, dt, i, v);
    view_atom(&w, i, mass(y, i), v, y->forces + 3 * i);
  }
  s->view = viewed(&w);
}

/* Steps that change the cell by more are no solution of any equation. */
static bool stretches_slowly(const md_state *s, const md_motion *m) {
  const double most = 0.1, change = s->stretch * m->dt;
  if (fabs(change) <= most) return true;
  warn(
      "step %lld: the cell's lengths change by %.3g %%, more than %g %% in a step: a shorter --dt, "
      "a longer --barostat than %g fs, or another --pressure may help",
      (long long)s->step, 100 * change, 100 * most, m->barostat_time);
  return false;
}

bool md_step(md_system *y, md_state *s, const md_motion *m) {
  if (m->barostat) md_barostat_kick(y, s, m, m->dt / 2);
  if (!stretches_slowly(s, m)) return false;
  kick_and_drift(y, s, m->dt / 2, m->thermostat ? m->dt / 2 : m->dt);
  if (m->thermostat) {
    md_thermostat_act(y, s, m);
    drift(y, s, m->dt / 2);
  }
  if (!compute(y, s, y->atoms.positions)) return false;
  kick_and_view(y, s, m->dt / 2);
  if (m->barostat) md_barostat_kick(y, s, m, m->dt / 2);
  s->step++;
  s->time += m->dt;
  return true;
}
