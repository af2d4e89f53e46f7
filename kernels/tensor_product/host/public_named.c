/* kernels/tensor_product/host/public_named.c - the named products: which paths they have, and the
   irreps of their outputs, as e3nn defines them. */
#include <stdlib.h>
#include <string.h>

#include "src/runtime/context.h"
#include "src/problem/irreps.h"

_Static_assert(CLB_MAX_INSTRUCTIONS == CLB_MAX_PATHS && CLB_MAX_PATHS <= CLB_MAX_TERMS,
               "each path may have an output term of its own");
_Static_assert(CLB_MAX_TERMS * sizeof "2147483647x12o+" <= CLB_IRREPS_BYTES,
               "all irreps that can be read can be written");

typedef struct {
  const char *call;
  clb_error_sink *error;
  clb_irreps x, y, z, filter;
  bool keep_all; /* there is no filter */
  int n;         /* number of paths; those beyond CLB_MAX_PATHS are only counted */
  clb_instruction path[CLB_MAX_PATHS];
} product;

static clb_status read_filter(product *p, const char *text, bool needed) {
  clb_status s = clb_irreps_read(text || needed ? text : "", "filter", &p->filter, p->error);
  p->keep_all = !needed && !p->filter.n;
  return s;
}

static bool kept(const product *p, int l, int parity) {
  for (int i = 0; i < p->filter.n; i++)
    if (p->filter.term[i].l == l && p->filter.term[i].parity == parity) return true;
  return p->keep_all;
}

static void add_path(product *p, int in1, int in2, int out, clb_mode mode, bool has_weight) {
  if (p->n < CLB_MAX_PATHS) p->path[p->n] = (clb_instruction){in1, in2, out, mode, has_weight, 1};
  p->n++;
}

/* Adds a path for each irrep of x[i] y[j] that is kept, with its own output term of `mul`
   channels. */
static clb_status add_products(product *p, int i, int j, int64_t mul, clb_mode mode,
                               bool has_weight) {
  const clb_term *x = &p->x.term[i], *y = &p->y.term[j];
  if (mul > INT32_MAX)
    return clb_fail(p->error, CLB_ERROR_ARGUMENT, "%s: %d times %d channels are more than 2^31 - 1",
                    p->call, (int)x->mul, (int)y->mul);
  if (p->keep_all && x->l + y->l > CLB_MAX_L)
    return clb_fail(p->error, CLB_ERROR_ARGUMENT,
                    "%s: l = %d times l = %d goes up to %d; l is at most %d, so name the irreps to "
                    "keep in `filter`",
                    p->call, (int)x->l, (int)y->l, (int)(x->l + y->l), CLB_MAX_L);
  for (int l = abs(x->l - y->l); l <= x->l + y->l; l++) {
    if (!kept(p, l, x->parity * y->parity)) continue;
    if (p->n < CLB_MAX_PATHS)
      p->z.term[p->z.n++] =
          (clb_term){.mul = (int32_t)mul, .l = l, .parity = x->parity * y->parity};
    add_path(p, i, j, p->n, mode, has_weight);
  }
  return CLB_OK;
}

/* ---- orders of the outputs; before sorting, path i goes to term i ---- */

static int spherical_order(const clb_term *t) {
  return 2 * t->l + (t->parity != (t->l % 2 ? -1 : 1));
}
static int e3nn_order(const clb_term *t) { return 2 * t->l + (t->parity > 0); }

/* A stable sort. */
static void sort_outputs(product *p, int (*order)(const clb_term *), bool paths_too) {
  clb_instruction found[CLB_MAX_PATHS];
  int from[CLB_MAX_PATHS]; /* the path whose output is at this position */
  for (int i = 0; i < p->z.n; i++) {
    clb_term t = p->z.term[i];
    int at = i;
    for (; at && order(&p->z.term[at - 1]) > order(&t); at--) {
      p->z.term[at] = p->z.term[at - 1];
      from[at] = from[at - 1];
    }
    p->z.term[at] = t;
    from[at] = i;
  }
  for (int i = 0; i < p->z.n; i++) p->path[from[i]].out = i;
  if (!paths_too) return;
  memcpy(found, p->path, sizeof found);
  for (int i = 0; i < p->z.n; i++) p->path[i] = found[from[i]];
}

/* ---- terms ---- */

/* Merges equal adjacent terms and drops terms without channels. */
static void simplify(clb_irreps *irreps) {
  int n = 0;
  for (int i = 0; i < irreps->n; i++) {
    clb_term t = irreps->term[i], *last = n ? &irreps->term[n - 1] : NULL;
    if (last && last->l == t.l && last->parity == t.parity) last->mul += t.mul;
    else if (t.mul) irreps->term[n++] = t;
  }
  irreps->n = n;
}

/* Splits term i in two, the first with `mul` channels. */
static clb_status cut(product *p, clb_irreps *irreps, int i, int32_t mul) {
  if (irreps->n == CLB_MAX_TERMS)
    return clb_fail(p->error, CLB_ERROR_ARGUMENT, "%s: terms that pair up are more than %d",
                    p->call, CLB_MAX_TERMS);
  memmove(&irreps->term[i + 1], &irreps->term[i], sizeof *irreps->term * (size_t)(irreps->n++ - i));
  irreps->term[i].mul = mul;
  irreps->term[i + 1].mul -= mul;
  return CLB_OK;
}

static int64_t count_channels(const clb_irreps *irreps) {
  int64_t n = 0;
  for (int i = 0; i < irreps->n; i++) n += irreps->term[i].mul;
  return n;
}

/* ---- products; x and y have been read ---- */

