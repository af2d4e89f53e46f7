/* tests/problem/test_rotation.c - rotations of spherical harmonics, against harmonics of rotated
   points, which another program made; and the rows of edges' frames. */
#include <math.h>

#include "kernels/convolution/frame.h"
#include "src/problem/rotation.h"
#include "tests/test.h"
#include "tools/reference/reference_spherical_harmonics.c"

enum { N = 2 * CLB_MAX_ROTATED_L + 1 };

static void harmonics(int l, const double *x, double *y) {
  const int32_t degrees[] = {l};
  double scale[N];
  reference_forward(&(clb_spherical_harmonics_desc){.degrees = degrees,
                                                    .n_degrees = 1,
                                                    .normalization = CLB_COMPONENT},
                    1, x, y, scale);
}

/* v rotated about an axis. */
static void turn(int axis, double angle, const double *v, double *out) {
  const int b = (axis + 1) % 3, c = (axis + 2) % 3;
  out[axis] = v[axis];
  out[b] = cos(angle) * v[b] - sin(angle) * v[c];
  out[c] = sin(angle) * v[b] + cos(angle) * v[c];
}

static const double point[] = {0.36, -0.48, 0.8};

/* d/dt Y(R v) = J Y(v), by central differences. */
static void generators(void **state) {
  (void)state;
  for (int l = 1; l <= CLB_MAX_ROTATED_L; l++)
    for (int axis = 0; axis < 3; axis++) {
      const double h = 1e-5;
      double J[N * N], y[N], ahead[N], behind[N], v[3];
      const int n = 2 * l + 1;
      clb_rotation_generator(l, axis, J);
      harmonics(l, point, y);
      turn(axis, h, point, v);
      harmonics(l, v, ahead);
      turn(axis, -h, point, v);
      harmonics(l, v, behind);
      for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < n; k++) {
          sum += J[i * n + k] * y[k];
          assert_true(fabs(J[i * n + k] + J[k * n + i]) < 1e-12);
        }
        if (!(fabs(sum - (ahead[i] - behind[i]) / (2 * h)) < 1e-6))
          fail_msg("l = %d, axis %d, component %d: %g, not %g", l, axis, i, sum,
                   (ahead[i] - behind[i]) / (2 * h));
      }
    }
}

/* Y of the point turned about x by -t; components of m >= 0 and m < 0 do not mix. */
static void series(void **state) {
  (void)state;
  for (int l = 1; l <= CLB_MAX_ROTATED_L; l++)
    for (double t = -3; t < 3.2; t += 0.4) {
      const int n = 2 * l + 1;
      double v[3], y[N], want[N];
      double *C = calloc((size_t)((l + 1) * n * n), 8), *S = calloc((size_t)((l + 1) * n * n), 8);
      assert_true(C && S && clb_rotation_series(l, C, S));
      turn(0, -t, point, v);
      harmonics(l, point, y);
      harmonics(l, v, want);
      for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int m = 0; m <= l; m++)
          for (int k = 0; k < n; k++) {
            const double c = C[(m * n + i) * n + k], s = S[(m * n + i) * n + k];
            sum += (c * cos(m * t) + s * sin(m * t)) * y[k];
            assert_true((i >= l) == (k >= l) || (c == 0 && s == 0));
          }
        if (!(fabs(sum - want[i]) < 1e-12))
          fail_msg("l = %d, t = %g, component %d: %.17g, not %.17g", l, t, i, sum, want[i]);
      }
      free(C), free(S);
    }
}

/* Along the polar axis only the component m = 0 is not 0. */
static void poles(void **state) {
  static const double pole[] = {0, 1, 0};
  (void)state;
  for (int l = 0; l <= CLB_MAX_FRAME_L; l++) {
    double y[N];
    harmonics(l, pole, y);
    for (int i = 0; i <= 2 * l; i++)
      assert_true(fabs(y[i] - (i == l ? clb_frame_harmonic(CLB_COMPONENT, l) : 0)) < 1e-12);
  }
}

/* Blocks follow each other, each starting at a multiple of 4, and then what gives m = 0. */
static void rows(void **state) {
  (void)state;
  for (int L = 1; L <= CLB_MAX_FRAME_L; L++) {
    int end = 2 * L;
    for (int l = 1; l <= L; l++)
      for (int below = 0; below < 2; below++) {
        const int at = clb_frame_block(L, l, below), side = below ? l : l + 1;
        assert_true(at % 4 == 0 && at >= end && at < end + 4);
        end = at + side * side;
      }
    assert_true(clb_frame_axis(L, 1) % 4 == 0 && clb_frame_axis(L, 1) >= end &&
                clb_frame_axis(L, 1) < end + 4);
    for (int l = 1; l <= L; l++)
      assert_int_equal(clb_frame_axis(L, l + 1), clb_frame_axis(L, l) + 2 * l + 1);
    end = clb_frame_axis(L, L + 1);
    assert_true(clb_frame_size(L) % 4 == 0 && clb_frame_size(L) >= end &&
                clb_frame_size(L) < end + 4);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(generators), cmocka_unit_test(series),
                                     cmocka_unit_test(poles), cmocka_unit_test(rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
