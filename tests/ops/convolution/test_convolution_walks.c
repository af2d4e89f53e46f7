/* tests/ops/convolution/test_convolution_walks.c - double backward whose gradients of z are summed
   in the walk that gives the others: on the interpreter with the limits of GPUs. */
#include "tests/ops/convolution/convolution_problems.h"

#include "kernels/graph/sort.h"

/* Elsewhere a sub-group does all parts of a row, and there are no such candidates. */
static bool has_roles(place *at) {
  const clb_limits *limits = &context_of(at)->device->limits;
  return limits->subgroups && !limits->simd;
}

/* Candidate number i of those that walk once; false: there are no more. */
static bool walks_once(clb_op *op, int i) {
  clb_schedule list[CLB_MAX_CANDIDATES];
  op->problem.pass = CLB_DOUBLE_BACKWARD;
  int n =
      clb_kernel_kinds[CLB_CONVOLUTION]->candidates(&op->problem, &op->ctx->device->limits, list);
  for (int s = 0; s < n; s++) {
    if (!list[s].convolution.one_walk || i--) continue;
    OK(op->ctx, clb_op_set_schedule(op, CLB_DOUBLE_BACKWARD, &list[s]));
    return true;
  }
  return false;
}

/* Each of these candidates; returns how many. */
static int all_walks(place *at, const convolution_problem *p, clb_dtype type, bool accumulate,
                     const convolution_graph *e, const tool_layout *layouts, int n) {
  const tool_kernel kernel = {p, type, type, accumulate};
  clb_op *op = op_with(context_of(at), &tool_op_convolution, &kernel, D);
  int count = 0;
  for (; walks_once(op, count); count++)
    convolves(at->ctx, p, &kernel, op, CLB_DOUBLE_BACKWARD, e, layouts, n);
  clb_op_destroy(&op);
  return count;
}

/* Operands of all kinds, on empty graphs, few edges, long rows; with sums over roles and over
   senders, or atomics. */
static void results(void **state) {
  static const struct {
    int way, which, graph;
    bool atomics, accumulate;
    clb_dtype type;
  } cases[] = {{AS_GIVEN, KNOTTED, SQUARE, false, false, CLB_F32},
               {AS_GIVEN, SHORT, 10, false, true, CLB_F32},
               {AS_GIVEN, SMALL, 1, false, false, CLB_F64},
               {AS_GIVEN, SMALL, 3, false, false, CLB_F64},
               {AS_GIVEN, SMALL, 4, true, false, CLB_F32},
               {AS_GIVEN, UNEVEN, 7, true, false, CLB_F64},
               {ONE_WEIGHT, SHORT_MUL_IR, 8, false, false, CLB_F32},
               {BY_SPLINES, GAPS, 9, false, true, CLB_F32},
               {BY_VECTORS, UNEVEN, 14, false, false, CLB_F64},
               {BY_VECTORS, SHORT, SQUARE, true, true, CLB_F32},
               {BY_LENGTHS, SHORT, 10, false, false, CLB_F32}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases && has_roles(*state); i++) {
    if (few_cases() && i % 3) continue;
    convolution_problem p = convolution_by(cases[i].way, cases[i].which, (int)(i % 3));
    convolution_graph e = edges_of(cases[i].graph);
    p.atomics = cases[i].atomics;
    assert_true(all_walks(*state, &p, cases[i].type, cases[i].accumulate, &e, spacings + i % 3, 1));
    convolution_graph_free(&e);
  }
}

/* Blocks of edges, each of which adds to the sums of z: of rows that are split, and of whole rows
   that the sub-groups of a group share, as edges are fewer. */
static void blocks(void **state) {
  static const int n_edges[] = {CLB_GRAPH_LEAST_SPLIT * (CLB_GRAPH_FILL + 1), 9500};
  for (int few = 0; few < 2 - few_cases() && has_roles(*state); few++) {
    convolution_graph e = hub_edges(200, 300, n_edges[few], 6000, 6);
    convolution_problem p = convolution_by(few ? BY_VECTORS : AS_GIVEN, TINY, 0);
    p.workspace = MIN_WORKSPACE, p.edges = &e;
    const tool_kernel kernel = {&p, F64, few};
    clb_op *op = op_with(context_of(*state), &tool_op_convolution, &kernel, D);
    assert_true(walks_once(op, 0));
    convolves(op->ctx, &p, &kernel, op, CLB_DOUBLE_BACKWARD, &e, spacings, 1);
    clb_op_destroy(&op);
    convolution_graph_free(&e);
  }
}

/* There are no such candidates without gradients of z or of edges, for numbers that would be
   rounded after each block, in other passes, or where a sub-group does all parts.  Where operands
   are staged, they are the default. */
static void others(void **state) {
  static const struct {
    unsigned gradients;
    clb_dtype storage;
    bool walks;
  } cases[] = {{0, CLB_F32, true},
               {CLB_OPERAND_Z, CLB_F32, false},
               {CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W, CLB_F32, false},
               {CLB_OPERAND_X | CLB_OPERAND_Z, CLB_F32, true},
               {0, CLB_F16, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    convolution_problem p = convolution_by(AS_GIVEN, SMALL, 0);
    p.product.desc.gradients = cases[i].gradients;
    const tool_kernel kernel = {&p, cases[i].storage, CLB_F32, false};
    clb_op *op = op_with(context_of(*state), &tool_op_convolution, &kernel, F | B | D);
    const bool walks = cases[i].walks && has_roles(*state),
               staged = context_of(*state)->device->limits.async_copies;
    assert_int_equal(op->choice[CLB_DOUBLE_BACKWARD].schedule.convolution.one_walk,
                     walks && staged ? 2 : 0);
    clb_schedule list[CLB_MAX_CANDIDATES];
    for (int pass = CLB_FORWARD; pass <= CLB_BACKWARD; pass++) {
      op->problem.pass = pass;
      for (int s = clb_kernel_kinds[CLB_CONVOLUTION]->candidates(&op->problem,
                                                                 &op->ctx->device->limits, list);
           s--;)
        assert_false(list[s].convolution.one_walk);
    }
    assert_int_equal(walks_once(op, 0), walks);
    clb_op_destroy(&op);
  }
}

static const int with_roles[] = {LIMITS_NVIDIA, LIMITS_TWO_SUBGROUPS};
int main(void) {
  static const place_test tests[] = {
      {"others", others, SLOW}, {"results", results, SLOW}, {"blocks", blocks, SLOW}};
  return run_at_places("convolution_walks", tests, 3, with_roles, SANITIZED ? 1 : 2);
}
