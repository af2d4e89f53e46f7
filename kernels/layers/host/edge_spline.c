/* kernels/layers/host/edge_spline.c - rows of edges from splines that learn: the calls. */
#include "kernels/layers/host/edge_spline.h"

#include "kernels/layers/host/layer_call.h"

enum { FIRST, FORWARD, ALONG, BACKWARD, KNOTS_PASSES };
enum { ROWS, BACK, SUM, TOTAL, SPLINE_PASSES };

static void call(clb_call *c, const char *name, int64_t n, int64_t columns, clb_rows rows,
                 clb_role role) {
  c->n = n;
  clb_call_rows(c, name, (clb_dtype)c->op->problem.storage, columns, rows, role);
}

static void call_list(clb_call *c, const clb_graph *graph, int list) {
  clb_call_memory(c, &graph->buffer[list].memory);
}

/* ---- where edges lie ---- */

clb_status clb_edge_knots_create(clb_context *ctx, clb_dtype type, clb_dtype arithmetic,
                                 double r_max, int64_t intervals, int64_t split, clb_op **op) {
  clb_problem *p = clb_layer_problem(ctx, CLB_EDGE_KNOTS, type, arithmetic);
  if (p) p->edge_knots = (clb_edge_knots_problem){r_max, (int32_t)intervals, (int32_t)split};
  return clb_layer_create(ctx, p, (1U << KNOTS_PASSES) - 1, op);
}

clb_status clb_edge_knots_sort(clb_op *op, int64_t n, clb_rows v, clb_graph *graph) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  clb_call c = clb_call_begin(op, CLB_EDGE_KNOTS, n, n);
  call(&c, "v", n, 3, v, CLB_IN);
  call_list(&c, graph, CLB_GRAPH_RECEIVERS);
  const clb_status s = n ? clb_call_run(&c, FIRST) : c.status;
  return s ? s : clb_graph_sort(graph, 0, op->problem.edge_knots.intervals, n);
}

clb_status clb_edge_knots_forward(clb_op *op, const clb_graph *graph, clb_rows v, clb_rows c_rows) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  const int64_t n = graph->n_edges;
  clb_call c = clb_call_begin(op, CLB_EDGE_KNOTS, n, n);
  call(&c, "v", n, 3, v, CLB_IN);
  call(&c, "c", n, CLB_SPLINE_ROWS, c_rows, CLB_OUT);
  call_list(&c, graph, CLB_GRAPH_RECEIVERS);
  return clb_call_run(&c, FORWARD);
}

clb_status clb_edge_knots_along(clb_op *op, const clb_graph *graph, clb_rows v, clb_rows q,
                                clb_rows c_along) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  const int64_t n = graph->n_edges;
  clb_call c = clb_call_begin(op, CLB_EDGE_KNOTS, n, n);
  call(&c, "v", n, 3, v, CLB_IN);
  call(&c, "q", n, 3, q, CLB_IN);
  call(&c, "c_along", n, CLB_SPLINE_ROWS, c_along, CLB_OUT);
  call_list(&c, graph, CLB_GRAPH_RECEIVERS);
  return clb_call_run(&c, ALONG);
}

clb_status clb_edge_knots_backward(clb_op *op, const clb_graph *graph, clb_rows v, clb_rows g_c,
                                   clb_rows g_v, bool add) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  const int64_t n = graph->n_edges;
  clb_call c = clb_call_begin(op, CLB_EDGE_KNOTS, n, n);
  call(&c, "v", n, 3, v, CLB_IN);
  call(&c, "g_c", n, CLB_SPLINE_ROWS, g_c, CLB_IN);
  call(&c, "g_v", n, 3, g_v, CLB_OUT);
  call_list(&c, graph, CLB_GRAPH_RECEIVERS);
  clb_call_i32(&c, add);
  return clb_call_run(&c, BACKWARD);
}

/* ---- splines ---- */

static int64_t knots_of(const clb_op *op) { return op->problem.edge_spline.knots; }
static int64_t columns_of(const clb_op *op) { return op->problem.edge_spline.columns; }

