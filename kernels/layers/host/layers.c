/* kernels/layers/host/layers.c - what networks need besides convolutions, harmonics and matrix
   products: the calls of pointwise ops, maps by species. */
#include "kernels/layers/host/layers.h"

#include <stdlib.h>
#include <string.h>

#include "src/problem/irreps.h"
#include "kernels/layers/host/layer_call.h"
#include "src/problem/activation.h"

/* ---- pointwise ---- */

static clb_status create_pointwise(clb_context *ctx, clb_dtype type,
                                   clb_pointwise_problem pointwise, unsigned passes, clb_op **op) {
  clb_problem *p = clb_layer_problem(ctx, CLB_POINTWISE, type, type);
  if (p) p->pointwise = pointwise;
  return clb_layer_create(ctx, p, passes, op);
}

clb_status clb_gather_create(clb_context *ctx, clb_dtype type, clb_op **op) {
  return create_pointwise(ctx, type, (clb_pointwise_problem){.function = CLB_POINTWISE_GATHER}, 1,
                          op);
}

clb_status clb_zero_create(clb_context *ctx, clb_dtype type, clb_op **op) {
  return create_pointwise(ctx, type, (clb_pointwise_problem){.function = CLB_POINTWISE_ZERO}, 1,
                          op);
}

clb_status clb_silu_create(clb_context *ctx, clb_dtype type, double scale, double factor,
                           clb_op **op) {
  return create_pointwise(
      ctx, type, (clb_pointwise_problem){CLB_POINTWISE_ACTIVATION, CLB_SILU, scale, factor}, 3, op);
}

typedef struct {
  const char *name;
  clb_rows rows;
} operand;

/* Arguments: n inputs, then the output. Contiguous rows are treated as one long row. */
static clb_status run_pointwise(clb_op *op, int32_t function, int64_t n, int64_t columns,
                                const operand *o, int n_in) {
  clb_call c = clb_call_begin(op, CLB_POINTWISE, n, columns < 0 ? -1 : 0);
  if (c.status) return c.status;
  if (op->problem.pointwise.function != function)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                    "pointwise: this op is for another function");
  int64_t width = clb_layer_schedule_of(op, 0).layer.columns_per_subgroup, all = 0, rows = n;
  bool dense = !o[0].rows.index && !__builtin_mul_overflow(n, columns, &all);
  for (int i = 0; i <= n_in; i++)
    dense = dense && (o[i].rows.stride == CLB_DENSE || o[i].rows.stride == columns);
  int64_t length = dense ? all : columns, blocks = length / width + (length % width != 0);
  if (dense) rows = 1;
  if (__builtin_mul_overflow(rows, blocks, &c.arg[0].i64))
    return clb_fail(&op->ctx->error, CLB_ERROR_UNSUPPORTED,
                    "pointwise: more rows than one launch can process");
  clb_call_i64(&c, length);
  clb_call_i64(&c, blocks);
  for (int i = 0; i <= n_in; i++)
    clb_call_rows(&c, o[i].name, (clb_dtype)op->problem.storage, columns, o[i].rows,
                  i < n_in ? CLB_IN : CLB_OUT);
  if (function == CLB_POINTWISE_GATHER) clb_call_memory(&c, n ? &o[0].rows.index->memory : NULL);
  return clb_call_run(&c, n_in > 1);
}

clb_status clb_gather_run(clb_op *op, int64_t n, int64_t columns, clb_rows table, clb_rows out) {
  if (!op) return CLB_ERROR_ARGUMENT;
  if (n > 0 && !table.index)
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "pointwise: the index of table is NULL");
  if (n > 0 && (table.index->ctx != op->ctx || (uint64_t)n > table.index->memory.bytes / 4))
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                    "pointwise: the index of table has no %lld numbers of 4 bytes, or belongs to "
                    "another context",
                    (long long)n);
  return run_pointwise(op, CLB_POINTWISE_GATHER, n, columns,
                       (const operand[]){{"table", table}, {"out", out}}, 1);
}

clb_status clb_zero_run(clb_op *op, int64_t n, int64_t columns, clb_rows out) {
  return run_pointwise(op, CLB_POINTWISE_ZERO, n, columns, (const operand[]){{"out", out}}, 0);
}

clb_status clb_silu_forward(clb_op *op, int64_t n, int64_t columns, clb_rows a, clb_rows h) {
  return run_pointwise(op, CLB_POINTWISE_ACTIVATION, n, columns,
                       (const operand[]){{"a", a}, {"h", h}}, 1);
}

