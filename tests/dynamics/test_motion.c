/* tests/dynamics/test_motion.c - the kernel that moves atoms, against loops on the host. */
#include "kernels/dynamics/host/motion.h"
#include "tests/dynamics/motion_rows.h"

static void near(const char *what, double x, double wanted, double scale) {
  if (!(fabs(x - wanted) <= 1e-12 * scale)) fail_msg("%s is %.17g, not %.17g", what, x, wanted);
}

static const clb_dynamics_move moves[] = {
    {.kick = 0.4, .grow = 1, .reach = 0.3, .keep = 1, .grow_again = 1},
    {.kick = 0.2, .grow = 1, .keep = 1, .grow_again = 1},
    {.grow = 1, .keep = -0.7, .grow_again = 1, .reach_again = 0.2},
    {.kick = 0.3,
     .grow = 1.1,
     .reach = 0.2,
     .keep = 0.9,
     .width = 0.3,
     .seed = 0xfedcba9876543210,
     .step = -3,
     .grow_again = 0.95,
     .reach_again = -0.4}};
enum { MOVES = sizeof moves / sizeof *moves };

static clb_buffer *buffer_of(clb_context *ctx, int64_t n, const double *from) {
  clb_buffer *b;
  OK(ctx, clb_buffer_create(ctx, (uint64_t)n * sizeof *from + 1, &b));
  if (n) OK(ctx, clb_buffer_write(b, 0, from, (uint64_t)n * sizeof *from));
  return b;
}

static void expect_rows(clb_context *ctx, const char *what, clb_buffer *b, int64_t n,
                        const double *wanted) {
  double *x = malloc((size_t)n * sizeof *x);
  OK(ctx, clb_buffer_read(b, 0, x, (uint64_t)n * sizeof *x));
  close_to(what, n, x, wanted, 1e-14);
  free(x);
}

/* Each move in turn, its record over one of NaN; places are set by the first, then compared. */
static void expect_moves(clb_context *ctx, clb_op *op, int64_t n) {
  rows r = random_rows(n, (uint64_t)n);
  r.f[3 * (n / 2)] = 3, r.f[3 * (n - 1)] = -3; /* equally strong, but for the rest */
  r.f[3 * (n - 1) + 1] = r.f[3 * (n / 2) + 1], r.f[3 * (n - 1) + 2] = r.f[3 * (n / 2) + 2];
  const int64_t n_record = clb_motion_record(op, n);
  double *record = malloc((size_t)n_record * sizeof *record), *from = calloc(3 * (size_t)n, 8),
         copied[12] = {0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, before = 0;
  for (int64_t i = 0; i < n_record; i++) record[i] = NAN;
  clb_motion_atoms a = {.n = n,
                        .x = buffer_of(ctx, 3 * n, r.x),
                        .v = buffer_of(ctx, 3 * n, r.v),
                        .places = buffer_of(ctx, 3 * n, from),
                        .mass = buffer_of(ctx, n, r.mass),
                        .force = {buffer_of(ctx, 3 * n, r.f), 0, CLB_DENSE, NULL},
                        .record = buffer_of(ctx, n_record, record),
                        .copied = {buffer_of(ctx, 12, copied), 2, CLB_DENSE, NULL},
                        .n_copied = 10};
  memcpy(from, r.x, (size_t)n * 24);
  for (int m = 0; m < MOVES; m++) {
    const clb_dynamics_move *q = &moves[m];
    const clb_motion_step step = {q->kick,
                                  {q->grow, q->grow_again},
                                  {q->reach, q->reach_again},
                                  q->keep,
                                  q->width,
                                  q->seed,
                                  q->step,
                                  m ? CLB_PLACES_COMPARED : CLB_PLACES_SET,
                                  m > 1};
    double seen[CLB_SEEN], way = 0;
    OK(ctx, clb_motion_run(op, &a, &step));
    OK(ctx, clb_buffer_read(a.record, 0, record, (uint64_t)n_record * 8));
    clb_motion_seen(op, n, record, seen);
    const clb_dynamics_view w = move_rows(&r, q);
    for (int64_t i = 0; i < 3 * n; i += 3) {
      const double d[] = {r.x[i] - from[i], r.x[i + 1] - from[i + 1], r.x[i + 2] - from[i + 2]};
      way = fmax(way, square(d));
    }
    before = m > 1 ? before + w.heat : w.heat;
    near("motion", seen[CLB_SEEN_MOTION], 2 * w.kinetic, 2 * w.kinetic + 1);
    near("heat", seen[CLB_SEEN_HEAT], 2 * before, 2 * w.kinetic + (double)n);
    near("speed", sqrt(seen[CLB_SEEN_SPEED]), w.speed, 10);
    near("force", sqrt(seen[CLB_SEEN_FORCE]), w.force, 10);
    near("way", seen[CLB_SEEN_WAY], way, 10);
    assert_true(seen[CLB_SEEN_FASTEST] == (double)w.fastest);
    assert_true(seen[CLB_SEEN_STRONGEST] == (double)(n / 2));
    for (int i = 0; i < 10; i++) assert_true(record[i] == i + 1);
    expect_rows(ctx, "x", a.x, 3 * n, r.x);
    expect_rows(ctx, "v", a.v, 3 * n, r.v);
    expect_rows(ctx, "places", a.places, 3 * n, from);
  }
  clb_buffer **all[] = {
      &a.x, &a.v, &a.places, &a.mass, &a.force.buffer, &a.record, &a.copied.buffer};
  for (int i = 0; i < 7; i++) clb_buffer_destroy(all[i]);
  free_rows(&r);
  free(record);
  free(from);
}

static void moves_rows(void **state) {
  (void)state;
  static const int64_t counts[] = {1, 2, 5, 33, 257, 3001};
  for (int d = 0; d < devices.n; d++) {
    clb_context *ctx;
    clb_op *op;
    assert_int_equal(clb_context_create(devices.name[d], &ctx), CLB_OK);
    OK(ctx, clb_motion_create(ctx, &op));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) expect_moves(ctx, op, counts[i]);
    clb_op_destroy(&op);
    clb_context_destroy(&ctx);
  }
}

