/* kernels/linear/host/linear.c - linear maps of irreps: operands, and launches: one for what has a
   row for each row of x, or products of a BLAS; one or two for gradients by weights. */
#include "kernels/linear/host/linear.h"
#include "kernels/linear/host/few.h"
#include "kernels/linear/host/products.h"
#include "kernels/linear/linear_few.h"

#include <stdlib.h>

#include "src/runtime/call.h"

/* op->parts of a linear map. */
typedef struct {
  clb_linear_few *few;           /* for rows that would not fill the device; NULL: there is none */
  clb_linear_products *products; /* of many rows, and all gradients by weights, by a BLAS; NULL:
                                    there is none, or it cannot */
  clb_op *sums;        /* gradients by weights; NULL: none are asked for, or products make them */
  clb_buffer *partial; /* [max_blocks][n_species][W], of arithmetic precision; NULL: each row has
                          its own weights */
  int64_t max_blocks;
  unsigned by_rows; /* passes that have results with a row for each row of x */
} linear_parts;

int clb_linear_operands(const clb_problem *problem, clb_pass pass, const clb_rows *rows,
                        clb_operand *operands) {
  const clb_linear_problem *p = &problem->linear;
  const int64_t columns[] = {
      [CLB_OPERAND_X] = p->in.dim, [CLB_OPERAND_W] = p->n_weights, [CLB_OPERAND_Z] = p->out.dim};
  const int n = clb_operands_fill(&clb_signature_linear, pass, rows, columns, p->incoming,
                                  p->gradients, operands);
  for (int i = 0; i < n; i++) {
    clb_operand *o = &operands[i];
    const bool incoming = o->role == CLB_ROLE_INCOMING;
    if (o->of != CLB_OPERAND_W || p->weights == CLB_LINEAR_PER_ROW) continue;
    if (p->weights == CLB_LINEAR_BY_SPECIES) {
      o->one_row = o->written;
      o->indexed = !o->written && (!incoming || p->incoming & CLB_OPERAND_W);
      if (incoming) o->rows.index = rows[1].index;
    } else clb_operand_share(o);
  }
  return n;
}

/* ---- creation ---- */

enum { ROOM = 64 << 20, MAX_BLOCKS = 512, BLOCKS_OF_A_CORE = 4, MIN_ROWS = 16 };

static void destroy_parts(clb_op *op) {
  linear_parts *own = op->parts;
  clb_linear_few_destroy(&own->few);
  clb_linear_products_destroy(&own->products);
  clb_op_destroy(&own->sums);
  clb_buffer_destroy(&own->partial);
  free(own);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static clb_status create_sums(clb_context *ctx, const clb_problem *p, unsigned derivatives,
                              linear_parts *own) {
  const clb_linear_problem *lp = &p->linear;
  const clb_limits *limits = &ctx->device->limits;
  const bool blocks = lp->weights != CLB_LINEAR_PER_ROW;
  int64_t row;
  if (__builtin_mul_overflow((int64_t)lp->n_species * lp->n_weights, clb_dtype_bytes(p->arithmetic),
                             &row) ||
      row > INT64_MAX / 2)
    return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "linear: no memory for %d species of %d weights",
                    (int)lp->n_species, (int)lp->n_weights);
  clb_problem *sums = malloc(sizeof *sums);
  if (!sums) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "linear: no memory");
  *sums = *p;
  sums->kind = CLB_LINEAR_WEIGHTS;
  clb_status s = clb_op_create(ctx, sums, derivatives | (blocks ? CLB_PASS_BIT(CLB_FORWARD) : 0),
                               NULL, &own->sums);
  free(sums);
  own->max_blocks =
      least(limits->simd ? BLOCKS_OF_A_CORE * limits->units : MAX_BLOCKS, ROOM / (row ? row : 1));
  if (own->max_blocks < 1) own->max_blocks = 1;
  if (s || !blocks || !ctx->device->info.runs || !row) return s;
  return clb_buffer_create(ctx, (uint64_t)(own->max_blocks * row), &own->partial);
}

