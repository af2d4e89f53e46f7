/* kernels/dispersion/triples.c - the energy of three atoms by Axilrod, Teller and Muto
   (dispersion_steps.h): lanes are neighbours j of the receiver i, and each goes through all others,
   k. On a GPU a group has a receiver, whose neighbours j its sub-groups take in turn.

   With a, b, c the squares of r_ij, r_ik, r_jk, and P = a b c,
     E = s9 sqrt(C6_ij C6_ik C6_jk) f g,  g = 3/8 A / P^(5/2) + 1 / P^(3/2),
     A = x y z,  x = a + c - b,  y = a + b - c,  z = b + c - a,
     f = 1 / (1 + t),  t = 6 ((R_ij R_ik R_jk)^2 / P)^(8/3).
   A triple is seen from each atom, twice: as j k and as k j, so that derivatives by r_ij and by
   C6_ij are enough: dE/da = s9 sqrt(..) (f^2 t 8/3 / a g + f dg/da), dg/da = 3/8 (y z + x z - x y -
   5/2 A / a) / P^(5/2) - 3/2 / (a P^(3/2)). */
#include "kernels/common/activate.h"
#include "kernels/dispersion/pair_c6.h"

typedef struct {
  clb_receiver r;
  clb_c6 c6;
  ir_val radii, elements, s9; /* radii: squares of R; elements: E */
  int energy, slope;          /* sums */
  clb_pull pull;
  const clb_neighbour *j;
  ir_val own_c6, own_radius;  /* of i and j */
  ir_val sum_e, sum_g, limit; /* variables: of E and dE/da without s9; the square of the radius */
} triples;

static ir_val real(const triples *c, double x) { return ir_real(c->r.k, c->r.t, x); }
static ir_val times(const triples *c, ir_val x, ir_val y) { return ir_mul(c->r.k, x, y); }

/* R^2 of two elements. */
static ir_val radius_of(const triples *c, ir_val one, ir_val other, ir_val mask) {
  ir_kernel *k = c->r.k;
  return ir_load(k, c->radii, ir_add(k, ir_mul(k, one, c->elements), other), mask);
}

/* f, and f^2 t 8/3, of (R_ij R_ik R_jk)^2 / P. */
static void damp(const triples *c, ir_val ratio, ir_val f[2]) {
  ir_kernel *k = c->r.k;
  const double power = 8. / 3;
  const ir_val x = ir_2(k, IR_MIN, ratio, real(c, 1e9)), log_x = clb_logarithm(k, c->r.t, x),
               rest = ir_1(k, IR_EXP, times(c, log_x, real(c, power - 2))),
               t = times(c, times(c, real(c, 6), rest), times(c, x, x));
  f[0] = ir_2(k, IR_DIV, real(c, 1), ir_add(k, real(c, 1), t));
  f[1] = times(c, times(c, f[0], f[0]), times(c, t, real(c, power)));
}

/* g, and a dg/da. */
static void angles(const triples *c, const ir_val square[3], ir_val inverse, ir_val g[2]) {
  ir_kernel *k = c->r.k;
  const ir_val a = square[0], b = square[1], d = square[2], x = ir_sub(k, ir_add(k, a, d), b),
               y = ir_sub(k, ir_add(k, a, b), d), z = ir_sub(k, ir_add(k, b, d), a),
               xy = times(c, x, y), three = times(c, inverse, ir_1(k, IR_SQRT, inverse)),
               five = times(c, times(c, inverse, three), real(c, 0.375)), all = times(c, xy, z),
               slope = ir_sub(k, times(c, z, ir_add(k, x, y)), xy);
  g[0] = ir_fma(k, all, five, three);
  g[1] = ir_sub(k, times(c, five, ir_fma(k, all, real(c, -2.5), times(c, slope, a))),
                times(c, three, real(c, 1.5)));
}

