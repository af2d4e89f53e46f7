/* tests/tools/test_suite.c - `clebsch bench --suite`: its file, how it continues after an
   interruption, what it refuses, what it does where memory is short. */
#include "tests/command_json.h"
#include "tests/dynamics/model_folder.h"

#include <clebsch/clebsch.h>
#include <time.h>

#define QUICK "bench --suite quick --device cpu --out run.json --only spherical_harmonics"
enum { QUICK_RESULTS = 6 };

static size_t n_results(const json_t *run) {
  return json_array_size(json_object_get(run, "results"));
}
static json_t *result(const json_t *run, size_t i) {
  return json_array_get(json_object_get(run, "results"), i);
}

static void save(json_t *run, const char *path) { /* takes it */
  assert_int_equal(json_dump_file(run, path, 0), 0);
  json_decref(run);
}

static void near_by(const char *what, double x, double y) { near_to(what, x, y, 1e-6 * y); }

/* ---- one whole run, interrupted once: the others start from its file ---- */

/* Waits until the file has a result, or the run ends. */
static void wait_for_result(pid_t pid) {
  siginfo_t about = {.si_pid = 0};
  for (size_t n = 0;
       !n && !waitid(P_PID, (id_t)pid, &about, WEXITED | WNOHANG | WNOWAIT) && !about.si_pid;) {
    bool there = !access("run.json", F_OK);
    json_t *run = json_load_file("run.json", 0, NULL); /* complete at any time */
    if (there && !run) fail_msg("run.json is there and cannot be read");
    n = run ? n_results(run) : 0;
    json_decref(run);
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  }
}

static void goes_on(void **state) {
  (void)state;
  pid_t pid = start_clebsch(QUICK);
  wait_for_result(pid);
  kill(pid, SIGINT);
  free(expect_end_of(pid, "interrupted", 1, "stopped by a signal"));
  json_t *first = read_json("run.json");
  size_t n = n_results(first);
  assert_in_range(n, 1, QUICK_RESULTS - 1);
  assert_true(json_is_false(json_object_get(first, "complete")));
  expect_clebsch(QUICK, 0, format("%zu of %d results are there, going on", n, QUICK_RESULTS));
  json_t *second = read_json("run.json");
  assert_int_equal(n_results(second), QUICK_RESULTS);
  assert_true(is_true(second, "complete"));
  for (size_t i = 0; i < n; i++) assert_true(json_equal(result(first, i), result(second, i)));
  assert_true(json_equal(json_object_get(first, "devices"), json_object_get(second, "devices")));
  assert_true(json_equal(json_object_get(first, "started"), json_object_get(second, "started")));
  expect_clebsch(QUICK, 0, "6 of 6 results are there");
  assert_int_equal(rmdir("tmp"), 0); /* nothing is left there, not even of the interrupted run */
  assert_int_equal(mkdir("tmp", 0700), 0);
  json_t *third = read_json("run.json");
  assert_true(json_equal(second, third));
  json_decref(first), json_decref(second), json_decref(third);
}

