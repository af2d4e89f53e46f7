/* kernels/symmetric_contraction/contraction.c - symmetric contractions: z, and the gradients that
   are rows. A group does `rows` rows one after the other, its sub-groups blocks of channels. */
#include "kernels/symmetric_contraction/contraction.h"

#include <stdio.h>
#include <stdlib.h>

/* Weights of the current species, in the order of paths and of trees; tree t has sum_p mix_pt w_p.
 */
typedef struct {
  clb_contraction *b;
  ir_val at, along; /* i64: where the first weights of w and c are; along may be IR_NONE */
  clb_dual *path;   /* [n_paths]: those read so far */
  ir_val kept;      /* VAR, i64: the species whose weights are in `var` */
  clb_dual *var;    /* [n_paths] VARs, of trees; a derivative may be IR_NONE */
  clb_unrolled_row row;
} lanes_of_row;

static ir_val load_weight(clb_contraction *b, int array, ir_val at, int path) {
  ir_val index = ir_add(b->k, at, ir_int(b->k, IR_I64, (int64_t)path * b->sc->channels));
  return ir_cast(b->k, b->t, ir_load(b->k, b->array[array].buffer, index, b->mask));
}

static clb_dual weigh(void *user, int tree) {
  lanes_of_row *l = user;
  clb_contraction *b = l->b;
  const clb_symmetric_basis *basis = &b->plan.basis;
  clb_dual sum = {IR_NONE, IR_NONE};
  int first = basis->path[tree].first;
  for (int p = tree; p < basis->n_paths && basis->path[p].first == first; p++) {
    if (l->path[p].v == IR_NONE) l->path[p].v = load_weight(b, IN_W, l->at, p);
    if (l->path[p].d == IR_NONE && l->along != IR_NONE)
      l->path[p].d = load_weight(b, IN_C, l->along, p);
    sum =
        clb_dual_plus_scaled(b, sum, basis->mix[basis->path[p].mix_at + tree - first], l->path[p]);
  }
  return sum;
}

static bool keeps_weights(const clb_contraction *b) {
  return b->s->symmetric.keep_weights && !b->s->symmetric.phases && !b->s->accumulate_in_memory;
}

static void declare_weights(clb_contraction *b, lanes_of_row *l) {
  ir_val zero = ir_real(b->k, b->t, 0);
  l->kept = ir_var(b->k, ir_int(b->k, IR_I64, -1), true);
  for (int t = 0; t < b->plan.basis.n_paths; t++) {
    l->var[t] = (clb_dual){ir_var(b->k, zero, false), IR_NONE};
    if (clb_contraction_incoming(b, CLB_OPERAND_W)) l->var[t].d = ir_var(b->k, zero, false);
  }
}

/* Kept weights are read only where the species differs from that of the row before, others where
   they are used. */
static void find_weights(clb_contraction *b, lanes_of_row *l) {
  ir_kernel *k = b->k;
  ir_val species = clb_contraction_species(b);
  int n = b->plan.basis.n_paths;
  for (int p = 0; p < n; p++) l->path[p] = (clb_dual){IR_NONE, IR_NONE};
  if (keeps_weights(b)) ir_if(k, ir_1(k, IR_NOT, ir_2(k, IR_EQ, species, ir_get(k, l->kept))));
  l->at = clb_contraction_weights_at(b, IN_W, species);
  l->along = clb_contraction_incoming(b, CLB_OPERAND_W)
                 ? clb_contraction_weights_at(b, IN_C, species)
                 : IR_NONE;
  l->row.weigh = weigh;
  l->row.user = l;
  if (!keeps_weights(b)) return;
  for (int t = 0; t < n; t++) {
    clb_dual w = weigh(l, t);
    ir_set(k, l->var[t].v, w.v);
    if (w.d != IR_NONE) ir_set(k, l->var[t].d, w.d);
  }
  ir_set(k, l->kept, species);
  ir_end(k);
  for (int t = 0; t < n; t++) {
    l->row.weight[t].v = ir_get(k, l->var[t].v);
    if (l->var[t].d != IR_NONE) l->row.weight[t].d = ir_get(k, l->var[t].d);
  }
}

