/* kernels/convolution/host/messages.c - graph convolutions of products that are not channel-wise:
   messages of a block of edges at a time, then their sums. Weights that mix channels are far more
   numbers than a message, so that writing and reading messages costs comparatively little: the
   tensor product of edges e0 ... e1 - 1 gathers its rows of nodes by number and writes the results
   for nodes to the workspace, where they are summed by receiver, or by sender, in a fixed order.
   The number of edges per block depends only on the op, so that results are bitwise reproducible.
   Sums over several blocks are kept in arithmetic precision; if rows are stored in another type
   they are converted at the end. */
#include "kernels/convolution/host/messages.h"

#include <stdlib.h>

#include "kernels/linear/host/matmul.h"
#include "kernels/graph/host/row_sum.h"

/* Results for nodes: gradients of x are summed by sender, those of z by receiver. */
enum { SENDERS, RECEIVERS, NODES };
static const int like[NODES] = {CLB_OPERAND_X, CLB_OPERAND_Z},
                 direction[NODES] = {CLB_BY_SENDER, CLB_BY_RECEIVER};

struct clb_convolution_messages {
  clb_op *product;
  clb_row_sum *sum[NODES], *copy[NODES]; /* NULL: not needed */
  clb_op *weights; /* sums gradients of shared weights over edges; NULL: not needed */
};

void clb_convolution_messages_destroy(clb_convolution_messages **messages) {
  clb_convolution_messages *m = *messages;
  if (!m) return;
  clb_op_destroy(&m->product);
  clb_op_destroy(&m->weights);
  for (int i = 0; i < NODES; i++) clb_row_sum_destroy(&m->sum[i]), clb_row_sum_destroy(&m->copy[i]);
  free(m);
  *messages = NULL;
}

/* ---- results of a pass ---- */

static int64_t columns_of(const clb_op *op, int of) {
  const clb_tensor_product_problem *tp = &op->problem.tensor_product;
  return of == CLB_OPERAND_X ? tp->x.dim : of == CLB_OPERAND_Z ? tp->z.dim : tp->n_weights;
}

/* Columns of a result that is written to the workspace per edge; 0: the pass does not compute
   it. */
static int64_t message(const clb_op *op, clb_pass pass, int of) {
  const clb_tensor_product_problem *tp = &op->problem.tensor_product;
  bool given = pass == CLB_FORWARD
                   ? of == CLB_OPERAND_Z
                   : tp->gradients & of && (of != CLB_OPERAND_Z || pass == CLB_DOUBLE_BACKWARD);
  return given && (of != CLB_OPERAND_W || tp->shared_weights) ? columns_of(op, of) : 0;
}

static bool converts(const clb_op *op) { return op->problem.storage != op->problem.arithmetic; }

/* ---- create ---- */

static clb_status create_product(clb_op *op, unsigned passes, const clb_tuner *tuner,
                                 clb_op **product) {
  clb_problem *p = calloc(1, sizeof *p);
  if (!p) return clb_fail(&op->ctx->error, CLB_ERROR_MEMORY, "clb_convolution_create: no memory");
  p->kind = CLB_TENSOR_PRODUCT;
  p->storage = op->problem.storage;
  p->arithmetic = op->problem.arithmetic;
  p->accumulate = op->problem.accumulate;
  p->tensor_product = op->problem.tensor_product;
  p->tensor_product.indexed =
      (p->tensor_product.x.dim ? CLB_OPERAND_X : 0) | (p->tensor_product.z.dim ? CLB_OPERAND_Z : 0);
  p->tensor_product.edges =
      CLB_OPERAND_X | CLB_OPERAND_Z | (op->problem.convolution.vectors ? CLB_OPERAND_Y : 0);
  clb_status s = clb_op_create(op->ctx, p, passes, tuner, product);
  free(p);
  return s;
}

static clb_status create_sums(clb_op *op, unsigned passes, int i, clb_convolution_messages *m) {
  clb_dtype storage = (clb_dtype)op->problem.storage,
            arithmetic = (clb_dtype)op->problem.arithmetic;
  int64_t columns = 0;
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
    if (passes & CLB_PASS_BIT(pass) && message(op, (clb_pass)pass, like[i]))
      columns = columns_of(op, like[i]);
  if (!columns) return CLB_OK;
  clb_status s =
      clb_row_sum_create(op->ctx, arithmetic, arithmetic, arithmetic, columns, &m->sum[i]);
  return s || !converts(op)
             ? s
             : clb_row_copy_create(op->ctx, arithmetic, storage, arithmetic, columns, &m->copy[i]);
}

