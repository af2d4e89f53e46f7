/* backends/opencl/blas.c - matrix products through CLBlast, for buffers that are cl_mem. */
#include "src/base/dl.h"
#include "backends/opencl/opencl.h"

enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };

static const char *const libraries[] = {"libclblast.so.1", NULL};
static const clb_symbol symbols[] = {
    {"CLBlastSgemmStridedBatched", offsetof(clb_opencl_blas, f32_batch), false},
    {"CLBlastDgemmStridedBatched", offsetof(clb_opencl_blas, f64_batch), false},
    {"CLBlastSgemm", offsetof(clb_opencl_blas, f32), false},
    {"CLBlastDgemm", offsetof(clb_opencl_blas, f64), false}};

/* CLBlast supports neither empty matrices nor pointers nor, in batches, strides of 0. */
static bool can(const clb_gemm_desc *p) {
  bool batch = p->count == 1 || (p->stride_a && p->stride_b && p->stride_c);
  return batch && p->k && p->a->kind == CLB_CL_MEM && p->b->kind == CLB_CL_MEM &&
         p->c->kind == CLB_CL_MEM;
}

static int multiply(clb_opencl *o, clb_dtype type, const clb_gemm_desc *p) {
  const clb_opencl_blas *l = &o->blas;
  int ta = p->transpose_a ? TRANSPOSED : AS_IT_IS, tb = p->transpose_b ? TRANSPOSED : AS_IT_IS;
  size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k, at_a = (size_t)p->offset_a,
         at_b = (size_t)p->offset_b, at_c = (size_t)p->offset_c;
  size_t ld_a = (size_t)p->ld_a, ld_b = (size_t)p->ld_b, ld_c = (size_t)p->ld_c,
         jump_a = (size_t)p->stride_a, jump_b = (size_t)p->stride_b, jump_c = (size_t)p->stride_c;
  cl_mem a = p->a->handle, b = p->b->handle, c = p->c->handle;
  size_t count = (size_t)p->count;
  if (count == 1 && type == CLB_F64)
    return l->f64(ROW_MAJOR, ta, tb, m, n, k, 1, a, at_a, ld_a, b, at_b, ld_b, p->add, c, at_c,
                  ld_c, &o->queue, NULL);
  if (count == 1)
    return l->f32(ROW_MAJOR, ta, tb, m, n, k, 1, a, at_a, ld_a, b, at_b, ld_b, p->add, c, at_c,
                  ld_c, &o->queue, NULL);
  if (type == CLB_F64)
    return l->f64_batch(ROW_MAJOR, ta, tb, m, n, k, 1, a, at_a, ld_a, jump_a, b, at_b, ld_b, jump_b,
                        p->add, c, at_c, ld_c, jump_c, count, &o->queue, NULL);
  return l->f32_batch(ROW_MAJOR, ta, tb, m, n, k, 1, a, at_a, ld_a, jump_a, b, at_b, ld_b, jump_b,
                      p->add, c, at_c, ld_c, jump_c, count, &o->queue, NULL);
}

clb_status clb_opencl_can_gemm(clb_device *device, clb_dtype type, const clb_gemm_desc *p) {
  (void)type;
  return can(p) ? CLB_OK
                : clb_fail(device->error, CLB_ERROR_UNSUPPORTED,
                           "%s: not for pointers, k = 0 or strides of 0", libraries[0]);
}

clb_status clb_opencl_gemm(clb_device *device, clb_dtype type, const clb_gemm_desc *p) {
  clb_status s = clb_opencl_can_gemm(device, type, p);
  if (s) return s;
  int code = multiply((clb_opencl *)device, type, p);
  return code ? clb_fail(device->error, CLB_ERROR_DRIVER,
                         "%s: product of %lld x %lld x %lld: status %d", libraries[0],
                         (long long)p->m, (long long)p->n, (long long)p->k, code)
              : CLB_OK;
}

/* CLBlast compiles its kernels on first use, so all kinds are used once: single and batched, small
 and large. */
static clb_status warm(clb_opencl *o, clb_dtype type) {
  enum { LARGE = 640, BATCH = 2 };
  clb_device *d = &o->head;
  clb_memory m = {0};
  clb_status s =
      clb_opencl_alloc(d, (uint64_t)BATCH * LARGE * LARGE * (type == CLB_F64 ? 8 : 4), &m);
  if (s) return s;
  for (int i = 0; i < 4 && !s; i++) {
    int64_t n = i & 1 ? LARGE : 1;
    clb_gemm_desc p = {
        n,     n,     n,    i & 2 ? BATCH : 1, &m, &m, &m, 0, 0, 0, n, n, n, n * n, n * n, n * n,
        false, false, false};
    s = clb_opencl_gemm(d, type, &p);
  }
  if (!s) s = d->backend->wait(d);
  clb_opencl_free(d, &m);
  return s;
}

clb_status clb_opencl_open_blas(clb_device *device, clb_dtype type, bool *partly) {
  clb_opencl *o = (clb_opencl *)device;
  *partly = true;
  if (o->blas.warm[type]) return CLB_OK;
  if (device->limits.simd)
    return clb_fail(device->error, CLB_ERROR_UNSUPPORTED,
                    "%s: CLBlast is for GPUs; on CPUs it is slower than the generated kernel",
                    o->name);
  void *library = clb_dl_open(libraries);
  if (!library || clb_dl_symbols(library, symbols, sizeof symbols / sizeof *symbols, &o->blas))
    return clb_fail(device->error, CLB_ERROR_UNSUPPORTED, "%s: CLBlast is not installed", o->name);
  clb_status s = warm(o, type);
  if (s) return s;
  o->blas.warm[type] = true;
  device->blas = libraries[0];
  return CLB_OK;
}
