/* tests/command.h - runs `clebsch` in a folder of its own, as a script does: its exit status, what
   it prints and what it writes. */
#ifndef CLB_TESTS_COMMAND_H
#define CLB_TESTS_COMMAND_H

#define _GNU_SOURCE /* nftw */
#include "tests/test.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* A text as of printf, which stays for the next three calls. */
__attribute__((format(printf, 1, 2))) static inline const char *format(const char *form, ...) {
  static char texts[4][4096];
  static int turn;
  char *text = texts[turn++ % 4];
  va_list values;
  va_start(values, form);
  const int n = vsnprintf(text, sizeof *texts, form, values);
  va_end(values);
  assert_in_range(n, 0, sizeof *texts - 1);
  return text;
}

/* ---- files ---- */

static inline void put_file(const char *name, const void *bytes, size_t n) {
  FILE *f = fopen(name, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

static inline void put_text(const char *name, const char *text) {
  put_file(name, text, strlen(text));
}

/* A whole file and a 0 byte; NULL if there is none. */
static inline void *get_file(const char *name, size_t *n) {
  struct stat about;
  FILE *f = name ? fopen(name, "rb") : NULL;
  *n = 0;
  if (!f) return NULL;
  assert_int_equal(fstat(fileno(f), &about), 0);
  *n = (size_t)about.st_size;
  char *bytes = calloc(*n + 1, 1);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, *n, f), *n);
  fclose(f);
  return bytes;
}

/* What the command says where compiling takes long, as it may on a slow machine. */
#define TAKES_LONG ", which takes seconds to minutes where its kernels are not kept yet\n"

/* Ends with a 0 byte, and is without that line; NULL if there is no such file. */
static inline char *get_text(const char *name) {
  size_t n;
  char *text = get_file(name, &n);
  for (char *at; text && (at = strstr(text, TAKES_LONG));) {
    char *line = at;
    while (line > text && line[-1] != '\n') line--;
    at += strlen(TAKES_LONG);
    memmove(line, at, strlen(at) + 1);
  }
  return text;
}

static inline void expect_file(const char *name, const char *text) {
  char *found = get_text(name);
  assert_non_null(found);
  assert_string_equal(found, text);
  free(found);
}

/* A file of the tests' data; `part`, its path there, is without blanks. */
static inline const char *data_file(const char *part) {
  const char *data = getenv("CLB_TEST_DATA");
  assert_non_null(data);
  return format("%s/%s", data, part);
}

/* The folder in which tests run. */
static char work_folder[] = "/tmp/clebsch_test_XXXXXX";

static inline int make_folder(void **state) {
  (void)state;
  setenv("TMPDIR", "tmp", 1);
  return !mkdtemp(work_folder) || chdir(work_folder) || mkdir("tmp", 0700) ? -1 : 0;
}

static inline int remove_one(const char *path, const struct stat *about, int kind,
                             struct FTW *where) {
  (void)about, (void)kind, (void)where;
  return remove(path);
}

static inline int remove_folder(void **state) {
  (void)state;
  const bool left = rmdir("tmp"); /* no run may leave anything there */
  return chdir("/") || nftw(work_folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) || left;
}

/* ---- runs ---- */

/* Splits arguments at blanks, for execv; returns how many there are, with the program. */
enum { MAX_WORDS = 64 };
typedef struct {
  char text[4096], *argv[MAX_WORDS];
} word_list;

static inline int split_words(word_list *w, char *program, const char *arguments) {
  char *rest = w->text;
  int argc = 1;
  assert_non_null(program);
  assert_true(snprintf(w->text, sizeof w->text, "%s", arguments) < (int)sizeof w->text);
  w->argv[0] = program;
  while ((w->argv[argc] = strtok_r(rest, " ", &rest))) assert_true(++argc < MAX_WORDS);
  return argc;
}

/* Starts `clebsch` with arguments separated by blanks; its output goes to the files out and err. */
static inline pid_t start_clebsch(const char *arguments) {
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  word_list w;
  split_words(&w, getenv("CLB_COMMAND"), arguments);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "out", flags, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "err", flags, 0600);
  pid_t pid;
  assert_int_equal(posix_spawn(&pid, w.argv[0], &actions, NULL, w.argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

/* With a limit on a resource, such as RLIMIT_FSIZE, in bytes. */
static inline pid_t start_limited(int resource, size_t bytes, const char *arguments) {
  struct rlimit before, now;
  assert_int_equal(getrlimit(resource, &before), 0);
  now = (struct rlimit){bytes, before.rlim_max};
  assert_int_equal(setrlimit(resource, &now), 0);
  const pid_t pid = start_clebsch(arguments);
  assert_int_equal(setrlimit(resource, &before), 0);
  return pid;
}

typedef struct {
  int status;      /* exit status, or minus the signal that ended it */
  long kilobytes;  /* of memory, at most */
  char *out, *err; /* what it printed */
  size_t out_bytes;
} outcome;

static inline outcome end_of(pid_t pid) {
  int status;
  struct rusage usage;
  outcome o;
  assert_int_equal(wait4(pid, &status, 0, &usage), pid);
  o.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  o.kilobytes = usage.ru_maxrss;
  o.out = get_file("out", &o.out_bytes);
  o.err = get_text("err");
  assert_true(o.out && o.err);
  return o;
}

static inline outcome run_clebsch(const char *arguments) {
  return end_of(start_clebsch(arguments));
}

static inline void forget(outcome *o) {
  free(o->out);
  free(o->err);
}

static inline int ended(pid_t pid) { /* its exit status, or minus the signal that ended it */
  outcome o = end_of(pid);
  forget(&o);
  return o.status;
}

/* Fails unless it exits with this status and `said` is on standard error (NULL: nothing is); what:
   for the message. Returns what is on standard output. */
static inline char *expect_end_of(pid_t pid, const char *what, int status, const char *said) {
  outcome o = end_of(pid);
  if (o.status != status || (said ? !strstr(o.err, said) : *o.err))
    fail_msg("clebsch %s: exit status %d, not %d and '%s': %s", what, o.status, status,
             said ? said : "", o.err);
  free(o.err);
  return o.out;
}

static inline void expect_clebsch(const char *arguments, int status, const char *said) {
  free(expect_end_of(start_clebsch(arguments), arguments, status, said));
}

/* All is well; returns what it printed. */
static inline char *printed_by(const char *arguments) {
  return expect_end_of(start_clebsch(arguments), arguments, 0, NULL);
}

/* All is well, and these words are printed. */
#define expect_printed(arguments, ...)                                                             \
  expect_words(arguments, (const char *const[]){__VA_ARGS__, NULL})
static inline void expect_words(const char *arguments, const char *const words[]) {
  char *out = printed_by(arguments);
  for (; *words; words++)
    if (!strstr(out, *words)) fail_msg("clebsch %s: no '%s' in %.3000s", arguments, *words, out);
  free(out);
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
    const char *arguments = format("%s%s", command, r[i].arguments);
    char *out = expect_end_of(start_clebsch(arguments), arguments, r[i].status, r[i].said);
    if (*out) fail_msg("clebsch %s: prints %s", arguments, out);
    free(out);
  }
}

static inline void need_compiler(void) {
  if (system("cc --version >out 2>&1")) skip_because("no C compiler");
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