clb_status clb_edge_spline_create(clb_context *ctx, clb_dtype type, int64_t intervals,
                                  int64_t columns, clb_op **op) {
  clb_problem *p = clb_layer_problem(ctx, CLB_EDGE_SPLINE, type, type);
  if (p) p->edge_spline = (clb_edge_spline_problem){(int32_t)intervals + 1, (int32_t)columns};
  return clb_layer_create(ctx, p, (1U << SPLINE_PASSES) - 1, op);
}

static clb_status run_rows(clb_op *op, int pass, const clb_graph *graph, clb_rows table, clb_rows w,
                           clb_rows c_rows) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  const int64_t n = graph->n_edges, columns = columns_of(op);
  const bool back = pass == BACK;
  clb_call c = clb_call_begin(op, CLB_EDGE_SPLINE, n, n);
  call_list(&c, graph, CLB_GRAPH_EDGE + CLB_BY_RECEIVER);
  call_list(&c, graph, CLB_GRAPH_RECEIVERS);
  call(&c, "table", knots_of(op), columns, table, CLB_IN);
  call(&c, back ? "g_w" : "w", n, columns, w, back ? CLB_IN : CLB_OUT);
  call(&c, back ? "g_c" : "c", n, CLB_SPLINE_ROWS, c_rows, back ? CLB_OUT : CLB_IN);
  return clb_call_run(&c, pass);
}

clb_status clb_edge_spline_forward(clb_op *op, const clb_graph *graph, clb_rows table, clb_rows c,
                                   clb_rows w) {
  return run_rows(op, ROWS, graph, table, w, c);
}

clb_status clb_edge_spline_backward(clb_op *op, const clb_graph *graph, clb_rows table,
                                    clb_rows g_w, clb_rows g_c) {
  return run_rows(op, BACK, graph, table, g_w, g_c);
}

uint64_t clb_edge_spline_bytes(const clb_op *op) {
  return (uint64_t)((knots_of(op) - CLB_SPLINE_ROWS + 1) * CLB_SPLINE_ROWS * columns_of(op) *
                    clb_dtype_bytes(op->problem.storage));
}

/* Begins one of the two steps: of so many rows, each in blocks of columns. */
static clb_call begin_sum(clb_op *op, int pass, const clb_graph *graph, int64_t rows) {
  const int64_t across = clb_divide_up(columns_of(op), clb_layer_schedule_of(op, pass).lanes);
  clb_call c = clb_call_begin(op, CLB_EDGE_SPLINE, rows, rows * across);
  call_list(&c, graph, CLB_GRAPH_ROW_START + CLB_BY_RECEIVER);
  return c;
}

clb_status clb_edge_spline_sum(clb_op *op, const clb_graph *graph, clb_rows c_rows, clb_rows g_w,
                               clb_rows g_table, bool add, const clb_buffer *workspace) {
  if (!op || !graph || !workspace) return CLB_ERROR_ARGUMENT;
  const int64_t n = graph->n_edges, columns = columns_of(op);
  if (workspace->memory.bytes < clb_edge_spline_bytes(op))
    return clb_fail(&op->ctx->error, CLB_ERROR_INTERNAL, "edge_spline: its workspace is too small");
  clb_workspace_discard(op->ctx, &workspace->memory);
  clb_call c = begin_sum(op, SUM, graph, knots_of(op) - CLB_SPLINE_ROWS + 1);
  call_list(&c, graph, CLB_GRAPH_EDGE + CLB_BY_RECEIVER);
  call(&c, "c", n, CLB_SPLINE_ROWS, c_rows, CLB_IN);
  call(&c, "g_w", n, columns, g_w, CLB_IN);
  clb_call_buffer(&c, workspace);
  const clb_status s = clb_call_run(&c, SUM);
  if (s) return s;
  c = begin_sum(op, TOTAL, graph, knots_of(op));
  clb_call_buffer(&c, workspace);
  call(&c, "g_table", knots_of(op), columns, g_table, CLB_OUT);
  clb_call_i32(&c, add);
  return clb_call_run(&c, TOTAL);
}
