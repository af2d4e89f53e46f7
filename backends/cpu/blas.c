/* backends/cpu/blas.c - matrix products on CPUs through whichever CBLAS is installed. */
#include "src/base/dl.h"
#include "backends/cpu/cpu.h"

#include <limits.h>
#include <string.h>

enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };

/* Reference BLAS (libblas.so.3) is not used: it is slower than the generated kernel. */
static const char *const libraries[] = {"libopenblas.so.0", "libmkl_rt.so.2", "libblis.so.4", NULL};
static const clb_symbol symbols[] = {{"cblas_dgemm", offsetof(clb_cpu_blas, f64), false},
                                     {"cblas_sgemm", offsetof(clb_cpu_blas, f32), false}};

const char *clb_cpu_blas_open(clb_cpu_blas *blas) {
  for (const char *const *name = libraries; *name && !blas->name; name++) {
    void *library = clb_dl_open((const char *const[]){*name, NULL});
    if (library && !clb_dl_symbols(library, symbols, sizeof symbols / sizeof *symbols, blas))
      blas->name = *name;
  }
  return blas->name;
}

/* A leading dimension that is at least 1 and fits the library's integers; -1: it is too large. */
static int dimension(int64_t ld) { return ld > INT_MAX ? -1 : ld < 1 ? 1 : (int)ld; }

clb_status clb_cpu_blas_can(const clb_cpu_blas *blas, const clb_gemm_desc *p,
                            clb_error_sink *error) {
  if (dimension(p->ld_a) > 0 && dimension(p->ld_b) > 0 && dimension(p->ld_c) > 0) return CLB_OK;
  return clb_fail(error, CLB_ERROR_UNSUPPORTED,
                  "%s: leading dimensions %lld, %lld, %lld; at most %d", blas->name,
                  (long long)p->ld_a, (long long)p->ld_b, (long long)p->ld_c, INT_MAX);
}

clb_status clb_cpu_blas_multiply(const clb_cpu_blas *blas, clb_dtype type, const clb_gemm_desc *p,
                                 clb_error_sink *error) {
  int ta = p->transpose_a ? TRANSPOSED : AS_IT_IS, tb = p->transpose_b ? TRANSPOSED : AS_IT_IS,
      m = (int)p->m, n = (int)p->n, k = (int)p->k;
  int ld_a = dimension(p->ld_a), ld_b = dimension(p->ld_b), ld_c = dimension(p->ld_c);
  const char *a = p->k ? p->a->handle : NULL, *b = p->k ? p->b->handle : NULL;
  char *c = p->c->handle;
  clb_status s = clb_cpu_blas_can(blas, p, error);
  if (s) return s;
  for (int64_t i = 0; i < p->count; i++) {
    int64_t at_a = p->k ? p->offset_a + i * p->stride_a : 0,
            at_b = p->k ? p->offset_b + i * p->stride_b : 0, at_c = p->offset_c + i * p->stride_c;
    if (type == CLB_F64)
      blas->f64(ROW_MAJOR, ta, tb, m, n, k, 1, (const double *)a + at_a, ld_a,
                (const double *)b + at_b, ld_b, p->add, (double *)c + at_c, ld_c);
    else
      blas->f32(ROW_MAJOR, ta, tb, m, n, k, 1, (const float *)a + at_a, ld_a,
                (const float *)b + at_b, ld_b, p->add, (float *)c + at_c, ld_c);
  }
  return CLB_OK;
}
