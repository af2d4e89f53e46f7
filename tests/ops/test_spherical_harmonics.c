/* tests/ops/test_spherical_harmonics.c - the op by mathematical property, on every device that runs
   here. */
#define _GNU_SOURCE
#include "tests/test.h"

#include <math.h>
#include <sys/mman.h>

#include <clebsch/clebsch.h>

#include "tools/reference/reference_spherical_harmonics.h"

enum { MAX_DEVICES = 16, MAX_D = 441 };
static char devices[MAX_DEVICES][64];
static int n_devices;

static void add_device(const clb_device_info *info, void *user) {
  (void)user;
  if (info->runs && info->f64 && n_devices < MAX_DEVICES)
    snprintf(devices[n_devices++], sizeof devices[0], "%s", info->name);
}

static const int ascending[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10,
                                11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

static clb_context *open_device(const char *name) {
  clb_context *ctx = NULL;
  OK(ctx, clb_context_create(name, &ctx));
  return ctx;
}

static clb_rows rows_of(clb_context *ctx, const void *from, size_t bytes) {
  clb_rows r = {0};
  OK(ctx, clb_buffer_create(ctx, bytes, &r.buffer));
  if (from) OK(ctx, clb_buffer_write(r.buffer, 0, from, bytes));
  return r;
}

static clb_rows nan_rows(clb_context *ctx, size_t n) {
  double *x = malloc(8 * n + 8);
  for (size_t i = 0; i < n; i++) x[i] = NAN;
  clb_rows r = rows_of(ctx, x, 8 * n);
  free(x);
  return r;
}

static void take(clb_context *ctx, clb_rows *r, void *to, size_t bytes) {
  if (to) OK(ctx, clb_buffer_read(r->buffer, 0, to, bytes));
  clb_buffer_destroy(&r->buffer);
}

static clb_op *new_op(clb_context *ctx, const int *degrees, int n_degrees, int normalize,
                      clb_normalization normalization) {
  clb_op *op;
  clb_spherical_harmonics_desc d = {degrees, n_degrees, normalization, normalize, CLB_F64, CLB_F64,
                                    0,       7};
  OK(ctx, clb_spherical_harmonics_create(ctx, &d, &op));
  return op;
}

/* All three passes in f64 on dense rows. */
static void run_forward(clb_context *ctx, clb_op *op, int64_t n, int D, const double *x,
                        double *y) {
  clb_rows rx = rows_of(ctx, x, 24 * (size_t)n), ry = nan_rows(ctx, (size_t)(n * D));
  OK(ctx, clb_spherical_harmonics_forward(op, n, rx, ry));
  take(ctx, &rx, NULL, 0);
  take(ctx, &ry, y, 8 * (size_t)(n * D));
}

static void run_backward(clb_context *ctx, clb_op *op, int64_t n, int D, const double *x,
                         const double *g, double *g_x) {
  clb_rows rx = rows_of(ctx, x, 24 * (size_t)n), rg = rows_of(ctx, g, 8 * (size_t)(n * D)),
           ro = nan_rows(ctx, (size_t)(3 * n));
  OK(ctx, clb_spherical_harmonics_backward(op, n, rx, rg, ro));
  take(ctx, &rx, NULL, 0);
  take(ctx, &rg, NULL, 0);
  take(ctx, &ro, g_x, 24 * (size_t)n);
}

static void random_fill(double *x, size_t n, uint64_t seed) {
  for (size_t i = 0; i < n; i++) x[i] = test_random(&seed);
}

/* ---- golden values and exact gradients, l <= 12 ---- */

static void golden(void **state) {
  const char *device = *state;
  enum { D = 169 };
  clb_context *ctx = open_device(device);
  clb_op *op = new_op(ctx, ascending, 13, 0, CLB_COMPONENT);
  char path[4096];
  snprintf(path, sizeof path, "%s/golden_sh_lmax12.txt", getenv("CLB_TEST_DATA"));
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  assert_int_equal(fscanf(f, "#%*[^\n]"), 0);
  static double x[D * 3], y[D * D], g[D * D], g_x[D * 3], want[4][D];
  int points = 0;
  char word[4];
  while (fscanf(f, "%3s", word) == 1) {
    for (int i = 0; i < 3; i++) assert_int_equal(fscanf(f, "%lf", x + i), 1);
    for (int a = 0; a < 4; a++) {
      assert_int_equal(fscanf(f, "%3s", word), 1);
      for (int i = 0; i < D; i++) assert_int_equal(fscanf(f, "%lf", &want[a][i]), 1);
    }
    for (int r = 1; r < D; r++) memcpy(x + 3 * r, x, 24);
    memset(g, 0, sizeof g);
    for (int r = 0; r < D; r++) g[r * D + r] = 1; /* row r: the gradient of harmonic r */
    run_forward(ctx, op, D, D, x, y);
    run_backward(ctx, op, D, D, x, g, g_x);
    for (int r = 0; r < D; r++) {
      assert_true(fabs(y[r] - want[0][r]) <= 2e-13 * (1 + fabs(want[0][r])));
      for (int k = 0; k < 3; k++)
        assert_true(fabs(g_x[3 * r + k] - want[1 + k][r]) <= 2e-13 * (10 + fabs(want[1 + k][r])));
    }
    points++;
  }
  fclose(f);
  assert_true(points >= 3);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
}

/* ---- rotations and inversion, without any matrix of a representation ----
   K(x, p) = sum_i Y_i(x) Y_i(p) depends on |x|, |p| and the angle only, and is (2l+1) P_l for one
   degree on the sphere. */

static void rotate(const double *x, double *out) { /* a rotation about (1, 2, -2)/3 by 1 radian */
  const double a[3] = {1. / 3, 2. / 3, -2. / 3}, c = cos(1), s = sin(1);
  double d = a[0] * x[0] + a[1] * x[1] + a[2] * x[2];
  for (int k = 0; k < 3; k++) {
    int i = (k + 1) % 3, j = (k + 2) % 3;
    out[k] = c * x[k] + s * (a[i] * x[j] - a[j] * x[i]) + (1 - c) * d * a[k];
  }
}

static void equivariance(void **state) {
  const char *device = *state;
  enum { N = 67, L = 12, D = (L + 1) * (L + 1) };
  static double x[3 * N], p[3 * N], rx[3 * N], rp[3 * N], y[N * D], yp[N * D], ry[N * D],
      ryp[N * D], g_x[3 * N], rg_x[3 * N], turned[3], minus[3 * N], ym[N * D];
  clb_context *ctx = open_device(device);
  clb_op *op = new_op(ctx, ascending, L + 1, 1, CLB_COMPONENT);
  random_fill(x, 3 * N, 5);
  random_fill(p, 3 * N, 6);
  for (int r = 0; r < N; r++) rotate(x + 3 * r, rx + 3 * r), rotate(p + 3 * r, rp + 3 * r);
  for (int i = 0; i < 3 * N; i++) minus[i] = -x[i];
  run_forward(ctx, op, N, D, x, y);
  run_forward(ctx, op, N, D, p, yp);
  run_forward(ctx, op, N, D, rx, ry);
  run_forward(ctx, op, N, D, rp, ryp);
  run_forward(ctx, op, N, D, minus, ym);
  for (int r = 0; r < N; r++) {
    const double *a = x + 3 * r, *b = p + 3 * r;
    double t =
        (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]) /
        sqrt((a[0] * a[0] + a[1] * a[1] + a[2] * a[2]) * (b[0] * b[0] + b[1] * b[1] + b[2] * b[2]));
    double before = 0, legendre = 1;
    for (int l = 0; l <= L; l++) {
      double k = 0, rk = 0, norm = 0;
      for (int i = l * l; i < (l + 1) * (l + 1); i++) {
        k += y[r * D + i] * yp[r * D + i], rk += ry[r * D + i] * ryp[r * D + i],
            norm += y[r * D + i] * y[r * D + i];
        assert_true(ym[r * D + i] == (l % 2 ? -1 : 1) * y[r * D + i]);
      }
      assert_true(fabs(norm - (2 * l + 1)) <= 1e-12 * (2 * l + 1)); /* the sum rule */
      assert_true(fabs(k - (2 * l + 1) * legendre) <= 1e-12 * (2 * l + 1));
      assert_true(fabs(rk - k) <= 1e-12 * (2 * l + 1));
      double next = ((2 * l + 1) * t * legendre - l * before) / (l + 1);
      before = legendre;
      legendre = next;
    }
  }
  run_backward(ctx, op, N, D, x, yp, g_x); /* the gradient of K is rotated with its points */
  run_backward(ctx, op, N, D, rx, ryp, rg_x);
  for (int r = 0; r < N; r++) {
    double size = 0;
    for (int k = 0; k < 3; k++) size += fabs(g_x[3 * r + k]);
    rotate(g_x + 3 * r, turned);
    for (int k = 0; k < 3; k++)
      assert_true(fabs(turned[k] - rg_x[3 * r + k]) <= 1e-12 * (100 + size) * D);
  }
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
}

