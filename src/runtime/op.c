/* src/runtime/op.c - problem -> schedule -> IR -> binary (cached) -> loaded kernel -> launch: what all ops share. */
#include "src/runtime/context.h"
#include "src/runtime/wisdom.h"

#include <stdlib.h>
#include <string.h>

/* ---- kernels ---- */

/* The text is a part beside the IR: an equal program printed differently is another binary. */
static clb_status find_key(clb_device *d, const ir_kernel *k, clb_hash *key) {
  clb_text text = {0};
  clb_status s = clb_device_text(d, k, &text);
  size_t bytes = ir_write(k, NULL, 0);
  char *list = malloc(bytes);
  if (!s && !list) s = clb_fail(d->error, CLB_ERROR_MEMORY, "%s: no memory", k->name);
  if (!s) {
    ir_write(k, list, bytes);
    const void *parts[] = {list, text.s, d->backend->name, d->key, CLB_VERSION};
    size_t sizes[] = {bytes, text.n, strlen(d->backend->name), strlen(d->key), strlen(CLB_VERSION)};
    *key = clb_hash_parts(parts, sizes, 5);
  }
  free(list);
  clb_text_free(&text);
  return s;
}

/* From the disk if a good binary is there, else compiled and kept. */
static clb_status build_and_load(clb_device *d, clb_kernel *kernel, clb_text *note) {
  if (clb_cache_get(&kernel->key, &kernel->binary)) {
    const clb_status loaded = d->info.runs ? d->backend->load(d, &kernel->ir, kernel->binary.s, kernel->binary.n, &kernel->module) : CLB_OK;
    if (!loaded || loaded == CLB_ERROR_MEMORY) return loaded;
    clb_text_free(&kernel->binary); /* a binary its own driver refuses is a miss */
  }
  clb_status s = d->backend->build(d, &kernel->ir, &kernel->binary);
  if (!s && kernel->binary.failed) s = clb_fail(d->error, CLB_ERROR_MEMORY, "no memory for the binary of %s", kernel->ir.name);
  if (!s && d->info.runs) s = d->backend->load(d, &kernel->ir, kernel->binary.s, kernel->binary.n, &kernel->module);
  if (!s) clb_cache_put(&kernel->key, kernel->binary.s, kernel->binary.n, note);
  return s;
}

clb_status clb_kernel_get(clb_context *ctx, ir_kernel *k, clb_kernel **found) {
  char mistake[256] = "";
  clb_status s = CLB_OK;
  clb_kernel *kernel = NULL;
  *found = NULL;
  if (ctx->recording) s = clb_not_recording(ctx, "creating an op");
  else if (k->error[0]) s = clb_fail(&ctx->error, CLB_ERROR_INTERNAL, "%s: %s", k->name, k->error);
  else if (!ir_verify(k, mistake, sizeof mistake)) s = clb_fail(&ctx->error, CLB_ERROR_INTERNAL, "%s: %s", k->name, mistake);
  else if (!ir_drop_barriers(k) || !(kernel = calloc(1, sizeof *kernel))) s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "%s: no memory", k->name);
  else s = find_key(ctx->device, k, &kernel->key);
  if (s) goto done;
  for (clb_kernel *old = ctx->kernels; old && !*found; old = old->next)
    if (!memcmp(&old->key, &kernel->key, sizeof old->key)) *found = old;
  if (*found) goto done;
  kernel->ir = *k;
  s = build_and_load(ctx->device, kernel, &ctx->note);
  if (s) goto done;
  *k = (ir_kernel){0};
  kernel->next = ctx->kernels;
  *found = ctx->kernels = kernel;
  kernel = NULL;
done:
  if (kernel) clb_text_free(&kernel->binary);
  free(kernel);
  ir_free(k);
  return s;
}

void clb_kernel_free(clb_context *ctx, clb_kernel *kernel) {
  clb_kernel **link = &ctx->kernels;
  while (*link && *link != kernel) link = &(*link)->next;
  if (*link) *link = kernel->next;
  if (kernel->module) ctx->device->backend->unload(ctx->device, kernel->module);
  ir_free(&kernel->ir);
  clb_text_free(&kernel->binary);
  free(kernel);
}

/* ---- ops ---- */

