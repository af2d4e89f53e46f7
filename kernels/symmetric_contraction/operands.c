/* kernels/symmetric_contraction/operands.c - the parameters of a symmetric contraction's kernels,
   and reading and writing its rows. */
#include <stdio.h>

#include "kernels/symmetric_contraction/contraction.h"

static const struct {
  int n, array[ARRAYS];
} passes[] = {{3, {IN_X, IN_W, OUT_Z}},
              {5, {IN_X, IN_W, IN_G, OUT_X, OUT_W}},
              {8, {IN_X, IN_W, IN_G, IN_A, IN_C, OUT_X, OUT_W, OUT_Z}}};

static ir_val i64(clb_contraction *b, int64_t x) { return ir_int(b->k, IR_I64, x); }
static ir_val i32(clb_contraction *b, int64_t x) { return ir_int(b->k, IR_I32, x); }

bool clb_contraction_begin(clb_contraction *b, ir_kernel *k, const clb_problem *p,
                           const clb_schedule *s, const char *name, int subgroups, int rows) {
  const clb_symmetric_contraction_problem *sc = &p->symmetric_contraction;
  *b = (clb_contraction){.k = k,
                         .p = p,
                         .sc = sc,
                         .s = s,
                         .t = clb_ir_type((clb_dtype)p->arithmetic),
                         .species = IR_NONE};
  ir_begin(k, name, s->lanes, subgroups, rows);
  k->scalar_access = s->scalar_access;
  k->large_registers = s->symmetric.large_registers;
  if (!clb_symmetric_plan_make(sc, &b->plan)) {
    snprintf(k->error, sizeof k->error, "no memory");
    return false;
  }
  b->n = ir_scalar(k, IR_I64);
  clb_row_block block = {.k = k};
  for (int i = 0; i < passes[p->pass].n; i++) {
    int array = passes[p->pass].array[i];
    b->array[array] = clb_rows_array(&block, (clb_dtype)p->storage, array >= OUT_X);
  }
  for (int i = 0; i < (p->pass == CLB_DOUBLE_BACKWARD && sc->incoming & CLB_OPERAND_W ? 2 : 1);
       i++) {
    ir_val numbers = ir_buffer(k, IR_I32, false), first = ir_scalar(k, IR_I64);
    if (i) continue; /* those of c are those of w */
    b->species = numbers;
    b->first_species = first;
  }
  return true;
}

void clb_contraction_tables(clb_contraction *b) {
  b->numbers = b->reals = IR_NONE;
  if (!clb_contraction_reads_tables(b->s)) return;
  b->numbers = ir_buffer(b->k, IR_I32, false);
  b->reals = ir_buffer(b->k, b->t, false);
}

void clb_contraction_end(clb_contraction *b) {
  clb_symmetric_plan_free(&b->plan);
  ir_finish(b->k);
}

/* Lanes of a sub-group that have a channel. */
static int across(const clb_schedule *s) {
  return s->symmetric.channels ? s->symmetric.channels : s->lanes;
}

int clb_contraction_blocks(const clb_symmetric_contraction_problem *sc, const clb_schedule *s) {
  return (sc->channels - 1) / across(s) + 1;
}

void clb_contraction_channels(clb_contraction *b, ir_val block) {
  ir_kernel *k = b->k;
  int n = across(b->s), K = b->sc->channels;
  ir_val first = ir_mul(k, block, i32(b, n)), lane = ir_lane(k), left = ir_sub(k, i32(b, K), first);
  b->channel = ir_cast(k, IR_I64, ir_add(k, first, lane));
  b->mask = IR_NONE;
  if (K % n)
    b->mask = ir_2(k, IR_LT, lane, n < b->s->lanes ? ir_2(k, IR_MIN, left, i32(b, n)) : left);
  else if (n < b->s->lanes) b->mask = ir_2(k, IR_LT, lane, i32(b, n));
}

ir_val clb_contraction_species(clb_contraction *b) {
  return ir_cast(b->k, IR_I64,
                 ir_load(b->k, b->species, ir_add(b->k, b->first_species, b->row), IR_NONE));
}

