/* tests/edges/test_room.c - searches in every step that the host does not wait for: null edges
   change nothing, replays give the bits of launches one by one, and edges that have no room
   are found anew. */
#include "tests/dynamics/motion_rows.h"
#include "tests/fakes/device_limits.h"

enum { MODEL = 1 };
static const clb_model_options bare = {.dtype = CLB_F64, .knots = CLB_NO_KNOTS},
                               skin = {.dtype = CLB_F64, .knots = CLB_NO_KNOTS, .skin = 0.3};

/* As on a GPU. */
static opened open_roomy(const char *device, const clb_model_options *options) {
  opened o = open_made(device, MODEL, options);
  o.model->edges.room.most_atoms = CLB_RECORDED_ATOMS;
  return o;
}
static opened open_exact(const clb_model_options *options) {
  opened o = open_made("cpu", MODEL, options);
  o.model->edges.room.most_atoms = 0;
  return o;
}

static const clb_edge_room *room_of(const opened *o) { return &o->model->edges.room; }

static int64_t edges_of(const opened *o) {
  clb_model_neighbours found;
  assert_int_equal(clb_model_last_neighbours(o->model, &found), CLB_OK);
  return found.n_edges;
}

static void step(atom_set *a, int64_t t) {
  uint64_t seed = (uint64_t)t;
  for (int64_t i = 0; i < 3 * a->n; i++) a->positions[i] += 0.03 * test_random(&seed);
}

/* Lengths by this factor. */
static void stretch(atom_set *a, double by) {
  for (int64_t i = 0; i < 3 * a->n; i++) a->positions[i] *= by;
  for (int k = 0; k < 9; k++) a->cell[k] *= by;
}

/* With neither recording. */
static computed one_by_one(opened *o, const atom_set *a) {
  clb_repeated *const both[] = {&o->model->step, &o->model->edges.room.search};
  for (int i = 0; i < 2; i++) clb_recording_destroy(&both[i]->recording), both[i]->last = 0;
  return compute_atoms(o, a);
}

/* ---- results ---- */

/* Atoms move, some change their species, and the cell changes a little. */
static void replays(void **state) {
  (void)state;
  for (int d = 0; d < devices.n; d++)
    for (int with = 0; with <= !d; with++) {
      opened o = open_roomy(devices.name[d], with ? &skin : &bare),
             exact = open_exact(with ? &skin : &bare);
      atom_set a = random_atoms(9, 2, true, 31);
      int replayed = 0;
      for (int64_t t = 0; t < 10; t++, step(&a, t)) {
        if (t == 5) a.species[2] = 1 - a.species[2];
        if (t == 6) a.cell[0] += 0.01;
        const int64_t graph = o.model->graph_number;
        const computed c = compute_atoms(&o, &a), wanted = compute_atoms(&exact, &a);
        expect_same(&c, &wanted, a.n, 1e-9);
        assert_true(with || edges_of(&o) == edges_of(&exact));
        assert_true(room_of(&o)->n_edges > 0 && o.model->net.n_edges > edges_of(&o));
        if (t > 1 && t != 5) assert_true(graph == o.model->graph_number);
        replayed += room_of(&o)->search.recording && o.model->step.recording;
        if (t != 4 && t != 8) continue;
        clb_neighbours_forget(&o.model->edges.between);
        const computed again = compute_atoms(&o, &a);
        clb_neighbours_forget(&o.model->edges.between);
        const computed single = one_by_one(&o, &a);
        assert_memory_equal(&again, &single, sizeof single);
        if (!with) assert_memory_equal(&again, &c, sizeof c);
      }
      assert_true(replayed > (with ? 0 : 5));
      close_model(&o);
      close_model(&exact);
    }
}

