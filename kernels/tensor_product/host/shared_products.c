/* kernels/tensor_product/host/shared_products.c - running matrix products: chunks of rows, and the
   passes made of pairs and products. */
#include "kernels/tensor_product/host/shared_parts.h"

int64_t clb_chunk_rows(const clb_context *ctx, int64_t bytes) {
  int64_t capacity = ctx->device->limits.simd ? INT64_C(4) << 20 : INT64_C(256) << 20,
          rows = bytes ? capacity / bytes : 1;
  return rows < 1 ? 1 : rows > 65536 ? 65536 : rows;
}

clb_operand clb_rows_from(const clb_operand *o, int64_t first) {
  clb_operand r = *o;
  if (o->one_row) return r;
  if (o->indexed) r.index_first += first;
  else r.rows.offset += first * clb_operand_stride(o);
  return r;
}

/* ---- operands of a chunk ---- */

typedef struct {
  clb_op *op;
  const clb_shared_products *w;
  int64_t rows; /* rows in the chunk */
} run;

/* The stride of a single row is irrelevant, but must be long enough. */
static clb_row_place place_of(const run *r, const clb_operand *o) {
  return (clb_row_place){&o->rows.buffer->memory, o->rows.offset,
                         r->rows > 1 ? clb_operand_stride(o) : o->columns};
}

static clb_row_place in_buffer(const clb_buffer *b, int64_t stride) {
  return (clb_row_place){&b->memory, 0, stride};
}

/* Rows of z, or of a gradient by it, in the order that matrix products need. */
static clb_row_place inner_z(const run *r, enum clb_z_copy copy, const clb_operand *z) {
  return r->w->columns ? in_buffer(r->w->z[copy], r->w->n_z) : place_of(r, z);
}

/* The row of weights, or of what comes in by it. */
static clb_row_place inner_weights(const run *r, enum clb_weight_copy copy, const clb_operand *w) {
  return r->w->packed[copy] ? in_buffer(r->w->packed[copy], 0)
                            : (clb_row_place){&w->rows.buffer->memory, w->rows.offset, 0};
}

static clb_status fetch_g(const run *r, const clb_operand *g) {
  return r->w->columns ? clb_column_moves_in(r->w->columns, r->rows, place_of(r, g),
                                             in_buffer(r->w->z[CLB_COPY_OF_G], r->w->n_z))
                       : CLB_OK;
}

static clb_status give_z(const run *r, const clb_operand *z, bool add) {
  return r->w->columns ? clb_column_moves_out(r->w->columns, r->rows,
                                              in_buffer(r->w->z[CLB_COPY_OF_Z], r->w->n_z), 1, 0,
                                              place_of(r, z), add)
                       : CLB_OK;
}

/* ---- matrix products ---- */

/* z (+)= t W */
static clb_status times_weights(const run *r, int t, clb_row_place weights, clb_row_place z,
                                bool add) {
  clb_status s = CLB_OK;
  for (int i = 0; i < r->w->n_products && !s; i++) {
    const clb_mixing_product *p = &r->w->product[i];
    s = clb_gemm_run(r->w->gemm, &(clb_gemm_desc){.m = r->rows,
                                                  .n = p->w,
                                                  .k = p->q,
                                                  .count = p->components,
                                                  .add = add || !p->first,
                                                  .a = &r->w->t[t]->memory,
                                                  .offset_a = p->at_pairs,
                                                  .ld_a = r->w->n_pairs,
                                                  .stride_a = p->apart,
                                                  .b = weights.memory,
                                                  .offset_b = weights.offset + p->weight_at,
                                                  .ld_b = p->weight_stride,
                                                  .c = z.memory,
                                                  .offset_c = z.offset + p->at_z,
                                                  .ld_c = z.stride,
                                                  .stride_c = p->w});
  }
  return s;
}

