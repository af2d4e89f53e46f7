/* tests/ops/tensor_product/test_product_modes.c - tensor products of every mode against plain sums:
   normalisations, weights, layouts, storage types. */
#include "tests/ops/tensor_product/product_problems.h"

enum {
  F = CLB_PASS_BIT(CLB_FORWARD),
  B = CLB_PASS_BIT(CLB_BACKWARD),
  D = CLB_PASS_BIT(CLB_DOUBLE_BACKWARD),
  T = CLB_PASS_BIT(CLB_TRIPLE_BACKWARD)
};

/* Runs these passes of the description; fewer where compiling takes long. */
static void passes_agree(device *d, const clb_tensor_product_desc *desc, int slow, int brisk,
                         int rows) {
  test_product *p = product_create(context_of(d), desc, dense_golden_3j);
  for (int pass = CLB_FORWARD; pass < PASSES; pass++)
    if (many(d, slow, brisk, (int)desc->passes) >> pass & 1) run_and_compare(p, pass, rows, 20);
  product_destroy(p);
}

/* ---- normalisations and weights ---- */

static void set_layouts(clb_tensor_product_desc *desc, int bits) {
  desc->layout_x = bits & 1 ? CLB_IR_MUL : CLB_MUL_IR;
  desc->layout_y = bits & 2 ? CLB_IR_MUL : CLB_MUL_IR;
  desc->layout_z = bits & 4 ? CLB_IR_MUL : CLB_MUL_IR;
}

static void normalisations(void **state) {
  device *d = *state;
  for (int i = 0; i < 27; i++) {
    clb_tensor_product_desc desc = describe(d, MODES);
    int weights = i % 3; /* per row, shared, none */
    if (!many(d, 0, i == 13, 1)) continue;
    desc.path_normalization = (clb_path_normalization)(i / 3 % 3);
    desc.irrep_normalization = (clb_irrep_normalization)(i / 9);
    desc.shared_weights = weights == 1;
    set_layouts(&desc, i);
    if (weights == 2)
      desc.instructions = bare_modes, desc.n_instructions = sizeof bare_modes / sizeof *bare_modes;
    passes_agree(d, &desc, 0, F | B | D, 5);
  }
}

/* ---- one mode alone, and all together with many channels ---- */

static void single_modes(void **state) {
  device *d = *state;
  for (size_t i = 0; i < sizeof all_modes / sizeof *all_modes; i++)
    for (int shared = 0; shared < 2; shared++) {
      clb_tensor_product_desc desc = describe(d, MODES);
      desc.instructions = &all_modes[i];
      desc.n_instructions = 1;
      desc.shared_weights = shared;
      passes_agree(d, &desc, i % 4 ? 0 : B, i % 6 ? D : T, 34);
    }
}

static void wide(void **state) {
  device *d = *state;
  for (int shared = 0; shared < 2; shared++) {
    clb_tensor_product_desc desc = describe(d, WIDE);
    desc.shared_weights = shared;
    set_layouts(&desc, shared ? 0 : 7);
    passes_agree(d, &desc, 0, shared ? F : B, 3);
  }
}

/* More non-zeros than a kernel can unroll: variants that read tables. */
static void many_paths(void **state) {
  device *d = *state;
  for (int i = 0; i < 4; i++) {
    clb_tensor_product_desc desc = describe(d, i == 1 ? MANY_CHANNEL_WISE : MANY);
    desc.shared_weights = i == 2;
    desc.accumulate = i == 3;
    set_layouts(&desc, i == 1 ? 7 : 3 * i);
    if (i == 3)
      desc.gradients = CLB_OPERAND_Y | CLB_OPERAND_W, desc.incoming = CLB_OPERAND_X | CLB_OPERAND_Y;
    if (i == 3) desc.passes = CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD);
    passes_agree(d, &desc, i ? 0 : F, (const int[]){F, B | T, B, 0}[i], 3);
  }
}

/* ---- storage and arithmetic ---- */

static void types(void **state) {
  static const struct {
    clb_dtype storage, arithmetic;
    int product;
  } cases[] = {{CLB_F16, CLB_F32, SINGLE},
               {CLB_BF16, CLB_F32, SINGLE},
               {CLB_F32, CLB_F32, SINGLE},
               {CLB_F32, CLB_F32, FEW},
               {CLB_F32, CLB_F64, FEW},
               {CLB_F16, CLB_F32, FEW},
               {CLB_BF16, CLB_F32, FEW},
               {CLB_F16, CLB_F32, TANGLED},
               {CLB_BF16, CLB_F32, FEW_SHARED},
               {CLB_F32, CLB_F32, MODES},
               {CLB_F16, CLB_F32, MODES},
               {CLB_BF16, CLB_F32, MODES},
               {CLB_F32, CLB_F32, SHARED},
               {CLB_F32, CLB_F64, SHARED},
               {CLB_F16, CLB_F32, SHARED},
               {CLB_F32, CLB_F32, CHANNELS},
               {CLB_F16, CLB_F32, MIXED},
               {CLB_BF16, CLB_F32, CHANNELS},
               {CLB_F32, CLB_F32, WIDE},
               {CLB_F32, CLB_F32, MANY},
               {CLB_F16, CLB_F32, MANY_CHANNEL_WISE}};
  device *d = *state;
  for (int i = 0; i < many(d, 3, 7, sizeof cases / sizeof *cases); i++) {
    clb_tensor_product_desc desc = describe(d, cases[i].product);
    desc.storage = cases[i].storage;
    desc.arithmetic = cases[i].arithmetic;
    passes_agree(d, &desc, B, B, 34 / (1 + desc.n_instructions / 20));
  }
}

int main(void) {
  static const device_test tests[] = {{"normalisations", normalisations, EVERYWHERE},
                                      {"single_modes", single_modes, EVERYWHERE},
                                      {"wide", wide, EVERYWHERE},
                                      {"many_paths", many_paths, EVERYWHERE},
                                      {"types", types, EVERYWHERE}};
  return run_on_devices("product_modes", tests, sizeof tests / sizeof *tests);
}
