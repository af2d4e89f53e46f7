/* tests/ops/tensor_product/test_product_schedules.c - the schedules that tensor products get on
   GPUs, run by the interpreter: limits of NVIDIA, AMD and Intel, with and without sub-groups. */
#include "tests/test.h"

#include "tests/fakes/device_limits.h"
#include "tests/ops/tensor_product/product_problems.h"

#include "src/runtime/context.h"

static const int gpus[] = {LIMITS_NVIDIA, LIMITS_AMD, LIMITS_INTEL, LIMITS_NO_SUBGROUPS};
enum { GPUS = sizeof gpus / sizeof *gpus };
static device simulated[GPUS];

/* Channel-wise products with as many channels as lanes, more, fewer, no multiple, and unequal
   multiplicities. */
static const struct {
  const char *x, *y, *filter;
  clb_layout layout;
} cases[] = {
    {"64x0e+64x1o", SH2, SH2, CLB_IR_MUL},
    {"64x0e+64x1o", SH2, SH2, CLB_MUL_IR},
    {"33x0e+33x1o", SH2, SH1, CLB_IR_MUL},
    {"33x0e+33x1o", SH2, SH1, CLB_MUL_IR},
    {"89x0e", SH3, SH3, CLB_IR_MUL},
    {"32x0e+32x1o", SH1, SH2, CLB_MUL_IR},
    {"37x0e+16x1o+70x1e", SH2, BOTH2("1"), CLB_IR_MUL},
    {"37x0e+16x1o", SH2, SH2, CLB_MUL_IR},
    {"13x1o", SH2, SH2, CLB_IR_MUL},
    {"5x0e+3x1o", SH1, SH1, CLB_MUL_IR},
    {"128x1o", "1x0e+1o+1x2e", SH1, CLB_IR_MUL},
};

static void each_case(void **state) {
  device *d = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int accumulate = 0; accumulate < 2; accumulate++) {
      static clb_instructions found;
      OK(d->ctx,
         clb_channel_wise(d->ctx, cases[i].x, cases[i].y, cases[i].filter, CLB_AS_FOUND, &found));
      clb_tensor_product_desc desc = {.irreps_x = found.irreps_x,
                                      .irreps_y = found.irreps_y,
                                      .irreps_z = found.irreps_z,
                                      .instructions = found.instructions,
                                      .n_instructions = found.n_instructions,
                                      .layout_x = cases[i].layout,
                                      .layout_z = cases[i].layout,
                                      .layout_y = cases[i].layout,
                                      .accumulate = accumulate,
                                      .storage = CLB_F64,
                                      .arithmetic = CLB_F64};
      test_product *p = product_create(d->ctx, &desc, dense_golden_3j);
      for (int pass = 0; pass < PASSES; pass++)
        if (!accumulate || pass != CLB_TRIPLE_BACKWARD)
          run_and_compare(p, pass, accumulate ? 1 : 7, 11 + i);
      product_destroy(p);
    }
}

/* Terms that no path reaches, several paths into one, half precision. */
static void others(void **state) {
  device *d = *state;
  for (int i = 0; i < 3; i++) {
    clb_tensor_product_desc desc = describe(d, i == 2 ? WEIGHTLESS : TANGLED);
    static const char *const wide[] = {"45x0e+45x1o+45x1o+2x3o", "45x0e+45x1o+3x2e+45x3o"};
    if (i < 2) desc.irreps_x = wide[0], desc.irreps_z = wide[1];
    if (i == 1)
      desc.layout_x = desc.layout_z = CLB_IR_MUL, desc.storage = CLB_F16, desc.arithmetic = CLB_F32;
    test_product *p = product_create(d->ctx, &desc, dense_golden_3j);
    for (int pass = 0; pass < PASSES; pass++) run_and_compare(p, pass, 6, 5);
    product_destroy(p);
  }
}

static void modes(void **state) {
  static const int which[] = {MODES, FEW_SHARED, WIDE, MIXING};
  device *d = *state;
  for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
    clb_tensor_product_desc desc = describe(d, which[i]);
    test_product *p = product_create(d->ctx, &desc, dense_golden_3j);
    for (int pass = 0; pass < (i < 2 ? PASSES : CLB_DOUBLE_BACKWARD); pass++)
      run_and_compare(p, pass, 5, 3);
    product_destroy(p);
  }
}

static int close_all(void **state) {
  (void)state;
  for (int i = 0; i < GPUS; i++) clb_context_destroy(&simulated[i].ctx);
  return 0;
}

int main(void) {
  static const struct {
    const char *name;
    void (*run)(void **);
  } tests[] = {{"channels", each_case}, {"others", others}, {"modes", modes}};
  static char labels[GPUS * 3][64];
  static struct CMUnitTest all[GPUS * 3];
  int n = 0;
  for (int g = 0; g < GPUS; g++) {
    device *d = &simulated[g];
    d->effort = THOROUGH;
    if (clb_context_create("cpu:interpreter", &d->ctx)) return 1;
    d->ctx->device->limits = device_limits[gpus[g]].limits;
    for (int t = 0; t < 3; t++) {
      snprintf(labels[n], sizeof labels[n], "product_schedules_%s[%s]", tests[t].name,
               device_limits[gpus[g]].name);
      all[n] = (struct CMUnitTest){labels[n], tests[t].run, NULL, NULL, d};
      n++;
    }
  }
  return _cmocka_run_group_tests("product_schedules", all, (size_t)n, NULL, close_all);
}
