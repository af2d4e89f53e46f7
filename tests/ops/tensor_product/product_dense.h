/* tests/ops/tensor_product/product_dense.h - the tensor product and its derivatives as plain sums
   over every index, in float64; shares nothing with the library. */
#ifndef CLB_TESTS_OPS_TENSOR_PRODUCT_PRODUCT_DENSE_H
#define CLB_TESTS_OPS_TENSOR_PRODUCT_PRODUCT_DENSE_H

#include "tests/test.h"

#include <math.h>

#include <clebsch/clebsch.h>

enum { DENSE_TERMS = 160, DENSE_PATHS = 512 };

typedef struct {
  int n, dim;
  struct {
    int mul, l, parity, at;
  } term[DENSE_TERMS];
} dense_irreps;

static inline void dense_read(const char *text, dense_irreps *irreps) {
  *irreps = (dense_irreps){0};
  for (const char *s = text; *s;) {
    int mul = 1, l, used = 0;
    char p;
    if (sscanf(s, "%d x %d %c %n", &mul, &l, &p, &used) != 3 || !used) {
      mul = 1;
      assert_true(sscanf(s, "%d %c %n", &l, &p, &used) == 2 && used);
    }
    s += used;
    if (*s == '+') s++;
    assert_true(irreps->n < DENSE_TERMS);
    irreps->term[irreps->n].mul = mul;
    irreps->term[irreps->n].l = l;
    irreps->term[irreps->n].parity = p == 'e' || (p == 'y' && l % 2 == 0) ? 1 : -1;
    irreps->term[irreps->n++].at = irreps->dim;
    irreps->dim += mul * (2 * l + 1);
  }
}

/* Element (u, m) of a term. */
static inline int dense_at(const dense_irreps *irreps, int term, clb_layout layout, int u, int m) {
  int mul = irreps->term[term].mul, l = irreps->term[term].l, n = 2 * l + 1;
  if (layout ==
      CLB_MERGED) { /* the channels of all adjacent terms of the same irrep side by side */
    int first = term, before = 0, all = 0, parity = irreps->term[term].parity;
    while (first && irreps->term[first - 1].l == l && irreps->term[first - 1].parity == parity)
      before += irreps->term[--first].mul;
    for (int t = first; t < irreps->n && irreps->term[t].l == l && irreps->term[t].parity == parity;
         t++)
      all += irreps->term[t].mul;
    return irreps->term[first].at + m * all + before + u;
  }
  return irreps->term[term].at + (layout == CLB_MUL_IR ? u * n + m : m * mul + u);
}

/* ---- Wigner 3j ---- */

/* Fills C[2 l1 + 1][2 l2 + 1][2 l3 + 1]. */
typedef void (*dense_symbols)(int l1, int l2, int l3, double *C);

/* e3nn's own numbers, l <= 4. */
static inline void dense_golden_3j(int l1, int l2, int l3, double *C) {
  static double table[5][5][5][9][9][9];
  static int ready;
  int a, b, c, i, j, k;
  double value;
  if (!ready) {
    char name[4096];
    assert_non_null(getenv("CLB_TEST_DATA"));
    snprintf(name, sizeof name, "%s/golden_w3j_lmax4.txt", getenv("CLB_TEST_DATA"));
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "#%*[^\n]"), 0);
    for (; fscanf(f, "%d %d %d %d %d %d %lf", &a, &b, &c, &i, &j, &k, &value) == 7; ready++)
      table[a][b][c][i][j][k] = value;
    fclose(f);
    assert_int_equal(ready, 2052);
  }
  assert_true(l1 <= 4 && l2 <= 4 && l3 <= 4);
  for (i = 0; i < 2 * l1 + 1; i++)
    for (j = 0; j < 2 * l2 + 1; j++)
      for (k = 0; k < 2 * l3 + 1; k++) *C++ = table[l1][l2][l3][i][j][k];
}

/* ---- products ---- */