/* Rows that are like x, or like z: `width` components in each channel. */
typedef struct {
  int layout, width;
} rows_like;

static rows_like like_x(const clb_contraction *b) {
  return (rows_like){b->sc->layout_x, (b->sc->ell + 1) * (b->sc->ell + 1)};
}

/* Components of z before those of the degree number `out`. */
static int z_before(const clb_contraction *b, int out) {
  int n = 0;
  for (int i = 0; i < out; i++) n += 2 * b->sc->degrees[i] + 1;
  return n;
}

static rows_like like_z(const clb_contraction *b) {
  return (rows_like){b->sc->layout_z, z_before(b, b->sc->n_degrees)};
}

/* Index of component m of the term of degree l before which there are `before` components. */
static ir_val place(clb_contraction *b, const clb_row_array *a, rows_like r, int before, int l,
                    int m) {
  ir_kernel *k = b->k;
  int64_t K = b->sc->channels, at = r.layout == CLB_MUL_IR   ? before * K + m
                                    : r.layout == CLB_IR_MUL ? (before + m) * K
                                                             : before + m;
  int step = r.layout == CLB_MUL_IR ? 2 * l + 1 : r.width; /* from channel to channel */
  ir_val start = ir_add(k, ir_mul(k, b->row, a->stride), a->offset),
         own = r.layout == CLB_IR_MUL ? b->channel : ir_mul(k, b->channel, i64(b, step));
  return ir_add(k, ir_add(k, start, i64(b, at)), own);
}

static void load_term(clb_contraction *b, const clb_row_array *a, rows_like r, int before, int l,
                      ir_val *v) {
  int n = r.layout == CLB_IR_MUL ? 1 : 2 * l + 1;
  for (int m = 0; m < 2 * l + 1; m += n)
    ir_load_wide(b->k, a->buffer, place(b, a, r, before, l, m), b->mask, n, v + m);
  for (int m = 0; m < 2 * l + 1; m++) v[m] = ir_cast(b->k, b->t, v[m]);
}

/* IR_NONE stands for 0. */
static void store_term(clb_contraction *b, const clb_row_array *a, rows_like r, int before, int l,
                       const ir_val *v) {
  int n = r.layout == CLB_IR_MUL ? 1 : 2 * l + 1;
  ir_val out[MAX_WIDTH], old[MAX_WIDTH];
  if (b->p->accumulate) load_term(b, a, r, before, l, old);
  for (int m = 0; m < 2 * l + 1; m++) {
    out[m] = v[m] == IR_NONE ? ir_real(b->k, b->t, 0) : v[m];
    if (b->p->accumulate) out[m] = ir_add(b->k, old[m], out[m]);
    out[m] = ir_cast(b->k, ir_register_type(a->element), out[m]);
  }
  for (int m = 0; m < 2 * l + 1; m += n)
    ir_store_wide(b->k, a->buffer, place(b, a, r, before, l, m), b->mask, n, out + m);
}

void clb_contraction_load_x(clb_contraction *b, int array, ir_val *v) {
  for (int l = 0; l <= b->sc->ell; l++)
    load_term(b, &b->array[array], like_x(b), l * l, l, v + l * l);
}

void clb_contraction_store_x(clb_contraction *b, const ir_val *v) {
  for (int l = 0; l <= b->sc->ell; l++)
    store_term(b, &b->array[OUT_X], like_x(b), l * l, l, v + l * l);
}

void clb_contraction_load_z(clb_contraction *b, int array, int out, ir_val *v) {
  load_term(b, &b->array[array], like_z(b), z_before(b, out), b->sc->degrees[out], v);
}

void clb_contraction_store_z(clb_contraction *b, int out, const ir_val *v) {
  store_term(b, &b->array[OUT_Z], like_z(b), z_before(b, out), b->sc->degrees[out], v);
}

ir_val clb_contraction_weights_at(clb_contraction *b, int array, ir_val species) {
  const clb_row_array *a = &b->array[array];
  return ir_add(b->k, ir_add(b->k, ir_mul(b->k, species, a->stride), a->offset), b->channel);
}
