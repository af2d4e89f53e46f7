/* src/problem/wigner.h - Wigner 3j symbols in the real basis of e3nn (0.5 and later). */
#ifndef CLB_SRC_PROBLEM_WIGNER_H
#define CLB_SRC_PROBLEM_WIGNER_H

/* C[2 l1 + 1][2 l2 + 1][2 l3 + 1], Frobenius norm 1; for l1 + l2 + l3 <= 60.  Zeros are exact.  All
   0 where the triangle rule fails. */
void clb_wigner_3j(int l1, int l2, int l3, double *C);
/* The number of its non-zero elements; needs no memory. */
int clb_wigner_nonzeros(int l1, int l2, int l3);

#endif