/* Channels u of x and v of y make channel w of the output with weight q of the path. */
typedef struct {
  int u, v, w, q;
} dense_join;

typedef struct {
  clb_instruction is;
  int first, n_weights, n_joins; /* first: of its weights in a row */
  dense_join *join;
  double *C; /* the 3j symbols times the path's coefficient */
} dense_path;

typedef struct {
  dense_irreps of[4]; /* of x, y and z, where their kinds below say */
  clb_layout layout[4];
  int width[4], shared, n;
  dense_path path[DENSE_PATHS];
} dense_product;

/* Which of x, y, w, z an operand is shaped like. */
enum { LIKE_X, LIKE_Y, LIKE_W, LIKE_Z };

static inline int dense_pair(int n, int u, int v) { /* of u < v, row by row */
  int q = 0;
  for (int a = 0; a < n; a++)
    for (int b = a + 1; b < n; b++, q++)
      if (a == u && b == v) return q;
  return -1;
}

/* The weight that joins u, v and w; -1: they are not joined.  mul: of x, y and z. */
static inline int dense_weight(clb_mode mode, const int *mul, int u, int v, int w) {
  int pair = u < v && mode >= CLB_UVU_HALF ? dense_pair(mul[0], u, v) : -1;
  switch (mode) {
    case CLB_UVW: return (u * mul[1] + v) * mul[2] + w;
    case CLB_UVU: return w == u ? u * mul[1] + v : -1;
    case CLB_UVV: return w == v ? u * mul[1] + v : -1;
    case CLB_UUW: return u == v ? u * mul[2] + w : -1;
    case CLB_UUU: return u == v && v == w ? u : -1;
    case CLB_UVUV: return w == u * mul[1] + v ? w : -1;
    case CLB_UVU_HALF: return w == pair ? w : -1;
    case CLB_UVW_HALF: return pair >= 0 ? pair * mul[2] + w : -1;
  }
  return -1;
}

/* The number of products that one output channel sums, and of weights. */
static inline int dense_elements(clb_mode mode, const int *mul) {
  const int pairs = mul[0] * (mul[0] - 1) / 2;
  return (const int[]){mul[0] * mul[1], mul[1], mul[0], mul[0], 1, 1, 1, pairs}[mode];
}
static inline int dense_weights(clb_mode mode, const int *mul) {
  const int pairs = mul[0] * (mul[0] - 1) / 2, both = mul[0] * mul[1];
  return (const int[]){both * mul[2], both, both,  mul[0] * mul[2],
                       mul[0],        both, pairs, pairs * mul[2]}[mode];
}

static inline void dense_muls(const dense_product *p, const clb_instruction *q, int *mul) {
  mul[0] = p->of[LIKE_X].term[q->in1].mul;
  mul[1] = p->of[LIKE_Y].term[q->in2].mul;
  mul[2] = p->of[LIKE_Z].term[q->out].mul;
}

static inline double dense_coefficient(const dense_product *p, const clb_tensor_product_desc *d,
                                       const clb_instruction *q) {
  int d1 = 2 * p->of[LIKE_X].term[q->in1].l + 1, d2 = 2 * p->of[LIKE_Y].term[q->in2].l + 1,
      d3 = 2 * p->of[LIKE_Z].term[q->out].l + 1, mul[3], n = 0;
  double alpha = d->irrep_normalization == CLB_IRREP_COMPONENT ? d3
                 : d->irrep_normalization == CLB_IRREP_NORM    ? d1 * d2
                                                               : 1,
         sum = 0;
  for (int i = 0; i < d->n_instructions; i++)
    if (d->instructions[i].out == q->out)
      dense_muls(p, &d->instructions[i], mul), sum += dense_elements(d->instructions[i].mode, mul),
          n++;
  dense_muls(p, q, mul);
  if (d->path_normalization == CLB_PATH_PATH) sum = dense_elements(q->mode, mul) * n;
  if (d->path_normalization == CLB_PATH_NONE || sum == 0) sum = 1;
  return sqrt(alpha * q->path_weight / sum);
}

