/* kernels/gate/gate.c - activations of scalars, and gated channels times the activations of their
   gates; lanes are channels. The sub-groups of a group share a row, or, of short rows, have each
   their own.

   With f the activation times its scale, of a scalar x:
     y = f(x)    g_x = f' g    d_g = f' a,  d_x = f'' g a
   and of gated components x_c and their gate t:
     y_c = f x_c    g_c' = f g_c,  g_t = f' sum g_c x_c
     d_g_c = f a_c + f' a_t x_c,  d_x_c = f' a_t g_c,  d_t = f' sum a_c g_c + f'' a_t sum g_c x_c */
#include "kernels/layers/layer.h"

typedef struct {
  clb_row_array a;
  ir_val row; /* its start */
} array;

typedef struct {
  clb_row_kernel l;
  const clb_problem *p;
  const clb_gate_segment *g;
  array x, y, a;  /* y: g of the derivatives' passes */
  array d_x, d_y; /* results of the shape of x and of y */
  ir_val channel; /* this lane's */
  ir_val mask;    /* lanes that have one */
} builder;

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)p, (void)limits, (void)error; /* kernels/gate/host/gate.c has planned it */
  return CLB_OK;
}

enum { MOST = 8, SHORT = 4 }; /* sub-groups; blocks of channels of a short row */

static int64_t blocks_of(const clb_problem *p, int32_t lanes) {
  int64_t blocks = 0;
  for (int i = 0; i < p->gate.n_segments; i++)
    blocks += (p->gate.segment[i].mul + lanes - 1) / lanes;
  return blocks;
}

/* Sub-groups have a block of channels each, as far as they go, or a row. */
static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, false, s);
  const int64_t blocks = blocks_of(p, s->lanes);
  const int most = limits->max_subgroups < MOST ? limits->max_subgroups : MOST;
  if (!limits->simd) s->subgroups = blocks <= SHORT || blocks > most ? most : (int)blocks;
}

/* ---- elements of this lane's channel ---- */

static ir_val place(builder *b, int64_t first, int32_t by) {
  ir_kernel *k = b->l.k;
  ir_val channel = by == 1 ? b->channel : ir_mul(k, b->channel, clb_i64(k, by));
  return ir_add(k, clb_i64(k, first), channel);
}

static ir_val load(builder *b, const array *a, ir_val at) {
  return clb_layer_load(&b->l, &a->a, a->row, at, b->mask);
}

static void store(builder *b, const array *a, ir_val at, ir_val value) {
  if (b->p->accumulate) value = ir_add(b->l.k, load(b, a, at), value);
  clb_layer_store(&b->l, &a->a, a->row, at, b->mask, value);
}

static ir_val component_in(builder *b, int64_t c) {
  return place(b, b->g->in + c * b->g->in_step, b->g->in_by);
}
static ir_val component_out(builder *b, int64_t c) {
  return place(b, b->g->out + c * b->g->out_step, b->g->out_by);
}

static ir_val add_product(builder *b, ir_val a, ir_val x, ir_val sum) {
  return sum == IR_NONE ? ir_mul(b->l.k, a, x) : ir_fma(b->l.k, a, x, sum);
}

/* ---- scalars ---- */

static void scalars(builder *b) {
  ir_kernel *k = b->l.k;
  const bool twice = b->p->pass == CLB_DOUBLE_BACKWARD;
  const ir_val in = component_in(b, 0), out = component_out(b, 0);
  ir_val value, slope, bend, scale = ir_real(k, b->l.t, b->g->scale), x = load(b, &b->x, in);
  clb_activate(k, b->l.t, b->g->activation, x, &value, &slope, twice ? &bend : NULL);
  if (b->p->pass == CLB_FORWARD) {
    store(b, &b->d_y, out, ir_mul(k, scale, value));
    return;
  }
  ir_val g = load(b, &b->y, out);
  if (!twice) {
    store(b, &b->d_x, in, ir_mul(k, g, ir_mul(k, scale, slope)));
    return;
  }
  ir_val a = load(b, &b->a, in);
  store(b, &b->d_y, out, ir_mul(k, a, ir_mul(k, scale, slope)));
  store(b, &b->d_x, in, ir_mul(k, ir_mul(k, a, g), ir_mul(k, scale, bend)));
}

/* ---- gated channels ---- */

/* f, f' and f'' of the gate. */
typedef struct {
  ir_val value, slope, bend;
} gate;

