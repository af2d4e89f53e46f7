/* src/ir/barriers.h - what can be known without running about lanes that meet; for ir_verify and
   ir_drop_barriers. */
#ifndef CLB_SRC_IR_BARRIERS_H
#define CLB_SRC_IR_BARRIERS_H

#include "src/ir/ir.h"

typedef enum { IR_MEETS, IR_PARTS, IR_MEETS_UNKNOWN } ir_met; /* unknown: no memory */

/* Whether all sub-groups come by each BARRIER of the group; if not, which stands under what. */
ir_met ir_barriers_meet(const ir_kernel *k, ir_val *barrier, ir_val *under);

/* Whether a load of a LOCAL array surely reads what another lane stored, with no BARRIER between.
 */
bool ir_reads_unmet(const ir_kernel *k, ir_val *store, ir_val *load);

/* Keeps the instructions that are not 0 in `live`, which then says where they are now. */
void ir_keep(ir_kernel *k, int32_t *live);

#endif
