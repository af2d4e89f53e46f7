/* tests/edges/test_model_ghosts.c - positions and forces for codes with neighbour lists that reach
   beyond the cutoff, and with ghost atoms: against clb_model_compute, and by property. */
#include "tests/edges/model_ghosts.h"

/* ---- all kinds of models, both ways, moved atoms ---- */

/* In blocks of so many atoms, if it is not 0. Limits: not NULL: in place of the device's. */
static void same_as_atoms_with(const char *device, const clb_limits *limits, int which,
                               clb_dtype precision, int64_t block) {
  opened o = open_made_as(
             device, limits, which,
             &(clb_model_options){.dtype = precision, .knots = CLB_NO_KNOTS, .block_atoms = block}),
         other = open_made(device, which,
                           &(clb_model_options){.dtype = precision, .knots = CLB_NO_KNOTS});
  atom_set a = random_atoms(6, made_models[which].n_species, true, 11);
  clb_model_info info;
  assert_int_equal(clb_model_describe(o.model, &info), CLB_OK);
  const atom_set before = a;
  const clb_edge_source source = o.ctx->device->limits.f64 ? CLB_EDGES_LOCAL : CLB_EDGES_PAIRS;
  for (int images = 0; images < 2; images++) {
    a = before;
    ghost_set *g = ghosts_of(&a, info.r_max + 0.6);
    clb_model_edges call = call_of(g, images);
    for (int step = 0; step < 3; step++) { /* the list, the same again, moved within the skin */
      const int64_t edges = o.model->net.n_edges;
      for (int64_t i = 0; step == 2 && i < 3 * a.n; i++)
        a.positions[i] += 0.05 * (double)(i % 5 - 2);
      place(g, &a);
      ghost_result *r = compute(&o, &call);
      assert_true(o.model->net.n_edges < g->n_pairs);
      assert_int_equal(o.model->edges.source, source);
      if (step == 1) assert_int_equal(o.model->net.n_edges, edges);
      const computed c = of_atoms(g, r, a.cell);
      for (int64_t i = 3 * g->n; images && i < 3 * g->n_total; i++) assert_true(r->forces[i] == 0);
      call.same_graph = 1;
      call.species = NULL;
      call.senders.host = call.receivers.host = NULL;
      const computed wanted = compute_atoms(&other, &a);
      expect_same(&c, &wanted, a.n, precision == CLB_F32 ? 4e-5 : 1e-11);
      free(r);
    }
    assert_int_equal(g->calls, images ? 0 : 3 * 2 * info.exchanges);
    free(g);
  }
  close_model(&other);
  close_model(&o);
}

static void same_as_atoms(const char *device, int which, clb_dtype precision, int64_t block) {
  same_as_atoms_with(device, NULL, which, precision, block);
}

/* A device without double precision leaves all pairs to the host. */
static void without_f64(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 0, NULL);
  clb_limits limits = o.ctx->device->limits;
  limits.f64 = false;
  close_model(&o);
  same_as_atoms_with("cpu:interpreter", &limits, 0, CLB_F32, 0);
}

static void on_device(const clb_device_info *info, void *user) {
  (void)user;
  if (info->runs && info->f64 && strcmp(info->name, "cpu:interpreter"))
    same_as_atoms(info->name, 0, CLB_F64, 0);
}

static void every_device(void **state) {
  (void)state;
  assert_int_equal(clb_devices(on_device, NULL), CLB_OK);
}

static void positions(void **state) {
  (void)state;
  for (int which = 0; which < MADE_MODELS; which++) {
    same_as_atoms("cpu:interpreter", which, CLB_F64, 0);
    same_as_atoms("cpu:interpreter", which, CLB_F32, 0);
    same_as_atoms("cpu", which, CLB_F64, 4);
  }
  same_as_atoms("cpu:threads=3", 0, CLB_F32, 0);
  same_as_atoms("cpu:interpreter", 2, CLB_F64, 1);
}

