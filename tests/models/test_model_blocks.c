/* tests/models/test_model_blocks.c - systems in blocks of atoms have the energies, forces and
   stress of the whole: on every kind of device, with blocks of all sizes, and atoms without edges.
 */
#include "tests/models/model_places.h"

/* Atoms of a crowd, and between their numbers some that are far from all others, also at the ends:
   blocks of them have no edges. */
static atom_set scattered(int n_species, bool periodic, uint64_t seed) {
  atom_set a = random_atoms(13, n_species, periodic, seed);
  static const int alone[] = {0, 4, 5, 6, 12};
  for (size_t i = 0; i < sizeof alone / sizeof *alone && !periodic; i++)
    a.positions[3 * alone[i]] = 40 * (double)(i + 1);
  return a;
}

/* which: of the made models; -1: one of Allegro, -2: of eSEN. */
static opened open_one(const char *device, const clb_limits *limits, int which,
                       const clb_model_options *options) {
  static const char *const files[] = {"esen/cut", "allegro/bessel"};
  return which < 0 ? open_data(device, limits, files[which + 2], options)
                   : open_made_as(device, limits, which, options);
}

static void same_as_whole(const char *device, const clb_limits *limits, int which,
                          clb_model_options options) {
  static const int64_t blocks[] = {1, 4, 100};
  const bool single = options.dtype == CLB_F32;
  const int n_species = which < 0 ? 3 : made_models[which].n_species;
  opened whole = open_one(device, limits, which, &options);
  for (size_t i = limits ? 1 : 0; i < (limits ? 2 : sizeof blocks / sizeof *blocks); i++) {
    options.block_atoms = blocks[i];
    opened o = open_one(device, limits, which, &options);
    for (int periodic = 0; periodic < 2; periodic++) {
      const atom_set a = scattered(n_species, periodic, 50 + i);
      const computed wanted = compute_atoms(&whole, &a), found = compute_atoms(&o, &a);
      assert_true(o.model->net.blocked && !whole.model->net.blocked);
      assert_int_equal(o.model->n_blocks, (13 + blocks[i] - 1) / blocks[i]);
      expect_same(&found, &wanted, a.n, single ? 2e-5 : 1e-11);
      const computed again = compute_atoms(&o, &a);
      if (!options.atomics) assert_memory_equal(&again, &found, sizeof found);
    }
    close_model(&o);
  }
  close_model(&whole);
}

static void on_cpu(void **state) {
  (void)state;
  for (int which = -2; which < 0; which++)
    same_as_whole("cpu", NULL, which, (clb_model_options){.dtype = CLB_F64, .knots = CLB_NO_KNOTS});
  for (int which = 0; which < MADE_MODELS; which++)
    for (int i = 0; i < 3; i++)
      same_as_whole("cpu", NULL, which,
                    (clb_model_options){.dtype = i == 2 ? CLB_F32 : CLB_F64,
                                        .knots = i ? 16 : CLB_NO_KNOTS,
                                        .atomics = i == 2});
}

/* As on GPUs, where convolutions run in frames of edges; kernels that read what nothing has written
   are found here. */
static void on_interpreter(void **state) {
  (void)state;
  for (int which = -2; which < 0; which++)
    same_as_whole("cpu:interpreter", &device_limits[LIMITS_NVIDIA].limits, which,
                  (clb_model_options){.dtype = CLB_F32, .knots = CLB_NO_KNOTS});
  for (int which = 0; which < MADE_MODELS; which++)
    same_as_whole("cpu:interpreter", &device_limits[LIMITS_NVIDIA].limits, which,
                  (clb_model_options){.dtype = CLB_F32, .knots = which % 2 ? CLB_NO_KNOTS : 16});
}

/* Each driver of OpenCL, and SPIR-V; a device that is not there is skipped. */
static void on_opencl(void **state) {
  static const char *const devices[] = {"opencl:0:0", "opencl:1:0", "opencl:2:0"};
  (void)state;
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
    if (is_here(devices[i])) same_as_whole(devices[i], NULL, 1, (clb_model_options){.knots = 16});
}

/* ---- a caller's edges ---- */

enum { EDGES = 4096 };

typedef struct {
  double energy, virial[9], e_atom[MAX_ATOMS], forces[3 * MAX_ATOMS], v_atom[9 * MAX_ATOMS],
      d_vectors[3 * EDGES];
} all_results;

static clb_status compute_edges(opened *o, const clb_model_edges *e, all_results *r) {
  memset(r, 0, sizeof *r);
  return clb_model_compute_edges(o->model, e,
                                 &(clb_model_edge_results){.energy = &r->energy,
                                                           .e_atom = r->e_atom,
                                                           .forces = r->forces,
                                                           .virial = r->virial,
                                                           .v_atom = r->v_atom,
                                                           .d_vectors = r->d_vectors});
}

