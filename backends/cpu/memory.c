/* backends/cpu/memory.c - memory of the cpu backend. For the interpreter it knows which bytes have
   been written: to read others, in a product or from the host, is a mistake (in kernels,
   src/ir/interpreter finds it). */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/cpu/cpu.h"

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

clb_status clb_cpu_alloc(clb_device *device, uint64_t bytes, bool tracked, clb_memory *memory) {
  const bool large = bytes >= 2 * HUGE_PAGE;
  void *p = NULL;
  unsigned char *written = NULL;
  bool ok =
      bytes <= SIZE_MAX / 2 && !posix_memalign(&p, large ? HUGE_PAGE : ALIGNMENT, (size_t)bytes);
  if (ok && tracked) ok = (written = calloc((size_t)bytes, 1));
  if (!ok) {
    free(p);
    return clb_fail(device->error, CLB_ERROR_MEMORY, "cpu: no memory for %llu bytes",
                    (unsigned long long)bytes);
  }
  if (large) madvise(p, (size_t)bytes, MADV_HUGEPAGE); /* only advice: may be refused */
  *memory = (clb_memory){p, CLB_POINTER, bytes, written};
  return CLB_OK;
}

void clb_cpu_free(clb_device *device, clb_memory *memory) {
  (void)device;
  free(memory->handle);
  free(memory->written);
  memory->handle = memory->written = NULL;
}

clb_status clb_cpu_write(clb_device *device, const clb_memory *to, uint64_t offset,
                         const void *from, uint64_t bytes) {
  (void)device;
  memcpy((char *)to->handle + offset, from, (size_t)bytes);
  clb_memory_mark(to, offset, bytes);
  return CLB_OK;
}

static clb_status check(clb_device *device, const char *who, const clb_memory *m, uint64_t offset,
                        uint64_t bytes) {
  const int64_t hole = clb_memory_unwritten(m, offset, bytes);
  return hole < 0 ? CLB_OK
                  : clb_fail(device->error, CLB_ERROR_INTERNAL,
                             "interpreter: unwritten: %s reads byte %lld of memory of %llu bytes, "
                             "which nothing has written",
                             who, (long long)hole, (unsigned long long)m->bytes);
}

clb_status clb_cpu_read(clb_device *device, const clb_memory *from, uint64_t offset, void *to,
                        uint64_t bytes) {
  const clb_status s = check(device, "the host", from, offset, bytes);
  if (!s) memcpy(to, (const char *)from->handle + offset, (size_t)bytes);
  return s;
}

/* One matrix of a product, in elements of `bytes`. */
typedef struct {
  const clb_memory *memory;
  int64_t offset, rows, columns, ld, bytes;
} matrix;

static matrix matrix_of(const clb_memory *memory, int64_t offset, int64_t rows, int64_t columns,
                        int64_t ld, bool transposed, clb_dtype type) {
  const int64_t bytes = type == CLB_F64 ? 8 : 4;
  return transposed ? (matrix){memory, offset, columns, rows, ld, bytes}
                    : (matrix){memory, offset, rows, columns, ld, bytes};
}

static clb_status check_rows(clb_device *device, const char *who, const matrix *x) {
  clb_status s = CLB_OK;
  for (int64_t r = 0; r < x->rows && !s; r++)
    s = check(device, who, x->memory, (uint64_t)((x->offset + r * x->ld) * x->bytes),
              (uint64_t)(x->columns * x->bytes));
  return s;
}

clb_status clb_cpu_track_product(clb_device *device, clb_dtype type, const clb_gemm_desc *p) {
  clb_status s = CLB_OK;
  for (int64_t i = 0; i < p->count && !s && p->c->written; i++) {
    const matrix a = matrix_of(p->a, p->offset_a + i * p->stride_a, p->m, p->k, p->ld_a,
                               p->transpose_a, type),
                 b = matrix_of(p->b, p->offset_b + i * p->stride_b, p->k, p->n, p->ld_b,
                               p->transpose_b, type),
                 c = matrix_of(p->c, p->offset_c + i * p->stride_c, p->m, p->n, p->ld_c, false,
                               type);
    if (p->k) s = check_rows(device, "A of a matrix product", &a);
    if (!s && p->k) s = check_rows(device, "B of a matrix product", &b);
    if (!s && p->add) s = check_rows(device, "C of a matrix product", &c);
    for (int64_t r = 0; r < c.rows; r++)
      clb_memory_mark(c.memory, (uint64_t)((c.offset + r * c.ld) * c.bytes),
                      (uint64_t)(c.columns * c.bytes));
  }
  return s;
}
