/* tests/runtime/test_api.c - mistakes that a user can make, and lifetimes. */
#include "tests/test.h"

#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include <clebsch/clebsch.h>

static const int degrees[] = {0, 1, 2};
static const clb_spherical_harmonics_desc plain = {degrees,
                                                   3,
                                                   CLB_COMPONENT,
                                                   0,
                                                   CLB_F32,
                                                   CLB_F32,
                                                   0,
                                                   CLB_PASS_BIT(CLB_FORWARD) |
                                                       CLB_PASS_BIT(CLB_BACKWARD)};

/* Asserts that a call fails with this status and that the message contains this word. */
static clb_context *cpu(void) {
  clb_context *ctx;
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  return ctx;
}

static void devices(void **state) {
  (void)state;
  static const char *const wrong[] = {
      "vulkan",          "cpux",         "cpu:9",   "cpu@x",   "opencl:99",
      "opencl:0:99",     "opencl:x",     "cuda:99", "cuda:-1", "hip:x",
      "level_zero:0.99", "level_zero:a", "hip@",    "cuda@",   "level_zero@nothing",
      "hip@gfx0"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    clb_context *ctx = (clb_context *)wrong; /* what was there before */
    if (!clb_context_create(wrong[i], &ctx)) fail_msg("%s opened", wrong[i]);
    assert_null(ctx);
    assert_true(strlen(clb_error(ctx)) > 15);
    clb_context_destroy(&ctx);
  }
  clb_context *ctx;
  NOT_OK(ctx, CLB_ERROR_DEVICE, "vulkan", clb_context_create("vulkan", &ctx));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "native", clb_context_adopt("cuda", NULL, &ctx));
  assert_int_equal(clb_context_create("cpu", NULL), CLB_ERROR_ARGUMENT);
  setenv("CLB_DEVICE", "cpu:interpreter", 1);
  assert_int_equal(clb_context_create("", &ctx), CLB_OK);
  clb_device_info info;
  assert_int_equal(clb_context_device(ctx, &info), CLB_OK);
  assert_string_equal(info.name, "cpu:interpreter");
  clb_context_destroy(&ctx);
  unsetenv("CLB_DEVICE");
  assert_int_equal(clb_context_create(NULL, &ctx), CLB_OK);
  clb_context_destroy(&ctx);
  assert_string_equal(clb_status_text(CLB_ERROR_MEMORY), "out of memory");
  assert_string_equal(clb_status_text((clb_status)99), "no such status");
}

/* A call without a handle has a message, which gives way to that of a later failure. */
static void null_handles(void **state) {
  (void)state;
  clb_context *ctx = cpu(), *other = cpu();
  clb_buffer *b;
  assert_string_equal(clb_error(other), "no error");
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "clb_buffer_create: buffer", clb_buffer_create(ctx, 8, NULL));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "clb_op_counts: op is NULL",
         clb_op_counts(NULL, CLB_FORWARD, NULL));
  NOT_OK(other, CLB_ERROR_ARGUMENT, "spherical_harmonics, double backward: op is NULL",
         clb_spherical_harmonics_double_backward(NULL, 1, (clb_rows){0}, (clb_rows){0},
                                                 (clb_rows){0}, (clb_rows){0}, (clb_rows){0}));
  NOT_OK(NULL, CLB_ERROR_ARGUMENT, "clb_wait: ctx is NULL", clb_wait(NULL));
  assert_int_equal(clb_buffer_create(ctx, 8, &b), CLB_OK);
  assert_string_equal(clb_error(ctx), "clb_wait: ctx is NULL");
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "outside", clb_buffer_read(b, 9, &ctx, 1));
  assert_string_equal(clb_error(NULL), "clb_wait: ctx is NULL");
  clb_buffer_destroy(&b);
  clb_context_destroy(&other);
  clb_context_destroy(&ctx);
}

static void *says(void *ctx) {
  return strcmp(clb_error(ctx), "no error") || strcmp(clb_error(NULL), "no error") ? "said" : NULL;
}

