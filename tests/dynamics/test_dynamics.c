/* tests/dynamics/test_dynamics.c - atoms that move on a device with a model: against an integrator
   on the host, whatever the skin, and to the bit where a run goes on. */
#include "tests/dynamics/motion_rows.h"

enum { MODEL = 1 };

static clb_dynamics *start(opened *o, const atom_set *a, const rows *r, const double *listed) {
  clb_dynamics *d;
  const clb_model_atoms atoms = {
      a->n,       a->species, r->x, a->cell, {a->periodic[0], a->periodic[1], a->periodic[2]},
      .charge = 0};
  OK(o->ctx, clb_dynamics_create(o->model, &atoms, r->mass, r->v, listed, &d));
  return d;
}

static rows rows_of(const atom_set *a, uint64_t seed) {
  rows r = random_rows(a->n, seed);
  memcpy(r.x, a->positions, (size_t)a->n * 24);
  return r;
}

static computed forces_at(opened *o, const atom_set *a, rows *r) {
  atom_set now = *a;
  memcpy(now.positions, r->x, (size_t)a->n * 24);
  const computed c = compute_atoms(o, &now);
  memcpy(r->f, c.forces, (size_t)a->n * 24);
  return c;
}

static const double dt = 0.02;

/* A step with noise, of that number, or without. */
enum { QUIET = -1, SEED = 78 };
static void one_step(opened *o, clb_dynamics *d, int64_t step) {
  const bool noisy = step != QUIET;
  const clb_dynamics_move kick = {.kick = dt / 2, .grow = 1, .keep = 1, .grow_again = 1},
                          first = {.kick = dt / 2,
                                   .grow = 1,
                                   .reach = dt / 2,
                                   .keep = noisy ? 0.99 : 1,
                                   .width = noisy ? 0.02 : 0,
                                   .seed = SEED,
                                   .step = step,
                                   .grow_again = 1,
                                   .reach_again = dt / 2};
  OK(o->ctx, clb_dynamics_run(d, &first));
  OK(o->ctx, clb_dynamics_compute(d, NULL, 1));
  OK(o->ctx, clb_dynamics_run(d, &kick));
}

static void expect_view(const clb_dynamics_view *v, const clb_dynamics_view *w, const computed *c) {
  close_to("energy", 1, &v->energy, &c->energy, 1e-9);
  close_to("stress", 9, v->stress, c->stress, 1e-9);
  close_to("kinetic", 1, &v->kinetic, &w->kinetic, 1e-9);
  close_to("heat", 1, &v->heat, &w->heat, 1e-9);
  close_to("speed", 1, &v->speed, &w->speed, 1e-9);
  close_to("force", 1, &v->force, &w->force, 1e-9);
  assert_true(v->fastest == w->fastest && v->strongest == w->strongest);
}

static void expect_state(opened *o, clb_dynamics *d, const rows *r, double max) {
  double x[3 * MAX_ATOMS], v[3 * MAX_ATOMS], f[3 * MAX_ATOMS];
  OK(o->ctx, clb_dynamics_read(d, x, v, f, NULL));
  close_to("position", 3 * r->n, x, r->x, max);
  close_to("velocity", 3 * r->n, v, r->v, max);
  close_to("force", 3 * r->n, f, r->f, 10 * max);
}

