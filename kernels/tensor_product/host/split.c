/* kernels/tensor_product/host/split.c - channel-wise products, of one or of both operands'
   channels, with too many paths for one kernel on a GPU.

   Each path has its own terms of x and z and its own weights, or shares them with paths from the
   same term of x: if all paths of a term of x are in one part, parts share nothing but y, so that
   what is read and written stays the same. Gradients by y are sums over parts. Where the paths of
   one term are too many, those that share terms of z with no other are several parts, and gradients
   by x are sums over these. */
#include "kernels/tensor_product/host/split.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/tensor_product/product.h"
#include "src/runtime/call.h"

enum { MOST_PARTS = 16 };

/* Non-zeros of a part, by pass: kernels with more take long to compile, need too many registers, or
   do not fit in the cache of instructions. */
static const int most_nonzeros[CLB_PASSES] = {2400, 3100, 1240, 480};

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

static bool is_long(const clb_problem *p, int pass) {
  return clb_form_size(&p->tensor_product) > most_nonzeros[pass];
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

/* The chosen paths of whole; the first part has the terms that no path reaches, too. again: there
   are gradients by these terms of x to add to. */
static void make_part(const clb_problem *whole, const bool *chosen, bool first, bool again,
                      clb_problem *part) {
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
    if (!chosen[q]) continue;
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
  part->accumulate = 1; /* gradients by y add, and by x again; the others do not */
  to->edges = CLB_OPERAND_W | CLB_OPERAND_Z | (again ? 0 : CLB_OPERAND_X);
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

typedef struct {
  clb_context *ctx;
  const clb_problem *p;
  int pass;
  bool first, last; /* whether this is the first part, or must be the last one */
  bool room;        /* for a part more than there are classes left */
  bool done[CLB_MAX_PATHS], chosen[CLB_MAX_PATHS]; /* paths of parts before, and of this one */
  bool again;        /* this part's terms of x have paths in parts before */
  clb_problem *part; /* the next part */
} choice;

static int class_of(const choice *c, int path) {
  const clb_tensor_product_problem *tp = &c->p->tensor_product;
  return first_like(&tp->x, tp->path[path].in1);
}

/* Chooses the paths of the list, too, unless the kernel would be too long; `whatever`:
 * nevertheless. */
static bool widen(choice *c, const bool *more, bool whatever) {
  bool wider[CLB_MAX_PATHS];
  for (int q = 0; q < c->p->tensor_product.n_paths; q++) wider[q] = c->chosen[q] || more[q];
  make_part(c->p, wider, c->first, c->again, c->part);
  if (!whatever && !c->last &&
      (is_long(c->part, c->pass) || is_driven_by_tables(c->ctx, c->part, c->pass)))
    return false;
  memcpy(c->chosen, wider, sizeof wider);
  return true;
}

/* Whether the paths of a class of terms of x can be in several parts: each has a term of z alone.
 */
static bool can_cut(const choice *c, int class) {
  const clb_tensor_product_problem *tp = &c->p->tensor_product;
  bool reached[CLB_MAX_TERMS] = {false};
  for (int q = 0; q < tp->n_paths; q++) {
    if (class_of(c, q) != class) continue;
    if (reached[tp->path[q].out]) return false;
    reached[tp->path[q].out] = true;
  }
  return true;
}

/* Some paths of a class, about as many as in each of its other parts; those that differ in parity
   alone stay together. */
static void choose_some(choice *c, int class) {
  const clb_tensor_product_problem *tp = &c->p->tensor_product;
  int64_t left = 0, size = 0;
  for (int q = 0; q < tp->n_paths; q++)
    if (!c->done[q] && class_of(c, q) == class) left += clb_form_path_size(tp, &tp->path[q]);
  const int64_t share = clb_divide_up(left, clb_divide_up(left, most_nonzeros[c->pass]));
  for (int q = 0; q < tp->n_paths && size < share; q++) {
    bool like[CLB_MAX_PATHS] = {false};
    if (c->done[q] || c->chosen[q] || class_of(c, q) != class) continue;
    for (int i = 0; i < tp->n_paths; i++)
      like[i] = !c->done[i] && class_of(c, i) == class && tp->path[i].in2 == tp->path[q].in2 &&
                tp->z.term[tp->path[i].out].l == tp->z.term[tp->path[q].out].l;
    if (widen(c, like, !size)) size = clb_form_size(&c->part->tensor_product);
  }
}

/* All paths of as many terms of x as a kernel without tables can have; some of a term with too
   many. */
static void choose(choice *c) {
  const clb_tensor_product_problem *tp = &c->p->tensor_product;
  bool some = false;
  c->again = false;
  memset(c->chosen, 0, sizeof c->chosen);
  for (int t = 0; t < tp->x.n; t++) {
    bool all[CLB_MAX_PATHS] = {false}, left = false, begun = false;
    for (int q = 0; q < tp->n_paths; q++)
      if (class_of(c, q) == t) {
        left |= all[q] = !c->done[q];
        begun |= c->done[q];
      }
    if (!left || (some && begun)) continue;
    c->again = begun;
    const bool whole = widen(c, all, !some && !(c->room && can_cut(c, t)));
    if (!whole && !some) choose_some(c, t);
    if (begun || (!whole && !some)) return; /* no other terms in parts of a term that is cut */
    some = true;
  }
}

static int classes_left(const choice *c) {
  bool left[CLB_MAX_TERMS] = {false};
  int n = 0;
  for (int q = 0; q < c->p->tensor_product.n_paths; q++)
    if (!c->done[q]) left[class_of(c, q)] = true;
  for (int t = 0; t < CLB_MAX_TERMS; t++) n += left[t];
  return n;
}

static clb_status split(clb_context *ctx, const clb_problem *p, int pass, const clb_tuner *tuner,
                        clb_problem *part, parts *all) {
  choice c = {.ctx = ctx, .p = p, .pass = pass, .part = part};
  clb_status s = CLB_OK;
  for (int left = 1; left && !s;) {
    c.first = !all->n[pass];
    c.last = all->n[pass] == MOST_PARTS - 1;
    c.room = all->n[pass] + classes_left(&c) < MOST_PARTS;
    choose(&c);
    make_part(p, c.chosen, c.first, c.again, part);
    s = add_part(ctx, part, pass, tuner, all);
    left = 0;
    for (int q = 0; q < p->tensor_product.n_paths; q++) left += !(c.done[q] |= c.chosen[q]);
  }
  return s;
}

static unsigned passes_to_split(const clb_context *ctx, const clb_problem *problem, unsigned passes,
                                clb_problem *p) {
  unsigned bits = 0;
  *p = *problem;
  for (int pass = 0; pass < CLB_PASSES && can_split(ctx, problem); pass++)
    if (passes & CLB_PASS_BIT(pass) && (is_long(p, pass) || is_driven_by_tables(ctx, p, pass)))
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
