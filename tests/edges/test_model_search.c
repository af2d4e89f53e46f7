/* tests/edges/test_model_search.c - edges of local atoms among local atoms and ghosts, which the
   model finds itself: against lists, and against clb_model_compute. */
#include "tests/edges/model_ghosts.h"

static clb_model_edges search_of(const ghost_set *g, bool images) {
  clb_model_edges e = call_of(g, images);
  e.n_edges = 0;
  e.senders = e.receivers = (clb_index_list){0};
  e.search = 1;
  return e;
}

static clb_model_edges again(clb_model_edges e) {
  e.same_graph = 1;
  e.species = NULL;
  e.images = NULL;
  return e;
}

static void same_results(const ghost_set *g, const ghost_result *r, const ghost_result *must,
                         double tolerance) {
  const double size = 1 + largest(3 * g->n, must->forces);
  close_to("energy", 1, &r->energy, &must->energy, tolerance * (1 + fabs(must->energy)));
  close_to("e_atom", g->n, r->e_atom, must->e_atom, tolerance * (1 + fabs(must->energy)));
  close_to("forces", 3 * g->n_total, r->forces, must->forces, tolerance * size);
  close_to("virial", 9, r->virial, must->virial, tolerance * (1 + largest(9, must->virial)));
  close_to("v_atom", 9 * g->n, r->v_atom, must->v_atom,
           tolerance * (1 + largest(9 * g->n, must->v_atom)));
}

/* A list's results, of a model that takes lists. */
static void expect_listed(opened *o, opened *other, const ghost_set *g, bool images, bool same,
                          double tolerance) {
  const clb_model_edges searched = search_of(g, images), same_atoms = again(searched),
                        listed = call_of(g, images);
  ghost_result *r = compute(o, same ? &same_atoms : &searched), *must = compute(other, &listed);
  assert_int_equal(o->model->net.n_edges, other->model->net.n_edges);
  assert_true(same || r->energy != 0);
  same_results(g, r, must, tolerance);
  free(r);
  free(must);
}

/* Moved atoms have other edges, also where the list of ghosts is the same. */
static void as_listed(const char *device, const clb_limits *limits, int which, clb_dtype type,
                      int block_atoms) {
  const clb_model_options options = {.dtype = type, .knots = CLB_NO_KNOTS},
                          blocks = {
                              .dtype = type, .knots = CLB_NO_KNOTS, .block_atoms = block_atoms};
  const double tolerance = type == CLB_F32 ? 4e-5 : 1e-11;
  opened o = open_made_as(device, limits, which, &blocks),
         other = open_made_as(device, limits, which, &options);
  const clb_edge_source source = o.ctx->device->limits.f64 ? CLB_EDGES_LOCAL : CLB_EDGES_PAIRS;
  for (int images = 0; images < 2; images++) {
    atom_set a = random_atoms(6, made_models[which].n_species, true, 21);
    ghost_set *g = ghosts_of(&a, 4.2);
    int64_t edges = 0;
    for (int step = 0; step < 3; step++) {
      for (int64_t i = 0; step == 2 && i < 3 * a.n; i++)
        a.positions[i] += 0.1 * (double)(i % 5 - 2);
      place(g, &a);
      expect_listed(&o, &other, g, images, step > 0, tolerance);
      assert_int_equal(o.model->edges.source, source);
      if (step == 1) assert_int_equal(o.model->net.n_edges, edges);
      if (step == 2) assert_int_not_equal(o.model->net.n_edges, edges);
      edges = o.model->net.n_edges;
    }
    free(g);
  }
  close_model(&other);
  close_model(&o);
}

static void all_models(void **state) {
  (void)state;
  for (int which = 0; which < MADE_MODELS; which++)
    as_listed("cpu:interpreter", NULL, which, which % 2 ? CLB_F64 : CLB_F32, which % 3);
  as_listed("cpu:threads=3", NULL, 0, CLB_F64, 2);
}

static void on_device(const clb_device_info *info, void *user) {
  (void)user;
  if (info->runs && strcmp(info->name, "cpu:interpreter"))
    as_listed(info->name, NULL, 0, info->f64 ? CLB_F64 : CLB_F32, 0);
}

static void every_device(void **state) {
  (void)state;
  assert_int_equal(clb_devices(on_device, NULL), CLB_OK);
}

/* A device without double precision leaves the search to the host. */
static void without_f64(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 0, NULL);
  clb_limits limits = o.ctx->device->limits;
  limits.f64 = false;
  close_model(&o);
  as_listed("cpu:interpreter", &limits, 0, CLB_F32, 0);
}

