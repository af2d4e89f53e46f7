/* kernels/layers/sparse_map.c - numbers that are each a sum of a few others times factors; a lane
   is a result.

   out_i = sum over the entries e of row i, in their order, of factor_e in_from(e); a row without
   any is 0 if it `clears`, else stays as it is. */
#include "kernels/layers/layer.h"

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, false, s);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  clb_row_kernel b;
  clb_layer_begin(&b, k, "sparse_map", s, p->arithmetic);
  const ir_val rows = ir_scalar(k, IR_I64), most = ir_scalar(k, IR_I32),
               starts = ir_buffer(k, IR_I32, false), from = ir_buffer(k, IR_I32, false),
               factor = ir_buffer(k, b.t, false), in = ir_buffer(k, b.t, false),
               out = ir_buffer(k, b.t, true), clears = ir_scalar(k, IR_I32);
  clb_layer_start(&b);
  const ir_val row = ir_add(k, ir_mul(k, b.unit, clb_i64(k, s->lanes)),
                            ir_cast(k, IR_I64, ir_lane(k))),
               mask = ir_2(k, IR_LT, row, rows), first = ir_load(k, starts, row, mask),
               end = ir_load(k, starts, ir_add(k, row, clb_i64(k, 1)), mask),
               sum = ir_var(k, ir_real(k, b.t, 0), false);
  const ir_val i = ir_loop(k, clb_i32(k, 0), most, clb_i32(k, 1)), entry = ir_add(k, first, i),
               here = ir_2(k, IR_LT, entry, end), place = ir_cast(k, IR_I64, entry),
               at = ir_cast(k, IR_I64, ir_load(k, from, place, here));
  ir_set(k, sum,
         ir_fma(k, ir_load(k, factor, place, here), ir_load(k, in, at, here), ir_get(k, sum)));
  ir_end(k);
  const ir_val some = ir_2(k, IR_LT, first, end),
               wanted = clb_wanted_lanes(k, clears, clb_i32(k, s->lanes));
  ir_store(k, out, row, ir_2(k, IR_AND, mask, ir_2(k, IR_OR, some, wanted)), ir_get(k, sum));
  clb_layer_finish(&b);
}

static void print(const clb_problem *p, clb_text *out) {
  (void)p;
  clb_text_add(out, "sums of a few");
}

const clb_kernel_kind clb_kind_sparse_map = {.name = "sparse_map",
                                             .check = clb_layer_check,
                                             .schedule = schedule,
                                             .lower = lower,
                                             .print = print,
                                             .passes = 1};
