/* kernels/linear/host/products.h - linear maps of irreps as matrix products of a BLAS, one for each
   path, which for many rows is faster than one kernel for all. */
#ifndef CLB_KERNELS_LINEAR_HOST_PRODUCTS_H
#define CLB_KERNELS_LINEAR_HOST_PRODUCTS_H

#include "kernels/host/operand_lists.h"

typedef struct clb_linear_products clb_linear_products;

/* *products: NULL if there is no BLAS, or it cannot do these passes. */
clb_status clb_linear_products_create(clb_context *ctx, const clb_problem *p, unsigned passes,
                                      clb_linear_products **products);
void clb_linear_products_destroy(clb_linear_products **products);
/* Whether they are faster than one launch; op: of the linear map. */
bool clb_linear_products_pay(const clb_op *op, int64_t n);
/* Results that have a row for each row of x; and the gradient by weights, if there is one. */
clb_status clb_linear_products_rows(const clb_linear_products *products, const clb_problem *p,
                                    clb_pass pass, int64_t n, const clb_operand *operands);
clb_status clb_linear_products_weights(const clb_linear_products *products, const clb_problem *p,
                                       clb_pass pass, int64_t n, const clb_operand *operands);

#endif
