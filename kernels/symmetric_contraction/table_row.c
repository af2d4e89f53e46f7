/* kernels/symmetric_contraction/table_row.c - a row by tables: the size of the code does not depend
   on the number of products. A lane keeps its channel's values in local memory, where no other lane
   looks. */
#include "kernels/symmetric_contraction/contraction.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
  clb_contraction *b;
  clb_table_row *r;
  ir_kernel *k;
  ir_val lane;  /* i32: of this lane's channel in the stage */
  ir_val at[2]; /* i64: where the weights of the species are: w, c */
} table_lane;

static ir_val i32(table_lane *l, int64_t x) { return ir_int(l->k, IR_I32, x); }
static ir_val zero(table_lane *l) { return ir_real(l->k, l->b->t, 0); }

static int across(const clb_contraction *b) { return b->s->symmetric.channels; }

static int z_width(const clb_symmetric_contraction_problem *sc) {
  int n = 0;
  for (int o = 0; o < sc->n_degrees; o++) n += 2 * sc->degrees[o] + 1;
  return n;
}

static int banks_of(const clb_problem *p) { return p->pass == CLB_DOUBLE_BACKWARD ? 2 : 1; }

/* Values in `sums` for a channel. */
static int64_t sums_of(const clb_problem *p, int n_values, bool gradients) {
  int z = z_width(&p->symmetric_contraction), banks = banks_of(p);
  return z * (banks + (p->pass ? 1 : 0)) + (gradients ? (int64_t)banks * (n_values + 1) : 0);
}

int64_t clb_contraction_local_bytes(const clb_problem *p, const clb_symmetric_plan *plan,
                                    bool gradients) {
  int64_t n = (int64_t)banks_of(p) * (plan->n_values + 1) + sums_of(p, plan->n_values, gradients);
  return n * ir_type_bytes(clb_ir_type((clb_dtype)p->arithmetic));
}

void clb_table_row_begin(clb_contraction *b, clb_table_row *r) {
  clb_tables tables;
  int z = z_width(b->sc);
  *r = (clb_table_row){
      .one = b->plan.n_values, .n_values = b->plan.n_values, .banks = banks_of(b->p)};
  if (!clb_contraction_list(b->p, &b->plan, &tables, r))
    snprintf(b->k->error, sizeof b->k->error, "no memory");
  free(tables.number);
  free(tables.real);
  r->g = r->banks * z;
  r->gradients = r->g + (b->p->pass ? z : 0);
  r->values = ir_local(b->k, b->t, (int64_t)r->banks * (r->n_values + 1) * across(b));
  r->sums = ir_local(b->k, b->t, sums_of(b->p, r->n_values, b->gradients) * across(b));
}

/* ---- tables and local memory ---- */

static ir_val look(table_lane *l, int64_t table, ir_val i) {
  return ir_load(l->k, l->b->numbers, ir_add(l->k, i, i32(l, table)), IR_NONE);
}

/* Where value number i + skip (i: i32) of an array is. */
static ir_val spot(table_lane *l, ir_val i, int skip) {
  ir_val n = ir_add(l->k, i, i32(l, skip));
  return ir_add(l->k, ir_mul(l->k, n, i32(l, across(l->b))), l->lane);
}

static ir_val get(table_lane *l, ir_val array, ir_val i, int skip) {
  return ir_load(l->k, array, spot(l, i, skip), l->b->mask);
}

static void put(table_lane *l, ir_val array, ir_val i, int skip, ir_val value) {
  ir_store(l->k, array, spot(l, i, skip), l->b->mask, value);
}

static void add(table_lane *l, ir_val array, ir_val i, int skip, ir_val x, ir_val y) {
  put(l, array, i, skip, ir_fma(l->k, x, y, get(l, array, i, skip)));
}

static bool twice(const table_lane *l) { return l->r->banks > 1; }
static int bank(const table_lane *l) { return l->r->n_values + 1; } /* to the derivatives */

typedef struct {
  ir_val i, k, c;
} entry;

static entry entry_of(table_lane *l, ir_val e) {
  ir_val at = ir_mul(l->k, e, i32(l, 2));
  return (entry){look(l, l->r->entries, at), look(l, l->r->entries + 1, at),
                 ir_load(l->k, l->b->reals, e, IR_NONE)};
}

