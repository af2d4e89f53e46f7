/* tests/ops/convolution/test_convolution_slices.c - edges that share a sub-group where channels are
   fewer than lanes: how many, and the results. */
#include "tests/ops/convolution/convolution_problems.h"

static const manner plain = {DENSE, MAX}, loose = {APART, MAX};

/* Channel-wise to the degrees of SH1, in f64. */
static clb_convolution_desc of_channels(place *at, int mul, clb_layout layout,
                                        clb_instructions *found) {
  char x[64];
  snprintf(x, sizeof x, "%dx0e+%dx1o", mul, mul);
  OK(context_at(at), clb_channel_wise(context_at(at), x, SH2, SH1, CLB_SORTED, found));
  return (clb_convolution_desc){.product = {.irreps_x = found->irreps_x,
                                            .irreps_y = found->irreps_y,
                                            .irreps_z = found->irreps_z,
                                            .instructions = found->instructions,
                                            .n_instructions = found->n_instructions,
                                            .layout_x = layout,
                                            .layout_z = layout,
                                            .storage = CLB_F64,
                                            .arithmetic = CLB_F64}};
}

/* ---- how many ---- */

static int slices_of(convolution *c, int pass, clb_dtype arithmetic, int lanes, clb_schedule *s) {
  const clb_limits limits = {.lanes = {lanes, lanes},
                             .max_subgroups = 16,
                             .local_bytes = 65536,
                             .registers = 255,
                             .units = 100,
                             .subgroups = true,
                             .f64 = true};
  clb_problem p = convolution_op(c, pass)->problem;
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
  place *at = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    clb_instructions found = {0};
    clb_convolution_desc desc = of_channels(at, cases[i].mul, CLB_IR_MUL, &found);
    convolution *c = convolution_create(context_at(at), &desc);
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      for (int wide = 0; wide < 3; wide++) {
        clb_schedule s;
        const int lanes = 16 << wide, mul = cases[i].mul, usual = cases[i].slices[wide];
        const bool one = pass == CLB_BACKWARD && mul == lanes,
                   small = pass == CLB_FORWARD && lanes <= mul && mul < 4 * lanes;
        assert_int_equal(slices_of(c, pass, CLB_F32, lanes, &s), one || small ? 0 : usual);
        assert_int_equal(slices_of(c, pass, CLB_F64, lanes, &s), one ? 0 : usual);
        const int slices = s.convolution.edges_per_subgroup;
        assert_true(!slices || s.convolution.edges_per_round % slices == 0);
      }
    clb_schedule s;
    clb_kernel_kinds[CLB_CONVOLUTION]->schedule(&convolution_op(c, CLB_FORWARD)->problem,
                                                &device_limits[LIMITS_NO_SUBGROUPS].limits, &s);
    assert_int_equal(s.convolution.edges_per_subgroup, 0);
    convolution_destroy(c);
  }
}

/* The first slice writes the row of z, nobody else. */
static void stores_once(void **state) {
  static const int mul[] = {5, 13, 16};
  place *at = *state;
  for (int i = 0; i < 3; i++) {
    clb_instructions found = {0};
    clb_convolution_desc desc = of_channels(at, mul[i], CLB_IR_MUL, &found);
    convolution *c = convolution_create(context_at(at), &desc);
    clb_counts counts;
    OK(c->product.ctx, clb_op_counts(convolution_op(c, CLB_FORWARD), CLB_FORWARD, &counts));
    assert_true(counts.bytes_stored == 8.0 * c->product.width[LIKE_Z]);
    convolution_destroy(c);
  }
}

/* ---- results ---- */

static const int counts[] = {16, 5, 3, 1, 7, 13, 32, 33};
enum { COUNT = sizeof counts / sizeof *counts };

/* Rows of 0 to 130 edges, so that last turns lack every possible number of edges; and a node whose
   row is cut into pieces. */
static edge_list rows_of_all_lengths(int rows, int step) {
  int n = 0;
  for (int r = 0; r < rows; r++) n += r * step;
  edge_list e = edges_create(19, rows, n);
  uint64_t seed = 8;
  for (int r = 0, i = 0; r < rows; r++)
    for (int j = 0; j < r * step; j++, i++) e.receivers[i] = r, e.senders[i] = below(19, &seed);
  return e;
}

