/* kernels/linear/host/products.c - see products.h. */
#include "kernels/linear/host/products.h"

#include "kernels/linear/host/matmul.h"

/* Multiply-adds of a unit of the device in the time that a product takes however small it is: an
   estimate. */
enum { WORK_OF_A_PRODUCT = 1 << 17 };

/* Forward, and backward by x, of maps whose weights are used as they are. */
static bool can(const clb_problem *p, unsigned passes) {
  const clb_linear_problem *lp = &p->linear;
  const unsigned known = CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD);
  bool can = !(passes & ~known) && lp->gradients == CLB_OPERAND_X &&
             lp->weights == CLB_LINEAR_ONE_ROW && p->storage == p->arithmetic &&
             lp->layout_in == CLB_IR_MUL && lp->layout_out == CLB_IR_MUL;
  for (int i = 0; i < lp->n_paths; i++) can &= lp->path[i].coefficient == 1;
  for (int i = 0; i < lp->out.n; i++) can &= !lp->bias[i];
  return can;
}

clb_status clb_linear_products_create(clb_context *ctx, const clb_problem *p, unsigned passes,
                                      clb_op **op) {
  *op = NULL;
  return can(p, passes) ? clb_gemm_create_library(ctx, (clb_dtype)p->storage, op) : CLB_OK;
}

bool clb_linear_products_pay(const clb_op *op, int64_t n) {
  const clb_linear_problem *lp = &op->problem.linear;
  double work = 0;
  for (int i = 0; i < lp->n_paths; i++) {
    const clb_term *in = &lp->in.term[lp->path[i].in];
    work += (double)in->mul * (2 * in->l + 1) * lp->out.term[lp->path[i].out].mul;
  }
  return work * (double)n > (double)WORK_OF_A_PRODUCT * op->ctx->device->limits.units * lp->n_paths;
}

/* A term's channels of all rows: one matrix for each component. */
typedef struct {
  const clb_operand *rows;
  const clb_term *term;
} channels;

/* One path, or with NULL zeros. */
static clb_status run_path(clb_op *products, const clb_linear_path *path, int64_t n, channels from,
                           const clb_operand *w, channels to, bool transposed, bool add) {
  const int64_t width = transposed ? from.term->mul : to.term->mul;
  return clb_gemm_run(products,
                      &(clb_gemm_desc){.m = n,
                                       .n = to.term->mul,
                                       .k = path ? from.term->mul : 0,
                                       .count = 2 * to.term->l + 1,
                                       .a = &from.rows->rows.buffer->memory,
                                       .b = &w->rows.buffer->memory,
                                       .c = &to.rows->rows.buffer->memory,
                                       .offset_a = from.rows->rows.offset + from.term->at,
                                       .ld_a = clb_operand_stride(from.rows),
                                       .stride_a = from.term->mul,
                                       .offset_b = path ? w->rows.offset + path->weight_at : 0,
                                       .ld_b = width,
                                       .offset_c = to.rows->rows.offset + to.term->at,
                                       .ld_c = clb_operand_stride(to.rows),
                                       .stride_c = to.term->mul,
                                       .transpose_b = transposed,
                                       .add = add});
}

/* Operands: x, w -> z, or x, w, g -> g_x, g_w. */
clb_status clb_linear_products_run(clb_op *products, const clb_problem *p, clb_pass pass, int64_t n,
                                   const clb_operand *operands) {
  const clb_linear_problem *lp = &p->linear;
  const clb_irreps *results = pass ? &lp->in : &lp->out, *others = pass ? &lp->out : &lp->in;
  const clb_operand *w = &operands[1];
  channels from = {.rows = &operands[pass ? 2 : 0]}, to = {.rows = &operands[pass ? 3 : 2]};
  clb_status s = CLB_OK;
  for (int t = 0; t < results->n && !s; t++) {
    bool add = p->accumulate;
    to.term = &results->term[t];
    for (int i = 0; i < lp->n_paths && !s; i++) {
      const clb_linear_path *path = &lp->path[i];
      if ((pass ? path->in : path->out) != t) continue;
      from.term = &others->term[pass ? path->out : path->in];
      s = run_path(products, path, n, from, w, to, pass, add);
      add = true;
    }
    from.term = to.term;
    if (!add && !s) s = run_path(products, NULL, n, from, w, to, false, false);
  }
  return s;
}
