/* kernels/graph/host/graph.h - what stands behind clb_graph. */
#ifndef CLB_KERNELS_GRAPH_HOST_GRAPH_H
#define CLB_KERNELS_GRAPH_HOST_GRAPH_H

#include "kernels/graph/sort.h"
#include "src/runtime/call.h"

/* Buffers. Those of a direction (clb_graph_order) d are CLB_GRAPH_ROW_START + d and so on. */
enum {
  CLB_GRAPH_RECEIVERS,
  CLB_GRAPH_SENDERS, /* as given */
  CLB_GRAPH_ROW_START,
  CLB_GRAPH_EDGE = CLB_GRAPH_ROW_START + 2,
  CLB_GRAPH_OTHER = CLB_GRAPH_EDGE + 2,
  CLB_GRAPH_SEGMENTS = CLB_GRAPH_OTHER + 2,
  CLB_GRAPH_SPLIT_SEGMENTS = CLB_GRAPH_SEGMENTS + 2,
  CLB_GRAPH_SPLIT_ROWS = CLB_GRAPH_SPLIT_SEGMENTS + 2, /* segment lists of rows, of splits, of split
                                                          rows (kernels/graph/sort.h) */
  CLB_GRAPH_PAIRS = CLB_GRAPH_SPLIT_ROWS + 2, /* two, between which the sort alternates; also
                                                 receive lists from the host */
  CLB_GRAPH_KEYS = CLB_GRAPH_PAIRS + 1,       /* at first: of clb_graph_sort_keyed */
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
  uint64_t counts;            /* a hash of those numbers, for recordings */
  int64_t groups;             /* maximum number of groups that share a list */
  int64_t split;              /* P of sort.h; in a whole graph all edges */
  int64_t least_split;        /* the least P of this device */
  bool whole;                 /* rows are not split, however long they are */
  bool short_rows;            /* none is long enough: clb_graph_find_splits */
  bool team_rows;             /* none is too long for a team: likewise */
  bool lasts;                 /* what was found of rows does */
  bool listed;                /* only the lists are there, of int32; blocks of it are sorted */
  int64_t first_receiver;     /* of a block: what its receiver 0 is in the whole graph */
  bool adds;                  /* of a block: sums by sender are added to those of other blocks */
};

/* For edges that kernels write: reserve makes room (as clb_graph_update does) and leaves the graph
   empty; the edges go into the buffers CLB_GRAPH_SENDERS and CLB_GRAPH_RECEIVERS, and are not
   checked, but ascend by receiver; sort sorts them. With n_senders 0 edges have no senders, are in
   any order, and are sorted by receiver alone. */
clb_status clb_graph_reserve(clb_graph *g, int64_t n_senders, int64_t n_receivers, int64_t n_edges);
clb_status clb_graph_sort(clb_graph *g, int64_t n_senders, int64_t n_receivers, int64_t n_edges);
/* The same of n nodes, of which CLB_GRAPH_KEYS has the senders of edges, and n of those that no
   sender has. Not of listed graphs, which have no such buffer. */
clb_status clb_graph_sort_keyed(clb_graph *g, int64_t n, int64_t n_edges);
/* The same where kernels write the lists, into CLB_GRAPH_PAIRS the sender in each slot (of null
   edges, n), and segments of rows: before that, and, for splits, after it. */
void clb_graph_expect(clb_graph *g, int64_t n, int64_t n_edges);
clb_status clb_graph_split_listed(clb_graph *g);

/* Makes `block` the graph of the receivers first ... first + n_receivers - 1 of a listed graph,
   whose edges are number e0 ... e0 + n_edges - 1. Memory for it is there; submits alone. */
clb_status clb_graph_block(const clb_graph *listed, int64_t first, int64_t n_receivers, int64_t e0,
                           int64_t n_edges, clb_graph *block);
/* Bytes of a graph's memory, of such capacities. */
uint64_t clb_graph_bytes(const clb_graph *g, int64_t nodes, int64_t edges);

/* Reads how long rows are, which waits for the sort. Where none is split, or none of a small graph
   has more splits than a team has sub-groups, ops launch nothing for splits until the edges are
   others; or, of a graph whose edges change under a recording, which
   `lasts`, until memory is reserved again: rows are then not split, however long they become. */
clb_status clb_graph_find_splits(clb_graph *g, bool lasts);

/* Number of split indices, including unused ones; the most that a graph of so many edges has. */
static inline int64_t clb_graph_splits(const clb_graph *g) {
  return g->n_edges > 0 && !g->whole && !g->short_rows ? (g->n_edges - 1) / g->split : 0;
}
/* Whether edges are so few, or rows so short, that the sub-groups of a group (a team) share a whole
   row, where an op can: one launch, instead of three for rows, splits, and their sums. */
static inline bool clb_graph_teams(const clb_graph *g) {
  return clb_graph_splits(g) && (g->team_rows || g->split == CLB_GRAPH_LEAST_SPLIT);
}
static inline int64_t clb_graph_most_splits(int64_t n_edges) {
  const int64_t many = n_edges / CLB_GRAPH_SPLIT, few = n_edges / CLB_GRAPH_LEAST_SPLIT;
  return few < CLB_GRAPH_FILL ? few : many > CLB_GRAPH_FILL ? many : CLB_GRAPH_FILL;
}
/* Rows of a workspace for splits: as many or more, and no fewer than with fewer edges. */
static inline int64_t clb_graph_split_rows(const clb_graph *g) {
  const int64_t n = clb_graph_splits(g);
  return n && g->least_split < CLB_GRAPH_SPLIT ? clb_graph_most_splits(g->n_edges) : n;
}

#endif
