/* tests/backends/test_level_zero.c - the Level Zero backend on the test-only driver, through the
   real loader: numbers, order, devices, failures. */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

#include "backends/level_zero/level_zero.h"
#include "tests/backends/every_call.h"
#include "tests/fakes/staging.h"
#include "tests/backends/opencl_cases.h"
#include "tests/backends/opencl_runner.h"
#include "tests/ir/random_kernel.h"

static const clb_backend *const level_zero = &clb_backend_level_zero;

static struct {
  bool runs;      /* the driver opens and has a CPU to run on */
  bool subgroups; /* which has sub-groups */
  fake_driver *driver;
  lz_api ze;
} fake; /* filled once, by main */

static clb_device *open_device(const char *name, clb_error_sink *error) {
  clb_device *d;
  if (!fake.runs)
    skip_because("no Level Zero loader, no test-only driver, or no OpenCL driver for CPUs that "
                 "takes SPIR-V");
  if (level_zero->open(name, name + strlen("level_zero"), NULL, error, &d))
    fail_msg("%s", error->text.s);
  return d;
}

/* After each test: no rule of Level Zero was broken, no object is left. */
static int obeyed(void **state) {
  (void)state;
  if (!fake.runs) return 0;
  if (*fake.driver->mistake) fprintf(stderr, "rules broken: %s\n", fake.driver->mistake);
  if (fake.driver->alive) fprintf(stderr, "%d objects left\n", fake.driver->alive);
  return *fake.driver->mistake || fake.driver->alive;
}

/* ---- numbers ---- */

static void run_case(clb_device *d, int which) {
  kernel_case c;
  void *arrays[CASE_PARAMETERS] = {NULL};
  case_begin(&c, which, &d->limits, true);
  case_copies(&c, arrays);
  if (case_run(d, &c, arrays)) fail_msg("%s: %s", c.k.name, d->error->text.s);
  case_expect(&c, d->info.name, arrays);
  case_free_copies(arrays);
  case_free(&c);
}

static clb_device *open_with_subgroups(const char *name, clb_error_sink *error) {
  if (!fake.subgroups)
    skip_because("no OpenCL driver for CPUs with sub-groups; ci/intel_cpu.sh installs one");
  return open_device(name, error);
}

static void numbers(void **state) {
  clb_error_sink error = {0};
  (void)state;
  clb_device *d = open_with_subgroups("level_zero", &error);
  for (int i = 0; i < 2 * CASES; i++) {
    d->limits.lanes[CLB_F32] = d->limits.lanes[CLB_F64] = i < CASES ? 16 : 32;
    run_case(d, i % CASES);
  }
  level_zero->close(d);
  clb_text_free(&error.text);
}

/* All that a launch of a random kernel needs. */
static clb_status run_random(clb_device *d, const random_kernel *r, void *const *data) {
  clb_memory memory[RANDOM_PARAMETERS] = {0};
  clb_arg args[RANDOM_PARAMETERS] = {0};
  clb_text binary = {0};
  clb_module *module = NULL;
  clb_status s = build_kernel(d, &r->k, &binary);
  if (!s) s = level_zero->load(d, &r->k, binary.s, binary.n, &module);
  for (int i = 0; i < r->n && !s; i++) {
    const random_parameter *p = &r->parameter[i];
    args[i] = (clb_arg){.type = p->type, .i64 = p->scalar.i64};
    if (p->type != IR_VOID) continue;
    args[i].memory = &memory[i];
    s = level_zero->alloc(d, random_kernel_bytes(r, i), &memory[i]);
    if (!s) s = level_zero->write(d, &memory[i], 0, data[i], random_kernel_bytes(r, i));
  }
  if (!s) s = level_zero->launch(d, module, r->groups, args, r->n);
  for (int i = 0; i < r->n && !s; i++)
    if (memory[i].handle)
      s = level_zero->read(d, &memory[i], 0, data[i], random_kernel_bytes(r, i));
  for (int i = 0; i < r->n; i++)
    if (memory[i].handle) level_zero->free(d, &memory[i]);
  level_zero->unload(d, module);
  clb_text_free(&binary);
  return s;
}

