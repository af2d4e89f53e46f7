/* tests/tools/test_interrupted.c - a process that ends while its compiler runs leaves no file and
   no compiler. */
#include "tests/dynamics/model_folder.h"

#include <dirent.h>
#include <stdbool.h>
#include <time.h>

#include "src/base/cache_folder.h"
#include "src/runtime/kernel_cache.h"

#define ENERGY "energy -m model -s pair.xyz --device cpu --repeat 1"

/* Calls use() for each process that was started with this environment variable; returns how many
   there are. */
static int each_process_with(const char *variable, void (*use)(pid_t pid)) {
  DIR *d = opendir("/proc");
  int count = 0;
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d));) {
    static char text[1 << 17];
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/environ", e->d_name);
    FILE *f = *e->d_name >= '1' && *e->d_name <= '9' ? fopen(path, "r") : NULL;
    if (!f) continue;
    const size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    for (size_t at = 0; at < n; at += strlen(text + at) + 1) {
      if (strcmp(text + at, variable) != 0) continue;
      count++;
      if (use) use((pid_t)atoi(e->d_name));
    }
  }
  closedir(d);
  return count;
}

static bool any_process_with(const char *variable) { return each_process_with(variable, NULL) > 0; }

static void stop_one(pid_t pid) { kill(pid, SIGSTOP); }
static void kill_one(pid_t pid) { kill(pid, SIGKILL); }

/* All are stopped first, so that none sees another end. */
static void kill_all_with(const char *variable) {
  each_process_with(variable, stop_one);
  each_process_with(variable, kill_one);
}

static bool any_name(const char *name) { return strcmp(name, ".") && strcmp(name, ".."); }
/* A file whose writing was cut short has a temporary name: a later run removes it. */
static bool unknown(const char *name) {
  return any_name(name) && clb_cache_name_of(name) == CLB_CACHE_FOREIGN;
}

/* Counts files with these names; keeps the last one found. */
static char last_entry[256];
static int entries(const char *folder, bool (*counts)(const char *name)) {
  DIR *d = opendir(folder);
  int n = 0;
  for (struct dirent *e; d && (e = readdir(d));) {
    if (!counts(e->d_name)) continue;
    snprintf(last_entry, sizeof last_entry, "%s", e->d_name);
    n++;
  }
  if (d) closedir(d);
  return n;
}

static void pause_ms(long ms) {
  nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* A cache folder that nothing is in yet; its variable is the mark of a run, which no other has. */
static const char *new_cache(void) {
  static char variable[64];
  static int n;
  snprintf(variable, sizeof variable, "CLB_CACHE_DIR=%s/cache%d", work_folder, n++);
  setenv("CLB_CACHE_DIR", strchr(variable, '=') + 1, 1);
  return variable;
}

static void expect_nothing_left(const char *variable, const char *what) {
  for (int wait = 0; wait < 3000 && (entries("tmp", any_name) || any_process_with(variable));
       wait++)
    pause_ms(20);
  if (entries("tmp", any_name)) fail_msg("%s: there is '%s'", what, last_entry);
  if (any_process_with(variable)) fail_msg("%s: there are processes", what);
  if (entries(strchr(variable, '=') + 1, unknown))
    fail_msg("%s: the cache has '%s', a name that no run removes", what, last_entry);
}

/* A compiler that prints its version and then takes forever, with a file and a child process. */
static void slow_compiler(void) {
  if (getenv("REAL_PATH")) return; /* a test failed before */
  put_text("slow/cc", "#!/bin/sh\n"
                      "case \"$*\" in *-dM* | --version) PATH=$REAL_PATH exec cc \"$@\";; esac\n"
                      "touch \"$TMPDIR/ccfile.s\"\n"
                      "sleep 1000 &\n"
                      "touch tmp/started\n"
                      "wait\n");
  assert_int_equal(chmod("slow/cc", 0700), 0);
  setenv("REAL_PATH", getenv("PATH"), 1);
  setenv("PATH", format("%s/slow:%s", work_folder, getenv("PATH")), 1);
}

static void fast_compiler(void) {
  setenv("PATH", getenv("REAL_PATH"), 1);
  unsetenv("REAL_PATH");
}

static pid_t start_slowly(void) {
  const pid_t pid = start_clebsch(ENERGY);
  for (int wait = 0; wait < 3000 && access("tmp/started", F_OK); wait++) pause_ms(20);
  assert_int_equal(unlink("tmp/started"), 0);
  return pid;
}

static void ends_with_its_compiler(void **state) {
  (void)state;
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGKILL};
  need_compiler();
  assert_int_equal(mkdir("slow", 0700), 0);
  slow_compiler();
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    char what[32];
    const char *variable = new_cache();
    const pid_t pid = start_slowly();
    snprintf(what, sizeof what, "signal %d", signals[i]);
    assert_true(any_process_with(variable) && entries("tmp", any_name) == 1);
    assert_int_equal(kill(pid, signals[i]), 0);
    assert_int_equal(ended(pid), -signals[i]);
    expect_nothing_left(variable, what);
  }
  fast_compiler();
}

