/* tests/dynamics/test_md_kill.c - `clebsch md` killed at random moments, over and over: the files
   are those of one run.  CLB_TEST_KILLS: how often (default: 25); CLB_TEST_SEED: when. */
#include "tests/dynamics/md_runner.h"

#include <dirent.h>
#include <time.h>

enum { ATOMS = 216, MORE = 3 }; /* steps after the last kill */
#define RUN "md -m model --device cpu --dt 0.1 --every 1 "
#define TO(x) "--trajectory " x ".xyz --csv " x ".csv --restart " x " "

static uint64_t number_of(const char *variable, uint64_t otherwise) {
  const char *text = getenv(variable);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

static void put_lattice(void) {
  FILE *f = fopen("gas.xyz", "w");
  assert_non_null(f);
  fprintf(f, "%d\n\n", ATOMS);
  for (int i = 0; i < ATOMS; i++)
    fprintf(f, "%s %d %d %g\n", i % 3 ? "H" : "O", i % 6 * 9, i / 6 % 6 * 9, i / 36 * 1.4);
  assert_int_equal(fclose(f), 0);
}

static long long step_now(void) {
  char *text = get_text("k");
  const long long step = text ? restart_step(text) : -1;
  free(text);
  return step;
}

/* Complete frames, one for each step from 0 on, as far as the restart says; after that mark there
   may be anything. */
static void check_frames(const char *text, long long last) {
  for (long long step = 0; step <= last; step++) {
    int n = 0, taken = 0;
    double time = -1;
    const char *at = strstr(text, "time=");
    if (sscanf(text, "%d %n", &n, &taken) != 1 || n != ATOMS || !at) fail_msg("frame %lld", step);
    time = strtod(at + 5, NULL);
    if (time < 0.1 * ((double)step - 0.5) || time > 0.1 * ((double)step + 0.5))
      fail_msg("frame %lld is of %g fs", step, time);
    for (int line = 0; line < ATOMS + 2; line++) {
      const char *end = strchr(text, '\n');
      if (!end) fail_msg("frame %lld has %d lines", step, line);
      int words = 0;
      for (const char *c = text; c < end; c++) words += *c == ' ';
      if (line > 1 && words != 10) fail_msg("frame %lld, line %d: %d words", step, line, words + 1);
      text = end + 1;
    }
  }
}

static void check_rows(const char *text, long long last) {
  if (!(text = strchr(text, '\n'))) fail_msg("the csv has no first line");
  for (long long step = 0; step <= last; step++) {
    long long said = -1;
    int commas = 0;
    const char *end = strchr(++text, '\n');
    if (!end || sscanf(text, "%lld,", &said) != 1 || said != step)
      fail_msg("row %lld is %lld", step, said);
    for (const char *c = text; c < end; c++) commas += *c == ',';
    if (commas != 6) fail_msg("row %lld has %d values", step, commas + 1);
    text = end;
  }
}

static void check_files(long long step) {
  char *frames = get_text("k.xyz"), *rows = get_text("k.csv");
  assert_true(frames && rows);
  check_frames(frames, step);
  check_rows(rows, step);
  free(frames), free(rows);
}

static int temporaries(void) {
  DIR *d = opendir(".");
  int n = 0;
  for (struct dirent *e; d && (e = readdir(d));)
    n += !strncmp(e->d_name, "k.", 2) && strlen(e->d_name) == 8;
  closedir(d);
  return n;
}

static void killed_and_continued(void **state) {
  (void)state;
  const uint64_t kills = number_of("CLB_TEST_KILLS", 25);
  uint64_t seed = number_of("CLB_TEST_SEED", 11), torn = 0;
  put_lattice();
  for (uint64_t i = 0; i < kills; i++) {
    const long long before = step_now();
    const pid_t pid =
        start_clebsch(before < 0 ? RUN "-s gas.xyz -T 300 --steps 100000000 --force " TO("k")
                                 : RUN "--continue k --steps 100000000 " TO("k"));
    for (int wait = 0; wait < 6000 && step_now() == before; wait++) /* until it runs to its end */
      nanosleep(&(struct timespec){0, 5000000}, NULL);
    nanosleep(&(struct timespec){0, (long)(40e6 * (1 + test_random(&seed)))}, NULL);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(ended(pid), -SIGKILL);
    char *err = get_text("err"), *frames = get_text("k.xyz");
    assert_string_equal(err, "");
    if (step_now() >= 0) check_files(step_now());
    torn += frames && *frames && frames[strlen(frames) - 1] != '\n';
    free(err), free(frames);
  }
  const long long last = step_now() + MORE;
  expect_clebsch(format(RUN "--continue k --steps %d " TO("k"), MORE), 0, NULL);
  check_files(last);
  expect_clebsch(format(RUN "-s gas.xyz -T 300 --steps %lld " TO("whole"), last), 0, NULL);
  same_files("k", "whole");
  same_files("k.xyz", "whole.xyz");
  same_files("k.csv", "whole.csv");
  if (getenv("CLB_TEST_KILLS"))
    printf("%llu kills, %lld steps, %llu torn frames, %d restarts left under a temporary name\n",
           (unsigned long long)kills, last, (unsigned long long)torn, temporaries());
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(killed_and_continued)};
  return cmocka_run_group_tests(tests, make_work, remove_folder);
}
