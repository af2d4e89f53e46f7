/* models/layers/atoms/product_basis.c - MACE's product basis: polynomials of an atom's features,
   with weights of its species. */
#include "models/layers/kinds.h"
#include "src/problem/symmetric_basis.h"

int64_t clb_product_basis_paths(const clb_product_basis *p, const clb_irreps *in,
                                const clb_irreps *out) {
  int64_t paths = 0;
  for (int t = 0; t < out->n; t++)
    for (int nu = 1; nu <= p->correlation; nu++)
      paths += clb_symmetric_rank(in->n - 1, nu, out->term[t].l);
  return paths;
}

static clb_status create(clb_network *n, clb_layer *y, bool trains, unsigned passes, clb_op **op) {
  const clb_product_basis *p = y->parameters;
  const clb_irreps *in = &n->array[y->in[0]]->irreps, *out = &n->array[y->out[0]]->irreps;
  int degrees[CLB_MAX_TERMS];
  for (int t = 0; t < out->n; t++) degrees[t] = out->term[t].l;
  return clb_symmetric_contraction_create(
      n->ctx,
      &(clb_symmetric_contraction_desc){.ell = in->n - 1,
                                        .correlation = p->correlation,
                                        .degrees = degrees,
                                        .n_degrees = out->n,
                                        .channels = in->term[0].mul,
                                        .n_species = n->n_species,
                                        .layout_x = CLB_IR_MUL,
                                        .layout_z = CLB_IR_MUL,
                                        .gradients = trains ? 0 : CLB_OPERAND_X,
                                        .incoming = CLB_OPERAND_X,
                                        .storage = n->type,
                                        .arithmetic = n->type,
                                        .accumulate = trains,
                                        .passes = passes},
      op);
}

static clb_status build(clb_network *n, clb_layer *y) {
  return create(n, y, false, CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD),
                &((clb_product_basis *)y->parameters)->op);
}

static clb_rows weights(const clb_network *n, const clb_layer *y) {
  const clb_product_basis *p = y->parameters;
  return (clb_rows){n->device_weights, p->weights, CLB_DENSE, n->species.buffer};
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_product_basis *p = y->parameters;
  (void)adds;
  return clb_symmetric_contraction_forward(p->op, clb_row_count(n, y->in[0]),
                                           clb_value(n, y->in[0]), weights(n, y),
                                           clb_value(n, y->out[0]));
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_product_basis *p = y->parameters;
  (void)adds;
  return clb_symmetric_contraction_backward(
      p->op, clb_row_count(n, y->in[0]), clb_value(n, y->in[0]), weights(n, y),
      clb_gradient(n, y->out[0]), clb_gradient(n, y->in[0]), (clb_rows){0});
}

/* ---- training ---- */

static clb_status derive(clb_network *n, clb_layer *y) {
  return create(n, y, true, CLB_PASS_BIT(CLB_BACKWARD) | CLB_PASS_BIT(CLB_DOUBLE_BACKWARD),
                &y->derivatives);
}

static clb_status along(clb_network *n, clb_layer *y, unsigned adds, bool bends) {
  const clb_rows w = weights(n, y);
  (void)adds, (void)bends;
  return clb_symmetric_contraction_double_backward(
      y->derivatives, clb_row_count(n, y->in[0]), clb_value(n, y->in[0]), w,
      clb_gradient(n, y->out[0]), clb_tangent(n, y->in[0]), (clb_rows){0}, clb_adjoint(n, y->in[0]),
      clb_weight_gradient(n, w), clb_tangent(n, y->out[0]));
}

static clb_status reverse(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  const clb_rows w = weights(n, y);
  return clb_symmetric_contraction_backward(y->derivatives, clb_row_count(n, y->in[0]),
                                            clb_value(n, y->in[0]), w, clb_adjoint(n, y->out[0]),
                                            clb_adjoint(n, y->in[0]), clb_weight_gradient(n, w));
}

static void free_ops(void *parameters) { clb_op_destroy(&((clb_product_basis *)parameters)->op); }

const clb_layer_kind clb_product_basis_kind = {.reads_in = 1,
                                               .overwrites = 1,
                                               .bends = CLB_BENDS_WEIGHTS | CLB_BENDS_INPUTS,
                                               .always_adds = true,
                                               .build = build,
                                               .forward = forward,
                                               .backward = backward,
                                               .derive = derive,
                                               .along = along,
                                               .reverse = reverse,
                                               .free_ops = free_ops};
