/* tests/dispersion/test_model_dispersion.c - models with dispersion: their results are those
   without it plus D3's, in each call that computes atoms. */
#include "tests/dispersion/dispersion_run.h"
#include "tests/models/model_places.h"

enum { MODEL = 0 }; /* H C O */
static const int z_of[] = {1, 6, 8};

static clb_model_options options(clb_dtype type, const char *d3) {
  return (clb_model_options){
      .dtype = type, .knots = 40, .d3 = d3, .d3_cutoff = d3 ? 8 : 0, .d3_count_cutoff = 0};
}

static atom_set atoms_of(int64_t n, int periodic, uint64_t seed) {
  atom_set a = random_atoms(n, 3, true, seed);
  for (int d = 0; d < 3; d++) a.periodic[d] = d < periodic;
  if (a.n) a.positions[1] -= 3 * a.cell[1];
  return a;
}

/* What must be added. */
static computed expected(clb_context *ctx, const atom_set *a, bool triples) {
  molecule m = {.n = (int)a->n, .functional = "pbe", .cutoffs = {8, 8}, .three_body = triples};
  computed c = {0};
  for (int i = 0; i < m.n; i++) m.z[i] = z_of[a->species[i]];
  memcpy(m.x, a->positions, (size_t)(3 * a->n) * sizeof *m.x);
  memcpy(m.cell, a->cell, sizeof m.cell);
  for (int d = 0; d < 3; d++) m.periodic[d] = a->periodic[d];
  const dispersed d = disperse_one(ctx, CLB_F64, &m);
  c.energy = d.energy;
  memcpy(c.e_atom, d.energies, (size_t)a->n * sizeof *c.e_atom);
  memcpy(c.forces, d.forces, (size_t)(3 * a->n) * sizeof *c.forces);
  for (int k = 0; k < 9; k++) c.stress[k] = d.virial[k] / clb_cell_volume(a->cell);
  return c;
}

static computed sum_of(const computed *a, const computed *b) {
  computed c = {.energy = a->energy + b->energy};
  for (int i = 0; i < MAX_ATOMS; i++) c.e_atom[i] = a->e_atom[i] + b->e_atom[i];
  for (int i = 0; i < 3 * MAX_ATOMS; i++) c.forces[i] = a->forces[i] + b->forces[i];
  for (int i = 0; i < 9; i++) c.stress[i] = a->stress[i] + b->stress[i];
  return c;
}

/* Calls with other atoms, cells and elements after each other; f32: within its digits. */
static void expect_sums(const char *device, clb_dtype type, bool triples) {
  static const struct {
    int64_t n;
    int periodic;
  } cases[] = {{7, 3}, {7, 0}, {1, 0}, {0, 3}, {12, 2}, {7, 3}};
  const clb_model_options with = options(type, triples ? "PBE-ATM" : "PBE"),
                          without = options(type, NULL);
  opened d3 = open_made(device, MODEL, &with), plain = open_made(device, MODEL, &without);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const atom_set a = atoms_of(cases[i].n, cases[i].periodic, 5 + i);
    const computed c = compute_atoms(&d3, &a), p = compute_atoms(&plain, &a),
                   e = expected(plain.ctx, &a, triples), wanted = sum_of(&p, &e);
    const double scale = fmax(fabs(e.energy), largest(3 * a.n, e.forces));
    expect_same(&c, &wanted, a.n, type == CLB_F64 ? 1e-11 : 1e-6 * (1 + scale));
    if (a.n > 1) assert_true(fabs(e.energy) > 1e-3 && largest(3 * a.n, e.forces) > 1e-3);
  }
  close_model(&d3);
  close_model(&plain);
}

static void sums_f64(void **state) {
  (void)state;
  expect_sums("cpu", CLB_F64, true);
}
static void sums_f32(void **state) {
  (void)state;
  expect_sums("cpu", CLB_F32, false);
}
static void sums_interpreter(void **state) {
  (void)state;
  expect_sums("cpu:interpreter", CLB_F64, false);
}

