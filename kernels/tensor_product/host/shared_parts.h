/* kernels/tensor_product/host/shared_parts.h - what products with shared weights as matrix products
   consist of. */
#ifndef CLB_KERNELS_TENSOR_PRODUCT_HOST_SHARED_PARTS_H
#define CLB_KERNELS_TENSOR_PRODUCT_HOST_SHARED_PARTS_H

#include "kernels/linear/host/column_moves.h"
#include "kernels/linear/host/matmul.h"
#include "kernels/tensor_product/host/shared_products.h"

/* Pairs [rows][components][q] times weights [q][w]: of a term of z, or of some channels of x and
   one of y. */
typedef struct {
  int64_t q, w, components;
  int64_t at_pairs, apart; /* the first component in a row of pairs; between components */
  int64_t at_z;
  int64_t weight_at, weight_stride; /* the first weight; between rows of them */
  bool first;                       /* the first product that contributes to its term of z */
} clb_mixing_product;

enum { CLB_PAIR_ARRAYS = 4 };
enum clb_z_copy { CLB_COPY_OF_G, CLB_COPY_OF_Z, CLB_Z_COPIES };
enum clb_weight_copy { CLB_COPY_OF_W, CLB_COPY_OF_C, CLB_WEIGHT_COPIES };

struct clb_shared_products {
  clb_op *pairs, *back[2]; /* computes t; compute gradients of x and y, overwriting or adding */
  clb_op *gemm;
  clb_op *columns; /* to copies of z whose channels are side by side; NULL: those of z are */
  clb_op *weights; /* to copies of weights whose rows are in the order of pairs, and from sums of
                      slices; NULL: there are neither */
  clb_buffer *t[CLB_PAIR_ARRAYS];        /* [chunk][n_pairs] */
  clb_buffer *z[CLB_Z_COPIES];           /* [chunk][n_z] */
  clb_buffer *packed[CLB_WEIGHT_COPIES]; /* [n_weights]; NULL: weights are read where they are */
  clb_buffer *partial;                   /* [slices + 1][n_weights]: gradients by weights of slices
                                            of rows; NULL: there is one slice, of all rows */
  int64_t chunk, n_pairs, n_z, n_weights, slices;
  bool adds; /* to results of other paths */
  int n_products;
  clb_mixing_product product[CLB_MAX_PATHS];
};

#endif
