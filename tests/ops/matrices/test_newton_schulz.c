/* tests/ops/matrices/test_newton_schulz.c - Newton-Schulz on many matrices against the same in
   double precision, and by what it is for: singular values near 1. */
#include "tests/fakes/simulated_devices.h"
#include "tests/ops/matrices/matrices_reference.h"

#include "kernels/grouped/host/newton_schulz.h"

static const struct {
  int64_t rows, columns;
  double size, floor, epsilon, scale;
} shapes[] = {{1, 1, 1, 0, 1e-8, 1},      {1, 9, 1e-3, 0, 1e-8, 1},   {9, 1, 1e3, 0, 1e-7, 3},
              {5, 5, 1, 1e-7, 0, 1},      {33, 65, 1e-9, 0, 1e-7, 1}, {65, 33, 1e9, 0, 1e-8, 0.5},
              {40, 70, 1, 1e-7, 0, 0.25}, {0, 5, 1, 0, 1e-8, 1},      {5, 0, 1, 0, 1e-8, 1},
              {128, 20, 1, 0, 1e-8, 1},   {7, 130, 0, 0, 1e-8, 1}};
enum { MATRICES = sizeof shapes / sizeof *shapes };

static const struct {
  clb_dtype storage, arithmetic;
  double error; /* norm of the error over the result's */
} kinds[] = {{CLB_F64, CLB_F64, 1e-13}, {CLB_F32, CLB_F32, 2e-5}, {CLB_BF16, CLB_F32, 0.05}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void expect_result(int i, int kind, const double *u, const double *got) {
  const int64_t rows = shapes[i].rows, columns = shapes[i].columns, n = rows * columns;
  double *wanted = malloc((size_t)n * sizeof *wanted), error = 0, size = 0, least, most;
  memcpy(wanted, u, (size_t)n * sizeof *wanted);
  reference_newton_schulz(wanted, rows, columns, shapes[i].floor, shapes[i].epsilon);
  for (int64_t k = 0; k < n; k++) {
    wanted[k] *= shapes[i].scale;
    error += pow(got[k] - wanted[k], 2);
    size += pow(wanted[k], 2);
  }
  if (!(sqrt(error) <= kinds[kind].error * sqrt(size)))
    fail_msg("kind %d, %lld x %lld: off by %g of %g", kind, (long long)rows, (long long)columns,
             sqrt(error), sqrt(size));
  free(wanted);
  const bool full = rows > 1.3 * (double)columns || columns > 1.3 * (double)rows;
  if (!full || shapes[i].size < 1e-6) return; /* else some singular value may be tiny */
  double *copy = malloc((size_t)n * sizeof *copy);
  for (int64_t k = 0; k < n; k++) copy[k] = got[k] / shapes[i].scale;
  reference_singular_values(copy, rows, columns, &least, &most);
  if (!(least > 0.66 && most < 1.24))
    fail_msg("kind %d, %lld x %lld: singular values %g ... %g", kind, (long long)rows,
             (long long)columns, least, most);
  free(copy);
}

static void orthogonalises(void **state) {
  struct device *d = *state;
  clb_context *ctx = context(state);
  for (int kind = 0; kind < KINDS; kind++) {
    clb_newton_schulz_matrix m[MATRICES];
    clb_newton_schulz *s;
    int64_t end = 3, start;
    uint64_t seed = 1;
    if (kinds[kind].arithmetic == CLB_F64 && !d->f64) continue;
    for (int i = 0; i < MATRICES; end += m[i].rows * m[i].columns + 1, i++)
      m[i] =
          (clb_newton_schulz_matrix){shapes[i].rows,    shapes[i].columns, end, 0, shapes[i].floor,
                                     shapes[i].epsilon, shapes[i].scale};
    start = end;
    OK(ctx, clb_newton_schulz_create(ctx, kinds[kind].storage, kinds[kind].arithmetic, m, MATRICES,
                                     &end, &s));
    array a = make(kinds[kind].storage, end);
    for (int i = 0; i < MATRICES; i++)
      for (int64_t k = 0; k < m[i].rows * m[i].columns; k++)
        put(a.type, a.host, m[i].u + k, shapes[i].size * test_random(&seed));
    upload(ctx, &a);
    OK(ctx, clb_newton_schulz_run(s, &a.buffer->memory));
    void *got = download(ctx, &a);
    for (int i = 0; i < MATRICES; i++) {
      const int64_t n = m[i].rows * m[i].columns;
      double *u = malloc((size_t)(2 * n + 1) * sizeof *u);
      assert_true(!n || m[i].result >= start);
      for (int64_t k = 0; k < n; k++) u[k] = number_at(a.type, a.host, m[i].u + k);
      for (int64_t k = 0; k < n; k++) u[n + k] = number_at(a.type, got, m[i].result + k);
      expect_result(i, kind, u, u + n);
      free(u);
    }
    free(got);
    drop(&a);
    clb_newton_schulz_destroy(&s);
    clb_newton_schulz_destroy(&s);
  }
}

static void nothing(void **state) { (void)state; }

int main(void) {
  static const named_test tests[] = {{"orthogonalises", orthogonalises, false}};
  return run_on_all("newton_schulz", tests, 1, nothing);
}
