/* src/runtime/operands.c - operands that are rows: checks, and launch arguments. */
#include "src/ir/interpreter/interpret_values.h"
#include "src/runtime/call.h"

#include <stdio.h>

void clb_store_number(int32_t storage, void *to, int64_t i, double x) {
  switch (storage) {
    case CLB_F64: ((double *)to)[i] = x; break;
    case CLB_F32: ((float *)to)[i] = (float)x; break;
    case CLB_F16: ((uint16_t *)to)[i] = ir_to_f16((float)x); break;
    default: ((uint16_t *)to)[i] = ir_to_bf16((float)x);
  }
}

int clb_operands_fill(const clb_signature *signature, clb_pass pass, const clb_rows *rows,
                      const int64_t columns[CLB_OPERAND_Z + 1], unsigned incoming,
                      unsigned gradients, clb_operand *operands) {
  clb_signature_operand o[CLB_SIGNATURE_OPERANDS];
  const int n = clb_signature_operands(signature, (int)pass, o);
  for (int i = 0; i < n; i++) {
    const bool absent = (o[i].role == CLB_ROLE_INCOMING && !(incoming & (unsigned)o[i].of)) ||
                        (o[i].role == CLB_ROLE_GRADIENT && !(gradients & (unsigned)o[i].of));
    operands[i] = (clb_operand){.name = o[i].name,
                                .rows = rows[i],
                                .columns = absent ? 0 : columns[o[i].of],
                                .written = clb_role_is_written(o[i].role),
                                .of = o[i].of,
                                .role = o[i].role};
  }
  return n;
}

void clb_operand_share(clb_operand *o) {
  o->one_row = true;
  o->rows.stride = o->written ? CLB_DENSE : CLB_SAME_ROW;
  o->rows.index = NULL;
}

static clb_status check_operand(clb_op *op, const char *pass, int64_t n, const clb_operand *o,
                                int64_t *stride) {
  clb_error_sink *e = &op->ctx->error;
  const char *kind = clb_kernel_kinds[op->problem.kind]->name;
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
  const bool fits = clb_rows_fit(&o->rows.buffer->memory, clb_operand_bytes(op, o), o->rows.offset,
                                 n, *stride, o->columns);
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

clb_status clb_op_run_rows(clb_op *op, int32_t kind, clb_pass pass, int64_t n,
                           const clb_operand *operands, int n_operands) {
  clb_status s = clb_op_check_rows(op, kind, pass, n, operands, n_operands);
  bool columns = false;
  for (int i = 0; i < n_operands; i++) columns |= operands[i].columns != 0;
  if (s || n == 0 || !columns) return s;
  clb_call c = clb_call_start(op->ctx);
  clb_call_i64(&c, n);
  for (int i = 0; i < n_operands; i++) clb_call_operand(&c, &operands[i]);
  for (int i = 0; i < n_operands; i++) {
    const clb_operand *o = &operands[i];
    if (!o->indexed) continue;
    clb_call_memory(&c, o->columns ? &o->rows.index->memory : NULL);
    clb_call_i64(&c, o->index_first);
  }
  clb_call_tables(&c, op, pass);
  return clb_call_launch(&c, op->kernel[pass], clb_divide_up(n, op->kernel[pass]->ir.rows));
}

bool clb_operand_is_aligned(const clb_op *op, const clb_operand *o, int64_t width) {
  const clb_memory *m = &o->rows.buffer->memory;
  const uintptr_t bytes = (uintptr_t)(width * clb_operand_bytes(op, o));
  return (m->kind != CLB_POINTER || (uintptr_t)m->handle % bytes == 0) &&
         o->rows.offset % width == 0 && (o->one_row || clb_operand_stride(o) % width == 0);
}
