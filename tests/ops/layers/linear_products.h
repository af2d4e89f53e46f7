/* tests/ops/layers/linear_products.h - random matrix products against plain sums. */
#ifndef CLB_TESTS_OPS_LAYERS_LINEAR_PRODUCTS_H
#define CLB_TESTS_OPS_LAYERS_LINEAR_PRODUCTS_H

#include "tests/test.h"

#include <math.h>

#include "kernels/linear/host/matmul.h"
#include "tests/ops/stored.h"

/* ---- numbers in the device's memory ---- */

/* n numbers on the host and on the device. */
typedef struct {
  clb_dtype type;
  int64_t n;
  void *host;
  clb_buffer *buffer;
} array;

static inline array make(clb_dtype type, int64_t n) {
  array a = {.type = type,
             .n = n + 1,
             .host = malloc((size_t)(n + 1) *
                            dtype_bytes(type))}; /* one more, which must not be touched */
  assert_non_null(a.host);
  for (int64_t i = 0; i <= n; i++) put(type, a.host, i, NAN);
  return a;
}

static inline void upload(clb_context *ctx, array *a) {
  OK(ctx, clb_buffer_create(ctx, (uint64_t)a->n * dtype_bytes(a->type), &a->buffer));
  OK(ctx, clb_buffer_write(a->buffer, 0, a->host, (uint64_t)a->n * dtype_bytes(a->type)));
}

static inline void *download(clb_context *ctx, const array *a) {
  void *there = malloc((size_t)a->n * dtype_bytes(a->type));
  assert_non_null(there);
  OK(ctx, clb_buffer_read(a->buffer, 0, there, (uint64_t)a->n * dtype_bytes(a->type)));
  return there;
}

static inline void drop(array *a) {
  clb_buffer_destroy(&a->buffer);
  free(a->host);
}

static inline int64_t pick(uint64_t *seed, int n) {
  return (int64_t)((test_random(seed) + 1) / 2 * n);
}

/* ---- products ---- */

static inline void fill_matrices(array *a, int64_t offset, int64_t count, int64_t stride,
                                 int64_t rows, int64_t ld, int64_t columns, uint64_t *seed) {
  for (int64_t b = 0; b < (stride ? count : 1); b++)
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++)
        put(a->type, a->host, offset + b * stride + i * ld + j, test_random(seed));
}

/* exact: the generated kernel's own order, k by k with one rounding each, then C. */
static inline void expect_element(const clb_gemm_desc *p, const array *a, const array *b,
                                  const array *c, int64_t batch, int64_t i, int64_t j, double got,
                                  bool exact) {
  int64_t at_c = p->offset_c + batch * p->stride_c + i * p->ld_c + j;
  double before = p->add ? number_at(c->type, c->host, at_c) : 0, sum = before, size = fabs(before),
         chain = 0;
  for (int64_t k = 0; k < p->k; k++) {
    double x = number_at(a->type, a->host,
                         p->offset_a + batch * p->stride_a +
                             (p->transpose_a ? k * p->ld_a + i : i * p->ld_a + k));
    double y = number_at(b->type, b->host,
                         p->offset_b + batch * p->stride_b +
                             (p->transpose_b ? j * p->ld_b + k : k * p->ld_b + j));
    sum += x * y;
    size += fabs(x * y);
    chain = c->type == CLB_F64 ? fma(x, y, chain) : (double)fmaf((float)x, (float)y, (float)chain);
  }
  chain = c->type == CLB_F64 ? chain + before : (double)((float)chain + (float)before);
  if (!(fabs(got - sum) <= (c->type == CLB_F64 ? 1e-13 : 1e-6) * size) || (exact && got != chain))
    fail_msg("m %lld n %lld k %lld, product %lld, element %lld, %lld: %.17g, not %.17g",
             (long long)p->m, (long long)p->n, (long long)p->k, (long long)batch, (long long)i,
             (long long)j, got, exact ? chain : sum);
}

