/* tools/ablation/suites.c - cases of the suites that have a graph or sum over rows: convolutions
   whose y and w are given, sums over the rows of a graph, and the gradient of weights that all rows
   share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ablation/ablation.h"
#include "tools/ops/graphs.h"

static const clb_rows nothing;

/* One graph, and the same whose rows are not split. */
typedef struct {
  tool_graph g;
  clb_graph *graph, *whole;
} graphs;

static void make_graphs(work *w, ablation_case *c, graphs *both) {
  tool_graph *g = &both->g;
  *both = (graphs){0};
  if (w->status) return;
  if (!graph_make(c->graph, g, w->trouble, sizeof w->trouble)) {
    w->status = CLB_ERROR_UNSUPPORTED;
    return;
  }
  c->rows = g->n_edges;
  both->graph = work_graph(w, g->n_nodes, g->n_nodes, g->n_edges, g->senders, g->receivers);
  work_disable(w, CLB_SPLIT_ROWS);
  both->whole = work_graph(w, g->n_nodes, g->n_nodes, g->n_edges, g->senders, g->receivers);
  work_disable(w, 0);
}

const ablation_switch suite_switches[SUITE_SWITCHES] = {{ABLATIONS, 0},
                                                        {NO_WIDE_ACCESSES, CLB_WIDE_ACCESSES},
                                                        {NO_REGISTER_SUMS, CLB_REGISTER_SUMS},
                                                        {NO_SPLIT_ROWS, CLB_SPLIT_ROWS},
                                                        {NO_OPTIMISATION, ALL_OF_CONTEXT}};

/* A convolution with each of the optimisations that a context can disable; `call` lacks op and
   graph. A split belongs to the graph. */
static void add_convolutions(work *w, const clb_convolution_desc *desc, const graphs *both,
                             op_call call) {
  for (int i = 0; i < SUITE_SWITCHES; i++) {
    work_disable(w, suite_switches[i].without);
    call.op = work_convolution(w, desc);
    work_disable(w, 0);
    call.graph = suite_switches[i].without & CLB_SPLIT_ROWS ? both->whole : both->graph;
    way_add(w, work_way(w, suite_switches[i].way, 0, false), call);
  }
}

/* The edges of each receiver, or of each sender. */
static void set_edges(work *w, clb_graph *graph, clb_graph_order order, naive_arguments *a) {
  clb_sorted_edges sorted = {0};
  clb_buffer *senders = NULL, *receivers = NULL;
  if (!w->status) w->status = clb_graph_sorted(graph, order, &sorted);
  if (!w->status) w->status = clb_graph_lists(graph, &senders, &receivers);
  a->row_start = work_address(w, sorted.row_start);
  a->edge = work_address(w, sorted.edge);
  a->other = work_address(w, sorted.other);
  a->senders = work_address(w, senders);
  a->receivers = work_address(w, receivers);
}

/* ---- convolutions ---- */

typedef struct {
  clb_rows x, y, w, z, g_x, g_y, g_w; /* z: backward g */
} operands;

static void add_naive_convolution(work *w, const ablation_product_desc *d, const graphs *both,
                                  const operands *o, clb_pass pass) {
  const int64_t nodes = both->g.n_nodes, edges = both->g.n_edges, y_stride = o->y.stride;
  way *y = work_naive(w);
  naive_arguments a = ablation_naive_product(w, d, y_stride);
  set_edges(w, both->graph, pass == CLB_FORWARD ? CLB_BY_RECEIVER : CLB_BY_SENDER, &a);
  a.x = work_address(w, o->x.buffer), a.y = work_address(w, o->y.buffer);
  a.w = work_address(w, o->w.buffer), a.g = work_address(w, o->z.buffer);
  if (pass == CLB_FORWARD) {
    way_add_naive_sum(w, y, NAIVE_convolution_z, a, o->z, nodes, d->sizes.z, nodes);
    return;
  }
  way_add_naive_sum(w, y, NAIVE_convolution_g_x, a, o->g_x, nodes, d->sizes.x, nodes);
  way_add_naive_sum(w, y, NAIVE_convolution_g_y, a, o->g_y, edges, y_stride, edges);
  way_add_naive_sum(w, y, NAIVE_convolution_g_w, a, o->g_w, edges, d->sizes.w, edges);
}

static clb_rows padded(work *w, int64_t n, int64_t stride) {
  clb_rows rows = work_rows(w, n, stride, NULL);
  rows.stride = stride;
  return rows;
}