clb_status clb_convolution_messages_create(clb_op *op, unsigned passes, const clb_tuner *tuner,
                                           clb_convolution_messages **messages) {
  clb_convolution_messages *m = *messages = calloc(1, sizeof *m);
  if (!m) return clb_fail(&op->ctx->error, CLB_ERROR_MEMORY, "clb_convolution_create: no memory");
  clb_status s = create_product(op, passes, tuner, &m->product);
  for (int i = 0; i < NODES && !s; i++) s = create_sums(op, passes, i, m);
  if (!s && passes >> CLB_BACKWARD && message(op, CLB_BACKWARD, CLB_OPERAND_W))
    s = clb_column_sum_create(op->ctx, (clb_dtype)op->problem.storage,
                              (clb_dtype)op->problem.arithmetic, columns_of(op, CLB_OPERAND_W),
                              INT32_MAX, &m->weights);
  for (int pass = 0; pass < CLB_PASSES && !s; pass++) {
    op->kernel[pass] = m->product->kernel[pass];
    op->choice[pass] = m->product->choice[pass];
  }
  return s; /* destroyed with the convolution that contains it */
}

/* ---- workspace ---- */

/* Edges at a time: messages should roughly stay in a GPU's last-level cache, and be enough to fill
   the GPU. */
enum { ROOM = 64 << 20, MAX_EDGES = 65536, MAX_EDGES_OF_A_CPU = 16384 };

static int64_t part_of(const clb_op *op, clb_pass pass) {
  int64_t arithmetic = clb_dtype_bytes(op->problem.arithmetic),
          storage = clb_dtype_bytes(op->problem.storage);
  int64_t row = (message(op, pass, CLB_OPERAND_X) + message(op, pass, CLB_OPERAND_Z)) * arithmetic +
                message(op, pass, CLB_OPERAND_W) * storage;
  int64_t max = op->ctx->device->limits.simd ? MAX_EDGES_OF_A_CPU : MAX_EDGES,
          part = row ? ROOM / row : INT32_MAX;
  return part < 1 ? 1 : row && part > max ? max : part;
}

/* Offsets in bytes: messages; partial sums of split rows; sums of rows to be converted; gradients
   of weights. */
typedef struct {
  int64_t message[NODES], partial[NODES], sum[NODES], weights, end;
} places;

static places places_of(const clb_op *op, clb_pass pass, const clb_graph *g) {
  int64_t arithmetic = clb_dtype_bytes(op->problem.arithmetic), part = part_of(op, pass),
          rows = g->n_edges < part ? g->n_edges : part;
  places at = {.end = 0};
  for (int i = 0; i < NODES; i++) {
    int64_t row = message(op, pass, like[i]) * arithmetic;
    at.message[i] = at.end;
    at.partial[i] = clb_align_256(at.message[i] + rows * row);
    at.sum[i] = clb_align_256(at.partial[i] + clb_graph_split_rows(g) * row);
    at.end = converts(op) ? clb_align_256(at.sum[i] + g->n_rows[direction[i]] * row) : at.sum[i];
  }
  at.weights = at.end;
  at.end +=
      clb_align_256(rows * message(op, pass, CLB_OPERAND_W) * clb_dtype_bytes(op->problem.storage));
  return at;
}

int64_t clb_convolution_messages_bytes(const clb_op *op, clb_pass pass, const clb_graph *graph) {
  return places_of(op, pass, graph).end;
}

/* ---- passes ---- */

static const clb_operand *written(const clb_convolution_call *c, int of) {
  for (int i = 0; i < c->n_operands; i++)
    if (c->operand[i].written && c->operand[i].of == of && c->operand[i].columns)
      return &c->operand[i];
  return NULL;
}

