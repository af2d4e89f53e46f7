/* tests/ops/convolution/test_convolution_shared.c - graph convolutions whose weights are one row
   for all edges, against plain sums over the edges. */
#include "tests/ops/convolution/convolution_problems.h"

static const manner plain = {DENSE, MAX}, loose = {APART, MAX};

static convolution *shared_create(place *at, clb_convolution_desc desc) {
  desc.product.shared_weights = 1;
  return convolution_create(context_at(at), &desc);
}

/* One row of weights. */
static edge_list shared(edge_list e) {
  e.rows[LIKE_W] = 1;
  return e;
}

static void passes_agree(place *at, const clb_convolution_desc *desc, int first, const edge_list *e,
                         manner m) {
  convolution *c = shared_create(at, *desc);
  for (int pass = first; pass <= CLB_DOUBLE_BACKWARD; pass++)
    convolve_and_compare(c, pass, e, graph_at(at, e), m, 7);
  convolution_destroy(c);
}

static void products(void **state) {
  static const int which[] = {KNOTTED, EVEN, BARE, MIXED, COUNTS, EVEN_MUL_IR, NEQUIX_MAIN};
  place *at = *state;
  edge_list e = shared(random_edges(11, 13, SANITIZED ? 14 : 40, 1));
  for (int i = 0; i < many(&at->device, 0, SANITIZED ? 5 : 3, sizeof which / sizeof *which); i++)
    for (int spacing = DENSE; spacing <= APART; spacing++) {
      clb_convolution_desc desc = describe(at, which[i]);
      passes_agree(at, &desc, CLB_FORWARD, &e, (manner){spacing, MAX});
    }
  edges_destroy(&e);
}

/* Also without edges, where the gradient is 0. */
static void all_graphs(void **state) {
  place *at = *state;
  clb_convolution_desc desc = describe(at, SMALL);
  convolution *c = shared_create(at, desc);
  for (int i = 0; i < GRAPHS; i++) {
    edge_list e = shared(edges_of(i));
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      convolve_and_compare(c, pass, &e, graph_at(at, &e), i % 2 ? plain : loose, (uint64_t)i);
    edges_destroy(&e);
  }
  convolution_destroy(c);
}

static void types(void **state) {
  static const clb_dtype storages[] = {CLB_F32, CLB_BF16, CLB_F16, CLB_F32},
                         arithmetics[] = {CLB_F32, CLB_F32, CLB_F32, CLB_F64};
  place *at = *state;
  edge_list hub = shared(hub_edges(20, 30, 700, 500, 4));
  for (int i = 0; i < many(&at->device, 1, SANITIZED ? 2 : 4, 4); i++) {
    clb_convolution_desc desc = describe(at, i ? SMALL : EVEN);
    desc.product.storage = storages[i];
    desc.product.arithmetic = arithmetics[i];
    passes_agree(at, &desc, CLB_FORWARD, &hub, plain);
  }
  edges_destroy(&hub);
}

/* Edges in parts; calls are equal to the last bit. */
static void workspaces(void **state) {
  place *at = *state;
  edge_list e = shared(hub_edges(200, 300, 9500, 6000, 6));
  clb_graph *g = graph_at(at, &e);
  for (int i = 0; i < many(&at->device, 1, 3, 3); i++) {
    clb_convolution_desc desc = describe(at, TINY);
    desc.product.accumulate = i;
    desc.product.gradients = i == 2 ? CLB_OPERAND_W : 0;
    convolution *c = shared_create(at, desc);
    for (int pass = CLB_BACKWARD;
         pass <= many(&at->device, CLB_BACKWARD, CLB_DOUBLE_BACKWARD, CLB_DOUBLE_BACKWARD);
         pass++) {
      uint64_t min, max;
      OK(c->product.ctx,
         clb_convolution_workspace(convolution_op(c, pass), (clb_pass)pass, g, &min, &max));
      assert_true(min < max && max >= 9500 * sizeof(double) *
                                          (uint64_t)(c->product.width[LIKE_W] +
                                                     (i == 2 ? 0 : c->product.width[LIKE_X])));
      for (int r = MIN; r <= MAX; r++) {
        if (few_cases() && r != i) continue;
        arrays a = convolution_arrays(c, &e, 9), again = convolution_arrays(c, &e, 9),
               before = convolution_arrays(c, &e, 9);
        run_convolution(c, pass, &e, g, (manner){DENSE, (capacity)r}, &a);
        run_convolution(c, pass, &e, g, (manner){APART, (capacity)r}, &again);
        compare_convolution(c, pass, &e, &a, i ? &before : NULL);
        expect_same_bits(c, pass, &e, &a, &again);
        arrays_destroy(&a);
        arrays_destroy(&again);
        arrays_destroy(&before);
      }
    }
    convolution_destroy(c);
  }
  edges_destroy(&e);
}

