/* src/runtime/operands.c - operands that are rows: checks, and launch arguments. */
#include "src/ir/interpreter/interpret_values.h"
#include "src/runtime/context.h"

#include <stdio.h>

void clb_store_number(int32_t storage, void *to, int64_t i, double x) {
  switch (storage) {
    case CLB_F64: ((double *)to)[i] = x; break;
    case CLB_F32: ((float *)to)[i] = (float)x; break;
    case CLB_F16: ((uint16_t *)to)[i] = ir_to_f16((float)x); break;
    default: ((uint16_t *)to)[i] = ir_to_bf16((float)x);
  }
}

static clb_status check_operand(clb_op *op, const char *pass, int64_t n, const clb_operand *o,
                                int64_t *stride) {
  clb_error_sink *e = &op->ctx->error;
  const char *kind = clb_kernel_kinds[op->problem.kind]->name;
  int64_t last, end;
  *stride = clb_operand_stride(o);
  if (!o->rows.buffer)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s, %s: the buffer of %s is NULL", kind, pass, o->name);
  if (o->rows.buffer->ctx != op->ctx)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s, %s: the buffer of %s belongs to another context",
                    kind, pass, o->name);
  if (o->rows.offset < 0)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s, %s: the offset of %s is %lld", kind, pass, o->name,
                    (long long)o->rows.offset);
  if (*stride < 0 || (o->written && *stride < o->columns && n > 1))
    return clb_fail(
        e, CLB_ERROR_ARGUMENT,
        "%s, %s: the stride of %s is %lld; it must be 0 (dense rows)%s or at least %lld", kind,
        pass, o->name, (long long)o->rows.stride, o->written ? "" : ", CLB_SAME_ROW (-1)",
        (long long)(o->written ? o->columns : 1));
  if (o->indexed || o->one_row) n = 1; /* for indexed operands the row numbers are unknown here */
  bool fits = !__builtin_mul_overflow(n - 1, *stride, &last) &&
              !__builtin_add_overflow(last, o->rows.offset, &end) &&
              !__builtin_add_overflow(end, o->columns, &end) &&
              (uint64_t)end <= o->rows.buffer->memory.bytes / (uint64_t)clb_operand_bytes(op, o);
  if (!fits)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "%s, %s: %lld rows of %lld elements from %lld on, %lld apart, do not fit in "
                    "the %llu bytes of %s",
                    kind, pass, (long long)n, (long long)o->columns, (long long)o->rows.offset,
                    (long long)*stride, (unsigned long long)o->rows.buffer->memory.bytes, o->name);
  return CLB_OK;
}

static clb_status check_index(clb_op *op, const char *pass, int64_t n, const clb_operand *o) {
  clb_error_sink *e = &op->ctx->error;
  const char *kind = clb_kernel_kinds[op->problem.kind]->name;
  const clb_buffer *index = o->rows.index;
  if (!o->indexed && index)
    return clb_fail(
        e, CLB_ERROR_ARGUMENT,
        "%s, %s: the index of %s must be NULL; this op was created without %s in `indexed`", kind,
        pass, o->name, o->name);
  if (!o->indexed) return CLB_OK;
  if (!index)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "%s, %s: the index of %s is NULL; this op was created with %s in `indexed`",
                    kind, pass, o->name, o->name);
  if (index->ctx != op->ctx)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s, %s: the index of %s belongs to another context",
                    kind, pass, o->name);
  if ((uint64_t)(n + o->index_first) > index->memory.bytes / sizeof(int32_t))
    return clb_fail(
        e, CLB_ERROR_ARGUMENT,
        "%s, %s: %lld row numbers of 4 bytes do not fit in the %llu bytes of the index of %s", kind,
        pass, (long long)n, (unsigned long long)index->memory.bytes, o->name);
  return CLB_OK;
}

clb_status clb_op_null(int32_t kind, clb_pass pass) {
  char call[80];
  snprintf(call, sizeof call, "%s, %s", clb_kernel_kinds[kind]->name, clb_pass_name(pass));
  return clb_null(call, "op");
}

clb_status clb_op_check_operand(clb_op *op, clb_pass pass, int64_t n, const clb_operand *o) {
  int64_t stride;
  if (!o->columns || (!n && !o->one_row)) return CLB_OK;
  clb_status s = check_operand(op, clb_pass_name(pass), n, o, &stride);
  return s ? s : check_index(op, clb_pass_name(pass), n, o);
}

clb_status clb_op_check_rows(clb_op *op, int32_t kind, clb_pass pass, int64_t n,
                             const clb_operand *operands, int n_operands) {
  const clb_kernel *kernel;
  if (op->problem.kind != kind)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "this op is %s, not %s",
                    clb_kernel_kinds[op->problem.kind]->name, clb_kernel_kinds[kind]->name);
  clb_status s = clb_op_pass_kernel(op, __func__, pass, &kernel);
  if (s) return s;
  int64_t max = INT32_MAX * (int64_t)kernel->ir.rows;
  if (n < 0 || n > max)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "n is %lld; it must be 0 ... %lld",
                    (long long)n, (long long)max);
  for (int i = 0; i < n_operands && !s; i++) s = clb_op_check_operand(op, pass, n, &operands[i]);
  return s;
}

void clb_operand_arguments(const clb_operand *o, clb_arg *args) {
  args[0] = (clb_arg){.type = IR_VOID, .memory = o->columns ? &o->rows.buffer->memory : NULL};
  args[1] = (clb_arg){.type = IR_I64, .i64 = o->columns ? o->rows.offset : 0};
  args[2] = (clb_arg){.type = IR_I64, .i64 = o->columns ? clb_operand_stride(o) : 0};
}

clb_status clb_op_run_rows(clb_op *op, int32_t kind, clb_pass pass, int64_t n,
                           const clb_operand *operands, int n_operands) {
  clb_arg args[3 + 5 * CLB_MAX_OPERANDS];
  const clb_memory *some = NULL;
  clb_device *d = op->ctx->device;
  clb_status s = clb_op_check_rows(op, kind, pass, n, operands, n_operands);
  if (s || n == 0) return s;
  const clb_kernel *kernel = op->kernel[pass];
  args[0] = (clb_arg){.type = IR_I64, .i64 = n};
  int n_args = 1 + 3 * n_operands;
  for (int i = 0; i < n_operands; i++) {
    const clb_operand *o = &operands[i];
    clb_operand_arguments(o, args + 3 * i + 1);
    if (!some) some = args[3 * i + 1].memory;
    if (!o->indexed) continue;
    args[n_args++] =
        (clb_arg){.type = IR_VOID, .memory = o->columns ? &o->rows.index->memory : NULL};
    args[n_args++] = (clb_arg){.type = IR_I64, .i64 = o->index_first};
  }
  if (!some) return CLB_OK; /* no operand has columns */
  if (op->numbers.handle && op->reads_tables[pass]) {
    args[n_args++] = (clb_arg){.type = IR_VOID, .memory = &op->numbers};
    args[n_args++] = (clb_arg){.type = IR_VOID, .memory = &op->reals};
  }
  for (int i = 0; i < n_args; i++)
    if (args[i].type == IR_VOID && !args[i].memory)
      args[i].memory = some; /* never accessed, but drivers require memory */
  if (!d->info.runs)
    return clb_fail(&op->ctx->error, CLB_ERROR_UNSUPPORTED, "%s only compiles; nothing runs on it",
                    d->info.name);
  return clb_launch(op->ctx, kernel, (n - 1) / kernel->ir.rows + 1, args, n_args);
}
