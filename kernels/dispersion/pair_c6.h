/* kernels/dispersion/pair_c6.h - C6 of two atoms, from what WEIGHTS keeps of both. */
#ifndef CLB_KERNELS_DISPERSION_PAIR_C6_H
#define CLB_KERNELS_DISPERSION_PAIR_C6_H

#include "kernels/dispersion/receiver.h"

typedef struct {
  ir_val references, columns, weights, products;
} clb_c6;
/* Declares the parameters R, E R, W and V. */
clb_c6 clb_c6_begin(clb_receiver *r);
/* Where W of a place and a system (i64) is. */
ir_val clb_weight_at(ir_kernel *k, const clb_schedule *s, ir_val references, ir_val n, ir_val place,
                     ir_val system);
/* C6 of the atom in `place` (i64, uniform) and a neighbour, and, of n = 2, its derivative by the
   coordination number of the former. */
void clb_c6_find(const clb_receiver *r, const clb_c6 *c, ir_val place, const clb_neighbour *j,
                 int n, ir_val *c6);

/* Puts the receiver's n numbers, or adds them, into its row of sums from column `first` on. */
void clb_store_sums(clb_receiver *r, ir_val sums, int first, int n, const ir_val *values,
                    bool adds);

/* The steps WEIGHTS and TRIPLES. */
void clb_lower_weights(ir_kernel *k, const clb_problem *p, const clb_schedule *s);
void clb_lower_triples(ir_kernel *k, const clb_problem *p, const clb_schedule *s);

#endif