/* Steps that are replayed, and models that work in blocks. */
static void steps(void **state) {
  (void)state;
  const clb_model_options with = options(CLB_F64, "pbe");
  clb_model_options other = with;
  opened o = open_made("cpu", MODEL, &with);
  for (int blocked = 0; blocked < 2; blocked++) {
    other.skin = blocked ? 0 : 0.6;
    other.block_atoms = blocked ? 3 : 0;
    opened p = open_made("cpu", MODEL, &other);
    atom_set a = atoms_of(7, 3, 70);
    for (int step = 0; step < 5; step++) {
      const computed c = compute_atoms(&o, &a), d = compute_atoms(&p, &a);
      expect_same(&d, &c, a.n, 1e-11);
      for (int i = 0; i < 3 * a.n; i++) a.positions[i] += 0.02 * (i % 3 - 1);
      a.positions[4] += 0.03;
    }
    assert_true(blocked || p.model->step.recording); /* was recorded */
    close_model(&p);
  }
  close_model(&o);
}

/* Structures at once, also between two calls for one, which has its grid again. */
static void many(void **state) {
  (void)state;
  enum { N = 4 };
  const clb_model_options with = options(CLB_F64, "pbe");
  opened o = open_made("cpu", MODEL, &with);
  static atom_set a[N];
  static computed one[N], all[N];
  static double v_atom[9 * MAX_ATOMS * N], alone[9 * MAX_ATOMS];
  double *parts[N];
  clb_model_atoms atoms[N];
  clb_model_results results[N];
  for (int i = 0; i < N; i++) {
    a[i] = atoms_of(3 + 2 * i, i, 20 + (uint64_t)i);
    if (i == 1) a[i].n = 0;
    one[i] = compute_atoms(&o, &a[i]);
    atoms[i] = (clb_model_atoms){a[i].n,
                                 a[i].species,
                                 a[i].positions,
                                 a[i].cell,
                                 {a[i].periodic[0], a[i].periodic[1], a[i].periodic[2]},
                                 .charge = 0};
    parts[i] = v_atom + 9 * MAX_ATOMS * i;
    results[i] =
        (clb_model_results){&all[i].energy, all[i].e_atom, all[i].forces, all[i].stress, parts[i]};
  }
  OK(o.ctx, clb_model_compute_many(o.model, N, atoms, results));
  for (int i = 0; i < N; i++) {
    double virial[9] = {0}, wanted[9];
    expect_same(&all[i], &one[i], a[i].n, 1e-11);
    OK(o.ctx, clb_model_compute(o.model, &atoms[i], &(clb_model_results){.v_atom = alone}));
    close_to("v_atom", 9 * a[i].n, parts[i], alone, 1e-10);
    for (int64_t k = 0; k < 9 * a[i].n; k++) {
      virial[k % 9] += alone[k];
      assert_true(alone[k] == alone[k / 9 * 9 + k % 3 * 3 + k % 9 / 3]);
    }
    for (int k = 0; k < 9; k++) wanted[k] = one[i].stress[k] * clb_cell_volume(a[i].cell);
    close_to("sum of v_atom", 9, virial, wanted, 1e-10);
  }
  const computed again = compute_atoms(&o, &a[N - 1]);
  assert_memory_equal(again.forces, one[N - 1].forces, (size_t)(3 * a[N - 1].n) * sizeof(double));
  close_model(&o);
}