/* A system that grows, shrinks, loses its edges, then its atoms, and gets them back. */
static void sizes(void **state) {
  (void)state;
  static const char *const names[] = {"cpu:interpreter", "cpu"};
  for (int d = 0; d < 2; d++) {
    opened o = open_roomy(names[d], &bare), exact = open_exact(&bare);
    atom_set dense = random_atoms(40, 2, true, 2), far = random_atoms(12, 2, true, 3);
    stretch(&dense, 1.5);
    stretch(&far, 60);
    atom_set denser = dense, sparse = dense;
    stretch(&denser, 0.9);
    stretch(&sparse, 40);
    const atom_set systems[] = {random_atoms(6, 1, true, 1),
                                dense,
                                denser,
                                sparse,
                                denser,
                                far,
                                random_atoms(0, 1, true, 5),
                                random_atoms(30, 2, false, 6),
                                dense};
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
      const atom_set *a = &systems[i];
      const computed wanted = compute_atoms(&exact, a);
      computed first;
      for (int turn = 0; turn < 3; turn++) {
        const computed c = compute_atoms(&o, a);
        expect_same(&c, &wanted, a->n, 1e-8);
        if (turn) assert_memory_equal(&c, &first, sizeof c);
        first = c;
        assert_true(edges_of(&o) == edges_of(&exact));
      }
      assert_true((room_of(&o)->n_edges > 0) == (a->n && a->periodic[0]));
    }
    close_model(&o);
    close_model(&exact);
  }
}

/* Where the device refuses atoms, the host says what is wrong, or finds their edges. */
static void refuses(void **state) {
  (void)state;
  opened o = open_roomy("cpu:interpreter", &bare);
  const atom_set a = random_atoms(6, 2, true, 3);
  const computed wanted = compute_atoms(&o, &a);
  for (int which = 0; which < 3; which++) {
    atom_set bad = a;
    double energy;
    const clb_model_atoms atoms = {bad.n,    bad.species, bad.positions,
                                   bad.cell, {1, 1, 1},   .charge = 0};
    if (which == 0) bad.positions[7] = NAN;
    if (which == 1) memcpy(bad.positions + 3, bad.positions, 3 * sizeof *bad.positions);
    if (which == 2)
      for (int k = 0; k < 3; k++) bad.positions[k] += 600 * bad.cell[k];
    const clb_status s =
        clb_model_compute(o.model, &atoms, &(clb_model_results){.energy = &energy});
    assert_int_equal(s, which < 2 ? CLB_ERROR_ARGUMENT : CLB_OK);
    const char *why = clb_error(o.ctx);
    if (which < 2 && !strstr(why, which ? "are one place" : "positions[2][1] is nan"))
      fail_msg("%s", why);
    if (which == 2) close_to("energy", 1, &energy, &wanted.energy, 1e-8);
    const computed c = compute_atoms(&o, &a);
    assert_memory_equal(&c, &wanted, sizeof c);
  }
  close_model(&o);
}

/* On a GPU there is a skin where a model has little work with edges. */
static void chooses(void **state) {
  (void)state;
  opened any = open_exact(&bare);
  clb_limits limits = any.ctx->device->limits;
  limits.simd = false;
  close_model(&any);
  const atom_set a = random_atoms(9, 2, true, 3), open = random_atoms(9, 2, false, 3);
  opened o = open_made_as(
      "cpu:interpreter", &limits, MODEL,
      &(clb_model_options){.dtype = CLB_F64, .knots = CLB_NO_KNOTS, .skin = CLB_AUTO_SKIN});
  assert_true(o.model->edges.weights > 0);
  for (int many = 0; many < 2; many++) {
    if (many) o.model->edges.weights = (3 << 17) / a.n + 1;
    compute_atoms(&o, &a);
    assert_true(room_of(&o)->n_edges && o.model->edges.between.skin == (many ? 0 : 0.25));
  }
  compute_atoms(&o, &open);
  assert_true(!room_of(&o)->n_edges && o.model->edges.between.skin == 0.5);
  close_model(&o);
}

static void count_searching(const clb_profile_entry *entry, void *user) {
  int64_t *n = user;
  if (!strncmp(entry->kernel, "cell_", 5) || !strncmp(entry->kernel, "graph_", 6))
    *n += entry->launches;
}