/* The minimum workspace of graphs with few edges, exact to the byte; one byte less is refused. */
static void small_workspaces(void **state) {
  place *at = *state;
  clb_convolution_desc desc = describe(at, SMALL);
  convolution *c = shared_create(at, desc);
  for (int n = 1; n < 20; n += 3) {
    edge_list e = shared(random_edges(4, 3, n, (uint64_t)n));
    for (int pass = CLB_BACKWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      convolve_and_compare(c, pass, &e, graph_at(at, &e), (manner){DENSE, MIN}, 3);
    edges_destroy(&e);
  }
  convolution_destroy(c);
}

/* Stride and index of the one row are ignored. */
static void one_row(void **state) {
  place *at = *state;
  clb_convolution_desc desc = describe(at, SMALL);
  convolution *c = shared_create(at, desc);
  edge_list e = shared(edges_of(SQUARE));
  arrays a = convolution_arrays(c, &e, 3);
  clb_graph *g = graph_at(at, &e);
  clb_rows in[4], out[3];
  clb_buffer *workspace = workspace_of(c, CLB_BACKWARD, g, MAX);
  for (int i = 0; i < 4; i++) in[i] = rows_of(c, &e, i, i, a.in[i], false, &plain);
  for (int i = 0; i < 3; i++) out[i] = rows_of(c, &e, i, i, NULL, true, &plain);
  clb_rows w = in[LIKE_W], g_w = out[LIKE_W];
  w.stride = -7, g_w.stride = 0, w.index = g_w.index = workspace;
  OK(c->product.ctx, clb_convolution_backward(convolution_op(c, CLB_BACKWARD), g, in[0], in[1], w,
                                              in[3], out[0], out[1], g_w, workspace));
  for (int i = 0; i < 3; i++) take_rows(c, &e, i, CLB_BACKWARD, &out[i], &plain, a.out[i]);
  compare_convolution(c, CLB_BACKWARD, &e, &a, NULL);
  w.buffer = NULL;
  assert_int_equal(clb_convolution_backward(convolution_op(c, CLB_BACKWARD), g, in[0], in[1], w,
                                            in[3], out[0], out[1], g_w, workspace),
                   CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(c->product.ctx), "the buffer of w is NULL"));
  for (int i = 0; i < 4; i++) clb_buffer_destroy(&in[i].buffer);
  for (int i = 0; i < 3; i++) clb_buffer_destroy(&out[i].buffer);
  clb_buffer_destroy(&workspace);
  arrays_destroy(&a);
  edges_destroy(&e);
  convolution_destroy(c);
}

int main(void) {
  static const place_test tests[] = {{"products", products, BRISK},
                                     {"graphs", all_graphs, SLOW},
                                     {"types", types, SLOW},
                                     {"workspaces", workspaces, SLOW},
                                     {"small_workspaces", small_workspaces, BRISK},
                                     {"one_row", one_row, BRISK}};
  return run_at_places("convolution_shared", tests, sizeof tests / sizeof *tests);
}
