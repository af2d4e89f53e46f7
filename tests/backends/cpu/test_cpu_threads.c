/* tests/backends/cpu/test_cpu_threads.c - launches by several threads at once, on devices that come
   and go: each group is done once, and no thread sleeps through a job or its end. */
#include "tests/test.h"

#include <pthread.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"

enum { LAUNCHERS = 4, DEVICES = 200, LAUNCHES = 20, GROUPS = 1000 };

static int64_t done[LAUNCHERS][LAUNCHERS * GROUPS];

static void add_group(const ir_arg *arg, int64_t first, int64_t last) {
  int64_t *sums = arg[0].p;
  for (int64_t i = first; i < last; i++) sums[i] += i;
}

static void *launcher(void *number) {
  const int64_t n = (int64_t)(intptr_t)number;
  const ir_arg arg = {.p = done[n]};
  for (int d = 0; d < DEVICES; d++) {
    clb_cpu_threads *t = clb_cpu_threads_create(2 + (int)n % 2);
    for (int i = 0; t && i < LAUNCHES; i++)
      clb_cpu_threads_run(t, add_group, &arg, (n + 1) * GROUPS, 7);
    clb_cpu_threads_destroy(t);
  }
  return NULL;
}

static void launches_of_many(void **state) {
  pthread_t thread[LAUNCHERS];
  (void)state;
  alarm(120); /* a thread that is never woken would hang */
  for (intptr_t n = 0; n < LAUNCHERS; n++)
    assert_int_equal(pthread_create(&thread[n], NULL, launcher, (void *)n), 0);
  for (int n = 0; n < LAUNCHERS; n++) pthread_join(thread[n], NULL);
  alarm(0);
  for (int n = 0; n < LAUNCHERS; n++)
    for (int64_t i = 0; i < (n + 1) * GROUPS; i++)
      assert_true(done[n][i] == DEVICES * LAUNCHES * i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(launches_of_many)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