/* On a GPU the search of few atoms is seven launches, or two more where rows are split. */
static void few_launches(void **state) {
  (void)state;
  opened o = open_made_as("cpu:interpreter", &device_limits[LIMITS_NVIDIA].limits, MODEL, &bare),
         exact = open_exact(&bare);
  atom_set a = random_atoms(9, 2, true, 3);
  for (int t = 0; t < 4; t++, step(&a, t)) {
    int64_t launches = 0;
    if (t == 3) OK(o.ctx, clb_profile_begin(o.ctx));
    const computed c = compute_atoms(&o, &a), wanted = compute_atoms(&exact, &a);
    expect_same(&c, &wanted, a.n, 1e-9);
    if (t < 3) continue;
    OK(o.ctx, clb_profile_end(o.ctx, count_searching, &launches));
    if (launches < 7 || launches > 9) fail_msg("%d launches of a search", (int)launches);
  }
  close_model(&o);
  close_model(&exact);
}

static void count_splits(const clb_profile_entry *entry, void *user) {
  int64_t *n = user;
  if (!strcmp(entry->kernel, "row_sum_splits")) *n += entry->launches;
}

/* Rows of a few splits each are those of teams in the first step, and in the steps after it,
   whose edges are searched in the room of the first. */
static void teams_last(void **state) {
  (void)state;
  opened o = open_made_as("cpu:interpreter", &device_limits[LIMITS_NVIDIA].limits, MODEL, &bare),
         exact = open_exact(&bare);
  atom_set a = random_atoms(9, 2, true, 3);
  o.model->net.whole->least_split = 2 * CLB_GRAPH_LEAST_SPLIT;
  for (int t = 0; t < 4; t++, step(&a, t)) {
    int64_t splits = 0;
    OK(o.ctx, clb_profile_begin(o.ctx));
    const computed c = compute_atoms(&o, &a), wanted = compute_atoms(&exact, &a);
    expect_same(&c, &wanted, a.n, 1e-9);
    OK(o.ctx, clb_profile_end(o.ctx, count_splits, &splits));
    assert_true(clb_graph_teams(o.model->net.whole) && !splits);
  }
  close_model(&o);
  close_model(&exact);
}

/* ---- what travels ---- */

static struct {
  clb_backend counting;
  const clb_backend *backend;
  int allocs, writes, reads, waits, records;
  bool refuses; /* to record */
} device;
static clb_status alloc_counted(clb_device *d, uint64_t bytes, clb_memory *m) {
  return device.allocs++, device.backend->alloc(d, bytes, m);
}
static clb_status write_counted(clb_device *d, const clb_memory *to, uint64_t offset,
                                const void *from, uint64_t bytes) {
  return device.writes++, device.backend->write(d, to, offset, from, bytes);
}
static clb_status read_counted(clb_device *d, const clb_memory *from, uint64_t offset, void *to,
                               uint64_t bytes) {
  return device.reads++, device.backend->read(d, from, offset, to, bytes);
}
static clb_status wait_counted(clb_device *d) { return device.waits++, device.backend->wait(d); }
static void record_counted(clb_device *d, const clb_work *work, int64_t n, clb_recorded **r) {
  (void)d, (void)work, (void)n;
  device.records++;
  *r = NULL; /* the driver cannot */
}

static void count_calls(clb_device *d) {
  memset(&device, 0, sizeof device);
  device.backend = d->backend;
  device.counting = *d->backend;
  device.counting.alloc = alloc_counted;
  device.counting.write = write_counted;
  device.counting.read = read_counted;
  device.counting.wait = wait_counted;
  device.counting.record = record_counted;
  d->backend = &device.counting;
}
static void expect_counts(int writes, int reads) {
  if (device.allocs || device.writes != writes || device.reads != reads || device.waits)
    fail_msg("a step allocates %d times, writes %d, reads %d, waits %d times", device.allocs,
             device.writes, device.reads, device.waits);
  device.allocs = device.writes = device.reads = device.waits = 0;
}

/* With a search in every step: positions go to the device, results come back, and that is all; of
   atoms that move there, what is seen. Nothing is recorded anew. */
