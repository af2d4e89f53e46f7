/* kernels/grouped/host/soap.h - the products and bases of SOAP (arXiv 2409.11321) for many
 * matrices. */
#ifndef CLB_KERNELS_GROUPED_HOST_SOAP_H
#define CLB_KERNELS_GROUPED_HOST_SOAP_H

#include "kernels/grouped/host/grouped.h"

/* One matrix of gradients, G, and its mean M. left, right: whether its columns (vectors of `rows`
   numbers) and its rows are rotated. The places of its parts in the memory are set by _create:
   L, R and the bases E, whose rows are vectors, are kept from step to step. */
typedef struct {
  int64_t rows, columns;
  bool left, right;
  double beta;                   /* of L and R */
  int64_t gate;                  /* number of its gate */
  int64_t gradient, mean;        /* G and M, to be put there before _rotate */
  int64_t rotated, rotated_mean; /* what it makes of them: E_L G E_R^T */
  int64_t direction;             /* E_L^T `rotated` E_R, what _rotate_back makes */
  int64_t product[2], sum[2], basis[2], next[2], half[2]; /* for soap.c; [2]: left, right */
} clb_soap_matrix;

/* Values of a gate: nothing but projections is done; L and R follow G; the bases, too; the bases
   are the first ones. */
enum { CLB_SOAP_REST, CLB_SOAP_STEP, CLB_SOAP_REFRESH, CLB_SOAP_FIRST };

typedef struct clb_soap clb_soap;

/* The memory is used from its element *end on, which is set to where the next use may begin; what
   must be kept is what lies there before element *kept. */
clb_status clb_soap_create(clb_context *ctx, clb_dtype type, clb_soap_matrix *matrices, int64_t n,
                           int64_t *end, int64_t *kept, clb_soap **soap);
void clb_soap_destroy(clb_soap **soap);
/* Submit 2 and 5 launches. _rotate: L and R follow G. _rotate_back: new bases, too, where gates say
   so, for the next step. */
clb_status clb_soap_rotate(clb_soap *soap, const clb_memory *memory, const clb_memory *gates);
clb_status clb_soap_rotate_back(clb_soap *soap, const clb_memory *memory, const clb_memory *gates);

#endif