/* Positions, lists and forces in buffers give the bits of those on the host. */
static void buffers(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 1, &f64);
  const atom_set a = random_atoms(6, made_models[1].n_species, true, 12);
  ghost_set *g = ghosts_of(&a, 3.6);
  clb_model_edges call = call_of(g, true);
  ghost_result *wanted = compute(&o, &call), *r = calloc(1, sizeof *r);
  const uint64_t bytes[] = {(uint64_t)g->n_pairs * 4, (uint64_t)g->n_pairs * 4,
                            (uint64_t)g->n_total * 24, (uint64_t)g->n_total * 24};
  const void *from[] = {g->senders, g->receivers, g->positions};
  clb_buffer *b[4];
  void *memory;
  clb_memory_kind kind;
  for (int i = 0; i < 4; i++) {
    assert_int_equal(clb_buffer_create(o.ctx, bytes[i], &b[i]), CLB_OK);
    if (i < 3) assert_int_equal(clb_buffer_write(b[i], 0, from[i], bytes[i]), CLB_OK);
  }
  call.senders = (clb_index_list){.buffer = b[0]};
  call.receivers = (clb_index_list){.buffer = b[1]};
  call.positions = NULL;
  call.positions_buffer = b[2];
  const clb_model_edge_results want = {.energy = &r->energy, .forces_buffer = b[3]};
  if (clb_model_compute_edges(o.model, &call, &want)) fail_msg("%s", clb_error(o.ctx));
  assert_true(r->energy == wanted->energy);
  assert_int_equal(clb_buffer_native(b[3], &kind, &memory), CLB_OK);
  assert_int_equal(kind, CLB_POINTER);
  assert_memory_equal(memory, wanted->forces, bytes[3]); /* on a CPU, where it may be read */
  assert_int_equal(clb_buffer_native(NULL, &kind, &memory), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_buffer_native(b[3], NULL, &memory), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_buffer_native(b[3], &kind, NULL), CLB_ERROR_ARGUMENT);
  for (int i = 0; i < 4; i++) clb_buffer_destroy(&b[i]);
  free(g);
  free(wanted);
  free(r);
  close_model(&o);
}

/* Pairs that are too near for the device are the host's, and again the device's in the next step:
   results are those of a model that knows nothing of the steps before. */
static void close_atoms(void **state) {
  (void)state;
  opened o = open_made("cpu:threads=2", 0, &f64);
  atom_set a = random_atoms(6, 3, true, 24);
  for (int k = 0; k < 3; k++) a.positions[3 + k] = a.positions[k];
  a.positions[3] += 8e-4;
  ghost_set *g = ghosts_of(&a, 4.2);
  clb_model_edges call = call_of(g, true);
  const clb_model_edges anew = call;
  for (int step = 0; step < 5; step++, call.same_graph = 1) {
    place(g, &a);
    opened other = open_made("cpu:threads=2", 0, &f64);
    ghost_result *r = compute(&o, &call), *must = compute(&other, &anew);
    assert_int_equal(o.model->edges.source, step % 2 ? CLB_EDGES_LOCAL : CLB_EDGES_PAIRS);
    assert_int_equal(o.model->net.n_edges, other.model->net.n_edges);
    close_to("energy", 1, &r->energy, &must->energy, 1e-11 * (1 + fabs(must->energy)));
    close_to("forces", 3 * g->n_total, r->forces, must->forces,
             1e-11 * (1 + largest(3 * g->n, must->forces)));
    a.positions[3] += step % 2 ? -0.5 : 0.5;
    free(r);
    free(must);
    close_model(&other);
  }
  free(g);
  close_model(&o);
}

