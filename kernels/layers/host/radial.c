/* kernels/layers/host/radial.c - lengths of edges and the radial basis: the calls. */
#include <stdlib.h>
#include <string.h>

#include "kernels/layers/host/layer_call.h"
#include "kernels/layers/host/layers.h"

enum { FORWARD, DISTANCES, BACKWARD, BACKWARD_DISTANCE };
enum { ALONG, FREQUENCIES }; /* of radial_along */

static clb_status check_basis(clb_context *ctx, const clb_radial_desc *desc) {
  if (desc->n_basis >= 0 && desc->n_basis <= CLB_MAX_BASIS &&
      (!desc->n_basis || desc->frequencies || desc->width))
    return CLB_OK;
  return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                  "radial: n_basis is %d; it must be 0 ... %d, the number of frequencies",
                  desc->n_basis, CLB_MAX_BASIS);
}

static clb_status check_transform(clb_context *ctx, const clb_agnesi *t) {
  if (t->n_species < 1 || t->n_species > INT32_MAX || !t->radii)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "radial: n_species of the transform is %lld, not the number of its radii",
                    (long long)t->n_species);
  for (int64_t i = 0; i < t->n_species; i++)
    if (!(t->radii[i] > 0))
      return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                      "radial: radius %lld is %g; it must be above 0", (long long)i, t->radii[i]);
  return CLB_OK;
}

clb_status clb_radial_pairs_create(clb_context *ctx, clb_dtype type, clb_dtype arithmetic,
                                   const clb_radial_desc *desc, const clb_agnesi *transform,
                                   bool apart, clb_op **op) {
  *op = NULL;
  clb_status s = check_basis(ctx, desc);
  if (!s && transform) s = check_transform(ctx, transform);
  clb_problem *p = s ? NULL : clb_layer_problem(ctx, CLB_RADIAL, type, arithmetic);
  if (!p) return s ? s : CLB_ERROR_MEMORY;
  p->radial = (clb_radial_problem){.n_basis = desc->n_basis,
                                   .p = desc->p,
                                   .r_max = desc->r_max,
                                   .r_on = desc->r_on,
                                   .transform = transform != NULL,
                                   .apart = apart,
                                   .width = desc->width};
  if (transform)
    p->radial.a = transform->a, p->radial.exponent = transform->p, p->radial.q = transform->q;
  for (int i = 0; i < desc->n_basis && !desc->width; i++)
    p->radial.frequency[i] = desc->frequencies[i];
  s = clb_layer_create(ctx, p,
                       desc->n_basis || apart
                           ? 1 << FORWARD | 1 << DISTANCES | 1 << BACKWARD | 1 << BACKWARD_DISTANCE
                           : 1 << DISTANCES | 1 << BACKWARD_DISTANCE,
                       op);
  if (s || !transform) return s;
  return clb_layer_upload(op, arithmetic, transform->radii, transform->n_species, &(*op)->reals);
}

clb_status clb_radial_create(clb_context *ctx, clb_dtype type, const clb_radial_desc *desc,
                             clb_op **op) {
  return clb_radial_pairs_create(ctx, type, type, desc, NULL, false, op);
}

clb_status clb_lengths_create(clb_context *ctx, clb_dtype storage, clb_dtype arithmetic,
                              clb_op **op) {
  clb_problem *p = clb_layer_problem(ctx, CLB_RADIAL, storage, arithmetic);
  if (p)
    p->radial = (clb_radial_problem){
        .p = 1, .r_max = 1e-6}; /* the kernel's shortest length is 1e-6 times this */
  return clb_layer_create(ctx, p, 1 << DISTANCES | 1 << BACKWARD_DISTANCE, op);
}

/* The atoms of a graph's edges, or nothing. */
typedef struct {
  const clb_graph *graph;
  clb_rows species;
} atoms;

