/* tests/dynamics/test_md_ensembles.c - thermostats and barostat of `clebsch md`: what they
   conserve, and the distributions of energies and volumes that they lead to. */
#include "tests/dynamics/md_runner.h"

#include <math.h>

#include "tools/common/philox.h"

enum { KINETIC = 3, TOTAL = 4, TEMPERATURE = 5, CONSERVED = 6, PRESSURE = 7, VOLUME = 8 };
static const double boltzmann = 8.617333262e-5, gpa = 160.2176634;

/* ---- moments ---- */

enum { ROWS = 20001 };
typedef struct {
  int n;
  double v[ROWS][9]; /* step, time, potential, kinetic, total, temperature, conserved, pressure,
                        volume */
} csv_table;

static const csv_table *table_of(const char *name) {
  static csv_table t;
  char line[256];
  FILE *f = fopen(name, "r");
  assert_non_null(f);
  t.n = 0;
  assert_true(fgets(line, sizeof line, f) &&
              !strcmp(line, "step,time_fs,potential_eV,kinetic_eV,total_eV,temperature_K,"
                            "conserved_eV,pressure_GPa,volume_A3\n"));
  while (t.n < ROWS && fgets(line, sizeof line, f)) {
    double *v = t.v[t.n++];
    const char *at = line;
    for (int k = 0; k < 9; k++) {
      char *end;
      v[k] = strtod(at, &end);
      assert_true(end > at && *end == (k < 8 ? ',' : '\n'));
      at = end + 1;
    }
  }
  fclose(f);
  return &t;
}

/* Mean of a power of the deviation from `from`, after the first tenth, and its standard error from
   30 blocks. */
static double moment(const csv_table *t, int column, double from, int power, double *error) {
  enum { BLOCKS = 30 };
  const int first = t->n / 10, each = (t->n - first) / BLOCKS;
  double mean = 0, square = 0;
  for (int b = 0; b < BLOCKS; b++) {
    double sum = 0;
    for (int i = 0; i < each; i++)
      sum += pow(t->v[first + b * each + i][column] - from, power) / each;
    mean += sum / BLOCKS;
    square += sum * sum / BLOCKS;
  }
  *error = sqrt((square - mean * mean) / (BLOCKS - 1));
  return mean;
}

/* That mean and variance are these, within errors that are small. */
static void expect_moments(const csv_table *t, int column, double mean, double variance) {
  double error[2];
  const double m = moment(t, column, 0, 1, &error[0]), v = moment(t, column, mean, 2, &error[1]);
  if (!(fabs(m - mean) < 4.5 * error[0] && error[0] < 0.15 * sqrt(variance)))
    fail_msg("column %d: mean %g +- %g, not %g", column, m, error[0], mean);
  if (!(fabs(v - variance) < 4.5 * error[1] && error[1] < 0.15 * variance))
    fail_msg("column %d: variance %g +- %g, not %g", column, v, error[1], variance);
}

static void draws_gamma_deviates(void **state) {
  (void)state;
  static const double shapes[] = {1, 1.5, 40};
  enum { N = 40000 };
  for (int s = 0; s < 3; s++) {
    const double a = shapes[s];
    double mean = 0, variance = 0;
    for (int i = 0; i < N; i++) {
      const double x = gamma_deviate(7, i, -2, a);
      assert_true(x > 0);
      mean += x / N, variance += (x - a) * (x - a) / N;
    }
    if (!(fabs(mean - a) < 4.5 * sqrt(a / N) &&
          fabs(variance - a) < 4.5 * sqrt((2 * a * a + 6 * a) / N)))
      fail_msg("shape %g: mean %g, variance %g", a, mean, variance);
  }
}

/* ---- what is conserved ---- */

static double span_of(const csv_table *t, int column) {
  double low = INFINITY, high = -INFINITY;
  for (int i = 0; i < t->n; i++)
    low = fmin(low, t->v[i][column]), high = fmax(high, t->v[i][column]);
  return high - low;
}

