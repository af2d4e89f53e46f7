/* tests/fakes/simulated_devices.h - one test for each device: those that run, CPUs a second time as
   if they were GPUs, and those that only compile. */
#ifndef CLB_TESTS_FAKES_SIMULATED_DEVICES_H
#define CLB_TESTS_FAKES_SIMULATED_DEVICES_H

#include "tests/ops/layers/linear_products.h"

enum { MAX_DEVICES = 24 };

static struct device {
  char name[64];
  bool runs, simulates, f64; /* simulates: a CPU that is taken for a GPU */
  int turn, turns; /* in short runs each test is on every other OpenCL device: plain on one driver,
                      as a GPU on the next */
  clb_context *ctx;
} devices[MAX_DEVICES];
static int n_devices;

static inline void add_device(const clb_device_info *info, void *user) {
  (void)user;
  static int n_opencl;
  bool opencl = !strcmp(info->backend, "opencl"),
       cpu = info->runs && (!strcmp(info->backend, "cpu") || opencl);
  for (int i = 0; i < 1 + cpu && n_devices < MAX_DEVICES; i++, n_devices++) {
    devices[n_devices] = (struct device){.runs = info->runs,
                                         .simulates = i,
                                         .f64 = info->f64,
                                         .turn = opencl ? (n_opencl + i) % 2 : 0,
                                         .turns = opencl ? 2 : 1};
    snprintf(devices[n_devices].name, sizeof devices[0].name, "%s", info->name);
  }
  n_opencl += opencl;
}

static inline clb_context *context(void **state) {
  struct device *d = *state;
  if (d->ctx) return d->ctx;
  OK(d->ctx, clb_context_create(d->name, &d->ctx));
  clb_limits *limits = &d->ctx->device->limits;
  if (d->simulates) limits->simd = false;
  if (d->simulates && !strcmp(d->name, "cpu:interpreter"))
    limits->lanes[CLB_F32] = 32, limits->lanes[CLB_F64] = 16, limits->max_subgroups = 8;
  return d->ctx;
}

static inline int forget_all(void **state) {
  (void)state;
  for (int d = 0; d < n_devices; d++) clb_context_destroy(&devices[d].ctx);
  return 0;
}

typedef struct {
  const char *name;
  void (*test)(void **state);
  bool host; /* only on devices whose memory is the host's */
} named_test;

/* Each test on each device that runs, and `compiles` on those that do not. */
static inline int run_on_all(const char *group, const named_test *tests, int n_tests,
                             void (*compiles)(void **)) {
  static struct CMUnitTest all[MAX_DEVICES * 16];
  static char labels[MAX_DEVICES * 16][96];
  int n = 0;
  clb_devices(add_device, NULL);
  for (int d = 0; d < n_devices; d++)
    for (int t = 0; t < (devices[d].runs ? n_tests : 1); t++) {
      const struct device *on = &devices[d];
      if (on->runs && (leaves_to_another(on->turn, on->turns, t) ||
                       (tests[t].host && strncmp(on->name, "cpu", 3))))
        continue;
      snprintf(labels[n], sizeof labels[n], "%s_%s[%s%s]", group,
               on->runs ? tests[t].name : "compiles", on->name, on->simulates ? ", as a GPU" : "");
      all[n] = (struct CMUnitTest){labels[n], on->runs ? tests[t].test : compiles, NULL, NULL,
                                   &devices[d]};
      n++;
    }
  return _cmocka_run_group_tests(group, all, (size_t)n, NULL, forget_all);
}

#endif
