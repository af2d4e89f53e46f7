/* models/layers/pair_table.c - weights of paths from tables by pairs of species, each of which is
   made when its two species first occur together. */
#include <stdlib.h>
#include <string.h>

#include "models/layers/kinds.h"

static int64_t pairs_of(const clb_network *n) { return (int64_t)n->n_species * n->n_species; }

static clb_status build(clb_network *n, clb_layer *y) {
  clb_pair_table *p = y->parameters;
  const clb_radial *radial = &p->function.radial;
  const uint64_t bytes = (uint64_t)pairs_of(n) * sizeof *p->table_of;
  p->tables.spline = clb_radial_grid(n, &p->function);
  if (!(p->table_of = malloc(bytes))) return clb_network_no_memory(n);
  memset(p->table_of, -1, bytes);
  const clb_status s = clb_buffer_create(n->ctx, bytes, &p->tables.table_of);
  return s ? s
           : clb_pair_table_create(n->ctx, n->type, n->n_species, radial->width[radial->n],
                                   &p->tables.spline, &p->op);
}

/* ---- species ---- */

/* Whether an edge and the one back have one table. */
static bool symmetric(const clb_pair_table *p) { return !p->function.radial.normalized; }

/* The next pair of a receiver and a sender whose species occur and that have no table, a <= b where
   they are symmetric; false: there is none. */
static bool next(const clb_network *n, const clb_pair_table *p, const bool *occurs, int *a,
                 int *b) {
  for (; *a < n->n_species; ++*a, *b = symmetric(p) ? *a : 0)
    for (; *b < n->n_species && occurs[*a]; ++*b)
      if (occurs[*b] && p->table_of[*a * n->n_species + *b] < 0) return true;
  return false;
}

static clb_status make_table(clb_network *n, const clb_pair_table *p, int a, int b, void *table) {
  const clb_convolution_table *t = &p->tables.spline;
  const clb_radial *radial = &p->function.radial;
  const double *radii = n->weights + p->function.basis.radii;
  const size_t width = (size_t)radial->width[radial->n], values = (size_t)t->knots * width,
               all = values + (size_t)clb_convolution_table_rows(t) * width;
  const bool transformed = p->function.basis.transformed;
  const clb_edge_species e = {transformed ? (radii[a] + radii[b]) / 2 : 0, {a, b}};
  double *x = malloc(all * sizeof *x);
  clb_status s = x ? CLB_OK : clb_network_no_memory(n);
  if (!s) s = clb_radial_table(n, &p->function, t, &e, x, x + values);
  if (!s) clb_pair_table_pack(p->op, x + values, table);
  free(x);
  return s;
}

/* Puts tables[count] behind those that are there. */
static clb_status append(clb_network *n, clb_pair_table *p, const char *tables, int64_t count) {
  const uint64_t bytes = (uint64_t)clb_pair_table_bytes(p->op),
                 before = (uint64_t)p->n_tables * bytes, more = (uint64_t)count * bytes;
  clb_buffer **to = &p->tables.spline.coefficients, *grown = NULL;
  char *old = malloc(before ? before : 1);
  clb_status s = old ? CLB_OK : clb_network_no_memory(n);
  if (!s) s = clb_buffer_create(n->ctx, before + more, &grown);
  if (!s && before) s = clb_buffer_read(*to, 0, old, before);
  if (!s && before) s = clb_buffer_write(grown, 0, old, before);
  if (!s) s = clb_buffer_write(grown, before, tables, more);
  if (!s) s = clb_wait(n->ctx); /* the old tables may still be in use */
  clb_buffer_destroy(s ? &grown : to);
  if (!s) *to = grown;
  free(old);
  return s;
}

static clb_status species(clb_network *n, clb_layer *y, const bool *occurs) {
  clb_pair_table *p = y->parameters;
  const size_t bytes = (size_t)clb_pair_table_bytes(p->op);
  int64_t count = 0, made = 0;
  for (int a = 0, b = 0; next(n, p, occurs, &a, &b); b++) count++;
  if (!count) return CLB_OK;
  char *tables = malloc((size_t)count * bytes);
  clb_status s = tables ? CLB_OK : clb_network_no_memory(n);
  for (int a = 0, b = 0; !s && next(n, p, occurs, &a, &b); b++)
    s = make_table(n, p, a, b, tables + (size_t)made++ * bytes);
  if (!s) s = append(n, p, tables, count);
  for (int a = 0, b = 0; !s && next(n, p, occurs, &a, &b); b++) {
    if (symmetric(p)) p->table_of[b * n->n_species + a] = (int32_t)p->n_tables;
    p->table_of[a * n->n_species + b] = (int32_t)p->n_tables++;
  }
  if (!s)
    s = clb_buffer_write(p->tables.table_of, 0, p->table_of,
                         (uint64_t)pairs_of(n) * sizeof *p->table_of);
  free(tables);
  return s ? clb_fail_more(n->error, s,
                           ": %s needs tables of %d knots for %lld pairs of species, %.1f MiB; "
                           "fewer knots take less, and 0 none",
                           y->name, n->knots, (long long)(p->n_tables + count),
                           (double)(p->n_tables + count) * (double)bytes / (1 << 20))
           : CLB_OK;
}

static clb_status tables(clb_network *n, clb_layer *y) {
  clb_pair_table *p = y->parameters;
  p->n_tables = 0;
  memset(p->table_of, -1, (size_t)pairs_of(n) * sizeof *p->table_of);
  return CLB_OK;
}

/* ---- runs ---- */

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_pair_table *p = y->parameters;
  (void)adds;
  return clb_pair_table_forward(p->op, &p->tables, n->graph, n->graph_species,
                                clb_value(n, y->in[0]), clb_value(n, y->out[0]));
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_pair_table *p = y->parameters;
  return clb_pair_table_backward(p->op, &p->tables, n->graph, n->graph_species,
                                 clb_value(n, y->in[0]), clb_gradient(n, y->out[0]),
                                 clb_gradient(n, y->in[0]), adds & 1);
}

static void free_ops(void *parameters) {
  clb_pair_table *p = parameters;
  clb_op_destroy(&p->op);
  clb_buffer_destroy(&p->tables.table_of);
  clb_buffer_destroy(&p->tables.spline.coefficients);
  free(p->table_of);
}

const clb_layer_kind clb_pair_table_kind = {.reads_in = 1,
                                            .again = true,
                                            .build = build,
                                            .species = species,
                                            .tables = tables,
                                            .forward = forward,
                                            .backward = backward,
                                            .free_ops = free_ops};
