/* kernels/graph/row_sum.c - sums of rows over row segments; lanes are columns.

   out[segment][column] = (+) sum over the segment's slots in range of in[edge[slot] - e0][column]
   (`listed`), or out[the segment's row][column] = (+) that of in[slot][column]; CLB_ROWS_OWN: of
   the single row in[the segment's row][column]; CLB_ROWS_WHOLE: `listed`, of whole rows, whose
   slots the sub-groups of a group share. TOGETHER rows are loaded at a time, summed pairwise, and
   then added to the sum so far: a fixed order, with all those loads in flight. */
#include "kernels/common/lane_sums.h"
#include "kernels/common/rows.h"
#include "kernels/common/team_sums.h"
#include "kernels/graph/segment.h"

enum {
  TOGETHER = 8,
  SUBGROUPS = 4,
  GPU_WIDTH = 2,
  CPU_WIDTH = 8
}; /* width: chunks of columns, one of each per lane, that a sub-group adds up together */

typedef struct {
  ir_kernel *k;
  const clb_schedule *s;
  ir_type arithmetic;
  bool listed, whole;
  clb_segment segment;
  clb_team_sums team;
  clb_row_array in, out;
  ir_val adds; /* bool */
} builder;

static int64_t parts_of(int64_t n, int64_t size) { return n / size + (n % size != 0); }

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  const clb_row_sum_problem *r = &p->row_sum;
  bool from_fits = p->arithmetic == CLB_F64
                       ? r->from == CLB_F64 || r->from == CLB_F32
                       : r->from >= 0 && r->from <= CLB_BF16 && r->from != CLB_F64;
  (void)limits;
  if (!from_fits)
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "row_sum: from is %d; arithmetic CLB_F64 takes CLB_F64 or CLB_F32, CLB_F32 "
                    "takes CLB_F32, CLB_F16 or CLB_BF16",
                    (int)r->from);
  if (r->columns < 0 || r->columns > INT32_MAX)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "row_sum: columns is %lld; it must be 0 ... %d",
                    (long long)r->columns, INT32_MAX);
  return CLB_OK;
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const bool whole = p->row_sum.listed == CLB_ROWS_WHOLE;
  int lanes = limits->lanes[p->arithmetic], subgroups = limits->simd ? 1
                                                        : whole      ? CLB_GRAPH_TEAM
                                                                     : SUBGROUPS;
  int64_t chunks = parts_of(p->row_sum.columns, lanes),
          blocks = parts_of(chunks, limits->simd ? CPU_WIDTH : GPU_WIDTH);
  if (!blocks) chunks = blocks = 1;
  *s = (clb_schedule){.lanes = lanes,
                      .subgroups =
                          subgroups < limits->max_subgroups ? subgroups : limits->max_subgroups,
                      .row_sum = {.subgroups_per_row = limits->simd ? 0 : (int32_t)blocks,
                                  .columns_per_lane = (int32_t)parts_of(chunks, blocks)}};
}

static ir_val load(builder *b, const clb_row_array *a, ir_val at, ir_val mask) {
  return ir_cast(b->k, b->arithmetic, ir_load(b->k, a->buffer, at, mask));
}

/* Adds the rows of `together` places from number i of n on (i32) to the sums, columns as in
   add_columns. */
static void add_rows(builder *b, ir_val i, ir_val n, int together, ir_val base, int width,
                     const ir_val *mask, const ir_val *sum) {
  ir_kernel *k = b->k;
  ir_val start[TOGETHER], inside[TOGETHER], value[CPU_WIDTH][TOGETHER];
  for (int t = 0; t < together; t++) {
    ir_val number = ir_add(k, i, ir_int(k, IR_I32, t)), row = ir_add(k, b->segment.first, number);
    inside[t] = t ? ir_2(k, IR_LT, number, n) : IR_NONE;
    if (b->listed)
      row =
          ir_sub(k, ir_load(k, b->segment.edge, ir_cast(k, IR_I64, row), inside[t]), b->segment.e0);
    start[t] = ir_add(k, ir_mul(k, ir_cast(k, IR_I64, row), b->in.stride), base);
  }
  for (int t = 0; t < together; t++)
    for (int j = 0; j < width; j++) {
      ir_val due = inside[t] == IR_NONE ? mask[j]
                   : mask[j] == IR_NONE ? inside[t]
                                        : ir_2(k, IR_AND, inside[t], mask[j]);
      value[j][t] =
          load(b, &b->in, ir_add(k, start[t], ir_int(k, IR_I64, (int64_t)j * b->s->lanes)), due);
    }
  for (int j = 0; j < width; j++)
    ir_set(k, sum[j], ir_add(k, ir_get(k, sum[j]), clb_sum_pairwise(k, value[j], together)));
}

