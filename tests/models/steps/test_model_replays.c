/* tests/models/steps/test_model_replays.c - steps that are replayed from a recording give the bits
   of launches one by one, on every device that runs here, whatever happens to the system in
   between; and where there can be no recording, steps go on without. */
#include "models/layers/kinds.h"
#include "models/model_state.h"

#include "tests/models/model_places.h"

static void step(atom_set *a, int64_t t) {
  uint64_t seed = (uint64_t)t;
  for (int64_t i = 0; i < 3 * a->n; i++) a->positions[i] += 0.03 * test_random(&seed);
}

static bool is_recorded(const opened *o) {
  const clb_repeated *step = &o->model->step;
  return step->recording && (int64_t)(step->recorded >> CLB_WANTED_BITS) == o->model->graph_number;
}

/* ---- systems that change ---- */

/* Atoms move, and some are of other species, or in another cell, than when it was recorded. */
static void replays_on(const char *name, int which) {
  opened o = open_made(name, which, &(clb_model_options){.skin = 0.3, .knots = CLB_NO_KNOTS});
  atom_set a = random_atoms(6, 2, true, 31);
  int replayed = 0;
  for (int64_t t = 0; t < 24; t++, step(&a, t)) {
    if (t % 8 == 5) a.species[t % a.n] = (a.species[t % a.n] + 1) % o.model->net.n_species;
    if (t % 8 == 6) a.cell[0] += 0.01;
    const bool replays = is_recorded(&o);
    const int64_t graph = o.model->graph_number;
    const computed c = compute_atoms(&o, &a);
    replayed += replays && graph == o.model->graph_number;
    if (is_recorded(&o)) {
      const computed one_by_one = compute_one_by_one(&o, &a);
      expect_equal(&one_by_one, &c);
      for (int i = 0; i < 2; i++) {
        const computed again = compute_atoms(&o, &a);
        expect_equal(&again, &c);
      }
      assert_true(is_recorded(&o));
    }
    double energy; /* other results, other launches */
    const clb_model_atoms atoms = {a.n, a.species, a.positions, a.cell, {1, 1, 1}, .charge = 0};
    if (t % 5 == 4) {
      assert_int_equal(clb_model_compute(o.model, &atoms, &(clb_model_results){.energy = &energy}),
                       CLB_OK);
      assert_true(energy == c.energy);
    }
  }
  assert_true(replayed > 6);
  close_model(&o);
}

/* One by one, recorded, and replayed twice: as a model that has seen nothing else. */
static void expect_replays(opened *o, opened *fresh, const atom_set *a) {
  const computed wanted = compute_one_by_one(fresh, a);
  for (int i = 0; i < 4; i++) {
    const computed c = compute_atoms(o, a);
    expect_equal(&c, &wanted);
    assert_true(is_recorded(o) == (i > 0));
  }
}

/* A system that grows, shrinks, loses all edges and then its atoms, and gains other species. */
static void sizes_on(const char *name) {
  const clb_model_options options = {.knots = 16};
  opened o = open_made(name, 0, &options), fresh = open_made(name, 0, &options);
  atom_set far = random_atoms(5, 2, false, 3), others = random_atoms(10, 3, true, 4),
           nothing = random_atoms(0, 1, true, 5);
  for (int64_t i = 0; i < far.n; i++) far.positions[3 * i] += 40 * (double)i;
  const atom_set systems[] = {random_atoms(6, 1, true, 1),
                              random_atoms(14, 1, true, 2),
                              random_atoms(3, 1, true, 1),
                              far,
                              others,
                              nothing,
                              others,
                              far,
                              random_atoms(30, 2, true, 6)};
  for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
    expect_replays(&o, &fresh, &systems[i]);
    assert_true(!o.model->net.n_edges == (systems[i].n == 0 || systems[i].n == far.n));
  }
  close_model(&o);
  close_model(&fresh);
}

/* ---- several models ---- */

/* A second model in a context. */
static opened open_beside(const opened *o, int which) {
  char path[] = "/tmp/clebsch_made_XXXXXX";
  opened second = {.ctx = o->ctx};
  close(mkstemp(path));
  made_write(&made_models[which], path, NULL, NULL);
  if (clb_model_open(o->ctx, path, &(clb_model_options){.knots = 16}, &second.model))
    fail_msg("%s", clb_error(o->ctx));
  unlink(path);
  return second;
}

