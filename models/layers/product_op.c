/* models/layers/product_op.c - the op of layers that multiply rows. */
#include <stdlib.h>

#include "kernels/tensor_product/host/tensor_product.h"
#include "models/layers/kinds.h"
#include "src/problem/irreps.h"

clb_status clb_product_create(clb_network *n, clb_tensor_product_desc d, const clb_irreps *x,
                              const clb_irreps *other, const clb_irreps *z, bool adds,
                              unsigned passes, clb_op **op) {
  d.irrep_normalization = CLB_IRREP_COMPONENT;
  d.path_normalization = CLB_PATH_NONE;
  d.layout_x = d.layout_y = d.layout_z = CLB_IR_MUL;
  clb_problem *problem = calloc(1, sizeof *problem);
  if (!problem) return clb_network_no_memory(n);
  clb_tensor_product_problem *t = &problem->tensor_product;
  problem->kind = CLB_TENSOR_PRODUCT;
  problem->storage = problem->arithmetic = (int32_t)n->type;
  problem->accumulate = adds;
  t->x = *x;
  t->y = *other;
  t->z = *z;
  clb_status s = clb_tensor_product_fill(&d, t, n->error);
  t->edges = d.indexed;
  if (!s) s = clb_tensor_product_make(n->ctx, problem, passes, NULL, op);
  free(problem);
  return s;
}
