/* tests/dispersion/test_dispersion.c - D3 against dftd3 1.7.0 and by its properties, on every
   device that runs here. */
#include "tests/dispersion/dispersion_run.h"
#include "tests/fakes/simulated_devices.h"

static bool is_fast(void **state) { return !strcmp(((struct device *)*state)->name, "cpu"); }
/* There triples are computed in one type alone. */
static bool compiles_slowly(void **state) {
  return !strncmp(((struct device *)*state)->name, "opencl", 6);
}

/* ---- references ---- */

static void read_numbers(const json_t *from, double *to) {
  if (json_is_number(from)) *to = json_number_value(from);
  for (size_t i = 0; json_is_array(from) && i < json_array_size(from); i++) {
    const json_t *each = json_array_get(from, i);
    read_numbers(each, to + i * (json_is_array(each) ? json_array_size(each) : 1));
  }
}

static json_t *references(void) {
  char path[600];
  json_error_t error;
  snprintf(path, sizeof path, "%s/dispersion_reference.json", getenv("CLB_TEST_DATA"));
  json_t *all = json_load_file(path, 0, &error);
  if (!all) fail_msg("%s: %s", path, error.text);
  return all;
}

static molecule read_case(const json_t *r, dispersed *must) {
  molecule a = {.n = (int)json_array_size(json_object_get(r, "Z")),
                .functional = json_string_value(json_object_get(r, "functional")),
                .three_body = json_is_true(json_object_get(r, "three_body"))};
  for (int i = 0; i < a.n; i++)
    a.z[i] = (int)json_integer_value(json_array_get(json_object_get(r, "Z"), (size_t)i));
  read_numbers(json_object_get(r, "pos"), a.x);
  read_numbers(json_object_get(r, "cell"), a.cell);
  read_numbers(json_object_get(r, "cutoffs"), a.cutoffs);
  for (int d = 0; d < 3; d++)
    a.periodic[d] = json_is_true(json_array_get(json_object_get(r, "pbc"), (size_t)d));
  read_numbers(json_object_get(r, "E"), &must->energy);
  read_numbers(json_object_get(r, "F"), must->forces);
  read_numbers(json_object_get(r, "virial"), must->virial);
  return a;
}

/* Results that follow from others: sums of those of atoms, and symmetric virials. */
static void expect_consistent(const molecule *a, const dispersed *c, double off) {
  double energy = 0, virial[9] = {0};
  for (int i = 0; i < a->n; i++) {
    energy += c->energies[i];
    for (int k = 0; k < 9; k++) virial[k] += c->virials[9 * i + k];
    for (int k = 0; k < 9; k++)
      assert_true(c->virials[9 * i + k] == c->virials[9 * i + k % 3 * 3 + k / 3]);
  }
  near_to("sum of energies", 1, &energy, &c->energy, off);
  near_to("sum of virials", 9, virial, c->virial, off);
}

/* Covalent radii of dftd3 are in another Bohr, by 7e-10. */
static void expect_references(void **state, clb_dtype type, int most) {
  clb_context *ctx = context(state);
  json_t *all = references(), *r;
  const char *name;
  int n = 0;
  json_object_foreach(all, name, r) {
    dispersed must = {0};
    const molecule a = read_case(r, &must);
    const bool wide = a.cutoffs[0] > 20 && (a.periodic[0] || a.periodic[1] || a.periodic[2]);
    if (a.n > most || (wide && most < MOST)) continue;
    if (a.three_body && type == CLB_F64 && compiles_slowly(state)) continue;
    const dispersed c = disperse_one(ctx, type, &a);
    double scale = fabs(must.energy), off;
    for (int i = 0; i < 3 * a.n; i++) scale = fmax(scale, fabs(must.forces[i]));
    off = type == CLB_F64 ? 1e-8 * scale + 1e-13 : 3e-6 * scale;
    if (!(fabs(c.energy - must.energy) <= off))
      fail_msg("%s: energy is %.15g, not %.15g", name, c.energy, must.energy);
    near_to(name, 3 * a.n, c.forces, must.forces, off);
    for (int k = 0; k < 9; k++) scale = fmax(scale, fabs(must.virial[k]));
    off = type == CLB_F64 ? 1e-8 * scale + 1e-13 : 3e-6 * scale;
    near_to(name, 9, c.virial, must.virial, off);
    expect_consistent(&a, &c, 1e-12 + (type == CLB_F64 ? 0 : 1e-9 * scale));
    n++;
  }
  assert_true(n >= 4);
  json_decref(all);
}

