/* kernels/norm/host/rms_norm.c - norms: operands, and launches: one for what has a row for each row
   of x, one that adds up gradients by weights. */
#include "kernels/norm/host/rms_norm.h"

#include <stdlib.h>

#include "kernels/norm/plan.h"
#include "src/problem/irreps.h"
#include "src/runtime/call.h"

/* op->parts of a norm. */
typedef struct {
  clb_op *sum;
  clb_buffer *partial; /* [max_groups][columns], of arithmetic precision */
  int64_t max_groups;
  int64_t sum_groups; /* of the kernel that adds them up */
} norm_parts;

int64_t clb_rms_norm_weights(const clb_rms_norm_problem *p) {
  int64_t n = 0;
  for (int i = 0; i < p->irreps.n; i++) {
    const clb_term *t = &p->irreps.term[i];
    n += t->mul * (p->bias && t->l == 0 && t->parity > 0 ? 2 : 1);
  }
  return n;
}

int clb_rms_norm_operands(const clb_problem *problem, clb_pass pass, const clb_rows *rows,
                          clb_operand *operands) {
  const clb_rms_norm_problem *p = &problem->rms_norm;
  const int64_t columns[] = {[CLB_OPERAND_X] = p->irreps.dim,
                             [CLB_OPERAND_W] = clb_rms_norm_weights(p),
                             [CLB_OPERAND_Z] = p->irreps.dim};
  const int n = clb_operands_fill(&clb_signature_rms_norm, pass, rows, columns, p->incoming,
                                  p->gradients, operands);
  for (int i = 0; i < n; i++)
    if (operands[i].of == CLB_OPERAND_W) clb_operand_share(&operands[i]);
  return n;
}

/* ---- creation ---- */

static unsigned bits_of(const char *name, unsigned bits, unsigned all, clb_status *s,
                        clb_error_sink *error) {
  if (!*s && bits & ~all)
    *s = clb_fail(error, CLB_ERROR_ARGUMENT, "%s is %#x; of a norm it is a sum of %s", name, bits,
                  all & CLB_OPERAND_Z ? "CLB_OPERAND_X, CLB_OPERAND_W and CLB_OPERAND_Z"
                                      : "CLB_OPERAND_X and CLB_OPERAND_W");
  return bits ? bits : all;
}

static clb_status read_factors(const clb_rms_norm_desc *desc, clb_rms_norm_problem *p,
                               clb_error_sink *error) {
  const int n = desc->factors ? desc->n_factors : 0;
  if (n != p->irreps.n)
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "there are %d factors; CLB_RMS_TERMS needs one for each term of irreps, %d", n,
                    p->irreps.n);
  for (int t = 0; t < n; t++) p->factor[t] = desc->factors[t];
  return CLB_OK;
}

clb_status clb_rms_norm_read(const clb_rms_norm_desc *desc, clb_rms_norm_problem *p,
                             clb_error_sink *error) {
  clb_status s = clb_irreps_read(desc->irreps, "irreps", &p->irreps, error);
  if (!s && desc->variant == CLB_RMS_TERMS) s = read_factors(desc, p, error);
  p->layout = (int32_t)desc->layout;
  p->variant = (int32_t)desc->variant;
  p->centre = desc->centre != 0;
  p->bias = desc->bias != 0;
  p->epsilon = desc->epsilon;
  p->weight_offset = desc->weight_offset;
  p->gradients = (int32_t)bits_of("gradients", desc->gradients,
                                  CLB_OPERAND_X | CLB_OPERAND_W | CLB_OPERAND_Z, &s, error);
  p->incoming =
      (int32_t)bits_of("incoming", desc->incoming, CLB_OPERAND_X | CLB_OPERAND_W, &s, error);
  return s;
}

enum {
  ROOM = 32 << 20,
  MAX_GROUPS = 8192,
  LONG = 256 /* rows that a lane adds up one after the other, if there is room for more sums */
};

static void destroy_parts(clb_op *op) {
  norm_parts *own = op->parts;
  clb_op_destroy(&own->sum);
  clb_buffer_destroy(&own->partial);
  free(own);
}

static clb_status create_sum(clb_context *ctx, const clb_problem *p, norm_parts *own) {
  clb_problem *sum = malloc(sizeof *sum);
  clb_norm_plan *plan = malloc(sizeof *plan);
  clb_status s =
      sum && plan ? CLB_OK : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "rms_norm: no memory");
  if (!s) {
    *sum = *p;
    sum->kind = CLB_RMS_NORM_SUM;
    clb_norm_make_plan(&p->rms_norm, plan);
    s = clb_op_create(ctx, sum, CLB_PASS_BIT(CLB_FORWARD), NULL, &own->sum);
  }
  if (!s) {
    const int64_t row =
        clb_norm_partial_columns(&p->rms_norm, plan) * clb_dtype_bytes(p->arithmetic);
    own->max_groups = ROOM / row < MAX_GROUPS ? ROOM / row : MAX_GROUPS;
    own->sum_groups = clb_norm_sum_blocks(plan, own->sum->kernel[CLB_FORWARD]->ir.lanes);
    if (ctx->device->info.runs)
      s = clb_buffer_create(ctx, (uint64_t)(own->max_groups * row), &own->partial);
  }
  free(sum);
  free(plan);
  return s;
}

