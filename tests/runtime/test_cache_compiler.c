/* tests/runtime/test_cache_compiler.c - the cache folder and the C compiler of "cpu": kernels
   compiled earlier run where there is none now, what is missing is said, several processes compile
   once. */
#define _GNU_SOURCE
#include "tests/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <clebsch/clebsch.h>

enum { PATIENCE = 60 };

static char folder[64], cache[80], bin[80], log_file[80], *real_path;

static int make_folders(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/clebsch-compiler-XXXXXX");
  if (!mkdtemp(folder)) return 1;
  snprintf(cache, sizeof cache, "%s/cache", folder);
  snprintf(bin, sizeof bin, "%s/bin", folder);
  snprintf(log_file, sizeof log_file, "%s/log", folder);
  setenv("CLB_CACHE_DIR", cache, 1);
  return mkdir(bin, 0700);
}

static int remove_folders(void **state) {
  char command[80];
  (void)state;
  setenv("PATH", real_path, 1);
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

static void no_compiler(void) { setenv("PATH", "/nonexistent", 1); }

/* One in front of the others, that does this before it compiles a kernel. */
static void compiler_that(const char *does) {
  char path[4096];
  snprintf(path, sizeof path, "%s/cc", bin);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f, "#!/bin/sh\nPATH='%s'\ncase \"$*\" in *-shared*) %s;; esac\nexec cc \"$@\"\n",
          real_path, does);
  assert_int_equal(fclose(f), 0);
  assert_int_equal(chmod(path, 0700), 0);
  snprintf(path, sizeof path, "%s:%s", bin, real_path);
  setenv("PATH", path, 1);
}

static void need_compiler(void) {
  if (system("cc --version >/dev/null 2>&1")) skip_because("no C compiler");
}

typedef struct {
  clb_context *ctx;
  float y[16];
  const char *note;
} result;

/* Harmonics up to this degree. */
static result harmonics(int degree) {
  static const int degrees[] = {0, 1, 2, 3};
  const clb_spherical_harmonics_desc d = {.degrees = degrees,
                                          .n_degrees = degree + 1,
                                          .storage = CLB_F32,
                                          .arithmetic = CLB_F32,
                                          .passes = CLB_PASS_BIT(CLB_FORWARD)};
  const float x[3] = {1, 2, 3};
  clb_rows rx = {.stride = CLB_DENSE}, ry = {.stride = CLB_DENSE};
  clb_op *op;
  result r = {.ctx = NULL};
  OK(r.ctx, clb_context_create("cpu", &r.ctx));
  OK(r.ctx, clb_spherical_harmonics_create(r.ctx, &d, &op));
  OK(r.ctx, clb_buffer_create(r.ctx, sizeof x, &rx.buffer));
  OK(r.ctx, clb_buffer_create(r.ctx, sizeof r.y, &ry.buffer));
  OK(r.ctx, clb_buffer_write(rx.buffer, 0, x, sizeof x));
  OK(r.ctx, clb_spherical_harmonics_forward(op, 1, rx, ry));
  OK(r.ctx,
     clb_buffer_read(ry.buffer, 0, r.y, sizeof(float) * (size_t)((degree + 1) * (degree + 1))));
  clb_buffer_destroy(&rx.buffer);
  clb_buffer_destroy(&ry.buffer);
  clb_op_destroy(&op);
  r.note = clb_context_note(r.ctx);
  return r;
}

static void expect_note(result *r, const char *part) {
  if (part ? !r->note || !strstr(r->note, part) : r->note != NULL)
    fail_msg("the note is \"%s\"", r->note ? r->note : "none");
  clb_context_destroy(&r->ctx);
}

static void expect_description(const result *r, const char *part) {
  clb_device_info info;
  OK(r->ctx, clb_context_device(r->ctx, &info));
  if (!strstr(info.description, part)) fail_msg("%s: %s", part, info.description);
}

static void near(const float *x, const float *y, int n) {
  for (int i = 0; i < n; i++) assert_true(x[i] - y[i] < 1e-4f && y[i] - x[i] < 1e-4f);
}

static const char interpreted[] = "kernels that were not compiled earlier run on the interpreter";

static void without_compiler(void **state) {
  (void)state;
  need_compiler();
  no_compiler();
  result r = harmonics(1);
  expect_description(&r, "interpreter only (no cc, gcc or clang on PATH)");
  expect_note(&r, "cpu runs on the interpreter, thousands of times slower");

  setenv("PATH", real_path, 1);
  result compiled = harmonics(2), high = harmonics(3);
  expect_note(&compiled, NULL);
  expect_note(&high, NULL);

  no_compiler();
  r = harmonics(2);
  assert_memory_equal(r.y, compiled.y, 9 * sizeof(float));
  expect_description(&r, "kernels compiled earlier (no cc, gcc or clang on PATH)");
  expect_note(&r, NULL);
  for (int again = 0; again < 2; again++) { /* then the interpreter's is in the cache */
    r = harmonics(1);
    near(r.y, compiled.y, 4);
    expect_note(&r, interpreted);
  }

  setenv("PATH", real_path, 1); /* where it runs, what the interpreter left is compiled */
  r = harmonics(1);
  expect_note(&r, NULL);
  no_compiler();
  r = harmonics(1);
  near(r.y, compiled.y, 4);
  expect_note(&r, NULL);
}

