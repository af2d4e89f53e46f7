/* src/ops/layers/call.c - how the ops of layers.h are created, and their operands checked and
   passed to kernels. */
#include "src/ops/layers/call.h"

#include <stdlib.h>
#include <string.h>

static const char *name_of(const clb_op *op) { return clb_kernel_kinds[op->problem.kind]->name; }

/* ---- creation ---- */

clb_problem *clb_layer_problem(clb_context *ctx, int32_t kind, clb_dtype storage,
                               clb_dtype arithmetic) {
  clb_problem *p = calloc(1, sizeof *p);
  if (!p) clb_fail(&ctx->error, CLB_ERROR_MEMORY, "%s: no memory", clb_kernel_kinds[kind]->name);
  else p->kind = kind, p->storage = (int32_t)storage, p->arithmetic = (int32_t)arithmetic;
  return p;
}

clb_status clb_layer_create(clb_context *ctx, clb_problem *p, unsigned passes, clb_op **op) {
  *op = NULL;
  clb_status s = p ? clb_op_create(ctx, p, passes, NULL, op) : CLB_ERROR_MEMORY;
  free(p);
  return s;
}

clb_status clb_layer_upload(clb_op **op, clb_dtype type, const double *from, int64_t n,
                            clb_memory *to) {
  clb_device *d = (*op)->ctx->device;
  size_t bytes = (size_t)(n * clb_dtype_bytes((int32_t)type));
  float *singles = type == CLB_F32 ? malloc(bytes ? bytes : 1) : NULL;
  clb_status s = type == CLB_F64 || singles ? CLB_OK
                                            : clb_fail(&(*op)->ctx->error, CLB_ERROR_MEMORY,
                                                       "%s: no memory", name_of(*op));
  for (int64_t i = 0; singles && i < n; i++) singles[i] = (float)from[i];
  if (!s && d->info.runs) s = clb_device_alloc(d, bytes ? bytes : 1, to);
  if (!s && d->info.runs && n)
    s = d->backend->write(d, to, 0, singles ? (const void *)singles : from, bytes);
  free(singles);
  if (s) clb_op_destroy(op);
  return s;
}

clb_schedule clb_layer_schedule_of(const clb_op *op, int pass) {
  clb_schedule s;
  clb_problem p;
  memcpy(&p, &op->problem, sizeof p);
  p.pass = pass;
  clb_kernel_kinds[p.kind]->schedule(&p, &op->ctx->device->limits, &s);
  return s;
}

/* ---- calls ---- */

clb_layer_call clb_call_begin(clb_op *op, int32_t kind, int64_t n, int64_t units) {
  clb_layer_call c = {.op = op, .n = n, .status = op ? CLB_OK : CLB_ERROR_ARGUMENT};
  if (!op) return c;
  if (op->problem.kind != kind)
    c.status = clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "this op is %s, not %s", name_of(op),
                        clb_kernel_kinds[kind]->name);
  else if (n < 0 || units < 0)
    c.status = clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                        "%s: n is %lld; it must be at least 0, and columns too", name_of(op),
                        (long long)n);
  else if (!op->ctx->device->info.runs)
    c.status = clb_fail(&op->ctx->error, CLB_ERROR_UNSUPPORTED,
                        "%s only compiles; nothing runs on it", op->ctx->device->info.name);
  clb_call_i64(&c, units);
  return c;
}

void clb_call_argument(clb_layer_call *c, clb_arg a) {
  if (c->n_args < CLB_MAX_ARGS) c->arg[c->n_args++] = a;
  else c->status = CLB_ERROR_INTERNAL;
}

void clb_call_memory(clb_layer_call *c, const clb_memory *m) {
  clb_call_argument(c, (clb_arg){.type = IR_VOID, .memory = m});
}
void clb_call_i32(clb_layer_call *c, int64_t x) {
  clb_call_argument(c, (clb_arg){.type = IR_I32, .i32 = (int32_t)x});
}
void clb_call_i64(clb_layer_call *c, int64_t x) {
  clb_call_argument(c, (clb_arg){.type = IR_I64, .i64 = x});
}
void clb_call_real(clb_layer_call *c, double x) {
  bool single = c->op && c->op->problem.arithmetic == CLB_F32;
  clb_call_argument(c, single ? (clb_arg){.type = IR_F32, .f32 = (float)x}
                              : (clb_arg){.type = IR_F64, .f64 = x});
}

