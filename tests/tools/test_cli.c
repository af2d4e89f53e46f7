/* tests/tools/test_cli.c - the command `clebsch` as a script sees it: exit status, standard output,
   standard error, JSON. */
#include "tests/command_json.h"

#include <clebsch/clebsch.h>

/* The array on standard output, which must hold nothing else; each element must have the keys. */
static json_t *array_of(const char *arguments, int status, const char *const keys[]) {
  outcome o = run_clebsch(arguments);
  if (o.status != status)
    fail_msg("clebsch %s: exit status %d, not %d: %s", arguments, o.status, status, o.err);
  forget(&o);
  json_t *array = read_json("out"), *row;
  assert_true(json_is_array(array));
  size_t i;
  json_array_foreach(array, i, row) for (const char *const *key = keys; *key;
                                         key++) if (!json_object_get(row, *key))
      fail_msg("clebsch %s: no key %s", arguments, *key);
  return array;
}

static const char *const device_keys[] = {
    "name", "backend",      "vendor", "description",     "driver",
    "runs", "memory_bytes", "f64",    "sub_group_sizes", NULL};
static const char *const check_keys[] = {"op",    "case",      "pass", "dtype", "device",
                                         "error", "tolerance", "ok",   NULL};
static const char *const bench_keys[] = {
    "op",          "problem", "pass",  "dtype", "device",        "rows",          "seconds",
    "seconds_min", "repeats", "bytes", "flops", "copy_fraction", "peak_fraction", "error",
    "runs",        NULL};
static const char *const compiled_keys[] = {
    "op",    "problem",       "pass",       "dtype",     "device", "runs",
    "loads", "stores",        "fmas",       "registers", "spills", "occupancy",
    "bound", "bound_seconds", "limited_by", "published", NULL};
static const char *const source_keys[] = {"op",     "problem", "pass",     "dtype", "device",
                                          "source", "program", "compiler", NULL};

/* ---- tests ---- */

static void usage_errors(void **state) {
  (void)state;
  static const char *const wrong[] = {
      "",
      "sing",
      "--sing",
      "devices cpu",
      "devices --device cpu",
      "check --op nothing",
      "check spherical_harmonics",
      "check --device",
      "check --rows 0",
      "check --part 0/3",
      "check --part 4/3",
      "check --part 1/",
      "source",
      "source nothing",
      "source spherical_harmonics --pass sideways",
      "source spherical_harmonics --dtype f8",
      "source spherical_harmonics twice",
      "source spherical_harmonics --device cpu:interpreter --pass forward --pass backward -o out",
      "bench --lmax 2",
      "bench spherical_harmonics --lmax",
      "bench spherical_harmonics --lmax 21",
      "bench spherical_harmonics --lmax -1",
      "bench spherical_harmonics --lmax 1.5",
      "bench spherical_harmonics --lmax 2 --degrees 1",
      "bench spherical_harmonics --degrees 1,,2",
      "bench spherical_harmonics --degrees ,",
      "bench spherical_harmonics --normalization loud",
      "bench spherical_harmonics --rows 0",
      "bench launches spherical_harmonics",
      "bench optimizer adam",
      "bench optimizer --parameters gpt",
      "bench spherical_harmonics --rows many",
      "bench spherical_harmonics --rows nan",
      "bench spherical_harmonics --rows 1e30",
      "source spherical_harmonics --lmax 13 --device cpu:interpreter", /* more digits than f32 has
                                                                        */
      "bench tensor_product --lmax 2",
      "bench tensor_product --problem nothing",
      "bench tensor_product --problem mace-large --problem nequix-main",
      "bench tensor_product --problem mace-large --x 0e",
      "bench tensor_product --x 0e --y 0e",
      "bench tensor_product --layout loud",
      "bench tensor_product --order loud",
      "bench tensor_product --x 0e --y 0e --z 0e --filter 0e",
      "bench tensor_product --problem tetris-1 --order found",
      "bench tensor_product --gradients x,v",
      "bench tensor_product --gradients xy",
      "bench tensor_product --gradients x,",
      "bench tensor_product --indexed z",
      "bench tensor_product --incoming x",
      "bench spherical_harmonics --pass triple_backward",
      "source tensor_product --x 0e --y 0e --z 1e --device cpu:interpreter", /* no path */
      "source tensor_product --x 0e --y 0e --z 0e --shared --indexed w --device cpu:interpreter",
      "source tensor_product --x 0f --y 0e --filter 0e --device cpu:interpreter",
      "source tensor_product --x 0e --y 0e --filter 1e --device cpu:interpreter", /* no path */
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    expect_refusals(wrong[i], &(refusal){"", 2, "\n"}, 1);
    char *err = get_text("err");
    assert_int_equal(strncmp(err, "clebsch", 7), 0);
    free(err);
  }
}

