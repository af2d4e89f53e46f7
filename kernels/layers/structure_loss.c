/* kernels/layers/structure_loss.c - losses of energies, forces and stresses, and their derivatives:
   a sub-group does a structure, lanes are its atoms.

   One function of differences d has the three forms: f(d) = scale s (|d| - half s), f'(d) = scale s
   sign d, with s = |d|, but at least `least` and at most `most`. MSE: 0, inf, scale 2, half 1/2;
   MAE: 1, 1, scale 1, half 0; Huber: 0, delta, scale 1, half 1/2. */
#include "kernels/layers/loss_columns.h"

#include "kernels/layers/layer.h"

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)p, (void)limits, (void)error;
  return CLB_OK;
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, true, s);
}

/* ---- parameters ---- */

typedef struct {
  ir_val buffer, offset; /* i32, starting there */
} numbers;

typedef struct {
  clb_row_kernel b;
  numbers first; /* where `made` is; atom of each structure, and of the end */
  clb_row_array e_atom, force, v_atom, known, known_force, made, by_energy, move, strain;
  ir_val stress, norm; /* i32 flags: there is v_atom; lengths of differences of forces count */
  ir_val least, most, scale, half, unit, part[CLB_LOSS_TERMS], factor[CLB_LOSS_TERMS];
  /* of the structure */
  ir_val begin, n, weight, to; /* i32, i32; to: where `made` is, from its buffer's start, i64 */
} loss;

static void declare(loss *l, const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  clb_row_kernel *b = &l->b;
  clb_layer_begin(b, k, "structure_loss", s, p->arithmetic);
  l->first.buffer = ir_buffer(k, IR_I32, false);
  l->first.offset = ir_scalar(k, IR_I64);
  clb_row_array *const in[] = {&l->e_atom, &l->force, &l->v_atom, &l->known, &l->known_force};
  for (int i = 0; i < 5; i++) *in[i] = clb_layer_array(b, p->arithmetic, false);
  l->made = clb_layer_array(b, p->arithmetic, true);
  clb_row_array *const out[] = {&l->by_energy, &l->move, &l->strain};
  for (int i = 0; i < 3; i++) *out[i] = clb_layer_array(b, p->storage, true);
  l->stress = ir_scalar(k, IR_I32);
  l->norm = ir_2(k, IR_EQ, ir_scalar(k, IR_I32), clb_i32(k, 1));
  ir_val *const real[] = {&l->least, &l->most, &l->scale, &l->half, &l->unit};
  for (int i = 0; i < 5; i++) *real[i] = ir_scalar(k, b->t);
  for (int i = 0; i < CLB_LOSS_TERMS; i++) l->part[i] = ir_scalar(k, b->t);
  for (int i = 0; i < CLB_LOSS_TERMS; i++) l->factor[i] = ir_scalar(k, b->t);
}

/* ---- arithmetic ---- */

static ir_val zero(const loss *l) { return ir_real(l->b.k, l->b.t, 0); }
static ir_val one(const loss *l) { return ir_real(l->b.k, l->b.t, 1); }

/* x where there is something, else 0. */
static ir_val where(const loss *l, ir_val there, ir_val x) {
  return ir_select(l->b.k, there, x, zero(l));
}

/* x, or 1 where it is 0: to divide by. */
static ir_val divisor(const loss *l, ir_val x) {
  return ir_select(l->b.k, ir_2(l->b.k, IR_LT, zero(l), x), x, one(l));
}

/* f(d), and its derivative. */
static ir_val measure(const loss *l, ir_val d, ir_val *slope) {
  ir_kernel *k = l->b.k;
  const ir_val size = ir_1(k, IR_ABS, d),
               s = ir_2(k, IR_MIN, ir_2(k, IR_MAX, size, l->least), l->most),
               sign = ir_select(k, ir_2(k, IR_LT, d, zero(l)), ir_1(k, IR_NEG, s),
                                where(l, ir_2(k, IR_LT, zero(l), d), s));
  *slope = ir_mul(k, l->scale, sign);
  return ir_mul(k, ir_mul(k, l->scale, s), ir_sub(k, size, ir_mul(k, l->half, s)));
}

/* What a number is off if it is known, else 0; adds to the sums of errors, [3]. */
static ir_val difference(const loss *l, ir_val off, ir_val known, ir_val *sums) {
  ir_kernel *k = l->b.k;
  const ir_val d = where(l, known, off);
  sums[0] = ir_add(k, sums[0], where(l, known, one(l)));
  sums[1] = ir_add(k, sums[1], ir_1(k, IR_ABS, d));
  sums[2] = ir_fma(k, d, d, sums[2]);
  return d;
}

