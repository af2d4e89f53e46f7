/* kernels/common/team_sums.c - sums over the sub-groups of a group. */
#include "kernels/common/team_sums.h"

int64_t clb_team_bytes(ir_type type, int lanes, int subgroups, int values) {
  return ir_type_bytes(type) * (int64_t)lanes * (subgroups - 1) * values;
}

void clb_team_begin(clb_team_sums *t, ir_kernel *k, ir_type type, int values) {
  const int64_t all = (int64_t)k->lanes * (k->subgroups - 1) * values;
  *t = (clb_team_sums){ir_local(k, type, all ? all : 1), false};
}

/* Number i of this lane, of those that sub-group 1 + `before` adds. */
static ir_val place(ir_kernel *k, ir_val before, int n, int i) {
  ir_val row = ir_add(k, ir_mul(k, before, ir_int(k, IR_I32, n)), ir_int(k, IR_I32, i));
  return ir_add(k, ir_mul(k, row, ir_int(k, IR_I32, k->lanes)), ir_lane(k));
}

void clb_team_sum(clb_team_sums *t, ir_kernel *k, ir_val *v, int n) {
  ir_val zero = ir_int(k, IR_I32, 0), first = ir_2(k, IR_EQ, ir_subgroup(k), zero);
  if (t->used) ir_barrier(k, true);
  t->used = true;
  ir_if(k, ir_1(k, IR_NOT, first));
  for (int i = 0; i < n; i++)
    ir_store(k, t->array, place(k, ir_sub(k, ir_subgroup(k), ir_int(k, IR_I32, 1)), n, i), IR_NONE,
             v[i]);
  ir_end(k);
  ir_barrier(k, true);
  ir_if(k, first);
  for (int i = 0; i < n; i++)
    for (int s = 0; s < k->subgroups - 1; s++)
      v[i] = ir_add(k, v[i], ir_load(k, t->array, place(k, ir_int(k, IR_I32, s), n, i), IR_NONE));
}