/* t = g W^T */
static clb_status times_transposed(const run *r, clb_row_place g, clb_row_place weights, int t) {
  clb_status s = CLB_OK;
  for (int i = 0; i < r->w->n_products && !s; i++) {
    const clb_mixing_product *p = &r->w->product[i];
    s = clb_gemm_run(r->w->gemm, &(clb_gemm_desc){.m = r->rows,
                                                  .n = p->q,
                                                  .k = p->w,
                                                  .count = p->components,
                                                  .transpose_b = true,
                                                  .a = g.memory,
                                                  .offset_a = g.offset + p->at_z,
                                                  .ld_a = g.stride,
                                                  .stride_a = p->w,
                                                  .b = weights.memory,
                                                  .offset_b = weights.offset + p->weight_at,
                                                  .ld_b = p->weight_stride,
                                                  .c = &r->w->t[t]->memory,
                                                  .offset_c = p->at_pairs,
                                                  .ld_c = r->w->n_pairs,
                                                  .stride_c = p->apart});
  }
  return s;
}

/* `count` rows of `to`, `apart` from each other: t^T g of so many slices of rows, from `first`
   on. */
static clb_status products_of_slices(const run *r, int t, clb_row_place g, int64_t first,
                                     int64_t rows, int64_t count, clb_row_place to, bool add) {
  clb_status s = CLB_OK;
  for (int i = 0; i < r->w->n_products && !s; i++) {
    const clb_mixing_product *p = &r->w->product[i];
    for (int64_t c = 0; c < p->components && !s; c++)
      s = clb_gemm_run(
          r->w->gemm,
          &(clb_gemm_desc){.m = p->q,
                           .n = p->w,
                           .k = rows,
                           .count = count,
                           .transpose_a = true,
                           .add = add || c,
                           .a = &r->w->t[t]->memory,
                           .offset_a = first * r->w->n_pairs + p->at_pairs + c * p->apart,
                           .ld_a = r->w->n_pairs,
                           .stride_a = rows * r->w->n_pairs,
                           .b = g.memory,
                           .offset_b = g.offset + first * g.stride + p->at_z + c * p->w,
                           .ld_b = g.stride,
                           .stride_b = rows * g.stride,
                           .c = to.memory,
                           .offset_c = to.offset + p->weight_at,
                           .ld_c = p->weight_stride,
                           .stride_c = to.stride});
  }
  return s;
}

enum { ROWS_OF_A_SLICE = 64 };

/* As many slices as there may be, rather fewer if they divide the rows. */
static int64_t count_slices(const clb_shared_products *w, int64_t rows) {
  int64_t most = rows / ROWS_OF_A_SLICE;
  if (most > w->slices) most = w->slices;
  return most < 1 ? 1 : clb_even_parts(rows, most, most / 2);
}

/* g_w (+)= t^T g; `rows` may be 0. */
static clb_status weight_gradient(const run *r, int t, clb_row_place g, int64_t rows,
                                  const clb_operand *g_w, bool add) {
  const clb_row_place to = {&g_w->rows.buffer->memory, g_w->rows.offset, 0};
  if (!r->w->partial) return products_of_slices(r, t, g, 0, rows, 1, to, add);
  const int64_t slices = count_slices(r->w, rows), each = rows / slices, left = rows % slices,
                W = r->w->n_weights;
  clb_row_place sums = in_buffer(r->w->partial, W);
  clb_status s = CLB_OK;
  clb_workspace_discard(r->op->ctx, &r->w->partial->memory);
  if (each) s = products_of_slices(r, t, g, 0, each, slices, sums, false);
  sums.offset = slices * W;
  if (left && !s) s = products_of_slices(r, t, g, rows - left, left, 1, sums, false);
  sums.offset = 0;
  return s ? s
           : clb_column_moves_out(r->w->weights, 1, sums, (each ? slices : 0) + (left > 0), W, to,
                                  add);
}

/* ---- pairs ---- */

static const clb_operand nothing = {.name = "nothing"};

static clb_operand pairs_operand(const run *r, int t, bool written) {
  return (clb_operand){.name = "pairs",
                       .rows = {r->w->t[t], 0, CLB_DENSE, NULL},
                       .columns = r->w->n_pairs,
                       .written = written};
}

