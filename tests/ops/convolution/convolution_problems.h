/* tests/ops/convolution/convolution_problems.h - the products that the tests convolve, the ways in
   which y and weights come, and the graphs. */
#ifndef CLB_TESTS_OPS_CONVOLUTION_CONVOLUTION_PROBLEMS_H
#define CLB_TESTS_OPS_CONVOLUTION_CONVOLUTION_PROBLEMS_H

#include "tests/ops/tensor_product/product_problems.h"

#include "tools/ops/convolution/convolution_tool.h"

/* ---- products ---- */

/* Several paths into one term of z from one term of x and from others, some without weights, some
   of weight 0 or without channels; terms of z that nothing or only a path of weight 0 reaches,
   terms of x and y that nothing uses. */
static const clb_instruction knotted[] = {
    {0, 0, 0, CLB_UVU, 0, 1},   {1, 1, 0, CLB_UVU, 1, 2}, {3, 1, 0, CLB_UVU, 1, 0.7},
    {1, 0, 1, CLB_UVU, 1, 1},   {0, 1, 1, CLB_UVU, 1, 1}, {1, 3, 1, CLB_UVU, 0, 1.5},
    {3, 3, 1, CLB_UVU, 1, 0.5}, {6, 3, 5, CLB_UVU, 1, 1}, {1, 3, 3, CLB_UVU, 1, 1},
    {5, 4, 1, CLB_UVU, 1, 1},   {2, 3, 4, CLB_UVU, 1, 1}, {5, 3, 0, CLB_UVU, 1, 0},
    {6, 1, 6, CLB_UVU, 1, 0},   {1, 3, 1, CLB_UVU, 1, 1}, {5, 4, 3, CLB_UVU, 0, 1}};
/* Degrees of y in no order, with a gap and one twice; l = 4 is called odd. */
static const clb_instruction shuffled[] = {{0, 1, 1, CLB_UVU, 1, 1}, {0, 0, 0, CLB_UVU, 1, 1},
                                           {1, 2, 1, CLB_UVU, 1, 1}, {1, 2, 0, CLB_UVU, 0, 2},
                                           {0, 3, 3, CLB_UVU, 1, 1}, {1, 4, 1, CLB_UVU, 1, 1}};

