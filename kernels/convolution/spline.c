/* kernels/convolution/spline.c - a convolution's weights from a table of cubic B-splines. */
#include "kernels/convolution/spline.h"

static ir_val real(const clb_form_builder *f, double x) { return ir_real(f->k, f->t, x); }

void clb_spline_parameters(clb_spline *s, const clb_form_builder *f) {
  s->table.rows.element = f->t;
  s->table.rows.buffer = ir_buffer(f->k, s->table.rows.element, false);
  s->first = ir_scalar(f->k, f->t);
  s->last = ir_scalar(f->k, f->t);
  s->stretch = ir_scalar(f->k, f->t);
  s->rate = ir_scalar(f->k, f->t);
  s->knots = ir_scalar(f->k, IR_I32);
  s->split = ir_scalar(f->k, IR_I32);
}

/* ---- the interval of a length ---- */

/* t of a length r, clamped to the ends of the table; inverse: 1 / (x + s), in units of r. */
static ir_val spline_parameter(const clb_spline *s, const clb_form_builder *f, ir_val r,
                               ir_val *inverse) {
  ir_kernel *k = f->k;
  ir_val near = ir_2(k, IR_MIN, ir_2(k, IR_MAX, r, s->first), s->last),
         x = ir_sub(k, near, s->first);
  *inverse = ir_2(k, IR_DIV, real(f, 1), ir_add(k, x, s->stretch));
  return ir_mul(k, ir_mul(k, s->rate, x), *inverse);
}

/* The interval of t (i32). */
static ir_val interval(const clb_spline *s, const clb_form_builder *f, ir_val t) {
  return ir_2(f->k, IR_MIN, ir_cast(f->k, IR_I32, t),
              ir_sub(f->k, s->knots, ir_int(f->k, IR_I32, 2)));
}

/* The number (i32) of the table's row of an interval's first coefficient. */
static ir_val row_of(const clb_spline *s, const clb_form_builder *f, ir_val i) {
  ir_kernel *k = f->k;
  return ir_add(k, i,
                ir_select(k, ir_2(k, IR_LT, i, s->split), ir_int(k, IR_I32, 0),
                          ir_int(k, IR_I32, CLB_SPLINE_ORDER - 1)));
}

static ir_val start_of(const clb_form_builder *f, ir_val row) {
  return ir_mul(f->k, ir_cast(f->k, IR_I64, row), ir_int(f->k, IR_I64, clb_spline_stride(f->p)));
}

ir_val clb_spline_row(const clb_spline *s, const clb_form_builder *f, ir_val r) {
  ir_val inverse, i = interval(s, f, spline_parameter(s, f, r, &inverse));
  return start_of(f, row_of(s, f, i));
}

/* (4 + u^2 (3 u - 6)) / 6 */
static ir_val inner(const clb_form_builder *f, ir_val u) {
  ir_kernel *k = f->k;
  ir_val cubic = ir_mul(k, ir_mul(k, u, u), ir_sub(k, ir_mul(k, real(f, 0.5), u), real(f, 1)));
  return ir_add(k, cubic, real(f, 2. / 3));
}

static ir_val outer(const clb_form_builder *f, ir_val u) {
  ir_kernel *k = f->k;
  return ir_mul(k, ir_mul(k, u, u), ir_mul(k, real(f, 1. / 6), u));
}

clb_spline_place clb_spline_place_of(const clb_spline *s, const clb_form_builder *f, ir_val r) {
  ir_kernel *k = f->k;
  clb_spline_place p;
  ir_val t = spline_parameter(s, f, r, &p.inverse), i = interval(s, f, t),
         inside = ir_2(k, IR_AND, ir_2(k, IR_LE, s->first, r), ir_2(k, IR_LE, r, s->last)),
         stretched = ir_mul(k, ir_mul(k, s->rate, s->stretch), ir_mul(k, p.inverse, p.inverse));
  p.row = row_of(s, f, i);
  p.u = ir_sub(k, t, ir_cast(k, f->t, i));
  p.rate = ir_select(k, inside, stretched, real(f, 0));
  return p;
}

