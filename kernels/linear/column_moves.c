/* kernels/linear/column_moves.c - rows with their columns at other places, added up over several
   rows: out[row][to] = (+) sum over parts of in[row][part][from], for pairs of columns in a table;
   lanes are pairs.

   The first pass reads storage and writes arithmetic precision, the second one the reverse. */
#include "kernels/linear/column_sum.h"

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)p, (void)limits, (void)error;
  return CLB_OK;
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const ir_type t = clb_ir_type((clb_dtype)p->arithmetic),
                kept = clb_ir_type((clb_dtype)p->storage);
  ir_begin(k, p->pass ? "column_moves_back" : "column_moves", s->lanes, s->subgroups, s->subgroups);
  clb_row_block block = {.k = k};
  const ir_val moves = ir_buffer(k, IR_I32, false), count = ir_scalar(k, IR_I64),
               froms = ir_scalar(k, IR_I64); /* where the table's columns to read from start */
  const ir_val array = ir_buffer(k, p->pass ? t : kept, false), offset = ir_scalar(k, IR_I64),
               stride = ir_scalar(k, IR_I64), apart = ir_scalar(k, IR_I64),
               parts = ir_scalar(k, IR_I64);
  const clb_row_array out =
      clb_rows_array(&block, (clb_dtype)(p->pass ? p->storage : p->arithmetic), true);
  const ir_val add = ir_scalar(k, IR_I32), across = ir_scalar(k, IR_I64),
               units = ir_scalar(k, IR_I64), lanes = ir_int(k, IR_I64, s->lanes);
  ir_val unit = ir_cast(k, IR_I64, ir_group(k));
  if (s->subgroups > 1)
    unit = ir_add(k, ir_mul(k, unit, ir_int(k, IR_I64, s->subgroups)),
                  ir_cast(k, IR_I64, ir_subgroup(k)));
  ir_if(k, ir_2(k, IR_LT, unit, units));
  const ir_val row = ir_2(k, IR_DIV, unit, across),
               first = ir_mul(k, ir_2(k, IR_MOD, unit, across), lanes),
               left = ir_cast(k, IR_I32, ir_2(k, IR_MIN, ir_sub(k, count, first), lanes)),
               mine = ir_add(k, first, ir_cast(k, IR_I64, ir_lane(k))),
               mask = ir_2(k, IR_LT, ir_lane(k), left),
               column = ir_load(k, moves, ir_add(k, froms, mine), mask),
               to = ir_load(k, moves, ir_add(k, ir_sub(k, count, froms), mine), mask),
               from =
                   ir_add(k, ir_add(k, offset, ir_mul(k, row, stride)), ir_cast(k, IR_I64, column)),
               at = ir_add(k, ir_add(k, out.offset, ir_mul(k, row, out.stride)),
                           ir_cast(k, IR_I64, to)),
               adding = clb_wanted_lanes(k, add, left);
  const ir_val all =
                   clb_column_sum_rows(k, t, array, from, apart, ir_int(k, IR_I64, 0), parts, mask),
               sum = ir_add(k, all, ir_cast(k, t, ir_load(k, out.buffer, at, adding)));
  ir_store(k, out.buffer, at, mask, ir_cast(k, ir_register_type(out.element), sum));
  ir_end(k);
  ir_finish(k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, p->pass ? "columns to storage" : "columns to arithmetic precision");
}

const clb_kernel_kind clb_kind_column_moves = {.name = "column_moves",
                                               .check = check,
                                               .schedule = clb_column_schedule,
                                               .lower = lower,
                                               .print = print,
                                               .passes = 2};