static clb_status check_types(clb_context *ctx, const clb_problem *p) {
  clb_error_sink *e = &ctx->error;
  if (p->storage < CLB_F64 || p->storage > CLB_BF16) return clb_fail(e, CLB_ERROR_ARGUMENT, "storage is %d; it must be CLB_F64, CLB_F32, CLB_F16 or CLB_BF16", p->storage);
  if (p->arithmetic != CLB_F64 && p->arithmetic != CLB_F32) return clb_fail(e, CLB_ERROR_ARGUMENT, "arithmetic is %d; it must be CLB_F64 or CLB_F32", p->arithmetic);
  if (p->arithmetic == CLB_F64 ? p->storage > CLB_F32 : p->storage == CLB_F64)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "arithmetic: CLB_F64 goes with storage CLB_F64 or CLB_F32, CLB_F32 with CLB_F32, CLB_F16 or CLB_BF16");
  if (p->arithmetic == CLB_F64 && !ctx->device->limits.f64) return clb_fail(e, CLB_ERROR_UNSUPPORTED, "arithmetic: %s has no double precision", ctx->device->info.name);
  return CLB_OK;
}

static const char *const pass_names[CLB_PASSES] = {"forward", "backward", "double backward", "triple backward"};

static clb_status upload(clb_device *d, const void *from, int64_t bytes, clb_memory *to) {
  clb_status s = clb_device_alloc(d, (uint64_t)bytes, to);
  return s ? s : d->backend->write(d, to, 0, from, (uint64_t)bytes);
}

/* What the kernels of some pass read beside their operands. */
static clb_status make_tables(clb_op *op) {
  const clb_kernel_kind *kind = clb_kernel_kinds[op->problem.kind];
  clb_device *d = op->ctx->device;
  clb_tables t = {0};
  bool some = false;
  for (int pass = 0; pass < CLB_PASSES; pass++) some |= op->reads_tables[pass];
  if (!some || op->numbers.handle || !d->info.runs) return CLB_OK;
  bool single = op->problem.arithmetic == CLB_F32, made = kind->tables(&op->problem, &t);
  float *singles = single && made ? malloc(sizeof *singles * (size_t)t.n_reals) : NULL;
  clb_status s = made && (!single || singles) ? CLB_OK : clb_fail(&op->ctx->error, CLB_ERROR_MEMORY, "%s: no memory", kind->name);
  for (int64_t i = 0; singles && i < t.n_reals; i++) singles[i] = (float)t.real[i];
  if (!s) s = upload(d, t.number, t.n_numbers * (int64_t)sizeof *t.number, &op->numbers);
  if (!s) s = upload(d, single ? (const void *)singles : t.real, t.n_reals * (single ? 4 : 8), &op->reals);
  free(singles);
  free(t.number);
  free(t.real);
  return s;
}

clb_status clb_op_set_schedule(clb_op *op, clb_pass pass, const clb_schedule *schedule) {
  const clb_kernel_kind *kind = clb_kernel_kinds[op->problem.kind];
  bool reads = kind->reads_tables && kind->reads_tables(schedule), before = op->reads_tables[pass];
  clb_schedule own = *schedule;
  clb_kernel *kernel;
  ir_kernel k;
  own.narrow = (op->ctx->without & CLB_WIDE_ACCESSES) != 0;
  own.in_memory = (op->ctx->without & CLB_REGISTER_SUMS) != 0;
  if (own.in_memory) own.slices = 0; /* two edges at once would add to one sum */
  op->problem.pass = (int32_t)pass;
  kind->lower(&op->problem, &own, &k);
  clb_status s = clb_kernel_get(op->ctx, &k, &kernel);
  if (s) return s;
  op->reads_tables[pass] = reads;
  s = make_tables(op);
  if (s) op->reads_tables[pass] = before;
  else op->kernel[pass] = kernel, op->choice[pass].schedule = own;
  return s;
}

