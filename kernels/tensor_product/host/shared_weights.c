/* kernels/tensor_product/host/shared_weights.c - tensor products with one row of weights for all
   rows. Paths whose weights mix channels are matrix products (shared_products.h). The other paths
   (`rest`, or the op itself) run as if every row had its own weights; gradients of the weights go
   to a workspace, for a block of rows at a time, and are summed over rows in a fixed order. */
#include "kernels/tensor_product/host/shared_weights.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/linear/host/matmul.h"
#include "kernels/tensor_product/host/shared_products.h"
#include "kernels/tensor_product/product.h"
#include "src/runtime/call.h"

typedef struct {
  clb_op *sum;      /* sums gradients of weights over rows; for paths that do not mix channels */
  clb_buffer *rows; /* rows of the gradients: [outputs][chunk][columns] */
  int64_t chunk;
  clb_op *rest;    /* the paths that are not matrix products; NULL: none */
  clb_op *by_rows; /* all paths, for passes without matrix products; NULL: none is requested */
  clb_shared_products *products; /* NULL: none */
  unsigned passes;               /* bits of those that they make */
} clb_shared_weights;

static void destroy_parts(clb_op *op) {
  clb_shared_weights *w = op->parts;
  if (!w) return;
  clb_op **ops[] = {&w->sum, &w->rest, &w->by_rows};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) clb_op_destroy(ops[i]);
  clb_shared_products_destroy(&w->products);
  clb_buffer_destroy(&w->rows);
  free(w);
}

static void give_parts(clb_op *op, clb_shared_weights *w) {
  op->parts = w;
  op->destroy_parts = w ? destroy_parts : NULL;
}

/* ---- as if all rows had their own weights ---- */

static int count_weight_outputs(clb_pass pass) {
  return pass == CLB_FORWARD ? 0 : pass == CLB_TRIPLE_BACKWARD ? 2 : 1;
}

static clb_status create_summed(clb_context *ctx, const clb_problem *p, unsigned passes,
                                bool partly, const clb_tuner *tuner, clb_op **op) {
  int64_t columns = p->tensor_product.n_weights;
  clb_status s = clb_op_create(ctx, p, passes, tuner, op);
  if (s || !columns || !(p->tensor_product.gradients & CLB_OPERAND_W) || !(passes >> CLB_BACKWARD))
    return s;
  int64_t outputs = passes & CLB_PASS_BIT(CLB_TRIPLE_BACKWARD) ? 2 : 1,
          row = columns * clb_dtype_bytes(p->storage);
  clb_shared_weights *w = calloc(1, sizeof *w);
  give_parts(*op, w);
  if (!w) s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "tensor_product: no memory");
  if (!s) w->chunk = clb_chunk_rows(ctx, row * outputs);
  if (!s && ctx->device->info.runs)
    s = clb_buffer_create(ctx, (uint64_t)(row * outputs * w->chunk), &w->rows);
  if (!s)
    s = clb_column_sum_create(ctx, (clb_dtype)p->storage, (clb_dtype)p->arithmetic, columns,
                              w->chunk, &w->sum);
  if (!s && partly && w->rows) { /* weights of other paths, which are never written */
    size_t bytes = (size_t)(row * outputs * w->chunk);
    void *zeros = calloc(1, bytes);
    s = zeros ? clb_buffer_write(w->rows, 0, zeros, bytes)
              : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "tensor_product: no memory");
    free(zeros);
  }
  if (s) clb_op_destroy(op);
  return s;
}

/* Rows whose gradients by weights the kernel has summed. */
static int64_t summed(const clb_op *op, clb_pass pass) {
  return op->choice[pass].schedule.product.variant == CLB_VARIANT_ROWS ? op->kernel[pass]->ir.rows
                                                                       : 1;
}

static clb_status run_summed(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operands,
                             int n_operands) {
  clb_shared_weights *w = op->parts;
  clb_operand part[CLB_MAX_OPERANDS];
  clb_status s = CLB_OK;
  const int64_t columns = op->problem.tensor_product.n_weights;
  if (!w || !count_weight_outputs(pass))
    return clb_op_run_rows(op, CLB_TENSOR_PRODUCT, pass, n, operands, n_operands);
  s = clb_op_check_rows(op, CLB_TENSOR_PRODUCT, pass, n, operands, n_operands);
  for (int64_t first = 0; (first < n || !first) && !s; first += w->chunk) {
    int64_t rows = n - first < w->chunk ? n - first : w->chunk, output = 0;
    for (int i = 0; i < n_operands; i++) {
      part[i] = clb_rows_from(&operands[i], first);
      if (!operands[i].written || !operands[i].one_row) continue;
      part[i].rows = (clb_rows){w->rows, output++ * w->chunk * columns, columns, NULL};
      part[i].one_row = false;
    }
    s = clb_op_run_rows(op, CLB_TENSOR_PRODUCT, pass, rows, part, n_operands);
    for (int i = 0; i < n_operands && !s; i++) {
      if (!operands[i].written || !operands[i].one_row || !operands[i].columns) continue;
      s = clb_column_sum_run(w->sum, clb_divide_up(rows, summed(op, pass)), &w->rows->memory,
                             part[i].rows.offset, columns, &operands[i].rows.buffer->memory,
                             operands[i].rows.offset, first || op->problem.accumulate);
    }
  }
  return s;
}

