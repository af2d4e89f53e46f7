/* kernels/linear/host/products.c - see products.h. */
#include "kernels/linear/host/products.h"

#include <stdlib.h>

#include "kernels/linear/host/matmul.h"

/* Gradients by weights are sums over rows, of which many parts are added up at once: their results
   alone are too small to fill a device. Parts [parts][W] are in the context's scratch. */
struct clb_linear_products {
  clb_op *product, *sum; /* sum: of the parts; NULL: there is one */
  int64_t parts;
};

/* Multiply-adds of a unit of the device for each product, from which on products are faster than
   one launch for all. */
enum { WORK_OF_A_PRODUCT = 1 << 23 };
enum { MOST_PARTS = 64, MOST_OF_A_CPU = 16, ROOM = 32 << 20, ROOM_OF_A_CPU = 8 << 20 };
enum { ROWS_OF_A_PART = 64, ROWS_OF_A_CPU = 256 }; /* no fewer than there are parts */

/* ---- creation ---- */

/* Whether the paths' weights follow each other without gaps. */
static bool contiguous(const clb_linear_problem *lp) {
  int64_t sum = 0;
  for (int i = 0; i < lp->n_paths; i++)
    sum += (int64_t)lp->in.term[lp->path[i].in].mul * lp->out.term[lp->path[i].out].mul;
  return sum == lp->n_weights;
}

/* Maps whose weights are used as they are, with one tangent at most: that of x. */
static bool can(const clb_problem *p, unsigned passes) {
  const clb_linear_problem *lp = &p->linear;
  const bool twice = passes & CLB_PASS_BIT(CLB_DOUBLE_BACKWARD);
  bool can = (!twice || lp->incoming == CLB_OPERAND_X) &&
             (!(lp->gradients & CLB_OPERAND_W) || contiguous(lp)) &&
             lp->weights == CLB_LINEAR_ONE_ROW && p->storage == p->arithmetic &&
             lp->layout_in == CLB_IR_MUL && lp->layout_out == CLB_IR_MUL;
  for (int i = 0; i < lp->n_paths; i++) can &= lp->path[i].coefficient == 1;
  for (int i = 0; i < lp->out.n; i++) can &= !lp->bias[i];
  return can;
}

static clb_status create_parts(clb_context *ctx, const clb_problem *p, clb_linear_products *x) {
  const int64_t row = p->linear.n_weights * clb_dtype_bytes(p->storage);
  const bool cpu = ctx->device->limits.simd;
  const int64_t most = cpu ? MOST_OF_A_CPU : MOST_PARTS;
  x->parts = row ? (cpu ? ROOM_OF_A_CPU : ROOM) / row : 1;
  if (x->parts > most) x->parts = most;
  if (x->parts < 2) return CLB_OK;
  clb_status s = clb_column_sum_create(ctx, (clb_dtype)p->storage, (clb_dtype)p->arithmetic,
                                       p->linear.n_weights, x->parts, &x->sum);
  return s ? s : clb_scratch_reserve(ctx, (uint64_t)(x->parts * row));
}

clb_status clb_linear_products_create(clb_context *ctx, const clb_problem *p, unsigned passes,
                                      clb_linear_products **products) {
  clb_op *product = NULL;
  *products = NULL;
  clb_status s =
      can(p, passes) ? clb_gemm_create_library(ctx, (clb_dtype)p->storage, &product) : CLB_OK;
  if (s || !product) return s;
  clb_linear_products *x = *products = calloc(1, sizeof *x);
  if (!x) {
    clb_op_destroy(&product);
    return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "linear: no memory");
  }
  x->product = product;
  if (passes & ~CLB_PASS_BIT(CLB_FORWARD) && p->linear.gradients & CLB_OPERAND_W)
    s = create_parts(ctx, p, x);
  if (s) clb_linear_products_destroy(products);
  return s;
}

