/* kernels/tensor_product/host/shared_weights.c - tensor products with one row of weights for all
   rows. Paths whose weights mix channels are computed as matrix products where that pays off: with
   the pairs t = C x y (a product of mode uvuv, uuu or uvu<v without weights, `pairs`) rows of z are
   t W, those of the gradient of t are g W^T, and the gradient of W is t^T g, for each component.
   The other paths
   (`rest`, or the op itself) run as if every row had its own weights; gradients of the weights go
   to a workspace, for a block of rows at a time, and are summed over rows in a fixed order. */
#include "kernels/tensor_product/host/shared_weights.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/tensor_product/modes.h"
#include "kernels/linear/host/matmul.h"

/* One path as a matrix product: pairs [rows][components][q] times weights [q][w]. */
typedef struct {
  int64_t q, w, components, at_pairs, at_z, weight_at;
  bool first; /* the first path that contributes to its term of z */
} mixing_path;

typedef struct {
  clb_op *sum;      /* sums gradients of weights over rows; for paths that do not mix channels */
  clb_buffer *rows; /* rows of the gradients: [outputs][chunk][W] */
  clb_op *rest;     /* the paths that are not matrix products; NULL: none */
  clb_op *third;    /* all paths, for the triple backward pass; NULL: not requested */
  clb_op *pairs, *back[2]; /* computes t; compute gradients of x and y, overwriting or adding */
  clb_op *product;
  clb_buffer *t[4]; /* [chunk][pairs] */
  int64_t chunk, n_pairs;
  int n_paths;
  mixing_path path[CLB_MAX_PATHS];
} clb_shared_weights;

static void destroy_parts(clb_op *op);

static void give_parts(clb_op *op, clb_shared_weights *w) {
  op->parts = w;
  op->destroy_parts = w ? destroy_parts : NULL;
}

enum { MIN_CHANNELS = 8 }; /* with fewer, a matrix product costs more than it saves */

/* Number of rows of `bytes` each in a workspace: on a CPU as many as stay in cache, on a GPU enough
   to fill the device. */
static int64_t chunk_of(const clb_context *ctx, int64_t bytes) {
  int64_t capacity = ctx->device->limits.simd ? INT64_C(4) << 20 : INT64_C(256) << 20,
          rows = bytes ? capacity / bytes : 1;
  return rows < 1 ? 1 : rows > 65536 ? 65536 : rows;
}

/* ---- as if all rows had their own weights ---- */

static int count_weight_outputs(clb_pass pass) {
  return pass == CLB_FORWARD ? 0 : pass == CLB_TRIPLE_BACKWARD ? 2 : 1;
}

static clb_status create_summed(clb_context *ctx, const clb_problem *p, unsigned passes,
                                bool partly, const clb_tuner *tuner, clb_op **op) {
  int64_t W = p->tensor_product.n_weights;
  clb_status s = clb_op_create(ctx, p, passes, tuner, op);
  if (s || !W || !(p->tensor_product.gradients & CLB_OPERAND_W) || !(passes >> CLB_BACKWARD))
    return s;
  int64_t outputs = passes & CLB_PASS_BIT(CLB_TRIPLE_BACKWARD) ? 2 : 1,
          row = W * clb_dtype_bytes(p->storage);
  clb_shared_weights *w = calloc(1, sizeof *w);
  give_parts(*op, w);
  if (!w) s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "tensor_product: no memory");
  if (!s) w->chunk = chunk_of(ctx, row * outputs);
  if (!s && ctx->device->info.runs)
    s = clb_buffer_create(ctx, (uint64_t)(row * outputs * w->chunk), &w->rows);
  if (!s)
    s = clb_column_sum_create(ctx, (clb_dtype)p->storage, (clb_dtype)p->arithmetic, W, w->chunk,
                              &w->sum);
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

/* Operand o from row `first` on. */
static clb_operand rows_from(const clb_operand *o, int64_t first) {
  clb_operand r = *o;
  if (o->one_row) return r;
  if (o->indexed) r.index_first += first;
  else r.rows.offset += first * clb_operand_stride(o);
  return r;
}