/* An op with a transform or with the cutoff apart needs the calls for pairs. */
static clb_call begin(clb_op *op, const atoms *a, int64_t n, int64_t units) {
  clb_call c = clb_call_begin(op, CLB_RADIAL, n, units);
  if (!c.status && !a && (op->problem.radial.transform || op->problem.radial.apart))
    c.status = clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                        "radial: this op, with a transform or its cutoff apart, is for pairs");
  return c;
}

static void call_atoms(clb_call *c, const atoms *a, const clb_memory *radii) {
  if (!a || !c->op->problem.radial.transform) return;
  clb_call_ends(c, a->graph, a->species);
  clb_call_memory(c, radii);
}

static clb_status run_forward(clb_op *op, const atoms *a, int64_t n, clb_rows v, clb_rows r,
                              clb_rows basis, clb_rows f) {
  const bool some =
      op && op->problem.kind == CLB_RADIAL &&
      ((basis.buffer && op->problem.radial.n_basis) || (f.buffer && op->problem.radial.apart));
  clb_call c = begin(op, a, n, n < 0 || some || r.buffer ? n : 0);
  if (c.status) return c.status;
  clb_dtype type = (clb_dtype)op->problem.storage;
  clb_call_rows(&c, "v", type, 3, v, CLB_IN);
  clb_call_rows(&c, "r", type, 1, r, CLB_OPTIONAL_OUT);
  if (!some) return clb_call_run(&c, DISTANCES);
  clb_call_rows(&c, "basis", type, op->problem.radial.n_basis, basis, CLB_OUT);
  if (op->problem.radial.apart) clb_call_rows(&c, "f", type, 1, f, CLB_OUT);
  call_atoms(&c, a, &op->reals);
  clb_call_i32(&c, r.buffer != NULL);
  return clb_call_run(&c, FORWARD);
}

static clb_status run_backward(clb_op *op, const atoms *a, int64_t n, clb_rows v, clb_rows g_basis,
                               clb_rows g_f, clb_rows g_v, bool add) {
  clb_call c = begin(op, a, n, n);
  if (c.status) return c.status;
  clb_dtype type = (clb_dtype)op->problem.storage;
  clb_call_rows(&c, "v", type, 3, v, CLB_IN);
  clb_call_rows(&c, "g_basis", type, op->problem.radial.n_basis, g_basis, CLB_IN);
  if (op->problem.radial.apart) clb_call_rows(&c, "g_f", type, 1, g_f, CLB_IN);
  clb_call_rows(&c, "g_v", type, 3, g_v, CLB_OUT);
  call_atoms(&c, a, &op->reals);
  clb_call_i32(&c, add);
  return clb_call_run(&c, BACKWARD);
}

clb_status clb_radial_forward(clb_op *op, int64_t n, clb_rows v, clb_rows r, clb_rows basis) {
  return run_forward(op, NULL, n, v, r, basis, (clb_rows){0});
}

clb_status clb_radial_backward(clb_op *op, int64_t n, clb_rows v, clb_rows g_basis, clb_rows g_v,
                               bool add) {
  return run_backward(op, NULL, n, v, g_basis, (clb_rows){0}, g_v, add);
}

clb_status clb_radial_pairs_forward(clb_op *op, const clb_graph *graph, clb_rows species,
                                    clb_rows v, clb_rows r, clb_rows basis, clb_rows f) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  return run_forward(op, &(atoms){graph, species}, graph->n_edges, v, r, basis, f);
}

clb_status clb_radial_pairs_backward(clb_op *op, const clb_graph *graph, clb_rows species,
                                     clb_rows v, clb_rows g_basis, clb_rows g_f, clb_rows g_v,
                                     bool add) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  return run_backward(op, &(atoms){graph, species}, graph->n_edges, v, g_basis, g_f, g_v, add);
}