/* The operand as passed to the tensor product of edges from e0 on. */
static clb_operand of_edges(const clb_convolution_call *c, const clb_operand *o, const places *at,
                            clb_buffer *workspace, int64_t e0) {
  const clb_buffer *b = c->graph->buffer;
  clb_operand r = *o;
  bool shared = o->of == CLB_OPERAND_W && o->one_row;
  int node = o->of == CLB_OPERAND_X ? SENDERS : RECEIVERS;
  if (o->of == CLB_OPERAND_X || o->of == CLB_OPERAND_Z) {
    if (o->written)
      r.rows = (clb_rows){workspace, at->message[node] / clb_dtype_bytes(c->op->problem.arithmetic),
                          CLB_DENSE, NULL};
    else
      r.rows.index = (clb_buffer *)&b[node == SENDERS ? CLB_GRAPH_SENDERS : CLB_GRAPH_RECEIVERS],
      r.indexed = true, r.index_first = e0;
    r.wide = o->written;
  } else if (!shared) r.rows.offset += e0 * clb_operand_stride(o);
  else if (o->written)
    r.rows = (clb_rows){workspace, at->weights / clb_dtype_bytes(c->op->problem.storage), CLB_DENSE,
                        NULL},
    r.one_row = false;
  return r;
}

/* Sums the contributions of edges e0 ... e1 - 1 to senders or receivers. */
static clb_status add_up(const clb_convolution_messages *m, const clb_convolution_call *c,
                         const places *at, int i, int64_t e0, int64_t e1) {
  const clb_operand *o = written(c, like[i]);
  int64_t bytes = clb_dtype_bytes(c->op->problem.arithmetic);
  if (!o) return CLB_OK;
  bool apart = m->copy[i], add = e0 || (c->op->problem.accumulate && !apart);
  const clb_memory *w = &c->workspace, *to = apart ? w : &o->rows.buffer->memory;
  return clb_row_sum_run(m->sum[i], c->graph, direction[i], e0, e1, w, at->message[i] / bytes,
                         o->columns, to, apart ? at->sum[i] / bytes : o->rows.offset,
                         apart ? o->columns : clb_operand_stride(o), add, w,
                         at->partial[i] / bytes);
}

static clb_status run_part(const clb_convolution_messages *m, const clb_convolution_call *c,
                           const places *at, int64_t e0, int64_t e1) {
  clb_operand part[CLB_MAX_OPERANDS];
  clb_buffer workspace = {.ctx = c->op->ctx, .memory = c->workspace};
  const clb_operand *w = m->weights ? written(c, CLB_OPERAND_W) : NULL;
  clb_status s = CLB_OK;
  for (int i = 0; i < c->n_operands; i++) part[i] = of_edges(c, &c->operand[i], at, &workspace, e0);
  if (e0 < e1)
    s = clb_op_run_rows(m->product, CLB_TENSOR_PRODUCT, c->pass, e1 - e0, part, c->n_operands);
  for (int i = 0; i < NODES && !s; i++) s = add_up(m, c, at, i, e0, e1);
  if (s || !w) return s;
  return clb_column_sum_run(
      m->weights, e1 - e0, &c->workspace, at->weights / clb_dtype_bytes(c->op->problem.storage),
      w->columns, &w->rows.buffer->memory, w->rows.offset, e0 || c->op->problem.accumulate);
}

clb_status clb_convolution_messages_run(const clb_convolution_messages *m,
                                        const clb_convolution_call *c) {
  int64_t n = c->graph->n_edges, part = part_of(c->op, c->pass),
          bytes = clb_dtype_bytes(c->op->problem.arithmetic);
  places at = places_of(c->op, c->pass, c->graph);
  clb_status s = CLB_OK;
  bool gives = false;
  for (int i = 0; i < c->n_operands; i++) gives |= c->operand[i].written && c->operand[i].columns;
  for (int64_t e0 = 0; !s && gives && (e0 < n || !e0); e0 += part)
    s = run_part(m, c, &at, e0, e0 + part < n ? e0 + part : n);
  for (int i = 0; i < NODES && !s; i++) {
    const clb_operand *o = written(c, like[i]);
    if (o && m->copy[i])
      s = clb_row_copy_run(m->copy[i], c->graph, direction[i], &c->workspace, at.sum[i] / bytes,
                           o->columns, &o->rows.buffer->memory, o->rows.offset,
                           clb_operand_stride(o), c->op->problem.accumulate);
  }
  return s;
}
