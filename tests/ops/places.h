/* tests/ops/places.h - one test for each place: a device that runs here and has f64, or $CLB_DEVICE
   alone; and the interpreter with the limits of some GPUs. */
#ifndef CLB_TESTS_OPS_PLACES_H
#define CLB_TESTS_OPS_PLACES_H

#include "tests/fakes/device_limits.h"
#include "tests/test.h"

#include "src/runtime/context.h"

enum { MAX_PLACES = 16, MAX_PLACE_TESTS = 24 };

typedef struct {
  char name[64]; /* of the device */
  enum {
    SLOW,
    BRISK,
    THOROUGH
  } effort; /* OpenCL on a CPU takes seconds to compile a kernel that the interpreter runs at once
             */
  int turn; /* of the SLOW ones, in short runs */
  int gpu;  /* of device_limits, which the interpreter has; -1: its own */
  clb_context *ctx;
} place;
static place places[MAX_PLACES];
static int n_places, n_slow;

typedef struct {
  char name[32];
  void (*run)(void **place);
  int effort; /* left out on devices with less */
} place_test;

/* Sanitizers check accesses to memory, whatever the numbers are, so one case of each kind, on few
   rows, is enough. The released build runs all of them, as does the sanitized one in `ci/test.sh
   --long`. */
static inline bool few_cases(void) { return SANITIZED && !long_tests(); }

static inline clb_context *context_of(place *p) {
  if (p->ctx) return p->ctx;
  OK(p->ctx, clb_context_create(p->name, &p->ctx));
  if (p->gpu >= 0) p->ctx->device->limits = device_limits[p->gpu].limits;
  return p->ctx;
}

/* How many of a list to try: by effort. */
static inline int many(const place *p, int slow, int brisk, int all) {
  return (const int[]){slow, brisk, all}[p->effort];
}

static inline void add_place(const char *name, int effort, int gpu) {
  place *p = &places[n_places++];
  assert_true(n_places <= MAX_PLACES);
  *p = (place){.gpu = gpu, .turn = effort == SLOW ? n_slow++ : 0};
  p->effort = effort;
  snprintf(p->name, sizeof p->name, "%s", name);
}

static inline void add_device_place(const clb_device_info *info, void *unused) {
  (void)unused;
  if (info->runs && info->f64)
    add_place(info->name,
              !strcmp(info->name, "cpu:interpreter") ? THOROUGH
              : !strcmp(info->backend, "opencl")     ? SLOW
                                                     : BRISK,
              -1);
}

static inline void find_places(const int *gpus, int n_gpus) {
  const char *asked = getenv("CLB_DEVICE");
  if (asked && *asked) add_place(asked, SANITIZED ? BRISK : THOROUGH, -1);
  else clb_devices(add_device_place, NULL);
  for (int i = 0, n = n_places; i < n; i++)
    for (int g = 0; g < n_gpus && !strcmp(places[i].name, "cpu:interpreter"); g++)
      add_place("cpu:interpreter", places[i].effort, gpus[g]);
}

static inline int close_places(void **state) {
  (void)state;
  for (int i = 0; i < n_places; i++) clb_context_destroy(&places[i].ctx);
  return 0;
}

/* Tests are named "group_test[device as GPU]". */
static inline int run_at_places(const char *group, const place_test *tests, int n_tests,
                                const int *gpus, int n_gpus) {
  static struct CMUnitTest all[MAX_PLACES * MAX_PLACE_TESTS];
  static char labels[MAX_PLACES * MAX_PLACE_TESTS][128];
  size_t n = 0;
  if (n_tests > MAX_PLACE_TESTS) abort();
  find_places(gpus, n_gpus);
  for (place *p = places; p < places + n_places; p++)
    for (int t = 0; t < n_tests; t++) {
      if ((int)p->effort < tests[t].effort ||
          (p->effort == SLOW && leaves_to_another(p->turn, n_slow, t)))
        continue;
      snprintf(labels[n], sizeof labels[n], "%s_%s[%s%s%s]", group, tests[t].name, p->name,
               p->gpu < 0 ? "" : " as ", p->gpu < 0 ? "" : device_limits[p->gpu].name);
      all[n] = (struct CMUnitTest){labels[n], tests[t].run, NULL, NULL, p};
      n++;
    }
  return _cmocka_run_group_tests(group, all, n, NULL, close_places);
}

#define RUN_AT_PLACES(group, tests)                                                                \
  run_at_places(group, tests, (int)(sizeof tests / sizeof *tests), NULL, 0)
#define RUN_AS_GPUS(group, tests, gpus)                                                            \
  run_at_places(group, tests, (int)(sizeof tests / sizeof *tests), gpus,                           \
                (int)(sizeof gpus / sizeof *gpus))

#endif
