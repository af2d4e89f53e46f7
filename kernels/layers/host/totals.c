/* kernels/layers/host/totals.c - vectors of edges, energies, virial and forces: the calls. */
#include <stdlib.h>

#include "kernels/layers/host/layer_call.h"
#include "kernels/layers/host/layers.h"

enum { PARTS, SUM, ENERGY_BACKWARD, FEW, ROUNDS = 8 }; /* few rows: a lane has so many at most */
enum { FORCES, ATOM_VIRIALS };                         /* passes of the op of forces */
enum { EDGE_TANGENTS = 2 };                            /* and of that of edges' vectors */

clb_dtype clb_sum_type(const clb_context *ctx) {
  return ctx->device->limits.f64 ? CLB_F64 : CLB_F32;
}

/* ---- vectors of edges ---- */

clb_status clb_edge_vectors_create(clb_context *ctx, clb_dtype type, bool many, clb_op **op) {
  return clb_layer_create(ctx, clb_layer_problem(ctx, CLB_EDGE_VECTORS, type, CLB_F64), 1U << many,
                          op);
}

clb_status clb_edge_vectors_run(clb_op *op, const clb_graph *graph, clb_rows positions,
                                clb_rows shifts, const clb_edge_cells *cells, clb_rows v) {
  return clb_edge_vectors_from(op, graph, graph ? &graph->buffer[CLB_GRAPH_SENDERS].memory : NULL,
                               positions, shifts, cells, v);
}

clb_status clb_edge_vectors_from(clb_op *op, const clb_graph *graph, const clb_memory *senders,
                                 clb_rows positions, clb_rows shifts, const clb_edge_cells *cells,
                                 clb_rows v) {
  if (!op || !graph || !cells) return CLB_ERROR_ARGUMENT;
  const bool many = !cells->cell;
  int64_t n = graph->n_edges;
  clb_call c = clb_call_begin(op, CLB_EDGE_VECTORS, n, 0);
  if (c.status) return c.status;
  int64_t lanes = clb_layer_schedule_of(op, many).lanes;
  c.arg[0].i64 = n / lanes + (n % lanes != 0);
  clb_call_i64(&c, n);
  c.n = n ? graph->n_rows[0] > graph->n_rows[1] ? graph->n_rows[0] : graph->n_rows[1] : 0;
  clb_call_rows(&c, "positions", CLB_F64, 3, positions, CLB_IN);
  c.n = n;
  clb_call_numbers(&c, "shifts", shifts);
  clb_call_memory(&c, senders);
  clb_call_memory(&c, &graph->buffer[CLB_GRAPH_RECEIVERS].memory);
  if (many) {
    clb_call_memory(&c, cells->table);
    clb_call_i64(&c, cells->row);
    clb_call_memory(&c, cells->system);
  }
  for (int i = 0; i < 9 && !many; i++)
    clb_call_real(&c, c.op->problem.arithmetic, cells->cell[i / 3][i % 3]);
  clb_call_real(&c, c.op->problem.arithmetic, cells->far);
  clb_call_rows(&c, "v", (clb_dtype)op->problem.storage, 3, v, CLB_OUT);
  return clb_call_run(&c, many);
}

clb_status clb_edge_tangents_create(clb_context *ctx, clb_dtype type, clb_op **op) {
  return clb_layer_create(ctx, clb_layer_problem(ctx, CLB_EDGE_VECTORS, type, type),
                          1U << EDGE_TANGENTS, op);
}