/* ---- rows: numbers, strides, padding, empty input; what lies between rows stays as it was ---- */

static void strides(void **state) {
  const char *device = *state;
  static const int64_t numbers[] = {0, 1, 31, 33, 127, 129, 1003};
  enum { D = 16, SX = 5, SY = 19, OFFSET = 7 };
  clb_context *ctx = open_device(device);
  clb_op *op = new_op(ctx, ascending, 4, 0, CLB_COMPONENT);
  for (size_t t = 0; t < sizeof numbers / sizeof *numbers; t++) {
    int64_t n = numbers[t];
    size_t nx = (size_t)(OFFSET + n * SX + 3), ny = (size_t)(OFFSET + n * SY + D);
    double *x = malloc(8 * nx), *y = malloc(8 * ny), *g = malloc(8 * D), *g_x = malloc(8 * nx),
           *dense = malloc(24 * (size_t)n + 24), *want = malloc(8 * D * (size_t)n + 8),
           *all_g = malloc(8 * D * (size_t)n + 8), *want_g = malloc(24 * (size_t)n + 24);
    random_fill(x, nx, 7);
    random_fill(g, D, 8);
    for (size_t i = 0; i < ny; i++) y[i] = 1000;
    for (size_t i = 0; i < nx; i++) g_x[i] = 1000;
    for (int64_t r = 0; r < n; r++)
      memcpy(dense + 3 * r, x + OFFSET + r * SX, 24), memcpy(all_g + D * r, g, 8 * D);
    clb_rows rx = rows_of(ctx, x, 8 * nx), ry = rows_of(ctx, y, 8 * ny),
             rg = rows_of(ctx, g, 8 * D), rgx = rows_of(ctx, g_x, 8 * nx);
    rx.offset = ry.offset = rgx.offset = OFFSET;
    rx.stride = rgx.stride = SX;
    ry.stride = SY;
    rg.stride = CLB_SAME_ROW; /* one gradient for all rows */
    OK(ctx, clb_spherical_harmonics_forward(op, n, rx, ry));
    OK(ctx, clb_spherical_harmonics_backward(op, n, rx, rg, rgx));
    take(ctx, &rx, NULL, 0);
    take(ctx, &rg, NULL, 0);
    take(ctx, &ry, y, 8 * ny);
    take(ctx, &rgx, g_x, 8 * nx);
    if (n)
      run_forward(ctx, op, n, D, dense, want), run_backward(ctx, op, n, D, dense, all_g, want_g);
    for (int64_t i = 0; i < (int64_t)ny; i++) {
      int64_t r = (i - OFFSET) / SY, c = (i - OFFSET) % SY;
      assert_true(y[i] == (i >= OFFSET && r < n && c < D ? want[r * D + c] : 1000));
    }
    for (int64_t i = 0; i < (int64_t)nx; i++) {
      int64_t r = (i - OFFSET) / SX, c = (i - OFFSET) % SX;
      assert_true(g_x[i] == (i >= OFFSET && r < n && c < 3 ? want_g[3 * r + c] : 1000));
    }
    free(x), free(y), free(g), free(g_x), free(dense), free(want), free(all_g), free(want_g);
  }
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
}