/* Harmonic oscillators at k T = 1 with friction and noise, in steps so long that they show: the
   squares of places have the mean 1, whatever the step, and m v^2 has 1 - dt^2 / (4 m). */
static void samples_oscillators(void **state) {
  (void)state;
  enum { N = 400, START = 60, STEPS = 400 };
  const double dt = 0.8, keep = exp(-dt);
  double place[2] = {0}, speed[2] = {0}, wanted[2] = {0};
  clb_context *ctx;
  clb_op *op;
  assert_int_equal(clb_context_create("cpu", &ctx), CLB_OK);
  OK(ctx, clb_motion_create(ctx, &op));
  rows r = random_rows(N, 1);
  memset(r.x, 0, N * 24);
  memset(r.v, 0, N * 24);
  for (int64_t i = 0; i < N; i++) r.mass[i] = i % 2 ? 0.7 : 5;
  const int64_t n_record = clb_motion_record(op, N);
  double *record = calloc((size_t)n_record, 8);
  clb_motion_atoms a = {.n = N,
                        .x = buffer_of(ctx, 3 * N, r.x),
                        .v = buffer_of(ctx, 3 * N, r.v),
                        .places = buffer_of(ctx, 3 * N, r.x),
                        .mass = buffer_of(ctx, N, r.mass),
                        .force = {buffer_of(ctx, 3 * N, r.f), 0, CLB_DENSE, NULL},
                        .record = buffer_of(ctx, n_record, record)};
  for (int t = 0; t < START + STEPS; t++) {
    const clb_motion_step kick = {.kick = dt / 2, .grow = {1, 1}, .keep = 1},
                          first = {dt / 2, {1, 1},  {dt / 2, dt / 2}, keep, 1 - keep * keep,
                                   9,      t - 100, CLB_PLACES_IDLE,  false};
    for (int half = 0; half < 2; half++) {
      OK(ctx, clb_buffer_read(a.x, 0, r.x, N * 24));
      for (int64_t k = 0; k < 3 * N; k++) r.f[k] = -r.x[k];
      OK(ctx, clb_buffer_write(a.force.buffer, 0, r.f, N * 24));
      OK(ctx, clb_motion_run(op, &a, half ? &kick : &first));
    }
    OK(ctx, clb_buffer_read(a.v, 0, r.v, N * 24));
    for (int64_t k = 0; k < 3 * N && t >= START; k++) {
      const double m = r.mass[k / 3], part = 1. / (STEPS * 3 * N / 2);
      place[k / 3 % 2] += part * r.x[k] * r.x[k];
      speed[k / 3 % 2] += part * m * r.v[k] * r.v[k];
      wanted[k / 3 % 2] = 1 - dt * dt / (4 * m);
    }
  }
  for (int i = 0; i < 2; i++)
    if (!(fabs(place[i] - 1) < 0.04 && fabs(speed[i] - wanted[i]) < 0.02 * wanted[i]))
      fail_msg("kind %d: x^2 %g, m v^2 %g, not 1, %g", i, place[i], speed[i], wanted[i]);
  clb_buffer **all[] = {&a.x, &a.v, &a.places, &a.mass, &a.force.buffer, &a.record};
  for (int i = 0; i < 6; i++) clb_buffer_destroy(all[i]);
  free_rows(&r);
  free(record);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(moves_rows),
                                     cmocka_unit_test(samples_oscillators)};
  clb_devices(remember, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