static void unrolled_row(clb_contraction *b, lanes_of_row *l) {
  clb_unrolled_row *row = &l->row;
  bool twice = b->p->pass == CLB_DOUBLE_BACKWARD,
       along = clb_contraction_incoming(b, CLB_OPERAND_X);
  int d = (b->sc->ell + 1) * (b->sc->ell + 1);
  ir_val x[MAX_X], a[MAX_X], out[MAX_X];
  clb_unrolled_clear(b, row);
  find_weights(b, l);
  clb_contraction_load_x(b, IN_X, x);
  if (along) clb_contraction_load_x(b, IN_A, a);
  clb_unrolled_set(b, row, x, along ? a : NULL);
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

/* Reads what a phase may need; what it does not use is removed. */
static void begin_phase(clb_contraction *b, lanes_of_row *l) {
  bool along = clb_contraction_incoming(b, CLB_OPERAND_X);
  ir_val x[MAX_X], a[MAX_X];
  clb_unrolled_clear(b, &l->row);
  for (int p = 0; p < b->plan.basis.n_paths; p++) l->path[p] = (clb_dual){IR_NONE, IR_NONE};
  clb_contraction_load_x(b, IN_X, x);
  if (along) clb_contraction_load_x(b, IN_A, a);
  clb_unrolled_set(b, &l->row, x, along ? a : NULL);
  for (int o = 0; o < b->sc->n_degrees && b->p->pass; o++)
    clb_contraction_load_z(b, IN_G, o, l->row.g[o]);
}

static void add_to(clb_contraction *b, ir_val sum, clb_dual x) {
  ir_val value = b->p->pass == CLB_DOUBLE_BACKWARD ? x.d : x.v;
  if (value != IR_NONE) ir_set(b->k, sum, ir_add(b->k, ir_get(b->k, sum), value));
}

/* Turns are iterations of a loop.  Compilers do not know how many there are, as they do not know
   that species are not negative, and cannot move a phase's loads out of its branch: so they share
   nothing between phases. */
static void row_in_phases(clb_contraction *b, lanes_of_row *l) {
  ir_kernel *k = b->k;
  const int d = (b->sc->ell + 1) * (b->sc->ell + 1);
  ir_val zero = ir_real(k, b->t, 0), z[CLB_MAX_ELL + 1][MAX_WIDTH], gradient[MAX_X], out[MAX_X];
  int phases = 1;
  find_weights(b, l);
  for (int o = 0; o < b->sc->n_degrees && b->results; o++)
    for (int m = 0; m < 2 * b->sc->degrees[o] + 1; m++) z[o][m] = ir_var(k, zero, false);
  for (int i = 0; i < d && b->gradients; i++) gradient[i] = ir_var(k, zero, false);
  for (int at = b->sc->ell + 1; at < b->plan.n_elements; phases++)
    at = clb_contraction_phase_end(b, at);
  ir_val unknown = ir_select(k, ir_2(k, IR_LT, clb_contraction_species(b), ir_int(k, IR_I64, 0)),
                             ir_int(k, IR_I32, 0), ir_int(k, IR_I32, phases)),
         phase = ir_loop(k, ir_int(k, IR_I32, 0), unknown, ir_int(k, IR_I32, 1));
  for (int t = 0; t < phases; t++) {
    ir_if(k, ir_2(k, IR_EQ, phase, ir_int(k, IR_I32, t)));
    begin_phase(b, l);
    clb_contraction_phase(b, &l->row, t);
    for (int o = 0; o < b->sc->n_degrees && b->results; o++)
      for (int m = 0; m < 2 * b->sc->degrees[o] + 1; m++) add_to(b, z[o][m], l->row.z[o][m]);
    for (int i = 0; i < d && b->gradients; i++) add_to(b, gradient[i], l->row.gradient[i]);
    ir_end(k);
  }
  ir_end(k);
  for (int o = 0; o < b->sc->n_degrees && b->results; o++) {
    for (int m = 0; m < 2 * b->sc->degrees[o] + 1; m++) out[m] = ir_get(k, z[o][m]);
    clb_contraction_store_z(b, o, out);
  }
  for (int i = 0; i < d && b->gradients; i++) out[i] = ir_get(k, gradient[i]);
  if (b->gradients) clb_contraction_store_x(b, out);
}

/* All rows of the group, for the current block of channels. */
static void rows(clb_contraction *b, lanes_of_row *l, clb_table_row *table) {
  ir_kernel *k = b->k;
  int n = b->s->symmetric.rows;
  ir_val first = ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), ir_int(k, IR_I64, n));
  if (!table && keeps_weights(b)) declare_weights(b, l);
  if (n > 1)
    first = ir_add(k, first,
                   ir_loop(k, ir_int(k, IR_I64, 0), ir_int(k, IR_I64, n), ir_int(k, IR_I64, 1)));
  b->row = first;
  if (n > 1) ir_if(k, ir_2(k, IR_LT, b->row, b->n));
  if (table) clb_contraction_table_row(b, table, IR_NONE, IR_NONE);
  else if (b->s->symmetric.phases) row_in_phases(b, l);
  else unrolled_row(b, l);
  if (n > 1) ir_end(k), ir_end(k);
}

static void body(clb_contraction *b) {
  ir_kernel *k = b->k;
  lanes_of_row l = {.b = b};
  clb_table_row table;
  int blocks = clb_contraction_blocks(b->sc, b->s);
  bool tables = clb_contraction_reads_tables(b->s);
  l.var = malloc(sizeof *l.var * (size_t)(b->plan.basis.n_paths + 1));
  l.path = malloc(sizeof *l.path * (size_t)(b->plan.basis.n_paths + 1));
  if (!clb_unrolled_make(b, &l.row) || !l.var || !l.path)
    snprintf(k->error, sizeof k->error, "no memory");
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
  free(l.path);
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
                                                        .passes = 3,
                                                        .settings = CLB_FIELD(symmetric),
                                                        .candidates = clb_contraction_candidates};
