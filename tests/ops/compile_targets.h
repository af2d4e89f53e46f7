/* tests/ops/compile_targets.h - one test for each target that only compiles. */
#ifndef CLB_TESTS_OPS_COMPILE_TARGETS_H
#define CLB_TESTS_OPS_COMPILE_TARGETS_H

#include "tests/test.h"

#include <clebsch/clebsch.h>

/* A context of the target that *state names; skips the test where its compiler is missing. */
static inline clb_context *open_target(void **state) {
  const char *target = *state;
  clb_context *ctx = NULL;
  if (clb_context_create(target, &ctx)) {
    fprintf(stderr, "skipped: %s\n", clb_error(ctx));
    clb_context_destroy(&ctx);
    skip();
  }
  return ctx;
}

static inline int run_on_targets(const char *group, void (*compiles)(void **state)) {
  static char targets[][16] = {"cuda@sm_90", "hip@gfx90a", "hip@gfx942", "level_zero@pvc"};
  enum { TARGETS = sizeof targets / sizeof *targets };
  static struct CMUnitTest tests[TARGETS];
  static char labels[TARGETS][64];
  const int n = SANITIZED ? TARGETS - 1 : TARGETS; /* Intel's compiler does not start there */
  for (int t = 0; t < n; t++) {
    snprintf(labels[t], sizeof labels[t], "%s_compiles:%s", group, targets[t]);
    tests[t] = (struct CMUnitTest){labels[t], compiles, NULL, NULL, targets[t]};
  }
  return _cmocka_run_group_tests(group, tests, (size_t)n, NULL, NULL);
}

#endif