static void devices(void **state) {
  (void)state;
  json_t *found = array_of("devices --json", 0, device_keys), *d, *size;
  size_t i, j;
  bool cpu = false, runs = true;
  json_array_foreach(found, i, d) {
    assert_true(runs || !is_true(d, "runs")); /* what runs comes first */
    runs = is_true(d, "runs");
    assert_int_equal(is_true(d, "default"), i == 0); /* the default before */
    assert_true(json_is_boolean(json_object_get(d, "runs")) &&
                json_is_boolean(json_object_get(d, "f64")));
    assert_true(json_is_integer(json_object_get(d, "memory_bytes")));
    json_array_foreach(json_object_get(d, "sub_group_sizes"), j, size)
        assert_true(json_integer_value(size) > 0);
    cpu |= !strcmp(text_of(d, "backend"), "cpu");
    assert_int_equal(strchr(text_of(d, "name"), '@') != NULL,
                     json_is_false(json_object_get(d, "runs")));
  }
  assert_true(cpu);
  expect_printed("devices", "  runs *  ");
  char *out = get_text("out");
  json_array_foreach(found, i, d) assert_non_null(strstr(out, text_of(d, "name")));
  json_decref(found);
  free(out);
}

/* No compiler is found in an empty PATH. */
static void interpreter_is_refused(void **state) {
  (void)state;
  static const refusal small = {"", 1, "cpu:interpreter"};
  char *path = strdup(getenv("PATH"));
  setenv("PATH", "/nonexistent", 1);
  outcome o = run_clebsch("devices");
  assert_int_equal(o.status, 0);
  assert_non_null(strstr(o.out, "interpreter"));
  forget(&o);
  expect_refusals("bench spherical_harmonics --lmax 0 --rows 10 --pass forward --device cpu",
                  &small, 1);
  setenv("PATH", path, 1);
  free(path);
}

static void check_op(const char *op, unsigned all_passes) {
  json_t *rows =
             array_of(format("check --op %s --device cpu:interpreter --json", op), 0, check_keys),
         *row;
  unsigned dtypes = 0, passes = 0;
  size_t i;
  json_array_foreach(rows, i, row) {
    expect_text(row, "op", op);
    expect_text(row, "device", "cpu:interpreter");
    assert_true(is_true(row, "ok"));
    assert_true(number_of(row, "error") <= number_of(row, "tolerance"));
    static const char *const dtype_names[] = {"f64", "f32", "f16", "bf16"}, *const pass_names[] = {
                                                                                "forward",
                                                                                "backward",
                                                                                "double_backward",
                                                                                "triple_backward"};
    for (int j = 0; j < 4; j++)
      dtypes |= !strcmp(text_of(row, "dtype"), dtype_names[j]) ? 1u << j : 0;
    for (int j = 0; j < 4; j++)
      passes |= !strcmp(text_of(row, "pass"), pass_names[j]) ? 1u << j : 0;
  }
  assert_int_equal(dtypes, 15);
  assert_int_equal(passes, all_passes);
  assert_true(json_array_size(rows) > 60);
  json_decref(rows);
}

static void check(void **state) {
  (void)state;
  check_op("spherical_harmonics", 7);
  check_op("tensor_product", 15);
}

/* The parts together are the whole; with fewer rows no case asks for more. */
static void check_parts(void **state) {
  (void)state;
  static const char *const which[] = {"", "--part 1/2", "--part 2/2"};
  size_t n[3];
  for (int i = 0; i < 3; i++) {
    json_t *rows = array_of(
               format("check --op spherical_harmonics --device cpu:interpreter --rows 12 --json %s",
                      which[i]),
               0, check_keys),
           *row;
    size_t j;
    json_array_foreach(rows, j, row) {
      const char *number = strrchr(text_of(row, "case"), ',');
      assert_true(number && strtol(number + 1, NULL, 10) > 0 && strtol(number + 1, NULL, 10) <= 12);
    }
    n[i] = json_array_size(rows);
    json_decref(rows);
  }
  assert_true(n[1] > 0 && n[2] > 0 && n[1] + n[2] == n[0]);
}

