/* tests/tools/test_reference.c - the reference that `clebsch check` and `clebsch bench` compare
   with: golden values, finite differences, sum rules. */
#include "tests/test.h"

#include <math.h>

#include "tools/reference/reference_spherical_harmonics.c"

enum { LMAX = 12, VALUES = (LMAX + 1) * (LMAX + 1) };

static const int all_degrees[ORDERS] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10,
                                        11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

static clb_spherical_harmonics_desc up_to(int lmax, int normalize) {
  return (clb_spherical_harmonics_desc){
      .degrees = all_degrees, .n_degrees = lmax + 1, .normalize = normalize};
}

/* Reads "NAME number number ..." */
static int read_numbers(FILE *f, const char *name, double *out, int n) {
  char word[8];
  if (fscanf(f, "%7s", word) != 1) return 0;
  assert_string_equal(word, name);
  for (int i = 0; i < n; i++) assert_int_equal(fscanf(f, "%lf", out + i), 1);
  return 1;
}

static void golden(void **state) {
  (void)state;
  char path[4096];
  assert_non_null(getenv("CLB_TEST_DATA"));
  assert_in_range(snprintf(path, sizeof path, "%s/golden_sh_lmax12.txt", getenv("CLB_TEST_DATA")),
                  1, sizeof path - 1);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  assert_int_equal(fscanf(f, "#%*[^\n]"), 0);
  clb_spherical_harmonics_desc desc = up_to(LMAX, 0);
  int points = 0;
  double x[3];
  while (read_numbers(f, "P", x, 3)) {
    double y[VALUES], scale[VALUES], want[VALUES], g[VALUES] = {0}, want_d[3][VALUES], d[3],
                                                   d_scale[3];
    read_numbers(f, "Y", want, VALUES);
    for (int a = 0; a < 3; a++)
      read_numbers(f, (const char *[]){"D0", "D1", "D2"}[a], want_d[a], VALUES);
    reference_forward(&desc, 1, x, y, scale);
    for (int i = 0; i < VALUES; i++) {
      assert_true(fabs(y[i] - want[i]) <= 4e-15 * scale[i]);
      g[i] = 1;
      reference_backward(&desc, 1, x, g, d, d_scale);
      g[i] = 0;
      for (int a = 0; a < 3; a++) assert_true(fabs(d[a] - want_d[a][i]) <= 4e-15 * d_scale[a]);
    }
    points++;
  }
  fclose(f);
  assert_int_equal(points, 6);
}

static void second_derivatives(void **state) {
  (void)state;
  const double lengths[] = {0.7, 1.9,
                            3e-13}; /* the last: inside the ball where x / 1e-12 is evaluated */
  uint64_t seed = 7;
  for (int normalize = 0; normalize < 2; normalize++)
    for (int i = 0; i < 2 + normalize; i++) {
      enum { L = 5, D = (L + 1) * (L + 1) };
      clb_spherical_harmonics_desc desc = up_to(L, normalize);
      double x[3], g[D], h[3], d_x[3], d_g[D], d_x_scale[3], d_g_scale[D], step = lengths[i] * 1e-5;
      for (int a = 0; a < 3; a++) x[a] = lengths[i] * test_random(&seed), h[a] = test_random(&seed);
      for (int a = 0; a < D; a++) g[a] = test_random(&seed);
      reference_double_backward(&desc, 1, x, g, h, d_x, d_g, d_x_scale, d_g_scale);
      for (int a = 0; a < 3; a++) { /* d_x_a = sum_b h_b d g_x_b / d x_a */
        double up[3] = {x[0], x[1], x[2]}, down[3] = {x[0], x[1], x[2]}, g_up[3], g_down[3],
               scale[3], sum = 0;
        up[a] += step, down[a] -= step;
        reference_backward(&desc, 1, up, g, g_up, scale);
        reference_backward(&desc, 1, down, g, g_down, scale);
        for (int b = 0; b < 3; b++) sum += h[b] * (g_up[b] - g_down[b]) / (up[a] - down[a]);
        assert_true(fabs(sum - d_x[a]) <= 1e-8 * d_x_scale[a]);
      }
      double up[3], down[3], y_up[D], y_down[D], scale[D]; /* d_g_y = the derivative of y along h */
      for (int a = 0; a < 3; a++) up[a] = x[a] + step * h[a], down[a] = x[a] - step * h[a];
      reference_forward(&desc, 1, up, y_up, scale);
      reference_forward(&desc, 1, down, y_down, scale);
      for (int a = 0; a < D; a++)
        assert_true(fabs((y_up[a] - y_down[a]) / (2 * step) - d_g[a]) <= 1e-8 * d_g_scale[a]);
    }
}

static void
sum_rules(void **state) { /* the norms of a degree are what block_norms says, up to l = 20 */
  (void)state;
  static const real x[3] = {0.4L, -0.9L, 0.6L};
  static sums s;
  for (int kind = CLB_COMPONENT; kind <= CLB_INTEGRAL; kind++)
    for (int l = 0; l <= REFERENCE_MAX_DEGREE; l++) {
      jet y[ROW];
      real norm[3], sum[3] = {0};
      sums_of_degree(&s, l, (clb_normalization)kind);
      block(&s, l, x, y);
      block_norms(l, (clb_normalization)kind, sqrtl(dot(x, x)), norm);
      for (int m = 0; m < 2 * l + 1; m++) {
        sum[0] += y[m].v * y[m].v;
        sum[1] += dot(y[m].d, y[m].d);
        for (int a = 0; a < 3; a++) sum[2] += dot(y[m].dd[a], y[m].dd[a]);
        assert_true(fabsl(y[m].dd[0][0] + y[m].dd[1][1] + y[m].dd[2][2]) <=
                    1e-15L * norm[2]); /* harmonic */
      }
      for (int a = 0; a < 3; a++) assert_true(fabsl(sqrtl(sum[a]) - norm[a]) <= 1e-15L * norm[a]);
    }
}

static void origin(void **state) {
  (void)state;
  clb_spherical_harmonics_desc desc = up_to(2, 1);
  double x[3] = {0}, y[9], g[9], h[3] = {1, 2, 3}, d_x[3], d_g[9], s3[3], s9[9];
  for (int i = 0; i < 9; i++) g[i] = i + 1;
  reference_forward(&desc, 1, x, y, s9);
  for (int i = 0; i < 9; i++) assert_true(y[i] == (i == 0));
  reference_backward(&desc, 1, x, g, d_x, s3);
  for (int a = 0; a < 3; a++) assert_true(d_x[a] == 0);
  reference_double_backward(&desc, 1, x, g, h, d_x, d_g, s3, s9);
  for (int a = 0; a < 3; a++) assert_true(d_x[a] == 0);
  for (int i = 0; i < 9; i++) assert_true(d_g[i] == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(golden), cmocka_unit_test(second_derivatives),
                                     cmocka_unit_test(sum_rules), cmocka_unit_test(origin)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
