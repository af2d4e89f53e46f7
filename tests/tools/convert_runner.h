/* tests/tools/convert_runner.h - runs `clebsch convert` on files that a test makes up. */
#ifndef CLB_TESTS_TOOLS_CONVERT_RUNNER_H
#define CLB_TESTS_TOOLS_CONVERT_RUNNER_H

#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "models/file/safetensors.h"

extern char **environ;

static char convert_folder[] = "/tmp/clebsch_convert_XXXXXX", convert_in[64], convert_out[64];

static inline int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(convert_folder)) return -1;
  snprintf(convert_in, sizeof convert_in, "%s/in", convert_folder);
  snprintf(convert_out, sizeof convert_out, "%s/out", convert_folder);
  return 0;
}

/* Fails if a run has left anything else, such as a temporary file, in the folder. */
static inline int remove_folder(void **state) {
  (void)state;
  unlink(convert_in);
  unlink(convert_out);
  return rmdir(convert_folder);
}

typedef struct {
  int status; /* exit status; -1: ended by a signal */
  char said[2048];
} converted; /* what it printed on standard error */

/* With an option and its value; value: NULL, without. */
static inline converted run_convert_choosing(const char *option, const char *value,
                                             const char *first, const char *second) {
  char *argv[] = {getenv("CLB_COMMAND"), "convert",     (char *)first, (char *)second,
                  (char *)option,        (char *)value, NULL};
  if (!value) argv[4] = NULL;
  FILE *err = tmpfile();
  posix_spawn_file_actions_t actions;
  pid_t pid;
  int status;
  assert_true(argv[0] && err);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(err), STDERR_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  converted c = {.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1};
  rewind(err);
  c.said[fread(c.said, 1, sizeof c.said - 1, err)] = 0;
  fclose(err);
  return c;
}

static inline converted run_convert_with(const char *modality, const char *first,
                                         const char *second) {
  return run_convert_choosing("--modality", modality, first, second);
}

static inline converted run_convert(const char *first, const char *second) {
  return run_convert_with(NULL, first, second);
}

/* ---- files ---- */

/* The file that a test makes up; start_file, then add. */
static struct {
  size_t n;
  unsigned char bytes[4 << 20];
} made;

static inline void start_file(void) { made.n = 0; }

static inline void add_bytes(const void *bytes, size_t n) {
  assert_true(n <= sizeof made.bytes - made.n);
  if (n) memcpy(made.bytes + made.n, bytes, n);
  made.n += n;
}

static inline void add_text(const char *text) { add_bytes(text, strlen(text)); }

static inline void add_number(uint32_t x, int bytes) { /* little endian */
  for (int i = 0; i < bytes; i++) add_bytes(&(unsigned char){(unsigned char)(x >> 8 * i)}, 1);
}

static inline void put_file(const char *path, const void *bytes, size_t n) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

/* A whole file, to be freed; NULL if there is none. */
static inline unsigned char *get_file(const char *path, size_t *n) {
  struct stat about;
  FILE *f = path ? fopen(path, "rb") : NULL;
  *n = 0;
  if (!f) return NULL;
  assert_int_equal(fstat(fileno(f), &about), 0);
  *n = (size_t)about.st_size;
  unsigned char *bytes = malloc(*n + 1);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, *n, f), *n);
  fclose(f);
  return bytes;
}

/* Converting these bytes fails with `what` in the message, and writes nothing. head: NULL, without
   that option. */
static inline void refused_head(const char *head, const void *bytes, size_t n, const char *what) {
  put_file(convert_in, bytes, n);
  const converted c = run_convert_choosing("--head", head, convert_in, convert_out);
  char start[96];
  snprintf(start, sizeof start, "clebsch: %s: ", convert_in);
  if (c.status != 1 || strncmp(c.said, start, strlen(start)) != 0 || !strstr(c.said, what))
    fail_msg("status %d, not 1 and '%s': %s", c.status, what, c.said);
  if (!access(convert_out, F_OK)) fail_msg("there is a file for: %s", c.said);
}

static inline void refused_bytes(const void *bytes, size_t n, const char *what) {
  refused_head(NULL, bytes, n, what);
}

/* Converts and opens the result; head: NULL, without that option. */
static inline clb_safetensors *convert_head(const char *head, const char *path) {
  clb_error_sink e = {0};
  clb_safetensors *file = NULL;
  const converted c = run_convert_choosing("--head", head, path, convert_out);
  if (c.status || *c.said) fail_msg("status %d: %s", c.status, c.said);
  if (clb_safetensors_open(&e, convert_out, &file)) fail_msg("%s", e.text.s);
  return file;
}

static inline clb_safetensors *convert_file(const char *path) { return convert_head(NULL, path); }

/* ---- what the result holds ---- */

static inline void expect_said(const clb_safetensors *file, const char *key, const char *wanted) {
  clb_error_sink e = {0};
  const char *text;
  if (clb_safetensors_text(&e, file, key, &text)) fail_msg("%s", e.text.s);
  if (strcmp(text, wanted) != 0) fail_msg("%s is '%s', not '%s'", key, text, wanted);
}

/* First and last element and sum of a tensor of that dtype and shape (ending at an extent of 0). */
typedef struct {
  const char *name, *dtype;
  int64_t shape[4];
  double first, last, sum;
} expected_tensor;

static inline double *read_tensor(const clb_safetensors *file, const clb_tensor *t) {
  clb_error_sink e = {0};
  double *x = calloc((size_t)t->count + 1, sizeof *x);
  assert_non_null(x);
  if (clb_safetensors_read(&e, file, t->name, t->rank, t->shape, x)) fail_msg("%s", e.text.s);
  return x;
}

static inline double sum_of(const clb_safetensors *file, const clb_tensor *t) {
  double *x = read_tensor(file, t), sum = 0;
  for (int64_t i = 0; i < t->count; i++) sum += x[i];
  free(x);
  return sum;
}

static inline void expect_tensor(const clb_safetensors *file, const expected_tensor *wanted) {
  const clb_tensor *t = clb_safetensors_find(file, wanted->name);
  if (!t || strcmp(t->dtype, wanted->dtype) != 0)
    fail_msg("'%s' is %s, not %s", wanted->name, t ? t->dtype : "not there", wanted->dtype);
  for (int i = 0; i < 4; i++)
    if ((i < t->rank ? t->shape[i] : 0) != wanted->shape[i])
      fail_msg("'%s' has extent %d wrong", wanted->name, i);
  double *x = read_tensor(file, t), sum = sum_of(file, t), off = sum - wanted->sum;
  if (x[0] != wanted->first || x[t->count - 1] != wanted->last || !(off < 1e-9 && off > -1e-9))
    fail_msg("'%s' is %.17g ... %.17g, in all %.17g", wanted->name, x[0], x[t->count - 1], sum);
  free(x);
}

#endif
