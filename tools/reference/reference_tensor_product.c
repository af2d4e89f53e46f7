/* tools/reference/reference_tensor_product.c - the Clebsch-Gordan tensor product and three
   derivatives, as direct sums over all terms in float64. The product is one form that is linear in
   four vectors, F(x, y, w, g) = sum over terms C x y w g. A pass is a sum of F of various vectors,
   its monomials, differentiated by some of the vectors. */
#include "tools/reference/reference_tensor_product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Vectors by letter; in a monomial each is at its position in F. */
static const char vectors[] = "xywgabcpqrs";
enum { X, Y, W, Z, KINDS, VECTORS = REFERENCE_MAX_INPUTS };
static const int kind_of[VECTORS] = {X, Y, W, Z, X, Y, W, X, Y, W, Z};

enum { MAX_MONOMIALS = 9, MAX_CONTRIBUTIONS = MAX_MONOMIALS * KINDS };
static const struct {
  int inputs;
  const char *by; /* one output each */
  const char *names[REFERENCE_MAX_OUTPUTS], *monomial[MAX_MONOMIALS];
} passes[REFERENCE_PASSES] = {
    {3, "g", {"z"}, {"xywg"}},
    {4, "xyw", {"g_x", "g_y", "g_w"}, {"xywg"}},
    {7, "xywg", {"d_x", "d_y", "d_w", "d_g"}, {"aywg", "xbwg", "xycg"}},
    {11,
     "xywgabc",
     {"e_x", "e_y", "e_w", "e_g", "e_a", "e_b", "e_c"},
     {"pbwg", "pycg", "aqwg", "xqcg", "ayrg", "xbrg", "ayws", "xbws", "xycs"}},
};

static int vector(char letter) { return (int)(strchr(vectors, letter) - vectors); }

int reference_inputs(clb_pass pass) { return passes[pass].inputs; }
int reference_outputs(clb_pass pass) { return (int)strlen(passes[pass].by); }

const char *reference_operand(clb_pass pass, int operand, int *like) {
  static const char *const names[VECTORS] = {"x", "y", "w", "g", "a", "b", "c", "p", "q", "r", "s"};
  int output = operand - passes[pass].inputs;
  *like = 1 << kind_of[output < 0 ? operand : vector(passes[pass].by[output])];
  return output < 0 ? names[operand] : passes[pass].names[output];
}

/* ---- modes ---- */

/* Which pairs of channels (u, v) are connected, counted by q, and to which channel of the output:
   u, v, q, or every w, each with its own weights. */
static const struct {
  enum { ALL, EQUAL, ASCENDING } pairs;
  enum { TO_U, TO_V, TO_Q, TO_W } to;
} modes[] = {[CLB_UVW] = {ALL, TO_W},
             [CLB_UVU] = {ALL, TO_U},
             [CLB_UVV] = {ALL, TO_V},
             [CLB_UUW] = {EQUAL, TO_W},
             [CLB_UUU] = {EQUAL, TO_Q},
             [CLB_UVUV] = {ALL, TO_Q},
             [CLB_UVU_HALF] = {ASCENDING, TO_Q},
             [CLB_UVW_HALF] = {ASCENDING, TO_W}};

typedef struct {
  clb_instruction is;
  const reference_irrep *x, *y, *z;
  int weight_at;
  double *C; /* the 3j symbols times the path's coefficient */
} path;

static int pairs(const path *q) {
  const int n[] = {[ALL] = q->x->mul * q->y->mul,
                   [EQUAL] = q->x->mul,
                   [ASCENDING] = q->x->mul * (q->x->mul - 1) / 2};
  return n[modes[q->is.mode].pairs];
}

static int pairs_per_output(const path *q) {
  const int n[] = {[TO_U] = q->y->mul, [TO_V] = q->x->mul, [TO_Q] = 1, [TO_W] = pairs(q)};
  return n[modes[q->is.mode].to];
}

