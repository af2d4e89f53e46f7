/* tests/tuning/test_wisdom_files.c - wisdom is exported, imported, and kept where there is no
 * folder. */
#include "tests/tuning/wisdom_device.h"

/* ---- export, import, no folder ---- */

static void round_trip_without_a_folder(void **state) {
  size_t n, again;
  (void)state;
  setenv("CLB_CACHE_DIR", "off", 1);
  clb_context *ctx = open_fake(1, -1, -1);
  clb_op *op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD) | CLB_MEASURE),
         *other = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD));
  assert_int_equal(chosen(op, CLB_FORWARD), 1);
  assert_int_equal(chosen(other, CLB_FORWARD), 1);
  OK(ctx, clb_wisdom_export(ctx, path_of("a")));
  clb_op_destroy(&other);
  close_all(&op, &ctx);
  assert_int_not_equal(access(path_of("wisdom"), F_OK), 0);
  ctx = open_genuine();
  op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD));
  assert_int_equal(chosen(op, CLB_FORWARD), 0);
  clb_op_destroy(&op);
  OK(ctx, clb_wisdom_export(ctx, path_of("empty")));
  OK(ctx, clb_wisdom_import(ctx, path_of("empty")));
  OK(ctx, clb_wisdom_import(ctx, path_of("a")));
  op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD));
  assert_int_equal(chosen(op, CLB_FORWARD), 1);
  check_harmonics(op);
  OK(ctx, clb_wisdom_export(ctx, path_of("b")));
  char *a = read_file("a", &n), *b = read_file("b", &again);
  assert_int_equal(n, again);
  assert_memory_equal(a, b, n);
  assert_non_null(strstr(a, "# spherical_harmonics forward f32 l = 0 1 2 3 4, component\n"));
  free(a);
  free(b);
  close_all(&op, &ctx);
  setenv("CLB_CACHE_DIR", dir, 1);
}

static void import_goes_to_the_folder(void **state) {
  size_t n;
  (void)state;
  char *line = line_of_candidate_1(&n);
  unlink(path_of("wisdom"));
  write_file("given", line, n);
  clb_context *ctx = open_genuine();
  OK(ctx, clb_wisdom_import(ctx, path_of("given")));
  clb_context_destroy(&ctx);
  ctx = open_genuine();
  clb_op *op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD));
  assert_int_equal(chosen(op, CLB_FORWARD), 1);
  close_all(&op, &ctx);
  free(line);
}

static void mistakes(void **state) {
  (void)state;
  clb_context *ctx = open_genuine();
  clb_op *op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD));
  clb_tuning t;
  write_file("garbage", "some\ntext\n", 10);
  assert_int_equal(clb_wisdom_import(ctx, path_of("garbage")), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "is wisdom"));
  assert_int_equal(clb_wisdom_import(ctx, path_of("absent")), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_wisdom_import(ctx, NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_wisdom_export(ctx, NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_wisdom_export(ctx, path_of("no/such/folder")), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_wisdom_export(NULL, path_of("a")), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_wisdom_import(NULL, path_of("a")), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_wisdom_forget(NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_op_tuning(NULL, CLB_FORWARD, &t), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_op_tuning(op, CLB_BACKWARD, &t), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_op_tuning(op, CLB_FORWARD, NULL), CLB_ERROR_ARGUMENT);
  const clb_spherical_harmonics_desc d = {degrees, DEGREES, CLB_COMPONENT, 0, CLB_F32,
                                          CLB_F32, 0,       CLB_MEASURE};
  clb_op *none;
  assert_int_equal(clb_spherical_harmonics_create(ctx, &d, &none),
                   CLB_ERROR_ARGUMENT); /* the flag is not a pass */
  assert_null(none);
  unlink(path_of("garbage"));
  close_all(&op, &ctx);
}

/* With the system's compiler, where there is one. */
static void compiled_kernels(void **state) {
  (void)state;
  device = "cpu";
  measure_products(1);
  clb_context *ctx = open_genuine();
  clb_op *op = harmonics(ctx, 1 | CLB_MEASURE);
  expect_measured(op, 1);
  check_harmonics(op);
  close_all(&op, &ctx);
  device = "cpu:interpreter";
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(round_trip_without_a_folder),
                                     TEST(import_goes_to_the_folder), TEST(mistakes),
                                     TEST(compiled_kernels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