static void random_kernels(void **state) {
  clb_error_sink error = {0};
  char why[300] = "";
  (void)state;
  clb_device *d = open_with_subgroups("level_zero:0.0", &error);
  for (int seed = 0; seed < 4; seed++) {
    random_kernel r;
    void *expected[RANDOM_PARAMETERS], *found[RANDOM_PARAMETERS];
    random_kernel_make(&r, 4000u + (unsigned)seed, seed % 2 ? 32 : 16, 1 + seed % 3, RANDOM_ALL);
    for (int i = 0; i < r.n; i++)
      expected[i] = random_kernel_data(&r, i), found[i] = random_kernel_data(&r, i);
    if (!random_kernel_run(&r, &r.k, expected, why, sizeof why)) fail_msg("seed %d: %s", seed, why);
    if (run_random(d, &r, found)) fail_msg("seed %d: %s", seed, error.text.s);
    if (!random_kernel_agree(&r, expected, found, why, sizeof why))
      fail_msg("seed %d: %s", seed, why);
    for (int i = 0; i < r.n; i++) free(expected[i]), free(found[i]);
    random_kernel_free(&r);
  }
  level_zero->close(d);
  clb_text_free(&error.text);
}

/* ---- order ---- */

enum { ROWS = 64 };

/* y = a y + b, in place. */
static void affine_kernel(ir_kernel *k, int lanes) {
  ir_begin(k, "affine", lanes, 1, lanes);
  ir_val y = ir_buffer(k, IR_F32, true), a = ir_scalar(k, IR_F32), b = ir_scalar(k, IR_F32);
  ir_val row = ir_add(k, ir_mul(k, ir_group(k), ir_int(k, IR_I32, lanes)), ir_lane(k));
  ir_store(k, y, row, IR_NONE, ir_fma(k, ir_load(k, y, row, IR_NONE), a, b));
  assert_true(ir_finish(k));
}

typedef struct {
  ir_kernel k;
  clb_module *module;
  clb_memory y;
  clb_text binary;
} affine;

static clb_status affine_load(clb_device *d, affine *a, uint64_t bytes) {
  affine_kernel(&a->k, 16);
  clb_status s = build_kernel(d, &a->k, &a->binary);
  if (!s) s = level_zero->load(d, &a->k, a->binary.s, a->binary.n, &a->module);
  return s ? s : level_zero->alloc(d, bytes, &a->y);
}

static clb_status affine_launch(clb_device *d, const affine *a, float factor, float term) {
  const clb_arg args[] = {{.type = IR_VOID, .memory = &a->y},
                          {.type = IR_F32, .f32 = factor},
                          {.type = IR_F32, .f32 = term}};
  return level_zero->launch(d, a->module, ROWS / 16, args, 3);
}

/* factor y + term, then 2 y + 1. */
static void affine_record(clb_device *d, const affine *a, float factor, float term,
                          clb_recorded **r) {
  const clb_arg args[2][3] = {
      {{.type = IR_VOID, .memory = &a->y},
       {.type = IR_F32, .f32 = factor},
       {.type = IR_F32, .f32 = term}},
      {{.type = IR_VOID, .memory = &a->y}, {.type = IR_F32, .f32 = 2}, {.type = IR_F32, .f32 = 1}}};
  clb_work work[2];
  for (int i = 0; i < 2; i++)
    work[i] = (clb_work){
        .name = a->k.name, .module = a->module, .groups = ROWS / 16, .args = args[i], .n_args = 3};
  level_zero->record(d, work, 2, r);
}

static void affine_unload(clb_device *d, affine *a) {
  if (a->y.handle) level_zero->free(d, &a->y);
  level_zero->unload(d, a->module);
  clb_text_free(&a->binary);
  ir_free(&a->k);
}

