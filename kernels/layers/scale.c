/* kernels/layers/scale.c - rows times a number each; lanes are columns, a sub-group does a row.

   y = s x, s = t, or 1 / (1 + t).  g_x = s g_y, g_t (+)= ds/dt sum g_y x, ds/dt = 1 or -s^2. */
#include "kernels/layers/layer.h"

enum { FORWARD, BACKWARD, PASSES };

typedef struct {
  clb_row_kernel l;
  bool backward;
  clb_row_array x, t, g, out;                    /* g: backward only */
  ir_val x_row, g_row, out_row, scale, products; /* products: a VAR, g_y x */
} builder;

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, p->pass == BACKWARD, s);
}

static void scale(void *user, ir_val column, ir_val mask) {
  builder *b = user;
  ir_kernel *k = b->l.k;
  ir_val from = clb_layer_load(&b->l, &b->x, b->x_row, column, mask);
  if (b->backward) {
    ir_val g = clb_layer_load(&b->l, &b->g, b->g_row, column, mask);
    ir_set(k, b->products, ir_fma(k, g, from, ir_get(k, b->products)));
    from = g;
  }
  clb_layer_store(&b->l, &b->out, b->out_row, column, mask, ir_mul(k, b->scale, from));
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const bool reciprocal = p->row_scale.reciprocal;
  builder b = {.backward = p->pass == BACKWARD};
  clb_row_array g_t;
  ir_val add = IR_NONE;
  clb_layer_begin(&b.l, k, b.backward ? "row_scale_backward" : "row_scale", s, p->arithmetic);
  b.x = clb_layer_array(&b.l, p->storage, true); /* out may be x or g */
  b.t = clb_layer_array(&b.l, p->storage, false);
  if (b.backward) b.g = clb_layer_array(&b.l, p->storage, true);
  b.out = clb_layer_array(&b.l, p->storage, true);
  if (b.backward) {
    g_t = clb_layer_array(&b.l, p->storage, true);
    add = ir_scalar(k, IR_I32);
  }
  clb_layer_start(&b.l);
  ir_val zero = clb_i64(k, 0), one = ir_real(k, b.l.t, 1),
         t = clb_layer_load(&b.l, &b.t, clb_layer_row(&b.l, &b.t, b.l.unit), zero, IR_NONE);
  b.scale = reciprocal ? ir_2(k, IR_DIV, one, ir_add(k, one, t)) : t;
  b.x_row = clb_layer_row(&b.l, &b.x, b.l.unit);
  b.out_row = clb_layer_row(&b.l, &b.out, b.l.unit);
  if (b.backward) {
    b.g_row = clb_layer_row(&b.l, &b.g, b.l.unit);
    b.products = ir_var(k, ir_real(k, b.l.t, 0), false);
  }
  clb_layer_channels(&b.l, p->row_scale.columns, scale, &b);
  if (b.backward) {
    ir_val row = clb_layer_row(&b.l, &g_t, b.l.unit),
           before = clb_layer_load(&b.l, &g_t, row, zero, clb_wanted_lanes(k, add, clb_i32(k, 1))),
           slope = reciprocal ? ir_1(k, IR_NEG, ir_mul(k, b.scale, b.scale)) : one;
    clb_layer_store(&b.l, &g_t, row, zero, clb_first_lane(k),
                    ir_reduce_add(k, ir_fma(k, slope, ir_get(k, b.products), before)));
  }
  clb_layer_finish(&b.l);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%lld columns, %s", (long long)p->row_scale.columns,
               p->row_scale.reciprocal ? "by 1 + t" : "times t");
}

const clb_kernel_kind clb_kind_row_scale = {.name = "row_scale",
                                            .check = clb_layer_check,
                                            .schedule = schedule,
                                            .lower = lower,
                                            .print = print,
                                            .passes = PASSES};
