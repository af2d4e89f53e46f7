/* tests/fakes/fake_level_zero_state.h - what a test tells the test-only Level Zero driver, and what
   it hears back. */
#ifndef CLB_TESTS_FAKES_FAKE_LEVEL_ZERO_STATE_H
#define CLB_TESTS_FAKES_FAKE_LEVEL_ZERO_STATE_H

#include <stdbool.h>

typedef struct {
  long left;          /* calls that go well before one fails; -1: all go well */
  unsigned code;      /* how it fails: a ze_result_t */
  const char *failed; /* which function failed so, or NULL */
  bool idle; /* nothing is compiled or run, and memory starts as zeros; set before any is made */
  /* idle, stands for the device: " name(" of the kernel, its groups and their work-items, where the
     values of its arguments are */
  void (*launch)(void *user, const char *text, unsigned groups, unsigned threads, void **params);
} fake_level_zero_wish;

#endif