static void has_keys(void **state) {
  (void)state;
  static const char *const passes[] = {"forward", "backward", "double_backward"};
  /* Elements of x, y and the rest in one row: 3 + D, 6 + D, 9 + 2 D + 3 - 3 of harmonics. */
  static const int d[] = {25, 81}, points[] = {100000, 20000};
  json_t *run = read_json("run.json"), *device = json_array_get(json_object_get(run, "devices"), 0);
  expect_text(run, "format", "clebsch run 1");
  expect_text(run, "clebsch", CLB_VERSION);
  expect_text(run, "suite", "quick");
  assert_int_equal(json_array_size(json_object_get(run, "devices")), 1);
  expect_text(device, "name", "cpu");
  expect_text(device, "backend", "cpu");
  expect_text(device, "published", NULL);
  const double copy = positive(device, "copy_bytes_per_second"),
               peak = positive(device, "f32_per_second");
  assert_true(positive(device, "f64_per_second") > 0 && positive(device, "launch_seconds") < 1e-2 &&
              positive(device, "memory_bytes") > 1e8);
  assert_true(is_true(device, "runs") && is_true(device, "f64"));
  assert_int_equal(n_results(run), QUICK_RESULTS);
  for (size_t i = 0; i < QUICK_RESULTS; i++) {
    const json_t *r = result(run, i);
    const int *l = &d[i / 3], widths[] = {3 + *l, 6 + *l, 9 + 2 * *l};
    expect_text(r, "op", "spherical_harmonics");
    expect_text(r, "problem", i < 3 ? "lmax=4 component" : "lmax=8 component");
    expect_text(r, "graph", NULL);
    expect_text(r, "options", NULL);
    expect_text(r, "pass", passes[i % 3]);
    expect_text(r, "dtype", "f32");
    expect_text(r, "device", "cpu");
    assert_int_equal(integer_of(r, "rows"), points[i / 3]);
    assert_int_equal(integer_of(r, "rows_halved"), 0);
    assert_int_equal(integer_of(r, "l_max"), i < 3 ? 4 : 8);
    assert_true(is_true(r, "runs") && is_true(r, "correct"));
    assert_true(positive(r, "error") <= positive(r, "tolerance") &&
                positive(r, "tolerance") < 1e-5);
    assert_true(positive(r, "seconds_min") <= positive(r, "seconds") &&
                positive(r, "repeats") >= 5);
    assert_true(json_number_value(json_object_get(r, "spread")) >= 0);
    const double min = 4.0 * points[i / 3] * widths[i % 3], memory = positive(r, "memory_bytes");
    assert_true(memory >= min && memory < min + 4096); /* some lies behind the rows */
    near_by("peak_fraction", positive(r, "peak_fraction"),
            positive(r, "flops") / positive(r, "seconds") / peak);
    near_by("floor_seconds", positive(r, "floor_seconds"), positive(r, "bytes") / copy);
    assert_true(positive(r, "warm_seconds") <
                positive(r, "compile_seconds")); /* which starts a C compiler */
  }
  json_decref(run);
}

/* ---- what it does with a file ---- */

static void refuses(void **state) {
  (void)state;
  static const refusal wrong[] = {
      {"bench --suite standard --device cpu --out run.json", 1,
       "run.json: its \"suite\" is \"quick\", not \"standard\": name another --out"},
      {"bench --suite quick --device cpu --out moved.json", 1,
       "moved.json: its cpu is another device or driver ("},
      {"bench --suite quick --device cpu --out other.json", 1,
       "its \"format\" is \"clebsch run 2\""},
      {"bench --suite quick --device cpu --out old.json", 1, "its \"clebsch\" is \"0.0.1\""},
      {"bench --suite quick --device cpu --out list.json", 1, "list.json: not a file of"},
      {"bench --suite quick --device cpu --out odd.json", 1, "not lists of objects"},
      {"bench --suite quick --device cpu --out /dev/null", 1, "/dev/null: not a file"},
      {"bench --suite quick --device nothing --out new.json", 1, "nothing"},
      {"bench --suite quick --device cpu --device cpu --out new.json", 1, "cpu is named twice"},
      {"bench --suite slow --device cpu --out new.json", 2,
       "--suite is standard, graphs, norms or quick, not 'slow'"},
      {"bench --suite quick --device cpu --only water --out new.json", 2,
       "nothing that is called 'water'"},
      {"bench --suite quick --device cpu --only spherical_harmonics,mace-large --out new.json", 2,
       "nothing that is all of"},
      {"bench --suite quick --device cpu", 2, "--out"},
      {"bench tensor_product --suite quick --device cpu --out new.json", 2,
       "a suite brings its own ops"},
  };
  json_t *run = read_json("run.json"), *changed = json_deep_copy(run);
  json_object_set_new(changed, "format", json_string("clebsch run 2"));
  save(json_incref(changed), "other.json");
  json_object_set_new(changed, "format", json_string("clebsch run 1"));
  json_object_set_new(changed, "clebsch", json_string("0.0.1"));
  save(json_incref(changed), "old.json");
  json_object_set_new(changed, "clebsch", json_string(CLB_VERSION));
  json_object_set_new(json_array_get(json_object_get(changed, "devices"), 0), "driver",
                      json_string("another"));
  save(json_incref(changed), "moved.json");
  json_object_set_new(changed, "results", json_pack("[i]", 1));
  save(changed, "odd.json");
  put_text("list.json", "[]");
  expect_refusals("", wrong, sizeof wrong / sizeof *wrong);
  assert_int_equal(access("new.json", F_OK), -1);
  json_t *after = read_json("run.json");
  assert_true(json_equal(run, after));
  json_decref(run), json_decref(after);
}

