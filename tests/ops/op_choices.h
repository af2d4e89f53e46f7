/* tests/ops/op_choices.h - what tests know of each op of `clebsch check`: its signature, and where
   its problem says which gradients there are. */
#ifndef CLB_TESTS_OPS_OP_CHOICES_H
#define CLB_TESTS_OPS_OP_CHOICES_H

#include "tests/ops/op_runs.h"

#include "src/base/signature.h"
#include "tools/ops/convolution/convolution_tool.h"

static inline const clb_signature *signature_of(const tool_op *op) {
  return op->on_graph ? &clb_signature_tensor_product : op->signature;
}

typedef struct {
  unsigned *gradients, *incoming; /* of a problem; NULL: the op has none */
  size_t bytes;                   /* of the problem */
} choices;

#define CHOICES(type, desc)                                                                        \
  ((choices){&((type *)problem)->desc gradients, &((type *)problem)->desc incoming, sizeof(type)})
static inline choices choices_of(const tool_op *op, void *problem) {
  if (op == &tool_op_tensor_product) return CHOICES(tensor_problem, desc.);
  if (op == &tool_op_convolution) return CHOICES(convolution_problem, product.desc.);
  if (op == &tool_op_symmetric_contraction) return CHOICES(clb_symmetric_contraction_desc, );
  if (op == &tool_op_rms_norm) return CHOICES(clb_rms_norm_desc, );
  if (op == &tool_op_linear) return CHOICES(clb_linear_desc, );
  return (choices){NULL, NULL, 0};
}

static inline bool has_all(const tool_op *op, const void *problem) {
  const choices c = choices_of(op, (void *)problem);
  return !c.gradients || !(*c.gradients | *c.incoming);
}

/* Whether an earlier case has this problem. */
static inline bool seen(const tool_op *op, int k) {
  char text[512], earlier[512];
  op->print(op->cases[k].kernel.problem, text, sizeof text);
  for (int i = 0; i < k; i++) {
    op->print(op->cases[i].kernel.problem, earlier, sizeof earlier);
    if (!strcmp(text, earlier)) return true;
  }
  return false;
}

#endif