static clb_status run_summed(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operands,
                             int n_operands) {
  clb_shared_weights *w = op->parts;
  clb_operand part[CLB_MAX_OPERANDS];
  clb_status s = CLB_OK;
  int64_t W = op->problem.tensor_product.n_weights;
  if (!w || !count_weight_outputs(pass))
    return clb_op_run_rows(op, CLB_TENSOR_PRODUCT, pass, n, operands, n_operands);
  s = clb_op_check_rows(op, CLB_TENSOR_PRODUCT, pass, n, operands, n_operands);
  for (int64_t first = 0; (first < n || !first) && !s; first += w->chunk) {
    int64_t rows = n - first < w->chunk ? n - first : w->chunk, output = 0;
    for (int i = 0; i < n_operands; i++) {
      part[i] = rows_from(&operands[i], first);
      if (!operands[i].written || !operands[i].one_row) continue;
      part[i].rows = (clb_rows){w->rows, output++ * w->chunk * W, W, NULL};
      part[i].one_row = false;
    }
    s = clb_op_run_rows(op, CLB_TENSOR_PRODUCT, pass, rows, part, n_operands);
    for (int i = 0; i < n_operands && !s; i++) {
      if (!operands[i].written || !operands[i].one_row || !operands[i].columns) continue;
      s = clb_column_sum_run(w->sum, rows, &w->rows->memory, part[i].rows.offset, W,
                             &operands[i].rows.buffer->memory, operands[i].rows.offset,
                             first || op->problem.accumulate);
    }
  }
  return s;
}

/* ---- matrix products ---- */

static bool is_mixing(const clb_problem *p, const clb_path *path) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  bool mixes = clb_mode_mixes(path->mode), plain = p->storage == p->arithmetic;
  const clb_term *x = &tp->x.term[path->in1], *y = &tp->y.term[path->in2],
                 *z = &tp->z.term[path->out];
  bool columns =
      tp->layout_z == CLB_IR_MUL || !z->l; /* otherwise the channels of z are not contiguous */
  return mixes && plain && path->has_weight && columns && z->mul >= MIN_CHANNELS &&
         (int64_t)x->mul * y->mul >= MIN_CHANNELS;
}

/* The pairs of the mixing paths, each as its own term in layout ir_mul; false: they do not fit. */
static bool make_pairs(const clb_problem *p, clb_problem *pairs, clb_shared_weights *w) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  clb_tensor_product_problem *to = &pairs->tensor_product;
  bool reached[CLB_MAX_TERMS] = {false};
  int64_t at = 0;
  *pairs = *p;
  memset(&to->z, 0, sizeof to->z);
  memset(to->path, 0, sizeof to->path);
  to->n_paths = to->n_weights = to->shared_weights = 0;
  to->layout_z = CLB_IR_MUL;
  to->indexed &= CLB_OPERAND_X | CLB_OPERAND_Y;
  for (int i = 0; i < tp->n_paths; i++) {
    const clb_path *q = &tp->path[i];
    if (!is_mixing(p, q)) continue;
    const clb_term *z = &tp->z.term[q->out];
    int64_t mul = clb_path_weights(tp, q) / z->mul, width = 2 * z->l + 1;
    if (at + mul * width > INT32_MAX) return false;
    int mode = q->mode == CLB_UVW   ? CLB_UVUV
               : q->mode == CLB_UUW ? CLB_UUU
                                    : CLB_UVU_HALF,
        term = to->z.n++;
    to->z.term[term] =
        (clb_term){.mul = (int32_t)mul, .l = z->l, .parity = z->parity, .at = (int32_t)at};
    to->path[to->n_paths++] = (clb_path){q->in1, q->in2, term, mode, 0, 0, q->coefficient};
    w->path[w->n_paths++] =
        (mixing_path){mul, z->mul, width, at, z->at, q->weight_at, !reached[q->out]};
    reached[q->out] = true;
    at += mul * width;
  }
  to->z.dim = (int32_t)(w->n_pairs = at);
  return true;
}

/* The remainder: the other paths, or the zeros of terms that no mixing path reaches. Returns
   whether there is any. */
static bool make_rest(const clb_problem *p, clb_problem *rest) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  clb_tensor_product_problem *to = &rest->tensor_product;
  bool reached[CLB_MAX_TERMS] = {false}, some = false;
  *rest = *p;
  memset(to->path, 0, sizeof to->path);
  to->n_paths = 0;
  for (int i = 0; i < tp->n_paths; i++) {
    const clb_path *q = &tp->path[i];
    if (is_mixing(p, q)) reached[q->out] = true;
    else to->path[to->n_paths++] = *q;
  }
  for (int t = 0; t < tp->z.n; t++) some |= !reached[t] && tp->z.term[t].mul;
  return to->n_paths || (some && !p->accumulate);
}

