/* tests/models/steps/test_model_steps.c - step after step: skins, transfers, what is made on the
   device, memory. */
#include "models/model_state.h"

#include "tests/models/model_places.h"

static const clb_model_options f64 = {.dtype = CLB_F64, .knots = CLB_NO_KNOTS};

static void step(atom_set *a, int64_t t) {
  uint64_t seed = (uint64_t)t;
  for (int64_t i = 0; i < 3 * a->n; i++) a->positions[i] += 0.03 * test_random(&seed);
}

/* A skin changes only how often neighbours are searched, and after the first step nothing is
   allocated. */
static void skins(void **state) {
  (void)state;
  opened bare = open_made("cpu:interpreter", 0, &f64),
         skin =
             open_made("cpu:interpreter", 0,
                       &(clb_model_options){.dtype = CLB_F64, .skin = 0.15, .knots = CLB_NO_KNOTS});
  atom_set a = random_atoms(6, 3, true, 15);
  int64_t atom_capacity = 0, edge_capacity = 0;
  clb_model_neighbours found;
  for (int64_t t = 0; t < 12; t++, step(&a, t)) {
    const computed c = compute_atoms(&bare, &a), d = compute_atoms(&skin, &a);
    expect_same(&d, &c, a.n, 1e-10);
    if (!t) atom_capacity = skin.model->atom_capacity, edge_capacity = skin.model->edge_capacity;
    assert_true(atom_capacity == skin.model->atom_capacity &&
                edge_capacity == skin.model->edge_capacity);
  }
  assert_int_equal(clb_model_last_neighbours(bare.model, &found), CLB_OK);
  assert_int_equal(found.rebuilds, 12);
  assert_int_equal(clb_model_last_neighbours(skin.model, &found), CLB_OK);
  assert_true(found.rebuilds > 1 && found.rebuilds < 6);
  a.species[0] = 1; /* without new neighbours */
  a.species[1] = 0;
  const computed c = compute_atoms(&bare, &a), d = compute_atoms(&skin, &a);
  expect_same(&d, &c, a.n, 1e-10);
  close_model(&bare);
  close_model(&skin);
}

/* On CPUs neighbours are found anew in each call, without a skin, unless no atom moved. */
static void chooses_skins(void **state) {
  (void)state;
  opened bare = open_made("cpu", 0, &f64),
         chosen = open_made(
             "cpu", 0,
             &(clb_model_options){.dtype = CLB_F64, .skin = CLB_AUTO_SKIN, .knots = CLB_NO_KNOTS});
  atom_set a = random_atoms(6, 3, true, 16);
  clb_model_neighbours found, wanted;
  for (int64_t t = 0; t < 4; t++, step(&a, t)) {
    const computed c = compute_atoms(&bare, &a), d = compute_atoms(&chosen, &a),
                   again = compute_atoms(&chosen, &a);
    expect_same(&d, &c, a.n, 0);
    expect_same(&again, &c, a.n, 0);
    assert_int_equal(clb_model_last_neighbours(chosen.model, &found), CLB_OK);
    assert_int_equal(clb_model_last_neighbours(bare.model, &wanted), CLB_OK);
    assert_true(found.n_edges == wanted.n_edges && found.rebuilds == t + 1);
  }
  close_model(&bare);
  close_model(&chosen);
}

/* Atoms hundreds of cells away from each other, whose vectors are made on the host; then near
   again. */
static void far_images(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 0, &f64);
  atom_set a = random_atoms(6, 3, true, 15), far = a;
  const computed c = compute_atoms(&o, &a);
  assert_true(o.model->edges.source == CLB_EDGES_SHIFTS ||
              o.model->edges.source == CLB_EDGES_DEVICE);
  for (int k = 0; k < 3; k++)
    far.positions[3 + k] += 400 * a.cell[k], far.positions[6 + k] -= 400 * a.cell[k];
  const computed d = compute_atoms(&o, &far);
  assert_int_equal(o.model->edges.source, CLB_EDGES_HOST);
  expect_same(&d, &c, a.n, 1e-8);
  const computed again = compute_atoms(&o, &a);
  assert_true(o.model->edges.source == CLB_EDGES_SHIFTS ||
              o.model->edges.source == CLB_EDGES_DEVICE);
  assert_memory_equal(&again, &c, sizeof c);
  close_model(&o);
}