static void references_f64(void **state) {
  expect_references(state, CLB_F64, is_fast(state) ? MOST : 15);
}
static void references_f32(void **state) {
  expect_references(state, CLB_F32, is_fast(state) ? MOST : 15);
}

/* ---- properties ---- */

static molecule random_molecule(uint64_t seed, bool periodic) {
  static const int z[] = {8, 1, 29, 6, 17, 57, 1};
  molecule a = {.n = 7,
                .cell = {5.1, 0.2, -0.3, 0.9, 4.8, 0.1, -0.4, 0.6, 3.4},
                .periodic = {periodic, periodic, periodic},
                .functional = "PBE0",
                .three_body = periodic,
                .cutoffs = {7, 5}};
  memcpy(a.z, z, sizeof z);
  for (int i = 0; i < a.n; i++)
    for (int k = 0; k < 3; k++)
      a.x[3 * i + k] =
          1.9 * (i >> k & 1) + 0.3 * test_random(&seed) + (i == 4 ? 20 * a.cell[k] : 0);
  if (!periodic) memcpy(a.x + 12, (double[]){9, 9, 9}, 3 * sizeof *a.x);
  return a;
}

static double energy_of(clb_context *ctx, const molecule *a) {
  return disperse_one(ctx, CLB_F64, a).energy;
}

/* Forces are minus the energy's derivatives, and the virial its derivative by strain, as long as no
   pair crosses a radius. */
static void derivatives(void **state) {
  clb_context *ctx = context(state);
  const double h = 1e-5;
  for (int periodic = 0; periodic < 2; periodic++) {
    molecule a = random_molecule(3, periodic);
    a.three_body = a.three_body && is_fast(state);
    const dispersed c = disperse_one(ctx, CLB_F64, &a);
    for (int i = 0; i < 3 * a.n; i += is_fast(state) ? 1 : 5) {
      double e[2];
      for (int side = 0; side < 2; side++) {
        molecule b = a;
        b.x[i] += side ? h : -h;
        e[side] = energy_of(ctx, &b);
      }
      near_to(periodic ? "force in a cell" : "force", 1, &c.forces[i],
              &(double){(e[0] - e[1]) / (2 * h)}, 1e-8);
    }
    for (int k = 0; k < 9; k += is_fast(state) ? 1 : 4) {
      double e[2];
      for (int side = 0; side < 2; side++) {
        molecule b = a;
        const double by = side ? h : -h;
        for (int i = 0; i < a.n; i++) b.x[3 * i + k / 3] += by * a.x[3 * i + k % 3];
        for (int d = 0; d < 3; d++) b.cell[3 * d + k / 3] += by * a.cell[3 * d + k % 3];
        e[side] = energy_of(ctx, &b);
      }
      near_to("virial", 1, &c.virial[k], &(double){(e[1] - e[0]) / (2 * h)}, 1e-7);
    }
  }
}