static void source_of(const json_t *device, const char *pass) {
  const char *name = text_of(device, "name"),
             *arguments = format("--pass %s --device %s", pass, name);
  json_t *rows =
             array_of(format("source spherical_harmonics --lmax 2 --stats --json %s", arguments), 0,
                      source_keys),
         *row = json_array_get(rows, 0), *source = json_object_get(row, "source");
  assert_int_equal(json_array_size(rows), 1);
  expect_text(row, "device", name);
  expect_text(row, "pass", pass);
  double loads = !strcmp(pass, "forward") ? 3 : 3 + 8; /* g_y without l = 0 */
  assert_true(json_number_value(json_object_get(json_object_get(row, "program"), "loads")) ==
              loads);
  outcome r = run_clebsch(format("source spherical_harmonics --lmax 2 %s", arguments));
  assert_int_equal(r.status, 0);
  if (json_is_string(source)) {
    assert_string_equal(r.out, json_string_value(source));
    assert_non_null(strstr(r.out, "spherical_harmonics"));
  } else { /* SPIR-V: the module itself goes into the pipe */
    assert_int_equal(r.out_bytes, 4 * json_array_size(source));
    for (size_t i = 0; i < json_array_size(source); i++) {
      uint32_t word;
      memcpy(&word, r.out + 4 * i, 4);
      assert_int_equal(word, json_integer_value(json_array_get(source, i)));
    }
    assert_int_equal(json_integer_value(json_array_get(source, 0)), 0x07230203);
  }
  assert_int_equal(strncmp(name, "level_zero", 10) == 0, json_is_array(source));
  forget(&r);
  json_decref(rows);
}

static void sources(void **state) {
  (void)state;
  json_t *found = array_of("devices --json", 0, device_keys), *d;
  size_t i;
  json_array_foreach(found, i, d) {
    source_of(d, "forward");
    source_of(d, "backward");
  }
  json_decref(found);
}

static void source_files(void **state) {
  (void)state;
#define SOURCE "source spherical_harmonics --device cpu:interpreter"
  char *shown = printed_by(SOURCE);
  assert_true(*shown);
  free(printed_by(SOURCE " -o written"));
  expect_file("out", "");
  expect_file("written", shown);
  free(shown);
  expect_clebsch(SOURCE " -o /nonexistent/file", 1, "/nonexistent/file");
}

static void bench(void **state) {
  (void)state;
  static const char arguments[] = "bench spherical_harmonics --degrees 0,2,1 --rows 103 --device "
                                  "cpu:interpreter --dtype f32 --dtype f64 --json";
  json_t *rows = array_of(arguments, 0, bench_keys), *row;
  assert_int_equal(json_array_size(rows), 6);
  size_t i;
  json_array_foreach(rows, i, row) {
    double seconds = number_of(row, "seconds"), error = number_of(row, "error");
    expect_text(row, "problem", "degrees=0,2,1 component");
    assert_true(seconds > 0 && seconds >= number_of(row, "seconds_min"));
    assert_true(error > 0 && error < 2e-6);
    assert_true(
        json_is_null(json_object_get(row, "copy_fraction"))); /* 103 rows fit in any cache */
    assert_true(number_of(row, "peak_fraction") > 0);
    if (!strcmp(text_of(row, "pass"), "forward")) {
      int64_t size = strcmp(text_of(row, "dtype"), "f64") ? 4 : 8;
      assert_int_equal(integer_of(row, "bytes"), 103 * (3 + 9) * size);
    }
  }
  json_decref(rows);
}

/* The bytes of a product are those of its operands, once each. */
static void bench_of_products(void **state) {
  (void)state;
  static const int elements[] = {256 + 4 + 320 + 704, 2 * (256 + 4 + 320) + 704,
                                 3 * (256 + 4 + 320) + 2 * 704};
  json_t
      *rows = array_of(
          "bench tensor_product --problem nequip-water --rows 17 --device cpu:interpreter --json",
          0, bench_keys),
      *row;
  assert_int_equal(json_array_size(rows), 3);
  size_t i;
  json_array_foreach(rows, i, row) {
    expect_text(row, "problem", "nequip-water ir_mul");
    assert_int_equal(integer_of(row, "bytes"), 17 * 4 * elements[i]);
    assert_true(number_of(row, "error") > 0);
  }
  json_decref(rows);
}

/* The effect of a product's options on its operands, seen in the bytes of a pass: per row, and of
   what all rows share. */
