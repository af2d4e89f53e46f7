/* kernels/linear/column_sum.c - sums over the rows of a matrix, by blocks of rows; lanes are
   columns.

   A sub-group sums one block of rows of its columns: out[block][column] = (+) sum over the block's
   rows of in[row][column]. The first pass computes partial sums in arithmetic precision, the second
   one sums these as one block. */
#include "kernels/linear/column_sum.h"

#include "kernels/common/lane_sums.h"

enum { IN_FLIGHT = 8 }; /* rows loaded together, each added to a separate sum */

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  const clb_column_sum_problem *c = &p->column_sum;
  (void)limits;
  if (c->columns < 0 || c->columns > INT32_MAX)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "columns is %lld; it must be 0 ... %d",
                    (long long)c->columns, INT32_MAX);
  return c->max_rows < 0
             ? clb_fail(error, CLB_ERROR_ARGUMENT, "max_rows is %lld; it must be at least 0",
                        (long long)c->max_rows)
             : CLB_OK;
}

void clb_column_schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  *s = (clb_schedule){.lanes = limits->lanes[p->arithmetic], .subgroups = 1};
  if (!limits->simd) s->subgroups = limits->max_subgroups < 4 ? limits->max_subgroups : 4;
}

ir_val clb_column_sum_rows(ir_kernel *k, ir_type t, ir_val array, ir_val base, ir_val stride,
                           ir_val first, ir_val end, ir_val mask) {
  ir_val sum[IN_FLIGHT], value[IN_FLIGHT], one = ir_int(k, IR_I64, 1),
                                           step = ir_int(k, IR_I64, IN_FLIGHT);
  ir_val whole = ir_add(k, first, ir_mul(k, ir_2(k, IR_DIV, ir_sub(k, end, first), step), step));
  for (int i = 0; i < IN_FLIGHT; i++) sum[i] = ir_var(k, ir_real(k, t, 0), false);
  ir_val row = ir_loop(k, first, whole, step);
  for (int i = 0; i < IN_FLIGHT; i++) {
    ir_val at = ir_add(k, base, ir_mul(k, ir_add(k, row, ir_int(k, IR_I64, i)), stride));
    value[i] = ir_cast(k, t, ir_load(k, array, at, mask));
  }
  for (int i = 0; i < IN_FLIGHT; i++) ir_set(k, sum[i], ir_add(k, ir_get(k, sum[i]), value[i]));
  ir_end(k);
  row = ir_loop(k, whole, end, one);
  ir_set(k, sum[0],
         ir_add(k, ir_get(k, sum[0]),
                ir_cast(k, t, ir_load(k, array, ir_add(k, base, ir_mul(k, row, stride)), mask))));
  ir_end(k);
  for (int i = 0; i < IN_FLIGHT; i++) value[i] = ir_get(k, sum[i]);
  return clb_sum_pairwise(k, value, IN_FLIGHT);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  ir_type t = clb_ir_type((clb_dtype)p->arithmetic), kept = clb_ir_type((clb_dtype)p->storage),
          from = p->pass ? t : kept, to = p->pass ? kept : t;
  ir_begin(k, p->pass ? "column_sum_of_sums" : "column_sum_of_rows", s->lanes, s->subgroups,
           s->subgroups);
  ir_val in = ir_buffer(k, from, false), offset = ir_scalar(k, IR_I64),
         stride = ir_scalar(k, IR_I64), rows = ir_scalar(k, IR_I64),
         block_rows = ir_scalar(k, IR_I64);
  ir_val out = ir_buffer(k, to, true), out_offset = ir_scalar(k, IR_I64),
         columns = ir_scalar(k, IR_I32), add = ir_scalar(k, IR_I32);
  ir_val blocks = ir_scalar(k, IR_I32); /* of columns */
  ir_val units = ir_scalar(k, IR_I64);  /* number of sub-groups that have work */
  ir_val unit = ir_cast(k, IR_I64, ir_group(k)), lanes = ir_int(k, IR_I32, s->lanes);
  if (s->subgroups > 1)
    unit = ir_add(k, ir_mul(k, unit, ir_int(k, IR_I64, s->subgroups)),
                  ir_cast(k, IR_I64, ir_subgroup(k)));
  ir_if(k, ir_2(k, IR_LT, unit, units));
  ir_val across = ir_cast(k, IR_I64, blocks), row_block = ir_2(k, IR_DIV, unit, across);
  ir_val column = ir_mul(k, ir_cast(k, IR_I32, ir_2(k, IR_MOD, unit, across)), lanes),
         left = ir_sub(k, columns, column);
  ir_val mask = ir_2(k, IR_LT, ir_lane(k), left),
         mine = ir_cast(k, IR_I64, ir_add(k, column, ir_lane(k)));
  ir_val first = ir_mul(k, row_block, block_rows),
         end = ir_2(k, IR_MIN, ir_add(k, first, block_rows), rows);
  ir_val sum = clb_column_sum_rows(k, t, in, ir_add(k, offset, mine), stride, first, end, mask);
  ir_val at =
      ir_add(k, ir_add(k, out_offset, ir_mul(k, row_block, ir_cast(k, IR_I64, columns))), mine);
  ir_val adding = clb_wanted_lanes(k, add, left);
  sum = ir_add(k, sum, ir_cast(k, t, ir_load(k, out, at, adding))); /* 0 unless accumulating */
  ir_store(k, out, at, mask, ir_cast(k, ir_register_type(to), sum));
  ir_end(k);
  ir_finish(k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%lld columns of at most %lld rows", (long long)p->column_sum.columns,
               (long long)p->column_sum.max_rows);
}

const clb_kernel_kind clb_kind_column_sum = {.name = "column_sum",
                                             .check = check,
                                             .schedule = clb_column_schedule,
                                             .lower = lower,
                                             .print = print,
                                             .passes = 2};