/* As on devices without double precision. */
static void without_f64(void **state) {
  (void)state;
  char path[] = "/tmp/clebsch_made_XXXXXX";
  opened o[2];
  close(mkstemp(path));
  made_write(&made_models[0], path, NULL, NULL);
  const atom_set a = random_atoms(6, 3, true, 22);
  computed c[2];
  for (int i = 0; i < 2; i++) {
    assert_int_equal(clb_context_create("cpu:interpreter", &o[i].ctx), CLB_OK);
    if (i) o[i].ctx->device->limits.f64 = false;
    assert_int_equal(clb_model_open(o[i].ctx, path,
                                    &(clb_model_options){.dtype = CLB_F32, .knots = CLB_NO_KNOTS},
                                    &o[i].model),
                     CLB_OK);
    assert_true(!o[i].model->edges.make_vectors == (i == 1));
    c[i] = compute_atoms(&o[i], &a);
    const computed again = compute_atoms(&o[i], &a);
    assert_memory_equal(&again, &c[i], sizeof again);
  }
  expect_same(&c[1], &c[0], a.n, 2e-5);
  unlink(path);
  for (int i = 0; i < 2; i++) close_model(&o[i]);
}

/* Counts the host's calls of the device. */
static struct {
  clb_backend counting;
  const clb_backend *backend;
  int allocs, writes, reads, waits;
  int max_allocs;                 /* 0: any number */
  const clb_host_memory *staging; /* NULL: none */
  int staged;                     /* copies from and to it, while it is page-locked */
} device;
static clb_status alloc_counted(clb_device *d, uint64_t bytes, clb_memory *m) {
  if (device.allocs++ >= device.max_allocs && device.max_allocs)
    return clb_fail(d->error, CLB_ERROR_MEMORY, "no more memory");
  return device.backend->alloc(d, bytes, m);
}
static void count_staged(const void *host) {
  const clb_host_memory *m = device.staging;
  const char *at = host, *first = m ? m->pinned : NULL;
  device.staged += first && at >= first && at < first + m->bytes;
}
static clb_status write_counted(clb_device *d, const clb_memory *to, uint64_t offset,
                                const void *from, uint64_t bytes) {
  device.writes++;
  count_staged(from);
  return device.backend->write(d, to, offset, from, bytes);
}
static clb_status read_counted(clb_device *d, const clb_memory *from, uint64_t offset, void *to,
                               uint64_t bytes) {
  device.reads++;
  count_staged(to);
  return device.backend->read(d, from, offset, to, bytes);
}
static clb_status wait_counted(clb_device *d) { return device.waits++, device.backend->wait(d); }

static void count_calls(clb_device *d) {
  device.backend = d->backend;
  device.counting = *d->backend;
  device.counting.alloc = alloc_counted;
  device.counting.write = write_counted;
  device.counting.read = read_counted;
  device.counting.wait = wait_counted;
  d->backend = &device.counting;
}

static void expect_counts(int writes, int reads, int waits) {
  if (device.allocs || device.writes != writes || device.reads != reads || device.waits != waits)
    fail_msg("a step allocates %d times, writes %d, reads %d, waits %d times", device.allocs,
             device.writes, device.reads, device.waits);
  device.allocs = device.writes = device.reads = device.waits = 0;
}

/* Memory that the device would copy directly. */
static bool pin(clb_device *d, uint64_t bytes, clb_host_memory *m) {
  (void)d;
  m->at = m->pinned = malloc((size_t)bytes);
  return m->at;
}
static void unpin(clb_device *d, clb_host_memory *m) {
  (void)d;
  free(m->pinned);
}

