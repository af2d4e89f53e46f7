/* models/layers/norm.c - Nequix's norm: rows divided by the root of their mean square. */
#include "models/layers/kinds.h"

static clb_status build(clb_network *n, clb_layer *y) {
  clb_norm *p = y->parameters;
  clb_text text = {0};
  const char *irreps = clb_irreps_text(&n->array[y->in[0]]->irreps, &text);
  const clb_status s = irreps ? clb_rms_norm_create(n->ctx, n->type, irreps, p->epsilon,
                                                    n->weights + p->weights, &p->op)
                              : clb_network_no_memory(n);
  clb_text_free(&text);
  return s;
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_norm *p = y->parameters;
  (void)adds;
  return clb_rms_norm_forward(p->op, clb_row_count(n, y->in[0]), clb_value(n, y->in[0]),
                              clb_value(n, y->out[0]));
}

/* Its input has no other reader. */
static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_norm *p = y->parameters;
  (void)adds;
  return clb_rms_norm_backward(p->op, clb_row_count(n, y->in[0]), clb_value(n, y->in[0]),
                               clb_gradient(n, y->out[0]), clb_gradient(n, y->in[0]));
}

static void free_ops(void *parameters) { clb_op_destroy(&((clb_norm *)parameters)->op); }

const clb_layer_kind clb_norm_kind = {.reads_in = 1,
                                      .overwrites = 1,
                                      .again = true,
                                      .build = build,
                                      .forward = forward,
                                      .backward = backward,
                                      .free_ops = free_ops};
