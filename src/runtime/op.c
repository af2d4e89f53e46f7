/* src/runtime/op.c - problem -> schedule -> IR -> kernel, for all ops. */
#include "src/base/sizes.h"
#include "src/runtime/context.h"
#include "src/runtime/wisdom.h"

#include <stdlib.h>
#include <string.h>

static clb_status check_types(clb_context *ctx, const clb_problem *p) {
  clb_error_sink *e = &ctx->error;
  if (p->storage < 0 || p->storage > CLB_BF16)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "storage is %d; it must be CLB_F32, CLB_F64, CLB_F16 or CLB_BF16", p->storage);
  if (p->arithmetic != CLB_F64 && p->arithmetic != CLB_F32)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "arithmetic is %d; it must be CLB_F64 or CLB_F32",
                    p->arithmetic);
  if (p->arithmetic == CLB_F64 ? p->storage >= CLB_F16 : p->storage == CLB_F64)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "arithmetic: CLB_F64 goes with storage CLB_F64 or CLB_F32, CLB_F32 with "
                    "CLB_F32, CLB_F16 or CLB_BF16");
  if (p->arithmetic == CLB_F64 && !ctx->device->limits.f64)
    return clb_fail(e, CLB_ERROR_UNSUPPORTED, "arithmetic: %s has no double precision",
                    ctx->device->info.name);
  return CLB_OK;
}

const char *clb_pass_name(clb_pass pass) {
  static const char *const names[CLB_PASSES] = {"forward", "backward", "double backward",
                                                "triple backward"};
  return names[pass];
}

static clb_status upload(clb_device *d, const void *from, int64_t bytes, clb_memory *to) {
  clb_status s = clb_device_alloc(d, (uint64_t)bytes, to);
  return s ? s : d->backend->write(d, to, 0, from, (uint64_t)bytes);
}

/* Makes the tables that kernels read in addition to their operands. */
static clb_status make_tables(clb_op *op) {
  const clb_kernel_kind *kind = clb_kernel_kinds[op->problem.kind];
  clb_device *d = op->ctx->device;
  clb_tables t = {0};
  bool some = false;
  for (int pass = 0; pass < CLB_PASSES; pass++) some |= op->reads_tables[pass];
  if (!some || op->numbers.handle || !d->info.runs) return CLB_OK;
  bool single = op->problem.arithmetic == CLB_F32, made = kind->tables(&op->problem, &t);
  float *singles = single && made ? malloc(sizeof *singles * (size_t)t.n_reals) : NULL;
  clb_status s = made && (!single || singles)
                     ? CLB_OK
                     : clb_fail(&op->ctx->error, CLB_ERROR_MEMORY, "%s: no memory", kind->name);
  for (int64_t i = 0; singles && i < t.n_reals; i++) singles[i] = (float)t.real[i];
  if (!s) s = upload(d, t.number, t.n_numbers * (int64_t)sizeof *t.number, &op->numbers);
  if (!s)
    s = upload(d, single ? (const void *)singles : t.real, t.n_reals * (single ? 4 : 8),
               &op->reals);
  free(singles);
  free(t.number);
  free(t.real);
  return s;
}

clb_status clb_op_make_kernel(clb_op *op, clb_pass pass, const clb_schedule *schedule,
                              clb_kernel **kernel) {
  ir_kernel k;
  op->problem.pass = (int32_t)pass;
  clb_kernel_kinds[op->problem.kind]->lower(&op->problem, schedule, &k);
  return clb_kernel_find(op->ctx, &k, kernel);
}

clb_status clb_op_set_schedule(clb_op *op, clb_pass pass, const clb_schedule *schedule) {
  const clb_kernel_kind *kind = clb_kernel_kinds[op->problem.kind];
  bool reads = kind->reads_tables && kind->reads_tables(schedule), before = op->reads_tables[pass];
  clb_schedule own = *schedule;
  clb_kernel *kernel;
  if (op->ctx->recording) return clb_not_recording(op->ctx, "creating an op");
  own.scalar_access = (op->ctx->disabled & CLB_WIDE_ACCESSES) != 0;
  own.accumulate_in_memory = (op->ctx->disabled & CLB_REGISTER_SUMS) != 0;
  if (own.accumulate_in_memory && kind->accumulate_in_memory) kind->accumulate_in_memory(&own);
  clb_status s = clb_op_make_kernel(op, pass, &own, &kernel);
  if (s) return s;
  op->reads_tables[pass] = reads;
  s = make_tables(op);
  if (s) {
    op->reads_tables[pass] = before;
    return s;
  }
  op->kernel[pass] = kernel;
  op->unaligned[pass] = op->team[pass][0] = op->team[pass][1] = NULL;
  op->choice[pass].schedule = own;
  return CLB_OK;
}

/* Uses wisdom if it names a candidate; returns whether the pass now has that kernel. Wrong lines
   are harmless. */
static bool follow_wisdom(clb_op *op, clb_pass pass) {
  const clb_kernel_kind *kind = clb_kernel_kinds[op->problem.kind];
  clb_schedule list[CLB_MAX_CANDIDATES];
  clb_choice wise;
  if (!kind->candidates || !clb_wisdom_find(op->ctx, &op->problem, &wise)) return false;
  for (int i = kind->candidates(&op->problem, &op->ctx->device->limits, list) - 1; i >= 0; i--)
    if (!memcmp(&list[i], &wise.schedule, sizeof *list) &&
        !clb_op_set_schedule(op, pass, &list[i])) {
      wise.estimate = list[0];
      op->choice[pass] = wise;
      return true;
    }
  return false;
}