static ir_val is_known(const loss *l, ir_val label) { return ir_2(l->b.k, IR_EQ, label, label); }

static ir_val load_of(loss *l, const clb_row_array *a, ir_val row, int column, ir_val mask) {
  return clb_layer_load(&l->b, a, clb_layer_row(&l->b, a, row), clb_i64(l->b.k, column), mask);
}

static void store_of(loss *l, const clb_row_array *a, ir_val row, int column, ir_val mask,
                     ir_val x) {
  clb_layer_store(&l->b, a, clb_layer_row(&l->b, a, row), clb_i64(l->b.k, column), mask, x);
}

static void store_made_column(loss *l, int column, ir_val x) {
  const ir_val at = ir_add(l->b.k, l->to, clb_i64(l->b.k, column));
  clb_layer_store(&l->b, &l->made, clb_layer_row(&l->b, &l->made, l->b.unit), at, IR_NONE, x);
}

/* The structure's part of a term, and its errors, uniform. */
static void store_made(loss *l, int term, ir_val sum, const ir_val *errors) {
  ir_kernel *k = l->b.k;
  const ir_val part = ir_mul(k, l->part[term], l->weight);
  store_made_column(l, CLB_MADE_TERMS + term, ir_mul(k, part, sum));
  for (int i = 0; i < 3; i++) store_made_column(l, CLB_MADE_ERRORS + 3 * term + i, errors[i]);
}

/* The factor of a term's derivatives. */
static ir_val factor_of(const loss *l, int term) {
  return ir_mul(l->b.k, l->factor[term], ir_mul(l->b.k, l->part[term], l->weight));
}

/* ---- loops over atoms ---- */

static ir_val begin_atoms(loss *l, ir_val *left, ir_val *mask) {
  ir_kernel *k = l->b.k;
  const ir_val first = ir_loop(k, clb_i32(k, 0), l->n, clb_i32(k, l->b.s->lanes));
  *left = ir_sub(k, l->n, first);
  *mask = ir_2(k, IR_LT, ir_lane(k), *left);
  return ir_add(k, ir_cast(k, IR_I64, ir_add(k, l->begin, first)), ir_cast(k, IR_I64, ir_lane(k)));
}

/* The lanes' atoms: adds to the term of forces and its errors, [4]; stores -dloss/dF. */
static void add_forces(loss *l, ir_val atom, ir_val mask, ir_val *sums) {
  ir_kernel *k = l->b.k;
  ir_val known[3], d[3], slope[3], term = zero(l), square = zero(l);
  for (int c = 0; c < 3; c++) {
    const ir_val label = load_of(l, &l->known_force, atom, c, mask);
    known[c] = ir_2(k, IR_AND, mask, is_known(l, label));
    d[c] =
        difference(l, ir_sub(k, load_of(l, &l->force, atom, c, mask), label), known[c], sums + 1);
    term = ir_add(k, term, measure(l, d[c], &slope[c]));
    square = ir_fma(k, d[c], d[c], square);
  }
  const ir_val all = ir_2(k, IR_AND, known[0], ir_2(k, IR_AND, known[1], known[2])),
               length = where(l, all, ir_1(k, IR_SQRT, square)),
               factor = ir_1(k, IR_NEG, factor_of(l, 1));
  sums[0] = ir_add(k, sums[0], ir_select(k, l->norm, length, term));
  for (int c = 0; c < 3; c++) {
    const ir_val along = where(l, all, ir_2(k, IR_DIV, d[c], divisor(l, length)));
    store_of(l, &l->move, atom, c, mask, ir_mul(k, factor, ir_select(k, l->norm, along, slope[c])));
  }
}

/* Sums over the atoms: energy, virial [9], term of forces and its errors [4]. */
enum { ENERGY, VIRIAL, FORCES = VIRIAL + 9, SUMS = FORCES + 4 };

static void add_atoms(loss *l, ir_val *sum) {
  ir_kernel *k = l->b.k;
  ir_val var[SUMS], now[SUMS], left, mask;
  for (int i = 0; i < SUMS; i++) var[i] = ir_var(k, zero(l), false);
  const ir_val atom = begin_atoms(l, &left, &mask), virials = clb_wanted_lanes(k, l->stress, left);
  for (int i = 0; i < SUMS; i++) now[i] = ir_get(k, var[i]);
  now[ENERGY] = ir_add(k, now[ENERGY], load_of(l, &l->e_atom, atom, 0, mask));
  for (int i = 0; i < 9; i++)
    now[VIRIAL + i] = ir_add(k, now[VIRIAL + i], load_of(l, &l->v_atom, atom, i, virials));
  add_forces(l, atom, mask, now + FORCES);
  for (int i = 0; i < SUMS; i++) ir_set(k, var[i], now[i]);
  ir_end(k);
  for (int i = 0; i < SUMS; i++) sum[i] = ir_reduce_add(k, ir_get(k, var[i]));
}

