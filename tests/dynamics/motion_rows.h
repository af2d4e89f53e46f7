/* tests/dynamics/motion_rows.h - devices on which atoms can move, and the same moves on the host.
 */
#ifndef CLB_TESTS_DYNAMICS_MOTION_ROWS_H
#define CLB_TESTS_DYNAMICS_MOTION_ROWS_H

#include "tests/models/model_places.h"
#include "tools/common/philox.h"

enum { MAX_DEVICES = 8 };

static struct {
  int n;
  char name[MAX_DEVICES][32];
} devices;

static inline void remember(const clb_device_info *info, void *user) {
  (void)user;
  if (info->runs && info->f64 && devices.n < MAX_DEVICES && strcmp(info->backend, "level_zero"))
    snprintf(devices.name[devices.n++], sizeof *devices.name, "%s", info->name);
}

/* ---- on the host ---- */

typedef struct {
  int64_t n;
  double *x, *v, *f, *mass;
} rows;

static inline rows random_rows(int64_t n, uint64_t seed) {
  rows r = {.n = n};
  double **all[] = {&r.x, &r.v, &r.f, &r.mass};
  for (int i = 0; i < 4; i++) {
    *all[i] = malloc((size_t)n * 3 * sizeof(double) + 1);
    assert_non_null(*all[i]);
    for (int64_t k = 0; k < 3 * n; k++) (*all[i])[k] = test_random(&seed);
  }
  for (int64_t i = 0; i < n; i++) r.mass[i] = 1.5 + r.mass[i];
  return r;
}

static inline void free_rows(rows *r) {
  double *all[] = {r->x, r->v, r->f, r->mass};
  for (int i = 0; i < 4; i++) free(all[i]);
}

static inline double square(const double *a) { return a[0] * a[0] + a[1] * a[1] + a[2] * a[2]; }

/* Moves an atom; returns twice the heat. */
static inline double move_one(const clb_dynamics_move *m, int64_t atom, double mass, double *x,
                              double *v, const double *f) {
  double before, after, noise[3];
  normal_triple(m->seed, m->step, atom, noise);
  for (int k = 0; k < 3; k++) {
    v[k] += m->kick / mass * f[k];
    x[k] = m->grow * x[k] + m->reach * v[k];
    v[k] /= m->grow;
  }
  before = square(v);
  for (int k = 0; k < 3; k++)
    v[k] = m->keep * v[k] + (m->width > 0 ? sqrt(m->width / mass) * noise[k] : 0);
  after = square(v);
  for (int k = 0; k < 3; k++) {
    x[k] = m->grow_again * x[k] + m->reach_again * v[k];
    v[k] /= m->grow_again;
  }
  return mass * (before - after);
}

static inline clb_dynamics_view move_rows(rows *r, const clb_dynamics_move *m) {
  clb_dynamics_view w = {0};
  for (int64_t i = 0; i < r->n; i++) {
    double *v = r->v + 3 * i;
    w.heat += move_one(m, i, r->mass[i], r->x + 3 * i, v, r->f + 3 * i) / 2;
    w.kinetic += r->mass[i] * square(v) / 2;
    const double speed = sqrt(square(v)), force = sqrt(square(r->f + 3 * i));
    if (speed > w.speed) w.speed = speed, w.fastest = i;
    if (force > w.force) w.force = force, w.strongest = i;
  }
  return w;
}

#endif
