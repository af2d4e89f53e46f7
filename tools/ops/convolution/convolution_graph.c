/* tools/ops/convolution/convolution_graph.c - graphs on which convolutions are checked and timed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ops/graphs.h"
#include "tools/ops/convolution/convolution_tool.h"

const char *const made_graph_names[MADE_GRAPHS] = {[MADE_RANDOM] = "random",
                                                   [MADE_RECTANGULAR] = "rectangular",
                                                   [MADE_ISOLATED] = "isolated",
                                                   [MADE_HUB] = "hubs",
                                                   [MADE_SHUFFLED] = "shuffled"};

static void allocate_edges(convolution_graph *g) {
  g->senders = allocate((size_t)g->n_edges, sizeof *g->senders);
  g->receivers = allocate((size_t)g->n_edges, sizeof *g->receivers);
  g->vector = allocate(3 * (size_t)g->n_edges, sizeof *g->vector);
}

void convolution_graph_free(convolution_graph *g) {
  free(g->senders);
  free(g->receivers);
  free(g->vector);
  *g = (convolution_graph){0};
}

double convolution_graph_length(const convolution_graph *g, int64_t edge) {
  const double *v = g->vector + 3 * edge;
  return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

/* ---- synthetic graphs ---- */

/* A vector of this length in a random direction. */
static void make_vector(double length, uint64_t *seed, double *v) {
  double sum = 0;
  while (sum < 0.1) {
    sum = 0;
    for (int i = 0; i < 3; i++) v[i] = random_number(seed), sum += v[i] * v[i];
  }
  for (int i = 0; i < 3; i++) v[i] *= length / sqrt(sum);
}

static int32_t pick(uint64_t *seed, int64_t n) {
  return (int32_t)((random_number(seed) + 1) / 2 * (double)n);
}

static int ascending(const void *a, const void *b) {
  return (*(const int32_t *)a > *(const int32_t *)b) - (*(const int32_t *)a < *(const int32_t *)b);
}

static void make(convolution_graph *g, made_graph kind, int64_t edges) {
  static const struct {
    int senders, receivers; /* approximate number of edges per node */
  } per_node[MADE_GRAPHS] = {{8, 8}, {3, 90}, {1, 1}, {20, 20}, {8, 8}};
  uint64_t seed = 7, other = 8;
  *g = (convolution_graph){.n_senders = edges / per_node[kind].senders + 3,
                           .n_receivers = edges / per_node[kind].receivers + 3,
                           .n_edges = edges};
  allocate_edges(g);
  for (int64_t e = 0; e < edges; e++) {
    bool hub = kind == MADE_HUB && e % 8;
    g->receivers[e] = hub ? 1 : pick(&seed, g->n_receivers);
    g->senders[e] = hub && e % 3 ? 2 : pick(&seed, g->n_senders);
    make_vector(3.3 + 3 * random_number(&seed), &other, g->vector + 3 * e);
  }
  if (kind != MADE_SHUFFLED) qsort(g->receivers, (size_t)edges, sizeof *g->receivers, ascending);
}

/* ---- named graphs ---- */

static void take(convolution_graph *g, const char *name) {
  tool_graph named;
  char error[2048];
  if (!graph_make(name, &named, error, sizeof error)) fatal("%s", error);
  *g = (convolution_graph){
      .n_senders = named.n_nodes, .n_receivers = named.n_nodes, .n_edges = named.n_edges};
  allocate_edges(g);
  memcpy(g->senders, named.senders, (size_t)g->n_edges * sizeof *g->senders);
  memcpy(g->receivers, named.receivers, (size_t)g->n_edges * sizeof *g->receivers);
  memcpy(g->vector, named.vectors, 3 * (size_t)g->n_edges * sizeof *g->vector);
  graph_free(&named);
}

static void copy(convolution_graph *g, const convolution_graph *from) {
  uint64_t seed = 8;
  *g = (convolution_graph){from->n_senders, from->n_receivers, from->n_edges, NULL, NULL, NULL};
  allocate_edges(g);
  for (int64_t e = 0; e < g->n_edges; e++) {
    g->senders[e] = from->senders[e];
    g->receivers[e] = from->receivers[e];
    make_vector(3.3 + 3 * random_number(&seed), &seed, g->vector + 3 * e);
  }
}

void convolution_graph_make(convolution_graph *g, const convolution_problem *p, int64_t edges) {
  if (p->graph) take(g, p->graph);
  else if (p->edges) copy(g, p->edges);
  else make(g, p->made, edges);
}

/* ---- rows ---- */

void edges_by_row_make(edges_by_row *by, const int32_t *row, int64_t n_rows, int64_t n_edges) {
  by->first = allocate((size_t)n_rows + 2, sizeof *by->first);
  by->edge = allocate((size_t)n_edges, sizeof *by->edge);
  int64_t *next = by->first + 1; /* index for the next edge of a row; finally the end of the row */
  for (int64_t e = 0; e < n_edges; e++) next[row[e] + 1]++;
  for (int64_t r = 0; r < n_rows; r++) next[r + 1] += next[r];
  for (int64_t e = 0; e < n_edges; e++) by->edge[next[row[e]]++] = (int32_t)e;
}

void edges_by_row_free(edges_by_row *by) {
  free(by->first);
  free(by->edge);
  *by = (edges_by_row){0};
}