enum {
  SMALL,
  COUNTS,
  UNEVEN,
  PARITIES,
  GAPS,
  KNOTTED,
  BARE,
  SCALARS,
  NEQUIX_MAIN,
  MACE_MEDIUM,
  EVEN,
  EVEN_MUL_IR,
  TINY,
  HIGH,
  SHORT,
  SHORT_MUL_IR,
  SHUFFLED
};
#define SORTED_OF(x, y, filter, lx, ly, lz) FOUND(x, y, filter, CLB_SORTED, LAYOUTS_OF(lx, ly, lz))
static const convolution_problem convolution_list[] = {
    [SMALL] = {SORTED_OF("3x0e+2x1o", SH1, SH1, IR_MUL, MUL_IR, IR_MUL)},
    [COUNTS] = {SORTED_OF("1x0e+3x1o+5x0e+7x1o+13x0e+33x1o+89x0e+123x1o", SH1, SH1, MUL_IR, IR_MUL,
                          IR_MUL),
                .scale = 0.25},
    [UNEVEN] = {FOUND("5x0e+3x1o+13x2e", SH3, SH3, CLB_AS_FOUND, LAYOUTS_OF(MUL_IR, MUL_IR, MUL_IR),
                      .irrep_normalization = CLB_IRREP_NORM),
                .scale = 1},
    [PARITIES] = {FOUND(BOTH1("7"), SH1, BOTH1("1"), CLB_AS_FOUND,
                        LAYOUTS_OF(IR_MUL, MUL_IR, MUL_IR)),
                  .scale = 1e-3},
    [GAPS] = {SORTED_OF("4x0e+6x2e+3x3o", "3o+0e+2e+2e", "0e+1o+2e+3o", IR_MUL, MUL_IR, IR_MUL),
              .scale = 7},
    [KNOTTED] = {LISTED("5x0e+5x1o+0x2e+5x1o+2x3o+5x2e+9x0e", "0e+1o+3x1o+2e+3o",
                        "5x0e+5x1o+3x2e+5x3o+0x1e+9x2e+9x1o", knotted,
                        LAYOUTS_OF(MUL_IR, IR_MUL, IR_MUL), .path_normalization = CLB_PATH_PATH),
                 .scale = -0.5},
    [BARE] = {LISTED("7x0e+7x1o", SH2, "7x0e+7x1o", weightless, LAYOUTS_OF(IR_MUL, IR_MUL, MUL_IR),
                     .irrep_normalization = CLB_IRREP_NONE)},
    [SCALARS] = {SORTED_OF("89x0e", SH3, SH3, IR_MUL, MUL_IR, IR_MUL)},
    [NEQUIX_MAIN] = {SORTED_OF(NEQUIX, SH3, SH3, IR_MUL, MUL_IR, IR_MUL), .scale = 0.2},
    [MACE_MEDIUM] = {SORTED_OF("128x0e+128x1o", SH3, SH3, MUL_IR, MUL_IR, MUL_IR)},
    [EVEN] = {SORTED_OF("64x0e+32x1o", SH1, SH1, IR_MUL, MUL_IR, IR_MUL)},
    [EVEN_MUL_IR] = {SORTED_OF("32x0e+64x1o", SH3, SH1, MUL_IR, MUL_IR, MUL_IR)},
    [TINY] = {SORTED_OF("2x0e", "1o", "1o", IR_MUL, MUL_IR, IR_MUL)},
    [HIGH] = {SORTED_OF("2x3o+2x4e", "4e", "4e+3o+1o", MUL_IR, MUL_IR, IR_MUL)},
    [SHORT] = {SORTED_OF("16x0e+8x1o+4x2e", SH1, SH1, IR_MUL, MUL_IR, IR_MUL)},
    [SHORT_MUL_IR] = {SORTED_OF("16x0e+4x1o", SH1, SH1, MUL_IR, MUL_IR, MUL_IR), .scale = 3},
    [SHUFFLED] = {LISTED("5x0e+5x1o", "2e+0e+1o+4o+1o", "5x2e+5x0e+5x1o+5x4o", shuffled,
                         LAYOUTS_OF(MUL_IR, MUL_IR, MUL_IR))},
};

/* ---- ways ---- */

enum { AS_GIVEN, ONE_WEIGHT, BY_SPLINES, BY_VECTORS, BY_LENGTHS, MERGED, WAYS };

/* Grids of splines: ends that are exact in all types, and ends that are not; second derivatives
   that jump. */
static const struct {
  int knots;
  double first, last, break_at;
} grids[] = {
    {6, 0.5, 3, 0}, {7, 0.3, 4.1, 0}, {4, -1, 0.5, 0}, {12, 0.3, 4.1, 1.93}, {12, -1, 2, 0}};
enum { EXACT, INEXACT, NARROW, BROKEN, AROUND_ZERO, GRIDS };

/* i: which grid, or which normalization of harmonics. */
static inline convolution_problem convolution_by(int way, int which, int i) {
  convolution_problem p = convolution_list[which];
  if (way == ONE_WEIGHT) p.product.desc.shared_weights = 1;
  if (way == MERGED) p.product.desc.layout_z = CLB_MERGED;
  if (way == BY_VECTORS || way == BY_LENGTHS)
    p.vectors = true, p.normalization = (clb_normalization)(i % 3);
  if (way == BY_SPLINES)
    p.table = true, p.knots = grids[i].knots, p.first_knot = grids[i].first,
    p.last_knot = grids[i].last, p.break_at = grids[i].break_at;
  if (way == BY_LENGTHS) p.table = true, p.knots = 5, p.last_knot = 2;
  return p;
}

/* ---- graphs ---- */

static inline int below(int n, uint64_t *seed) {
  int i = (int)((test_random(seed) + 1) / 2 * n);
  return i < n ? i : n - 1;
}

static inline convolution_graph edges_create(int n_senders, int n_receivers, int n) {
  convolution_graph e = {
      n_senders, n_receivers, n, calloc((size_t)n + 1, 4), calloc((size_t)n + 1, 4), NULL};
  assert_true(e.senders && e.receivers);
  return e;
}

/* Unsorted; every fifth node has no edge, one edge in six repeats the one before, one in eight is a
   self-loop. */
