/* tests/models/test_model_calls.c - the calls for simulation codes: edges, ghosts, buffers; sizes,
   and what calls refuse. */
#include "models/model_state.h"

#include "tests/models/model_places.h"

enum { MAX_EDGES = 4096, GHOSTS = 1024 };
static const clb_model_options f64 = {.dtype = CLB_F64, .knots = CLB_NO_KNOTS};

/* Edges of a set of atoms; every edge from another image has a ghost of its own. */
typedef struct {
  int64_t n_local, n_total, n_edges;
  int32_t species[GHOSTS], owner[GHOSTS], senders[MAX_EDGES], receivers[MAX_EDGES];
  double vectors[3 * MAX_EDGES];
  int32_t received[GHOSTS];
  int calls[2]; /* of `move`, forward and backward */
  int64_t widest;
  clb_status fail;
  clb_model_exchange exchange;
} edge_set;

static edge_set edges_of(const atom_set *a, double r_max, bool ghosts) {
  edge_set e = {.n_local = a->n, .n_total = a->n};
  clb_neighbours list = {.cutoff = r_max};
  const bool periodic[3] = {a->periodic[0], a->periodic[1], a->periodic[2]};
  if (clb_neighbours_update(&list, a->n, a->positions, a->cell, periodic, NULL))
    fail_msg("%s", list.error);
  assert_true(list.n_edges < MAX_EDGES && list.n_edges + a->n < GHOSTS);
  e.n_edges = list.n_edges;
  clb_neighbours_vectors(&list, a->positions, e.vectors);
  for (int64_t i = 0; i < a->n; i++) e.species[i] = a->species[i];
  for (int64_t i = 0; i < e.n_edges; i++) {
    const bool image = list.shifts[3 * i] || list.shifts[3 * i + 1] || list.shifts[3 * i + 2];
    e.receivers[i] = list.receivers[i];
    e.senders[i] = list.senders[i];
    if (!ghosts || !image) continue;
    e.owner[e.n_total] = list.senders[i];
    e.species[e.n_total] = a->species[list.senders[i]];
    e.senders[i] = (int32_t)e.n_total++;
  }
  clb_neighbours_free(&list);
  return e;
}

/* Ghosts travel in an order of their own: the last one first. */
static clb_status move(void *user, int backward, int64_t columns, clb_dtype type, const void *from,
                       void *to) {
  edge_set *e = user;
  const uint64_t row = (uint64_t)columns * (type == CLB_F64 ? 8 : 4);
  const int64_t n = e->n_total - e->n_local;
  e->calls[backward]++;
  if (columns > e->widest) e->widest = columns;
  if (e->fail) return e->fail;
  for (int64_t i = 0; i < n; i++) /* `send` is in the order of ghosts */
    memcpy((char *)to + (uint64_t)(n - 1 - i) * row, (const char *)from + (uint64_t)i * row, row);
  return CLB_OK;
}

typedef struct {
  double energy, e_atom[MAX_ATOMS], d_vectors[3 * MAX_EDGES], virial[9];
} edge_result;

static clb_model_edges call_of(edge_set *e) {
  const int64_t n = e->n_total - e->n_local;
  for (int64_t i = 0; i < n; i++) e->received[i] = (int32_t)(e->n_total - 1 - i);
  e->exchange = (clb_model_exchange){.n_send = n,
                                     .n_receive = n,
                                     .send = e->owner + e->n_local,
                                     .receive = e->received,
                                     .move = move,
                                     .user = e};
  return (clb_model_edges){.n_local = e->n_local,
                           .n_total = e->n_total,
                           .n_edges = e->n_edges,
                           .species = e->species,
                           .senders = {.host = e->senders},
                           .receivers = {.host = e->receivers},
                           .vectors = e->vectors,
                           .exchange = e->n_total > e->n_local ? &e->exchange : NULL};
}

