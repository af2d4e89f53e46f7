/* kernels/layers/host/pairs.c - sums over the edges of atoms, densities and repulsion, and rows
   times numbers: the calls. */
#include <stdlib.h>
#include <string.h>

#include "kernels/layers/host/layer_call.h"
#include "src/problem/activation.h"
#include "kernels/layers/host/layers.h"

enum { FORWARD, BACKWARD, ALONG, REVERSE };

/* Rows of the graph's receivers, among arguments of its edges, or the other way round. */
static void call_others(clb_call *c, const char *name, int64_t n, int64_t columns, clb_rows rows,
                        clb_role role) {
  const int64_t before = c->n;
  c->n = n;
  clb_call_rows(c, name, (clb_dtype)c->op->problem.storage, columns, rows, role);
  c->n = before;
}

/* ---- densities ---- */

clb_status clb_density_create(clb_context *ctx, clb_dtype type, int n_basis, const double *weights,
                              bool weighted, clb_op **op) {
  *op = NULL;
  if (n_basis < 1 || n_basis > CLB_MAX_BASIS || !weights)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "density: n_basis is %d; it must be 1 ... %d, the number of weights", n_basis,
                    CLB_MAX_BASIS);
  clb_problem *p = clb_layer_problem(ctx, CLB_DENSITY, type, type);
  if (p)
    p->density =
        (clb_density_problem){.n_basis = n_basis, .weighted = weighted, .activation = CLB_TANH};
  clb_status s = clb_layer_create(ctx, p, 3, op);
  return s ? s : clb_layer_upload(op, type, weights, n_basis, &(*op)->reals);
}

clb_status clb_density_forward(clb_op *op, const clb_graph *graph, clb_rows basis, clb_rows factor,
                               clb_rows rho) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  clb_call c = clb_call_begin(op, CLB_DENSITY, graph->n_edges, graph->n_rows[CLB_BY_RECEIVER]);
  if (c.status) return c.status;
  const clb_dtype type = (clb_dtype)op->problem.storage;
  clb_call_received(&c, graph);
  clb_call_rows(&c, "basis", type, op->problem.density.n_basis, basis, CLB_IN);
  if (op->problem.density.weighted) clb_call_rows(&c, "factor", type, 1, factor, CLB_IN);
  clb_call_memory(&c, &op->reals);
  call_others(&c, "rho", graph->n_rows[CLB_BY_RECEIVER], 1, rho, CLB_OUT);
  return clb_call_run(&c, FORWARD);
}

clb_status clb_density_backward(clb_op *op, const clb_graph *graph, clb_rows basis, clb_rows factor,
                                clb_rows g_rho, clb_rows g_basis, clb_rows g_factor, bool add,
                                bool add_factor) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  clb_call c = clb_call_begin(op, CLB_DENSITY, graph->n_edges, graph->n_edges);
  if (c.status) return c.status;
  const clb_dtype type = (clb_dtype)op->problem.storage;
  const int64_t columns = op->problem.density.n_basis;
  clb_call_rows(&c, "basis", type, columns, basis, CLB_IN);
  if (op->problem.density.weighted) clb_call_rows(&c, "factor", type, 1, factor, CLB_IN);
  clb_call_memory(&c, &graph->buffer[CLB_GRAPH_RECEIVERS].memory);
  clb_call_memory(&c, &op->reals);
  call_others(&c, "g_rho", graph->n_edges ? graph->n_rows[CLB_BY_RECEIVER] : 0, 1, g_rho, CLB_IN);
  clb_call_rows(&c, "g_basis", type, columns, g_basis, CLB_OUT);
  if (op->problem.density.weighted) clb_call_rows(&c, "g_factor", type, 1, g_factor, CLB_OUT);
  clb_call_i32(&c, add);
  if (op->problem.density.weighted) clb_call_i32(&c, add_factor);
  return clb_call_run(&c, BACKWARD);
}

/* Rows of edges, and a number of each if they have factors. */
static void call_edges(clb_call *c, const char *basis_name, clb_rows basis, const char *factor_name,
                       clb_rows factor, clb_role role) {
  const clb_problem *p = &c->op->problem;
  clb_call_rows(c, basis_name, (clb_dtype)p->storage, p->density.n_basis, basis, role);
  if (p->density.weighted) clb_call_rows(c, factor_name, (clb_dtype)p->storage, 1, factor, role);
}

