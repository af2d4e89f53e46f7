/* kernels/layers/scale.c - rows times a number each; lanes are columns, a sub-group does a row.

   y = s x, s = t, 1 / t or 1 / (1 + t).  g_x = s g_y, g_t (+)= ds/dt sum g_y x, ds/dt = 1 or -s^2.
   Along a_x, a_t: y' = s a_x + ds/dt a_t x; of sum g y + h y' the gradients are
     d_x += s g + ds/dt a_t h,  d_t += ds/dt sum (g x + h a_x) + d2s/dt2 a_t sum h x,
   d2s/dt2 = 0 or 2 s^3. */
#include "kernels/layers/layer.h"

enum { FORWARD, BACKWARD, ALONG, REVERSE, PASSES };

typedef struct {
  clb_row_kernel l;
  bool backward;
  clb_row_array x, t, g, out;                    /* g: backward only */
  ir_val x_row, g_row, out_row, scale, products; /* products: a VAR, g_y x */
} builder;

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, p->pass == BACKWARD || p->pass == REVERSE, s);
}

static bool divides(const clb_problem *p) { return p->row_scale.factor != CLB_ROW_TIMES; }

/* s */
static ir_val factor(ir_kernel *k, const clb_problem *p, ir_val one, ir_val t) {
  if (!divides(p)) return t;
  return ir_2(k, IR_DIV, one, p->row_scale.factor == CLB_ROW_OVER_MORE ? ir_add(k, one, t) : t);
}

/* ds/dt */
static ir_val slope_of(ir_kernel *k, const clb_problem *p, ir_val one, ir_val scale) {
  return divides(p) ? ir_1(k, IR_NEG, ir_mul(k, scale, scale)) : one;
}

/* ---- forward and backward ---- */

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

static void values(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
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
  b.scale = factor(k, p, one, t);
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
           slope = slope_of(k, p, one, b.scale);
    clb_layer_store(&b.l, &g_t, row, zero, clb_first_lane(k),
                    ir_reduce_add(k, ir_fma(k, slope, ir_get(k, b.products), before)));
  }
  clb_layer_finish(&b.l);
}

/* ---- along tangents, and the gradients of that ---- */

typedef struct {
  clb_row_array a;
  ir_val row; /* its start */
} array;

typedef struct {
  clb_row_kernel l;
  array x, t, a_x, a_t, g, h, out, d_t; /* g, h, d_t: REVERSE only */
  ir_val scale, slope, turn;            /* slope: ds/dt, turn: slope a_t */
  ir_val products, bends;               /* VARs: g x + h a_x, h x; IR_NONE: not needed */
} tangents;

static ir_val load(tangents *b, const array *a, ir_val column, ir_val mask) {
  return clb_layer_load(&b->l, &a->a, a->row, column, mask);
}

static void along(void *user, ir_val column, ir_val mask) {
  tangents *b = user;
  ir_kernel *k = b->l.k;
  ir_val x = load(b, &b->x, column, mask), a = load(b, &b->a_x, column, mask);
  clb_layer_store(&b->l, &b->out.a, b->out.row, column, mask,
                  ir_fma(k, b->scale, a, ir_mul(k, b->turn, x)));
}

static void reverse(void *user, ir_val column, ir_val mask) {
  tangents *b = user;
  ir_kernel *k = b->l.k;
  ir_val x = load(b, &b->x, column, mask), a = load(b, &b->a_x, column, mask),
         g = load(b, &b->g, column, mask), h = load(b, &b->h, column, mask),
         there = load(b, &b->out, column, mask);
  ir_set(k, b->products, ir_fma(k, g, x, ir_fma(k, h, a, ir_get(k, b->products))));
  if (b->bends != IR_NONE) ir_set(k, b->bends, ir_fma(k, h, x, ir_get(k, b->bends)));
  clb_layer_store(&b->l, &b->out.a, b->out.row, column, mask,
                  ir_fma(k, b->scale, g, ir_fma(k, b->turn, h, there)));
}

static void scales(tangents *b, const clb_problem *p) {
  ir_kernel *k = b->l.k;
  ir_val zero = clb_i64(k, 0), one = ir_real(k, b->l.t, 1), t = load(b, &b->t, zero, IR_NONE);
  b->scale = factor(k, p, one, t);
  b->slope = slope_of(k, p, one, b->scale);
  b->turn = ir_mul(k, b->slope, load(b, &b->a_t, zero, IR_NONE));
}

/* d_t += slope products + a_t bend bends, bend = -2 s slope */
static void reverse_number(tangents *b) {
  ir_kernel *k = b->l.k;
  ir_val zero = clb_i64(k, 0), first = clb_first_lane(k), sum = load(b, &b->d_t, zero, first);
  sum = ir_fma(k, b->slope, ir_get(k, b->products), sum);
  if (b->bends != IR_NONE) {
    ir_val bend = ir_mul(k, ir_mul(k, ir_real(k, b->l.t, -2), b->scale), b->turn);
    sum = ir_fma(k, bend, ir_get(k, b->bends), sum);
  }
  clb_layer_store(&b->l, &b->d_t.a, b->d_t.row, zero, first, ir_reduce_add(k, sum));
}

static void derivatives(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const bool back = p->pass == REVERSE;
  tangents b;
  array *const list[] = {&b.x, &b.t, &b.a_x, &b.a_t, &b.g, &b.h, &b.out, &b.d_t};
  enum { FIRST_BACK = 4, OUT = 6, ARRAYS = 8 };
  clb_layer_begin(&b.l, k, back ? "row_scale_reverse" : "row_scale_along", s, p->arithmetic);
  for (int i = 0; i < ARRAYS; i++)
    if (back || i < FIRST_BACK || i == OUT)
      list[i]->a = clb_layer_array(&b.l, p->storage, i >= OUT);
  clb_layer_start(&b.l);
  for (int i = 0; i < ARRAYS; i++)
    if (back || i < FIRST_BACK || i == OUT)
      list[i]->row = clb_layer_row(&b.l, &list[i]->a, b.l.unit);
  scales(&b, p);
  b.products = b.bends = IR_NONE;
  if (back) b.products = ir_var(k, ir_real(k, b.l.t, 0), false);
  if (back && divides(p)) b.bends = ir_var(k, ir_real(k, b.l.t, 0), false);
  clb_layer_channels(&b.l, p->row_scale.columns, back ? reverse : along, &b);
  if (back) reverse_number(&b);
  clb_layer_finish(&b.l);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  (p->pass < ALONG ? values : derivatives)(p, s, k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%lld columns, %s", (long long)p->row_scale.columns,
               (const char *[]){"times t", "by t", "by 1 + t"}[p->row_scale.factor]);
}

const clb_kernel_kind clb_kind_row_scale = {.name = "row_scale",
                                            .check = clb_layer_check,
                                            .schedule = schedule,
                                            .lower = lower,
                                            .print = print,
                                            .passes = PASSES};
