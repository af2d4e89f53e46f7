/* tools/ablation/suites.c - cases of the suites that have a graph: convolutions whose y and w are
   given, and sums over the rows of a graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ablation/ablation.h"

/* Whether a row by sender or receiver has more edges than a graph leaves in one piece. */
static bool has_long_rows(const tool_graph *g) {
  enum { LONG_ROW = 256 };
  int32_t *degree = allocate(2 * (size_t)g->n_nodes, sizeof *degree), max = 0;
  for (int64_t e = 0; e < g->n_edges; e++) {
    int32_t a = ++degree[g->receivers[e]], b = ++degree[g->n_nodes + g->senders[e]];
    max = a > max ? a : max;
    max = b > max ? b : max;
  }
  free(degree);
  return max > LONG_ROW;
}

void ablation_make_graphs(work *w, ablation_case *c, bool reversed, ablation_graphs *all) {
  tool_graph *g = &all->g;
  *all = (ablation_graphs){0};
  if (w->status) return;
  if (!graph_make(c->graph, g, w->trouble, sizeof w->trouble)) {
    w->status = CLB_ERROR_UNSUPPORTED;
    return;
  }
  c->rows = g->n_edges;
  for (int whole = 0; whole <= has_long_rows(g); whole++) {
    work_disable(w, whole ? CLB_SPLIT_ROWS : 0);
    *(whole ? &all->whole : &all->graph) =
        work_graph(w, g->n_nodes, g->n_nodes, g->n_edges, g->senders, g->receivers);
    if (reversed)
      *(whole ? &all->reverse_whole : &all->reverse) =
          work_graph(w, g->n_nodes, g->n_nodes, g->n_edges, g->receivers, g->senders);
  }
  work_disable(w, 0);
}

/* A convolution with each of the optimisations that a context can disable; `call` lacks op and
   graph. A split belongs to the graph. */
static void add_convolutions(work *w, const clb_convolution_desc *desc, const ablation_graphs *both,
                             op_call call) {
  for (int i = 0; i < SWITCHES; i++) {
    const ablation_switch *off = &ablation_switches[i];
    if (!work_wants(w, off->way)) continue;
    work_disable(w, off->without);
    call.op = work_convolution(w, desc);
    work_disable(w, 0);
    call.graph = off->without & CLB_SPLIT_ROWS && both->whole ? both->whole : both->graph;
    way_add(w, work_way(w, off->way, 0, false), call);
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

static void add_naive_convolution(work *w, const ablation_product_desc *d,
                                  const ablation_graphs *both, const operands *o, clb_pass pass) {
  const int64_t nodes = both->g.n_nodes, edges = both->g.n_edges, y_stride = o->y.stride;
  way *y = work_naive(w);
  naive_arguments a = ablation_naive_product(w, &d->desc, y_stride);
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

static void make_operands(work *w, const ablation_product_desc *d, const ablation_graphs *both,
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
  ablation_graphs both;
  operands o;
  ablation_make_graphs(w, c, false, &both);
  if (!w->status) {
    clb_convolution_desc desc = {.product = d->desc};
    desc.product.passes = CLB_PASS_BIT(c->pass);
    make_operands(w, d, &both, c->pass, &o);
    add_convolutions(w, &desc, &both,
                     (op_call){.pass = c->pass, .rows = {o.x, o.y, o.w, o.z, o.g_x, o.g_y, o.g_w}});
    if (w->naive) add_naive_convolution(w, d, &both, &o, c->pass);
  }
  graph_free(&both.g);
  free(d);
}

/* ---- sums ---- */

/* The rows of each receiver's edges are added up: a convolution in which x and y are 1. */
void ablation_row_sum(work *w, ablation_case *c) {
  static const clb_instruction path = {0, 0, 0, CLB_UVU, 1, 1};
  const int64_t columns = atoi(c->problem);
  ablation_graphs both;
  ablation_make_graphs(w, c, false, &both);
  if (!w->status) {
    clb_convolution_desc desc = {.product = ablation_plain(c->problem, "1x0e", c->problem, &path)};
    clb_rows edges = work_rows(w, both.g.n_edges, columns, NULL),
             sums = work_rows(w, both.g.n_nodes, columns, NULL);
    work_output(w, sums, both.g.n_nodes, columns);
    add_convolutions(w, &desc, &both,
                     (op_call){.pass = CLB_FORWARD,
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
