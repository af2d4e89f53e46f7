/* backends/cuda_hip/blas.c - matrix products through cuBLAS or rocBLAS: two tables of names. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda_hip/gpu.h"

#define FIELD(field) offsetof(clb_gpu_blas, field)
#define NAME(field, args, cuda, hip) {cuda, FIELD(field), false},
static const clb_symbol cublas_symbols[] = {
    CLB_GPU_BLAS_CALLS(NAME){"cublasGetStatusString", FIELD(text), false}};
#undef NAME
#define NAME(field, args, cuda, hip) {hip, FIELD(field), false},
static const clb_symbol rocblas_symbols[] = {
    CLB_GPU_BLAS_CALLS(NAME){"rocblas_status_to_string", FIELD(text), false}};

/* Libraries by driver version; HIP's must match the loaded version, CUDA's may be older. */
typedef struct {
  const char *file;
  int version;
} library;

static const struct {
  const char *name;
  const clb_symbol *symbols;
  size_t n;
  library libraries[4];
  int as_it_is, transposed; /* enumerants */
  int per_version;          /* units per major version in the driver's version number */
  bool exact;
} makers[] = {
    {"cuBLAS",
     cublas_symbols,
     sizeof cublas_symbols / sizeof *cublas_symbols,
     {{"libcublas.so.13", 13}, {"libcublas.so.12", 12}, {"libcublas.so.11", 11}},
     0,
     1,
     1000,
     false},
    {"rocBLAS",
     rocblas_symbols,
     sizeof rocblas_symbols / sizeof *rocblas_symbols,
     {{"librocblas.so.5", 7},
      {"librocblas.so.4", 6},
      {"librocblas.so.3", 5},
      {"librocblas.so.0", 5}},
     111,
     112,
     10000000,
     true},
};

static int maker_of(const clb_gpu *g) { return g->vendor->language == CLB_LANGUAGE_HIP; }

static clb_status check(clb_gpu *g, const char *call, int code) {
  return code ? clb_fail(g->head.error, CLB_ERROR_DRIVER, "%s: %s: %s: %s (%d)", g->name,
                         makers[maker_of(g)].name, call, g->blas.text(code), code)
              : CLB_OK;
}

/* cuBLAS: no TF32; rocBLAS: no atomics, so that equal calls give equal bits. (cuBLAS does not use
   atomics.) */
static clb_status start(clb_gpu *g, const char *file) {
  clb_gpu_guard t;
  clb_status s = clb_gpu_enter(g, &t);
  if (!s) s = check(g, "create", g->blas.create(&g->blas.handle));
  if (!s) s = check(g, "set stream", g->blas.set_stream(g->blas.handle, g->stream));
  if (!s) s = check(g, "set mode", g->blas.set_mode(g->blas.handle, 0));
  clb_gpu_leave(g, &t);
  if (s) clb_gpu_close_blas(g);
  else g->head.blas = file;
  return s;
}

clb_status clb_gpu_open_blas(clb_device *device, clb_dtype type, bool *partly) {
  clb_gpu *g = (clb_gpu *)device;
  int maker = maker_of(g), version = 0;
  (void)type;
  *partly = false;
  if (g->blas.handle) return CLB_OK;
  clb_status s = CLB_GPU_CALL(g, version, &version);
  if (s) return s;
  version /= makers[maker].per_version;
  s = CLB_ERROR_UNSUPPORTED;
  for (int i = 0; i < 4 && s; i++) {
    const library *l = &makers[maker].libraries[i];
    if (!l->file ||
        (version && (makers[maker].exact ? version != l->version : version < l->version)))
      continue;
    void *opened = clb_dl_open((const char *const[]){l->file, NULL});
    if (opened && !clb_dl_symbols(opened, makers[maker].symbols, makers[maker].n, &g->blas))
      s = start(g, l->file);
  }
  return s == CLB_ERROR_UNSUPPORTED
             ? clb_fail(device->error, s, "%s: no %s is installed that goes with the driver",
                        g->name, makers[maker].name)
             : s;
}

void clb_gpu_close_blas(clb_gpu *g) {
  clb_gpu_guard t;
  if (!g->blas.handle) return;
  clb_gpu_enter(g, &t);
  g->blas.destroy(g->blas.handle);
  clb_gpu_leave(g, &t);
  g->blas.handle = NULL;
}

clb_status clb_gpu_can_gemm(clb_device *device, clb_dtype type, const clb_gemm_desc *p) {
  (void)type;
  if (p->ld_a <= INT_MAX && p->ld_b <= INT_MAX && p->ld_c <= INT_MAX) return CLB_OK;
  return clb_fail(device->error, CLB_ERROR_UNSUPPORTED,
                  "%s: leading dimensions %lld, %lld, %lld; at most %d",
                  makers[maker_of((clb_gpu *)device)].name, (long long)p->ld_a, (long long)p->ld_b,
                  (long long)p->ld_c, INT_MAX);
}

/* In column-major order row-major matrices are transposed: C^T = B^T A^T. */
clb_status clb_gpu_gemm(clb_device *device, clb_dtype type, const clb_gemm_desc *p) {
  clb_gpu *g = (clb_gpu *)device;
  int maker = maker_of(g), ta = p->transpose_a ? makers[maker].transposed : makers[maker].as_it_is,
      tb = p->transpose_b ? makers[maker].transposed : makers[maker].as_it_is;
  int m = (int)p->m, n = (int)p->n, k = (int)p->k, count = (int)p->count;
  size_t bytes = type == CLB_F64 ? 8 : 4;
  const char *c = (const char *)p->c->handle + (size_t)p->offset_c * bytes,
             *a = p->k ? (const char *)p->a->handle + (size_t)p->offset_a * bytes : c;
  const char *b = p->k ? (const char *)p->b->handle + (size_t)p->offset_b * bytes : c;
  clb_status s = clb_gpu_can_gemm(device, type, p);
  if (s) return s;
  int ld_a = p->ld_a ? (int)p->ld_a : 1, ld_b = p->ld_b ? (int)p->ld_b : 1, ld_c = (int)p->ld_c;
  const double one = 1, beta = p->add;
  const float one_f32 = 1, beta_f32 = p->add;
  const void *alphas[] = {[CLB_F64] = &one, [CLB_F32] = &one_f32},
             *betas[] = {[CLB_F64] = &beta, [CLB_F32] = &beta_f32};
  clb_gpu_guard t;
  s = clb_gpu_enter(g, &t);
  if (!s)
    s = check(g, "gemm",
              (type == CLB_F64 ? g->blas.f64 : g->blas.f32)(
                  g->blas.handle, tb, ta, n, m, k, alphas[type], b, ld_b, p->stride_b, a, ld_a,
                  p->stride_a, betas[type], (void *)(uintptr_t)c, ld_c, p->stride_c, count));
  clb_gpu_leave(g, &t);
  return s;
}
