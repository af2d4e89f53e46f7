/* kernels/symmetric_contraction/contraction_plan.h - the elements from which a symmetric
   contraction's trees are made, and which trees use them.

   Elements 0 ... ell are the A_l; the others are pairs [A_l1 A_l2]_j, each made once for all trees.
   A tree of order 1 or 2 is one element (`right`); one of order 3 or 4 is [left right]_l', left an
   A_l or a pair, right a pair. */
#ifndef CLB_KERNELS_SYMMETRIC_CONTRACTION_CONTRACTION_PLAN_H
#define CLB_KERNELS_SYMMETRIC_CONTRACTION_CONTRACTION_PLAN_H

#include "src/problem/symmetric_basis.h"

enum { CLB_NO_ELEMENT = -1, CLB_MAX_PAIR_DEGREE = 2 * CLB_MAX_ELL };

typedef struct {
  int l1, l2;          /* of a pair; -1 of an A_l */
  int degree, natural; /* natural: its parity is (-1)^degree */
  int at;              /* its first component; those of all elements are numbered together */
} clb_symmetric_element;

typedef struct {
  int left, right, out; /* out: index in the problem's degrees */
} clb_symmetric_tree;

typedef struct {
  clb_symmetric_basis basis;
  int n_elements, n_values;       /* n_values: components of all elements */
  clb_symmetric_element *element; /* pairs by degree, parity, l1, l2 */
  clb_symmetric_tree *tree;       /* one for each path */
} clb_symmetric_plan;

/* false: no memory. Release with _free, whatever the result. */
bool clb_symmetric_plan_make(const clb_symmetric_contraction_problem *p, clb_symmetric_plan *plan);
void clb_symmetric_plan_free(clb_symmetric_plan *plan);

/* One of the monomials c a_i b_k that sum up to component m of a product [a b]. */
typedef struct {
  int i, k, m;
  double c;
} clb_symmetric_term;
enum { CLB_MAX_SYMMETRIC_TERMS = 17 * 17 * 9 };
/* The non-zeros of w3j(l1, l2, l3), by i, k, m; returns how many. same: a and b are the same, so
   that a_i a_k and a_k a_i are one monomial, i <= k. */
int clb_symmetric_terms(int l1, int l2, int l3, bool same, clb_symmetric_term *terms);

/* About how many multiplications a forward pass takes where nothing is a loop. */
int64_t clb_symmetric_cost(const clb_symmetric_plan *plan);

#endif
