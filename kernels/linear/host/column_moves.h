/* kernels/linear/host/column_moves.h - rows with their columns in another order, as ops made of
   matrix products need them. */
#ifndef CLB_KERNELS_LINEAR_HOST_COLUMN_MOVES_H
#define CLB_KERNELS_LINEAR_HOST_COLUMN_MOVES_H

#include "src/runtime/context.h"

/* A column of a caller's rows, and its place in rows of a workspace. */
typedef struct {
  int32_t outer, inner;
} clb_column_move;

/* Rows in memory, in elements. */
typedef struct {
  const clb_memory *memory;
  int64_t offset, stride;
} clb_row_place;

/* Outer rows are of storage, inner ones of arithmetic precision.  *op: destroy with
   clb_op_destroy. */
clb_status clb_column_moves_create(clb_context *ctx, clb_dtype storage, clb_dtype arithmetic,
                                   const clb_column_move *moves, int64_t n, clb_op **op);
/* inner[row][moves.inner] = outer[row][moves.outer]; other columns stay as they are. */
clb_status clb_column_moves_in(clb_op *op, int64_t rows, clb_row_place outer, clb_row_place inner);
/* outer[row][moves.outer] (= or +=) the sum of inner[row][moves.inner] and of what lies `apart`,
   2 apart ... from it, `parts` in all: in a fixed order. */
clb_status clb_column_moves_out(clb_op *op, int64_t rows, clb_row_place inner, int64_t parts,
                                int64_t apart, clb_row_place outer, bool add);

#endif
