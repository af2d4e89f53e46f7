/* kernels/linear/linear_gate.c - see linear_gate.h. */
#include "kernels/linear/linear_gate.h"
#include "kernels/common/activate.h"

static const clb_gate_segment *find(const clb_gate_problem *gate, const clb_term *t) {
  for (int i = 0; i < gate->n_segments; i++)
    if (gate->segment[i].out == t->at && gate->segment[i].mul == t->mul) return &gate->segment[i];
  return NULL;
}

bool clb_linear_can_gate(const clb_gate_problem *gate, const clb_irreps *out) {
  bool can = true;
  for (int t = 0; t < out->n && can; t++) {
    const clb_gate_segment *g = find(gate, &out->term[t]);
    can = g && g->in_by == 1 && g->out_by == 1 && g->components == 2 * out->term[t].l + 1;
  }
  return can && gate->n_segments == out->n;
}

const clb_gate_segment *clb_linear_segment(const clb_linear_problem *lp, const clb_term *t) {
  return find(&lp->gate, t);
}

bool clb_linear_segment_is_wide(const clb_gate_segment *g, int width) {
  return g->in % width == 0 && (g->components == 1 || g->in_step % width == 0) &&
         (g->gate < 0 || g->gate % width == 0);
}

ir_val clb_linear_activate(const clb_linear_kernel *b, const clb_gate_segment *g, ir_val x,
                           ir_val *slope) {
  ir_kernel *k = b->k;
  ir_val value, s, scale = ir_real(k, b->t, g->scale);
  clb_activate(k, b->t, g->activation, x, &value, &s, NULL);
  if (slope) *slope = ir_mul(k, scale, s);
  return ir_mul(k, scale, value);
}