clb_status clb_density_along(clb_op *op, const clb_graph *graph, clb_rows basis, clb_rows factor,
                             clb_rows a_basis, clb_rows a_factor, clb_rows rho_along) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  clb_call c = clb_call_begin(op, CLB_DENSITY, graph->n_edges, graph->n_rows[CLB_BY_RECEIVER]);
  if (c.status) return c.status;
  clb_call_received(&c, graph);
  call_edges(&c, "basis", basis, "factor", factor, CLB_IN);
  call_edges(&c, "a_basis", a_basis, "a_factor", a_factor, CLB_IN);
  clb_call_memory(&c, &op->reals);
  call_others(&c, "rho_along", graph->n_rows[CLB_BY_RECEIVER], 1, rho_along, CLB_OUT);
  return clb_call_run(&c, ALONG);
}

clb_status clb_density_reverse(clb_op *op, const clb_graph *graph, clb_rows basis, clb_rows factor,
                               clb_rows a_basis, clb_rows a_factor, clb_rows g_rho, clb_rows h_rho,
                               clb_rows d_basis, clb_rows d_factor, clb_rows g_weights) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  clb_call c = clb_call_begin(op, CLB_DENSITY, graph->n_edges, graph->n_edges);
  if (c.status) return c.status;
  const int64_t receivers = graph->n_edges ? graph->n_rows[CLB_BY_RECEIVER] : 0;
  call_edges(&c, "basis", basis, "factor", factor, CLB_IN);
  call_edges(&c, "a_basis", a_basis, "a_factor", a_factor, CLB_IN);
  clb_call_memory(&c, &graph->buffer[CLB_GRAPH_RECEIVERS].memory);
  clb_call_memory(&c, &op->reals);
  call_others(&c, "g_rho", receivers, 1, g_rho, CLB_IN);
  call_others(&c, "h_rho", receivers, 1, h_rho, CLB_IN);
  call_edges(&c, "d_basis", d_basis, "d_factor", d_factor, CLB_OUT);
  clb_call_rows(&c, "g_D", (clb_dtype)op->problem.storage, op->problem.density.n_basis, g_weights,
                CLB_OUT);
  return clb_call_run(&c, REVERSE);
}

/* ---- rows times numbers ---- */

clb_status clb_row_scale_create(clb_context *ctx, clb_dtype type, int64_t columns,
                                clb_row_factor factor, clb_op **op) {
  *op = NULL;
  if (columns < 1 || columns > INT32_MAX)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "row_scale: columns is %lld; it must be 1 ... %d", (long long)columns,
                    INT32_MAX);
  clb_problem *p = clb_layer_problem(ctx, CLB_ROW_SCALE, type, type);
  if (p) p->row_scale = (clb_row_scale_problem){.columns = columns, .factor = (int32_t)factor};
  return clb_layer_create(ctx, p, 3, op);
}

clb_status clb_row_scale_forward(clb_op *op, int64_t n, clb_rows x, clb_rows t, clb_rows y) {
  clb_call c = clb_call_begin(op, CLB_ROW_SCALE, n, n);
  if (c.status) return c.status;
  const clb_dtype type = (clb_dtype)op->problem.storage;
  clb_call_rows(&c, "x", type, op->problem.row_scale.columns, x, CLB_IN);
  clb_call_rows(&c, "t", type, 1, t, CLB_IN);
  clb_call_rows(&c, "y", type, op->problem.row_scale.columns, y, CLB_OUT);
  return clb_call_run(&c, FORWARD);
}

clb_status clb_row_scale_backward(clb_op *op, int64_t n, clb_rows x, clb_rows t, clb_rows g_y,
                                  clb_rows g_x, clb_rows g_t, bool add) {
  clb_call c = clb_call_begin(op, CLB_ROW_SCALE, n, n);
  if (c.status) return c.status;
  const clb_dtype type = (clb_dtype)op->problem.storage;
  clb_call_rows(&c, "x", type, op->problem.row_scale.columns, x, CLB_IN);
  clb_call_rows(&c, "t", type, 1, t, CLB_IN);
  clb_call_rows(&c, "g_y", type, op->problem.row_scale.columns, g_y, CLB_IN);
  clb_call_rows(&c, "g_x", type, op->problem.row_scale.columns, g_x, CLB_OUT);
  clb_call_rows(&c, "g_t", type, 1, g_t, CLB_OUT);
  clb_call_i32(&c, add);
  return clb_call_run(&c, BACKWARD);
}

