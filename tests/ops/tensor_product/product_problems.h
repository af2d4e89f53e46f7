/* tests/ops/tensor_product/product_problems.h - the products that the tests of the op run. */
#ifndef CLB_TESTS_OPS_TENSOR_PRODUCT_PRODUCT_PROBLEMS_H
#define CLB_TESTS_OPS_TENSOR_PRODUCT_PRODUCT_PROBLEMS_H

#include "tests/ops/tensor_product/product_arrays.h"
#include "tests/ops/tensor_product/product_lists.h"

/* A filter: channel-wise, in that order of paths. */
#define LIST(i) i, sizeof i / sizeof *i
static const struct {
  const char *x, *y, *z, *filter;
  const clb_instruction *instructions;
  size_t n;
  clb_layout layout_x, layout_y, layout_z;
  int shared;
} products[] = {
    {"16x0e+8x1o+5x2e", SH3, NULL, SH3, NULL, CLB_SORTED, CLB_IR_MUL, CLB_IR_MUL, CLB_IR_MUL, 0},
    {"3x0e+7x1o+3x1e+1x2o", SH2, NULL, BOTH2("1"), NULL, CLB_AS_FOUND, CLB_MUL_IR, CLB_MUL_IR,
     CLB_MUL_IR, 0},
    {"32x2e", "3o", NULL, "3o", NULL, CLB_SORTED, CLB_IR_MUL, CLB_MUL_IR, CLB_IR_MUL, 0},
    {"5x0e+5x1o+5x1o+2x3o", SH2, "5x0e+5x1o+3x2e+5x3o", NULL, LIST(tangled), CLB_MUL_IR, CLB_IR_MUL,
     CLB_MUL_IR, 0},
    {"7x0e+7x1o", SH2, "7x0e+7x1o", NULL, LIST(weightless), CLB_IR_MUL, CLB_IR_MUL, CLB_MUL_IR, 0},
    {MODES_X, MODES_Y, MODES_Z, NULL, LIST(all_modes), CLB_MUL_IR, CLB_IR_MUL, CLB_IR_MUL, 0},
    {MODES_X, MODES_Y, MODES_Z, NULL, LIST(all_modes), CLB_MUL_IR, CLB_IR_MUL, CLB_IR_MUL, 1},
    {MODES_X, MODES_Y, MODES_Z, NULL, LIST(few_modes), CLB_IR_MUL, CLB_MUL_IR, CLB_MUL_IR, 0},
    {MODES_X, MODES_Y, MODES_Z, NULL, LIST(few_modes), CLB_IR_MUL, CLB_MUL_IR, CLB_MUL_IR, 1},
    {"3x1o", "2x1o", "5x2e", NULL, single_uvw, 1, CLB_IR_MUL, CLB_MUL_IR, CLB_MUL_IR, 0},
    {"3x1o", "2x1o", "5x2e", NULL, single_uvw, 1, CLB_IR_MUL, CLB_MUL_IR, CLB_MUL_IR, 1},
    {WIDE_X, WIDE_Y, WIDE_Z, NULL, LIST(wide_modes), CLB_IR_MUL, CLB_IR_MUL, CLB_IR_MUL, 0},
    {MIXING_X, MIXING_Y, MIXING_Z, NULL, LIST(mixing_modes), CLB_MUL_IR, CLB_IR_MUL, CLB_IR_MUL, 1},
    {EDGES_X, EDGES_Y, EDGES_Z, NULL, LIST(edge_modes), CLB_IR_MUL, CLB_MUL_IR, CLB_IR_MUL, 0},
    {"128x0e+128x1o+128x2e", SH3, NULL, SH3, NULL, CLB_SORTED, CLB_IR_MUL, CLB_IR_MUL, CLB_IR_MUL,
     0},
    {BOTH4("5"), SH4, NULL, BOTH4("1"), NULL, CLB_AS_FOUND, CLB_IR_MUL, CLB_IR_MUL, CLB_IR_MUL, 0},
    {NULL, NULL, NULL, NULL, NULL, 0, CLB_MUL_IR, CLB_IR_MUL, CLB_MUL_IR, 0},
};
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
  EDGES,
  MACE_LARGE,
  MANY_CHANNEL_WISE,
  MANY,
  PRODUCTS
};

/* In f64, all passes. */
static inline clb_tensor_product_desc describe(device *d, int i) {
  static clb_instructions found[PRODUCTS];
  clb_tensor_product_desc desc = {.irreps_x = products[i].x,
                                  .irreps_y = products[i].y,
                                  .irreps_z = products[i].z,
                                  .instructions = products[i].instructions,
                                  .n_instructions = (int)products[i].n,
                                  .layout_x = products[i].layout_x,
                                  .layout_y = products[i].layout_y,
                                  .layout_z = products[i].layout_z,
                                  .shared_weights = products[i].shared,
                                  .storage = CLB_F64,
                                  .arithmetic = CLB_F64,
                                  .passes = 15};
  if (i != MANY && !products[i].filter) return desc;
  if (i == MANY) many_paths_of_all_modes(&found[i]);
  else
    OK(d->ctx, clb_channel_wise(context_of(d), products[i].x, products[i].y, products[i].filter,
                                (clb_path_order)products[i].n, &found[i]));
  desc.irreps_x = found[i].irreps_x;
  desc.irreps_y = found[i].irreps_y;
  desc.irreps_z = found[i].irreps_z;
  desc.instructions = found[i].instructions;
  desc.n_instructions = found[i].n_instructions;
  return desc;
}

static inline test_product *get(device *d, int i) {
  clb_tensor_product_desc desc = describe(d, i);
  return made_product(d, i, &desc);
}

#endif