clb_status clb_op_compile(clb_op *op, clb_pass pass) {
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
    s = clb_fail(&ctx->error, CLB_ERROR_UNSUPPORTED, "passes is %#x; %s has passes up to %s only",
                 passes, kind->name, clb_pass_name((clb_pass)(kind->passes - 1)));
  if (!s && (!passes || passes >> CLB_PASSES))
    s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                 "passes is %#x; it must be an OR of CLB_PASS_BIT(pass)", passes);
  return s ? s : kind->check(problem, &ctx->device->limits, &ctx->error);
}

clb_status clb_op_new(clb_context *ctx, const clb_problem *problem, clb_op **op) {
  if (!(*op = calloc(1, sizeof **op)))
    return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "%s: no memory",
                    clb_kernel_kinds[problem->kind]->name);
  (*op)->ctx = clb_context_hold(ctx);
  memcpy(&(*op)->problem, problem, sizeof *problem);
  return CLB_OK;
}

clb_status clb_op_create(clb_context *ctx, const clb_problem *problem, unsigned passes,
                         const clb_tuner *tuner, clb_op **op) {
  clb_status s = clb_op_check(ctx, problem, passes);
  if (!s) s = clb_op_new(ctx, problem, op);
  if (s) return s;
  for (int pass = 0; pass < CLB_PASSES && !s; pass++)
    if (passes & CLB_PASS_BIT(pass)) s = clb_op_compile(*op, (clb_pass)pass);
  if (!s && tuner) s = tuner->tune(tuner, *op, NULL);
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

clb_status clb_op_pass_kernel(clb_op *op, const char *call, clb_pass pass,
                              const clb_kernel **kernel) {
  if (!op) return clb_null(call, "op");
  if ((unsigned)pass >= CLB_PASSES)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                    "pass is %d; it must be CLB_FORWARD ... CLB_TRIPLE_BACKWARD", pass);
  *kernel = op->kernel[pass];
  return *kernel
             ? CLB_OK
             : clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                        "the op was created without its %s pass; add its CLB_PASS_BIT to `passes`",
                        clb_pass_name(pass));
}

clb_status clb_op_check_pass(clb_op *op, clb_pass pass) {
  const clb_kernel *kernel;
  return clb_op_pass_kernel(op, __func__, pass, &kernel);
}

clb_status clb_op_counts_sized(clb_op *op, clb_pass pass, clb_counts *counts, size_t size) {
  const clb_kernel *kernel;
  clb_status s = clb_op_pass_kernel(op, __func__, pass, &kernel);
  if (s) return s;
  if (!counts)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "clb_op_counts: counts is NULL");
  ir_counts c = ir_count(&kernel->ir);
  if (c.loads < 0) return clb_fail(&op->ctx->error, CLB_ERROR_MEMORY, "clb_op_counts: no memory");
  const clb_counts all = {c.loads, c.stores, c.bytes_loaded, c.bytes_stored, c.flops};
  clb_give_struct(&all, sizeof all, counts, size);
  return CLB_OK;
}

clb_status clb_op_report_sized(clb_op *op, clb_pass pass, clb_report *report, size_t size) {
  const clb_kernel *kernel;
  clb_status s = clb_op_pass_kernel(op, __func__, pass, &kernel);
  if (s) return s;
  if (!report)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "clb_op_report: report is NULL");
  clb_report all = clb_report_unknown();
  clb_device *d = op->ctx->device;
  if (d->backend->report)
    s = d->backend->report(d, &kernel->ir, kernel->binary.s, kernel->binary.n, &all);
  all.subgroups = kernel->ir.subgroups;
  all.local_bytes = ir_local_bytes(&kernel->ir);
  clb_give_struct(&all, sizeof all, report, size);
  return s;
}

clb_status clb_op_source(clb_op *op, clb_pass pass, const char **source, size_t *bytes) {
  const clb_kernel *kernel;
  clb_status s = clb_op_pass_kernel(op, __func__, pass, &kernel);
  if (s) return s;
  if (!source || !bytes)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "clb_op_source: source or bytes is NULL");
  clb_text_free(&op->source);
  const clb_device *d = op->ctx->device;
  s = clb_codegen(&kernel->ir, &d->limits, &d->dialect, &op->source, d->error);
  *source = op->source.s;
  *bytes = op->source.n;
  return s;
}

clb_status clb_op_tuning_sized(clb_op *op, clb_pass pass, clb_tuning *tuning, size_t size) {
  const clb_kernel *kernel;
  clb_status s = clb_op_pass_kernel(op, __func__, pass, &kernel);
  if (s) return s;
  if (!tuning)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "clb_op_tuning: tuning is NULL");
  const clb_choice *choice = &op->choice[pass];
  for (int i = 0; i < 2; i++) {
    clb_text_free(&op->tuning[i]);
    clb_schedule_print(i ? &choice->estimate : &choice->schedule, &op->tuning[i]);
  }
  if (op->tuning[0].failed || op->tuning[1].failed)
    return clb_fail(&op->ctx->error, CLB_ERROR_MEMORY, "clb_op_tuning: no memory");
  const clb_tuning all = {op->tuning[0].s, op->tuning[1].s, choice->measured,
                          1e-9 * (double)choice->ns, 1e-9 * (double)choice->estimate_ns};
  clb_give_struct(&all, sizeof all, tuning, size);
  return CLB_OK;
}
