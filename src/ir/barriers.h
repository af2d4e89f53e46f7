/* src/ir/barriers.h - static analysis of barriers, for ir_verify and ir_drop_barriers. */
#ifndef CLB_SRC_IR_BARRIERS_H
#define CLB_SRC_IR_BARRIERS_H

#include "src/ir/ir.h"

typedef enum {
  IR_CONVERGENT,
  IR_DIVERGENT,
  IR_CONVERGENCE_UNKNOWN
} ir_convergence; /* unknown: no memory */

/* Whether all sub-groups reach each BARRIER of the group; if not, *barrier is one that they do not
   all reach, inside the block *under. */
ir_convergence ir_barriers_convergent(const ir_kernel *k, ir_val *barrier, ir_val *under);

/* Whether a load of a LOCAL array certainly reads what another lane stored, with no BARRIER in
 between. */
bool ir_unsynchronised_load(const ir_kernel *k, ir_val *store, ir_val *load);

/* Keeps the instructions whose entry in `live` is not 0; `live` then holds their new indices. */
void ir_keep(ir_kernel *k, int32_t *live);

#endif