static clb_status run_pairs(const run *r, const clb_operand *x, const clb_operand *y, int t) {
  clb_operand o[] = {*x, *y, nothing, pairs_operand(r, t, true)};
  return clb_op_run_rows(r->w->pairs, CLB_TENSOR_PRODUCT, CLB_FORWARD, r->rows, o, 4);
}

static clb_status run_back(const run *r, bool add, const clb_operand *x, const clb_operand *y,
                           int t, const clb_operand *g_x, const clb_operand *g_y) {
  clb_operand o[] = {*x, *y, nothing, pairs_operand(r, t, false), *g_x, *g_y, nothing};
  return clb_op_run_rows(r->w->back[add], CLB_TENSOR_PRODUCT, CLB_BACKWARD, r->rows, o, 7);
}

/* ---- passes ---- */

static clb_status forward(const run *r, const clb_operand *o, bool add) {
  clb_status s = run_pairs(r, &o[0], &o[1], 0);
  if (!s)
    s = times_weights(r, 0, inner_weights(r, CLB_COPY_OF_W, &o[2]),
                      inner_z(r, CLB_COPY_OF_Z, &o[3]), add && !r->w->columns);
  return s ? s : give_z(r, &o[3], add);
}

/* o: x y w g g_x g_y g_w */
static clb_status backward(const run *r, const clb_operand *o, bool add, bool add_w) {
  int gradients = r->op->problem.tensor_product.gradients;
  const clb_row_place g = inner_z(r, CLB_COPY_OF_G, &o[3]);
  clb_status s = fetch_g(r, &o[3]);
  if (!s && gradients & (CLB_OPERAND_X | CLB_OPERAND_Y)) {
    s = times_transposed(r, g, inner_weights(r, CLB_COPY_OF_W, &o[2]), 0);
    if (!s) s = run_back(r, add, &o[0], &o[1], 0, &o[4], &o[5]);
  }
  if (s || !(gradients & CLB_OPERAND_W)) return s;
  s = run_pairs(r, &o[0], &o[1], 1);
  return s ? s : weight_gradient(r, 1, g, r->rows, &o[6], add_w);
}

/* d_x and d_y. */
static clb_status twice_back(const run *r, const clb_operand *o, clb_row_place g, bool ab, bool c,
                             bool add) {
  clb_operand back[] = {o[0], o[1],    nothing, pairs_operand(r, 2, false),
                        o[4], o[5],    nothing, o[7],
                        o[8], nothing, nothing};
  clb_status s = CLB_OK;
  if (ab) s = times_transposed(r, g, inner_weights(r, CLB_COPY_OF_W, &o[2]), 2);
  if (ab && !s)
    s = clb_op_run_rows(r->w->back[add], CLB_TENSOR_PRODUCT, CLB_DOUBLE_BACKWARD, r->rows, back,
                        11);
  if (c && !s) s = times_transposed(r, g, inner_weights(r, CLB_COPY_OF_C, &o[6]), 3);
  if (c && !s) s = run_back(r, add || ab, &o[0], &o[1], 3, &o[7], &o[8]);
  return s;
}

