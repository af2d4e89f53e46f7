/* kernels/layers/lengths.c - second derivatives of lengths r of vectors v; a lane is an edge. With
   h the incoming gradient of g_v = g_r v / r, q = h . v / r is that of g_r, and the gradient by v
   is g_r (h - v q / r) / r, which is 0 where r is below SHORTEST. */
#include "kernels/layers/layer.h"

#define SHORTEST 1e-12

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)p, (void)limits, (void)error;
  return CLB_OK;
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, false, s);
  s->rows.columns_per_piece = 3;
}

static ir_val dot(ir_kernel *k, const ir_val *a, const ir_val *b) {
  return ir_fma(k, a[0], b[0], ir_fma(k, a[1], b[1], ir_mul(k, a[2], b[2])));
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  clb_row_block rows;
  clb_dtype type = (clb_dtype)p->storage;
  ir_type t = clb_ir_type((clb_dtype)p->arithmetic);
  ir_val v[3], h[3], g_r, bend[3];
  ir_begin(k, "lengths_along", s->lanes, s->subgroups, s->lanes * s->subgroups);
  clb_rows_begin(&rows, k, s, (clb_dtype)p->arithmetic);
  clb_row_array in_v = clb_rows_array(&rows, type, false),
                in_h = clb_rows_array(&rows, type, false),
                in_g = clb_rows_array(&rows, type, false);
  clb_row_array out_q = clb_rows_array(&rows, type, true),
                out_v = clb_rows_array(&rows, type, true);
  clb_rows_start(&rows, type, s->rows.columns_per_piece);
  clb_rows_load(&rows, &in_v, 0, 3, v);
  clb_rows_load(&rows, &in_h, 0, 3, h);
  clb_rows_load(&rows, &in_g, 0, 1, &g_r);
  ir_val r = ir_1(k, IR_SQRT, dot(k, v, v)), least = ir_real(k, t, SHORTEST),
         inverse = ir_2(k, IR_DIV, ir_real(k, t, 1), ir_2(k, IR_MAX, r, least));
  for (int i = 0; i < 3; i++) v[i] = ir_mul(k, v[i], inverse);
  ir_val q = dot(k, v, h),
         by = ir_select(k, ir_2(k, IR_LT, r, least), ir_real(k, t, 0), ir_mul(k, g_r, inverse));
  for (int i = 0; i < 3; i++) bend[i] = ir_mul(k, by, ir_sub(k, h[i], ir_mul(k, v[i], q)));
  clb_rows_store(&rows, &out_q, 0, 1, &q, false);
  clb_rows_store(&rows, &out_v, 0, 3, bend, true);
  ir_finish(k);
}

static void print(const clb_problem *p, clb_text *out) {
  (void)p;
  clb_text_add(out, "twice");
}

const clb_kernel_kind clb_kind_lengths_along = {.name = "lengths_along",
                                                .check = check,
                                                .schedule = schedule,
                                                .lower = lower,
                                                .print = print,
                                                .passes = 1};
