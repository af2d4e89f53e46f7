/* kernels/tensor_product/host/shared_plan.c - which paths are matrix products, where their operands
   lie, and what is created for them. */
#include <stdlib.h>
#include <string.h>

#include "kernels/tensor_product/host/shared_parts.h"
#include "kernels/tensor_product/modes.h"
#include "kernels/tensor_product/product.h"
#include "src/problem/wigner.h"
#include "src/runtime/call.h"

enum {
  WORTH_A_PRODUCT = 64, /* weights of all paths to a term: with fewer, products cost more than they
                           save */
  MIN_SIDE = 16,        /* of matrices on a GPU */
  MOST_SINGLES = 64,    /* channels of y that are terms of their own, */
  SINGLES_PATHS = 256,  /* and paths, */
  SINGLES_NONZEROS = 800, /* and their non-zeros, at most */
  SMALL_PACK = 1 << 16,   /* weights that are always copied */
  FEW_PAIRS = 32,
  LARGE_PACK = 1 << 20, /* that are copied where products of one path have as few pairs as that */
  TILE = 64,
  MOST_SLICES = 64,
  ROOM = 1 << 22 /* numbers of sums of slices */
};

/* ---- choice ---- */

static bool mixes(const clb_problem *p, const clb_path *path) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  return clb_mode_mixes(path->mode) && path->has_weight && p->storage == p->arithmetic &&
         clb_path_weights(tp, path) > 0;
}

/* On a GPU products of few pairs or channels take longer than all rows one by one, and those of
   pairs in memory longer than a kernel with all weights in local memory. */
static unsigned passes_that_pay(const clb_limits *limits, const clb_problem *p,
                                const int64_t weights[CLB_MAX_TERMS]) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  int64_t all = 0, forward = 0, back = 0;
  unsigned others = 0;
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
    if (!clb_goes_by_rows(p, pass, limits)) others |= CLB_PASS_BIT(pass);
  for (int t = 0; t < tp->z.n; t++) {
    const int64_t w = tp->z.term[t].mul, pairs = w ? weights[t] / w : 0;
    all += weights[t];
    if (limits->simd || pairs >= MIN_SIDE) forward += weights[t];
    if (limits->simd || (pairs >= MIN_SIDE && w >= MIN_SIDE)) back += weights[t];
  }
  return others &
         ((2 * forward >= all ? CLB_PASS_BIT(CLB_FORWARD) : 0) |
          (2 * back >= all ? CLB_PASS_BIT(CLB_BACKWARD) | CLB_PASS_BIT(CLB_DOUBLE_BACKWARD) : 0));
}

unsigned clb_shared_products_choose(const clb_limits *limits, const clb_problem *p,
                                    bool chosen[CLB_MAX_PATHS]) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  int64_t weights[CLB_MAX_TERMS] = {0}, pairs = 0;
  bool some = false;
  for (int i = 0; i < tp->n_paths; i++)
    if (mixes(p, &tp->path[i])) weights[tp->path[i].out] += clb_path_weights(tp, &tp->path[i]);
  for (int i = 0; i < tp->n_paths; i++) {
    const clb_path *q = &tp->path[i];
    const clb_term *z = &tp->z.term[q->out];
    chosen[i] = mixes(p, q) && weights[q->out] >= WORTH_A_PRODUCT;
    some |= chosen[i];
    if (chosen[i]) pairs += clb_path_weights(tp, q) / z->mul * (2 * z->l + 1);
  }
  return some && pairs <= INT32_MAX ? passes_that_pay(limits, p, weights) : 0;
}

/* ---- plan ---- */

/* Pairs that lie side by side, with weights at equal distances. */
typedef struct {
  const clb_path *path;
  int64_t q, before, weight_at, weight_stride; /* before: pairs of the same term */
  int in2, mode;                               /* of the path of the product that computes them */
} block;

