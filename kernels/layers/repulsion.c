/* kernels/layers/repulsion.c - repulsion of nuclei by Ziegler, Biersack and Littmark, its gradient
   by the vectors of edges, and its derivative along tangents of them, sum of dV/dr v . q / r.

   V = 7.1998 Z_i Z_j phi((q_i + q_j) r) f(u) / r,  u = r / R_ij, f the polynomial cutoff;
     phi(x) = sum_n c_n exp(-e_n x),  dV/dr = 7.1998 Z_i Z_j (f (q phi' - phi / r) + phi f') / r.
   u is taken for at least SHORTEST; V is 0 from r_max on.  Forward and along: a sub-group does
   an atom, lanes are the edges it receives; backward: a lane is an edge.  Tables: Z and q
   [2][species], R [species][species] of receiver and sender. */
#include "kernels/layers/functions.h"
#include "kernels/layers/layer.h"

#define SHORTEST 1e-6

enum { FORWARD, BACKWARD, ALONG, PASSES, TERMS = 4 };

static const double half_coulomb = 7.1998; /* eV Angstrom: of a pair, half to each atom */

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  if (!(p->repulsion.r_max > 0))
    return clb_fail(error, CLB_ERROR_ARGUMENT, "r_max is %g; it must be above 0",
                    p->repulsion.r_max);
  if (p->repulsion.p < 1 || p->repulsion.p > 64)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "p is %d; it must be 1 ... 64", (int)p->repulsion.p);
  return clb_layer_check(p, limits, error);
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, p->pass != BACKWARD, s);
  if (p->pass != BACKWARD) s->layer.wide_vectors = limits->simd;
  else s->rows.columns_per_piece = 3;
}

typedef struct {
  ir_kernel *k;
  ir_type t;
  const clb_repulsion_problem *p;
  ir_val tables;
} pair;

static ir_val real(const pair *b, double x) { return ir_real(b->k, b->t, x); }

/* Entry of table `which` (0: Z, 1: q) for two species; lanes without an edge: those of species 0.
 */
static void entries(const pair *b, int which, const ir_val species[2], ir_val mask, ir_val *e) {
  for (int i = 0; i < 2; i++) {
    ir_val at = ir_add(b->k, species[i], clb_i64(b->k, (int64_t)which * b->p->n_species));
    e[i] = ir_load(b->k, b->tables, at, mask);
  }
}

static ir_val reach_of(const pair *b, const ir_val species[2], ir_val mask) {
  const int64_t n = b->p->n_species;
  ir_val at = ir_add(b->k, ir_mul(b->k, species[0], clb_i64(b->k, n)), species[1]);
  return ir_load(b->k, b->tables, ir_add(b->k, at, clb_i64(b->k, 2 * n)), mask);
}

/* V and (dV/dr) / r of an edge whose length has the square r2. */
static void energy(const pair *b, ir_val r2, const ir_val species[2], ir_val mask, ir_val *value,
                   ir_val *pull) {
  ir_kernel *k = b->k;
  ir_val zero = real(b, 0), one = real(b, 1), z[2], q[2], f, f_slope;
  entries(b, 0, species, mask, z);
  entries(b, 1, species, mask, q);
  ir_val reach = ir_select(k, mask, reach_of(b, species, mask), one),
         r = ir_2(k, IR_MAX, ir_1(k, IR_SQRT, r2), ir_mul(k, reach, real(b, SHORTEST))),
         u = ir_2(k, IR_DIV, r, reach), inverse = ir_2(k, IR_DIV, one, r),
         left = ir_2(k, IR_MAX, ir_sub(k, one, u), zero), screening = ir_add(k, q[0], q[1]),
         x = ir_mul(k, screening, r), phi = zero, phi_slope = zero;
  clb_polynomial_cutoff(k, b->t, b->p->p, u, left, 1, &f, &f_slope);
  ir_val seen = ir_2(k, IR_LT, r, real(b, b->p->r_max));
  f = ir_select(k, seen, f, zero);
  f_slope = ir_select(k, seen, f_slope, zero);
  for (int n = 0; n < TERMS; n++) {
    ir_val term = ir_mul(k, real(b, b->p->coefficient[n]),
                         ir_1(k, IR_EXP, ir_mul(k, real(b, -b->p->exponent[n]), x)));
    phi = ir_add(k, phi, term);
    phi_slope = ir_fma(k, real(b, -b->p->exponent[n]), term, phi_slope);
  }
  ir_val front = ir_mul(k, ir_mul(k, real(b, half_coulomb), ir_mul(k, z[0], z[1])), inverse);
  *value = ir_mul(k, ir_mul(k, front, phi), f);
  ir_val within = ir_sub(k, ir_mul(k, screening, phi_slope), ir_mul(k, phi, inverse)),
         edge = ir_2(k, IR_DIV, ir_mul(k, phi, f_slope), reach);
  *pull = ir_mul(k, ir_mul(k, front, inverse), ir_fma(k, f, within, edge));
}

