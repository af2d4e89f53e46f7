/* tests/fakes/fake_blas.c - cuBLAS and rocBLAS for tests: memory is the host's, matrices are
   column-major. Built once per library name. */
#include "tests/fakes/fake_blas.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { FAILED = 13 };

static fake_blas_state *state;
static int token, mode = -1;

EXPORT void fake_blas_use(fake_blas_state *s);
void fake_blas_use(fake_blas_state *s) { state = s; }

static int mistake(const char *what) {
  if (!state->mistake[0]) snprintf(state->mistake, sizeof state->mistake, "%s", what);
  return FAILED;
}

static bool fails(const char *call) { return state->failing && !strcmp(state->failing, call); }

static int create(void **handle) {
  if (fails("create")) return FAILED;
  state->handles++;
  *handle = &token;
  return 0;
}

static int destroy(void *handle) {
  if (handle != &token || !state->handles) return mistake("destroy: no such handle");
  state->handles--;
  return 0;
}

static int set_stream(void *handle, void *stream) {
  state->stream = stream;
  return handle != &token      ? mistake("set stream: no such handle")
         : fails("set stream") ? FAILED
                               : 0;
}

static int set_mode(void *handle, int to) {
  mode = to;
  return handle != &token ? mistake("set mode: no such handle") : 0;
}

typedef struct {
  int ta, tb, m, n, k, ld_a, ld_b, ld_c, count;
  long long stride_a, stride_b, stride_c;
  double alpha, beta;
  bool f64;
} sizes;

static double at(const void *array, long long i, bool f64) {
  return f64 ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

static int gemm(void *handle, const sizes *s, int plain, int transposed, const void *a,
                const void *b, void *c) {
  if (handle != &token || mode != 0)
    return mistake("gemm: no such handle, or its mode was not set");
  if (fails("gemm")) return FAILED;
  if ((s->ta != plain && s->ta != transposed) || (s->tb != plain && s->tb != transposed))
    return mistake("gemm: neither as it is nor transposed");
  if (s->m < 0 || s->n < 0 || s->k < 0 || s->count < 0) return mistake("gemm: negative extents");
  int min_a = s->ta == plain ? s->m : s->k, min_b = s->tb == plain ? s->k : s->n;
  if (s->ld_a < min_a || s->ld_a < 1 || s->ld_b < min_b || s->ld_b < 1 || s->ld_c < s->m ||
      s->ld_c < 1)
    return mistake("gemm: a leading dimension is too small");
  for (int q = 0; q < s->count; q++)
    for (int j = 0; j < s->n; j++)
      for (int i = 0; i < s->m; i++) {
        double sum = 0;
        for (int k = 0; k < s->k; k++) {
          long long of_a = s->ta == plain ? i + (long long)k * s->ld_a : k + (long long)i * s->ld_a,
                    of_b = s->tb == plain ? k + (long long)j * s->ld_b : j + (long long)k * s->ld_b;
          sum += at(a, q * s->stride_a + of_a, s->f64) * at(b, q * s->stride_b + of_b, s->f64);
        }
        long long of_c = q * s->stride_c + i + (long long)j * s->ld_c;
        sum = s->alpha * sum + (s->beta != 0 ? s->beta * at(c, of_c, s->f64) : 0);
        if (s->f64) ((double *)c)[of_c] = sum;
        else ((float *)c)[of_c] = (float)sum;
      }
  state->products++;
  return 0;
}

static const char *text(int code) { return code ? "told to fail" : "well"; }

#define GEMM(name, real, is_f64, plain, transposed)                                                \
  EXPORT int name(void *handle, int ta, int tb, int m, int n, int k, const real *alpha,            \
                  const real *a, int ld_a, long long stride_a, const real *b, int ld_b,            \
                  long long stride_b, const real *beta, real *c, int ld_c, long long stride_c,     \
                  int count);                                                                      \
  int name(void *handle, int ta, int tb, int m, int n, int k, const real *alpha, const real *a,    \
           int ld_a, long long stride_a, const real *b, int ld_b, long long stride_b,              \
           const real *beta, real *c, int ld_c, long long stride_c, int count) {                   \
    sizes s = {ta,    tb,    m,        n,        k,        ld_a,           ld_b,                   \
               ld_c,  count, stride_a, stride_b, stride_c, (double)*alpha, (double)*beta,          \
               is_f64};                                                                            \
    return gemm(handle, &s, plain, transposed, a, b, c);                                           \
  }
GEMM(cublasDgemmStridedBatched, double, true, 0, 1)
GEMM(cublasSgemmStridedBatched, float, false, 0, 1)
GEMM(rocblas_dgemm_strided_batched, double, true, 111, 112)
GEMM(rocblas_sgemm_strided_batched, float, false, 111, 112)

#define BOTH(type, cuda, hip, parameters, call)                                                    \
  EXPORT type cuda parameters;                                                                     \
  EXPORT type hip parameters;                                                                      \
  type cuda parameters { return call; }                                                            \
  type hip parameters { return call; }
BOTH(int, cublasCreate_v2, rocblas_create_handle, (void **handle), create(handle))
BOTH(int, cublasDestroy_v2, rocblas_destroy_handle, (void *handle), destroy(handle))
BOTH(int, cublasSetStream_v2, rocblas_set_stream, (void *handle, void *stream),
     set_stream(handle, stream))
BOTH(int, cublasSetMathMode, rocblas_set_atomics_mode, (void *handle, int to), set_mode(handle, to))
BOTH(const char *, cublasGetStatusString, rocblas_status_to_string, (int code), text(code))
