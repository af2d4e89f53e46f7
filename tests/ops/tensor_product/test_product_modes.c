/* tests/ops/tensor_product/test_product_modes.c - tensor products of every mode: normalisations,
   weights, layouts, types; weights that mix channels. */
#include "tests/ops/tensor_product/product_problems.h"

/* In f64. */
static void agrees(place *at, const tensor_problem *p, int passes, int rows) {
  product_agrees(at, p, F64, false, (unsigned)passes, rows);
}

static void normalisations(void **state) {
  for (int i = 0; i < 27; i++) {
    tensor_problem p = product(MODES);
    const int weights = i % 3; /* per row, shared, none */
    if (!many(*state, 0, i == 13, 1)) continue;
    p.desc.path_normalization = (clb_path_normalization)(i / 3 % 3);
    p.desc.irrep_normalization = (clb_irrep_normalization)(i / 9);
    p.desc.shared_weights = weights == 1;
    set_layouts(&p, i);
    if (weights == 2)
      p.desc.instructions = bare_modes,
      p.desc.n_instructions = sizeof bare_modes / sizeof *bare_modes;
    agrees(*state, &p, many(*state, 0, F | B | D, 15), 5);
  }
}

static void single_modes(void **state) {
  for (int i = 0; i < (int)(sizeof all_modes / sizeof *all_modes); i++)
    for (int shared = 0; shared < 2; shared++) {
      tensor_problem p = product(MODES);
      p.desc.instructions = &all_modes[i];
      p.desc.n_instructions = 1;
      p.desc.shared_weights = shared;
      agrees(*state, &p, many(*state, i % 4 ? 0 : B, i % 6 ? D : T, 15), 34);
    }
}

/* With many channels. */
static void wide(void **state) {
  for (int shared = 0; shared < 2; shared++) {
    tensor_problem p = product(WIDE);
    p.desc.shared_weights = shared;
    set_layouts(&p, shared ? 0 : 7);
    agrees(*state, &p, many(*state, 0, shared ? F : B, 15), 3);
  }
}

/* More non-zeros than a kernel can unroll: variants that read tables. */
static void many_paths(void **state) {
  for (int i = 0; i < 4; i++) {
    tensor_problem p = product(i == 1 ? MANY_CHANNEL_WISE : MANY);
    p.desc.shared_weights = i == 2;
    set_layouts(&p, i == 1 ? 7 : 3 * i);
    if (i == 3)
      p.desc.gradients = CLB_OPERAND_Y | CLB_OPERAND_W,
      p.desc.incoming = CLB_OPERAND_X | CLB_OPERAND_Y;
    product_agrees(
        *state, &p, F64, i == 3,
        (unsigned)many(*state, i ? 0 : F, (const int[]){F, B | T, B, 0}[i], i == 3 ? F | B : 15),
        3);
  }
}

static void types(void **state) {
  static const struct {
    clb_dtype storage, arithmetic;
    int product;
  } cases[] = {{F16, SINGLE},
               {BF16, SINGLE},
               {F32, SINGLE},
               {F32, FEW},
               {CLB_F32, CLB_F64, FEW},
               {F16, FEW},
               {BF16, FEW},
               {F16, TANGLED},
               {BF16, FEW_SHARED},
               {F32, MODES},
               {F16, MODES},
               {BF16, MODES},
               {F32, SHARED},
               {CLB_F32, CLB_F64, SHARED},
               {F16, SHARED},
               {F32, CHANNELS},
               {F16, MIXED},
               {BF16, CHANNELS},
               {F32, WIDE},
               {F32, MANY},
               {F16, MANY_CHANNEL_WISE}};
  for (int i = 0; i < many(*state, 3, 7, sizeof cases / sizeof *cases); i++) {
    const tensor_problem p = product(cases[i].product);
    product_agrees(*state, &p, cases[i].storage, cases[i].arithmetic, false,
                   (unsigned)many(*state, B, B, 15), i < 18 ? 34 : 3);
  }
}

/* ---- weights that mix channels, which are matrix products where they are shared ---- */

static int last_of(const place *at) { return many(at, F, F | B | D, 15); }

/* More rows than are processed at once with many weights; the interpreter is too slow for them. */
static int rows_on(const place *at) {
  return strcmp(at->name, "cpu:interpreter") ? 100 : few_cases() ? 11 : 20;
}

