/* kernels/layers/gaussians.c - Gaussians of lengths; lanes are columns, a sub-group does a row.

   b_k = exp(c (r - k s)^2), k = 0 ... columns - 1; g_r (+)= sum_k g_k 2 c (r - k s) b_k. */
#include "kernels/layers/layer.h"

enum { FORWARD, BACKWARD };

typedef struct {
  clb_row_kernel l;
  const clb_gaussians_problem *p;
  clb_row_array b;    /* or gradients by them */
  ir_val row, r, sum; /* sum: a VAR, backward only */
} builder;

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, p->pass == BACKWARD, s);
}

static void each(void *user, ir_val column, ir_val mask) {
  builder *b = user;
  ir_kernel *k = b->l.k;
  const double c = b->p->coefficient;
  ir_val at = ir_mul(k, ir_cast(k, b->l.t, column), ir_real(k, b->l.t, b->p->step)),
         x = ir_sub(k, b->r, at),
         value = ir_1(k, IR_EXP, ir_mul(k, ir_real(k, b->l.t, c), ir_mul(k, x, x)));
  if (b->sum == IR_NONE) {
    clb_layer_store(&b->l, &b->b, b->row, column, mask, value);
    return;
  }
  ir_val g = clb_layer_load(&b->l, &b->b, b->row, column, mask),
         slope = ir_mul(k, ir_mul(k, ir_real(k, b->l.t, 2 * c), x), value);
  ir_set(k, b->sum, ir_fma(k, g, slope, ir_get(k, b->sum)));
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const bool back = p->pass == BACKWARD;
  builder b = {.p = &p->gaussians, .sum = IR_NONE};
  clb_row_array g_r;
  ir_val add = IR_NONE, zero;
  clb_layer_begin(&b.l, k, back ? "gaussians_backward" : "gaussians", s, p->arithmetic);
  const clb_row_array lengths = clb_layer_array(&b.l, p->storage, false);
  b.b = clb_layer_array(&b.l, p->storage, !back);
  if (back) {
    g_r = clb_layer_array(&b.l, p->storage, true);
    add = ir_scalar(k, IR_I32);
  }
  clb_layer_start(&b.l);
  zero = clb_i64(k, 0);
  b.row = clb_layer_row(&b.l, &b.b, b.l.unit);
  b.r = clb_layer_load(&b.l, &lengths, clb_layer_row(&b.l, &lengths, b.l.unit), zero, IR_NONE);
  if (back) b.sum = ir_var(k, ir_real(k, b.l.t, 0), false);
  clb_layer_channels(&b.l, p->gaussians.columns, each, &b);
  if (back) {
    ir_val row = clb_layer_row(&b.l, &g_r, b.l.unit),
           before = clb_layer_load(&b.l, &g_r, row, zero, clb_wanted_lanes(k, add, clb_i32(k, 1)));
    clb_layer_store(&b.l, &g_r, row, zero, clb_first_lane(k),
                    ir_reduce_add(k, ir_add(k, ir_get(k, b.sum), before)));
  }
  clb_layer_finish(&b.l);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%lld columns", (long long)p->gaussians.columns);
}

const clb_kernel_kind clb_kind_gaussians = {.name = "gaussians",
                                            .check = clb_layer_check,
                                            .schedule = schedule,
                                            .lower = lower,
                                            .print = print,
                                            .passes = 2};
