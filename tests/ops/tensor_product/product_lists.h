/* tests/ops/tensor_product/product_lists.h - lists of paths of every mode, for the tests of
   products and of their convolutions. */
#ifndef CLB_TESTS_OPS_TENSOR_PRODUCT_PRODUCT_LISTS_H
#define CLB_TESTS_OPS_TENSOR_PRODUCT_PRODUCT_LISTS_H

#include <stdio.h>

#include <clebsch/clebsch.h>

#include "tools/ops/tensor_product_problems.h"

/* Two into one output, with and without weights. */
static const clb_instruction tangled[] = {{2, 2, 1, CLB_UVU, 1, 0.5}, {0, 0, 0, CLB_UVU, 0, 1},
                                          {1, 1, 0, CLB_UVU, 1, 2},   {1, 0, 1, CLB_UVU, 1, 1},
                                          {2, 2, 1, CLB_UVU, 0, 1.5}, {2, 2, 3, CLB_UVU, 1, 1},
                                          {0, 1, 1, CLB_UVU, 1, 1}};
static const clb_instruction weightless[] = {{0, 0, 0, CLB_UVU, 0, 1},
                                             {0, 1, 1, CLB_UVU, 0, 1},
                                             {1, 1, 0, CLB_UVU, 0, 1},
                                             {1, 2, 1, CLB_UVU, 0, 1}};

/* Every mode, few channels, some outputs shared and one that nothing reaches; uuw with and without
   weights. */
#define MODES_X "4x0e+3x1o+4x1o+2x2e"
#define MODES_Y "4x0e+2x1o+4x1o+3x1o+1x2e"
#define MODES_Z "5x2e+3x0e+3x1o+1x1e+4x1o+6x1e+2x3o"
static const clb_instruction all_modes[] = {
    {1, 1, 0, CLB_UVW, 1, 1},      {3, 0, 0, CLB_UVW, 1, 0.7},   {1, 1, 1, CLB_UVU, 1, 1},
    {3, 3, 2, CLB_UVV, 1, 1.3},    {0, 2, 2, CLB_UUW, 1, 1},     {2, 2, 3, CLB_UUW, 0, 1},
    {2, 0, 4, CLB_UUU, 1, 1},      {1, 1, 5, CLB_UVUV, 1, 0.4},  {2, 2, 5, CLB_UVU_HALF, 1, 1},
    {2, 2, 0, CLB_UVW_HALF, 1, 1}, {0, 0, 1, CLB_UVW_HALF, 1, 1}};
static const clb_instruction bare_modes[] = {
    {1, 1, 1, CLB_UVU, 0, 1}, {3, 3, 2, CLB_UVV, 0, 1.3},  {2, 2, 3, CLB_UUW, 0, 1},
    {2, 0, 4, CLB_UUU, 0, 1}, {1, 1, 5, CLB_UVUV, 0, 0.4}, {2, 2, 5, CLB_UVU_HALF, 0, 1}};

/* Some modes: quickly compiled. */
static const clb_instruction few_modes[] = {{1, 1, 0, CLB_UVW, 1, 1},
                                            {3, 3, 2, CLB_UVV, 0, 1.3},
                                            {1, 1, 5, CLB_UVUV, 1, 0.4},
                                            {2, 2, 5, CLB_UVU_HALF, 1, 1}};

static const clb_instruction single_uvw[] = {{0, 0, 0, CLB_UVW, 1, 1}};

/* Every mode to an output of its own, with more channels than a sub-group has lanes. */
#define WIDE_X "37x1o+35x0e+9x1o"
#define WIDE_Y "3x1o+37x1o+5x0e+9x1o"
#define WIDE_Z "37x1e+37x0e+34x0e+37x2e+45x1o+36x1e+33x2e+33x1o"
static const clb_instruction wide_modes[] = {
    {0, 0, 0, CLB_UVU, 1, 1},      {2, 1, 1, CLB_UVV, 1, 1},  {0, 1, 2, CLB_UUW, 1, 1},
    {0, 1, 3, CLB_UUU, 1, 1},      {2, 2, 4, CLB_UVUV, 1, 1}, {2, 3, 5, CLB_UVU_HALF, 1, 1},
    {2, 3, 6, CLB_UVW_HALF, 1, 1}, {1, 0, 7, CLB_UVW, 1, 1}};

/* Weights that mix channels, which are matrix products where they are shared; some that are not;
   and so many that rows are processed in parts. */
#define MIXING_X "24x1o+12x0e"
#define MIXING_Y "24x1o+12x0e"
#define MIXING_Z "9x2e+8x1e+8x0e+12x0e+2x0e+2x3o"
static const clb_instruction mixing_modes[] = {
    {0, 0, 0, CLB_UVW, 1, 1},     {0, 0, 1, CLB_UVW, 1, 1}, {1, 1, 2, CLB_UUW, 1, 1},
    {1, 1, 3, CLB_UUU, 1, 1},     {1, 1, 2, CLB_UVW, 1, 1}, {1, 1, 4, CLB_UVW, 1, 1},
    {0, 0, 0, CLB_UVW_HALF, 1, 1}};

/* Multiplicities 0 and 1. */
#define EDGES_X "1x0e+0x1o+1x1o"
#define EDGES_Y "1x1o+0x0e"
#define EDGES_Z "1x1o+0x1e+2x0e+1x1e+1x2e"
static const clb_instruction edge_modes[] = {
    {0, 0, 0, CLB_UVW, 1, 1},  {2, 0, 1, CLB_UVU_HALF, 1, 1}, {1, 0, 3, CLB_UVW, 1, 1},
    {2, 0, 4, CLB_UVUV, 1, 1}, {2, 0, 2, CLB_UUW, 1, 1},      {2, 1, 0, CLB_UVU, 1, 1},
    {2, 0, 3, CLB_UUU, 0, 1},  {2, 0, 2, CLB_UVW_HALF, 1, 1}};

/* Every mode for every l of 2 ... 4: some 10,000 non-zeros. */
static inline void many_paths_of_all_modes(clb_instructions *f) {
  static const int mul_z[] = {2, 3, 3, 2, 3, 9, 3, 2};
  *f = (clb_instructions){.irreps_x = "3x2e+3x3o+3x4e", .irreps_y = "3x2e+3x3o+3x4e"};
  size_t used = 0;
  for (int l3 = 2; l3 <= 4; l3++)
    for (int mode = CLB_UVW; mode <= CLB_UVW_HALF; mode++)
      for (int odd = 0; odd < 2; odd++) {
        int out = (l3 - 2) * 16 + mode * 2 + odd;
        used += (size_t)snprintf(f->irreps_z + used, sizeof f->irreps_z - used, "%s%dx%d%c",
                                 out ? "+" : "", mul_z[mode], l3, odd ? 'o' : 'e');
        for (int in1 = 0; in1 < 3; in1++)
          for (int in2 = 0; in2 < 3; in2++)
            if ((in1 + in2) % 2 == odd)
              f->instructions[f->n_instructions++] =
                  (clb_instruction){in1, in2, out, (clb_mode)mode, mode != CLB_UVV, 1};
      }
}

#endif