static void one_read(void **state) {
  (void)state;
  opened o = open_roomy("cpu:interpreter", &bare);
  atom_set a = random_atoms(9, 2, true, 23);
  count_calls(o.ctx->device);
  for (int t = 0; t < 3; t++, step(&a, t)) compute_atoms(&o, &a);
  assert_int_equal(device.records, 2);
  device.allocs = device.writes = device.reads = device.waits = 0;
  for (int t = 3; t < 6; t++, step(&a, t)) {
    compute_atoms(&o, &a);
    expect_counts(1, 1);
  }
  rows r = random_rows(a.n, 4);
  clb_dynamics *d;
  clb_dynamics_view seen;
  const clb_model_atoms atoms = {a.n, a.species, a.positions, a.cell, {1, 1, 1}, .charge = 0};
  const clb_dynamics_move move = {
      .kick = 0.01, .grow = 1, .reach = 0.01, .keep = 1, .grow_again = 1};
  OK(o.ctx, clb_dynamics_create(o.model, &atoms, r.mass, r.v, NULL, &d));
  OK(o.ctx, clb_dynamics_compute(d, NULL, 1));
  for (int t = 0; t < 6; t++) {
    OK(o.ctx, clb_dynamics_run(d, &move));
    OK(o.ctx, clb_dynamics_see(d, &seen));
    OK(o.ctx, clb_dynamics_compute(d, NULL, 1));
    if (t > 2) expect_counts(0, 1);
    else device.allocs = device.writes = device.reads = device.waits = 0;
  }
  clb_dynamics_destroy(&d);
  free_rows(&r);
  o.ctx->device->backend = device.backend;
  close_model(&o);
}

/* ---- atoms that move ---- */

/* A cloud that falls together within some steps outgrows its room between two moves; it goes where
   one goes whose edges are counted. seen: how often the host looks. */
static void falls(const char *name, const clb_model_options *options, int looks) {
  opened o = open_roomy(name, options), exact = open_exact(&bare);
  atom_set a = random_atoms(60, 2, true, 2);
  stretch(&a, 2.5);
  for (int k = 0; k < 9; k++) a.cell[k] *= 2; /* all in a corner of it */
  rows r[2] = {random_rows(a.n, 4), random_rows(a.n, 4)};
  clb_dynamics *d[2];
  double x[2][3 * MAX_ATOMS], v[2][3 * MAX_ATOMS];
  clb_dynamics_view seen[2];
  const clb_model_atoms atoms = {a.n, a.species, a.positions, a.cell, {1, 1, 1}, .charge = 0};
  const clb_dynamics_move move = {.kick = 1e-3,
                                  .grow = 1,
                                  .reach = 0.15,
                                  .keep = 0.9,
                                  .width = 1e-3,
                                  .seed = 5,
                                  .grow_again = 1};
  const clb_dynamics_move kick = {.kick = 1e-3, .grow = 1, .keep = 1, .grow_again = 1};
  int64_t rooms = 0, edges = 0;
  for (int64_t i = 0; i < 3 * a.n; i++)
    r[0].v[i] = r[1].v[i] = -a.positions[i]; /* towards a corner */
  for (int i = 0; i < 2; i++) {
    opened *of = i ? &exact : &o;
    OK(of->ctx, clb_dynamics_create(of->model, &atoms, r[i].mass, r[i].v, NULL, &d[i]));
    OK(of->ctx, clb_dynamics_compute(d[i], NULL, 1));
  }
  for (int t = 0; t < 7; t++) {
    for (int i = 0; i < 2; i++) {
      opened *of = i ? &exact : &o;
      if (t % 2) OK(of->ctx, clb_dynamics_run(d[i], &kick));
      OK(of->ctx, clb_dynamics_run(d[i], &move));
      if (looks == 2) OK(of->ctx, clb_dynamics_see(d[i], &seen[i]));
      OK(of->ctx, clb_dynamics_compute(d[i], NULL, 1));
      if (looks) OK(of->ctx, clb_dynamics_see(d[i], &seen[i]));
    }
    if (looks) {
      close_to("energy", 1, &seen[0].energy, &seen[1].energy, 1e-8);
      close_to("stress", 9, seen[0].stress, seen[1].stress, 1e-8);
      close_to("kinetic", 1, &seen[0].kinetic, &seen[1].kinetic, 1e-8);
      close_to("heat", 1, &seen[0].heat, &seen[1].heat, 1e-8);
    }
    rooms += room_of(&o)->n_edges > edges;
    edges = room_of(&o)->n_edges;
  }
  for (int i = 0; i < 2; i++) {
    opened *of = i ? &exact : &o;
    OK(of->ctx, clb_dynamics_read(d[i], x[i], v[i], NULL, NULL));
  }
  close_to("position", 3 * a.n, x[0], x[1], 1e-9);
  close_to("velocity", 3 * a.n, v[0], v[1], 1e-8);
  if (rooms < 3) fail_msg("%d rooms for up to %d edges", (int)rooms, (int)edges);
  for (int i = 0; i < 2; i++) clb_dynamics_destroy(&d[i]), free_rows(&r[i]);
  close_model(&o);
  close_model(&exact);
}