/* What both derivatives read. */
static clb_call scale_call(clb_op *op, int64_t n, clb_rows x, clb_rows t, clb_rows a_x,
                           clb_rows a_t) {
  clb_call c = clb_call_begin(op, CLB_ROW_SCALE, n, n);
  if (c.status) return c;
  const clb_dtype type = (clb_dtype)op->problem.storage;
  const int64_t columns = op->problem.row_scale.columns;
  clb_call_rows(&c, "x", type, columns, x, CLB_IN);
  clb_call_rows(&c, "t", type, 1, t, CLB_IN);
  clb_call_rows(&c, "a_x", type, columns, a_x, CLB_IN);
  clb_call_rows(&c, "a_t", type, 1, a_t, CLB_IN);
  return c;
}

clb_status clb_row_scale_along(clb_op *op, int64_t n, clb_rows x, clb_rows t, clb_rows a_x,
                               clb_rows a_t, clb_rows y_along) {
  clb_call c = scale_call(op, n, x, t, a_x, a_t);
  if (c.status) return c.status;
  clb_call_rows(&c, "y_along", (clb_dtype)op->problem.storage, op->problem.row_scale.columns,
                y_along, CLB_OUT);
  return clb_call_run(&c, ALONG);
}

clb_status clb_row_scale_reverse(clb_op *op, int64_t n, clb_rows x, clb_rows t, clb_rows a_x,
                                 clb_rows a_t, clb_rows g_y, clb_rows h_y, clb_rows d_x,
                                 clb_rows d_t) {
  clb_call c = scale_call(op, n, x, t, a_x, a_t);
  if (c.status) return c.status;
  const clb_dtype type = (clb_dtype)op->problem.storage;
  const int64_t columns = op->problem.row_scale.columns;
  clb_call_rows(&c, "g_y", type, columns, g_y, CLB_IN);
  clb_call_rows(&c, "h_y", type, columns, h_y, CLB_IN);
  clb_call_rows(&c, "d_x", type, columns, d_x, CLB_OUT);
  clb_call_rows(&c, "d_t", type, 1, d_t, CLB_OUT);
  return clb_call_run(&c, REVERSE);
}

/* ---- repulsion ---- */

static clb_status check_species(clb_context *ctx, const clb_repulsion_desc *desc) {
  if (desc->n_species < 1 || desc->n_species > INT32_MAX || !desc->charges || !desc->screening ||
      !desc->reach)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "repulsion: n_species is %lld, not the number of charges, screening and reach",
                    (long long)desc->n_species);
  for (int64_t i = 0; i < desc->n_species * desc->n_species; i++)
    if (!(desc->reach[i] > 0))
      return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                      "repulsion: reach %lld is %g; it must be above 0", (long long)i,
                      desc->reach[i]);
  return CLB_OK;
}

clb_status clb_repulsion_create(clb_context *ctx, clb_dtype type, const clb_repulsion_desc *desc,
                                clb_op **op) {
  *op = NULL;
  clb_status s = check_species(ctx, desc);
  if (s) return s;
  const size_t n = (size_t)desc->n_species;
  double *tables = malloc((2 + n) * n * sizeof *tables);
  clb_problem *p = clb_layer_problem(ctx, CLB_REPULSION, type, type);
  if (!tables && p) s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "repulsion: no memory");
  if (s || !p) free(p);
  else {
    memcpy(tables, desc->charges, n * sizeof *tables);
    memcpy(tables + n, desc->screening, n * sizeof *tables);
    memcpy(tables + 2 * n, desc->reach, n * n * sizeof *tables);
    p->repulsion =
        (clb_repulsion_problem){.p = desc->p, .n_species = (int32_t)n, .r_max = desc->r_max};
    memcpy(p->repulsion.coefficient, desc->coefficients, sizeof p->repulsion.coefficient);
    memcpy(p->repulsion.exponent, desc->exponents, sizeof p->repulsion.exponent);
    s = clb_layer_create(ctx, p, 3, op);
    if (!s) s = clb_layer_upload(op, type, tables, (int64_t)((2 + n) * n), &(*op)->reals);
  }
  free(tables);
  return s ? s : *op ? CLB_OK : CLB_ERROR_MEMORY;
}