static inline convolution_graph random_edges(int n_senders, int n_receivers, int n, uint64_t seed) {
  convolution_graph e = edges_create(n_senders, n_receivers, n);
  int min = n_senders < n_receivers ? n_senders : n_receivers;
  for (int i = 0; i < n; i++) {
    int s = below(n_senders, &seed), r = below(n_receivers, &seed), luck = below(24, &seed);
    if (luck < 3) s = r = below(min, &seed);
    if (s % 5 == 2) s--;
    if (r % 5 == 2) r--;
    if (luck > 19 && i) s = e.senders[i - 1], r = e.receivers[i - 1];
    e.senders[i] = s;
    e.receivers[i] = r;
  }
  return e;
}

/* Most edges end at one node, and a third of all start at one. */
static inline convolution_graph hub_edges(int n_senders, int n_receivers, int n, int at_hub,
                                          uint64_t seed) {
  convolution_graph e = random_edges(n_senders, n_receivers, n, seed);
  for (int left = at_hub, i = 0; i < n; i++) {
    bool moves = below(n - i, &seed) < left;
    if (moves) e.receivers[i] = n_receivers / 2;
    else if (e.receivers[i] == n_receivers / 2) e.receivers[i] = 0;
    if (i % 3 == 1) e.senders[i] = n_senders / 3;
    left -= moves;
  }
  return e;
}

static const struct {
  int n_senders, n_receivers, n,
      at_hub; /* at_hub: edges into one node; 0: no more there than elsewhere */
} graphs[] = {{17, 17, 61, 0},      {6, 4, 0, 0},     {3, 2, 1, 0},     {5, 0, 0, 0},
              {0, 5, 0, 0},         {0, 0, 0, 0},     {1, 1, 9, 0},     {2, 40, 50, 0},
              {70, 3, 90, 0},       {9, 7, 256, 256}, {9, 7, 257, 257}, {40, 30, 700, 513},
              {50, 40, 3600, 3000}, {3, 1000, 40, 0}, {2, 2, 772, 386}};
enum { SQUARE, GRAPHS = sizeof graphs / sizeof *graphs };

static inline convolution_graph edges_of(int i) {
  if (!graphs[i].at_hub)
    return random_edges(graphs[i].n_senders, graphs[i].n_receivers, graphs[i].n, 40 + (uint64_t)i);
  return hub_edges(graphs[i].n_senders, graphs[i].n_receivers, graphs[i].n, graphs[i].at_hub,
                   40 + (uint64_t)i);
}

/* ---- running ---- */

/* One op of a pass on other edges: with edge cases among the inputs, right with each layout, and
   then the same bits. */
static inline void convolves(clb_context *ctx, const convolution_problem *problem,
                             const tool_kernel *kernel, clb_op *op, clb_pass pass,
                             const convolution_graph *e, const tool_layout *layouts, int n) {
  convolution_problem p = *problem;
  tool_kernel k = *kernel;
  p.edges = e, k.problem = &p;
  expect_layouts(ctx, &tool_op_convolution, &k, op, pass,
                 (tool_data){.rows = e->n_edges, .hard = true}, layouts, n);
}

static const tool_layout spacings[] = {LAYOUT_DENSE, LAYOUT_ALIGNED, LAYOUT_PADDED};
enum { SPACINGS = sizeof spacings / sizeof *spacings };

/* Each of these passes with these layouts. */
static inline void convolution_agrees(place *at, const convolution_problem *p, clb_dtype storage,
                                      clb_dtype arithmetic, bool accumulate, unsigned passes,
                                      const convolution_graph *e, const tool_layout *layouts,
                                      int n) {
  const tool_kernel kernel = {p, storage, arithmetic, accumulate};
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++) {
    if (!(passes >> pass & 1)) continue;
    clb_op *op = op_with(context_of(at), &tool_op_convolution, &kernel, CLB_PASS_BIT(pass));
    convolves(at->ctx, p, &kernel, op, (clb_pass)pass, e, layouts, n);
    clb_op_destroy(&op);
  }
}

/* The GPUs whose limits the interpreter has. */
static const int gpus[] = {LIMITS_NVIDIA, LIMITS_AMD, LIMITS_TWO_SUBGROUPS, LIMITS_NO_SUBGROUPS};
#define RUN_CONVOLUTIONS(group, tests)                                                             \
  run_at_places(group, tests, (int)(sizeof tests / sizeof *tests), gpus, SANITIZED ? 1 : 4)

#endif