static edge_result compute_edges(opened *o, const clb_model_edges *e) {
  edge_result r = {0};
  if (clb_model_compute_edges(o->model, e,
                              &(clb_model_edge_results){.energy = &r.energy,
                                                        .e_atom = r.e_atom,
                                                        .d_vectors = r.d_vectors,
                                                        .virial = r.virial}))
    fail_msg("%s", clb_error(o->ctx));
  return r;
}

static double volume_of(const double *c) {
  return fabs(c[0] * (c[4] * c[8] - c[5] * c[7]) - c[1] * (c[3] * c[8] - c[5] * c[6]) +
              c[2] * (c[3] * c[7] - c[4] * c[6]));
}

/* Results of the atoms from those of the edges. */
static computed of_atoms(const edge_set *e, const edge_result *r, double volume) {
  computed c = {.energy = r->energy};
  memcpy(c.e_atom, r->e_atom, sizeof c.e_atom);
  for (int64_t i = 0; i < e->n_edges; i++)
    for (int k = 0; k < 3; k++) {
      const int64_t sender = e->senders[i] < e->n_local ? e->senders[i] : e->owner[e->senders[i]];
      c.forces[3 * sender + k] -= r->d_vectors[3 * i + k];
      c.forces[3 * e->receivers[i] + k] += r->d_vectors[3 * i + k];
    }
  for (int i = 0; i < 9; i++) c.stress[i] = r->virial[i] / volume;
  return c;
}

/* ---- edges and ghosts ---- */

static void edges_and_ghosts(opened *o, int n_species, int exchanges, bool single) {
  clb_model_info info;
  const atom_set a = random_atoms(6, n_species, true, 11);
  const computed wanted = compute_atoms(o, &a);
  assert_int_equal(clb_model_describe(o->model, &info), CLB_OK);
  assert_int_equal(info.exchanges, exchanges);
  for (int way = 0; way < 3; way++) { /* no ghosts, rows on the host, rows on the device */
    edge_set e = edges_of(&a, info.r_max, way > 0);
    const clb_model_edges call = call_of(&e);
    e.exchange.device_rows = way == 2;
    const edge_result r = compute_edges(o, &call);
    const computed c = of_atoms(&e, &r, volume_of(a.cell));
    assert_true(way == 0 || e.n_total > 2 * a.n);
    expect_same(&c, &wanted, a.n, single ? 2e-5 : 1e-11);
    assert_int_equal(e.widest, way ? info.exchange_columns : 0);
    for (int i = 0; i < 2; i++) assert_int_equal(e.calls[i], way ? info.exchanges : 0);
  }
}

static void edges(void **state) {
  (void)state;
  for (int which = 0; which < MADE_MODELS; which++)
    for (int single = 0; single < 2; single++) {
      opened o = open_made(
          "cpu:interpreter", which,
          &(clb_model_options){.dtype = single ? CLB_F32 : CLB_F64, .knots = CLB_NO_KNOTS});
      edges_and_ghosts(&o, made_models[which].n_species, made_models[which].n_layers - 1, single);
      close_model(&o);
    }
}

/* Nothing that Allegro has in an atom is another's: rows never travel. */
static void edges_of_allegro(void **state) {
  (void)state;
  opened o = open_data("cpu:interpreter", NULL, "allegro/bessel", &f64);
  edges_and_ghosts(&o, 3, 0, false);
  close_model(&o);
}

/* Rows of senders travel before each layer, also the first, whose features depend on neighbours. */
static void edges_of_esen(void **state) {
  (void)state;
  opened o = open_data("cpu", NULL, "esen/cut", &f64);
  edges_and_ghosts(&o, 3, 2, false);
  close_model(&o);
}

static void esen_does_not_train(void **state) {
  (void)state;
  char path[600];
  clb_context *ctx = NULL;
  clb_model *model;
  snprintf(path, sizeof path, "%s/esen/cut.safetensors", getenv("CLB_TEST_DATA"));
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  assert_int_equal(clb_model_open(ctx, path, &(clb_model_options){.trains = 1}, &model),
                   CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "eSEN's models do not train"));
  clb_context_destroy(&ctx);
}