clb_status clb_edge_tangents_run(clb_op *op, const clb_graph *graph, int64_t systems, clb_rows u,
                                 clb_rows strains, const clb_buffer *system, clb_rows v,
                                 clb_rows q) {
  if (!op || !graph || !system) return CLB_ERROR_ARGUMENT;
  const clb_dtype type = (clb_dtype)op->problem.storage;
  const int64_t n = graph->n_edges, senders = graph->n_rows[CLB_BY_SENDER],
                receivers = graph->n_rows[CLB_BY_RECEIVER];
  clb_call c = clb_call_begin(op, CLB_EDGE_VECTORS, n, 0);
  if (c.status) return c.status;
  c.arg[0].i64 = clb_divide_up(n, clb_layer_schedule_of(op, EDGE_TANGENTS).lanes);
  clb_call_i64(&c, n);
  c.n = !n ? 0 : senders > receivers ? senders : receivers;
  clb_call_rows(&c, "u", type, 3, u, CLB_IN);
  clb_call_memory(&c, &graph->buffer[CLB_GRAPH_SENDERS].memory);
  clb_call_memory(&c, &graph->buffer[CLB_GRAPH_RECEIVERS].memory);
  c.n = n ? systems : 0;
  clb_call_rows(&c, "strains", type, 9, strains, CLB_IN);
  clb_call_memory(&c, &system->memory);
  c.n = n;
  clb_call_rows(&c, "v", type, 3, v, CLB_IN);
  clb_call_rows(&c, "q", type, 3, q, CLB_OUT);
  return clb_call_run(&c, EDGE_TANGENTS);
}

/* ---- sums over all rows ---- */

static int64_t columns_of(const clb_op *op) {
  return op->problem.totals.what == CLB_TOTAL_ENERGY ? 1 : 9;
}

/* The workspace holds partial sums [units][columns]; in f32 they are the result. */
static clb_status create_totals(clb_context *ctx, clb_dtype type, clb_totals_problem totals,
                                unsigned passes, clb_op **op) {
  clb_problem *p = clb_layer_problem(ctx, CLB_TOTALS, type, clb_sum_type(ctx));
  if (p) p->totals = totals;
  const clb_limits *limits = &ctx->device->limits;
  if (!limits->simd && limits->subgroups && clb_sum_type(ctx) == CLB_F64) passes |= 1U << FEW;
  clb_status s = clb_layer_create(ctx, p, passes, op);
  if (s || !ctx->device->info.runs || clb_sum_type(ctx) == CLB_F32) return s;
  int64_t bytes = clb_layer_schedule_of(*op, PARTS).layer.partial_sums * columns_of(*op) *
                  clb_dtype_bytes((*op)->problem.arithmetic);
  s = clb_device_alloc(ctx->device, (uint64_t)bytes, &(*op)->workspace);
  if (s) clb_op_destroy(op);
  return s;
}

int64_t clb_totals_rows(const clb_op *op) {
  return op->problem.arithmetic == CLB_F32 ? clb_layer_schedule_of(op, PARTS).layer.partial_sums
                                           : 1;
}

void clb_totals_add(const clb_op *op, const void *rows, double *total) {
  int64_t columns = columns_of(op), n = clb_totals_rows(op) * columns;
  for (int64_t i = 0; i < columns; i++) total[i] = 0;
  for (int64_t i = 0; i < n; i++)
    total[i % columns] += op->problem.arithmetic == CLB_F64 ? ((const double *)rows)[i]
                                                            : (double)((const float *)rows)[i];
}

/* Passes the memory for a stage's results. */
static void call_total(clb_call *c, clb_rows total) {
  int64_t n = c->n;
  c->n = clb_totals_rows(c->op);
  clb_call_rows(c, "total", (clb_dtype)c->op->problem.arithmetic, columns_of(c->op), total,
                CLB_OUT);
  c->n = n;
}

/* Whether one group makes the total. */
static bool is_few(const clb_op *op, int64_t n) {
  const clb_schedule s = clb_layer_schedule_of(op, FEW);
  return op->kernel[FEW] && n <= (int64_t)ROUNDS * s.lanes * s.subgroups;
}

/* Ends a call of the first stage and runs the second; in f32 that is left to the host, and of few
   rows there is one. */
