/* kernels/graph/segment.h - row segments: lists of runs of a row's edges (CSR), and the part of a
   segment whose edges are in range. A list of segments is int32[n][3] = (row, first slot, number of
   slots); edge[slot] is the number of the edge in a slot, ascending within a row. Of a segment's
   slots those are processed whose edge lies in [e0, e1), so that memory per edge can be reused for
   one block of edges after the other. */
#ifndef CLB_KERNELS_GRAPH_SEGMENT_H
#define CLB_KERNELS_GRAPH_SEGMENT_H

#include "kernels/graph/sort.h"

typedef struct {
  ir_kernel *k;
  ir_val list, edge;      /* parameters: int32 buffers */
  ir_val e0, e1, partial; /* parameters: i32 */
  ir_val index, row;      /* i64: index of the segment, its row */
  ir_val first, last;     /* i32: its slots in range are first ... last - 1 */
  ir_val count;           /* i32: number of all its slots */
  bool whole; /* the list has the first slot of each row, and the end of the last: a segment is a
                 whole row */
} clb_segment;

/* Declares the parameters: list, edge, e0, e1, partial (0: all edges are in range, and e0, e1 are
   ignored). */
void clb_segment_parameters(clb_segment *w, ir_kernel *k);
/* Reads segment `index` (i64, uniform, in range) and finds its slots. */
void clb_segment_begin(clb_segment *w, ir_val index);
/* Makes the slots those of this sub-group's share: as many for each, but a multiple of `together`.
 */
void clb_segment_share(clb_segment *w, int together);

#endif