/* ---- matrix products and the rest ---- */

/* The remainder: the other paths, or the zeros of terms that no product reaches. Returns whether
   there is any. */
static bool make_rest(const clb_problem *p, const bool chosen[CLB_MAX_PATHS], clb_problem *rest) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  clb_tensor_product_problem *to = &rest->tensor_product;
  bool reached[CLB_MAX_TERMS] = {false}, some = false;
  *rest = *p;
  memset(to->path, 0, sizeof to->path);
  to->n_paths = 0;
  for (int i = 0; i < tp->n_paths; i++) {
    const clb_path *q = &tp->path[i];
    if (chosen[i]) reached[q->out] = true;
    else to->path[to->n_paths++] = *q;
  }
  for (int t = 0; t < tp->z.n; t++) some |= !reached[t] && tp->z.term[t].mul;
  return to->n_paths || (some && !p->accumulate);
}

static clb_status create_parts(clb_context *ctx, const clb_problem *p,
                               const bool chosen[CLB_MAX_PATHS], unsigned passes,
                               const clb_tuner *tuner, clb_problem *part, clb_shared_weights *w) {
  const unsigned by_rows = passes & ~w->passes;
  clb_status s = CLB_OK;
  if (make_rest(p, chosen, part)) s = create_summed(ctx, part, w->passes, true, tuner, &w->rest);
  if (!s && by_rows) s = create_summed(ctx, p, by_rows, false, tuner, &w->by_rows);
  return s ? s
           : clb_shared_products_create(ctx, p, chosen, w->rest != NULL, w->passes, tuner,
                                        &w->products);
}

/* What clb_op_source and the like show. */
static void show_kernels(clb_op *op, unsigned passes) {
  const clb_shared_weights *w = op->parts;
  for (int pass = 0; pass < CLB_PASSES; pass++) {
    int of = pass;
    if (!(passes & CLB_PASS_BIT(pass))) continue;
    const clb_op *shown = w->passes & CLB_PASS_BIT(pass)
                              ? clb_shared_products_shown(w->products, (clb_pass)pass, &of)
                              : w->by_rows;
    op->kernel[pass] = shown->kernel[of];
    op->choice[pass] = shown->choice[of];
  }
}

clb_status clb_shared_weights_create(clb_context *ctx, const clb_problem *problem, unsigned passes,
                                     const clb_tuner *tuner, clb_op **op) {
  bool chosen[CLB_MAX_PATHS];
  const unsigned by_products =
      clb_shared_products_choose(&ctx->device->limits, problem, chosen) & passes;
  if (!by_products) return create_summed(ctx, problem, passes, false, tuner, op);
  clb_problem *part = malloc(sizeof *part);
  clb_shared_weights *w = calloc(1, sizeof *w);
  clb_status s =
      part && w ? CLB_OK : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "tensor_product: no memory");
  if (!s) s = clb_op_new(ctx, problem, op);
  if (!s) {
    give_parts(*op, w);
    w->passes = by_products;
    s = create_parts(ctx, problem, chosen, passes, tuner, part, w);
    w = NULL;
    if (s) clb_op_destroy(op);
    else show_kernels(*op, passes);
  }
  free(w);
  free(part);
  return s;
}

clb_status clb_shared_weights_run(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operands,
                                  int n_operands) {
  const clb_shared_weights *w = op->parts;
  if (!w || !(w->passes & CLB_PASS_BIT(pass)))
    return run_summed(w && w->by_rows ? w->by_rows : op, pass, n, operands, n_operands);
  clb_status s = clb_op_check_rows(op, CLB_TENSOR_PRODUCT, pass, n, operands, n_operands);
  if (!s && w->rest) s = run_summed(w->rest, pass, n, operands, n_operands);
  return s ? s : clb_shared_products_run(op, w->products, pass, n, operands, n_operands);
}
