/* tests/tools/test_cli.c - the command `clebsch` as a script sees it: exit status, standard output,
   standard error, JSON. */
#include "tests/test.h"

#include <fcntl.h>
#include <clebsch/clebsch.h>
#include <jansson.h>
#include <math.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MAX_ARGS = 24 };

typedef struct {
  int status;      /* exit status; -1: ended by a signal */
  char *out, *err; /* followed by a 0 byte */
  size_t out_bytes;
} run;

static char *contents(FILE *f, size_t *bytes) {
  assert_int_equal(fseek(f, 0, SEEK_END), 0);
  long n = ftell(f);
  assert_true(n >= 0);
  rewind(f);
  char *text = calloc((size_t)n + 1, 1);
  assert_non_null(text);
  assert_int_equal(fread(text, 1, (size_t)n, f), n);
  fclose(f);
  *bytes = (size_t)n;
  return text;
}

/* Runs `clebsch` with arguments separated by spaces; out_fd < 0: standard output is captured. */
static run clebsch_in(const char *arguments, char **env, int out_fd) {
  char words[1024], *argv[MAX_ARGS] = {getenv("CLB_COMMAND")}, *rest = words;
  int argc = 1;
  assert_non_null(argv[0]);
  assert_in_range(snprintf(words, sizeof words, "%s", arguments), 0, sizeof words - 1);
  for (char *word; (word = strtok_r(rest, " ", &rest));) {
    assert_in_range(argc, 1, MAX_ARGS - 2);
    argv[argc++] = word;
  }
  FILE *out = tmpfile(), *err = tmpfile();
  assert_true(out && err);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out_fd < 0 ? fileno(out) : out_fd, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(err), STDERR_FILENO);
  pid_t pid;
  int wait_status;
  assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, argv, env), 0);
  posix_spawn_file_actions_destroy(&actions);
  assert_int_equal(waitpid(pid, &wait_status, 0), pid);
  size_t unused;
  run r = {.status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1};
  r.out = contents(out, &r.out_bytes);
  r.err = contents(err, &unused);
  return r;
}

static run clebsch(const char *arguments) { return clebsch_in(arguments, environ, -1); }

static void forget(run *r) {
  free(r->out);
  free(r->err);
}

static void expect_status(const run *r, const char *arguments, int status) {
  if (r->status != status)
    fail_msg("clebsch %s: exit status %d, not %d: %s", arguments, r->status, status, r->err);
}

/* The array on standard output, which must hold nothing else; each element must have the keys. */
static json_t *array_of(const char *arguments, int status, const char *const keys[]) {
  run r = clebsch(arguments);
  expect_status(&r, arguments, status);
  json_error_t error;
  json_t *array = json_loads(r.out, 0, &error), *row;
  if (!json_is_array(array)) fail_msg("clebsch %s: %s in %s", arguments, error.text, r.out);
  size_t i;
  json_array_foreach(array, i, row) for (const char *const *key = keys; *key;
                                         key++) if (!json_object_get(row, *key))
      fail_msg("clebsch %s: no key %s in %s", arguments, *key, r.out);
  forget(&r);
  return array;
}

static const char *text(const json_t *row, const char *key) {
  const char *s = json_string_value(json_object_get(row, key));
  assert_non_null(s);
  return s;
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
    run r = clebsch(wrong[i]);
    expect_status(&r, wrong[i], 2);
    assert_string_equal(r.out, "");
    assert_int_equal(strncmp(r.err, "clebsch", 7), 0);
    assert_non_null(strchr(r.err, '\n'));
    forget(&r);
  }
}

static void devices(void **state) {
  (void)state;
  json_t *found = array_of("devices --json", 0, device_keys), *d, *size;
  size_t i, j;
  bool cpu = false, runs = true;
  json_array_foreach(found, i, d) {
    assert_true(runs || !json_is_true(json_object_get(d, "runs"))); /* what runs comes first */
    runs = json_is_true(json_object_get(d, "runs"));
    assert_int_equal(json_is_true(json_object_get(d, "default")), i == 0); /* the default before */
    assert_true(json_is_boolean(json_object_get(d, "runs")) &&
                json_is_boolean(json_object_get(d, "f64")));
    assert_true(json_is_integer(json_object_get(d, "memory_bytes")));
    json_array_foreach(json_object_get(d, "sub_group_sizes"), j, size)
        assert_true(json_integer_value(size) > 0);
    cpu |= !strcmp(text(d, "backend"), "cpu");
    assert_int_equal(strchr(text(d, "name"), '@') != NULL,
                     json_is_false(json_object_get(d, "runs")));
  }
  assert_true(cpu);
  run r = clebsch("devices");
  expect_status(&r, "devices", 0);
  json_array_foreach(found, i, d) assert_non_null(strstr(r.out, text(d, "name")));
  assert_non_null(strstr(r.out, "  runs *  "));
  json_decref(found);
  forget(&r);
}

