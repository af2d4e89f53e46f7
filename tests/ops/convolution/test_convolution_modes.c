/* tests/ops/convolution/test_convolution_modes.c - graph convolutions of products of every mode. */
#include "tests/ops/convolution/convolution_problems.h"

/* uvw and uvu with two channels of y: quickly compiled, even by slow compilers. */
static const clb_instruction little[] = {{0, 0, 1, CLB_UVW, 1, 1}, {1, 0, 0, CLB_UVU, 1, 1}};
static const clb_instruction walked[] = {
    {0, 0, 0, CLB_UVU, 1, 1},
    {0, 1, 1, CLB_UVU, 1, 1}}; /* except y, which is too long for a walk */

enum { LITTLE, LONG_Y, WALKED, OWN };
static const tensor_problem own[] = {
    [LITTLE] = LISTED("3x0e+5x1o", "2x1o", "5x1e+3x1o", little, LAYOUTS_OF(MUL_IR, IR_MUL, IR_MUL)),
    [LONG_Y] =
        LISTED("7x0e+9x1o", "1100x1o", "5x1o", single_uvw, LAYOUTS_OF(IR_MUL, MUL_IR, IR_MUL)),
    [WALKED] = LISTED("7x0e+9x1o", "0e+1o+1100x0e", "7x0e+7x1o", walked,
                      LAYOUTS_OF(IR_MUL, MUL_IR, IR_MUL))};
static const struct {
  int product; /* one of those above, or OWN + one of product() */
  double scale;
  bool bare, merged;
} list[] = {{LITTLE, 0.5, 0, 0},        {OWN + FEW, 0, 0, 0},    {OWN + MODES, -0.25, 0, 0},
            {OWN + NARROWEST, 0, 0, 0}, {OWN + MODES, 0, 1, 1},  {LONG_Y, 0, 0, 0},
            {WALKED, 0, 0, 0},          {OWN + MIXING, 0, 0, 1}, {OWN + WIDE, 0, 0, 0},
            {OWN + MANY, 0, 0, 1}};
enum { FIRST_WIDE = 8, LIST = sizeof list / sizeof *list };

static convolution_problem problem(int i, bool shared) {
  const int from = list[i].product;
  convolution_problem p = {.product = from < OWN ? own[from] : product(from - OWN),
                           .scale = list[i].scale};
  clb_tensor_product_desc *d = &p.product.desc;
  d->shared_weights = shared;
  if (from == OWN + MIXING) d->path_normalization = CLB_PATH_PATH;
  if (list[i].merged) d->layout_z = CLB_MERGED;
  if (list[i].bare)
    d->instructions = bare_modes, d->n_instructions = sizeof bare_modes / sizeof *bare_modes;
  return p;
}

static void products(void **state) {
  place *at = *state;
  for (int i = 0; i < many(at, 1, SANITIZED ? FIRST_WIDE : 1, at->gpu < 0 ? LIST : FIRST_WIDE); i++)
    for (int shared = 0; shared < many(at, 1, 2, 2); shared++) {
      const bool few = few_cases() || list[i].product == LONG_Y || list[i].product == WALKED;
      convolution_graph e = random_edges(11, 13, few ? 5 : i == 2 ? 40 : 14, 1);
      const convolution_problem p = problem(i, shared);
      convolution_agrees(at, &p, F64, false, F | B | (list[i].product == OWN + MANY ? 0 : D), &e,
                         at->gpu < 0 ? spacings : spacings + 2, at->gpu < 0 ? SPACINGS : 1);
      convolution_graph_free(&e);
    }
}

static void all_graphs(void **state) {
  for (int shared = 0; shared < 2; shared++) {
    const convolution_problem p = problem(0, shared);
    const tool_kernel kernel = {&p, F64, false};
    clb_op *op = op_with(context_of(*state), &tool_op_convolution, &kernel, F | B | D);
    for (int i = 0; i < GRAPHS; i++) {
      convolution_graph e = edges_of(i);
      for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
        convolves(op->ctx, &p, &kernel, op, (clb_pass)pass, &e, spacings + (i % 2 ? 0 : 2), 1);
      convolution_graph_free(&e);
    }
    clb_op_destroy(&op);
  }
}

static void types(void **state) {
  static const clb_dtype storages[] = {CLB_F32, CLB_F16, CLB_BF16, CLB_F32},
                         arithmetics[] = {CLB_F32, CLB_F32, CLB_F32, CLB_F64};
  convolution_graph hub = hub_edges(20, 30, 700, 500, 4);
  for (int i = 0; i < many(*state, 1, 2, 4); i++)
    for (int how = 0; how < 4; how++) {
      if (!many(*state, !how, how == (i + 3) % 4, 1)) continue;
      convolution_problem p = problem(0, how >> 1);
      p.workspace = how & 1 ? MIN_WORKSPACE : MAX_WORKSPACE;
      convolution_agrees(*state, &p, storages[i], arithmetics[i], how & 1,
                         F | B | (storages[i] == CLB_F32 ? D : 0), &hub,
                         spacings + (how & 1 ? 2 : 0), 1);
    }
  convolution_graph_free(&hub);
}

/* With vectors, and with and without adding to the outputs. */
static void vectors(void **state) {
  convolution_graph e = random_edges(11, 13, SANITIZED ? 14 : 40, 1);
  for (int adds = 0; adds < 2; adds++) {
    const convolution_problem p = {
        .product = {.kind = FULLY_CONNECTED, .x = "3x0e+5x1o", .y = SH2, .z = "5x0e+3x1o"},
        .vectors = true};
    convolution_agrees(*state, &p, F64, adds, F | B | D, &e, spacings + 2 * adds, 1);
  }
  convolution_graph_free(&e);
}

int main(void) {
  static const place_test tests[] = {{"products", products, BRISK},
                                     {"all_graphs", all_graphs, SLOW},
                                     {"types", types, SLOW},
                                     {"vectors", vectors, BRISK}};
  return RUN_CONVOLUTIONS("convolution_modes", tests);
}