/* The same lists and vectors in buffers; gradients in a buffer. */
static void buffers(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 0, &f64);
  const atom_set a = random_atoms(6, 3, true, 12);
  edge_set e = edges_of(&a, 3.1, false);
  clb_model_edges call = call_of(&e);
  const edge_result wanted = compute_edges(&o, &call);
  clb_buffer *b[4] = {NULL};
  const uint64_t bytes[] = {(uint64_t)e.n_edges * 4, (uint64_t)e.n_edges * 4,
                            (uint64_t)e.n_edges * 24, (uint64_t)e.n_edges * 24};
  const void *from[] = {e.senders, e.receivers, e.vectors};
  for (int i = 0; i < 4; i++) {
    assert_int_equal(clb_buffer_create(o.ctx, bytes[i], &b[i]), CLB_OK);
    if (i < 3) assert_int_equal(clb_buffer_write(b[i], 0, from[i], bytes[i]), CLB_OK);
  }
  call.senders = (clb_index_list){.buffer = b[0]};
  call.receivers = (clb_index_list){.buffer = b[1]};
  call.vectors = NULL;
  call.vectors_buffer = b[2];
  edge_result r = {0};
  assert_int_equal(
      clb_model_compute_edges(
          o.model, &call, &(clb_model_edge_results){.energy = &r.energy, .d_vectors_buffer = b[3]}),
      CLB_OK);
  assert_int_equal(clb_buffer_read(b[3], 0, r.d_vectors, bytes[3]), CLB_OK);
  assert_true(r.energy == wanted.energy);
  assert_memory_equal(r.d_vectors, wanted.d_vectors, bytes[3]);
  for (int i = 0; i < 4; i++) clb_buffer_destroy(&b[i]);
  close_model(&o);
}

/* The lists are not read again, the vectors are; and both kinds of call may alternate. */
static void same_graph(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 2, &f64);
  atom_set a = random_atoms(6, 2, true, 13);
  edge_set e = edges_of(&a, 3.1, false);
  clb_model_edges call = call_of(&e);
  compute_edges(&o, &call);
  for (int64_t i = 0; i < 3 * e.n_edges; i++) e.vectors[i] *= 1.01;
  for (int64_t i = 0; i < 9; i++) a.cell[i] *= 1.01;
  for (int64_t i = 0; i < 3 * a.n; i++) a.positions[i] *= 1.01;
  call.same_graph = 1;
  call.species = NULL;
  call.senders.host = call.receivers.host = NULL;
  const edge_result r = compute_edges(&o, &call);
  const computed c = of_atoms(&e, &r, volume_of(a.cell)), wanted = compute_atoms(&o, &a);
  expect_same(&c, &wanted, a.n, 1e-11);
  const atom_set other = random_atoms(4, 2, true, 14);
  compute_atoms(&o, &other);
  assert_int_equal(clb_model_compute_edges(o.model, &call, &(clb_model_edge_results){0}),
                   CLB_ERROR_ARGUMENT); /* that graph is gone */
  call = call_of(&e);
  compute_edges(&o, &call);
  compute_atoms(&o, &a); /* of as many edges, in its own order */
  call.same_graph = 1;
  assert_int_equal(clb_model_compute_edges(o.model, &call, &(clb_model_edge_results){0}),
                   CLB_ERROR_ARGUMENT);
  call = call_of(&e);
  const edge_result again = compute_edges(&o, &call);
  assert_memory_equal(&again, &r, sizeof r);
  const computed after = compute_atoms(&o, &a);
  assert_memory_equal(&after, &wanted, sizeof after);
  close_model(&o);
}

/* Atoms that have not moved, after as many but different edges. */
static void turns(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 0,
                       &(clb_model_options){.dtype = CLB_F64, .skin = 0.2, .knots = CLB_NO_KNOTS});
  const atom_set a = random_atoms(6, 3, true, 13);
  edge_set e = edges_of(&a, 3.3, false);
  const clb_model_edges call = call_of(&e);
  const computed c = compute_atoms(&o, &a);
  for (int64_t i = 0; i < e.n_edges; i++) e.senders[i] = (int32_t)((e.senders[i] + 1) % a.n);
  compute_edges(&o, &call);
  const computed d = compute_atoms(&o, &a);
  assert_memory_equal(&d, &c, sizeof d);
  close_model(&o);
}

