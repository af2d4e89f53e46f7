/* kernels/tensor_product/host/shared_products.h - paths with shared weights that mix channels, as
   matrix products.

   With the pairs t = C x y of a term of z, those of all its paths side by side, rows of z are t W,
   those of the gradient of t are g W^T, and the gradient of W is t^T g, for each component. */
#ifndef CLB_KERNELS_TENSOR_PRODUCT_HOST_SHARED_PRODUCTS_H
#define CLB_KERNELS_TENSOR_PRODUCT_HOST_SHARED_PRODUCTS_H

#include "src/runtime/context.h"

typedef struct clb_shared_products clb_shared_products;

/* Which paths are worth it; returns the bits of passes that are, 0: none. */
unsigned clb_shared_products_choose(const clb_limits *limits, const clb_problem *p,
                                    bool chosen[CLB_MAX_PATHS]);
/* Of the chosen paths and some of these passes. rest: other paths write results
   first, to which these are added. *products: NULL on failure. */
clb_status clb_shared_products_create(clb_context *ctx, const clb_problem *p,
                                      const bool chosen[CLB_MAX_PATHS], bool rest, unsigned passes,
                                      const clb_tuner *tuner, clb_shared_products **products);
void clb_shared_products_destroy(clb_shared_products **products);
/* A kernel of the pass to show. */
const clb_op *clb_shared_products_shown(const clb_shared_products *products, clb_pass pass,
                                        int *kernel);

/* Rows of one call; its operands have been checked. */
clb_status clb_shared_products_run(clb_op *op, const clb_shared_products *products, clb_pass pass,
                                   int64_t n, const clb_operand *operands, int n_operands);

/* Operand o from row `first` on. */
clb_operand clb_rows_from(const clb_operand *o, int64_t first);
/* Number of rows of `bytes` each in a workspace: on a CPU as many as stay in cache, on a GPU enough
   to fill the device. */
int64_t clb_chunk_rows(const clb_context *ctx, int64_t bytes);

#endif
