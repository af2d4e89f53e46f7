/* tests/dynamics/test_md_guard.c - runs that are no longer physics end where they stop to be, and
   with --no-guard go on; what a run says on the way. */
#include "tests/dynamics/md_runner.h"
#include "tests/dynamics/serve_runner.h"

static int make_more(void **state) {
  if (make_work(state)) return -1;
  made_write(&made_models[MADE_AGNESI], "hard", NULL, NULL); /* with the repulsion of nuclei */
  put_text("touching.xyz", "2\n\nLi 0 0 0\nH 0 0 0.01\n");
  put_text("near.xyz", "2\n\nLi 0 0 0\nH 0 0 0.05\n");
  put_text("close.xyz", "2\n\nLi 0 0 0\nH 0 0 0.15\n");
  put_text("bond.xyz", "2\n\nLi 0 0 0\nH 0 0 0.3\n");
  put_text("room.xyz", "2\nLattice=\"50 0 0 0 50 0 0 0 50\"\nLi 0 0 0\nH 0 0 0.3\n");
  FILE *dense = fopen("dense.xyz", "w"), *water = fopen("water.xyz", "w");
  assert_true(dense && water);
  fprintf(dense, "27\nLattice=\"3.15 0 0 0 3.15 0 0 0 3.15\"\n");
  for (int i = 0; i < 27; i++)
    fprintf(dense, "%s %g %g %g\n", (i / 9 + i / 3 + i) % 2 ? "Li" : "H", 1.05 * (i / 9),
            1.05 * (i / 3 % 3), 1.05 * (i % 3));
  fprintf(water, "24\nLattice=\"6.2 0 0 0 6.2 0 0 0 6.2\"\n");
  for (int i = 0; i < 8; i++) {
    const double x = 3.1 * (i / 4), y = 3.1 * (i / 2 % 2), z = 3.1 * (i % 2);
    fprintf(water, "O %g %g %g\nH %g %g %g\nH %g %g %g\n", x, y, z, x + .76, y + .59, z, x - .76,
            y + .59, z + .1 * (i % 2));
  }
  return fclose(dense) || fclose(water);
}

/* Ends with this sentence, its csv complete up to the last record; goes on when told to. */
static void ends_and_goes_on(const char *run, const char *said) {
  expect_clebsch(format("md %s --csv g.csv --every 1 --force", run), 1, said);
  char *err = get_text("err"), *csv = get_text("g.csv");
  long long step = -1, lines = 0;
  assert_int_equal(sscanf(err, "clebsch: step %lld: ", &step), 1);
  assert_non_null(strstr(err, ", and --no-guard goes on\n"));
  assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1);
  for (const char *c = csv; (c = strchr(c, '\n')); c++) lines++;
  assert_int_equal(lines, step ? step + 1 : 0); /* a header, and steps 0 ... step - 1 */
  free(err);
  free(csv);
  expect_clebsch(format("md %s --csv g.csv --every 1 --force --no-guard", run), 0, NULL);
}

static void ends_what_explodes(void **state) {
  (void)state;
  static const struct {
    const char *run, *said;
  } runs[] = {
      {"-m hard -s touching.xyz --steps 0 --dt 1", "step 0: the force on atom 1 (Li) is 1.0"},
      {"-m hard -s near.xyz --steps 2 --dt 0.02", "atom 2 (H) is the fastest"},
      {"-m hard -s near.xyz --steps 2 --dt 0.02", "the temperature is "},
      {"-m model -s pair.xyz --steps 3 --dt 30 -T 3000", "step 0: atom 2 (H) moves by "},
      {"-m hard -s close.xyz --steps 2 --dt 0.2", "the total energy has changed by -1.9"},
      {"-m hard -s bond.xyz --steps 100 --dt 0.3",
       "the atoms have left each other: 0 edges remain of 2"},
      {"-m hard -s room.xyz --steps 100 --dt 0.3",
       "the atoms have left each other: 0 edges remain of 2"},
  };
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
    ends_and_goes_on(runs[i].run, runs[i].said);
}

