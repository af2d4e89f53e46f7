/* tests/ops/convolution/test_convolution_slices.c - edges that share a sub-group where channels are
   fewer than lanes: how many, and the results. */
#include "tests/ops/convolution/convolution_problems.h"

/* Channel-wise to the degrees of SH1, in f64. */
static convolution_problem of_channels(int mul, clb_layout layout) {
  static char x[200][32];
  snprintf(x[mul], sizeof x[mul], "%dx0e+%dx1o", mul, mul);
  return (convolution_problem){
      .product = {.x = x[mul],
                  .y = SH2,
                  .z = SH1,
                  .desc = {.layout_x = layout, .layout_z = layout, .layout_y = CLB_MUL_IR}}};
}

static clb_op *op_of(place *at, const convolution_problem *p, int pass) {
  return op_with(context_of(at), &tool_op_convolution, &(tool_kernel){p, F64, false},
                 CLB_PASS_BIT(pass));
}

/* ---- how many ---- */

static int slices_of(const clb_op *op, int pass, clb_dtype arithmetic, int lanes, clb_schedule *s) {
  const clb_limits limits = {.lanes = {lanes, lanes},
                             .max_subgroups = 16,
                             .local_bytes = 65536,
                             .registers = 255,
                             .units = 100,
                             .subgroups = true,
                             .f64 = true};
  clb_problem p = op->problem;
  p.pass = pass;
  p.storage = p.arithmetic = arithmetic;
  clb_kernel_kinds[CLB_CONVOLUTION]->schedule(&p, &limits, s);
  return s->convolution.edges_per_subgroup;
}

/* As many as powers of two allow, of 4 lanes at least where a lane then has 2 or 4 channels, and
   only whole turns of them between two meetings; one where there are no sub-groups, backward where
   each lane can have one channel, and forward in f32 where each can have one, two or three. */
static void schedules(void **state) {
  static const struct {
    int mul, slices[3]; /* with 16, 32, 64 lanes */
  } cases[] = {{1, {16, 32, 32}}, {3, {4, 8, 16}},  {5, {2, 4, 8}},  {8, {4, 8, 16}},
               {13, {0, 2, 4}},   {16, {4, 8, 16}}, {17, {0, 0, 2}}, {32, {2, 4, 8}},
               {33, {0, 0, 0}},   {64, {0, 2, 4}},  {128, {0, 0, 2}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const convolution_problem p = of_channels(cases[i].mul, CLB_IR_MUL);
    clb_schedule s;
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++) {
      clb_op *op = op_of(*state, &p, pass);
      for (int wide = 0; wide < 3; wide++) {
        const int lanes = 16 << wide, mul = cases[i].mul, usual = cases[i].slices[wide];
        const bool one = pass == CLB_BACKWARD && mul == lanes,
                   small = pass == CLB_FORWARD && lanes <= mul && mul < 4 * lanes;
        assert_int_equal(slices_of(op, pass, CLB_F32, lanes, &s), one || small ? 0 : usual);
        assert_int_equal(slices_of(op, pass, CLB_F64, lanes, &s), one ? 0 : usual);
        const int slices = s.convolution.edges_per_subgroup;
        assert_true(!slices || s.convolution.edges_per_round % slices == 0);
      }
      clb_kernel_kinds[CLB_CONVOLUTION]->schedule(&op->problem,
                                                  &device_limits[LIMITS_NO_SUBGROUPS].limits, &s);
      assert_int_equal(s.convolution.edges_per_subgroup, 0);
      clb_op_destroy(&op);
    }
  }
}

/* The first slice writes the row of z, nobody else. */
static void stores_once(void **state) {
  static const int mul[] = {5, 13, 16};
  for (int i = 0; i < 3; i++) {
    const convolution_problem p = of_channels(mul[i], CLB_IR_MUL);
    clb_op *op = op_of(*state, &p, CLB_FORWARD);
    clb_counts counts;
    OK(op->ctx, clb_op_counts(op, CLB_FORWARD, &counts));
    assert_true(counts.bytes_stored == 8.0 * op->problem.tensor_product.z.dim);
    clb_op_destroy(&op);
  }
}

