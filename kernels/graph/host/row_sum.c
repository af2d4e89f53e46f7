/* kernels/graph/host/row_sum.c - sums of rows over the edges of each node of a graph: the launches.
 */
#include "kernels/graph/host/row_sum.h"
#include "src/runtime/call.h"

#include <stdlib.h>

struct clb_row_sum {
  clb_op *listed, *splits; /* sums rows by edge (copy: one per row); sums rows by slot, which are
                              partial sums of splits (copy: NULL) */
  clb_op *whole;           /* sums whole rows by edge (copy, CPU: NULL) */
  int64_t columns, units;  /* units: sub-groups that share a row's columns */
};

static clb_status create(clb_context *ctx, clb_problem *p, int32_t listed, clb_dtype from,
                         clb_op **op) {
  p->row_sum.listed = listed;
  p->row_sum.from = (int32_t)from;
  return clb_op_create(ctx, p, CLB_PASS_BIT(CLB_FORWARD), NULL, op);
}

/* splits: also creates the ops of rows that are split, or not though they are long. */
static clb_status create_sum(clb_context *ctx, int32_t listed, bool splits, clb_dtype from,
                             clb_dtype storage, clb_dtype arithmetic, int64_t columns,
                             clb_row_sum **sum) {
  clb_problem *p = calloc(1, sizeof *p);
  clb_schedule schedule;
  *sum = calloc(1, sizeof **sum);
  clb_status s = p && *sum ? CLB_OK : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "row_sum: no memory");
  if (s) goto done;
  p->kind = CLB_ROW_SUM;
  p->storage = (int32_t)storage;
  p->arithmetic = (int32_t)arithmetic;
  p->row_sum.columns = columns;
  s = create(ctx, p, listed, from, &(*sum)->listed);
  if (!s && splits) s = create(ctx, p, CLB_ROWS_BY_SLOT, storage, &(*sum)->splits);
  if (!s && splits && !ctx->device->limits.simd)
    s = create(ctx, p, CLB_ROWS_WHOLE, from, &(*sum)->whole);
  if (s) goto done;
  clb_kernel_kinds[CLB_ROW_SUM]->schedule(p, &ctx->device->limits, &schedule);
  (*sum)->columns = columns;
  (*sum)->units = schedule.row_sum.subgroups_per_row ? schedule.row_sum.subgroups_per_row : 1;
done:
  if (s) clb_row_sum_destroy(sum);
  free(p);
  return s;
}

clb_status clb_row_sum_create(clb_context *ctx, clb_dtype from, clb_dtype storage,
                              clb_dtype arithmetic, int64_t columns, clb_row_sum **sum) {
  return create_sum(ctx, CLB_ROWS_BY_EDGE, true, from, storage, arithmetic, columns, sum);
}

clb_status clb_row_copy_create(clb_context *ctx, clb_dtype from, clb_dtype storage,
                               clb_dtype arithmetic, int64_t columns, clb_row_sum **copy) {
  return create_sum(ctx, CLB_ROWS_OWN, false, from, storage, arithmetic, columns, copy);
}

void clb_row_sum_destroy(clb_row_sum **sum) {
  if (!sum || !*sum) return;
  clb_op_destroy(&(*sum)->listed);
  clb_op_destroy(&(*sum)->splits);
  clb_op_destroy(&(*sum)->whole);
  free(*sum);
  *sum = NULL;
}

/* ---- launches ---- */

typedef struct {
  const clb_memory *memory;
  int64_t offset, stride;
} rows;

typedef struct {
  const clb_graph *graph;
  int direction;
  int64_t e0, e1;
} edges;

static clb_status check_fits(clb_row_sum *sum, const char *name, int32_t type, rows r, int64_t n) {
  const int64_t columns = sum->columns;
  if (!n) return CLB_OK;
  const bool fits = clb_rows_fit(r.memory, clb_dtype_bytes(type), r.offset, n, r.stride, columns);
  return fits ? CLB_OK
              : clb_fail(&sum->listed->ctx->error, CLB_ERROR_INTERNAL,
                         "row_sum: %lld rows of %lld elements from %lld on, %lld apart, do not lie "
                         "in the %llu bytes of %s",
                         (long long)n, (long long)columns, (long long)r.offset, (long long)r.stride,
                         r.memory ? (unsigned long long)r.memory->bytes : 0, name);
}

static clb_status check(clb_row_sum *sum, const edges *e, rows out, rows splits) {
  const clb_op *op = sum->listed;
  clb_error_sink *sink = &op->ctx->error;
  clb_status s = clb_check_runs(op->ctx);
  if (s) return s;
  if (e->direction < CLB_BY_RECEIVER || e->direction > CLB_BY_SENDER)
    return clb_fail(sink, CLB_ERROR_INTERNAL, "row_sum: direction is %d", e->direction);
  if (e->e0 < 0 || e->e1 < e->e0 || e->e1 > e->graph->n_edges)
    return clb_fail(sink, CLB_ERROR_INTERNAL, "row_sum: edges %lld ... %lld of %lld",
                    (long long)e->e0, (long long)e->e1, (long long)e->graph->n_edges);
  if (out.stride < sum->columns)
    return clb_fail(sink, CLB_ERROR_INTERNAL,
                    "row_sum: rows of out are %lld apart and have %lld columns",
                    (long long)out.stride, (long long)sum->columns);
  s = check_fits(sum, "out", op->problem.storage, out, e->graph->n_rows[e->direction]);
  return s || e->e0 == e->e1
             ? s
             : check_fits(sum, "splits", op->problem.storage, splits, clb_graph_splits(e->graph));
}

