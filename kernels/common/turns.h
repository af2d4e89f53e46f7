/* kernels/common/turns.h - sub-groups of a group take units of work in turn. */
#ifndef CLB_KERNELS_COMMON_TURNS_H
#define CLB_KERNELS_COMMON_TURNS_H

#include "src/ir/ir.h"

/* The first unit of this sub-group, i32, after `before` units of earlier loops: the sub-group after
   the one that did the last of those comes first. */
ir_val clb_first_turn(ir_kernel *k, int64_t before);
/* Opens a loop over those of `count` units that this sub-group does, i32, and adds them to *before.
   End it with ir_end. */
ir_val clb_take_turns(ir_kernel *k, int64_t count, int64_t *before);

#endif