typedef struct {
  const clb_problem *p;
  const clb_tensor_product_problem *tp;
  clb_shared_products *w;
  bool singles; /* channels of y are terms of their own */
  bool packed;  /* weights are copied, in the order of pairs, and products are of terms, not of
                   blocks */
  bool moved;   /* columns of z are copied */
  int first_single[CLB_MAX_TERMS];
  int64_t pairs[CLB_MAX_TERMS], at_pairs[CLB_MAX_TERMS]; /* by term of z, as the next */
  int64_t at_weights[CLB_MAX_TERMS], n_weights;          /* in the order of pairs */
  int64_t at_z[CLB_MAX_TERMS];
  int n_blocks;
  block block[CLB_MAX_PATHS];
} plan;

/* Whether pairs can be a channel-wise product: each path for one channel u of x with one of y. */
static bool has_singles(const clb_problem *p, const bool chosen[CLB_MAX_PATHS]) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  int64_t channels = 0, paths = 0, nonzeros = 0;
  bool several = false;
  for (int t = 0; t < tp->y.n; t++) {
    const clb_term *y = &tp->y.term[t];
    channels += y->mul;
    several |= y->mul != 1;
    if (y->mul > 1 && y->l && tp->layout_y != CLB_MUL_IR) return false; /* components are apart */
  }
  for (int i = 0; i < tp->n_paths; i++) {
    const clb_path *q = &tp->path[i];
    const int64_t v = tp->y.term[q->in2].mul;
    if (!chosen[i]) continue;
    if (q->mode != CLB_UVW) return false;
    paths += v;
    nonzeros +=
        v * clb_wigner_nonzeros(tp->x.term[q->in1].l, tp->y.term[q->in2].l, tp->z.term[q->out].l);
  }
  return !several ||
         (channels <= MOST_SINGLES && paths <= SINGLES_PATHS && nonzeros <= SINGLES_NONZEROS);
}

static void add_block(plan *a, block b) {
  b.before = a->pairs[b.path->out];
  a->pairs[b.path->out] += b.q;
  a->block[a->n_blocks++] = b;
}

static void add_path(plan *a, const clb_path *path) {
  const clb_tensor_product_problem *tp = a->tp;
  const int64_t w = tp->z.term[path->out].mul, u = tp->x.term[path->in1].mul,
                V = tp->y.term[path->in2].mul;
  const int mode = path->mode == CLB_UVW   ? CLB_UVUV
                   : path->mode == CLB_UUW ? CLB_UUU
                                           : CLB_UVU_HALF;
  if (!a->singles)
    add_block(a, (block){.path = path,
                         .q = clb_path_weights(tp, path) / w,
                         .weight_at = path->weight_at,
                         .weight_stride = w,
                         .in2 = path->in2,
                         .mode = mode});
  for (int64_t v = 0; v < V && a->singles; v++)
    add_block(a, (block){.path = path,
                         .q = u,
                         .weight_at = path->weight_at + v * w,
                         .weight_stride = V * w,
                         .in2 = a->first_single[path->in2] + (int)v,
                         .mode = CLB_UVU});
}

/* Whether products of terms, with copies of weights, are better than those of blocks. */
static bool packs(const plan *a) {
  bool small = false, several = false;
  for (int i = 0; i < a->n_blocks; i++) {
    const block *b = &a->block[i];
    small |= b->q < FEW_PAIRS;
    several |= b->q < a->pairs[b->path->out];
  }
  return several && a->n_weights <= (small ? LARGE_PACK : SMALL_PACK);
}

/* In layout mul_ir components of a channel are side by side. */
static bool moves(const plan *a) {
  bool some = false;
  for (int t = 0; t < a->tp->z.n; t++) some |= a->pairs[t] && a->tp->z.term[t].l;
  return some && a->tp->layout_z == CLB_MUL_IR;
}

