/* kernels/convolution/host/passes.c - the launches of a graph convolution's pass. If the workspace
   cannot hold the gradients of x (and of shared weights) of all edges, they are computed for a
   block of edges at a time: kernels process edges e0 ... e1 - 1, and these gradients are then
   summed by sender (those of weights over all edges). */
#include "kernels/convolution/builder.h"
#include "kernels/convolution/frame.h"
#include "kernels/tensor_product/product.h"
#include "kernels/convolution/host/convolution_parts.h"
#include "kernels/host/operand_lists.h"
#include "kernels/linear/host/matmul.h"

static clb_convolution_parts *parts_of(const clb_op *op) { return op->parts; }

enum { MIN_EDGES = 8192 }; /* the fewest that are worth a launch */

/* ---- workspace ---- */

/* Numbers that all roles leave of an edge. */
static int64_t share_columns(const clb_op *op, clb_pass pass) {
  return (int64_t)clb_convolution_roles(op, pass) * clb_convolution_edge_sums(op, pass);
}

static clb_convolution_needs measure(const clb_op *op, clb_pass pass, const clb_graph *g) {
  const clb_tensor_product_problem *tp = &op->problem.tensor_product;
  int64_t splits = clb_graph_split_rows(g), bytes = clb_dtype_bytes(op->problem.storage);
  clb_convolution_needs n = {0};
  if (parts_of(op)->messages) return n;
  if (pass == CLB_FORWARD || (pass == CLB_DOUBLE_BACKWARD && parts_of(op)->results))
    n.z = splits * tp->z.dim * bytes;
  if (pass != CLB_FORWARD && tp->gradients & CLB_OPERAND_X && !op->problem.convolution.atomics) {
    n.x = clb_align_256(splits * tp->x.dim * bytes);
    n.edge_x = tp->x.dim * clb_dtype_bytes(op->problem.arithmetic);
  }
  if (pass != CLB_FORWARD && parts_of(op)->weights) n.edge_w = tp->n_weights * bytes;
  if (!clb_convolution_vectors_leaves(parts_of(op)->vectors, pass))
    n.edge_y = share_columns(op, pass) * clb_dtype_bytes(op->problem.arithmetic);
  if (clb_convolution_walks_once(op, pass) && clb_align_256(n.z) > n.x)
    n.x = clb_align_256(n.z); /* both are in use */
  return n;
}

/* Offset of the gradients of shared weights for this number of edges: after those of x. */
static int64_t start_of_weights(const clb_convolution_needs *n, int64_t edges) {
  return n->edge_w ? clb_align_256(n->x + n->edge_x * edges) : n->x + n->edge_x * edges;
}

/* And those of y. */
static int64_t start_of_shares(const clb_convolution_needs *n, int64_t edges) {
  int64_t end = start_of_weights(n, edges) + n->edge_w * edges;
  return n->edge_y ? clb_align_256(end) : end;
}

static uint64_t bytes_for(const clb_convolution_call *c, int64_t edges) {
  const clb_convolution_needs *n = &c->needs;
  const clb_convolution_vectors *v = parts_of(c->op)->vectors;
  int64_t x = start_of_shares(n, edges) + n->edge_y * edges,
          all = parts_of(c->op)->messages ? clb_convolution_messages_bytes(c->op, c->pass, c->graph)
                : x > n->z                ? x
                                          : n->z,
          own = v ? clb_convolution_vectors_bytes(v, c->pass, c->graph->n_edges) : 0,
          before = v ? clb_convolution_vectors_bytes_before(v, c->pass, c->graph, edges) : 0;
  if (before > all) all = before;
  return (uint64_t)(own ? clb_align_256(all) + own : all);
}

int64_t clb_convolution_bytes(const clb_op *op, clb_pass pass, const clb_graph *graph,
                              int64_t edges) {
  const clb_convolution_call c = {.op = (clb_op *)op,
                                  .pass = pass,
                                  .graph = (clb_graph *)graph,
                                  .needs = measure(op, pass, graph)};
  return (int64_t)bytes_for(&c, edges);
}

static uint64_t needed_bytes(const clb_convolution_call *c) {
  return bytes_for(c, c->graph->n_edges < MIN_EDGES ? c->graph->n_edges : MIN_EDGES);
}

