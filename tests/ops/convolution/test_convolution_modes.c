/* tests/ops/convolution/test_convolution_modes.c - graph convolutions of products of every mode,
   against plain sums over the edges. */
#include "tests/ops/convolution/convolution_problems.h"
#include "tests/ops/tensor_product/product_lists.h"

static const manner plain = {DENSE, MAX}, loose = {APART, MIN};

enum { F = 1 << CLB_FORWARD, B = 1 << CLB_BACKWARD, D = 1 << CLB_DOUBLE_BACKWARD };

/* ---- products ---- */

/* uvw and uvu with two channels of y: quickly compiled, even by slow compilers. */
static const clb_instruction little[] = {{0, 0, 1, CLB_UVW, 1, 1}, {1, 0, 0, CLB_UVU, 1, 1}};
static const clb_instruction one_of_uvw[] = {{0, 0, 0, CLB_UVW, 1, 1}};
static const clb_instruction walked[] = {
    {0, 0, 0, CLB_UVU, 1, 1},
    {0, 1, 1, CLB_UVU, 1, 1}}; /* except y, which is too long for a walk */

static const struct {
  const char *x, *y, *z;
  const clb_instruction *instructions;
  size_t n;
  clb_layout layout_x, layout_y, layout_z;
  double scale;
} mixed[] = {
    {"3x0e+5x1o", "2x1o", "5x1e+3x1o", LIST(little), CLB_MUL_IR, CLB_IR_MUL, CLB_IR_MUL, 0.5},
    {MODES_X, MODES_Y, MODES_Z, LIST(few_modes), CLB_IR_MUL, CLB_MUL_IR, CLB_MUL_IR, 0},
    {MODES_X, MODES_Y, MODES_Z, LIST(all_modes), CLB_MUL_IR, CLB_IR_MUL, CLB_IR_MUL, -0.25},
    {EDGES_X, EDGES_Y, EDGES_Z, LIST(edge_modes), CLB_IR_MUL, CLB_MUL_IR, CLB_IR_MUL, 0},
    {MODES_X, MODES_Y, MODES_Z, LIST(bare_modes), CLB_IR_MUL, CLB_IR_MUL, CLB_MERGED, 0},
    {"7x0e+9x1o", "1100x1o", "5x1o", (const clb_instruction[]){{0, 0, 0, CLB_UVW, 1, 1}}, 1,
     CLB_IR_MUL, CLB_MUL_IR, CLB_IR_MUL, 0},
    {"7x0e+9x1o", "0e+1o+1100x0e", "7x0e+7x1o", LIST(walked), CLB_IR_MUL, CLB_MUL_IR, CLB_IR_MUL,
     0},
    {MIXING_X, MIXING_Y, MIXING_Z, LIST(mixing_modes), CLB_MUL_IR, CLB_IR_MUL, CLB_MERGED, 0},
    {WIDE_X, WIDE_Y, WIDE_Z, LIST(wide_modes), CLB_IR_MUL, CLB_IR_MUL, CLB_IR_MUL, 0},
    {NULL, NULL, NULL, NULL, 0, CLB_MUL_IR, CLB_IR_MUL, CLB_MERGED, 0}};
enum {
  LITTLE,
  FEW,
  ALL_MODES,
  MULTIPLICITIES,
  WEIGHTLESS,
  LONG_Y,
  WALKED,
  MANY_CHANNELS,
  WIDE,
  MANY_PATHS,
  MODES
};

/* In f64. */
static clb_convolution_desc describe_mixed(int i, int shared) {
  static clb_instructions many_paths;
  clb_convolution_desc d = {.scale = mixed[i].scale};
  d.product = (clb_tensor_product_desc){.irreps_x = mixed[i].x,
                                        .irreps_y = mixed[i].y,
                                        .irreps_z = mixed[i].z,
                                        .instructions = mixed[i].instructions,
                                        .n_instructions = (int)mixed[i].n,
                                        .layout_x = mixed[i].layout_x,
                                        .layout_y = mixed[i].layout_y,
                                        .layout_z = mixed[i].layout_z,
                                        .shared_weights = shared,
                                        .storage = CLB_F64,
                                        .arithmetic = CLB_F64};
  if (i == MANY_CHANNELS) d.product.path_normalization = CLB_PATH_PATH;
  if (i != MANY_PATHS) return d;
  many_paths_of_all_modes(&many_paths);
  d.product.irreps_x = many_paths.irreps_x, d.product.irreps_y = many_paths.irreps_y,
  d.product.irreps_z = many_paths.irreps_z;
  d.product.instructions = many_paths.instructions,
  d.product.n_instructions = many_paths.n_instructions;
  return d;
}

