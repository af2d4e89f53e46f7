/* kernels/convolution/host/convolution.c - the graph convolution's op: its parts, what convolutions
   share, and the table of its weights. */
#include <stdlib.h>
#include <string.h>

#include "kernels/convolution/frame.h"
#include "kernels/tensor_product/product.h"
#include "kernels/convolution/host/convolution_parts.h"
#include "src/problem/irreps.h"
#include "kernels/linear/host/matmul.h"
#include "kernels/host/operand_lists.h"

static clb_convolution_parts *parts_of(const clb_op *op) { return op->parts; }

static void destroy_parts(clb_op *op) {
  clb_convolution_parts *parts = op->parts;
  clb_op_destroy(&parts->results);
  clb_row_sum_destroy(&parts->x);
  clb_row_sum_destroy(&parts->z);
  clb_op_destroy(&parts->weights);
  clb_op_destroy(&parts->y);
  clb_op_destroy(&parts->r);
  clb_convolution_vectors_destroy(&parts->vectors);
  clb_convolution_messages_destroy(&parts->messages);
  clb_buffer_destroy(&parts->table.coefficients);
  free(parts);
}

int clb_convolution_edge_sums(const clb_op *op, clb_pass pass) {
  const clb_problem *p = &op->problem;
  return clb_convolution_in_frame(op, pass)
             ? clb_frame_sums(pass, p->convolution.spline)
             : p->tensor_product.y.dim + (p->convolution.spline ? 1 : 0);
}

int32_t clb_convolution_roles(const clb_op *op, clb_pass pass) {
  const clb_problem *p = &op->problem;
  const bool sums = (p->tensor_product.gradients & CLB_OPERAND_Y && p->tensor_product.y.dim) ||
                    (p->tensor_product.gradients & CLB_OPERAND_W && p->convolution.spline);
  return pass != CLB_FORWARD && sums ? op->choice[pass].schedule.convolution.roles : 0;
}

bool clb_convolution_walks_once(const clb_op *op, clb_pass pass) {
  return op->choice[pass].schedule.convolution.one_walk;
}

/* ---- create ---- */

static clb_status check_spline(clb_context *ctx, const clb_convolution_desc *d) {
  double width = d->last_knot - d->first_knot;
  if (d->knots && (d->knots < 4 || d->knots > 1 << 20))
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_convolution_create: knots is %d; it must be 0 or 4 ... %d", d->knots,
                    1 << 20);
  if (d->knots && !(width > 0 && width - width == 0))
    return clb_fail(
        &ctx->error, CLB_ERROR_ARGUMENT,
        "clb_convolution_create: first_knot is %g and last_knot %g; they must be numbers, "
        "the first below the last",
        d->first_knot, d->last_knot);
  if (d->knots && d->break_at != 0 && !(d->break_at > d->first_knot && d->break_at < d->last_knot))
    return clb_fail(
        &ctx->error, CLB_ERROR_ARGUMENT,
        "clb_convolution_create: break_at is %g; it must be 0, or between first_knot, %g, "
        "and last_knot, %g",
        d->break_at, d->first_knot, d->last_knot);
  if (d->knots && d->product.shared_weights)
    return clb_fail(
        &ctx->error, CLB_ERROR_ARGUMENT,
        "clb_convolution_create: shared_weights is set; with knots weights are those of "
        "each edge's length");
  return CLB_OK;
}

clb_status clb_convolution_fill(clb_context *ctx, const clb_convolution_desc *desc,
                                clb_problem *p) {
  const clb_tensor_product_desc *product = &desc->product;
  p->kind = CLB_CONVOLUTION;
  p->storage = (int32_t)product->storage;
  p->arithmetic = (int32_t)product->arithmetic;
  p->accumulate = product->accumulate != 0;
  p->convolution.atomics = desc->atomics != 0;
  clb_status s = check_spline(ctx, desc);
  if (!s && product->indexed)
    s = clb_fail(
        &ctx->error, CLB_ERROR_ARGUMENT,
        "clb_convolution_create: product.indexed is %#x; it must be 0: the graph says which rows",
        product->indexed);
  if (!s && !(desc->scale - desc->scale == 0))
    s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                 "clb_convolution_create: scale is %g; it must be a number", desc->scale);
  for (int q = 0; q < p->tensor_product.n_paths && desc->scale != 0; q++)
    p->tensor_product.path[q].coefficient *= desc->scale;
  p->convolution.vectors = desc->vectors != 0;
  p->convolution.normalization = desc->vectors ? (int32_t)desc->normalization : 0;
  p->convolution.spline = desc->knots != 0 && p->tensor_product.n_weights;
  int32_t *gradients = &p->tensor_product.gradients;
  int32_t *of[] = {gradients, &p->tensor_product.incoming};
  for (int i = 0; i < 2 && desc->vectors && desc->knots; i++)
    *of[i] = *of[i] & CLB_OPERAND_Y
                 ? *of[i] | CLB_OPERAND_W
                 : *of[i] & ~CLB_OPERAND_W; /* gradients of lengths are part of those of vectors */
  return s;
}

