/* kernels/layers/host/edge_spline.h - functions W(r) of edges' lengths and their slopes W'(r), each
   from a table of its own of rows at knots, equally far apart from r = 0 to r_max, by cubic
   interpolation: tables that learn. Other remarks of layers.h hold.

   A graph that such an op sorts has for receivers the first of four knots, no senders, and the
   edges of some other graph in their order. */
#ifndef CLB_KERNELS_LAYERS_HOST_EDGE_SPLINE_H
#define CLB_KERNELS_LAYERS_HOST_EDGE_SPLINE_H

#include "kernels/graph/host/graph.h"

enum { CLB_SPLINE_ROWS = 4 };

/* arithmetic: that of type, or CLB_F64. split: the knot at which W'' may jump, or 0. */
clb_status clb_edge_knots_create(clb_context *ctx, clb_dtype type, clb_dtype arithmetic,
                                 double r_max, int64_t intervals, int64_t split, clb_op **op);
/* Sorts n edges by their vectors v[n][3]; room for them has been made (clb_graph_reserve, of as
   many receivers as intervals). */
clb_status clb_edge_knots_sort(clb_op *op, int64_t n, clb_rows v, clb_graph *graph);
/* Factors of rows at knots: c[n][4]; times dr along tangents q[n][3] of v; and g_v[n][3] (= or +=)
   (sum c g_c) dr/dv from g_c[n][4]. */
clb_status clb_edge_knots_forward(clb_op *op, const clb_graph *graph, clb_rows v, clb_rows c);
clb_status clb_edge_knots_along(clb_op *op, const clb_graph *graph, clb_rows v, clb_rows q,
                                clb_rows c_along);
clb_status clb_edge_knots_backward(clb_op *op, const clb_graph *graph, clb_rows v, clb_rows g_c,
                                   clb_rows g_v, bool add);

clb_status clb_edge_spline_create(clb_context *ctx, clb_dtype type, int64_t intervals,
                                  int64_t columns, clb_op **op);
/* w[n][columns] from c and the table[intervals + 1][columns]; g_c[n][4], the gradient by c; and (=
   or +=) that by the table, for which workspace has clb_edge_spline_bytes. */
clb_status clb_edge_spline_forward(clb_op *op, const clb_graph *graph, clb_rows table, clb_rows c,
                                   clb_rows w);
clb_status clb_edge_spline_backward(clb_op *op, const clb_graph *graph, clb_rows table,
                                    clb_rows g_w, clb_rows g_c);
uint64_t clb_edge_spline_bytes(const clb_op *op);
clb_status clb_edge_spline_sum(clb_op *op, const clb_graph *graph, clb_rows c, clb_rows g_w,
                               clb_rows g_table, bool add, const clb_buffer *workspace);

#endif
