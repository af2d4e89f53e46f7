/* kernels/convolution/spline.h - a convolution's weights from a table of cubic splines (spline.c).
 */
#ifndef CLB_KERNELS_CONVOLUTION_SPLINE_H
#define CLB_KERNELS_CONVOLUTION_SPLINE_H

#include "kernels/convolution/unit.h"

/* Weights as cubic Hermite splines W(r) between knots (spline.c).  With u = (r - r_i) / h in the
   interval: W = v_i + u^2 (3-2u) (v_i+1 - v_i) + h (u (1-u)^2 s_i + u^2 (u-1) s_i+1) of values v
   and slopes s; beyond the ends r is theirs. Double backward: the number q that comes in along r
   makes the vector c = q W', and r's gradient is W' . (gradient of w) + q W'' . (gradient of c). */
typedef struct {
  clb_form_array table; /* [knots][W][2]; base (i64): the row of an edge's interval */
  ir_val at, first, inverse, spacing, knots; /* parameters: the table starts at element `at` (i64);
                                                r_0, 1 / h, h (arithmetic); i32 */
  /* of the edge at hand */
  ir_val weight[3], slope[3],
      bend[3];  /* what v_i+1 - v_i, s_i, s_i+1 are multiplied with in W, W' and q W'' */
  ir_val along; /* q, or IR_NONE */
  ir_val knot[CLB_MAX_TOGETHER][3],
      by_r[CLB_MAX_TOGETHER]; /* these three and W' of the path at hand, channel by channel */
  ir_val sum[2][3]; /* of these three over paths, times gradients by w and by c; IR_NONE: nothing
                       yet */
} clb_spline;

void clb_spline_parameters(clb_spline *s, const clb_form_builder *f);
/* i64: where the table's row of a length r (arithmetic, uniform) starts. */
ir_val clb_spline_row(const clb_spline *s, const clb_form_builder *f, ir_val r);
/* Has knots come from that row. */
void clb_spline_find(clb_spline *s, const clb_form_builder *f, ir_val r);
/* Turns to an edge of length r[0], of whose gradient there is nothing yet; r[1]: what comes in
   along it, or IR_NONE. */
void clb_spline_edge(clb_spline *s, const clb_form_builder *f, const ir_val *r);
/* Of a path, from the table's row at hand: value and slope at both ends of the edge's interval. */
void clb_spline_knots(const clb_spline *s, const clb_form_builder *f, const clb_path *path,
                      const clb_unit *u, ir_val v[4]);
/* The weight of the path of these knots and its derivative by r. */
ir_val clb_spline_weight(clb_spline *s, const clb_form_builder *f, int channel, ir_val v[4]);
/* Adds the share that the path at hand, whose weight (0) or what comes in along it (1) has the
   gradient g, has of the gradient by r; adds all shares to `slope` (IR_NONE: nothing). */
void clb_spline_add(clb_spline *s, const clb_form_builder *f, int of_what, int channel, ir_val g);
ir_val clb_spline_slope(const clb_spline *s, const clb_form_builder *f, ir_val slope);
/* The gradient by what comes in along r, from the same shares; IR_NONE: 0. */
ir_val clb_spline_by_along(const clb_spline *s, const clb_form_builder *f);

#endif