/* Shared weights are one row for all edges. */
static edge_list with_weights(edge_list e, int shared) {
  if (shared) e.rows[LIKE_W] = 1;
  return e;
}

/* Runs these passes of a description. */
static void passes_agree(place *at, const clb_convolution_desc *desc, int passes,
                         const edge_list *edges, manner m) {
  convolution *c = convolution_create(context_at(at), desc);
  edge_list e = with_weights(*edges, desc->product.shared_weights);
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
    if (passes >> pass & 1) convolve_and_compare(c, pass, &e, graph_at(at, &e), m, 7);
  convolution_destroy(c);
}

static void products(void **state) {
  place *at = *state;
  for (int i = 0;
       i < many(&at->device, 1, SANITIZED ? WIDE : MULTIPLICITIES, at->gpu < 0 ? MODES : WIDE); i++)
    for (int shared = 0; shared < many(&at->device, 1, 2, 2); shared++) {
      bool long_rows = i == LONG_Y || i == WALKED;
      edge_list e = random_edges(11, 13,
                                 few_cases() || long_rows ? 5
                                 : i == ALL_MODES         ? 40
                                                          : 14,
                                 1);
      clb_convolution_desc desc = describe_mixed(i, shared);
      for (int spacing = at->gpu < 0 ? DENSE : APART; spacing <= APART; spacing++)
        passes_agree(at, &desc, F | B | (i < MANY_PATHS) * D, &e, (manner){spacing, MAX});
      edges_destroy(&e);
    }
}

static void all_graphs(void **state) {
  place *at = *state;
  for (int shared = 0; shared < 2; shared++) {
    clb_convolution_desc desc = describe_mixed(LITTLE, shared);
    convolution *c = convolution_create(context_at(at), &desc);
    for (int i = 0; i < GRAPHS; i++) {
      edge_list e = with_weights(edges_of(i), shared);
      for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
        convolve_and_compare(c, pass, &e, graph_at(at, &e), i % 2 ? plain : loose, (uint64_t)i);
      edges_destroy(&e);
    }
    convolution_destroy(c);
  }
}

static void types(void **state) {
  static const clb_dtype storages[] = {CLB_F32, CLB_F16, CLB_BF16, CLB_F32},
                         arithmetics[] = {CLB_F32, CLB_F32, CLB_F32, CLB_F64};
  place *at = *state;
  edge_list hub = hub_edges(20, 30, 700, 500, 4);
  for (int i = 0; i < many(&at->device, 2, SANITIZED ? 2 : 4, 4); i++)
    for (int how = 0; how < 4; how++) {
      if (!many(&at->device, !how, how == (i + 3) % 4, 1)) continue;
      clb_convolution_desc desc = describe_mixed(LITTLE, how >> 1);
      desc.product.storage = storages[i];
      desc.product.arithmetic = arithmetics[i];
      desc.product.accumulate = how & 1;
      passes_agree(at, &desc, F | B | (storages[i] == CLB_F32) * D, &hub, how & 1 ? loose : plain);
    }
  edges_destroy(&hub);
}

/* ---- workspace, bits ---- */

/* More edges than a CPU processes together, and long rows in several parts; calls are equal to the
   last bit. */
static void parts(void **state) {
  static const clb_dtype storages[] = {CLB_F64, CLB_F32, CLB_F16, CLB_BF16};
  place *at = *state;
  if (!context_at(at)->device->limits.simd) return; /* they are processed together */
  edge_list edges = hub_edges(200, 300, 40000, 20000, 6);
  for (int i = 0; i < many(&at->device, 0, 2, 8); i++) {
    clb_convolution_desc desc = {.product = {.irreps_x = "2x0e",
                                             .irreps_y = "2x1o",
                                             .irreps_z = "3x1o",
                                             .instructions = one_of_uvw,
                                             .n_instructions = 1,
                                             .storage = storages[i % 4],
                                             .arithmetic = i % 4 ? CLB_F32 : CLB_F64,
                                             .shared_weights = i / 4,
                                             .accumulate = i % 2}};
    convolution *c = convolution_create(context_at(at), &desc);
    edge_list e = with_weights(edges, i / 4);
    clb_graph *g = graph_at(at, &e);
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++) {
      arrays a = convolution_arrays(c, &e, 9), again = convolution_arrays(c, &e, 9),
             before = convolution_arrays(c, &e, 9);
      uint64_t min, max;
      OK(c->product.ctx,
         clb_convolution_workspace(convolution_op(c, pass), (clb_pass)pass, g, &min, &max));
      uint64_t columns = (uint64_t)(c->product.width[LIKE_X] + c->product.width[LIKE_Z] +
                                    (i / 4 ? c->product.width[LIKE_W] : 0));
      assert_true(min == max && max < 40000 * sizeof(double) * columns / 2);
      run_convolution(c, pass, &e, g, (manner){DENSE, MIN}, &a);
      run_convolution(c, pass, &e, g, (manner){APART, MAX}, &again);
      compare_convolution(c, pass, &e, &a, desc.product.accumulate ? &before : NULL);
      expect_same_bits(c, pass, &e, &a, &again);
      arrays_destroy(&a);
      arrays_destroy(&again);
      arrays_destroy(&before);
    }
    convolution_destroy(c);
  }
  edges_destroy(&edges);
}

