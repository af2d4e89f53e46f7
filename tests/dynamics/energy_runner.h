/* tests/dynamics/energy_runner.h - runs `clebsch energy` and `clebsch md` in a folder with a made
   model, a few atoms, and a cache of kernels. */
#ifndef CLB_TESTS_DYNAMICS_ENERGY_RUNNER_H
#define CLB_TESTS_DYNAMICS_ENERGY_RUNNER_H

#define _GNU_SOURCE /* nftw */
#include "tests/models/model_made.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char work_folder[] = "/tmp/clebsch_energy_XXXXXX";

static inline int remove_one(const char *path, const struct stat *about, int kind,
                             struct FTW *where) {
  (void)about, (void)kind, (void)where;
  return remove(path);
}

static inline void put_text(const char *name, const char *text) {
  FILE *f = fopen(name, "w");
  assert_non_null(f);
  fputs(text, f);
  assert_int_equal(fclose(f), 0);
}

/* What the command says where compiling takes long, as it may on a slow machine. */
#define TAKES_LONG ", which takes seconds to minutes where its kernels are not kept yet\n"

static inline void drop_takes_long(char *text) {
  for (char *at; (at = strstr(text, TAKES_LONG));) {
    char *line = at;
    while (line > text && line[-1] != '\n') line--;
    at += strlen(TAKES_LONG);
    memmove(line, at, strlen(at) + 1);
  }
}

/* Ends with a 0 byte, and is without that line; NULL if there is no such file. */
static inline char *get_text(const char *name) {
  FILE *f = fopen(name, "r");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  const long n = ftell(f);
  rewind(f);
  char *text = calloc((size_t)n + 1, 1);
  assert_non_null(text);
  assert_int_equal(fread(text, 1, (size_t)n, f), n);
  fclose(f);
  drop_takes_long(text);
  return text;
}

/* Makes the folder in which the tests run. Kernels are kept there, unless the environment names a
 * folder. */
static inline int make_work(void **state) {
  (void)state;
  const char *kernels = getenv("CLB_CACHE_DIR");
  if (!mkdtemp(work_folder) || chdir(work_folder) || mkdir("tmp", 0700)) return -1;
  if ((!kernels || !strcmp(kernels, "off")) && setenv("CLB_CACHE_DIR", work_folder, 1)) return -1;
  setenv("TMPDIR", "tmp", 1);
  made_write(&made_models[0], "model", NULL, NULL);
#define BOX(pbc)                                                                                   \
  "6\nLattice=\"4.3 0 0 0.2 4.1 0 0 0.1 4.4\" Properties=species:S:1:pos:R:3 pbc=\"" pbc "\"\n"    \
  "O 0.1 0.2 0.3\nH 1.1 0.2 0.1\nH -0.2 1.1 0.4\nO 2.2 2.3 2.1\nH 3.1 2.5 2.2\nH 2.0 2.2 3.1\n"
  put_text("atoms.xyz", BOX("T T T"));
  put_text("slab.xyz", BOX("T T F"));
  put_text("pair.xyz", "2\nProperties=species:S:1:pos:R:3\nO 0 0 0\nH 0 0 1.1\n");
  return 0;
}

static inline int remove_work(void **state) {
  (void)state;
  const bool left = rmdir("tmp"); /* no converted model may stay */
  return chdir("/") || nftw(work_folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) || left;
}

/* Starts `clebsch` with arguments separated by spaces; its output goes to the files out and err. */
static inline pid_t start_clebsch(const char *arguments) {
  char words[1024], *argv[48] = {getenv("CLB_COMMAND")}, *rest = words;
  int argc = 1;
  assert_non_null(argv[0]);
  assert_true(snprintf(words, sizeof words, "%s", arguments) < (int)sizeof words);
  for (char *w; (w = strtok_r(rest, " ", &rest)); argv[argc++] = w) assert_true(argc < 47);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "out", O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "err", O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  pid_t pid;
  assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

static inline int ended(pid_t pid) { /* its exit status; -1: killed by a signal */
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Fails unless it exits with this status and `said` is on standard error (NULL: nothing is). */
static inline void expect_clebsch(const char *arguments, int status, const char *said) {
  const int got = ended(start_clebsch(arguments));
  char *err = get_text("err");
  if (got != status || (said ? !strstr(err, said) : *err))
    fail_msg("clebsch %s: exit status %d, not %d and '%s': %s", arguments, got, status,
             said ? said : "", err);
  free(err);
}

/* Arguments that are refused, with the exit status and the words. */
typedef struct {
  const char *arguments;
  int status;
  const char *said;
} refusal;

/* `command`: what comes before the arguments.  Nothing is printed on standard output. */
static inline void expect_refusals(const char *command, const refusal *r, size_t n) {
  for (size_t i = 0; i < n; i++) {
    char arguments[1024];
    assert_true(snprintf(arguments, sizeof arguments, "%s%s", command, r[i].arguments) <
                (int)sizeof arguments);
    expect_clebsch(arguments, r[i].status, r[i].said);
    char *out = get_text("out");
    assert_string_equal(out, "");
    free(out);
  }
}

/* A real model, or its test is skipped. */
static inline const char *water_model(void) {
  const char *path = getenv("CLB_TEST_NEQUIP");
  if (!path) path = "/usr/share/cp2k/NequIP/water.pth";
  if (access(path, R_OK))
    skip_because("there is no water.pth (package cp2k-data, or CLB_TEST_NEQUIP)");
  return path;
}

#endif