/* Whether a pass leaves sums to be added up by themselves. */
static bool needs_role_sums(const clb_op *op) {
  bool some = false;
  for (int pass = CLB_BACKWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
    some |=
        clb_convolution_roles(op, (clb_pass)pass) && !clb_convolution_in_frame(op, (clb_pass)pass);
  return some;
}

static clb_status create_role_sum(const clb_op *op, int from, int count, clb_op **sum) {
  clb_problem *p = calloc(1, sizeof *p);
  if (!p) return clb_fail(&op->ctx->error, CLB_ERROR_MEMORY, "clb_convolution_create: no memory");
  p->kind = CLB_ROLE_SUM;
  p->storage = op->problem.storage;
  p->arithmetic = op->problem.arithmetic;
  p->role_sum = (clb_role_sum_problem){
      op->problem.tensor_product.y.dim + (op->problem.convolution.spline ? 1 : 0), from, count};
  clb_status s = clb_op_create(op->ctx, p, CLB_PASS_BIT(CLB_FORWARD), NULL, sum);
  free(p);
  return s;
}

static clb_status create_parts(clb_op *op, clb_problem *p, unsigned passes, const clb_tuner *tuner,
                               int gradients) {
  clb_context *ctx = op->ctx;
  const clb_tensor_product_problem *tp = &p->tensor_product;
  clb_convolution_parts *parts = op->parts = calloc(1, sizeof *parts);
  if (!parts) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_convolution_create: no memory");
  op->destroy_parts = destroy_parts;
  if (!clb_is_channel_wise(tp))
    return clb_convolution_messages_create(op, passes, tuner, &parts->messages);
  clb_dtype storage = (clb_dtype)p->storage, arithmetic = (clb_dtype)p->arithmetic;
  const bool derivatives = passes >> CLB_BACKWARD;
  clb_status s = CLB_OK;
  if (p->convolution.gives_z) {
    p->tensor_product.gradients = CLB_OPERAND_Z;
    s = clb_op_new(ctx, p, &parts->results);
    if (!s && (tuner || !clb_convolution_walks_once(op, CLB_DOUBLE_BACKWARD)))
      s = clb_op_compile(parts->results, CLB_DOUBLE_BACKWARD);
  }
  if (!s && (passes & CLB_PASS_BIT(CLB_FORWARD) || p->convolution.gives_z) && tp->z.dim)
    s = clb_row_sum_create(ctx, arithmetic, storage, arithmetic, tp->z.dim, &parts->z);
  if (!s && derivatives && gradients & CLB_OPERAND_X && tp->x.dim)
    s = clb_row_sum_create(ctx, arithmetic, storage, arithmetic, tp->x.dim, &parts->x);
  if (!s && derivatives && gradients & CLB_OPERAND_W && tp->shared_weights && tp->n_weights)
    s = clb_column_sum_create(ctx, storage, arithmetic, tp->n_weights, INT32_MAX, &parts->weights);
  const int width = tp->y.dim;
  if (!s && derivatives && gradients & CLB_OPERAND_Y && width && needs_role_sums(op))
    s = create_role_sum(op, 0, width, &parts->y);
  if (!s && derivatives && gradients & CLB_OPERAND_W && p->convolution.spline &&
      needs_role_sums(op))
    s = create_role_sum(op, width, 1, &parts->r);
  return s;
}

/* The kernels of messages are created with the parts. */
static clb_status create_op(clb_context *ctx, const clb_problem *p, unsigned passes, clb_op **op) {
  if (clb_is_channel_wise(&p->tensor_product)) return clb_op_create(ctx, p, passes, NULL, op);
  clb_status s = clb_op_check(ctx, p, passes);
  return s ? s : clb_op_new(ctx, p, op);
}

clb_status clb_convolution_make(clb_context *ctx, clb_problem *p, const clb_convolution_table *grid,
                                unsigned passes, const clb_tuner *tuner, clb_op **op) {
  const int gradients = p->tensor_product.gradients;
  const bool channel_wise = clb_is_channel_wise(&p->tensor_product);
  if (channel_wise) {
    p->tensor_product.gradients &= ~CLB_OPERAND_Z;
    p->convolution.gives_z =
        passes & CLB_PASS_BIT(CLB_DOUBLE_BACKWARD) && gradients & CLB_OPERAND_Z;
  }
  clb_status s = create_op(ctx, p, passes, op);
  if (!s) s = create_parts(*op, p, passes, tuner, gradients);
  clb_convolution_parts *parts = s ? NULL : parts_of(*op);
  if (!s) parts->table = *grid;
  if (!s && p->convolution.vectors)
    s = clb_convolution_vectors_create(*op, grid, passes, tuner, &parts->vectors);
  if (!s && tuner && channel_wise) {
    s = tuner->tune(tuner, *op, parts->results);
    clb_buffer_destroy(&parts->table.coefficients); /* which was made up */
  }
  if (s) clb_op_destroy(op);
  return s;
}

/* ---- what convolutions share ---- */

int64_t clb_convolution_frame_columns(clb_context *ctx, clb_problem *p) {
  clb_schedule s;
  if (!clb_is_channel_wise(&p->tensor_product) || ctx->disabled & CLB_REGISTER_SUMS) return 0;
  p->tensor_product.gradients &= ~CLB_OPERAND_Z;
  p->pass = CLB_BACKWARD;
  clb_kernel_kinds[CLB_CONVOLUTION]->schedule(p, &ctx->device->limits, &s);
  return s.convolution.frame ? clb_frame_size(clb_frame_degree(&p->tensor_product)) : 0;
}

void clb_convolution_share(clb_op *op, const clb_convolution_shared *shared) {
  clb_convolution_vectors_share(parts_of(op)->vectors, shared);
}

bool clb_convolution_reads_harmonics(const clb_op *op) {
  return !clb_convolution_in_frame(op, CLB_FORWARD);
}

/* ---- table ---- */

static clb_status check_table(clb_op *op, const char *call, const double *values) {
  if (!op) return clb_null(call, "op");
  const clb_convolution_parts *parts = op->problem.kind == CLB_CONVOLUTION ? op->parts : NULL;
  if (!parts || !parts->table.knots)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "%s: this op was created without knots",
                    call);
  if (!values)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "%s: the host pointer is NULL", call);
  return CLB_OK;
}

