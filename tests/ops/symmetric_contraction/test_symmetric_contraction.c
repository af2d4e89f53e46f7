/* tests/ops/symmetric_contraction/test_symmetric_contraction.c - the symmetric contraction against
   plain sums in float64, on every device that runs here. */
#include "tests/ops/symmetric_contraction/contraction_arrays.h"

static const int degrees[] = {0, 1, 2, 3}, backwards[] = {2, 0, 1}, one[] = {1}, scalar[] = {0};

static clb_symmetric_contraction_desc describe(int ell, int correlation, const int *list, int n,
                                               int channels, clb_dtype type) {
  return (clb_symmetric_contraction_desc){.ell = ell,
                                          .correlation = correlation,
                                          .degrees = list,
                                          .n_degrees = n,
                                          .channels = channels,
                                          .n_species = 3,
                                          .layout_x = CLB_IR_MUL,
                                          .layout_z = CLB_IR_MUL,
                                          .storage = type,
                                          .arithmetic = type == CLB_F64 ? CLB_F64 : CLB_F32};
}

static void all_passes(void **state, const clb_symmetric_contraction_desc *desc, int rows,
                       enum species_order order, bool gaps) {
  test_contraction *t = contraction_create(context_of(*state), desc);
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
    contraction_check(t, pass, rows, order, gaps);
  contraction_destroy(t);
}

/* Degrees and orders, small to large: instructions and tables. */
static void problems(void **state) {
  static const struct {
    int ell, correlation, n;
    const int *degrees;
  } list[] = {{2, 3, 2, degrees},   {1, 2, 2, degrees}, {3, 3, 2, degrees}, {0, 4, 1, degrees},
              {1, 4, 3, backwards}, {2, 1, 3, degrees}, {1, 1, 4, degrees}, {3, 2, 1, one},
              {2, 4, 3, backwards}, {3, 4, 2, degrees}, {4, 3, 1, scalar}};
  int n = many(*state, 2, 11, 9);
  for (int i = 0; i < n; i++) {
    clb_symmetric_contraction_desc d =
        describe(list[i].ell, list[i].correlation, list[i].degrees, list[i].n, 5, CLB_F64);
    all_passes(state, &d, 7, MIXED_UP, false);
  }
}

static void channels(void **state) {
  static const int list[] = {33, 1, 3, 5, 7, 13, 89, 123};
  for (int i = 0; i < many(*state, 1, 8, 8); i++) {
    clb_symmetric_contraction_desc d =
        describe(2, 2, degrees, 2, list[i], i % 2 ? CLB_F64 : CLB_F32);
    d.layout_x = i % 4 < 2 ? CLB_MUL_IR : CLB_IR_MUL;
    d.layout_z = i % 3 ? CLB_MUL_IR : CLB_IR_MUL;
    all_passes(state, &d, 9, i % 2 ? SORTED : MIXED_UP, i % 2);
  }
}

/* x and z by channel, or one of them; at ell 3 with correlation 4 from tables. */
static void by_channel(void **state) {
  for (int i = 0; i < many(*state, 3, 6, 8); i++) {
    clb_symmetric_contraction_desc d =
        describe(i == 5 ? 3 : 1 + i % 2, i == 5 ? 4 : 2 + i % 2, i % 2 ? backwards : degrees,
                 2 + i % 2, 3 + 4 * (i % 5), (clb_dtype)(i % 4));
    if (i % 3 < 2) d.layout_x = CLB_BY_CHANNEL;
    if (i % 3) d.layout_z = CLB_BY_CHANNEL;
    d.accumulate = i == 2;
    all_passes(state, &d, 9, MIXED_UP, i % 2);
  }
}

static void types(void **state) {
  for (clb_dtype type = CLB_F32; type <= CLB_BF16; type++) {
    clb_symmetric_contraction_desc d = describe(2, 3, degrees, 2, 6, type);
    d.accumulate = type % 2;
    all_passes(state, &d, 6, SORTED, true);
  }
}

static void numbers_of_rows(void **state) {
  static const int rows[] = {0, 1, 2, 17, 300, 2100};
  static const enum species_order orders[] = {SORTED, MIXED_UP, ALL_LAST};
  for (int accumulate = 0; accumulate < 2; accumulate++) {
    clb_symmetric_contraction_desc d = describe(1, 3, degrees, 2, 4, CLB_F64);
    d.accumulate = accumulate;
    test_contraction *t = contraction_create(context_of(*state), &d);
    for (int r = 0; r < many(*state, 5, 6, 5); r++)
      for (int o = 0; o < 3; o++)
        for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
          contraction_check(t, pass, rows[r], orders[o], r % 2);
    contraction_destroy(t);
  }
}

/* Without the optimisations that a context can disable. */
static void disabled(void **state) {
  clb_context *ctx = context_of(*state);
  clb_symmetric_contraction_desc d = describe(2, 3, degrees, 2, 5, CLB_F64);
  d.layout_x = CLB_MUL_IR;
  OK(ctx, clb_context_disable(ctx, CLB_WIDE_ACCESSES | CLB_REGISTER_SUMS));
  all_passes(state, &d, 19, MIXED_UP, false);
  OK(ctx, clb_context_disable(ctx, 0));
}

int main(void) {
  static const device_test tests[] = {
      {"problems", problems, EVERYWHERE}, {"channels", channels, EVERYWHERE},
      {"types", types, EVERYWHERE},       {"numbers_of_rows", numbers_of_rows, EVERYWHERE},
      {"disabled", disabled, EVERYWHERE}, {"by_channel", by_channel, EVERYWHERE}};
  return run_on_devices("symmetric_contraction", tests, sizeof tests / sizeof *tests);
}
