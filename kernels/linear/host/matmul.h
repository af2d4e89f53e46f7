/* kernels/linear/host/matmul.h - dense matrix products (the vendor's BLAS, else a generated kernel)
   and sums over rows, for ops made of several steps. */
#ifndef CLB_KERNELS_LINEAR_HOST_MATMUL_H
#define CLB_KERNELS_LINEAR_HOST_MATMUL_H

#include "src/runtime/context.h"

/* Compiles all kernels that products of this type need; type: CLB_F64 or CLB_F32, storage and
   arithmetic. *op: destroy with clb_op_destroy. _generated: without a BLAS, even where there is
   one; _library: NULL where there is none that has all products. */
clb_status clb_gemm_create(clb_context *ctx, clb_dtype type, clb_op **op);
clb_status clb_gemm_create_generated(clb_context *ctx, clb_dtype type, clb_op **op);
clb_status clb_gemm_create_library(clb_context *ctx, clb_dtype type, clb_op **op);
/* Submits; allocates nothing, waits for nothing (where the BLAS allows it).  Any extent may be 0; k
   = 0 gives zeros (or leaves C). Equal calls on one device give equal bits. _in_slices: split so
   that no extent exceeds the limit, which a BLAS may need. */
clb_status clb_gemm_run(clb_op *op, const clb_gemm_desc *product);
clb_status clb_gemm_run_in_slices(clb_op *op, const clb_gemm_desc *product, int64_t max);

/* Into how many parts of equally many rows n rows can be cut: as many as can be from `most` down to
   above `least`; `most` if into none, and some rows are left. */
static inline int64_t clb_even_parts(int64_t n, int64_t most, int64_t least) {
  for (int64_t i = most; i > least; i--)
    if (n % i == 0) return i;
  return most;
}

/* out[columns] (= or +=) sum over rows of in[rows][columns], rows `stride` elements apart: in two
   stages and a fixed order, so that it is deterministic.  `max_rows` bounds rows. */
clb_status clb_column_sum_create(clb_context *ctx, clb_dtype storage, clb_dtype arithmetic,
                                 int64_t columns, int64_t max_rows, clb_op **op);
clb_status clb_column_sum_run(clb_op *op, int64_t rows, const clb_memory *in, int64_t offset,
                              int64_t stride, const clb_memory *out, int64_t out_offset, bool add);

#endif