/* Writes, launches and reads that need each other; one run of launches without waiting. */
static void check_order(clb_device *d, uint64_t bytes) {
  affine a = {.module = NULL};
  float y[ROWS], wanted = 0;
  if (affine_load(d, &a, bytes)) fail_msg("%s", d->error->text.s);
  for (int i = 0; i < ROWS; i++) y[i] = (float)i;
  assert_int_equal(level_zero->write(d, &a.y, 0, y, sizeof y), CLB_OK);
  for (int i = 0; i < 7; i++) assert_int_equal(affine_launch(d, &a, 2, (float)i), CLB_OK);
  assert_int_equal(level_zero->read(d, &a.y, sizeof *y, y, sizeof *y), CLB_OK); /* row 1 */
  for (int i = 0; i < 7; i++) wanted = 2 * (i ? wanted : 1) + (float)i;
  assert_true(y[0] == wanted);
  y[0] = 5;
  assert_int_equal(affine_launch(d, &a, 0, 1), CLB_OK);
  assert_int_equal(level_zero->write(d, &a.y, 3 * sizeof *y, y, sizeof *y), CLB_OK);
  assert_int_equal(affine_launch(d, &a, 3, 0), CLB_OK);
  assert_int_equal(level_zero->read(d, &a.y, 0, y, sizeof y), CLB_OK);
  for (int i = 0; i < ROWS; i++) assert_true(y[i] == (i == 3 ? 15 : 3));
  assert_int_equal(affine_launch(d, &a, 1, 0), CLB_OK); /* still in flight when it is freed */
  affine_unload(d, &a);
}

/* Closed lists among launches, more than the driver keeps in flight, without waiting; made again
   while the old one may still be running. */
static void check_recorded(clb_device *d) {
  affine a = {.module = NULL};
  clb_recorded *r = NULL, *second = NULL;
  float y[ROWS] = {0}, wanted = 0;
  if (affine_load(d, &a, sizeof y)) fail_msg("%s", d->error->text.s);
  assert_int_equal(level_zero->write(d, &a.y, 0, y, sizeof y), CLB_OK);
  affine_record(d, &a, -1, 3, &r);
  affine_record(d, &a, 0.5f, 1, &second);
  assert_true(r && second);
  for (int i = 0; i < 100; i++) {
    assert_int_equal(affine_launch(d, &a, 0.25f, (float)(i % 7)), CLB_OK);
    assert_int_equal(level_zero->replay(d, r), CLB_OK);
    assert_int_equal(level_zero->replay(d, second), CLB_OK);
    assert_int_equal(level_zero->replay(d, r), CLB_OK);
    if (i == 50) affine_record(d, &a, -1, 4, &r);
    wanted = 0.25f * wanted + (float)(i % 7);
    wanted = 2 * ((i > 50 ? 4 : 3) - wanted) + 1;
    wanted = 2 * (0.5f * wanted + 1) + 1;
    wanted = 2 * ((i > 50 ? 4 : 3) - wanted) + 1;
  }
  assert_int_equal(level_zero->read(d, &a.y, 0, y, sizeof y), CLB_OK);
  for (int i = 0; i < ROWS; i++) assert_true(y[i] == wanted);
  assert_int_equal(level_zero->replay(d, r), CLB_OK); /* still in flight when it is forgotten */
  level_zero->forget(d, r);
  level_zero->forget(d, second);
  affine_unload(d, &a);
}

static void recorded(void **state) {
  clb_error_sink error = {0};
  (void)state;
  clb_device *d = open_device("level_zero:0", &error);
  check_recorded(d);
  level_zero->close(d);
  clb_text_free(&error.text);
}

static void order(void **state) {
  clb_error_sink error = {0};
  (void)state;
  clb_device *d = open_device("level_zero:0", &error);
  check_order(d, ROWS * sizeof(float));
  check_order(
      d, (uint64_t)3 << 20); /* more than the driver allocates without relaxed allocation limits */
  level_zero->close(d);
  clb_text_free(&error.text);
}

static void *one_thread(void *unused) {
  clb_error_sink error = {0};
  clb_device *d = open_device("level_zero:0.1", &error);
  (void)unused;
  for (int i = 0; i < 5; i++) check_order(d, ROWS * sizeof(float));
  level_zero->close(d);
  clb_text_free(&error.text);
  return NULL;
}

static void two_threads(void **state) {
  pthread_t thread[2];
  clb_error_sink error = {0};
  (void)state;
  level_zero->close(open_device("level_zero", &error));
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, one_thread, NULL), 0);
  for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
}