/* sum = the row of entries first ... end - 1, and its derivative. */
static clb_dual row_value(table_lane *l, ir_val first, ir_val end) {
  ir_kernel *k = l->k;
  ir_val v = ir_var(k, zero(l), false), d = twice(l) ? ir_var(k, zero(l), false) : IR_NONE;
  entry e = entry_of(l, ir_loop(k, first, end, i32(l, 1)));
  ir_val x = get(l, l->r->values, e.i, 0), y = get(l, l->r->values, e.k, 0), cx = ir_mul(k, e.c, x);
  ir_set(k, v, ir_fma(k, cx, y, ir_get(k, v)));
  if (twice(l)) {
    ir_val dx = get(l, l->r->values, e.i, bank(l)), dy = get(l, l->r->values, e.k, bank(l));
    ir_set(k, d, ir_fma(k, cx, dy, ir_fma(k, ir_mul(k, e.c, dx), y, ir_get(k, d))));
  }
  ir_end(k);
  return (clb_dual){ir_get(k, v), twice(l) ? ir_get(k, d) : IR_NONE};
}

/* Adds the gradients of h times the row to those of its values; h.d may be IR_NONE. */
static void row_gradient(table_lane *l, clb_dual h, ir_val first, ir_val end) {
  ir_kernel *k = l->k;
  entry e = entry_of(l, ir_loop(k, first, end, i32(l, 1)));
  ir_val x[2] = {get(l, l->r->values, e.i, 0), get(l, l->r->values, e.k, 0)}, at[2] = {e.i, e.k};
  clb_dual ch = {ir_mul(k, e.c, h.v), h.d == IR_NONE ? IR_NONE : ir_mul(k, e.c, h.d)};
  for (int s = 0; s < 2; s++) {
    int to = l->r->gradients;
    add(l, l->r->sums, at[s], to, ch.v, x[1 - s]);
    if (!twice(l)) continue;
    add(l, l->r->sums, at[s], to + bank(l), ch.v, get(l, l->r->values, at[1 - s], bank(l)));
    if (ch.d != IR_NONE) add(l, l->r->sums, at[s], to + bank(l), ch.d, x[1 - s]);
  }
  ir_end(k);
}

/* ---- the row ---- */

static void clear(table_lane *l, int first, int64_t n) {
  ir_val i = ir_loop(l->k, i32(l, 0), i32(l, n), i32(l, 1));
  put(l, l->r->sums, i, first, zero(l));
  ir_end(l->k);
}

static void read_row(table_lane *l) {
  clb_contraction *b = l->b;
  const clb_symmetric_contraction_problem *sc = b->sc;
  int d = (sc->ell + 1) * (sc->ell + 1), at = l->r->g;
  ir_val v[MAX_X];
  clb_contraction_load_x(b, IN_X, v);
  for (int i = 0; i < d; i++) put(l, l->r->values, i32(l, i), 0, v[i]);
  put(l, l->r->values, i32(l, l->r->one), 0, ir_real(l->k, b->t, 1));
  if (twice(l)) {
    if (sc->incoming & CLB_OPERAND_X) clb_contraction_load_x(b, IN_A, v);
    for (int i = 0; i < d; i++)
      put(l, l->r->values, i32(l, i), bank(l), sc->incoming & CLB_OPERAND_X ? v[i] : zero(l));
    put(l, l->r->values, i32(l, l->r->one), bank(l), zero(l));
  }
  for (int o = 0; o < sc->n_degrees && b->p->pass; at += 2 * sc->degrees[o++] + 1) {
    clb_contraction_load_z(b, IN_G, o, v);
    for (int m = 0; m < 2 * sc->degrees[o] + 1; m++) put(l, l->r->sums, i32(l, at + m), 0, v[m]);
  }
}

/* Pairs' values from those of A, or A's gradients from those of pairs. */
static void pairs(table_lane *l, bool backwards) {
  ir_kernel *k = l->k;
  int d = (l->b->sc->ell + 1) * (l->b->sc->ell + 1);
  if (l->r->n_values == d) return;
  ir_val q = ir_loop(k, i32(l, 0), i32(l, l->r->n_values - d), i32(l, 1)), first = look(l, 0, q),
         end = look(l, 1, q);
  if (backwards) {
    clb_dual h = {get(l, l->r->sums, q, l->r->gradients + d), IR_NONE};
    if (twice(l)) h.d = get(l, l->r->sums, q, l->r->gradients + d + bank(l));
    row_gradient(l, h, first, end);
  } else {
    clb_dual value = row_value(l, first, end);
    put(l, l->r->values, q, d, value.v);
    if (twice(l)) put(l, l->r->values, q, d + bank(l), value.d);
  }
  ir_end(k);
}

static ir_val weight(table_lane *l, int array, ir_val at, ir_val path) {
  clb_contraction *b = l->b;
  ir_val skip = ir_mul(l->k, ir_cast(l->k, IR_I64, path), ir_int(l->k, IR_I64, b->sc->channels));
  return ir_cast(l->k, b->t,
                 ir_load(l->k, b->array[array].buffer, ir_add(l->k, at, skip), b->mask));
}