/* Which of a graph's lists is used, and whether empty rows are left unchanged. */
typedef struct {
  int list;
  int64_t n;
  bool skips;
} entries;

static void call_place(clb_call *c, rows r) {
  clb_call_memory(c, r.memory);
  clb_call_i64(c, r.offset);
  clb_call_i64(c, r.stride);
}

static clb_status launch(clb_row_sum *sum, const clb_op *op, const edges *e, entries l, rows in,
                         rows out, bool add) {
  const clb_buffer *b = &e->graph->buffer[e->direction];
  const clb_kernel *kernel = op->kernel[CLB_FORWARD];
  int64_t units;
  if (__builtin_mul_overflow(l.n, sum->units, &units)) units = INT64_MAX; /* launch refuses it */
  const int32_t listed = op->problem.row_sum.listed;
  const bool partial = (listed == CLB_ROWS_BY_EDGE || listed == CLB_ROWS_WHOLE) &&
                       (e->e0 || e->e1 < e->graph->n_edges);
  clb_call c = clb_call_start(op->ctx);
  clb_call_i64(&c, l.n);
  clb_call_buffer(&c, &b[l.list]);
  clb_call_buffer(&c, &b[CLB_GRAPH_EDGE]);
  clb_call_i32(&c, e->e0);
  clb_call_i32(&c, e->e1);
  clb_call_i32(&c, partial);
  clb_call_i32(&c, l.skips);
  call_place(&c, in);
  call_place(&c, out);
  clb_call_i32(&c, add);
  return clb_call_launch(&c, kernel, clb_divide_up(units, kernel->ir.rows));
}

static clb_status combine(clb_row_sum *sum, const edges *e, rows out, rows splits) {
  int64_t n = clb_graph_splits(e->graph);
  if (!n || !sum->columns) return CLB_OK;
  return launch(sum, sum->splits, e, (entries){CLB_GRAPH_SPLIT_ROWS, n, true}, splits, out, true);
}

clb_status clb_row_sum_combine(clb_row_sum *sum, const clb_graph *graph, int direction,
                               const clb_memory *out, int64_t out_offset, int64_t out_stride,
                               const clb_memory *splits, int64_t splits_offset) {
  const edges e = {graph, direction, 0, graph->n_edges};
  const rows to = {out, out_offset, out_stride}, parts = {splits, splits_offset, sum->columns};
  clb_status s = check(sum, &e, to, parts);
  return s ? s : combine(sum, &e, to, parts);
}

clb_status clb_row_sum_run(clb_row_sum *sum, const clb_graph *graph, int direction, int64_t e0,
                           int64_t e1, const clb_memory *in, int64_t in_offset, int64_t in_stride,
                           const clb_memory *out, int64_t out_offset, int64_t out_stride, bool add,
                           const clb_memory *splits, int64_t splits_offset) {
  const edges e = {graph, direction, e0, e1};
  const rows to = {out, out_offset, out_stride}, parts = {splits, splits_offset, sum->columns};
  clb_status s = check(sum, &e, to, parts);
  if (!s)
    s = check_fits(sum, "in", sum->listed->problem.row_sum.from, (rows){in, in_offset, in_stride},
                   e1 - e0);
  int64_t n = s ? 0 : graph->n_rows[direction], n_splits = clb_graph_splits(graph);
  if (!n || !sum->columns || (e0 == e1 && add)) return s;
  rows from = e0 == e1 ? to : (rows){in, in_offset, in_stride}; /* not read if there are no edges,
                                                                   but drivers require memory */
  if (sum->whole && clb_graph_teams(graph) && e0 < e1)
    return launch(sum, sum->whole, &e, (entries){CLB_GRAPH_ROW_START, n, false}, from, to, add);
  s = launch(sum, sum->listed, &e, (entries){CLB_GRAPH_SEGMENTS, n, false}, from, to, add);
  if (!s && n_splits && e0 < e1)
    s = launch(sum, sum->listed, &e, (entries){CLB_GRAPH_SPLIT_SEGMENTS, n_splits, true}, from,
               parts, false);
  return s || e0 == e1 ? s : combine(sum, &e, to, parts);
}

clb_status clb_row_copy_run(clb_row_sum *copy, const clb_graph *graph, int direction,
                            const clb_memory *in, int64_t in_offset, int64_t in_stride,
                            const clb_memory *out, int64_t out_offset, int64_t out_stride,
                            bool add) {
  const edges none = {graph, direction, 0, 0};
  const rows from = {in, in_offset, in_stride}, to = {out, out_offset, out_stride};
  int64_t n = graph->n_rows[direction];
  clb_status s = check(copy, &none, to, to);
  if (!s) s = check_fits(copy, "in", copy->listed->problem.row_sum.from, from, n);
  return s || !n ? s
                 : launch(copy, copy->listed, &none, (entries){CLB_GRAPH_SEGMENTS, n, false}, from,
                          to, add);
}