clb_status clb_radial_backward_distance(clb_op *op, int64_t n, clb_rows v, clb_rows g_r,
                                        clb_rows g_v, bool add) {
  clb_call c = clb_call_begin(op, CLB_RADIAL, n, n);
  if (c.status) return c.status;
  clb_dtype type = (clb_dtype)op->problem.storage;
  clb_call_rows(&c, "v", type, 3, v, CLB_IN);
  clb_call_rows(&c, "g_r", type, 1, g_r, CLB_IN);
  clb_call_rows(&c, "g_v", type, 3, g_v, CLB_OUT);
  clb_call_i32(&c, add);
  return clb_call_run(&c, BACKWARD_DISTANCE);
}

/* ---- of training ---- */

/* A call of the op that clb_layer_add_training made; it reads v and q. */
static clb_call along_call(clb_op *op, const clb_graph *graph, clb_rows v, clb_rows q) {
  if (!op || !graph) return (clb_call){.status = CLB_ERROR_ARGUMENT};
  clb_call c = clb_call_begin(op, CLB_RADIAL, graph->n_edges, graph->n_edges);
  if (c.status) return c;
  if (!op->parts) {
    c.status =
        clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "radial: the op was created without this");
    return c;
  }
  c = clb_call_begin(op->parts, CLB_RADIAL_ALONG, graph->n_edges, graph->n_edges);
  clb_call_rows(&c, "v", (clb_dtype)op->problem.storage, 3, v, CLB_IN);
  clb_call_rows(&c, "q", (clb_dtype)op->problem.storage, 3, q, CLB_IN);
  return c;
}

clb_status clb_radial_pairs_along(clb_op *op, const clb_graph *graph, clb_rows species, clb_rows v,
                                  clb_rows q, clb_rows basis_along, clb_rows f_along) {
  clb_call c = along_call(op, graph, v, q);
  if (c.status) return c.status;
  const clb_dtype type = (clb_dtype)op->problem.storage;
  clb_call_rows(&c, "basis_along", type, op->problem.radial.n_basis, basis_along, CLB_OUT);
  if (op->problem.radial.apart) clb_call_rows(&c, "f_along", type, 1, f_along, CLB_OUT);
  call_atoms(&c, &(atoms){graph, species}, &op->reals);
  return clb_call_run(&c, ALONG);
}

clb_status clb_radial_pairs_frequencies(clb_op *op, const clb_graph *graph, clb_rows species,
                                        clb_rows v, clb_rows q, clb_rows g_basis, clb_rows h_basis,
                                        clb_rows g_w) {
  clb_call c = along_call(op, graph, v, q);
  if (c.status) return c.status;
  const clb_dtype type = (clb_dtype)op->problem.storage;
  const int64_t n = op->problem.radial.n_basis;
  clb_call_rows(&c, "g_basis", type, n, g_basis, CLB_IN);
  clb_call_rows(&c, "h_basis", type, n, h_basis, CLB_IN);
  clb_call_rows(&c, "g_w", type, n, g_w, CLB_OUT);
  call_atoms(&c, &(atoms){graph, species}, &op->reals);
  return clb_call_run(&c, FREQUENCIES);
}

/* ---- lengths ---- */

clb_status clb_lengths_along_create(clb_context *ctx, clb_dtype storage, clb_dtype arithmetic,
                                    clb_op **op) {
  return clb_layer_create(ctx, clb_layer_problem(ctx, CLB_LENGTHS_ALONG, storage, arithmetic), 1,
                          op);
}

clb_status clb_lengths_along_run(clb_op *op, int64_t n, clb_rows v, clb_rows h, clb_rows g_r,
                                 clb_rows q, clb_rows g_v) {
  clb_call c = clb_call_begin(op, CLB_LENGTHS_ALONG, n, n);
  if (c.status) return c.status;
  clb_dtype type = (clb_dtype)op->problem.storage;
  clb_call_rows(&c, "v", type, 3, v, CLB_IN);
  clb_call_rows(&c, "h", type, 3, h, CLB_IN);
  clb_call_rows(&c, "g_r", type, 1, g_r, CLB_IN);
  clb_call_rows(&c, "q", type, 1, q, CLB_OUT);
  clb_call_rows(&c, "g_v", type, 3, g_v, CLB_OUT);
  return clb_call_run(&c, 0);
}