/* Only C has changed. */
static inline void expect_product(const clb_gemm_desc *p, const array *a, const array *b,
                                  const array *c, const void *got, bool exact) {
  char *mine = calloc((size_t)c->n, 1);
  assert_non_null(mine);
  for (int64_t batch = 0; batch < p->count; batch++)
    for (int64_t i = 0; i < p->m; i++)
      for (int64_t j = 0; j < p->n; j++) {
        int64_t at = p->offset_c + batch * p->stride_c + i * p->ld_c + j;
        mine[at] = 1;
        expect_element(p, a, b, c, batch, i, j, number_at(c->type, got, at), exact);
      }
  for (int64_t i = 0; i < c->n; i++)
    if (!mine[i] &&
        memcmp((const char *)got + i * (int64_t)dtype_bytes(c->type),
               (const char *)c->host + i * (int64_t)dtype_bytes(c->type), dtype_bytes(c->type)))
      fail_msg("element %lld, which is not C's, was written", (long long)i);
  free(mine);
}

/* Run twice: equal bits. most: of run_in_pieces; 0: in one piece. */
static inline void try_product(clb_context *ctx, clb_op *op, clb_dtype type, clb_gemm_desc p,
                               int64_t max, uint64_t seed, bool exact) {
  int64_t rows_a = p.transpose_a ? p.k : p.m, rows_b = p.transpose_b ? p.n : p.k;
  array a = make(type, p.offset_a + rows_a * p.ld_a + p.count * p.stride_a),
        b = make(type, p.offset_b + rows_b * p.ld_b + p.count * p.stride_b);
  array c = make(type, p.offset_c + p.m * p.ld_c + p.count * p.stride_c);
  void *got[2];
  fill_matrices(&a, p.offset_a, p.count, p.stride_a, rows_a, p.ld_a, p.transpose_a ? p.m : p.k,
                &seed);
  fill_matrices(&b, p.offset_b, p.count, p.stride_b, rows_b, p.ld_b, p.transpose_b ? p.k : p.n,
                &seed);
  if (p.add) fill_matrices(&c, p.offset_c, p.count, p.stride_c, p.m, p.ld_c, p.n, &seed);
  upload(ctx, &a);
  upload(ctx, &b);
  for (int i = 0; i < 2; i++) {
    upload(ctx, &c);
    p.a = &a.buffer->memory, p.b = &b.buffer->memory, p.c = &c.buffer->memory;
    OK(ctx, max ? clb_gemm_run_in_slices(op, &p, max) : clb_gemm_run(op, &p));
    got[i] = download(ctx, &c);
    clb_buffer_destroy(&c.buffer);
  }
  assert_memory_equal(got[0], got[1], (size_t)c.n * dtype_bytes(type));
  expect_product(&p, &a, &b, &c, got[0], exact);
  free(got[0]);
  free(got[1]);
  drop(&a);
  drop(&b);
  drop(&c);
}

/* Extents: sizes[from ... to - 1]. */
enum { EMPTY, SINGLE, LARGE = 5, ALL = 7 };
static inline clb_gemm_desc random_product(uint64_t *seed, int from, int to) {
  static const int64_t sizes[] = {0, 1, 3, 7, 33, 65, 130};
  clb_gemm_desc p = {.m = sizes[from + pick(seed, to - from)],
                     .n = sizes[from + pick(seed, to - from)],
                     .k = sizes[from + pick(seed, to - from)],
                     .count = pick(seed, 3) ? 1 : pick(seed, 4)};
  p.transpose_a = pick(seed, 2), p.transpose_b = pick(seed, 2), p.add = pick(seed, 2);
  p.offset_a = pick(seed, 6), p.offset_b = pick(seed, 6), p.offset_c = pick(seed, 6);
  p.ld_a = (p.transpose_a ? p.m : p.k) + pick(seed, 4),
  p.ld_b = (p.transpose_b ? p.k : p.n) + pick(seed, 4), p.ld_c = p.n + pick(seed, 4);
  p.stride_a = pick(seed, 3) ? (p.transpose_a ? p.k : p.m) * p.ld_a + pick(seed, 5) : 0;
  p.stride_b = pick(seed, 3) ? (p.transpose_b ? p.n : p.k) * p.ld_b + pick(seed, 5) : 0;
  p.stride_c = p.m * p.ld_c + pick(seed, 5);
  return p;
}

#endif