static gate activate_gate(builder *b, ir_val at) {
  ir_kernel *k = b->l.k;
  const bool twice = b->p->pass == CLB_DOUBLE_BACKWARD;
  gate t;
  ir_val scale = ir_real(k, b->l.t, b->g->scale), x = load(b, &b->x, at);
  clb_activate(k, b->l.t, b->g->activation, x, &t.value, &t.slope, twice ? &t.bend : NULL);
  t.value = ir_mul(k, scale, t.value);
  if (b->p->pass) t.slope = ir_mul(k, scale, t.slope);
  if (twice) t.bend = ir_mul(k, scale, t.bend);
  return t;
}

static void gated_forward(builder *b, const gate *t) {
  for (int64_t c = 0; c < b->g->components; c++) {
    ir_val x = load(b, &b->x, component_in(b, c));
    store(b, &b->d_y, component_out(b, c), ir_mul(b->l.k, t->value, x));
  }
}

static void gated_backward(builder *b, const gate *t, ir_val at) {
  ir_val sum = IR_NONE;
  for (int64_t c = 0; c < b->g->components; c++) {
    ir_val x = load(b, &b->x, component_in(b, c)), g = load(b, &b->y, component_out(b, c));
    sum = add_product(b, g, x, sum);
    store(b, &b->d_x, component_in(b, c), ir_mul(b->l.k, t->value, g));
  }
  store(b, &b->d_x, at, ir_mul(b->l.k, t->slope, sum));
}

static void gated_twice(builder *b, const gate *t, ir_val at) {
  ir_kernel *k = b->l.k;
  ir_val gx = IR_NONE, ag = IR_NONE, a_t = load(b, &b->a, at), pull = ir_mul(k, t->slope, a_t);
  for (int64_t c = 0; c < b->g->components; c++) {
    const ir_val in = component_in(b, c), out = component_out(b, c);
    ir_val x = load(b, &b->x, in), a = load(b, &b->a, in), g = load(b, &b->y, out);
    gx = add_product(b, g, x, gx);
    ag = add_product(b, a, g, ag);
    store(b, &b->d_y, out, ir_fma(k, t->value, a, ir_mul(k, pull, x)));
    store(b, &b->d_x, in, ir_mul(k, pull, g));
  }
  store(b, &b->d_x, at, ir_fma(k, t->slope, ag, ir_mul(k, ir_mul(k, t->bend, a_t), gx)));
}

static void gated(builder *b) {
  const ir_val at = place(b, b->g->gate, 1);
  const gate t = activate_gate(b, at);
  if (b->p->pass == CLB_FORWARD) gated_forward(b, &t);
  if (b->p->pass == CLB_BACKWARD) gated_backward(b, &t, at);
  if (b->p->pass == CLB_DOUBLE_BACKWARD) gated_twice(b, &t, at);
}

/* ---- the kernel ---- */

static void segment(void *user, ir_val channel, ir_val mask) {
  builder *b = user;
  b->channel = channel;
  b->mask = mask;
  (b->g->gate < 0 ? scalars : gated)(b);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[] = {"gate", "gate_backward", "gate_double_backward"};
  builder b = {.p = p};
  array *const lists[][5] = {
      {&b.x, &b.d_y}, {&b.x, &b.y, &b.d_x}, {&b.x, &b.y, &b.a, &b.d_x, &b.d_y}};
  array *const *list = lists[p->pass];
  const int inputs = p->pass + 1, arrays = p->pass == CLB_DOUBLE_BACKWARD ? 5 : inputs + 1;
  const bool shared = blocks_of(p, s->lanes) > SHORT;
  (shared ? clb_layer_begin_shared : clb_layer_begin)(&b.l, k, names[p->pass], s, p->arithmetic);
  for (int i = 0; i < arrays; i++) list[i]->a = clb_layer_array(&b.l, p->storage, i >= inputs);
  clb_layer_start(&b.l);
  for (int i = 0; i < arrays; i++) list[i]->row = clb_layer_row(&b.l, &list[i]->a, b.l.unit);
  for (int i = 0; i < p->gate.n_segments; i++) {
    b.g = &p->gate.segment[i];
    clb_layer_channels(&b.l, b.g->mul, segment, &b);
  }
  clb_layer_finish(&b.l);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%d -> %d", (int)p->gate.in, (int)p->gate.out);
}

const clb_kernel_kind clb_kind_gate = {.name = "gate",
                                       .check = check,
                                       .schedule = schedule,
                                       .lower = lower,
                                       .print = print,
                                       .passes = 3};