/* ---- devices ---- */

static void add_name(const clb_device_info *info, void *user) {
  if (info->runs) clb_text_add(user, "%s=%s;", info->name, info->description);
}

static void expect_devices(const char *list) {
  clb_text names = {0};
  level_zero->list(add_name, &names);
  assert_string_equal(names.s, list);
  clb_text_free(&names);
}

static void expect_description(const char *name, const char *description) {
  clb_error_sink error = {0};
  clb_device *d = open_device(name, &error);
  assert_string_equal(d->info.description, description);
  level_zero->close(d);
}

static void expect_absent(const char *name, const char *why) {
  clb_error_sink error = {0};
  clb_device *d;
  assert_int_equal(level_zero->open(name, name + strlen("level_zero"), NULL, &error, &d),
                   CLB_ERROR_DEVICE);
  assert_null(d);
  if (!strstr(error.text.s, why)) fail_msg("%s", error.text.s);
  clb_text_free(&error.text);
}

/* A device string names the same tile, whatever the process sees as a device. */
static void tiles(void **state) {
  static const char *const malformed[] = {"level_zero:",   "level_zero:x",     "level_zero:0.",
                                          "level_zero:.1", "level_zero:0.1.2", "level_zero:-1",
                                          "level_zero:0 "};
  clb_error_sink error = {0};
  (void)state;
  clb_device *d = open_device("level_zero", &error);
  assert_string_equal(d->info.name, "level_zero:0");
  assert_int_equal(d->limits.units, 128);
  assert_int_equal(d->limits.lanes[CLB_F32], 16);
  level_zero->close(d);
  expect_devices("level_zero:0=test card;level_zero:0.0=test tile 0;level_zero:0.1=test tile 1;");
  expect_description("level_zero:0", "test card");
  expect_description("level_zero:0.1", "test tile 1");
  expect_absent("level_zero:0.2", "2 tiles");
  expect_absent("level_zero:1", "1 cards");
  setenv("ZE_FLAT_DEVICE_HIERARCHY", "FLAT", 1);
  expect_devices("level_zero:0.0=test tile 0;level_zero:0.1=test tile 1;");
  expect_description("level_zero", "test tile 0");
  expect_description("level_zero:0.0", "test tile 0");
  expect_description("level_zero:0.1", "test tile 1");
  expect_absent("level_zero:0", "level_zero:0.0");
  setenv("CLB_TEST_UNSUPPORTED", "zeDevicePciGetPropertiesExt",
         1); /* then each is a card of its own */
  expect_description("level_zero:1", "test tile 1");
  expect_description("level_zero:1.0", "test tile 1");
  expect_absent("level_zero:1.1", "1 tiles");
  unsetenv("CLB_TEST_UNSUPPORTED");
  unsetenv("ZE_FLAT_DEVICE_HIERARCHY");
  for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
    expect_absent(malformed[i], "level_zero:CARD.TILE");
}

/* ---- the caller's handles and memory ---- */

static clb_native callers_own(void) {
  clb_native n = {0};
  const ze_context_desc_t context = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
  const ze_command_queue_desc_t queue = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                         .ordinal = 1,
                                         .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
  uint32_t one = 1;
  assert_int_equal(fake.ze.Init(0), 0);
  assert_int_equal(fake.ze.DriverGet(&one, (ze_driver_handle_t *)&n.driver), 0);
  assert_int_equal(fake.ze.DeviceGet(n.driver, &one, (ze_device_handle_t *)&n.device), 0);
  assert_int_equal(fake.ze.ContextCreate(n.driver, &context, (ze_context_handle_t *)&n.context), 0);
  assert_int_equal(fake.ze.CommandListCreateImmediate(n.context, n.device, &queue,
                                                      (ze_command_list_handle_t *)&n.queue),
                   0);
  return n;
}