/* Turned atoms have turned forces; atoms in another order, the same in that order. */
static void symmetries(void **state) {
  clb_context *ctx = context(state);
  molecule a = random_molecule(5, true);
  a.three_body = is_fast(state);
  molecule turned = a, ordered = a;
  const double cosine = 0.8, sine = 0.6, turn[9] = {cosine, -sine, 0, sine, cosine, 0, 0, 0, 1};
  double wanted[3 * MOST];
  for (int i = 0; i < 3 * a.n; i++) turned.x[i] = 0;
  for (int i = 0; i < a.n; i++)
    for (int k = 0; k < 9; k++) turned.x[3 * i + k / 3] += turn[k] * a.x[3 * i + k % 3];
  for (int d = 0; d < 3; d++)
    for (int k = 0; k < 3; k++)
      turned.cell[3 * d + k] = turn[3 * k] * a.cell[3 * d] + turn[3 * k + 1] * a.cell[3 * d + 1] +
                               turn[3 * k + 2] * a.cell[3 * d + 2];
  for (int i = 0; i < a.n; i++) {
    ordered.z[a.n - 1 - i] = a.z[i];
    memcpy(ordered.x + 3 * (a.n - 1 - i), a.x + 3 * i, 3 * sizeof *a.x);
  }
  const dispersed c = disperse_one(ctx, CLB_F64, &a), t = disperse_one(ctx, CLB_F64, &turned),
                  o = disperse_one(ctx, CLB_F64, &ordered);
  for (int i = 0; i < a.n; i++)
    for (int k = 0; k < 3; k++)
      wanted[3 * i + k] = turn[3 * k] * c.forces[3 * i] + turn[3 * k + 1] * c.forces[3 * i + 1] +
                          turn[3 * k + 2] * c.forces[3 * i + 2];
  near_to("turned energy", 1, &t.energy, &c.energy, 1e-12);
  near_to("turned force", 3 * a.n, t.forces, wanted, 1e-12);
  for (int i = 0; i < a.n; i++)
    near_to("force in order", 3, o.forces + 3 * (a.n - 1 - i), c.forces + 3 * i, 1e-12);
}

/* Systems of one call are as each alone, also one without atoms; bins may be of any width; equal
   calls are equal to the bit. */
static void systems(void **state) {
  clb_context *ctx = context(state);
  static molecule all[4];
  static dispersed alone[4], together[4], again[4], coarse[4];
  for (int i = 0; i < 4; i++) all[i] = random_molecule(7 + (uint64_t)i, i % 2);
  all[1].n = 0, all[3].n = 1, all[0].three_body = !compiles_slowly(state);
  clb_dispersion *d = dispersion_of(ctx, CLB_F64, &all[0]);
  for (int i = 0; i < 4; i++) disperse(ctx, d, &all[i], 1, 6, &alone[i]);
  disperse(ctx, d, all, 4, 6, together);
  disperse(ctx, d, all, 4, 6, again);
  disperse(ctx, d, all, 4, 2, coarse);
  assert_true(clb_dispersion_bytes(d) > 0);
  clb_dispersion_destroy(&d);
  for (int i = 0; i < 4; i++) {
    const int n = all[i].n;
    near_to("energies", n, together[i].energies, alone[i].energies, 1e-13);
    near_to("forces", 3 * n, together[i].forces, alone[i].forces, 1e-12);
    near_to("virials", 9 * n, together[i].virials, alone[i].virials, 1e-12);
    near_to("forces in wide bins", 3 * n, coarse[i].forces, alone[i].forces, 1e-12);
    assert_memory_equal(together[i].forces, again[i].forces, (size_t)(3 * n) * sizeof(double));
  }
  assert_memory_equal(&together[0].energy, &again[0].energy, sizeof(double));
}

typedef struct {
  int n, first, rows, calls;
  double all[2][MOST]; /* coordination numbers, and slopes by them */
} others;

/* With rows for all atoms it keeps their numbers, of which it gives those of others to a part. */
static clb_status gather(void *user, int64_t columns, const double *from, double *to) {
  others *o = user;
  assert_true(columns == 1 && o->calls < 2);
  double *all = o->all[o->calls++];
  if (o->rows == o->n) memcpy(all, from, (size_t)o->n * sizeof *all);
  assert_memory_equal(from, all + o->first, (size_t)o->rows * sizeof *all);
  memcpy(to, all, (size_t)o->n * sizeof *all);
  return CLB_OK;
}