static void find_blocks(plan *a, const bool chosen[CLB_MAX_PATHS]) {
  clb_shared_products *w = a->w;
  a->singles = has_singles(a->p, chosen);
  for (int t = 0, singles = 0; t < a->tp->y.n; singles += a->tp->y.term[t++].mul)
    a->first_single[t] = singles;
  for (int i = 0; i < a->tp->n_paths; i++)
    if (chosen[i]) add_path(a, &a->tp->path[i]);
  a->moved = moves(a);
  for (int t = 0; t < a->tp->z.n; t++) {
    const clb_term *z = &a->tp->z.term[t];
    const int64_t width = 2 * z->l + 1;
    a->at_pairs[t] = w->n_pairs;
    a->at_weights[t] = a->n_weights;
    a->at_z[t] = a->moved ? w->n_z : z->at;
    w->n_pairs += a->pairs[t] * width;
    a->n_weights += a->pairs[t] * z->mul;
    if (a->pairs[t]) w->n_z += z->mul * width;
  }
  a->packed = packs(a);
  w->n_weights = a->packed ? a->n_weights : a->tp->n_weights;
}

/* Each channel of y as a term. */
static void make_singles(const clb_tensor_product_problem *tp, clb_irreps *y) {
  y->n = 0;
  memset(y->term, 0, sizeof y->term);
  for (int t = 0; t < tp->y.n; t++) {
    const clb_term *from = &tp->y.term[t];
    for (int v = 0; v < from->mul; v++)
      y->term[y->n++] = (clb_term){
          .mul = 1, .l = from->l, .parity = from->parity, .at = from->at + v * (2 * from->l + 1)};
  }
}

/* The product that computes pairs, as terms in layout ir_mul: those of a term of z are one array
   for each component. */
static void make_pairs(const plan *a, clb_problem *pairs) {
  clb_tensor_product_problem *to = &pairs->tensor_product;
  *pairs = *a->p;
  memset(&to->z, 0, sizeof to->z);
  memset(to->path, 0, sizeof to->path);
  to->n_paths = a->n_blocks;
  to->n_weights = to->shared_weights = 0;
  to->layout_z = CLB_IR_MUL;
  to->indexed &= CLB_OPERAND_X | CLB_OPERAND_Y;
  if (a->singles) make_singles(a->tp, &to->y);
  for (int i = 0; i < a->n_blocks; i++) {
    const block *b = &a->block[i];
    const clb_term *z = &a->tp->z.term[b->path->out];
    to->z.term[to->z.n++] = (clb_term){.mul = (int32_t)b->q,
                                       .l = z->l,
                                       .parity = z->parity,
                                       .at = (int32_t)(a->at_pairs[b->path->out] + b->before),
                                       .component_stride = (int32_t)a->pairs[b->path->out]};
    to->path[i] = (clb_path){b->path->in1, b->in2, i, b->mode, 0, 0, b->path->coefficient};
  }
  to->z.dim = (int32_t)a->w->n_pairs;
}

/* ---- matrix products ---- */

static void make_products(const plan *a) {
  clb_shared_products *w = a->w;
  bool reached[CLB_MAX_TERMS] = {false};
  for (int i = 0; i < a->n_blocks; i++) {
    const block *b = &a->block[i];
    const int t = b->path->out;
    const clb_term *z = &a->tp->z.term[t];
    if (!a->packed || !reached[t])
      w->product[w->n_products++] =
          (clb_mixing_product){.q = a->packed ? a->pairs[t] : b->q,
                               .w = z->mul,
                               .components = 2 * z->l + 1,
                               .at_pairs = a->at_pairs[t] + (a->packed ? 0 : b->before),
                               .apart = a->pairs[t],
                               .at_z = a->at_z[t],
                               .weight_at = a->packed ? a->at_weights[t] : b->weight_at,
                               .weight_stride = a->packed ? z->mul : b->weight_stride,
                               .first = !reached[t]};
    reached[t] = true;
  }
}

/* Rows are cut into slices where the gradients by weights of all rows would not fill the device. */
static int64_t count_slices(const clb_context *ctx, const clb_shared_products *w) {
  int64_t most = 1;
  for (int i = 0; i < w->n_products; i++) {
    const clb_mixing_product *p = &w->product[i];
    const int64_t tiles = clb_divide_up(p->q, TILE) * clb_divide_up(p->w, TILE),
                  slices = 2 * (int64_t)ctx->device->limits.units / tiles;
    if (slices > most) most = slices;
  }
  if (most > MOST_SLICES) most = MOST_SLICES;
  if (most * w->n_weights > ROOM) most = ROOM / w->n_weights;
  return most < 1 ? 1 : most;
}

