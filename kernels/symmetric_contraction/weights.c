/* kernels/symmetric_contraction/weights.c - the gradients of a symmetric contraction by its
   weights: sums over the rows of each species.

   A sub-group is given a species, a block of consecutive rows and a block of channels; of its rows
   it does those of its species. So rows may come in any order, and sums are always made in the same
   one. Its sums go to row (block of rows, species) of a workspace, in arithmetic precision; where
   the block has no such row, only that is noted. With `roles` it does one degree of z only, so that
   fewer sums are in registers. The pass that would be the forward one adds up the blocks. */
#include "kernels/symmetric_contraction/contraction.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
  ir_val block_rows, units; /* i64 parameters */
  ir_val partial, present;  /* the workspace; i32 for each of its rows: 0 or 1 */
  ir_val found;             /* VAR, i32: 1 after the first row of the species */
  ir_val row_block, kind, part;
} place;

/* Numbers of the unit, innermost first: block of channels, degree, species, block of rows. */
static void find_place(clb_contraction *b, place *at, ir_val *unit) {
  ir_kernel *k = b->k;
  const ir_val across = ir_int(k, IR_I64, clb_contraction_blocks(b->sc, b->s)),
               roles = ir_int(k, IR_I64, b->s->symmetric.roles ? b->sc->n_degrees : 1),
               species = ir_int(k, IR_I64, b->sc->n_species);
  clb_contraction_channels(b, ir_cast(k, IR_I32, ir_2(k, IR_MOD, *unit, across)));
  ir_val rest = ir_2(k, IR_DIV, *unit, across);
  at->part = ir_2(k, IR_MOD, rest, roles);
  rest = ir_2(k, IR_DIV, rest, roles);
  at->kind = ir_2(k, IR_MOD, rest, species);
  at->row_block = ir_2(k, IR_DIV, rest, species);
}

/* i64: the row of the workspace; where the sum for path 0 and this lane's channel is. */
static ir_val workspace_row(clb_contraction *b, ir_val row_block, ir_val kind) {
  return ir_add(b->k, ir_mul(b->k, row_block, ir_int(b->k, IR_I64, b->sc->n_species)), kind);
}

static ir_val partial_at(clb_contraction *b, const place *at) {
  int64_t columns = (int64_t)b->sc->n_paths * b->sc->channels;
  ir_val row = workspace_row(b, at->row_block, at->kind);
  return ir_add(b->k, ir_mul(b->k, row, ir_int(b->k, IR_I64, columns)), b->channel);
}

/* Opens the loop over the unit's rows, and the IF for those of its species. */
static void open_rows(clb_contraction *b, place *at) {
  ir_kernel *k = b->k;
  at->found = ir_var(k, ir_int(k, IR_I32, 0), true);
  ir_val first = ir_mul(k, at->row_block, at->block_rows);
  b->row = ir_loop(k, first, ir_2(k, IR_MIN, ir_add(k, first, at->block_rows), b->n),
                   ir_int(k, IR_I64, 1));
  ir_if(k, ir_2(k, IR_EQ, clb_contraction_species(b), at->kind));
}

/* Closes them and opens an IF for units that found a row. */
static void close_rows(clb_contraction *b, const place *at) {
  ir_kernel *k = b->k;
  ir_set(k, at->found, ir_int(k, IR_I32, 1));
  ir_end(k);
  ir_end(k);
  ir_if(k, ir_2(k, IR_EQ, ir_get(k, at->found), ir_int(k, IR_I32, 1)));
}

/* Notes whether there was a row; units of all channels and degrees say the same. */
static void note_found(clb_contraction *b, const place *at) {
  ir_kernel *k = b->k;
  ir_val first = ir_2(k, IR_EQ, b->channel, ir_int(k, IR_I64, 0));
  if (b->s->symmetric.roles)
    first = ir_2(k, IR_AND, first, ir_2(k, IR_EQ, at->part, ir_int(k, IR_I64, 0)));
  ir_store(k, at->present, workspace_row(b, at->row_block, at->kind), first, ir_get(k, at->found));
}

static ir_val sum_at(clb_contraction *b, const place *at, int path) {
  return ir_add(b->k, partial_at(b, at), ir_int(b->k, IR_I64, (int64_t)path * b->sc->channels));
}

static void store_sum(clb_contraction *b, const place *at, int path, ir_val sum) {
  ir_store(b->k, at->partial, sum_at(b, at, path), b->mask,
           sum == IR_NONE ? ir_real(b->k, b->t, 0) : sum);
}

static bool wanted(const clb_contraction *b, int out, int path) {
  return out == CLB_NO_OUT || b->plan.tree[path].out == out;
}

/* Zeros in the workspace where this is the first row. */
static void clear_sums(clb_contraction *b, const place *at, int out) {
  ir_kernel *k = b->k;
  ir_if(k, ir_2(k, IR_EQ, ir_get(k, at->found), ir_int(k, IR_I32, 0)));
  for (int p = 0; p < b->sc->n_paths; p++)
    if (wanted(b, out, p)) store_sum(b, at, p, IR_NONE);
  ir_end(k);
}

/* Gives the workspace the paths' sums, from those of trees; or adds them. */
static void store_sums(clb_contraction *b, const place *at, int out, const ir_val *tree, bool add) {
  const clb_symmetric_basis *basis = &b->plan.basis;
  for (int p = 0; p < basis->n_paths; p++) {
    const clb_symmetric_path *path = &basis->path[p];
    clb_dual total = {IR_NONE, IR_NONE};
    if (!wanted(b, out, p)) continue;
    for (int t = path->first; t <= p; t++)
      total = clb_dual_plus_scaled(b, total, basis->mix[path->mix_at + t - path->first],
                                   (clb_dual){tree[t], IR_NONE});
    if (add && total.v != IR_NONE)
      total.v = ir_add(b->k, total.v, ir_load(b->k, at->partial, sum_at(b, at, p), b->mask));
    if (!add || total.v != IR_NONE) store_sum(b, at, p, total.v);
  }
}

