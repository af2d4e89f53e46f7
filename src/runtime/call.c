/* src/runtime/call.c - one launch: its arguments in the kernel's order, checks of them, the launch.
 */
#include "src/runtime/call.h"

static const char *name_of(const clb_op *op) { return clb_kernel_kinds[op->problem.kind]->name; }

clb_status clb_check_runs(const clb_context *ctx) {
  const clb_device *d = ctx->device;
  return d->info.runs ? CLB_OK
                      : clb_fail(d->error, CLB_ERROR_UNSUPPORTED,
                                 "%s only compiles; nothing runs on it", d->info.name);
}

clb_call clb_call_start(clb_context *ctx) {
  return (clb_call){.ctx = ctx, .status = clb_check_runs(ctx)};
}

clb_call clb_call_begin(clb_op *op, int32_t kind, int64_t n, int64_t units) {
  if (!op) return (clb_call){.status = CLB_ERROR_ARGUMENT};
  clb_call c = clb_call_start(op->ctx);
  c.op = op;
  c.n = n;
  if (op->problem.kind != kind)
    c.status = clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "this op is %s, not %s", name_of(op),
                        clb_kernel_kinds[kind]->name);
  else if (n < 0 || units < 0)
    c.status = clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                        "%s: n is %lld; it must be at least 0, and columns too", name_of(op),
                        (long long)n);
  clb_call_i64(&c, units);
  return c;
}

/* ---- arguments ---- */

void clb_call_argument(clb_call *c, clb_arg a) {
  if (c->n_args < CLB_MAX_ARGS) c->arg[c->n_args++] = a;
  else c->status = CLB_ERROR_INTERNAL;
}

void clb_call_arguments(clb_call *c, const clb_arg *args, int n) {
  for (int i = 0; i < n; i++) clb_call_argument(c, args[i]);
}
void clb_call_memory(clb_call *c, const clb_memory *m) { clb_call_argument(c, clb_memory_arg(m)); }
void clb_call_buffer(clb_call *c, const clb_buffer *b) { clb_call_memory(c, &b->memory); }
void clb_call_i32(clb_call *c, int64_t x) { clb_call_argument(c, clb_i32_arg(x)); }
void clb_call_i64(clb_call *c, int64_t x) { clb_call_argument(c, clb_i64_arg(x)); }
void clb_call_real(clb_call *c, int32_t arithmetic, double x) {
  clb_call_argument(c, arithmetic == CLB_F32 ? (clb_arg){.type = IR_F32, .f32 = (float)x}
                                             : (clb_arg){.type = IR_F64, .f64 = x});
}

void clb_call_operand(clb_call *c, const clb_operand *o) {
  clb_call_memory(c, o->columns ? &o->rows.buffer->memory : NULL);
  clb_call_i64(c, o->columns ? o->rows.offset : 0);
  clb_call_i64(c, o->columns ? clb_operand_stride(o) : 0);
}

void clb_call_tables(clb_call *c, const clb_op *op, int pass) {
  if (!op->numbers.handle || !op->reads_tables[pass]) return;
  clb_call_memory(c, &op->numbers);
  clb_call_memory(c, &op->reals);
}

bool clb_rows_fit(const clb_memory *m, int64_t bytes, int64_t offset, int64_t n, int64_t stride,
                  int64_t columns) {
  int64_t end;
  return m && offset >= 0 && stride >= 0 && !__builtin_mul_overflow(n - 1, stride, &end) &&
         !__builtin_add_overflow(end, offset, &end) &&
         !__builtin_add_overflow(end, columns, &end) && (uint64_t)end <= m->bytes / (uint64_t)bytes;
}

/* Checks that the operand has n rows of `columns`. */
static clb_status check_rows(const clb_call *c, const char *name, int64_t bytes, int64_t columns,
                             const clb_rows *r, int64_t stride, bool written) {
  clb_error_sink *e = &c->op->ctx->error;
  if (!r->buffer)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: the buffer of %s is NULL", name_of(c->op), name);
  if (r->buffer->ctx != c->op->ctx)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: the buffer of %s belongs to another context",
                    name_of(c->op), name);
  if (written && stride < columns && c->n > 1)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "%s: the stride of %s is %lld; it must be 0 (dense rows) or at least %lld",
                    name_of(c->op), name, (long long)r->stride, (long long)columns);
  bool fits =
      clb_rows_fit(&r->buffer->memory, bytes, r->offset, r->index ? 1 : c->n, stride, columns);
  return fits ? CLB_OK
              : clb_fail(e, CLB_ERROR_ARGUMENT,
                         "%s: %lld rows of %lld elements from %lld on, %lld apart, do not fit in "
                         "the %llu bytes of %s",
                         name_of(c->op), (long long)c->n, (long long)columns, (long long)r->offset,
                         (long long)stride, (unsigned long long)r->buffer->memory.bytes, name);
}

void clb_call_rows(clb_call *c, const char *name, clb_dtype type, int64_t columns, clb_rows rows,
                   clb_role role) {
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

void clb_call_numbers(clb_call *c, const char *name, clb_rows numbers) {
  if (c->n && !c->status)
    c->status =
        check_rows(c, name, 4, 1, &(clb_rows){numbers.buffer, numbers.offset, 1, NULL}, 1, false);
  bool there = c->n && !c->status;
  clb_call_memory(c, there ? &numbers.buffer->memory : NULL);
  clb_call_i64(c, there ? numbers.offset : 0);
}

/* ---- the launch ---- */

clb_status clb_call_launch(clb_call *c, const clb_kernel *kernel, int64_t groups) {
  const clb_memory *placeholder = NULL; /* drivers require memory even where it is not accessed */
  if (c->status || !groups) return c->status;
  if (groups > INT32_MAX)
    return clb_fail(&c->ctx->error, CLB_ERROR_UNSUPPORTED,
                    "%s: %lld work-groups are more than one launch can do", kernel->ir.name,
                    (long long)groups);
  for (int i = 0; i < c->n_args && !placeholder; i++)
    if (c->arg[i].type == IR_VOID) placeholder = c->arg[i].memory;
  if (!placeholder) return CLB_OK;
  for (int i = 0; i < c->n_args; i++)
    if (c->arg[i].type == IR_VOID && !c->arg[i].memory) c->arg[i].memory = placeholder;
  return clb_launch(c->ctx, kernel, groups, c->arg, c->n_args);
}

clb_status clb_call_run(clb_call *c, int pass) {
  if (c->status || !c->arg[0].i64) return c->status;
  const clb_kernel *kernel = c->op->kernel[pass];
  if (!kernel)
    return clb_fail(&c->op->ctx->error, CLB_ERROR_ARGUMENT, "%s: the op was created without this",
                    name_of(c->op));
  return clb_call_launch(c, kernel, clb_divide_up(c->arg[0].i64, kernel->ir.rows));
}
