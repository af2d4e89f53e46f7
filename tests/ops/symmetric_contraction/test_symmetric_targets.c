/* tests/ops/symmetric_contraction/test_symmetric_targets.c - symmetric contractions compile for the
   targets that only compile, and run on none of them. */
#include "tests/ops/compile_targets.h"

#include "src/runtime/context.h"

static void compiles(void **state) {
  static const struct {
    int ell, correlation, n_degrees, channels;
    clb_dtype type;
  } cases[] = {{3, 3, 2, 128, CLB_F32}, {2, 3, 1, 13, CLB_F64}, {3, 4, 3, 64, CLB_F32}};
  static const int degrees[] = {0, 1, 2};
  clb_context *ctx = open_target(state);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    clb_op *op;
    clb_symmetric_contraction_desc d = {.ell = cases[i].ell,
                                        .correlation = cases[i].correlation,
                                        .degrees = degrees,
                                        .n_degrees = cases[i].n_degrees,
                                        .channels = cases[i].channels,
                                        .n_species = 4,
                                        .layout_x = CLB_IR_MUL,
                                        .layout_z = CLB_IR_MUL,
                                        .storage = cases[i].type,
                                        .arithmetic = cases[i].type,
                                        .passes = 7};
    OK(ctx, clb_symmetric_contraction_create(ctx, &d, &op));
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      assert_true(op->kernel[pass]->binary.n > 0);
    clb_rows none = {0};
    assert_int_equal(clb_symmetric_contraction_forward(op, 0, none, none, none),
                     CLB_ERROR_ARGUMENT);
    clb_op_destroy(&op);
  }
  clb_context_destroy(&ctx);
}

int main(void) { return run_on_targets("symmetric_contraction", compiles); }