/* Whether wisdom told of a candidate, whose kernel the pass then has: a line that is wrong does no harm. */
static bool follow_wisdom(clb_op *op, clb_pass pass) {
  const clb_kernel_kind *kind = clb_kernel_kinds[op->problem.kind];
  clb_schedule list[CLB_MAX_CANDIDATES];
  clb_choice wise;
  if (!kind->candidates || !clb_wisdom_find(op->ctx, &op->problem, &wise)) return false;
  for (int i = kind->candidates(&op->problem, &op->ctx->device->limits, list) - 1; i >= 0; i--)
    if (!memcmp(&list[i], &wise.schedule, sizeof *list) && !clb_op_set_schedule(op, pass, &list[i])) {
      wise.estimate = list[0];
      op->choice[pass] = wise;
      return true;
    }
  return false;
}

static clb_status compile_pass(clb_op *op, clb_pass pass) {
  clb_schedule *estimate = &op->choice[pass].estimate;
  op->problem.pass = (int32_t)pass;
  if (follow_wisdom(op, pass)) return CLB_OK;
  clb_kernel_kinds[op->problem.kind]->schedule(&op->problem, &op->ctx->device->limits, estimate);
  return clb_op_set_schedule(op, pass, estimate);
}

clb_status clb_op_check(clb_context *ctx, const clb_problem *problem, unsigned passes) {
  const clb_kernel_kind *kind = clb_kernel_kinds[problem->kind];
  clb_status s = check_types(ctx, problem);
  if (!s && kind->passes < CLB_PASSES && !(passes >> CLB_PASSES) && passes >> kind->passes)
    s = clb_fail(&ctx->error, CLB_ERROR_UNSUPPORTED, "passes is %#x; %s goes no further than its %s pass", passes, kind->name, pass_names[kind->passes - 1]);
  if (!s && (!passes || passes >> CLB_PASSES)) s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "passes is %#x; it must be a sum of CLB_PASS_BIT(CLB_FORWARD) and its like", passes);
  return s ? s : kind->check(problem, &ctx->device->limits, &ctx->error);
}

clb_status clb_op_new(clb_context *ctx, const clb_problem *problem, clb_op **op) {
  if (!(*op = calloc(1, sizeof **op))) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "%s: no memory", clb_kernel_kinds[problem->kind]->name);
  (*op)->ctx = clb_context_hold(ctx);
  memcpy(&(*op)->problem, problem, sizeof *problem);
  return CLB_OK;
}

clb_status clb_op_create(clb_context *ctx, const clb_problem *problem, unsigned passes, clb_tuner tune, clb_op **op) {
  clb_status s = clb_op_check(ctx, problem, passes);
  if (!s) s = clb_op_new(ctx, problem, op);
  if (s) return s;
  for (int pass = 0; pass < CLB_PASSES && !s; pass++)
    if (passes & CLB_PASS_BIT(pass)) s = compile_pass(*op, (clb_pass)pass);
  if (!s && tune) s = tune(*op, NULL, NULL);
  if (s) clb_op_destroy(op);
  return s;
}

void clb_op_destroy(clb_op **op) {
  if (!op || !*op) return;
  clb_context *ctx = (*op)->ctx;
  clb_memory *owned[] = {&(*op)->workspace, &(*op)->numbers, &(*op)->reals};
  for (int i = 0; i < 3; i++)
    if (owned[i]->handle) clb_memory_free(ctx, owned[i]);
  if ((*op)->destroy_parts) (*op)->destroy_parts(*op);
  clb_text_free(&(*op)->source);
  for (int i = 0; i < 2; i++) clb_text_free(&(*op)->tuning[i]);
  free(*op);
  *op = NULL;
  clb_context_release(ctx);
}

/* The kernel of a pass, or why there is none. */
static clb_status pass_kernel(clb_op *op, clb_pass pass, const clb_kernel **kernel) {
  if (!op) return CLB_ERROR_ARGUMENT;
  if ((unsigned)pass >= CLB_PASSES) return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "pass is %d; it must be CLB_FORWARD ... CLB_TRIPLE_BACKWARD", pass);
  *kernel = op->kernel[pass];
  return *kernel ? CLB_OK : clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "the op was created without its %s pass; add its CLB_PASS_BIT to `passes`", pass_names[pass]);
}

clb_status clb_op_check_pass(clb_op *op, clb_pass pass) {
  const clb_kernel *kernel;
  return pass_kernel(op, pass, &kernel);
}