/* ---- sizes ---- */

/* A small system, a larger one, an empty one, and one atom without neighbours, whose energy is
   known by then: nothing is read that an earlier system left. */
static void sizes_of(int which, const clb_limits *limits) {
  opened o = open_made_as("cpu:interpreter", limits, which, &f64);
  const int n_species = made_models[which].n_species;
  const atom_set small = random_atoms(3, n_species, false, 16),
                 large = random_atoms(40, n_species, true, 17), none = {.n = 0};
  const computed first = compute_atoms(&o, &small);
  compute_atoms(&o, &large);
  const computed nothing = compute_atoms(&o, &none), again = compute_atoms(&o, &small);
  assert_true(nothing.energy == 0);
  assert_memory_equal(&first, &again, sizeof first);
  atom_set apart = {.n = 2, .species = {0, 1}, .positions = {0, 0, 0, 100, 0, 0}};
  const computed both = compute_atoms(&o, &apart);
  apart.n = 1;
  const computed one = compute_atoms(&o, &apart);
  assert_true(one.energy == both.e_atom[0] && both.energy == both.e_atom[0] + both.e_atom[1]);
  assert_true(largest(6, both.forces) == 0);
  close_model(&o);
}

static void sizes(void **state) {
  static const int gpus[] = {LIMITS_NVIDIA, LIMITS_AMD, LIMITS_INTEL, LIMITS_NO_SUBGROUPS};
  (void)state;
  sizes_of(2, NULL);
  for (int which = 0; which < MADE_MODELS; which++)
    sizes_of(which, &device_limits[gpus[which % 4]].limits);
}

/* The smallest workspace, for some of the edges at a time, gives the same results. */
static void workspaces(void **state) {
  (void)state;
  opened wide = open_made("cpu", 0, &f64),
         narrow = open_made(
             "cpu", 0,
             &(clb_model_options){.dtype = CLB_F64, .workspace_bytes = 1, .knots = CLB_NO_KNOTS});
  const atom_set a = random_atoms(90, 3, true, 18);
  const computed c = compute_atoms(&wide, &a), d = compute_atoms(&narrow, &a);
  assert_true(narrow.model->net.n_edges > 16384 &&
              narrow.model->net.workspace->memory.bytes <
                  wide.model->net.workspace->memory.bytes * 3 / 4);
  expect_same(&d, &c, a.n, 1e-10 * fabs(c.energy));
  close_model(&wide);
  close_model(&narrow);
}

/* Sums by atomics differ by rounding. */
static void atomics(void **state) {
  (void)state;
  opened ordered = open_made("cpu", 0, &f64),
         atomic = open_made(
             "cpu", 0, &(clb_model_options){.dtype = CLB_F64, .atomics = 1, .knots = CLB_NO_KNOTS});
  const atom_set a = random_atoms(90, 3, true, 19);
  const computed c = compute_atoms(&ordered, &a), d = compute_atoms(&atomic, &a);
  expect_same(&d, &c, a.n, 1e-10 * fabs(c.energy));
  close_model(&ordered);
  close_model(&atomic);
}

/* Without options, and where options do not say it, a model computes in f32, with splines. */
static void defaults(void **state) {
  (void)state;
  const atom_set a = random_atoms(6, made_models[0].n_species, true, 5);
  const clb_model_options *const options[] = {
      NULL, &(clb_model_options){0}, &(clb_model_options){.dtype = CLB_F32, .knots = CLB_NO_KNOTS},
      &f64};
  computed first = {0};
  for (int i = 0; i < 4; i++) {
    opened o = open_made("cpu:interpreter", 0, options[i]);
    const computed c = compute_atoms(&o, &a);
    if (i == 0) first = c;
    assert_true(!memcmp(&first, &c, sizeof c) == (i < 2));
    close_model(&o);
  }
}

