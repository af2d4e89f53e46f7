/* kernels/layers/host/pair_table.c - species of edges, and weights of edges from tables by pairs of
   species: the calls. */
#include "kernels/convolution/spline.h"
#include "kernels/layers/host/layer_call.h"
#include "kernels/layers/host/layers.h"

clb_status clb_pair_species_create(clb_context *ctx, clb_op **op) {
  return clb_layer_create(ctx, clb_layer_problem(ctx, CLB_PAIR_SPECIES, CLB_F32, CLB_F32), 1, op);
}

clb_status clb_pair_species_run(clb_op *op, const clb_graph *graph, clb_rows species,
                                int64_t n_species, const clb_buffer *pairs) {
  if (!op || !graph || !pairs) return CLB_ERROR_ARGUMENT;
  const int64_t n = graph->n_edges, lanes = clb_layer_schedule_of(op, 0).lanes;
  clb_call c = clb_call_begin(op, CLB_PAIR_SPECIES, n, clb_divide_up(n, lanes));
  if (c.status || !n) return c.status;
  if (pairs->ctx != op->ctx || (uint64_t)n > pairs->memory.bytes / sizeof(int32_t))
    return clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT,
                    "pair_species: %lld numbers of 4 bytes do not fit in the %llu bytes of pairs, "
                    "or these belong to another context",
                    (long long)n, (unsigned long long)pairs->memory.bytes);
  clb_call_i64(&c, n);
  clb_call_i64(&c, n_species);
  clb_call_ends(&c, graph, species);
  clb_call_buffer(&c, pairs);
  return clb_call_run(&c, 0);
}

clb_status clb_pair_table_create(clb_context *ctx, clb_dtype type, int64_t n_species,
                                 int64_t columns, const clb_convolution_table *grid, clb_op **op) {
  *op = NULL;
  if (columns < 1 || columns > INT32_MAX || n_species < 1 || n_species > INT16_MAX)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "pair_table: there are %lld columns and %lld species; they must be 1 ... %d "
                    "and 1 ... %d",
                    (long long)columns, (long long)n_species, INT32_MAX, INT16_MAX);
  clb_problem *p = clb_layer_problem(ctx, CLB_PAIR_TABLE, type, type);
  if (p) {
    p->pair_table.n_species = (int32_t)n_species;
    p->tensor_product.n_weights = (int32_t)columns;
    p->pair_table.table = clb_convolution_table_rows(grid) * clb_spline_stride(p);
  }
  return clb_layer_create(ctx, p, 1 << CLB_FORWARD | 1 << CLB_BACKWARD, op);
}

int64_t clb_pair_table_bytes(const clb_op *op) {
  return op->problem.pair_table.table * clb_dtype_bytes(op->problem.arithmetic);
}

void clb_pair_table_pack(const clb_op *op, const double *coefficients, void *table) {
  const clb_problem *p = &op->problem;
  const int64_t columns = p->tensor_product.n_weights, stride = clb_spline_stride(p);
  for (int64_t i = 0; i < p->pair_table.table; i++)
    clb_store_number(p->arithmetic, table, i,
                     i % stride < columns ? coefficients[i / stride * columns + i % stride] : 0);
}

/* What the kernels declare after their rows. */
static void call_tables(clb_call *c, const clb_pair_tables *t, const clb_graph *graph,
                        clb_rows species) {
  clb_call_ends(c, graph, species);
  if (!t->spline.coefficients || !t->table_of) {
    if (!c->status)
      c->status = clb_fail(&c->op->ctx->error, CLB_ERROR_ARGUMENT, "pair_table: it has no tables");
    return;
  }
  clb_call_spline(c, c->op, &t->spline);
  clb_call_memory(c, &t->table_of->memory);
}

clb_status clb_pair_table_forward(clb_op *op, const clb_pair_tables *t, const clb_graph *graph,
                                  clb_rows species, clb_rows v, clb_rows w) {
  if (!op || !t || !graph) return CLB_ERROR_ARGUMENT;
  clb_call c = clb_call_begin(op, CLB_PAIR_TABLE, graph->n_edges, graph->n_edges);
  if (c.status || !graph->n_edges) return c.status;
  const clb_dtype type = (clb_dtype)op->problem.storage;
  clb_call_rows(&c, "v", type, 3, v, CLB_IN);
  clb_call_rows(&c, "w", type, op->problem.tensor_product.n_weights, w, CLB_OUT);
  call_tables(&c, t, graph, species);
  return clb_call_run(&c, CLB_FORWARD);
}

clb_status clb_pair_table_backward(clb_op *op, const clb_pair_tables *t, const clb_graph *graph,
                                   clb_rows species, clb_rows v, clb_rows g_w, clb_rows g_v,
                                   bool add) {
  if (!op || !t || !graph) return CLB_ERROR_ARGUMENT;
  clb_call c = clb_call_begin(op, CLB_PAIR_TABLE, graph->n_edges, graph->n_edges);
  if (c.status || !graph->n_edges) return c.status;
  const clb_dtype type = (clb_dtype)op->problem.storage;
  clb_call_rows(&c, "v", type, 3, v, CLB_IN);
  clb_call_rows(&c, "g_w", type, op->problem.tensor_product.n_weights, g_w, CLB_IN);
  clb_call_rows(&c, "g_v", type, 3, g_v, CLB_OUT);
  call_tables(&c, t, graph, species);
  clb_call_i32(&c, add);
  return clb_call_run(&c, CLB_BACKWARD);
}