clb_status clb_op_counts(clb_op *op, clb_pass pass, clb_counts *counts) {
  const clb_kernel *kernel;
  clb_status s = pass_kernel(op, pass, &kernel);
  if (s) return s;
  if (!counts) return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "clb_op_counts: counts is NULL");
  ir_counts c = ir_count(&kernel->ir);
  if (c.loads < 0) return clb_fail(&op->ctx->error, CLB_ERROR_MEMORY, "clb_op_counts: no memory");
  *counts = (clb_counts){c.loads, c.stores, c.bytes_loaded, c.bytes_stored, c.flops};
  return CLB_OK;
}

clb_status clb_op_report(clb_op *op, clb_pass pass, clb_report *report) {
  const clb_kernel *kernel;
  clb_status s = pass_kernel(op, pass, &kernel);
  if (s) return s;
  if (!report) return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "clb_op_report: report is NULL");
  *report = clb_report_unknown();
  s = op->ctx->device->backend->report(op->ctx->device, &kernel->ir, kernel->binary.s, kernel->binary.n, report);
  report->subgroups = kernel->ir.subgroups;
  report->local_bytes = ir_local_bytes(&kernel->ir);
  return s;
}

clb_status clb_op_source(clb_op *op, clb_pass pass, const char **source, size_t *bytes) {
  const clb_kernel *kernel;
  clb_status s = pass_kernel(op, pass, &kernel);
  if (s) return s;
  if (!source || !bytes) return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "clb_op_source: source or bytes is NULL");
  clb_text_free(&op->source);
  s = clb_device_text(op->ctx->device, &kernel->ir, &op->source);
  *source = op->source.s;
  *bytes = op->source.n;
  return s;
}

clb_status clb_op_tuning(clb_op *op, clb_pass pass, clb_tuning *tuning) {
  const clb_kernel *kernel;
  clb_status s = pass_kernel(op, pass, &kernel);
  if (s) return s;
  if (!tuning) return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "clb_op_tuning: tuning is NULL");
  const clb_choice *choice = &op->choice[pass];
  for (int i = 0; i < 2; i++) {
    clb_text_free(&op->tuning[i]);
    clb_schedule_print(i ? &choice->estimate : &choice->schedule, &op->tuning[i]);
  }
  if (op->tuning[0].failed || op->tuning[1].failed) return clb_fail(&op->ctx->error, CLB_ERROR_MEMORY, "clb_op_tuning: no memory");
  *tuning = (clb_tuning){op->tuning[0].s, op->tuning[1].s, choice->measured, 1e-9 * (double)choice->ns, 1e-9 * (double)choice->estimate_ns};
  return CLB_OK;
}

/* ---- operands that are rows ---- */

static clb_status check_operand(clb_op *op, const char *pass, int64_t n, const clb_operand *o, int64_t *stride) {
  clb_error_sink *e = &op->ctx->error;
  const char *kind = clb_kernel_kinds[op->problem.kind]->name;
  int64_t last, end;
  *stride = clb_operand_stride(o);
  if (!o->rows.buffer) return clb_fail(e, CLB_ERROR_ARGUMENT, "%s, %s: the buffer of %s is NULL", kind, pass, o->name);
  if (o->rows.buffer->ctx != op->ctx) return clb_fail(e, CLB_ERROR_ARGUMENT, "%s, %s: the buffer of %s belongs to another context", kind, pass, o->name);
  if (o->rows.offset < 0) return clb_fail(e, CLB_ERROR_ARGUMENT, "%s, %s: the offset of %s is %lld", kind, pass, o->name, (long long)o->rows.offset);
  if (*stride < 0 || (o->written && *stride < o->columns && n > 1))
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s, %s: the stride of %s is %lld; it must be CLB_DENSE or at least %lld", kind, pass, o->name, (long long)*stride,
                    (long long)(o->written ? o->columns : 0));
  if (o->indexed || o->one_row) n = 1; /* indexed: which rows there are is not known here */
  bool fits = !__builtin_mul_overflow(n - 1, *stride, &last) && !__builtin_add_overflow(last, o->rows.offset, &end) && !__builtin_add_overflow(end, o->columns, &end) &&
              (uint64_t)end <= o->rows.buffer->memory.bytes / (uint64_t)clb_operand_bytes(op, o);
  if (!fits)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s, %s: %lld rows of %lld elements from %lld on, %lld apart, do not fit in the %llu bytes of %s", kind, pass, (long long)n,
                    (long long)o->columns, (long long)o->rows.offset, (long long)*stride, (unsigned long long)o->rows.buffer->memory.bytes, o->name);
  return CLB_OK;
}