/* What the sums are added to, where they are. */
static void load_there(builder *b, int width, const ir_val *at, const ir_val *mask,
                       const ir_val *there) {
  ir_if(b->k, b->adds);
  for (int j = 0; j < width; j++) ir_set(b->k, there[j], load(b, &b->out, at[j], mask[j]));
  ir_end(b->k);
}

/* All rows of `width` columns per lane: column + lane, column + lanes + lane, ... of which `left`
   (i32; IR_NONE: all) are there. */
static void add_columns(builder *b, ir_val column, int width, ir_val left) {
  ir_kernel *k = b->k;
  ir_val at[CPU_WIDTH], mask[CPU_WIDTH], there[CPU_WIDTH], sum[CPU_WIDTH], all[CPU_WIDTH],
      mine = ir_add(k, column, ir_cast(k, IR_I64, ir_lane(k))), zero = ir_real(k, b->arithmetic, 0);
  ir_val row = ir_add(k, ir_mul(k, b->listed ? b->segment.index : b->segment.row, b->out.stride),
                      ir_add(k, b->out.offset, mine)),
         base = ir_add(k, b->in.offset, mine);
  int together = b->s->row_sum.subgroups_per_row || width == 1 ? TOGETHER : TOGETHER / width;
  for (int j = 0; j < width; j++) {
    at[j] = ir_add(k, row, ir_int(k, IR_I64, (int64_t)j * b->s->lanes));
    mask[j] = left == IR_NONE ? IR_NONE
                              : ir_2(k, IR_LT, ir_lane(k),
                                     ir_sub(k, left, ir_int(k, IR_I32, (int64_t)j * b->s->lanes)));
    there[j] = ir_var(k, zero, false);
    sum[j] = ir_var(k, zero, false);
  }
  if (!b->whole) load_there(b, width, at, mask, there);
  ir_val n = ir_sub(k, b->segment.last, b->segment.first),
         i = ir_loop(k, ir_int(k, IR_I32, 0), n, ir_int(k, IR_I32, together));
  add_rows(b, i, n, together, base, width, mask, sum);
  ir_end(k);
  for (int j = 0; j < width; j++) all[j] = ir_get(k, sum[j]);
  if (b->whole) clb_team_sum(&b->team, k, all, width);
  if (b->whole) load_there(b, width, at, mask, there);
  for (int j = 0; j < width; j++)
    ir_store(k, b->out.buffer, at[j], mask[j],
             ir_cast(k, ir_register_type(b->out.element), ir_add(k, ir_get(k, there[j]), all[j])));
  if (b->whole) ir_end(k);
}

/* One block after the other, the last one as narrow as it may be. */
static void loop_over_columns(builder *b, int64_t columns) {
  ir_kernel *k = b->k;
  int64_t lanes = b->s->lanes, block = lanes * b->s->row_sum.columns_per_lane,
          whole = columns / block * block, left = columns - whole;
  if (whole) {
    ir_val column =
        ir_loop(k, ir_int(k, IR_I64, 0), ir_int(k, IR_I64, whole), ir_int(k, IR_I64, block));
    add_columns(b, column, b->s->row_sum.columns_per_lane, IR_NONE);
    ir_end(k);
  }
  if (left)
    add_columns(b, ir_int(k, IR_I64, whole), (int)parts_of(left, lanes),
                left % lanes ? ir_int(k, IR_I32, left) : IR_NONE);
}