/* 100,003 rows in f32: right by the reference, and the same bits when run again. */
static void many_rows(void **state) {
  const char *device = *state;
  enum { N = 100003, D = 25 };
  clb_context *ctx = open_device(device);
  clb_op *op;
  clb_spherical_harmonics_desc d = {
      ascending, 5, CLB_INTEGRAL, 1, CLB_F32, CLB_F32, 0, CLB_PASS_BIT(CLB_FORWARD)};
  OK(ctx, clb_spherical_harmonics_create(ctx, &d, &op));
  float *x = malloc(12 * N), *y = malloc(4 * N * D), *again = malloc(4 * N * D);
  uint64_t seed = 9;
  for (int i = 0; i < 3 * N; i++) x[i] = (float)test_random(&seed);
  for (int turn = 0; turn < 2; turn++) {
    memset(turn ? again : y, 0xff, 4 * N * D);
    clb_rows rx = rows_of(ctx, x, 12 * N), ry = rows_of(ctx, turn ? again : y, 4 * N * D);
    OK(ctx, clb_spherical_harmonics_forward(op, N, rx, ry));
    take(ctx, &rx, NULL, 0);
    take(ctx, &ry, turn ? again : y, 4 * N * D);
  }
  assert_memory_equal(y, again, 4 * N * D);
  for (int r = 0; r < N; r += r < 300 ? 1 : 97) {
    double p[3] = {x[3 * r], x[3 * r + 1], x[3 * r + 2]}, want[D], scale[D];
    reference_forward(&d, 1, p, want, scale);
    for (int i = 0; i < D; i++)
      assert_true(fabs(y[(size_t)r * D + (size_t)i] - want[i]) <= 2e-6 * scale[i]);
  }
  free(x), free(y), free(again);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
}

