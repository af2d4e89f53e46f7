/* kernels/common/rows.h - lanes are rows: reading and writing some columns of the row that each
   lane holds.

   The schedule chooses one of three ways: staged (`through_local`, so that the sub-group accesses
   contiguous memory), wide (`columns_per_piece` at a time, for a CPU's SIMD lanes), or column by
   column. */
#ifndef CLB_KERNELS_COMMON_ROWS_H
#define CLB_KERNELS_COMMON_ROWS_H

#include "kernels/kernel.h"

enum { CLB_MAX_WIDTH = 64 }; /* columns of a piece */

/* The rows of this sub-group. */
typedef struct {
  ir_kernel *k;
  const clb_schedule *schedule;
  ir_type arithmetic;
  ir_val n, first; /* i64: number of rows, first row of the sub-group */
  ir_val left;     /* i32: rows remaining for this sub-group; may be <= 0 or more than its lanes */
  ir_val mask;     /* lanes with a row */
  ir_val stage;    /* local array, IR_NONE if not staged */
  int pitch;       /* of its rows, in elements */
  int staged_n; /* how the stage was last accessed: flattened over n columns; 0: each lane its own
                   row */
  int32_t staged_scope; /* the block of that access */
} clb_row_block;

/* One operand: three parameters (buffer, i64 offset, i64 stride, all in elements). */
typedef struct {
  ir_val buffer, offset, stride;
  ir_type element;
} clb_row_array;

ir_type clb_ir_type(clb_dtype dtype);

/* The conjunction of two masks; IR_NONE: all lanes. */
static inline ir_val clb_and(ir_kernel *k, ir_val a, ir_val b) {
  return a == IR_NONE ? b : b == IR_NONE ? a : ir_2(k, IR_AND, a, b);
}
/* Lanes below `left` (i32), none where `wanted` (i32) is 0. */
ir_val clb_wanted_lanes(ir_kernel *k, ir_val wanted, ir_val left);

/* Declares the parameter n, then leaves operands to clb_rows_array; call clb_rows_start after the
   last one. */
void clb_rows_begin(clb_row_block *b, ir_kernel *k, const clb_schedule *s, clb_dtype arithmetic);
clb_row_array clb_rows_array(clb_row_block *b, clb_dtype storage, bool written);
/* stage_element: the type of rows that go through local memory, at most `most` columns at a
   time. */
void clb_rows_start(clb_row_block *b, clb_dtype stage_element, int most);

/* Where the piece that starts with column `at` of n ascending columns ends: never across a gap, nor
   longer than the schedule's columns_per_piece. */
int clb_rows_piece(const clb_schedule *s, const int *columns, int n, int at);

/* Values (in arithmetic precision) of n consecutive columns from `column` on, n <= the schedule's
   columns_per_piece. */
void clb_rows_load(clb_row_block *b, const clb_row_array *a, int column, int n, ir_val *values);
void clb_rows_store(clb_row_block *b, const clb_row_array *a, int column, int n,
                    const ir_val *values, bool accumulate);

#endif
