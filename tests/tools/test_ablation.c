/* tests/tools/test_ablation.c - `clebsch bench --without`: every optimisation has its line,
   variants agree, an interrupted file is continued, and what is refused. */
#include "tests/command_json.h"
#include "tests/dynamics/model_folder.h"

#define SMALL "bench --without each --quick --device cpu --problem nequip-water --out run.json"
enum { CASES = 5 };

static const char *const names[] = {"wide aligned accesses",    "accumulators in registers",
                                    "split of long reductions", "receiver ownership",
                                    "harmonics on the fly",     "radial tables",
                                    "record and replay",        "all of them"};
enum { NAMES = sizeof names / sizeof *names };

/* The variant of a case without one optimisation; NULL: the optimisation changes nothing there. */
static const json_t *way_of(const json_t *result, const char *name) {
  size_t i;
  const json_t *way;
  json_array_foreach(
      json_object_get(result, "ways"), i,
      way) if (!strcmp(json_string_value(json_object_get(way, "without")), name)) return way;
  return NULL;
}

static bool says(const json_t *o, const char *key, const char *word) {
  const char *s = json_string_value(json_object_get(o, key));
  return s && strstr(s, word);
}

/* Where optimisations change something: each once; in all convolutions, except the split, which
   short rows do not have, and wide accesses, which on a CPU only layout mul_ir has. */
static bool wanted(const json_t *result, int name) {
  bool convolves = says(result, "work", "convolution");
  if (!name && convolves) return says(result, "layout", "mul_ir");
  return convolves ? name != 2 || says(result, "graph", "hub") : name < 2 || name > 5;
}

static void has_every_way(void **state) {
  (void)state;
  expect_clebsch(SMALL, 0, NULL);
  json_t *run = read_json("run.json"), *results = json_object_get(run, "results"), *result;
  double logarithm[NAMES] = {0};
  int count[NAMES] = {0};
  size_t i;
  assert_int_equal(json_array_size(results), CASES);
  json_array_foreach(results, i, result) {
    assert_true(number_of(result, "seconds") > 0 && number_of(result, "rows") > 0);
    for (int k = 0; k < NAMES; k++) {
      const json_t *way = way_of(result, names[k]);
      if (!way != !wanted(result, k)) fail_msg("%s: %s", names[k], json_dumps(result, 0));
      if (!way) continue;
      assert_true(number_of(way, "ratio") > 0 && number_of(way, "seconds") > 0 &&
                  number_of(way, "seconds_min_with") > 0);
      assert_in_range((int)(1e9 * number_of(way, "error")), 0, 2000000);
      logarithm[k] += log(number_of(way, "ratio"));
      count[k]++;
    }
  }
  char *out = get_text("out");
  for (int k = 0; k < NAMES; k++) {
    const char *line = strstr(out, names[k]);
    double mean = exp(logarithm[k] / count[k]), shown = 0;
    int cases = 0;
    if (!line || sscanf(line + strlen(names[k]), " %lf (%d)\n", &shown, &cases) != 2 ||
        cases != count[k] || fabs(shown - mean) > 0.006)
      fail_msg("the line of %s does not say %.2f (%d) in\n%s", names[k], mean, count[k], out);
  }
  free(out);
  json_decref(run);
}

/* Nothing is measured twice; --json shows the same. */
static void goes_on(void **state) {
  (void)state;
  json_t *first = read_json("run.json");
  expect_clebsch(SMALL " --json", 0, NULL);
  json_t *printed = json_load_file("out", 0, NULL);
  assert_true(json_equal(printed, json_object_get(first, "results")));
  json_decref(printed);
  json_t *second = read_json("run.json");
  assert_true(json_equal(first, second));
  json_array_clear(json_object_get(second, "results"));
  json_array_append(json_object_get(second, "results"),
                    json_array_get(json_object_get(first, "results"), 1));
  assert_int_equal(json_dump_file(second, "run.json", 0), 0);
  json_decref(second);
  expect_clebsch(SMALL, 0, NULL);
  second = read_json("run.json");
  assert_int_equal(json_array_size(json_object_get(second, "results")), CASES);
  assert_true(json_equal(json_array_get(json_object_get(first, "results"), 1),
                         json_array_get(json_object_get(second, "results"), 0)));
  json_decref(first);
  json_decref(second);
}

/* The speed over the naive kernel of the cases of a suite, with all on (line 0), or without an
   optimisation, which leaves a case as it is if it has no such way. */
static double speed(const json_t *results, const char *suite, int line, int *cases) {
  static const char *const without[] = {"", "wide aligned accesses", "accumulators in registers",
                                        "split of long reductions", "all of them"};
  double logarithm = 0;
  size_t i;
  const json_t *result;
  *cases = 0;
  json_array_foreach(results, i, result) {
    if (!says(result, "suite", suite)) continue;
    const json_t *way = way_of(result, without[line]);
    logarithm += log(number_of(result, "naive_seconds_min") / number_of(result, "seconds_min") /
                     (way ? number_of(way, "ratio") : 1));
    *cases += 1;
  }
  return exp(logarithm / *cases);
}