static void make_operands(work *w, const ablation_product_desc *d, const graphs *both,
                          clb_pass pass, operands *o) {
  const clb_tensor_product_sizes *s = &d->sizes;
  const int64_t nodes = both->g.n_nodes, edges = both->g.n_edges, y = (s->y + 3) / 4 * 4;
  *o = (operands){.x = work_rows(w, nodes, s->x, NULL),
                  .y = padded(w, edges, y),
                  .w = work_rows(w, edges, s->w, NULL),
                  .z = work_rows(w, nodes, s->z, NULL)};
  if (pass == CLB_FORWARD) {
    work_output(w, o->z, nodes, s->z);
    return;
  }
  o->g_x = work_rows(w, nodes, s->x, NULL);
  o->g_y = padded(w, edges, y);
  o->g_w = work_rows(w, edges, s->w, NULL);
  work_output(w, o->g_x, nodes, s->x);
  work_output(w, o->g_y, edges, s->y);
  work_output(w, o->g_w, edges, s->w);
}

void ablation_given(work *w, ablation_case *c) {
  ablation_product_desc *d = ablation_describe(w, c);
  graphs both;
  operands o;
  make_graphs(w, c, &both);
  if (!w->status) {
    clb_convolution_desc desc = {.product = d->desc};
    desc.product.passes = CLB_PASS_BIT(c->pass);
    make_operands(w, d, &both, c->pass, &o);
    add_convolutions(w, &desc, &both,
                     (op_call){.kind = CALL_CONVOLUTION,
                               .pass = c->pass,
                               .rows = {o.x, o.y, o.w, o.z, o.g_x, o.g_y, o.g_w}});
    if (w->naive) add_naive_convolution(w, d, &both, &o, c->pass);
  }
  graph_free(&both.g);
  free(d);
}

/* ---- sums ---- */

static const clb_instruction one_path = {0, 0, 0, CLB_UVU, 1, 1};

static clb_tensor_product_desc scalars(const char *irreps) {
  return ablation_plain(irreps, "1x0e", irreps, &one_path);
}

/* The rows of each receiver's edges are added up: a convolution in which x and y are 1. */
void ablation_row_sum(work *w, ablation_case *c) {
  const int64_t columns = atoi(c->problem);
  graphs both;
  make_graphs(w, c, &both);
  if (!w->status) {
    clb_convolution_desc desc = {.product = scalars(c->problem)};
    clb_rows edges = work_rows(w, both.g.n_edges, columns, NULL),
             sums = work_rows(w, both.g.n_nodes, columns, NULL);
    work_output(w, sums, both.g.n_nodes, columns);
    add_convolutions(w, &desc, &both,
                     (op_call){.kind = CALL_CONVOLUTION,
                               .pass = CLB_FORWARD,
                               .rows = {work_ones(w, columns), work_ones(w, 1), edges, sums}});
    if (w->naive) {
      naive_arguments a = {.x = work_address(w, edges.buffer),
                           .out = work_address(w, sums.buffer),
                           .n = both.g.n_nodes * columns,
                           .X = columns};
      set_edges(w, both.graph, CLB_BY_RECEIVER, &a);
      way_add_naive(w, work_naive(w), NAIVE_row_sum, &a);
    }
  }
  graph_free(&both.g);
}

/* g_w = sum over rows of x g, element by element: the gradient of one row of weights for all. */
void ablation_weight_gradient(work *w, ablation_case *c) {
  const int64_t columns = atoi(c->problem);
  clb_tensor_product_desc desc = scalars(c->problem);
  desc.shared_weights = 1;
  desc.gradients = CLB_OPERAND_W;
  desc.passes = CLB_PASS_BIT(CLB_BACKWARD);
  clb_rows x = work_rows(w, c->rows, columns, NULL), g = work_rows(w, c->rows, columns, NULL),
           g_w = work_rows(w, 1, columns, NULL);
  op_call call = {
      .kind = CALL_PRODUCT,
      .pass = CLB_BACKWARD,
      .n = c->rows,
      .rows = {x, work_ones(w, 1), work_rows(w, 1, columns, NULL), g, nothing, nothing, g_w}};
  work_output(w, g_w, 1, columns);
  for (int i = 0; i < SUITE_SWITCHES; i++) {
    work_disable(w, suite_switches[i].without);
    call.op = work_product(w, &desc);
    work_disable(w, 0);
    way *y = work_way(w, suite_switches[i].way, 0, false);
    y->apart = suite_switches[i].without & CLB_SPLIT_ROWS;
    way_add(w, y, call);
  }
  if (w->naive)
    way_add_naive(w, work_naive(w), NAIVE_weight_gradient,
                  &(naive_arguments){.x = work_address(w, x.buffer),
                                     .g = work_address(w, g.buffer),
                                     .out = work_address(w, g_w.buffer),
                                     .n = columns,
                                     .rows = c->rows,
                                     .X = columns});
}