/* The gradients of trees of degree `out`, or of all, in the current row. */
static void gradients_of_row(clb_contraction *b, int out, clb_unrolled_row *row, ir_val *tree) {
  bool along = clb_contraction_incoming(b, CLB_OPERAND_X);
  ir_val x[MAX_X], a[MAX_X];
  clb_unrolled_clear(b, row);
  row->out = out;
  clb_contraction_load_x(b, IN_X, x);
  if (along) clb_contraction_load_x(b, IN_A, a);
  clb_unrolled_set(b, row, x, along ? a : NULL);
  for (int o = 0; o < b->sc->n_degrees; o++)
    if (out == CLB_NO_OUT || o == out) clb_contraction_load_z(b, IN_G, o, row->g[o]);
  clb_contraction_unrolled(b, row);
  for (int t = 0; t < b->plan.basis.n_paths; t++)
    tree[t] =
        b->p->pass == CLB_DOUBLE_BACKWARD ? row->weight_gradient[t].d : row->weight_gradient[t].v;
}

/* The sums of degree `out`, or of all. */
static void unrolled(clb_contraction *b, place *at, int out, clb_unrolled_row *row, ir_val *sum,
                     ir_val *tree) {
  ir_kernel *k = b->k;
  bool in_memory = b->s->accumulate_in_memory;
  for (int t = 0; t < b->plan.basis.n_paths; t++)
    sum[t] = wanted(b, out, t) && !in_memory ? ir_var(k, ir_real(k, b->t, 0), false) : IR_NONE;
  open_rows(b, at);
  if (in_memory) clear_sums(b, at, out);
  gradients_of_row(b, out, row, tree);
  for (int t = 0; t < b->plan.basis.n_paths && !in_memory; t++)
    if (tree[t] != IR_NONE) ir_set(k, sum[t], ir_add(k, ir_get(k, sum[t]), tree[t]));
  if (in_memory) store_sums(b, at, out, tree, true);
  close_rows(b, at);
  for (int t = 0; t < b->plan.basis.n_paths && !in_memory; t++)
    if (sum[t] != IR_NONE) tree[t] = ir_get(k, sum[t]);
  if (!in_memory) store_sums(b, at, out, tree, false);
  ir_end(k);
  note_found(b, at);
}

/* The sums are made in the workspace, from 0 on. */
static void with_tables(clb_contraction *b, place *at, clb_table_row *table) {
  open_rows(b, at);
  clear_sums(b, at, CLB_NO_OUT);
  clb_contraction_table_row(b, table, at->partial, partial_at(b, at));
  close_rows(b, at);
  ir_end(b->k);
  note_found(b, at);
}

static void body(clb_contraction *b, place *at, clb_table_row *table) {
  ir_kernel *k = b->k;
  clb_unrolled_row row;
  size_t n = (size_t)b->plan.basis.n_paths + 1;
  ir_val *sum = malloc(sizeof *sum * 2 * n);
  if (!clb_unrolled_make(b, &row) || !sum) snprintf(k->error, sizeof k->error, "no memory");
  else if (clb_contraction_reads_tables(b->s)) with_tables(b, at, table);
  else if (!b->s->symmetric.roles) unrolled(b, at, CLB_NO_OUT, &row, sum, sum + n);
  else
    for (int o = 0; o < b->sc->n_degrees; o++) {
      ir_if(k, ir_2(k, IR_EQ, at->part, ir_int(k, IR_I64, o)));
      unrolled(b, at, o, &row, sum, sum + n);
      ir_end(k);
    }
  clb_unrolled_free(&row);
  free(sum);
}

static void sums(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  clb_contraction b;
  clb_table_row table;
  const char *name =
      p->pass == CLB_BACKWARD ? "symmetric_weights_backward" : "symmetric_weights_double_backward";
  if (clb_contraction_begin(&b, k, p, s, name, s->subgroups, s->subgroups)) {
    place at = {.block_rows = ir_scalar(k, IR_I64), .units = ir_scalar(k, IR_I64)};
    at.partial = ir_buffer(k, b.t, true);
    at.present = ir_buffer(k, IR_I32, true);
    clb_contraction_tables(&b);
    b.weights = true;
    if (clb_contraction_reads_tables(s)) clb_table_row_begin(&b, &table);
    ir_val unit = clb_contraction_unit(k, s->subgroups);
    ir_if(k, ir_2(k, IR_LT, unit, at.units));
    find_place(&b, &at, &unit);
    body(&b, &at, &table);
    ir_end(k);
  }
  clb_contraction_end(&b);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  (p->pass == CLB_FORWARD ? clb_lower_total_weights : sums)(p, s, k);
}

const clb_kernel_kind clb_kind_symmetric_weights = {.name = "symmetric_weights",
                                                    .check = clb_contraction_check,
                                                    .schedule = clb_contraction_schedule,
                                                    .lower = lower,
                                                    .print = clb_contraction_print,
                                                    .reads_tables = clb_contraction_reads_tables,
                                                    .tables = clb_contraction_make_tables,
                                                    .passes = 3,
                                                    .settings = CLB_FIELD(symmetric),
                                                    .candidates = clb_contraction_candidates};
