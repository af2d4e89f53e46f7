/* product_problems.h - the products that the tests of the op run. */
#ifndef CLB_PRODUCT_PROBLEMS_H
#define CLB_PRODUCT_PROBLEMS_H

#include "product_arrays.h"

#include "../tools/tensor_product_problems.h"

/* Two into one output, with and without weights. */
static const clb_instruction tangled[] = {{2, 2, 1, CLB_UVU, 1, 0.5}, {0, 0, 0, CLB_UVU, 0, 1}, {1, 1, 0, CLB_UVU, 1, 2}, {1, 0, 1, CLB_UVU, 1, 1},
                                          {2, 2, 1, CLB_UVU, 0, 1.5}, {2, 2, 3, CLB_UVU, 1, 1}, {0, 1, 1, CLB_UVU, 1, 1}};
static const clb_instruction weightless[] = {{0, 0, 0, CLB_UVU, 0, 1}, {0, 1, 1, CLB_UVU, 0, 1}, {1, 1, 0, CLB_UVU, 0, 1}, {1, 2, 1, CLB_UVU, 0, 1}};

/* Every mode, few channels, some outputs shared and one that nothing reaches; uuw with and without weights. */
#define MODES_X "4x0e+3x1o+4x1o+2x2e"
#define MODES_Y "4x0e+2x1o+4x1o+3x1o+1x2e"
#define MODES_Z "5x2e+3x0e+3x1o+1x1e+4x1o+6x1e+2x3o"
static const clb_instruction all_modes[] = {{1, 1, 0, CLB_UVW, 1, 1},  {3, 0, 0, CLB_UVW, 1, 0.7},  {1, 1, 1, CLB_UVU, 1, 1},      {3, 3, 2, CLB_UVV, 1, 1.3},
                                            {0, 2, 2, CLB_UUW, 1, 1},  {2, 2, 3, CLB_UUW, 0, 1},    {2, 0, 4, CLB_UUU, 1, 1},      {1, 1, 5, CLB_UVUV, 1, 0.4},
                                            {2, 2, 5, CLB_UVU_HALF, 1, 1}, {2, 2, 0, CLB_UVW_HALF, 1, 1}, {0, 0, 1, CLB_UVW_HALF, 1, 1}};
static const clb_instruction bare_modes[] = {{1, 1, 1, CLB_UVU, 0, 1}, {3, 3, 2, CLB_UVV, 0, 1.3},  {2, 2, 3, CLB_UUW, 0, 1},
                                             {2, 0, 4, CLB_UUU, 0, 1}, {1, 1, 5, CLB_UVUV, 0, 0.4}, {2, 2, 5, CLB_UVU_HALF, 0, 1}};

/* Some modes: soon compiled. */
static const clb_instruction few_modes[] = {{1, 1, 0, CLB_UVW, 1, 1}, {3, 3, 2, CLB_UVV, 0, 1.3}, {1, 1, 5, CLB_UVUV, 1, 0.4}, {2, 2, 5, CLB_UVU_HALF, 1, 1}};

static const clb_instruction single_uvw[] = {{0, 0, 0, CLB_UVW, 1, 1}};

/* Every mode to an output of its own, with more channels than a sub-group has lanes. */
#define WIDE_X "37x1o+35x0e+9x1o"
#define WIDE_Y "3x1o+37x1o+5x0e+9x1o"
#define WIDE_Z "37x1e+37x0e+34x0e+37x2e+45x1o+36x1e+33x2e+33x1o"
static const clb_instruction wide_modes[] = {{0, 0, 0, CLB_UVU, 1, 1},  {2, 1, 1, CLB_UVV, 1, 1},      {0, 1, 2, CLB_UUW, 1, 1},      {0, 1, 3, CLB_UUU, 1, 1},
                                             {2, 2, 4, CLB_UVUV, 1, 1}, {2, 3, 5, CLB_UVU_HALF, 1, 1}, {2, 3, 6, CLB_UVW_HALF, 1, 1}, {1, 0, 7, CLB_UVW, 1, 1}};

/* Weights that mix channels, which are matrix products where they are shared; some that are not; and so many that rows go by parts. */
#define MIXING_X "24x1o+12x0e"
#define MIXING_Y "24x1o+12x0e"
#define MIXING_Z "9x2e+8x1e+8x0e+12x0e+2x0e+2x3o"
static const clb_instruction mixing_modes[] = {{0, 0, 0, CLB_UVW, 1, 1}, {0, 0, 1, CLB_UVW, 1, 1}, {1, 1, 2, CLB_UUW, 1, 1},   {1, 1, 3, CLB_UUU, 1, 1},
                                               {1, 1, 2, CLB_UVW, 1, 1}, {1, 1, 4, CLB_UVW, 1, 1}, {0, 0, 0, CLB_UVW_HALF, 1, 1}};