static void adopted(void **state) {
  clb_error_sink error = {0};
  clb_device *d;
  (void)state;
  level_zero->close(open_device("level_zero", &error));
  clb_native n = callers_own(), half = n;
  half.queue = NULL;
  assert_int_equal(level_zero->open("level_zero", "", &half, &error, &d), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text.s, "immediate command list"));
  assert_int_equal(level_zero->open("level_zero@pvc", "@pvc", &n, &error, &d), CLB_ERROR_ARGUMENT);
  assert_int_equal(level_zero->open("level_zero", "", &n, &error, &d), CLB_OK);
  check_order(d, ROWS * sizeof(float));
  if (fake.subgroups) run_case(d, 1);
  level_zero->close(d);
  clb_text_free(&error.text);
  assert_int_equal(fake.ze.CommandListDestroy(n.queue), 0);
  assert_int_equal(fake.ze.ContextDestroy(n.context), 0);
}

/* A caller's commands between ours, without barriers of their own. */
static void adopted_order(void **state) {
  clb_error_sink error = {0};
  clb_device *d;
  affine a = {.module = NULL};
  float ones[ROWS], y[ROWS];
  (void)state;
  level_zero->close(open_device("level_zero", &error));
  clb_native n = callers_own();
  assert_int_equal(level_zero->open("level_zero", "", &n, &error, &d), CLB_OK);
  assert_int_equal(affine_load(d, &a, sizeof y), CLB_OK);
  for (int i = 0; i < ROWS; i++) ones[i] = 1;
  assert_int_equal(
      fake.ze.CommandListAppendMemoryCopy(n.queue, a.y.handle, ones, sizeof ones, NULL, 0, NULL),
      0);
  assert_int_equal(affine_launch(d, &a, 1, 2), CLB_OK);
  assert_int_equal(
      fake.ze.CommandListAppendMemoryCopy(n.queue, y, a.y.handle, sizeof y, NULL, 0, NULL), 0);
  assert_int_equal(level_zero->wait(d), CLB_OK);
  for (int i = 0; i < ROWS; i++) assert_true(y[i] == 3);
  clb_recorded *r = NULL;
  affine_record(d, &a, 1, 1, &r);
  assert_non_null(r);
  assert_int_equal(
      fake.ze.CommandListAppendMemoryCopy(n.queue, a.y.handle, ones, sizeof ones, NULL, 0, NULL),
      0);
  assert_int_equal(level_zero->replay(d, r), CLB_OK);
  assert_int_equal(
      fake.ze.CommandListAppendMemoryCopy(n.queue, y, a.y.handle, sizeof y, NULL, 0, NULL), 0);
  assert_int_equal(level_zero->wait(d), CLB_OK);
  for (int i = 0; i < ROWS; i++) assert_true(y[i] == 5);
  level_zero->forget(d, r);
  affine_unload(d, &a);
  level_zero->close(d);
  assert_int_equal(fake.ze.CommandListDestroy(n.queue), 0);
  assert_int_equal(fake.ze.ContextDestroy(n.context), 0);
}

static void expect_wrap(clb_device *d, clb_memory memory, clb_status status, const char *why) {
  assert_int_equal(level_zero->wrap(d, &memory), status);
  if (status && !strstr(d->error->text.s, why)) fail_msg("%s", d->error->text.s);
}

static void wrapped(void **state) {
  clb_error_sink error = {0};
  (void)state;
  clb_device *d = open_device("level_zero", &error);
  clb_memory memory;
  assert_int_equal(level_zero->alloc(d, 400, &memory), CLB_OK);
  expect_wrap(d, memory, CLB_OK, "");
  expect_wrap(d, (clb_memory){(char *)memory.handle + 100, CLB_POINTER, 300, NULL}, CLB_OK, "");
  expect_wrap(d, (clb_memory){(char *)memory.handle + 100, CLB_POINTER, 301, NULL},
              CLB_ERROR_ARGUMENT, "ends after 300");
  expect_wrap(d, (clb_memory){&memory, CLB_POINTER, 4, NULL}, CLB_ERROR_ARGUMENT,
              "not device, shared or host memory");
  expect_wrap(d, (clb_memory){memory.handle, CLB_CL_MEM, 4, NULL}, CLB_ERROR_ARGUMENT, "cl_mem");
  level_zero->free(d, &memory);
  level_zero->close(d);
  clb_text_free(&error.text);
}

/* ---- what goes wrong ---- */

