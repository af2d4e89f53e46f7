/* kernels/tensor_product/host/split.c - channel-wise products, of one or of both operands'
   channels, with too many paths for one kernel on a GPU.

   Each path has its own terms of x and z and its own weights, or shares them with paths from the
   same term of x: if all paths of a term of x are in one part, parts share nothing but y, so that
   what is read and written stays the same. Gradients by y are sums over parts. */
#include "kernels/tensor_product/host/split.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/tensor_product/product.h"

enum { MOST_PARTS = 16, LONG_PART = 6000 };

/* op->parts. */
typedef struct {
  int n[CLB_PASSES]; /* 0: the pass is not split */
  clb_op *part[CLB_PASSES][MOST_PARTS];
} parts;

static void destroy_parts(clb_op *op) {
  parts *all = op->parts;
  for (int pass = 0; pass < CLB_PASSES; pass++)
    for (int i = 0; i < all->n[pass]; i++) clb_op_destroy(&all->part[pass][i]);
  free(all);
}

/* ---- which parts ---- */

/* Whether a part's kernel would take long to compile, or need too many registers. */
static bool is_long(const clb_problem *p, int pass) {
  static const int repeats[CLB_PASSES] = {2, 2, 5, 13};
  return clb_form_size(&p->tensor_product) * repeats[pass] > LONG_PART;
}

static bool is_driven_by_tables(const clb_context *ctx, clb_problem *p, int pass) {
  clb_schedule s;
  p->pass = pass;
  clb_kernel_kinds[CLB_TENSOR_PRODUCT]->schedule(p, &ctx->device->limits, &s);
  return s.product.variant == CLB_VARIANT_TABLE;
}

/* The first term of x like this one: their paths have much in common. */
static int first_like(const clb_irreps *x, int term) {
  int i = 0;
  while (x->term[i].l != x->term[term].l || x->term[i].mul != x->term[term].mul) i++;
  return i;
}

/* Keeps the terms of the mask, which become fewer; now: where each is. */
static void keep_terms(clb_irreps *irreps, const bool *kept, int *now) {
  int n = 0;
  for (int t = 0; t < irreps->n; t++) {
    now[t] = n;
    if (kept[t]) irreps->term[n++] = irreps->term[t];
  }
  memset(irreps->term + n, 0, sizeof *irreps->term * (size_t)(irreps->n - n));
  irreps->n = n;
}

/* Those paths of whole whose terms of x are in the mask; the first part has the terms that no path
   reaches, too. */
static void make_part(const clb_problem *whole, const bool *chosen, bool first, clb_problem *part) {
  const clb_tensor_product_problem *tp = &whole->tensor_product;
  clb_tensor_product_problem *to = &part->tensor_product;
  bool x[CLB_MAX_TERMS] = {false}, z[CLB_MAX_TERMS] = {false}, x_reached[CLB_MAX_TERMS] = {false},
       z_reached[CLB_MAX_TERMS] = {false};
  int now_x[CLB_MAX_TERMS], now_z[CLB_MAX_TERMS];
  *part = *whole;
  memset(to->path, 0, sizeof to->path);
  to->n_paths = 0;
  for (int q = 0; q < tp->n_paths; q++) {
    const clb_path *p = &tp->path[q];
    x_reached[p->in1] = z_reached[p->out] = true;
    if (!chosen[p->in1]) continue;
    x[p->in1] = z[p->out] = true;
    to->path[to->n_paths++] = *p;
  }
  for (int t = 0; t < tp->x.n && first; t++) x[t] |= !x_reached[t];
  for (int t = 0; t < tp->z.n && first; t++) z[t] |= !z_reached[t];
  keep_terms(&to->x, x, now_x);
  keep_terms(&to->z, z, now_z);
  for (int q = 0; q < to->n_paths; q++) {
    to->path[q].in1 = now_x[to->path[q].in1];
    to->path[q].out = now_z[to->path[q].out];
  }
  if (first || whole->accumulate) return;
  part->accumulate = 1; /* gradients by y alone add */
  to->edges = CLB_OPERAND_X | CLB_OPERAND_W | CLB_OPERAND_Z;
}

/* A product channel by channel of both operands. */
static bool is_uuu(const clb_tensor_product_problem *tp) {
  for (int q = 0; q < tp->n_paths; q++)
    if (tp->path[q].mode != CLB_UUU) return false;
  return tp->n_paths > 0;
}