/* It is the thread's own. */
static void null_handles_of_others(void **state) {
  (void)state;
  clb_context *ctx = cpu();
  pthread_t t;
  void *said;
  assert_int_equal(clb_wait(NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(pthread_create(&t, NULL, says, ctx), 0);
  pthread_join(t, &said);
  assert_null(said);
  clb_context_destroy(&ctx);
}

static void buffers(void **state) {
  (void)state;
  clb_context *ctx = cpu();
  clb_buffer *b;
  char c[8];
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer", clb_buffer_create(ctx, 8, NULL));
  NOT_OK(ctx, CLB_ERROR_MEMORY, "", clb_buffer_create(ctx, UINT64_MAX / 2, &b));
  assert_null(b);
  assert_int_equal(clb_buffer_create(ctx, 0, &b), CLB_OK);
  clb_buffer_destroy(&b);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "memory", clb_buffer_wrap(ctx, CLB_POINTER, NULL, 8, &b));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "CL_MEM", clb_buffer_wrap(ctx, CLB_CL_MEM, c, 8, &b));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "kind", clb_buffer_wrap(ctx, (clb_memory_kind)7, c, 8, &b));
  assert_int_equal(clb_buffer_create(ctx, 8, &b), CLB_OK);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "outside", clb_buffer_write(b, 1, c, 8));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "outside", clb_buffer_read(b, UINT64_MAX, c, 2));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "NULL", clb_buffer_read(b, 0, NULL, 2));
  assert_int_equal(clb_buffer_write(NULL, 0, c, 1), CLB_ERROR_ARGUMENT);
  clb_buffer_destroy(&b);
  assert_null(b);
  clb_buffer_destroy(&b);
  clb_context_destroy(&ctx);
}

/* What a description does not say is f32, and rows that say nothing but their buffer are dense. */
static void zeros(void **state) {
  (void)state;
  clb_context *ctx = cpu();
  clb_op *op;
  clb_rows x = {0}, y = {0};
  const clb_spherical_harmonics_desc d = {
      .degrees = degrees, .n_degrees = 3, .passes = CLB_PASS_BIT(CLB_FORWARD)};
  const float v[] = {0.25f, -0.5f, 2, 0.75f, 1, -3};
  float out[2][9];
  assert_int_equal(clb_spherical_harmonics_create(ctx, &d, &op), CLB_OK);
  assert_int_equal(clb_buffer_create(ctx, sizeof v, &x.buffer), CLB_OK);
  assert_int_equal(clb_buffer_create(ctx, sizeof out, &y.buffer), CLB_OK);
  assert_int_equal(clb_buffer_write(x.buffer, 0, v, sizeof v), CLB_OK);
  for (int same = 0; same < 2; same++) {
    if (same) x.stride = CLB_SAME_ROW;
    assert_int_equal(clb_spherical_harmonics_forward(op, 2, x, y), CLB_OK);
    assert_int_equal(clb_buffer_read(y.buffer, 0, out, sizeof out), CLB_OK);
    for (int r = 0; r < 2; r++) {
      const float *of = v + (same ? 0 : 3 * r);
      assert_true(out[r][0] == 1);
      for (int i = 0; i < 3; i++) assert_float_equal(out[r][1 + i], sqrt(3) * of[i], 1e-6);
    }
  }
  clb_buffer_destroy(&x.buffer);
  clb_buffer_destroy(&y.buffer);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
}

