/* Training on several devices, by the command: as on one of them, to the same bits each time, and
   without a loss where one fails. */
#include "tests/training/train_runs.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include "tests/fakes/find_fakes.h"
#include "tools/train/devices/shares.h"
#include "tools/train/devices/threads.h"

/* ---- parts ---- */

/* A random batch: each structure is in one part, in the order in which they were; parts differ by
   no more than one structure, and where all are alike by none. */
static void parts_are_even(void **state) {
  enum { MOST = 40 };
  uint64_t seed = 7;
  (void)state;
  for (int round = 0; round < 200; round++) {
    const int n = round % MOST, parts = 1 + round % 9;
    double sizes[MOST], largest = 0, load[9] = {0}, low, high;
    int64_t which[MOST], ends[9];
    int seen[MOST] = {0};
    for (int i = 0; i < n; i++) {
      sizes[i] = round % 3 ? floor(500 * test_random(&seed)) + 500 : 7;
      largest = sizes[i] > largest ? sizes[i] : largest;
      which[i] = n - 1 - i;
    }
    shares_divide(sizes, n, which, parts, ends);
    assert_int_equal(ends[parts - 1], n);
    for (int p = 0; p < parts; p++)
      for (int64_t i = p ? ends[p - 1] : 0; i < ends[p]; i++) {
        load[p] += sizes[which[i]];
        seen[which[i]]++;
        assert_true(!i || (p && i == ends[p - 1]) || which[i] < which[i - 1]);
      }
    for (int i = 0; i < n; i++) assert_int_equal(seen[i], 1);
    low = high = load[0];
    for (int p = 1; p < parts; p++) {
      low = load[p] < low ? load[p] : low;
      high = load[p] > high ? load[p] : high;
    }
    assert_true(high - low <= largest);
    assert_true(parts > n || n % parts || round % 3 || !(high > low));
  }
}

/* Atoms, and edges in both directions: two atoms of a molecule, one of a crystal and its 6 images,
   and none. */
static void sizes_are_counted(void **state) {
  static const double pair[] = {0, 0, 0, 0, 0, 1}, cell[] = {2, 0, 0, 0, 2, 0, 0, 0, 2};
  static const int32_t species[2];
  const clb_model_atoms atoms[] = {{2, species, pair, .charge = 0},
                                   {1, species, pair, cell, {1, 1, 1}, .charge = 0},
                                   {0, species, pair, .charge = 0}};
  (void)state;
  for (int threads = 1; threads < 5; threads++) {
    double sizes[] = {-1, -1, -1};
    shares_measure(3, atoms, 2.1, 0, 1, threads, sizes);
    near_to("molecule", sizes[0], 4, 0);
    near_to("crystal", sizes[1], 7, 0);
    near_to("nothing", sizes[2], 0, 0);
    shares_measure(3, atoms, 2.1, 1, 2, threads, sizes);
    near_to("another's", sizes[0], 0, 0);
    near_to("crystal", sizes[1], 7, 0);
  }
}

/* ---- threads ---- */

enum { THREADS = 8 };
typedef struct {
  pthread_t thread[THREADS];
  int calls[THREADS];
} seen_threads;

static void note_thread(void *user, int k) {
  seen_threads *s = user;
  if (s->calls[k]++) assert_true(pthread_equal(s->thread[k], pthread_self()));
  s->thread[k] = pthread_self();
}

/* Each number in the same thread in every call, 0 in that of the caller; after an end in others. */
static void threads_stay(void **state) {
  static const int n[] = {3, 1, THREADS, 2, 5, THREADS, 1};
  (void)state;
  for (int turn = 0; turn < 2; turn++) {
    seen_threads s = {.calls = {0}};
    int wanted[THREADS] = {0};
    for (int i = 0; i < 70; i++) {
      threads_run(n[i % 7], note_thread, &s);
      for (int k = 0; k < n[i % 7]; k++) wanted[k]++;
      assert_memory_equal(s.calls, wanted, sizeof wanted);
    }
    for (int k = 0; k < THREADS; k++)
      for (int j = 0; j < k; j++) assert_false(pthread_equal(s.thread[k], s.thread[j]));
    assert_true(pthread_equal(s.thread[0], pthread_self()));
    threads_end();
  }
}

/* ---- runs ---- */

static void expect_near_epochs(const json_t *one, const json_t *more, size_t n, double close) {
  static const char *const keys[] = {"train_loss",       "valid_loss",       "gradient_norm",
                                     "train_energy_mae", "train_force_mae",  "train_force_rmse",
                                     "valid_energy_mae", "valid_stress_rmse"};
  const json_t *a = json_object_get(one, "epochs"), *b = json_object_get(more, "epochs");
  assert_int_equal(json_array_size(a), n);
  assert_int_equal(json_array_size(b), n);
  for (size_t k = 0; k < n; k++)
    for (size_t key = 0; key < sizeof keys / sizeof *keys; key++) {
      const double x = number_of(json_array_get(a, k), keys[key]);
      near_to(keys[key], number_of(json_array_get(b, k), keys[key]), x, close * fabs(x));
    }
}