/* No compiler is found in an empty PATH. */
static void interpreter_is_refused(void **state) {
  (void)state;
  static char path[] = "PATH=/nonexistent";
  char *env[512];
  int n = 0;
  for (char **e = environ; *e && n < 510; e++)
    if (strncmp(*e, "PATH=", 5)) env[n++] = *e;
  env[n++] = path;
  env[n] = NULL;
  static const char small[] =
      "bench spherical_harmonics --lmax 0 --rows 10 --pass forward --device cpu";
  run r = clebsch_in("devices", env, -1);
  assert_int_equal(r.status, 0);
  assert_non_null(strstr(r.out, "interpreter"));
  forget(&r);
  r = clebsch_in(small, env, -1);
  assert_int_equal(r.status, 1);
  assert_string_equal(r.out, "");
  assert_non_null(strstr(r.err, "cpu:interpreter"));
  forget(&r);
}

static void check_op(const char *op, unsigned all_passes) {
  char arguments[80];
  snprintf(arguments, sizeof arguments, "check --op %s --device cpu:interpreter --json", op);
  json_t *rows = array_of(arguments, 0, check_keys), *row;
  unsigned dtypes = 0, passes = 0;
  size_t i;
  json_array_foreach(rows, i, row) {
    assert_string_equal(text(row, "op"), op);
    assert_string_equal(text(row, "device"), "cpu:interpreter");
    assert_true(json_is_true(json_object_get(row, "ok")));
    assert_true(json_number_value(json_object_get(row, "error")) <=
                json_number_value(json_object_get(row, "tolerance")));
    static const char *const dtype_names[] = {"f64", "f32", "f16", "bf16"}, *const pass_names[] = {
                                                                                "forward",
                                                                                "backward",
                                                                                "double_backward",
                                                                                "triple_backward"};
    for (int j = 0; j < 4; j++) dtypes |= !strcmp(text(row, "dtype"), dtype_names[j]) ? 1u << j : 0;
    for (int j = 0; j < 4; j++) passes |= !strcmp(text(row, "pass"), pass_names[j]) ? 1u << j : 0;
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
    char arguments[128];
    snprintf(arguments, sizeof arguments,
             "check --op spherical_harmonics --device cpu:interpreter --rows 12 --json %s",
             which[i]);
    json_t *rows = array_of(arguments, 0, check_keys), *row;
    size_t j;
    json_array_foreach(rows, j, row) {
      const char *number = strrchr(text(row, "case"), ',');
      assert_true(number && strtol(number + 1, NULL, 10) > 0 && strtol(number + 1, NULL, 10) <= 12);
    }
    n[i] = json_array_size(rows);
    json_decref(rows);
  }
  assert_true(n[1] > 0 && n[2] > 0 && n[1] + n[2] == n[0]);
}

static void source_of(const json_t *device, const char *pass) {
  char arguments[256];
  const char *name = text(device, "name");
  snprintf(arguments, sizeof arguments,
           "source spherical_harmonics --lmax 2 --stats --json --pass %s --device %s", pass, name);
  json_t *rows = array_of(arguments, 0, source_keys), *row = json_array_get(rows, 0),
         *source = json_object_get(row, "source");
  assert_int_equal(json_array_size(rows), 1);
  assert_string_equal(text(row, "device"), name);
  assert_string_equal(text(row, "pass"), pass);
  double loads = !strcmp(pass, "forward") ? 3 : 3 + 8; /* g_y without l = 0 */
  assert_true(json_number_value(json_object_get(json_object_get(row, "program"), "loads")) ==
              loads);
  snprintf(arguments, sizeof arguments, "source spherical_harmonics --lmax 2 --pass %s --device %s",
           pass, name);
  run r = clebsch(arguments);
  expect_status(&r, arguments, 0);
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
  char path[] = "/tmp/clebsch-test-XXXXXX", arguments[256];
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  snprintf(arguments, sizeof arguments, "source spherical_harmonics --device cpu:interpreter -o %s",
           path);
  run r = clebsch(arguments),
      shown = clebsch("source spherical_harmonics --device cpu:interpreter");
  expect_status(&r, arguments, 0);
  assert_string_equal(r.out, "");
  size_t bytes;
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  char *written = contents(f, &bytes);
  assert_true(bytes > 0);
  assert_string_equal(written, shown.out);
  unlink(path);
  free(written);
  forget(&r);
  forget(&shown);
  r = clebsch("source spherical_harmonics --device cpu:interpreter -o /nonexistent/file");
  assert_int_equal(r.status, 1);
  assert_non_null(strstr(r.err, "/nonexistent/file"));
  forget(&r);
}

