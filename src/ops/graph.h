/* src/ops/graph.h - what stands behind clb_graph. */
#ifndef CLB_SRC_OPS_GRAPH_H
#define CLB_SRC_OPS_GRAPH_H

#include "kernels/graph/sort.h"
#include "src/runtime/context.h"

/* Of a direction (clb_graph_order) d: CLB_GRAPH_ROW_START + d and its like. */
enum {
  CLB_GRAPH_RECEIVERS,
  CLB_GRAPH_SENDERS, /* as given */
  CLB_GRAPH_ROW_START,
  CLB_GRAPH_EDGE = CLB_GRAPH_ROW_START + 2,
  CLB_GRAPH_OTHER = CLB_GRAPH_EDGE + 2,
  CLB_GRAPH_WALK = CLB_GRAPH_OTHER + 2,
  CLB_GRAPH_PIECES_OF = CLB_GRAPH_WALK + 2,
  CLB_GRAPH_REST = CLB_GRAPH_PIECES_OF +
                   2, /* int32[..][3]: of rows, of pieces, of pieces (kernels/graph/sort.h) */
  CLB_GRAPH_PAIRS =
      CLB_GRAPH_REST + 2, /* two: the sort goes to and fro; also where lists from the host arrive */
  CLB_GRAPH_TABLE = CLB_GRAPH_PAIRS + 2,
  CLB_GRAPH_SUMS,
  CLB_GRAPH_FOUND, /* counts by digit and group, sums by digit, first bad edges by group */
  CLB_GRAPH_BUFFERS
};

struct clb_graph {
  clb_context *ctx;
  clb_kernel *kernel[CLB_GRAPH_STEPS];
  clb_schedule schedule[CLB_GRAPH_STEPS];
  clb_buffer buffer[CLB_GRAPH_BUFFERS];
  int64_t nodes, edges;       /* capacities */
  int64_t n_rows[2], n_edges; /* by direction: n_receivers, n_senders */
  int64_t groups;             /* that a list is cut up for, at most */
  bool whole;                 /* no row is worked on in pieces, however long it is */
};

/* Numbers of pieces of long rows, used or not. */
static inline int64_t clb_graph_pieces(int64_t n_edges) {
  return n_edges > 0 ? (n_edges - 1) / CLB_GRAPH_PIECE : 0;
}
static inline int64_t clb_graph_own_pieces(const clb_graph *g) {
  return g->whole ? 0 : clb_graph_pieces(g->n_edges);
}

#endif
