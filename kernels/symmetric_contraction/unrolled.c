/* kernels/symmetric_contraction/unrolled.c - a row's values in registers, every product its own
   instructions.

   Trees of order 3 and 4 that share [left right]_l' are summed over their right elements first:
     q = sum_t w_t right_t,  z += [left q]_l'.
   With g the gradient by z and h = d(g . [left q]) / dq, backward adds
     to d left: d(g . [left q]) / d left,  to d right_t: w_t h,  to d w_t: h . right_t.
   Right elements of one degree and parity are done together, so that a pair's value and gradient
   live in registers only while their turn lasts, unless pairs are also left elements. */
#include "kernels/symmetric_contraction/contraction.h"

#include <stdlib.h>

static int width(const clb_symmetric_element *e) { return 2 * e->degree + 1; }
static bool is_none(clb_dual x) { return x.v == IR_NONE && x.d == IR_NONE; }
static const clb_dual none = {IR_NONE, IR_NONE};

static ir_val plus(ir_kernel *k, ir_val sum, ir_val x, ir_val y) {
  if (x == IR_NONE || y == IR_NONE) return sum;
  return sum == IR_NONE ? ir_mul(k, x, y) : ir_fma(k, x, y, sum);
}

clb_dual clb_dual_plus(clb_contraction *b, clb_dual sum, clb_dual x, clb_dual y) {
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
                            .out = CLB_NO_OUT};
  if (!row->value || !row->gradient || !row->weight || !row->weight_gradient) return false;
  clb_unrolled_clear(b, row);
  return true;
}

void clb_unrolled_free(clb_unrolled_row *row) {
  free(row->value), free(row->gradient), free(row->weight), free(row->weight_gradient);
}

/* ---- elements ---- */

