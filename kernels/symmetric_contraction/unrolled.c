/* kernels/symmetric_contraction/unrolled.c - a row's values in registers, every product its own
   instructions.

   Trees of order 3 and 4 that share [left right]_l' are summed over their right elements first:
     q = sum_t w_t right_t,  z += [left q]_l'.
   With g the gradient by z and h = d(g . [left q]) / dq, backward adds
     to d left: d(g . [left q]) / d left,  to d right_t: w_t h,  to d w_t: h . right_t.
   Right elements of one degree and parity are done one after the other, between all their h and all
   their q, so that a pair's value and gradient live in registers only while its phase lasts, unless
   pairs are also left elements. */
#include "kernels/symmetric_contraction/contraction.h"

#include <stdlib.h>

static int width(const clb_symmetric_element *e) { return 2 * e->degree + 1; }
static bool is_none(clb_dual x) { return x.v == IR_NONE && x.d == IR_NONE; }
static const clb_dual none = {IR_NONE, IR_NONE};

static ir_val plus(ir_kernel *k, ir_val sum, ir_val x, ir_val y) {
  if (x == IR_NONE || y == IR_NONE) return sum;
  return sum == IR_NONE ? ir_mul(k, x, y) : ir_fma(k, x, y, sum);
}

static clb_dual dual_plus(clb_contraction *b, clb_dual sum, clb_dual x, clb_dual y) {
  return (clb_dual){plus(b->k, sum.v, x.v, y.v), plus(b->k, plus(b->k, sum.d, x.v, y.d), x.d, y.v)};
}

static ir_val plus_scaled(clb_contraction *b, ir_val sum, double c, ir_val x) {
  if (x == IR_NONE || c == 0) return sum;
  if (c == 1) return sum == IR_NONE ? x : ir_add(b->k, sum, x);
  return plus(b->k, sum, x, ir_real(b->k, b->t, c));
}

clb_dual clb_dual_plus_scaled(clb_contraction *b, clb_dual sum, double c, clb_dual x) {
  return (clb_dual){plus_scaled(b, sum.v, c, x.v), plus_scaled(b, sum.d, c, x.d)};
}

/* ---- the row's arrays ---- */

void clb_unrolled_clear(const clb_contraction *b, clb_unrolled_row *row) {
  for (int i = 0; i < b->plan.n_values; i++) row->value[i] = row->gradient[i] = none;
  for (int i = 0; i < b->plan.basis.n_paths; i++) row->weight[i] = row->weight_gradient[i] = none;
  for (int o = 0; o <= CLB_MAX_ELL; o++)
    for (int m = 0; m < MAX_WIDTH; m++) row->z[o][m] = none, row->g[o][m] = IR_NONE;
}

bool clb_unrolled_make(const clb_contraction *b, clb_unrolled_row *row) {
  size_t values = (size_t)b->plan.n_values, paths = (size_t)b->plan.basis.n_paths + 1;
  *row = (clb_unrolled_row){.value = malloc(values * sizeof(clb_dual)),
                            .gradient = malloc(values * sizeof(clb_dual)),
                            .weight = malloc(paths * sizeof(clb_dual)),
                            .weight_gradient = malloc(paths * sizeof(clb_dual)),
                            .product = malloc(paths * sizeof(clb_unrolled_product)),
                            .out = CLB_NO_OUT};
  if (!row->value || !row->gradient || !row->weight || !row->weight_gradient || !row->product)
    return false;
  clb_unrolled_clear(b, row);
  return true;
}

void clb_unrolled_free(clb_unrolled_row *row) {
  free(row->value), free(row->gradient), free(row->weight), free(row->weight_gradient);
  free(row->product);
}

/* ---- elements ---- */

void clb_unrolled_set(clb_contraction *b, clb_unrolled_row *row, const ir_val *x,
                      const ir_val *along) {
  for (int i = 0; i < (b->sc->ell + 1) * (b->sc->ell + 1); i++)
    row->value[i] = (clb_dual){x[i], along ? along[i] : IR_NONE};
}

/* The value of an element, computed when it is first asked for. */
static clb_dual *value_of(clb_contraction *b, clb_unrolled_row *row, int e) {
  const clb_symmetric_element *p = &b->plan.element[e];
  clb_symmetric_term term[CLB_MAX_SYMMETRIC_TERMS];
  clb_dual *value = row->value + p->at;
  if (p->l1 < 0 || !is_none(value[0])) return value;
  int n = clb_symmetric_terms(p->l1, p->l2, p->degree, p->l1 == p->l2, term);
  for (int q = 0; q < n; q++) {
    clb_dual product = dual_plus(b, none, row->value[p->l1 * p->l1 + term[q].i],
                                 row->value[p->l2 * p->l2 + term[q].k]);
    value[term[q].m] = clb_dual_plus_scaled(b, value[term[q].m], term[q].c, product);
  }
  return value;
}