clb_status clb_rms_norm_make(clb_context *ctx, clb_problem *p, unsigned bits,
                             const clb_tuner *tuner, clb_op **op) {
  p->rms_norm.whole = (ctx->disabled & CLB_SPLIT_ROWS) != 0;
  norm_parts *own = calloc(1, sizeof *own);
  if (!own) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "rms_norm: no memory");
  clb_status s = clb_op_create(ctx, p, bits, NULL, op);
  if (s) {
    free(own);
    return s;
  }
  (*op)->parts = own;
  (*op)->destroy_parts = destroy_parts;
  if (p->rms_norm.gradients & CLB_OPERAND_W && bits >> CLB_BACKWARD) s = create_sum(ctx, p, own);
  if (!s && tuner) s = tuner->tune(tuner, *op, NULL);
  if (s) clb_op_destroy(op);
  return s;
}

/* ---- passes ---- */

/* Whether the kernel may read and write `width` elements at once. */
static bool aligned(const clb_op *op, const clb_operand *operands, int count, int width) {
  for (int i = 0; i < count && width > 1; i++) {
    const clb_operand *o = &operands[i];
    if (!o->columns || (o->of == CLB_OPERAND_W && o->written)) continue;
    if (!clb_operand_is_aligned(op, o, width)) return false;
  }
  return true;
}

/* The kernel for these operands. */
static clb_status choose_kernel(clb_op *op, clb_pass pass, const clb_operand *operands, int count,
                                const clb_kernel **kernel) {
  clb_schedule s = op->choice[pass].schedule;
  *kernel = op->kernel[pass];
  if (aligned(op, operands, count, s.norm.elements_per_access)) return CLB_OK;
  s.norm.elements_per_access = 1;
  if (!op->unaligned[pass]) {
    clb_status status = clb_op_make_kernel(op, pass, &s, &op->unaligned[pass]);
    if (status) return status;
  }
  *kernel = op->unaligned[pass];
  return CLB_OK;
}

/* Rows are dealt out to groups in turn, or, on a CPU, as blocks: adds the arguments that say how,
   and returns the number of groups. */
static int64_t deal(const clb_op *op, clb_pass pass, const clb_kernel *kernel, int64_t n,
                    clb_call *c) {
  const norm_parts *own = op->parts;
  const clb_limits *limits = &op->ctx->device->limits;
  const clb_schedule *s = &op->choice[pass].schedule;
  const int64_t rows = kernel->ir.rows, needed = clb_divide_up(n, rows),
                sums = own->partial && pass ? clb_divide_up(needed, LONG) : 0;
  int64_t groups = (int64_t)(limits->units > 0 ? limits->units : 1) * s->norm.groups_per_unit;
  if (groups < sums) groups = sums;
  if (groups > needed || !s->norm.groups_per_unit) groups = needed;
  if (sums && groups > own->max_groups) groups = own->max_groups;
  const int64_t block = clb_divide_up(n, groups),
                own_rows = s->norm.subgroups_per_row ? rows : rows / kernel->ir.subgroups;
  if (limits->simd) groups = clb_divide_up(n, block);
  clb_call_i64(c, limits->simd ? block : own_rows);
  clb_call_i64(c, limits->simd ? rows : groups * rows);
  clb_call_i64(c, limits->simd ? block : n);
  return groups;
}

static clb_status launch_rows(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operands,
                              int count, int64_t *groups) {
  const norm_parts *own = op->parts;
  const clb_kernel *kernel;
  clb_status s = choose_kernel(op, pass, operands, count, &kernel);
  if (s) return s;
  clb_call c = clb_call_start(op->ctx);
  clb_call_i64(&c, n);
  for (int i = 0; i < count; i++) clb_call_operand(&c, &operands[i]);
  *groups = deal(op, pass, kernel, n, &c);
  if (pass != CLB_FORWARD) clb_call_memory(&c, own->partial ? &own->partial->memory : NULL);
  return clb_call_launch(&c, kernel, *groups);
}

/* The gradient by weights, from `groups` partial rows. */
static clb_status launch_sum(clb_op *op, const clb_operand *result, int64_t groups) {
  const norm_parts *own = op->parts;
  clb_call c = clb_call_start(op->ctx);
  clb_call_buffer(&c, own->partial);
  clb_call_i64(&c, groups);
  clb_call_operand(&c, result);
  return clb_call_launch(&c, own->sum->kernel[CLB_FORWARD], own->sum_groups);
}

clb_status clb_rms_norm_run(clb_op *op, clb_pass pass, int64_t n, const clb_rows *rows) {
  clb_operand operands[CLB_MAX_OPERANDS] = {{.name = NULL}};
  if (!op) return clb_op_null(CLB_RMS_NORM, pass);
  int count = op->problem.kind == CLB_RMS_NORM
                  ? clb_rms_norm_operands(&op->problem, pass, rows, operands)
                  : 0;
  clb_status s = clb_op_check_rows(op, CLB_RMS_NORM, pass, n, operands, count);
  if (s) return s;
  const norm_parts *own = op->parts;
  const clb_operand *weights = operands;
  while (pass && (weights->of != CLB_OPERAND_W || !weights->written)) weights++;
  const bool sums = pass != CLB_FORWARD && weights->columns;
  int64_t groups = 0;
  if (!n && !sums) return CLB_OK;
  if ((s = clb_check_runs(op->ctx))) return s;
  if (sums) clb_workspace_discard(op->ctx, &own->partial->memory);
  if (n) s = launch_rows(op, pass, n, operands, count, &groups);
  return s || !sums ? s : launch_sum(op, weights, groups);
}
