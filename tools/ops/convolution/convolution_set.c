/* tools/ops/convolution/convolution_set.c - a graph convolution on a device: its graph, its
   workspace, the call; how many bytes and operations that is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/dtype.h"
#include "tools/ops/convolution/convolution_data.h"

typedef struct {
  clb_graph *graph;
  clb_buffer *workspace;
} convolution_set;

static size_t element(const convolution_data *t) { return dtype_bytes(t->kernel->storage); }

/* ---- bytes ---- */

static int64_t columns_of_messages(const convolution_data *t) {
  bool per_receiver =
      t->problem->product.kind == CHANNEL_WISE || t->problem->product.kind == OTHER_PRODUCT;
  int64_t columns = 0;
  for (int i = t->inputs; i < t->n; i++)
    if (t->array[i].of == CLB_OPERAND_X || (t->array[i].of == CLB_OPERAND_Z && !per_receiver))
      columns += t->array[i].width;
  return columns;
}

static double bytes(const void *graph) {
  const convolution_data *t = graph;
  double sum = 2 * sizeof(int32_t) * (double)t->graph.n_edges;
  for (int i = 0; i < t->n; i++)
    sum += (double)t->array[i].rows * t->array[i].width * (double)element(t);
  if (t->problem->table) sum += (t->grid.knots + 2.0) * (double)t->sizes.w * (double)element(t);
  return sum;
}

static double read_bytes(const void *graph) {
  const convolution_data *t = graph;
  double written = 0;
  for (int i = t->inputs; i < t->n && !t->kernel->accumulate; i++)
    written += (double)t->array[i].rows * t->array[i].width * (double)element(t);
  return bytes(t) - written;
}

static clb_status flops(const void *graph, clb_op *op, double *n) {
  const convolution_data *t = graph;
  return clb_convolution_flops(op, t->pass, t->graph.n_receivers, t->graph.n_edges, n);
}

/* Intermediate results per edge, written and read again: gradients of x, and, if weights mix
   channels, all results for nodes; with vectors, y and arrays of its shape. */
static double more_bytes(const void *graph) {
  const convolution_data *t = graph;
  double edges = 2.0 * (double)t->graph.n_edges,
         y = t->problem->vectors
                 ? edges * (double)t->sizes.y * (double)(element(t) * (size_t)(t->pass + 1))
                 : 0;
  return t->problem->atomics ? y
                             : y + edges * (double)columns_of_messages(t) *
                                       (double)dtype_bytes(t->kernel->arithmetic);
}

static double set_bytes(const void *graph) {
  const convolution_data *t = graph;
  double nodes = (double)(t->graph.n_senders + t->graph.n_receivers),
         lists = 40 * (double)t->graph.n_edges + 56 * nodes;
  return bytes(t) + lists +
         (t->problem->workspace == MAX_WORKSPACE ? more_bytes(t) / 2
                                                 : (double)t->problem->workspace);
}

static int64_t n_rows(const void *graph) {
  return ((const convolution_data *)graph)->graph.n_edges;
}

static void compared(const void *graph, char *out, size_t size) {
  const convolution_data *t = graph;
  static const char *const names[] = {"senders", "edges", "receivers", "row of weights"};
  const char *between = "";
  out[0] = 0;
  for (int o = OWNERS - 1; o >= 0; o--)
    for (int i = t->inputs; i < t->n; i++) {
      size_t used = strlen(out);
      if (!t->array[i].width || t->owner[i] != (owner)o) continue;
      snprintf(out + used, size - used, "%s%lld %s", between, (long long)t->sample[o].n, names[o]);
      between = ", ";
      break;
    }
}

/* ---- the call ---- */

static clb_status make_graph(const convolution_data *t, clb_context *ctx, clb_graph **graph) {
  const convolution_graph *g = &t->graph;
  clb_status status = clb_graph_create(
      ctx, g->n_senders > g->n_receivers ? g->n_senders : g->n_receivers, g->n_edges, graph);
  if (status) return status;
  return clb_graph_update(*graph, g->n_senders, g->n_receivers, g->n_edges, CLB_I32,
                          (clb_index_list){.host = g->senders},
                          (clb_index_list){.host = g->receivers});
}

/* Of `check`, filled with NaN. */
static clb_status make_workspace(const convolution_data *t, clb_context *ctx, clb_op *op,
                                 convolution_set *s) {
  uint64_t min, max;
  clb_status status = clb_convolution_workspace(op, t->pass, s->graph, &min, &max);
  int64_t asked = t->problem->workspace;
  uint64_t n = asked == MAX_WORKSPACE    ? max
               : asked == MIN_WORKSPACE  ? min
               : asked == HALF_WORKSPACE ? min + (max - min) / 2
               : (uint64_t)asked < max   ? (uint64_t)asked
                                         : max;
  if (status || !n) return status;
  status = clb_buffer_create(ctx, n, &s->workspace);
  if (status || !t->whole) return status;
  char *nan = allocate(n, 1);
  memset(nan, 0xff, n);
  status = clb_buffer_write(s->workspace, 0, nan, n);
  free(nan);
  return status;
}

static clb_status attach(const void *graph, clb_context *ctx, clb_op *op, void **at) {
  const convolution_data *t = graph;
  convolution_set *s = *at = allocate(1, sizeof *s);
  clb_status status = make_graph(t, ctx, &s->graph);
  if (!status) status = make_workspace(t, ctx, op, s);
  if (!status && t->weights) status = clb_convolution_set_table(op, t->weights);
  return status;
}

static void detach(void *at) {
  convolution_set *s = at;
  if (!s) return;
  clb_buffer_destroy(&s->workspace);
  clb_graph_destroy(&s->graph);
  free(s);
}

static clb_status run(clb_op *op, clb_pass pass, const clb_rows *a, void *at) {
  const convolution_set *s = at;
  switch (pass) {
    case CLB_FORWARD:
      return clb_convolution_forward(op, s->graph, a[0], a[1], a[2], a[3], s->workspace);
    case CLB_BACKWARD:
      return clb_convolution_backward(op, s->graph, a[0], a[1], a[2], a[3], a[4], a[5], a[6],
                                      s->workspace);
    default:
      return clb_convolution_double_backward(op, s->graph, a[0], a[1], a[2], a[3], a[4], a[5], a[6],
                                             a[7], a[8], a[9], a[10], s->workspace);
  }
}

const tool_graph_data convolution_on_graph = {.make = convolution_data_make,
                                              .free = convolution_data_free,
                                              .rows = n_rows,
                                              .arrays = convolution_data_arrays,
                                              .fill = convolution_data_fill,
                                              .reference = convolution_data_answer,
                                              .bytes = bytes,
                                              .more_bytes = more_bytes,
                                              .read_bytes = read_bytes,
                                              .flops = flops,
                                              .set_bytes = set_bytes,
                                              .attach = attach,
                                              .detach = detach,
                                              .run = run,
                                              .compared = compared};