/* ---- what is refused ---- */

static void refuse_open(const char *key, const char *value, const clb_model_options *options,
                        clb_status status, const char *what) {
  clb_context *ctx;
  clb_model *m;
  char path[] = "/tmp/clebsch_made_XXXXXX";
  close(mkstemp(path));
  made_write(&made_models[0], path, key, value);
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  const clb_status s = clb_model_open(ctx, path, options, &m);
  if (s != status || m || !strstr(clb_error(ctx), what))
    fail_msg("status %d, not %d and \"%s\": %s", s, status, what, clb_error(ctx));
  unlink(path);
  clb_context_destroy(&ctx);
}

static void bad_files(void **state) {
  (void)state;
  static const struct {
    const char *key, *value, *what;
  } bad[] = {{"format", "other", "format"},
             {"format_version", "2", "format_version"},
             {"architecture", NULL, "architecture"},
             {"species", "H C Xx", "Xx"},
             {"species", "H C", "species_scale"},
             {"species", "", "species"},
             {"r_max", "0", "r_max"},
             {"r_max", "-1", "r_max"},
             {"irreps_sh", "1x0e+1x1o", "irreps_sh"},
             {"irreps_sh", "1x0e+1x1e+1x2o", "irreps_sh"},
             {"radial_basis", "gauss", "radial_basis"},
             {"n_basis", "4", "bessel_frequencies"},
             {"cutoff", "cosine", "cutoff"},
             {"cutoff_p", "1", "cutoff_p"},
             {"radial_layers", "3", "radial"},
             {"radial_activation", "gelu", "radial_activation"},
             {"radial_normalization", "some", "radial_normalization"},
             {"avg_num_neighbors", "0", "avg_num_neighbors"},
             {"embedding", "other", "embedding"},
             {"n_layers", "4", "layers.3"},
             {"self_connection", "all", "self_connection"},
             {"norm", "layer", "norm"},
             {"norm_epsilon", "0", "norm_epsilon"},
             {"feed_forward_norm", "rms", "feed_forward_norm"},
             {"residual", "some", "residual"},
             {"nonlinear", "other", "nonlinear"},
             {"nonlinear", "bilinear", "needs a 'residual'"},
             {"activation_even", "gelu", "activation_even"},
             {"activation_gate_scale", NULL, "activation_gate_scale"},
             {"readout_layers", "2", "readout"},
             {"energy_scale", "x", "energy_scale"},
             {"layers.1.paths", "0,0,0 0,3,0", "paths"},
             {"layers.1.paths", "0,0,0 5,0,0", "paths"},
             {"layers.1.paths", "0,0,7", "paths"},
             {"layers.1.paths", "", "paths"},
             {"layers.1.paths", "0,0,0;", "paths"},
             {"layers.1.paths", "0,0,4", "layers.1"},
             {"layers.1.irreps_in", "4x0e+2x1o", "layers.1.irreps_in"},
             {"layers.1.irreps_out", "4x0e+2x2e+3x1o", "layers.1.irreps_out"},
             {"layers.1.irreps_linear", "9x0e+3x1o+1x2e+1x2e", "layers.1"},
             {"layers.1.irreps_gates", "4x0e", "layers.1"},
             {"layers.0.irreps_in", "2x0e", "layers.0"},
             {"layers.1.irreps_scalars", "4x0q", "irreps_scalars"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    refuse_open(bad[i].key, bad[i].value, NULL, CLB_ERROR_ARGUMENT, bad[i].what);
}

static void bad_options(void **state) {
  (void)state;
  const struct {
    clb_model_options options;
    const char *what;
  } bad[] = {{{.dtype = CLB_F16}, "dtype"},
             {{.knots = 1}, "knots"},
             {{.knots = -2}, "knots"},
             {{.skin = -0.5}, "skin"},
             {{.skin = NAN}, "skin"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    refuse_open(NULL, NULL, &bad[i].options, CLB_ERROR_ARGUMENT, bad[i].what);
  clb_context *ctx;
  clb_model *m;
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  assert_int_equal(clb_model_open(ctx, "/nowhere/model", NULL, &m), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "/nowhere/model"));
  assert_int_equal(clb_model_open(ctx, NULL, NULL, &m), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_model_open(ctx, "x", NULL, NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_model_open(NULL, "x", NULL, &m), CLB_ERROR_ARGUMENT);
  clb_context_destroy(&ctx);
}

/* A model by the name of its file in the user's folder, in any case of letters. */
static void opened_by_name(void **state) {
  (void)state;
  clb_context *ctx;
  clb_model *m;
  char folder[] = "/tmp/clebsch_models_XXXXXX", path[80];
  assert_non_null(mkdtemp(folder));
  setenv("CLB_MODELS_DIR", folder, 1);
  snprintf(path, sizeof path, "%s/made-1.safetensors", folder);
  made_write(&made_models[0], path, NULL, NULL);
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  assert_int_equal(clb_model_open(ctx, "Made-1", &f64, &m), CLB_OK);
  clb_model_destroy(&m);
  assert_int_equal(clb_model_open(ctx, "made-2", &f64, &m), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "made-2: No such file, and no model in /tmp/clebsch_mod"));
  clb_context_destroy(&ctx);
  unlink(path);
  rmdir(folder);
  unsetenv("CLB_MODELS_DIR");
}

static void refuse_edges(opened *o, const clb_model_edges *e, clb_status status, const char *what) {
  double x;
  const clb_status s =
      clb_model_compute_edges(o->model, e, &(clb_model_edge_results){.energy = &x});
  if (s != status || (what && !strstr(clb_error(o->ctx), what)))
    fail_msg("status %d, not %d and \"%s\": %s", s, status, what ? what : "", clb_error(o->ctx));
}

static void bad_edges(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 0, &f64), other = open_made("cpu:interpreter", 0, &f64);
  const atom_set a = random_atoms(4, 3, true, 19);
  edge_set e = edges_of(&a, 3.1, true);
  const clb_model_edges good = call_of(&e);
  clb_model_edges c = good;
  clb_buffer *small, *foreign;
  assert_int_equal(clb_buffer_create(o.ctx, (uint64_t)e.n_edges * 24 - 8, &small), CLB_OK);
  assert_int_equal(clb_buffer_create(other.ctx, (uint64_t)e.n_edges * 24, &foreign), CLB_OK);
#define REFUSED(what, ...) (c = good, __VA_ARGS__, refuse_edges(&o, &c, CLB_ERROR_ARGUMENT, what))
  REFUSED("n_local", c.n_local = -1);
  REFUSED("n_edges", c.n_edges = -1);
  REFUSED("n_total", c.n_total = e.n_local - 1);
  REFUSED("exchange", c.exchange = NULL);
  REFUSED("species", c.species = NULL);
  REFUSED("same_graph", c.same_graph = 1);
  REFUSED("vectors", c.vectors = NULL);
  REFUSED("vectors", c.vectors_buffer = small);
  REFUSED("vectors_buffer", c.vectors = NULL, c.vectors_buffer = small);
  REFUSED("vectors_buffer", c.vectors = NULL, c.vectors_buffer = foreign);
  REFUSED("senders", c.senders.host = NULL);
  e.species[e.n_total - 1] = 3;
  REFUSED("species", c.n_local = e.n_local);
  e.species[e.n_total - 1] = 0;
  e.senders[3] = (int32_t)e.n_total;
  REFUSED("senders[3]", c.n_local = e.n_local);
  e.senders[3] = 0;
  e.receivers[2] = (int32_t)e.n_local; /* a ghost may not receive */
  REFUSED("receivers[2]", c.n_local = e.n_local);
  e.receivers[2] = 0;
  clb_model_exchange x;
#define LISTS_REFUSED(what, ...)                                                                   \
  (x = e.exchange, __VA_ARGS__, REFUSED("exchange." what, c.exchange = &x))
  const int32_t ghost[] = {(int32_t)e.n_local}, twice[] = {ghost[0], ghost[0]}, local[] = {0};
  LISTS_REFUSED("n_send", x.n_send = -1);
  LISTS_REFUSED("n_send", x.send = NULL);
  LISTS_REFUSED("send[0]", x.send = ghost, x.n_send = 1);
  LISTS_REFUSED("n_receive", x.n_receive++);
  LISTS_REFUSED("n_receive", x.receive = NULL);
  LISTS_REFUSED("receive[0]", x.receive = local, x.n_receive = 1);
  LISTS_REFUSED("receive[1]", x.receive = twice, x.n_receive = 2);
  LISTS_REFUSED("move", x.move = NULL);
  e.fail = CLB_ERROR_DRIVER;
  refuse_edges(&o, &good, CLB_ERROR_DRIVER, NULL);
  assert_int_equal(clb_model_compute_edges(NULL, &good, &(clb_model_edge_results){0}),
                   CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_model_compute_edges(o.model, NULL, &(clb_model_edge_results){0}),
                   CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_model_compute_edges(o.model, &good, NULL), CLB_ERROR_ARGUMENT);
  clb_buffer_destroy(&small);
  clb_buffer_destroy(&foreign);
  close_model(&o);
  close_model(&other);
}

static void bad_atoms(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 0, &f64);
  const atom_set a = random_atoms(4, 3, true, 20);
  const clb_model_atoms good = {4, a.species, a.positions, a.cell, {1, 1, 1}, .charge = 0};
  clb_model_atoms b = good;
  double stress[9], x;
  const double bad_position[12] = {NAN};
  const int32_t bad_species[4] = {0, 0, 0, -1};
  const double flat[9] = {1, 0, 0, 0, 1, 0, 1, 1, 0};
  const double endless[9] = {4, 0, 0, 0, 4, 0, 0, 0, INFINITY};
#define REFUSED_ATOMS(what, ...)                                                                   \
  (b = good, __VA_ARGS__,                                                                          \
   assert_int_equal(                                                                               \
       clb_model_compute(o.model, &b, &(clb_model_results){&x, NULL, NULL, stress, NULL}),         \
       CLB_ERROR_ARGUMENT),                                                                        \
   assert_non_null(strstr(clb_error(o.ctx), what)))
  REFUSED_ATOMS("n is", b.n = -1);
  REFUSED_ATOMS("positions", b.positions = NULL);
  REFUSED_ATOMS("species", b.species = NULL);
  REFUSED_ATOMS("species[3]", b.species = bad_species);
  REFUSED_ATOMS("cell", b.cell = NULL);
  REFUSED_ATOMS("cell is NULL", b.periodic[0] = b.periodic[1] = b.periodic[2] = 0, b.cell = NULL);
  REFUSED_ATOMS("stress was requested, but cell has no volume", b.periodic[2] = 0, b.cell = flat);
  REFUSED_ATOMS("has no volume", b.periodic[2] = 0, b.cell = endless);
  REFUSED_ATOMS("cell", b.cell = flat);
  REFUSED_ATOMS("position", b.positions = bad_position);
  assert_int_equal(clb_model_compute(NULL, &good, &(clb_model_results){0}), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_model_compute(o.model, NULL, &(clb_model_results){0}), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_model_compute(o.model, &good, NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_model_compute(o.model, &good, &(clb_model_results){0}),
                   CLB_OK); /* nothing wanted */
  close_model(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(edges),         cmocka_unit_test(edges_of_allegro),
      cmocka_unit_test(edges_of_esen), cmocka_unit_test(esen_does_not_train),
      cmocka_unit_test(buffers),       cmocka_unit_test(same_graph),
      cmocka_unit_test(turns),         cmocka_unit_test(sizes),
      cmocka_unit_test(workspaces),    cmocka_unit_test(atomics),
      cmocka_unit_test(defaults),      cmocka_unit_test(bad_files),
      cmocka_unit_test(bad_options),   cmocka_unit_test(opened_by_name),
      cmocka_unit_test(bad_edges),     cmocka_unit_test(bad_atoms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
