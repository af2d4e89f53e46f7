/* tests/ops/symmetric_contraction/test_symmetric_spirv.c - the SPIR-V that a Level Zero device gets
   of symmetric contractions, run by the test-only driver. */
#include "tests/ops/op_runs.h"

static void through_spirv(void **state) {
  static const int degrees[] = {0, 1};
  static const struct {
    int ell, correlation, first_pass;
    clb_layout layout;
    clb_dtype type;
  } cases[] = {{1, 3, CLB_FORWARD, CLB_IR_MUL, CLB_F64},
               {2, 2, CLB_FORWARD, CLB_MUL_IR, CLB_F32},
               {1, 2, CLB_BACKWARD, CLB_BY_CHANNEL, CLB_F16},
               {3, 4, CLB_DOUBLE_BACKWARD, CLB_IR_MUL, CLB_F64}}; /* from tables */
  const char *driver = SANITIZED ? NULL : getenv("CLB_TEST_FAKE_LEVEL_ZERO");
  clb_context *ctx;
  (void)state;
  if (!driver) {
    skip_because(
        "there is no test-only Level Zero driver here, or sanitizers refuse what it loads");
    return;
  }
  setenv("ZE_ENABLE_ALT_DRIVERS", driver, 1);
  assert_int_equal(clb_context_create("level_zero", &ctx), CLB_OK);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const clb_symmetric_contraction_desc d = {.ell = cases[i].ell,
                                              .correlation = cases[i].correlation,
                                              .degrees = degrees,
                                              .n_degrees = 2,
                                              .channels = 5,
                                              .n_species = 3,
                                              .layout_x = cases[i].layout,
                                              .layout_z = cases[i].layout};
    expect_passes(ctx, &tool_op_symmetric_contraction,
                  &(tool_kernel){&d, cases[i].type, usual_arithmetic(cases[i].type), false},
                  7u & ~(CLB_PASS_BIT(cases[i].first_pass) - 1u),
                  &(tool_data){9, i % 2 ? LAYOUT_PADDED : LAYOUT_DENSE, false});
  }
  clb_context_destroy(&ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(through_spirv)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
