/* kernels/graph/host/row_sum.h - sums of rows over the edges of each node of a graph, in a fixed
   order; long rows are split, or where edges are few shared by the sub-groups of a group. */
#ifndef CLB_KERNELS_GRAPH_HOST_ROW_SUM_H
#define CLB_KERNELS_GRAPH_HOST_ROW_SUM_H

#include "kernels/graph/host/graph.h"

typedef struct clb_row_sum clb_row_sum;

/* from: type of the rows that are summed; storage: type of the sums and partial sums. Compiles all
   kernels. */
clb_status clb_row_sum_create(clb_context *ctx, clb_dtype from, clb_dtype storage,
                              clb_dtype arithmetic, int64_t columns, clb_row_sum **sum);
void clb_row_sum_destroy(clb_row_sum **sum);

/* Converts to the storage type: out[row][columns] = (add: +=) in[row][columns], for every row of
   that direction. */
clb_status clb_row_copy_create(clb_context *ctx, clb_dtype from, clb_dtype storage,
                               clb_dtype arithmetic, int64_t columns, clb_row_sum **copy);
clb_status clb_row_copy_run(clb_row_sum *copy, const clb_graph *graph, int direction,
                            const clb_memory *in, int64_t in_offset, int64_t in_stride,
                            const clb_memory *out, int64_t out_offset, int64_t out_stride,
                            bool add);

/* out[row][columns] = (add: +=) sum over the row's edges e, e0 <= e < e1, of in[e - e0][columns],
   for every row of that direction (clb_graph_order).  Offsets and strides in elements; strides of
   `out` are at least `columns`.  splits: dense rows of `columns`, as many as
   clb_graph_splits(graph), of type storage, from splits_offset on; without splits it may be NULL.
   Submits; allocates nothing, waits for nothing.  Equal calls on one device give equal bits. */
clb_status clb_row_sum_run(clb_row_sum *sum, const clb_graph *graph, int direction, int64_t e0,
                           int64_t e1, const clb_memory *in, int64_t in_offset, int64_t in_stride,
                           const clb_memory *out, int64_t out_offset, int64_t out_stride, bool add,
                           const clb_memory *splits, int64_t splits_offset);

/* The last step alone, for callers that have computed the sums of the first segment of
   each row in `out` and those of the splits in `splits`: adds the splits to their rows. */
clb_status clb_row_sum_combine(clb_row_sum *sum, const clb_graph *graph, int direction,
                               const clb_memory *out, int64_t out_offset, int64_t out_stride,
                               const clb_memory *splits, int64_t splits_offset);

#endif