/* The origin, and lengths whose squares overflow or underflow f32. */
static void extremes(void **state) {
  const char *device = *state;
  static const float point[][3] = {{0, 0, 0},          {1e-20f, 0, 0}, {0, 1e20f, -1e20f},
                                   {3e38f, 1e38f, 0},  {-0.0f, 0, 0},  {1e-13f, 1e-13f, 0},
                                   {1e-38f, 0, 1e-38f}};
  enum { N = sizeof point / sizeof *point, D = 16 };
  clb_context *ctx = open_device(device);
  clb_op *op;
  clb_spherical_harmonics_desc d = {ascending, 4, CLB_COMPONENT, 1, CLB_F32, CLB_F32, 0, 7};
  OK(ctx, clb_spherical_harmonics_create(ctx, &d, &op));
  float y[N * D], g[N * D], g_x[3 * N], h[3 * N], d_x[3 * N], d_g[N * D];
  uint64_t seed = 10;
  for (int i = 0; i < N * D; i++) g[i] = (float)test_random(&seed);
  for (int i = 0; i < 3 * N; i++) h[i] = (float)test_random(&seed);
  clb_rows rx = rows_of(ctx, point, sizeof point), ry = rows_of(ctx, NULL, sizeof y),
           rg = rows_of(ctx, g, sizeof g), rgx = rows_of(ctx, NULL, sizeof g_x),
           rh = rows_of(ctx, h, sizeof h), rdx = rows_of(ctx, NULL, sizeof d_x),
           rdg = rows_of(ctx, NULL, sizeof d_g);
  OK(ctx, clb_spherical_harmonics_forward(op, N, rx, ry));
  OK(ctx, clb_spherical_harmonics_backward(op, N, rx, rg, rgx));
  OK(ctx, clb_spherical_harmonics_double_backward(op, N, rx, rg, rh, rdx, rdg));
  take(ctx, &ry, y, sizeof y);
  take(ctx, &rgx, g_x, sizeof g_x);
  take(ctx, &rdx, d_x, sizeof d_x);
  take(ctx, &rdg, d_g, sizeof d_g);
  take(ctx, &rx, NULL, 0);
  take(ctx, &rg, NULL, 0);
  take(ctx, &rh, NULL, 0);
  for (int r = 0; r < N; r++) {
    double p[3] = {point[r][0], point[r][1], point[r][2]}, want[D], scale[D];
    reference_forward(&d, 1, p, want, scale);
    for (int i = 0; i < D; i++)
      assert_true(fabs(y[r * D + i] - want[i]) <= 2e-6 * (scale[i] + 1e-30));
    for (int k = 0; k < 3; k++) assert_true(isfinite(g_x[3 * r + k]) && isfinite(d_x[3 * r + k]));
    for (int i = 0; i < D; i++) assert_true(isfinite(d_g[r * D + i]));
    if (p[0] == 0 && p[1] == 0 && p[2] == 0)
      for (int k = 0; k < 3; k++) assert_true(g_x[3 * r + k] == 0 && d_x[3 * r + k] == 0);
  }
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
}

