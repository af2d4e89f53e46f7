/* kernels/symmetric_contraction/contraction.c - symmetric contractions: z, and the gradients that
   are rows. A group does `rows` rows one after the other, its sub-groups blocks of channels. */
#include "kernels/symmetric_contraction/contraction.h"

#include <stdio.h>
#include <stdlib.h>

/* Weights of trees that stay in registers from row to row while the species is the same. */
typedef struct {
  ir_val species; /* VAR, i64 */
  clb_dual *var;  /* [n_paths] VARs; a derivative may be IR_NONE */
  clb_unrolled_row row;
} lanes_of_row;

static ir_val load_weight(clb_contraction *b, int array, ir_val at, int path) {
  ir_val index = ir_add(b->k, at, ir_int(b->k, IR_I64, (int64_t)path * b->sc->channels));
  return ir_cast(b->k, b->t, ir_load(b->k, b->array[array].buffer, index, b->mask));
}

/* The weights of trees: tree t has sum_p mix_pt w_p. */
static void load_weights(clb_contraction *b, ir_val species, clb_dual *tree) {
  const clb_symmetric_basis *basis = &b->plan.basis;
  ir_val at = clb_contraction_weights_at(b, IN_W, species),
         along = clb_contraction_incoming(b, CLB_OPERAND_W)
                     ? clb_contraction_weights_at(b, IN_C, species)
                     : IR_NONE;
  for (int p = 0; p < basis->n_paths; p++) tree[p] = (clb_dual){IR_NONE, IR_NONE};
  for (int p = 0; p < basis->n_paths; p++) {
    const clb_symmetric_path *path = &basis->path[p];
    clb_dual w = {load_weight(b, IN_W, at, p), IR_NONE};
    if (along != IR_NONE) w.d = load_weight(b, IN_C, along, p);
    for (int t = path->first; t <= p; t++)
      tree[t] = clb_dual_plus_scaled(b, tree[t], basis->mix[path->mix_at + t - path->first], w);
  }
}

static void declare_weights(clb_contraction *b, lanes_of_row *l) {
  ir_val zero = ir_real(b->k, b->t, 0);
  l->species = ir_var(b->k, ir_int(b->k, IR_I64, -1), true);
  for (int p = 0; p < b->plan.basis.n_paths; p++) {
    l->var[p] = (clb_dual){ir_var(b->k, zero, false), IR_NONE};
    if (clb_contraction_incoming(b, CLB_OPERAND_W)) l->var[p].d = ir_var(b->k, zero, false);
  }
}

/* Weights are read only where the species differs from that of the row before. */
static void find_weights(clb_contraction *b, lanes_of_row *l) {
  ir_kernel *k = b->k;
  ir_val species = clb_contraction_species(b);
  int n = b->plan.basis.n_paths;
  if (!b->s->symmetric.keep_weights) {
    load_weights(b, species, l->row.weight);
    return;
  }
  ir_if(k, ir_1(k, IR_NOT, ir_2(k, IR_EQ, species, ir_get(k, l->species))));
  load_weights(b, species, l->row.weight);
  for (int p = 0; p < n; p++) {
    ir_set(k, l->var[p].v, l->row.weight[p].v);
    if (l->var[p].d != IR_NONE) ir_set(k, l->var[p].d, l->row.weight[p].d);
  }
  ir_set(k, l->species, species);
  ir_end(k);
  for (int p = 0; p < n; p++) {
    l->row.weight[p].v = ir_get(k, l->var[p].v);
    if (l->var[p].d != IR_NONE) l->row.weight[p].d = ir_get(k, l->var[p].d);
  }
}

