/* tools/reference/reference_symmetric_contraction.h - the symmetric contraction and two derivatives
   as direct sums over monomials in float64, from the tensors of its paths. */
#ifndef CLB_TOOLS_REFERENCE_REFERENCE_SYMMETRIC_CONTRACTION_H
#define CLB_TOOLS_REFERENCE_REFERENCE_SYMMETRIC_CONTRACTION_H

#include "tools/reference/reference_row.h"

typedef struct reference_contraction reference_contraction;
/* Of the description only ell, correlation, degrees, channels, n_species and layouts matter; it is
   copied, but `degrees` must live on. NULL: no memory. */
reference_contraction *reference_contraction_create(const clb_symmetric_contraction_desc *desc);
void reference_contraction_destroy(reference_contraction *r);
/* The next path: of order nu, to degree number `out`, with the tensor u[2 l' + 1][d]^nu, which need
   not be symmetric. Returns 0 where there is no memory. */
int reference_contraction_add(reference_contraction *r, int out, int nu, const double *u);

/* Lengths of rows. */
reference_place reference_contraction_sizes(const reference_contraction *r);

/* Dense rows, in the order of the calls of clebsch.h: inputs, then results; a and c may be NULL,
   which means zeros, and results that are not wanted. scale: the sums of absolute values of each
   result's terms. */
void reference_contraction_run(const reference_contraction *r, clb_pass pass, int64_t rows,
                               const int32_t *species, double *const *values, double *const *wanted,
                               double *const *scale);

#endif
