/* kernels/common/turns.c - sub-groups of a group take units of work in turn. */
#include "kernels/common/turns.h"

ir_val clb_first_turn(ir_kernel *k, int64_t before) {
  const int of = k->subgroups;
  if (of == 1) return ir_int(k, IR_I32, 0);
  return ir_2(k, IR_MOD, ir_add(k, ir_subgroup(k), ir_int(k, IR_I32, (of - before % of) % of)),
              ir_int(k, IR_I32, of));
}

ir_val clb_take_turns(ir_kernel *k, int64_t count, int64_t *before) {
  const ir_val first = clb_first_turn(k, *before);
  *before += count;
  return ir_loop(k, first, ir_int(k, IR_I32, count), ir_int(k, IR_I32, k->subgroups));
}
