/* tests/fakes/fake_level_zero_state.h - what a test tells the test-only Level Zero driver, and what
   it reports. */
#ifndef CLB_TESTS_FAKES_FAKE_LEVEL_ZERO_STATE_H
#define CLB_TESTS_FAKES_FAKE_LEVEL_ZERO_STATE_H

#include <stdbool.h>

typedef struct {
  long left;          /* successful calls before one fails; -1: all succeed */
  unsigned code;      /* how it fails: a ze_result_t */
  const char *failed; /* which function failed, or NULL */
  bool idle; /* nothing is compiled or run, and memory starts as zeros; set before any is made */
  /* idle: called in place of the device: " name(" of the kernel, the numbers of groups and
     work-items, pointers to the values of the arguments */
  void (*launch)(void *user, const char *text, unsigned groups, unsigned threads, void **params);
} fake_level_zero_wish;

#endif
