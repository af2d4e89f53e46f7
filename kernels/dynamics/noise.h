/* kernels/dynamics/noise.h - random numbers that are functions of a counter: no state, no order,
   and on every device the same bits, as all arithmetic here rounds once. */
#ifndef CLB_KERNELS_DYNAMICS_NOISE_H
#define CLB_KERNELS_DYNAMICS_NOISE_H

#include "src/ir/ir.h"

/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011): four random words; all values are i32. */
void clb_philox(ir_kernel *k, const ir_val counter[4], const ir_val key[2], ir_val word[4]);
/* Three normal deviates (f64) of these words, by Box and Muller; none is beyond
   CLB_LARGEST_DEVIATE of motion_record.h. */
void clb_normal_triple(ir_kernel *k, const ir_val word[4], ir_val normal[3]);

#endif