/* The file about the compiler, damaged in every byte and cut everywhere. */
static void damaged_file(void **state) {
  char path[400] = "", bytes[1024];
  (void)state;
  need_compiler();
  setenv("PATH", real_path, 1);
  result r = harmonics(1);
  expect_note(&r, NULL);
  DIR *d = opendir(cache);
  for (struct dirent *e; d && (e = readdir(d));)
    if (!strncmp(e->d_name, ".compiler-", 10))
      snprintf(path, sizeof path, "%s/%s", cache, e->d_name);
  closedir(d);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  const size_t n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  no_compiler();
  for (size_t i = 0; i < 2 * n; i++) {
    assert_non_null(f = fopen(path, "w"));
    bytes[i % n] ^= i < n;
    fwrite(bytes, 1, i < n ? n : i - n, f);
    bytes[i % n] ^= i < n;
    fclose(f);
    clb_context *ctx;
    OK(ctx, clb_context_create("cpu", &ctx));
    if (!clb_context_note(ctx)) fail_msg("damage %zu of %zu is not noticed", i, n);
    clb_context_destroy(&ctx);
  }
}

/* Where nothing is kept it is said, unless it was asked for. */
static void nowhere_to_keep(void **state) {
  static const char *const names[] = {"CLB_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
  char *before[3];
  (void)state;
  need_compiler();
  setenv("PATH", real_path, 1);
  for (int i = 0; i < 3; i++) {
    const char *value = getenv(names[i]);
    before[i] = value ? strdup(value) : NULL;
    if (i == 0) setenv(names[i], "off", 1);
    else unsetenv(names[i]);
  }
  result quiet = harmonics(1);
  unsetenv("CLB_CACHE_DIR");
  result told = harmonics(1);
  for (int i = 0; i < 3; i++) {
    if (before[i]) setenv(names[i], before[i], 1);
    free(before[i]);
  }
  expect_note(&quiet, NULL);
  expect_note(&told, "none of CLB_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
}

/* ---- several processes ---- */

static pid_t start(int degree) {
  fflush(NULL);
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid) return pid;
  alarm(PATIENCE);
  result r = harmonics(degree);
  clb_context_destroy(&r.ctx);
  _exit(0);
}

static void expect_good(pid_t pid) {
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
}

static int lines_of_log(void) {
  int n = 0;
  FILE *f = fopen(log_file, "r");
  for (int c; f && (c = getc(f)) != EOF;) n += c == '\n';
  if (f) fclose(f);
  return n;
}

static void compiled_once(void **state) {
  enum { PROCESSES = 5 };
  char does[200];
  pid_t pid[PROCESSES];
  (void)state;
  need_compiler();
  snprintf(does, sizeof does, "echo . >>%s; sleep 0.3", log_file);
  compiler_that(does);
  result r = harmonics(0); /* also tries the compiler */
  clb_context_destroy(&r.ctx);
  const int before = lines_of_log();
  for (int i = 0; i < PROCESSES; i++) pid[i] = start(3);
  for (int i = 0; i < PROCESSES; i++) expect_good(pid[i]);
  assert_int_equal(lines_of_log(), before + 1);
}

/* The others do not wait for one that was killed while it compiled. */
static void killed_owner(void **state) {
  char does[200];
  (void)state;
  need_compiler();
  compiler_that(":");
  result r = harmonics(0);
  clb_context_destroy(&r.ctx);
  snprintf(does, sizeof does, "echo . >>%s; [ -e %s/killed ] || sleep 1000", log_file, folder);
  compiler_that(does);
  setenv("CLB_CACHE_DIR", cache, 1);
  const pid_t owner = start(2);
  for (int i = 0; i < 1000 * PATIENCE && !lines_of_log(); i++) usleep(1000);
  const pid_t waits = start(2);
  usleep(50000);
  char path[80];
  snprintf(path, sizeof path, "%s/killed", folder);
  close(open(path, O_CREAT | O_WRONLY, 0600));
  assert_int_equal(kill(owner, SIGKILL), 0);
  assert_int_equal(waitpid(owner, NULL, 0), owner);
  expect_good(waits);
}

/* ---- programs with habits ---- */

static void reap_all(int signal) {
  const int e = errno;
  (void)signal;
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
  errno = e;
}

static void reaps(void) { sigaction(SIGCHLD, &(struct sigaction){.sa_handler = reap_all}, NULL); }
static void ignores(void) { signal(SIGCHLD, SIG_IGN); }
static void wants_no_zombies(void) {
  sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT}, NULL);
}
static void blocks_signals(void) {
  sigset_t all;
  sigfillset(&all);
  sigdelset(&all, SIGALRM);
  sigprocmask(SIG_SETMASK, &all, NULL);
}
static void closes_files(void) {
  for (int fd = 0; fd < 3; fd++) close(fd);
}
static void hides_files(void) { umask(0077); }
static void has_few_files(void) { setrlimit(RLIMIT_NOFILE, &(const struct rlimit){32, 32}); }

