/* tests/dynamics/test_motion_targets.c - moves, and the noise in them, compile for the targets that
   only compile. */
#include "tests/ops/compile_targets.h"

#include "kernels/dynamics/host/motion.h"

static void compiles(void **state) {
  clb_context *ctx = open_target(state);
  clb_op *op;
  OK(ctx, clb_motion_create(ctx, &op));
  for (int pass = 0; pass < 2; pass++) assert_true(op->kernel[pass]->binary.n > 0);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
}

int main(void) { return run_on_targets("motion", compiles); }