static void refused(void **state) {
  clb_error_sink error = {0};
  (void)state;
  clb_device *d = open_device("level_zero", &error);
  affine a = {.module = NULL};
  clb_text binary = {0};
  clb_module *module;
  affine_kernel(&a.k, 8); /* no such sub-group */
  assert_int_equal(build_kernel(d, &a.k, &binary), CLB_ERROR_COMPILE);
  assert_non_null(strstr(error.text.s, "sub-groups of 8 lanes"));
  assert_non_null(strstr(error.text.s, "ZE_RESULT_ERROR_MODULE_BUILD_FAILURE"));
  ir_free(&a.k);
  assert_int_equal(affine_load(d, &a, 256), CLB_OK);
  a.binary.s[a.binary.n / 2] ^= 1;
  assert_int_equal(level_zero->load(d, &a.k, a.binary.s, a.binary.n, &module), CLB_ERROR_DRIVER);
  assert_non_null(strstr(error.text.s, "ZE_RESULT_ERROR_INVALID_NATIVE_BINARY"));
  assert_int_equal(level_zero->launch(d, a.module, (int64_t)1 << 33, NULL, 0),
                   CLB_ERROR_UNSUPPORTED);
  assert_int_equal(level_zero->alloc(d, (uint64_t)1 << 50, &a.y), CLB_ERROR_MEMORY);
  assert_non_null(strstr(error.text.s, "1125899906842624 bytes"));
  affine_unload(d, &a);
  level_zero->close(d);
  clb_text_free(&binary);
  clb_text_free(&error.text);
}

static bool fell_back; /* a recording was not made, which is no failure */

/* y becomes 5.  After a failure the next replay is well. */
static clb_status replay_scenario(clb_device *d, affine *a) {
  clb_recorded *r = NULL;
  clb_status s = CLB_OK;
  affine_record(d, a, 0, 2, &r);
  fell_back = !r;
  for (int i = 0; i < 2 && !s && r; i++) s = level_zero->replay(d, r);
  if (s) {
    float y = 0;
    assert_int_equal(affine_launch(d, a, 0, 3), CLB_OK);
    assert_int_equal(level_zero->replay(d, r), CLB_OK);
    assert_int_equal(affine_launch(d, a, 1, 1), CLB_OK);
    assert_int_equal(level_zero->read(d, &a->y, 0, &y, sizeof y), CLB_OK);
    assert_true(y == 6); /* otherwise the list ran before the first launch or after the second */
  }
  if (!s) s = level_zero->wait(d);
  if (r) level_zero->forget(d, r);
  return s;
}

/* Calls everything once. */
static clb_status scenario(trial *t) {
  clb_device *d;
  affine a = {.module = NULL};
  clb_report report;
  float y[ROWS] = {0};
  fell_back = false;
  clb_status s = open_trial(t, NULL, &d);
  if (s) return s;
  s = affine_load(d, &a, sizeof y);
  if (!s) s = level_zero->wrap(d, &a.y);
  if (!s) s = level_zero->write(d, &a.y, 0, y, sizeof y);
  if (!s) s = affine_launch(d, &a, 3, 1);
  if (!s) s = affine_launch(d, &a, 3, 1);
  if (!s) s = level_zero->wait(d);
  if (!s) s = level_zero->read(d, &a.y, 0, y, sizeof y);
  if (!s) assert_true(y[0] == 4 && y[ROWS - 1] == 4);
  if (!s) s = replay_scenario(d, &a);
  if (!s) s = level_zero->read(d, &a.y, 0, y, sizeof y);
  if (!s) assert_true(fell_back ? y[0] == 4 : y[0] == 5 && y[ROWS - 1] == 5);
  if (!s) s = level_zero->report(d, &a.k, a.binary.s, a.binary.n, &report);
  affine_unload(d, &a);
  level_zero->close(d);
  return s;
}

static clb_status list(trial *t) {
  int n = 0;
  (void)t;
  level_zero->list(count_devices, &n);
  return CLB_OK;
}

static bool harmless(const char *function) {
  return fell_back || strstr(function, "Destroy") || !strcmp(function, "zeMemFree") ||
         !strcmp(function, "zeModuleBuildLogGetString") ||
         !strcmp(function, "zeDevicePciGetPropertiesExt");
}