static inline void dense_add_path(dense_product *p, const clb_tensor_product_desc *d,
                                  const clb_instruction *q, dense_symbols symbols) {
  int l[3] = {p->of[LIKE_X].term[q->in1].l, p->of[LIKE_Y].term[q->in2].l,
              p->of[LIKE_Z].term[q->out].l},
      mul[3];
  int n = (2 * l[0] + 1) * (2 * l[1] + 1) * (2 * l[2] + 1);
  dense_path *to = &p->path[p->n++];
  dense_muls(p, q, mul);
  *to = (dense_path){.is = *q,
                     .first = p->width[LIKE_W],
                     .n_weights = q->has_weight ? dense_weights(q->mode, mul) : 0,
                     .C = malloc(sizeof *to->C * (size_t)n)};
  to->join = malloc(sizeof *to->join * (size_t)(mul[0] * mul[1] * mul[2] + 1));
  assert_true(to->C && to->join &&
              p->of[LIKE_X].term[q->in1].parity * p->of[LIKE_Y].term[q->in2].parity ==
                  p->of[LIKE_Z].term[q->out].parity);
  p->width[LIKE_W] += to->n_weights;
  for (int u = 0; u < mul[0]; u++)
    for (int v = 0; v < mul[1]; v++)
      for (int w = 0; w < mul[2]; w++) {
        int weight = dense_weight(q->mode, mul, u, v, w);
        if (weight >= 0)
          to->join[to->n_joins++] = (dense_join){u, v, w, q->has_weight ? to->first + weight : -1};
      }
  symbols(l[0], l[1], l[2], to->C);
  for (int i = 0; i < n; i++) to->C[i] *= dense_coefficient(p, d, q);
}

static inline dense_product *dense_create(const clb_tensor_product_desc *d, dense_symbols symbols) {
  dense_product *p = calloc(1, sizeof *p);
  assert_true(p && d->n_instructions <= DENSE_PATHS);
  dense_read(d->irreps_x, &p->of[LIKE_X]);
  dense_read(d->irreps_y, &p->of[LIKE_Y]);
  dense_read(d->irreps_z, &p->of[LIKE_Z]);
  p->layout[LIKE_X] = d->layout_x, p->layout[LIKE_Y] = d->layout_y, p->layout[LIKE_Z] = d->layout_z;
  p->shared = d->shared_weights;
  for (int k = LIKE_X; k <= LIKE_Z; k++) p->width[k] = p->of[k].dim;
  for (int i = 0; i < d->n_instructions; i++) dense_add_path(p, d, &d->instructions[i], symbols);
  return p;
}

static inline void dense_destroy(dense_product *p) {
  for (int i = 0; p && i < p->n; i++) free(p->path[i].join), free(p->path[i].C);
  free(p);
}

/* ---- passes ----
   Operands in the order of clb_triple_operands: x y w g, a b c, p q r s; every pass takes the first
   few of them.  Results of a derivative are like x y w g, then a b c. */

enum { MAX_IN = 11, MAX_OUT = 7, PASSES = 4 };
static const int n_inputs[PASSES] = {3, 4, 7, 11}, n_outputs[PASSES] = {1, 3, 4, 7},
                 input_like[MAX_IN] = {0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 3};
static inline int output_like(int pass, int i) {
  return pass == CLB_FORWARD ? LIKE_Z : input_like[i];
}

/* c times the product of the four factors except those `gone`, differentiated along one direction
   and then another (NULL: not). */
static inline void dense_expand(const double *f, const double *along, const double *then, int gone,
                                double c, double *sum, double *scale) {
  for (int i = 0; i < 4 && along; i++)
    if (!(gone >> i & 1) && along[i] != 0)
      dense_expand(f, then, NULL, gone | 1 << i, c * along[i], sum, scale);
  if (along) return;
  for (int i = 0; i < 4; i++)
    if (!(gone >> i & 1)) c *= f[i];
  *sum += c;
  *scale += fabs(c);
}