static void options_of_products(void **state) {
  (void)state;
  enum { X = 7 + 15, Y = 4, Z = 3 + 6, W = 7 * 3 + 7 * 2 + 5 * 2 + 5 * 3, ROWS = 13 };
  static const struct {
    const char *options, *says;
    int per_row, once;
  } asked[] = {
      {"--pass forward --indexed x,w", "indexed=x,w mul_ir", X + Y + W + Z + 2,
       0}, /* and two row numbers */
      {"--pass backward --shared --gradients w,y", "shared gradients=y,w mul_ir", X + 2 * Y + Z,
       2 * W},
      {"--pass double_backward --incoming a,c --gradients x,z", "gradients=x,z incoming=a,c mul_ir",
       3 * X + Y + 2 * W + 2 * Z, 0},
      {"--pass triple_backward", "mul_ir", 5 * (X + Y + W) + 3 * Z, 0},
  };
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    json_t *rows = array_of(format("bench tensor_product --x 7x0e+5x1o --y 0e+1o --z 3x0e+2x1o "
                                   "--layout mul_ir --rows %d --device cpu:interpreter --json %s",
                                   ROWS, asked[i].options),
                            0, bench_keys),
           *row = json_array_get(rows, 0);
    assert_int_equal(json_array_size(rows), 1);
    expect_text(row, "problem", format("7x0e+5x1o (x) 0e+1o => 3x0e+2x1o %s", asked[i].says));
    assert_int_equal(integer_of(row, "bytes"), 4 * (ROWS * asked[i].per_row + asked[i].once));
    assert_true(number_of(row, "error") > 0);
    json_decref(rows);
  }
  json_t *rows = array_of("bench tensor_product --x 2x0e+1x1o --y 0e+1o --filter 0e+1o --order "
                          "found --rows 7 --pass forward --device cpu:interpreter --json",
                          0, bench_keys);
  expect_text(json_array_get(rows, 0), "problem", "2x0e+1x1o (x) 0e+1o -> 0e+1o found ir_mul");
  json_decref(rows);
}

/* The bound follows from the published figures in the same row, independently of the compiler;
   occupancy is a fraction. */
static void expect_bound(const json_t *row) {
  const json_t *p = json_object_get(row, "published");
  assert_true(is_true(row, "bound") && json_is_null(json_object_get(row, "seconds")));
  if (json_is_null(p)) return;
  const double moving = number_of(row, "bytes") / number_of(p, "bytes_per_second"),
               computing = number_of(row, "flops") / number_of(p, "f32_per_second");
  assert_true(strlen(text_of(p, "name")) > 0 && number_of(p, "f64_per_second") > 0);
  assert_true(moving > 0 &&
              fabs(number_of(row, "bound_seconds") / fmax(moving, computing) - 1) < 1e-12);
  expect_text(row, "limited_by", moving >= computing ? "bytes" : "flops");
  if (!json_is_null(json_object_get(row, "registers")))
    assert_true(number_of(row, "occupancy") > 0 && number_of(row, "occupancy") <= 1);
}

static void bench_of_compilers(void **state) {
  (void)state;
  json_t *found = array_of("devices --json", 0, device_keys), *d;
  size_t i, targets = 0;
  json_array_foreach(found, i, d) {
    if (is_true(d, "runs")) continue;
    const char *name = text_of(d, "name");
    json_t *rows = array_of(format("bench spherical_harmonics --lmax 4 --pass backward --json "
                                   "--device %s",
                                   name),
                            0, compiled_keys),
           *row = json_array_get(rows, 0), *loads = json_object_get(row, "loads");
    assert_int_equal(json_array_size(rows), 1);
    assert_true(json_is_false(json_object_get(row, "runs")));
    if (!json_is_null(loads)) assert_int_equal(json_integer_value(loads), 3 + 24);
    if (!json_is_null(loads)) assert_true(number_of(row, "fmas") > 50);
    expect_bound(row);
    const bool published = !json_is_null(json_object_get(row, "published"));
    outcome o =
        run_clebsch(format("bench spherical_harmonics --lmax 2 --pass forward --device %s", name));
    assert_int_equal(o.status, 0);
    assert_non_null(strstr(o.out, "compiles only"));
    if (published)
      assert_non_null(
          strstr(o.out, "times are bounds from the vendor's published figures, not measurements"));
    forget(&o);
    o = run_clebsch(format("check --device %s", name));
    assert_int_equal(o.status, 2); /* what only compiles cannot be checked */
    forget(&o);
    json_decref(rows);
    targets++;
  }
  json_decref(found);
  if (!targets) skip_because("no compile-only target here");
}