/* Steps of both, with a list that is made anew now and then, or always. */
static void expect_run(const char *device, const clb_model_options *options, int periodic) {
  enum { STEPS = 12 };
  opened o = open_made(device, MODEL, options), host = open_made("cpu:interpreter", MODEL, options);
  atom_set a = random_atoms(7, 2, true, 3);
  for (int k = 0; k < 3; k++) a.periodic[k] = k < periodic;
  rows r = rows_of(&a, 11);
  clb_dynamics *d = start(&o, &a, &r, NULL);
  clb_model_neighbours found;
  computed c = forces_at(&host, &a, &r);
  OK(o.ctx, clb_dynamics_compute(d, NULL, 1));
  for (int t = 0; t < STEPS; t++) {
    const bool noisy = t % 2;
    clb_dynamics_view seen, wanted;
    const double kept = noisy ? 0.99 : 1, width = noisy ? 0.02 : 0;
    one_step(&o, d, noisy ? t : QUIET);
    const double heat =
        move_rows(&r, &(clb_dynamics_move){dt / 2, 1, dt / 2, kept, width, SEED, t, 1, dt / 2})
            .heat;
    c = forces_at(&host, &a, &r);
    wanted =
        move_rows(&r, &(clb_dynamics_move){.kick = dt / 2, .grow = 1, .keep = 1, .grow_again = 1});
    wanted.heat = heat;
    OK(o.ctx, clb_dynamics_see(d, &seen));
    expect_view(&seen, &wanted, &c);
  }
  expect_state(&o, d, &r, 1e-9);
  OK(o.ctx, clb_model_last_neighbours(o.model, &found));
  if (options->skin > 0) assert_true(found.rebuilds > 1 && found.rebuilds < STEPS);
  else assert_true(found.rebuilds > STEPS);
  clb_dynamics_destroy(&d);
  assert_null(d);
  free_rows(&r);
  close_model(&host);
  close_model(&o);
}

static const clb_model_options bare = {.dtype = CLB_F64, .knots = CLB_NO_KNOTS},
                               skin = {.dtype = CLB_F64, .knots = CLB_NO_KNOTS, .skin = 0.25},
                               blocks = {.dtype = CLB_F64, .knots = CLB_NO_KNOTS, .block_atoms = 3};

static void follows_the_host(void **state) {
  (void)state;
  for (int d = 0; d < devices.n; d++) {
    for (int periodic = 0; periodic <= 3; periodic += SANITIZED ? 3 : 1)
      expect_run(devices.name[d], &bare, periodic);
    if (!SANITIZED) expect_run(devices.name[d], &skin, 3);
    expect_run(devices.name[d], &skin, 2);
  }
  expect_run("cpu:interpreter", &blocks, 3);
}

/* One atom crosses the skin, and half the cell, within a step; all others rest. */
static void jumps(void **state) {
  (void)state;
  for (int d = 0; d < devices.n; d++) {
    opened o = open_made(devices.name[d], MODEL, &skin), host = open_made("cpu", MODEL, &bare);
    const atom_set a = random_atoms(7, 2, true, 3);
    rows r = rows_of(&a, 5);
    clb_dynamics_view seen;
    memset(r.v, 0, (size_t)a.n * 24);
    r.v[3 * 4 + 1] = 1.9 / dt;
    clb_dynamics *moving = start(&o, &a, &r, NULL);
    OK(o.ctx, clb_dynamics_compute(moving, NULL, 1));
    const clb_dynamics_move drift = {.grow = 1, .reach = dt, .keep = 1, .grow_again = 1};
    for (int t = 0; t < 3; t++) {
      OK(o.ctx, clb_dynamics_run(moving, &drift));
      OK(o.ctx, clb_dynamics_compute(moving, NULL, 1));
      OK(o.ctx, clb_dynamics_see(moving, &seen));
      move_rows(&r, &drift);
      const computed c = forces_at(&host, &a, &r);
      close_to("energy", 1, &seen.energy, &c.energy, 1e-9);
      expect_state(&o, moving, &r, 1e-9);
    }
    clb_dynamics_destroy(&moving);
    free_rows(&r);
    close_model(&o);
    close_model(&host);
  }
}

/* Each part of a move alone takes atoms beyond the skin, after they were near, as a view has told:
   the list is made anew, and not before. */
