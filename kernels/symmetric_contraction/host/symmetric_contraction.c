/* kernels/symmetric_contraction/host/symmetric_contraction.c - symmetric contractions: operands,
   and the gradients by weights, which are sums over the rows of a species.

   One kernel computes what has a row for each row of x. A second one makes sums for each block of
   rows and species (kernels/symmetric_contraction/weights.c), which are added up over the blocks.
 */
#include "kernels/symmetric_contraction/host/symmetric_contraction.h"
#include "src/runtime/call.h"

#include <stdlib.h>

static int64_t weights_of(const clb_symmetric_contraction_problem *p) {
  return (int64_t)p->n_paths * p->channels;
}

int clb_symmetric_contraction_operands(const clb_problem *problem, clb_pass pass,
                                       const clb_rows *rows, clb_operand *operands) {
  const clb_symmetric_contraction_problem *p = &problem->symmetric_contraction;
  int64_t z = 0;
  for (int i = 0; i < p->n_degrees; i++) z += (2 * p->degrees[i] + 1) * (int64_t)p->channels;
  const int64_t columns[] = {[CLB_OPERAND_X] = (p->ell + 1) * (p->ell + 1) * (int64_t)p->channels,
                             [CLB_OPERAND_W] = weights_of(p),
                             [CLB_OPERAND_Z] = z};
  const int n = clb_operands_fill(&clb_signature_symmetric_contraction, pass, rows, columns,
                                  p->incoming, p->gradients, operands);
  for (int i = 0; i < n; i++) {
    clb_operand *o = &operands[i];
    const bool incoming = o->role == CLB_ROLE_INCOMING;
    if (o->of != CLB_OPERAND_W) continue;
    o->one_row = o->written; /* n of x says nothing about it */
    o->indexed = !o->written && (!incoming || p->incoming & CLB_OPERAND_W);
    if (incoming) o->rows.index = rows[1].index;
  }
  return n;
}

/* ---- creation ---- */

enum {
  MAX_BLOCKS = 256,
  BLOCKS_OF_A_CORE = 4,
  MIN_ROWS = 16, /* of a block */
  ROOM = 64 << 20
};

static void destroy_parts(clb_op *op) {
  clb_symmetric_parts *own = op->parts;
  clb_op_destroy(&own->sums);
  clb_buffer_destroy(&own->partial);
  clb_buffer_destroy(&own->present);
  free(own);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static clb_status create_sums(clb_context *ctx, const clb_problem *p, unsigned derivatives,
                              clb_symmetric_parts *own) {
  const clb_symmetric_contraction_problem *sc = &p->symmetric_contraction;
  const clb_limits *limits = &ctx->device->limits;
  int64_t row = sc->n_species * weights_of(sc) * clb_dtype_bytes(p->arithmetic);
  clb_problem *sums = malloc(sizeof *sums);
  if (!sums) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "symmetric_contraction: no memory");
  *sums = *p;
  sums->kind = CLB_SYMMETRIC_WEIGHTS;
  clb_status s =
      clb_op_create(ctx, sums, derivatives | CLB_PASS_BIT(CLB_FORWARD), NULL, &own->sums);
  free(sums);
  own->max_blocks =
      least(limits->simd ? BLOCKS_OF_A_CORE * limits->units : MAX_BLOCKS, ROOM / (row ? row : 1));
  if (own->max_blocks < 1) own->max_blocks = 1;
  if (s || !ctx->device->info.runs || !row) return s;
  s = clb_buffer_create(ctx, (uint64_t)(own->max_blocks * row), &own->partial);
  return s ? s
           : clb_buffer_create(ctx, (uint64_t)(own->max_blocks * sc->n_species) * sizeof(int32_t),
                               &own->present);
}

clb_status clb_symmetric_contraction_make(clb_context *ctx, const clb_problem *p, unsigned bits,
                                          const clb_tuner *tuner, clb_op **op) {
  const clb_symmetric_contraction_problem *sc = &p->symmetric_contraction;
  clb_status s = clb_op_check(ctx, p, bits);
  if (s) return s;
  const unsigned backward = CLB_PASS_BIT(CLB_BACKWARD), twice = CLB_PASS_BIT(CLB_DOUBLE_BACKWARD),
                 derivatives = sc->gradients & CLB_OPERAND_W ? bits & (backward | twice) : 0;
  unsigned by_rows = bits & ~derivatives;
  if (sc->gradients & CLB_OPERAND_X) by_rows = bits;
  if (sc->gradients & CLB_OPERAND_Z) by_rows |= bits & twice;
  clb_symmetric_parts *own = calloc(1, sizeof *own);
  if (!own) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "symmetric_contraction: no memory");
  own->by_rows = by_rows;
  s = by_rows ? clb_op_create(ctx, p, by_rows, NULL, op) : clb_op_new(ctx, p, op);
  if (s) {
    free(own);
    return s;
  }
  (*op)->parts = own;
  (*op)->destroy_parts = destroy_parts;
  if (derivatives) s = create_sums(ctx, p, derivatives, own);
  if (!s && tuner) s = tuner->tune(tuner, *op, own->sums);
  for (int pass = 0; pass < CLB_PASSES && !s; pass++) /* shown by clb_op_source and the like */
    if (derivatives & ~by_rows & CLB_PASS_BIT(pass)) {
      (*op)->kernel[pass] = own->sums->kernel[pass];
      (*op)->choice[pass] = own->sums->choice[pass];
    }
  if (s) clb_op_destroy(op);
  return s;
}

/* ---- passes ---- */

