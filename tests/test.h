/* tests/test.h - what every test program includes. */
#ifndef CLB_TESTS_TEST_H
#define CLB_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* True under AddressSanitizer. Intel's compiler does not start there: it opens libraries in a way
   that the sanitizer refuses. */
#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* A call of the library that must succeed. */
#define OK(ctx, call)                                                                              \
  do {                                                                                             \
    clb_status s_ = (call);                                                                        \
    if (s_) fail_msg("%s: %s", #call, clb_error(ctx));                                             \
  } while (0)

/* A call that must fail with this status, and with a message that has these words. */
#define NOT_OK(ctx, status, words, call)                                                           \
  do {                                                                                             \
    assert_int_equal(call, status);                                                                \
    if (!strstr(clb_error(ctx), words))                                                            \
      fail_msg("%s: \"%s\" lacks \"%s\"", #call, clb_error(ctx), words);                           \
  } while (0)

/* skip() with a reason, which is kept in the log of the run. */
#define skip_because(...)                                                                          \
  do {                                                                                             \
    fprintf(stderr, "skipped: ");                                                                  \
    fprintf(stderr, __VA_ARGS__);                                                                  \
    fprintf(stderr, "\n");                                                                         \
    skip();                                                                                        \
  } while (0)

/* Skips a test of a target whose compiler does not work in this build. */
#define skip_where_sanitized(target)                                                               \
  do {                                                                                             \
    if (SANITIZED && !strncmp(target, "level_zero", 10))                                           \
      skip_because("%s: Intel's compiler does not start under a sanitizer", target);               \
  } while (0)

/* Whether all cases are run (`ci/test.sh --long`), or CI's short selection. */
static inline bool long_tests(void) {
  const char *asked = getenv("CLB_TEST_LONG");
  return asked && *asked;
}

/* In short runs, each test runs on one of `turns` devices, in turn. */
static inline bool leaves_to_another(int turn, int turns, int test) {
  return !long_tests() && test % turns != turn;
}

/* A number in [-1, 1) from a seed, which it advances (splitmix64): the same on every machine. */
static inline double test_random(uint64_t *seed) {
  uint64_t z = *seed += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)(int64_t)(z ^ z >> 31) * 0x1p-63;
}

#endif