/* Of all weights of the products. */
static clb_status move_weights(clb_context *ctx, const plan *a) {
  clb_shared_products *w = a->w;
  int64_t n = 0;
  clb_column_move *move = malloc(sizeof *move * (size_t)a->n_weights);
  if (!move) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "tensor_product: no memory");
  for (int i = 0; i < a->n_blocks; i++) {
    const block *b = &a->block[i];
    const int t = b->path->out;
    const int64_t columns = a->tp->z.term[t].mul;
    for (int64_t q = 0; q < b->q; q++)
      for (int64_t j = 0; j < columns; j++) {
        const int64_t outer = b->weight_at + q * b->weight_stride + j,
                      inner = a->at_weights[t] + (b->before + q) * columns + j;
        move[n++] = (clb_column_move){(int32_t)outer, (int32_t)(a->packed ? inner : outer)};
      }
  }
  const clb_status s = clb_column_moves_create(ctx, (clb_dtype)a->p->storage,
                                               (clb_dtype)a->p->arithmetic, move, n, &w->weights);
  free(move);
  return s;
}

/* Of all columns of terms of z that products write. */
static clb_status move_columns(clb_context *ctx, const plan *a) {
  clb_shared_products *w = a->w;
  int32_t n = 0;
  clb_column_move *move = malloc(sizeof *move * (size_t)w->n_z);
  if (!move) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "tensor_product: no memory");
  for (int t = 0; t < a->tp->z.n; t++) {
    const clb_term *z = &a->tp->z.term[t];
    const int32_t width = 2 * z->l + 1, at = (int32_t)a->at_z[t];
    if (!a->pairs[t]) continue;
    for (int32_t i = 0; i < z->mul * width; i++)
      move[n++] = (clb_column_move){z->at + i, at + i % width * z->mul + i / width};
  }
  const clb_status s = clb_column_moves_create(ctx, (clb_dtype)a->p->storage,
                                               (clb_dtype)a->p->arithmetic, move, n, &w->columns);
  free(move);
  return s;
}

/* ---- creation ---- */

static clb_status create_buffers(clb_context *ctx, const clb_problem *p, unsigned passes,
                                 bool packed, clb_shared_products *w) {
  const bool back = passes >> CLB_BACKWARD, twice = passes & CLB_PASS_BIT(CLB_DOUBLE_BACKWARD);
  const int64_t bytes = clb_dtype_bytes(p->storage),
                arrays = twice  ? 4
                         : back ? 2
                                : 1,
                copies = !w->columns ? 0
                         : back      ? 2
                                     : 1;
  clb_status s = CLB_OK;
  w->chunk = clb_chunk_rows(ctx, (w->n_pairs * arrays + w->n_z * copies) * bytes);
  if (!ctx->device->info.runs) return CLB_OK;
  for (int i = 0; i < arrays && !s; i++)
    s = clb_buffer_create(ctx, (uint64_t)(w->n_pairs * w->chunk * bytes), &w->t[i]);
  for (int i = 0; i < CLB_Z_COPIES && !s && copies; i++)
    if (back || i == CLB_COPY_OF_Z)
      s = clb_buffer_create(ctx, (uint64_t)(w->n_z * w->chunk * bytes), &w->z[i]);
  for (int i = 0; i < CLB_WEIGHT_COPIES && !s && packed; i++)
    if (twice || i == CLB_COPY_OF_W)
      s = clb_buffer_create(ctx, (uint64_t)(w->n_weights * bytes), &w->packed[i]);
  if (!s && w->weights && back)
    s = clb_buffer_create(ctx, (uint64_t)((w->slices + 1) * w->n_weights * bytes), &w->partial);
  return s;
}

