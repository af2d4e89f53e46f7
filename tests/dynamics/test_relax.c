/* tests/dynamics/test_relax.c - `clebsch relax`: minima, cells, and what it refuses; on all devices
   that run. */
#include "tests/dynamics/md_runner.h"

#include <math.h>

static const char salt[] = "LHHLHLLH"; /* L: Li */

/* ---- frames ---- */

typedef struct {
  int n;
  double cell[9], energy, stress[9], x[8][3], f[8][3];
} frame;

static void numbers_after(const char *text, const char *name, int n, double *out) {
  char *at = strstr(text, name);
  if (!at) fail_msg("no %s", name);
  at += strlen(name);
  for (int i = 0; i < n; i++) out[i] = strtod(at, &at);
}

static frame frame_of(const char *path) {
  frame r = {0};
  char *text = get_text(path), *line = text;
  assert_true(text && sscanf(text, "%d", &r.n) == 1 && r.n <= 8);
  if (strstr(text, "Lattice")) {
    numbers_after(text, "Lattice=\"", 9, r.cell);
    numbers_after(text, "stress=\"", 9, r.stress);
  }
  numbers_after(text, "energy=", 1, &r.energy);
  line = strchr(line, '\n') + 1; /* the second line */
  for (int i = 0; i < r.n; i++) {
    double *x = r.x[i], *f = r.f[i];
    line = strchr(line, '\n') + 1;
    assert_int_equal(sscanf(line, "%*s %lf %lf %lf %lf %lf %lf", x, x + 1, x + 2, f, f + 1, f + 2),
                     6);
  }
  free(text);
  return r;
}

static void put_frame(const char *path, const char *symbols, const frame *r, double grow) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f, "%d\nLattice=\"", r->n);
  for (int k = 0; k < 9; k++) fprintf(f, "%s%.17g", k ? " " : "", grow * r->cell[k]);
  fputs("\" pbc=\"T T T\"\n", f);
  for (int i = 0; i < r->n; i++)
    fprintf(f, "%s %.17g %.17g %.17g\n", symbols[i] == 'L' ? "Li" : "H", grow * r->x[i][0],
            grow * r->x[i][1], grow * r->x[i][2]);
  assert_int_equal(fclose(f), 0);
}

static double largest_force(const frame *r) {
  double most = 0;
  for (int i = 0; i < r->n; i++)
    most = fmax(most,
                sqrt(r->f[i][0] * r->f[i][0] + r->f[i][1] * r->f[i][1] + r->f[i][2] * r->f[i][2]));
  return most;
}

static double volume_of(const double a[9]) {
  return fabs(a[0] * (a[4] * a[8] - a[5] * a[7]) - a[1] * (a[3] * a[8] - a[5] * a[6]) +
              a[2] * (a[3] * a[7] - a[4] * a[6]));
}

/* Lithium hydride with the repulsion of nuclei, off its places and in a skewed cell. */
static int make_salt(void **state) {
  if (make_work(state)) return -1;
  made_write(&made_models[MADE_AGNESI], "hard", NULL, NULL);
  frame r = {.n = 8, .cell = {4.2, 0, 0, 0.1, 4.1, 0, 0, 0.2, 4}};
  for (int i = 0; i < 8; i++)
    for (int k = 0; k < 3; k++) r.x[i][k] = 2.05 * (i >> k & 1) + 0.1 * sin(3 * i + k);
  put_frame("salt.xyz", salt, &r, 1);
  return 0;
}

/* ---- minima ---- */

static void finds_minima(void **state) {
  (void)state;
  expect_clebsch("energy -m hard -s salt.xyz --exact --out before.xyz", 0, NULL);
  expect_clebsch("relax -m hard -s salt.xyz --exact --out r.xyz --max-force 1e-5", 0, NULL);
  const frame before = frame_of("before.xyz"), after = frame_of("r.xyz");
  assert_true(largest_force(&after) < 1e-5 && after.energy < before.energy - 1e-3);
  assert_memory_equal(before.cell, after.cell, sizeof after.cell);
  for (int i = 0; i < 3; i++) { /* it is no saddle, as far as these moves tell */
    frame moved = after;
    for (int a = 0; a < 8; a++)
      for (int k = 0; k < 3; k++) moved.x[a][k] += 0.01 * sin(1 + 5 * i + 3 * a + k);
    put_frame("moved.xyz", salt, &moved, 1);
    expect_clebsch("energy -m hard -s moved.xyz --exact --out m.xyz", 0, NULL);
    assert_true(frame_of("m.xyz").energy > after.energy);
  }
}