/* Atom k is one in all lanes; of lanes whose j it is, its distance is 0. */
static void add_third(void *user, const clb_neighbour *third) {
  triples *c = user;
  ir_kernel *k = c->r.k;
  const clb_neighbour *j = c->j;
  ir_val v[3], c6[2], f[2], g[2];
  for (int i = 0; i < 3; i++) v[i] = ir_sub(k, third->v[i], j->v[i]);
  const ir_val apart = ir_fma(k, v[0], v[0], ir_fma(k, v[1], v[1], times(c, v[2], v[2]))),
               far = ir_2(k, IR_AND, ir_2(k, IR_LT, real(c, 1e-7), apart),
                          ir_2(k, IR_LT, apart, c->limit)),
               mask = ir_2(k, IR_AND, j->mask, far),
               square[3] = {j->square, third->square, ir_select(k, mask, apart, real(c, 1))};
  clb_c6_find(&c->r, &c->c6, c->r.own, third, 1, &c6[0]);
  clb_c6_find(&c->r, &c->c6, third->place, j, 1, &c6[1]);
  const ir_val all_c6 = times(c, times(c, c6[0], c6[1]), c->own_c6),
               root = ir_1(k, IR_SQRT, ir_2(k, IR_MAX, all_c6, real(c, 0))),
               radii = times(
                   c, times(c, c->own_radius, radius_of(c, c->r.element, third->element, IR_NONE)),
                   radius_of(c, third->element, j->element, j->inside)),
               product = times(c, times(c, square[0], square[1]), square[2]),
               inverse = ir_2(k, IR_DIV, real(c, 1), product);
  damp(c, times(c, radii, inverse), f);
  angles(c, square, inverse, g);
  const ir_val e = times(c, root, times(c, f[0], g[0])),
               slope = times(c, root, ir_fma(k, f[1], g[0], times(c, f[0], g[1])));
  ir_set(k, c->sum_e, ir_add(k, ir_get(k, c->sum_e), ir_select(k, mask, e, real(c, 0))));
  ir_set(k, c->sum_g, ir_add(k, ir_get(k, c->sum_g), ir_select(k, mask, slope, real(c, 0))));
}

static void add_second(void *user, const clb_neighbour *j) {
  triples *c = user;
  ir_kernel *k = c->r.k;
  ir_val c6[2];
  clb_c6_find(&c->r, &c->c6, c->r.own, j, 2, c6);
  c->j = j;
  c->own_c6 = ir_select(k, j->mask, c6[0], real(c, 1));
  c->own_radius = radius_of(c, c->r.element, j->element, j->inside);
  c->sum_e = ir_var(k, real(c, 0), false);
  c->sum_g = ir_var(k, real(c, 0), false);
  clb_receiver_walk_thirds(&c->r, add_third);
  const ir_val e = times(c, ir_get(k, c->sum_e), c->s9),
               g = times(c, ir_2(k, IR_DIV, ir_get(k, c->sum_g), j->square), c->s9),
               relative = ir_2(k, IR_DIV, c6[1], c->own_c6);
  clb_sum_add(&c->r, c->energy, j, times(c, e, real(c, 1. / 6)));
  clb_sum_add(&c->r, c->slope, j, times(c, times(c, e, relative), real(c, 0.5)));
  clb_pull_add(&c->r, &c->pull, j, times(c, g, real(c, 2)));
}

void clb_lower_triples(ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  triples c;
  clb_receiver *r = &c.r;
  clb_receiver_begin(r, k, "dispersion_triples", p, s);
  clb_receiver_share(r);
  c.c6 = clb_c6_begin(r);
  c.elements = ir_scalar(k, IR_I64);
  c.radii = ir_buffer(k, r->t, false);
  c.s9 = ir_scalar(k, r->t);
  const ir_val slopes = ir_buffer(k, IR_F64, true), sums = ir_buffer(k, IR_F64, true);
  const clb_added energies = clb_added_begin(k), forces = clb_added_begin(k),
                  virials = clb_added_begin(k);
  clb_receiver_start(r);
  c.limit = ir_cast(k, r->t, r->squared);
  c.energy = clb_sum_begin(r);
  c.slope = clb_sum_begin(r);
  c.pull = clb_pull_begin(r);
  clb_receiver_walk(r, add_second, &c);
  clb_receiver_join(r);
  ir_val row[CLB_DISPERSION_COLUMNS];
  row[0] = clb_sum_end(r, c.energy);
  clb_pull_end(r, &c.pull, &forces, &virials, row + 1);
  clb_add_to(k, &energies, r->row, 1, row);
  const clb_added to_slopes = {slopes, clb_i64(k, 0), clb_i32(k, 1)};
  const ir_val slope = clb_sum_end(r, c.slope);
  clb_add_to(k, &to_slopes, r->atom, 1, &slope);
  clb_store_sums(r, sums, 0, CLB_DISPERSION_COLUMNS, row, true);
  clb_receiver_finish(r);
}
