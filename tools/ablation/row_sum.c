/* tools/ablation/row_sum.c - sums over the rows of a graph, and what cases with a graph share. */
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

/* The edges of each receiver, or of each sender. */
void ablation_naive_edges(work *w, clb_graph *graph, clb_graph_order order, naive_arguments *a) {
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
    op_call call = {.rows = {work_ones(w, columns), work_ones(w, 1), edges, sums}};
    for (int i = 0; i < SWITCHES; i++) {
      const ablation_switch *off = &ablation_switches[i];
      if (!work_wants(w, off->variant)) continue;
      work_disable(w, off->without);
      call.op = work_convolution(w, &desc);
      work_disable(w, 0);
      call.graph = off->without & CLB_SPLIT_ROWS && both.whole ? both.whole : both.graph;
      variant_add(w, work_variant(w, off->variant, 0, false), call);
    }
    if (w->naive) {
      naive_arguments a = {.x = work_address(w, edges.buffer),
                           .out = work_address(w, sums.buffer),
                           .n = both.g.n_nodes * columns,
                           .X = columns};
      ablation_naive_edges(w, both.graph, CLB_BY_RECEIVER, &a);
      variant_add_naive(w, work_naive(w), NAIVE_row_sum, &a);
    }
  }
  graph_free(&both.g);
}
