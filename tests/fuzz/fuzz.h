/* tests/fuzz/fuzz.h - what the fuzzers share: the input as a file, messages captured, exit()
   survived, time and memory bounded. */
#ifndef CLB_TESTS_FUZZ_FUZZ_H
#define CLB_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* A file of these bytes in $TMPDIR (or /tmp), good until the next one with this ending. */
const char *fuzz_file(const void *data, size_t n, const char *ending);
/* A name in $TMPDIR under which there is no file unless the caller makes one. */
const char *fuzz_path(const char *ending);

/* Aborts; the fuzzer then keeps the input. */
void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
#define FUZZ_CHECK(good) ((good) ? (void)0 : fuzz_fail("%s:%d: %s", __FILE__, __LINE__, #good))

/* A message must be one line, not empty, without control characters. */
void fuzz_sentence(const char *text);

/* Runs a reader on an input of n bytes. It may take a second of processor time and `base` +
   `factor` * n bytes. It must print one message on standard error if it fails (returns false or
   exits), otherwise nothing; on standard output it prints no control characters. Memory still
   allocated when it exits is freed. */
typedef struct {
  size_t base, factor;
  bool silent; /* reports failure otherwise than on standard error */
} fuzz_bounds;
bool fuzz_run(const fuzz_bounds *bounds, size_t n, bool (*reader)(void *user), void *user);

/* At the end of an input, when all is freed: fails where a reader has left something allocated.
   Returns 0. */
int fuzz_done(void);

/* Replaces exit(): see meson.build. */
void fuzz_exit(int status) __attribute__((noreturn));

#endif