/* Checks that the operand has n rows of `columns`. */
static clb_status check_rows(const clb_layer_call *c, const char *name, int64_t bytes,
                             int64_t columns, const clb_rows *r, int64_t stride, bool written) {
  clb_error_sink *e = &c->op->ctx->error;
  int64_t end;
  if (!r->buffer)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: the buffer of %s is NULL", name_of(c->op), name);
  if (r->buffer->ctx != c->op->ctx)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: the buffer of %s belongs to another context",
                    name_of(c->op), name);
  if (written && stride < columns && c->n > 1)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "%s: the stride of %s is %lld; it must be 0 (dense rows) or at least %lld",
                    name_of(c->op), name, (long long)r->stride, (long long)columns);
  bool fits = r->offset >= 0 && stride >= 0 &&
              !__builtin_mul_overflow(r->index ? 0 : c->n - 1, stride, &end) &&
              !__builtin_add_overflow(end, r->offset, &end) &&
              !__builtin_add_overflow(end, columns, &end) &&
              (uint64_t)end <= r->buffer->memory.bytes / (uint64_t)bytes;
  return fits ? CLB_OK
              : clb_fail(e, CLB_ERROR_ARGUMENT,
                         "%s: %lld rows of %lld elements from %lld on, %lld apart, do not fit in "
                         "the %llu bytes of %s",
                         name_of(c->op), (long long)c->n, (long long)columns, (long long)r->offset,
                         (long long)stride, (unsigned long long)r->buffer->memory.bytes, name);
}

void clb_call_rows(clb_layer_call *c, const char *name, clb_dtype type, int64_t columns,
                   clb_rows rows, clb_role role) {
  int64_t stride = clb_stride(rows, columns);
  bool there = c->n && columns && (rows.buffer || role != CLB_OPTIONAL_OUT);
  if (there && !c->status)
    c->status =
        check_rows(c, name, clb_dtype_bytes((int32_t)type), columns, &rows, stride, role != CLB_IN);
  there = there && !c->status;
  clb_call_memory(c, there ? &rows.buffer->memory : NULL);
  clb_call_i64(c, there ? rows.offset : 0);
  clb_call_i64(c, there ? stride : 0);
}

void clb_call_numbers(clb_layer_call *c, const char *name, clb_rows numbers) {
  if (c->n && !c->status)
    c->status =
        check_rows(c, name, 4, 1, &(clb_rows){numbers.buffer, numbers.offset, 1, NULL}, 1, false);
  bool there = c->n && !c->status;
  clb_call_memory(c, there ? &numbers.buffer->memory : NULL);
  clb_call_i64(c, there ? numbers.offset : 0);
}

void clb_call_received(clb_layer_call *c, const clb_graph *graph) {
  clb_call_memory(c, &graph->buffer[CLB_GRAPH_ROW_START + CLB_BY_RECEIVER].memory);
  clb_call_memory(c, &graph->buffer[CLB_GRAPH_EDGE + CLB_BY_RECEIVER].memory);
  clb_call_memory(c, &graph->buffer[CLB_GRAPH_OTHER + CLB_BY_RECEIVER].memory);
}

void clb_call_species(clb_layer_call *c, const clb_graph *graph, clb_rows species) {
  const int64_t n = c->n, *rows = graph->n_rows;
  c->n = rows[0] > rows[1] ? rows[0] : rows[1];
  clb_call_numbers(c, "species", species);
  c->n = n;
}

void clb_call_ends(clb_layer_call *c, const clb_graph *graph, clb_rows species) {
  clb_call_memory(c, &graph->buffer[CLB_GRAPH_RECEIVERS].memory);
  clb_call_memory(c, &graph->buffer[CLB_GRAPH_SENDERS].memory);
  clb_call_species(c, graph, species);
}

clb_status clb_call_launch(clb_layer_call *c, int pass) {
  const clb_memory *some = NULL;
  int64_t units = c->arg[0].i64;
  if (c->status || !units) return c->status;
  const clb_kernel *kernel = c->op->kernel[pass];
  if (!kernel)
    return clb_fail(&c->op->ctx->error, CLB_ERROR_ARGUMENT, "%s: the op was created without this",
                    name_of(c->op));
  int64_t groups = (units - 1) / kernel->ir.rows + 1;
  if (groups > INT32_MAX)
    return clb_fail(&c->op->ctx->error, CLB_ERROR_UNSUPPORTED,
                    "%s: %lld rows are more than one launch can do", name_of(c->op),
                    (long long)c->n);
  for (int i = 0; i < c->n_args && !some; i++)
    if (c->arg[i].type == IR_VOID) some = c->arg[i].memory;
  for (int i = 0; i < c->n_args; i++)
    if (c->arg[i].type == IR_VOID && !c->arg[i].memory)
      c->arg[i].memory = some; /* never accessed, but drivers require memory */
  return some ? clb_launch(c->op->ctx, kernel, groups, c->arg, c->n_args)
              : CLB_OK; /* otherwise no operand has columns */
}