/* Atoms that move on the device, in a cell that changes, and out of the grid of an open one. */
static void dynamics(void **state) {
  (void)state;
  for (int periodic = 0; periodic <= 3; periodic += 3) {
    const clb_model_options with = options(CLB_F64, "pbe");
    opened o = open_made("cpu", MODEL, &with), other = open_made("cpu", MODEL, &with);
    atom_set a = atoms_of(5, periodic, 40);
    double masses[5], v[15], cell[9];
    uint64_t seed = 9;
    for (int i = 0; i < 15; i++) masses[i % 5] = 1 + i % 5, v[i] = test_random(&seed);
    for (int i = 0; i < 9; i++) cell[i] = 1.05 * a.cell[i];
    const clb_model_atoms atoms = {
        a.n,        a.species, a.positions, a.cell, {periodic > 0, periodic > 0, periodic > 0},
        .charge = 0};
    clb_dynamics *d;
    clb_dynamics_view view;
    OK(o.ctx, clb_dynamics_create(o.model, &atoms, masses, v, NULL, &d));
    OK(o.ctx, clb_dynamics_compute(d, NULL, 1));
    for (int step = 0; step < 3; step++) {
      const clb_dynamics_move move = {.grow = 1, .reach = 1.3, .keep = 1, .grow_again = 1};
      OK(o.ctx, clb_dynamics_run(d, &move));
      OK(o.ctx, clb_dynamics_compute(d, step == 1 ? cell : NULL, 1));
      OK(o.ctx, clb_dynamics_see(d, &view));
      computed moved = {.energy = view.energy};
      OK(o.ctx, clb_dynamics_read(d, a.positions, NULL, moved.forces, NULL));
      if (step == 1) memcpy(a.cell, cell, sizeof a.cell);
      const computed c = compute_atoms(&other, &a);
      close_to("energy", 1, &view.energy, &c.energy, 1e-11);
      close_to("force", 3 * a.n, moved.forces, c.forces, 1e-10);
      close_to("stress", 9, view.stress, c.stress, 1e-10);
    }
    clb_dynamics_destroy(&d);
    close_model(&o);
    close_model(&other);
  }
}

static void expect_refused(clb_context *ctx, const char *path, clb_model_options o,
                           clb_status status, const char *words) {
  clb_model *m;
  NOT_OK(ctx, status, words, clb_model_open(ctx, path, &o, &m));
  assert_null(m);
}

static void refusals(void **state) {
  (void)state;
  char path[] = "/tmp/clebsch_made_XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  made_write(&made_models[MODEL], path, NULL, NULL);
  const clb_model_options with = options(CLB_F64, "pbe");
  opened o = open_file("cpu", path, &with);
  clb_model_options wrong = with;
  wrong.d3 = "pbe-d3";
  expect_refused(o.ctx, path, wrong, CLB_ERROR_ARGUMENT, "no parameters for 'pbe-d3'");
  wrong = with, wrong.d3_count_cutoff = 8.1;
  expect_refused(o.ctx, path, wrong, CLB_ERROR_ARGUMENT, "d3_count_cutoff 8.1");
  wrong = with, wrong.d3_cutoff = -1;
  expect_refused(o.ctx, path, wrong, CLB_ERROR_ARGUMENT, "d3_cutoff is -1");
  wrong = with, wrong.trains = 1, wrong.knots = CLB_NO_KNOTS;
  expect_refused(o.ctx, path, wrong, CLB_ERROR_UNSUPPORTED, "trains has no dispersion");
  close_model(&o);
  unlink(path);
}

static clb_status move(void *user, int backward, int64_t columns, clb_dtype type, const void *from,
                       void *to) {
  (void)user, (void)backward, (void)columns, (void)type, (void)from, (void)to;
  return CLB_OK;
}
/* Of one process. */
static clb_status gather(void *user, int64_t columns, const double *from, double *to) {
  const int *n = user;
  memcpy(to, from, (size_t)(*n * columns) * sizeof *to);
  return CLB_OK;
}

