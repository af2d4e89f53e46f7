/* tests/backends/cpu/test_cpu_fork.c - a child forked from a process that uses "cpu": the copies
   that it has of contexts, and contexts of its own. */
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include <clebsch/clebsch.h>

enum {
  ROWS = 200000,
  WORDS = 9,
  PATIENCE = 60
}; /* enough rows for all threads; seconds after which a child counts as hung */

typedef struct {
  clb_context *ctx;
  clb_op *op;
  clb_rows x, y;
  float *out; /* of the last launch */
} harmonics;

static bool open_one(harmonics *h) {
  static const int degrees[] = {0, 1, 2};
  const clb_spherical_harmonics_desc desc = {.degrees = degrees,
                                             .n_degrees = 3,
                                             .passes = CLB_PASS_BIT(CLB_FORWARD),
                                             .storage = CLB_F32,
                                             .arithmetic = CLB_F32};
  float *x = calloc(3 * ROWS, sizeof *x);
  uint64_t seed = 1;
  *h = (harmonics){.out = calloc(WORDS * ROWS, sizeof *x)};
  for (int i = 0; x && i < 3 * ROWS; i++) x[i] = (float)test_random(&seed);
  const bool good = x && h->out && !clb_context_create("cpu", &h->ctx) &&
                    !clb_spherical_harmonics_create(h->ctx, &desc, &h->op) &&
                    !clb_buffer_create(h->ctx, 3 * ROWS * sizeof *x, &h->x.buffer) &&
                    !clb_buffer_create(h->ctx, WORDS * ROWS * sizeof *x, &h->y.buffer) &&
                    !clb_buffer_write(h->x.buffer, 0, x, 3 * ROWS * sizeof *x);
  free(x);
  return good;
}

static bool launch(harmonics *h) {
  return !clb_spherical_harmonics_forward(h->op, ROWS, h->x, h->y) && !clb_wait(h->ctx) &&
         !clb_buffer_read(h->y.buffer, 0, h->out, WORDS * ROWS * sizeof *h->out);
}

static void close_one(harmonics *h) {
  clb_op_destroy(&h->op);
  clb_buffer_destroy(&h->x.buffer);
  clb_buffer_destroy(&h->y.buffer);
  clb_context_destroy(&h->ctx);
  free(h->out);
  h->out = NULL;
}

static bool same_results(const harmonics *a, const harmonics *b) {
  return !memcmp(a->out, b->out, WORDS * ROWS * sizeof *a->out);
}

/* Runs it in a child; a child that hangs is killed. */
static void expect_child(harmonics *h, bool (*body)(harmonics *h)) {
  int status;
  fflush(NULL);
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (!pid) {
    alarm(PATIENCE);
    _exit(body(h) ? 0 : 1);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  if (WIFSIGNALED(status)) fail_msg("the child ended by signal %d", WTERMSIG(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- what a child does ---- */

static bool destroys(harmonics *h) {
  close_one(h);
  return true;
}

static bool opens_anew(harmonics *h) {
  harmonics mine;
  const bool good = open_one(&mine) && launch(&mine) && (!h->ctx || same_results(&mine, h));
  close_one(&mine);
  return good;
}

static bool destroys_and_opens(harmonics *h) {
  harmonics mine;
  float *kept = h->out;
  h->out = NULL;
  close_one(h);
  bool good =
      open_one(&mine) && launch(&mine) && !memcmp(mine.out, kept, WORDS * ROWS * sizeof *kept);
  close_one(&mine);
  free(kept);
  return good;
}

static bool opens_and_destroys(harmonics *h) {
  const bool good = opens_anew(h);
  close_one(h);
  return good;
}

/* The copy of a context has its own memory, and starts its own threads. */
static bool uses_its_copy(harmonics *h) {
  harmonics before = {.out = malloc(WORDS * ROWS * sizeof *h->out)};
  if (!before.out) return false;
  memcpy(before.out, h->out, WORDS * ROWS * sizeof *h->out);
  memset(h->out, 0, WORDS * ROWS * sizeof *h->out);
  const bool good = launch(h) && same_results(h, &before) && launch(h) && same_results(h, &before);
  free(before.out);
  close_one(h);
  return good;
}

static bool has_a_child_itself(harmonics *h) {
  expect_child(h, uses_its_copy);
  return uses_its_copy(h);
}

/* ---- tests ---- */

static void children_of_a_user(void **state) {
  (void)state;
  static bool (*const bodies[])(harmonics * h) = {destroys,           opens_anew,
                                                  destroys_and_opens, opens_and_destroys,
                                                  uses_its_copy,      has_a_child_itself};
  harmonics h;
  assert_true(open_one(&h) && launch(&h));
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    expect_child(&h, bodies[i]);
    assert_true(launch(&h)); /* the parent's threads are still its own */
  }
  close_one(&h);
}

/* The other order: fork with a context that has started no thread yet, and with no context. */
static void children_before_use(void **state) {
  (void)state;
  harmonics none = {.ctx = NULL}, h;
  expect_child(&none, opens_anew);
  assert_true(open_one(&h));
  expect_child(&h, destroys);
  expect_child(&none, opens_anew);
  assert_true(launch(&h));
  close_one(&h);
}

static atomic_bool enough;

static void *launches(void *user) {
  while (!atomic_load(&enough))
    if (!launch(user)) return NULL;
  return user;
}

/* Whatever the threads are doing when another thread forks, whether their lock is held or not. */
static void children_of_a_busy_user(void **state) {
  (void)state;
  harmonics h;
  pthread_t busy;
  void *well;
  assert_true(open_one(&h) && launch(&h));
  assert_int_equal(pthread_create(&busy, NULL, launches, &h), 0);
  for (int i = 0; i < 30; i++) {
    expect_child(&h, destroys);
    usleep(300 * (useconds_t)i);
  }
  atomic_store(&enough, true);
  assert_int_equal(pthread_join(busy, &well), 0);
  assert_non_null(well);
  close_one(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(children_of_a_user),
                                     cmocka_unit_test(children_before_use),
                                     cmocka_unit_test(children_of_a_busy_user)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
