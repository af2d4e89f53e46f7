/* tests/training/training_reference.h - what references of training say of structures and losses.
 */
#ifndef CLB_TESTS_TRAINING_TRAINING_REFERENCE_H
#define CLB_TESTS_TRAINING_TRAINING_REFERENCE_H

#include "tests/command_json.h"

#include <clebsch/model.h>

/* Numbers of nested lists, which are not longer than n; false: null. */
static inline bool numbers(const json_t *from, int n, double *to) {
  int filled = 0;
  if (json_is_null(from)) return false;
  if (json_is_number(from)) *to = json_number_value(from);
  for (size_t i = 0; i < json_array_size(from); i++) {
    const json_t *row = json_array_get(from, i);
    const int wide = json_is_array(row) ? (int)json_array_size(row) : 1;
    assert_true(filled + wide <= n);
    assert_true(numbers(row, wide, to + filled));
    filled += wide;
  }
  return true;
}

static inline clb_loss read_loss(const json_t *l) {
  const char *f = text_of(l, "f");
  clb_loss loss = {.energy = number_of(l, "energy"),
                   .forces = number_of(l, "forces"),
                   .stress = number_of(l, "stress"),
                   .stress_unit = number_of(l, "stress_factor"),
                   .force_norm = !strcmp(text_of(l, "forces_form"), "norm")};
  loss.function = !strcmp(f, "mse")   ? CLB_LOSS_MSE
                  : !strcmp(f, "mae") ? CLB_LOSS_MAE
                                      : CLB_LOSS_HUBER;
  if (loss.function == CLB_LOSS_HUBER) loss.delta = number_of(l, "delta");
  return loss;
}

#endif
