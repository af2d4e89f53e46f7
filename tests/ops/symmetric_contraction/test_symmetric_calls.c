/* tests/ops/symmetric_contraction/test_symmetric_calls.c - which descriptions of symmetric
   contractions are refused. */
#include "tests/test.h"

#include <clebsch/clebsch.h>

static const int degrees[] = {0, 1, 2, 3};

static clb_symmetric_contraction_desc describe(int ell, int correlation) {
  return (clb_symmetric_contraction_desc){.ell = ell,
                                          .correlation = correlation,
                                          .degrees = degrees,
                                          .n_degrees = 3,
                                          .channels = 3,
                                          .n_species = 2,
                                          .layout_x = CLB_IR_MUL,
                                          .layout_z = CLB_IR_MUL,
                                          .storage = CLB_F64,
                                          .arithmetic = CLB_F64};
}

static void refused(clb_context *ctx, clb_symmetric_contraction_desc d, const char *message) {
  clb_op *op;
  if (!d.passes) d.passes = 1;
  assert_int_equal(clb_symmetric_contraction_create(ctx, &d, &op), CLB_ERROR_ARGUMENT);
  assert_null(op);
  if (!strstr(clb_error(ctx), message)) fail_msg("%s: not %s", clb_error(ctx), message);
}

static void descriptions(void **state) {
  static const int twice[] = {1, 0, 1}, high[] = {5};
  clb_context *ctx;
  (void)state;
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  clb_symmetric_contraction_desc good = describe(2, 2), d;
  clb_symmetric_paths paths;
  double u[4];
  clb_op *op;
#define WITH(member, value, message) d = good, d.member = value, refused(ctx, d, message)
  WITH(ell, -1, "ell is -1; it must be 0 ... 4");
  WITH(ell, 5, "ell is 5");
  WITH(correlation, 0, "correlation is 0; it must be 1 ... 4");
  WITH(correlation, 5, "correlation is 5");
  WITH(channels, 0, "channels is 0");
  WITH(n_species, 0, "n_species is 0");
  WITH(n_degrees, 0, "n_degrees is 0");
  WITH(n_degrees, 6, "n_degrees is 6");
  WITH(degrees, NULL, "degrees is NULL");
  WITH(degrees, twice, "degrees names 1 twice");
  d = good, d.degrees = high, d.n_degrees = 1, refused(ctx, d, "one of degrees is 5");
  WITH(layout_x, CLB_MERGED, "layout_x is 2");
  WITH(layout_z, (clb_layout)7, "layout_z is 7");
  WITH(gradients, CLB_OPERAND_Y, "gradients is 0x2");
  WITH(incoming, CLB_OPERAND_Z, "incoming is 0x8");
  WITH(storage, CLB_F16, "CLB_F64 goes with storage");
  d = good, d.n_species = 1 << 20, d.channels = 1000;
  refused(ctx, d, "11 paths of 1000 channels and 1048576 species are more than 2^31 - 1 weights");
#undef WITH
  good.passes = CLB_PASS_BIT(CLB_TRIPLE_BACKWARD);
  assert_int_equal(clb_symmetric_contraction_create(ctx, &good, &op), CLB_ERROR_UNSUPPORTED);
  assert_int_equal(clb_symmetric_contraction_create(ctx, NULL, &op), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_symmetric_contraction_create(ctx, &good, NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_symmetric_contraction_paths(ctx, &good, 3, 1, &paths), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "degree is 3 and nu is 1"));
  assert_int_equal(clb_symmetric_contraction_paths(ctx, &good, 0, 3, &paths), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_symmetric_contraction_basis(ctx, &good, -1, u, 4), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_symmetric_contraction_basis(ctx, &good, 0, u, 4), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "U of path 0 has 9 numbers"));
  assert_int_equal(clb_symmetric_contraction_basis(ctx, &good, 0, NULL, 9), CLB_ERROR_ARGUMENT);
  clb_context_destroy(&ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(descriptions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