clb_status clb_convolution_workspace(clb_op *op, clb_pass pass, clb_graph *graph,
                                     uint64_t *min_bytes, uint64_t *max_bytes) {
  if (!op) return clb_null(__func__, "op");
  clb_status s = clb_convolution_check_call(op, pass, graph);
  if (s) return s;
  if (!min_bytes || !max_bytes)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "clb_convolution_workspace: %s is NULL",
                    min_bytes ? "max_bytes" : "min_bytes");
  const clb_convolution_call c = {
      .op = op, .pass = pass, .graph = graph, .needs = measure(op, pass, graph)};
  *max_bytes = bytes_for(&c, graph->n_edges);
  *min_bytes = needed_bytes(&c);
  return CLB_OK;
}

/* ---- launches ---- */

typedef clb_convolution_call call;

/* Whether strides are small, and the rows that edges read and write start at multiples of 16
   bytes.  Gradients by y and vectors are written by other kernels. */
static bool aligned(const call *c) {
  const bool spline = c->op->problem.convolution.spline;
  for (int i = 0; i < c->n_operands; i++) {
    const clb_operand *o = &c->operand[i];
    const int64_t step = 16 / clb_operand_bytes(c->op, o);
    if (o->columns && clb_operand_stride(o) > INT32_MAX) return false;
    if (!o->columns || (o->of == CLB_OPERAND_W && spline) || (o->of == CLB_OPERAND_Y && o->written))
      continue;
    if (!clb_operand_is_aligned(c->op, o, step)) return false;
  }
  return true;
}

/* The op's kernel, or one for rows that start anywhere. */
static clb_status kernel_for(const call *c, clb_op *op, const clb_kernel **kernel) {
  const clb_status compiled = op->kernel[c->pass] ? CLB_OK : clb_op_compile(op, c->pass);
  if (compiled) return compiled;
  clb_schedule s = op->choice[c->pass].schedule;
  *kernel = op->kernel[c->pass];
  if (!s.convolution.roles || aligned(c)) return CLB_OK;
  s.convolution.unaligned_rows = 1;
  if (!op->unaligned[c->pass]) {
    clb_status status = clb_op_make_kernel(op, c->pass, &s, &op->unaligned[c->pass]);
    if (status) return status;
  }
  *kernel = op->unaligned[c->pass];
  return CLB_OK;
}

/* The kernel of teams, which sum whole rows; NULL: the graph's rows are split. */
static clb_status team_for(const call *c, clb_op *op, const clb_kernel **kernel) {
  clb_schedule s = op->choice[c->pass].schedule;
  s.convolution.unaligned_rows = s.convolution.roles && !aligned(c);
  clb_kernel **team = &op->team[c->pass][s.convolution.unaligned_rows];
  *kernel = *team;
  if (*team) return CLB_OK;
  op->problem.pass = (int32_t)c->pass;
  if (!clb_convolution_team(&op->problem, &op->ctx->device->limits, &s)) return CLB_OK;
  const clb_status status = clb_op_make_kernel(op, c->pass, &s, team);
  *kernel = *team;
  return status;
}

/* What roles leave of edges e0 ... e1 - 1. */
static clb_torques shares_of(const call *c, int64_t e0, int64_t e1) {
  const clb_op *op = c->op;
  const clb_rows *kept = c->vectors && c->vectors->torques.buffer ? &c->vectors->torques : NULL;
  const int32_t roles = clb_convolution_roles(op, c->pass),
                columns = clb_convolution_edge_sums(op, c->pass);
  const int64_t start = start_of_shares(&c->needs, e1 - e0);
  return kept ? (clb_torques){&kept->buffer->memory, kept->offset + e0 * columns,
                              c->graph->n_edges * columns, roles, columns}
              : (clb_torques){&c->workspace, start / clb_dtype_bytes(op->problem.arithmetic),
                              (e1 - e0) * columns, roles, columns};
}

/* Launches a kernel on `groups` row segments, for edges e0 ... e1 - 1. */
static clb_status launch_kernel(const call *c, clb_op *op, const clb_kernel *kernel, int64_t groups,
                                const clb_buffer *segments, int64_t e0, int64_t e1, int32_t add) {
  const clb_buffer *b = c->graph->buffer;
  const clb_convolution_parts *parts = c->op->parts;
  if (!groups) return CLB_OK;
  clb_call l = clb_call_start(op->ctx);
  clb_call_i64(&l, groups);
  for (int i = 0; i < c->n_operands; i++) clb_call_operand(&l, &c->operand[i]);
  clb_call_buffer(&l, segments);
  clb_call_buffer(&l, &b[CLB_GRAPH_EDGE + CLB_BY_RECEIVER]);
  clb_call_i32(&l, e0);
  clb_call_i32(&l, e1);
  clb_call_i32(&l, e0 > 0 || e1 < c->graph->n_edges);
  clb_call_buffer(&l, &b[CLB_GRAPH_OTHER + CLB_BY_RECEIVER]);
  clb_call_i32(&l, add);
  if (c->op->problem.convolution.spline) clb_call_spline(&l, op, &parts->table);
  const clb_torques shares = shares_of(c, e0, e1);
  if (shares.roles && op == c->op) {
    clb_call_memory(&l, shares.memory);
    clb_call_i64(&l, shares.at);
    clb_call_i64(&l, shares.pitch);
  }
  const int32_t roles = op->choice[c->pass].schedule.convolution.roles;
  return clb_call_launch(&l, kernel, clb_divide_up(groups, kernel->ir.rows) * (roles ? roles : 1));
}

