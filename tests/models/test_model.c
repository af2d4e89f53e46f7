/* tests/models/test_model.c - made models: derivatives against differences, symmetries, both
   entries, on every device. */
#include "models/layers/kinds.h"
#include "tests/models/model_plain_mace.h"

static const clb_model_options f64 = {.dtype = CLB_F64, .knots = CLB_NO_KNOTS},
                               f32 = {.dtype = CLB_F32, .knots = CLB_NO_KNOTS};
enum { SMALL = 5, MAX_DEVICES = 8 };

static struct {
  int n;
  char name[MAX_DEVICES][32];
} devices;

/* A test-only Level Zero driver, which runs SPIR-V on a CPU; NULL: there is none. */
static const char *level_zero;

static void remember(const clb_device_info *info, void *user) {
  (void)user;
  if (level_zero && !strcmp(info->backend, "level_zero")) return; /* it has a test of its own */
  if (info->runs && info->f64 && devices.n < MAX_DEVICES &&
      (!strcmp(info->name, "cpu") || strcmp(info->backend, "cpu") != 0))
    snprintf(devices.name[devices.n++], sizeof *devices.name, "%s", info->name);
}

/* OpenCL on a CPU: one made model of NequIP and one of MACE are enough. */
static const int few_models[] = {MADE_AGNESI - 1, MADE_MODELS - 1};
static bool slow_to_compile(int device) { return !strncmp(devices.name[device], "opencl", 6); }

/* ---- comparisons ---- */

static void twice(opened *o, const atom_set *a, const computed *c) {
  const computed d = compute_atoms(o, a);
  assert_memory_equal(&d, c, sizeof d);
}

/* ---- energies ---- */

static void energies(void **state) {
  static const int charges[] = {1, 3}; /* of the one made model with repulsion */
  (void)state;
  for (int which = 0; which < MADE_MODELS; which++) {
    char path[] = "/tmp/clebsch_made_XXXXXX";
    close(mkstemp(path));
    made_write(&made_models[which], path, NULL, NULL);
    opened o = open_file("cpu:interpreter", path, &f64);
    for (uint64_t seed = 0; seed < 3; seed++) {
      double wanted[PLAIN_ATOMS];
      const atom_set a = random_atoms(SMALL, made_models[which].n_species, false, seed);
      const computed c = compute_atoms(&o, &a);
      if (made_mace(&made_models[which])) plain_mace_energies(path, &a, charges, wanted);
      else plain_energies(path, &a, wanted);
      close_to("e_atom", a.n, c.e_atom, wanted, 1e-11);
    }
    unlink(path);
    close_model(&o);
  }
}

/* ---- derivatives ---- */

static void stretch(atom_set *a, int i, int j, double strain) {
  for (int64_t p = 0; p < a->n; p++) a->positions[3 * p + j] += strain * a->positions[3 * p + i];
  for (int d = 0; d < 3; d++) a->cell[3 * d + j] += strain * a->cell[3 * d + i];
}

/* (E(x + h) - E(x - h)) / 2h, twice, so that the error is of 4th order. */
static void forces_are_differences(opened *o, atom_set a, double h, double max) {
  const computed c = compute_atoms(o, &a);
  const double scale = largest(3 * a.n, c.forces) + 1;
  for (int64_t i = 0; i < 3 * a.n; i++) {
    const double x = a.positions[i];
    double e[4];
    for (int k = 0; k < 4; k++) {
      a.positions[i] = x + h * (double[]){-2, -1, 1, 2}[k];
      e[k] = energy_of(o, &a);
    }
    a.positions[i] = x;
    close_to("force", 1, &c.forces[i], &(double){-(e[0] - 8 * e[1] + 8 * e[2] - e[3]) / (12 * h)},
             max * scale);
  }
}

static void stress_is_differences(opened *o, const atom_set *a) {
  const computed c = compute_atoms(o, a);
  const double *m = a->cell, h = 1e-3;
  const double volume =
      fabs(m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
           m[2] * (m[3] * m[7] - m[4] * m[6]));
  assert_true(largest(9, c.stress) > 1e-7);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      double e[4];
      for (int k = 0; k < 4; k++) {
        atom_set b = *a;
        stretch(&b, i, j, h * (double[]){-2, -1, 1, 2}[k]);
        e[k] = energy_of(o, &b);
      }
      close_to("stress", 1, &c.stress[3 * i + j],
               &(double){(e[0] - 8 * e[1] + 8 * e[2] - e[3]) / (12 * h) / volume},
               1e-8 * (largest(9, c.stress) + 1));
    }
}