static void results(void **state) {
  place *at = *state;
  edge_list few = rows_of_all_lengths(SANITIZED ? 9 : 34, 1),
            many_edges = rows_of_all_lengths(SANITIZED ? 4 : 14, 10),
            hub = hub_edges(9, 7, SANITIZED ? 290 : 600, SANITIZED ? 280 : 513, 3);
  const edge_list *graph[] = {&few, &many_edges, &hub};
  for (int i = 0; i < many(&at->device, 1, SANITIZED ? 5 : 2, COUNT); i++)
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++) {
      clb_instructions found = {0};
      clb_convolution_desc desc =
          of_channels(at, counts[i], i % 2 ? CLB_MUL_IR : CLB_IR_MUL, &found);
      desc.product.accumulate = (i + pass) % 3 == 1;
      desc.atomics = i % 4 == 3;
      convolution *c = convolution_create(context_at(at), &desc);
      for (int g = 0; g < 3; g++)
        convolve_and_compare(c, pass, graph[g], graph_at(at, graph[g]), g == 1 ? loose : plain,
                             5 + (uint64_t)g);
      convolution_destroy(c);
    }
  edges_destroy(&few);
  edges_destroy(&many_edges);
  edges_destroy(&hub);
}

/* NaN and infinity stay in the rows and results of their own edge, although other edges share its
   turn. */
static void infinite_edges(void **state) {
  place *at = *state;
  edge_list e = rows_of_all_lengths(8, 1);
  clb_instructions found = {0};
  clb_convolution_desc desc = of_channels(at, 5, CLB_IR_MUL, &found);
  convolution *c = convolution_create(context_at(at), &desc);
  const int last = e.rows[LIKE_Y] - 1, y = c->product.width[LIKE_Y], w = c->product.width[LIKE_W],
            z = c->product.width[LIKE_Z];
  for (int pass = CLB_FORWARD; pass <= CLB_BACKWARD; pass++) {
    arrays a = convolution_arrays(c, &e, 5);
    for (int j = 0; j < y; j++) a.in[LIKE_Y][last * y + j] = NAN;
    run_convolution(c, pass, &e, graph_at(at, &e), plain, &a);
    for (int j = 0; j < 7 * z && pass == CLB_FORWARD; j++) assert_true(isfinite(a.out[0][j]));
    for (int j = 0; j < last * y && pass == CLB_BACKWARD; j++) assert_true(isfinite(a.out[1][j]));
    for (int j = 0; j < last * w && pass == CLB_BACKWARD; j++) assert_true(isfinite(a.out[2][j]));
    for (int j = last * w; j < (last + 1) * w && pass == CLB_BACKWARD; j++)
      assert_true(isnan(a.out[2][j]));
    arrays_destroy(&a);
  }
  convolution_destroy(c);
  edges_destroy(&e);
}

static void equal_bits(void **state) {
  place *at = *state;
  edge_list e = rows_of_all_lengths(SANITIZED ? 9 : 34, 1);
  for (int i = 0; i < many(&at->device, 1, 2, 4); i++)
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++) {
      clb_instructions found = {0};
      clb_convolution_desc desc = of_channels(at, counts[i], CLB_IR_MUL, &found);
      convolution *c = convolution_create(context_at(at), &desc);
      arrays a = convolution_arrays(c, &e, 5), again = convolution_arrays(c, &e, 5);
      run_convolution(c, pass, &e, graph_at(at, &e), plain, &a);
      run_convolution(c, pass, &e, graph_at(at, &e), loose, &again);
      expect_same_bits(c, pass, &e, &a, &again);
      arrays_destroy(&a);
      arrays_destroy(&again);
      convolution_destroy(c);
    }
  edges_destroy(&e);
}

int main(void) {
  static const place_test tests[] = {{"schedules", schedules, THOROUGH},
                                     {"stores_once", stores_once, THOROUGH},
                                     {"results", results, SLOW},
                                     {"infinite_edges", infinite_edges, SLOW},
                                     {"same_bits", equal_bits, SLOW}};
  return run_at_places("convolution_slices", tests, sizeof tests / sizeof *tests);
}
