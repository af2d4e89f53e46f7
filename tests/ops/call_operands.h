/* tests/ops/call_operands.h - a tensor product of two paths, and the operands of the calls that run
   it or convolve it. */
#ifndef CLB_TESTS_OPS_CALL_OPERANDS_H
#define CLB_TESTS_OPS_CALL_OPERANDS_H

#include <stdbool.h>

#include <clebsch/clebsch.h>

static const clb_instruction two_paths[] = {{0, 0, 0, CLB_UVU, 1, 1}, {0, 1, 1, CLB_UVU, 1, 1}};
#define PLAIN_PRODUCT                                                                              \
  .irreps_x = "4x0e", .irreps_y = "0e+1o", .irreps_z = "4x0e+4x1o", .instructions = two_paths,     \
  .n_instructions = 2, .storage = CLB_F32, .arithmetic = CLB_F32
static const int columns[] = {
    [CLB_OPERAND_X] = 4, [CLB_OPERAND_Y] = 4, [CLB_OPERAND_W] = 8, [CLB_OPERAND_Z] = 16};

/* In the order of the calls; a result of a backward pass is a gradient by `of`. */
static const struct {
  const char *name;
  int of;
} operands[][sizeof(clb_triple_operands) / sizeof(clb_rows)] = {
    {{"x", CLB_OPERAND_X}, {"y", CLB_OPERAND_Y}, {"w", CLB_OPERAND_W}, {"z", CLB_OPERAND_Z}},
    {{"x", CLB_OPERAND_X},
     {"y", CLB_OPERAND_Y},
     {"w", CLB_OPERAND_W},
     {"g", CLB_OPERAND_Z},
     {"g_x", CLB_OPERAND_X},
     {"g_y", CLB_OPERAND_Y},
     {"g_w", CLB_OPERAND_W}},
    {{"x", CLB_OPERAND_X},
     {"y", CLB_OPERAND_Y},
     {"w", CLB_OPERAND_W},
     {"g", CLB_OPERAND_Z},
     {"a", CLB_OPERAND_X},
     {"b", CLB_OPERAND_Y},
     {"c", CLB_OPERAND_W},
     {"d_x", CLB_OPERAND_X},
     {"d_y", CLB_OPERAND_Y},
     {"d_w", CLB_OPERAND_W},
     {"d_g", CLB_OPERAND_Z}},
    {{"x", CLB_OPERAND_X},
     {"y", CLB_OPERAND_Y},
     {"w", CLB_OPERAND_W},
     {"g", CLB_OPERAND_Z},
     {"a", CLB_OPERAND_X},
     {"b", CLB_OPERAND_Y},
     {"c", CLB_OPERAND_W},
     {"p", CLB_OPERAND_X},
     {"q", CLB_OPERAND_Y},
     {"r", CLB_OPERAND_W},
     {"s", CLB_OPERAND_Z},
     {"e_x", CLB_OPERAND_X},
     {"e_y", CLB_OPERAND_Y},
     {"e_w", CLB_OPERAND_W},
     {"e_g", CLB_OPERAND_Z},
     {"e_a", CLB_OPERAND_X},
     {"e_b", CLB_OPERAND_Y},
     {"e_c", CLB_OPERAND_W}}};
static const int n_operands[] = {4, 7, 11, 18}, n_inputs[] = {3, 4, 7, 11};

/* Whether a backward pass of an op with these gradients and incoming gradients leaves out operand
   i. */
static inline bool is_absent(int pass, int i, unsigned gradients, unsigned incoming) {
  unsigned of = (unsigned)operands[pass][i].of;
  if (i >= n_inputs[pass]) return !(gradients & of);
  return i >= 4 && i < 7 && !(incoming & of);
}

#endif