/* The gradients by the A of a pair, from that by its value. */
static void pair_gradient(clb_contraction *b, clb_unrolled_row *row, int e) {
  const clb_symmetric_element *p = &b->plan.element[e];
  clb_symmetric_term term[CLB_MAX_SYMMETRIC_TERMS];
  int n = clb_symmetric_terms(p->l1, p->l2, p->degree, p->l1 == p->l2, term);
  for (int q = 0, end; q < n; q = end) {
    clb_dual h = none; /* by the product a_i b_k */
    for (end = q; end < n && term[end].i == term[q].i && term[end].k == term[q].k; end++)
      h = clb_dual_plus_scaled(b, h, term[end].c, row->gradient[p->at + term[end].m]);
    int first = p->l1 * p->l1 + term[q].i, second = p->l2 * p->l2 + term[q].k;
    row->gradient[first] = dual_plus(b, row->gradient[first], h, row->value[second]);
    row->gradient[second] = dual_plus(b, row->gradient[second], h, row->value[first]);
  }
}

/* ---- trees ---- */

static clb_dual weight_of(clb_unrolled_row *row, int tree) {
  if (is_none(row->weight[tree]) && row->weigh) row->weight[tree] = row->weigh(row->user, tree);
  return row->weight[tree];
}

static bool wanted(const clb_unrolled_row *row, const clb_symmetric_tree *t) {
  return row->out == CLB_NO_OUT || row->out == t->out;
}

/* A tree that is one element. */
static void single(clb_contraction *b, clb_unrolled_row *row, int tree) {
  const clb_symmetric_tree *t = &b->plan.tree[tree];
  const clb_dual *value = value_of(b, row, t->right), w = weight_of(row, tree);
  clb_dual *gradient = row->gradient + b->plan.element[t->right].at;
  for (int m = 0; m < width(&b->plan.element[t->right]); m++) {
    clb_dual g = {row->g[t->out][m], IR_NONE};
    if (b->results) row->z[t->out][m] = dual_plus(b, row->z[t->out][m], w, value[m]);
    if (b->gradients) gradient[m] = dual_plus(b, gradient[m], w, g);
    if (b->weights)
      row->weight_gradient[tree] = dual_plus(b, row->weight_gradient[tree], g, value[m]);
  }
}

static int terms_of(const clb_contraction *b, const clb_unrolled_product *p, int degree,
                    clb_symmetric_term *term) {
  return clb_symmetric_terms(b->plan.element[p->left].degree, degree, b->sc->degrees[p->out], false,
                             term);
}

/* h; `degree`: of the right elements. */
static void gradient_of_q(clb_contraction *b, clb_unrolled_row *row, clb_unrolled_product *p,
                          int degree) {
  clb_symmetric_term term[CLB_MAX_SYMMETRIC_TERMS];
  const clb_dual *left = value_of(b, row, p->left);
  int n = terms_of(b, p, degree, term);
  for (int e = 0; e < n; e++) {
    clb_dual g = {row->g[p->out][term[e].m], IR_NONE};
    g = clb_dual_plus_scaled(b, none, term[e].c, g);
    p->h[term[e].k] = dual_plus(b, p->h[term[e].k], g, left[term[e].i]);
  }
}

/* z and the gradient by the left element, from q. */
static void through_left(clb_contraction *b, clb_unrolled_row *row, const clb_unrolled_product *p,
                         int degree) {
  clb_symmetric_term term[CLB_MAX_SYMMETRIC_TERMS];
  const clb_dual *left = value_of(b, row, p->left);
  clb_dual *gradient = row->gradient + b->plan.element[p->left].at,
           sum[2 * CLB_MAX_PAIR_DEGREE + 1][MAX_WIDTH];
  int n = terms_of(b, p, degree, term), nl = width(&b->plan.element[p->left]),
      nz = 2 * b->sc->degrees[p->out] + 1;
  for (int i = 0; i < nl; i++)
    for (int m = 0; m < nz; m++) sum[i][m] = none;
  for (int e = 0; e < n; e++)
    sum[term[e].i][term[e].m] =
        clb_dual_plus_scaled(b, sum[term[e].i][term[e].m], term[e].c, p->q[term[e].k]);
  for (int i = 0; i < nl; i++)
    for (int m = 0; m < nz; m++) {
      clb_dual g = {row->g[p->out][m], IR_NONE};
      if (b->results) row->z[p->out][m] = dual_plus(b, row->z[p->out][m], sum[i][m], left[i]);
      if (b->gradients) gradient[i] = dual_plus(b, gradient[i], sum[i][m], g);
    }
}