static clb_status create_parts(clb_context *ctx, const clb_problem *p, unsigned passes,
                               const clb_tuner *tuner, clb_problem *part, clb_shared_weights *w) {
  clb_status s = CLB_OK;
  int32_t xy = p->tensor_product.gradients & (CLB_OPERAND_X | CLB_OPERAND_Y),
          incoming = p->tensor_product.incoming & (CLB_OPERAND_X | CLB_OPERAND_Y);
  unsigned twice = incoming ? passes & CLB_PASS_BIT(CLB_DOUBLE_BACKWARD) : 0,
           upto = passes & ~CLB_PASS_BIT(CLB_TRIPLE_BACKWARD);
  if (make_rest(p, part) && upto) s = create_summed(ctx, part, upto, true, tuner, &w->rest);
  if (!s && passes & CLB_PASS_BIT(CLB_TRIPLE_BACKWARD))
    s = create_summed(ctx, p, CLB_PASS_BIT(CLB_TRIPLE_BACKWARD), false, tuner, &w->third);
  if (s || !upto) return s;
  w->n_paths = 0;
  make_pairs(p, part, w);
  part->accumulate = 0;
  part->tensor_product.incoming = incoming;
  part->tensor_product.gradients = CLB_OPERAND_Z;
  s = clb_op_create(ctx, part, CLB_PASS_BIT(CLB_FORWARD) | twice, tuner, &w->pairs);
  for (int add = 0; add < 2 && !s && xy && upto >> CLB_BACKWARD; add++) {
    unsigned back = CLB_PASS_BIT(CLB_BACKWARD) | twice;
    if (!add && (p->accumulate || w->rest)) continue; /* there is something to add to */
    part->accumulate = add;
    part->tensor_product.gradients = xy;
    s = clb_op_create(ctx, part, back, tuner, &w->back[add]);
  }
  if (!s) s = clb_gemm_create(ctx, (clb_dtype)p->arithmetic, &w->product);
  int arrays = upto & CLB_PASS_BIT(CLB_DOUBLE_BACKWARD) ? 4
               : upto & CLB_PASS_BIT(CLB_BACKWARD)      ? 2
                                                        : 1;
  w->chunk = chunk_of(ctx, w->n_pairs * arrays * clb_dtype_bytes(p->storage));
  for (int i = 0; i < arrays && !s && ctx->device->info.runs; i++)
    s = clb_buffer_create(ctx, (uint64_t)(w->n_pairs * w->chunk * clb_dtype_bytes(p->storage)),
                          &w->t[i]);
  return s;
}

clb_status clb_shared_weights_create(clb_context *ctx, const clb_problem *problem, unsigned passes,
                                     const clb_tuner *tuner, clb_op **op) {
  clb_problem *part = malloc(sizeof *part);
  clb_shared_weights *w = calloc(1, sizeof *w);
  clb_status s =
      part && w ? CLB_OK : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "tensor_product: no memory");
  if (!s && (!make_pairs(problem, part, w) || !w->n_paths)) {
    s = create_summed(ctx, problem, passes, false, tuner, op);
    goto done;
  }
  if (!s && !passes) s = clb_op_check(ctx, problem, passes); /* sets the error */
  if (!s) s = clb_op_new(ctx, problem, op);
  if (s) goto done;
  give_parts(*op, w);
  s = create_parts(ctx, problem, passes, tuner, part, w);
  for (int pass = 0; pass < CLB_PASSES && !s; pass++) { /* kernels shown by clb_op_source and the
                                                           like */
    const clb_op *shown = pass == CLB_TRIPLE_BACKWARD ? w->third
                          : pass == CLB_FORWARD       ? w->pairs
                          : w->back[1]                ? w->back[1]
                                                      : w->pairs;
    if (!(passes & CLB_PASS_BIT(pass)) || !shown) continue;
    int of = shown->kernel[pass] ? pass : CLB_FORWARD;
    if (of != pass) shown = w->pairs;
    (*op)->kernel[pass] = shown->kernel[of];
    (*op)->choice[pass] = shown->choice[of];
  }
  w = NULL;
  if (s) clb_op_destroy(op);
done:
  free(w);
  free(part);
  return s;
}

static void destroy_parts(clb_op *op) {
  clb_shared_weights *w = op->parts;
  if (!w) return;
  clb_op *ops[] = {w->sum, w->rest, w->third, w->pairs, w->back[0], w->back[1], w->product};
  for (int i = 0; i < 7; i++) clb_op_destroy(&ops[i]);
  for (int i = 0; i < 4; i++) clb_buffer_destroy(&w->t[i]);
  clb_buffer_destroy(&w->rows);
  free(w);
}

/* ---- running matrix products ---- */

typedef struct {
  clb_op *op;
  clb_shared_weights *w;
  int64_t rows; /* rows in the chunk */
} run;

