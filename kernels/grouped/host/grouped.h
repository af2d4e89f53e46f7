/* kernels/grouped/host/grouped.h - products of many matrices of all shapes, in one launch. */
#ifndef CLB_KERNELS_GROUPED_HOST_GROUPED_H
#define CLB_KERNELS_GROUPED_HOST_GROUPED_H

#include "src/runtime/context.h"

/* Rows of a matrix are `ld` elements apart; the first is element number `at` of the memory.
   transposed: what is stored is used transposed. power: of the product's s, 0, 1 or 2. */
typedef struct {
  int64_t at, ld;
  bool transposed;
  int32_t power;
} clb_grouped_matrix;

/* C = alpha A B + beta D, row-major, C of m x n, A of m x k, B of k x n as they are used; D and C
   are not transposed. beta 0: D is not read. D may be C; otherwise nothing that the launch writes
   may be read by it. symmetric: C and D are, and about half of C is computed. */
typedef struct {
  int64_t m, n, k;
  clb_grouped_matrix a, b, c, d;
  double alpha, beta;
  bool symmetric;
  /* s = 1 / (max(|X|, floor) + epsilon), where |X|^2 is the trace of this matrix of `rows` rows,
     which is X X^T; of lists that are `scaled`. */
  clb_grouped_matrix trace;
  int64_t trace_rows;
  double floor, epsilon;
  int64_t gate; /* number of its gate, in `gated` lists */
} clb_grouped_product;

typedef struct {
  const clb_grouped_product *products;
  int64_t n;
  clb_dtype storage, arithmetic; /* storage: of all matrices */
  bool scaled, gated;
} clb_grouped_list;

typedef struct clb_grouped clb_grouped;

/* Compiles, and uploads the lists; all is fixed then but for what the matrices hold. A list may be
   empty, and so may matrices. */
clb_status clb_grouped_create(clb_context *ctx, const clb_grouped_list *list,
                              clb_grouped **grouped);
void clb_grouped_destroy(clb_grouped **grouped);

/* Submits one launch (none without elements of C). A, B and D are in `in`, C in `out`, which may be
   the same. gates: i32, of a gated list; products whose gate is below `least` leave C as it is.
   Equal calls on one device give equal bits. */
clb_status clb_grouped_run(clb_grouped *grouped, const clb_memory *in, const clb_memory *out,
                           const clb_memory *gates, int32_t least);

#endif
