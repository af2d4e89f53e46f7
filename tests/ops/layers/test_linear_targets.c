/* tests/ops/layers/test_linear_targets.c - matrix products, column sums and moves compile for the
   targets that only compile. */
#include "tests/ops/compile_targets.h"

#include "kernels/linear/host/column_moves.h"
#include "kernels/linear/host/matmul.h"

static void compiles(void **state) {
  clb_context *ctx = open_target(state);
  clb_op *op;
  for (int type = CLB_F32; type <= CLB_F64; type++) {
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
    OK(ctx, clb_column_moves_create(ctx, CLB_F32, (clb_dtype)type, NULL, 0, &op));
    for (int way = 0; way < 2; way++) assert_true(op->kernel[way]->binary.n > 0);
    clb_op_destroy(&op);
  }
  clb_context_destroy(&ctx);
}

int main(void) { return run_on_targets("linear", compiles); }
