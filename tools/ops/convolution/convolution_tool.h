/* tools/ops/convolution/convolution_tool.h - a problem of the graph convolution as the command sees
   it, and its graph. */
#ifndef CLB_TOOLS_OPS_CONVOLUTION_TOOL_H
#define CLB_TOOLS_OPS_CONVOLUTION_TOOL_H

#include "tools/ops/tensor_product_tool.h"

/* The grid of the splines, in the unit of lengths: some edges of synthetic graphs lie beyond it. */
enum { KNOTS = 512 };
#define FIRST_KNOT 0.5
#define LAST_KNOT 6.0

/* Synthetic graphs of `check`, with the number of edges that it asks for. */
typedef enum {
  MADE_RANDOM,
  MADE_RECTANGULAR,
  MADE_ISOLATED,
  MADE_HUB,
  MADE_SHUFFLED,
  MADE_GRAPHS
} made_graph;

/* Both ends of every edge, and the vector from receiver to sender. */
typedef struct {
  int64_t n_senders, n_receivers, n_edges;
  int32_t *senders, *receivers;
  double *vector; /* [n_edges][3] */
} convolution_graph;

typedef struct {
  tensor_problem product;
  const char *graph; /* a name of graphs.h; NULL: synthetic */
  made_graph made;
  const convolution_graph *edges; /* to take these, whose vectors are made up; NULL: none */
  bool atomics, table, vectors;
  double scale;                    /* as in the description: 0 means 1 */
  clb_normalization normalization; /* of harmonics */
  int knots; /* of another grid for the table, whose weights are then random; 0: that above */
  double first_knot, last_knot, break_at;
  int64_t workspace; /* bytes; MAX_WORKSPACE, MIN_WORKSPACE: the sizes of
                        clb_convolution_workspace, and half way between them */
} convolution_problem;
enum { MAX_WORKSPACE = 0, MIN_WORKSPACE = -1, HALF_WORKSPACE = -2 };

extern const char *const made_graph_names[MADE_GRAPHS];

/* ---- graphs ---- */

void convolution_graph_make(convolution_graph *g, const convolution_problem *p,
                            int64_t edges); /* exits on failure */
void convolution_graph_free(convolution_graph *g);
double convolution_graph_length(const convolution_graph *g, int64_t edge);

/* The edges of each row, ascending: those of row r start at edge[first[r]]. */
typedef struct {
  int64_t *first;
  int32_t *edge;
} edges_by_row;
void edges_by_row_make(edges_by_row *by, const int32_t *row, int64_t n_rows, int64_t n_edges);
void edges_by_row_free(edges_by_row *by);

extern const tool_graph_data convolution_on_graph;

#endif