void clb_spline_at(clb_spline *s, const clb_form_builder *f, const clb_spline_place *p,
                   ir_val along) {
  ir_kernel *k = f->k;
  s->table.base = start_of(f, p->row);
  ir_val u = p->u, one = real(f, 1), half = real(f, 0.5), left = ir_sub(k, one, u);
  s->value[0] = outer(f, left);
  s->value[1] = inner(f, u);
  s->value[2] = inner(f, left);
  s->value[3] = outer(f, u);
  /* B'_k for k = 0, 2, 3 */
  ir_val by_u[3] = {
      ir_mul(k, ir_mul(k, real(f, -0.5), left), left),
      ir_mul(k, left, ir_sub(k, real(f, 2), ir_mul(k, real(f, 1.5), left))),
      ir_mul(k, ir_mul(k, half, u), u),
  };
  for (int j = 0; j < 3; j++) s->slope[j] = ir_mul(k, by_u[j], p->rate);
  for (int j = 0; j < 2; j++) clb_no_values(s->sum[j], 3);
  s->along = along;
  if (s->along == IR_NONE) return;
  ir_val twice[3] = {left, ir_sub(k, ir_mul(k, real(f, 3), left), real(f, 2)), u},   /* B''_k */
      by = ir_mul(k, s->along, p->rate), ratio = ir_mul(k, real(f, -2), p->inverse); /* t'' / t' */
  for (int j = 0; j < 3; j++)
    s->bend[j] = ir_mul(k, by, ir_add(k, ir_mul(k, p->rate, twice[j]), ir_mul(k, ratio, by_u[j])));
}

void clb_spline_edge(clb_spline *s, const clb_form_builder *f, const ir_val *r) {
  const clb_spline_place p = clb_spline_place_of(s, f, *r);
  clb_spline_at(s, f, &p, r[1]);
}

/* ---- coefficients ---- */

void clb_spline_load(const clb_spline *s, const clb_form_builder *f, const clb_path *path,
                     const clb_unit *u, ir_val v[][CLB_SPLINE_ORDER]) {
  ir_kernel *k = f->k;
  const int n = u->per_lane, bytes = ir_type_bytes(s->table.rows.element);
  int width = bytes < 4 || u->channel_stride > 1 ? 1 : n * bytes < 16 ? n : 16 / bytes;
  while (n % width || path->weight_at % width) width--;
  ir_val near = ir_add(k, s->table.base, u->channel), all[CLB_MAX_PER_LANE];
  for (int i = 0; i < CLB_SPLINE_ORDER; i++) {
    const int64_t at = path->weight_at + i * clb_spline_stride(f->p);
    for (int j = 0; j < n; j += width)
      (width > 1 ? ir_load_aligned : ir_load_wide)(
          k, s->table.rows.buffer,
          ir_add(k, near, ir_int(k, IR_I64, at + (int64_t)j * u->channel_stride)), u->mask, width,
          all + j);
    for (int j = 0; j < n; j++) v[j][i] = all[j];
  }
}

/* start + a sum of n products. */
static ir_val sum(const clb_form_builder *f, int n, const ir_val *a, const ir_val *b,
                  ir_val start) {
  for (int i = 0; i < n; i++) start = clb_add_product(f->k, start, a[i], b[i]);
  return start;
}

ir_val clb_spline_weight(clb_spline *s, const clb_form_builder *f, int channel,
                         ir_val v[CLB_SPLINE_ORDER]) {
  ir_kernel *k = f->k;
  ir_val *d = s->difference[channel];
  for (int i = 0; i < CLB_SPLINE_ORDER; i++) v[i] = ir_cast(k, f->t, v[i]);
  if (f->p->pass == CLB_FORWARD) return sum(f, CLB_SPLINE_ORDER, v, s->value, IR_NONE);
  const ir_val by[3] = {s->value[0], s->value[2], s->value[3]};
  d[0] = ir_sub(k, v[0], v[1]);
  d[1] = ir_sub(k, v[2], v[1]);
  d[2] = ir_sub(k, v[3], v[1]);
  s->by_r[channel] = sum(f, 3, d, s->slope, IR_NONE);
  return sum(f, 3, d, by, v[1]);
}

void clb_spline_add(clb_spline *s, const clb_form_builder *f, int order, int channel, ir_val g) {
  ir_val *all = s->sum[order];
  for (int i = 0; i < 3; i++) all[i] = clb_add_product(f->k, all[i], g, s->difference[channel][i]);
}

ir_val clb_spline_slope(const clb_spline *s, const clb_form_builder *f, ir_val slope) {
  slope = sum(f, 3, s->slope, s->sum[0], slope);
  return sum(f, 3, s->bend, s->sum[1], slope);
}

ir_val clb_spline_by_along(const clb_spline *s, const clb_form_builder *f) {
  ir_val by = IR_NONE;
  for (int i = 0; i < 3; i++) by = clb_add_product(f->k, by, s->slope[i], s->sum[1][i]);
  return by;
}
