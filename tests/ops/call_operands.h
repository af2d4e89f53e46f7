/* tests/ops/call_operands.h - a tensor product of two paths, and the operands of the calls that run
   it or convolve it. */
#ifndef CLB_TESTS_OPS_CALL_OPERANDS_H
#define CLB_TESTS_OPS_CALL_OPERANDS_H

#include <stdbool.h>

#include <clebsch/clebsch.h>

#include "src/base/signature.h"

static const clb_instruction two_paths[] = {{0, 0, 0, CLB_UVU, 1, 1}, {0, 1, 1, CLB_UVU, 1, 1}};
#define PLAIN_PRODUCT                                                                              \
  .irreps_x = "4x0e", .irreps_y = "0e+1o", .irreps_z = "4x0e+4x1o", .instructions = two_paths,     \
  .n_instructions = 2, .storage = CLB_F32, .arithmetic = CLB_F32
static const int columns[] = {
    [CLB_OPERAND_X] = 4, [CLB_OPERAND_Y] = 4, [CLB_OPERAND_W] = 8, [CLB_OPERAND_Z] = 16};

/* Number i of a pass, in the order of the calls. */
static inline clb_signature_operand operand(int pass, int i) {
  clb_signature_operand all[CLB_SIGNATURE_OPERANDS];
  clb_signature_operands(&clb_signature_tensor_product, pass, all);
  return all[i];
}
static const int n_operands[] = {4, 7, 11, 18};

/* Whether a backward pass of an op with these gradients and incoming gradients leaves out operand
   i. */
static inline bool is_absent(int pass, int i, unsigned gradients, unsigned incoming) {
  const clb_signature_operand is = operand(pass, i);
  return (is.role == CLB_ROLE_GRADIENT && !(gradients & (unsigned)is.of)) ||
         (is.role == CLB_ROLE_INCOMING && !(incoming & (unsigned)is.of));
}

#endif
