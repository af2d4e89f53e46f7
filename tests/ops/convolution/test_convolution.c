/* tests/ops/convolution/test_convolution.c - the graph convolution of each product and on each
   graph, in each of the ways in which y and weights come; wherever it runs. */
#define _GNU_SOURCE
#include <sched.h>

#include "kernels/graph/host/graph.h"
#include "tests/ops/convolution/convolution_problems.h"

/* A test of each way, since slow devices take turns. */
#define EACH_WAY(test)                                                                             \
  static void test##_0(void **state) { test(*state, AS_GIVEN); }                                   \
  static void test##_1(void **state) { test(*state, ONE_WEIGHT); }                                 \
  static void test##_2(void **state) { test(*state, BY_SPLINES); }                                 \
  static void test##_3(void **state) { test(*state, BY_VECTORS); }                                 \
  static void test##_4(void **state) { test(*state, BY_LENGTHS); }                                 \
  static void test##_5(void **state) { test(*state, MERGED); }
#define OF_EACH_WAY(test, effort)                                                                  \
  {#test, test##_0, effort}, {#test "_one_weight", test##_1, effort},                              \
      {#test "_splines", test##_2, effort}, {#test "_vectors", test##_3, effort},                  \
      {#test "_lengths", test##_4, effort}, {                                                      \
#test "_merged", test##_5, effort                                                              \
  }

/* These are like the others wherever a kernel's schedule matters. */
static bool is_like_others(const place *at, int way) { return way >= BY_LENGTHS && at->gpu >= 0; }

static void products(place *at, int way) {
  static const struct {
    int n, brisk, sanitized, list[15];
  } which[WAYS] = {
      [AS_GIVEN] = {15,
                    5,
                    13,
                    {KNOTTED, COUNTS, EVEN, UNEVEN, BARE, EVEN_MUL_IR, PARITIES, GAPS, TINY, HIGH,
                     SCALARS, SHORT, SHORT_MUL_IR, MACE_MEDIUM, NEQUIX_MAIN}},
      [ONE_WEIGHT] = {7, 3, 5, {KNOTTED, EVEN, BARE, UNEVEN, COUNTS, EVEN_MUL_IR, NEQUIX_MAIN}},
      [BY_SPLINES] = {12,
                      4,
                      7,
                      {COUNTS, KNOTTED, EVEN, EVEN_MUL_IR, SMALL, PARITIES, BARE, UNEVEN, SHORT,
                       SHORT_MUL_IR, NEQUIX_MAIN, MACE_MEDIUM}},
      [BY_VECTORS] = {10,
                      6,
                      8,
                      {SHUFFLED, SMALL, EVEN, UNEVEN, COUNTS, HIGH, SCALARS, PARITIES, MACE_MEDIUM,
                       NEQUIX_MAIN}},
      [BY_LENGTHS] = {4, 2, 2, {SMALL, BARE, UNEVEN, COUNTS}},
      [MERGED] = {4, 2, 2, {COUNTS, EVEN, UNEVEN, PARITIES}}};
  if (is_like_others(at, way)) return;
  convolution_graph e = random_edges(11, 13, SANITIZED ? 14 : 40, 1);
  for (int i = 0;
       i < many(at, 0, SANITIZED ? which[way].sanitized : (which[way].brisk + 1) / 2, which[way].n);
       i++) {
    const convolution_problem p =
        convolution_by(way, which[way].list[i], way == BY_SPLINES ? i % GRIDS : i);
    convolution_agrees(at, &p, F64, false, F | B | D, &e, spacings, SPACINGS);
  }
  convolution_graph_free(&e);
}
EACH_WAY(products)

static void all_graphs(place *at, int way) {
  if (is_like_others(at, way)) return;
  const convolution_problem p = convolution_by(way, SMALL, EXACT);
  const tool_kernel kernel = {&p, F64, false};
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++) {
    clb_op *op = op_with(context_of(at), &tool_op_convolution, &kernel, CLB_PASS_BIT(pass));
    for (int i = 0; i < GRAPHS; i++) {
      convolution_graph e = edges_of(i);
      convolves(at->ctx, &p, &kernel, op, (clb_pass)pass, &e, spacings + (i % 2 ? 0 : 2), 1);
      convolution_graph_free(&e);
    }
    clb_op_destroy(&op);
  }
}
EACH_WAY(all_graphs)

/* More edges than teams are for: long rows are split. */
static void many_edges(void **state) {
  place *at = *state;
  if (at->gpu != LIMITS_NVIDIA)
    return; /* elsewhere rows of graphs above are split, or like there */
  convolution_graph e = hub_edges(30, 900, CLB_GRAPH_LEAST_SPLIT * (CLB_GRAPH_FILL + 1), 3000, 8);
  const convolution_problem p = convolution_by(AS_GIVEN, TINY, 0);
  convolution_agrees(at, &p, F64, false, F | D, &e, spacings, 1);
  convolution_graph_free(&e);
}

/* One row of x, y, w or g for all nodes or edges. */
static void one_row_for_all(void **state) {
  clb_context *ctx = context_of(*state);
  convolution_graph e = edges_of(SQUARE);
  convolution_problem p = convolution_by(AS_GIVEN, SMALL, 0);
  const tool_kernel kernel = {&p, F64, false};
  const tool_data data = {.rows = e.n_edges};
  p.edges = &e;
  clb_op *op = op_with(ctx, &tool_op_convolution, &kernel, B);
  for (int same = 0; same < 4; same++) {
    test_run t;
    test_run_set set;
    double error = INFINITY;
    test_run_make(&t, &tool_op_convolution, &kernel, CLB_BACKWARD, &data, data.rows);
    for (size_t i = 0, n = (size_t)t.array[same].width; i < elements_of(&t.array[same]); i++)
      t.values[same][i] = t.values[same][i % n];
    test_run_answer(&t);
    OK(ctx, test_run_set_make(&t, ctx, op, &set));
    set.rows[same].stride = CLB_SAME_ROW;
    OK(ctx, test_run_once(&t, op, &set));
    OK(ctx, test_run_error(&t, &set, &error));
    expect_error_within(&tool_op_convolution, &kernel, CLB_BACKWARD, &data, error);
    test_run_set_free(&t, &set);
    test_run_free(&t);
  }
  clb_op_destroy(&op);
  convolution_graph_free(&e);
}

/* Equal calls give equal bits, with any number of threads. */
static void equal_bits(void **state) {
  place *at = *state, alone = *at;
  convolution_graph e = hub_edges(40, 50, 1500, 700, 6);
  convolution_problem p = convolution_by(AS_GIVEN, SMALL, 0);
  const tool_kernel kernel = {&p, F64, false};
  const tool_data data = {.rows = e.n_edges};
  cpu_set_t all, one;
  p.edges = &e, alone.ctx = NULL;
  CPU_ZERO(&one);
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  for (int i = CPU_SETSIZE - 1; i >= 0 && !CPU_COUNT(&one); i--)
    if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one),
                   0); /* a CPU device has as many threads as there are cores */
  clb_op *second = op_with(context_of(&alone), &tool_op_convolution, &kernel, F | B | D);
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  clb_op *first = op_with(context_of(at), &tool_op_convolution, &kernel, F | B | D);
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++) {
    double *a[MAX_ARRAYS] = {NULL}, *b[MAX_ARRAYS] = {NULL};
    test_run t;
    test_run_make(&t, &tool_op_convolution, &kernel, (clb_pass)pass, &data, data.rows);
    take_results(at->ctx, first, &t, a);
    take_results(alone.ctx, second, &t, b);
    expect_same(&t, a, b);
    free_results(a);
    free_results(b);
    test_run_free(&t);
  }
  clb_op_destroy(&first);
  clb_op_destroy(&second);
  clb_context_destroy(&alone.ctx);
  convolution_graph_free(&e);
}

int main(void) {
  static const place_test tests[] = {OF_EACH_WAY(products, BRISK),
                                     OF_EACH_WAY(all_graphs, SLOW),
                                     {"many_edges", many_edges, THOROUGH},
                                     {"one_row_for_all", one_row_for_all, SLOW},
                                     {"equal_bits", equal_bits, SLOW}};
  return RUN_CONVOLUTIONS("convolution", tests);
}
