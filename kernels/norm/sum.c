/* kernels/norm/sum.c - gradients of a norm by its weights: the sums over partial rows (norm.h) and
   over components; lanes are channels, a group has a block of them. */
#include <stdlib.h>

#include "kernels/norm/norm.h"

enum { SUBGROUPS = 32, IN_FLIGHT = 8 /* rows */ };

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)p, (void)limits, (void)error;
  return CLB_OK;
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  *s = (clb_schedule){.lanes = limits->lanes[p->arithmetic], .subgroups = 1};
  if (limits->simd || !limits->subgroups) return;
  while (2 * s->subgroups <= SUBGROUPS && 2 * s->subgroups <= limits->max_subgroups)
    s->subgroups *= 2;
}

typedef struct {
  ir_kernel *k;
  ir_type t;
  ir_val partial, rows;
  int64_t columns;
  ir_val sum, to, left; /* VARs: of this lane's channel; where it goes; channels from lane 0 on */
} builder;

/* Adds row `row` of the channel's components. */
static void add_row(builder *b, ir_val row, const ir_val *component, int n, ir_val mask,
                    ir_val sum) {
  ir_kernel *k = b->k;
  ir_val start = ir_mul(k, row, clb_i64(k, b->columns)), all = IR_NONE;
  for (int i = 0; i < n; i++) {
    ir_val v = ir_load(k, b->partial, ir_add(k, start, component[i]), mask);
    all = i ? ir_add(k, all, v) : v;
  }
  ir_set(k, sum, ir_add(k, ir_get(k, sum), all));
}

/* The rows of this sub-group: one of each `subgroups`. */
static ir_val sum_rows(builder *b, const ir_val *component, int n, ir_val mask) {
  ir_kernel *k = b->k;
  const int64_t step = k->subgroups, block = step * IN_FLIGHT;
  ir_val first = clb_i64(k, 0), sum[IN_FLIGHT];
  if (step > 1) first = ir_cast(k, IR_I64, ir_subgroup(k));
  ir_val whole = ir_mul(k, ir_2(k, IR_DIV, b->rows, clb_i64(k, block)), clb_i64(k, block));
  for (int i = 0; i < IN_FLIGHT; i++) sum[i] = ir_var(k, ir_real(k, b->t, 0), false);
  ir_val row = ir_loop(k, clb_i64(k, 0), whole, clb_i64(k, block));
  for (int i = 0; i < IN_FLIGHT; i++)
    add_row(b, ir_add(k, ir_add(k, row, first), clb_i64(k, i * step)), component, n, mask, sum[i]);
  ir_end(k);
  row = ir_loop(k, ir_add(k, whole, first), b->rows, clb_i64(k, step));
  add_row(b, row, component, n, mask, sum[0]);
  ir_end(k);
  for (int i = 0; i < IN_FLIGHT; i++) sum[i] = ir_get(k, sum[i]);
  for (int half = IN_FLIGHT / 2; half; half /= 2)
    for (int i = 0; i < half; i++) sum[i] = ir_add(k, sum[i], sum[i + half]);
  return sum[0];
}

/* `mul` channels with `components` numbers each, `apart` columns apart, a channel's first at `at` +
   number `step`; *first: the block that they start with. */
static void channels(builder *b, int64_t *first, int64_t mul, int components, int64_t at,
                     int64_t step, int64_t apart, int64_t out) {
  ir_kernel *k = b->k;
  const int64_t lanes = k->lanes, blocks = (mul - 1) / lanes + 1;
  ir_val block = ir_sub(k, ir_group(k), clb_i32(k, *first)),
         before = ir_mul(k, block, clb_i32(k, lanes)), left = ir_sub(k, clb_i32(k, mul), before),
         component[2 * CLB_NORM_MOST_GROUPS];
  ir_if(k, ir_2(k, IR_AND, ir_2(k, IR_LE, clb_i32(k, 0), block),
                ir_2(k, IR_LT, block, clb_i32(k, blocks))));
  ir_val channel = ir_cast(k, IR_I64, ir_add(k, before, ir_lane(k)));
  for (int i = 0; i < components; i++)
    component[i] = ir_add(k, ir_mul(k, channel, clb_i64(k, step)), clb_i64(k, at + i * apart));
  ir_set(k, b->sum, sum_rows(b, component, components, ir_2(k, IR_LT, ir_lane(k), left)));
  ir_set(k, b->to, ir_add(k, ir_cast(k, IR_I64, before), clb_i64(k, out)));
  ir_set(k, b->left, left);
  ir_end(k);
  *first += blocks;
}