/* Multiplicities 0 and 1. */
#define EDGES_X "1x0e+0x1o+1x1o"
#define EDGES_Y "1x1o+0x0e"
#define EDGES_Z "1x1o+0x1e+2x0e+1x1e+1x2e"
static const clb_instruction edge_modes[] = {{0, 0, 0, CLB_UVW, 1, 1},    {2, 0, 1, CLB_UVU_HALF, 1, 1}, {1, 0, 3, CLB_UVW, 1, 1}, {2, 0, 4, CLB_UVUV, 1, 1},
                                             {2, 0, 2, CLB_UUW, 1, 1},    {2, 1, 0, CLB_UVU, 1, 1},      {2, 0, 3, CLB_UUU, 0, 1}, {2, 0, 2, CLB_UVW_HALF, 1, 1}};

/* Every mode for every l of 2 ... 4: some 10,000 non-zeros. */
static inline void many_paths_of_all_modes(clb_instructions *f) {
  static const int mul_z[] = {2, 3, 3, 2, 3, 9, 3, 2};
  *f = (clb_instructions){.irreps_x = "3x2e+3x3o+3x4e", .irreps_y = "3x2e+3x3o+3x4e"};
  size_t used = 0;
  for (int l3 = 2; l3 <= 4; l3++)
    for (int mode = CLB_UVW; mode <= CLB_UVW_HALF; mode++)
      for (int odd = 0; odd < 2; odd++) {
        int out = (l3 - 2) * 16 + mode * 2 + odd;
        used += (size_t)snprintf(f->irreps_z + used, sizeof f->irreps_z - used, "%s%dx%d%c", out ? "+" : "", mul_z[mode], l3, odd ? 'o' : 'e');
        for (int in1 = 0; in1 < 3; in1++)
          for (int in2 = 0; in2 < 3; in2++)
            if ((in1 + in2) % 2 == odd) f->instructions[f->n_instructions++] = (clb_instruction){in1, in2, out, (clb_mode)mode, mode != CLB_UVV, 1};
      }
}

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
    {"3x0e+7x1o+3x1e+1x2o", SH2, NULL, BOTH2("1"), NULL, CLB_AS_FOUND, CLB_MUL_IR, CLB_MUL_IR, CLB_MUL_IR, 0},
    {"32x2e", "3o", NULL, "3o", NULL, CLB_SORTED, CLB_IR_MUL, CLB_MUL_IR, CLB_IR_MUL, 0},
    {"5x0e+5x1o+5x1o+2x3o", SH2, "5x0e+5x1o+3x2e+5x3o", NULL, LIST(tangled), CLB_MUL_IR, CLB_IR_MUL, CLB_MUL_IR, 0},
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
    {"128x0e+128x1o+128x2e", SH3, NULL, SH3, NULL, CLB_SORTED, CLB_IR_MUL, CLB_IR_MUL, CLB_IR_MUL, 0},
    {BOTH4("5"), SH4, NULL, BOTH4("1"), NULL, CLB_AS_FOUND, CLB_IR_MUL, CLB_IR_MUL, CLB_IR_MUL, 0},
    {NULL, NULL, NULL, NULL, NULL, 0, CLB_MUL_IR, CLB_IR_MUL, CLB_MUL_IR, 0},
};
enum { CHANNELS, MIXED, ONE_PATH, TANGLED, WEIGHTLESS, MODES, SHARED, FEW, FEW_SHARED, SINGLE, SINGLE_SHARED, WIDE, MIXING, EDGES, MACE_LARGE, MANY_CHANNEL_WISE, MANY, PRODUCTS };

/* In f64, all passes. */
static inline clb_tensor_product_desc describe(device *d, int i) {
  static clb_instructions found[PRODUCTS];
  clb_tensor_product_desc desc = {.irreps_x = products[i].x, .irreps_y = products[i].y, .irreps_z = products[i].z, .instructions = products[i].instructions,
                                  .n_instructions = (int)products[i].n, .layout_x = products[i].layout_x, .layout_y = products[i].layout_y,
                                  .layout_z = products[i].layout_z, .shared_weights = products[i].shared, .storage = CLB_F64, .arithmetic = CLB_F64, .passes = 15};
  if (i != MANY && !products[i].filter) return desc;
  if (i == MANY) many_paths_of_all_modes(&found[i]);
  else OK(d->ctx, clb_channel_wise(context_of(d), products[i].x, products[i].y, products[i].filter, (clb_path_order)products[i].n, &found[i]));
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