static void outgrows(void **state) {
  (void)state;
  for (int looks = 0; looks < 3; looks++) falls("cpu", &bare, looks);
  falls("cpu", &skin, 1);
  falls("cpu:interpreter", &bare, 0);
}

/* Without a skin a list is made anew after a move, also one that has been seen. */
static void moves_and_looks(void **state) {
  (void)state;
  opened o[2] = {open_roomy("cpu", &bare), open_exact(&bare)};
  const atom_set a = random_atoms(9, 2, true, 3);
  clb_dynamics_view seen[2];
  for (int i = 0; i < 2; i++) {
    rows r = random_rows(a.n, 4);
    clb_dynamics *d;
    const clb_model_atoms atoms = {a.n, a.species, a.positions, a.cell, {1, 1, 1}, .charge = 0};
    const clb_dynamics_move drift = {.grow = 1, .reach = 1, .keep = 1, .grow_again = 1};
    atom_set moved = a;
    for (int64_t k = 0; k < 3 * a.n; k++) moved.positions[k] += r.v[k];
    OK(o[i].ctx, clb_dynamics_create(o[i].model, &atoms, r.mass, r.v, NULL, &d));
    OK(o[i].ctx, clb_dynamics_compute(d, NULL, 1));
    OK(o[i].ctx, clb_dynamics_run(d, &drift));
    OK(o[i].ctx, clb_dynamics_see(d, &seen[i]));
    OK(o[i].ctx, clb_dynamics_compute(d, NULL, 1));
    OK(o[i].ctx, clb_dynamics_see(d, &seen[i]));
    const computed wanted = compute_atoms(&o[i], &moved);
    close_to("energy", 1, &seen[i].energy, &wanted.energy, 1e-9);
    clb_dynamics_destroy(&d);
    free_rows(&r);
    close_model(&o[i]);
  }
}

/* ---- no recording, no memory ---- */

static const clb_backend *own;
static int left;
static clb_status alloc_some(clb_device *d, uint64_t bytes, clb_memory *m) {
  return left-- > 0 ? own->alloc(d, bytes, m)
                    : clb_fail(d->error, CLB_ERROR_MEMORY, "no more memory");
}

/* Each allocation of a step that outgrows its room fails; then all is as before. */
static void out_of_memory(void **state) {
  (void)state;
  atom_set a = random_atoms(30, 2, true, 24), more = a;
  stretch(&a, 2.5);
  stretch(&more, 1.2);
  clb_status s = CLB_ERROR_MEMORY;
  for (int max = 0; s; max++) {
    opened o = open_roomy("cpu", &bare);
    double energy;
    const clb_model_atoms atoms = {more.n,    more.species, more.positions,
                                   more.cell, {1, 1, 1},    .charge = 0};
    computed c;
    for (int t = 0; t < 2; t++) c = compute_atoms(&o, &a);
    own = o.ctx->device->backend;
    clb_backend failing = *own;
    failing.alloc = alloc_some;
    left = max;
    o.ctx->device->backend = &failing;
    s = clb_model_compute(o.model, &atoms, &(clb_model_results){.energy = &energy});
    if (s && (s != CLB_ERROR_MEMORY || max > 100))
      fail_msg("%d allocations: %s", max, clb_error(o.ctx));
    o.ctx->device->backend = own;
    const computed again = compute_atoms(&o, &a);
    expect_same(&again, &c, a.n, 1e-10);
    close_model(&o);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(replays),         cmocka_unit_test(sizes),
      cmocka_unit_test(refuses),         cmocka_unit_test(chooses),
      cmocka_unit_test(few_launches),    cmocka_unit_test(teams_last),
      cmocka_unit_test(one_read),        cmocka_unit_test(outgrows),
      cmocka_unit_test(moves_and_looks), cmocka_unit_test(out_of_memory)};
  clb_devices(remember, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
