/* kernels/graph/sort.h - the steps of sorting the edges of a graph, and the arguments of their
   kernels.

   A stable radix sort, from the last digit to the first.  For each digit every group counts the
   digits of its chunk of the list (COUNT), the table of counts [digit][group] becomes that of
   offsets (SCAN, of each digit's row and then of the rows' sums), and every group goes through its
   chunk again and moves each entry to its offset (SCATTER). Entries keep their order, so that edges
   of a row ascend. */
#ifndef CLB_KERNELS_GRAPH_SORT_H
#define CLB_KERNELS_GRAPH_SORT_H

#include "kernels/kernel.h"

/* clang-format off */
/* All buffers hold int32, except the lists of CHECK_WIDE. A `pair` is (node, edge).
     CHECK    senders, their offset, receivers, their offset, n_edges, chunk, n_senders,
              n_receivers, the receiver that becomes number 0, out senders, out receivers, out first
              bad edge of each group (INT32_MAX: none)
     COUNT    list, stride (1: nodes, the index is the edge; 2: pairs), n_edges, chunk, which digit,
              out table
     SCAN     rows of `length` numbers: numbers (in place), length, out sum of each row; a group
              does a row
     SCATTER  list, stride, n_edges, chunk, which digit, table, first offset of each digit, out
              pairs
     EDGES    sorted list, stride, the other end of each edge, n_edges, how many of them have
              another end (all or none), out edge in each slot, out other end in each slot
     ROWS     sorted list, stride, n_edges, n_rows, iterations, largest power of two <= n_edges
              (iterations: its log2 + 1), out first slot of each row, and n_edges; with one lane, it
              goes through the n_edges + 1 slots instead, the last being the end of the rows
     SPLITS   sorted list, stride, first slot of each row, number of splits, P (i64), n_rows (i64),
              out segment of each split, out the same after n_rows segments, out split rows
     SEGMENT_LIST  first slot of each row, n_rows, P (i32), out segments of rows
   Scalars that count or number nodes, `stride`, `which digit`, `iterations` and the power of two
   are i32, all others i64. */
/* clang-format on */
typedef enum {
  CLB_GRAPH_CHECK,
  CLB_GRAPH_CHECK_WIDE,
  CLB_GRAPH_COUNT,
  CLB_GRAPH_SCAN,
  CLB_GRAPH_SCATTER,
  CLB_GRAPH_EDGES,
  CLB_GRAPH_ROWS,
  CLB_GRAPH_SPLITS,
  CLB_GRAPH_SEGMENT_LIST,
  CLB_GRAPH_STEPS
} clb_graph_step;

/* Longer rows are split. Row r with slots a ... b - 1 has a segment of its first P slots; if it has
   more, split s (counted from 1; its index in arrays is s - 1) starts at slot a + (s - a / P) P,
   for s = a / P + 1, a / P + 2, ... as long as that is < b. So splits of different rows never have
   the same index, and (n_edges - 1) / P indices suffice; unused ones have 0 slots. There are three
   lists of segments (segment.h): of rows, one segment per row, then
   of splits; of splits alone; and of split rows, one entry per split: (row, index, number of the
   row's splits) for a row's first split, otherwise with 0 splits; the splits of a row have
   consecutive indices. In a `whole` graph a row's segment has all its slots, and there are no
   splits.

   P is a power of two: on GPUs as few as make so many segments that they fill the device, but not
   fewer than CLB_GRAPH_LEAST_SPLIT, because each is stored and added; else CLB_GRAPH_SPLIT. */
enum { CLB_GRAPH_SPLIT = 256, CLB_GRAPH_LEAST_SPLIT = 16, CLB_GRAPH_FILL = 1024 };
/* The most sub-groups that share a whole row. */
enum { CLB_GRAPH_TEAM = 8 };

/* Bits of a digit of the sort, and entries that a group handles at a time. */
int clb_graph_digit_bits(const clb_schedule *s);
int clb_graph_stride(const clb_schedule *s);

#endif