static int weights_per_pair(const path *q) { return modes[q->is.mode].to == TO_W ? q->z->mul : 1; }

static int fits(const path *q) {
  int l1 = q->x->l, l2 = q->y->l, l3 = q->z->l;
  if (q->x->parity * q->y->parity != q->z->parity || l3 < abs(l1 - l2) || l3 > l1 + l2) return 0;
  if (modes[q->is.mode].pairs != ALL && q->x->mul != q->y->mul) return 0;
  if (modes[q->is.mode].to != TO_W)
    return q->z->mul ==
           (const int[]){
               [TO_U] = q->x->mul, [TO_V] = q->y->mul, [TO_Q] = pairs(q)}[modes[q->is.mode].to];
  return q->is.has_weight || (q->is.mode == CLB_UUW && q->z->mul == 1);
}

/* ---- products ---- */

struct reference_product {
  reference_irreps x, y, z;
  clb_layout layout_x, layout_y, layout_z;
  int shared, n, n_weights;
  path path[];
};

static double coefficient(const reference_product *p, const clb_tensor_product_desc *d,
                          const path *q) {
  double alpha = 1, x = 0, same = 0;
  if (d->irrep_normalization == CLB_IRREP_COMPONENT) alpha = 2 * q->z->l + 1;
  if (d->irrep_normalization == CLB_IRREP_NORM) alpha = (2 * q->x->l + 1) * (2 * q->y->l + 1);
  for (int i = 0; i < p->n; i++)
    if (p->path[i].z == q->z) x += pairs_per_output(&p->path[i]), same++;
  if (d->path_normalization == CLB_PATH_PATH) x = same * pairs_per_output(q);
  if (d->path_normalization == CLB_PATH_NONE || !(x > 0)) x = 1;
  return sqrt(q->is.path_weight * alpha / x);
}

static int add_path(reference_product *p, const clb_instruction *is) {
  if (is->in1 < 0 || is->in1 >= p->x.n || is->in2 < 0 || is->in2 >= p->y.n || is->out < 0 ||
      is->out >= p->z.n || (unsigned)is->mode > CLB_UVW_HALF)
    return 0;
  path *q = &p->path[p->n++];
  *q = (path){.is = *is,
              .x = &p->x.term[is->in1],
              .y = &p->y.term[is->in2],
              .z = &p->z.term[is->out],
              .weight_at = p->n_weights};
  if (!fits(q)) return 0;
  if (is->has_weight) p->n_weights += pairs(q) * weights_per_pair(q);
  return 1;
}

static int fill_path(const reference_product *p, const clb_tensor_product_desc *d, path *q) {
  int n = (2 * q->x->l + 1) * (2 * q->y->l + 1) * (2 * q->z->l + 1);
  double c = coefficient(p, d, q);
  q->C = malloc(sizeof(double) * (size_t)n);
  if (!q->C) return 0;
  reference_3j(q->x->l, q->y->l, q->z->l, q->C);
  for (int i = 0; i < n; i++) q->C[i] *= c;
  return 1;
}

reference_product *reference_product_create(const clb_tensor_product_desc *d) {
  reference_product *p =
      calloc(1, sizeof *p + sizeof(path) * (size_t)(d->n_instructions > 0 ? d->n_instructions : 0));
  int good = p && reference_irreps_read(d->irreps_x, &p->x) &&
             reference_irreps_read(d->irreps_y, &p->y) && reference_irreps_read(d->irreps_z, &p->z);
  for (int i = 0; good && i < d->n_instructions; i++) good = add_path(p, &d->instructions[i]);
  for (int i = 0; good && i < p->n; i++) good = fill_path(p, d, &p->path[i]);
  if (good) {
    p->layout_x = d->layout_x, p->layout_y = d->layout_y, p->layout_z = d->layout_z;
    p->shared = d->shared_weights;
    return p;
  }
  reference_product_destroy(p);
  return NULL;
}

