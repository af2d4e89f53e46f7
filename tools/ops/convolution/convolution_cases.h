/* tools/ops/convolution/convolution_cases.h - what `clebsch check` runs of the graph convolution.
 */
#ifndef CLB_TOOLS_OPS_CONVOLUTION_CASES_H
#define CLB_TOOLS_OPS_CONVOLUTION_CASES_H

#include "tools/ops/convolution/convolution_tool.h"

#define FIRST CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD)

/* A channel-wise product on a synthetic graph, all layouts l; FIELDS: some fields of the
   description; the rest are fields of the problem. */
#define FIELDS(...) __VA_ARGS__
#define CONVOLUTION(graph_, a, b, f, l, fields, ...)                                               \
  &(const convolution_problem) {                                                                   \
    .product = {.x = a,                                                                            \
                .y = b,                                                                            \
                .z = f,                                                                            \
                .desc = {.layout_x = l, .layout_y = l, .layout_z = l, fields}},                    \
    .made = MADE_##graph_, __VA_ARGS__                                                             \
  }
#define PLAIN(graph_, a, b, f, l) CONVOLUTION(graph_, a, b, f, l, FIELDS(.passes = 0), .scale = 0)

/* A product of that kind, computed through messages of edges. */
#define MESSAGES(graph_, kind_, a, b, f, fields, ...)                                              \
  &(const convolution_problem) {                                                                   \
    .product = {.kind = kind_,                                                                     \
                .x = a,                                                                            \
                .y = b,                                                                            \
                .z = f,                                                                            \
                .desc = {.layout_x = CLB_IR_MUL,                                                   \
                         .layout_y = CLB_IR_MUL,                                                   \
                         .layout_z = CLB_IR_MUL,                                                   \
                         fields}},                                                                 \
    .made = MADE_##graph_, __VA_ARGS__                                                             \
  }
#define EDGE_WEIGHTS FIELDS(.passes = 0)
#define ONE_ROW FIELDS(.shared_weights = 1)

/* Several paths to one output, some without weights, mixed layouts; an output and an input that no
   path uses. */
static const clb_instruction tangled[] = {{2, 2, 1, CLB_UVU, 1, 0.5}, {0, 0, 0, CLB_UVU, 0, 1},
                                          {1, 1, 0, CLB_UVU, 1, 2},   {1, 0, 1, CLB_UVU, 1, 1},
                                          {2, 2, 1, CLB_UVU, 0, 1.5}, {2, 2, 3, CLB_UVU, 1, 1},
                                          {0, 1, 1, CLB_UVU, 1, 1}};
#define TANGLED(graph_, lx, ly, lz, ...)                                                           \
  &(const convolution_problem) {                                                                   \
    .product = {.kind = OTHER_PRODUCT,                                                             \
                .desc = {.irreps_x = "5x0e+5x1o+5x1o+2x3o",                                        \
                         .irreps_y = SH2,                                                          \
                         .irreps_z = "5x0e+5x1o+3x2e+5x3o",                                        \
                         .instructions = tangled,                                                  \
                         .n_instructions = sizeof tangled / sizeof *tangled,                       \
                         .layout_x = lx,                                                           \
                         .layout_y = ly,                                                           \
                         .layout_z = lz}},                                                         \
    .made = MADE_##graph_, __VA_ARGS__                                                             \
  }

