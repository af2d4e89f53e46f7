/* tests/ops/convolution/test_convolution_workspaces.c - graph convolutions with little workspace,
   which process edges in parts: right, and the same bits each time. */
#include "tests/ops/convolution/convolution_problems.h"

#include "kernels/convolution/frame.h"
#include "kernels/convolution/host/frames.h"

static const tool_layout twice[] = {LAYOUT_DENSE, LAYOUT_PADDED};

/* 8192 edges at a time, some more, and all at once; also rows of nodes that are split. */
static void parts_of(place *at, convolution_problem p, const convolution_graph *e, bool accumulate,
                     unsigned passes) {
  const tool_kernel kernel = {&p, F64, accumulate};
  p.edges = e;
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++) {
    if (!(passes >> pass & 1)) continue;
    clb_op *op = op_with(context_of(at), &tool_op_convolution, &kernel, CLB_PASS_BIT(pass));
    for (p.workspace = MAX_WORKSPACE; p.workspace >= HALF_WORKSPACE;
         p.workspace -= pass == CLB_FORWARD ? 3
                        : few_cases()       ? 2
                                            : 1)
      convolves(at->ctx, &p, &kernel, op, (clb_pass)pass, e, twice,
                p.product.desc.shared_weights || !p.workspace ? 2 : 1);
    clb_op_destroy(&op);
  }
}

static unsigned passes_on(const place *at) {
  return (unsigned)many(at, F | B, F | B | D, F | B | D);
}

/* Both of no hub and of one. */
static void plain(void **state) {
  place *at = *state;
  for (int i = at->gpu >= 0; i < 2; i++) {
    convolution_graph e = i ? hub_edges(200, 300, 9500, 6000, 6)
                            : random_edges(900, 1100, few_cases() ? 8500 : 17000, 5);
    parts_of(at, convolution_by(AS_GIVEN, TINY, 0), &e, i, passes_on(at));
    convolution_graph_free(&e);
  }
}

static void ways(place *at, int way) {
  convolution_graph e = hub_edges(200, 300, 9500, 6000, 6);
  for (int i = 0; i < many(at, 1, way == ONE_WEIGHT ? 3 : 1, way == ONE_WEIGHT ? 3 : 1); i++) {
    convolution_problem p = convolution_by(way, TINY, EXACT);
    p.product.desc.gradients = i == 2 ? CLB_OPERAND_W : 0;
    parts_of(at, p, &e, i, passes_on(at) & (way == BY_VECTORS ? 7 : B | D));
  }
  convolution_graph_free(&e);
}
static void one_weight(void **state) { ways(*state, ONE_WEIGHT); }
static void splines(void **state) { ways(*state, BY_SPLINES); }
static void vectors(void **state) { ways(*state, BY_VECTORS); }