/* A quarter of the error with half the step where there are no random numbers, which differ. */
static void conserves(void **state) {
  (void)state;
  static const struct {
    const char *how;
    bool random;
  } runs[] = {{"--nose-hoover 40", false},
              {"--nose-hoover 40 --pressure 2 --barostat 100", false},
              {"--bussi 40", true},
              {"--bussi 40 --pressure 2 --barostat 100", true},
              {"--langevin 25 --pressure 2 --barostat 100", true}};
  for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
    double span[2];
    for (int half = 0; half < (runs[r].random ? 1 : 2); half++) {
      expect_clebsch(format("md -m model -s atoms.xyz -T 300 --dtype f64 --csv e.csv --force "
                            "--steps %d --dt %g --every %d %s",
                            half ? 400 : 200, half ? 0.25 : 0.5, half ? 2 : 1, runs[r].how),
                     0, NULL);
      const csv_table *t = table_of("e.csv");
      assert_int_equal(t->n, 201);
      span[half] = span_of(t, CONSERVED);
      if (!(span[half] < 0.03 * span_of(t, TOTAL)))
        fail_msg("%s: %g eV of %g", runs[r].how, span[half], span_of(t, TOTAL));
      const bool still = !strstr(runs[r].how, "pressure");
      assert_true(still == (span_of(t, VOLUME) == 0));
    }
    if (!runs[r].random && !(span[1] < 0.35 * span[0]))
      fail_msg("%s: %g eV, %g with half the step", runs[r].how, span[0], span[1]);
  }
}

/* ---- devices ---- */

/* The same steps on every kind of device, as far as rounding goes. */
static void runs_on_devices(void **state) {
  (void)state;
  static const char *const devices[] = {"cpu", "cpu:interpreter", "opencl:0"},
                           *const how[] = {"--nose-hoover 40 --pressure 2 --barostat 100",
                                           "--langevin 25 --pressure 2 --barostat 100"};
  static double wanted[2][9];
  for (int d = 0; d < 3; d++) {
    if (strstr(devices[d], "opencl") &&
        ended(start_clebsch(format("energy -m model -s pair.xyz --exact --device %s", devices[d]))))
      continue;
    for (int h = 0; h < 2; h++) {
      expect_clebsch(format("md -m model -s atoms.xyz -T 300 --exact --csv d.csv --force --steps 6 "
                            "--dt 1 --every 6 --device %s %s",
                            devices[d], how[h]),
                     0, NULL);
      const csv_table *t = table_of("d.csv");
      for (int k = 0; k < 9 && !d; k++) wanted[h][k] = t->v[1][k];
      for (int k = 0; k < 9; k++)
        if (!(fabs(t->v[1][k] - wanted[h][k]) < 1e-7 * (1 + fabs(wanted[h][k]))))
          fail_msg("%s, column %d: %.12g, not %.12g", devices[d], k, t->v[1][k], wanted[h][k]);
    }
  }
}

/* ---- an ideal gas ---- */

enum { ATOMS = 16 };

/* Atoms that never meet. */
static void put_gas(void) {
  FILE *f = fopen("gas.xyz", "w");
  assert_non_null(f);
  fprintf(f, "%d\nLattice=\"4e4 0 0 0 4e4 0 0 0 4e4\" pbc=\"T T T\"\n", ATOMS);
  for (int i = 0; i < ATOMS; i++)
    fprintf(f, "%s %d %d %d\n", i % 2 ? "O" : "H", i / 4 % 2 * 10000, i / 2 % 2 * 10000,
            i % 2 * 10000 + i / 8 * 20000);
  assert_int_equal(fclose(f), 0);
}

/* Kinetic energies are canonical: sums of so many squares of normal deviates. */
static void finds_kinetic_energies(void **state) {
  (void)state;
  put_gas();
  static const struct {
    const char *how;
    int freedom;
  } runs[] = {{"--bussi 8", 3 * ATOMS - 3}, {"--langevin 60", 3 * ATOMS}};
  for (int r = 0; r < 2; r++) {
    expect_clebsch(format("md -m model -s gas.xyz --steps 2500 --dt 3 -T 400 --every 1 --csv k.csv "
                          "--force %s",
                          runs[r].how),
                   0, NULL);
    const csv_table *t = table_of("k.csv");
    const double kt = boltzmann * 400, n = runs[r].freedom;
    expect_moments(t, KINETIC, n / 2 * kt, n / 2 * kt * kt);
    assert_true(fabs(t->v[9][TEMPERATURE] - 2 * t->v[9][KINETIC] / n / boltzmann) < 1e-3);
    assert_true(fabs(t->v[9][PRESSURE] / gpa * 1.5 * t->v[9][VOLUME] / t->v[9][KINETIC] - 1) <
                1e-7);
    assert_true(span_of(t, CONSERVED) < 1e-6); /* the model's, without neighbours, is exact */
  }
}