static void bench_of_launches(void **state) {
  (void)state;
  const char *const keys[] = {"op",      "device",           "rows",
                              "ops",     "host_seconds",     "host_seconds_replayed",
                              "seconds", "seconds_replayed", NULL};
  json_t *rows = array_of("bench launches --json --device cpu", 0, keys), *row;
  size_t i;
  assert_int_equal(json_array_size(rows), 6);
  json_array_foreach(rows, i, row) for (int k = 4; keys[k]; k++)
      assert_true(number_of(row, keys[k]) > 0);
  json_decref(rows);
}

static void bench_of_optimizers(void **state) {
  (void)state;
  const char *const keys[] = {"parameters",   "training",     "device",        "tensors",
                              "numbers",      "bytes",        "seconds",       "seconds_submitted",
                              "host_seconds", "copy_seconds", "copy_fraction", NULL};
  json_t *rows = array_of("bench optimizer --json --device cpu --parameters nequix --training adam",
                          0, keys),
         *row = json_array_get(rows, 0);
  assert_int_equal(json_array_size(rows), 1);
  assert_int_equal(integer_of(row, "tensors"), 63);
  assert_int_equal(integer_of(row, "numbers"), 707658);
  for (int k = 5; keys[k]; k++) assert_true(number_of(row, keys[k]) > 0);
  json_decref(rows);
}

/* Measured schedules can be exported and imported. */
static void tune(void **state) {
  static const char *const keys[] = {
      "op",      "problem",  "pass",     "dtype", "device", "measured", "estimate_seconds",
      "seconds", "estimate", "schedule", NULL};
#define TUNE "tune spherical_harmonics --lmax 4 --pass forward --device cpu:interpreter"
  double seconds[2];
  (void)state;
  put_text("tuned", "");
  for (int turn = 0; turn < 2; turn++) {
    json_t *rows =
        array_of(turn ? TUNE " --json --import tuned" : TUNE " --json --export tuned", 0, keys);
    assert_int_equal(json_array_size(rows), 1);
    const json_t *row = json_array_get(rows, 0);
    assert_true(is_true(row, "measured"));
    assert_non_null(strstr(text_of(row, "estimate"), "lanes="));
    assert_non_null(strstr(text_of(row, "schedule"), "lanes="));
    seconds[turn] = number_of(row, "seconds");
    assert_true(seconds[turn] > 0 && seconds[turn] <= number_of(row, "estimate_seconds"));
    json_decref(rows);
  }
  assert_true(seconds[0] == seconds[1]); /* not measured again */
  expect_printed(TUNE " --again --import=tuned", "ratio", "lmax=4");
  static const refusal wrong[] = {
      {"tune", 2, ""},
      {"tune spherical_harmonics --lmax 1 --export /tmp/none --device cpu --device cpu:interpreter",
       2, ""},
      {"tune spherical_harmonics --lmax 1 --device cpu:interpreter --import /tmp/none/such", 2, ""},
      {"tune tensor_product --problem none", 2, ""}};
  expect_refusals("", wrong, sizeof wrong / sizeof *wrong);
}

static void failures(void **state) { /* one bad device does not hide the others */
  (void)state;
  json_t *rows = array_of("source spherical_harmonics --json --lmax 1 --device nothing --device "
                          "cpu:interpreter --device cpu:9",
                          1, (const char *[]){"source", NULL});
  assert_int_equal(json_array_size(rows), 1);
  json_decref(rows);
  expect_refusals("check ", &(refusal){"--device nothing", 1, "nothing"}, 1);
  assert_true(!unlink("out") && !symlink("/dev/full", "out"));
  expect_clebsch("devices", 1, "standard output");
  unlink("out");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(usage_errors),
                                     cmocka_unit_test(devices),
                                     cmocka_unit_test(interpreter_is_refused),
                                     cmocka_unit_test(check),
                                     cmocka_unit_test(check_parts),
                                     cmocka_unit_test(sources),
                                     cmocka_unit_test(source_files),
                                     cmocka_unit_test(bench),
                                     cmocka_unit_test(bench_of_products),
                                     cmocka_unit_test(options_of_products),
                                     cmocka_unit_test(bench_of_compilers),
                                     cmocka_unit_test(bench_of_launches),
                                     cmocka_unit_test(bench_of_optimizers),
                                     cmocka_unit_test(tune),
                                     cmocka_unit_test(failures)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
