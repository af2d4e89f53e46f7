/* tests/structures/structure_runner.h - files of atoms made of a text, and what is read of them. */
#ifndef CLB_TESTS_STRUCTURES_STRUCTURE_RUNNER_H
#define CLB_TESTS_STRUCTURES_STRUCTURE_RUNNER_H

#include "tests/test.h"

#include <math.h>
#include <unistd.h>

#include "tools/structures/structure.h"

/* Reads `text` as a file with this ending; *s is to be freed if that goes well. */
static inline bool read_text(const char *ending, const char *text, const structure_options *options,
                             structure *s, char error[600]) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/clebsch-structure-%d.%s", (int)getpid(), ending);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
  memset(s, 1, sizeof *s);
  const bool good = structure_read(path, options, s, error, 600);
  unlink(path);
  if (!good && (s->n || s->positions || s->numbers || !strstr(error, path)))
    fail_msg("'%s': something was kept, or '%s' does not name the file", text, error);
  return good;
}

/* It is not read, and the error has these words. */
static inline void expect_refused(const char *ending, const char *text,
                                  const structure_options *options, const char *words) {
  structure s;
  char error[600];
  if (read_text(ending, text, options, &s, error)) fail_msg("'%s' was read", text);
  if (!strstr(error, words)) fail_msg("'%s': '%s' lacks '%s'", text, error, words);
}

/* It is read. */
static inline structure read_well(const char *ending, const char *text,
                                  const structure_options *options) {
  structure s;
  char error[600];
  if (!read_text(ending, text, options, &s, error)) fail_msg("'%s': %s", text, error);
  return s;
}

#endif
