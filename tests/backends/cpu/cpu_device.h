/* tests/backends/cpu/cpu_device.h - the cpu backend's device, opened for a group of tests. */
#ifndef CLB_TESTS_BACKENDS_CPU_DEVICE_H
#define CLB_TESTS_BACKENDS_CPU_DEVICE_H

#include "tests/test.h"

#include "backends/cpu/cpu.h"

static clb_error_sink sink;
static clb_device *device;

static inline int open_device(void **state) {
  (void)state;
  return clb_backend_cpu.open("cpu", "", NULL, &sink, &device) != CLB_OK;
}

static inline int close_device(void **state) {
  (void)state;
  clb_backend_cpu.close(device);
  clb_text_free(&sink.text);
  return 0;
}

static inline void need_compiler(void) {
  if (device->dialect.language != CLB_LANGUAGE_CPU) skip_because("no C compiler");
}

#endif
