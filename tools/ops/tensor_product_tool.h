/* tools/ops/tensor_product_tool.h - a problem of the tensor product as the command sees it. */
#ifndef CLB_TOOLS_OPS_TENSOR_PRODUCT_TOOL_H
#define CLB_TOOLS_OPS_TENSOR_PRODUCT_TOOL_H

#include "tools/ops/op.h"
#include "tools/reference/reference_tensor_product.h"
#include "tools/ops/tensor_product_problems.h"

/* A named product, or (OTHER_PRODUCT) the irreps and paths of `desc`; desc also has all other
   settings. */
typedef struct {
  const char *name; /* NULL: print the irreps */
  product_kind kind;
  const char *x, *y, *z; /* z: the filter (NULL: none), or the irreps of the output */
  clb_path_order order;
  clb_tensor_product_desc desc;
  bool said; /* an option chose the irreps */
} tensor_problem;

extern const struct argp tensor_problem_argp; /* input: tensor_problem */
void tensor_problem_print(const void *problem, char *out, size_t size);

/* A description, with storage for the result of a constructor. */
typedef struct {
  clb_tensor_product_desc desc;
  clb_instructions found;
} tensor_desc;
/* Fills in irreps, paths and all settings of the problem; the caller frees *made, whatever the
 status. */
clb_status tensor_problem_describe(clb_context *ctx, const tensor_problem *p, tensor_desc **made);
reference_product *
tensor_problem_reference(const tensor_problem *p); /* exits if it does not support the problem */
void tensor_operands(const clb_tensor_product_desc *d, clb_tensor_product_sizes sizes,
                     tool_operands *o);

#endif
