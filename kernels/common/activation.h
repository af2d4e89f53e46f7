/* kernels/common/activation.h - activations and their slopes. */
#ifndef CLB_KERNELS_COMMON_ACTIVATION_H
#define CLB_KERNELS_COMMON_ACTIVATION_H

#include "kernels/kernel.h"

/* The activation's value and slope at x. */
void clb_activate(ir_kernel *k, ir_type t, int activation, ir_val x, ir_val *value, ir_val *slope);

#endif
