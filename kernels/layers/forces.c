/* kernels/layers/forces.c - forces on atoms: the gradients of the edges they receive minus those
   they send; lanes are edges, a sub-group does an atom. */
#include "kernels/layers/layer.h"

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)p, (void)limits, (void)error;
  return CLB_OK;
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, true, s);
  s->layer.wide_vectors = limits->simd;
}

/* Edges of one direction: first slot of each of n rows, and the edge of each slot. */
typedef struct {
  ir_val row_start, edge, n;
} direction;

static void add_edges(clb_layer *b, const direction *d, const clb_row_array *g, bool minus,
                      const ir_val *sum) {
  ir_kernel *k = b->k;
  ir_val lanes = clb_i32(k, b->s->lanes), value[3];
  ir_if(k, ir_2(k, IR_LT, b->unit, d->n));
  ir_val begin = ir_load(k, d->row_start, b->unit, IR_NONE),
         end = ir_load(k, d->row_start, ir_add(k, b->unit, clb_i64(k, 1)), IR_NONE);
  ir_val first = ir_loop(k, clb_i32(k, 0), ir_sub(k, end, begin), lanes),
         mask = ir_2(k, IR_LT, ir_lane(k), ir_sub(k, ir_sub(k, end, begin), first));
  ir_val place =
      ir_add(k, ir_cast(k, IR_I64, ir_add(k, begin, first)), ir_cast(k, IR_I64, ir_lane(k)));
  ir_val start = clb_layer_row(b, g, ir_cast(k, IR_I64, ir_load(k, d->edge, place, mask)));
  if (b->s->layer.wide_vectors) ir_load_wide(k, g->buffer, start, mask, 3, value);
  for (int i = 0; i < 3; i++) {
    value[i] = b->s->layer.wide_vectors ? ir_cast(k, b->t, value[i])
                                        : clb_layer_load(b, g, start, clb_i64(k, i), mask);
    ir_set(k, sum[i], ir_2(k, minus ? IR_SUB : IR_ADD, ir_get(k, sum[i]), value[i]));
  }
  ir_end(k);
  ir_end(k);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  clb_layer b;
  direction d[2];
  ir_val sum[3];
  clb_layer_begin(&b, k, "forces", s, p->arithmetic);
  for (int i = 0; i < 2; i++) {
    d[i].row_start = ir_buffer(k, IR_I32, false);
    d[i].edge = ir_buffer(k, IR_I32, false);
    d[i].n = ir_scalar(k, IR_I64);
  }
  clb_row_array g = clb_layer_array(&b, p->storage, false),
                force = clb_layer_array(&b, p->arithmetic, true);
  clb_layer_start(&b);
  for (int i = 0; i < 3; i++) sum[i] = ir_var(k, ir_real(k, b.t, 0), false);
  for (int i = 0; i < 2; i++) add_edges(&b, &d[i], &g, i, sum);
  ir_val row = clb_layer_row(&b, &force, b.unit);
  for (int i = 0; i < 3; i++)
    clb_layer_store(&b, &force, row, clb_i64(k, i), IR_NONE, ir_reduce_add(k, ir_get(k, sum[i])));
  clb_layer_finish(&b);
}

static void print(const clb_problem *p, clb_text *out) {
  (void)p;
  clb_text_add(out, "by receiver and sender");
}

const clb_kernel_kind clb_kind_forces = {.name = "forces",
                                         .check = check,
                                         .schedule = schedule,
                                         .lower = lower,
                                         .print = print,
                                         .passes = 1};