clb_status clb_linear_make(clb_context *ctx, const clb_problem *p, unsigned bits, clb_op **op) {
  const clb_linear_problem *lp = &p->linear;
  clb_status s = clb_op_check(ctx, p, bits);
  if (s) return s;
  const unsigned backward = CLB_PASS_BIT(CLB_BACKWARD), twice = CLB_PASS_BIT(CLB_DOUBLE_BACKWARD),
                 derivatives = lp->gradients & CLB_OPERAND_W ? bits & (backward | twice) : 0;
  linear_parts *own = calloc(1, sizeof *own);
  if (!own) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "linear: no memory");
  own->by_rows = bits & ~derivatives;
  if (lp->gradients & CLB_OPERAND_X) own->by_rows = bits;
  if (lp->gradients & CLB_OPERAND_Z) own->by_rows |= bits & twice;
  s = own->by_rows ? clb_op_create(ctx, p, own->by_rows, NULL, op) : clb_op_new(ctx, p, op);
  if (s) {
    free(own);
    return s;
  }
  (*op)->parts = own;
  (*op)->destroy_parts = destroy_parts;
  if (derivatives) s = create_sums(ctx, p, derivatives, own);
  if (!s && own->by_rows) s = clb_linear_few_create(ctx, p, own->by_rows, &own->few);
  for (int pass = 0; pass < CLB_PASSES && !s; pass++) /* shown by clb_op_source and the like */
    if (derivatives & ~own->by_rows & CLB_PASS_BIT(pass)) {
      (*op)->kernel[pass] = own->sums->kernel[pass];
      (*op)->choice[pass] = own->sums->choice[pass];
    }
  if (s) clb_op_destroy(op);
  return s;
}

clb_status clb_linear_make_by_library(clb_context *ctx, const clb_problem *p, unsigned passes,
                                      clb_op **op) {
  clb_linear_products *products;
  clb_status s = clb_op_check(ctx, p, passes);
  if (!s) s = clb_linear_products_create(ctx, p, passes, &products);
  if (s || !products) return s ? s : clb_linear_make(ctx, p, passes, op);
  linear_parts *own = calloc(1, sizeof *own);
  s = own ? clb_op_new(ctx, p, op) : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "linear: no memory");
  if (s) {
    clb_linear_products_destroy(&products);
    free(own);
    return s;
  }
  *own = (linear_parts){.products = products, .by_rows = passes};
  (*op)->parts = own;
  (*op)->destroy_parts = destroy_parts;
  s = clb_linear_few_create(ctx, p, own->by_rows, &own->few);
  if (s) clb_op_destroy(op);
  return s;
}

/* ---- passes ---- */

/* What clb_op_check_rows cannot know: there is a row of weights for each species; where each row
   has its own, its gradient is a group. */
static clb_status check_weights(clb_op *op, clb_pass pass, int64_t rows,
                                const clb_operand *operands, int n) {
  const clb_linear_problem *lp = &op->problem.linear;
  clb_status s = CLB_OK;
  if (lp->weights == CLB_LINEAR_PER_ROW && rows > INT32_MAX)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                    "n is %lld; with weights_per_row it must be 0 ... %d", (long long)rows,
                    INT32_MAX);
  for (int i = 0; i < n && !s && lp->weights == CLB_LINEAR_BY_SPECIES; i++) {
    clb_operand o = operands[i];
    if (o.of != CLB_OPERAND_W || !o.columns) continue;
    if (i != 1 && o.rows.index != (o.written ? NULL : operands[1].rows.index))
      return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                      "linear, %s: the index of %s must be NULL; that of w says which species a "
                      "row is",
                      clb_pass_name(pass), o.name);
    o.indexed = o.one_row = false;
    o.rows.index = NULL;
    s = clb_op_check_operand(op, pass, lp->n_species, &o);
  }
  return s;
}