/* The calls with edges: vectors go to the device, gradients come back on their own. */
static void step_of_edges(opened *o, const atom_set *a) {
  enum { EDGES = 50 };
  double vectors[3 * EDGES], d_vectors[3 * EDGES], energy, virial[9];
  int32_t senders[EDGES], receivers[EDGES];
  for (int i = 0; i < 3 * EDGES; i++) vectors[i] = i % 3 ? 0.4 : 1.1; /* any */
  for (int i = 0; i < EDGES; i++)
    receivers[i] = i % (int32_t)a->n, senders[i] = (i + 1) % (int32_t)a->n;
  clb_model_edges e = {.n_local = a->n,
                       .n_total = a->n,
                       .n_edges = EDGES,
                       .species = a->species,
                       .senders = {.host = senders},
                       .receivers = {.host = receivers},
                       .vectors = vectors};
  const clb_model_edge_results none = {.energy = NULL}, one = {.energy = &energy, .virial = virial},
                               two = {.energy = &energy, .d_vectors = d_vectors};
  assert_int_equal(clb_model_compute_edges(o->model, &e, &one), CLB_OK);
  device.allocs = device.writes = device.reads = device.waits = 0;
  e.same_graph = 1;
  assert_int_equal(clb_model_compute_edges(o->model, &e, &one), CLB_OK);
  expect_counts(1, 1, 0);
  assert_int_equal(clb_model_compute_edges(o->model, &e, &two), CLB_OK);
  expect_counts(1, 2, 0);
  assert_int_equal(clb_model_compute_edges(o->model, &e, &none), CLB_OK);
  expect_counts(1, 0, 1);
}

/* Without new neighbours: positions go to the device, all results come back at once, and nothing
   else is transferred; staging memory does not grow. */
static void one_wait(void **state) {
  (void)state;
  for (int knots = CLB_NO_KNOTS; knots <= 16; knots += 17) {
    opened o = open_made("cpu:interpreter", 0,
                         &(clb_model_options){.dtype = CLB_F64, .skin = 1, .knots = knots});
    atom_set a = random_atoms(6, 3, true, 23);
    count_calls(o.ctx->device);
    compute_atoms(&o, &a);
    const size_t staging = o.ctx->staging.bytes;
    device.allocs = device.writes = device.reads = device.waits = 0;
    for (int t = 1; t < 4; t++) {
      step(&a, t);
      compute_atoms(&o, &a);
      expect_counts(1, 1, 0);
    }
    a.species[0] = 1 - a.species[0];
    compute_atoms(&o, &a);
    expect_counts(2, 1, 0);
    double energy;
    const clb_model_atoms atoms = {a.n, a.species, a.positions, a.cell, {1, 1, 1}, .charge = 0};
    assert_int_equal(clb_model_compute(o.model, &atoms, &(clb_model_results){.energy = &energy}),
                     CLB_OK);
    expect_counts(1, 1, 0);
    assert_true(staging == o.ctx->staging.bytes && o.model->edges.rebuilds == 1);
    step_of_edges(&o, &a);
    o.ctx->device->backend = device.backend;
    close_model(&o);
  }
}

static clb_status move_back(void *user, int backward, int64_t columns, clb_dtype type,
                            const void *from, void *to) {
  (void)backward;
  memcpy(to, from, (size_t)(columns * *(int64_t *)user) * (type == CLB_F64 ? 8 : 4));
  return CLB_OK;
}

/* Where the driver has page-locked memory, positions, results and rows of ghosts all go through it:
   here the one ghost is an image that travels. Results are those without it. */
