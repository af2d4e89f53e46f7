/* tests/ops/tensor_product/test_product_schedules.c - the schedules that tensor products get on
   GPUs, run by the interpreter: limits of NVIDIA, AMD and Intel, with and without sub-groups. */
#include "tests/ops/tensor_product/product_problems.h"

/* Channel-wise products with as many channels as lanes, more, fewer, no multiple, and unequal
   multiplicities. */
static const tensor_problem cases[] = {
#define CASE(x, y, filter, l) FOUND(x, y, filter, CLB_AS_FOUND, LAYOUTS_OF(l, l, l))
    CASE("64x0e+64x1o", SH2, SH2, IR_MUL),
    CASE("64x0e+64x1o", SH2, SH2, MUL_IR),
    CASE("33x0e+33x1o", SH2, SH1, IR_MUL),
    CASE("33x0e+33x1o", SH2, SH1, MUL_IR),
    CASE("89x0e", SH3, SH3, IR_MUL),
    CASE("32x0e+32x1o", SH1, SH2, MUL_IR),
    CASE("37x0e+16x1o+70x1e", SH2, BOTH2("1"), IR_MUL),
    CASE("37x0e+16x1o", SH2, SH2, MUL_IR),
    CASE("13x1o", SH2, SH2, IR_MUL),
    CASE("5x0e+3x1o", SH1, SH1, MUL_IR),
    CASE("128x1o", "1x0e+1o+1x2e", SH1, IR_MUL),
};

static bool is_gpu(const place *at) { return at->gpu >= 0; }

static void channels(void **state) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases && is_gpu(*state); i++) {
    product_agrees(*state, &cases[i], F64, false, 15, 7);
    product_agrees(*state, &cases[i], F64, true, F | B | D, 1);
  }
}

/* Terms that no path reaches, several paths into one, half precision. */
static void others(void **state) {
  for (int i = 0; i < 3 && is_gpu(*state); i++) {
    tensor_problem p = product(i == 2 ? WEIGHTLESS : TANGLED);
    if (i < 2)
      p.desc.irreps_x = "45x0e+45x1o+45x1o+2x3o", p.desc.irreps_z = "45x0e+45x1o+3x2e+45x3o";
    if (i == 1) set_layouts(&p, 7);
    product_agrees(*state, &p, i == 1 ? CLB_F16 : CLB_F64, i == 1 ? CLB_F32 : CLB_F64, false, 15,
                   6);
  }
}

static void modes(void **state) {
  static const int which[] = {MODES, FEW_SHARED, WIDE, MIXING};
  for (int i = 0; i < 4 && is_gpu(*state); i++) {
    const tensor_problem p = product(which[i]);
    product_agrees(*state, &p, F64, false, i < 2 ? 15 : F | B, 5);
  }
}

/* Weights of each row that mix channels: lanes are channels of z, in several blocks and with some
   left over; with sets of gradients, and with rows by number; shared weights, as matrix products.
 */
static void pairs(void **state) {
  for (int i = 0; i < 4 && is_gpu(*state); i++) {
    tensor_problem p = {.kind = FULLY_CONNECTED,
                        .x = i ? "4x0e+6x1o+2x2e+1x3o" : "3x1e+8x0e+1x1o",
                        .y = i ? "1x1o+2x0e" : "0e+1o",
                        .z = i ? "9x0e+3x1o+1x0o" : "37x0e+70x1o+2x5e",
                        .desc = {LAYOUTS_OF(IR_MUL, IR_MUL, IR_MUL)}};
    if (i == 1) set_layouts(&p, 0);
    if (i == 3) p.x = "17x0e+3x1o", p.z = "37x0e+20x1o", p.desc.shared_weights = 1;
    if (i == 2) {
      p.desc.gradients = CLB_OPERAND_Y | CLB_OPERAND_W;
      p.desc.incoming = CLB_OPERAND_X;
      p.desc.indexed = CLB_OPERAND_X | CLB_OPERAND_W;
    }
    product_agrees(*state, &p, F64, i == 1, F | B | D, 5);
  }
}

