/* src/problem/symmetric_basis.h - orthonormal bases of the equivariant polynomials of a symmetric
   contraction.

   V = 0 + 1 + ... + ell (natural parities) has the coordinates A[l][m]. For a degree l' and an
   order nu the polynomials B[m'](A) of order nu that turn like l' are those of the equivariant maps
   Sym^nu(V) -> l'. They fall into blocks, one for each multiset l_1 <= ... <= l_nu with l_1 + ... +
   l_nu + l' even. Within a block there are the trees, [a b]_j = sum_mn w3j(l_a, l_b, j)_mn a_m b_n:
     nu = 1: A_l1     2: [A_l1 A_l2]_l'     3: [A_l3 [A_l1 A_l2]_j]_l'
     nu = 4: [[A_l1 A_l2]_j [A_l3 A_l4]_k]_l'
   in ascending order of j, then k; those that depend on earlier ones as polynomials are left out.
   The others, orthonormalised in this order (Gram and Schmidt), are the basis: the coefficient of
   an element's own tree is positive. The scalar product is that of the symmetric tensors U[m'][M_1]
   ... [M_nu], summed over m' and all M = (l, m): each element of the basis has norm 1. */
#ifndef CLB_SRC_PROBLEM_SYMMETRIC_BASIS_H
#define CLB_SRC_PROBLEM_SYMMETRIC_BASIS_H

#include <stdbool.h>

#include "src/base/error.h"
#include "src/problem/problem.h"

/* Checks a description and fills the problem. */
clb_status clb_symmetric_contraction_read(const clb_symmetric_contraction_desc *desc,
                                          clb_symmetric_contraction_problem *p,
                                          clb_error_sink *error);

/* One element of the basis, and the tree with which it came. */
typedef struct {
  int degree, nu;
  int l[CLB_MAX_CORRELATION], j[2]; /* unused ones are 0 */
  int first; /* the first path of its block; with `mix`: the element is sum_t mix[mix_at + t] times
                tree `first + t`, t = 0 ... its own position in the block */
  int mix_at;
} clb_symmetric_path;

/* In the order of the weights: by degree as the problem lists them, then nu, then l_1, l_2, ...,
   then j, k. */
typedef struct {
  int n_paths;
  clb_symmetric_path *path;
  double *mix;
} clb_symmetric_basis;

/* false: no memory. Release with _free, whatever the result. */
bool clb_symmetric_basis_make(const clb_symmetric_contraction_problem *p, clb_symmetric_basis *b);
void clb_symmetric_basis_free(clb_symmetric_basis *b);

/* The number of elements of order nu and this degree; needs no memory. */
int clb_symmetric_rank(int ell, int nu, int degree);

/* The dense tensor of one element, u[2 degree + 1][d]^nu, d = (ell + 1)^2. false: no memory. */
bool clb_symmetric_dense(const clb_symmetric_basis *b, int path, int ell, double *u);

#endif