static void descriptions(void **state) {
  (void)state;
  static const int negative[] = {-1}, high[] = {13}, highest[] = {21};
  clb_context *ctx = cpu();
  clb_op *op;
  clb_spherical_harmonics_desc d;
#define WRONG(word, ...)                                                                           \
  d = plain, __VA_ARGS__;                                                                          \
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, word, clb_spherical_harmonics_create(ctx, &d, &op));             \
  assert_null(op)
  WRONG("degrees", d.degrees = NULL);
  WRONG("n_degrees", d.n_degrees = 0);
  WRONG("n_degrees", d.n_degrees = 65);
  WRONG("degrees[0]", d.degrees = negative, d.n_degrees = 1);
  WRONG("0 ... 12", d.degrees = high, d.n_degrees = 1);
  WRONG("0 ... 20", d.degrees = highest, d.n_degrees = 1, d.storage = d.arithmetic = CLB_F64);
  WRONG("normalization", d.normalization = (clb_normalization)3);
  WRONG("storage", d.storage = (clb_dtype)4);
  WRONG("arithmetic", d.arithmetic = CLB_F16);
  WRONG("arithmetic", d.storage = CLB_F64);
  WRONG("arithmetic", d.storage = CLB_F16, d.arithmetic = CLB_F64);
  WRONG("passes", d.passes = 0);
  WRONG("passes", d.passes = 16);
  d = plain, d.passes = CLB_PASS_BIT(CLB_TRIPLE_BACKWARD);
  NOT_OK(ctx, CLB_ERROR_UNSUPPORTED, "double backward",
         clb_spherical_harmonics_create(ctx, &d, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "desc", clb_spherical_harmonics_create(ctx, NULL, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "op", clb_spherical_harmonics_create(ctx, &plain, NULL));
  assert_int_equal(clb_spherical_harmonics_create(NULL, &plain, &op), CLB_ERROR_ARGUMENT);
  clb_context_destroy(&ctx);
}

static void rows(void **state) {
  (void)state;
  clb_context *ctx = cpu(), *other = cpu();
  clb_op *op;
  clb_rows x = {0}, y = {0}, bad;
  clb_buffer *foreign;
  assert_int_equal(clb_spherical_harmonics_create(ctx, &plain, &op), CLB_OK);
  assert_int_equal(clb_buffer_create(ctx, 10 * 12, &x.buffer), CLB_OK);
  assert_int_equal(clb_buffer_write(x.buffer, 0, (float[30]){1}, 10 * 12), CLB_OK);
  assert_int_equal(clb_buffer_create(ctx, 10 * 36, &y.buffer), CLB_OK);
  assert_int_equal(clb_buffer_create(other, 10 * 36, &foreign), CLB_OK);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "n is -1", clb_spherical_harmonics_forward(op, -1, x, y));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "n is", clb_spherical_harmonics_forward(op, INT64_MAX, x, y));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "do not fit", clb_spherical_harmonics_forward(op, 11, x, y));
#define ROWS(word, ...)                                                                            \
  bad = y, __VA_ARGS__;                                                                            \
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, word, clb_spherical_harmonics_forward(op, 10, x, bad))
  ROWS("NULL", bad.buffer = NULL);
  ROWS("another context", bad.buffer = foreign);
  ROWS("offset", bad.offset = -1);
  ROWS("do not fit", bad.offset = 1);
  ROWS("do not fit", bad.offset = INT64_MAX);
  ROWS("stride", bad.stride = 8);
  ROWS("stride", bad.stride = CLB_SAME_ROW);
  ROWS("the stride of y is -2; it must be 0 (dense rows) or at least 9", bad.stride = -2);
  ROWS("do not fit", bad.stride = 10);
  ROWS("do not fit", bad.stride = INT64_MAX / 2);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "double backward",
         clb_spherical_harmonics_double_backward(op, 1, x, y, x, x, y));
  clb_counts c;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "pass", clb_op_counts(op, (clb_pass)3, &c));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "counts", clb_op_counts(op, CLB_FORWARD, NULL));
  assert_int_equal(clb_spherical_harmonics_forward(NULL, 1, x, y), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_spherical_harmonics_forward(op, 0, (clb_rows){0}, (clb_rows){0}), CLB_OK);
  assert_int_equal(clb_spherical_harmonics_forward(op, 10, x, y), CLB_OK);
  clb_op_destroy(&op);
  assert_null(op);
  clb_op_destroy(&op);
  clb_buffer_destroy(&x.buffer);
  clb_buffer_destroy(&y.buffer);
  clb_buffer_destroy(&foreign);
  clb_context_destroy(&other);
  clb_context_destroy(&ctx);
}