/* The op's own kernel. */
static clb_status launch(const call *c, clb_op *op, int64_t groups, const clb_buffer *segments,
                         int64_t e0, int64_t e1, int32_t add) {
  const clb_kernel *kernel = NULL;
  const clb_status s = groups ? kernel_for(c, op, &kernel) : CLB_OK;
  return s ? s : launch_kernel(c, op, kernel, groups, segments, e0, e1, add);
}

static clb_operand *written(call *c, int of) {
  for (int i = 0; i < c->n_operands; i++)
    if (c->operand[i].written && c->operand[i].of == of && c->operand[i].columns)
      return &c->operand[i];
  return NULL;
}

/* Sums over edges e0 ... e1 - 1 of each receiver: whole rows, or the segments of rows and then the
   splits of longer rows. */
static clb_status run_results(call *c, clb_op *op, int64_t e0, int64_t e1) {
  const clb_buffer *b = c->graph->buffer;
  clb_operand *z = written(c, CLB_OPERAND_Z);
  const int64_t splits = clb_graph_splits(c->graph);
  const int32_t add = e0 > 0 || op->problem.accumulate;
  if (!z) return CLB_OK;
  clb_operand whole = *z;
  const clb_kernel *team = NULL;
  clb_status s = clb_graph_teams(c->graph) ? team_for(c, op, &team) : CLB_OK;
  if (s || team)
    return s ? s
             : launch_kernel(c, op, team, c->graph->n_rows[CLB_BY_RECEIVER],
                             &b[CLB_GRAPH_ROW_START + CLB_BY_RECEIVER], e0, e1, add);
  s = launch(c, op, c->graph->n_rows[CLB_BY_RECEIVER], &b[CLB_GRAPH_SEGMENTS + CLB_BY_RECEIVER], e0,
             e1, add);
  if (s || !splits) return s;
  clb_buffer part = {.ctx = op->ctx, .memory = c->workspace};
  z->rows = (clb_rows){&part, 0, CLB_DENSE, NULL};
  s = launch(c, op, splits, &b[CLB_GRAPH_SPLIT_SEGMENTS + CLB_BY_RECEIVER], e0, e1, 2);
  *z = whole;
  if (!s)
    s = clb_row_sum_combine(parts_of(c->op)->z, c->graph, CLB_BY_RECEIVER, &z->rows.buffer->memory,
                            z->rows.offset, clb_operand_stride(z), &c->workspace, 0);
  return s;
}

/* Replaces the rows of a result by rows of the workspace, from byte `start` on. */
static clb_operand to_workspace(clb_operand *o, clb_buffer *workspace, int64_t start,
                                int64_t bytes) {
  clb_operand whole = *o;
  o->rows = (clb_rows){workspace, start / bytes, CLB_DENSE, NULL};
  return whole;
}

/* Gradients of y, or of lengths, of edges e0 ... e1 - 1, of which each role has left its share. */
static clb_status sum_roles_of(const call *c, const clb_op *sum, const clb_operand *o, int64_t e0,
                               int64_t e1) {
  const clb_op *op = c->op;
  const clb_torques shares = shares_of(c, e0, e1);
  const int64_t n = (e1 - e0) * sum->problem.role_sum.count, stride = clb_operand_stride(o);
  clb_call l = clb_call_begin((clb_op *)sum, CLB_ROLE_SUM, n, n);
  clb_call_memory(&l, shares.memory);
  clb_call_i64(&l, shares.at);
  clb_call_i64(&l, shares.pitch);
  clb_call_i32(&l, shares.roles);
  clb_call_buffer(&l, o->rows.buffer);
  clb_call_i64(&l, o->rows.offset + e0 * stride);
  clb_call_i64(&l, stride);
  clb_call_i32(&l, op->problem.accumulate && !op->problem.convolution.vectors);
  return clb_call_run(&l, CLB_FORWARD);
}