static void compares_with_naive_kernels(void **state) {
  static const char *const suites[] = {"norms", "sums", "products", "convolutions"},
                           *const lines[] = {"\nall on", "\nwithout wide accesses",
                                             "\nwithout persistent reductions",
                                             "\nwithout split reductions", "\nwithout any"};
  (void)state;
  char *out = printed_by("bench --without each --naive --quick --device cpu --out suites.json");
  json_t *run = read_json("suites.json"), *results = json_object_get(run, "results"), *result;
  size_t i;
  json_array_foreach(results, i, result) {
    assert_true(number_of(result, "naive_seconds") > 0 && number_of(result, "naive_error") >= 0);
    assert_in_range((int)(1e9 * number_of(result, "naive_error")), 0, 2000000);
  }
  assert_int_equal(strncmp(out, "speed over a naive kernel  ", 27), 0);
  for (int k = 0; k < 5; k++) {
    const char *at = strstr(out, lines[k]);
    if (!at) fail_msg("there is no line '%s' in\n%s", lines[k] + 1, out);
    at += strlen(lines[k]);
    for (int s = 0; s < 4; s++) {
      double shown = 0;
      int cases = 0, n = 0, wanted_cases;
      double wanted_speed = speed(results, suites[s], k, &wanted_cases);
      if (sscanf(at, " %lf (%d)%n", &shown, &cases, &n) != 2 || cases != wanted_cases ||
          fabs(shown - wanted_speed) > 0.006)
        fail_msg("%s of %s is not %.2f (%d) in\n%s", suites[s], lines[k] + 1, wanted_speed,
                 wanted_cases, out);
      at += n;
    }
  }
  free(out);
  json_decref(run);
}

/* One op: a line for each pass, with what differs without each of the named optimisations. */
static void times_one_op(void **state) {
  static const struct {
    const char *arguments, *line;
  } ops[] = {
      {"tensor_product --x 4x0e+4x1o --y 0e+1o --filter 0e+1o --layout mul_ir --rows 300",
       "cpu     double_backward      300 "},
      {"convolution --x 8x0e --y 0e --filter 0e --graph carbon:1",
       "cpu     double_backward     1264 "},
  };
  (void)state;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    char *out = printed_by(format(
        "bench %s --without wide,split,all --pass double_backward --device cpu", ops[i].arguments));
    if (!strstr(out, "ms  no wide  no split  no all\n") || !strstr(out, ops[i].line))
      fail_msg("no '%s' in\n%s", ops[i].line, out);
    free(out);
  }
}

static void refuses(void **state) {
  static const refusal all[] = {
      {"--device cpu --problem nothing", 2, "there is no case of such a problem"},
      {"--device cpu --quick --problem mace-large", 2, "among the quick ones"},
      {"--naive --device cpu:interpreter", 1, "--naive runs on cpu and cuda, not on"},
      {"--naive --quick --device cpu --out run.json", 1,
       "run.json: its \"suites\" is false, not true: name another --out, or --force overwrites it"},
      {"mace-large", 2, "no op 'mace-large'"},
      {"--without=wid", 2, "--without is a list of wide, registers, split, ownership, harmonics"},
      {"tensor_product --without tables --pass forward --device cpu --dtype f64", 2, "f32 alone"},
      {"convolution --rows 4 --device cpu", 2, "convolution has no --rows"},
      {"--device nowhere", 1, "nowhere"},
      {"--device cpu --out atoms.xyz", 1, "atoms.xyz: not a file of results ("},
      {"--device cpu --out run.json", 1, "run.json: its \"quick\" is true, not false"},
  };
  (void)state;
  expect_refusals("bench --without each ", all, sizeof all / sizeof *all);
  expect_clebsch("bench tensor_product --without tables --device cpu", 2,
                 "of an OP, --without takes wide");
  json_t *run = read_json("run.json");
  json_object_set_new(json_array_get(json_object_get(run, "devices"), 0), "driver",
                      json_string("another"));
  assert_int_equal(json_dump_file(run, "run.json", 0), 0);
  json_decref(run);
  expect_clebsch(SMALL, 1, "its cpu is another device or driver");
}

int main(void) {
  const struct CMUnitTest all[] = {cmocka_unit_test(has_every_way), cmocka_unit_test(goes_on),
                                   cmocka_unit_test(compares_with_naive_kernels),
                                   cmocka_unit_test(times_one_op), cmocka_unit_test(refuses)};
  return cmocka_run_group_tests_name("ablation", all, make_work, remove_folder);
}