/* Two models in turn, in one context and in two. */
static void models_on(const char *name) {
  const clb_model_options options = {.knots = 16};
  opened o[3] = {open_made(name, 0, &options)};
  o[1] = open_beside(&o[0], 1);
  o[2] = open_made(name, 1, &options);
  const atom_set a = random_atoms(7, 2, true, 8);
  computed wanted[3];
  for (int i = 0; i < 3; i++) wanted[i] = compute_one_by_one(&o[i], &a);
  for (int turn = 0; turn < 4; turn++)
    for (int i = 0; i < 3; i++) {
      const computed c = compute_atoms(&o[i], &a);
      expect_equal(&c, &wanted[i]);
    }
  for (int i = 0; i < 3; i++) assert_true(is_recorded(&o[i]));
  expect_equal(&wanted[1], &wanted[2]);
  clb_model_destroy(&o[1].model);
  close_model(&o[0]);
  close_model(&o[2]);
}

/* ---- what is around a step ---- */

static void count(const clb_profile_entry *entry, void *user) {
  *(int64_t *)user += entry->launches;
}

/* All launches of a replayed step are in a profile, and its results are the same. */
static void profiles_on(const char *name) {
  opened o = open_made(name, 0, &(clb_model_options){.knots = 16});
  const atom_set a = random_atoms(6, 2, true, 9);
  computed wanted = {0};
  for (int i = 0; i < 3; i++) wanted = compute_atoms(&o, &a);
  int64_t launches = 0;
  assert_true(is_recorded(&o));
  if (clb_profile_begin(o.ctx)) fail_msg("%s: %s", name, clb_error(o.ctx));
  const computed c = compute_atoms(&o, &a);
  if (clb_profile_end(o.ctx, count, &launches)) fail_msg("%s: %s", name, clb_error(o.ctx));
  expect_equal(&c, &wanted);
  assert_true(launches >= o.model->step.recording->n);
  close_model(&o);
}

/* Between replays an op of the same context is tuned: its candidates are compiled, timed and freed.
 */
static void tunes_on(const char *name) {
  const char *before = getenv("CLB_CACHE_DIR");
  char *cache = before ? strdup(before) : NULL;
  setenv("CLB_CACHE_DIR", "off", 1); /* no wisdom from elsewhere, and none for others */
  opened o = open_made(name, 0, &(clb_model_options){.knots = 16});
  const atom_set a = random_atoms(6, 2, true, 13);
  const int degrees[] = {0, 1, 2};
  const clb_spherical_harmonics_desc desc = {.degrees = degrees,
                                             .n_degrees = 3,
                                             .storage = CLB_F32,
                                             .arithmetic = CLB_F32,
                                             .passes = CLB_PASS_BIT(CLB_FORWARD) | CLB_MEASURE};
  computed wanted = {0};
  for (int i = 0; i < 3; i++) wanted = compute_atoms(&o, &a);
  assert_true(is_recorded(&o));
  clb_op *op;
  clb_tuning tuning;
  if (clb_spherical_harmonics_create(o.ctx, &desc, &op)) fail_msg("%s", clb_error(o.ctx));
  assert_int_equal(clb_op_tuning(op, CLB_FORWARD, &tuning), CLB_OK);
  assert_true(tuning.measured);
  for (int i = 0; i < 2; i++) {
    const computed c = compute_atoms(&o, &a);
    expect_equal(&c, &wanted);
    assert_true(is_recorded(&o) && !o.model->step.recording->lost);
    clb_op_destroy(&op);
  }
  close_model(&o);
  if (cache) setenv("CLB_CACHE_DIR", cache, 1);
  else unsetenv("CLB_CACHE_DIR");
  free(cache);
}

/* A caller who records does not get the model's step: it waits for results, which is refused, and
   then works as before. */
static void callers_recording(const char *name) {
  opened o = open_made(name, 0, &(clb_model_options){.knots = 16});
  const atom_set a = random_atoms(6, 2, true, 9);
  const clb_model_atoms atoms = {a.n, a.species, a.positions, a.cell, {1, 1, 1}, .charge = 0};
  const computed wanted = compute_atoms(&o, &a);
  clb_recording *r = NULL;
  double energy;
  assert_int_equal(clb_record_begin(o.ctx), CLB_OK);
  assert_int_equal(clb_model_compute(o.model, &atoms, &(clb_model_results){.energy = &energy}),
                   CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_record_end(o.ctx, &r), CLB_ERROR_ARGUMENT);
  assert_null(r);
  for (int i = 0; i < 3; i++) {
    const computed c = compute_atoms(&o, &a);
    expect_equal(&c, &wanted);
  }
  close_model(&o);
}