/* A wrong result stays, and is reported; a failed one is measured again; one for another number of
   rows is a different result. */
static void minds_what_is_there(void **state) {
  (void)state;
  json_t *run = read_json("run.json");
  json_object_set_new(result(run, 1), "correct", json_false());
  save(json_incref(run), "bad.json");
  expect_clebsch("bench --suite quick --device cpu --only spherical_harmonics --out bad.json", 1,
                 "1 of its results is wrong");
  json_t *again = read_json("bad.json");
  assert_true(json_equal(run, again));
  json_object_set_new(result(run, 1), "correct", json_null());
  json_object_set_new(result(run, 1), "seconds", json_null());
  json_object_set_new(result(run, 1), "failed", json_string("no reason"));
  json_object_set_new(result(run, 2), "rows", json_integer(1000));
  json_object_set_new(result(run, 2), "compile_seconds", json_real(123));
  json_object_set_new(result(run, 2), "warm_seconds", json_real(45));
  save(run, "bad.json");
  json_decref(again);
  expect_clebsch("bench --suite quick --device cpu --only spherical_harmonics --out bad.json", 0,
                 "4 of 6 results are there");
  again = read_json("bad.json");
  assert_int_equal(n_results(again), QUICK_RESULTS + 1);
  const json_t *retried = result(again, QUICK_RESULTS - 1), *more = result(again, QUICK_RESULTS);
  expect_text(retried, "pass", "backward");
  assert_true(positive(retried, "seconds") > 0 && is_true(retried, "correct") &&
              !json_object_get(retried, "failed"));
  expect_text(more, "pass", "double_backward");
  assert_int_equal(integer_of(more, "rows"), 100000);
  assert_true(positive(more, "compile_seconds") == 123 &&
              positive(more, "warm_seconds") == 45); /* the same kernel */
  json_decref(again);
}

/* ---- other devices, other ops ---- */

static void times_graphs(void **state) {
  (void)state;
  expect_clebsch("bench --suite quick --device cpu --only nequip-water,forward --out graphs.json",
                 0, NULL);
  json_t *run = read_json("graphs.json");
  assert_int_equal(n_results(run), 2);
  for (size_t i = 0; i < 2; i++) {
    const json_t *r = result(run, i);
    expect_text(r, "op", "convolution");
    expect_text(r, "problem", "nequip-water");
    expect_text(r, "graph", "carbon:2");
    expect_text(r, "options", i ? "table" : NULL);
    assert_int_equal(integer_of(r, "rows"), 64 * 158);
    assert_true(positive(r, "seconds") > 0 && is_true(r, "correct"));
  }
  json_decref(run);
  expect_clebsch("bench --suite quick --device cpu --only nequip-water,forward --out graphs.json",
                 0, "2 of 2 results are there");
}

/* A device that the file does not have is added, and what is there stays. */
static void adds_devices(void **state) {
  static const char once[] = "bench --suite quick --device cpu:interpreter --only "
                             "tensor_product,single-3-3-3,forward --out graphs.json";
  (void)state;
  json_t *before = read_json("graphs.json");
  expect_clebsch(once, 0, "0 of 1 results are there, going on");
  json_t *run = read_json("graphs.json");
  assert_int_equal(json_array_size(json_object_get(run, "devices")), 2);
  assert_int_equal(n_results(run), 3);
  assert_true(json_equal(result(before, 1), result(run, 1)));
  expect_text(result(run, 2), "device", "cpu:interpreter");
  json_decref(before), json_decref(run);
}