void reference_product_destroy(reference_product *p) {
  if (!p) return;
  for (int i = 0; i < p->n; i++) free(p->path[i].C);
  free(p);
}

clb_tensor_product_sizes reference_product_sizes(const reference_product *p) {
  return (clb_tensor_product_sizes){p->x.dim, p->y.dim, p->z.dim, p->n_weights};
}

/* ---- passes ---- */

/* The derivative of one monomial by one of its vectors: the product of the other three. */
typedef struct {
  int output, kind, factor[3];
} contribution;

/* All contributions to a pass for a path: a missing weight is the constant 1. */
static int contributions_of(clb_pass pass, int has_weight, const double *const *inputs,
                            double *const *outputs, contribution *list) {
  int n = 0;
  for (int m = 0; m < MAX_MONOMIALS && passes[pass].monomial[m]; m++)
    for (int out = 0; passes[pass].by[out]; out++) {
      const char *monomial = passes[pass].monomial[m], *by = strchr(monomial, passes[pass].by[out]);
      if (!by || !outputs[out] || (!has_weight && (by - monomial == W || monomial[W] != 'w')))
        continue;
      contribution c = {.output = out, .kind = (int)(by - monomial)};
      int zero = 0;
      for (int k = 0, f = 0; k < KINDS; k++) {
        if (k == c.kind) continue;
        c.factor[f] = vector(monomial[k]);
        if (k != W || has_weight) zero |= !inputs[c.factor[f]];
        f++;
      }
      if (!zero) list[n++] = c;
    }
  return n;
}

typedef struct {
  int at, stride_u, stride_m; /* element (u, m) of a term */
} place;

/* Merged: the channels of all adjacent terms of the same irrep lie side by side. */
static place place_of(const reference_irreps *irreps, int i, clb_layout layout) {
  const reference_irrep *all = irreps->term, *is = &all[i];
  int first = i, before = 0, mul = is->mul;
  if (layout == CLB_MUL_IR) return (place){is->at, 2 * is->l + 1, 1};
  if (layout != CLB_MERGED) return (place){is->at, 1, mul};
  for (; first && all[first - 1].l == is->l && all[first - 1].parity == is->parity; first--)
    before += all[first - 1].mul;
  for (int t = i + 1; t < irreps->n && all[t].l == is->l && all[t].parity == is->parity; t++)
    mul += all[t].mul;
  return (place){all[first].at + before, 1, mul + before};
}

/* One row of every operand. */
typedef struct {
  const double *in[VECTORS];
  double *out[REFERENCE_MAX_OUTPUTS], *scale[REFERENCE_MAX_OUTPUTS];
  int inputs, n;
  contribution list[MAX_CONTRIBUTIONS];
} row;

/* One term of F; at: offsets of its factors, by kind. at[W] < 0: it has no weight. */
static void add_term(const row *r, double C, const int at[KINDS]) {
  double v[VECTORS];
  for (int i = 0; i < r->inputs; i++) {
    int here = at[kind_of[i]];
    v[i] = here < 0 ? 1 : r->in[i] ? r->in[i][here] : 0;
  }
  for (const contribution *c = r->list; c < r->list + r->n; c++) {
    double value = C * v[c->factor[0]] * v[c->factor[1]] * v[c->factor[2]];
    r->out[c->output][at[c->kind]] += value;
    r->scale[c->output][at[c->kind]] += fabs(value);
  }
}

