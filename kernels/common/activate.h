/* kernels/common/activate.h - activations and their derivatives. */
#ifndef CLB_KERNELS_COMMON_ACTIVATE_H
#define CLB_KERNELS_COMMON_ACTIVATE_H

#include "kernels/kernel.h"
#include "src/problem/activation.h"

/* Value, slope and second derivative (bend; NULL: not wanted) of a clb_activation at x. */
void clb_activate(ir_kernel *k, ir_type t, int activation, ir_val x, ir_val *value, ir_val *slope,
                  ir_val *bend);
/* The natural logarithm of x, 1e-10 <= x <= 1e6, to rounding. */
ir_val clb_logarithm(ir_kernel *k, ir_type t, ir_val x);

#endif