/* o: x y w g a b c d_x d_y d_w d_g; t' = C a y + C x b */
static clb_status double_backward(const run *r, const clb_operand *o, bool add, bool add_w) {
  const clb_tensor_product_problem *tp = &r->op->problem.tensor_product;
  const bool ab = tp->incoming & (CLB_OPERAND_X | CLB_OPERAND_Y), c = tp->incoming & CLB_OPERAND_W,
             add_z = add && !r->w->columns;
  const clb_row_place g = inner_z(r, CLB_COPY_OF_G, &o[3]);
  clb_status s = fetch_g(r, &o[3]);
  if (!s && tp->gradients & (CLB_OPERAND_X | CLB_OPERAND_Y)) s = twice_back(r, o, g, ab, c, add);
  if (!s && ab && tp->gradients & (CLB_OPERAND_W | CLB_OPERAND_Z)) {
    clb_operand twice[] = {o[0],
                           o[1],
                           nothing,
                           nothing,
                           o[4],
                           o[5],
                           nothing,
                           nothing,
                           nothing,
                           nothing,
                           pairs_operand(r, 1, true)};
    s = clb_op_run_rows(r->w->pairs, CLB_TENSOR_PRODUCT, CLB_DOUBLE_BACKWARD, r->rows, twice, 11);
  }
  if (!s && tp->gradients & CLB_OPERAND_W)
    s = weight_gradient(r, 1, g, ab ? r->rows : 0, &o[9], add_w);
  if (s || !(tp->gradients & CLB_OPERAND_Z)) return s;
  const clb_row_place d_g = inner_z(r, CLB_COPY_OF_Z, &o[10]);
  if (ab) s = times_weights(r, 1, inner_weights(r, CLB_COPY_OF_W, &o[2]), d_g, add_z);
  if (c && !s) s = run_pairs(r, &o[0], &o[1], 0);
  if (c && !s) s = times_weights(r, 0, inner_weights(r, CLB_COPY_OF_C, &o[6]), d_g, add_z || ab);
  return s ? s : give_z(r, &o[10], add);
}

/* ---- calls ---- */

/* Rows at a time: if the rows of an operand overlap (CLB_SAME_ROW), they do not form a matrix. */
static int64_t chunk_for(const clb_shared_products *w, const clb_operand *operands, int n_operands,
                         int Z) {
  for (int i = 0; i < n_operands && !w->columns; i++)
    if (operands[i].columns == Z && !operands[i].one_row && clb_operand_stride(&operands[i]) < Z)
      return 1;
  return w->chunk;
}

/* Copies of the rows of weights that are read. */
static clb_status pack(const clb_op *op, const clb_shared_products *w, clb_pass pass,
                       const clb_operand *o) {
  const clb_tensor_product_problem *tp = &op->problem.tensor_product;
  const bool read[] = {
      [CLB_COPY_OF_W] = pass != CLB_BACKWARD || tp->gradients & (CLB_OPERAND_X | CLB_OPERAND_Y),
      [CLB_COPY_OF_C] = pass == CLB_DOUBLE_BACKWARD && tp->incoming & CLB_OPERAND_W};
  clb_status s = CLB_OK;
  for (int i = 0; i < CLB_WEIGHT_COPIES && !s; i++) {
    const clb_operand *from = &o[i == CLB_COPY_OF_C ? 6 : 2];
    if (!w->packed[i] || !read[i]) continue;
    clb_workspace_discard(op->ctx, &w->packed[i]->memory);
    s = clb_column_moves_in(w->weights, 1,
                            (clb_row_place){&from->rows.buffer->memory, from->rows.offset, 0},
                            in_buffer(w->packed[i], 0));
  }
  return s;
}

static void discard(const clb_context *ctx, const clb_shared_products *w) {
  for (int i = 0; i < CLB_PAIR_ARRAYS; i++)
    if (w->t[i]) clb_workspace_discard(ctx, &w->t[i]->memory);
  for (int i = 0; i < CLB_Z_COPIES; i++)
    if (w->z[i]) clb_workspace_discard(ctx, &w->z[i]->memory);
}

clb_status clb_shared_products_run(clb_op *op, const clb_shared_products *w, clb_pass pass,
                                   int64_t n, const clb_operand *operands, int n_operands) {
  clb_operand part[CLB_MAX_OPERANDS];
  const bool add = op->problem.accumulate || w->adds;
  const int64_t chunk = chunk_for(w, operands, n_operands, op->problem.tensor_product.z.dim);
  clb_status s = pack(op, w, pass, operands);
  for (int64_t first = 0; (first < n || !first) && !s; first += chunk) {
    const run r = {op, w, n - first < chunk ? n - first : chunk};
    discard(op->ctx, w);
    for (int i = 0; i < n_operands; i++) part[i] = clb_rows_from(&operands[i], first);
    if (pass == CLB_FORWARD) s = forward(&r, part, add);
    else s = (pass == CLB_BACKWARD ? backward : double_backward)(&r, part, add, add || first);
  }
  return s;
}