/* ---- results ---- */

/* Rows of 0 to 130 edges, so that last turns lack every possible number of edges; and a node whose
   row is cut into pieces. */
static convolution_graph rows_of_all_lengths(int rows, int step) {
  int n = 0;
  for (int r = 0; r < rows; r++) n += r * step;
  convolution_graph e = edges_create(19, rows, n);
  uint64_t seed = 8;
  for (int r = 0, i = 0; r < rows; r++)
    for (int j = 0; j < r * step; j++, i++) e.receivers[i] = r, e.senders[i] = below(19, &seed);
  return e;
}

/* The same bits each time. */
static void results(void **state) {
  static const int counts[] = {16, 5, 3, 1, 7, 13, 32, 33};
  convolution_graph graph[] = {rows_of_all_lengths(SANITIZED ? 9 : 34, 1),
                               rows_of_all_lengths(SANITIZED ? 4 : 14, 10),
                               hub_edges(9, 7, SANITIZED ? 290 : 600, SANITIZED ? 280 : 513, 3)};
  for (int i = 0; i < many(*state, 1, SANITIZED ? 5 : 2, 8); i++)
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++) {
      convolution_problem p = of_channels(counts[i], i % 2 ? CLB_MUL_IR : CLB_IR_MUL);
      const tool_kernel kernel = {&p, F64, (i + pass) % 3 == 1};
      p.atomics = i % 4 == 3;
      clb_op *op = op_with(context_of(*state), &tool_op_convolution, &kernel, CLB_PASS_BIT(pass));
      for (int g = 0; g < 3; g++)
        convolves(op->ctx, &p, &kernel, op, (clb_pass)pass, &graph[g], spacings + 2 * (g == 1),
                  p.atomics || g || i >= 4 ? 1 : 2);
      clb_op_destroy(&op);
    }
  for (int g = 0; g < 3; g++) convolution_graph_free(&graph[g]);
}

/* NaN stays in the rows and results of its own edge, although other edges share its turn. */
static void infinite_edges(void **state) {
  enum { LAST = 27 };
  convolution_graph e = rows_of_all_lengths(8, 1);
  convolution_problem p = of_channels(5, CLB_IR_MUL);
  const tool_kernel kernel = {&p, F64, false};
  p.edges = &e;
  assert_int_equal(e.n_edges, LAST + 1);
  for (int pass = CLB_FORWARD; pass <= CLB_BACKWARD; pass++) {
    clb_op *op = op_of(*state, &p, pass);
    double *got[MAX_ARRAYS] = {NULL};
    test_run t;
    test_run_make(&t, &tool_op_convolution, &kernel, (clb_pass)pass,
                  &(tool_data){.rows = e.n_edges}, e.n_edges);
    for (int j = 0; j < t.array[1].width; j++)
      t.values[1][LAST * t.array[1].width + j] = NAN; /* y */
    take_results(op->ctx, op, &t, got);
    for (int a = pass ? 5 : 3; a < t.n; a++) { /* z, of the last node; or g_y, g_w, of the edge */
      const size_t width = (size_t)t.array[a].width, n = elements_of(&t.array[a]);
      for (size_t i = 0; i < n - width; i++) assert_true(isfinite(got[a][i]));
      for (size_t i = n - width; i < n && a == 6; i++) assert_true(isnan(got[a][i]));
    }
    free_results(got);
    test_run_free(&t);
    clb_op_destroy(&op);
  }
  convolution_graph_free(&e);
}

int main(void) {
  static const place_test tests[] = {{"schedules", schedules, THOROUGH},
                                     {"stores_once", stores_once, THOROUGH},
                                     {"results", results, SLOW},
                                     {"infinite_edges", infinite_edges, SLOW}};
  return RUN_CONVOLUTIONS("convolution_slices", tests);
}