static void ends_what_its_thermostat_cannot_hold(void **state) {
  (void)state;
  ends_and_goes_on(format("-m %s -s water.xyz --dtype f32 --knots 64 --dt 3 --steps 100 -T 300 "
                          "--langevin 100",
                          water_model()),
                   "the thermostat at 300 K does not hold the temperature, which is ");
}

static void ends_what_its_barostat_breaks(void **state) {
  (void)state;
  expect_clebsch("md -m model -s atoms.xyz --dt 1 --steps 9 -T 300 --bussi 10 --pressure 40 "
                 "--barostat 5",
                 1, "the cell's lengths change by ");
}

/* Hot and strange, but as asked for: a hot start, atoms that were never near each other. */
static void leaves_others_alone(void **state) {
  (void)state;
  static const char *const runs[] = {
      "md -m hard -s dense.xyz --steps 20 --dt 0.05 -T 200000",
      "md -m hard -s dense.xyz --steps 20 --dt 0.05 -T 200000 --langevin 1",
      "md -m model -s far.xyz --steps 20 --dt 1 -T 300",
      "md -m model -s one.xyz --steps 20 --dt 1 -T 300 --langevin 1000"};
  put_text("far.xyz", "2\n\nO 0 0 0\nH 0 0 50\n");
  put_text("one.xyz", "1\n\nO 0 0 0\n");
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) expect_clebsch(runs[i], 0, NULL);
}

/* The same forces over a socket. */
static void serves_no_absurd_force(void **state) {
  (void)state;
  const sent_atoms close_by = {2, {{0}}, {{0, 0, 0}, {0, 0, 0.01}}};
  for (int unguarded = 0; unguarded < 2; unguarded++) {
    char message[1024];
    const int listening = listen_unix("sock");
    const pid_t pid = start_clebsch(
        format("serve -m hard -s touching.xyz --unix ./sock%s", unguarded ? " --no-guard" : ""));
    const int fd = accept_one(listening);
    if (unguarded) assert_true(ask_force(fd, &close_by).energy > 0);
    else put_bytes(fd, message, posdata(&close_by, message)), expect_closed(fd);
    close(fd), close(listening);
    assert_int_equal(ended(pid), !unguarded);
    char *err = get_text("err");
    static const char said[] = "clebsch: client 1: the force on atom 1 (Li) is 1.0";
    assert_true(unguarded ? !*err : !strncmp(err, said, sizeof said - 1));
    free(err);
  }
}

/* A line for each record, with the time left; the first temperature is the one asked for. */
static void says_where_it_is(void **state) {
  (void)state;
  char *out = printed_by("md -m model -s atoms.xyz --steps 7 --dt 0.5 -T 300 --every 3"),
       *rest = out;
  static const int at[] = {0, 3, 6, 7};
  for (int i = 0; i < 4; i++) {
    char *line = strtok_r(rest, "\n", &rest);
    int step = 0, end = 0, hours, minutes, seconds;
    double energy, kelvin, rate;
    assert_true(line &&
                sscanf(line, "step %d: %lf eV, %lf K%n", &step, &energy, &kelvin, &end) == 3);
    assert_int_equal(step, at[i]);
    if (!i) assert_true(kelvin == 300);
    if (!i) assert_string_equal(line + end, "");
    else
      assert_int_equal(
          sscanf(line + end, ", %lf ns/day, %d:%2d:%2d left", &rate, &hours, &minutes, &seconds),
          4);
  }
  assert_int_equal(strncmp(rest, "atoms   ", 8), 0);
  free(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(ends_what_explodes),
                                     cmocka_unit_test(ends_what_its_thermostat_cannot_hold),
                                     cmocka_unit_test(ends_what_its_barostat_breaks),
                                     cmocka_unit_test(leaves_others_alone),
                                     cmocka_unit_test(serves_no_absurd_force),
                                     cmocka_unit_test(says_where_it_is)};
  return cmocka_run_group_tests(tests, make_more, remove_folder);
}