static void bench(void **state) {
  (void)state;
  static const char arguments[] = "bench spherical_harmonics --degrees 0,2,1 --rows 103 --device "
                                  "cpu:interpreter --dtype f32 --dtype f64 --json";
  json_t *rows = array_of(arguments, 0, bench_keys), *row;
  assert_int_equal(json_array_size(rows), 6);
  size_t i;
  json_array_foreach(rows, i, row) {
    double seconds = json_number_value(json_object_get(row, "seconds")),
           error = json_number_value(json_object_get(row, "error"));
    assert_string_equal(text(row, "problem"), "degrees=0,2,1 component");
    assert_true(seconds > 0 && seconds >= json_number_value(json_object_get(row, "seconds_min")));
    assert_true(error > 0 && error < 2e-6);
    assert_true(
        json_is_null(json_object_get(row, "copy_fraction"))); /* 103 rows fit in any cache */
    assert_true(json_number_value(json_object_get(row, "peak_fraction")) > 0);
    if (!strcmp(text(row, "pass"), "forward")) {
      int64_t size = strcmp(text(row, "dtype"), "f64") ? 4 : 8;
      assert_int_equal(json_integer_value(json_object_get(row, "bytes")), 103 * (3 + 9) * size);
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
    assert_string_equal(text(row, "problem"), "nequip-water ir_mul");
    assert_int_equal(json_integer_value(json_object_get(row, "bytes")), 17 * 4 * elements[i]);
    assert_true(json_number_value(json_object_get(row, "error")) > 0);
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
    char arguments[256], problem[256];
    snprintf(arguments, sizeof arguments,
             "bench tensor_product --x 7x0e+5x1o --y 0e+1o --z 3x0e+2x1o --layout mul_ir --rows %d "
             "--device cpu:interpreter --json %s",
             ROWS, asked[i].options);
    snprintf(problem, sizeof problem, "7x0e+5x1o (x) 0e+1o => 3x0e+2x1o %s", asked[i].says);
    json_t *rows = array_of(arguments, 0, bench_keys), *row = json_array_get(rows, 0);
    assert_int_equal(json_array_size(rows), 1);
    assert_string_equal(text(row, "problem"), problem);
    assert_int_equal(json_integer_value(json_object_get(row, "bytes")),
                     4 * (ROWS * asked[i].per_row + asked[i].once));
    assert_true(json_number_value(json_object_get(row, "error")) > 0);
    json_decref(rows);
  }
  json_t *rows = array_of("bench tensor_product --x 2x0e+1x1o --y 0e+1o --filter 0e+1o --order "
                          "found --rows 7 --pass forward --device cpu:interpreter --json",
                          0, bench_keys);
  assert_string_equal(text(json_array_get(rows, 0), "problem"),
                      "2x0e+1x1o (x) 0e+1o -> 0e+1o found ir_mul");
  json_decref(rows);
}

static double real(const json_t *row, const char *key) {
  return json_number_value(json_object_get(row, key));
}

/* The bound follows from the published figures in the same row, independently of the compiler;
   occupancy is a fraction. */
static void expect_bound(const json_t *row) {
  const json_t *p = json_object_get(row, "published");
  assert_true(json_is_true(json_object_get(row, "bound")) &&
              json_is_null(json_object_get(row, "seconds")));
  if (json_is_null(p)) return;
  const double moving = real(row, "bytes") / real(p, "bytes_per_second"),
               computing = real(row, "flops") / real(p, "f32_per_second");
  assert_true(strlen(text(p, "name")) > 0 && real(p, "f64_per_second") > 0);
  assert_true(moving > 0 && fabs(real(row, "bound_seconds") / fmax(moving, computing) - 1) < 1e-12);
  assert_string_equal(text(row, "limited_by"), moving >= computing ? "bytes" : "flops");
  if (!json_is_null(json_object_get(row, "registers")))
    assert_true(real(row, "occupancy") > 0 && real(row, "occupancy") <= 1);
}

static void bench_of_compilers(void **state) {
  (void)state;
  json_t *found = array_of("devices --json", 0, device_keys), *d;
  size_t i, targets = 0;
  json_array_foreach(found, i, d) {
    if (json_is_true(json_object_get(d, "runs"))) continue;
    char arguments[256];
    snprintf(arguments, sizeof arguments,
             "bench spherical_harmonics --lmax 4 --pass backward --json --device %s",
             text(d, "name"));
    json_t *rows = array_of(arguments, 0, compiled_keys), *row = json_array_get(rows, 0),
           *loads = json_object_get(row, "loads");
    assert_int_equal(json_array_size(rows), 1);
    assert_true(json_is_false(json_object_get(row, "runs")));
    if (!json_is_null(loads)) assert_int_equal(json_integer_value(loads), 3 + 24);
    if (!json_is_null(loads)) assert_true(real(row, "fmas") > 50);
    expect_bound(row);
    snprintf(arguments, sizeof arguments,
             "bench spherical_harmonics --lmax 2 --pass forward --device %s", text(d, "name"));
    run r = clebsch(arguments);
    expect_status(&r, arguments, 0);
    assert_non_null(strstr(r.out, "compiles only"));
    if (!json_is_null(json_object_get(row, "published")))
      assert_non_null(
          strstr(r.out, "times are bounds from the vendor's published figures, not measurements"));
    forget(&r);
    snprintf(arguments, sizeof arguments, "check --device %s", text(d, "name"));
    r = clebsch(arguments);
    expect_status(&r, arguments, 2); /* what only compiles cannot be checked */
    forget(&r);
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
      assert_true(json_number_value(json_object_get(row, keys[k])) > 0);
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
  assert_int_equal(json_integer_value(json_object_get(row, "tensors")), 63);
  assert_int_equal(json_integer_value(json_object_get(row, "numbers")), 707658);
  for (int k = 5; keys[k]; k++) assert_true(json_number_value(json_object_get(row, keys[k])) > 0);
  json_decref(rows);
}

/* Measured schedules can be exported and imported. */
static void tune(void **state) {
  static const char *const keys[] = {
      "op",      "problem",  "pass",     "dtype", "device", "measured", "estimate_seconds",
      "seconds", "estimate", "schedule", NULL};
  char path[] = "/tmp/clebsch-tune-XXXXXX", arguments[256];
  double seconds[2];
  (void)state;
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  for (int turn = 0; turn < 2; turn++) {
    snprintf(
        arguments, sizeof arguments,
        "tune spherical_harmonics --lmax 4 --pass forward --device cpu:interpreter --json --%s %s",
        turn ? "import" : "export", path);
    json_t *rows = array_of(arguments, 0, keys);
    assert_int_equal(json_array_size(rows), 1);
    const json_t *row = json_array_get(rows, 0);
    assert_true(json_is_true(json_object_get(row, "measured")));
    assert_non_null(strstr(text(row, "estimate"), "lanes="));
    assert_non_null(strstr(text(row, "schedule"), "lanes="));
    seconds[turn] = json_number_value(json_object_get(row, "seconds"));
    assert_true(seconds[turn] > 0 &&
                seconds[turn] <= json_number_value(json_object_get(row, "estimate_seconds")));
    json_decref(rows);
  }
  assert_true(seconds[0] == seconds[1]); /* not measured again */
  snprintf(arguments, sizeof arguments,
           "tune spherical_harmonics --lmax 4 --pass forward --device cpu:interpreter --again "
           "--import=%s",
           path);
  run r = clebsch(arguments);
  expect_status(&r, arguments, 0);
  assert_non_null(strstr(r.out, "ratio"));
  assert_non_null(strstr(r.out, "lmax=4"));
  forget(&r);
  unlink(path);
  static const char *const wrong[] = {
      "tune",
      "tune spherical_harmonics --lmax 1 --export /tmp/none --device cpu --device cpu:interpreter",
      "tune spherical_harmonics --lmax 1 --device cpu:interpreter --import /tmp/none/such",
      "tune tensor_product --problem none"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    r = clebsch(wrong[i]);
    expect_status(&r, wrong[i], 2);
    assert_string_equal(r.out, "");
    forget(&r);
  }
}

static void failures(void **state) { /* one bad device does not hide the others */
  (void)state;
  json_t *rows = array_of("source spherical_harmonics --json --lmax 1 --device nothing --device "
                          "cpu:interpreter --device cpu:9",
                          1, (const char *[]){"source", NULL});
  assert_int_equal(json_array_size(rows), 1);
  json_decref(rows);
  run r = clebsch("check --device nothing");
  assert_int_equal(r.status, 1);
  assert_string_equal(r.out, "");
  assert_non_null(strstr(r.err, "nothing"));
  forget(&r);
  int full = open("/dev/full", O_WRONLY);
  assert_true(full >= 0);
  r = clebsch_in("devices", environ, full);
  close(full);
  assert_int_equal(r.status, 1);
  assert_non_null(strstr(r.err, "standard output"));
  forget(&r);
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
  return cmocka_run_group_tests(tests, NULL, NULL);
}