/* Adds a tree's right element to q, and what h says about element and weight. */
static void through_right(clb_contraction *b, clb_unrolled_row *row, int tree,
                          clb_unrolled_product *p) {
  const clb_symmetric_element *right = &b->plan.element[b->plan.tree[tree].right];
  const clb_dual *value = value_of(b, row, b->plan.tree[tree].right);
  for (int k = 0; k < width(right); k++) {
    clb_dual *gradient = &row->gradient[right->at + k];
    if (b->results || b->gradients) p->q[k] = dual_plus(b, p->q[k], weight_of(row, tree), value[k]);
    if (b->gradients) *gradient = dual_plus(b, *gradient, weight_of(row, tree), p->h[k]);
    if (b->weights)
      row->weight_gradient[tree] = dual_plus(b, row->weight_gradient[tree], p->h[k], value[k]);
  }
}

/* The product of a tree among the n found so far, or the next one. */
static int product_of(clb_unrolled_row *row, const clb_symmetric_tree *t, int n) {
  int i = 0;
  while (i < n && (row->product[i].left != t->left || row->product[i].out != t->out)) i++;
  return i;
}

static int find_products(clb_contraction *b, clb_unrolled_row *row, int first, int end) {
  int n = 0;
  for (int i = 0; i < b->plan.basis.n_paths; i++) {
    const clb_symmetric_tree *t = &b->plan.tree[i];
    if (t->right < first || t->right >= end || !wanted(row, t) || t->left == CLB_NO_ELEMENT ||
        product_of(row, t, n) < n)
      continue;
    clb_unrolled_product *p = &row->product[n++];
    *p = (clb_unrolled_product){.left = t->left, .out = t->out};
    for (int k = 0; k < 2 * CLB_MAX_PAIR_DEGREE + 1; k++) p->q[k] = p->h[k] = none;
  }
  return n;
}

/* Everything that right elements first ... end - 1, of one degree and parity, take part in. */
static void right_elements(clb_contraction *b, clb_unrolled_row *row, int first, int end,
                           bool flush) {
  int n = find_products(b, row, first, end), degree = b->plan.element[first].degree;
  for (int i = 0; i < n && (b->gradients || b->weights); i++)
    gradient_of_q(b, row, &row->product[i], degree);
  for (int e = first; e < end; e++) {
    for (int i = 0; i < b->plan.basis.n_paths; i++) {
      const clb_symmetric_tree *t = &b->plan.tree[i];
      if (t->right != e || !wanted(row, t)) continue;
      if (t->left == CLB_NO_ELEMENT) single(b, row, i);
      else through_right(b, row, i, &row->product[product_of(row, t, n)]);
    }
    if (flush) pair_gradient(b, row, e);
  }
  for (int i = 0; i < n && (b->results || b->gradients); i++)
    through_left(b, row, &row->product[i], degree);
}

int clb_contraction_phase_end(const clb_contraction *b, int first) {
  const clb_symmetric_element *e = b->plan.element;
  int end = first;
  while (end < b->plan.n_elements && e[end].degree == e[first].degree &&
         e[end].natural == e[first].natural)
    end++;
  return end;
}

bool clb_contraction_phase(clb_contraction *b, clb_unrolled_row *row, int phase) {
  int ell = b->sc->ell, first = ell + 1;
  for (int l = 0; l <= ell && !phase; l++) right_elements(b, row, l, l + 1, false);
  if (!phase) return true;
  while (--phase && first < b->plan.n_elements) first = clb_contraction_phase_end(b, first);
  if (first == b->plan.n_elements) return false;
  right_elements(b, row, first, clb_contraction_phase_end(b, first),
                 b->gradients && b->sc->correlation < 4);
  return true;
}

void clb_contraction_unrolled(clb_contraction *b, clb_unrolled_row *row) {
  for (int phase = 1; clb_contraction_phase(b, row, phase);) phase++;
  for (int i = b->sc->ell + 1; i < b->plan.n_elements && b->gradients && b->sc->correlation > 3;
       i++)
    pair_gradient(b, row, i);
  clb_contraction_phase(b, row, 0);
}
