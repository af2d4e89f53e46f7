/* tests/ops/layers/test_linear_targets.c - matrix products and column sums compile for the targets
   that only compile. */
#include "tests/test.h"

#include "src/ops/matmul.h"

#define OK(ctx, call)                                                                              \
  do {                                                                                             \
    clb_status s_ = (call);                                                                        \
    if (s_) fail_msg("%s: %s", #call, clb_error(ctx));                                             \
  } while (0)

#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static void compiles(void **state) {
  clb_context *ctx = NULL;
  clb_op *op;
  if (SANITIZED && !strncmp(*state, "level_zero", 10))
    skip_because("%s: Intel's compiler does not start under a sanitizer", (const char *)*state);
  if (clb_context_create(*state, &ctx)) {
    fprintf(stderr, "skipped: %s\n", clb_error(ctx));
    clb_context_destroy(&ctx);
    skip();
  }
  for (int type = CLB_F64; type <= CLB_F32; type++) {
    clb_memory m = {.bytes = 8};
    OK(ctx, clb_gemm_create(ctx, (clb_dtype)type, &op));
    for (int variant = 0; variant < 4; variant++) assert_true(op->kernel[variant]->binary.n > 0);
    assert_int_equal(
        clb_gemm_run(op,
                     &(clb_gemm_desc){.m = 1, .n = 1, .count = 1, .ld_b = 1, .ld_c = 1, .c = &m}),
        CLB_ERROR_UNSUPPORTED);
    clb_op_destroy(&op);
    OK(ctx, clb_column_sum_create(ctx, type == CLB_F64 ? CLB_F64 : CLB_BF16, (clb_dtype)type, 64,
                                  1000, &op));
    for (int stage = 0; stage < 2; stage++) assert_true(op->kernel[stage]->binary.n > 0);
    clb_op_destroy(&op);
  }
  clb_context_destroy(&ctx);
}

int main(void) {
  static char targets[][16] = {"cuda@sm_90", "hip@gfx90a", "hip@gfx942", "level_zero@pvc"};
  enum { TARGETS = sizeof targets / sizeof *targets };
  static struct CMUnitTest tests[TARGETS];
  static char labels[TARGETS][64];
  for (int t = 0; t < TARGETS; t++) {
    snprintf(labels[t], sizeof labels[t], "linear_compiles:%s", targets[t]);
    tests[t] = (struct CMUnitTest){labels[t], compiles, NULL, NULL, targets[t]};
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