static clb_status sum_roles(call *c, int64_t e0, int64_t e1) {
  const clb_convolution_parts *parts = parts_of(c->op);
  const clb_operand *y = written(c, CLB_OPERAND_Y), *r = written(c, CLB_OPERAND_W);
  const clb_torques shares = shares_of(c, e0, e1);
  if (clb_convolution_in_frame(c->op, c->pass))
    return clb_convolution_vectors_torques(parts->vectors, c->vectors, e0, e1, &shares);
  clb_status s = parts->y && y ? sum_roles_of(c, parts->y, y, e0, e1) : CLB_OK;
  return s || !parts->r || !r ? s : sum_roles_of(c, parts->r, r, e0, e1);
}

/* Computes gradients for edges e0 ... e1 - 1, and sums those of x by sender and those of shared
   weights over all edges. */
static clb_status run_edges(call *c, int64_t e0, int64_t e1) {
  const clb_buffer *b = c->graph->buffer;
  clb_op *op = c->op;
  clb_convolution_parts *parts = op->parts;
  clb_operand *x = op->problem.convolution.atomics ? NULL : written(c, CLB_OPERAND_X),
              *w = parts->weights ? written(c, CLB_OPERAND_W) : NULL, x_whole, w_whole;
  clb_buffer workspace = {.ctx = op->ctx, .memory = c->workspace};
  const clb_memory *m = &c->workspace;
  bool add = e0 > 0 || op->problem.accumulate || c->graph->adds;
  if (x) x_whole = to_workspace(x, &workspace, c->needs.x, clb_dtype_bytes(op->problem.arithmetic));
  if (w)
    w_whole = to_workspace(w, &workspace, start_of_weights(&c->needs, e1 - e0),
                           clb_dtype_bytes(op->problem.storage));
  clb_status s = clb_convolution_walks_once(op, c->pass)
                     ? run_results(c, op, e0, e1)
                     : launch(c, op, c->graph->n_rows[CLB_BY_RECEIVER] + clb_graph_splits(c->graph),
                              &b[CLB_GRAPH_SEGMENTS + CLB_BY_RECEIVER], e0, e1, 0);
  if (!s && c->needs.edge_y) s = sum_roles(c, e0, e1);
  int64_t x_at = x ? x->rows.offset : 0, w_at = w ? w->rows.offset : 0;
  if (x) *x = x_whole;
  if (w) *w = w_whole;
  if (x && !s)
    s = clb_row_sum_run(parts->x, c->graph, CLB_BY_SENDER, e0, e1, m, x_at, x->columns,
                        &x->rows.buffer->memory, x->rows.offset, clb_operand_stride(x), add, m, 0);
  if (w && !s)
    s = clb_column_sum_run(parts->weights, e1 - e0, m, w_at, w->columns, &w->rows.buffer->memory,
                           w->rows.offset, add);
  return s;
}

/* Number of edges at a time for which the workspace suffices. */
static int64_t part_of(const call *c) {
  int64_t n = c->graph->n_edges, edge = c->needs.edge_x + c->needs.edge_w + c->needs.edge_y,
          capacity = (int64_t)c->workspace.bytes;
  int64_t part = edge ? (capacity - c->needs.x) / edge : n;
  if (part > n) part = n;
  while (part > 1 && start_of_shares(&c->needs, part) + c->needs.edge_y * part > capacity) part--;
  return part;
}

static clb_status run_all_edges(call *c) {
  int64_t n = c->graph->n_edges, part = part_of(c);
  clb_status s = CLB_OK;
  const clb_operand *x = written(c, CLB_OPERAND_X);
  if (!x && !written(c, CLB_OPERAND_Y) && !written(c, CLB_OPERAND_W) &&
      !clb_convolution_walks_once(c->op, c->pass))
    return CLB_OK;
  const bool adds = c->op->problem.accumulate || c->graph->adds;
  if (x && c->op->problem.convolution.atomics && !adds) /* empty sums are 0 */
    s = clb_row_sum_run(parts_of(c->op)->x, c->graph, CLB_BY_SENDER, 0, 0, &x->rows.buffer->memory,
                        0, 0, &x->rows.buffer->memory, x->rows.offset, clb_operand_stride(x), false,
                        NULL, 0);
  for (int64_t e0 = 0; !s && (e0 < n || !e0); e0 += part ? part : 1)
    s = run_edges(c, e0, e0 + part < n ? e0 + part : n);
  return s;
}