#define RUN "train --model other --train p.xyz --valid p.xyz --exact --json --lr 1e-3 --out new "

/* Of three devices and two structures one has none; drivers' functions differ in last digits. */
static void as_one_device(void **state) {
  static const struct {
    const char *devices;
    int batch;
    double close;
  } runs[] = {{"--device cpu --device cpu,cpu:interpreter", 2, 1e-12},
              {"--device cpu,cpu:interpreter", 4, 1e-12},
              {"--device cpu --device opencl", 8, 1e-9}};
  (void)state;
  for (size_t i = 0; i < (SANITIZED ? 1 : sizeof runs / sizeof *runs); i++) {
    const char *form =
        RUN "%s --batch %d --loss huber --huber-delta 0.1 --optimizer sgd --schedule constant "
            "--epochs 3";
    json_t *one = json_of(format(form, "--device cpu", runs[i].batch)),
           *more = json_of(format(form, runs[i].devices, runs[i].batch));
    assert_int_equal(json_array_size(json_object_get(more, "devices")), 2 + !i);
    expect_near_epochs(one, more, 3, runs[i].close);
    json_decref(one);
    json_decref(more);
  }
}

/* What a rule does is the first device's: averages, moments and norms are of the whole batch. */
static void each_rule(void **state) {
  static const char *const rules[] = {"schedule-free --clip 0.1", "muon --ema 0.9", "soap"};
  (void)state;
  for (size_t i = 0; i < (SANITIZED ? 1 : sizeof rules / sizeof *rules); i++) {
    const char *form = RUN "--device %s --batch 5 --optimizer %s --schedule constant --epochs 2";
    json_t *one = json_of(format(form, "cpu", rules[i])),
           *more = json_of(format(form, "cpu,cpu", rules[i]));
    expect_near_epochs(one, more, 2, 1e-10);
    json_decref(one);
    json_decref(more);
  }
}

/* Two runs, and one that went on, to the bit. */
static void same_bits(void **state) {
  const char *form = RUN "--device cpu,cpu:interpreter --batch 3 --ema 0.9 --schedule constant "
                         "--epochs %d %s";
  (void)state;
  unlink("r");
  unlink("whole_r");
  json_t *whole = json_of(format(form, 3, "--restart whole_r"));
  assert_int_equal(rename("new", "whole"), 0);
  json_decref(json_of(format(form, 2, "--restart r")));
  json_t *part = json_of(format(form, 3, "--continue r --restart r"));
  expect_same_epochs(part, whole);
  expect_same_file("new", "whole");
  expect_same_file("r", "whole_r");
  json_decref(whole);
  json_decref(part);
}

static void times_are_told(void **state) {
  static const char *const parts[] = {"gradient", "waiting", "sum", "optimizer", "parameters"};
  (void)state;
  json_t *o = json_of(RUN "--device cpu,cpu --batch 3 --epochs 3");
  const json_t *t = json_object_get(o, "of_a_step");
  double sum = 0;
  assert_int_equal(integer_of(t, "steps"), 6); /* the first epoch's three are not among them */
  for (int i = 0; i < 5; i++) sum += number_of(t, parts[i]);
  assert_true(positive(t, "gradient") <= sum && sum <= positive(t, "seconds"));
  json_decref(o);
}

static void refused(void **state) {
#define REFUSED "train --model other --train p.xyz --out x --epochs 1 --device "
  static const refusal wrong[] = {{REFUSED "cpu,none", 1, "none"},
                                  {REFUSED "gpu:all", 1, "--device gpu:all: there is none"}};
  (void)state;
  expect_refusals("", wrong, 2);
}

/* ---- a device that fails ---- */

/* The command's driver is the fake one; returns what use_real takes. */
static char *use_fake(void) {
  static void *genuine;
  if (!genuine) { /* once: from then on the loader finds the fake one */
    if (!find_fake_opencl(&genuine)) skip_because("there is no OpenCL");
    assert_int_equal(mkdir("drivers", 0700), 0);
    assert_int_equal(symlink(getenv("CLB_TEST_FAKE_OPENCL"), "drivers/libOpenCL.so.1"), 0);
  }
  const char *before = getenv("LD_LIBRARY_PATH");
  char *path = before ? strdup(before) : NULL;
  setenv("LD_LIBRARY_PATH", format("%s/drivers:%s", work_folder, path ? path : ""), 1);
  return path;
}

static void use_real(char *path) {
  if (path) setenv("LD_LIBRARY_PATH", path, 1);
  else unsetenv("LD_LIBRARY_PATH");
  free(path);
}

