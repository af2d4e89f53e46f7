/* kernels/norm/passes.c - a row of each pass.

   With r = (sum f x^2 + epsilon)^(-1/2) and n = r x of a group, h = w g, and of centred 0e x and a
   without their means:
     forward          y = w n + bias
     backward         g_x = r (h - f C n),  C = r sum h x;   g_w += g n,  g_bias += g
     double backward  D = sum a h,  Q = r sum f a x,  Z = r sum c g x,  b = r (a - Q n):
                      d_g = w b + c n,   d_w += g b,
                      d_x = r^2 (f n (3 C Q - D) - Q h - f C a) + r (c g - f Z n)
   Gradients by x of 0e that was centred lose their mean, too, which follows from sums of h and c g.
   In this form nothing overflows before r^2 does: n is of order 1. */
#include "kernels/norm/norm.h"

static void add_means(clb_norm_kernel *b, const clb_norm_chunk *c) {
  ir_val v[CLB_NORM_MOST_WIDTH], one = ir_real(b->l.k, b->l.t, 1);
  static const struct { int sum, input; } of[] = {{SUM_X, NORM_X}, {SUM_A, NORM_A}};
  for (int i = 0; i < 2 && c->s->scalar; i++) {
    if (b->chain[of[i].sum][0][0] == IR_NONE) continue;
    clb_norm_input(b, c, of[i].input, v);
    for (int e = 0; e < b->width; e++) clb_norm_add(b, c, of[i].sum, v[e], one);
  }
}

typedef struct {
  ir_val x[CLB_NORM_MOST_WIDTH], g[CLB_NORM_MOST_WIDTH], a[CLB_NORM_MOST_WIDTH],
      w[CLB_NORM_MOST_WIDTH], c[CLB_NORM_MOST_WIDTH], h[CLB_NORM_MOST_WIDTH],
      cg[CLB_NORM_MOST_WIDTH];
  bool twice;
  ir_val factor;
} elements;

/* What the pass has of a chunk. */
static elements read(clb_norm_kernel *b, const clb_norm_chunk *c) {
  ir_kernel *k = b->l.k;
  elements v = {.twice = b->p->pass == CLB_DOUBLE_BACKWARD,
                .factor = ir_real(k, b->l.t, c->s->factor)};
  clb_norm_input(b, c, NORM_X, v.x);
  if (b->p->pass == CLB_FORWARD) return v;
  clb_norm_input(b, c, NORM_G, v.g);
  clb_norm_weights(b, c, v.w);
  if (v.twice && b->a) clb_norm_input(b, c, NORM_A, v.a);
  if (v.twice && b->c) clb_norm_c(b, c, v.c);
  for (int e = 0; e < b->width; e++) {
    v.h[e] = ir_mul(k, v.w[e], v.g[e]);
    if (v.twice && b->c) v.cg[e] = ir_mul(k, v.c[e], v.g[e]);
  }
  return v;
}

static void add_up(clb_norm_kernel *b, const clb_norm_chunk *c) {
  ir_kernel *k = b->l.k;
  elements v = read(b, c);
  ir_val one = ir_real(k, b->l.t, 1);
  for (int e = 0; e < b->width; e++) {
    ir_val part = ir_mul(k, v.factor, v.x[e]);
    clb_norm_add(b, c, SUM_SQUARES, part, v.x[e]);
    if (b->p->pass == CLB_FORWARD) continue;
    clb_norm_add(b, c, SUM_PULL, v.h[e], v.x[e]);
    if (c->s->scalar) clb_norm_add(b, c, SUM_H, v.h[e], one);
    if (!v.twice) continue;
    if (b->a) clb_norm_add(b, c, SUM_BEND, v.a[e], v.h[e]);
    if (b->a) clb_norm_add(b, c, SUM_SLANT, part, v.a[e]);
    if (b->c) clb_norm_add(b, c, SUM_TURN, v.cg[e], v.x[e]);
    if (b->c && c->s->scalar) clb_norm_add(b, c, SUM_CG, v.cg[e], one);
  }
}

/* ---- results ---- */

static void forward(clb_norm_kernel *b, const clb_norm_chunk *c) {
  ir_kernel *k = b->l.k;
  ir_val x[CLB_NORM_MOST_WIDTH], w[CLB_NORM_MOST_WIDTH], bias[CLB_NORM_MOST_WIDTH],
      root = b->root[c->s->group];
  const bool biased = c->s->scalar && b->plan.biases;
  clb_norm_input(b, c, NORM_X, x);
  clb_norm_weights(b, c, w);
  if (biased) clb_norm_biases(b, c, bias);
  for (int e = 0; e < b->width; e++) {
    ir_val n = ir_mul(k, root, x[e]);
    x[e] = biased ? ir_fma(k, w[e], n, bias[e]) : ir_mul(k, w[e], n);
  }
  clb_norm_write(b, c, 0, x);
}

static ir_val negative(clb_norm_kernel *b, ir_val v) { return ir_1(b->l.k, IR_NEG, v); }

/* The mean over 0e of a sum. */
static ir_val mean_of(clb_norm_kernel *b, int sum) {
  ir_val part = ir_real(b->l.k, b->l.t, 1 / (double)b->plan.scalars);
  return ir_mul(b->l.k, part, b->total[sum][0]);
}

