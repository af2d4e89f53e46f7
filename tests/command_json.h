/* tests/command_json.h - reads JSON that `clebsch` prints or writes. */
#ifndef CLB_TESTS_COMMAND_JSON_H
#define CLB_TESTS_COMMAND_JSON_H

#include "tests/command.h"

#include <jansson.h>
#include <math.h>

static inline json_t *read_json(const char *path) {
  json_error_t error;
  json_t *o = json_load_file(path, 0, &error);
  if (!o) fail_msg("%s: %s", path, error.text);
  return o;
}

/* What a command prints. */
static inline json_t *json_of(const char *arguments) {
  free(printed_by(arguments));
  return read_json("out");
}

static inline double number_of(const json_t *o, const char *key) {
  const json_t *x = json_object_get(o, key);
  if (!json_is_number(x)) fail_msg("%s is no number in %s", key, json_dumps(o, 0));
  return json_number_value(x);
}

static inline double positive(const json_t *o, const char *key) {
  const double x = number_of(o, key);
  if (!(x > 0)) fail_msg("%s is not above 0 in %s", key, json_dumps(o, 0));
  return x;
}

static inline double at(const json_t *list, size_t i) {
  const json_t *x = json_array_get(list, i);
  assert_true(json_is_real(x));
  return json_number_value(x);
}

static inline bool is_true(const json_t *o, const char *key) {
  return json_is_true(json_object_get(o, key));
}

static inline long long integer_of(const json_t *o, const char *key) {
  const json_t *x = json_object_get(o, key);
  if (!json_is_integer(x)) fail_msg("%s is no integer in %s", key, json_dumps(o, 0));
  return json_integer_value(x);
}

static inline const char *text_of(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  if (!s) fail_msg("%s is no text in %s", key, json_dumps(o, 0));
  return s ? s : ""; /* of which the compiler is not sure */
}

/* value: NULL for null. */
static inline void expect_text(const json_t *o, const char *key, const char *value) {
  if (value) assert_string_equal(text_of(o, key), value);
  else if (!json_is_null(json_object_get(o, key)))
    fail_msg("%s is not null in %s", key, json_dumps(o, 0));
}

static inline void near_to(const char *what, double x, double y, double max) {
  if (!(fabs(x - y) <= max)) fail_msg("%s is %.17g, not %.17g", what, x, y);
}

#endif
