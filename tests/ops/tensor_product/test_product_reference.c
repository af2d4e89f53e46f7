/* tests/ops/tensor_product/test_product_reference.c - the 3j symbols that references are made of.
 */
#include "tests/test.h"

#include <math.h>

#include "tools/reference/reference_irreps.h"

static double symbol[25 * 25 * 25], golden[5][5][5][9][9][9];

/* e3nn's own numbers, l <= 4. */
static void golden_3j(void **state) {
  char name[4096];
  int a, b, c, i, j, k, numbers = 0, paths = 0;
  double value;
  (void)state;
  assert_non_null(getenv("CLB_TEST_DATA"));
  snprintf(name, sizeof name, "%s/golden_w3j_lmax4.txt", getenv("CLB_TEST_DATA"));
  FILE *f = fopen(name, "r");
  assert_non_null(f);
  assert_int_equal(fscanf(f, "#%*[^\n]"), 0);
  for (; fscanf(f, "%d %d %d %d %d %d %lf", &a, &b, &c, &i, &j, &k, &value) == 7; numbers++)
    golden[a][b][c][i][j][k] = value;
  fclose(f);
  assert_int_equal(numbers, 2052);
  for (a = 0; a <= 4; a++)
    for (b = 0; b <= 4; b++)
      for (c = abs(a - b); c <= a + b && c <= 4; c++, paths++) {
        const double *s = symbol;
        reference_3j(a, b, c, symbol);
        for (i = 0; i < 2 * a + 1; i++)
          for (j = 0; j < 2 * b + 1; j++)
            for (k = 0; k < 2 * c + 1; k++, s++) {
              const double want = golden[a][b][c][i][j][k];
              assert_true(fabs(*s - want) <= 4e-16 && (*s != 0) == (want != 0));
            }
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(golden_3j), cmocka_unit_test(large_3j)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