/* Periodic atoms, also of a cell that is smaller than the cutoff, have their energy. */
static void periodic(void **state) {
  (void)state;
  opened o = open_made("cpu:threads=2", 1, &f64), other = open_made("cpu:threads=2", 1, &f64);
  for (uint64_t seed = 30; seed < 34; seed++) {
    atom_set a = random_atoms(5, made_models[1].n_species, true, seed);
    if (seed == 33)
      for (int i = 0; i < 9; i++) a.cell[i] *= 0.6;
    ghost_set *g = ghosts_of(&a, 3.2);
    const clb_model_edges call = search_of(g, true);
    ghost_result *r = compute(&o, &call);
    const computed c = of_atoms(g, r, a.cell), wanted = compute_atoms(&other, &a);
    expect_same(&c, &wanted, a.n, 1e-11);
    free(r);
    free(g);
  }
  close_model(&other);
  close_model(&o);
}

/* ---- what the device leaves to the host, and the way back ---- */

static void close_atoms(void **state) {
  (void)state;
  opened o = open_made("cpu:threads=2", 0, &f64), other = open_made("cpu:threads=2", 0, &f64);
  atom_set a = random_atoms(6, 3, true, 24);
  for (int k = 0; k < 3; k++) a.positions[3 + k] = a.positions[k];
  a.positions[3] += 8e-4;
  ghost_set *g = ghosts_of(&a, 4.2);
  for (int step = 0; step < 4; step++) {
    place(g, &a);
    expect_listed(&o, &other, g, true, step > 0, 1e-9);
    assert_int_equal(o.model->edges.source, step % 2 ? CLB_EDGES_LOCAL : CLB_EDGES_PAIRS);
    a.positions[3] += step % 2 ? -0.5 : 0.5;
  }
  free(g);
  close_model(&other);
  close_model(&o);
}

/* Steps of which some have too many edges for the device, and are computed in blocks. */
static void too_many(void **state) {
  (void)state;
  for (int images = 0; images < 2; images++) {
    opened o = open_made("cpu:threads=2", 0, &f64), other = open_made("cpu:threads=2", 0, &f64);
    atom_set a = random_atoms(6, 3, true, 28);
    ghost_set *g = ghosts_of(&a, 4.2);
    for (int step = 0; step < 4; step++) {
      o.model->too_many_edges = step % 2; /* 1: fewer than there are */
      place(g, &a);
      expect_listed(&o, &other, g, images, step > 0, 1e-11);
      assert_int_equal(o.model->net.blocked, step % 2);
      a.positions[3] += 0.1;
    }
    free(g);
    close_model(&other);
    close_model(&o);
  }
}

/* Atoms that all leave the places where the grid was laid. */
static void moved_away(void **state) {
  (void)state;
  opened o = open_made("cpu:threads=2", 0, &f64), other = open_made("cpu:threads=2", 0, &f64);
  atom_set a = random_atoms(6, 3, true, 25);
  ghost_set *g = ghosts_of(&a, 4.2);
  expect_listed(&o, &other, g, true, false, 1e-11);
  for (int times = 0; times < 3; times++) {
    for (int64_t i = 0; i < 3 * g->n_total; i++)
      g->positions[i] += times < 2 ? 7.3 - 20 * (double)(i % 3) : 1e6;
    expect_listed(&o, &other, g, true, true, times < 2 ? 1e-11 : 1e-7);
    assert_int_equal(o.model->edges.source, CLB_EDGES_LOCAL);
  }
  free(g);
  close_model(&other);
  close_model(&o);
}

/* Between calls of other kinds. */
static void between_others(void **state) {
  (void)state;
  opened o = open_made("cpu:threads=2", 0,
                       &(clb_model_options){.dtype = CLB_F64, .knots = CLB_NO_KNOTS, .skin = 0.5}),
         other = open_made("cpu:threads=2", 0, &f64);
  const atom_set a = random_atoms(6, 3, true, 26);
  ghost_set *g = ghosts_of(&a, 4.2);
  const computed must = compute_atoms(&o, &a);
  for (int times = 0; times < 2; times++) {
    expect_listed(&o, &other, g, true, false, 1e-11);
    const clb_model_edges lists = call_of(g, true);
    free(compute(&o, &lists));
    expect_listed(&o, &other, g, false, false, 1e-11);
    const computed c = compute_atoms(&o, &a);
    expect_same(&c, &must, a.n, 1e-11);
  }
  free(g);
  close_model(&other);
  close_model(&o);
}

/* ---- positions and forces in buffers ---- */

static void buffers(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 1, &f64);
  atom_set a = random_atoms(6, made_models[1].n_species, true, 22);
  ghost_set *g = ghosts_of(&a, 3.6);
  const uint64_t bytes = (uint64_t)g->n_total * 24;
  clb_model_edges call = search_of(g, true);
  clb_buffer *x;
  assert_int_equal(clb_buffer_create(o.ctx, bytes, &x), CLB_OK);
  for (int step = 0; step < 2; step++) {
    if (step) a.positions[4] += 0.3;
    place(g, &a);
    call.positions = g->positions, call.positions_buffer = NULL, call.same_graph = 0;
    ghost_result *must = compute(&o, &call);
    assert_int_equal(clb_buffer_write(x, 0, g->positions, bytes), CLB_OK);
    call.positions = NULL, call.positions_buffer = x, call.same_graph = step;
    ghost_result *r = compute(&o, &call);
    same_results(g, r, must, 0);
    free(r);
    free(must);
  }
  clb_buffer_destroy(&x);
  free(g);
  close_model(&o);
}

