/* tests/dynamics/md_runner.h - runs `clebsch md`, and reads what it wrote. */
#ifndef CLB_TESTS_DYNAMICS_MD_RUNNER_H
#define CLB_TESTS_DYNAMICS_MD_RUNNER_H

#include "tests/dynamics/model_folder.h"

#include <stdbool.h>

/* Bytes are compared. */
static inline void same_files(const char *a, const char *b) {
  char *x = get_text(a), *y = get_text(b);
  assert_true(x && y && *x);
  if (strcmp(x, y) != 0) {
    size_t at = 0;
    while (x[at] == y[at]) at++;
    fail_msg("%s and %s differ from byte %zu on", a, b, at);
  }
  free(x);
  free(y);
}

/* Checksum of a restart's text. */
static inline long long restart_step(const char *text) {
  long long step = -1;
  const char *line = text ? strstr(text, "\nstep ") : NULL;
  assert_true(line && sscanf(line, " step %lld ", &step) == 1);
  return step;
}

/* FNV-1a, as in restarts. */
static inline uint64_t checksum_of(const char *text) {
  uint64_t h = 14695981039346656037u;
  for (; *text; text++) h = (h ^ (unsigned char)*text) * 1099511628211u;
  return h;
}

/* A restart with this body, its length and its checksum. */
static inline void put_restart_of(int version, const char *name, const char *body) {
  FILE *f = fopen(name, "w");
  assert_non_null(f);
  fprintf(f, "clebsch restart %d bytes %020zu checksum %016llx\n%s", version, strlen(body),
          (unsigned long long)checksum_of(body), body);
  assert_int_equal(fclose(f), 0);
}
static inline void put_restart(const char *name, const char *body) {
  put_restart_of(2, name, body);
}

#endif