/* The list in any order: that of a receiver's pairs is the order of its sum. */
static void shuffled(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 1, &f64);
  const atom_set a = random_atoms(6, made_models[1].n_species, true, 31);
  ghost_set *g = ghosts_of(&a, 3.6);
  const clb_model_edges call = call_of(g, true);
  ghost_result *must = compute(&o, &call);
  uint64_t seed = 5;
  for (int64_t i = g->n_pairs - 1; i > 0; i--) {
    const int64_t j = (int64_t)((test_random(&seed) + 1) / 2 * (double)i);
    const int32_t s = g->senders[i], r = g->receivers[i];
    g->senders[i] = g->senders[j], g->receivers[i] = g->receivers[j];
    g->senders[j] = s, g->receivers[j] = r;
  }
  ghost_result *r = compute(&o, &call);
  close_to("energy", 1, &r->energy, &must->energy, 1e-11 * (1 + fabs(must->energy)));
  close_to("forces", 3 * g->n_total, r->forces, must->forces,
           1e-11 * (1 + largest(3 * g->n, must->forces)));
  free(r);
  free(must);
  free(g);
  close_model(&o);
}

/* ---- atoms that do not count, or are not there ---- */

static double energy_at(opened *o, ghost_set *g, atom_set *a, const clb_model_edges *call) {
  place(g, a);
  ghost_result *r = compute(o, call);
  const double energy = r->energy;
  free(r);
  return energy;
}

/* The energy is the sum of those that count, and forces are its derivatives, on all atoms. */
static void counted(void **state) {
  static const unsigned char counts[] = {1, 0, 1, 1, 0, 0};
  (void)state;
  for (int which = 0; which < MADE_MODELS; which++) {
    opened o = open_made("cpu:interpreter", which, &f64);
    atom_set a = random_atoms(6, made_models[which].n_species, true, 15);
    ghost_set *g = ghosts_of(&a, 3.4);
    clb_model_edges call = call_of(g, true);
    ghost_result *all = compute(&o, &call);
    call.counted = counts;
    ghost_result *some = compute(&o, &call);
    double sum = 0;
    for (int i = 0; i < 6; i++) {
      sum += counts[i] * all->e_atom[i];
      assert_true(some->e_atom[i] == counts[i] * all->e_atom[i]);
    }
    close_to("energy", 1, &some->energy, &sum, 1e-11 * (1 + fabs(sum)));
    for (int i = 0; i < 18; i += 5) { /* 0, 5, 10, 15: atoms that count and that do not */
      const double h = 1e-4, x = a.positions[i];
      double e[4];
      for (int k = 0; k < 4; k++) {
        a.positions[i] = x + h * (k < 2 ? k - 2 : k - 1);
        e[k] = energy_at(&o, g, &a, &call);
      }
      a.positions[i] = x;
      const double force = -(e[0] - 8 * e[1] + 8 * e[2] - e[3]) / (12 * h);
      close_to("force", 1, &some->forces[i], &force, 1e-6 * (1 + largest(18, some->forces)));
    }
    free(all);
    free(some);
    free(g);
    close_model(&o);
  }
}

/* An atom of species -1 is as if it were nowhere; its ghosts, too. */
static void absent(void **state) {
  (void)state;
  for (int images = 0; images < 2; images++) {
    opened o = open_made("cpu:interpreter", 0, &f64);
    atom_set a = random_atoms(6, 3, true, 16), fewer = a;
    ghost_set *g = ghosts_of(&a, 3.4);
    for (int64_t i = 0; i < g->n_total; i++)
      if (i == 5 || (i >= g->n && g->owner[i] == 5)) g->species[i] = -1;
    const clb_model_edges call = call_of(g, images);
    ghost_result *r = compute(&o, &call);
    const computed c = of_atoms(g, r, a.cell);
    fewer.n = 5;
    opened other = open_made("cpu:interpreter", 0, &f64);
    const computed wanted = compute_atoms(&other, &fewer);
    expect_same(&c, &wanted, 5, 1e-11);
    assert_true(c.e_atom[5] == 0 && largest(3, c.forces + 15) == 0);
    close_model(&other);
    close_model(&o);
    free(r);
    free(g);
  }
}