/* p(V) = V^n exp(-P V / k T), with n one less where the total momentum is 0. */
static void finds_volumes(void **state) {
  (void)state;
  put_gas();
  const double kt = boltzmann * 400, pressure = ATOMS * kt / 6.4e13;
  static const char *const how[] = {"--bussi 40", "--langevin 25"};
  for (int r = 0; r < 2; r++) {
    expect_clebsch(format("md -m model -s gas.xyz --steps 4000 --dt 6 -T 400 --every 1 --csv v.csv "
                          "--force --pressure %.17g --barostat 60 %s",
                          pressure * gpa, how[r]),
                   0, NULL);
    const double unit = kt / pressure;
    expect_moments(table_of("v.csv"), VOLUME, unit * (ATOMS + r), unit * unit * (ATOMS + r));
  }
}

/* The cell keeps its shape, and atoms at rest their places in it. */
static void keeps_the_shape(void **state) {
  (void)state;
  put_text("skew.xyz", "2\nLattice=\"100 0 0 20 90 0 10 -10 110\" pbc=\"T T T\"\n"
                       "H 10 20 30\nO 60 70 80\n");
  expect_clebsch(
      "md -m model -s skew.xyz --steps 20 --dt 1 -T 1e-3 --nose-hoover 1000 --pressure 0 "
      "--barostat 100 --every 20 --trajectory s.xyz",
      0, NULL);
  char *text = get_text("s.xyz"), *last = text;
  for (char *c = text; (c = strstr(c, "Lattice=\"")); c++) last = c;
  double a[9], x[6];
  char *end = last + 9;
  for (int k = 0; k < 9; k++) a[k] = strtod(end, &end);
  assert_true(sscanf(strstr(last, "\nH "), "\nH %lf %lf %lf", x, x + 1, x + 2) == 3);
  assert_true(sscanf(strstr(last, "\nO "), "\nO %lf %lf %lf", x + 3, x + 4, x + 5) == 3);
  static const double was[] = {100, 0, 0, 20, 90, 0, 10, -10, 110}, at[] = {10, 20, 30, 60, 70, 80};
  const double grown = a[0] / 100;
  assert_true(grown > 1.001); /* pushed by 3 k T */
  for (int k = 0; k < 9; k++) assert_true(fabs(a[k] - grown * was[k]) < 1e-11);
  for (int k = 0; k < 6; k++) assert_true(fabs(x[k] - grown * at[k]) < 3e-3);
  free(text);
}

/* A run that goes on without a barostat keeps the cell where it is. */
static void leaves_the_cell(void **state) {
  (void)state;
  expect_clebsch("md -m model -s atoms.xyz --dtype f64 --steps 40 --dt 0.5 -T 300 --nose-hoover 40 "
                 "--pressure 0 --barostat 50 --restart fixed --every 40",
                 0, NULL);
  expect_clebsch("md -m model --continue fixed --dtype f64 --steps 40 --dt 0.25 --every 1 --csv "
                 "fixed.csv",
                 0, NULL);
  const csv_table *t = table_of("fixed.csv");
  assert_true(t->n == 40 && span_of(t, VOLUME) == 0);
  assert_true(span_of(t, CONSERVED) < 0.03 * span_of(t, KINETIC));
}

static void refuses_no_atoms(void **state) {
  (void)state;
  put_text("none.xyz", "0\nLattice=\"4 0 0 0 4 0 0 0 4\" pbc=\"T T T\"\n");
  expect_clebsch("md -m model -s none.xyz --steps 1 --dt 1", 1, "none.xyz: there are no atoms");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(draws_gamma_deviates), cmocka_unit_test(conserves),
      cmocka_unit_test(runs_on_devices),      cmocka_unit_test(finds_kinetic_energies),
      cmocka_unit_test(finds_volumes),        cmocka_unit_test(keeps_the_shape),
      cmocka_unit_test(leaves_the_cell),      cmocka_unit_test(refuses_no_atoms)};
  return cmocka_run_group_tests(tests, make_work, remove_folder);
}