static clb_status create_pairs(clb_context *ctx, const plan *a, unsigned passes,
                               const clb_tuner *tuner, clb_problem *part) {
  const clb_tensor_product_problem *tp = a->tp;
  clb_shared_products *w = a->w;
  const int32_t xy = tp->gradients & (CLB_OPERAND_X | CLB_OPERAND_Y),
                incoming = tp->incoming & (CLB_OPERAND_X | CLB_OPERAND_Y);
  const unsigned twice = incoming ? passes & CLB_PASS_BIT(CLB_DOUBLE_BACKWARD) : 0;
  make_pairs(a, part);
  part->accumulate = 0;
  part->tensor_product.incoming = incoming;
  part->tensor_product.gradients = CLB_OPERAND_Z;
  clb_status s = clb_op_create(ctx, part, CLB_PASS_BIT(CLB_FORWARD) | twice, tuner, &w->pairs);
  for (int add = 0; add < 2 && !s && xy && passes >> CLB_BACKWARD; add++) {
    if (!add && (a->p->accumulate || w->adds)) continue; /* there is something to add to */
    part->accumulate = add;
    part->tensor_product.gradients = xy;
    s = clb_op_create(ctx, part, CLB_PASS_BIT(CLB_BACKWARD) | twice, tuner, &w->back[add]);
  }
  return s;
}

static clb_status create(clb_context *ctx, plan *a, const bool chosen[CLB_MAX_PATHS],
                         unsigned passes, const clb_tuner *tuner, clb_problem *part) {
  clb_shared_products *w = a->w;
  clb_status s = CLB_OK;
  find_blocks(a, chosen);
  make_products(a);
  w->slices = passes >> CLB_BACKWARD && a->tp->gradients & CLB_OPERAND_W ? count_slices(ctx, w) : 1;
  s = create_pairs(ctx, a, passes, tuner, part);
  if (!s) s = clb_gemm_create(ctx, (clb_dtype)a->p->arithmetic, &w->gemm);
  if (!s && a->moved) s = move_columns(ctx, a);
  if (!s && (a->packed || w->slices > 1)) s = move_weights(ctx, a);
  return s ? s : create_buffers(ctx, a->p, passes, a->packed, w);
}

clb_status clb_shared_products_create(clb_context *ctx, const clb_problem *p,
                                      const bool chosen[CLB_MAX_PATHS], bool rest, unsigned passes,
                                      const clb_tuner *tuner, clb_shared_products **products) {
  plan *a = calloc(1, sizeof *a);
  clb_problem *part = malloc(sizeof *part);
  *products = calloc(1, sizeof **products);
  clb_status s = a && part && *products
                     ? CLB_OK
                     : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "tensor_product: no memory");
  if (!s) {
    *a = (plan){.p = p, .tp = &p->tensor_product, .w = *products};
    (*products)->adds = rest;
    s = create(ctx, a, chosen, passes, tuner, part);
  }
  free(a);
  free(part);
  if (s) clb_shared_products_destroy(products);
  return s;
}

void clb_shared_products_destroy(clb_shared_products **products) {
  clb_shared_products *w = *products;
  *products = NULL;
  if (!w) return;
  clb_op **ops[] = {&w->pairs, &w->back[0], &w->back[1], &w->gemm, &w->columns, &w->weights};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) clb_op_destroy(ops[i]);
  for (int i = 0; i < CLB_PAIR_ARRAYS; i++) clb_buffer_destroy(&w->t[i]);
  for (int i = 0; i < CLB_Z_COPIES; i++) clb_buffer_destroy(&w->z[i]);
  for (int i = 0; i < CLB_WEIGHT_COPIES; i++) clb_buffer_destroy(&w->packed[i]);
  clb_buffer_destroy(&w->partial);
  free(w);
}

const clb_op *clb_shared_products_shown(const clb_shared_products *w, clb_pass pass, int *kernel) {
  const clb_op *shown = pass == CLB_FORWARD ? w->pairs : w->back[1] ? w->back[1] : w->back[0];
  *kernel = (int)pass;
  if (shown && shown->kernel[pass]) return shown;
  *kernel = CLB_FORWARD;
  return w->pairs;
}