static clb_status launch_totals(clb_call *c, clb_rows total) {
  clb_op *op = c->op;
  const bool few = is_few(op, c->n), single = few || op->problem.arithmetic == CLB_F32;
  clb_schedule schedule = clb_layer_schedule_of(op, few ? FEW : PARTS);
  int64_t chunks = c->n / schedule.lanes + (c->n % schedule.lanes != 0),
          rounds =
              chunks / schedule.layer.partial_sums + (chunks % schedule.layer.partial_sums != 0);
  c->arg[0].i64 = schedule.layer.partial_sums;
  clb_call_i64(c, c->n);
  clb_call_i64(c, rounds * schedule.lanes);
  if (single) call_total(c, total);
  else {
    clb_call_memory(c, &op->workspace);
    clb_call_i64(c, 0);
    clb_call_i64(c, columns_of(op));
  }
  clb_workspace_discard(op->ctx, &op->workspace);
  clb_call sum = clb_call_begin(op, CLB_TOTALS, c->n, columns_of(op));
  clb_call_memory(&sum, &op->workspace);
  if (!single) call_total(&sum, total);
  clb_status s = sum.status ? sum.status : clb_call_run(c, few ? FEW : PARTS);
  return s || single ? s : clb_call_run(&sum, SUM);
}

/* ---- energies ---- */

static clb_status check_energy(clb_context *ctx, int64_t n_species, const double *scale,
                               const double *shift) {
  return scale && shift && n_species >= 1 && n_species <= INT32_MAX
             ? CLB_OK
             : clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                        "energy: scale or shift is NULL, or n_species, %lld, is not 1 ... %d",
                        (long long)n_species, INT32_MAX);
}

clb_status clb_energy_create(clb_context *ctx, clb_dtype type, int64_t n_species,
                             const double *scale, const double *shift, clb_op **op) {
  *op = NULL;
  clb_status s = check_energy(ctx, n_species, scale, shift);
  if (!s)
    s = create_totals(ctx, type, (clb_totals_problem){CLB_TOTAL_ENERGY, (int32_t)n_species},
                      1 << PARTS | 1 << SUM | 1 << ENERGY_BACKWARD, op);
  if (!s && ctx->device->info.runs)
    s = clb_device_alloc(ctx->device,
                         (uint64_t)(2 * n_species * clb_dtype_bytes((int32_t)clb_sum_type(ctx))),
                         &(*op)->reals);
  if (!s) s = clb_energy_set(*op, scale, shift);
  if (s && *op) clb_op_destroy(op);
  return s;
}

clb_status clb_energy_set(clb_op *op, const double *scale, const double *shift) {
  const int64_t n = op->problem.totals.n_species;
  double *both = malloc(sizeof *both * 2 * (size_t)n);
  if (!both) return clb_fail(&op->ctx->error, CLB_ERROR_MEMORY, "energy: no memory");
  for (int64_t i = 0; i < n; i++) both[i] = scale[i], both[n + i] = shift[i];
  const clb_status s = clb_layer_write(op, clb_sum_type(op->ctx), both, 2 * n, &op->reals);
  free(both);
  return s;
}

static void call_tables(clb_call *c, clb_rows species) {
  clb_call_numbers(c, "species", species);
  clb_call_memory(c, &c->op->reals);
  clb_call_i64(c, c->op->problem.totals.n_species);
}

static clb_call begin(clb_op *op, int32_t what, int64_t n, int64_t units) {
  clb_call c = clb_call_begin(op, CLB_TOTALS, n, units);
  if (!c.status && op->problem.totals.what != what)
    c.status = clb_fail(&op->ctx->error, CLB_ERROR_ARGUMENT, "totals: this op is for other totals");
  return c;
}

clb_status clb_energy_forward(clb_op *op, int64_t n, clb_rows species, clb_rows x, clb_rows e_atom,
                              clb_rows total, clb_rows g_x) {
  clb_call c = begin(op, CLB_TOTAL_ENERGY, n, 0);
  if (c.status) return c.status;
  clb_call_rows(&c, "x", (clb_dtype)op->problem.storage, 1, x, CLB_IN);
  clb_call_rows(&c, "e_atom", (clb_dtype)op->problem.arithmetic, 1, e_atom, CLB_OPTIONAL_OUT);
  clb_call_rows(&c, "g_x", (clb_dtype)op->problem.storage, 1, g_x, CLB_OPTIONAL_OUT);
  call_tables(&c, species);
  clb_call_i32(&c, e_atom.buffer != NULL);
  clb_call_i32(&c, g_x.buffer != NULL);
  return launch_totals(&c, total);
}