/* ---- what is refused ---- */

static void refused(place *at, const clb_convolution_desc *d, const char *words) {
  clb_op *op;
  assert_int_equal(clb_convolution_create(context_at(at), d, &op), CLB_ERROR_ARGUMENT);
  assert_null(op);
  if (!strstr(clb_error(context_at(at)), words))
    fail_msg("'%s' says nothing of '%s'", clb_error(context_at(at)), words);
}

static void refusals(void **state) {
  place *at = *state;
  clb_convolution_desc d = describe_mixed(LITTLE, 0);
  d.product.passes = F;
  d.atomics = 1;
  refused(at, &d, "atomics is set; every path must then be of mode CLB_UVU with one channel of y");
  d.atomics = 0, d.knots = 4, d.last_knot = 1;
  refused(at, &d, "knots are set; every path");
  d.knots = 0, d.product.passes = 0;
  refused(at, &d, "passes is 0");
  d.product.passes = F | B, d.vectors = 1;
  refused(at, &d, "term 0 of irreps_y is 2x1o");
  d.vectors = 0, d.product.passes = F | 8;
  clb_op *op;
  assert_int_equal(clb_convolution_create(context_at(at), &d, &op), CLB_ERROR_UNSUPPORTED);
  assert_non_null(strstr(clb_error(context_at(at)), "double backward"));
}

/* One byte less than the minimum; a pass that was not asked for; operands that are missing. */
static void refused_calls(void **state) {
  place *at = *state;
  clb_context *ctx = context_at(at);
  clb_convolution_desc desc = describe_mixed(LITTLE, 0);
  convolution *c = convolution_create(ctx, &desc);
  edge_list e = edges_of(SQUARE);
  clb_graph *g = graph_at(at, &e);
  clb_op *op = convolution_op(c, CLB_FORWARD);
  arrays a = convolution_arrays(c, &e, 3);
  clb_rows in[3], z = rows_of(c, &e, LIKE_Z, 3, NULL, true, &plain);
  clb_buffer *workspace = workspace_of(c, CLB_FORWARD, g, MIN), *less;
  uint64_t min, max;
  for (int i = 0; i < 3; i++) in[i] = rows_of(c, &e, i, i, a.in[i], false, &plain);
  OK(ctx, clb_convolution_workspace(op, CLB_FORWARD, g, &min, &max));
  OK(ctx, clb_buffer_create(ctx, min - 1, &less));
  assert_int_equal(clb_convolution_forward(op, g, in[0], in[1], in[2], z, less),
                   CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "workspace has"));
  assert_int_equal(clb_convolution_forward(op, g, in[0], (clb_rows){0}, in[2], z, workspace),
                   CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "the buffer of y is NULL"));
  assert_int_equal(clb_convolution_workspace(op, CLB_BACKWARD, g, &min, &max), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "without its backward pass"));
  OK(ctx, clb_convolution_forward(op, g, in[0], in[1], in[2], z, workspace));
  for (int i = 0; i < 3; i++) clb_buffer_destroy(&in[i].buffer);
  clb_buffer_destroy(&z.buffer);
  clb_buffer_destroy(&workspace);
  clb_buffer_destroy(&less);
  arrays_destroy(&a);
  edges_destroy(&e);
  convolution_destroy(c);
}

int main(void) {
  static const place_test tests[] = {
      {"products", products, BRISK}, {"graphs", all_graphs, SLOW},
      {"types", types, SLOW},        {"parts", parts, BRISK},
      {"refusals", refusals, SLOW},  {"refused_calls", refused_calls, SLOW}};
  return run_at_places("convolution_modes", tests, sizeof tests / sizeof *tests);
}
