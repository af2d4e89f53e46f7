/* tests/backends/opencl_devices.h - the OpenCL devices here, and the cases of opencl_cases.h on one
   of them. */
#ifndef CLB_TESTS_BACKENDS_OPENCL_DEVICES_H
#define CLB_TESTS_BACKENDS_OPENCL_DEVICES_H

#include "backends/opencl/opencl.h"
#include "tests/backends/opencl_cases.h"

enum { MAX_NAMES = 16 };
static struct {
  int n;
  char name[MAX_NAMES][32];
} found; /* filled once, by main */

static inline void remember(const clb_device_info *info, void *user) {
  (void)user;
  if (found.n < MAX_NAMES) snprintf(found.name[found.n++], sizeof *found.name, "%s", info->name);
}

static const clb_backend *const opencl = &clb_backend_opencl;

static inline clb_device *open_named(const char *name, const clb_native *native,
                                     clb_error_sink *error) {
  clb_device *d = NULL;
  clb_status s = opencl->open(name, name + strlen("opencl"), native, error, &d);
  if (s) fail_msg("%s: %s", name, error->text.s);
  return d;
}

static inline bool rounds_division(const clb_device *d) {
  return ((const clb_opencl *)d)->rounds_division;
}

static inline void run_case(clb_device *d, int which) {
  void *arrays[CASE_PARAMETERS] = {0};
  kernel_case c;
  case_begin(&c, which, &d->limits, rounds_division(d));
  case_copies(&c, arrays);
  if (case_run(d, &c, arrays)) fail_msg("%s on %s: %s", c.k.name, d->info.name, d->error->text.s);
  case_expect(&c, d->info.name, arrays);
  case_free_copies(arrays);
  case_free(&c);
}

static inline void run_all_cases(clb_device *d) {
  for (int i = 0; i < CASES; i++) run_case(d, i);
}

#endif