static void derivatives(void **state) {
  (void)state;
  for (int which = 0; which < MADE_MODELS; which++) {
    opened o = open_made("cpu", which, &f64);
    for (int periodic = 0; periodic < 2; periodic++) {
      const atom_set a = random_atoms(SMALL, made_models[which].n_species, periodic, 3);
      forces_are_differences(&o, a, 1e-3, 1e-8);
      stress_is_differences(&o, &a);
    }
    atom_set slab = random_atoms(SMALL, made_models[which].n_species, true, 3);
    slab.periodic[which % 3] = 0;
    stress_is_differences(&o, &slab);
    close_model(&o);
  }
}

/* ---- tables ---- */

/* Forces converge with at least the 3rd power of the number of knots, they are derivatives of the
   energies that the tables give, and edges beyond the last knot are ignored. */
static void tables(void **state) {
  (void)state;
  for (int which = 0; which < MADE_MODELS; which++) {
    const atom_set a = random_atoms(SMALL, made_models[which].n_species, true, 8);
    double off[2], said[2];
    opened o = open_made("cpu:interpreter", which, &f64);
    const computed exact = compute_atoms(&o, &a);
    close_model(&o);
    for (int i = 0; i < 2; i++) {
      o = open_made("cpu:interpreter", which,
                    &(clb_model_options){.dtype = CLB_F64, .knots = i ? 400 : 100});
      const computed c = compute_atoms(&o, &a);
      clb_model_info info;
      assert_int_equal(clb_model_describe(o.model, &info), CLB_OK);
      said[i] = info.table_error;
      off[i] = 0;
      for (int64_t k = 0; k < 3 * a.n; k++)
        off[i] = fmax(off[i], fabs(c.forces[k] - exact.forces[k]));
      opened skin =
          open_made("cpu:interpreter", which,
                    &(clb_model_options){.dtype = CLB_F64, .knots = i ? 400 : 100, .skin = 1});
      const computed wide = compute_atoms(&skin, &a);
      expect_same(&wide, &c, a.n, 1e-11);
      forces_are_differences(&o, a, 1e-4, 1e-6);
      close_model(&skin);
      close_model(&o);
    }
    if (!(off[0] < 1e-3 * largest(3 * a.n, exact.forces) && off[1] < off[0] / 20))
      fail_msg("model %d: off by %g with 100 knots, by %g with 400", which, off[0], off[1]);
    const double less = said[0] / said[1]; /* by the fourth power of 399 / 99 */
    if (!(said[0] < 1e-2 && less > 100 && less < 600))
      fail_msg("model %d: tables are said to be off by %g and %g", which, said[0], said[1]);
  }
}

static void tables_everywhere(void **state) {
  (void)state;
  computed first = {0};
  for (int i = 0; i < devices.n; i++)
    for (int single = 0; single < 2; single++) {
      if (slow_to_compile(i)) continue;
      const atom_set a = random_atoms(7, made_models[0].n_species, true, 5);
      opened o = open_made(devices.name[i], 0,
                           &(clb_model_options){.dtype = single ? CLB_F32 : CLB_F64, .knots = 64});
      const computed c = compute_atoms(&o, &a);
      if (!i && !single) first = c;
      expect_same(&c, &first, a.n, single ? 3e-5 : 1e-11);
      twice(&o, &a, &c);
      close_model(&o);
    }
}

/* ---- symmetries ---- */

/* x R for the rotation by an angle about each axis in turn. */
static void rotate(int64_t n, double *x) {
  for (int axis = 0; axis < 3; axis++)
    for (int64_t i = 0; i < n; i++) {
      double *a = &x[3 * i + (axis + 1) % 3], *b = &x[3 * i + (axis + 2) % 3], c = cos(0.7 + axis),
             s = sin(0.7 + axis), old = *a;
      *a = c * old - s * *b;
      *b = s * old + c * *b;
    }
}

static void rotated(opened *o, const atom_set *a, const computed *c) {
  atom_set b = *a;
  computed d, turned = *c;
  rotate(b.n, b.positions);
  rotate(3, b.cell);
  d = compute_atoms(o, &b);
  rotate(b.n, turned.forces);
  for (int side = 0; side < 2; side++) {
    rotate(3, turned.stress);
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < i; j++) {
        const double x = turned.stress[3 * i + j];
        turned.stress[3 * i + j] = turned.stress[3 * j + i];
        turned.stress[3 * j + i] = x;
      }
  }
  expect_same(&d, &turned, a->n, 1e-10);
}