int64_t clb_norm_sum_blocks(const clb_norm_plan *plan, int64_t lanes) {
  int64_t n = 0;
  for (int i = 0; i < plan->n; i++) {
    const clb_norm_segment *s = &plan->segment[i];
    n += ((s->mul - 1) / lanes + 1) * (s->scalar && plan->biases ? 2 : 1);
  }
  return n;
}

/* The sums of all sub-groups, in their order, in the first one. */
static ir_val over_subgroups(builder *b, ir_val stage) {
  ir_kernel *k = b->k;
  ir_val sum = ir_get(k, b->sum), lanes = clb_i32(k, k->lanes);
  if (k->subgroups == 1) return sum;
  ir_store(k, stage, ir_add(k, ir_mul(k, ir_subgroup(k), lanes), ir_lane(k)), IR_NONE, sum);
  ir_barrier(k, true);
  for (int i = 0; i < k->subgroups; i++) {
    ir_val v = ir_load(k, stage, ir_add(k, clb_i32(k, (int64_t)i * k->lanes), ir_lane(k)), IR_NONE);
    sum = i ? ir_add(k, sum, v) : v;
  }
  return sum;
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const clb_rms_norm_problem *norm = &p->rms_norm;
  const bool inner = norm->layout == CLB_IR_MUL;
  clb_norm_plan plan;
  clb_norm_make_plan(norm, &plan);
  ir_begin(k, "rms_norm_sum", s->lanes, s->subgroups, 1);
  builder b = {.k = k,
               .t = clb_ir_type((clb_dtype)p->arithmetic),
               .columns = clb_norm_partial_columns(norm, &plan)};
  const ir_type stored = clb_ir_type((clb_dtype)p->storage);
  b.partial = ir_buffer(k, b.t, false);
  b.rows = ir_scalar(k, IR_I64);
  ir_val out = ir_buffer(k, stored, true), offset = ir_scalar(k, IR_I64), stage = IR_NONE;
  ir_scalar(k, IR_I64); /* the stride of the one row of results */
  if (s->subgroups > 1) stage = ir_local(k, b.t, (int64_t)s->subgroups * s->lanes);
  b.sum = ir_var(k, ir_real(k, b.t, 0), false);
  b.to = ir_var(k, clb_i64(k, 0), true);
  b.left = ir_var(k, clb_i32(k, 0), true);
  int64_t first = 0;
  for (int i = 0; i < plan.n; i++) {
    const clb_norm_segment *g = &plan.segment[i];
    channels(&b, &first, g->mul, g->components, g->at, inner ? 1 : g->components,
             inner ? g->mul : 1, g->first_weight);
    if (g->scalar && plan.biases)
      channels(&b, &first, g->mul, 1, norm->irreps.dim + g->first_bias, 1, 1,
               plan.weights + g->first_bias);
  }
  ir_val sum = over_subgroups(&b, stage);
  ir_val wanted = ir_get(k, b.left);
  if (s->subgroups > 1)
    wanted = ir_select(k, ir_2(k, IR_EQ, ir_subgroup(k), clb_i32(k, 0)), wanted, clb_i32(k, 0));
  ir_val mask = ir_2(k, IR_LT, ir_lane(k), wanted),
         at = ir_add(k, ir_add(k, offset, ir_get(k, b.to)), ir_cast(k, IR_I64, ir_lane(k)));
  if (p->accumulate) sum = ir_add(k, sum, ir_cast(k, b.t, ir_load(k, out, at, mask)));
  ir_store(k, out, at, mask, ir_cast(k, ir_register_type(stored), sum));
  ir_finish(k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "of %d columns", p->rms_norm.irreps.dim);
}

const clb_kernel_kind clb_kind_rms_norm_sum = {.name = "rms_norm_sum",
                                               .check = check,
                                               .schedule = schedule,
                                               .lower = lower,
                                               .print = print,
                                               .passes = 1};