/* The value of an element, computed when it is first asked for. */
static clb_dual *value_of(clb_contraction *b, clb_unrolled_row *row, int e) {
  const clb_symmetric_element *p = &b->plan.element[e];
  clb_symmetric_term term[CLB_MAX_SYMMETRIC_TERMS];
  clb_dual *value = row->value + p->at;
  if (p->l1 < 0 || !is_none(value[0])) return value;
  int n = clb_symmetric_terms(p->l1, p->l2, p->degree, p->l1 == p->l2, term);
  for (int q = 0; q < n; q++) {
    clb_dual product = clb_dual_plus(b, none, row->value[p->l1 * p->l1 + term[q].i],
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
    row->gradient[first] = clb_dual_plus(b, row->gradient[first], h, row->value[second]);
    row->gradient[second] = clb_dual_plus(b, row->gradient[second], h, row->value[first]);
  }
}

/* ---- trees ---- */

static bool wanted(const clb_unrolled_row *row, const clb_symmetric_tree *t) {
  return row->out == CLB_NO_OUT || row->out == t->out;
}

/* A tree that is one element. */
static void single(clb_contraction *b, clb_unrolled_row *row, int tree) {
  const clb_symmetric_tree *t = &b->plan.tree[tree];
  const clb_dual *value = value_of(b, row, t->right), w = row->weight[tree];
  clb_dual *gradient = row->gradient + b->plan.element[t->right].at;
  for (int m = 0; m < width(&b->plan.element[t->right]); m++) {
    clb_dual g = {row->g[t->out][m], IR_NONE};
    if (b->results) row->z[t->out][m] = clb_dual_plus(b, row->z[t->out][m], w, value[m]);
    if (b->gradients) gradient[m] = clb_dual_plus(b, gradient[m], w, g);
    if (b->weights)
      row->weight_gradient[tree] = clb_dual_plus(b, row->weight_gradient[tree], g, value[m]);
  }
}

/* Whether two trees share [left right]_l' but for the sum over right elements. */
static bool together(const clb_symmetric_plan *plan, int a, int b) {
  const clb_symmetric_tree *s = &plan->tree[a], *t = &plan->tree[b];
  const clb_symmetric_element *p = &plan->element[s->right], *q = &plan->element[t->right];
  return s->left == t->left && s->out == t->out && p->degree == q->degree &&
         p->natural == q->natural;
}

/* q, and z and the gradient by the left element. */
static void through_left(clb_contraction *b, clb_unrolled_row *row, int tree,
                         const clb_symmetric_term *term, int n) {
  const clb_symmetric_tree *t = &b->plan.tree[tree];
  const clb_dual *left = value_of(b, row, t->left);
  clb_dual *gradient = row->gradient + b->plan.element[t->left].at, q[2 * CLB_MAX_PAIR_DEGREE + 1],
           sum[2 * CLB_MAX_PAIR_DEGREE + 1][MAX_WIDTH];
  int nq = width(&b->plan.element[t->right]), nl = width(&b->plan.element[t->left]),
      nz = 2 * b->sc->degrees[t->out] + 1;
  for (int k = 0; k < nq; k++) q[k] = none;
  for (int s = tree; s < b->plan.basis.n_paths; s++) {
    if (!together(&b->plan, tree, s)) continue;
    const clb_dual *right = value_of(b, row, b->plan.tree[s].right);
    for (int k = 0; k < nq; k++) q[k] = clb_dual_plus(b, q[k], row->weight[s], right[k]);
  }
  for (int i = 0; i < nl; i++)
    for (int m = 0; m < nz; m++) sum[i][m] = none;
  for (int e = 0; e < n; e++)
    sum[term[e].i][term[e].m] =
        clb_dual_plus_scaled(b, sum[term[e].i][term[e].m], term[e].c, q[term[e].k]);
  for (int i = 0; i < nl; i++)
    for (int m = 0; m < nz; m++) {
      clb_dual g = {row->g[t->out][m], IR_NONE};
      if (b->results) row->z[t->out][m] = clb_dual_plus(b, row->z[t->out][m], sum[i][m], left[i]);
      if (b->gradients) gradient[i] = clb_dual_plus(b, gradient[i], sum[i][m], g);
    }
}

/* h, and the gradients by right elements and weights. */
static void through_right(clb_contraction *b, clb_unrolled_row *row, int tree,
                          const clb_symmetric_term *term, int n) {
  const clb_symmetric_tree *t = &b->plan.tree[tree];
  const clb_dual *left = value_of(b, row, t->left);
  clb_dual h[2 * CLB_MAX_PAIR_DEGREE + 1];
  int nq = width(&b->plan.element[t->right]);
  for (int k = 0; k < nq; k++) h[k] = none;
  for (int e = 0; e < n; e++) {
    clb_dual g = {row->g[t->out][term[e].m], IR_NONE};
    g = clb_dual_plus_scaled(b, none, term[e].c, g);
    h[term[e].k] = clb_dual_plus(b, h[term[e].k], g, left[term[e].i]);
  }
  for (int s = tree; s < b->plan.basis.n_paths; s++) {
    if (!together(&b->plan, tree, s)) continue;
    int right = b->plan.tree[s].right, at = b->plan.element[right].at;
    const clb_dual *value = value_of(b, row, right);
    for (int k = 0; k < nq; k++) {
      if (b->gradients)
        row->gradient[at + k] = clb_dual_plus(b, row->gradient[at + k], row->weight[s], h[k]);
      if (b->weights)
        row->weight_gradient[s] = clb_dual_plus(b, row->weight_gradient[s], h[k], value[k]);
    }
  }
}

/* Everything that right elements first ... end - 1, of one degree and parity, take part in. */
static void right_elements(clb_contraction *b, clb_unrolled_row *row, int first, int end) {
  clb_symmetric_term term[CLB_MAX_SYMMETRIC_TERMS];
  for (int i = 0; i < b->plan.basis.n_paths; i++) {
    const clb_symmetric_tree *t = &b->plan.tree[i];
    if (t->right < first || t->right >= end || !wanted(row, t)) continue;
    if (t->left == CLB_NO_ELEMENT) {
      single(b, row, i);
      continue;
    }
    bool done = false; /* with an earlier tree */
    for (int k = 0; k < i && !done; k++) done = together(&b->plan, i, k);
    if (done) continue;
    int n = clb_symmetric_terms(b->plan.element[t->left].degree, b->plan.element[t->right].degree,
                                b->sc->degrees[t->out], false, term);
    if (b->results || b->gradients) through_left(b, row, i, term, n);
    if (b->gradients || b->weights) through_right(b, row, i, term, n);
  }
}

void clb_contraction_unrolled(clb_contraction *b, clb_unrolled_row *row) {
  const clb_symmetric_element *e = b->plan.element;
  int ell = b->sc->ell, n = b->plan.n_elements;
  bool pairs_are_left = b->sc->correlation > 3;
  for (int first = ell + 1, end; first < n; first = end) {
    for (end = first;
         end < n && e[end].degree == e[first].degree && e[end].natural == e[first].natural;)
      end++;
    right_elements(b, row, first, end);
    for (int i = first; i < end && b->gradients && !pairs_are_left; i++) pair_gradient(b, row, i);
  }
  for (int i = ell + 1; i < n && b->gradients && pairs_are_left; i++) pair_gradient(b, row, i);
  right_elements(b, row, 0, ell + 1);
}
