/* models/layers/atoms/bilinear.c - two parts of an atom's features multiplied channel by
   channel, with a weight of the atom for each path and channel.

   A path costs (multiplications of its 3j symbols + 1) for each channel; the layer reads the parts
   and the weights once, and writes the products once. */
#include "kernels/tensor_product/host/tensor_product.h"
#include "models/layers/kinds.h"

enum { X = CLB_OPERAND_X, Y = CLB_OPERAND_Y, W = CLB_OPERAND_W };

static clb_status create(clb_network *n, const clb_layer *y, unsigned gradients, bool adds,
                         unsigned passes, clb_op **op) {
  const clb_bilinear *p = y->parameters;
  const bool parts = n->array[y->in[CLB_BILINEAR_PARTS]]->moves,
             weights = n->array[y->in[CLB_BILINEAR_WEIGHTS]]->moves;
  const clb_tensor_product_desc d = {.instructions = p->path,
                                     .n_instructions = p->n_paths,
                                     .gradients = gradients,
                                     .incoming = (parts ? X | Y : 0U) | (weights ? W : 0U)};
  return clb_product_create(n, d, &p->first, &p->second, &n->array[y->out[0]]->irreps, adds, passes,
                            op);
}

static clb_status build(clb_network *n, clb_layer *y) {
  const unsigned moving = (n->array[y->in[CLB_BILINEAR_PARTS]]->moves ? X | Y : 0U) |
                          (n->array[y->in[CLB_BILINEAR_WEIGHTS]]->moves ? W : 0U);
  return create(n, y, moving, false, CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD),
                &((clb_bilinear *)y->parameters)->op);
}

/* The second part of rows of both. */
static clb_rows second(const clb_layer *y, clb_rows rows) {
  rows.offset += ((const clb_bilinear *)y->parameters)->first.dim;
  return rows;
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_bilinear *p = y->parameters;
  const clb_rows x = clb_value(n, y->in[CLB_BILINEAR_PARTS]);
  (void)adds;
  return clb_tensor_product_run(p->op, CLB_FORWARD, clb_row_count(n, y->in[0]),
                                (const clb_rows[]){x, second(y, x),
                                                   clb_value(n, y->in[CLB_BILINEAR_WEIGHTS]),
                                                   clb_value(n, y->out[0])});
}

static clb_status run_backward(clb_network *n, const clb_layer *y, clb_op *op, clb_rows g,
                               clb_rows g_x, clb_rows g_w) {
  const clb_rows x = clb_value(n, y->in[CLB_BILINEAR_PARTS]);
  return clb_tensor_product_run(op, CLB_BACKWARD, clb_row_count(n, y->in[0]),
                                (const clb_rows[]){x, second(y, x),
                                                   clb_value(n, y->in[CLB_BILINEAR_WEIGHTS]), g,
                                                   g_x, second(y, g_x), g_w});
}

/* Its inputs have no other readers. */
static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_bilinear *p = y->parameters;
  (void)adds;
  return run_backward(n, y, p->op, clb_gradient(n, y->out[0]),
                      clb_gradient(n, y->in[CLB_BILINEAR_PARTS]),
                      clb_gradient(n, y->in[CLB_BILINEAR_WEIGHTS]));
}

/* ---- training ---- */

static clb_status derive(clb_network *n, clb_layer *y) {
  return create(n, y, X | Y | W | CLB_OPERAND_Z, true,
                CLB_PASS_BIT(CLB_BACKWARD) | CLB_PASS_BIT(CLB_DOUBLE_BACKWARD), &y->derivatives);
}

/* Layers of atoms always bend. */
static clb_status along(clb_network *n, clb_layer *y, unsigned adds, bool bends) {
  const int parts = y->in[CLB_BILINEAR_PARTS], weights = y->in[CLB_BILINEAR_WEIGHTS];
  const clb_rows x = clb_value(n, parts), a = clb_tangent(n, parts), d_x = clb_adjoint(n, parts);
  (void)adds, (void)bends;
  return clb_tensor_product_run(
      y->derivatives, CLB_DOUBLE_BACKWARD, clb_row_count(n, parts),
      (const clb_rows[]){x, second(y, x), clb_value(n, weights), clb_gradient(n, y->out[0]), a,
                         second(y, a), clb_tangent(n, weights), d_x, second(y, d_x),
                         clb_adjoint(n, weights), clb_tangent(n, y->out[0])});
}

static clb_status reverse(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  return run_backward(n, y, y->derivatives, clb_adjoint(n, y->out[0]),
                      clb_adjoint(n, y->in[CLB_BILINEAR_PARTS]),
                      clb_adjoint(n, y->in[CLB_BILINEAR_WEIGHTS]));
}

static void free_ops(void *parameters) { clb_op_destroy(&((clb_bilinear *)parameters)->op); }

const clb_layer_kind clb_bilinear_kind = {
    .reads_in = 1U << CLB_BILINEAR_PARTS | 1U << CLB_BILINEAR_WEIGHTS,
    .overwrites = 1U << CLB_BILINEAR_PARTS | 1U << CLB_BILINEAR_WEIGHTS,
    .bends = CLB_BENDS_INPUTS,
    .always_adds = true,
    .build = build,
    .forward = forward,
    .backward = backward,
    .derive = derive,
    .along = along,
    .reverse = reverse,
    .free_ops = free_ops};