/* All channels, for one non-zero C. */
static void add_channels(void *user, const path *p, double C, const int first[3],
                         const int stride[3]) {
  const row *r = user;
  int to = modes[p->is.mode].to, per_pair = weights_per_pair(p), at[KINDS], q = 0;
  for (int u = 0; u < p->x->mul; u++) {
    int from = (const int[]){[ALL] = 0, [EQUAL] = u, [ASCENDING] = u + 1}[modes[p->is.mode].pairs];
    int end = modes[p->is.mode].pairs == EQUAL ? u + 1 : p->y->mul;
    for (int v = from; v < end; v++, q++)
      for (int w = 0; w < per_pair; w++) {
        const int channel[] = {[TO_U] = u, [TO_V] = v, [TO_Q] = q, [TO_W] = w};
        at[X] = first[0] + u * stride[0];
        at[Y] = first[1] + v * stride[1];
        at[W] = p->is.has_weight ? p->weight_at + q * per_pair + w : -1;
        at[Z] = first[2] + channel[to] * stride[2];
        add_term(r, C, at);
      }
  }
}

/* The non-zero C of a path, each with the offsets of x, y, z in channel 0 and the strides of
   channels. */
static void each_coefficient(const reference_product *p, const path *q,
                             void (*use)(void *user, const path *q, double C, const int first[3],
                                         const int stride[3]),
                             void *user) {
  place x = place_of(&p->x, q->is.in1, p->layout_x), y = place_of(&p->y, q->is.in2, p->layout_y),
        z = place_of(&p->z, q->is.out, p->layout_z);
  int n1 = 2 * q->x->l + 1, n2 = 2 * q->y->l + 1, n3 = 2 * q->z->l + 1;
  for (int i = 0; i < n1; i++)
    for (int j = 0; j < n2; j++)
      for (int k = 0; k < n3; k++) {
        double C = q->C[(i * n2 + j) * n3 + k];
        const int first[] = {x.at + i * x.stride_m, y.at + j * y.stride_m, z.at + k * z.stride_m},
                  stride[] = {x.stride_u, y.stride_u, z.stride_u};
        if (C != 0) use(user, q, C, first, stride);
      }
}

typedef struct {
  reference_term *terms;
  int n;
} term_list;

static void add_to_list(void *user, const path *q, double C, const int first[3],
                        const int stride[3]) {
  term_list *list = user;
  if (list->terms)
    list->terms[list->n] = (reference_term){first[0], stride[0], first[1],  q->weight_at,
                                            first[2], stride[2], q->x->mul, C};
  list->n++;
}

int reference_product_terms(const reference_product *p, reference_term *terms) {
  term_list list = {terms, 0};
  for (int i = 0; i < p->n; i++) each_coefficient(p, &p->path[i], add_to_list, &list);
  return list.n;
}

void reference_product_run(const reference_product *p, clb_pass pass, int64_t rows,
                           const double *const *in, double *const *out, double *const *scale) {
  const int64_t width[KINDS] = {p->x.dim, p->y.dim, p->n_weights, p->z.dim},
                stride[KINDS] = {p->x.dim, p->y.dim, p->shared ? 0 : p->n_weights, p->z.dim};
  int outputs = reference_outputs(pass), kind[REFERENCE_MAX_OUTPUTS];
  for (int o = 0; o < outputs; o++) {
    kind[o] = kind_of[vector(passes[pass].by[o])];
    size_t n = (size_t)(p->shared && kind[o] == W ? 1 : rows) * (size_t)width[kind[o]];
    if (out[o]) memset(out[o], 0, n * sizeof(double)), memset(scale[o], 0, n * sizeof(double));
  }
  for (int q = 0; q < p->n; q++) {
    row r = {.inputs = passes[pass].inputs};
    r.n = contributions_of(pass, p->path[q].is.has_weight, in, out, r.list);
    for (int64_t i = 0; i < rows; i++) {
      for (int v = 0; v < r.inputs; v++) r.in[v] = in[v] ? in[v] + i * stride[kind_of[v]] : NULL;
      for (int o = 0; o < outputs; o++)
        if (out[o])
          r.out[o] = out[o] + i * stride[kind[o]], r.scale[o] = scale[o] + i * stride[kind[o]];
      each_coefficient(p, &p->path[q], add_channels, &r);
    }
  }
}