/* Local atoms and their images: results are those of the atoms in their cell. */
static void edges(void **state) {
  (void)state;
  enum { N = 5, IMAGES = 2 * N };
  const clb_model_options with = options(CLB_F64, "pbe");
  opened o = open_made("cpu", MODEL, &with);
  atom_set a = atoms_of(N, 1, 60);
  double x[3 * (N + IMAGES)], energy, forces[3 * (N + IMAGES)], virial[9], v_atom[9 * N], sum[9];
  int32_t species[N + IMAGES], images[IMAGES];
  memcpy(a.cell, (double[]){7, 0.3, 0, 0, 9, 0, 0, 0, 9}, sizeof a.cell);
  for (int i = 0; i < 3 * N; i++) a.positions[i] = fmod(a.positions[i] + 20, 4);
  for (int i = 0; i < N + IMAGES; i++) {
    const int side = i < N ? 0 : i < 2 * N ? -1 : 1;
    species[i] = a.species[i % N];
    if (i >= N) images[i - N] = i % N;
    for (int k = 0; k < 3; k++) x[3 * i + k] = a.positions[3 * (i % N) + k] + side * a.cell[k];
  }
  const computed c = compute_atoms(&o, &a);
  const clb_model_edge_results r = {
      .energy = &energy, .forces = forces, .virial = virial, .v_atom = v_atom};
  const clb_model_edges good = {.n_local = N,
                                .n_total = N + IMAGES,
                                .species = species,
                                .positions = x,
                                .search = 1,
                                .images = images,
                                .cell = a.cell,
                                .periodic = {1, 0, 0}};
  int n = N;
  const clb_model_exchange own = {.move = move, .user = &n, .gather = gather, .n_all = N};
  for (int again = 0; again < 4; again++) {
    clb_model_edges e = good;
    e.same_graph = again % 2;
    if (again >= 2) e.exchange = &own;
    OK(o.ctx, clb_model_compute_edges(o.model, &e, &r));
    close_to("energy", 1, &energy, &c.energy, 1e-11);
    close_to("force", 3 * N, forces, c.forces, 1e-10);
    memset(sum, 0, sizeof sum);
    for (int i = 0; i < 9 * N; i++) sum[i % 9] += v_atom[i] / clb_cell_volume(a.cell);
    for (int k = 0; k < 9; k++) virial[k] /= clb_cell_volume(a.cell);
    close_to("virial", 9, virial, c.stress, 1e-11);
    close_to("xx of v_atom", 1, sum, c.stress, 1e-11);
  }
  const int32_t strangers[IMAGES] = {-1}, absent[N + IMAGES] = {0, -1};
  const unsigned char counted[N] = {1};
  const clb_model_exchange alone = {.move = move, .n_all = N},
                           few = {.move = move, .gather = gather, .n_all = N - 1};
  static const char *const wrong[] = {"cell is NULL", "a ghost is no image", "an atom is absent",
                                      "some atoms may not count", "the exchange has no gather"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    clb_model_edges e = good;
    if (i == 0) e.cell = NULL;
    if (i == 1) e.images = strangers;
    if (i == 2) e.species = absent;
    if (i == 3) e.counted = counted;
    if (i == 4) e.exchange = &alone;
    NOT_OK(o.ctx, CLB_ERROR_UNSUPPORTED, wrong[i], clb_model_compute_edges(o.model, &e, &r));
  }
  clb_model_edges too_few = good;
  too_few.exchange = &few;
  NOT_OK(o.ctx, CLB_ERROR_ARGUMENT, "exchange.first is 0 and n_all 4; the 5 local atoms must be",
         clb_model_compute_edges(o.model, &too_few, &r));
  double vectors[3] = {1, 0, 0};
  const clb_model_edges of_vectors = {
      .n_local = 1, .n_total = 1, .species = species, .vectors = vectors};
  NOT_OK(o.ctx, CLB_ERROR_UNSUPPORTED, "there are no positions",
         clb_model_compute_edges(o.model, &of_vectors, &r));
  close_model(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_f64), cmocka_unit_test(sums_f32), cmocka_unit_test(sums_interpreter),
      cmocka_unit_test(steps),    cmocka_unit_test(many),     cmocka_unit_test(dynamics),
      cmocka_unit_test(edges),    cmocka_unit_test(refusals)};
  return cmocka_run_group_tests_name("model_dispersion", tests, NULL, NULL);
}