/* ---- processes without atoms, and what is refused ---- */

static clb_status count_move(void *user, int backward, int64_t columns, clb_dtype type,
                             const void *from, void *to) {
  (void)backward, (void)columns, (void)type, (void)from, (void)to;
  ++*(int *)user;
  return CLB_OK;
}

static void nothing(void **state) {
  (void)state;
  int calls = 0;
  opened o = open_made("cpu:interpreter", 2, &f64);
  const clb_model_exchange exchange = {.move = count_move, .user = &calls};
  const double x = 0;
  clb_model_edges e = {.positions = &x, .exchange = &exchange};
  double energy = NAN, virial[9];
  const clb_model_edge_results want = {.energy = &energy, .virial = virial};
  for (int i = 0; i < 2; i++, e.same_graph = 1) {
    if (clb_model_compute_edges(o.model, &e, &want)) fail_msg("%s", clb_error(o.ctx));
    assert_true(energy == 0 && largest(9, virial) == 0);
  }
  assert_int_equal(calls, 2 * 2 * (made_models[2].n_layers - 1));
  close_model(&o);
}

static void refused(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 0, &f64);
  atom_set a = random_atoms(6, 3, true, 17);
  ghost_set *g = ghosts_of(&a, 3.3);
  const clb_model_edges good = call_of(g, true), both = call_of(g, false);
  clb_model_edges c;
  double d[3];
#define REFUSED(what, base, ...) (c = base, __VA_ARGS__, refuse(&o, &c, what))
  int32_t images[MAX_TOTAL];
  memcpy(images, g->owner + g->n, sizeof images - sizeof *images * (size_t)g->n);
  REFUSED("2 of vectors, vectors_buffer, positions", good, c.vectors = g->positions);
  REFUSED("0 of vectors, vectors_buffer, positions", both, c.positions = NULL);
  REFUSED("it must be the image", good, c.images = NULL);
  REFUSED("it must be the image", both, g->exchange.n_receive--);
  g->exchange.n_receive++;
  images[0] = (int32_t)g->n;
  REFUSED("images[0] is 6", good, c.images = images);
  REFUSED("same_graph", good, c.same_graph = 1);
  REFUSED("species is NULL", good, c.species = NULL);
  REFUSED("senders.host", good, c.senders.host = NULL);
  REFUSED("one of receivers.host", good, c.receivers.host = NULL);
  g->species[1] = 3;
  REFUSED("species[1] is 3; it must be -1 ... 2", good, c.n_local = g->n);
  g->species[1] = 0;
  g->senders[7] = (int32_t)g->n_total;
  REFUSED("senders[7]", good, c.n_local = g->n);
  g->senders[7] = 0;
  g->receivers[4] = (int32_t)g->n;
  REFUSED("receivers[4]", good, c.n_local = g->n);
  g->receivers[4] = 0;
  g->positions[3 * g->receivers[0] + 1] = NAN;
  REFUSED("they must be finite", good, c.n_local = g->n);
  place(g, &a);
  memcpy(g->positions + 3 * (int64_t)g->senders[0], g->positions + 3 * (int64_t)g->receivers[0],
         24);
  REFUSED("they must be finite, and at least", good, c.n_local = g->n);
  assert_int_equal(
      clb_model_compute_edges(o.model, &good, &(clb_model_edge_results){.d_vectors = d}),
      CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(o.ctx), "there are forces"));
  free(g);
  close_model(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(positions),   cmocka_unit_test(every_device),
                                     cmocka_unit_test(without_f64), cmocka_unit_test(close_atoms),
                                     cmocka_unit_test(shuffled),    cmocka_unit_test(buffers),
                                     cmocka_unit_test(counted),     cmocka_unit_test(absent),
                                     cmocka_unit_test(nothing),     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