clb_status clb_silu_backward(clb_op *op, int64_t n, int64_t columns, clb_rows a, clb_rows g_h,
                             clb_rows g_a) {
  return run_pointwise(op, CLB_POINTWISE_ACTIVATION, n, columns,
                       (const operand[]){{"a", a}, {"g_h", g_h}, {"g_a", g_a}}, 2);
}

/* ---- linear, with weights by species ---- */

static bool equal(const clb_term *a, const clb_term *b) {
  return a->l == b->l && a->parity == b->parity;
}

static clb_status check_labels(clb_context *ctx, const clb_irreps *irreps, const char *name) {
  for (int i = 0; i < irreps->n; i++)
    for (int j = 0; j < i; j++)
      if (equal(&irreps->term[i], &irreps->term[j]))
        return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                        "species_linear: terms %d and %d of %s are of one irrep; join them", j, i,
                        name);
  return CLB_OK;
}

/* W, followed by each block [u][s][v] transposed to [v][s][u]; NULL: no memory. */
static double *both_ways(const clb_species_linear_problem *p, const double *weights, int64_t *n) {
  int64_t S = p->n_species, total = 0;
  const clb_term *out[CLB_MAX_TERMS] = {NULL};
  for (int i = 0; i < p->in.n; i++)
    for (int j = 0; j < p->out.n; j++)
      if (equal(&p->in.term[i], &p->out.term[j]))
        out[i] = &p->out.term[j], total += (int64_t)p->in.term[i].mul * S * p->out.term[j].mul;
  double *w = malloc(sizeof *w * (size_t)(2 * total + 1)), *back = w + total;
  if (w && total) memcpy(w, weights, sizeof *w * (size_t)total);
  for (int i = 0; i < p->in.n && w; i++) {
    int64_t m = out[i] ? p->in.term[i].mul : 0, v = out[i] ? out[i]->mul : 0;
    for (int64_t a = 0; a < m; a++)
      for (int64_t s = 0; s < S; s++)
        for (int64_t b = 0; b < v; b++) back[(b * S + s) * m + a] = weights[(a * S + s) * v + b];
    back += m * S * v;
    weights += m * S * v;
  }
  *n = 2 * total;
  return w;
}

clb_status clb_species_linear_create(clb_context *ctx, clb_dtype type, const clb_irreps *in,
                                     const clb_irreps *out, int64_t n_species,
                                     const double *weights, clb_op **op) {
  *op = NULL;
  if (!weights || n_species < 1 || n_species > INT32_MAX)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "species_linear: weights is NULL, or n_species, %lld, is not 1 ... %d",
                    (long long)n_species, INT32_MAX);
  clb_problem *p = clb_layer_problem(ctx, CLB_SPECIES_LINEAR, type, type);
  if (!p) return CLB_ERROR_MEMORY;
  clb_species_linear_problem *sp = &p->species_linear;
  int64_t n = 0;
  double *w = NULL;
  sp->n_species = (int32_t)n_species;
  sp->in = *in;
  sp->out = *out;
  clb_status s = check_labels(ctx, in, "in");
  if (!s) s = check_labels(ctx, out, "out");
  if (!s && !(w = both_ways(sp, weights, &n)))
    s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "species_linear: no memory");
  if (s) free(p);
  else s = clb_layer_create(ctx, p, 3, op);
  if (!s) s = clb_layer_upload(op, type, w, n, &(*op)->reals);
  free(w);
  return s;
}

static clb_status run_species_linear(clb_op *op, int pass, int64_t n, clb_rows species,
                                     operand from, operand to, bool add) {
  clb_call c = clb_call_begin(op, CLB_SPECIES_LINEAR, n, n);
  if (c.status) return c.status;
  const clb_species_linear_problem *p = &op->problem.species_linear;
  clb_dtype type = (clb_dtype)op->problem.storage;
  clb_call_rows(&c, from.name, type, pass ? p->out.dim : p->in.dim, from.rows, CLB_IN);
  clb_call_rows(&c, to.name, type, pass ? p->in.dim : p->out.dim, to.rows, CLB_OUT);
  clb_call_numbers(&c, "species", species);
  clb_call_memory(&c, &op->reals);
  clb_call_i32(&c, add);
  return clb_call_run(&c, pass);
}

clb_status clb_species_linear_forward(clb_op *op, int64_t n, clb_rows species, clb_rows x,
                                      clb_rows out, bool add) {
  return run_species_linear(op, 0, n, species, (operand){"x", x}, (operand){"out", out}, add);
}

clb_status clb_species_linear_backward(clb_op *op, int64_t n, clb_rows species, clb_rows g_out,
                                       clb_rows g_x, bool add) {
  return run_species_linear(op, 1, n, species, (operand){"g_out", g_out}, (operand){"g_x", g_x},
                            add);
}