/* Lengths replace weights; vectors replace y, and also determine the lengths. */
int clb_convolution_operands(const clb_problem *p, clb_pass pass, const clb_rows *rows,
                             clb_operand *operands) {
  int n = clb_tensor_product_operands(p, pass, rows, operands);
  for (clb_operand *o = operands; o < operands + n; o++) {
    if (o->of == CLB_OPERAND_W && o->columns && p->convolution.spline)
      o->columns = p->convolution.vectors ? 0 : 1;
    if (o->of == CLB_OPERAND_Y && o->columns && p->convolution.vectors) o->columns = 3;
  }
  return n;
}

static clb_status check_operands(call *c) {
  const int64_t n[] = {[CLB_OPERAND_X] = c->graph->n_rows[CLB_BY_SENDER],
                       [CLB_OPERAND_Y] = c->graph->n_edges,
                       [CLB_OPERAND_W] = c->graph->n_edges,
                       [CLB_OPERAND_Z] = c->graph->n_rows[CLB_BY_RECEIVER]};
  clb_status s = CLB_OK;
  clb_operand *y = written(c, CLB_OPERAND_Y);
  if (y && clb_convolution_vectors_leaves(parts_of(c->op)->vectors, c->pass))
    y->columns = share_columns(c->op, c->pass);
  for (int i = 0; i < c->n_operands && !s; i++) {
    s = clb_op_check_operand(c->op, c->pass, n[c->operand[i].of], &c->operand[i]);
    if (!n[c->operand[i].of] && !c->operand[i].one_row) c->operand[i].columns = 0;
  }
  return s;
}

static clb_status check_workspace(call *c, const clb_buffer *workspace) {
  uint64_t min = needed_bytes(c);
  if (workspace && workspace->ctx != c->op->ctx)
    return clb_fail(&c->op->ctx->error, CLB_ERROR_ARGUMENT,
                    "convolution: workspace belongs to another context");
  if (min && (!workspace || workspace->memory.bytes < min))
    return clb_fail(
        &c->op->ctx->error, CLB_ERROR_ARGUMENT,
        "convolution: workspace has %llu bytes; clb_convolution_workspace asks for %llu at least",
        (unsigned long long)(workspace ? workspace->memory.bytes : 0), (unsigned long long)min);
  if (min) clb_workspace_discard(c->op->ctx, &workspace->memory);
  c->workspace = workspace ? workspace->memory : c->graph->buffer[CLB_GRAPH_EDGE].memory;
  return CLB_OK;
}

clb_status clb_convolution_run(clb_op *op, clb_pass pass, clb_graph *graph, const clb_rows *rows,
                               clb_buffer *workspace) {
  if (!op) return clb_op_null(CLB_CONVOLUTION, pass);
  call c = {.op = op, .pass = pass, .graph = graph};
  clb_convolution_vector_rows kept;
  clb_status s = clb_convolution_check_call(op, pass, graph);
  if (s) return s;
  if (parts_of(op)->table.knots && !parts_of(op)->table.coefficients)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                    "convolution: this op has knots; call clb_convolution_set_table first");
  if ((s = clb_check_runs(op->ctx))) return s;
  clb_op *results = pass == CLB_DOUBLE_BACKWARD ? parts_of(op)->results
                    : pass == CLB_FORWARD       ? op
                                                : NULL;
  const bool once = clb_convolution_walks_once(op, pass);
  clb_tensor_product_problem *tp = &op->problem.tensor_product;
  const clb_convolution_vectors *vectors = parts_of(op)->vectors;
  int gradients = tp->gradients;
  c.needs = measure(op, pass, graph);
  tp->gradients |= results ? CLB_OPERAND_Z : 0;
  c.n_operands = clb_convolution_operands(&op->problem, pass, rows, c.operand);
  tp->gradients = gradients;
  s = check_operands(&c);
  if (!s) s = check_workspace(&c, workspace);
  if (vectors) c.vectors = &kept;
  if (!s && vectors) s = clb_convolution_vectors_before(vectors, &c, &kept);
  const clb_convolution_messages *messages = parts_of(op)->messages;
  if (!s && messages) s = clb_convolution_messages_run(messages, &c);
  else if (!s && results && !once) s = run_results(&c, results, 0, graph->n_edges);
  if (!s && pass != CLB_FORWARD && !messages) s = run_all_edges(&c);
  if (!s && vectors) s = clb_convolution_vectors_after(vectors, &c, &kept);
  return s;
}