/* All results of edges with vectors; edges in another order are refused, whatever came before. */
static void edges_of_a_caller(void **state) {
  (void)state;
  opened whole = open_made("cpu", 0, &(clb_model_options){.dtype = CLB_F64, .knots = 16}),
         o = open_made("cpu", 0,
                       &(clb_model_options){.dtype = CLB_F64, .knots = 16, .block_atoms = 4});
  const atom_set a = scattered(3, false, 9);
  clb_neighbours list = {.cutoff = whole.model->net.r_max};
  const bool open[3] = {false};
  assert_false(clb_neighbours_update(&list, a.n, a.positions, NULL, open, NULL));
  assert_true(list.n_edges > 8 && list.n_edges < EDGES);
  double *vectors = malloc((size_t)list.n_edges * 3 * sizeof *vectors);
  all_results *r = malloc(2 * sizeof *r);
  assert_true(vectors && r);
  clb_neighbours_vectors(&list, a.positions, vectors);
  clb_model_edges e = {.n_local = a.n,
                       .n_total = a.n,
                       .n_edges = list.n_edges,
                       .species = a.species,
                       .senders.host = list.senders,
                       .receivers.host = list.receivers,
                       .vectors = vectors};
  OK(whole.ctx, compute_edges(&whole, &e, &r[0]));
  OK(o.ctx, compute_edges(&o, &e, &r[1]));
  close_to("results", sizeof *r / sizeof(double), &r[1].energy, &r[0].energy, 1e-11);
  int32_t *swapped = malloc((size_t)list.n_edges * sizeof *swapped);
  assert_non_null(swapped);
  for (int64_t i = 0; i < list.n_edges; i++) swapped[i] = list.receivers[list.n_edges - 1 - i];
  e.receivers.host = swapped;
  assert_int_equal(compute_edges(&o, &e, &r[1]), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(o.ctx), "edges must be in the order of their receivers"));
  e.receivers.host = list.receivers;
  OK(o.ctx, compute_edges(&o, &e, &r[1]));
  close_to("results", sizeof *r / sizeof(double), &r[1].energy, &r[0].energy, 1e-11);
  e.same_graph = 1;
  OK(o.ctx, compute_edges(&o, &e, &r[1]));
  close_to("results", sizeof *r / sizeof(double), &r[1].energy, &r[0].energy, 1e-11);
  e.n_local = e.n_total = e.n_edges = e.same_graph = 0;
  OK(o.ctx, compute_edges(&o, &e, &r[1]));
  assert_true(r[1].energy == 0 && r[1].virial[0] == 0);
  free(swapped);
  free(vectors);
  free(r);
  clb_neighbours_free(&list);
  close_model(&o);
  close_model(&whole);
}

/* Systems that grow, shrink, change species and lose all edges; and many of them in one call. */
static void changing_systems(void **state) {
  static const int64_t n[] = {9, 20, 1, 0, 20, 5};
  enum { SETS = sizeof n / sizeof *n };
  (void)state;
  opened whole = open_made("cpu", 2, &(clb_model_options){.dtype = CLB_F64, .knots = 16}),
         o = open_made("cpu", 2,
                       &(clb_model_options){.dtype = CLB_F64, .knots = 16, .block_atoms = 4});
  computed wanted[SETS], found[SETS];
  atom_set set[SETS];
  clb_model_atoms atoms[SETS];
  clb_model_results results[SETS];
  for (int i = 0; i < SETS; i++) {
    set[i] = random_atoms(n[i], 2, i != 2, (uint64_t)(60 + i));
    set[i].species[0] = i % 2;
    wanted[i] = compute_atoms(&whole, &set[i]);
    found[i] = compute_atoms(&o, &set[i]);
    expect_same(&found[i], &wanted[i], n[i], 1e-11);
    memset(&found[i], 0, sizeof found[i]);
    const atom_set *a = &set[i];
    atoms[i] = (clb_model_atoms){a->n,
                                 a->species,
                                 a->positions,
                                 a->cell,
                                 {a->periodic[0], a->periodic[1], a->periodic[2]},
                                 .charge = 0};
    results[i] = (clb_model_results){&found[i].energy, found[i].e_atom, found[i].forces,
                                     found[i].stress, NULL};
  }
  OK(o.ctx, clb_model_compute_many(o.model, SETS, atoms, results));
  for (int i = 0; i < SETS; i++) expect_same(&found[i], &wanted[i], n[i], 1e-11);
  close_model(&o);
  close_model(&whole);
}

/* ---- memory ---- */

