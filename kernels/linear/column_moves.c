/* kernels/linear/column_moves.c - rows with their columns at other places, added up over several
   rows: out[row][to] = (+) sum over parts of in[row][part][from], for pairs of columns in a table;
   lanes are pairs.

   The first pass reads storage and writes arithmetic precision, the second one the reverse. */
#include "kernels/common/lane_sums.h"
#include "kernels/common/rows.h"
#include "kernels/kernel.h"

enum { IN_FLIGHT = 8 }; /* parts loaded together, each added to a separate sum */

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)p, (void)limits, (void)error;
  return CLB_OK;
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  *s = (clb_schedule){.lanes = limits->lanes[p->arithmetic], .subgroups = 1};
  if (!limits->simd) s->subgroups = limits->max_subgroups < 4 ? limits->max_subgroups : 4;
}

/* The parts of one element. */
typedef struct {
  ir_val array, at, apart, parts; /* at, apart, parts: i64 */
  ir_val mask;                    /* lanes that have one */
} source;

static ir_val one_part(ir_kernel *k, ir_type t, const source *s, ir_val part, ir_val mask) {
  return ir_cast(k, t, ir_load(k, s->array, ir_add(k, s->at, ir_mul(k, part, s->apart)), mask));
}

/* The first part alone, where there is one; else groups of them in a fixed order. */
static ir_val sum_parts(ir_kernel *k, ir_type t, const source *s) {
  ir_val sum[IN_FLIGHT], value[IN_FLIGHT], one = ir_int(k, IR_I64, 1),
                                           step = ir_int(k, IR_I64, IN_FLIGHT);
  const ir_val whole = ir_mul(k, ir_2(k, IR_DIV, s->parts, step), step);
  for (int i = 0; i < IN_FLIGHT; i++) sum[i] = ir_var(k, ir_real(k, t, 0), false);
  ir_val part = ir_loop(k, ir_int(k, IR_I64, 0), whole, step);
  for (int i = 0; i < IN_FLIGHT; i++)
    value[i] = one_part(k, t, s, ir_add(k, part, ir_int(k, IR_I64, i)), s->mask);
  for (int i = 0; i < IN_FLIGHT; i++) ir_set(k, sum[i], ir_add(k, ir_get(k, sum[i]), value[i]));
  ir_end(k);
  part = ir_loop(k, whole, s->parts, one);
  ir_set(k, sum[0], ir_add(k, ir_get(k, sum[0]), one_part(k, t, s, part, s->mask)));
  ir_end(k);
  for (int i = 0; i < IN_FLIGHT; i++) value[i] = ir_get(k, sum[i]);
  return clb_sum_pairwise(k, value, IN_FLIGHT);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const ir_type t = clb_ir_type((clb_dtype)p->arithmetic),
                kept = clb_ir_type((clb_dtype)p->storage);
  ir_begin(k, p->pass ? "column_moves_back" : "column_moves", s->lanes, s->subgroups, s->subgroups);
  clb_row_block block = {.k = k};
  const ir_val moves = ir_buffer(k, IR_I32, false), count = ir_scalar(k, IR_I64),
               froms = ir_scalar(k, IR_I64); /* where the table's columns to read from start */
  source from = {.array = ir_buffer(k, p->pass ? t : kept, false)};
  const ir_val offset = ir_scalar(k, IR_I64), stride = ir_scalar(k, IR_I64);
  from.apart = ir_scalar(k, IR_I64);
  from.parts = ir_scalar(k, IR_I64);
  const clb_row_array out =
      clb_rows_array(&block, (clb_dtype)(p->pass ? p->storage : p->arithmetic), true);
  const ir_val add = ir_scalar(k, IR_I32), across = ir_scalar(k, IR_I64),
               units = ir_scalar(k, IR_I64), nothing = ir_int(k, IR_I32, 0),
               lanes = ir_int(k, IR_I64, s->lanes);
  ir_val unit = ir_cast(k, IR_I64, ir_group(k));
  if (s->subgroups > 1)
    unit = ir_add(k, ir_mul(k, unit, ir_int(k, IR_I64, s->subgroups)),
                  ir_cast(k, IR_I64, ir_subgroup(k)));
  ir_if(k, ir_2(k, IR_LT, unit, units));
  const ir_val row = ir_2(k, IR_DIV, unit, across),
               first = ir_mul(k, ir_2(k, IR_MOD, unit, across), lanes),
               left = ir_cast(k, IR_I32, ir_2(k, IR_MIN, ir_sub(k, count, first), lanes)),
               mine = ir_add(k, first, ir_cast(k, IR_I64, ir_lane(k)));
  from.mask = ir_2(k, IR_LT, ir_lane(k), left);
  const ir_val column = ir_load(k, moves, ir_add(k, froms, mine), from.mask),
               to = ir_load(k, moves, ir_add(k, ir_sub(k, count, froms), mine), from.mask);
  from.at = ir_add(k, ir_add(k, offset, ir_mul(k, row, stride)), ir_cast(k, IR_I64, column));
  const ir_val at = ir_add(k, ir_add(k, out.offset, ir_mul(k, row, out.stride)),
                           ir_cast(k, IR_I64, to)),
               adding = ir_2(k, IR_LT, ir_lane(k),
                             ir_select(k, ir_2(k, IR_EQ, add, nothing), nothing, left));
  const ir_val sum =
      ir_add(k, sum_parts(k, t, &from), ir_cast(k, t, ir_load(k, out.buffer, at, adding)));
  ir_store(k, out.buffer, at, from.mask, ir_cast(k, ir_register_type(out.element), sum));
  ir_end(k);
  ir_finish(k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, p->pass ? "columns to storage" : "columns to arithmetic precision");
}

const clb_kernel_kind clb_kind_column_moves = {.name = "column_moves",
                                               .check = check,
                                               .schedule = schedule,
                                               .lower = lower,
                                               .print = print,
                                               .passes = 2};