static void failures(void **state) {
  clb_error_sink error = {0};
  (void)state;
  level_zero->close(open_device("level_zero", &error));
  trial t = {.backend = level_zero,
             .name = "level_zero:0.1",
             .fake = fake.driver,
             .code = ZE_RESULT_ERROR_UNKNOWN,
             .word = "ZE_RESULT_ERROR_UNKNOWN",
             .harmless = harmless};
  fail_each_call(&t, scenario, 50);
  t.harmless = NULL;
  fail_each_call(&t, list, 0);
}

static void staging(void **state) {
  clb_error_sink error = {0};
  (void)state;
  clb_device *d = open_device("level_zero", &error);
  check_staging(d, fake.driver, "zeMemAllocHost");
  level_zero->close(d);
  clb_text_free(&error.text);
}

/* ---- under Debian's validation layer, which must be there before the process starts ---- */

static void validated(void **state) {
  char self[1024] = "", command[1400], line[512];
  bool good = false;
  (void)state;
  if (!fake.subgroups)
    skip_because("no OpenCL driver for CPUs with sub-groups; ci/intel_cpu.sh installs one");
  void *layer = dlopen("libze_validation_layer.so.1", RTLD_NOW);
  if (!layer) skip_because("libze_validation_layer.so.1 is not installed");
  dlclose(layer);
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  snprintf(command, sizeof command,
           "ZE_ENABLE_VALIDATION_LAYER=1 ZE_ENABLE_PARAMETER_VALIDATION=1 %s validated 2>&1", self);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  while (fgets(line, sizeof line, pipe)) good = good || strstr(line, "PASSED  ] 6");
  int status = pclose(pipe);
  assert_true(good);
  assert_int_equal(status, 0);
}

static bool find_fake(void) {
  opencl_runner runner;
  void *loader;
  dlopen("libOpenCL.so.1", RTLD_NOW); /* stays: closed, it would leak */
  fake.subgroups = runner_open(&runner, "Intel(R) OpenCL", "");
  if (!fake.subgroups && !runner_open(&runner, "Portable Computing Language", "")) return false;
  runner_close(&runner);
  if (!fake.subgroups && system("command -v llvm-spirv-15 >/dev/null 2>&1")) return false;
  if (!(fake.driver = find_fake_level_zero(&loader))) return false;
#define X(name) fake_function(loader, "ze" #name, &fake.ze.name);
  LZ_FUNCTIONS(X)
#undef X
  return true;
}

int main(int argc, char **argv) {
  const struct CMUnitTest all[] = {cmocka_unit_test_teardown(numbers, obeyed),
                                   cmocka_unit_test_teardown(order, obeyed),
                                   cmocka_unit_test_teardown(adopted, obeyed),
                                   cmocka_unit_test_teardown(wrapped, obeyed),
                                   cmocka_unit_test_teardown(tiles, obeyed),
                                   cmocka_unit_test_teardown(random_kernels, obeyed),
                                   cmocka_unit_test_teardown(two_threads, obeyed),
                                   cmocka_unit_test_teardown(adopted_order, obeyed),
                                   cmocka_unit_test_teardown(refused, obeyed),
                                   cmocka_unit_test_teardown(recorded, obeyed),
                                   cmocka_unit_test_teardown(failures, obeyed),
                                   cmocka_unit_test_teardown(staging, obeyed),
                                   cmocka_unit_test(validated)};
  const struct CMUnitTest under_the_layer[] = {
      cmocka_unit_test_teardown(numbers, obeyed), cmocka_unit_test_teardown(order, obeyed),
      cmocka_unit_test_teardown(adopted, obeyed), cmocka_unit_test_teardown(wrapped, obeyed),
      cmocka_unit_test_teardown(tiles, obeyed),   cmocka_unit_test_teardown(recorded, obeyed)};
  fake.runs = find_fake();
  if (argc > 1 && !strcmp(argv[1], "validated"))
    return cmocka_run_group_tests_name("level_zero, validated", under_the_layer, NULL, NULL);
  return cmocka_run_group_tests_name("level_zero", all, NULL, NULL);
}