static void moves_beyond_the_skin(void **state) {
  (void)state;
  static const clb_dynamics_move far[] = {
      {.grow = 1, .reach = 1, .keep = 1, .grow_again = 1},
      {.kick = 100, .grow = 1, .reach = 0.02, .keep = 1, .grow_again = 1},
      {.kick = 100, .grow = 1, .keep = 1, .grow_again = 1, .reach_again = 0.02},
      {.grow = 1, .keep = -100, .grow_again = 1, .reach_again = 0.02},
      {.grow = 1, .keep = 1, .width = 300, .seed = 3, .grow_again = 1, .reach_again = 0.02},
      {.grow = 1.2, .reach = 0.01, .keep = 1, .grow_again = 1},
      {.grow = 1, .keep = 1, .grow_again = 0.8}};
  for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
    opened o = open_made("cpu:interpreter", MODEL, &skin), host = open_made("cpu", MODEL, &bare);
    const atom_set a = random_atoms(7, 2, true, 3);
    rows r = rows_of(&a, 5);
    clb_dynamics_view seen;
    clb_model_neighbours before, found;
    for (int64_t k = 0; k < 3 * a.n; k++) r.v[k] *= 0.5;
    clb_dynamics *d = start(&o, &a, &r, NULL);
    OK(o.ctx, clb_dynamics_compute(d, NULL, 1));
    const clb_dynamics_move drift = {.grow = 1, .reach = 0.01, .keep = 1, .grow_again = 1};
    for (int t = 0; t < 4; t++) { /* of at most 0.009 each */
      OK(o.ctx, clb_dynamics_see(d, &seen));
      OK(o.ctx, clb_dynamics_run(d, &drift));
      OK(o.ctx, clb_dynamics_compute(d, NULL, 1));
      move_rows(&r, &drift);
      OK(o.ctx, clb_model_last_neighbours(o.model, t ? &found : &before));
    }
    assert_true(found.rebuilds == before.rebuilds);
    forces_at(&host, &a, &r);
    OK(o.ctx, clb_dynamics_see(d, &seen));
    OK(o.ctx, clb_dynamics_run(d, &far[i]));
    OK(o.ctx, clb_dynamics_compute(d, NULL, 1));
    OK(o.ctx, clb_dynamics_see(d, &seen));
    move_rows(&r, &far[i]);
    const computed c = forces_at(&host, &a, &r);
    close_to("energy", 1, &seen.energy, &c.energy, 1e-9);
    expect_state(&o, d, &r, 1e-9);
    OK(o.ctx, clb_model_last_neighbours(o.model, &found));
    if (found.rebuilds != before.rebuilds + 1) fail_msg("move %d keeps its list", (int)i);
    clb_dynamics_destroy(&d);
    free_rows(&r);
    close_model(&o);
    close_model(&host);
  }
}

/* From what was read, on another model: the same bits, if the list is that of the first. */
static void goes_on(void **state) {
  (void)state;
  const clb_model_options *options[] = {&bare, &skin};
  for (int which = 0; which < 4; which++) {
    opened o[2];
    const atom_set a = random_atoms(9, 2, true, 4);
    rows r = rows_of(&a, 6), half = random_rows(a.n, 0);
    double listed[3 * MAX_ATOMS], end[2][2][3 * MAX_ATOMS];
    for (int i = 0; i < 2; i++)
      o[i] = open_made(which < 2 ? "cpu" : "cpu:interpreter", MODEL, options[which % 2]);
    clb_dynamics *d = start(&o[0], &a, &r, NULL);
    OK(o[0].ctx, clb_dynamics_compute(d, NULL, 1));
    for (int t = 0; t < 5; t++) one_step(&o[0], d, t);
    OK(o[0].ctx, clb_dynamics_read(d, half.x, half.v, NULL, listed));
    memcpy(half.mass, r.mass, (size_t)a.n * 8);
    if (which % 2) assert_memory_not_equal(listed, half.x, (size_t)a.n * 24);
    else assert_memory_equal(listed, half.x, (size_t)a.n * 24);
    clb_dynamics *again = start(&o[1], &a, &half, listed);
    OK(o[1].ctx, clb_dynamics_compute(again, NULL, 1));
    for (int i = 0; i < 2; i++) {
      clb_dynamics *q = i ? again : d;
      for (int t = 5; t < 10; t++) one_step(&o[i], q, t);
      OK(o[i].ctx, clb_dynamics_read(q, end[i][0], end[i][1], NULL, NULL));
    }
    for (int i = 0; i < 2; i++) assert_memory_equal(end[0][i], end[1][i], (size_t)a.n * 24);
    clb_dynamics_destroy(&d);
    clb_dynamics_destroy(&again);
    free_rows(&r);
    free_rows(&half);
    for (int i = 0; i < 2; i++) close_model(&o[i]);
  }
}