/* Rows are halved until there is memory for them. */
static void halves_rows(void **state) {
  (void)state;
#ifdef __SANITIZE_ADDRESS__
  skip_because("the sanitizer takes all of the address space");
#endif
  json_t *run = read_json("run.json");
  json_object_set_new(run, "suite", json_string("standard"));
  json_array_clear(json_object_get(run, "results"));
  save(run, "short.json");
  static const char short_of_memory[] = "bench --suite standard --device cpu --only "
                                        "tensor_product,single-7-7-7,forward,f64 --out short.json";
  free(expect_end_of(start_limited(RLIMIT_AS, (size_t)1 << 30, short_of_memory), short_of_memory, 0,
                     "0 of 1 results are there, going on"));
  run = read_json("short.json");
  const json_t *r = result(run, 0);
  const long long halved = integer_of(r, "rows_halved"), rows = integer_of(r, "rows");
  assert_in_range(halved, 3, 8); /* 200,000 rows of 32 kB */
  assert_int_equal(rows, 200000 >> halved);
  assert_true(is_true(r, "correct"));
  near_by("bytes", positive(r, "bytes"), 8.0 * (double)rows * (128 * 15 * 2 + 15 + 128));
  json_decref(run);
  expect_clebsch(short_of_memory, 0, "1 of 1 results are there");
}

static void bounds_others(void **state) {
  (void)state;
  json_t *devices = json_of("devices --json"), *d;
  assert_true(json_is_array(devices));
  int found = 0;
  size_t i;
  json_array_foreach(devices, i, d) {
    if (is_true(d, "runs")) continue;
    expect_clebsch(
        format(
            "bench --suite quick --only single-3-3-3,forward --force --out bound.json --device %s",
            json_string_value(json_object_get(d, "name"))),
        0, NULL);
    json_t *run = read_json("bound.json");
    const json_t *r = result(run, 0);
    assert_true(json_is_false(json_object_get(r, "runs")) && is_true(r, "bound"));
    expect_text(r, "seconds", NULL);
    expect_text(r, "correct", NULL);
    positive(r, "compile_seconds");
    json_decref(run);
    found++;
  }
  json_decref(devices);
  if (!found) skip_because("no compiler for a device that is not here");
}

static void lists(void **state) {
  (void)state;
  expect_printed("bench --suite quick --device cpu --only tensor_product,backward --list",
                 "cpu: tensor_product mace-large backward f32, 2000 rows\n", "\n4 results\n");
}

/* What `tune` left in the cache is used, and that is reported; a suite has a cache of its own and
   does not use it. */
static void wisdom_is_named(void **state) {
  static const char bench[] =
      "bench spherical_harmonics --lmax 4 --pass forward --rows 200 --device cpu:interpreter";
  (void)state;
  for (int tuned = 0; tuned < 2; tuned++) {
    if (tuned)
      expect_clebsch("tune spherical_harmonics --lmax 4 --pass forward --device cpu:interpreter", 0,
                     NULL);
    char *out = printed_by(bench);
    if ((strstr(out, "from wisdom") != NULL) != tuned)
      fail_msg("%s: %s", tuned ? "tuned" : "not tuned", out);
    free(out);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(goes_on),      cmocka_unit_test(has_keys),
      cmocka_unit_test(refuses),      cmocka_unit_test(minds_what_is_there),
      cmocka_unit_test(times_graphs), cmocka_unit_test(adds_devices),
      cmocka_unit_test(halves_rows),  cmocka_unit_test(bounds_others),
      cmocka_unit_test(lists),        cmocka_unit_test(wisdom_is_named),
  };
  return cmocka_run_group_tests(tests, make_work, remove_folder);
}