/* Whatever the program does with signals and files, kernels are compiled, with the right result,
   and no process is left. */
static void habits(void **state) {
  static void (*const all[])(void) = {reaps,        ignores,     wants_no_zombies, blocks_signals,
                                      closes_files, hides_files, has_few_files};
  (void)state;
  need_compiler();
  setenv("PATH", real_path, 1);
  result expected = harmonics(2);
  clb_context_destroy(&expected.ctx);
  setenv("CLB_CACHE_DIR", "off", 1);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    int status;
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
      alarm(PATIENCE);
      all[i]();
      result r = harmonics(2);
      clb_context_destroy(&r.ctx);
      const bool good = !memcmp(r.y, expected.y, 9 * sizeof(float));
      _exit(good && waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status) fail_msg("habit %zu: status %x", i, (unsigned)status);
  }
}

/* Sentences that say what does not work, and where. */
static void places_that_fail(void **state) {
  const char *old = getenv("TMPDIR");
  char *before = old ? strdup(old) : NULL, inside[120];
  clb_context *ctx;
  clb_op *op;
  const clb_spherical_harmonics_desc d = {
      .degrees = (const int[]){0}, .n_degrees = 1, .passes = CLB_PASS_BIT(CLB_FORWARD)};
  (void)state;
  need_compiler();
  setenv("PATH", real_path, 1);
  OK(ctx, clb_context_create("cpu", &ctx));
  setenv("TMPDIR", "/nowhere", 1);
  assert_int_equal(clb_spherical_harmonics_create(ctx, &d, &op), CLB_ERROR_DRIVER);
  assert_non_null(strstr(clb_error(ctx), "/nowhere/clebsch-cc-"));
  assert_non_null(strstr(clb_error(ctx), "TMPDIR"));
  if (before) setenv("TMPDIR", before, 1);
  else unsetenv("TMPDIR");
  free(before);
  snprintf(inside, sizeof inside, "/proc/self/%s", "kernels");
  setenv("CLB_CACHE_DIR", inside, 1);
  OK(ctx, clb_spherical_harmonics_create(ctx, &d, &op));
  assert_non_null(strstr(clb_context_note(ctx), inside));
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
}

/* Folders whose names are unusual are used. */
static void unusual_folders(void **state) {
  static const char *const names[] = {"relative", "two words '\"$(x)", "K\xc3\xa4se \xe6\x97\xa5"};
  char here[4096];
  (void)state;
  need_compiler();
  setenv("PATH", real_path, 1);
  assert_non_null(getcwd(here, sizeof here));
  assert_int_equal(chdir(folder), 0);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    int lasting = 0;
    setenv("CLB_CACHE_DIR", names[i], 1);
    setenv("TMPDIR", names[i], 1);
    assert_int_equal(mkdir(names[i], 0700), 0);
    for (int turn = 0; turn < 2; turn++) {
      result r = harmonics(1);
      expect_note(&r, NULL);
      if (!turn) no_compiler();
    }
    setenv("PATH", real_path, 1);
    DIR *d = opendir(names[i]);
    for (struct dirent *e; d && (e = readdir(d));) lasting += *e->d_name != '.';
    closedir(d);
    assert_int_equal(lasting, 1); /* the kernel: nothing temporary is left */
  }
  unsetenv("TMPDIR");
  assert_int_equal(chdir(here), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(without_compiler, make_folders, remove_folders),
      cmocka_unit_test_setup_teardown(damaged_file, make_folders, remove_folders),
      cmocka_unit_test_setup_teardown(nowhere_to_keep, make_folders, remove_folders),
      cmocka_unit_test_setup_teardown(compiled_once, make_folders, remove_folders),
      cmocka_unit_test_setup_teardown(killed_owner, make_folders, remove_folders),
      cmocka_unit_test_setup_teardown(habits, make_folders, remove_folders),
      cmocka_unit_test_setup_teardown(places_that_fail, make_folders, remove_folders),
      cmocka_unit_test_setup_teardown(unusual_folders, make_folders, remove_folders)};
  real_path = strdup(getenv("PATH"));
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  free(real_path);
  return failed;
}
