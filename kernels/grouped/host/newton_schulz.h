/* kernels/grouped/host/newton_schulz.h - five steps of Newton-Schulz on many matrices, as Muon
   takes them: singular values end in about 0.7 ... 1.2. */
#ifndef CLB_KERNELS_GROUPED_HOST_NEWTON_SCHULZ_H
#define CLB_KERNELS_GROUPED_HOST_NEWTON_SCHULZ_H

#include "kernels/grouped/host/grouped.h"

/* A row-major matrix U without gaps. X = U / (max(|U|_F, floor) + epsilon); five times
   X = a X + (b A + c A^2) X, where A = X X^T (of more rows than columns, A = X^T X, from the
   right); the result is X times `scale`. */
typedef struct {
  int64_t rows, columns;
  int64_t u, result; /* their first elements; result: is set by _create */
  double floor, epsilon, scale;
} clb_newton_schulz_matrix;

typedef struct clb_newton_schulz clb_newton_schulz;

/* storage: of the memory that all matrices lie in. It is used from its element *end on, which then
   is where the next use may begin; what lies there, and U, is overwritten by a run. */
clb_status clb_newton_schulz_create(clb_context *ctx, clb_dtype storage, clb_dtype arithmetic,
                                    clb_newton_schulz_matrix *matrices, int64_t n, int64_t *end,
                                    clb_newton_schulz **newton_schulz);
void clb_newton_schulz_destroy(clb_newton_schulz **newton_schulz);
/* Submits 15 launches; none without elements. */
clb_status clb_newton_schulz_run(clb_newton_schulz *newton_schulz, const clb_memory *memory);

#endif
