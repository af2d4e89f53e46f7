/* kernels/convolution/role_sum.c - sums over the roles of a convolution's edge; one lane per
   element of the results.

   out[row][i] = (+) sum over roles of in[role][row][from + i].  Arguments: elements (rows times
   `count`), in, its offset, elements from one role to the next, roles, out, its offset and stride,
   whether to add. */
#include "kernels/common/rows.h"
#include "kernels/kernel.h"

enum { IN_FLIGHT = 4 }; /* roles that are loaded before they are added */

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  const clb_role_sum_problem *r = &p->role_sum;
  (void)limits;
  return r->count >= 1 && r->from >= 0 && r->from + r->count <= r->columns
             ? CLB_OK
             : clb_fail(error, CLB_ERROR_INTERNAL, "role_sum: %d of %d columns from number %d on",
                        (int)r->count, (int)r->columns, (int)r->from);
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  *s = (clb_schedule){.lanes = limits->lanes[p->arithmetic], .subgroups = 1};
  if (!limits->simd) s->subgroups = limits->max_subgroups < 4 ? limits->max_subgroups : 4;
}

static ir_val sum_of_roles(ir_kernel *k, ir_type t, ir_val in, ir_val at, ir_val pitch,
                           ir_val roles, ir_val mask) {
  ir_val sum = ir_var(k, ir_real(k, t, 0), false), value[IN_FLIGHT],
         role = ir_loop(k, ir_int(k, IR_I32, 0), roles, ir_int(k, IR_I32, IN_FLIGHT));
  for (int i = 0; i < IN_FLIGHT; i++) {
    ir_val number = ir_add(k, role, ir_int(k, IR_I32, i)),
           there = ir_2(k, IR_AND, mask, ir_2(k, IR_LT, number, roles));
    value[i] = ir_load(k, in, ir_add(k, at, ir_mul(k, ir_cast(k, IR_I64, number), pitch)), there);
  }
  ir_val all = value[0];
  for (int i = 1; i < IN_FLIGHT; i++) all = ir_add(k, all, value[i]);
  ir_set(k, sum, ir_add(k, ir_get(k, sum), all));
  ir_end(k);
  return ir_get(k, sum);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const clb_role_sum_problem *r = &p->role_sum;
  const ir_type t = clb_ir_type((clb_dtype)p->arithmetic), to = clb_ir_type((clb_dtype)p->storage);
  const int threads = s->lanes * s->subgroups;
  ir_begin(k, "role_sum", s->lanes, s->subgroups, threads);
  ir_val n = ir_scalar(k, IR_I64), in = ir_buffer(k, t, false), in_at = ir_scalar(k, IR_I64),
         pitch = ir_scalar(k, IR_I64), roles = ir_scalar(k, IR_I32);
  ir_val out = ir_buffer(k, to, true), out_at = ir_scalar(k, IR_I64), stride = ir_scalar(k, IR_I64),
         add = ir_scalar(k, IR_I32);
  ir_val count = ir_int(k, IR_I64, r->count), columns = ir_int(k, IR_I64, r->columns);
  ir_val thread = ir_add(k, ir_mul(k, ir_subgroup(k), ir_int(k, IR_I32, s->lanes)), ir_lane(k)),
         i = ir_add(k, ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), ir_int(k, IR_I64, threads)),
                    ir_cast(k, IR_I64, thread));
  ir_val mask = ir_2(k, IR_LT, i, n), row = ir_2(k, IR_DIV, i, count),
         column = ir_sub(k, i, ir_mul(k, row, count));
  ir_val from = ir_add(k, in_at, ir_add(k, column, ir_int(k, IR_I64, r->from))),
         at = ir_add(k, from, ir_mul(k, row, columns));
  ir_val sum = sum_of_roles(k, t, in, at, pitch, roles, mask),
         index = ir_add(k, out_at, ir_add(k, ir_mul(k, row, stride), column));
  ir_val adding = ir_2(k, IR_AND, mask, ir_2(k, IR_LT, ir_int(k, IR_I32, 0), add));
  sum = ir_add(k, sum, ir_cast(k, t, ir_load(k, out, index, adding))); /* 0 where not adding */
  ir_store(k, out, index, mask, ir_cast(k, ir_register_type(to), sum));
  ir_finish(k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%d of %d columns of roles", (int)p->role_sum.count, (int)p->role_sum.columns);
}

const clb_kernel_kind clb_kind_role_sum = {.name = "role_sum",
                                           .check = check,
                                           .schedule = schedule,
                                           .lower = lower,
                                           .print = print,
                                           .passes = 1};