/* One term C x y w g; at: where its factors lie in their rows, at[LIKE_W] = -1: no weight. */
static inline void dense_add(int pass, double C, const int *at, const double *const *in,
                             double *const *out, double *const *scale) {
  double f[4], abc[4] = {0}, pqrs[4] = {0};
  const double *along = pass >= CLB_DOUBLE_BACKWARD ? abc : NULL,
               *then = pass == CLB_TRIPLE_BACKWARD ? pqrs : NULL;
  for (int k = 0; k < 4; k++)
    f[k] = at[k] < 0 || (k == LIKE_Z && pass == CLB_FORWARD) ? 1 : in[k][at[k]];
  for (int k = 0; k < 3 && along; k++) abc[k] = at[k] < 0 ? 0 : in[4 + k][at[k]];
  for (int k = 0; k < 4 && then; k++) pqrs[k] = at[k] < 0 ? 0 : in[7 + k][at[k]];
  for (int o = 0; o < n_outputs[pass]; o++) {
    int like = output_like(pass, o);
    if (at[like] >= 0)
      dense_expand(f, o < 4 ? along : then, o < 4 ? then : NULL, 1 << like, C, &out[o][at[like]],
                   &scale[o][at[like]]);
  }
}

static inline void dense_row(const dense_product *p, int pass, const double *const *in,
                             double *const *out, double *const *scale) {
  for (int q = 0; q < p->n; q++) {
    const dense_path *path = &p->path[q];
    const double *C = path->C;
    int terms[4] = {path->is.in1, path->is.in2, 0, path->is.out}, n[4], m[4];
    for (int k = 0; k < 4; k++) n[k] = 2 * p->of[k].term[terms[k]].l + 1;
    for (m[LIKE_X] = 0; m[LIKE_X] < n[LIKE_X]; m[LIKE_X]++)
      for (m[LIKE_Y] = 0; m[LIKE_Y] < n[LIKE_Y]; m[LIKE_Y]++)
        for (m[LIKE_Z] = 0; m[LIKE_Z] < n[LIKE_Z]; m[LIKE_Z]++, C++)
          for (int i = 0; i < path->n_joins && *C != 0; i++) {
            const dense_join *j = &path->join[i];
            const int channel[4] = {j->u, j->v, 0, j->w};
            int at[4];
            for (int k = 0; k < 4; k++)
              at[k] = k == LIKE_W ? j->q
                                  : dense_at(&p->of[k], terms[k], p->layout[k], channel[k], m[k]);
            dense_add(pass, *C, at, in, out, scale);
          }
  }
}

/* Dense rows; scale: the sums of the absolute values of all terms. */
static inline void dense_run(const dense_product *p, int pass, int rows, double *const *in,
                             double *const *out, double *const *scale) {
  for (int o = 0; o < n_outputs[pass]; o++) {
    int like = output_like(pass, o);
    size_t n = (size_t)(p->width[like] * (like == LIKE_W && p->shared ? 1 : rows));
    memset(out[o], 0, sizeof(double) * n);
    memset(scale[o], 0, sizeof(double) * n);
  }
  for (int r = 0; r < rows; r++) {
    const double *row_in[MAX_IN];
    double *row_out[MAX_OUT], *row_scale[MAX_OUT];
    for (int i = 0; i < n_inputs[pass]; i++)
      row_in[i] = in[i] + (input_like[i] == LIKE_W && p->shared ? 0 : r * p->width[input_like[i]]);
    for (int o = 0; o < n_outputs[pass]; o++) {
      int like = output_like(pass, o), step = like == LIKE_W && p->shared ? 0 : r * p->width[like];
      row_out[o] = out[o] + step;
      row_scale[o] = scale[o] + step;
    }
    dense_row(p, pass, row_in, row_out, row_scale);
  }
}

#endif