/* ---- no recording ---- */

static void refuse(clb_device *device, const clb_work *work, int64_t n, clb_recorded **recorded) {
  (void)device, (void)work, (void)n;
  *recorded = NULL;
}

/* A driver that has no recordings, and one that cannot make this one. */
static void drivers_without(const char *name) {
  opened o = open_made(name, 0, &(clb_model_options){.knots = 16});
  const clb_backend *own = o.ctx->device->backend;
  clb_backend other = *own;
  atom_set a = random_atoms(6, 2, true, 10);
  o.ctx->device->backend = &other;
  for (int i = 0; i < 2; i++, step(&a, i)) {
    other.record = i ? refuse : NULL;
    const computed wanted = compute_one_by_one(&o, &a);
    for (int t = 0; t < 3; t++) {
      const computed c = compute_atoms(&o, &a);
      expect_equal(&c, &wanted);
    }
    assert_true(o.model->step.recording && !o.model->step.recording->recorded);
  }
  o.ctx->device->backend = own;
  close_model(&o);
}

static const clb_layer_kind *kind;
static int attempts;
static clb_status forward_without_memory(clb_network *n, clb_layer *y, unsigned adds) {
  if (!n->ctx->recording) return kind->forward(n, y, adds);
  attempts++;
  return clb_fail(&n->ctx->error, CLB_ERROR_MEMORY, "no memory for the recording of a layer");
}

/* Steps go on one by one, with the reason at hand, and without another attempt before the graph is
   another one; then they are recorded again. */
static void recordings_without_memory(const char *name) {
  opened o = open_made(name, 0, &(clb_model_options){.knots = 16});
  atom_set a = random_atoms(6, 2, true, 11);
  clb_layer *y = o.model->net.layer[1];
  kind = y->kind;
  clb_layer_kind failing = *kind;
  failing.forward = forward_without_memory;
  y->kind = &failing;
  attempts = 0;
  for (int graph = 1; graph <= 2; graph++, step(&a, graph)) {
    const computed wanted = compute_one_by_one(&o, &a);
    for (int t = 0; t < 4; t++) {
      const computed c = compute_atoms(&o, &a);
      expect_equal(&c, &wanted);
      assert_null(o.model->step.recording);
    }
    assert_int_equal(attempts, graph);
    const char *why = clb_error(o.ctx);
    if (!strstr(why, "no memory for the recording") || !strstr(why, "kernel by kernel"))
      fail_msg("a step that is not recorded says: %s", why);
  }
  y->kind = kind;
  for (int t = 0; t < 2; t++) compute_atoms(&o, &a);
  assert_true(is_recorded(&o));
  close_model(&o);
}

/* ---- devices ---- */

static void on_all(void (*run)(const char *name)) {
  static const char *const devices[] = {"cpu:interpreter", "cpu", "opencl"};
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
    if (is_here(devices[i])) run(devices[i]);
    else assert_int_equal(i, 2);
}

static void replays(void **state) {
  (void)state;
  for (int which = 0; which < 3; which++) replays_on("cpu:interpreter", which);
  replays_on("cpu", 0);
}
static void replays_opencl(void **state) {
  (void)state;
  if (!is_here("opencl")) skip_because("no OpenCL driver");
  replays_on("opencl", 0);
}

static void sizes(void **state) {
  (void)state;
  on_all(sizes_on);
}
static void models(void **state) {
  (void)state;
  on_all(models_on);
}
static void profiles(void **state) {
  (void)state;
  on_all(profiles_on);
}
static void tuning_between(void **state) {
  (void)state;
  tunes_on("cpu");
}
static void recorded_by_callers(void **state) {
  (void)state;
  on_all(callers_recording);
}
static void drivers(void **state) {
  (void)state;
  on_all(drivers_without);
}
static void out_of_memory(void **state) {
  (void)state;
  on_all(recordings_without_memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(replays),
                                     cmocka_unit_test(replays_opencl),
                                     cmocka_unit_test(sizes),
                                     cmocka_unit_test(models),
                                     cmocka_unit_test(profiles),
                                     cmocka_unit_test(tuning_between),
                                     cmocka_unit_test(recorded_by_callers),
                                     cmocka_unit_test(drivers),
                                     cmocka_unit_test(out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
