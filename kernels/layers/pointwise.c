/* kernels/layers/pointwise.c - gathered rows, activations, zeros: lanes are columns, a sub-group
   does a block of columns of one row. */
#include "kernels/layers/layer.h"

enum { LOTS = 4 }; /* columns of a block, in multiples of the lanes */

typedef struct {
  clb_row_kernel l;
  const clb_pointwise_problem *p;
  clb_row_array in[2], out;
  ir_val start[3]; /* rows of in[0], in[1], out */
} builder;

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, false, s);
  s->layer.columns_per_subgroup = LOTS * s->lanes;
}

/* The value of out from those of in[0] and in[1]. */
static ir_val function(builder *b, int pass, const ir_val *x) {
  ir_kernel *k = b->l.k;
  ir_val value, slope, scale = ir_real(k, b->l.t, b->p->scale);
  if (b->p->function == CLB_POINTWISE_GATHER) return pass ? ir_add(k, x[0], x[1]) : x[0];
  if (b->p->function == CLB_POINTWISE_ZERO) return ir_real(k, b->l.t, 0);
  clb_activate(k, b->l.t, b->p->activation, ir_mul(k, scale, x[0]), &value, &slope, NULL);
  return pass ? ir_mul(k, x[1], ir_mul(k, ir_real(k, b->l.t, b->p->factor * b->p->scale), slope))
              : ir_mul(k, ir_real(k, b->l.t, b->p->factor), value);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[][2] = {
      {"gathered", "gathered_more"}, {"activation", "activation_backward"}, {"zeros", ""}};
  builder b = {.p = &p->pointwise};
  const bool gathers = b.p->function == CLB_POINTWISE_GATHER;
  const int n_in = b.p->function == CLB_POINTWISE_ZERO ? 0 : gathers ? 1 : p->pass + 1;
  clb_layer_begin(&b.l, k, names[b.p->function][p->pass], s, p->arithmetic);
  ir_val columns = ir_scalar(k, IR_I64), blocks = ir_scalar(k, IR_I64); /* of columns */
  for (int i = 0; i < n_in; i++)
    b.in[i] = clb_layer_array(&b.l, p->storage, !gathers); /* out may be one of the inputs */
  b.out = clb_layer_array(&b.l, p->storage, true);
  ir_val index = gathers ? ir_buffer(k, IR_I32, false) : IR_NONE;
  clb_layer_start(&b.l);
  ir_val row = ir_2(k, IR_DIV, b.l.unit, blocks),
         first = ir_mul(k, ir_2(k, IR_MOD, b.l.unit, blocks),
                        clb_i64(k, s->layer.columns_per_subgroup));
  ir_val left = ir_cast(
             k, IR_I32,
             ir_2(k, IR_MIN, ir_sub(k, columns, first), clb_i64(k, s->layer.columns_per_subgroup))),
         column = ir_add(k, first, ir_cast(k, IR_I64, ir_lane(k)));
  ir_val from = index == IR_NONE ? row : ir_cast(k, IR_I64, ir_load(k, index, row, IR_NONE));
  for (int i = 0; i < n_in; i++) b.start[i] = clb_layer_row(&b.l, &b.in[i], from);
  b.start[2] = clb_layer_row(&b.l, &b.out, row);
  ir_val x[LOTS][2], at[LOTS], mask[LOTS];
  for (int j = 0; j < LOTS; j++) {
    mask[j] = ir_2(k, IR_LT, ir_lane(k), ir_sub(k, left, clb_i32(k, (int64_t)j * s->lanes)));
    at[j] = ir_add(k, column, clb_i64(k, (int64_t)j * s->lanes));
    for (int i = 0; i < n_in; i++)
      x[j][i] = clb_layer_load(&b.l, &b.in[i], b.start[i], at[j], mask[j]);
    if (gathers && p->pass) x[j][1] = clb_layer_load(&b.l, &b.out, b.start[2], at[j], mask[j]);
  }
  for (int j = 0; j < LOTS; j++)
    clb_layer_store(&b.l, &b.out, b.start[2], at[j], mask[j], function(&b, p->pass, x[j]));
  clb_layer_finish(&b.l);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "function %d", (int)p->pointwise.function);
}

const clb_kernel_kind clb_kind_pointwise = {.name = "pointwise",
                                            .check = clb_layer_check,
                                            .schedule = schedule,
                                            .lower = lower,
                                            .print = print,
                                            .passes = 2};
