/* tests/ops/on_devices.h - each test of an op on every device that runs here and has f64. */
#ifndef CLB_TESTS_OPS_ON_DEVICES_H
#define CLB_TESTS_OPS_ON_DEVICES_H

#include "tests/test.h"

#include <clebsch/clebsch.h>

enum { MAX_DEVICES = 16, MAX_DEVICE_TESTS = 16 };
static char devices[MAX_DEVICES][64];
static int n_devices;

static inline void add_device(const clb_device_info *info, void *user) {
  const char *only = getenv("CLB_DEVICE");
  (void)user;
  if (only && *only && strcmp(only, info->name)) return;
  if (info->runs && info->f64 && n_devices < MAX_DEVICES)
    snprintf(devices[n_devices++], sizeof devices[0], "%s", info->name);
}

/* Runs tests[n], whose *state is the device, as "group_test[device]". */
static inline int run_on_devices(const char *group, const struct CMUnitTest *tests, size_t n) {
  static struct CMUnitTest all[MAX_DEVICES * MAX_DEVICE_TESTS];
  static char labels[MAX_DEVICES * MAX_DEVICE_TESTS][96];
  size_t count = 0;
  if (n > MAX_DEVICE_TESTS) return fprintf(stderr, "%s: %zu tests are too many\n", group, n);
  clb_devices(add_device, NULL);
  for (int d = 0; d < n_devices; d++)
    for (size_t t = 0; t < n; t++, count++) {
      snprintf(labels[count], sizeof labels[0], "%s_%s[%s]", group, tests[t].name, devices[d]);
      all[count] = (struct CMUnitTest){labels[count], tests[t].test_func, NULL, NULL, devices[d]};
    }
  return _cmocka_run_group_tests(group, all, count, NULL, NULL);
}

#endif