/* ---- atoms that are not there ---- */

static void absent(void **state) {
  (void)state;
  for (int images = 0; images < 2; images++) {
    opened o = open_made("cpu:interpreter", 0, &f64), other = open_made("cpu:interpreter", 0, &f64);
    const atom_set a = random_atoms(6, 3, true, 23);
    ghost_set *g = ghosts_of(&a, 3.4);
    for (int64_t i = 0; i < g->n_total; i++)
      if (i == 2 || (i >= g->n && g->owner[i] == 2)) g->species[i] = -1;
    if (!images) g->exchange.n_receive = g->exchange.n_send = 0; /* then all ghosts are absent */
    for (int64_t i = g->n; i < g->n_total && !images; i++) g->species[i] = -1;
    expect_listed(&o, &other, g, images, false, 1e-11);
    free(g);
    close_model(&other);
    close_model(&o);
  }
}

static void nothing(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 2, &f64);
  const double x[6] = {0, 0, 0, 1, 0, 0};
  const int32_t species[2] = {0, 0};
  double energy = NAN, forces[6], virial[9];
  const clb_model_edge_results want = {.energy = &energy, .virial = virial, .forces = forces};
  for (int n = 0; n < 3; n++) { /* no atoms; a ghost; two, which are near each other */
    clb_model_edges e = {.n_total = n, .species = species, .positions = x, .search = 1};
    for (int i = 0; i < 2; i++, e.same_graph = 1) {
      if (clb_model_compute_edges(o.model, &e, &want)) fail_msg("%s", clb_error(o.ctx));
      assert_true(energy == 0 && largest(9, virial) == 0 && largest(3 * n, forces) == 0);
    }
  }
  close_model(&o);
}

/* Parts of the call's time, of which there are exchanges where rows travel. */
static void seconds(void **state) {
  (void)state;
  opened o = open_made("cpu:threads=2", 2, &f64);
  const atom_set a = random_atoms(6, made_models[2].n_species, true, 29);
  ghost_set *g = ghosts_of(&a, 3.4);
  for (int images = 0; images < 2; images++) {
    const clb_model_edges call = search_of(g, images);
    double energy, forces[3 * MAX_TOTAL], s[4] = {NAN, NAN, NAN, NAN};
    const clb_model_edge_results want = {.energy = &energy, .forces = forces, .seconds = s};
    const double start = clb_seconds_now();
    if (clb_model_compute_edges(o.model, &call, &want)) fail_msg("%s", clb_error(o.ctx));
    assert_true(s[0] <= clb_seconds_now() - start);
    assert_true(s[1] > 0 && s[3] > 0 && s[1] + s[2] + s[3] < s[0]);
    assert_int_equal(s[2] > 0, !images);
  }
  free(g);
  close_model(&o);
}

/* ---- what is refused ---- */

static void refused(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 0, &f64);
  atom_set a = random_atoms(6, 3, true, 27);
  ghost_set *g = ghosts_of(&a, 2.9);
  const clb_model_edges good = search_of(g, true), both = search_of(g, false);
  clb_model_edges c;
#define REFUSED(what, base, ...) (c = base, __VA_ARGS__, refuse(&o, &c, what))
  REFUSED("search is 1, but n_edges is not 0", good, c.n_edges = 3);
  REFUSED("search is 1, but there are no positions", good, c.positions = NULL, c.n_total = 6);
  REFUSED("it must be the image", good, c.images = NULL);
  REFUSED("it must be the image", both, g->exchange.n_receive = 0);
  g->exchange.n_receive = g->n_total - g->n;
  REFUSED("same_graph", good, c.same_graph = 1);
  free(compute(&o, &good));
  REFUSED("same_graph", good, c.same_graph = 1, c.search = 0);
  const clb_model_edges lists = call_of(g, true);
  free(compute(&o, &lists));
  REFUSED("same_graph", good, c.same_graph = 1);
  free(compute(&o, &good));
  g->positions[4] = NAN;
  REFUSED("positions[1][1] is nan: it must be finite", good, c.same_graph = 1);
  REFUSED("positions[1][1] is nan: it must be finite", good, c.same_graph = 0);
  place(g, &a);
  memcpy(g->positions + 3, g->positions, 24);
  REFUSED("they must be finite, and at least", good, c.same_graph = 0);
  free(g);
  close_model(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_models), cmocka_unit_test(every_device),   cmocka_unit_test(without_f64),
      cmocka_unit_test(periodic),   cmocka_unit_test(close_atoms),    cmocka_unit_test(moved_away),
      cmocka_unit_test(too_many),   cmocka_unit_test(between_others), cmocka_unit_test(buffers),
      cmocka_unit_test(seconds),    cmocka_unit_test(absent),         cmocka_unit_test(nothing),
      cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
