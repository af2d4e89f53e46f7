/* tests/tools/convert_runner.h - runs `clebsch convert` on files that a test makes up. */
#ifndef CLB_TESTS_TOOLS_CONVERT_RUNNER_H
#define CLB_TESTS_TOOLS_CONVERT_RUNNER_H

#include "tests/command.h"

#include "models/file/safetensors.h"

static const char convert_in[] = "in", convert_out[] = "converted";

/* Fails if a run has left anything else, such as a temporary file, in the folder. */
static inline int remove_converted(void **state) {
  static const char *const files[] = {convert_in, convert_out, "out", "err"};
  (void)state;
  for (int i = 0; i < 4; i++) unlink(files[i]);
  return rmdir("tmp") || chdir("/") || rmdir(work_folder);
}

/* option: such as "--head", which is left out where `value` is NULL. */
static inline outcome run_convert(const char *option, const char *value, const char *from,
                                  const char *to) {
  return run_clebsch(
      format("convert %s %s %s %s", from, to, value ? option : "", value ? value : ""));
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

/* It fails with `what` in the message, and writes nothing. */
static inline void expect_no_model(const char *option, const char *value, const char *from,
                                   const char *what) {
  outcome o = run_convert(option, value, from, convert_out);
  const char *start = format("clebsch: %s: ", from);
  if (o.status != 1 || strncmp(o.err, start, strlen(start)) != 0 || !strstr(o.err, what))
    fail_msg("status %d, not 1 and '%s': %s", o.status, what, o.err);
  if (!access(convert_out, F_OK)) fail_msg("there is a file for: %s", o.err);
  forget(&o);
}

/* Converting these bytes fails. head: NULL, without that option. */
static inline void refused_head(const char *head, const void *bytes, size_t n, const char *what) {
  put_file(convert_in, bytes, n);
  expect_no_model("--head", head, convert_in, what);
}

static inline void refused_bytes(const void *bytes, size_t n, const char *what) {
  refused_head(NULL, bytes, n, what);
}

/* Converts and opens the result; head: NULL, without that option. */
static inline clb_safetensors *convert_head(const char *head, const char *path) {
  clb_error_sink e = {0};
  clb_safetensors *file = NULL;
  outcome o = run_convert("--head", head, path, convert_out);
  if (o.status || *o.err) fail_msg("status %d: %s", o.status, o.err);
  forget(&o);
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
