/* kernels/tensor_product/path.h - one path of a channel-wise product (mode uvu, one channel of y):
   its contribution to each result.

   y is uniform.  beta_i = sum_jk C y_j z_k serves the gradients of x (w beta) and of w (x . beta),
   u = w x those of z (sum_ij C u_i y_j) and of y (sum_ik C u_i z_k). With `pairs` the sums a_ij =
   sum_k C z_k are computed first: beta_i = sum_j y_j a_ij, and the gradient of y is sum_i u_i a_ij,
   so that a non-zero that is alone in its pair (i, j) costs nothing extra.  With `matrices` that of
   z is sum_i M_ik u_i, M_ik = sum_j C y_j: the same in all lanes, M is shared by what builders of
   several channels make. */
#ifndef CLB_KERNELS_TENSOR_PRODUCT_PATH_H
#define CLB_KERNELS_TENSOR_PRODUCT_PATH_H

#include "kernels/tensor_product/form.h"
#include "kernels/tensor_product/product.h"

typedef struct {
  clb_form_builder *f;
  /* Loads the components of a vector of x or z (2l+1 of them; the others are IR_NONE), or a weight
     into v[0]. */
  void (*load)(void *owner, int slot, int order, ir_val *v);
  void *owner;
  bool pairs, matrices;
  ir_val y[ORDERS][CLB_MAX_CHANNEL_WISE_Y]; /* elements of y and of vectors of its shape, uniform */
  /* of the current path */
  const clb_path *path;
  clb_entry *entry;
  double *symbol;
  int n;
  int x_term[ORDERS]; /* the term whose components `value` holds; -1: none */
  bool loaded[SLOTS][ORDERS], contracted[ORDERS][ORDERS], paired[ORDERS];
  ir_val value[SLOTS][ORDERS][MAX_M],
      beta[ORDERS][ORDERS][MAX_M]; /* beta: by order of y and of z */
  ir_val pair[ORDERS][MAX_M][MAX_M];
} clb_path_builder;

/* false: no memory.  Release with clb_path_free. */
bool clb_path_begin(clb_path_builder *b, clb_form_builder *f,
                    void (*load)(void *owner, int slot, int order, ir_val *v), void *owner);
void clb_path_free(clb_path_builder *b);

/* Forgets the loaded components of x. */
void clb_path_forget(clb_path_builder *b);
/* Selects path p, with its coefficients divided by those of components of z (NULL: 1), and issues
   all its loads together. */
void clb_path_open(clb_path_builder *b, const clb_path *p, const double *scale);

/* Computes the sums a_ij of z of a path before a loop that uses them is opened. */
void clb_path_pairs(clb_path_builder *b, const clb_path *p, const double *scale);

/* The path's weight (order 0), loaded on first use; IR_NONE: 1. */
ir_val clb_path_weight(clb_path_builder *b);

/* The path's contribution to output o: added to `sum` (IR_NONE: still empty), or, for a weight,
   returned (IR_NONE: none). x and w share beta, y and z share w x, so the best order is X, W, Z,
   Y. */
void clb_path_x(clb_path_builder *b, int o, ir_val *sum);
ir_val clb_path_w(clb_path_builder *b, int o);
void clb_path_z(clb_path_builder *b, int o, ir_val *sum);
void clb_path_y(clb_path_builder *b, int o, ir_val *sum);

#endif
