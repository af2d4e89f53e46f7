/* kernels/layers/functions.h - functions of a real number that several kernels of layers use. */
#ifndef CLB_KERNELS_LAYERS_FUNCTIONS_H
#define CLB_KERNELS_LAYERS_FUNCTIONS_H

#include "src/ir/ir.h"

/* 1 - (p+1)(p+2)/2 u^p + p(p+2) u^(p+1) - p(p+1)/2 u^(p+2), and its slope by u divided by `unit`;
   both 0 from u = 1 on. left: 1 - u, or 0 beyond. p: 1 ... 64. */
void clb_polynomial_cutoff(ir_kernel *k, ir_type t, int p, ir_val u, ir_val left, double unit,
                           ir_val *value, ir_val *slope);

#endif
