/* kernels/gate/gate.c - activations of scalars, and gated channels times the activations of their
   gates; lanes are channels, a sub-group does a row. */
#include "kernels/layers/layer.h"

typedef struct {
  clb_layer l;
  bool backward;
  const clb_gate_segment *g;
  clb_row_array in, out, result; /* out: g_out, and result: g_in, of the backward pass */
  ir_val in_row, out_row, result_row;
} builder;

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, false, s);
}

static ir_val load(builder *b, const clb_row_array *a, ir_val row, int64_t first, ir_val channel,
                   ir_val mask) {
  return clb_layer_load(&b->l, a, row, ir_add(b->l.k, clb_i64(b->l.k, first), channel), mask);
}

static void store(builder *b, const clb_row_array *a, ir_val row, int64_t first, ir_val channel,
                  ir_val mask, ir_val value) {
  clb_layer_store(&b->l, a, row, ir_add(b->l.k, clb_i64(b->l.k, first), channel), mask, value);
}

static void scalars(builder *b, ir_val channel, ir_val mask) {
  const clb_gate_segment *g = b->g;
  ir_kernel *k = b->l.k;
  ir_val value, slope, scale = ir_real(k, b->l.t, g->scale);
  clb_activate(k, b->l.t, g->activation, load(b, &b->in, b->in_row, g->in, channel, mask), &value,
               &slope);
  if (!b->backward) store(b, &b->out, b->out_row, g->out, channel, mask, ir_mul(k, scale, value));
  else
    store(b, &b->result, b->result_row, g->in, channel, mask,
          ir_mul(k, load(b, &b->out, b->out_row, g->out, channel, mask), ir_mul(k, scale, slope)));
}

static void gated(builder *b, ir_val channel, ir_val mask) {
  const clb_gate_segment *g = b->g;
  ir_kernel *k = b->l.k;
  ir_val value, slope, scale = ir_real(k, b->l.t, g->scale), sum = IR_NONE;
  clb_activate(k, b->l.t, g->activation, load(b, &b->in, b->in_row, g->gate, channel, mask), &value,
               &slope);
  value = ir_mul(k, scale, value);
  for (int64_t c = 0; c < g->components; c++) {
    ir_val x = load(b, &b->in, b->in_row, g->in + c * g->in_step, channel, mask);
    if (!b->backward) {
      store(b, &b->out, b->out_row, g->out + c * g->out_step, channel, mask, ir_mul(k, value, x));
      continue;
    }
    ir_val gradient = load(b, &b->out, b->out_row, g->out + c * g->out_step, channel, mask);
    sum = sum == IR_NONE ? ir_mul(k, gradient, x) : ir_fma(k, gradient, x, sum);
    store(b, &b->result, b->result_row, g->in + c * g->in_step, channel, mask,
          ir_mul(k, value, gradient));
  }
  if (b->backward)
    store(b, &b->result, b->result_row, g->gate, channel, mask,
          ir_mul(k, ir_mul(k, scale, slope), sum));
}

static void segment(void *user, ir_val channel, ir_val mask) {
  builder *b = user;
  (b->g->gate < 0 ? scalars : gated)(b, channel, mask);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  builder b = {.backward = p->pass};
  clb_layer_begin(&b.l, k, b.backward ? "gate_backward" : "gate", s, p->arithmetic);
  b.in = clb_layer_array(&b.l, p->storage, false);
  b.out = clb_layer_array(&b.l, p->storage, !b.backward);
  if (b.backward) b.result = clb_layer_array(&b.l, p->storage, true);
  clb_layer_start(&b.l);
  b.in_row = clb_layer_row(&b.l, &b.in, b.l.unit);
  b.out_row = clb_layer_row(&b.l, &b.out, b.l.unit);
  if (b.backward) b.result_row = clb_layer_row(&b.l, &b.result, b.l.unit);
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
                                       .check = clb_layer_check,
                                       .schedule = schedule,
                                       .lower = lower,
                                       .print = print,
                                       .passes = 2};
