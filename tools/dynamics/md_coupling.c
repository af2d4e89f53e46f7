/* tools/dynamics/md_coupling.c - thermostats, and the barostat. */
#include <math.h>

#include "tools/common/philox.h"
#include "tools/dynamics/md_motion.h"

/* Random numbers of no atom. */
enum { OF_SYSTEM = -1, OF_GAMMA = -2 };

static double heat_of(const md_motion *m) { return md_boltzmann * m->temperature; }

/* Of the cell, eV fs^2. */
static double barostat_mass(const md_system *y, const md_motion *m) {
  return 3 * (double)y->atoms.n * heat_of(m) * m->barostat_time * m->barostat_time;
}

static double cell_kinetic(const md_system *y, const md_state *s, const md_motion *m) {
  return m->barostat ? barostat_mass(y, m) * s->stretch * s->stretch / 2 : 0;
}

/* ---- thermostats ---- */

/* Friction and noise of the cell's one velocity, of whose energy `keep` squared is kept. */
static void act_on_cell(const md_system *y, md_state *s, const md_motion *m, double keep) {
  double noise[3];
  const double before = cell_kinetic(y, s, m);
  if (!m->barostat) return;
  normal_triple(s->seed, s->step, OF_SYSTEM, noise);
  s->stretch =
      keep * s->stretch + sqrt((1 - keep * keep) * heat_of(m) / barostat_mass(y, m)) * noise[1];
  s->heat += before - cell_kinetic(y, s, m);
}

/* Friction and noise alone. */
static void langevin(const md_system *y, md_state *s, const md_motion *m, clb_dynamics_move *move) {
  move->keep = exp(-m->rate * m->dt);
  move->width = -expm1(-2 * m->rate * m->dt) * heat_of(m);
  move->seed = s->seed;
  move->step = s->step;
  act_on_cell(y, s, m, move->keep);
}

/* Bussi, Donadio and Parrinello (2007), (A7): the kinetic energy goes towards the canonical
   distribution, and all velocities are scaled to it. The sign is that of Bussi and Parrinello
   (2008). */
static void rescale(const md_system *y, md_state *s, const md_motion *m, clb_dynamics_move *move) {
  const double n = md_freedom(y, m), keep = exp(-m->rate * m->dt), kinetic = s->view.kinetic,
               part = (1 - keep) * heat_of(m) / (2 * kinetic);
  double noise[3];
  if (kinetic > 0) {
    normal_triple(s->seed, s->step, OF_SYSTEM, noise);
    const double r = noise[0], others = 2 * gamma_deviate(s->seed, s->step, OF_GAMMA, (n - 1) / 2),
                 square = keep + part * (r * r + others) + 2 * r * sqrt(keep * part),
                 scale = copysign(sqrt(fmax(square, 0)), r + sqrt(keep / part));
    move->keep = scale;
    s->heat += kinetic * (1 - scale * scale);
  }
  act_on_cell(y, s, m, sqrt(keep));
}

/* The chain's masses, eV fs^2. */
static double chain_mass(const md_motion *m, double n, int link) {
  return (link ? 1 : n) * heat_of(m) / (m->rate * m->rate);
}

/* What moves a link's velocity over dt: twice the kinetic energy before it, beyond its mean, and
   the friction of the next link. */
static void move_link(md_state *s, const md_motion *m, double n, double twice, int link,
                      double dt) {
  double *v = s->chain[1];
  const double mean = (link ? 1 : n) * heat_of(m),
               before = link ? chain_mass(m, n, link - 1) * v[link - 1] * v[link - 1] : twice,
               keep = link + 1 < MD_CHAIN ? exp(-v[link + 1] * dt / 2) : 1;
  v[link] = (v[link] * keep + dt * (before - mean) / chain_mass(m, n, link)) * keep;
}

/* Martyna, Tuckerman, Tobias and Klein (1996), with the weights of Suzuki and Yoshida. */
static void chain(const md_system *y, md_state *s, const md_motion *m, clb_dynamics_move *move) {
  static const double weights[] = {1.3512071919596578, -1.7024143839193155, 1.3512071919596578};
  const double n = md_freedom(y, m) + m->barostat;
  double scale = 1, twice = 2 * (s->view.kinetic + cell_kinetic(y, s, m));
  for (int w = 0; w < 3; w++) {
    const double dt = weights[w] * m->dt;
    for (int link = MD_CHAIN; link-- > 0;) move_link(s, m, n, twice, link, dt / 2);
    const double slow = exp(-s->chain[1][0] * dt);
    scale *= slow;
    twice *= slow * slow;
    for (int link = 0; link < MD_CHAIN; link++) s->chain[0][link] += dt * s->chain[1][link];
    for (int link = 0; link < MD_CHAIN; link++) move_link(s, m, n, twice, link, dt / 2);
  }
  move->keep = scale;
  s->stretch *= scale;
}

double md_chain_energy(const md_system *y, const md_state *s, const md_motion *m) {
  const double n = md_freedom(y, m) + m->barostat;
  double sum = 0;
  for (int link = 0; link < MD_CHAIN && m->thermostat == MD_NOSE_HOOVER; link++)
    sum += chain_mass(m, n, link) * s->chain[1][link] * s->chain[1][link] / 2 +
           (link ? 1 : n) * heat_of(m) * s->chain[0][link];
  return sum;
}

void md_thermostat_act(const md_system *y, md_state *s, const md_motion *m,
                       clb_dynamics_move *move) {
  static void (*const acts[])(const md_system *, md_state *, const md_motion *,
                              clb_dynamics_move *) = {
      [MD_LANGEVIN] = langevin, [MD_BUSSI] = rescale, [MD_NOSE_HOOVER] = chain};
  acts[m->thermostat](y, s, m, move);
}

/* ---- barostat ---- */

/* 3 k T: without it, volumes would be distributed as the flow, which is not divergence-free, has
   them. */
void md_barostat_kick(const md_system *y, md_state *s, const md_motion *m, double dt) {
  const double excess = md_pressure(y, s->view.kinetic) - m->pressure;
  s->stretch += dt * 3 * (md_volume(y) * excess + heat_of(m)) / barostat_mass(y, m);
}

double md_barostat_energy(const md_system *y, const md_state *s, const md_motion *m) {
  return cell_kinetic(y, s, m) + m->pressure * md_volume(y) - heat_of(m) * log(md_volume(y));
}