/* As a batch system does it: every process of the run at once. A later run tidies up. */
static void next_one_tidies_up(void **state) {
  (void)state;
  need_compiler();
  slow_compiler();
  const char *variable = new_cache();
  const pid_t pid = start_slowly();
  char path[300] = "";
  kill_all_with(variable);
  assert_int_equal(ended(pid), -SIGKILL);
  assert_int_equal(entries("tmp", any_name), 1); /* the compiler's folder */
  snprintf(path, sizeof path, "tmp/%s", last_entry);
  fast_compiler();
  for (int wait = 0; wait < 500 && any_process_with(variable); wait++) pause_ms(20);
  assert_false(any_process_with(variable));
  assert_int_equal(access(path, F_OK), 0);
  const struct timespec before[2] = {{time(NULL) - 60, 0}, {time(NULL) - 60, 0}};
  assert_int_equal(utimensat(AT_FDCWD, path, before, 0), 0);
  new_cache();
  expect_clebsch("source spherical_harmonics --lmax 1 --device cpu", 0, NULL);
  assert_int_equal(entries("tmp", any_name), 0);
}

/* In the cache, too: old files with a name that only such a process uses are removed. */
static void sweeps_the_cache(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int age, stays;
  } files[] = {{"0123456789abcdef0123456789abcdef.Ab12Cd", 100, 0},
               {"0123456789abcdef0123456789abcdef.4711-0", 100, 0},
               {"wisdom.Ab12Cd", 100, 0},
               {".cc-0123456789abcdef0123456789abcdef.4711-0", 100, 0},
               {".cc-0123456789abcdef0123456789abcdef", 100, 1},
               {".0123456789abcdef0123456789abcdef.4711-0", 100, 1},
               {"0123456789abcdef0123456789abcdef.young1", 0, 1},
               {"0123456789abcdef0123456789abcdef", 100, 1},
               {"wisdom", 100, 1},
               {"wisdoms.Ab12Cd", 100, 1},
               {"notes.txt", 100, 1},
               {"0123456789abcdef0123456789abcdeg.Ab12Cd", 100, 1}};
  new_cache();
  assert_int_equal(mkdir(getenv("CLB_CACHE_DIR"), 0700), 0);
  for (int turn = 0; turn < 2; turn++) {
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
      char path[128];
      const struct timespec then = {time(NULL) - files[i].age, 0};
      snprintf(path, sizeof path, "%s/%s", getenv("CLB_CACHE_DIR"), files[i].name);
      if (turn && (access(path, F_OK) == 0) != files[i].stays) fail_msg("%s", path);
      if (turn) continue;
      put_text(path, "");
      assert_int_equal(utimensat(AT_FDCWD, path, (const struct timespec[]){then, then}, 0), 0);
    }
    if (!turn) expect_clebsch("source spherical_harmonics --lmax 1 --device cpu", 0, NULL);
  }
}

/* Real compilers, at moments chosen by a seed. */
static void ends_at_any_moment(void **state) {
  (void)state;
  static const int signals[] = {SIGINT, SIGTERM, SIGKILL};
  uint64_t seed = 7;
  need_compiler();
  for (int i = 0; i < 9; i++) {
    char what[48];
    const char *variable = new_cache();
    const pid_t pid = start_clebsch(ENERGY);
    const long ms = 50 + (long)(400 * (1 + test_random(&seed)));
    pause_ms(ms);
    kill(pid, signals[i % 3]);
    const int status = ended(pid);
    snprintf(what, sizeof what, "signal %d after %ld ms", signals[i % 3], ms);
    if (status > 0) fail_msg("%s: exit status %d", what, status);
    expect_nothing_left(variable, what);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ends_with_its_compiler), cmocka_unit_test(next_one_tidies_up),
      cmocka_unit_test(sweeps_the_cache), cmocka_unit_test(ends_at_any_moment)};
  signal(SIGHUP, SIG_DFL); /* the parent may have ignored it, and children inherit that */
  return cmocka_run_group_tests(tests, make_work, remove_folder);
}