/* The minimum of graphs with few edges, exact to the byte. */
static void few_edges(void **state) {
  convolution_problem p = convolution_by(ONE_WEIGHT, SMALL, 0);
  const tool_kernel kernel = {&p, F64, false};
  p.workspace = MIN_WORKSPACE;
  clb_op *op = op_with(context_of(*state), &tool_op_convolution, &kernel, B | D);
  for (int n = 1; n < 20; n += 3) {
    convolution_graph e = random_edges(4, 3, n, (uint64_t)n);
    for (int pass = CLB_BACKWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      convolves(op->ctx, &p, &kernel, op, (clb_pass)pass, &e, twice, 1);
    convolution_graph_free(&e);
  }
  clb_op_destroy(&op);
}

/* More edges than a CPU processes together, of a product that mixes channels, and long rows in
   several parts. */
static void many_edges(void **state) {
  static const clb_dtype storages[] = {CLB_F64, CLB_F32, CLB_F16, CLB_BF16};
  static const convolution_problem problem = {
      .product = LISTED("2x0e", "2x1o", "3x1o", single_uvw, LAYOUTS_OF(MUL_IR, MUL_IR, MUL_IR))};
  clb_context *ctx = context_of(*state);
  if (!ctx->device->limits.simd) return; /* they are processed together */
  convolution_graph e = hub_edges(200, 300, 40000, 20000, 6);
  for (int i = 0; i < many(*state, 0, 2, 8); i++) {
    convolution_problem p = problem;
    p.product.desc.shared_weights = i / 4;
    convolution_agrees(*state, &p, storages[i % 4], usual_arithmetic(storages[i % 4]), i % 2,
                       F | B | D, &e, twice, 2);
  }
  convolution_graph_free(&e);
}

/* ---- how many bytes ---- */

static void sizes_of(clb_context *ctx, const convolution_problem *p, int pass,
                     const convolution_graph *e, uint64_t *min, uint64_t *max, uint64_t *frame) {
  clb_graph *g = NULL;
  clb_op *op =
      op_with(ctx, &tool_op_convolution, &(tool_kernel){p, F64, false}, CLB_PASS_BIT(pass));
  OK(ctx, clb_graph_create(ctx, 0, 0, &g));
  OK(ctx, clb_graph_update(g, e->n_senders, e->n_receivers, e->n_edges, CLB_I32,
                           (clb_index_list){.host = e->senders},
                           (clb_index_list){.host = e->receivers}));
  OK(ctx, clb_convolution_workspace(op, (clb_pass)pass, g, min, max));
  *frame = clb_convolution_in_frame(op, (clb_pass)pass)
               ? 8 * (uint64_t)clb_frame_size(clb_frame_degree(&op->problem.tensor_product))
               : 0;
  clb_graph_destroy(&g);
  clb_op_destroy(&op);
}

/* What vectors take is there in addition: three harmonics and what makes them multiples of 16
   bytes, or the rows of a frame, and sums that are torques. One row of weights needs sums of each
   edge's; edges in parts of a CPU, few. */
static void sizes(void **state) {
  enum { N = 9500 };
  static const convolution_problem mixes = {
      .product = LISTED("2x0e", "2x1o", "3x1o", single_uvw, LAYOUTS_OF(MUL_IR, MUL_IR, MUL_IR))};
  clb_context *ctx = context_of(*state);
  convolution_graph e = hub_edges(200, 300, N, 6000, 6),
                    large = hub_edges(200, 300, 40000, 20000, 6);
  uint64_t min, max, given, max_given, frame, none;
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++) {
    const convolution_problem plain = convolution_by(AS_GIVEN, TINY, 0),
                              vectors = convolution_by(BY_VECTORS, TINY, 0),
                              shared = convolution_by(ONE_WEIGHT, TINY, 0);
    const uint64_t rows = N * 32 * (uint64_t)(pass + 1);
    sizes_of(ctx, &plain, pass, &e, &given, &max_given, &none);
    assert_true(!none && (pass == CLB_FORWARD ? given == max_given : given < max_given));
    sizes_of(ctx, &vectors, pass, &e, &min, &max, &frame);
    if (frame) assert_true(min >= N * frame && max >= min);
    else
      assert_true(min >= given + rows && min <= given + rows + 1024 && max >= max_given + rows &&
                  max <= max_given + rows + 1024);
    sizes_of(ctx, &shared, pass, &e, &min, &max, &none);
    assert_true(pass == CLB_FORWARD || (min < max && max >= N * 8 * (2 + 2)));
    if (!ctx->device->limits.simd) continue;
    sizes_of(ctx, &mixes, pass, &large, &min, &max, &none);
    assert_true(min == max && max < 40000 * 8 * (2 + 9) / 2);
  }
  convolution_graph_free(&e);
  convolution_graph_free(&large);
}

int main(void) {
  static const place_test tests[] = {
      {"plain", plain, SLOW},          {"one_weight", one_weight, SLOW},
      {"splines", splines, BRISK},     {"vectors", vectors, BRISK},
      {"few_edges", few_edges, BRISK}, {"many_edges", many_edges, BRISK},
      {"sizes", sizes, BRISK}};
  return RUN_CONVOLUTIONS("convolution_workspaces", tests);
}
