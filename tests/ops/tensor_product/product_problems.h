/* tests/ops/tensor_product/product_problems.h - the products that the tests of the op run. */
#ifndef CLB_TESTS_OPS_TENSOR_PRODUCT_PRODUCT_PROBLEMS_H
#define CLB_TESTS_OPS_TENSOR_PRODUCT_PRODUCT_PROBLEMS_H

#include "tests/ops/op_runs.h"
#include "tests/ops/places.h"
#include "tests/ops/tensor_product/product_lists.h"

#include "tools/ops/tensor_product_tool.h"

/* Channel-wise, in that order of paths; fully connected; with a list of paths. */
#define LAYOUTS_OF(lx, ly, lz) .layout_x = CLB_##lx, .layout_y = CLB_##ly, .layout_z = CLB_##lz
#define FOUND(a, b, filter, order_, ...)                                                           \
  {                                                                                                \
    .x = a, .y = b, .z = filter, .order = order_, .desc = { __VA_ARGS__ }                          \
  }
#define LISTED(a, b, c, list, ...)                                                                 \
  {                                                                                                \
    .kind = OTHER_PRODUCT, .desc = {                                                               \
      .irreps_x = a,                                                                               \
      .irreps_y = b,                                                                               \
      .irreps_z = c,                                                                               \
      .instructions = list,                                                                        \
      .n_instructions = sizeof list / sizeof *list,                                                \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
  }
#define ONE_ROW .shared_weights = 1

enum {
  CHANNELS,
  MIXED,
  ONE_PATH,
  TANGLED,
  WEIGHTLESS,
  MODES,
  SHARED,
  FEW,
  FEW_SHARED,
  SINGLE,
  SINGLE_SHARED,
  WIDE,
  MIXING,
  NARROWEST,
  MANY_CHANNEL_WISE,
  MANY
};
static const tensor_problem all_products[] = {
    [CHANNELS] = FOUND("16x0e+8x1o+5x2e", SH3, SH3, CLB_SORTED, LAYOUTS_OF(IR_MUL, IR_MUL, IR_MUL)),
    [MIXED] = FOUND("3x0e+7x1o+3x1e+1x2o", SH2, BOTH2("1"), CLB_AS_FOUND,
                    LAYOUTS_OF(MUL_IR, MUL_IR, MUL_IR)),
    [ONE_PATH] = FOUND("32x2e", "3o", "3o", CLB_SORTED, LAYOUTS_OF(IR_MUL, MUL_IR, IR_MUL)),
    [TANGLED] = LISTED("5x0e+5x1o+5x1o+2x3o", SH2, "5x0e+5x1o+3x2e+5x3o", tangled,
                       LAYOUTS_OF(MUL_IR, IR_MUL, MUL_IR)),
    [WEIGHTLESS] =
        LISTED("7x0e+7x1o", SH2, "7x0e+7x1o", weightless, LAYOUTS_OF(IR_MUL, IR_MUL, MUL_IR)),
    [MODES] = LISTED(MODES_X, MODES_Y, MODES_Z, all_modes, LAYOUTS_OF(MUL_IR, IR_MUL, IR_MUL)),
    [SHARED] =
        LISTED(MODES_X, MODES_Y, MODES_Z, all_modes, LAYOUTS_OF(MUL_IR, IR_MUL, IR_MUL), ONE_ROW),
    [FEW] = LISTED(MODES_X, MODES_Y, MODES_Z, few_modes, LAYOUTS_OF(IR_MUL, MUL_IR, MUL_IR)),
    [FEW_SHARED] =
        LISTED(MODES_X, MODES_Y, MODES_Z, few_modes, LAYOUTS_OF(IR_MUL, MUL_IR, MUL_IR), ONE_ROW),
    [SINGLE] = LISTED("3x1o", "2x1o", "5x2e", single_uvw, LAYOUTS_OF(IR_MUL, MUL_IR, MUL_IR)),
    [SINGLE_SHARED] =
        LISTED("3x1o", "2x1o", "5x2e", single_uvw, LAYOUTS_OF(IR_MUL, MUL_IR, MUL_IR), ONE_ROW),
    [WIDE] = LISTED(WIDE_X, WIDE_Y, WIDE_Z, wide_modes, LAYOUTS_OF(IR_MUL, IR_MUL, IR_MUL)),
    [MIXING] = LISTED(MIXING_X, MIXING_Y, MIXING_Z, mixing_modes,
                      LAYOUTS_OF(MUL_IR, IR_MUL, IR_MUL), ONE_ROW),
    [NARROWEST] = LISTED(EDGES_X, EDGES_Y, EDGES_Z, edge_modes, LAYOUTS_OF(IR_MUL, MUL_IR, IR_MUL)),
    [MANY_CHANNEL_WISE] =
        FOUND(BOTH4("5"), SH4, BOTH4("1"), CLB_AS_FOUND, LAYOUTS_OF(IR_MUL, IR_MUL, IR_MUL)),
};

static inline tensor_problem product(int i) {
  static clb_instructions many_paths;
  if (i != MANY) return all_products[i];
  many_paths_of_all_modes(&many_paths);
  return (tensor_problem){.kind = OTHER_PRODUCT,
                          .desc = {.irreps_x = many_paths.irreps_x,
                                   .irreps_y = many_paths.irreps_y,
                                   .irreps_z = many_paths.irreps_z,
                                   .instructions = many_paths.instructions,
                                   .n_instructions = many_paths.n_instructions,
                                   LAYOUTS_OF(MUL_IR, IR_MUL, MUL_IR)}};
}

static inline void set_layouts(tensor_problem *p, int bits) {
  p->desc.layout_x = bits & 1 ? CLB_IR_MUL : CLB_MUL_IR;
  p->desc.layout_y = bits & 2 ? CLB_IR_MUL : CLB_MUL_IR;
  p->desc.layout_z = bits & 4 ? CLB_IR_MUL : CLB_MUL_IR;
}

/* Dense rows. */
static inline void product_agrees(place *at, const tensor_problem *p, clb_dtype storage,
                                  clb_dtype arithmetic, bool accumulate, unsigned passes,
                                  int64_t rows) {
  const tool_kernel kernel = {p, storage, arithmetic, accumulate};
  const tool_data data = {.rows = rows};
  expect_passes(context_of(at), &tool_op_tensor_product, &kernel, passes, &data);
}

/* Passes as bits. */
enum { F = 1 << CLB_FORWARD, B = 1 << CLB_BACKWARD, D = 1 << CLB_DOUBLE_BACKWARD, T = 8 };

#endif