/* ---- of the structure ---- */

static void energy_term(loss *l, ir_val energy) {
  ir_kernel *k = l->b.k;
  ir_val slope, left, mask, errors[3] = {zero(l), zero(l), zero(l)};
  const ir_val label = load_of(l, &l->known, l->b.unit, CLB_KNOWN_ENERGY, IR_NONE),
               unit = ir_2(k, IR_DIV, one(l), divisor(l, ir_cast(k, l->b.t, l->n))),
               known = ir_2(k, IR_AND, is_known(l, label), ir_2(k, IR_LT, clb_i32(k, 0), l->n)),
               d = difference(l, ir_mul(k, unit, ir_sub(k, energy, label)), known, errors),
               term = measure(l, d, &slope);
  store_made(l, 0, term, errors);
  const ir_val by = ir_mul(k, ir_mul(k, factor_of(l, 0), unit), slope),
               atom = begin_atoms(l, &left, &mask);
  store_of(l, &l->by_energy, atom, 0, mask, by);
  ir_end(k);
}

/* Stores S = (B + B^T) / 2V, B = dloss/dstress. */
static void stress_term(loss *l, const ir_val *virial) {
  ir_kernel *k = l->b.k;
  ir_val by[9], term = zero(l), errors[3] = {zero(l), zero(l), zero(l)};
  const ir_val known_volume = load_of(l, &l->known, l->b.unit, CLB_KNOWN_VOLUME, IR_NONE),
               there = ir_2(k, IR_LT, zero(l), known_volume), volume = divisor(l, known_volume),
               half = ir_real(k, l->b.t, 0.5), factor = ir_mul(k, factor_of(l, 2), l->unit);
  for (int i = 0; i < 9; i++) {
    const int other = i % 3 * 3 + i / 3;
    const ir_val label = load_of(l, &l->known, l->b.unit, CLB_KNOWN_STRESS + i, IR_NONE),
                 known = ir_2(k, IR_AND, there, is_known(l, label)),
                 both = ir_mul(k, half, ir_add(k, virial[i], virial[other])),
                 d = difference(l, ir_sub(k, ir_2(k, IR_DIV, both, volume), label), known, errors);
    term = ir_add(k, term, measure(l, ir_mul(k, l->unit, d), &by[i]));
  }
  store_made(l, 2, term, errors);
  for (int i = 0; i < 9; i++) {
    const ir_val both = ir_mul(k, half, ir_add(k, by[i], by[i % 3 * 3 + i / 3]));
    store_of(l, &l->strain, l->b.unit, i, IR_NONE,
             ir_2(k, IR_DIV, ir_mul(k, factor, both), volume));
  }
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  loss l = {0};
  ir_val sum[SUMS];
  declare(&l, p, s, k);
  clb_layer_start(&l.b);
  const ir_val at = ir_add(k, ir_add(k, l.first.offset, clb_i64(k, 1)), l.b.unit);
  l.to = ir_cast(k, IR_I64, ir_load(k, l.first.buffer, l.first.offset, IR_NONE));
  l.begin = ir_load(k, l.first.buffer, at, IR_NONE);
  l.n = ir_sub(k, ir_load(k, l.first.buffer, ir_add(k, at, clb_i64(k, 1)), IR_NONE), l.begin);
  l.weight = load_of(&l, &l.known, l.b.unit, CLB_KNOWN_WEIGHT, IR_NONE);
  add_atoms(&l, sum);
  energy_term(&l, sum[ENERGY]);
  store_made(&l, 1, sum[FORCES], sum + FORCES + 1);
  stress_term(&l, sum + VIRIAL);
  clb_layer_finish(&l.b);
}

static void print(const clb_problem *p, clb_text *out) {
  (void)p;
  clb_text_add(out, "of energies, forces and stresses");
}

const clb_kernel_kind clb_kind_structure_loss = {.name = "structure_loss",
                                                 .check = check,
                                                 .schedule = schedule,
                                                 .lower = lower,
                                                 .print = print,
                                                 .passes = 1};
