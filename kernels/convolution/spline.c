/* kernels/convolution/spline.c - a convolution's weights from a table of cubic splines. */
#include "kernels/convolution/builder.h"

static ir_kernel *of(clb_convolution *c) { return c->f.k; }
static ir_val real(clb_convolution *c, double x) { return ir_real(c->f.k, c->f.t, x); }

void clb_spline_parameters(clb_convolution *c) {
  if (!c->f.p->convolution.spline) return;
  c->spline.table.rows.element = clb_ir_type((clb_dtype)c->f.p->storage);
  c->spline.table.rows.buffer = ir_buffer(of(c), c->spline.table.rows.element, false);
  c->spline.at = ir_scalar(of(c), IR_I64);
  c->spline.first = ir_scalar(of(c), c->f.t);
  c->spline.inverse = ir_scalar(of(c), c->f.t);
  c->spline.spacing = ir_scalar(of(c), c->f.t);
  c->spline.knots = ir_scalar(of(c), IR_I32);
}

/* The interval of r (i32), and r in knots from the first one on, kept between the ends. */
static ir_val interval(clb_convolution *c, ir_val r, ir_val *t, ir_val *near) {
  ir_kernel *k = of(c);
  clb_spline *s = &c->spline;
  ir_val most = ir_cast(k, c->f.t, ir_sub(k, s->knots, ir_int(k, IR_I32, 1)));
  *t = ir_mul(k, ir_sub(k, r, s->first), s->inverse);
  *near = ir_2(k, IR_MIN, ir_2(k, IR_MAX, *t, real(c, 0)), most);
  return ir_2(k, IR_MIN, ir_cast(k, IR_I32, *near), ir_sub(k, s->knots, ir_int(k, IR_I32, 2)));
}

ir_val clb_spline_row(clb_convolution *c, ir_val r) {
  ir_val t, near, i = ir_cast(of(c), IR_I64, interval(c, r, &t, &near));
  return ir_add(of(c), c->spline.at, ir_mul(of(c), i, ir_int(of(c), IR_I64, 2 * (int64_t)c->f.tp->n_weights)));
}

void clb_spline_find(clb_convolution *c, ir_val r) { c->spline.table.base = clb_spline_row(c, r); }

void clb_spline_edge(clb_convolution *c, const ir_val *r) {
  ir_kernel *k = of(c);
  clb_spline *s = &c->spline;
  ir_val t, near, i = interval(c, *r, &t, &near), one = real(c, 1), zero = real(c, 0), two = real(c, 2), three = real(c, 3);
  ir_val most = ir_cast(k, c->f.t, ir_sub(k, s->knots, ir_int(k, IR_I32, 1))), inside = ir_2(k, IR_AND, ir_2(k, IR_LE, zero, t), ir_2(k, IR_LE, t, most));
  ir_val u = ir_sub(k, near, ir_cast(k, c->f.t, i));
  ir_val left = ir_sub(k, one, u), left2 = ir_mul(k, left, left), u2 = ir_mul(k, u, u), flat = ir_select(k, inside, one, zero);
  s->weight[0] = ir_mul(k, u2, ir_sub(k, three, ir_mul(k, two, u)));
  s->weight[1] = ir_mul(k, ir_mul(k, u, left2), s->spacing);
  s->weight[2] = ir_mul(k, ir_mul(k, ir_sub(k, u, one), u2), s->spacing);
  s->slope[0] = ir_mul(k, ir_mul(k, real(c, 6), ir_mul(k, u, left)), ir_mul(k, s->inverse, flat));
  s->slope[1] = ir_mul(k, ir_mul(k, left, ir_sub(k, one, ir_mul(k, three, u))), flat);
  s->slope[2] = ir_mul(k, ir_mul(k, u, ir_sub(k, ir_mul(k, three, u), two)), flat);
  s->along = r[1];
  if (s->along == IR_NONE) return;
  ir_val by = ir_mul(k, ir_mul(k, s->along, s->inverse), flat), u6 = ir_mul(k, real(c, 6), u);
  s->bend[0] = ir_mul(k, ir_mul(k, ir_sub(k, real(c, 6), ir_mul(k, two, u6)), s->inverse), by);
  s->bend[1] = ir_mul(k, ir_sub(k, u6, real(c, 4)), by);
  s->bend[2] = ir_mul(k, ir_sub(k, u6, two), by);
}

static void load_knots(clb_convolution *c, ir_val v[4]) {
  ir_kernel *k = of(c);
  ir_val near = ir_add(k, c->spline.table.base, ir_mul(k, c->channel, ir_int(k, IR_I64, 2)));
  for (int i = 0; i < 2; i++) {
    ir_val at = ir_add(k, near, ir_int(k, IR_I64, 2 * (c->at.path->weight_at + i * (int64_t)c->f.tp->n_weights)));
    (c->f.p->storage <= CLB_F32 ? ir_load_aligned : ir_load_wide)(k, c->spline.table.rows.buffer, at, c->mask, 2, v + 2 * i);
  }
}

/* start + what the three of the path at hand are multiplied with. */
static ir_val sum(clb_convolution *c, const ir_val *by, ir_val start) {
  for (int i = 0; i < 3; i++) start = clb_plus(of(c), start, by[i], c->spline.knot[i]);
  return start;
}

ir_val clb_spline_weight(clb_convolution *c) {
  ir_kernel *k = of(c);
  clb_spline *s = &c->spline;
  ir_val v[4];
  (c->stage.stages && clb_stages_knots(c->f.p) ? clb_stage_knots : load_knots)(c, v);
  for (int i = 0; i < 4; i++) v[i] = ir_cast(k, c->f.t, v[i]);
  s->knot[0] = ir_sub(k, v[2], v[0]);
  s->knot[1] = v[1];
  s->knot[2] = v[3];
  s->by_r = sum(c, s->slope, IR_NONE);
  return sum(c, s->weight, v[0]);
}

void clb_spline_add(clb_convolution *c, int of_what, ir_val g) {
  ir_val *all = c->spline.sum[of_what];
  for (int i = 0; i < 3; i++) all[i] = clb_plus(of(c), all[i], g, c->spline.knot[i]);
}

ir_val clb_spline_slope(clb_convolution *c, ir_val slope) {
  for (int i = 0; i < 3; i++) slope = clb_plus(of(c), slope, c->spline.slope[i], c->spline.sum[0][i]);
  for (int i = 0; i < 3; i++) slope = clb_plus(of(c), slope, c->spline.bend[i], c->spline.sum[1][i]);
  return slope;
}
