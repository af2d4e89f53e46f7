/* kernels/linear/linear_gate.h - the gate between activations and a linear map of few rows, which
   the map's kernel does itself: see `gated` in src/problem/problem.h. */
#ifndef CLB_KERNELS_LINEAR_LINEAR_GATE_H
#define CLB_KERNELS_LINEAR_LINEAR_GATE_H

#include "kernels/linear/linear_parts.h"

/* Whether each term that comes out is one segment, in layout ir_mul. */
bool clb_linear_can_gate(const clb_gate_problem *gate, const clb_irreps *out);
/* The segment that comes out as this term. */
const clb_gate_segment *clb_linear_segment(const clb_linear_problem *lp, const clb_term *t);
/* Whether several of its channels are accessed at once in what goes in, if they are in what comes
   out. */
bool clb_linear_segment_is_wide(const clb_gate_segment *g, int width);
/* The activation of x times its scale, and (NULL: not wanted) its slope. */
ir_val clb_linear_activate(const clb_linear_kernel *b, const clb_gate_segment *g, ir_val x,
                           ir_val *slope);

#endif