/* One component of a path: adds to z and to gradients of values; returns what it adds to that of
   the weight (IR_NONE: nothing). */
static ir_val path_row(table_lane *l, clb_dual w, ir_val row) {
  ir_kernel *k = l->k;
  const clb_contraction *b = l->b;
  int z = z_width(b->sc);
  ir_val out = look(l, l->r->row_out, row), first = look(l, l->r->row_entries, row),
         end = look(l, l->r->row_entries + 1, row), share = IR_NONE;
  if (b->results || b->weights) {
    clb_dual value = row_value(l, first, end);
    if (b->results) {
      add(l, l->r->sums, out, 0, w.v, value.v);
      if (twice(l)) add(l, l->r->sums, out, z, w.v, value.d);
      if (w.d != IR_NONE) add(l, l->r->sums, out, z, w.d, value.v);
    }
    if (b->weights)
      share = ir_mul(k, get(l, l->r->sums, out, l->r->g), twice(l) ? value.d : value.v);
  }
  if (b->gradients) {
    ir_val g = get(l, l->r->sums, out, l->r->g);
    row_gradient(l, (clb_dual){ir_mul(k, w.v, g), w.d == IR_NONE ? IR_NONE : ir_mul(k, w.d, g)},
                 first, end);
  }
  return share;
}

static void paths(table_lane *l, ir_val partial, ir_val partial_at) {
  ir_kernel *k = l->k;
  clb_contraction *b = l->b;
  clb_dual w = {IR_NONE, IR_NONE};
  if (!b->sc->n_paths) return;
  ir_val path = ir_loop(k, i32(l, 0), i32(l, b->sc->n_paths), i32(l, 1));
  if (!b->weights) {
    w.v = weight(l, IN_W, l->at[0], path);
    if (l->at[1] != IR_NONE) w.d = weight(l, IN_C, l->at[1], path);
  }
  ir_val sum = b->weights ? ir_var(k, zero(l), false) : IR_NONE;
  ir_val row =
      ir_loop(k, look(l, l->r->path_rows, path), look(l, l->r->path_rows + 1, path), i32(l, 1));
  ir_val share = path_row(l, w, row);
  if (b->weights) ir_set(k, sum, ir_add(k, ir_get(k, sum), share));
  ir_end(k);
  if (b->weights) {
    ir_val skip = ir_mul(k, ir_cast(k, IR_I64, path), ir_int(k, IR_I64, b->sc->channels)),
           at = ir_add(k, partial_at, skip);
    ir_store(k, partial, at, b->mask, ir_add(k, ir_load(k, partial, at, b->mask), ir_get(k, sum)));
  }
  ir_end(k);
}

static void write_row(table_lane *l) {
  clb_contraction *b = l->b;
  const clb_symmetric_contraction_problem *sc = b->sc;
  int d = (sc->ell + 1) * (sc->ell + 1), at = twice(l) ? z_width(sc) : 0;
  ir_val v[MAX_X];
  for (int o = 0; o < sc->n_degrees && b->results; at += 2 * sc->degrees[o++] + 1) {
    for (int m = 0; m < 2 * sc->degrees[o] + 1; m++) v[m] = get(l, l->r->sums, i32(l, at + m), 0);
    clb_contraction_store_z(b, o, v);
  }
  if (!b->gradients) return;
  for (int i = 0; i < d; i++)
    v[i] = get(l, l->r->sums, i32(l, i), l->r->gradients + (twice(l) ? bank(l) : 0));
  clb_contraction_store_x(b, v);
}

void clb_contraction_table_row(clb_contraction *b, clb_table_row *r, ir_val partial,
                               ir_val partial_at) {
  table_lane l = {.b = b, .r = r, .k = b->k, .lane = ir_lane(b->k), .at = {IR_NONE, IR_NONE}};
  if (!b->weights) {
    ir_val species = clb_contraction_species(b);
    l.at[0] = clb_contraction_weights_at(b, IN_W, species);
    if (twice(&l) && b->sc->incoming & CLB_OPERAND_W)
      l.at[1] = clb_contraction_weights_at(b, IN_C, species);
  }
  clear(&l, 0, (int64_t)r->banks * z_width(b->sc));
  if (b->gradients) clear(&l, r->gradients, (int64_t)r->banks * (r->n_values + 1));
  read_row(&l);
  pairs(&l, false);
  paths(&l, partial, partial_at);
  if (b->gradients) pairs(&l, true);
  write_row(&l);
}