/* The cell grows with the atoms. */
static void grows(void **state) {
  (void)state;
  opened o = open_made("cpu", MODEL, &bare), host = open_made("cpu", MODEL, &bare);
  atom_set a = random_atoms(7, 2, true, 3);
  rows r = rows_of(&a, 5);
  const clb_dynamics_move move = {
      .grow = 1.01, .reach = dt, .keep = 1, .grow_again = 1.02, .reach_again = dt};
  clb_dynamics_view seen;
  clb_dynamics *d = start(&o, &a, &r, NULL);
  OK(o.ctx, clb_dynamics_compute(d, NULL, 1));
  OK(o.ctx, clb_dynamics_run(d, &move));
  for (int k = 0; k < 9; k++) a.cell[k] *= 1.01 * 1.02;
  OK(o.ctx, clb_dynamics_compute(d, a.cell, 1));
  OK(o.ctx, clb_dynamics_see(d, &seen));
  const clb_dynamics_view wanted = move_rows(&r, &move);
  const computed c = forces_at(&host, &a, &r);
  close_to("energy", 1, &seen.energy, &c.energy, 1e-10);
  close_to("stress", 9, seen.stress, c.stress, 1e-10);
  close_to("kinetic", 1, &seen.kinetic, &wanted.kinetic, 1e-10);
  expect_state(&o, d, &r, 1e-10);
  clb_dynamics_destroy(&d);
  free_rows(&r);
  close_model(&o);
  close_model(&host);
}

/* As on a device without double precision: the CPU moves atoms, the device computes in f32. */
static void without_f64(void **state) {
  (void)state;
  char path[] = "/tmp/clebsch_made_XXXXXX";
  const atom_set a = random_atoms(7, 2, true, 3);
  double x[2][3 * MAX_ATOMS], listed[3 * MAX_ATOMS];
  close(mkstemp(path));
  made_write(&made_models[MODEL], path, NULL, NULL);
  for (int i = 0; i < 2; i++) {
    const clb_model_options options = {.dtype = CLB_F32, .knots = CLB_NO_KNOTS, .skin = 0.25};
    opened o = {0};
    assert_int_equal(clb_context_create("cpu:interpreter", &o.ctx), CLB_OK);
    if (i) o.ctx->device->limits.f64 = false;
    OK(o.ctx, clb_model_open(o.ctx, path, &options, &o.model));
    rows r = rows_of(&a, 5);
    clb_dynamics_view seen;
    clb_dynamics *d = start(&o, &a, &r, NULL);
    OK(o.ctx, clb_dynamics_compute(d, NULL, 1));
    for (int t = 0; t < 8; t++) one_step(&o, d, t);
    OK(o.ctx, clb_dynamics_see(d, &seen));
    OK(o.ctx, clb_dynamics_read(d, x[i], r.v, r.f, listed));
    memcpy(r.x, x[i], (size_t)a.n * 24);
    const computed c = forces_at(&o, &a, &r);
    close_to("energy", 1, &seen.energy, &c.energy, 1e-4);
    close_to("stress", 9, seen.stress, c.stress, 1e-4);
    assert_memory_not_equal(listed, x[i], (size_t)a.n * 24);
    clb_dynamics_destroy(&d);
    free_rows(&r);
    close_model(&o);
  }
  close_to("position", 3 * a.n, x[1], x[0], 1e-4);
  unlink(path);
}

