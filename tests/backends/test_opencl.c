/* tests/backends/test_opencl.c - the OpenCL backend on every OpenCL device here: numbers, names,
   binaries, threads. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "tests/backends/opencl_devices.h"

/* ---- numbers ---- */

static void numbers(void **state) {
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    clb_device *d = open_named(found.name[i], NULL, &error);
    assert_string_equal(d->info.name, found.name[i]);
    assert_int_equal(d->limits.subgroups, d->dialect.subgroups);
    run_all_cases(d);
    opencl->close(d);
    clb_text_free(&error.text);
  }
}

/* Every sub-group size that can be required on the device. */
static void sub_group_sizes(void **state) {
  int tried = 0;
  (void)state;
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    clb_device *d = open_named(found.name[i], NULL, &error);
    for (int j = 0; j < 8 && d->info.sub_group_sizes[j]; j++, tried++) {
      d->limits.lanes[CLB_F32] = d->limits.lanes[CLB_F64] = d->info.sub_group_sizes[j];
      run_all_cases(d);
    }
    opencl->close(d);
    clb_text_free(&error.text);
  }
  if (!tried) skip_because("no OpenCL device with sub-groups; ci/intel_cpu.sh installs one");
}

/* ---- names ---- */

static void names(void **state) {
  static const char *const wrong[] = {"opencl:",    "opencl:x", "opencl:0:0:0", "opencl:-1",
                                      "opencl:0x1", "opencl@0", "opencl:0:",    "opencl:0 "};
  static const char *const absent[] = {"opencl:99", "opencl:0:99", "opencl:9999:0"};
  clb_error_sink error = {0};
  clb_device *d;
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(opencl->open(wrong[i], wrong[i] + 6, NULL, &error, &d), CLB_ERROR_ARGUMENT);
    assert_null(d);
    assert_non_null(strstr(error.text.s, wrong[i]));
  }
  if (!found.n) {
    clb_text_free(&error.text);
    skip_because("no OpenCL device");
  }
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
    assert_int_equal(opencl->open(absent[i], absent[i] + 6, NULL, &error, &d), CLB_ERROR_DEVICE);
    assert_null(d);
    assert_non_null(strstr(error.text.s, absent[i]));
  }
  d = open_named("opencl", NULL, &error);
  opencl->close(d);
  clb_text_free(&error.text);
}

/* ---- binaries ---- */

static void binaries(void **state) {
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    clb_text binary = {0};
    clb_module *module = NULL;
    kernel_case c, other;
    clb_device *d = open_named(found.name[i], NULL, &error), *again;
    case_begin(&c, 1, &d->limits, true);
    case_begin(&other, 0, &d->limits, true);
    assert_int_equal(build_kernel(d, &c.k, &binary), CLB_OK);
    assert_true(binary.n > 0);
    opencl->close(d);

    again = open_named(found.name[i], NULL, &error);
    if (opencl->load(again, &c.k, binary.s, binary.n, &module))
      fail_msg("%s: %s", found.name[i], error.text.s);
    opencl->unload(again, module);
    /* Another kernel's binary, one of the same name that takes other arguments, another driver's,
       nothing, a damaged one. */
    snprintf(other.k.name, sizeof other.k.name, "%s", c.k.name);
    assert_int_not_equal(opencl->load(again, &other.k, binary.s, binary.n, &module), CLB_OK);
    assert_non_null(strstr(error.text.s, "arguments"));
    snprintf(other.k.name, sizeof other.k.name, "other");
    assert_int_not_equal(opencl->load(again, &other.k, binary.s, binary.n, &module), CLB_OK);
    assert_null(module);
    assert_int_not_equal(
        opencl->load(again, &c.k, "not a program at all, but long enough", 37, &module), CLB_OK);
    assert_int_not_equal(opencl->load(again, &c.k, "", 0, &module), CLB_OK);
    assert_non_null(strstr(error.text.s, "CL_INVALID_"));
    if (!((clb_opencl *)again)->pocl) assert_non_null(strstr(error.text.s, "the binary of "));
    memset(binary.s, 0x5a, binary.n < 64 ? binary.n : 64);
    assert_int_not_equal(opencl->load(again, &c.k, binary.s, binary.n, &module), CLB_OK);
    opencl->close(again);
    case_free(&other);
    case_free(&c);
    clb_text_free(&binary);
    clb_text_free(&error.text);
  }
}