/* Elements beyond 2^31: sparse memory of the cpu devices. */
static void far_offsets(void **state) {
  const char *device = *state;
  enum { N = 3, D = 4 };
  const int64_t offset = ((int64_t)1 << 31) + 5, stride = ((int64_t)1 << 30) + 1;
  const size_t bytes = 4 * (size_t)(offset + N * stride);
  clb_context *ctx = open_device(device);
  clb_op *op;
  clb_spherical_harmonics_desc d = {
      ascending, 2, CLB_COMPONENT, 0, CLB_F32, CLB_F32, 0, CLB_PASS_BIT(CLB_FORWARD)};
  OK(ctx, clb_spherical_harmonics_create(ctx, &d, &op));
  float *far = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
        x[3 * N] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  assert_true(far != MAP_FAILED);
  clb_rows rx = rows_of(ctx, x, sizeof x), ry = {.offset = offset, .stride = stride};
  OK(ctx, clb_buffer_wrap(ctx, CLB_POINTER, far, bytes, &ry.buffer));
  OK(ctx, clb_spherical_harmonics_forward(op, N, rx, ry));
  OK(ctx, clb_wait(ctx));
  for (int r = 0; r < N; r++)
    for (int i = 0; i < D; i++) {
      double want = i ? sqrt(3) * x[3 * r + i - 1] : 1;
      assert_true(fabs(far[offset + r * stride + i] - want) <= 1e-5);
    }
  take(ctx, &rx, NULL, 0);
  take(ctx, &ry, NULL, 0);
  munmap(far, bytes);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
}

/* No redundant loads, by the program's own count. */
static void counts(void **state) {
  const char *device = *state;
  clb_context *ctx = open_device(device);
  static const struct {
    int lmax;
    double g;
  } cases[] = {{4, 24}, {10, 120}};
  for (int i = 0; i < 2; i++) {
    clb_op *op;
    clb_counts c;
    clb_spherical_harmonics_desc d = {
        ascending, cases[i].lmax + 1, CLB_COMPONENT, 0, CLB_F32, CLB_F32, 0, 7};
    OK(ctx, clb_spherical_harmonics_create(ctx, &d, &op));
    OK(ctx, clb_op_counts(op, CLB_FORWARD, &c));
    assert_true(c.loads == 3 && c.stores == cases[i].g + 1);
    OK(ctx, clb_op_counts(op, CLB_BACKWARD, &c));
    assert_true(c.loads == 3 + cases[i].g && c.stores == 3 && c.bytes_loaded == 4 * c.loads);
    OK(ctx, clb_op_counts(op, CLB_DOUBLE_BACKWARD, &c)); /* degree 1 has no second derivative */
    assert_true(c.loads == 6 + cases[i].g - 3 && c.stores == 3 + cases[i].g + 1);
    clb_op_destroy(&op);
  }
  clb_context_destroy(&ctx);
}

int main(void) {
  static void (*const tests[])(void **) = {golden,   equivariance, strides, many_rows,
                                           extremes, far_offsets,  counts};
  static const char *const names[] = {"golden",   "equivariance", "strides", "many_rows",
                                      "extremes", "far_offsets",  "counts"};
  static struct CMUnitTest all[MAX_DEVICES * 7];
  static char labels[MAX_DEVICES * 7][96];
  int n = 0;
  clb_devices(add_device, NULL);
  for (int d = 0; d < n_devices; d++)
    for (size_t t = 0; t < sizeof names / sizeof *names; t++) {
      if (tests[t] == far_offsets && strncmp(devices[d], "cpu", 3))
        continue; /* needs sparse host memory */
      snprintf(labels[n], sizeof labels[n], "spherical_harmonics_%s[%s]", names[t], devices[d]);
      all[n] = (struct CMUnitTest){labels[n], tests[t], NULL, NULL, devices[d]};
      n++;
    }
  return _cmocka_run_group_tests("spherical_harmonics", all, (size_t)n, NULL, NULL);
}