static clb_status find_channel_wise(product *p, const char *filter, int order) {
  if (order != CLB_SORTED && order != CLB_AS_FOUND)
    return clb_fail(p->error, CLB_ERROR_ARGUMENT,
                    "%s: order is %d; it must be CLB_SORTED or CLB_AS_FOUND", p->call, order);
  clb_status s = read_filter(p, filter, true);
  for (int i = 0; i < p->x.n && !s; i++)
    for (int j = 0; j < p->y.n && !s; j++)
      s = add_products(p, i, j, p->x.term[i].mul, CLB_UVU, true);
  if (!s) sort_outputs(p, spherical_order, order == CLB_SORTED);
  return s;
}

static clb_status find_fully_connected(product *p, const char *irreps_z, int unused) {
  (void)unused;
  clb_status s = clb_irreps_read(irreps_z, "irreps_z", &p->z, p->error);
  for (int i = 0; i < p->x.n && !s; i++)
    for (int j = 0; j < p->y.n; j++)
      for (int k = 0; k < p->z.n; k++) {
        const clb_term *x = &p->x.term[i], *y = &p->y.term[j], *z = &p->z.term[k];
        if (x->parity * y->parity == z->parity && z->l >= abs(x->l - y->l) && z->l <= x->l + y->l)
          add_path(p, i, j, k, CLB_UVW, true);
      }
  return s;
}

static clb_status find_full(product *p, const char *filter, int unused) {
  (void)unused;
  clb_status s = read_filter(p, filter, false);
  simplify(&p->x);
  simplify(&p->y);
  for (int i = 0; i < p->x.n && !s; i++)
    for (int j = 0; j < p->y.n && !s; j++)
      s = add_products(p, i, j, (int64_t)p->x.term[i].mul * p->y.term[j].mul, CLB_UVUV, false);
  if (!s) sort_outputs(p, e3nn_order, false);
  return s;
}

static clb_status find_elementwise(product *p, const char *filter, int unused) {
  (void)unused;
  clb_status s = read_filter(p, filter, false);
  simplify(&p->x);
  simplify(&p->y);
  int64_t nx = count_channels(&p->x), ny = count_channels(&p->y);
  if (!s && nx != ny)
    s = clb_fail(p->error, CLB_ERROR_ARGUMENT,
                 "%s: irreps_x has %lld channels and irreps_y %lld; they must be equally many",
                 p->call, (long long)nx, (long long)ny);
  for (int i = 0; i < p->x.n && !s; i++) {
    int32_t mx = p->x.term[i].mul, my = p->y.term[i].mul;
    if (mx < my) s = cut(p, &p->y, i, mx);
    if (my < mx) s = cut(p, &p->x, i, my);
    if (!s) s = add_products(p, i, i, p->x.term[i].mul, CLB_UUU, false);
  }
  return s;
}

/* ---- calls ---- */

static void give_irreps(const clb_irreps *irreps, clb_text *text, char *to) {
  clb_text_free(text);
  clb_irreps_print(irreps, text);
  if (!text->failed) memcpy(to, text->s, text->n + 1);
}

static clb_status give(const product *p, clb_instructions *found) {
  if (p->n > CLB_MAX_PATHS)
    return clb_fail(p->error, CLB_ERROR_ARGUMENT,
                    "%s: there are %d paths; at most %d are supported", p->call, p->n,
                    CLB_MAX_PATHS);
  clb_text text = {0};
  give_irreps(&p->x, &text, found->irreps_x);
  if (!text.failed) give_irreps(&p->y, &text, found->irreps_y);
  if (!text.failed) give_irreps(&p->z, &text, found->irreps_z);
  bool failed = text.failed;
  clb_text_free(&text);
  if (failed) return clb_fail(p->error, CLB_ERROR_MEMORY, "%s: no memory", p->call);
  memcpy(found->instructions, p->path, sizeof found->instructions);
  found->n_instructions = p->n;
  return CLB_OK;
}

/* found: left empty on failure. The texts may point into it. */
static clb_status find(clb_context *ctx, const char *call,
                       clb_status (*paths)(product *, const char *, int), const char *irreps_x,
                       const char *irreps_y, const char *third, int order,
                       clb_instructions *found) {
  clb_status s = clb_context_check(ctx, call);
  if (s) return s;
  if (!found) return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "%s: found is NULL", call);
  product *p = calloc(1, sizeof *p);
  if (!p) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "%s: no memory", call);
  p->call = call;
  p->error = &ctx->error;
  s = clb_irreps_read(irreps_x, "irreps_x", &p->x, &ctx->error);
  if (!s) s = clb_irreps_read(irreps_y, "irreps_y", &p->y, &ctx->error);
  if (!s) s = paths(p, third, order);
  memset(found, 0, sizeof *found);
  if (!s) s = give(p, found);
  free(p);
  return s;
}

clb_status clb_channel_wise(clb_context *ctx, const char *irreps_x, const char *irreps_y,
                            const char *filter, clb_path_order order, clb_instructions *found) {
  return find(ctx, "clb_channel_wise", find_channel_wise, irreps_x, irreps_y, filter, (int)order,
              found);
}

clb_status clb_fully_connected(clb_context *ctx, const char *irreps_x, const char *irreps_y,
                               const char *irreps_z, clb_instructions *found) {
  return find(ctx, "clb_fully_connected", find_fully_connected, irreps_x, irreps_y, irreps_z, 0,
              found);
}

clb_status clb_full(clb_context *ctx, const char *irreps_x, const char *irreps_y,
                    const char *filter, clb_instructions *found) {
  return find(ctx, "clb_full", find_full, irreps_x, irreps_y, filter, 0, found);
}

clb_status clb_elementwise(clb_context *ctx, const char *irreps_x, const char *irreps_y,
                           const char *filter, clb_instructions *found) {
  return find(ctx, "clb_elementwise", find_elementwise, irreps_x, irreps_y, filter, 0, found);
}