static void page_locked(void **state) {
  (void)state;
  static const double x[9] = {0, 0, 0, 1, 0.2, 0.1, 1.3, 0.9, 0.4};
  static const int32_t species[3] = {0, 1, 0}, sent = 0, ghost = 2;
  int64_t rows = 1;
  const clb_model_exchange exchange = {.n_send = 1,
                                       .n_receive = 1,
                                       .send = &sent,
                                       .receive = &ghost,
                                       .move = move_back,
                                       .user = &rows};
  clb_model_edges e = {.n_local = 2, .n_total = 3, .species = species, .search = 1};
  double energy[2], forces[2][9], v_atom[2][18];
  opened any = open_made("cpu:interpreter", 2, &f64);
  clb_limits limits = any.ctx->device->limits;
  limits.simd = false; /* CPUs gain nothing from it */
  close_model(&any);
  e.positions = x, e.exchange = &exchange;
  for (int pinned = 0; pinned < 2; pinned++) {
    opened o = open_made_as("cpu:interpreter", &limits, 2, &f64);
    count_calls(o.ctx->device);
    device.counting.pin = pinned ? pin : NULL;
    device.counting.unpin = unpin;
    device.staging = &o.ctx->staging;
    const clb_model_edge_results want = {
        .energy = &energy[pinned], .forces = forces[pinned], .v_atom = v_atom[pinned]};
    for (e.same_graph = 0; e.same_graph < 2; e.same_graph++) {
      device.staged = 0;
      if (clb_model_compute_edges(o.model, &e, &want)) fail_msg("%s", clb_error(o.ctx));
    }
    e.same_graph = 0;
    /* positions, results, v_atom, rows out and in for each exchange */
    assert_int_equal(device.staged, pinned ? 3 + 4 * o.model->info.exchanges : 0);
    clb_model_destroy(&o.model);
    clb_device_unstage(o.ctx->device, &o.ctx->staging);
    o.ctx->device->backend = device.backend;
    close_model(&o);
  }
  assert_memory_equal(&energy[0], &energy[1], sizeof *energy);
  assert_memory_equal(forces[0], forces[1], sizeof *forces);
  assert_memory_equal(v_atom[0], v_atom[1], sizeof *v_atom);
  device.staging = NULL;
}

/* An allocation for a larger system fails; afterwards the model works as before. */
static void out_of_memory(void **state) {
  (void)state;
  const atom_set small = random_atoms(6, 3, true, 24), large = random_atoms(40, 3, true, 25);
  const clb_model_atoms atoms = {large.n,    large.species, large.positions,
                                 large.cell, {1, 1, 1},     .charge = 0};
  double energy;
  clb_status s = CLB_ERROR_MEMORY;
  for (int max = 1; s; max++) {
    opened o = open_made("cpu:interpreter", 0, &f64);
    const computed c = compute_atoms(&o, &small);
    count_calls(o.ctx->device);
    device.allocs = 0;
    device.max_allocs = max;
    s = clb_model_compute(o.model, &atoms, &(clb_model_results){.energy = &energy});
    if (s && (s != CLB_ERROR_MEMORY || max > 100))
      fail_msg("%d allocations: %s", max, clb_error(o.ctx));
    device.max_allocs = 0;
    const computed again = compute_atoms(&o, &small);
    assert_memory_equal(&again, &c, sizeof c);
    o.ctx->device->backend = device.backend;
    close_model(&o);
  }
}

/* There is memory for a quarter more atoms and edges than the largest system had. */
static void capacity(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 0, &f64);
  const atom_set a = random_atoms(8, 3, true, 21);
  atom_set more = a;
  memcpy(more.positions + 24, (const double[]){0.5, 0.5, 0.5, 1.5, 1, 0.1},
         6 * sizeof *more.positions);
  more.n = 10;
  compute_atoms(&o, &a);
  const int64_t atom_capacity = o.model->atom_capacity, edge_capacity = o.model->edge_capacity;
  assert_true(atom_capacity == 10 &&
              edge_capacity == o.model->net.n_edges + o.model->net.n_edges / 4);
  compute_atoms(&o, &more);
  assert_true(atom_capacity == o.model->atom_capacity);
  close_model(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(skins),         cmocka_unit_test(chooses_skins),
      cmocka_unit_test(far_images),    cmocka_unit_test(without_f64),
      cmocka_unit_test(one_wait),      cmocka_unit_test(page_locked),
      cmocka_unit_test(out_of_memory), cmocka_unit_test(capacity)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