/* Weights that mix channels and that all rows share: lanes are rows, and all of x or all of z is in
   registers. Blocks of channels of which weights are read together or one by one, more rows than a
   group has, gradients by weights with and without others, and added to what is there. */
static void shared_rows(void **state) {
  static const struct {
    const char *x, *y, *z;
  } of[] = {{"1x0e+1x1o+2x2e", SH2, "40x0e+24x1o+6x1e+3x2e+1x0o"},
            {"8x0e+5x1o+12x1e+3x2e", SH2, "1x0o+6x0e+2x1o"},
            {"3x0e+8x1o", "2x0e+3x1o", "34x0e+0x1e+5x1o"}};
  for (int i = 0; i < 9 && is_gpu(*state); i++) {
    tensor_problem p = {.kind = FULLY_CONNECTED,
                        .x = of[i % 3].x,
                        .y = of[i % 3].y,
                        .z = of[i % 3].z,
                        .desc = {LAYOUTS_OF(IR_MUL, IR_MUL, IR_MUL), .shared_weights = 1}};
    if (i % 2) set_layouts(&p, 7);
    if (i >= 6) p.desc.gradients = i == 6 ? CLB_OPERAND_W : i == 7 ? CLB_OPERAND_Y : 0;
    if (i >= 6) p.desc.incoming = i == 6 ? CLB_OPERAND_X : i == 7 ? CLB_OPERAND_W : 0;
    product_agrees(*state, &p, F64, i >= 3 && i < 6, F | B | D, i < 3 ? 300 : 21);
    if (i < 3) product_agrees(*state, &p, CLB_F16, CLB_F32, false, F | B | D, 21);
  }
}

/* More paths than one kernel should have: several, of whole terms of x and, at last, of one that is
   cut, whose gradients parts add to. */
static void split(void **state) {
  for (int add = 0; add < 3 && is_gpu(*state); add++) {
    tensor_problem p = product(MANY_CHANNEL_WISE);
    p.desc.irreps_x = NULL;
    p.x = add == 2 ? "3x0e+5x5o+5x5e" : BOTH4("5") "+2x7e";
    if (add == 2) p.y = SH5, p.z = BOTH5("1");
    set_layouts(&p, add == 1 ? 0 : 7);
    const int passes = add == 1 ? B : add ? 15 : F | B | D;
    product_agrees(*state, &p, F64, add == 1, passes, 3);
  }
}

/* The same channel by channel, with a term of z for each path. */
static void split_by_channels(void **state) {
  enum { MOST = 3 * 2 * 7 };
  clb_instruction list[MOST];
  char z[MOST * 8] = "";
  int n = 0;
  for (int i = 4; i <= 6; i++)
    for (int j = 4; j <= 5; j++)
      for (int l = abs(i - j); l <= 6; l++, n++) {
        list[n] = (clb_instruction){i - 4, j - 4, n, CLB_UUU, n % 3 > 0, 1};
        snprintf(z + strlen(z), sizeof z - strlen(z), "%s3x%de", n ? "+" : "", l);
      }
  const tensor_problem p = {.kind = OTHER_PRODUCT,
                            .desc = {.irreps_x = "3x4e+3x5e+3x6e",
                                     .irreps_y = "3x4e+3x5e",
                                     .irreps_z = z,
                                     .instructions = list,
                                     .n_instructions = n,
                                     LAYOUTS_OF(IR_MUL, IR_MUL, IR_MUL)}};
  for (int add = 0; add < 2 && is_gpu(*state); add++)
    product_agrees(*state, &p, F64, add, add ? B : F | B | D, 2);
}

int main(void) {
  static const int gpus[] = {LIMITS_NVIDIA, LIMITS_AMD, LIMITS_INTEL, LIMITS_NO_SUBGROUPS};
  static const place_test tests[] = {{"channels", channels, SLOW},
                                     {"others", others, SLOW},
                                     {"modes", modes, SLOW},
                                     {"pairs", pairs, SLOW},
                                     {"shared_rows", shared_rows, SLOW},
                                     {"split", split, SLOW},
                                     {"split_by_channels", split_by_channels, SLOW}};
  setenv("CLB_DEVICE", "cpu:interpreter", 1);
  return RUN_AS_GPUS("product_schedules", tests, gpus);
}
