/* tests/dynamics/test_md.c - `clebsch md`: random numbers, energy and temperature of runs, files,
   restarts, signals. */
#include "tests/dynamics/md_runner.h"

#include <math.h>

#include "tools/dynamics/md_motion.h"
#include "tools/common/philox.h"
#include "tools/dynamics/md_series.h"

/* ---- parts ---- */

/* From Random123's own tests. */
static void counts_random_numbers(void **state) {
  (void)state;
  static const uint32_t cases[][10] = {
      {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
      {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
      {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
       0x94fdcceb, 0x5001e420, 0x24126ea1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t out[4];
    philox(cases[i], cases[i] + 4, out);
    assert_memory_equal(out, cases[i] + 6, sizeof out);
  }
}

static void draws_normal_deviates(void **state) {
  (void)state;
  enum { STEPS = 500, ATOMS = 200 };
  const double n = STEPS * ATOMS, expected[] = {0, 1, 0, 3};
  double moment[3][4] = {{0}}, product[3] = {0};
  for (int s = 0; s < STEPS; s++)
    for (int a = 0; a < ATOMS; a++) {
      double z[3];
      normal_triple(5, s, a, z);
      for (int k = 0; k < 3; k++) {
        double power = 1;
        for (int p = 0; p < 4; p++) moment[k][p] += (power *= z[k]) / n;
        product[k] += z[k] * z[(k + 1) % 3] / n;
      }
    }
  static const double spread[] = {1, 1.4143, 3.873,
                                  9.798}; /* standard deviations of z, z^2, z^3, z^4 */
  for (int k = 0; k < 3; k++) {
    for (int p = 0; p < 4; p++)
      assert_true(fabs(moment[k][p] - expected[p]) < 4.5 * spread[p] / sqrt(n));
    assert_true(fabs(product[k]) < 4.5 / sqrt(n));
  }
}

static void weighs_elements(void **state) {
  (void)state;
  static const struct {
    int z;
    double weight;
  } some[] = {{1, 1.008},   {6, 12.011},  {8, 15.999},  {14, 28.085}, {18, 39.95},  {19, 39.098},
              {26, 55.845}, {27, 58.933}, {28, 58.693}, {47, 107.87}, {52, 127.60}, {53, 126.90},
              {72, 178.49}, {79, 196.97}, {90, 232.04}, {91, 231.04}, {92, 238.03}, {118, 294}};
  for (size_t i = 0; i < sizeof some / sizeof *some; i++)
    assert_true(atomic_weights[some[i].z] == some[i].weight);
  for (int z = 1; z < CLB_ELEMENTS; z++) /* they grow, or fall a little for a few pairs */
    if (!(atomic_weights[z] > 0 && atomic_weights[z + 1] > atomic_weights[z] - 5))
      fail_msg("element %d", z);
}

/* A line through noise: its slope, and that the error estimate tells how far off it is. */
static void fits_drift(void **state) {
  (void)state;
  uint64_t seed = 3;
  int within = 0;
  enum { RUNS = 200 };
  for (int run = 0; run < RUNS; run++) {
    static md_series s;
    double noise = 0;
    s = (md_series){0};
    for (int i = 0; i < 5000; i++) { /* more than fits; errors are correlated over 20 steps */
      noise = 0.95 * noise + test_random(&seed);
      const double kinetic = 30 + test_random(&seed), wanted = -1e5 + 2e-3 * i + noise;
      series_add(&s, (const double[]){0.5 * i, wanted - kinetic, kinetic, 300, wanted});
    }
    assert_int_equal(s.per, 4);
    assert_int_equal(s.n, 1250);
    const md_drift d = series_drift(&s);
    assert_true(fabs(d.slope - 4e-3) < 5 * 2.3e-4); /* the spread of such slopes */
    within += fabs(d.slope - 4e-3) < 2 * d.error;
  }
  assert_in_range(within, RUNS * 80 / 100, RUNS * 99 / 100);
}

static void halves_series(void **state) {
  (void)state;
  static md_series s;
  for (int i = 0; i < 2 * SERIES_ROOM + 3; i++)
    series_add(&s, (const double[]){i, 2. * i, 0, 0, 0});
  assert_int_equal(s.per, 4);
  for (int i = 0; i < s.n; i++)
    assert_true(s.mean[i][SERIES_TIME] == 4 * i + 1.5 && s.mean[i][SERIES_POTENTIAL] == 8 * i + 3);
  s = (md_series){0};
  series_add(&s, (const double[SERIES_VALUES]){0});
  assert_true(isnan(series_drift(&s).slope));
}

/* ---- runs ---- */

typedef struct {
  int n;
  double v[64][6]; /* step, time, potential, kinetic, total, temperature */
} csv_rows;

static csv_rows csv_of(const char *name) {
  csv_rows r = {0};
  char line[256];
  FILE *f = fopen(name, "r");
  assert_non_null(f);
  assert_true(fgets(line, sizeof line, f) &&
              !strncmp(line, "step,time_fs,potential_eV,kinetic_eV,total_eV,temperature_K,", 60));
  while (fgets(line, sizeof line, f)) {
    double *v = r.v[r.n++];
    if (r.n > 64 ||
        sscanf(line, "%lf,%lf,%lf,%lf,%lf,%lf", v, v + 1, v + 2, v + 3, v + 4, v + 5) != 6)
      fail_msg("%s: %s", name, line);
  }
  fclose(f);
  return r;
}

static void keeps_energy(void **state) {
  (void)state;
  double span[2];
  for (int half = 0; half < 2;
       half++) { /* the error of velocity Verlet is proportional to the square of the step */
    expect_clebsch(
        half
            ? "md -m model -s atoms.xyz --steps 400 --dt 0.25 -T 300 --csv e.csv --force --every 16"
            : "md -m model -s atoms.xyz --steps 200 --dt 0.5 -T 300 --csv e.csv --force --every 8",
        0, NULL);
    const csv_rows r = csv_of("e.csv");
    double low = INFINITY, high = -INFINITY;
    assert_int_equal(r.n, 26);
    for (int i = 0; i < r.n; i++) {
      low = fmin(low, r.v[i][4]);
      high = fmax(high, r.v[i][4]);
      assert_true(r.v[i][1] == 4 * i);
      assert_true(fabs(r.v[i][2] + r.v[i][3] - r.v[i][4]) < 2e-9);
      assert_true(fabs(r.v[i][3] - 15 * 8.617333262e-5 / 2 * r.v[i][5]) <
                  1e-6); /* 15 degrees of freedom */
    }
    span[half] = high - low;
    assert_true(fabs(r.v[25][2] - r.v[0][2]) > 0.02); /* it moved */
  }
  if (!(span[0] < 2e-3 && span[1] < 0.35 * span[0]))
    fail_msg("the energy moves by %g eV, by %g with half the step", span[0], span[1]);
  char *out = get_text("out"), *drift = strstr(out, "drift        ");
  double slope = 0, error = 0;
  assert_true(drift && sscanf(drift, "drift %lf +- %lf meV/atom/ps", &slope, &error) == 2);
  if (!(fabs(slope) < 0.5 && error > 0 && error < 0.5)) fail_msg("%s", drift);
  free(out);
}

/* BAOAB with next to no friction is velocity Verlet. */
static void thermostat_moves_atoms(void **state) {
  (void)state;
  csv_rows r[2];
  for (int langevin = 0; langevin < 2; langevin++) {
    expect_clebsch(langevin
                       ? "md -m model -s atoms.xyz --steps 40 --dt 0.5 -T 300 --csv l.csv --force "
                         "--langevin 1e-9"
                       : "md -m model -s atoms.xyz --steps 40 --dt 0.5 -T 300 --csv l.csv --force",
                   0, NULL);
    r[langevin] = csv_of("l.csv");
  }
  assert_true(r[0].n == 5 && r[1].n == 5);
  for (int i = 0; i < 5; i++)
    assert_true(fabs(r[1].v[i][2] - r[0].v[i][2]) < 1e-5 &&
                fabs(r[1].v[i][3] - r[0].v[i][3]) < 1e-5);
  assert_true(fabs(r[0].v[4][2] - r[0].v[0][2]) > 0.01);
}

/* Free flight: atoms out of each other's reach move straight on, at a speed given by mass and
   temperature. */
static void drives_with_right_units(void **state) {
  (void)state;
  put_text("far.xyz", "2\n\nO 0 0 0\nH 0 0 50\n");
  expect_clebsch("md -m model -s far.xyz --steps 10 --dt 2 -T 300 --seed 3 --trajectory t.xyz "
                 "--csv t.csv --every 10",
                 0, NULL);
  FILE *f = fopen("t.xyz", "r");
  char line[512];
  double x[2][2][6];
  assert_non_null(f);
  for (int frame = 0; frame < 2; frame++) {
    assert_true(fgets(line, sizeof line, f) && !strcmp(line, "2\n"));
    assert_true(fgets(line, sizeof line, f) &&
                strstr(line, "Properties=species:S:1:pos:R:3:velo:R:3:masses:R:1:momenta:R:3 ") &&
                strstr(line, frame ? " time=20 " : " time=0 "));
    for (int i = 0; i < 2; i++) {
      double *p = x[frame][i];
      assert_true(fgets(line, sizeof line, f) &&
                  sscanf(line, i ? "H %lf %lf %lf %lf %lf %lf" : "O %lf %lf %lf %lf %lf %lf", p,
                         p + 1, p + 2, p + 3, p + 4, p + 5) == 6);
    }
  }
  assert_true(!fgets(line, sizeof line, f));
  fclose(f);
  double kinetic = 0;
  for (int k = 0; k < 3; k++) {
    for (int i = 0; i < 2; i++)
      assert_true(fabs(x[1][i][k] - x[0][i][k] - 20 * x[0][i][3 + k]) < 1e-12);
    assert_true(fabs(15.999 * x[0][0][3 + k] + 1.008 * x[0][1][3 + k]) <
                1e-14); /* no total momentum */
    kinetic +=
        (15.999 * x[0][0][3 + k] * x[0][0][3 + k] + 1.008 * x[0][1][3 + k] * x[0][1][3 + k]) / 2;
  }
  const csv_rows r = csv_of("t.csv");
  assert_true(r.n == 2 &&
              fabs(r.v[0][3] - kinetic * 103.642696562) < 2e-9); /* u Angstrom^2 / fs^2 in eV */
  assert_true(r.v[0][3] > 0.001);
}

/* Atoms that do not interact: friction and noise alone bring them to the temperature. */
static void thermostat_finds_temperature(void **state) {
  (void)state;
  FILE *f = fopen("gas.xyz", "w");
  assert_non_null(f);
  fprintf(f, "1000\n\n");
  for (int i = 0; i < 1000; i++)
    fprintf(f, "%s %d %d %d\n", i % 2 ? "O" : "H", i / 100 * 1000, i / 10 % 10 * 1000,
            i % 10 * 1000);
  fclose(f);
  expect_clebsch(
      "md -m model -s gas.xyz --steps 60 --dt 2 -T 400 --langevin 20 --csv g.csv --every 20", 0,
      NULL);
  const csv_rows r = csv_of("g.csv");
  assert_true(r.n == 4);
  for (int i = 0; i < 4; i++) assert_true(fabs(r.v[i][5] - 400) < 4.5 * 400 * sqrt(2. / 3000));
  /* from rest: T(t) = T (1 - exp(-2 friction t)), at 5 / ps */
  expect_clebsch("md -m model -s gas.xyz --steps 0 --dt 2 --restart cold", 0, NULL);
  expect_clebsch(
      "md -m model --continue cold --steps 60 --dt 2 -T 400 --langevin 5 --csv c.csv --every 20", 0,
      NULL);
  const csv_rows c = csv_of("c.csv");
  assert_true(c.n == 3);
  for (int i = 0; i < 3; i++) {
    const double expected = 400 * (1 - exp(-2 * 0.005 * c.v[i][1]));
    if (!(fabs(c.v[i][5] - expected) < 4.5 * expected * sqrt(2. / 3000)))
      fail_msg("%g K after %g fs, not %g", c.v[i][5], c.v[i][1], expected);
  }
}

/* ---- restarts ---- */

static void goes_on(const char *options, bool coupled) {
  expect_clebsch(
      format("md -m model -s atoms.xyz --steps 20 %s -T 2000 --seed 9 --every 5 --csv a.csv "
             "--trajectory a.xyz --forces --restart a --force",
             options),
      0, NULL);
  expect_clebsch(
      format("md -m model -s atoms.xyz --steps 10 %s -T 2000 --seed 9 --every 5 --csv b.csv "
             "--trajectory b.xyz --forces --restart b --force",
             options),
      0, NULL);
  expect_clebsch(
      format("md -m model --continue b --steps 10 %s%s --every 5 --csv b.csv --trajectory b.xyz "
             "--forces --restart b",
             options, coupled ? " -T 2000" : ""),
      0, NULL);
  same_files("a", "b");
  same_files("a.csv", "b.csv");
  same_files("a.xyz", "b.xyz");
  char *text = get_text("a");
  assert_true(!strncmp(text, "clebsch restart 3 bytes ", 24) && strstr(text, "\nstep 20 time "));
  free(text);
}

static void goes_on_bit_for_bit(void **state) {
  (void)state;
  goes_on("--dt 0.712345678", false);
  goes_on("--dt 1 --skin 0.3", false);
  goes_on("--dt 1 --skin 0", false);
  goes_on("--dt 1 --langevin 30 --dtype f32 --skin 1", true);
  goes_on("--dt 1 --bussi 20", true);
  goes_on("--dt 1 --nose-hoover 20 --pressure 1 --barostat 200", true);
  goes_on("--dt 1 --bussi 20 --pressure 1 --barostat 200 --skin 1", true);
}

/* ---- signals, arguments, files ---- */

static void ends_at_a_signal(void **state) {
  (void)state;
  static const int signals[] = {SIGINT, SIGTERM};
  for (int i = 0; i < 2; i++) {
    unlink("s.csv");
    unlink("s.xyz");
    unlink("s");
    unlink("s.svg");
    const pid_t pid =
        start_clebsch("md -m model -s atoms.xyz --steps 100000000 --dt 0.2 -T 300 --every 1000000 "
                      "--csv s.csv --trajectory s.xyz --restart s --plot s.svg");
    for (int wait = 0; wait < 6000 && access("s", F_OK); wait++)
      usleep(10000); /* until step 0 is recorded */
    usleep(200000);
    assert_int_equal(kill(pid, signals[i]), 0);
    assert_int_equal(ended(pid), 1);
    char *err = get_text("err"), *restart = get_text("s"), *trajectory = get_text("s.xyz"),
         *plot = get_text("s.svg");
    long long step = 0, written = 0;
    assert_int_equal(sscanf(err, "clebsch: stopped by a signal after step %lld\n", &step), 1);
    written = restart_step(restart);
    const csv_rows r = csv_of("s.csv");
    assert_true(step > 0 && step == written && r.n == 2 && r.v[1][0] == (double)step);
    assert_true(!strncmp(trajectory, "6\n", 2) &&
                strstr(trajectory + 2, "\n6\n")); /* two frames, the last one complete */
    int lines = 0;
    for (const char *c = trajectory; *c; c++) lines += *c == '\n';
    assert_int_equal(lines, 16);
    assert_true(strlen(plot) > 7 && !strcmp(plot + strlen(plot) - 7, "</svg>\n"));
    free(err);
    free(restart);
    free(trajectory);
    free(plot);
    expect_clebsch("md -m model --continue s --steps 1 --dt 0.2", 0, NULL);
  }
}

static void draws_plots(void **state) {
  (void)state;
  static const char *const parts[] = {"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ",
                                      "width=\"100%\"",
                                      "prefers-color-scheme:dark",
                                      "Temperature (K)",
                                      "Time (fs)",
                                      "eV/atom)",
                                      "drift "};
  expect_clebsch("md -m model -s atoms.xyz --steps 50 --dt 0.5 -T 300 --plot p.svg", 0, NULL);
  char *plot = get_text("p.svg");
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(plot, parts[i])) fail_msg("no %s", parts[i]);
  assert_true(!strstr(plot, "nan") && !strstr(plot, "inf") &&
              !strstr(plot, "http://www.w3.org/1999"));
  int curves = 0, points = 0;
  for (const char *c = plot; (c = strstr(c, "class=\"curve")); c++, curves++)
    for (const char *d = strstr(c, " d=\"") + 4; *d != '"'; d++) points += *d == 'L' || *d == 'M';
  assert_int_equal(curves, 5);
  assert_int_equal(points, 5 * 51);
  free(plot);
  expect_clebsch("md -m model -s atoms.xyz --steps 0 --dt 0.5 --plot p.svg", 0,
                 NULL); /* a single point */
  plot = get_text("p.svg");
  assert_true(plot && !strstr(plot, "nan") && !strstr(plot, "inf"));
  free(plot);
}

static void minds_its_arguments(void **state) {
  (void)state;
  static const refusal wrong[] = {
      {"-s atoms.xyz --steps 1 --dt 1", 2, "--model is missing"},
      {"-m model --steps 1 --dt 1", 2, "give --structure, or --continue, and not both"},
      {"-m model -s atoms.xyz --continue a --steps 1 --dt 1", 2,
       "give --structure, or --continue, and not both"},
      {"-m model -s atoms.xyz --dt 1", 2, "--steps is missing"},
      {"-m model -s atoms.xyz --steps 1", 2, "--dt is missing"},
      {"-m model -s atoms.xyz --steps 1 --dt 0", 2, "--dt is a number from 1e-06 to 1000, not '0'"},
      {"-m model -s atoms.xyz --steps 1 --dt nan", 2, "--dt is a number"},
      {"-m model -s atoms.xyz --steps -1 --dt 1", 2, "--steps is a whole number"},
      {"-m model -s atoms.xyz --steps 1 --dt 1 -T -3", 2, "--temperature is a number"},
      {"-m model -s atoms.xyz --steps 1 --dt 1 --langevin 3", 2, "--langevin needs --temperature"},
      {"-m model -s atoms.xyz --steps 1 --dt 1 --bussi 9", 2, "--bussi needs --temperature"},
      {"-m model -s atoms.xyz --steps 1 --dt 1 -T 0 --nose-hoover 9", 2,
       "--nose-hoover needs a --temperature above 0"},
      {"-m model -s atoms.xyz --steps 1 --dt 1 -T 9 --bussi 9 --langevin 9", 2,
       "--langevin, --bussi and --nose-hoover exclude each other"},
      {"-m model -s atoms.xyz --steps 1 --dt 1 -T 9 --bussi 0", 2,
       "--bussi is a number from 0.001"},
      {"-m model -s atoms.xyz --steps 1 --dt 1 -T 9 --pressure 1", 2,
       "--pressure needs --langevin"},
      {"-m model -s atoms.xyz --steps 1 --dt 1 -T 9 --bussi 9 --barostat 9", 2,
       "--barostat needs --pressure"},
      {"-m model -s slab.xyz --steps 1 --dt 1 -T 9 --bussi 9 --pressure 1", 1,
       "slab.xyz: --pressure needs a cell that is periodic in three directions"},
      {"-m model -s one.xyz --steps 1 --dt 1 -T 9 --bussi 9", 1, "one.xyz: one atom, whose"},
      {"-m model -s atoms.xyz --steps 1 --dt 1 --forces", 2, "--forces needs --trajectory"},
      {"-m model -s atoms.xyz --steps 1 --dt 1 --every 0", 2, "--every is a whole number"},
      {"-m model --continue a --steps 1 --dt 1 -T 300", 2, "needs --langevin"},
      {"-m model --continue a --steps 1 --dt 1 --seed 2", 2, "--seed"},
      {"-m model -s atoms.xyz --steps 1 --dt 1 --skin -1", 2, "--skin is a number"},
      {"-m model -s nowhere.xyz --steps 1 --dt 1", 1, "nowhere.xyz: No such file"},
      {"-m model --continue nowhere --steps 1 --dt 1", 1, "nowhere: No such file"},
      {"-m nowhere -s atoms.xyz --steps 1 --dt 1", 1, "nowhere: No such file"},
      {"-m model -s atoms.xyz --steps 1 --dt 1 --csv /nowhere/a", 1, "/nowhere/a: No such file"},
      {"-m model -s atoms.xyz --steps 1 --dt 1 --restart /nowhere/a", 1,
       "/nowhere/a: No such file"},
      {"-m model -s atoms.xyz --steps 1 --dt 1 --plot /nowhere/a", 1, "/nowhere/a: No such file"},
      {"-m model -s atoms.xyz --steps 1 --dt 1 --csv /dev/full", 1,
       "/dev/full: could not be written: No space left"},
  };
  put_text("one.xyz", "1\n\nO 0 0 0\n");
  expect_refusals("md ", wrong, sizeof wrong / sizeof *wrong);
  expect_clebsch("md --help", 0, NULL);
}

/* An atom's position overflows; files keep all up to the last good record. */
static void ends_where_the_model_does(void **state) {
  (void)state;
  put_text("edge.xyz", "2\nLattice=\"1 0 0 0 1 0 0 0 1\" Properties=species:S:1:pos:R:3\nO 0 0 "
                       "0\nH 0.5 0.5 536870000.5\n");
  expect_clebsch(
      "md -m model -s edge.xyz --steps 30 --dt 1000 -T 1e6 --csv x.csv --restart x --plot x.svg "
      "--no-guard",
      1, "positions[");
  const csv_rows r = csv_of("x.csv");
  assert_true(r.n == 1 && r.v[0][0] == 0);
  expect_clebsch("md -m model --continue x --steps 0 --dt 1 --no-guard", 0, NULL);
  assert_int_equal(access("x.svg", F_OK), 0);
}

static void runs_water(void **state) {
  (void)state;
  put_text("drop.xyz", "6\n\nO 0 0 0\nH 0.76 0.59 0\nH -0.76 0.59 0\nO 0 -2.9 0\nH 0.76 -2.31 "
                       "0.3\nH -0.76 -3.2 0\n");
  expect_clebsch(
      format(
          "md --model %s --structure drop.xyz --dtype f64 --steps 100 --dt 0.25 -T 200 --csv w.csv",
          water_model()),
      0, NULL);
  const csv_rows r = csv_of("w.csv");
  assert_int_equal(r.n, 11);
  for (int i = 0; i < r.n; i++)
    if (!(fabs(r.v[i][4] - r.v[0][4]) < 6e-3))
      fail_msg("%g eV off at step %g", r.v[i][4] - r.v[0][4], r.v[i][0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts_random_numbers),
      cmocka_unit_test(draws_normal_deviates),
      cmocka_unit_test(weighs_elements),
      cmocka_unit_test(fits_drift),
      cmocka_unit_test(halves_series),
      cmocka_unit_test(keeps_energy),
      cmocka_unit_test(drives_with_right_units),
      cmocka_unit_test(thermostat_moves_atoms),
      cmocka_unit_test(thermostat_finds_temperature),
      cmocka_unit_test(goes_on_bit_for_bit),
      cmocka_unit_test(ends_at_a_signal),
      cmocka_unit_test(draws_plots),
      cmocka_unit_test(minds_its_arguments),
      cmocka_unit_test(ends_where_the_model_does),
      cmocka_unit_test(runs_water),
  };
  return cmocka_run_group_tests(tests, make_work, remove_folder);
}
