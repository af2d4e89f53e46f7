/* tests/training/train_runs.h - runs of `clebsch train`: of another model than that of the labels.
 */
#ifndef CLB_TESTS_TRAINING_TRAIN_RUNS_H
#define CLB_TESTS_TRAINING_TRAIN_RUNS_H

#include "tests/training/labelled_frames.h"

/* Nothing is as usual. */
#define PLAIN                                                                                      \
  "--loss mse --energy-weight 1 --force-weight 1 --stress-weight 1 --optimizer adamw --schedule "  \
  "constant --clip 0 --ema 0 "
#define TRAIN "train --model other --train p.xyz --device cpu --exact --json --batch 3 " PLAIN

/* Another model like that of the frames, of which the parameters differ. */
static inline void make_other(void) {
  size_t n;
  uint64_t header;
  unsigned char *bytes = get_file("model", &n);
  assert_non_null(bytes);
  memcpy(&header, bytes, 8);
  for (size_t at = 8 + header; at + 8 <= n; at += 8) {
    double x;
    memcpy(&x, bytes + at, 8);
    x *= 1 + 0.05 * ((double)(at / 8 % 7) / 3 - 1);
    memcpy(bytes + at, &x, 8);
  }
  put_file("other", bytes, n);
  free(bytes);
}

static inline int make_all(void **state) {
  if (make_predictions(state)) return -1;
  make_other();
  return 0;
}

static inline double loss_of(const json_t *run, size_t epoch, const char *key) {
  return number_of(json_array_get(json_object_get(run, "epochs"), epoch), key);
}

static inline void expect_same_file(const char *a, const char *b) {
  size_t n, m;
  unsigned char *x = get_file(a, &n), *y = get_file(b, &m);
  if (!x || !y || n != m || memcmp(x, y, n) != 0) fail_msg("%s and %s differ", a, b);
  free(x);
  free(y);
}

/* As in the other file, but for the time that it took. */
static inline void expect_same_epochs(const json_t *a, const json_t *b) {
  if (!json_equal(json_object_get(a, "epochs"), json_object_get(b, "epochs")))
    fail_msg("%s\nis not %s", json_dumps(json_object_get(a, "epochs"), 0),
             json_dumps(json_object_get(b, "epochs"), 0));
}

#endif
