/* models/layers/scale.c - rows times numbers: weights of paths times a cutoff, messages over a
   density. */
#include "models/layers/kinds.h"

static clb_status build(clb_network *n, clb_layer *y) {
  clb_scale *p = y->parameters;
  return clb_row_scale_create(n->ctx, n->type, n->array[y->out[0]]->irreps.dim, p->factor, &p->op);
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_scale *p = y->parameters;
  (void)adds;
  return clb_row_scale_forward(p->op, clb_row_count(n, y->out[0]),
                               clb_value(n, y->in[CLB_SCALE_ROWS]),
                               clb_value(n, y->in[CLB_SCALE_NUMBERS]), clb_value(n, y->out[0]));
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_scale *p = y->parameters;
  const int rows = y->in[CLB_SCALE_ROWS], numbers = y->in[CLB_SCALE_NUMBERS];
  return clb_row_scale_backward(p->op, clb_row_count(n, y->out[0]), clb_value(n, rows),
                                clb_value(n, numbers), clb_gradient(n, y->out[0]),
                                clb_gradient(n, rows), clb_gradient(n, numbers),
                                adds >> CLB_SCALE_NUMBERS & 1);
}

/* ---- training ---- */

static clb_status derive(clb_network *n, clb_layer *y) {
  (void)n;
  return clb_layer_add_training(((clb_scale *)y->parameters)->op);
}

static clb_status along(clb_network *n, clb_layer *y, unsigned adds, bool bends) {
  const int rows = y->in[CLB_SCALE_ROWS], numbers = y->in[CLB_SCALE_NUMBERS];
  const clb_scale *p = y->parameters;
  (void)adds, (void)bends;
  return clb_row_scale_along(p->op, clb_row_count(n, y->out[0]), clb_value(n, rows),
                             clb_value(n, numbers), clb_tangent(n, rows), clb_tangent(n, numbers),
                             clb_tangent(n, y->out[0]));
}

static clb_status reverse(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  const int rows = y->in[CLB_SCALE_ROWS], numbers = y->in[CLB_SCALE_NUMBERS];
  const clb_scale *p = y->parameters;
  return clb_row_scale_reverse(p->op, clb_row_count(n, y->out[0]), clb_value(n, rows),
                               clb_value(n, numbers), clb_tangent(n, rows), clb_tangent(n, numbers),
                               clb_adjoint(n, y->out[0]), clb_gradient(n, y->out[0]),
                               clb_adjoint(n, rows), clb_adjoint(n, numbers));
}

static void need(const clb_network *n, const clb_layer *y, clb_needed needed) {
  const int64_t channels = clb_channels(&n->array[y->out[0]]->irreps, NULL);
  for (int64_t c = 0; c < channels; c++)
    if (needed[y->out[0]][c]) needed[y->in[CLB_SCALE_ROWS]][c] = true;
  clb_need(n, y->in[CLB_SCALE_NUMBERS], needed, -1);
}

static void free_ops(void *parameters) { clb_op_destroy(&((clb_scale *)parameters)->op); }

const clb_layer_kind clb_scale_kind = {.reads_in = 1U << CLB_SCALE_ROWS | 1U << CLB_SCALE_NUMBERS,
                                       .overwrites = 1U << CLB_SCALE_ROWS,
                                       .again = true,
                                       .late = true,
                                       .always_adds = true,
                                       .build = build,
                                       .forward = forward,
                                       .backward = backward,
                                       .need = need,
                                       .derive = derive,
                                       .along = along,
                                       .reverse = reverse,
                                       .free_ops = free_ops};
