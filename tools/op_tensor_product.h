/* op_tensor_product.h - what a problem of the tensor product is to the command. */
#ifndef OP_TENSOR_PRODUCT_H
#define OP_TENSOR_PRODUCT_H

#include "ops.h"
#include "tensor_product_problems.h"

/* A named product, or (OTHER_PRODUCT) irreps and paths as `desc` has them; desc also says all the rest. */
typedef struct {
  const char *name; /* NULL: print the irreps */
  product_kind kind;
  const char *x, *y, *z; /* z: the filter (NULL: none), or the irreps of the output */
  clb_path_order order;
  clb_tensor_product_desc desc;
  bool said; /* an option chose the irreps */
} tensor_problem;

#endif