/* The stride of a single row is irrelevant, but must be long enough. */
static int64_t leading(const run *r, const clb_operand *z) {
  return r->rows > 1 ? clb_operand_stride(z) : z->columns;
}

/* z (+)= t W */
static clb_status times_weights(run *r, int t, const clb_operand *weights, const clb_operand *z,
                                bool add) {
  clb_status s = CLB_OK;
  for (int i = 0; i < r->w->n_paths && !s; i++) {
    const mixing_path *p = &r->w->path[i];
    s = clb_gemm_run(r->w->product,
                     &(clb_gemm_desc){.m = r->rows,
                                      .n = p->w,
                                      .k = p->q,
                                      .count = p->components,
                                      .add = add || !p->first,
                                      .a = &r->w->t[t]->memory,
                                      .offset_a = p->at_pairs,
                                      .ld_a = r->w->n_pairs,
                                      .stride_a = p->q,
                                      .b = &weights->rows.buffer->memory,
                                      .offset_b = weights->rows.offset + p->weight_at,
                                      .ld_b = p->w,
                                      .c = &z->rows.buffer->memory,
                                      .offset_c = z->rows.offset + p->at_z,
                                      .ld_c = leading(r, z),
                                      .stride_c = p->w});
  }
  return s;
}

/* t = g W^T */
static clb_status times_transposed(run *r, const clb_operand *g, const clb_operand *weights,
                                   int t) {
  clb_status s = CLB_OK;
  for (int i = 0; i < r->w->n_paths && !s; i++) {
    const mixing_path *p = &r->w->path[i];
    s = clb_gemm_run(r->w->product,
                     &(clb_gemm_desc){.m = r->rows,
                                      .n = p->q,
                                      .k = p->w,
                                      .count = p->components,
                                      .transpose_b = true,
                                      .a = &g->rows.buffer->memory,
                                      .offset_a = g->rows.offset + p->at_z,
                                      .ld_a = leading(r, g),
                                      .stride_a = p->w,
                                      .b = &weights->rows.buffer->memory,
                                      .offset_b = weights->rows.offset + p->weight_at,
                                      .ld_b = p->w,
                                      .c = &r->w->t[t]->memory,
                                      .offset_c = p->at_pairs,
                                      .ld_c = r->w->n_pairs,
                                      .stride_c = p->q});
  }
  return s;
}

/* g_w (+)= t^T g; `rows` may be 0. */
static clb_status weight_gradient(run *r, int t, const clb_operand *g, int64_t rows,
                                  const clb_operand *g_w, bool add) {
  clb_status s = CLB_OK;
  for (int i = 0; i < r->w->n_paths && !s; i++) {
    const mixing_path *p = &r->w->path[i];
    for (int64_t c = 0; c < p->components && !s; c++)
      s = clb_gemm_run(r->w->product,
                       &(clb_gemm_desc){.m = p->q,
                                        .n = p->w,
                                        .k = rows,
                                        .count = 1,
                                        .transpose_a = true,
                                        .add = add || c,
                                        .a = &r->w->t[t]->memory,
                                        .offset_a = p->at_pairs + c * p->q,
                                        .ld_a = r->w->n_pairs,
                                        .b = &g->rows.buffer->memory,
                                        .offset_b = g->rows.offset + p->at_z + c * p->w,
                                        .ld_b = leading(r, g),
                                        .c = &g_w->rows.buffer->memory,
                                        .offset_c = g_w->rows.offset + p->weight_at,
                                        .ld_c = p->w});
  }
  return s;
}

static const clb_operand nothing = {.name = "nothing"};

static clb_operand pairs_operand(const run *r, int t, bool written) {
  return (clb_operand){.name = "pairs",
                       .rows = {r->w->t[t], 0, CLB_DENSE, NULL},
                       .columns = r->w->n_pairs,
                       .written = written};
}

static clb_status run_pairs(run *r, const clb_operand *x, const clb_operand *y, int t) {
  clb_operand o[] = {*x, *y, nothing, pairs_operand(r, t, true)};
  return clb_op_run_rows(r->w->pairs, CLB_TENSOR_PRODUCT, CLB_FORWARD, r->rows, o, 4);
}

static clb_status run_back(run *r, bool add, const clb_operand *x, const clb_operand *y, int t,
                           const clb_operand *g_x, const clb_operand *g_y) {
  clb_operand o[] = {*x, *y, nothing, pairs_operand(r, t, false), *g_x, *g_y, nothing};
  return clb_op_run_rows(r->w->back[add], CLB_TENSOR_PRODUCT, CLB_BACKWARD, r->rows, o, 7);
}