/* With the pressure outside, the enthalpy has its minimum at the relaxed cell. */
static void finds_cells(void **state) {
  (void)state;
  static const char *const kinds[] = {"volume", "all"};
  const double outside = 20 / 160.2176634;
  const frame before = frame_of("before.xyz");
  for (int kind = 0; kind < 2; kind++) {
    expect_clebsch(format("relax -m hard -s salt.xyz --exact --out c.xyz --max-force 1e-5 "
                          "--max-stress 1e-3 --pressure 20 --cell %s",
                          kinds[kind]),
                   0, NULL);
    const frame r = frame_of("c.xyz");
    double enthalpy[3], trace = 0;
    assert_true(largest_force(&r) < 1e-5);
    for (int k = 0; k < 9; k++) {
      const double left = r.stress[k] + (k % 4 ? 0 : outside);
      trace += k % 4 ? 0 : left;
      assert_true(kind == 0 || fabs(left) < 1.001e-3 / 160.2176634);
      if (!kind) assert_true(fabs(r.cell[k] - r.cell[0] / before.cell[0] * before.cell[k]) < 1e-9);
    }
    assert_true(fabs(trace) / 3 < 1.001e-3 / 160.2176634);
    for (int i = 0; i < 3; i++) {
      put_frame("grown.xyz", salt, &r, 1 + 0.003 * (i - 1));
      expect_clebsch("energy -m hard -s grown.xyz --exact --out g.xyz", 0, NULL);
      const frame g = frame_of("g.xyz");
      enthalpy[i] = g.energy + outside * volume_of(g.cell);
    }
    assert_true(enthalpy[1] < enthalpy[0] && enthalpy[1] < enthalpy[2]);
  }
}

static void runs_on_devices(void **state) {
  (void)state;
  static const char *const devices[] = {"cpu:interpreter", "opencl:0"};
  expect_clebsch("relax -m model -s pair.xyz --exact --out p.xyz --max-force 1e-4", 0, NULL);
  const frame wanted = frame_of("p.xyz");
  for (int d = 0; d < 2; d++) {
    if (strstr(devices[d], "opencl") &&
        ended(start_clebsch(format("energy -m model -s pair.xyz --exact --device %s", devices[d]))))
      continue;
    expect_clebsch(format("relax -m model -s pair.xyz --exact --out p.xyz --max-force 1e-4 "
                          "--device %s",
                          devices[d]),
                   0, NULL);
    const frame there = frame_of("p.xyz");
    assert_true(fabs(there.energy - wanted.energy) < 1e-7);
  }
}

/* ---- ends ---- */

static void says_what_is_left(void **state) {
  (void)state;
  unlink("left.xyz");
  expect_clebsch("relax -m model -s atoms.xyz --out left.xyz --steps 1", 1,
                 "atoms.xyz: not relaxed after 1 steps: the largest force is ");
  assert_int_equal(frame_of("left.xyz").n, 6);
  expect_clebsch("relax -m model -s atoms.xyz --out left.xyz --steps 0 --cell all --max-force 1000",
                 1, " eV/A, the stress that is left ");
  char *out = printed_by("relax -m model -s atoms.xyz --out left.xyz --max-force 1000");
  assert_true(strstr(out, "step 0: ") && !strstr(out, "step 1: ") &&
              strstr(out, "left.xyz: 0 steps"));
  free(out);
}

static void minds_its_arguments(void **state) {
  (void)state;
  static const refusal wrong[] = {
      {"-m model --out o", 2, "--structure is missing"},
      {"-m model -s atoms.xyz", 2, "--out is missing"},
      {"-m model -s atoms.xyz --out o --pressure 1", 2, "--pressure and --max-stress need --cell"},
      {"-m model -s atoms.xyz --out o --cell some", 2, "--cell is all or volume, not 'some'"},
      {"-m model -s atoms.xyz --out o --max-force 0", 2, "--max-force is a number from 1e-09"},
      {"-m model -s slab.xyz --out o --cell all", 1,
       "slab.xyz: --cell needs a cell that is periodic in three directions"},
      {"-m model -s pair.xyz --out o --cell volume", 1, "pair.xyz: --cell needs a cell"},
      {"-m model -s atoms.xyz --out atoms.xyz", 1, "atoms.xyz: is the structure (--structure)"},
  };
  expect_refusals("relax ", wrong, sizeof wrong / sizeof *wrong);
  expect_clebsch("relax --help", 0, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(finds_minima), cmocka_unit_test(finds_cells),
                                     cmocka_unit_test(runs_on_devices),
                                     cmocka_unit_test(says_what_is_left),
                                     cmocka_unit_test(minds_its_arguments)};
  return cmocka_run_group_tests(tests, make_salt, remove_folder);
}