/* ---- what travels ---- */

static struct {
  clb_backend counting;
  const clb_backend *backend;
  uint64_t down, up;
  int reads;
} device;
static clb_status write_counted(clb_device *d, const clb_memory *to, uint64_t offset,
                                const void *from, uint64_t bytes) {
  device.down += bytes;
  return device.backend->write(d, to, offset, from, bytes);
}
static clb_status read_counted(clb_device *d, const clb_memory *from, uint64_t offset, void *to,
                               uint64_t bytes) {
  device.up += bytes;
  device.reads++;
  return device.backend->read(d, from, offset, to, bytes);
}

/* Less than positions and forces, in few reads: the search, or the way of the atoms where it may
   be too long, then the record. */
static void moves_few_bytes(void **state) {
  (void)state;
  const clb_model_options *options[] = {&bare, &skin};
  for (int which = 0; which < 2; which++) {
    opened o = open_made("cpu:interpreter", MODEL, options[which]);
    atom_set a = random_atoms(MAX_ATOMS, 2, true, 3);
    for (int64_t i = 0; i < 3 * a.n; i++) a.positions[i] *= 4;
    for (int k = 0; k < 9; k++) a.cell[k] *= 4;
    rows r = rows_of(&a, 5);
    clb_dynamics_view seen;
    memset(r.v, 0, (size_t)a.n * 24);
    r.v[0] = 0.1; /* the list of a skin stays */
    clb_dynamics *d = start(&o, &a, &r, NULL);
    OK(o.ctx, clb_dynamics_compute(d, NULL, 1));
    const clb_dynamics_move drift = {.grow = 1, .reach = dt, .keep = 1, .grow_again = 1};
    device.backend = o.ctx->device->backend;
    device.counting = *device.backend;
    device.counting.write = write_counted;
    device.counting.read = read_counted;
    o.ctx->device->backend = &device.counting;
    for (int t = 0; t < 4; t++) {
      device.down = device.up = 0;
      device.reads = 0;
      OK(o.ctx, clb_dynamics_run(d, &drift));
      OK(o.ctx, clb_dynamics_compute(d, NULL, 1));
      OK(o.ctx, clb_dynamics_see(d, &seen));
      if (!(device.reads <= (which ? 1 + !t : 4) && device.up + device.down < (uint64_t)a.n * 48))
        fail_msg("%d reads, %d bytes up, %d down", device.reads, (int)device.up, (int)device.down);
    }
    o.ctx->device->backend = device.backend;
    clb_dynamics_destroy(&d);
    free_rows(&r);
    close_model(&o);
  }
}

static void moves_nothing(void **state) {
  (void)state;
  for (int d = 0; d < devices.n; d++) {
    opened o = open_made(devices.name[d], MODEL, &bare);
    const atom_set a = {.n = 0, .cell = {3, 0, 0, 0, 3, 0, 0, 0, 3}, .periodic = {1, 1, 1}};
    rows r = random_rows(0, 1);
    clb_dynamics_view seen;
    memset(&seen, 255, sizeof seen);
    clb_dynamics *none = start(&o, &a, &r, NULL);
    OK(o.ctx, clb_dynamics_compute(none, NULL, 1));
    one_step(&o, none, 0);
    OK(o.ctx, clb_dynamics_see(none, &seen));
    OK(o.ctx, clb_dynamics_read(none, r.x, r.v, r.f, NULL));
    assert_true(seen.energy == 0 && seen.kinetic == 0 && seen.heat == 0 && seen.fastest == 0 &&
                seen.stress[4] == 0);
    clb_dynamics_destroy(&none);
    free_rows(&r);
    close_model(&o);
  }
}

/* ---- what is refused ---- */