static const tool_case cases[] = {
    /* Numbers of channels: fewer than lanes, equal, more; several multiplicities. */
    {{PLAIN(RANDOM, "1x0e", "0e", "0e", CLB_IR_MUL), F32, 0},
     {{1, LAYOUT_DENSE, 0}, {33, LAYOUT_DENSE, 0}},
     0},
    {{PLAIN(RANDOM, "7x0e+7x1o", SH1, SH2, CLB_IR_MUL), F32, 0},
     {{1, LAYOUT_DENSE, 0}, {131, LAYOUT_PADDED, 0}, {131, LAYOUT_REPEAT, 0}},
     0},
    {{PLAIN(SHUFFLED, "7x0e+7x1o", SH2, SH2, CLB_MUL_IR), F64, 0},
     {{131, LAYOUT_DENSE, 0}, {67, LAYOUT_PADDED, 0}},
     0},
    {{PLAIN(RECTANGULAR, "16x0e+8x1o+4x2e", SH2, SH3, CLB_IR_MUL), F32, 0},
     {{300, LAYOUT_DENSE, 0}},
     0},
    {{PLAIN(ISOLATED, "33x0e+17x1o", SH2, SH2, CLB_IR_MUL), F32, 0},
     {{97, LAYOUT_DENSE, 0}, {97, LAYOUT_PADDED, 0}},
     FIRST},
    {{PLAIN(ISOLATED, "32x0e+32x1o", SH3, SH2, CLB_MUL_IR), F32, 0},
     {{97, LAYOUT_DENSE, 0}},
     FIRST},
    {{PLAIN(RANDOM, "128x0e+64x1o+32x2e", SH2, SH2, CLB_IR_MUL), F32, 0},
     {{65, LAYOUT_DENSE, 0}},
     FIRST},
    {{PLAIN(RANDOM, "64x0e+64x1o", SH2, SH2, CLB_IR_MUL), F64, 0}, {{65, LAYOUT_DENSE, 0}}, 0},
    {{PLAIN(RECTANGULAR, "89x0e", SH3, SH3, CLB_IR_MUL), F32, 0}, {{131, LAYOUT_DENSE, 0}}, FIRST},
    {{PLAIN(RANDOM, BOTH1("32"), SH1, BOTH1("1"), CLB_IR_MUL), F32, 0},
     {{131, LAYOUT_DENSE, 0}},
     FIRST},
    {{PLAIN(RANDOM, "33x2e", "1o", "1x3o", CLB_MUL_IR), F32, 0}, {{67, LAYOUT_DENSE, 0}}, 0},
    /* Long rows, which are split; workspaces for a part of the edges. */
    {{PLAIN(HUB, "5x0e+3x1o", SH1, SH1, CLB_IR_MUL), F32, 0},
     {{1000, LAYOUT_DENSE, 0}, {9001, LAYOUT_PADDED, 0}},
     0},
    {{CONVOLUTION(HUB, "4x0e+2x1o", SH1, SH1, CLB_IR_MUL, FIELDS(.passes = 0),
                  .workspace = MIN_WORKSPACE),
      F32, 0},
     {{20000, LAYOUT_DENSE, 0}},
     0},
    {{CONVOLUTION(SHUFFLED, "3x0e+1x1o", SH1, SH1, CLB_MUL_IR, FIELDS(.passes = 0),
                  .workspace = MIN_WORKSPACE),
      F64, 1},
     {{20000, LAYOUT_DENSE, 0}},
     0},
    /* Storage, arithmetic, accumulation, scales. */
    {{PLAIN(RANDOM, "32x0e+32x1o", SH2, SH2, CLB_IR_MUL), F16, 0}, {{131, LAYOUT_DENSE, 0}}, 0},
    {{PLAIN(HUB, "16x0e+8x1o", SH2, SH2, CLB_IR_MUL), BF16, 1}, {{300, LAYOUT_PADDED, 0}}, 0},
    {{PLAIN(RANDOM, "16x0e+8x1o", SH2, SH2, CLB_IR_MUL), CLB_F32, CLB_F64, 0},
     {{131, LAYOUT_DENSE, 0}},
     FIRST},
    {{CONVOLUTION(HUB, "9x0e+9x1o", SH2, SH2, CLB_IR_MUL, FIELDS(.passes = 0), .scale = 0.25), F32,
      1},
     {{300, LAYOUT_DENSE, 0}},
     0},
    {{CONVOLUTION(HUB, "9x0e+5x1o", SH1, SH2, CLB_MUL_IR, FIELDS(.passes = 0), .scale = -3), F64,
      1},
     {{300, LAYOUT_DENSE, 0}},
     0},
    /* Atomics. */
    {{CONVOLUTION(HUB, "9x0e+9x1o", SH2, SH2, CLB_IR_MUL, FIELDS(.passes = 0), .atomics = true),
      F32, 0},
     {{300, LAYOUT_DENSE, 0}, {300, LAYOUT_PADDED, 0}},
     0},
    {{CONVOLUTION(ISOLATED, "33x0e+5x1o", SH1, SH1, CLB_MUL_IR, FIELDS(.passes = 0),
                  .atomics = true),
      F64, 1},
     {{131, LAYOUT_DENSE, 0}},
     0},
    /* Derivatives by some operands, with some incoming gradients. */
    {{CONVOLUTION(RANDOM, "9x0e+9x1o", SH2, SH2, CLB_IR_MUL, FIELDS(.gradients = CLB_OPERAND_X),
                  .scale = 0),
      F32, 0},
     {{131, LAYOUT_DENSE, 0}},
     0},
    {{CONVOLUTION(RANDOM, "9x0e+9x1o", SH2, SH2, CLB_IR_MUL, FIELDS(.gradients = CLB_OPERAND_Y),
                  .scale = 0),
      F32, 0},
     {{131, LAYOUT_DENSE, 0}},
     0},
    {{CONVOLUTION(HUB, "9x0e+9x1o", SH2, SH2, CLB_IR_MUL,
                  FIELDS(.gradients = CLB_OPERAND_W | CLB_OPERAND_Z), .scale = 0),
      F32, 0},
     {{300, LAYOUT_DENSE, 0}},
     0},
    {{CONVOLUTION(RANDOM, "33x0e+5x1o", SH2, SH2, CLB_IR_MUL,
                  FIELDS(.gradients = CLB_OPERAND_X | CLB_OPERAND_Y, .incoming = CLB_OPERAND_Y),
                  .scale = 0),
      F32, 0},
     {{131, LAYOUT_DENSE, 0}},
     0},
    {{CONVOLUTION(RANDOM, "9x0e+9x1o", SH2, SH2, CLB_MUL_IR,
                  FIELDS(.incoming = CLB_OPERAND_X | CLB_OPERAND_W), .scale = 0),
      F64, 0},
     {{131, LAYOUT_DENSE, 0}},
     CLB_PASS_BIT(CLB_DOUBLE_BACKWARD)},
    /* Weights from a table of splines. */
    {{CONVOLUTION(RANDOM, "9x0e+9x1o", SH2, SH2, CLB_IR_MUL, FIELDS(.passes = 0), .table = true),
      F32, 0},
     {{131, LAYOUT_DENSE, 0}},
     0},
    {{CONVOLUTION(HUB, "33x0e+5x1o", SH1, SH2, CLB_MUL_IR, FIELDS(.passes = 0), .table = true), F64,
      1},
     {{300, LAYOUT_PADDED, 0}},
     0},
    {{CONVOLUTION(ISOLATED, "64x0e+64x1o", SH2, SH2, CLB_IR_MUL,
                  FIELDS(.gradients = CLB_OPERAND_X | CLB_OPERAND_W), .table = true),
      F32, 0},
     {{97, LAYOUT_DENSE, 0}},
     0},
    /* y, and lengths, from vectors. */
    {{CONVOLUTION(RANDOM, "9x0e+9x1o", SH2, SH2, CLB_IR_MUL, FIELDS(.passes = 0), .vectors = true),
      F32, 0},
     {{131, LAYOUT_DENSE, 0}, {131, LAYOUT_REPEAT, 0}},
     0},
    {{CONVOLUTION(HUB, "5x0e+3x1o", SH3, SH2, CLB_MUL_IR, FIELDS(.passes = 0), .vectors = true,
                  .scale = 0.5),
      F64, 1},
     {{300, LAYOUT_PADDED, 0}},
     0},
    {{CONVOLUTION(ISOLATED, "33x0e+5x1o", SH2, SH2, CLB_IR_MUL,
                  FIELDS(.gradients = CLB_OPERAND_Y | CLB_OPERAND_Z,
                         .incoming = CLB_OPERAND_X | CLB_OPERAND_Y),
                  .vectors = true),
      F32, 0},
     {{97, LAYOUT_DENSE, 0}},
     0},
    {{CONVOLUTION(SHUFFLED, "3x0e+1x1o", SH1, SH1, CLB_IR_MUL, FIELDS(.passes = 0), .vectors = true,
                  .workspace = MIN_WORKSPACE),
      F64, 0},
     {{20000, LAYOUT_DENSE, 0}},
     0},
    {{CONVOLUTION(RANDOM, "9x0e+9x1o", SH2, SH2, CLB_IR_MUL,
                  FIELDS(.gradients = CLB_OPERAND_X | CLB_OPERAND_Y), .table = true,
                  .vectors = true),
      F32, 0},
     {{131, LAYOUT_DENSE, 0}},
     0},
    {{CONVOLUTION(HUB, "33x0e+5x1o", SH1, SH2, CLB_MUL_IR, FIELDS(.passes = 0), .table = true,
                  .vectors = true),
      F64, 1},
     {{300, LAYOUT_PADDED, 0}},
     0},
    /* One row of weights. */
    {{CONVOLUTION(HUB, "9x0e+5x1o", SH2, SH2, CLB_IR_MUL, ONE_ROW, .scale = 0.5), F32, 1},
     {{300, LAYOUT_PADDED, 0}},
     0},
    /* Weights that mix channels, or none; several channels of y. */
    {{MESSAGES(RANDOM, FULLY_CONNECTED, "7x0e+3x1o", "0e+1o", "5x0e+9x1o+1e", EDGE_WEIGHTS,
               .scale = 0),
      F32, 0},
     {{1, LAYOUT_DENSE, 0}, {131, LAYOUT_PADDED, 0}, {131, LAYOUT_REPEAT, 0}},
     0},
    {{MESSAGES(HUB, FULLY_CONNECTED, "4x0e+2x1o", "3x0e+2x1o", "5x0e+3x1o", EDGE_WEIGHTS,
               .scale = 0.5),
      F64, 1},
     {{300, LAYOUT_PADDED, 0}, {20000, LAYOUT_DENSE, 0}},
     0},
    {{MESSAGES(ISOLATED, FULLY_CONNECTED, "32x0e+16x1o", SH1, "40x0e+16x1o", EDGE_WEIGHTS,
               .scale = 0),
      F32, 0},
     {{97, LAYOUT_DENSE, 0}},
     FIRST},
    {{MESSAGES(SHUFFLED, FULLY_CONNECTED, "7x0e+3x1o", "2x0e+1o", "5x0e+9x1o", ONE_ROW, .scale = 0),
      F32, 1},
     {{300, LAYOUT_PADDED, 0}},
     0},
    {{MESSAGES(HUB, FULLY_CONNECTED, "3x0e", "1o", "5x1o", ONE_ROW, .workspace = MIN_WORKSPACE),
      F64, 0},
     {{20000, LAYOUT_DENSE, 0}},
     0},
    {{MESSAGES(HUB, FULLY_CONNECTED, "8x0e+4x1o", SH1, "8x0e+4x1o", EDGE_WEIGHTS, .scale = 0), F16,
      0},
     {{300, LAYOUT_DENSE, 0}},
     0},
    {{MESSAGES(RANDOM, FULLY_CONNECTED, "8x0e+4x1o", SH1, "8x0e+4x1o", ONE_ROW, .scale = 0), BF16,
      1},
     {{131, LAYOUT_PADDED, 0}},
     0},
    {{MESSAGES(RANDOM, ELEMENTWISE, "5x0e+3x1o", "3x1o+5x0e", NULL, EDGE_WEIGHTS, .scale = 0), F32,
      0},
     {{131, LAYOUT_DENSE, 0}},
     0},
    {{MESSAGES(RECTANGULAR, FULL_PRODUCT, "3x0e+2x1o", "2x0e+1o", NULL, EDGE_WEIGHTS, .scale = 0),
      CLB_F32, CLB_F64, 1},
     {{131, LAYOUT_DENSE, 0}},
     0},
    {{MESSAGES(ISOLATED, FULLY_CONNECTED, "5x0e+3x1o", SH2, "4x0e+3x1o",
               FIELDS(.gradients = CLB_OPERAND_X | CLB_OPERAND_Y, .incoming = CLB_OPERAND_Y),
               .vectors = true),
      F32, 1},
     {{97, LAYOUT_PADDED, 0}},
     0},
    /* Unordered paths. */
    {{TANGLED(RANDOM, CLB_IR_MUL, CLB_IR_MUL, CLB_IR_MUL, .scale = 0), F64, 0},
     {{131, LAYOUT_DENSE, 0}},
     0},
    {{TANGLED(HUB, CLB_MUL_IR, CLB_IR_MUL, CLB_IR_MUL, .scale = 2), F32, 1},
     {{300, LAYOUT_PADDED, 0}},
     0},
    {{TANGLED(RANDOM, CLB_IR_MUL, CLB_IR_MUL, CLB_MUL_IR, .atomics = true), F32, 0},
     {{131, LAYOUT_REPEAT, 0}},
     FIRST},
};

#endif