/* Rows of parts of the atoms, also of none, are those of all atoms, to the bit. */
static void parts(void **state) {
  enum { PARTS = 4 };
  clb_context *ctx = context(state);
  molecule a = random_molecule(11, true);
  a.three_body = !compiles_slowly(state);
  static dispersed out[PARTS];
  others o = {.n = a.n};
  const int first[PARTS] = {0, 0, 2, 2}, rows[PARTS] = {a.n, 2, 0, a.n - 2};
  clb_dispersion *d = dispersion_of(ctx, CLB_F64, &a);
  dispersed sum = {0};
  for (int p = 0; p < PARTS; p++) {
    o.first = first[p], o.rows = rows[p], o.calls = 0;
    disperse_part(
        ctx, d, &a, 1, 6,
        &(clb_dispersion_atoms){.first = o.first, .rows = o.rows, .gather = gather, .user = &o},
        &out[p]);
    assert_int_equal(o.calls, 2);
    const int n = rows[p], at = first[p];
    assert_memory_equal(out[p].energies, out[0].energies + at, (size_t)n * sizeof(double));
    assert_memory_equal(out[p].forces, out[0].forces + 3 * at, (size_t)(3 * n) * sizeof(double));
    assert_memory_equal(out[p].virials, out[0].virials + 9 * at, (size_t)(9 * n) * sizeof(double));
    for (int i = 3 * n; i < 3 * a.n; i++) assert_true(out[p].forces[i] == 0);
    sum.energy += p ? out[p].energy : 0;
    for (int k = 0; k < 9; k++) sum.virial[k] += p ? out[p].virial[k] : 0;
  }
  near_to("sum of parts' energies", 1, &sum.energy, &out[0].energy, 1e-13);
  near_to("sum of parts' virials", 9, sum.virial, out[0].virial, 1e-13);
  clb_dispersion_destroy(&d);
}

/* ---- what is refused, and what compiles ---- */

static void refusals(void **state) {
  clb_context *ctx = context(state);
  clb_dispersion_damping damping = {0};
  const molecule a = random_molecule(1, false);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "no parameters for 'pbe1'; there are for b1b95, ",
         clb_d3_damping(&ctx->error, "pbe1", &damping));
  OK(ctx, clb_d3_damping(&ctx->error, "r2SCAN", &damping));
  assert_true(damping.a1 == 0.49484001);
  OK(ctx, clb_d3_damping(&ctx->error, "cam-B3LYP", &damping));
  assert_true(damping.a1 == 0.3708);
  assert_true(damping.s9 == 0);
  OK(ctx, clb_d3_damping(&ctx->error, "B3-LYP-ATM", &damping));
  assert_true(damping.a1 == 0.3981 && damping.s9 > 0);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "no parameters for '-atm'",
         clb_d3_damping(&ctx->error, "-atm", &damping));
  clb_dispersion *d = dispersion_of(ctx, CLB_F64, &a);
  const int curium[] = {1, 96};
  OK(ctx, clb_d3_set_elements(ctx, d, 2, curium, (const bool[]){true, false}));
  NOT_OK(ctx, CLB_ERROR_UNSUPPORTED, "no parameters for atomic number 96",
         clb_d3_set_elements(ctx, d, 2, curium, (const bool[]){true, true}));
  clb_dispersion_destroy(&d);
}

static void compiles(void **state) {
  const struct device *on = *state;
  skip_where_sanitized(on->name);
  clb_context *ctx = context(state);
  const clb_dispersion_damping damping = {.s9 = 1, .radius = 5, .count_radius = 4};
  clb_dispersion *d; /* which has steps in double precision as well */
  OK(ctx, clb_dispersion_create(ctx, CLB_F32, &damping, &d));
  clb_dispersion_destroy(&d);
}

int main(void) {
  static const named_test tests[] = {{"references_f64", references_f64, false},
                                     {"derivatives", derivatives, true},
                                     {"references_f32", references_f32, false},
                                     {"symmetries", symmetries, true},
                                     {"systems", systems, false},
                                     {"parts", parts, false},
                                     {"refusals", refusals, true}};
  return run_on_all("dispersion", tests, sizeof tests / sizeof *tests, compiles);
}