static void refuses(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", MODEL, &bare);
  const atom_set a = random_atoms(5, 2, true, 3);
  rows r = rows_of(&a, 5);
  const clb_model_atoms atoms = {a.n, a.species, r.x, NULL, {0, 0, 0}, .charge = 0};
  clb_dynamics *d = NULL;
  const clb_dynamics_move still = {.grow = 1, .keep = 1, .grow_again = 1};
  clb_dynamics_view seen;
  double energy;
#define REFUSED(call, words)                                                                       \
  do {                                                                                             \
    assert_int_equal(call, CLB_ERROR_ARGUMENT);                                                    \
    if (!strstr(clb_error(o.ctx), words)) fail_msg("%s", clb_error(o.ctx));                        \
  } while (0)
  assert_int_equal(clb_dynamics_create(NULL, &atoms, r.mass, r.v, NULL, &d), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_dynamics_run(NULL, &still), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_dynamics_compute(NULL, NULL, 0), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_dynamics_see(NULL, &seen), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_dynamics_read(NULL, NULL, NULL, NULL, NULL), CLB_ERROR_ARGUMENT);
  REFUSED(clb_dynamics_create(o.model, &atoms, NULL, r.v, NULL, &d), "masses is NULL");
  REFUSED(clb_dynamics_create(o.model, &atoms, r.mass, NULL, NULL, &d), "velocities is NULL");
  const double mass = r.mass[3];
  r.mass[3] = 0;
  REFUSED(clb_dynamics_create(o.model, &atoms, r.mass, r.v, NULL, &d), "masses[3] is 0");
  assert_null(d);
  r.mass[3] = mass;
  OK(o.ctx, clb_dynamics_create(o.model, &atoms, r.mass, r.v, NULL, &d));
  REFUSED(clb_dynamics_run(d, &still), "there are no forces");
  REFUSED(clb_dynamics_see(d, &seen), "there are no forces");
  REFUSED(clb_dynamics_read(d, NULL, NULL, r.f, NULL), "there are no forces");
  REFUSED(clb_dynamics_compute(d, NULL, 1), "stress was requested");
  OK(o.ctx, clb_dynamics_compute(d, NULL, 0));
  REFUSED(clb_dynamics_run(d, NULL), "move is NULL");
  REFUSED(clb_dynamics_see(d, NULL), "view is NULL");
  OK(o.ctx, clb_model_compute(o.model, &atoms, &(clb_model_results){.energy = &energy}));
  REFUSED(clb_dynamics_run(d, &still), "the model has computed something else");
  REFUSED(clb_dynamics_read(d, NULL, NULL, r.f, NULL), "the model has computed something else");
  OK(o.ctx, clb_dynamics_compute(d, NULL, 0));
  OK(o.ctx, clb_dynamics_run(d, &still));
  clb_dynamics_destroy(&d);
  r.v[7] = NAN;
  OK(o.ctx, clb_dynamics_create(o.model, &atoms, r.mass, r.v, NULL, &d));
  OK(o.ctx, clb_dynamics_compute(d, NULL, 0));
  REFUSED(clb_dynamics_see(d, &seen), "a velocity is not finite");
  const clb_dynamics_move drift = {.grow = 1, .reach = 1, .keep = 1, .grow_again = 1};
  OK(o.ctx, clb_dynamics_run(d, &drift));
  REFUSED(clb_dynamics_compute(d, NULL, 0), "positions[2][1] is nan");
  clb_dynamics_destroy(&d);
  clb_dynamics_destroy(NULL);
  free_rows(&r);
  close_model(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(follows_the_host),
                                     cmocka_unit_test(jumps),
                                     cmocka_unit_test(moves_beyond_the_skin),
                                     cmocka_unit_test(goes_on),
                                     cmocka_unit_test(grows),
                                     cmocka_unit_test(without_f64),
                                     cmocka_unit_test(moves_few_bytes),
                                     cmocka_unit_test(moves_nothing),
                                     cmocka_unit_test(refuses)};
  clb_devices(remember, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