/* What clb_op_run_rows cannot know: there is a row of weights for each species. */
static clb_status check_weights(clb_op *op, clb_pass pass, const clb_operand *operands, int n) {
  clb_status s = CLB_OK;
  for (int i = 0; i < n && !s; i++) {
    clb_operand o = operands[i];
    if (o.of != CLB_OPERAND_W || !o.columns) continue;
    if (i != 1 && o.rows.index != (o.written ? NULL : operands[1].rows.index))
      return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                      "symmetric_contraction, %s: the index of %s must be NULL; that of w says "
                      "which species a row is",
                      clb_pass_name(pass), o.name);
    o.indexed = o.one_row = false;
    o.rows.index = NULL;
    s = clb_op_check_operand(op, pass, op->problem.symmetric_contraction.n_species, &o);
  }
  return s;
}

/* Sums of blocks of rows; returns the number of blocks in *blocks. */
static clb_status launch_sums(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operands,
                              int n_operands, int64_t *blocks) {
  const clb_symmetric_parts *own = op->parts;
  const clb_symmetric_contraction_problem *sc = &op->problem.symmetric_contraction;
  const clb_kernel *kernel = own->sums->kernel[pass];
  const clb_schedule *s = &own->sums->choice[pass].schedule;
  int64_t across = s->symmetric.channels ? s->symmetric.channels : s->lanes,
          block_rows = (n - 1) / least((n - 1) / MIN_ROWS + 1, own->max_blocks) + 1;
  *blocks = (n - 1) / block_rows + 1;
  int64_t units = *blocks * sc->n_species * ((sc->channels - 1) / across + 1) *
                  (s->symmetric.roles ? sc->n_degrees : 1);
  clb_call c = clb_call_start(op->ctx);
  clb_call_i64(&c, n);
  for (int i = 0; i < n_operands; i++) {
    clb_call_operand(&c, &operands[i]);
    if (operands[i].written) c.arg[c.n_args - 3].memory = NULL; /* not accessed */
  }
  for (int i = 0; i < n_operands; i++) {
    if (!operands[i].indexed) continue;
    clb_call_buffer(&c, operands[i].rows.index);
    clb_call_i64(&c, 0);
  }
  clb_call_i64(&c, block_rows);
  clb_call_i64(&c, units);
  clb_call_buffer(&c, own->partial);
  clb_call_buffer(&c, own->present);
  clb_call_tables(&c, own->sums, pass);
  return clb_call_launch(&c, kernel, clb_divide_up(units, kernel->ir.subgroups));
}

/* The gradient by weights, of which `operands` has one with columns. */
static clb_status run_weights(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operands,
                              int n_operands) {
  const clb_symmetric_parts *own = op->parts;
  const clb_symmetric_contraction_problem *sc = &op->problem.symmetric_contraction;
  const clb_kernel *total = own->sums->kernel[CLB_FORWARD];
  int64_t blocks = 0, across = (weights_of(sc) - 1) / total->ir.lanes + 1;
  const clb_operand *result = operands;
  clb_status s = CLB_OK;
  while (result->of != CLB_OPERAND_W || !result->written) result++;
  if (!result->columns) return CLB_OK;
  if ((s = clb_check_runs(op->ctx))) return s;
  clb_workspace_discard(op->ctx, &own->partial->memory);
  clb_workspace_discard(op->ctx, &own->present->memory);
  if (n) s = launch_sums(op, pass, n, operands, n_operands, &blocks);
  clb_call c = clb_call_start(op->ctx);
  clb_call_buffer(&c, own->partial);
  clb_call_buffer(&c, own->present);
  clb_call_i64(&c, blocks);
  clb_call_operand(&c, result);
  return s ? s
           : clb_call_launch(&c, total, clb_divide_up(sc->n_species * across, total->ir.subgroups));
}

enum { BY_ROWS = 1, BY_SPECIES = 2 };

static clb_status run(clb_op *op, clb_pass pass, int64_t n, const clb_rows *rows, int parts_run) {
  clb_operand operands[CLB_MAX_OPERANDS] = {{.name = NULL}};
  if (!op) return clb_op_null(CLB_SYMMETRIC_CONTRACTION, pass);
  int count = op->problem.kind == CLB_SYMMETRIC_CONTRACTION
                  ? clb_symmetric_contraction_operands(&op->problem, pass, rows, operands)
                  : 0;
  clb_status s = clb_op_check_rows(op, CLB_SYMMETRIC_CONTRACTION, pass, n, operands, count);
  if (!s) s = check_weights(op, pass, operands, count);
  if (s) return s;
  const clb_symmetric_parts *own = op->parts;
  if (parts_run & BY_ROWS && own->by_rows & CLB_PASS_BIT(pass))
    s = clb_op_run_rows(op, CLB_SYMMETRIC_CONTRACTION, pass, n, operands, count);
  if (!s && pass && parts_run & BY_SPECIES &&
      op->problem.symmetric_contraction.gradients & CLB_OPERAND_W)
    s = run_weights(op, pass, n, operands, count);
  return s;
}

clb_status clb_symmetric_contraction_run(clb_op *op, clb_pass pass, int64_t n,
                                         const clb_rows *rows) {
  return run(op, pass, n, rows, BY_ROWS | BY_SPECIES);
}

clb_status clb_symmetric_contraction_run_part(clb_op *op, clb_pass pass, int64_t n,
                                              const clb_rows *rows, bool weights) {
  return run(op, pass, n, rows, weights ? BY_SPECIES : BY_ROWS);
}
