/* tests/dynamics/test_hessian.c - `clebsch hessian` against differences of energies. */
#include "tests/command_json.h"
#include "tests/dynamics/model_folder.h"

enum { ATOMS = 6, N = 3 * ATOMS };
#define EXACT " --dtype f64 --knots 0 --json"

/* The matrix of a NumPy file of version 1. */
static void read_npy(const char *name, double h[N][N]) {
  static const char said[] = "'descr': '<f8', 'fortran_order': False, 'shape': (18, 18)";
  unsigned char head[128];
  FILE *f = fopen(name, "rb");
  assert_non_null(f);
  assert_int_equal(fread(head, 1, sizeof head, f), sizeof head);
  assert_memory_equal(head, "\x93NUMPY\x01\x00", 8);
  assert_int_equal(head[8] + 256 * head[9] + 10, sizeof head);
  assert_int_equal(head[127], '\n');
  head[127] = 0;
  assert_non_null(strstr((char *)head + 10, said));
  assert_int_equal(fread(h, sizeof **h, N * N, f), N * N);
  assert_int_equal(fgetc(f), EOF);
  fclose(f);
}

/* The energy with all atoms displaced along v. */
static double energy_at(const double v[N], double step) {
  static const char cell[] = "Lattice=\"4.3 0 0 0.2 4.1 0 0 0.1 4.4\" pbc=\"T T T\"";
  static const double x[N] = {0.1, 0.2, 0.3, 1.1, 0.2, 0.1, -0.2, 1.1, 0.4,
                              2.2, 2.3, 2.1, 3.1, 2.5, 2.2, 2.0,  2.2, 3.1};
  FILE *f = fopen("moved.xyz", "w");
  assert_non_null(f);
  fprintf(f, "6\n%s\n", cell);
  for (int i = 0; i < ATOMS; i++) {
    fputs(i % 3 ? "H" : "O", f);
    for (int k = 3 * i; k < 3 * i + 3; k++) fprintf(f, " %.17g", x[k] + step * v[k]);
    fputs("\n", f);
  }
  fclose(f);
  json_t *o = json_of("energy -r 1 --model model --structure moved.xyz" EXACT);
  const double e = number_of(o, "energy");
  json_decref(o);
  return e;
}

static void differentiates_twice(void **state) {
  static double h[N][N], v[N];
  const double step = 2e-3;
  uint64_t seed = 8;
  (void)state;
  json_t *o = json_of("hessian --model model --structure atoms.xyz --out h.npy -D 1e-3" EXACT);
  near_to("symmetry", number_of(o, "asymmetric"), 0, 1e-3);
  near_to("invariance", number_of(o, "translation"), 0, 1e-7);
  assert_int_equal(json_integer_value(json_object_get(o, "atoms")), ATOMS);
  json_decref(o);
  read_npy("h.npy", h);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < i; j++) assert_true(h[i][j] == h[j][i]);
  for (int turn = 0; turn < 2; turn++) {
    double curvature = 0, size = 0;
    for (int i = 0; i < N; i++) v[i] = test_random(&seed);
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) {
        curvature += v[i] * h[i][j] * v[j];
        size += fabs(v[i] * h[i][j] * v[j]);
      }
    const double found =
        (energy_at(v, step) - 2 * energy_at(v, 0) + energy_at(v, -step)) / (step * step);
    near_to("the curvature", curvature, found, 1e-3 * size);
  }
}

static void speaks_to_people(void **state) {
  (void)state;
  expect_printed("hessian -m model -s pair.xyz -o p.npy",
                 "written    p.npy: [6][6] eV/A^2, by 12 displacements of 0.01 A, ",
                 "\nerrors     at most ");
  put_text("empty.xyz", "0\n\n");
  expect_clebsch("hessian -m model -s empty.xyz -o e.npy", 0, NULL);
}

static void minds_its_arguments(void **state) {
  static const refusal wrong[] = {
      {"-m model -s atoms.xyz", 2, "--out is missing: the file of second derivatives"},
      {"-m model -o h.npy", 2, "--structure is missing"},
      {"-s atoms.xyz -o h.npy", 2, "--model is missing"},
      {"-m model -s atoms.xyz -o h.npy -D 0", 2, "--displacement is a number from 0.0001 to 0.5"},
      {"-m model -s atoms.xyz -o atoms.xyz", 1, "atoms.xyz: is the structure (--structure), too"},
      {"-m model -s nowhere.xyz -o h.npy", 1, "nowhere.xyz: No such file"},
      {"-m model -s near.xyz -o h.npy -D 0.1", 1, "near.xyz: clb_model_compute_many: structure "},
  };
  (void)state;
  put_text("one.xyz", "2\n\nO 0 0 0\nH 0 0 0\n"); /* no displaced structure has them in one place */
  expect_clebsch("hessian -m model -s one.xyz -o o.npy", 1, "are one place");
  put_text("near.xyz", "2\n\nO 0 0 0\nO 0.1 0 0\n"); /* displaced, one is on the other */
  expect_refusals("hessian ", wrong, sizeof wrong / sizeof *wrong);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(differentiates_twice),
                                     cmocka_unit_test(speaks_to_people),
                                     cmocka_unit_test(minds_its_arguments)};
  return cmocka_run_group_tests(tests, make_work, remove_folder);
}