static ir_val dot(ir_kernel *k, const ir_val v[3], const ir_val w[3]) {
  return ir_fma(k, v[0], w[0], ir_fma(k, v[1], w[1], ir_mul(k, v[2], w[2])));
}

/* V_i, or its derivative along tangents. */
static void sums(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const bool along = p->pass == ALONG;
  clb_row_kernel b;
  clb_layer_begin(&b, k, along ? "repulsion_along" : "repulsion", s, p->arithmetic);
  pair a = {.k = k, .t = b.t, .p = &p->repulsion};
  const clb_received list = clb_received_begin(k);
  const clb_row_array vectors = clb_layer_array(&b, p->storage, false),
                      tangents = along ? clb_layer_array(&b, p->storage, false) : vectors;
  const clb_atom_species atoms = clb_atom_species_begin(k);
  a.tables = ir_buffer(k, b.t, false);
  const clb_row_array out = clb_layer_array(&b, p->storage, true);
  ir_val add = ir_scalar(k, IR_I32), edge, sender, mask, v[3], q[3], value, pull;
  clb_layer_start(&b);
  ir_val zero = ir_real(k, b.t, 0), sum = ir_var(k, zero, false),
         own = clb_species_of(k, &atoms, true, b.unit, IR_NONE);
  clb_received_start(&b, &list, &edge, &sender, &mask);
  clb_layer_vector(&b, &vectors, edge, mask, v);
  if (along) clb_layer_vector(&b, &tangents, edge, mask, q);
  const ir_val species[2] = {own, clb_species_of(k, &atoms, false, sender, mask)};
  energy(&a, dot(k, v, v), species, mask, &value, &pull);
  if (along) value = ir_mul(k, pull, dot(k, v, q));
  ir_set(k, sum, ir_add(k, ir_get(k, sum), ir_select(k, mask, value, zero)));
  ir_end(k);
  ir_val at = clb_layer_row(&b, &out, b.unit),
         before =
             clb_layer_load(&b, &out, at, clb_i64(k, 0), clb_wanted_lanes(k, add, clb_i32(k, 1)));
  clb_layer_store(&b, &out, at, clb_i64(k, 0), clb_first_lane(k),
                  ir_reduce_add(k, ir_add(k, ir_get(k, sum), before)));
  clb_layer_finish(&b);
}

static void backward(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const clb_dtype type = (clb_dtype)p->storage;
  pair a = {.k = k, .t = clb_ir_type((clb_dtype)p->arithmetic), .p = &p->repulsion};
  clb_row_block rows;
  ir_begin(k, "repulsion_backward", s->lanes, s->subgroups, s->lanes * s->subgroups);
  clb_rows_begin(&rows, k, s, (clb_dtype)p->arithmetic);
  const clb_row_array vectors = clb_rows_array(&rows, type, false);
  const clb_ends ends = clb_ends_begin(k);
  a.tables = ir_buffer(k, a.t, false);
  const clb_row_array g_out = clb_rows_array(&rows, type, false),
                      g_v = clb_rows_array(&rows, type, true);
  ir_val add = ir_scalar(k, IR_I32), v[3], there[3], species[2], value, pull;
  clb_rows_start(&rows, type, 3);
  clb_rows_load(&rows, &vectors, 0, 3, v);
  ir_val edge = ir_add(k, rows.first, ir_cast(k, IR_I64, ir_lane(k))),
         atom = ir_cast(k, IR_I64, ir_load(k, ends.list[0], edge, rows.mask)),
         at = ir_add(k, ir_mul(k, atom, g_out.stride), g_out.offset),
         g = ir_load(k, g_out.buffer, at, rows.mask);
  for (int i = 0; i < 2; i++) species[i] = clb_end_species(k, &ends, i, edge, rows.mask);
  energy(&a, dot(k, v, v), species, rows.mask, &value, &pull);
  clb_row_block adding = rows;
  adding.mask = clb_wanted_lanes(k, add, rows.left);
  clb_rows_load(&adding, &g_v, 0, 3, there);
  for (int i = 0; i < 3; i++) there[i] = ir_fma(k, ir_mul(k, g, pull), v[i], there[i]);
  clb_rows_store(&rows, &g_v, 0, 3, there, false);
  ir_finish(k);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  (p->pass == BACKWARD ? backward : sums)(p, s, k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%d species, p = %d, r_max = %g", (int)p->repulsion.n_species,
               (int)p->repulsion.p, p->repulsion.r_max);
}

const clb_kernel_kind clb_kind_repulsion = {.name = "repulsion",
                                            .check = check,
                                            .schedule = schedule,
                                            .lower = lower,
                                            .print = print,
                                            .passes = PASSES};