void clb_linear_products_destroy(clb_linear_products **products) {
  clb_linear_products *x = *products;
  if (!x) return;
  clb_op_destroy(&x->product);
  clb_op_destroy(&x->sum);
  free(x);
  *products = NULL;
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

/* ---- results with rows ---- */

/* A term's channels of all rows: one matrix for each component. */
typedef struct {
  const clb_operand *rows;
  const clb_term *term;
} channels;

/* One path, or with NULL zeros. */
static clb_status run_path(clb_op *product, const clb_linear_path *path, int64_t n, channels from,
                           const clb_operand *w, channels to, bool transposed, bool add) {
  const int64_t width = transposed ? from.term->mul : to.term->mul;
  return clb_gemm_run(product,
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

/* to (+)= from W, or with W transposed; from NULL: zeros. */
static clb_status map_rows(clb_op *product, const clb_problem *p, int64_t n,
                           const clb_operand *from, const clb_operand *w, const clb_operand *to,
                           bool transposed) {
  const clb_linear_problem *lp = &p->linear;
  const clb_irreps *results = transposed ? &lp->in : &lp->out,
                   *others = transposed ? &lp->out : &lp->in;
  channels a = {.rows = from ? from : to}, c = {.rows = to};
  clb_status s = CLB_OK;
  for (int t = 0; t < results->n && !s; t++) {
    bool add = p->accumulate;
    c.term = &results->term[t];
    for (int i = 0; i < lp->n_paths && from && !s; i++) {
      const clb_linear_path *path = &lp->path[i];
      if ((transposed ? path->in : path->out) != t) continue;
      a.term = &others->term[transposed ? path->out : path->in];
      s = run_path(product, path, n, a, w, c, transposed, add);
      add = true;
    }
    a.term = c.term;
    if (!add && !s) s = run_path(product, NULL, n, a, w, c, transposed, false);
  }
  return s;
}

/* Operands: x, w -> z; x, w, g -> g_x, g_w; x, w, g, a, c -> d_x, d_w, d_g, of which d_x is 0, as c
   is not there. */
enum { X, W, G, Z = G, A, G_X = A, C, G_W = C, D_X, D_W, D_G };

clb_status clb_linear_products_rows(const clb_linear_products *products, const clb_problem *p,
                                    clb_pass pass, int64_t n, const clb_operand *o) {
  clb_op *product = products->product;
  if (pass == CLB_FORWARD) return map_rows(product, p, n, &o[X], &o[W], &o[Z], false);
  if (pass == CLB_BACKWARD)
    return o[G_X].columns ? map_rows(product, p, n, &o[G], &o[W], &o[G_X], true) : CLB_OK;
  clb_status s = o[D_X].columns ? map_rows(product, p, n, NULL, &o[W], &o[D_X], true) : CLB_OK;
  return s || !o[D_G].columns ? s : map_rows(product, p, n, &o[A], &o[W], &o[D_G], false);
}

/* ---- gradients by weights ---- */

/* Where sums over rows go: the parts, or the result. */
typedef struct {
  const clb_memory *to;
  int64_t offset, stride, parts, part_rows; /* stride: between parts */
  bool add;
} places;

static places places_of(const clb_linear_products *products, const clb_problem *p, int64_t n,
                        const clb_operand *result) {
  const clb_linear_problem *lp = &p->linear;
  const clb_context *ctx = products->product->ctx;
  int64_t parts = n / (ctx->device->limits.simd ? ROWS_OF_A_CPU : ROWS_OF_A_PART);
  if (parts > products->parts - 1) parts = products->parts - 1;
  parts = clb_even_parts(n, parts, parts - parts / 4); /* else rows that are left are one more */
  if (parts < 2)
    return (places){&result->rows.buffer->memory, result->rows.offset, 0, 1, n, p->accumulate};
  const int64_t rows = n / parts;
  return (places){&ctx->scratch, 0, lp->n_weights, parts + (n % parts != 0), rows, false};
}

/* Parts first ... first + count - 1, of `rows` rows each, of one path. */
static clb_status sum_parts(clb_op *product, const places *at, const clb_linear_path *path,
                            channels x, channels g, int64_t first, int64_t count, int64_t rows) {
  clb_status s = CLB_OK;
  const int64_t ld_a = clb_operand_stride(x.rows), ld_b = clb_operand_stride(g.rows);
  for (int m = 0; m <= 2 * x.term->l && !s; m++)
    s = clb_gemm_run(
        product, &(clb_gemm_desc){.m = x.term->mul,
                                  .n = g.term->mul,
                                  .k = rows,
                                  .count = count,
                                  .a = &x.rows->rows.buffer->memory,
                                  .b = &g.rows->rows.buffer->memory,
                                  .c = at->to,
                                  .offset_a = x.rows->rows.offset + first * at->part_rows * ld_a +
                                              x.term->at + (int64_t)m * x.term->mul,
                                  .ld_a = ld_a,
                                  .stride_a = at->part_rows * ld_a,
                                  .offset_b = g.rows->rows.offset + first * at->part_rows * ld_b +
                                              g.term->at + (int64_t)m * g.term->mul,
                                  .ld_b = ld_b,
                                  .stride_b = at->part_rows * ld_b,
                                  .offset_c = at->offset + first * at->stride + path->weight_at,
                                  .ld_c = g.term->mul,
                                  .stride_c = at->stride,
                                  .transpose_a = true,
                                  .add = at->add || m});
  return s;
}

clb_status clb_linear_products_weights(const clb_linear_products *products, const clb_problem *p,
                                       clb_pass pass, int64_t n, const clb_operand *o) {
  const clb_linear_problem *lp = &p->linear;
  const bool twice = pass == CLB_DOUBLE_BACKWARD;
  const clb_operand *result = &o[twice ? D_W : G_W];
  const places at = places_of(products, p, n, result);
  const int64_t whole = at.parts > 1 ? at.parts - (n % at.part_rows != 0) : 1,
                rest = n - whole * at.part_rows;
  channels x = {.rows = &o[twice ? A : X]}, g = {.rows = &o[G]};
  clb_status s = CLB_OK;
  if (!result->columns) return s;
  if (at.parts > 1) clb_workspace_discard(products->product->ctx, at.to);
  for (int i = 0; i < lp->n_paths && !s; i++) {
    const clb_linear_path *path = &lp->path[i];
    x.term = &lp->in.term[path->in];
    g.term = &lp->out.term[path->out];
    s = sum_parts(products->product, &at, path, x, g, 0, whole, at.part_rows);
    if (!s && rest) s = sum_parts(products->product, &at, path, x, g, whole, 1, rest);
  }
  if (s || at.parts < 2) return s;
  return clb_column_sum_run(products->sum, at.parts, at.to, 0, lp->n_weights,
                            &result->rows.buffer->memory, result->rows.offset, p->accumulate);
}