static void backward(clb_norm_kernel *b, const clb_norm_chunk *c) {
  ir_kernel *k = b->l.k;
  const int g = c->s->group;
  elements v = read(b, c);
  ir_val r = b->root[g], slope[CLB_NORM_MOST_WIDTH], n[CLB_NORM_MOST_WIDTH];
  ir_val pull =
      b->x ? negative(b, ir_mul(k, v.factor, ir_mul(k, r, b->total[SUM_PULL][g]))) : IR_NONE;
  for (int e = 0; e < b->width; e++) {
    n[e] = ir_mul(k, r, v.x[e]);
    slope[e] = ir_mul(k, v.g[e], n[e]);
    if (!b->x) continue;
    if (c->s->scalar && b->norm->centre) v.h[e] = ir_sub(k, v.h[e], mean_of(b, SUM_H));
    v.h[e] = ir_mul(k, r, ir_fma(k, pull, n[e], v.h[e]));
  }
  if (b->x) clb_norm_write(b, c, 0, v.h);
  clb_norm_partial_add(b, c, slope, v.g);
}

/* Factors of the row in the results of double backward. */
typedef struct {
  ir_val r, r2, C, Q, Z, D, of_n; /* of_n: 3 C Q - D */
} factors;

static factors factors_of(clb_norm_kernel *b, int g) {
  ir_kernel *k = b->l.k;
  factors f = {.r = b->root[g]};
  f.r2 = ir_mul(k, f.r, f.r);
  if (b->a) f.Q = ir_mul(k, f.r, b->total[SUM_SLANT][g]);
  if (!b->x) return f;
  f.C = ir_mul(k, f.r, b->total[SUM_PULL][g]);
  if (b->c) f.Z = ir_mul(k, f.r, b->total[SUM_TURN][g]);
  if (b->a)
    f.of_n =
        ir_sub(k, ir_mul(k, ir_real(k, b->l.t, 3), ir_mul(k, f.C, f.Q)), b->total[SUM_BEND][g]);
  return f;
}

/* d_x of an element. */
static ir_val curvature(clb_norm_kernel *b, const clb_norm_chunk *c, const factors *f,
                        const elements *v, int e, ir_val n) {
  ir_kernel *k = b->l.k;
  const bool centred = c->s->scalar && b->norm->centre;
  ir_val d = ir_real(k, b->l.t, 0);
  if (b->a) {
    ir_val h = v->h[e];
    if (centred) h = ir_sub(k, h, mean_of(b, SUM_H));
    d = ir_mul(k, ir_mul(k, v->factor, f->of_n), n);
    d = ir_fma(k, negative(b, f->Q), h, d);
    d = ir_mul(k, f->r2, ir_fma(k, negative(b, ir_mul(k, v->factor, f->C)), v->a[e], d));
  }
  if (b->c) {
    ir_val cg = v->cg[e];
    if (centred) cg = ir_sub(k, cg, mean_of(b, SUM_CG));
    d = ir_fma(k, f->r, ir_fma(k, negative(b, ir_mul(k, v->factor, f->Z)), n, cg), d);
  }
  return d;
}

static void double_backward(clb_norm_kernel *b, const clb_norm_chunk *c) {
  ir_kernel *k = b->l.k;
  const elements v = read(b, c);
  const factors f = factors_of(b, c->s->group);
  ir_val d_x[CLB_NORM_MOST_WIDTH], d_g[CLB_NORM_MOST_WIDTH], d_w[CLB_NORM_MOST_WIDTH],
      c_bias[CLB_NORM_MOST_WIDTH], zero = ir_real(k, b->l.t, 0);
  const bool biased = b->c && c->s->scalar && b->plan.biases;
  if (biased) clb_norm_c_biases(b, c, c_bias);
  for (int e = 0; e < b->width; e++) {
    ir_val n = ir_mul(k, f.r, v.x[e]), bent = zero;
    if (b->a) bent = ir_mul(k, f.r, ir_fma(k, negative(b, f.Q), n, v.a[e]));
    d_w[e] = ir_mul(k, v.g[e], bent);
    d_g[e] = ir_mul(k, v.w[e], bent);
    if (b->c) d_g[e] = ir_fma(k, v.c[e], n, d_g[e]);
    if (biased) d_g[e] = ir_add(k, d_g[e], c_bias[e]);
    if (b->x) d_x[e] = curvature(b, c, &f, &v, e, n);
  }
  if (b->x) clb_norm_write(b, c, 0, d_x);
  if (b->z) clb_norm_write(b, c, 1, d_g);
  clb_norm_partial_add(b, c, d_w, NULL);
}

void clb_norm_row(clb_norm_kernel *b) {
  static clb_norm_each *const results[] = {forward, backward, double_backward};
  static const int means[] = {SUM_X, NORM_X, SUM_A, NORM_A};
  ir_kernel *k = b->l.k;
  ir_val one = ir_real(k, b->l.t, 1), epsilon = ir_real(k, b->l.t, b->norm->epsilon);
  for (int i = 0; i < NORM_INPUTS; i++) b->mean[i] = IR_NONE;
  if (b->norm->centre && b->plan.scalars) {
    clb_norm_clear(b, SUM_X, SUM_H);
    clb_norm_chunks(b, add_means);
    clb_norm_total(b, SUM_X, SUM_H);
    for (int i = 0; i < 4; i += 2)
      if (b->total[means[i]][0] != IR_NONE) b->mean[means[i + 1]] = mean_of(b, means[i]);
  }
  clb_norm_clear(b, 0, SUM_OF_GROUPS);
  clb_norm_clear(b, SUM_H, NORM_SUMS);
  clb_norm_chunks(b, add_up);
  clb_norm_total(b, 0, SUM_OF_GROUPS);
  clb_norm_total(b, SUM_H, NORM_SUMS);
  for (int g = 0; g < b->plan.n_groups; g++)
    b->root[g] =
        ir_2(k, IR_DIV, one, ir_1(k, IR_SQRT, ir_add(k, b->total[SUM_SQUARES][g], epsilon)));
  clb_norm_chunks(b, results[b->p->pass]);
}