static void permuted(opened *o, const atom_set *a, const computed *c) {
  atom_set b = *a;
  computed d, back = {.energy = 0};
  for (int64_t i = 0; i < a->n; i++) {
    const int64_t to = (i + 2) % a->n;
    b.species[to] = a->species[i];
    memcpy(&b.positions[3 * to], &a->positions[3 * i], 3 * sizeof *b.positions);
  }
  d = compute_atoms(o, &b);
  back.energy = d.energy;
  memcpy(back.stress, d.stress, sizeof back.stress);
  for (int64_t i = 0; i < a->n; i++) {
    back.e_atom[i] = d.e_atom[(i + 2) % a->n];
    memcpy(&back.forces[3 * i], &d.forces[3 * ((i + 2) % a->n)], 3 * sizeof *back.forces);
  }
  expect_same(&back, c, a->n, 1e-10);
}

/* Translated, with atoms in other images; mirrored. */
static void moved(opened *o, const atom_set *a, const computed *c) {
  atom_set b = *a;
  for (int64_t i = 0; i < a->n; i++)
    for (int k = 0; k < 3; k++)
      b.positions[3 * i + k] +=
          0.37 + (double)k +
          (a->periodic[0] ? (double)(i % 3 - 1) * a->cell[k] + (double)(i % 2) * a->cell[6 + k]
                          : 0);
  computed d = compute_atoms(o, &b);
  expect_same(&d, c, a->n, 1e-10);
  b = *a;
  for (int64_t i = 0; i < 3 * a->n; i++) b.positions[i] *= -1;
  d = compute_atoms(o, &b);
  for (int64_t i = 0; i < 3 * a->n; i++) d.forces[i] *= -1;
  expect_same(&d, c, a->n, 1e-10);
}

/* One atom; two that are 0.3 Angstrom apart; 1, 2 or 3 periodic directions of a cell that is
   smaller than the cutoff. */
static void few_atoms(void **state) {
  (void)state;
  for (int which = 0; which < MADE_MODELS; which++) {
    opened o = open_made("cpu", which, &f64);
    const atom_set near = {.n = 2, .species = {0, 1}, .positions = {0.1, 0.2, 0.3, 0.3, 0.4, 0.4}};
    const atom_set alone = {.n = 1, .species = {1}, .positions = {7, 8, 9}};
    const atom_set far = {.n = 2, .species = {0, 1}, .positions = {0, 0, 0, 0, 3.2, 0}};
    const computed one = compute_atoms(&o, &alone), apart = compute_atoms(&o, &far);
    close_to("energy of one of two", 1, &apart.e_atom[1], &one.energy, 1e-12);
    close_to("force", 3, one.forces, (double[3]){0}, 0);
    close_to("force", 6, apart.forces, (double[6]){0}, 0);
    forces_are_differences(&o, near, 1e-4, 1e-7);
    for (int directions = 1; directions < 7; directions++) {
      atom_set a = random_atoms(3, made_models[which].n_species, false, 4);
      for (int d = 0; d < 3; d++) a.periodic[d] = directions >> d & 1;
      const computed c = compute_atoms(&o, &a);
      forces_are_differences(&o, a, 1e-3, 1e-8);
      permuted(&o, &a, &c);
    }
    close_model(&o);
  }
}

/* Without a number of knots the library takes as many as its own estimate asks for, and calls as
   before give the same bits: no trace of that estimate is left. */
static void chooses_knots(void **state) {
  (void)state;
  for (int which = 0; which < MADE_MODELS; which++) {
    opened o = open_made("cpu", which, &(clb_model_options){.dtype = CLB_F64});
    clb_model_info info;
    clb_model_neighbours neighbours;
    assert_int_equal(clb_model_describe(o.model, &info), CLB_OK);
    assert_int_equal(clb_model_last_neighbours(o.model, &neighbours), CLB_OK);
    assert_int_equal(neighbours.rebuilds, 0);
    if (!info.knots) { /* the networks: no splines are good enough */
      assert_true(info.table_force_error == 0);
      close_model(&o);
      continue;
    }
    assert_true(info.table_force_error > 0 && info.table_force_error <= 1e-5);
    opened given =
        open_made("cpu", which, &(clb_model_options){.dtype = CLB_F64, .knots = info.knots});
    const atom_set a = random_atoms(7, made_models[which].n_species, true, 5);
    const computed is = compute_atoms(&o, &a), wanted = compute_atoms(&given, &a);
    assert_memory_equal(is.forces, wanted.forces, 3 * (size_t)a.n * sizeof *is.forces);
    close_model(&given);
    close_model(&o);
  }
}