static clb_status check_index(clb_op *op, const char *pass, int64_t n, const clb_operand *o) {
  clb_error_sink *e = &op->ctx->error;
  const char *kind = clb_kernel_kinds[op->problem.kind]->name;
  const clb_buffer *index = o->rows.index;
  if (!o->indexed && index) return clb_fail(e, CLB_ERROR_ARGUMENT, "%s, %s: the index of %s must be NULL; this op was not told that %s is indexed", kind, pass, o->name, o->name);
  if (!o->indexed) return CLB_OK;
  if (!index) return clb_fail(e, CLB_ERROR_ARGUMENT, "%s, %s: the index of %s is NULL; this op was told that %s is indexed", kind, pass, o->name, o->name);
  if (index->ctx != op->ctx) return clb_fail(e, CLB_ERROR_ARGUMENT, "%s, %s: the index of %s belongs to another context", kind, pass, o->name);
  if ((uint64_t)(n + o->index_first) > index->memory.bytes / sizeof(int32_t))
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s, %s: %lld row numbers of 4 bytes do not fit in the %llu bytes of the index of %s", kind, pass, (long long)n,
                    (unsigned long long)index->memory.bytes, o->name);
  return CLB_OK;
}

clb_status clb_op_check_operand(clb_op *op, clb_pass pass, int64_t n, const clb_operand *o) {
  int64_t stride;
  if (!o->columns || (!n && !o->one_row)) return CLB_OK;
  clb_status s = check_operand(op, pass_names[pass], n, o, &stride);
  return s ? s : check_index(op, pass_names[pass], n, o);
}

clb_status clb_op_check_rows(clb_op *op, int32_t kind, clb_pass pass, int64_t n, const clb_operand *operands, int n_operands) {
  const clb_kernel *kernel;
  if (op->problem.kind != kind)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "this op is %s, not %s", clb_kernel_kinds[op->problem.kind]->name, clb_kernel_kinds[kind]->name);
  clb_status s = pass_kernel(op, pass, &kernel);
  if (s) return s;
  int64_t most = INT32_MAX * (int64_t)kernel->ir.rows;
  if (n < 0 || n > most) return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "n is %lld; it must be 0 ... %lld", (long long)n, (long long)most);
  for (int i = 0; i < n_operands && !s; i++) s = clb_op_check_operand(op, pass, n, &operands[i]);
  return s;
}

void clb_operand_arguments(const clb_operand *o, clb_arg *args) {
  args[0] = (clb_arg){.type = IR_VOID, .memory = o->columns ? &o->rows.buffer->memory : NULL};
  args[1] = (clb_arg){.type = IR_I64, .i64 = o->columns ? o->rows.offset : 0};
  args[2] = (clb_arg){.type = IR_I64, .i64 = o->columns ? clb_operand_stride(o) : 0};
}

clb_status clb_op_run_rows(clb_op *op, int32_t kind, clb_pass pass, int64_t n, const clb_operand *operands, int n_operands) {
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
    args[n_args++] = (clb_arg){.type = IR_VOID, .memory = o->columns ? &o->rows.index->memory : NULL};
    args[n_args++] = (clb_arg){.type = IR_I64, .i64 = o->index_first};
  }
  if (!some) return CLB_OK; /* no operand has a column */
  if (op->numbers.handle && op->reads_tables[pass]) {
    args[n_args++] = (clb_arg){.type = IR_VOID, .memory = &op->numbers};
    args[n_args++] = (clb_arg){.type = IR_VOID, .memory = &op->reals};
  }
  for (int i = 0; i < n_args; i++)
    if (args[i].type == IR_VOID && !args[i].memory) args[i].memory = some; /* never touched, but drivers want memory */
  if (!d->info.runs) return clb_fail(&op->ctx->error, CLB_ERROR_UNSUPPORTED, "%s only compiles; nothing runs on it", d->info.name);
  return clb_launch(op->ctx, kernel, (n - 1) / kernel->ir.rows + 1, args, n_args);
}
