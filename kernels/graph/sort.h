/* kernels/graph/sort.h - the steps of sorting the edges of a graph, and the arguments of their
   kernels.

   A stable radix sort, from the last digit to the first.  For each digit every group counts the
   digits of its chunk of the list (COUNT), the table of counts [digit][group] becomes that of
   places (SCAN, of each digit's row and then of the rows' sums), and every group walks its chunk
   again and moves each entry to its place (PLACE).  Entries keep their order, so that edges of a
   row ascend. */
#ifndef CLB_KERNELS_GRAPH_SORT_H
#define CLB_KERNELS_GRAPH_SORT_H

#include "kernels/kernel.h"

/* All buffers hold int32, save the lists of CHECK_WIDE.  A `pair` is (node, edge).
     CHECK    senders, their offset, receivers, their offset, n_edges, chunk, n_senders,
              n_receivers, out senders, out receivers, out first bad edge of each group (INT32_MAX:
              none)
     COUNT    list, stride (1: nodes, the place is the edge; 2: pairs), n_edges, chunk, which digit,
              out table
     SCAN     rows of so many numbers: numbers (in place), length, out sum of each row; a group does
              a row
     PLACE    list, stride, n_edges, chunk, which digit, table, first place of each digit, out pairs
     EDGES    sorted pairs, the other end of each edge, n_edges, out edge of each place, out other
              end of each place
     ROWS     sorted pairs, n_edges, n_rows, turns, largest power of two <= n_edges (turns: its log2
              + 1), out first place of each row, and n_edges; one lane walks the n_edges + 1 places
              instead, the last being where rows end
     PIECES   sorted pairs, first place of each row, n pieces, out (row, first place, number of
              places) of each, out rest
     LIST     first place of each row, n_rows, out walk
   Of the scalars those that count nodes, `stride`, `which digit`, `turns` and the power of two are
   i32, all others i64. */
typedef enum {
  CLB_GRAPH_CHECK,
  CLB_GRAPH_CHECK_WIDE,
  CLB_GRAPH_COUNT,
  CLB_GRAPH_SCAN,
  CLB_GRAPH_PLACE,
  CLB_GRAPH_EDGES,
  CLB_GRAPH_ROWS,
  CLB_GRAPH_PIECES,
  CLB_GRAPH_LIST,
  CLB_GRAPH_STEPS
} clb_graph_step;

/* A row longer than this is worked on in pieces.  Row r of places a ... b - 1 has its first
   CLB_GRAPH_PIECE places to itself; where it has more, piece s (counted from 1; its number in the
   array is s - 1) starts at place a + (s - a / P) P, for s = a / P + 1, a / P + 2, ... as long as
   that is < b.  So pieces of different rows never share a number, and (n_edges - 1) / P numbers are
   enough; those that no row uses have 0 places.  For whoever walks (walk.h) `walk` has an entry per
   row, the places that the row has to itself, and `rest` one per piece: (row, number, number of the
   row's pieces) where it is the row's first one, else of 0 pieces; a row's pieces have consecutive
   numbers. Of a `whole` graph every row has all its places to itself, and there are no pieces. */
enum { CLB_GRAPH_PIECE = 256 };

/* Bits of the sort's digit, and entries that a group handles at a time. */
int clb_graph_digit_bits(const clb_schedule *s);
int clb_graph_stride(const clb_schedule *s);

#endif