static clb_status forward(run *r, const clb_operand *o, bool add) {
  clb_status s = run_pairs(r, &o[0], &o[1], 0);
  return s ? s : times_weights(r, 0, &o[2], &o[3], add);
}

/* o: x y w g g_x g_y g_w */
static clb_status backward(run *r, const clb_operand *o, bool add, bool add_w) {
  int gradients = r->op->problem.tensor_product.gradients;
  clb_status s = CLB_OK;
  if (gradients & (CLB_OPERAND_X | CLB_OPERAND_Y)) {
    s = times_transposed(r, &o[3], &o[2], 0);
    if (!s) s = run_back(r, add, &o[0], &o[1], 0, &o[4], &o[5]);
  }
  if (s || !(gradients & CLB_OPERAND_W)) return s;
  s = run_pairs(r, &o[0], &o[1], 1);
  return s ? s : weight_gradient(r, 1, &o[3], r->rows, &o[6], add_w);
}

/* o: x y w g a b c d_x d_y d_w d_g; t' = C a y + C x b */
static clb_status double_backward(run *r, const clb_operand *o, bool add, bool add_w) {
  const clb_tensor_product_problem *tp = &r->op->problem.tensor_product;
  bool ab = tp->incoming & (CLB_OPERAND_X | CLB_OPERAND_Y), c = tp->incoming & CLB_OPERAND_W;
  clb_status s = CLB_OK;
  if (tp->gradients & (CLB_OPERAND_X | CLB_OPERAND_Y)) {
    clb_operand back[] = {o[0], o[1],    nothing, pairs_operand(r, 2, false),
                          o[4], o[5],    nothing, o[7],
                          o[8], nothing, nothing};
    if (ab) s = times_transposed(r, &o[3], &o[2], 2);
    if (ab && !s)
      s = clb_op_run_rows(r->w->back[add], CLB_TENSOR_PRODUCT, CLB_DOUBLE_BACKWARD, r->rows, back,
                          11);
    if (c && !s) s = times_transposed(r, &o[3], &o[6], 3);
    if (c && !s) s = run_back(r, add || ab, &o[0], &o[1], 3, &o[7], &o[8]);
  }
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
    s = weight_gradient(r, 1, &o[3], ab ? r->rows : 0, &o[9], add_w);
  if (s || !(tp->gradients & CLB_OPERAND_Z)) return s;
  if (ab) s = times_weights(r, 1, &o[2], &o[10], add);
  if (c && !s) s = run_pairs(r, &o[0], &o[1], 0);
  return s || !c ? s : times_weights(r, 0, &o[6], &o[10], add || ab);
}

/* Rows at a time: if the rows of an operand overlap (CLB_SAME_ROW), they do not form a matrix. */
static int64_t chunk_for(const clb_shared_weights *w, const clb_operand *operands, int n_operands,
                         int Z) {
  for (int i = 0; i < n_operands; i++)
    if (operands[i].columns == Z && !operands[i].one_row && clb_operand_stride(&operands[i]) < Z)
      return 1;
  return w->chunk;
}

static clb_status run_products(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operands,
                               int n_operands) {
  clb_shared_weights *w = op->parts;
  clb_operand part[CLB_MAX_OPERANDS];
  bool add = op->problem.accumulate || w->rest;
  int64_t chunk = chunk_for(w, operands, n_operands, op->problem.tensor_product.z.dim);
  clb_status s = clb_op_check_rows(op, CLB_TENSOR_PRODUCT, pass, n, operands, n_operands);
  if (!s && w->rest) s = run_summed(w->rest, pass, n, operands, n_operands);
  for (int64_t first = 0; (first < n || !first) && !s; first += chunk) {
    run r = {op, w, n - first < chunk ? n - first : chunk};
    for (int i = 0; i < 4 && w->t[i]; i++) clb_workspace_discard(op->ctx, &w->t[i]->memory);
    for (int i = 0; i < n_operands; i++) part[i] = rows_from(&operands[i], first);
    if (pass == CLB_FORWARD) s = forward(&r, part, add);
    else s = (pass == CLB_BACKWARD ? backward : double_backward)(&r, part, add, add || first);
  }
  return s;
}

clb_status clb_shared_weights_run(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operands,
                                  int n_operands) {
  clb_shared_weights *w = op->parts;
  if (w && w->product && pass != CLB_TRIPLE_BACKWARD)
    return run_products(op, pass, n, operands, n_operands);
  return run_summed(w && w->third ? w->third : op, pass, n, operands, n_operands);
}