/* The same bits each time; rows by number, padded. */
static void mixing(void **state) {
  static const tool_layout twice[] = {LAYOUT_DENSE, LAYOUT_DENSE}, padded[] = {LAYOUT_PADDED};
  clb_context *ctx = context_of(*state);
  for (int indexed = 0; indexed < 2; indexed++) {
    tensor_problem p = product(MIXING);
    p.desc.indexed = indexed ? CLB_OPERAND_X | CLB_OPERAND_Y : 0;
    const tool_kernel kernel = {&p, F64, false};
    for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
      if (!(last_of(*state) >> pass & 1)) continue;
      clb_op *op = op_with(ctx, &tool_op_tensor_product, &kernel, CLB_PASS_BIT(pass));
      for (int rows = 1; rows <= rows_on(*state); rows += rows_on(*state) - 1)
        expect_layouts(ctx, &tool_op_tensor_product, &kernel, op, (clb_pass)pass,
                       (tool_data){.rows = rows}, indexed ? padded : twice, indexed ? 1 : 2);
      clb_op_destroy(&op);
    }
  }
}

/* Other layouts and types, results added to the outputs. */
static void mixing_variants(void **state) {
  for (int i = 0; i < many(*state, 0, 1, 6); i++) {
    tensor_problem p = product(MIXING);
    const clb_dtype storage = i < 3 ? CLB_F64 : i < 5 ? CLB_F32 : CLB_BF16;
    set_layouts(&p, (i % 2 ? 0 : 1) | (i % 3 ? 0 : 2) | (i == 2 ? 0 : 4));
    product_agrees(*state, &p, storage, i == 4 ? CLB_F64 : usual_arithmetic(storage), i != 1,
                   (unsigned)last_of(*state), i ? 5 : rows_on(*state));
  }
}

/* Sets of gradients and of incoming gradients; one op for all passes. */
static void mixing_subsets(void **state) {
  clb_context *ctx = context_of(*state);
  for (unsigned i = 1; i < 16; i++) {
    tensor_problem p = product(MIXING);
    p.desc.gradients = i;
    p.desc.incoming = (i * 5 + 2) % 8;
    const tool_kernel kernel = {&p, F64, false};
    clb_op *op = op_with(ctx, &tool_op_tensor_product, &kernel, 15);
    for (int pass = CLB_FORWARD; pass < PASSES; pass++)
      expect_pass(ctx, &tool_op_tensor_product, &kernel, op, (clb_pass)pass,
                  &(tool_data){.rows = 3});
    clb_op_destroy(&op);
  }
}

/* Several paths to a term, as products of all of them or one by one, with channels of y as terms of
   their own or not; as many rows as make several slices, with some left over. */
static void mixing_paths(void **state) {
  static const tensor_problem cases[] = {{.kind = FULLY_CONNECTED,
                                          .x = "9x0e+4x1o",
                                          .y = "2x0e+1o",
                                          .z = "8x0e+5x1o",
                                          .desc = {LAYOUTS_OF(MUL_IR, MUL_IR, MUL_IR), ONE_ROW}},
                                         {.kind = FULLY_CONNECTED,
                                          .x = "0e+2x1o",
                                          .y = "0e+1o",
                                          .z = "20x0e+3x1e+9x1o",
                                          .desc = {LAYOUTS_OF(IR_MUL, IR_MUL, IR_MUL), ONE_ROW}},
                                         {.kind = FULLY_CONNECTED,
                                          .x = "33x0e",
                                          .y = "2x0e",
                                          .z = "1000x0e",
                                          .desc = {LAYOUTS_OF(IR_MUL, IR_MUL, IR_MUL), ONE_ROW}},
                                         {.kind = FULLY_CONNECTED,
                                          .x = "5x0e+3x1o",
                                          .y = "3x1o",
                                          .z = "5x0e+4x1o+4x1e",
                                          .desc = {LAYOUTS_OF(IR_MUL, IR_MUL, MUL_IR), ONE_ROW}}};
  for (int i = 0; i < many(*state, 1, 4, 4); i++)
    product_agrees(*state, &cases[i], F64, i % 2, (unsigned)last_of(*state),
                   i == 2 ? 3 : rows_on(*state) + 31);
}

int main(void) {
  static const place_test tests[] = {{"normalisations", normalisations, BRISK},
                                     {"single_modes", single_modes, SLOW},
                                     {"wide", wide, BRISK},
                                     {"many_paths", many_paths, SLOW},
                                     {"types", types, SLOW},
                                     {"mixing", mixing, SLOW},
                                     {"mixing_variants", mixing_variants, BRISK},
                                     {"mixing_paths", mixing_paths, BRISK},
                                     {"mixing_subsets", mixing_subsets, THOROUGH}};
  return RUN_AT_PLACES("product_modes", tests);
}
