/* tests/edges/test_gpu_steps.c - what a step of a model asks of CUDA's or HIP's driver: one copy
   in each direction, one wait, and two launches of recordings. On fake drivers, whose kernels do
   nothing. */
#define _GNU_SOURCE
#include "tests/fakes/find_fakes.h"
#include "tests/models/model_places.h"

static fake_driver fake;

static struct {
  const char *name[32];
  int calls[32], n;
} counted;

static void count_call(const char *function) {
  int i = 0;
  while (i < counted.n && strcmp(counted.name[i], function)) i++;
  assert_true(i < 32);
  if (i == counted.n) counted.name[counted.n++] = function;
  counted.calls[i]++;
}

static int calls_of(const char *function) {
  for (int i = 0; i < counted.n; i++)
    if (!strcmp(counted.name[i], function)) return counted.calls[i];
  return 0;
}

static int all_calls(void) {
  int n = 0;
  for (int i = 0; i < counted.n; i++) n += counted.calls[i];
  return n;
}

/* Calls of a driver for each time that the library enters it; names that end with NULL. */
typedef struct {
  const char *device, *enters[4], *write, *replay, *launch, *read, *wait;
} names;

static void steps_on(const names *d) {
  fake = (fake_driver){.left = -1, .devices = 1, .memory = (size_t)1 << 34};
  if (!find_fake_gpus(&fake)) skip_because("CLB_TEST_FAKE_GPU does not name the fake drivers");
  for (int skin = 0; skin < 2; skin++) {
    opened o = open_made(d->device, 1, &(clb_model_options){.knots = 16, .skin = 0.3 * skin});
    atom_set a = random_atoms(9, 2, true, 5);
    for (int t = 0; t < 4; t++, a.positions[0] += 1e-3) compute_atoms(&o, &a);
    counted.n = 0;
    memset(counted.calls, 0, sizeof counted.calls);
    fake.called = count_call;
    compute_atoms(&o, &a);
    fake.called = NULL;
    assert_int_equal(calls_of(d->write), 1);
    assert_int_equal(calls_of(d->replay), 2 - skin); /* a search in each step, or none */
    assert_int_equal(calls_of(d->launch), 1);
    assert_int_equal(calls_of(d->read), 1);
    assert_int_equal(calls_of(d->wait), 1);
    int enters = 0;
    for (int i = 0; d->enters[i]; i++) enters += calls_of(d->enters[i]);
    assert_int_equal(all_calls(), enters + 6 - skin);
    close_model(&o);
  }
  if (fake.mistake[0]) fail_msg("%s", fake.mistake);
  assert_int_equal(fake.alive, 0);
}

static void cuda(void **state) {
  (void)state;
  steps_on(&(names){"cuda",
                    {"cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2"},
                    "cuMemcpyHtoDAsync_v2",
                    "cuGraphLaunch",
                    "cuLaunchKernel",
                    "cuMemcpyDtoHAsync_v2",
                    "cuStreamSynchronize"});
}

static void hip(void **state) {
  (void)state;
  steps_on(&(names){"hip",
                    {"hipGetDevice", "hipSetDevice"},
                    "hipMemcpyHtoDAsync",
                    "hipGraphLaunch",
                    "hipModuleLaunchKernel",
                    "hipMemcpyDtoHAsync",
                    "hipStreamSynchronize"});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cuda), cmocka_unit_test(hip)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