/* Whether parts have terms of their own, where what is written has one type. */
static bool can_split(const clb_context *ctx, const clb_problem *p) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  int from[CLB_MAX_TERMS];
  if (ctx->device->limits.simd || !(clb_is_channel_wise(tp) || is_uuu(tp)) || tp->indexed ||
      tp->edges || p->storage != p->arithmetic)
    return false;
  for (int t = 0; t < tp->z.n; t++) from[t] = -1;
  for (int q = 0; q < tp->n_paths; q++) {
    const clb_path *path = &tp->path[q];
    if (from[path->out] >= 0 && from[path->out] != path->in1) return false;
    from[path->out] = path->in1;
  }
  return true;
}

/* ---- creation ---- */

static clb_status add_part(clb_context *ctx, clb_problem *part, int pass, const clb_tuner *tuner,
                           parts *all) {
  clb_op **op = &all->part[pass][all->n[pass]];
  const clb_status s = clb_op_create(ctx, part, CLB_PASS_BIT(pass), tuner, op);
  if (!s) all->n[pass]++;
  return s;
}

/* As many terms of x as a kernel without tables can have, part by part. */
static clb_status split(clb_context *ctx, const clb_problem *p, int pass, const clb_tuner *tuner,
                        clb_problem *part, parts *all) {
  const clb_irreps *x = &p->tensor_product.x;
  bool done[CLB_MAX_TERMS] = {false};
  clb_status s = CLB_OK;
  for (int left = x->n; left && !s;) {
    bool chosen[CLB_MAX_TERMS] = {false};
    const bool last = all->n[pass] == MOST_PARTS - 1;
    int n = 0;
    for (int t = 0; t < x->n; t++) {
      bool wider[CLB_MAX_TERMS];
      int more = 0;
      if (done[t] || chosen[t]) continue;
      memcpy(wider, chosen, sizeof wider);
      for (int i = t; i < x->n; i++)
        if (!done[i] && first_like(x, i) == first_like(x, t)) more += wider[i] = true;
      make_part(p, wider, !all->n[pass], part);
      if (n && !last && (is_long(part, pass) || is_driven_by_tables(ctx, part, pass))) continue;
      memcpy(chosen, wider, sizeof chosen);
      n += more;
    }
    make_part(p, chosen, !all->n[pass], part);
    for (int t = 0; t < x->n; t++) done[t] |= chosen[t];
    left -= n;
    if (part->tensor_product.n_paths || !all->n[pass]) s = add_part(ctx, part, pass, tuner, all);
  }
  return s;
}

static unsigned passes_to_split(const clb_context *ctx, const clb_problem *problem, unsigned passes,
                                clb_problem *p) {
  unsigned bits = 0;
  *p = *problem;
  for (int pass = 0; pass < CLB_PASSES && can_split(ctx, problem); pass++)
    if (passes & CLB_PASS_BIT(pass) && is_driven_by_tables(ctx, p, pass))
      bits |= CLB_PASS_BIT(pass);
  return bits;
}

clb_status clb_split_product_create(clb_context *ctx, const clb_problem *problem, unsigned passes,
                                    const clb_tuner *tuner, clb_op **op) {
  clb_problem *part = malloc(sizeof *part);
  parts *all = calloc(1, sizeof *all);
  clb_status s =
      part && all ? CLB_OK : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "tensor_product: no memory");
  const unsigned bits = s ? 0 : passes_to_split(ctx, problem, passes, part), plain = passes & ~bits;
  if (!s && bits) s = clb_op_check(ctx, problem, passes);
  if (!s)
    s = plain || !bits ? clb_op_create(ctx, problem, plain, tuner, op)
                       : clb_op_new(ctx, problem, op);
  if (!s && bits) {
    (*op)->parts = all;
    (*op)->destroy_parts = destroy_parts;
    for (int pass = 0; pass < CLB_PASSES && !s; pass++) {
      if (!(bits & CLB_PASS_BIT(pass))) continue;
      s = split(ctx, problem, pass, tuner, part, all);
      if (s) break;
      (*op)->kernel[pass] = all->part[pass][0]->kernel[pass]; /* shown by clb_op_source */
      (*op)->choice[pass] = all->part[pass][0]->choice[pass];
    }
    if (s) clb_op_destroy(op);
    all = NULL;
  }
  free(all);
  free(part);
  return s;
}

clb_status clb_split_product_run(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operands,
                                 int n_operands) {
  const parts *all = op->parts;
  clb_status s = CLB_OK;
  if (!all || !all->n[pass])
    return clb_op_run_rows(op, CLB_TENSOR_PRODUCT, pass, n, operands, n_operands);
  for (int i = 0; i < all->n[pass] && !s; i++)
    s = clb_op_run_rows(all->part[pass][i], CLB_TENSOR_PRODUCT, pass, n, operands, n_operands);
  return s;
}
