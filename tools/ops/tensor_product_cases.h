/* tools/ops/tensor_product_cases.h - what `clebsch check` runs of the tensor product. */
#ifndef CLB_TOOLS_OPS_TENSOR_PRODUCT_CASES_H
#define CLB_TOOLS_OPS_TENSOR_PRODUCT_CASES_H

#include "tools/ops/tensor_product_tool.h"

#define FIRST CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD)
#define LAYOUTS_ALL(l) .layout_x = l, .layout_y = l, .layout_z = l

/* A named product; the arguments after its layout are fields of the description. */
#define PRODUCT(kind_, a, b, c, l, ...)                                                            \
  &(const tensor_problem) {                                                                        \
    .kind = kind_, .x = a, .y = b, .z = c, .desc = { LAYOUTS_ALL(l), __VA_ARGS__ }                 \
  }
#define CHANNEL_WISE(a, b, f, l) PRODUCT(CHANNEL_WISE, a, b, f, l, .passes = 0)
#define AS_FOUND(a, b, f, l)                                                                       \
  &(const tensor_problem) {                                                                        \
    .order = CLB_AS_FOUND, .x = a, .y = b, .z = f, .desc = { LAYOUTS_ALL(l) }                      \
  }

/* Unnamed products; the list of instructions and special fields follow. */
#define OTHER(text, a, b, c, list, lx, ly, lz, ...)                                                \
  &(const tensor_problem) {                                                                        \
    .name = text, .kind = OTHER_PRODUCT, .desc = {                                                 \
      .irreps_x = a,                                                                               \
      .irreps_y = b,                                                                               \
      .irreps_z = c,                                                                               \
      .instructions = list,                                                                        \
      .n_instructions = sizeof list / sizeof *list,                                                \
      .layout_x = lx,                                                                              \
      .layout_y = ly,                                                                              \
      .layout_z = lz,                                                                              \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
  }

/* Several unordered paths to one output, with and without weights; an output and an input that no
   path uses. */
static const clb_instruction tangled[] = {{2, 2, 1, CLB_UVU, 1, 0.5}, {0, 0, 0, CLB_UVU, 0, 1},
                                          {1, 1, 0, CLB_UVU, 1, 2},   {1, 0, 1, CLB_UVU, 1, 1},
                                          {2, 2, 1, CLB_UVU, 0, 1.5}, {2, 2, 3, CLB_UVU, 1, 1},
                                          {0, 1, 1, CLB_UVU, 1, 1}};
#define TANGLED(irrep, path, lx, ly, lz)                                                           \
  OTHER(NULL, "5x0e+5x1o+5x1o+2x3o", SH2, "5x0e+5x1o+3x2e+5x3o", tangled, lx, ly, lz,              \
        .irrep_normalization = irrep, .path_normalization = path)
static const clb_instruction weightless[] = {{0, 0, 0, CLB_UVU, 0, 1},
                                             {0, 1, 1, CLB_UVU, 0, 1},
                                             {1, 1, 0, CLB_UVU, 0, 1},
                                             {1, 2, 1, CLB_UVU, 0, 1}};
#define WEIGHTLESS(l) OTHER(NULL, "7x0e+7x1o", SH2, "7x0e+7x1o", weightless, l, l, l, .passes = 0)

/* Every mode, with weights and, where allowed, without, several paths to one output; terms without
   channels, and terms that no path uses. LARGE: with enough further terms that the code is not
   unrolled. */
#define EVERY_MODE_PATHS                                                                           \
  {1, 1, 0, CLB_UVW, 1, 1}, {1, 1, 1, CLB_UVU, 1, 1}, {1, 1, 1, CLB_UVV, 1, 2},                    \
      {1, 1, 0, CLB_UUW, 1, 1}, {0, 1, 4, CLB_UUU, 1, 1}, {0, 0, 5, CLB_UVUV, 1, 1},               \
      {1, 1, 0, CLB_UVU_HALF, 1, 1}, {1, 1, 6, CLB_UVW_HALF, 1, 0.5}, {1, 0, 4, CLB_UVU, 0, 1},    \
      {0, 1, 4, CLB_UVV, 0, 1}, {1, 1, 2, CLB_UUW, 0, 1}, {1, 1, 1, CLB_UUU, 0, 1},                \
      {3, 0, 7, CLB_UVUV, 0, 1}, {0, 0, 0, CLB_UVU_HALF, 0, 1}, {4, 1, 1, CLB_UVW, 1, 1},          \
      {4, 3, 3, CLB_UVU, 1, 1}, {                                                                  \
    3, 1, 4, CLB_UVW, 1, 1                                                                         \
  }
static const clb_instruction every_mode[] = {EVERY_MODE_PATHS},
                             every_mode_large[] = {
                                 EVERY_MODE_PATHS,          {5, 4, 9, CLB_UUU, 1, 1},
                                 {5, 4, 10, CLB_UVU, 1, 1}, {5, 4, 11, CLB_UVW, 1, 1},
                                 {5, 4, 12, CLB_UUW, 1, 1}, {5, 4, 13, CLB_UVUV, 0, 1},
                                 {5, 4, 14, CLB_UVV, 1, 1}, {5, 4, 15, CLB_UUU, 0, 1}};
#define EVERY_MODE_X "3x0e+3x1o+1x4e+2x2e+0x2o"
#define EVERY_MODE_Y "3x0e+3x1o+2x3o+0x1e"
#define EVERY_MODE_Z "3x0e+3x1e+1x0e+0x1o+3x1o+9x0e+5x2e+6x2e+1x5o"
#define EVERY_MODE(lx, ly, lz, ...)                                                                \
  OTHER("every mode", EVERY_MODE_X, EVERY_MODE_Y, EVERY_MODE_Z, every_mode, lx, ly, lz, __VA_ARGS__)
#define EVERY_MODE_LARGE(lx, ly, lz, ...)                                                          \
  OTHER("every mode, large", EVERY_MODE_X "+1x12e", EVERY_MODE_Y "+1x12e",                         \
        EVERY_MODE_Z "+1x12e+1x11e+1x10e+1x9e+1x8e+1x7e+1x6e", every_mode_large, lx, ly, lz,       \
        __VA_ARGS__)

/* Single modes with enough channels for more than one block of lanes. */
static const clb_instruction wide_uuw[] = {{0, 0, 0, CLB_UUW, 1, 1}, {0, 0, 1, CLB_UUW, 0, 1}},
                             wide_uvv[] = {{0, 0, 0, CLB_UVV, 1, 1}, {0, 0, 0, CLB_UVV, 0, 2}},
                             wide_half[] = {{0, 0, 0, CLB_UVU_HALF, 1, 1},
                                            {0, 0, 1, CLB_UVW_HALF, 1, 1}};

static const tool_case cases[] = {
    {{CHANNEL_WISE("1x0e", "0e", "0e", CLB_IR_MUL), F32, 0},
     {{1, LAYOUT_DENSE, 0}, {33, LAYOUT_DENSE, 0}},
     FIRST},
    {{CHANNEL_WISE("1x1o", "1o", "0e+1e+2e", CLB_MUL_IR), F64, 0}, {{33, LAYOUT_DENSE, 0}}, 0},
    {{CHANNEL_WISE("3x1o", SH2, SH2, CLB_IR_MUL), F32, 0}, {{31, LAYOUT_PADDED, 0}}, USUAL_PASSES},
    {{CHANNEL_WISE("7x0e+7x1o", SH1, SH2, CLB_IR_MUL), F32, 0},
     {{1, LAYOUT_DENSE, 0}, {7, LAYOUT_PADDED, 0}, {33, LAYOUT_REPEAT, 0}, {131, LAYOUT_DENSE, 0}},
     USUAL_PASSES},
    {{CHANNEL_WISE("7x0e+7x1o", SH2, SH2, CLB_MUL_IR), F32, 0},
     {{1, LAYOUT_DENSE, 0}, {33, LAYOUT_PADDED, 0}, {33, LAYOUT_REPEAT, 0}},
     FIRST},
    {{CHANNEL_WISE("16x0e+8x1o+4x2e", SH2, SH3, CLB_IR_MUL), F32, 0},
     {{33, LAYOUT_DENSE, 0}, {33, LAYOUT_REPEAT, 0}},
     FIRST},
    {{AS_FOUND("13x0e+5x1o+33x1e+1x2e", SH2, BOTH2("1"), CLB_IR_MUL), F64, 1},
     {{17, LAYOUT_PADDED, 0}},
     FIRST},
    {{AS_FOUND("13x0e+5x1o+33x1e+1x2e", SH1, BOTH2("1"), CLB_MUL_IR), F32, 1},
     {{17, LAYOUT_REPEAT, 0}},
     FIRST},
    {{CHANNEL_WISE("123x1o", "1o", "0e+1e", CLB_IR_MUL), F32, 0}, {{19, LAYOUT_DENSE, 0}}, 0},
    {{CHANNEL_WISE("89x0e", SH3, SH3, CLB_MUL_IR), F32, 0}, {{19, LAYOUT_DENSE, 0}}, FIRST},
    {{CHANNEL_WISE("89x0e", SH3, SH3, CLB_IR_MUL), F16, 0}, {{19, LAYOUT_PADDED, 0}}, FIRST},
    {{CHANNEL_WISE("32x0e+32x1o", SH3, SH2, CLB_IR_MUL), F16, 0}, {{65, LAYOUT_DENSE, 0}}, FIRST},
    {{CHANNEL_WISE("32x0e+32x1o", SH1, SH2, CLB_MUL_IR), BF16, 0},
     {{65, LAYOUT_DENSE, 0}},
     USUAL_PASSES},
    {{CHANNEL_WISE("16x0e+8x1o", SH2, SH2, CLB_IR_MUL), BF16, 1}, {{33, LAYOUT_PADDED, 0}}, FIRST},
    {{CHANNEL_WISE("7x0e+5x1o", SH1, SH1, CLB_IR_MUL), F16, 0}, {{19, LAYOUT_PADDED, 0}}, 0},
    {{CHANNEL_WISE("6x0e+3x1o", SH1, SH1, CLB_MUL_IR), BF16, 0}, {{19, LAYOUT_DENSE, 0}}, 0},
    {{CHANNEL_WISE("33x2e", "1o", "1x3o", CLB_IR_MUL), F32, 0},
     {{33, LAYOUT_DENSE, 0}},
     USUAL_PASSES},
    {{CHANNEL_WISE("5x3o+3x4e", "3e", "1o+3o+2e", CLB_IR_MUL), F64, 0},
     {{9, LAYOUT_DENSE, 0}},
     CLB_PASS_BIT(CLB_FORWARD)},
    {{CHANNEL_WISE("8x4e", "4e", "0e+4e", CLB_MUL_IR), F32, 0},
     {{9, LAYOUT_DENSE, 0}},
     CLB_PASS_BIT(CLB_FORWARD)},
    {{CHANNEL_WISE("16x0e+8x1o", SH2, SH2, CLB_IR_MUL), CLB_F32, CLB_F64, 0},
     {{33, LAYOUT_DENSE, 0}},
     FIRST},
    {{TANGLED(CLB_IRREP_COMPONENT, CLB_PATH_ELEMENT, CLB_IR_MUL, CLB_IR_MUL, CLB_IR_MUL), F64, 0},
     {{33, LAYOUT_DENSE, 0}, {33, LAYOUT_REPEAT, 0}},
     CLB_PASS_BIT(CLB_FORWARD)},
    {{TANGLED(CLB_IRREP_NORM, CLB_PATH_PATH, CLB_MUL_IR, CLB_MUL_IR, CLB_MUL_IR), F32, 1},
     {{33, LAYOUT_PADDED, 0}},
     FIRST},
    {{TANGLED(CLB_IRREP_NONE, CLB_PATH_NONE, CLB_MUL_IR, CLB_IR_MUL, CLB_IR_MUL), F32, 0},
     {{33, LAYOUT_DENSE, 0}},
     CLB_PASS_BIT(CLB_FORWARD)},
    {{TANGLED(CLB_IRREP_NORM, CLB_PATH_ELEMENT, CLB_IR_MUL, CLB_MUL_IR, CLB_MUL_IR), F32, 0},
     {{33, LAYOUT_DENSE, 0}},
     CLB_PASS_BIT(CLB_BACKWARD)},
    {{WEIGHTLESS(CLB_IR_MUL), F64, 0}, {{33, LAYOUT_DENSE, 0}}, FIRST},
    {{WEIGHTLESS(CLB_MUL_IR), F32, 0}, {{33, LAYOUT_REPEAT, 0}}, CLB_PASS_BIT(CLB_DOUBLE_BACKWARD)},
    /* Channel-wise, with all options. */
    {{PRODUCT(CHANNEL_WISE, "9x0e+9x1o", SH2, SH2, CLB_IR_MUL, .indexed = CLB_OPERAND_X,
              .gradients = CLB_OPERAND_X | CLB_OPERAND_W),
      F32, 0},
     {{33, LAYOUT_PADDED, 0}, {33, LAYOUT_DENSE, 0}},
     0},
    {{PRODUCT(CHANNEL_WISE, "33x0e+17x1o", SH1, SH1, CLB_IR_MUL, .shared_weights = 1), F32, 0},
     {{1, LAYOUT_DENSE, 0}, {300, LAYOUT_DENSE, 0}},
     0},
    {{PRODUCT(CHANNEL_WISE, "5x0e+0x2e+3x1o", "3x0e+0x1e+2x1o", SH1, CLB_MUL_IR,
              .shared_weights = 1, .indexed = CLB_OPERAND_X | CLB_OPERAND_Y,
              .incoming = CLB_OPERAND_X),
      F32, 0},
     {{37, LAYOUT_PADDED, 0}},
     USUAL_PASSES},
    /* The other modes. */
    {{EVERY_MODE(CLB_MUL_IR, CLB_MUL_IR, CLB_MUL_IR, .passes = 0), F64, 0},
     {{33, LAYOUT_DENSE, 0}, {33, LAYOUT_REPEAT, 0}},
     FIRST},
    {{EVERY_MODE(CLB_IR_MUL, CLB_IR_MUL, CLB_IR_MUL, .shared_weights = 1,
                 .irrep_normalization = CLB_IRREP_NORM, .path_normalization = CLB_PATH_PATH),
      F32, 1},
     {{1, LAYOUT_DENSE, 0}, {131, LAYOUT_PADDED, 0}},
     FIRST},
    {{EVERY_MODE(CLB_IR_MUL, CLB_MUL_IR, CLB_MUL_IR,
                 .indexed = CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W,
                 .gradients = CLB_OPERAND_Y | CLB_OPERAND_Z,
                 .incoming = CLB_OPERAND_Y | CLB_OPERAND_W),
      F32, 0},
     {{33, LAYOUT_PADDED, 0}},
     0},
    {{EVERY_MODE(CLB_MUL_IR, CLB_IR_MUL, CLB_IR_MUL, .gradients = CLB_OPERAND_W,
                 .incoming = CLB_OPERAND_X, .irrep_normalization = CLB_IRREP_NONE,
                 .path_normalization = CLB_PATH_NONE),
      BF16, 0},
     {{33, LAYOUT_REPEAT, 0}},
     FIRST},
    {{EVERY_MODE(CLB_IR_MUL, CLB_IR_MUL, CLB_MUL_IR, .shared_weights = 1,
                 .gradients = CLB_OPERAND_W),
      F16, 0},
     {{33, LAYOUT_DENSE, 0}},
     FIRST},
    {{EVERY_MODE_LARGE(CLB_IR_MUL, CLB_IR_MUL, CLB_IR_MUL, .shared_weights = 1,
                       .irrep_normalization = CLB_IRREP_NORM),
      F32, 1},
     {{1, LAYOUT_DENSE, 0}, {19, LAYOUT_PADDED, 0}},
     CLB_PASS_BIT(CLB_BACKWARD)},
    {{EVERY_MODE_LARGE(CLB_MUL_IR, CLB_IR_MUL, CLB_MUL_IR, .indexed = CLB_OPERAND_X | CLB_OPERAND_W,
                       .gradients = CLB_OPERAND_W, .incoming = CLB_OPERAND_X | CLB_OPERAND_W,
                       .path_normalization = CLB_PATH_PATH),
      F64, 0},
     {{19, LAYOUT_DENSE, 0}},
     0},
    {{PRODUCT(FULLY_CONNECTED, "9x0e+5x1o", SH1, "7x0e+33x1o", CLB_MUL_IR, .passes = 0), F32, 0},
     {{19, LAYOUT_DENSE, 0}},
     FIRST},
    {{PRODUCT(FULLY_CONNECTED, "17x0e+9x1o", SH1, "33x0e+5x1o+3x1e", CLB_IR_MUL,
              .shared_weights = 1),
      F32, 0},
     {{67, LAYOUT_DENSE, 0}},
     FIRST},
    {{PRODUCT(FULLY_CONNECTED, "3x1o+2x2e", "3x1o", "4x0e+3x1o", CLB_IR_MUL,
              .gradients = CLB_OPERAND_X, .indexed = CLB_OPERAND_X),
      F64, 1},
     {{33, LAYOUT_PADDED, 0}},
     USUAL_PASSES},
    {{PRODUCT(FULL_PRODUCT, "5x0e+2x1o+1x1o+0x3o", "2x0o+3x1o", NULL, CLB_IR_MUL, .passes = 0), F64,
      0},
     {{33, LAYOUT_DENSE, 0}},
     FIRST},
    {{PRODUCT(ELEMENTWISE, "17x0e+35x1o+2x2e", "19x0e+17x1o+18x2e", "0e+1o+2e", CLB_IR_MUL,
              .passes = 0),
      F32, 0},
     {{19, LAYOUT_REPEAT, 0}},
     FIRST},
    {{OTHER("wide uuw", "37x1o", "37x1o", "34x0e+1x1e", wide_uuw, CLB_IR_MUL, CLB_IR_MUL,
            CLB_IR_MUL, .shared_weights = 1),
      F32, 0},
     {{33, LAYOUT_DENSE, 0}},
     USUAL_PASSES},
    {{OTHER("wide uvv", "5x1o", "37x1o", "37x1e", wide_uvv, CLB_IR_MUL, CLB_IR_MUL, CLB_IR_MUL,
            .passes = 0),
      F32, 0},
     {{19, LAYOUT_DENSE, 0}},
     FIRST},
    {{OTHER("wide u<v", "9x1o", "9x1o", "36x1e+34x2e", wide_half, CLB_MUL_IR, CLB_MUL_IR,
            CLB_IR_MUL, .passes = 0),
      F32, 0},
     {{19, LAYOUT_DENSE, 0}},
     FIRST},
    /* Too many terms to be unrolled. */
    {{CHANNEL_WISE(BOTH4("3"), SH4, BOTH4("1"), CLB_IR_MUL), F32, 0},
     {{9, LAYOUT_DENSE, 0}},
     FIRST},
    {{PRODUCT(FULLY_CONNECTED, BOTH4("2"), SH4, BOTH4("2"), CLB_MUL_IR, .shared_weights = 1,
              .gradients = CLB_OPERAND_Y),
      F32, 0},
     {{9, LAYOUT_DENSE, 0}},
     CLB_PASS_BIT(CLB_TRIPLE_BACKWARD)},
};

#endif