clb_status clb_energy_backward(clb_op *op, int64_t n, clb_rows species, clb_rows g_x) {
  clb_call c = begin(op, CLB_TOTAL_ENERGY, n, 0);
  if (c.status) return c.status;
  int64_t lanes = clb_layer_schedule_of(op, ENERGY_BACKWARD).lanes;
  c.arg[0].i64 = n / lanes + (n % lanes != 0);
  clb_call_rows(&c, "g_x", (clb_dtype)op->problem.storage, 1, g_x, CLB_OUT);
  call_tables(&c, species);
  clb_call_i64(&c, n);
  return clb_call_run(&c, ENERGY_BACKWARD);
}

/* ---- virial ---- */

clb_status clb_virial_create(clb_context *ctx, clb_dtype type, clb_op **op) {
  return create_totals(ctx, type, (clb_totals_problem){.what = CLB_TOTAL_VIRIAL},
                       1 << PARTS | 1 << SUM, op);
}

clb_status clb_virial_run(clb_op *op, int64_t n, clb_rows v, clb_rows g_v, clb_rows total) {
  clb_call c = begin(op, CLB_TOTAL_VIRIAL, n, 0);
  if (c.status) return c.status;
  clb_call_rows(&c, "v", (clb_dtype)op->problem.storage, 3, v, CLB_IN);
  clb_call_rows(&c, "g_v", (clb_dtype)op->problem.storage, 3, g_v, CLB_IN);
  return launch_totals(&c, total);
}

/* ---- forces ---- */

clb_status clb_forces_create(clb_context *ctx, clb_dtype type, clb_op **op) {
  return clb_layer_create(ctx, clb_layer_problem(ctx, CLB_FORCES, type, clb_sum_type(ctx)), 3, op);
}

static void call_direction(clb_call *c, const clb_graph *graph, int direction) {
  clb_call_memory(c, &graph->buffer[CLB_GRAPH_ROW_START + direction].memory);
  clb_call_memory(c, &graph->buffer[CLB_GRAPH_EDGE + direction].memory);
  clb_call_i64(c, graph->n_rows[direction]);
}

/* Results of n atoms. */
static void call_atoms(clb_call *c, int64_t n, int64_t columns, clb_rows out) {
  c->n = n;
  clb_call_rows(c, "result", (clb_dtype)c->op->problem.arithmetic, columns, out, CLB_OUT);
}

clb_status clb_forces_run(clb_op *op, const clb_graph *graph, clb_rows g_v, clb_rows force) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  const int64_t receivers = graph->first_receiver + graph->n_rows[CLB_BY_RECEIVER],
                senders = graph->n_rows[CLB_BY_SENDER],
                n = receivers > senders ? receivers : senders;
  clb_call c = clb_call_begin(op, CLB_FORCES, graph->n_edges, n);
  if (c.status) return c.status;
  for (int d = 0; d < 2; d++) call_direction(&c, graph, d);
  clb_call_i64(&c, graph->first_receiver);
  clb_call_rows(&c, "g_v", (clb_dtype)op->problem.storage, 3, g_v, CLB_IN);
  call_atoms(&c, n, 3, force);
  clb_call_i32(&c, graph->adds);
  return clb_call_run(&c, FORCES);
}

clb_status clb_atom_virials_run(clb_op *op, const clb_graph *graph, clb_rows v, clb_rows g_v,
                                clb_rows out) {
  if (!op || !graph) return CLB_ERROR_ARGUMENT;
  const int64_t n = graph->n_rows[CLB_BY_RECEIVER];
  clb_call c = clb_call_begin(op, CLB_FORCES, graph->n_edges, n);
  if (c.status) return c.status;
  call_direction(&c, graph, CLB_BY_RECEIVER);
  clb_call_rows(&c, "v", (clb_dtype)op->problem.storage, 3, v, CLB_IN);
  clb_call_rows(&c, "g_v", (clb_dtype)op->problem.storage, 3, g_v, CLB_IN);
  call_atoms(&c, n, 9, out);
  return clb_call_run(&c, ATOM_VIRIALS);
}
