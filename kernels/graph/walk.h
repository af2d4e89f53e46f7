/* kernels/graph/walk.h - going through the edges of a row: the list of what is to be walked, and
   the part of it whose edges are due.

   A walk is int32[n][3] = (row, first place, number of places); `edge` says which edge a place is,
   ascending within a row.  Of a row's places those are walked whose edge lies in [e0, e1): so
   memory for every edge may be reused, part by part. */
#ifndef CLB_KERNELS_GRAPH_WALK_H
#define CLB_KERNELS_GRAPH_WALK_H

#include "kernels/graph/sort.h"

typedef struct {
  ir_kernel *k;
  ir_val walk, edge;      /* parameters: int32 buffers */
  ir_val e0, e1, partial; /* parameters: i32 */
  ir_val index, row;      /* i64: which entry of the walk, its row */
  ir_val first, last;     /* i32: its places are first ... last - 1 */
  ir_val count;           /* i32: of its places before any were left out */
} clb_walk;

/* Declares the parameters: walk, edge, e0, e1, partial (0: all edges are due, and e0, e1 are not
   looked at). */
void clb_walk_parameters(clb_walk *w, ir_kernel *k);
/* Reads entry `index` (i64, uniform, in range) and finds its places. */
void clb_walk_begin(clb_walk *w, ir_val index);

#endif
