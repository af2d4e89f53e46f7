/* tests/dynamics/energy_json.h - reads what `clebsch energy --json` prints. */
#ifndef CLB_TESTS_DYNAMICS_ENERGY_JSON_H
#define CLB_TESTS_DYNAMICS_ENERGY_JSON_H

#include "tests/dynamics/energy_runner.h"

#include <math.h>

/* The object that a command prints. */
static inline json_t *json_of(const char *arguments) {
  json_error_t error;
  expect_clebsch(arguments, 0, NULL);
  json_t *o = json_load_file("out", 0, &error);
  if (!json_is_object(o)) fail_msg("clebsch %s: %s", arguments, error.text);
  return o;
}

static inline double number_of(const json_t *o, const char *key) {
  const json_t *x = json_object_get(o, key);
  if (!json_is_real(x)) fail_msg("%s is no number", key);
  return json_number_value(x);
}

static inline double at(const json_t *list, size_t i) {
  const json_t *x = json_array_get(list, i);
  assert_true(json_is_real(x));
  return json_number_value(x);
}

static inline void near_to(const char *what, double x, double y, double max) {
  if (!(fabs(x - y) <= max)) fail_msg("%s is %.17g, not %.17g", what, x, y);
}

#endif