static void add_own_columns(builder *b, int64_t columns, ir_val own) {
  ir_kernel *k = b->k;
  int64_t block = (int64_t)b->s->lanes * b->s->row_sum.columns_per_lane;
  ir_val column = ir_mul(k, own, ir_int(k, IR_I64, block)),
         left = ir_2(k, IR_MIN, ir_sub(k, ir_int(k, IR_I64, columns), column),
                     ir_int(k, IR_I64, block));
  add_columns(b, column, b->s->row_sum.columns_per_lane,
              columns % block || !columns ? ir_cast(k, IR_I32, left) : IR_NONE);
}

static clb_row_array declare(ir_kernel *k, int32_t type, bool written) {
  clb_row_array a = {.element = clb_ir_type((clb_dtype)type)};
  a.buffer = ir_buffer(k, a.element, written);
  a.offset = ir_scalar(k, IR_I64);
  a.stride = ir_scalar(k, IR_I64);
  return a;
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const clb_row_sum_problem *r = &p->row_sum;
  builder b = {.k = k,
               .s = s,
               .arithmetic = clb_ir_type((clb_dtype)p->arithmetic),
               .listed = r->listed == CLB_ROWS_BY_EDGE || r->listed == CLB_ROWS_WHOLE,
               .whole = r->listed == CLB_ROWS_WHOLE};
  static const char *const names[] = {[CLB_ROWS_BY_SLOT] = "row_sum_splits",
                                      [CLB_ROWS_BY_EDGE] = "row_sum_listed",
                                      [CLB_ROWS_OWN] = "row_copy",
                                      [CLB_ROWS_WHOLE] = "row_sum_whole"};
  ir_begin(k, names[r->listed], s->lanes, s->subgroups, b.whole ? 1 : s->subgroups);
  ir_val n = ir_scalar(k, IR_I64), none = ir_int(k, IR_I32, 0);
  clb_segment_parameters(&b.segment, k);
  b.segment.whole = b.whole;
  ir_val skip = ir_scalar(k, IR_I32);
  b.in = declare(k, r->from, false);
  b.out = declare(k, p->storage, true);
  b.adds = ir_2(k, IR_LT, none, ir_scalar(k, IR_I32));
  ir_val unit = ir_cast(k, IR_I64, ir_group(k)),
         units = ir_int(k, IR_I64, s->row_sum.subgroups_per_row ? s->row_sum.subgroups_per_row : 1);
  if (b.whole) clb_team_begin(&b.team, k, b.arithmetic, s->row_sum.columns_per_lane);
  else if (s->subgroups > 1)
    unit = ir_add(k, ir_mul(k, unit, ir_int(k, IR_I64, s->subgroups)),
                  ir_cast(k, IR_I64, ir_subgroup(k)));
  if (!b.whole) ir_if(k, ir_2(k, IR_LT, unit, ir_mul(k, n, units)));
  clb_segment_begin(&b.segment, ir_2(k, IR_DIV, unit, units));
  if (r->listed == CLB_ROWS_OWN) {
    b.segment.first = ir_cast(k, IR_I32, b.segment.row);
    b.segment.last = ir_add(k, b.segment.first, ir_int(k, IR_I32, 1));
  }
  if (b.whole) clb_segment_share(&b.segment, TOGETHER);
  else ir_if(k, ir_2(k, IR_OR, ir_2(k, IR_EQ, skip, none), ir_2(k, IR_LT, none, b.segment.count)));
  if (s->row_sum.subgroups_per_row) add_own_columns(&b, r->columns, ir_2(k, IR_MOD, unit, units));
  else loop_over_columns(&b, r->columns);
  for (int i = 0; i < 2 && !b.whole; i++) ir_end(k);
  ir_finish(k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%lld columns", (long long)p->row_sum.columns);
}

const clb_kernel_kind clb_kind_row_sum = {.name = "row_sum",
                                          .check = check,
                                          .schedule = schedule,
                                          .lower = lower,
                                          .print = print,
                                          .passes = 1};
