/* kernels/convolution/host/vectors.c - edge vectors in place of a convolution's y and, where
   weights are splines, of lengths: the ops that this takes. */
#include "kernels/convolution/host/vectors.h"

#include <stdlib.h>

#include "kernels/convolution/frame.h"
#include "kernels/layers/host/layer_call.h"
#include "kernels/layers/host/layers.h"
#include "kernels/host/operand_lists.h"

void clb_convolution_vectors_destroy(clb_convolution_vectors **vectors) {
  if (!*vectors) return;
  clb_convolution_frames_destroy(&(*vectors)->frames);
  clb_op_destroy(&(*vectors)->harmonics);
  clb_op_destroy(&(*vectors)->adding);
  clb_op_destroy(&(*vectors)->lengths);
  clb_op_destroy(&(*vectors)->lengths_along);
  clb_op_destroy(&(*vectors)->first);
  free(*vectors);
  *vectors = NULL;
}

/* ---- create ---- */

static clb_status read_degrees(clb_context *ctx, const clb_irreps *y,
                               clb_spherical_harmonics_problem *sh) {
  for (int i = 0; i < y->n; i++) {
    const clb_term *t = &y->term[i];
    if (!t->mul) continue;
    if (t->mul != 1)
      return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                      "clb_convolution_create: term %d of irreps_y is %dx%d%c; with vectors its "
                      "multiplicity must be 1",
                      i, (int)t->mul, (int)t->l, t->parity > 0 ? 'e' : 'o');
    if (sh->n_degrees == CLB_MAX_DEGREES)
      return clb_fail(
          &ctx->error, CLB_ERROR_ARGUMENT,
          "clb_convolution_create: irreps_y has more than %d terms, too many for vectors",
          CLB_MAX_DEGREES);
    sh->degrees[sh->n_degrees++] = t->l;
  }
  return sh->n_degrees
             ? CLB_OK
             : clb_fail(
                   &ctx->error, CLB_ERROR_ARGUMENT,
                   "clb_convolution_create: irreps_y is empty; with vectors it must have a term");
}

/* accumulates: adds to gradients of vectors; rows of the workspace are always overwritten. */
static clb_status create_harmonics(clb_context *ctx, const clb_problem *p, int32_t accumulates,
                                   unsigned passes, const clb_tuner *tuner, clb_op **op) {
  clb_problem *h = clb_layer_problem(ctx, CLB_SPHERICAL_HARMONICS, (clb_dtype)p->storage,
                                     (clb_dtype)p->arithmetic);
  if (!h) return CLB_ERROR_MEMORY;
  h->accumulate = accumulates;
  h->spherical_harmonics.normalization = p->convolution.normalization;
  h->spherical_harmonics.normalize = h->spherical_harmonics.fresh = 1;
  clb_status s = read_degrees(ctx, &p->tensor_product.y, &h->spherical_harmonics);
  if (!s) s = clb_op_create(ctx, h, passes, tuner, op);
  free(h);
  return s;
}

static clb_status create_first(const clb_op *op, const clb_convolution_table *grid,
                               const clb_tuner *tuner, clb_op **first) {
  clb_problem *p = calloc(1, sizeof *p);
  if (!p) return clb_fail(&op->ctx->error, CLB_ERROR_MEMORY, "clb_convolution_create: no memory");
  *p = op->problem;
  p->accumulate = p->convolution.vectors = p->convolution.normalization = 0;
  p->tensor_product.gradients = grid->knots ? CLB_OPERAND_Y | CLB_OPERAND_W : CLB_OPERAND_Y;
  clb_status s = clb_convolution_make(op->ctx, p, grid, CLB_PASS_BIT(CLB_BACKWARD), tuner, first);
  free(p);
  return s;
}

clb_status clb_convolution_vectors_create(const clb_op *op, const clb_convolution_table *grid,
                                          unsigned asked, const clb_tuner *tuner,
                                          clb_convolution_vectors **vectors) {
  clb_context *ctx = op->ctx;
  const clb_problem *p = &op->problem;
  const clb_tensor_product_problem *tp = &p->tensor_product;
  clb_convolution_vectors *v = *vectors = calloc(1, sizeof *v);
  if (!v) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_convolution_create: no memory");
  bool wanted = tp->gradients & CLB_OPERAND_Y, back = wanted && asked >> CLB_BACKWARD;
  bool along = asked & CLB_PASS_BIT(CLB_DOUBLE_BACKWARD) && tp->incoming & CLB_OPERAND_Y,
       all = true;
  if (clb_convolution_in_frame(op, CLB_DOUBLE_BACKWARD)) along = false; /* of harmonics */
  unsigned passes = CLB_PASS_BIT(CLB_FORWARD) | (back ? CLB_PASS_BIT(CLB_BACKWARD) : 0) |
                    (along ? CLB_PASS_BIT(CLB_DOUBLE_BACKWARD) : 0);
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
    all &= !(asked >> pass & 1) || clb_convolution_in_frame(op, (clb_pass)pass);
  v->op = op;
  v->bytes = clb_dtype_bytes(p->storage);
  v->dim = tp->y.dim;
  int64_t step = 16 / v->bytes,
          min = v->dim > 3 ? v->dim : 4; /* 4: must also hold gradients of vectors */
  v->stride = (min + step - 1) / step * step;
  clb_spherical_harmonics_problem degrees = {0};
  clb_status s = read_degrees(ctx, &tp->y, &degrees);
  if (!s) s = clb_convolution_frames_create(op, p->accumulate, 0, false, &v->frames);
  if (!s && !all) /* where no gradient by vectors is wanted, it goes to rows that hold nothing */
    s = create_harmonics(ctx, p, wanted && p->accumulate, passes, tuner, &v->harmonics);
  if (!s && wanted && along)
    s = create_harmonics(ctx, p, 1, CLB_PASS_BIT(CLB_BACKWARD), tuner, &v->adding);
  if (!s && wanted && along) s = create_first(op, grid, tuner, &v->first);
  if (!s && p->convolution.spline)
    s = clb_lengths_create(ctx, (clb_dtype)p->storage, (clb_dtype)p->arithmetic, &v->lengths);
  if (!s && p->convolution.spline && along)
    s = clb_lengths_along_create(ctx, (clb_dtype)p->storage, (clb_dtype)p->arithmetic,
                                 &v->lengths_along);
  return s; /* destroyed with the convolution that contains it */
}

clb_status clb_convolution_vectors_set_table(const clb_convolution_vectors *v,
                                             const double *values) {
  return v->first ? clb_convolution_set_table(v->first, values) : CLB_OK;
}

/* ---- what is shared ---- */

void clb_convolution_vectors_share(clb_convolution_vectors *v,
                                   const clb_convolution_shared *shared) {
  v->shared = shared;
}
