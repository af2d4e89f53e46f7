/* kernels/graph/cell_total.c - how many edges a search has found (cell_search.h). */
#include "kernels/graph/cell_walk.h"

static ir_val wide(ir_kernel *k, ir_val a) { return ir_cast(k, IR_I64, a); }
static ir_val both(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_AND, a, b); }

ir_val clb_cell_total(ir_kernel *k, ir_val total, ir_val room, ir_val *fits) {
  const ir_val all = wide(k, ir_load(k, total, clb_i64(k, 0), IR_NONE));
  *fits = both(k, ir_2(k, IR_LE, clb_i64(k, 0), all), ir_2(k, IR_LE, all, room));
  return all;
}

ir_val clb_cell_nulls_before(const clb_cell_finder *w, ir_val rest, ir_val atom) {
  return ir_2(w->k, IR_DIV, ir_mul(w->k, atom, rest),
              w->n); /* as many for each, as far as can be */
}

ir_val clb_cell_sum_of_lanes(const clb_cell_finder *w, ir_val sum) {
  ir_kernel *k = w->k;
  for (int d = w->b.s->lanes / 2; d; d /= 2) sum = ir_add(k, sum, ir_shuffle_xor(k, sum, d));
  return sum;
}

/* The sum over this lane and those before it; of numbers whose sum is an int32. */
static ir_val sum_up_to(ir_kernel *k, int lanes, ir_val own) {
  ir_val sum = own;
  for (int d = 1; d < lanes; d *= 2) {
    const ir_val there = ir_2(k, IR_LE, clb_i32(k, d), ir_lane(k)),
                 from = ir_2(k, IR_MOD, ir_add(k, ir_lane(k), clb_i32(k, lanes - d)),
                             clb_i32(k, lanes));
    sum = ir_add(k, sum, ir_select(k, there, ir_shuffle(k, sum, from), clb_i32(k, 0)));
  }
  return sum;
}

void clb_cell_lower_total(ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  clb_cell_finder w;
  clb_cell_begin(&w, k, "cell_total", s, CLB_F64, p->cell_list.atoms == CLB_CELL_MANY);
  const ir_val sums = ir_buffer(k, IR_I32, true), total = ir_buffer(k, IR_I32, true),
               shown = ir_buffer(k, IR_F64, true), place = ir_scalar(k, IR_I64),
               show = ir_scalar(k, IR_I32);
  const int64_t row = CLB_CELL_ROW;
  const ir_val most = clb_i32(k, row * CLB_CELL_MAX_NEIGHBOURS), zero = clb_i32(k, 0),
               last = clb_i32(k, s->lanes - 1);
  clb_layer_start(&w.b);
  const ir_val before = ir_var(k, clb_i64(k, 0), true), refused = ir_var(k, zero, false),
               rows = ir_2(k, IR_DIV, ir_add(k, w.n, clb_i64(k, row - 1)), clb_i64(k, row)),
               first = ir_loop(k, clb_i64(k, 0), rows, clb_i64(k, s->lanes)),
               at = ir_add(k, first, wide(k, ir_lane(k))), mask = ir_2(k, IR_LT, at, rows),
               here = ir_load(k, sums, at, mask),
               good = both(k, ir_2(k, IR_LE, zero, here), ir_2(k, IR_LE, here, most)),
               own = ir_select(k, both(k, mask, good), here, zero),
               sum = sum_up_to(k, s->lanes, own);
  ir_set(k, refused,
         ir_select(k, both(k, mask, ir_1(k, IR_NOT, good)), clb_i32(k, 1), ir_get(k, refused)));
  const ir_val to = ir_add(k, ir_get(k, before), wide(k, ir_sub(k, sum, own)));
  ir_store(k, sums, at, mask, ir_cast(k, IR_I32, to));
  ir_set(k, before,
         ir_add(k, ir_get(k, before), wide(k, s->lanes > 1 ? ir_shuffle(k, sum, last) : sum)));
  ir_end(k);
  ir_val bad = ir_get(k, refused);
  for (int d = s->lanes / 2; d; d /= 2) bad = ir_2(k, IR_MAX, bad, ir_shuffle_xor(k, bad, d));
  const ir_val all = ir_get(k, before),
               fits =
                   both(k, ir_2(k, IR_EQ, bad, zero), ir_2(k, IR_LT, all, clb_i64(k, INT32_MAX))),
               result = ir_cast(k, IR_I32, ir_select(k, fits, all, clb_i64(k, -1)));
  ir_store(k, total, wide(k, ir_lane(k)), clb_first_lane(k), result);
  ir_store(k, shown, ir_add(k, place, wide(k, ir_lane(k))),
           clb_wanted_lanes(k, show, clb_i32(k, 1)), ir_cast(k, IR_F64, result));
  clb_layer_finish(&w.b);
}
