/* kernels/layers/host/layer_call.c - how the ops of layers.h are created, and their operands
   checked and passed to kernels. */
#include "kernels/layers/host/layer_call.h"

#include <stdlib.h>
#include <string.h>

static const char *name_of(const clb_op *op) { return clb_kernel_kinds[op->problem.kind]->name; }

/* ---- creation ---- */

clb_problem *clb_layer_problem(clb_context *ctx, int32_t kind, clb_dtype storage,
                               clb_dtype arithmetic) {
  clb_problem *p = calloc(1, sizeof *p);
  if (!p) clb_fail(&ctx->error, CLB_ERROR_MEMORY, "%s: no memory", clb_kernel_kinds[kind]->name);
  else p->kind = kind, p->storage = (int32_t)storage, p->arithmetic = (int32_t)arithmetic;
  return p;
}

clb_status clb_layer_create(clb_context *ctx, clb_problem *p, unsigned passes, clb_op **op) {
  *op = NULL;
  clb_status s = p ? clb_op_create(ctx, p, passes, NULL, op) : CLB_ERROR_MEMORY;
  free(p);
  return s;
}

clb_status clb_layer_write(clb_op *op, clb_dtype type, const double *from, int64_t n,
                           const clb_memory *to) {
  clb_device *d = op->ctx->device;
  const size_t bytes = (size_t)(n * clb_dtype_bytes((int32_t)type));
  if (!d->info.runs || !n) return CLB_OK;
  float *singles = type == CLB_F32 ? malloc(bytes) : NULL;
  if (type == CLB_F32 && !singles)
    return clb_fail(&op->ctx->error, CLB_ERROR_MEMORY, "%s: no memory", name_of(op));
  for (int64_t i = 0; singles && i < n; i++) singles[i] = (float)from[i];
  const clb_status s = d->backend->write(d, to, 0, singles ? (const void *)singles : from, bytes);
  free(singles);
  return s;
}

clb_status clb_layer_upload(clb_op **op, clb_dtype type, const double *from, int64_t n,
                            clb_memory *to) {
  clb_device *d = (*op)->ctx->device;
  const size_t bytes = (size_t)(n * clb_dtype_bytes((int32_t)type));
  clb_status s = d->info.runs ? clb_device_alloc(d, bytes ? bytes : 1, to) : CLB_OK;
  if (!s) s = clb_layer_write(*op, type, from, n, to);
  if (s) clb_op_destroy(op);
  return s;
}

clb_schedule clb_layer_schedule_of(const clb_op *op, int pass) {
  clb_schedule s;
  clb_problem p;
  memcpy(&p, &op->problem, sizeof p);
  p.pass = pass;
  clb_kernel_kinds[p.kind]->schedule(&p, &op->ctx->device->limits, &s);
  return s;
}

/* ---- calls ---- */

void clb_call_received(clb_call *c, const clb_graph *graph) {
  clb_call_memory(c, &graph->buffer[CLB_GRAPH_ROW_START + CLB_BY_RECEIVER].memory);
  clb_call_memory(c, &graph->buffer[CLB_GRAPH_EDGE + CLB_BY_RECEIVER].memory);
  clb_call_memory(c, &graph->buffer[CLB_GRAPH_OTHER + CLB_BY_RECEIVER].memory);
}

void clb_call_species(clb_call *c, const clb_graph *graph, clb_rows species) {
  const int64_t n = c->n, *rows = graph->n_rows;
  const int64_t receivers = graph->first_receiver + rows[CLB_BY_RECEIVER],
                senders = rows[CLB_BY_SENDER];
  c->n = receivers > senders ? receivers : senders;
  clb_call_numbers(c, "species", species);
  clb_call_i64(c, graph->first_receiver);
  c->n = n;
}

void clb_call_ends(clb_call *c, const clb_graph *graph, clb_rows species) {
  clb_call_memory(c, &graph->buffer[CLB_GRAPH_RECEIVERS].memory);
  clb_call_memory(c, &graph->buffer[CLB_GRAPH_SENDERS].memory);
  clb_call_species(c, graph, species);
}
