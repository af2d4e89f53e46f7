/* tools/dynamics/md_guard.c - bounds of a run. */
#include "tools/dynamics/md_guard.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* The bounds, as the help of `clebsch md` tells them. */
static const double max_force = 1e4; /* eV / Angstrom */
static const double max_move = 0.25; /* of r_max, in a step */
static const double max_drift = 1;   /* eV / atom, of the energy without a thermostat */
static const double max_hot = 20, least_hot = 2e4;  /* times the start's or the thermostat's; K */
static const double max_held = 5, least_held = 1e3; /* the same for the mean with a thermostat */

typedef struct {
  const md_system *y;
  const md_motion *m;
  double temperature, drift, step; /* K, eV / atom, Angstrom: the fastest atom's */
  int64_t fastest, edges;
  double few; /* temperatures of few atoms vary more */
  char *text; /* what is out of bounds */
  size_t size;
} look;

static bool beyond(const look *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool beyond(const look *l, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(l->text, l->size, format, arguments);
  va_end(arguments);
  return true;
}

/* Index of the longest of rows x[n][3], and its length. */
static int64_t longest(const double *x, int64_t n, double *length) {
  int64_t at = 0;
  double most = 0;
  for (int64_t i = 0; i < n; i++) {
    const double *v = x + 3 * i, square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    if (square > most) most = square, at = i;
  }
  *length = sqrt(most);
  return at;
}

static const char *symbol(const md_system *y, int64_t atom) {
  return clb_element_symbols[y->atoms.numbers[atom]];
}

/* ---- what may be out of bounds ---- */

static bool too_strong(const look *l, int64_t i, double force) {
  return force > max_force && beyond(l, "the force on atom %lld (%s) is %.4g eV/A, more than %g",
                                     (long long)i + 1, symbol(l->y, i), force, max_force);
}

static bool too_fast(const look *l) {
  return l->step > max_move * l->y->info.r_max &&
         beyond(l, "atom %lld (%s) moves by %.3g A a step, more than a quarter of r_max, %g A",
                (long long)l->fastest + 1, symbol(l->y, l->fastest), l->step, l->y->info.r_max);
}

static bool too_hot(const look *l, const md_guard *g) {
  const double bound = l->few * fmax(least_hot, max_hot * fmax(g->temperature, l->m->temperature));
  return l->temperature > bound &&
         beyond(l, "the temperature is %.0f K, more than %.0f K; atom %lld (%s) is the fastest",
                l->temperature, bound, (long long)l->fastest + 1, symbol(l->y, l->fastest));
}

/* Once the thermostat had the time to take up what the start released. */
static bool not_held(const look *l, const md_guard *g) {
  const double target = l->m->temperature, bound = l->few * fmax(least_held, max_held * target);
  return l->m->thermostat && g->time * l->m->rate > 5 && g->mean > bound &&
         beyond(l,
                "the thermostat at %g K does not hold the temperature, which is %.0f K on "
                "average; atom %lld (%s) is the fastest",
                target, g->mean, (long long)l->fastest + 1, symbol(l->y, l->fastest));
}

static bool drifts(const look *l) {
  return !l->m->thermostat && fabs(l->drift) > max_drift &&
         beyond(l,
                "the total energy has changed by %.3g eV per atom since the start; atom %lld "
                "(%s) is the fastest",
                l->drift, (long long)l->fastest + 1, symbol(l->y, l->fastest));
}

/* Most atoms have no neighbour any more. Where all directions are periodic they may meet again,
   unless nobody has. */
static bool apart(const look *l, const md_guard *g) {
  const bool *p = l->y->atoms.periodic;
  const int64_t n = l->y->atoms.n, least = p[0] && p[1] && p[2] ? 1 : (n + 1) / 2;
  return g->edges >= n && l->edges < least &&
         beyond(l,
                "the atoms have left each other: %lld edges remain of %lld; atom %lld (%s) is "
                "the fastest",
                (long long)l->edges, (long long)g->edges, (long long)l->fastest + 1,
                symbol(l->y, l->fastest));
}

/* ---- a run ---- */

void md_guard_start(md_guard *g, const md_system *y, const md_state *s, const md_motion *m) {
  const double kinetic = s->view.kinetic;
  *g = (md_guard){.energy = y->energy + kinetic,
                  .temperature = md_temperature(y, m, kinetic),
                  .mean = m->temperature,
                  .edges = md_system_edges(y)};
}

bool md_guard_holds(md_guard *g, const md_system *y, const md_state *s, const md_motion *m) {
  const double n = (double)y->atoms.n, kinetic = s->view.kinetic;
  char text[256];
  look l = {.y = y,
            .m = m,
            .temperature = md_temperature(y, m, kinetic),
            .drift = (y->energy + kinetic - g->energy) / n,
            .edges = md_system_edges(y),
            .few = 1 + 10 / n,
            .fastest = s->view.fastest,
            .step = s->view.speed * m->dt,
            .text = text,
            .size = sizeof text};
  g->mean += (l.temperature - g->mean) * -expm1(-m->rate * m->dt);
  g->time += m->dt;
  if (!too_strong(&l, s->view.strongest, s->view.force) && !too_fast(&l) && !too_hot(&l, g) &&
      !not_held(&l, g) && !drifts(&l) && !apart(&l, g))
    return true;
  warn("step %lld: %s; a shorter --dt or better positions may help, and --no-guard goes on",
       (long long)s->step, text);
  return false;
}

bool md_forces_hold(const md_system *y, char *error, size_t size) {
  double force;
  const int64_t i = longest(y->forces, y->atoms.n, &force);
  return !too_strong(&(look){.y = y, .text = error, .size = size}, i, force);
}
