/* tests/ops/convolution/test_convolution_targets.c - graph convolutions compile for the targets
   that only compile, and run on none of them. */
#include "tests/ops/compile_targets.h"

#include "kernels/convolution/builder.h"
#include "src/runtime/context.h"
#include "tools/ops/tensor_product_problems.h"

/* Full blocks of channels whose rows may be aligned, and odd ones; weights given, and from splines.
 */
static const struct {
  const char *x, *y;
  clb_dtype type;
  int atomics, knots;
} cases[] = {{"128x0e+128x1o", SH3, CLB_F32, 0, 0},
             {"5x0e+3x1o+13x2e", SH2, CLB_F64, 1, 0},
             {"128x0e+64x1o", SH2, CLB_F32, 0, 100},
             {"5x0e+3x1o+13x2e", SH2, CLB_F64, 0, 100}};
enum { CASES = sizeof cases / sizeof *cases };

static clb_op *compile(clb_context *ctx, int i) {
  static clb_instructions found;
  clb_op *op;
  OK(ctx, clb_channel_wise(ctx, cases[i].x, cases[i].y, cases[i].y, CLB_SORTED, &found));
  clb_convolution_desc d = {.product = {.irreps_x = found.irreps_x,
                                        .irreps_y = found.irreps_y,
                                        .irreps_z = found.irreps_z,
                                        .instructions = found.instructions,
                                        .n_instructions = found.n_instructions,
                                        .layout_x = CLB_IR_MUL,
                                        .layout_z = CLB_IR_MUL,
                                        .storage = cases[i].type,
                                        .arithmetic = cases[i].type,
                                        .passes = cases[i].knots ? 3 : 7},
                            .atomics = cases[i].atomics,
                            .knots = cases[i].knots,
                            .first_knot = 0.5,
                            .last_knot = 6};
  OK(ctx, clb_convolution_create(ctx, &d, &op));
  return op;
}

static void runs_not(clb_op *op, int pass, clb_graph *graph) {
  static const clb_rows none;
  uint64_t min, max;
  OK(op->ctx, clb_convolution_workspace(op, (clb_pass)pass, graph, &min, &max));
  if (pass == CLB_FORWARD)
    NOT_OK(op->ctx, CLB_ERROR_UNSUPPORTED, "only compiles",
           clb_convolution_forward(op, graph, none, none, none, none, NULL));
}

/* The kernel for graphs of few edges, which an op makes when it runs on one. */
static void compiles_teams(clb_op *op) {
  clb_schedule s = op->choice[CLB_FORWARD].schedule;
  clb_kernel *kernel;
  op->problem.pass = CLB_FORWARD;
  assert_true(clb_convolution_team(&op->problem, &op->ctx->device->limits, &s));
  OK(op->ctx, clb_op_make_kernel(op, CLB_FORWARD, &s, &kernel));
  assert_true(kernel->binary.n > 0 && kernel->ir.rows == 1 && kernel->ir.subgroups > 1);
}

static void compiles(void **state) {
  clb_context *ctx = open_target(state);
  clb_graph *graph;
  OK(ctx, clb_graph_create(ctx, 10, 10, &graph));
  for (int i = 0; i < CASES; i++) {
    clb_op *op = compile(ctx, i);
    for (int pass = CLB_FORWARD; pass <= (cases[i].knots ? CLB_BACKWARD : CLB_DOUBLE_BACKWARD);
         pass++) {
      assert_true(op->kernel[pass]->binary.n > 0);
      if (!cases[i].knots) runs_not(op, pass, graph);
    }
    compiles_teams(op);
    clb_op_destroy(&op);
  }
  OK(ctx, clb_context_disable(ctx, CLB_WIDE_ACCESSES | CLB_REGISTER_SUMS | CLB_SPLIT_ROWS));
  clb_op *bare = compile(ctx, 0);
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
    assert_true(bare->kernel[pass]->binary.n > 0);
  clb_op_destroy(&bare);
  clb_graph_destroy(&graph);
  clb_context_destroy(&ctx);
}

int main(void) { return run_on_targets("convolution", compiles); }