/* A kernel named by a keyword of the language: the message contains the compiler's whole log. */
static void refused_kernel(void **state) {
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    clb_text binary = {0};
    ir_kernel k;
    clb_device *d = open_named(found.name[i], NULL, &error);
    ir_begin(&k, "while", d->limits.lanes[CLB_F32], 1, 1);
    ir_store(&k, ir_buffer(&k, IR_F32, true), ir_lane(&k), IR_NONE, ir_real(&k, IR_F32, 1));
    assert_true(ir_finish(&k));
    int loud = dup(2),
        quiet = open("/dev/null", O_WRONLY); /* some drivers print on standard error */
    dup2(quiet, 2);
    clb_status s = build_kernel(d, &k, &binary);
    dup2(loud, 2);
    close(loud);
    close(quiet);
    assert_int_equal(s, CLB_ERROR_COMPILE);
    if (!strstr(error.text.s, "clBuildProgram: CL_BUILD_PROGRAM_FAILURE") ||
        !strstr(error.text.s, "error:") || !strstr(error.text.s, found.name[i]))
      fail_msg("%s", error.text.s);
    assert_int_equal(binary.n, 0);
    ir_free(&k);
    clb_text_free(&binary);
    opencl->close(d);
    clb_text_free(&error.text);
  }
}

/* Every f16 becomes the f32 of the same value; a NaN stays one. */
static void halves(void **state) {
  enum { ALL = 1 << 16 };
  static uint16_t half[ALL];
  static uint32_t wide[ALL];
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < ALL; i++) half[i] = (uint16_t)i;
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    clb_text binary = {0};
    clb_module *module = NULL;
    clb_memory in = {0}, out = {0};
    ir_kernel k;
    clb_device *d = open_named(found.name[i], NULL, &error);
    const int lanes = d->limits.lanes[CLB_F32];
    ir_begin(&k, "halves", lanes, 1, lanes);
    ir_val from = ir_buffer(&k, IR_F16, false), to = ir_buffer(&k, IR_F32, true);
    ir_val at = ir_add(&k, ir_mul(&k, ir_group(&k), ir_int(&k, IR_I32, lanes)), ir_lane(&k));
    ir_store(&k, to, at, IR_NONE, ir_load(&k, from, at, IR_NONE));
    assert_true(ir_finish(&k));
    clb_status s = build_kernel(d, &k, &binary);
    if (!s) s = opencl->load(d, &k, binary.s, binary.n, &module);
    if (!s) s = opencl->alloc(d, sizeof half, &in);
    if (!s) s = opencl->alloc(d, sizeof wide, &out);
    if (!s) s = opencl->write(d, &in, 0, half, sizeof half);
    const clb_arg args[] = {{.type = IR_VOID, .memory = &in}, {.type = IR_VOID, .memory = &out}};
    if (!s) s = opencl->launch(d, module, ALL / lanes, args, 2);
    if (!s) s = opencl->read(d, &out, 0, wide, sizeof wide);
    if (s) fail_msg("%s: %s", found.name[i], error.text.s);
    for (int h = 0; h < ALL; h++) {
      const int exponent = h >> 10 & 31, fraction = h & 1023;
      const bool nan = exponent == 31 && fraction;
      const double size = exponent == 31 ? INFINITY
                          : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                         : ldexp(fraction, -24);
      float is;
      memcpy(&is, &wide[h], sizeof is);
      if (nan ? !isnan(is) : is != (float)size * (h >> 15 ? -1 : 1) || !!signbit(is) != h >> 15)
        fail_msg("%s: f16 0x%04x became %a", found.name[i], (unsigned)h, (double)is);
    }
    opencl->free(d, &in);
    opencl->free(d, &out);
    opencl->unload(d, module);
    clb_text_free(&binary);
    ir_free(&k);
    opencl->close(d);
    clb_text_free(&error.text);
  }
}

/* ---- two contexts in two threads ---- */

static void *thread_body(void *name) {
  clb_error_sink error = {0};
  clb_device *d = NULL;
  bool good = !opencl->open(name, (const char *)name + 6, NULL, &error, &d);
  for (int round = 0; round < 5 && good; round++)
    for (int i = 0; i < 2 && good; i++) {
      void *arrays[CASE_PARAMETERS] = {0};
      kernel_case c;
      case_begin(&c, i, &d->limits, rounds_division(d));
      case_copies(&c, arrays);
      good = !case_run(d, &c, arrays);
      if (good) case_expect(&c, name, arrays);
      case_free_copies(arrays);
      case_free(&c);
    }
  opencl->close(d);
  clb_text_free(&error.text);
  return good ? name : NULL;
}

static void threads(void **state) {
  pthread_t thread[2];
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    for (int t = 0; t < 2; t++)
      assert_int_equal(pthread_create(&thread[t], NULL, thread_body, found.name[i]), 0);
    for (int t = 0; t < 2; t++) {
      void *result;
      assert_int_equal(pthread_join(thread[t], &result), 0);
      assert_ptr_equal(result, found.name[i]);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers),  cmocka_unit_test(sub_group_sizes), cmocka_unit_test(names),
      cmocka_unit_test(binaries), cmocka_unit_test(refused_kernel),  cmocka_unit_test(threads),
      cmocka_unit_test(halves),
  };
  opencl->list(remember, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
