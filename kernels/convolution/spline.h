/* kernels/convolution/spline.h - a convolution's weights from a table of cubic B-splines
   (spline.c). */
#ifndef CLB_KERNELS_CONVOLUTION_SPLINE_H
#define CLB_KERNELS_CONVOLUTION_SPLINE_H

#include "kernels/convolution/unit.h"

/* Weights as uniform cubic B-splines of t(r) = (knots - 1) (1 + s) x / (x + s), where
   x = (r - first) / (last - first) and s = CLB_SPLINE_STRETCH: knots are close where r is small,
   and t needs one division.  Where second derivatives may jump at a knot, `split`, two splines meet
   there; the second one's coefficients follow the first one's, so that intervals from there on are
   3 rows further on, and s is such that the knot lies where it must.  In interval i, with u = t -
   i: W = sum over k = 0 ... 3 of B_k(u) c_i+k,   W' = t' sum of B'_k c_i+k, W'' = sum of (t'^2
   B''_k + t'' B'_k) c_i+k. r is clamped to the ends of the table, and W' = 0 beyond them.  Double
   backward: with the tangent q along r, c = q W', and r's gradient is W' . (gradient of w) + q W''
   . (gradient of c). As B'_k and B''_k add up to 0, gradients need only c_0 - c_1, c_2 - c_1 and
   c_3 - c_1. */
#define CLB_SPLINE_STRETCH 0.5
enum { CLB_SPLINE_ORDER = 4 }; /* coefficients per weight */

/* Elements of a row of the table: rows start at multiples of 16 bytes. Coefficients have the
   precision of arithmetic, as slopes are their differences times the number of knots. */
static inline int64_t clb_spline_stride(const clb_problem *p) {
  const int64_t step = 16 / ir_type_bytes(clb_ir_type((clb_dtype)p->arithmetic));
  return (p->tensor_product.n_weights + step - 1) / step * step;
}

typedef struct {
  clb_form_array table; /* [knots + 2, or knots + 5][stride]; base (i64): the row of an edge's first
                           coefficient */
  ir_val first, last, stretch, rate, knots, split; /* parameters: the ends, s (last - first),
                                               (knots - 1) (1 + s) (arithmetic); i32 */
  /* of the current edge */
  ir_val value[4];          /* B_k */
  ir_val slope[3], bend[3]; /* factors of the three differences in W' and q W'' */
  ir_val along;             /* q, or IR_NONE */
  ir_val difference[CLB_MAX_PER_LANE][3],
      by_r[CLB_MAX_PER_LANE]; /* the differences and W' of the current path, by channel */
  ir_val sum[2][3]; /* of the differences over paths, times gradients of w and of c; IR_NONE: 0 */
} clb_spline;

/* Where a length lies: the number of the table's row of its first coefficient (i32), u, t', and
   1 / (x + s) in units of r. */
typedef struct {
  ir_val row, u, rate, inverse;
} clb_spline_place;

void clb_spline_parameters(clb_spline *s, const clb_form_builder *f);
/* i64: start of the table's row of a length r (arithmetic, uniform). */
ir_val clb_spline_row(const clb_spline *s, const clb_form_builder *f, ir_val r);
/* Starts an edge of length r[0] and tangent r[1] (or IR_NONE), with its row of the table; its
   gradient is 0 so far. */
void clb_spline_edge(clb_spline *s, const clb_form_builder *f, const ir_val *r);
/* The same in two steps: first where the length r lies, in whatever lane; then the edge there, with
   tangent `along` (or IR_NONE). */
clb_spline_place clb_spline_place_of(const clb_spline *s, const clb_form_builder *f, ir_val r);
void clb_spline_at(clb_spline *s, const clb_form_builder *f, const clb_spline_place *p,
                   ir_val along);
/* Loads the coefficients of a path for all channels of a lane; the first channel must be the
   current one. */
void clb_spline_load(const clb_spline *s, const clb_form_builder *f, const clb_path *path,
                     const clb_unit *u, ir_val v[][CLB_SPLINE_ORDER]);
/* Computes the weight of a path from its coefficients, and its derivative by r. */
ir_val clb_spline_weight(clb_spline *s, const clb_form_builder *f, int channel,
                         ir_val v[CLB_SPLINE_ORDER]);
/* Adds the contribution of the current path to the gradient of r, where g is the gradient of its
   weight w (order 0) or of c (1).  clb_spline_slope adds the sum of all to `slope` (IR_NONE: 0). */
void clb_spline_add(clb_spline *s, const clb_form_builder *f, int order, int channel, ir_val g);
ir_val clb_spline_slope(const clb_spline *s, const clb_form_builder *f, ir_val slope);
/* The gradient of the tangent q, from the same contributions; IR_NONE: 0. */
ir_val clb_spline_by_along(const clb_spline *s, const clb_form_builder *f);

#endif