static struct {
  const clb_backend *backend;
  clb_backend counting;
  uint64_t bytes, most, limit; /* allocated now, at most so far, and that can be */
} device;

static clb_status alloc_counted(clb_device *d, uint64_t bytes, clb_memory *m) {
  if (device.bytes + bytes > device.limit)
    return clb_fail(d->error, CLB_ERROR_MEMORY, "no more memory");
  device.bytes += bytes;
  if (device.bytes > device.most) device.most = device.bytes;
  return device.backend->alloc(d, bytes, m);
}

static void free_counted(clb_device *d, clb_memory *m) {
  device.bytes -= m->bytes;
  device.backend->free(d, m);
}

/* Counts from now on; before the device is closed it gets its backend back. */
static void count_memory(clb_device *d) {
  device.backend = d->backend;
  device.bytes = device.most = (uint64_t)1
                               << 32; /* as if allocated: memory of before is freed, too */
  device.limit = UINT64_MAX;
  device.counting = *d->backend;
  device.counting.alloc = alloc_counted;
  device.counting.free = free_counted;
  d->backend = &device.counting;
}

static void stop_counting(opened *o) {
  o->ctx->device->backend = device.backend;
  close_model(o);
}

/* What the model says it holds is what it has allocated, and what was said beforehand, but for a
   quarter to spare, numbers of fixed size, and the workspace. */
static uint64_t expect_estimate(opened *o, uint64_t before) {
  const clb_model *m = o->model;
  const clb_network *n = &m->net;
  const clb_model_bytes b = clb_model_count_bytes(m);
  const uint64_t held = clb_model_held_bytes(m), begun = device.bytes - ((uint64_t)1 << 32);
  assert_int_equal(begun + before, held);
  clb_graph sorted = *n->whole;
  sorted.listed = false;
  const double fixed = (double)n->workspace->memory.bytes +
                       (n->block ? 3.0 : 2.0) * (double)clb_graph_bytes(&sorted, 0, 0),
               said = (double)n->n_total * (double)b.atom + (double)n->n_edges * (double)b.edge +
                      (double)m->block_rows * (double)b.block_atom +
                      (double)m->block_edges * (double)b.block_edge;
  if (!((double)held > 0.95 * said && (double)held < 1.3 * said + fixed))
    fail_msg("%g bytes are held, %g were said, and %g are fixed", (double)held, said, fixed);
  return begun;
}

/* A system that does not fit is computed in blocks, and later ones as large, but not smaller ones;
   if there is not even memory for these, the message says so. */
static void little_memory(void **state) {
  (void)state;
  const clb_model_options options = {.dtype = CLB_F64, .knots = 16};
  const atom_set large = random_atoms(MAX_ATOMS, 3, true, 3), small = random_atoms(9, 3, true, 4);
  opened o = open_made("cpu", 0, &options);
  count_memory(o.ctx->device);
  const uint64_t before = clb_model_held_bytes(o.model);
  const computed wanted = compute_atoms(&o, &large);
  const uint64_t whole = expect_estimate(&o, before);
  const computed wanted_small = compute_atoms(&o, &small);
  stop_counting(&o);
  o = open_made("cpu", 0, &options);
  count_memory(o.ctx->device);
  device.limit = device.bytes + whole * 3 / 5;
  for (int turn = 0; turn < 2; turn++) {
    const computed found = compute_atoms(&o, &large);
    assert_true(o.model->net.blocked && o.model->n_blocks > 1);
    expect_estimate(&o, before);
    expect_same(&found, &wanted, large.n, 1e-11);
    const computed found_small = compute_atoms(&o, &small);
    assert_true(!o.model->net.blocked);
    assert_memory_equal(&found_small, &wanted_small, sizeof found_small);
  }
  device.limit = ((uint64_t)1 << 32) + whole / 20;
  double energy;
  const clb_model_atoms atoms = {large.n,    large.species, large.positions,
                                 large.cell, {1, 1, 1},     .charge = 0};
  assert_int_equal(clb_model_compute(o.model, &atoms, &(clb_model_results){.energy = &energy}),
                   CLB_ERROR_MEMORY);
  for (const char *const *word = (const char *const[]){"no more memory", ": 128 atoms and ",
                                                       ", and a block of them", NULL};
       *word; word++)
    if (!strstr(clb_error(o.ctx), *word)) fail_msg("no '%s' in %s", *word, clb_error(o.ctx));
  stop_counting(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(on_cpu),           cmocka_unit_test(on_interpreter),
      cmocka_unit_test(on_opencl),        cmocka_unit_test(edges_of_a_caller),
      cmocka_unit_test(changing_systems), cmocka_unit_test(little_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