/* q: tangents of v, or NULL for the energy. */
static clb_status sum_repulsion(clb_op *op, const clb_graph *graph, clb_rows species, clb_rows v,
                                const clb_rows *q, clb_rows out, bool add) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  clb_call c = clb_call_begin(op, CLB_REPULSION, graph->n_edges, graph->n_rows[CLB_BY_RECEIVER]);
  if (c.status) return c.status;
  clb_call_received(&c, graph);
  clb_call_rows(&c, "v", (clb_dtype)op->problem.storage, 3, v, CLB_IN);
  if (q) clb_call_rows(&c, "q", (clb_dtype)op->problem.storage, 3, *q, CLB_IN);
  clb_call_species(&c, graph, species);
  clb_call_memory(&c, &op->reals);
  call_others(&c, "out", graph->n_rows[CLB_BY_RECEIVER], 1, out, CLB_OUT);
  clb_call_i32(&c, add);
  return clb_call_run(&c, q ? ALONG : FORWARD);
}

clb_status clb_repulsion_forward(clb_op *op, const clb_graph *graph, clb_rows species, clb_rows v,
                                 clb_rows out, bool add) {
  return sum_repulsion(op, graph, species, v, NULL, out, add);
}

clb_status clb_repulsion_along(clb_op *op, const clb_graph *graph, clb_rows species, clb_rows v,
                               clb_rows q, clb_rows out, bool add) {
  return sum_repulsion(op, graph, species, v, &q, out, add);
}

clb_status clb_repulsion_backward(clb_op *op, const clb_graph *graph, clb_rows species, clb_rows v,
                                  clb_rows g_out, clb_rows g_v, bool add) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  clb_call c = clb_call_begin(op, CLB_REPULSION, graph->n_edges, graph->n_edges);
  if (c.status) return c.status;
  const clb_dtype type = (clb_dtype)op->problem.storage;
  clb_call_rows(&c, "v", type, 3, v, CLB_IN);
  clb_call_ends(&c, graph, species);
  clb_call_memory(&c, &op->reals);
  call_others(&c, "g_out", graph->n_edges ? graph->n_rows[CLB_BY_RECEIVER] : 0, 1, g_out, CLB_IN);
  clb_call_rows(&c, "g_v", type, 3, g_v, CLB_OUT);
  clb_call_i32(&c, add);
  return clb_call_run(&c, BACKWARD);
}

/* ---- vectors times factors ---- */

clb_status clb_stretch_create(clb_context *ctx, clb_dtype type, int64_t n_species,
                              const double *factors, clb_op **op) {
  *op = NULL;
  if (n_species < 1 || n_species > INT32_MAX || !factors)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "stretch: n_species is %lld, not the number of rows of factors",
                    (long long)n_species);
  clb_problem *p = clb_layer_problem(ctx, CLB_STRETCH, type, type);
  if (p) p->stretch = (clb_stretch_problem){.n_species = (int32_t)n_species};
  clb_status s = clb_layer_create(ctx, p, 1, op);
  return s ? s : clb_layer_upload(op, type, factors, n_species * n_species, &(*op)->reals);
}

clb_status clb_stretch_run(clb_op *op, const clb_graph *graph, clb_rows species, clb_rows from,
                           clb_rows to, bool add) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  clb_call c = clb_call_begin(op, CLB_STRETCH, graph->n_edges, graph->n_edges);
  if (c.status) return c.status;
  clb_call_rows(&c, "from", (clb_dtype)op->problem.storage, 3, from, CLB_IN);
  clb_call_rows(&c, "to", (clb_dtype)op->problem.storage, 3, to, CLB_OUT);
  clb_call_ends(&c, graph, species);
  clb_call_memory(&c, &op->reals);
  clb_call_i32(&c, add);
  return clb_call_run(&c, 0);
}
