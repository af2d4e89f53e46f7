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
  clb_dynamics_destroy(&s->dynamics);
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

static bool good(const md_system *y, clb_status status) {
  if (status) warn("%s: %s", y->from, clb_error(y->ctx));
  return !status;
}

/* Energies of the state, and what its atoms do. */
static bool see(md_system *y, md_state *s) {
  if (!good(y, clb_dynamics_see(s->dynamics, &s->view))) return false;
  y->energy = s->view.energy;
  memcpy(y->stress, s->view.stress, sizeof y->stress);
  return true;
}

/* Masses with which accelerations are forces / masses. */
static bool make_dynamics(md_system *y, md_state *s) {
  const clb_model_atoms atoms = md_system_atoms(y, NULL);
  double *masses = allocate((size_t)y->atoms.n, sizeof *masses);
  for (int64_t i = 0; i < y->atoms.n; i++) masses[i] = mass(y, i) / md_force_unit;
  const bool made = good(
      y, clb_dynamics_create(y->model, &atoms, masses, s->velocities, s->listed, &s->dynamics));
  free(masses);
  return made;
}

bool md_start(md_system *y, md_state *s) {
  return make_dynamics(y, s) && good(y, clb_dynamics_compute(s->dynamics, NULL, y->has_stress)) &&
         good(y, clb_model_describe(y->model, &y->info)) && /* tables by species are new */
         see(y, s);
}

bool md_fetch(md_system *y, md_state *s) {
  return good(
      y, clb_dynamics_read(s->dynamics, y->atoms.positions, s->velocities, y->forces, s->listed));
}

/* With a cell that stretches at the rate h: dx/dt = v + h x, dv/dt = -h v. */
static void drift(md_system *y, const md_state *s, double dt, double *grow, double *reach) {
  const double h = s->stretch;
  *grow = exp(h * dt);
  *reach = h != 0 ? sinh(h * dt) / h : dt;
  for (int k = 0; k < 9; k++) y->atoms.cell[k / 3][k % 3] *= *grow;
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

/* The first half of a step: a kick, a drift, the thermostat, and another drift. */
static bool advance(md_system *y, md_state *s, const md_motion *m) {
  clb_dynamics_move move = {.kick = m->dt / 2, .grow = 1, .keep = 1, .grow_again = 1};
  drift(y, s, m->thermostat ? m->dt / 2 : m->dt, &move.grow, &move.reach);
  if (m->thermostat > MD_LANGEVIN) { /* it depends on their kinetic energy then */
    if (!good(y, clb_dynamics_run(s->dynamics, &move)) || !see(y, s)) return false;
    move = (clb_dynamics_move){.grow = 1, .keep = 1};
  }
  if (m->thermostat) {
    md_thermostat_act(y, s, m, &move);
    drift(y, s, m->dt / 2, &move.grow_again, &move.reach_again);
  }
  return good(y, clb_dynamics_run(s->dynamics, &move));
}

bool md_step(md_system *y, md_state *s, const md_motion *m) {
  const clb_dynamics_move kick = {.kick = m->dt / 2, .grow = 1, .keep = 1, .grow_again = 1};
  if (m->barostat) md_barostat_kick(y, s, m, m->dt / 2);
  if (!stretches_slowly(s, m) || !advance(y, s, m)) return false;
  if (!good(y, clb_dynamics_compute(s->dynamics, m->barostat ? &y->atoms.cell[0][0] : NULL,
                                    y->has_stress)))
    return false;
  if (!good(y, clb_dynamics_run(s->dynamics, &kick)) || !see(y, s)) return false;
  if (m->thermostat == MD_LANGEVIN) s->heat += s->view.heat;
  if (m->barostat) md_barostat_kick(y, s, m, m->dt / 2);
  s->step++;
  s->time += m->dt;
  return true;
}