/* 10,000 rounds: as much memory is in use at the end as after the first hundred. */
static void rounds(void **state) {
  (void)state;
  clb_context *ctx = cpu();
  size_t before = 0;
  for (int i = 0; i < 10000; i++) {
    clb_op *op;
    clb_buffer *b;
    assert_int_equal(clb_spherical_harmonics_create(ctx, &plain, &op), CLB_OK);
    assert_int_equal(clb_buffer_create(ctx, 1000, &b), CLB_OK);
    clb_buffer_destroy(&b);
    clb_op_destroy(&op);
    if (i == 100) before = mallinfo2().uordblks;
  }
  assert_true(mallinfo2().uordblks <= before + 1000);
  clb_context_destroy(&ctx);
}

static void *one_thread(void *result) {
  clb_context *ctx;
  float x[300], *y = result;
  uint64_t seed = 3;
  for (int i = 0; i < 300; i++) x[i] = (float)test_random(&seed);
  for (int turn = 0; turn < 20; turn++) {
    clb_op *op;
    clb_rows rx = {0}, ry = {0};
    if (clb_context_create("cpu", &ctx) || clb_spherical_harmonics_create(ctx, &plain, &op))
      return "create";
    if (clb_buffer_create(ctx, sizeof x, &rx.buffer) || clb_buffer_create(ctx, 900 * 4, &ry.buffer))
      return "buffers";
    if (clb_buffer_write(rx.buffer, 0, x, sizeof x) ||
        clb_spherical_harmonics_forward(op, 100, rx, ry) ||
        clb_buffer_read(ry.buffer, 0, y, 900 * 4))
      return "run";
    clb_buffer_destroy(&rx.buffer);
    clb_buffer_destroy(&ry.buffer);
    clb_op_destroy(&op);
    clb_context_destroy(&ctx);
  }
  return NULL;
}

static void two_threads(void **state) {
  (void)state;
  static float y[2][900];
  pthread_t t[2];
  char cache[] = "/tmp/clebsch-threads-XXXXXX", command[64];
  assert_non_null(mkdtemp(cache));
  setenv("CLB_CACHE_DIR", cache, 1);
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&t[i], NULL, one_thread, y[i]), 0);
  for (int i = 0; i < 2; i++) {
    void *failed;
    pthread_join(t[i], &failed);
    if (failed) fail_msg("%s", (const char *)failed);
  }
  assert_memory_equal(y[0], y[1], sizeof y[0]);
  setenv("CLB_CACHE_DIR", "off", 1);
  snprintf(command, sizeof command, "rm -r %s", cache);
  assert_int_equal(system(command), 0);
}

static clb_device_info memory_of(clb_context *ctx) {
  clb_device_info info;
  assert_int_equal(clb_context_device(ctx, &info), CLB_OK);
  return info;
}

static void held_bytes(void **state) {
  (void)state;
  clb_context *ctx;
  clb_buffer *large, *empty;
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  const uint64_t before = memory_of(ctx).held_bytes;
  assert_int_equal(clb_buffer_create(ctx, 1000, &large), CLB_OK);
  assert_int_equal(clb_buffer_create(ctx, 0, &empty), CLB_OK);
  assert_int_equal(memory_of(ctx).held_bytes, before + 1000);
  clb_buffer_destroy(&large);
  clb_buffer_destroy(&empty);
  assert_int_equal(memory_of(ctx).held_bytes, before);
  assert_int_equal(memory_of(ctx).most_bytes, before + 1000);
  clb_context_destroy(&ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(null_handles), cmocka_unit_test(devices),
      cmocka_unit_test(buffers),      cmocka_unit_test(null_handles_of_others),
      cmocka_unit_test(zeros),        cmocka_unit_test(descriptions),
      cmocka_unit_test(rows),         cmocka_unit_test(rounds),
      cmocka_unit_test(two_threads),  cmocka_unit_test(held_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