/* Steps in a restart, the first number after its first line; 0 without one. */
static int steps_of(const char *path) {
  size_t n;
  double steps = 0;
  unsigned char *bytes = access(path, F_OK) ? NULL : get_file(path, &n);
  const unsigned char *line = bytes ? memchr(bytes, '\n', n) : NULL;
  if (line) memcpy(&steps, line + 1, sizeof steps);
  free(bytes);
  return (int)steps;
}

#define FAILING                                                                                    \
  "train --model other --train p.xyz --valid p.xyz --exact --batch 4 --ema 0.9 --lr 1e-4 "         \
  "--epochs 2 --device cpu,opencl --out %s --restart %s%s"

/* The steps in the restart of a run whose second device takes so many writes, and no more. */
static int steps_before(int writes) {
  unlink("r");
  setenv("FAKE_OPENCL_CALLS", format("%d", writes), 1);
  outcome o = run_clebsch(format(FAILING, "part", "r", ""));
  unsetenv("FAKE_OPENCL_CALLS");
  const int steps = steps_of("r");
  const char *from = steps ? "clebsch: opencl:" : "clebsch: ";
  assert_int_equal(o.status, 1);
  if (strncmp(o.err, from, strlen(from)) != 0 || strchr(o.err, '\n') != strrchr(o.err, '\n'))
    fail_msg("%d writes: %s", writes, o.err);
  forget(&o);
  return steps;
}

/* The second device's driver fails: one sentence, and a restart that is written then, with all
   steps before. First in the last gradient of an epoch, then where it is given the parameters of
   this step, and those that are validated. */
static void one_fails(void **state) {
  int low = 0, high = 64;
  char *path = use_fake();
  (void)state;
  unlink("whole_r");
  free(printed_by(format(FAILING, "whole", "whole_r", "")));
  assert_int_equal(steps_of("whole_r"), 4);
  setenv("FAKE_OPENCL_FAILS", "clEnqueueWriteBuffer", 1);
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (steps_before(middle) < 2) low = middle;
    else high = middle;
  }
  for (int writes = low; writes < low + 3; writes++) {
    assert_int_equal(steps_before(writes), 1 + (writes > low));
    free(printed_by(format(FAILING, "part", "r", " --continue r")));
    expect_same_file("part", "whole");
    expect_same_file("r", "whole_r");
  }
  unsetenv("FAKE_OPENCL_FAILS");
  use_real(path);
}

/* ---- what goes through the host ---- */

/* All parameters, in f64. */
static size_t parameter_bytes(void) {
  size_t n;
  uint64_t header;
  unsigned char *bytes = get_file("other", &n);
  assert_non_null(bytes);
  memcpy(&header, bytes, sizeof header);
  free(bytes);
  return n - sizeof header - header;
}

/* Copies of as many bytes as the parameters have, or more, in an epoch of so many structures a
 * step.
 */
static void count_copies(const char *devices, int batch, long copies[2]) {
  unlink("r");
  setenv("FAKE_OPENCL_COPIES", "copies", 1);
  free(printed_by(format("train --model other --train p.xyz --valid p.xyz --exact --epochs 1 "
                         "--dtype f64 --optimizer adamw --ema 0.9 --clip 1 --lr 1e-4 --out part "
                         "--restart r --device %s --batch %d",
                         devices, batch)));
  unsetenv("FAKE_OPENCL_COPIES");
  FILE *f = fopen("copies", "r");
  assert_non_null(f);
  assert_int_equal(fscanf(f, "%ld %ld", &copies[0], &copies[1]), 2);
  fclose(f);
}

/* On one device neither the gradient nor parameters: as much is copied with 8 steps an epoch as
   with one. Of two devices both are. */
static void stays_on_device(void **state) {
  long few[2], many[2], shared[2];
  (void)state;
  if (SANITIZED) return; /* it copies the same */
  char *path = use_fake();
  setenv("FAKE_OPENCL_BYTES", format("%d", (int)parameter_bytes()), 1);
  count_copies("opencl", FRAMES, few);
  count_copies("opencl", 1, many);
  count_copies("cpu,opencl", 2, shared);
  for (int i = 0; i < 2; i++) {
    if (few[i] < 1 || many[i] != few[i])
      fail_msg("%s: %ld copies in a step, %ld in 8", i ? "to the device" : "from it", few[i],
               many[i]);
    assert_true(shared[i] >= 4);
  }
  use_real(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_are_even), cmocka_unit_test(sizes_are_counted),
      cmocka_unit_test(threads_stay),   cmocka_unit_test(as_one_device),
      cmocka_unit_test(each_rule),      cmocka_unit_test(same_bits),
      cmocka_unit_test(times_are_told), cmocka_unit_test(refused),
      cmocka_unit_test(one_fails),      cmocka_unit_test(stays_on_device)};
  return cmocka_run_group_tests(tests, make_all, remove_predictions);
}
