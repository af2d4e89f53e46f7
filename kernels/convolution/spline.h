/* kernels/convolution/spline.h - a convolution's weights from a table of cubic B-splines
   (spline.c). */
#ifndef CLB_KERNELS_CONVOLUTION_SPLINE_H
#define CLB_KERNELS_CONVOLUTION_SPLINE_H

#include "kernels/convolution/unit.h"

/* Weights as uniform cubic B-splines of t(r) = (knots - 1) (1 + s) x / (x + s), where
   x = (r - first) / (last - first) and s = CLB_SPLINE_STRETCH: knots are close where r is small,
   and t takes one division.  In interval i, with u = t - i:
     W = sum over k = 0 ... 3 of B_k(u) c_i+k,   W' = t' sum of B'_k c_i+k,
     W'' = sum of (t'^2 B''_k + t'' B'_k) c_i+k.
   Beyond the ends r is theirs, and W' = 0. Double backward: the number q that comes in along r
   makes the vector c = q W', and r's gradient is W' . (gradient of w) + q W'' . (gradient of c).
   As B'_k and B''_k add up to 0, gradients need c_0 - c_1, c_2 - c_1 and c_3 - c_1 alone. */
#define CLB_SPLINE_STRETCH 0.5
enum { CLB_SPLINE_ORDER = 4 }; /* coefficients that an edge's weight is made of */

/* Elements from one coefficient of a weight to its next: rows start at multiples of 16 bytes. */
static inline int64_t clb_spline_stride(const clb_problem *p) {
  const int64_t step = 16 / ir_type_bytes(clb_ir_type((clb_dtype)p->storage));
  return (p->tensor_product.n_weights + step - 1) / step * step;
}

typedef struct {
  clb_form_array
      table; /* [knots + 2][stride]; base (i64): the row of an edge's first coefficient */
  ir_val first, last, stretch, rate, knots; /* parameters: the ends, s (last - first),
                                               (knots - 1) (1 + s) (arithmetic); i32 */
  /* of the edge at hand */
  ir_val value[4];          /* B_k */
  ir_val slope[3], bend[3]; /* what the three differences are multiplied with in W' and q W'' */
  ir_val along;             /* q, or IR_NONE */
  ir_val difference[CLB_MAX_PER_LANE][3],
      by_r[CLB_MAX_PER_LANE]; /* these three and W' of the path at hand, channel by channel */
  ir_val sum[2][3]; /* of these three over paths, times gradients by w and by c; IR_NONE: nothing
                       yet */
} clb_spline;

void clb_spline_parameters(clb_spline *s, const clb_form_builder *f);
/* i64: where the table's row of a length r (arithmetic, uniform) starts. */
ir_val clb_spline_row(const clb_spline *s, const clb_form_builder *f, ir_val r);
/* Has coefficients come from that row. */
void clb_spline_find(clb_spline *s, const clb_form_builder *f, ir_val r);
/* Turns to an edge of length r[0], of whose gradient there is nothing yet; r[1]: what comes in
   along it, or IR_NONE. */
void clb_spline_edge(clb_spline *s, const clb_form_builder *f, const ir_val *r);
/* Of a path, from the table's rows at hand: the coefficients of all channels of a lane, of which
   the first is the current one. */
void clb_spline_load(const clb_spline *s, const clb_form_builder *f, const clb_path *path,
                     const clb_unit *u, ir_val v[][CLB_SPLINE_ORDER]);
/* The weight of the path of these coefficients and its derivative by r. */
ir_val clb_spline_weight(clb_spline *s, const clb_form_builder *f, int channel,
                         ir_val v[CLB_SPLINE_ORDER]);
/* Adds the share that the path at hand, whose weight (0) or what comes in along it (1) has the
   gradient g, has of the gradient by r; adds all shares to `slope` (IR_NONE: nothing). */
void clb_spline_add(clb_spline *s, const clb_form_builder *f, int order, int channel, ir_val g);
ir_val clb_spline_slope(const clb_spline *s, const clb_form_builder *f, ir_val slope);
/* The gradient by what comes in along r, from the same shares; IR_NONE: 0. */
ir_val clb_spline_by_along(const clb_spline *s, const clb_form_builder *f);

#endif
