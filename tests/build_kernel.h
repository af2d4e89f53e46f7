/* tests/build_kernel.h - a kernel's binary, made as the library makes it: first the text, then what
   the backend compiles from it. */
#ifndef CLB_TESTS_BUILD_KERNEL_H
#define CLB_TESTS_BUILD_KERNEL_H

#include "backends/backend.h"

static inline clb_status build_kernel(clb_device *d, const ir_kernel *k, clb_text *binary) {
  clb_text text = {0};
  clb_status s = clb_codegen(k, &d->limits, &d->dialect, &text, d->error);
  if (!s) s = d->backend->build(d, k, &text, binary);
  clb_text_free(&text);
  return s;
}

#endif