static void unrolled_row(clb_contraction *b, lanes_of_row *l) {
  clb_unrolled_row *row = &l->row;
  bool twice = b->p->pass == CLB_DOUBLE_BACKWARD;
  int d = (b->sc->ell + 1) * (b->sc->ell + 1);
  ir_val x[MAX_X], out[MAX_X];
  clb_unrolled_clear(b, row);
  find_weights(b, l);
  clb_contraction_load_x(b, IN_X, x);
  for (int i = 0; i < d; i++) row->value[i].v = x[i];
  if (clb_contraction_incoming(b, CLB_OPERAND_X)) clb_contraction_load_x(b, IN_A, x);
  for (int i = 0; i < d && clb_contraction_incoming(b, CLB_OPERAND_X); i++) row->value[i].d = x[i];
  for (int o = 0; o < b->sc->n_degrees && b->p->pass; o++)
    clb_contraction_load_z(b, IN_G, o, row->g[o]);
  clb_contraction_unrolled(b, row);
  for (int o = 0; o < b->sc->n_degrees && b->results; o++) {
    for (int m = 0; m < 2 * b->sc->degrees[o] + 1; m++)
      out[m] = twice ? row->z[o][m].d : row->z[o][m].v;
    clb_contraction_store_z(b, o, out);
  }
  for (int i = 0; i < d && b->gradients; i++)
    out[i] = twice ? row->gradient[i].d : row->gradient[i].v;
  if (b->gradients) clb_contraction_store_x(b, out);
}

/* All rows of the group, for the current block of channels. */
static void rows(clb_contraction *b, lanes_of_row *l, clb_table_row *table) {
  ir_kernel *k = b->k;
  int n = b->s->symmetric.rows;
  ir_val first = ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), ir_int(k, IR_I64, n));
  if (!table && b->s->symmetric.keep_weights) declare_weights(b, l);
  b->row = ir_loop(k, first, ir_2(k, IR_MIN, ir_add(k, first, ir_int(k, IR_I64, n)), b->n),
                   ir_int(k, IR_I64, 1));
  if (table) clb_contraction_table_row(b, table, IR_NONE, IR_NONE);
  else unrolled_row(b, l);
  ir_end(k);
}

static void body(clb_contraction *b) {
  ir_kernel *k = b->k;
  lanes_of_row l = {.species = IR_NONE};
  clb_table_row table;
  int blocks = clb_contraction_blocks(b->sc, b->s);
  bool tables = clb_contraction_reads_tables(b->s);
  l.var = malloc(sizeof *l.var * (size_t)(b->plan.basis.n_paths + 1));
  if (!clb_unrolled_make(b, &l.row) || !l.var) snprintf(k->error, sizeof k->error, "no memory");
  else {
    if (tables) clb_table_row_begin(b, &table);
    ir_val block = ir_subgroup(k), step = ir_int(k, IR_I32, b->s->subgroups);
    if (blocks > b->s->subgroups) block = ir_loop(k, block, ir_int(k, IR_I32, blocks), step);
    clb_contraction_channels(b, block);
    rows(b, &l, tables ? &table : NULL);
    if (blocks > b->s->subgroups) ir_end(k);
  }
  clb_unrolled_free(&l.row);
  free(l.var);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[] = {"symmetric_contraction", "symmetric_contraction_backward",
                                      "symmetric_contraction_double_backward"};
  const clb_symmetric_contraction_problem *sc = &p->symmetric_contraction;
  clb_contraction b;
  if (clb_contraction_begin(&b, k, p, s, names[p->pass], s->subgroups, s->symmetric.rows)) {
    clb_contraction_tables(&b);
    b.results =
        p->pass == CLB_FORWARD || (p->pass == CLB_DOUBLE_BACKWARD && sc->gradients & CLB_OPERAND_Z);
    b.gradients = p->pass && sc->gradients & CLB_OPERAND_X;
    if (b.results || b.gradients) body(&b);
  }
  clb_contraction_end(&b);
}

const clb_kernel_kind clb_kind_symmetric_contraction = {.name = "symmetric_contraction",
                                                        .check = clb_contraction_check,
                                                        .schedule = clb_contraction_schedule,
                                                        .lower = lower,
                                                        .print = clb_contraction_print,
                                                        .reads_tables =
                                                            clb_contraction_reads_tables,
                                                        .tables = clb_contraction_make_tables,
                                                        .passes = 3};
