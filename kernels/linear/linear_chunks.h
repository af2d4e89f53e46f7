/* kernels/linear/linear_chunks.h - the sums of products of a tile whose sub-groups share them: each
   takes some chunks of the sums, puts the rows' elements into local memory, and reads them from
   there several at a time. */
#ifndef CLB_KERNELS_LINEAR_LINEAR_CHUNKS_H
#define CLB_KERNELS_LINEAR_LINEAR_CHUNKS_H

#include "kernels/linear/linear_sums.h"

enum { CLB_LINEAR_CHUNK = 16 }; /* u of a sum */

typedef struct {
  ir_val array; /* local */
  ir_val start; /* i32: of this sub-group's part, of CLB_LINEAR_CHUNK elements for each sum */
} clb_linear_stage;

/* Adds to the sums of this sub-group. */
void clb_linear_add_chunks(const clb_linear_tile *t, const clb_linear_stage *stage);

#endif