clb_status clb_convolution_knots(clb_op *op, double *r) {
  clb_status s = check_table(op, "clb_convolution_knots", r);
  for (int i = 0; !s && i < parts_of(op)->table.knots; i++)
    r[i] = clb_convolution_table_knot(&parts_of(op)->table, i);
  return s;
}

clb_status clb_convolution_set_table(clb_op *op, const double *values) {
  clb_status s = check_table(op, "clb_convolution_set_table", values);
  if (!s) s = clb_convolution_table_set(&parts_of(op)->table, op, values);
  return s || !parts_of(op)->vectors
             ? s
             : clb_convolution_vectors_set_table(parts_of(op)->vectors, values);
}

/* ---- calls ---- */

static clb_status check_op(clb_op *op, clb_pass pass) {
  if (op->problem.kind != CLB_CONVOLUTION)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "this op is %s, not convolution",
                    clb_kernel_kinds[op->problem.kind]->name);
  return clb_op_check_pass(op, pass);
}

clb_status clb_convolution_check_call(clb_op *op, clb_pass pass, const clb_graph *g) {
  clb_status s = check_op(op, pass);
  if (s) return s;
  if (!g) return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "convolution: graph is NULL");
  if (g->ctx != op->ctx)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                    "convolution: the graph belongs to another context");
  return CLB_OK;
}

/* Of a launch with this number of rows and of their edges; per_receiver: it goes through the edges
   of a row, else a row is an edge. */
static double flops_of(const clb_op *op, clb_pass pass, bool per_receiver, double rows,
                       double edges) {
  if (!per_receiver) rows = edges;
  return rows > 0 ? rows * ir_count_ranges(&op->kernel[pass]->ir, edges / rows).flops : 0;
}

clb_status clb_convolution_flops(clb_op *op, clb_pass pass, int64_t n_receivers, int64_t n_edges,
                                 double *flops) {
  if (!op) return clb_null(__func__, "op");
  clb_status s = check_op(op, pass);
  if (s) return s;
  if (!flops || n_receivers < 0 || n_edges < 0)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "clb_convolution_flops: %s",
                    flops ? "n_receivers and n_edges must be at least 0" : "flops is NULL");
  const clb_op *results = parts_of(op)->results;
  const bool per_receiver = !parts_of(op)->messages;
  const double rows = (double)n_receivers, edges = (double)n_edges;
  *flops = flops_of(op, pass, per_receiver, rows, edges);
  if (results && results->kernel[pass] && !clb_convolution_walks_once(op, pass))
    *flops += flops_of(results, pass, per_receiver, rows, edges);
  return *flops >= 0
             ? CLB_OK
             : clb_fail(&op->ctx->error, CLB_ERROR_MEMORY, "clb_convolution_flops: no memory");
}
