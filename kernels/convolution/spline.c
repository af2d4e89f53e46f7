/* kernels/convolution/spline.c - a convolution's weights from a table of cubic splines. */
#include "kernels/convolution/spline.h"

static ir_val real(const clb_form_builder *f, double x) { return ir_real(f->k, f->t, x); }

void clb_spline_parameters(clb_spline *s, const clb_form_builder *f) {
  s->table.rows.element = clb_ir_type((clb_dtype)f->p->storage);
  s->table.rows.buffer = ir_buffer(f->k, s->table.rows.element, false);
  s->at = ir_scalar(f->k, IR_I64);
  s->first = ir_scalar(f->k, f->t);
  s->inverse = ir_scalar(f->k, f->t);
  s->spacing = ir_scalar(f->k, f->t);
  s->knots = ir_scalar(f->k, IR_I32);
}

/* The interval of r (i32), and r in knots from the first one on, kept between the ends. */
static ir_val interval(const clb_spline *s, const clb_form_builder *f, ir_val r, ir_val *t,
                       ir_val *near) {
  ir_kernel *k = f->k;
  ir_val most = ir_cast(k, f->t, ir_sub(k, s->knots, ir_int(k, IR_I32, 1)));
  *t = ir_mul(k, ir_sub(k, r, s->first), s->inverse);
  *near = ir_2(k, IR_MIN, ir_2(k, IR_MAX, *t, real(f, 0)), most);
  return ir_2(k, IR_MIN, ir_cast(k, IR_I32, *near), ir_sub(k, s->knots, ir_int(k, IR_I32, 2)));
}

ir_val clb_spline_row(const clb_spline *s, const clb_form_builder *f, ir_val r) {
  ir_val t, near, i = ir_cast(f->k, IR_I64, interval(s, f, r, &t, &near));
  return ir_add(f->k, s->at, ir_mul(f->k, i, ir_int(f->k, IR_I64, 2 * (int64_t)f->tp->n_weights)));
}

void clb_spline_find(clb_spline *s, const clb_form_builder *f, ir_val r) {
  s->table.base = clb_spline_row(s, f, r);
}

void clb_spline_edge(clb_spline *s, const clb_form_builder *f, const ir_val *r) {
  ir_kernel *k = f->k;
  ir_val t, near, i = interval(s, f, *r, &t, &near), one = real(f, 1), zero = real(f, 0),
                  two = real(f, 2), three = real(f, 3);
  ir_val most = ir_cast(k, f->t, ir_sub(k, s->knots, ir_int(k, IR_I32, 1))),
         inside = ir_2(k, IR_AND, ir_2(k, IR_LE, zero, t), ir_2(k, IR_LE, t, most));
  ir_val u = ir_sub(k, near, ir_cast(k, f->t, i));
  ir_val left = ir_sub(k, one, u), left2 = ir_mul(k, left, left), u2 = ir_mul(k, u, u),
         flat = ir_select(k, inside, one, zero);
  s->weight[0] = ir_mul(k, u2, ir_sub(k, three, ir_mul(k, two, u)));
  s->weight[1] = ir_mul(k, ir_mul(k, u, left2), s->spacing);
  s->weight[2] = ir_mul(k, ir_mul(k, ir_sub(k, u, one), u2), s->spacing);
  s->slope[0] = ir_mul(k, ir_mul(k, real(f, 6), ir_mul(k, u, left)), ir_mul(k, s->inverse, flat));
  s->slope[1] = ir_mul(k, ir_mul(k, left, ir_sub(k, one, ir_mul(k, three, u))), flat);
  s->slope[2] = ir_mul(k, ir_mul(k, u, ir_sub(k, ir_mul(k, three, u), two)), flat);
  for (int j = 0; j < 2; j++) clb_none(s->sum[j], 3);
  s->along = r[1];
  if (s->along == IR_NONE) return;
  ir_val by = ir_mul(k, ir_mul(k, s->along, s->inverse), flat), u6 = ir_mul(k, real(f, 6), u);
  s->bend[0] = ir_mul(k, ir_mul(k, ir_sub(k, real(f, 6), ir_mul(k, two, u6)), s->inverse), by);
  s->bend[1] = ir_mul(k, ir_sub(k, u6, real(f, 4)), by);
  s->bend[2] = ir_mul(k, ir_sub(k, u6, two), by);
}

void clb_spline_knots(const clb_spline *s, const clb_form_builder *f, const clb_path *path,
                      const clb_unit *u, ir_val v[4]) {
  ir_kernel *k = f->k;
  ir_val near = ir_add(k, s->table.base, ir_mul(k, u->channel, ir_int(k, IR_I64, 2)));
  for (int i = 0; i < 2; i++) {
    ir_val at =
        ir_add(k, near, ir_int(k, IR_I64, 2 * (path->weight_at + i * (int64_t)f->tp->n_weights)));
    (f->p->storage <= CLB_F32 ? ir_load_aligned : ir_load_wide)(k, s->table.rows.buffer, at,
                                                                u->mask, 2, v + 2 * i);
  }
}

/* start + what the three of the path at hand are multiplied with. */
static ir_val sum(const clb_form_builder *f, const ir_val *knot, const ir_val *by, ir_val start) {
  for (int i = 0; i < 3; i++) start = clb_plus(f->k, start, by[i], knot[i]);
  return start;
}

ir_val clb_spline_weight(clb_spline *s, const clb_form_builder *f, int channel, ir_val v[4]) {
  ir_kernel *k = f->k;
  ir_val *knot = s->knot[channel];
  for (int i = 0; i < 4; i++) v[i] = ir_cast(k, f->t, v[i]);
  knot[0] = ir_sub(k, v[2], v[0]);
  knot[1] = v[1];
  knot[2] = v[3];
  s->by_r[channel] = sum(f, knot, s->slope, IR_NONE);
  return sum(f, knot, s->weight, v[0]);
}

void clb_spline_add(clb_spline *s, const clb_form_builder *f, int of_what, int channel, ir_val g) {
  ir_val *all = s->sum[of_what];
  for (int i = 0; i < 3; i++) all[i] = clb_plus(f->k, all[i], g, s->knot[channel][i]);
}

ir_val clb_spline_slope(const clb_spline *s, const clb_form_builder *f, ir_val slope) {
  for (int i = 0; i < 3; i++) slope = clb_plus(f->k, slope, s->slope[i], s->sum[0][i]);
  for (int i = 0; i < 3; i++) slope = clb_plus(f->k, slope, s->bend[i], s->sum[1][i]);
  return slope;
}

ir_val clb_spline_by_along(const clb_spline *s, const clb_form_builder *f) {
  ir_val by = IR_NONE;
  for (int i = 0; i < 3; i++) by = clb_plus(f->k, by, s->slope[i], s->sum[1][i]);
  return by;
}
