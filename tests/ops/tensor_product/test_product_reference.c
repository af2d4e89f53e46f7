/* tests/ops/tensor_product/test_product_reference.c - what `clebsch check` and `clebsch bench`
   compare tensor products with: 3j symbols and plain sums. */
#include "tests/ops/tensor_product/product_problems.h"

#include "tools/reference/reference_irreps.h"
#include "tools/reference/reference_tensor_product.h"

/* ---- the 3j symbols that references are made of ---- */

static double symbol[25 * 25 * 25], golden[9 * 9 * 9];

static void golden_3j(void **state) {
  (void)state;
  int paths = 0;
  for (int l1 = 0; l1 <= 4; l1++)
    for (int l2 = 0; l2 <= 4; l2++)
      for (int l3 = abs(l1 - l2); l3 <= l1 + l2 && l3 <= 4; l3++, paths++) {
        reference_3j(l1, l2, l3, symbol);
        dense_golden_3j(l1, l2, l3, golden);
        for (int i = 0; i < (2 * l1 + 1) * (2 * l2 + 1) * (2 * l3 + 1); i++)
          assert_true(fabs(symbol[i] - golden[i]) <= 4e-16 && (symbol[i] != 0) == (golden[i] != 0));
      }
  assert_int_equal(paths, 65);
}

/* sum_ij C_ijk C_ijm = delta_km / (2 l3 + 1), where the factorials are largest. */
static void large_3j(void **state) {
  (void)state;
  static const int cases[][3] = {{12, 12, 12}, {12, 12, 1}, {12, 7, 10}, {6, 6, 12}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    int n3 = 2 * cases[c][2] + 1, pairs = (2 * cases[c][0] + 1) * (2 * cases[c][1] + 1);
    reference_3j(cases[c][0], cases[c][1], cases[c][2], symbol);
    for (int k = 0; k < n3; k++)
      for (int m = 0; m < n3; m++) {
        double sum = 0;
        for (int i = 0; i < pairs; i++) sum += symbol[i * n3 + k] * symbol[i * n3 + m];
        assert_true(fabs(sum - (k == m ? 1. / n3 : 0)) <= 1e-14);
      }
  }
}

/* ---- sums ---- */

static void plain_sums(void **state) {
  enum { N = 3 };
  (void)state;
  static const int which[] = {TANGLED, WEIGHTLESS, MODES, SHARED, WIDE, EDGES};
  for (size_t i = 0; i < 3 * (sizeof which / sizeof *which); i++) {
    clb_tensor_product_desc desc = describe(all_devices(), which[i / 3]);
    desc.irrep_normalization = (clb_irrep_normalization)(i % 3);
    desc.path_normalization = (clb_path_normalization)((i + i / 3) % 3);
    test_product p = {.desc = desc, .dense = dense_create(&desc, dense_golden_3j)};
    memcpy(p.width, p.dense->width, sizeof p.width);
    reference_product *reference = reference_product_create(&desc);
    assert_non_null(reference);
    for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
      arrays a = arrays_create(&p, N, 21), scale = arrays_create(&p, N, 21);
      reference_product_run(reference, (clb_pass)pass, N, (const double *const *)a.in, a.out,
                            scale.out);
      compare(&p, pass, &a, NULL);
      arrays_destroy(&a);
      arrays_destroy(&scale);
    }
    reference_product_destroy(reference);
    dense_destroy(p.dense);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(golden_3j), cmocka_unit_test(large_3j),
                                     cmocka_unit_test(plain_sums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