/* A block of rows and a species for each group. */
static clb_status launch_sums(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operands,
                              int count, int64_t block_rows, int64_t blocks) {
  const linear_parts *own = op->parts;
  clb_call c = clb_call_start(op->ctx);
  clb_call_i64(&c, n);
  for (int i = 0; i < count; i++) {
    clb_call_operand(&c, &operands[i]);
    if (operands[i].written && (operands[i].of != CLB_OPERAND_W || own->partial))
      c.arg[c.n_args - 3].memory = NULL; /* not accessed */
  }
  clb_linear_call_species(&c, operands, count);
  clb_call_i64(&c, block_rows);
  if (own->partial) clb_call_buffer(&c, own->partial);
  return clb_call_launch(&c, own->sums->kernel[pass], blocks * op->problem.linear.n_species);
}

/* The gradient by weights. */
static clb_status run_weights(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operands,
                              int count) {
  const linear_parts *own = op->parts;
  const clb_linear_problem *lp = &op->problem.linear;
  const clb_operand *result = operands;
  clb_status s = clb_check_runs(op->ctx);
  while (result->of != CLB_OPERAND_W || !result->written) result++;
  if (s || !result->columns) return s;
  if (!own->partial) return n ? launch_sums(op, pass, n, operands, count, 1, n) : CLB_OK;
  const int64_t most = least(n / MIN_ROWS + 1, own->max_blocks), block_rows = n / most + 1,
                blocks = clb_divide_up(n, block_rows);
  const clb_kernel *total = own->sums->kernel[CLB_FORWARD];
  clb_workspace_discard(op->ctx, &own->partial->memory);
  if (n) s = launch_sums(op, pass, n, operands, count, block_rows, blocks);
  clb_call c = clb_call_start(op->ctx);
  clb_call_buffer(&c, own->partial);
  clb_call_i64(&c, blocks);
  clb_call_operand(&c, result);
  return s ? s
           : clb_call_launch(&c, total,
                             lp->n_species * clb_divide_up(lp->n_weights, total->ir.lanes));
}

bool clb_linear_has_few(const clb_op *op, clb_pass pass, int64_t n) {
  const linear_parts *own = op->parts;
  if (!own->few || n > CLB_LINEAR_MOST_FEW) return false;
  return own->products ? !clb_linear_products_pay(op, n)
                       : n / op->kernel[pass]->ir.rows < 2 * op->ctx->device->limits.units;
}

/* What has a row for each row of x. */
static clb_status run_rows(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operands,
                           int count) {
  const linear_parts *own = op->parts;
  if (clb_linear_has_few(op, pass, n))
    return clb_linear_few_run(own->few, pass, n, operands, count);
  return own->products ? clb_linear_products_rows(own->products, &op->problem, pass, n, operands)
                       : clb_op_run_rows(op, CLB_LINEAR, pass, n, operands, count);
}

/* Of an op that may have no kernels. */
static clb_status check_rows(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operands,
                             int count) {
  const linear_parts *own = op->problem.kind == CLB_LINEAR ? op->parts : NULL;
  clb_status s = CLB_OK;
  if (!own || !own->products) return clb_op_check_rows(op, CLB_LINEAR, pass, n, operands, count);
  for (int i = 0; i < count && !s; i++) s = clb_op_check_operand(op, pass, n, &operands[i]);
  return s;
}

clb_status clb_linear_run(clb_op *op, clb_pass pass, int64_t n, const clb_rows *rows) {
  clb_operand operands[CLB_MAX_OPERANDS] = {{.name = NULL}};
  if (!op) return clb_op_null(CLB_LINEAR, pass);
  const int count =
      op->problem.kind == CLB_LINEAR ? clb_linear_operands(&op->problem, pass, rows, operands) : 0;
  clb_status s = check_rows(op, pass, n, operands, count);
  if (!s) s = check_weights(op, pass, n, operands, count);
  if (s) return s;
  const linear_parts *own = op->parts;
  if (own->by_rows & CLB_PASS_BIT(pass)) s = run_rows(op, pass, n, operands, count);
  if (!s && pass && own->sums) s = run_weights(op, pass, n, operands, count);
  if (!s && pass && own->products && op->problem.linear.gradients & CLB_OPERAND_W)
    s = clb_linear_products_weights(own->products, &op->problem, pass, n, operands);
  return s;
}
