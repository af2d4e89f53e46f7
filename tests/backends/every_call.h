/* tests/backends/every_call.h - each call of a driver fails once: a message each time, no leak, no
   crash. */
#ifndef CLB_TESTS_BACKENDS_EVERY_CALL_H
#define CLB_TESTS_BACKENDS_EVERY_CALL_H

#include "backends/backend.h"
#include "tests/fakes/find_fakes.h"
#include "tests/test.h"

/* What is tried on a stand-in for a driver. */
typedef struct {
  const clb_backend *backend;
  const char *name; /* of the device */
  fake_driver *fake;
  int code;                             /* with which calls fail, */
  const char *word;                     /* and what messages call that */
  bool (*harmless)(const char *failed); /* whether a call may fail unseen; NULL: some may */
  clb_error_sink error;
  clb_device *device; /* open while the calls that fail are others' */
  clb_native native;
  bool adopt;
  void *pointer; /* shared memory, or NULL */
  int local;     /* f32 elements of local memory that every value passes through; 0: none */
} trial;

/* NULL: without the caller's handles. */
static inline clb_status open_trial(trial *t, const clb_native *native, clb_device **d) {
  *d = NULL;
  const clb_status s =
      t->backend->open(t->name, t->name + strlen(t->backend->name), native, &t->error, d);
  assert_true(!s == (*d != NULL));
  return s;
}

static inline void count_devices(const clb_device_info *info, void *user) {
  assert_non_null(info->description);
  ++*(int *)user;
}

/* Only the first call fails, then only the second, and so on until no call is left; `min` of them
   must be told. */
static inline void fail_each_call(trial *t, clb_status (*attempt)(trial *), int min) {
  fake_driver *f = t->fake;
  const int alive = f->alive;
  int n = 0, told = 0;
  for (;; n++) {
    f->left = n, f->code = t->code, f->only = f->failed = NULL;
    const clb_status s = attempt(t);
    const char *failed = f->failed, *said = t->error.text.s ? t->error.text.s : "";
    f->left = -1;
    if (f->mistake[0]) fail_msg("%s: call %d (%s) failed: %s", t->name, n, failed, f->mistake);
    if (f->alive != alive)
      fail_msg("%s: after call %d (%s) failed, %d objects are left over", t->name, n, failed,
               f->alive - alive);
    if (!failed && s) fail_msg("%s: %s", t->name, said);
    if (!failed) break;
    if (s && !(strstr(said, failed) && strstr(said, t->word)) &&
        !strstr(said, "is not memory of this driver")) /* what such a failure means */
      fail_msg("%s: call %d (%s) failed: %s", t->name, n, failed, said);
    if (!s && t->harmless && !t->harmless(failed))
      fail_msg("%s: call %d (%s) was not noticed", t->name, n, failed);
    told += s != CLB_OK;
  }
  clb_text_free(&t->error.text);
  if (told < min) fail_msg("%s: of %d calls only %d are missed when they fail", t->name, n, told);
}

/* Calls that fail with a code of their own: what becomes of them. */
typedef struct {
  const char *function; /* NULL: none */
  int code;
  clb_status status;
  const char *said; /* part of the message */
} coded_failure;

static inline void expect_failure(trial *t, clb_status (*attempt)(trial *),
                                  const coded_failure *wanted) {
  fake_driver *f = t->fake;
  const int alive = f->alive;
  f->left = wanted->function ? 0 : -1, f->only = wanted->function, f->code = wanted->code;
  const clb_status s = attempt(t);
  f->left = -1, f->only = NULL;
  if (s != wanted->status || !t->error.text.s || !strstr(t->error.text.s, wanted->said))
    fail_msg("%s, %s: %d, %s", t->name, wanted->function, (int)s, t->error.text.s);
  assert_int_equal(f->alive, alive);
  clb_text_free(&t->error.text);
}

#endif
