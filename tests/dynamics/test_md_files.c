/* tests/dynamics/test_md_files.c - files of `clebsch md`: false restarts, outputs that are inputs,
   full disks. */
#include "tests/dynamics/md_runner.h"

#include <sys/file.h>

/* ---- restarts ---- */

#define MODEL "model 0 m\n"
#define FILES "trajectory 0 0\ncsv 0 0\n"
#define STEP "step 1 time 0 seed 1\n"
#define CELL "cell 0 0 0 0 0 0 0 0 0 periodic 0 0 0\n"
#define ATOM "O 0 0 0 0 0 0 0 0 0\n"

static void refuses_restarts(void **state) {
  (void)state;
  static const char *const wrong[][2] = {
      {"", "line 2: the file ends here"},
      {"model x y\n", "line 2: not 'model CHECKSUM NAME'"},
      {MODEL "csv 0 0\n", "line 3: not 'trajectory BYTES CHECKSUM'"},
      {MODEL "trajectory -1 0\n", "line 3: not 'trajectory BYTES CHECKSUM'"},
      {MODEL FILES "step x time 0 seed 1\n", "line 5: not 'step STEP time FS seed SEED'"},
      {MODEL FILES "step 1 time 0 seed 1 more\n", "line 5: not 'step STEP time FS seed SEED'"},
      {MODEL FILES "step -1 time 0 seed 1\n", "line 5: the step is -1; it must be 0 ... 1000000"},
      {MODEL FILES "step 9223372036854775807 time 0 seed 1\n", "line 5: the step is 92233720368"},
      {MODEL FILES "step 99999999999999999999 time 0 seed 1\n", "line 5: the step is 922337203685"},
      {MODEL FILES "step 1 time inf seed 1\n", "line 5: the time is not finite"},
      {MODEL FILES STEP "cell 0 0\n", "line 6: not 'cell', 9 finite numbers"},
      {MODEL FILES STEP "cell 0 0 0 0 nan 0 0 0 0 periodic 0 0 0\n",
       "line 6: not 'cell', 9 finite"},
      {MODEL FILES STEP CELL "atoms 0\nend\n", "line 7: not 'atoms' and a number from 1"},
      {MODEL FILES STEP CELL "atoms 2000000000\n" ATOM "end\n",
       "line 7: 2000000000 atoms do not fit"},
      {MODEL FILES STEP CELL "atoms 1\nXx 0 0 0 0 0 0 0 0 0\nend\n",
       "line 8: it does not begin with"},
      {MODEL FILES STEP CELL "atoms 1\nO 0 0 nan 0 0 0 0 0 0\nend\n",
       "line 8: an atom has 9 finite"},
      {MODEL FILES STEP CELL "atoms 1\n" ATOM ATOM "end\n", "line 9: not 'end'"},
      {MODEL FILES STEP CELL "atoms 1\n" ATOM "end", "line 9: the file ends here"},
      {MODEL FILES STEP CELL "atoms 1\n" ATOM "end\n",
       "made with another model, m (checksum 00000"},
      {"model 0 \033[31mred\n" FILES STEP CELL "atoms 1\n" ATOM "end\n",
       "another model, ?[31mred"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    put_restart("wrong", wrong[i][0]);
    expect_clebsch("md -m model --continue wrong --steps 1 --dt 1", 1, wrong[i][1]);
  }
  put_text("wrong", "clebsch restart 1\nstep 1 time 0 seed 1\n");
  expect_clebsch("md -m model --continue wrong --steps 1 --dt 1", 1,
                 "wrong: a restart file of version 1, and this clebsch (");
  put_text("wrong", "no restart");
  expect_clebsch("md -m model --continue wrong --steps 1 --dt 1", 1,
                 "wrong: not a restart file of");
  expect_clebsch("md -m model --continue /dev/zero --steps 1 --dt 1", 1, "/dev/zero: not a file");
}

/* Version 3 has a line more, without which the run is the same. */
static void reads_both_versions(void **state) {
  (void)state;
  static const char *const wrong[] = {
      "heat 0 chain 0 0 0 0 0 0\n", "heat nan chain 0 0 0 0 0 0 stretch 0\n",
      "heat 0 chain 0 0 0 0 0 stretch 0\n", CELL, "heat 0 chain 0 0 0 0 0 0 stretch 0 0\n"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    put_restart_of(3, "wrong",
                   format(MODEL FILES STEP "%s" CELL "atoms 1\n" ATOM "end\n", wrong[i]));
    expect_clebsch("md -m model --continue wrong --steps 1 --dt 1", 1,
                   "line 6: not 'heat EV chain 6 NUMBERS stretch RATE'");
  }
  expect_clebsch("md -m model -s pair.xyz --steps 2 --dt 1 -T 300 --restart three --csv three.csv",
                 0, NULL);
  char *text = get_text("three"), *body = strchr(text, '\n') + 1, *line = strstr(body, "heat ");
  assert_non_null(line);
  memmove(line, strchr(line, '\n') + 1, strlen(strchr(line, '\n')));
  put_restart_of(2, "two", body);
  free(text);
  for (int old = 0; old < 2; old++)
    expect_clebsch(format("md -m model --continue %s --steps 2 --dt 1 --restart %s.2",
                          old ? "two" : "three", old ? "two" : "three"),
                   0, NULL);
  same_files("three.2", "two.2");
  expect_clebsch("md -m model --continue two --steps 2 --dt 1 --csv three.csv", 1,
                 "three.csv: the file exists, and is not of the run"); /* it has other columns */
}

/* Cut or changed anywhere, it is refused. */
static void finds_damage(void **state) {
  (void)state;
  expect_clebsch("md -m model -s pair.xyz --steps 1 --dt 1 --restart whole", 0, NULL);
  char *text = get_text("whole");
  const size_t n = strlen(text);
  for (size_t at = 0; at < n; at += at < 80 ? 7 : 23) {
    const char kept = text[at];
    text[at] = 0;
    put_text("wrong", text);
    text[at] = kept;
    expect_clebsch("md -m model --continue wrong --steps 1 --dt 1", 1,
                   at < 17   ? "wrong: not a restart file of"
                   : at < 18 ? "wrong: "
                             : "wrong: cut short");
    text[at] ^= 1;
    put_text("wrong", text);
    text[at] = kept;
    expect_clebsch("md -m model --continue wrong --steps 1 --dt 1", 1, "wrong: ");
  }
  free(text);
}

static void knows_its_model(void **state) {
  (void)state;
  made_write(&made_models[1], "another", NULL, NULL);
  expect_clebsch("md -m model -s pair.xyz --steps 1 --dt 1 --restart mine", 0, NULL);
  expect_clebsch("md -m another --continue mine --steps 1 --dt 1", 1,
                 "mine: it was made with another model, model (checksum ");
  assert_int_equal(link("model", "by_another_name"), 0);
  expect_clebsch("md -m by_another_name --continue mine --steps 1 --dt 1", 0, NULL);
}

/* ---- files that are there ---- */

static void keeps_what_is_there(void **state) {
  (void)state;
#define RUN "-m model -s pair.xyz --steps 1 --dt 1 "
#define ON "-m model --continue k --steps 1 --dt 1 --restart k "
  expect_clebsch("md " RUN "--trajectory k.xyz --csv k.csv --restart k --every 1", 0, NULL);
  expect_clebsch("md " RUN "--trajectory o.xyz --csv o.csv --restart o --every 1 --seed 2 -T 9", 0,
                 NULL);
  char *before = get_text("k.xyz"), *restart = get_text("k");
  static const refusal wrong[] = {
      {RUN "--trajectory k.xyz", 1, "k.xyz: the file exists: name another, --continue goes on"},
      {RUN "--csv k.csv", 1, "k.csv: the file exists: name another, --continue goes on from a"},
      {RUN "--restart k", 1, "k: the file exists: name another, --continue goes on from it, or --"},
      {ON "--trajectory o.xyz", 1, "o.xyz: it is not the file that the run of the restart wrote"},
      {ON "--csv o.csv", 1, "o.csv: it is not the file that the run of the restart wrote"},
      {"-m model --continue k --steps 1 --dt 1 --restart o", 1, "o: the file exists"},
      {"-m model --continue o --steps 1 --dt 1 --plot o.xyz --trajectory o.xyz", 1,
       "needs a separate"}};
  expect_refusals("md ", wrong, sizeof wrong / sizeof *wrong);
  char *after = get_text("k.xyz"), *same = get_text("k");
  assert_string_equal(before, after);
  assert_string_equal(restart, same);
  before[strlen(before) / 2] = 0;
  put_text("k.xyz", before);
  expect_clebsch("md " ON "--trajectory k.xyz", 1,
                 "when the restart was written: name another file");
  unlink("k.xyz");
  expect_clebsch("md " ON "--trajectory k.xyz", 0, NULL); /* a new one, as the old one is gone */
  expect_clebsch("md " ON "--csv k.csv", 1, "k.csv: the file exists, and is not of the run");
  expect_clebsch("md " ON "--csv k.csv --force", 0, NULL);
  expect_clebsch("md " ON "--csv k.csv", 0, NULL);
  expect_clebsch("md " RUN "--trajectory k.xyz --restart k --csv k.csv --force", 0, NULL);
  const int taken = open("k.csv", O_RDONLY); /* by another run */
  assert_true(taken >= 0 && !flock(taken, LOCK_EX));
  expect_clebsch("md " RUN "--csv k.csv --force", 1, "k.csv: another process writes to it");
  close(taken);
  put_text("empty.csv", "");
  expect_clebsch("md " RUN "--csv empty.csv", 0, NULL); /* nothing is lost */
  free(before), free(after), free(restart), free(same);
}

static void outputs_are_files_of_their_own(void **state) {
  (void)state;
  char *model = get_text("model");
  assert_int_equal(mkdir("sub", 0700), 0);
  assert_true(!link("pair.xyz", "hard") && !symlink("pair.xyz", "soft") &&
              !symlink("new", "hangs"));
  assert_true(!symlink(".", "here"));
  static const refusal wrong[] = {
      {"md " RUN "--csv pair.xyz --force", 1,
       "pair.xyz: is the structure (--structure), too: the csv"},
      {"md " RUN "--csv ./pair.xyz --force", 1, "./pair.xyz: is the structure"},
      {"md " RUN "--trajectory sub/../pair.xyz --force", 1, "sub/../pair.xyz: is the structure"},
      {"md " RUN "--restart here/pair.xyz --force", 1, "here/pair.xyz: is the structure"},
      {"md " RUN "--plot hard", 1, "hard: is the structure"},
      {"md " RUN "--plot soft", 1, "soft: is the structure"},
      {"md " RUN "--csv model --force", 1, "model: is the model (--model), too"},
      {"md " RUN "--csv new --trajectory ./new", 1, "needs a separate file"},
      {"md " RUN "--csv new --restart hangs", 1, "needs a separate file"},
      {"md " RUN "--plot sub/new --trajectory here/sub/new", 1, "needs a separate file"},
      {"md " RUN "--csv out --force", 1, "out: is standard output, too"},
      {"md " RUN "--csv new --restart newer --plot /nowhere/p", 1, "/nowhere/p: No such file"},
      {"md " RUN "--csv new --plot sub", 1, "sub: not a file"},
      {"energy -m model -s pair.xyz --out hard", 1, "hard: is the structure (--structure), too"},
      {"energy -m model -s pair.xyz --out here/model", 1,
       "here/model: is the model (--model), too"},
      {"energy -m nothing -s nothing --out /nowhere/f", 1, "/nowhere/f: No such file"},
      {"convert model here/model", 1, "here/model: is the file to convert, too"},
      {"convert nothing /nowhere/f", 1, "/nowhere/f: No such file"},
      {"compare run.json --html here/run.json", 1, "here/run.json: is a file to compare, too"},
      {"compare run.json --html /nowhere/f", 1, "/nowhere/f: No such file"},
      {"bench --suite quick --device cpu --out /nowhere/f", 1, "/nowhere/f: No such file"},
      {"bench --without each --device cpu --out /nowhere/f", 1, "/nowhere/f: No such file"},
      {"tune spherical_harmonics --lmax 1 --import run.json --export here/run.json", 1,
       "here/run.json: is the wisdom to import (--import), too"},
      {"tune spherical_harmonics --lmax 1 --export /nowhere/f", 1, "/nowhere/f: No such file"},
      {"source spherical_harmonics --lmax 1 --out /nowhere/f", 1, "/nowhere/f: No such file"},
  };
  put_text("run.json", "[]");
  expect_refusals("", wrong, sizeof wrong / sizeof *wrong);
  assert_true(access("new", F_OK) && access("newer", F_OK) && access("sub/new", F_OK));
  char *after = get_text("model"), *run = get_text("run.json");
  assert_string_equal(model, after);
  assert_string_equal(run, "[]");
  expect_clebsch("md " RUN "--csv /dev/null --trajectory /dev/null", 0, NULL);
  expect_clebsch("md " RUN "--restart hangs", 0, NULL); /* it follows the link */
  assert_int_equal(readlink("hangs", run, 2), 2);
  assert_int_equal(access("new", F_OK), 0);
  free(model), free(after), free(run);
}

/* ---- full disks ---- */

/* Runs with a limit on the length of files. */
static void expect_limited(size_t bytes, const char *arguments, const char *said) {
  free(expect_end_of(start_limited(RLIMIT_FSIZE, bytes, arguments), arguments, 1, said));
}

/* Each of the files fails in turn; those that exist are complete, and a continued run is as if
   nothing had happened. On the interpreter, as a compiler could not write either. */
static void survives_full_disks(void **state) {
  (void)state;
#define HOT "md -m model --device cpu:interpreter --dt 1 --every 1 "
#define TO(x) "--trajectory " x ".xyz --csv " x ".csv --restart " x " "
  enum { STEPS = 12 };
  expect_clebsch(HOT "-s atoms.xyz -T 300 --steps 12 " TO("w"), 0, NULL);
  char *restart = get_text("w"), *frames = get_text("w.xyz");
  const size_t one = strlen(restart), max = strlen(frames);
  for (size_t bytes = one + 100; bytes < max; bytes += 1213) {
    expect_limited(
        bytes, HOT "-s atoms.xyz -T 300 --steps 12 --force " TO("f"),
        "f.xyz: could not be written: File too large; it ends with the last whole record");
    char *now = get_text("f");
    const long long step = restart_step(now);
    assert_in_range(step, 0, STEPS - 1);
    expect_clebsch(format(HOT "--continue f --steps %lld " TO("f"), STEPS - step), 0, NULL);
    same_files("w.xyz", "f.xyz");
    same_files("w.csv", "f.csv");
    same_files("w", "f");
    free(now);
  }
  expect_limited(one - 30, HOT "--continue w --restart w --steps 2",
                 "w: could not be written: File");
  char *after = get_text("w");
  assert_string_equal(restart, after);
  expect_limited(200, HOT "--continue w --csv w.csv --steps 2",
                 "w.csv: could not be written: File");
  free(restart), free(frames), free(after);
  assert_int_equal(system("ls -a | grep -q '[wf][.][^cx]'"), 256); /* no temporary file is left */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refuses_restarts),    cmocka_unit_test(reads_both_versions),
      cmocka_unit_test(finds_damage),        cmocka_unit_test(knows_its_model),
      cmocka_unit_test(keeps_what_is_there), cmocka_unit_test(outputs_are_files_of_their_own),
      cmocka_unit_test(survives_full_disks)};
  return cmocka_run_group_tests(tests, make_work, remove_folder);
}