/* Every device agrees with the first, in both precisions; on each, all of the above. */
static void symmetries(void **state) {
  (void)state;
  computed first = {0};
  for (int which = 0; which < MADE_MODELS; which++)
    for (int i = 0; i < devices.n; i++) {
      const bool slow = slow_to_compile(i);
      const atom_set a = random_atoms(7, made_models[which].n_species, true, 5);
      if (slow && which != few_models[0] && which != few_models[1]) continue;
      opened o = open_made(devices.name[i], which, &f64);
      const computed c = compute_atoms(&o, &a);
      if (!i) first = c;
      expect_same(&c, &first, a.n, 1e-11);
      assert_true(c.stress[1] == c.stress[3] && c.stress[2] == c.stress[6] &&
                  c.stress[5] == c.stress[7]);
      rotated(&o, &a, &c);
      permuted(&o, &a, &c);
      moved(&o, &a, &c);
      twice(&o, &a, &c);
      close_model(&o);
      if (slow) continue;
      o = open_made(devices.name[i], which, &f32);
      const computed single = compute_atoms(&o, &a);
      expect_same(&single, &first, a.n, 3e-5);
      twice(&o, &a, &single);
      close_model(&o);
    }
}

static bool is_framed(const opened *o) {
  const clb_network *n = &o->model->net;
  int l = 0;
  while (n->layer[l]->kind != &clb_convolution_kind) l++;
  return ((const clb_convolution_layer *)n->layer[l]->parameters)->framed;
}

/* On GPUs convolutions run in the edges' frames, which all layers share. */
static void in_frames(void **state) {
  static const int gpus[] = {LIMITS_NVIDIA, LIMITS_AMD, LIMITS_INTEL};
  int framed = 0;
  (void)state;
  for (int which = 0; which < MADE_MODELS; which++)
    for (int i = 0; i < 4; i++) {
      const atom_set a = random_atoms(9, made_models[which].n_species, i % 2, 5);
      const clb_model_options options = {.dtype = i == 3 ? CLB_F32 : CLB_F64,
                                         .knots = i % 2 ? 64 : CLB_NO_KNOTS};
      opened plain = open_made("cpu:interpreter", which, &options),
             o = open_made_as("cpu:interpreter", &device_limits[gpus[i % 3]].limits, which,
                              &options);
      framed += is_framed(&o);
      assert_false(is_framed(&plain));
      const computed expected = compute_atoms(&plain, &a), c = compute_atoms(&o, &a),
                     again = compute_atoms(&o, &a);
      expect_same(&c, &expected, a.n, i == 3 ? 3e-5 : 1e-11);
      expect_same(&again, &c, a.n, 0);
      close_model(&plain);
      close_model(&o);
    }
  assert_true(framed > MADE_MODELS);
}

/* The SPIR-V that a Level Zero device gets. */
static void through_spirv(void **state) {
  (void)state;
  if (!level_zero) {
    puts("skipped: there is no test-only Level Zero driver here, or sanitizers refuse what it "
         "loads");
    skip();
  }
  for (int k = 0; k < 4; k++) {
    const int which = few_models[k / 2], i = k % 2;
    if (!long_tests() && i != k / 2) continue; /* compiling takes long */
    const atom_set a = random_atoms(7, made_models[which].n_species, true, 5);
    const clb_model_options options = {.dtype = i ? CLB_F32 : CLB_F64,
                                       .knots = i ? 64 : CLB_NO_KNOTS};
    opened plain = open_made("cpu:interpreter", which, &options),
           o = open_made("level_zero", which, &options);
    const computed expected = compute_atoms(&plain, &a), c = compute_atoms(&o, &a);
    expect_same(&c, &expected, a.n, i ? 3e-5 : 1e-11);
    close_model(&plain);
    close_model(&o);
  }
}

int main(void) {
#if !defined(__SANITIZE_ADDRESS__)
  level_zero = getenv("CLB_TEST_FAKE_LEVEL_ZERO");
#endif
  if (level_zero) setenv("ZE_ENABLE_ALT_DRIVERS", level_zero, 1);
  snprintf(devices.name[devices.n++], sizeof *devices.name, "cpu:interpreter");
  clb_devices(remember, NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chooses_knots), cmocka_unit_test(energies),
      cmocka_unit_test(derivatives),   cmocka_unit_test(few_atoms),
      cmocka_unit_test(tables),        cmocka_unit_test(tables_everywhere),
      cmocka_unit_test(symmetries),    cmocka_unit_test(in_frames),
      cmocka_unit_test(through_spirv)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
