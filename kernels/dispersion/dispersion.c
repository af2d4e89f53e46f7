/* kernels/dispersion/dispersion.c - the dispersion energy D3 of atoms (dispersion_steps.h). */
#include "kernels/dispersion/pair_c6.h"

static ir_val wide(ir_kernel *k, ir_val a) { return ir_cast(k, IR_I64, a); }

/* ---- a lane is a place ---- */

typedef struct {
  clb_row_kernel b;
  ir_val n, atoms, place, mask;
} places;

static void begin_places(places *c, ir_kernel *k, const char *name, const clb_problem *p,
                         const clb_schedule *s) {
  clb_layer_begin(&c->b, k, name, s, p->arithmetic);
  c->n = ir_scalar(k, IR_I64);
  c->atoms = ir_buffer(k, IR_I32, false);
}

/* Returns the atom in this lane's place. */
static ir_val start_places(places *c, ir_kernel *k) {
  clb_layer_start(&c->b);
  c->place = ir_add(k, ir_mul(k, c->b.unit, clb_i64(k, c->b.s->lanes)), wide(k, ir_lane(k)));
  c->mask = ir_2(k, IR_LT, c->place, c->n);
  return wide(k, ir_load(k, c->atoms, c->place, c->mask));
}

static void lower_elements(ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  places c;
  begin_places(&c, k, "dispersion_elements", p, s);
  const ir_val species = ir_buffer(k, IR_I32, false), element_of = ir_buffer(k, IR_I32, false),
               out = ir_buffer(k, IR_I32, true), atom = start_places(&c, k),
               number = wide(k, ir_load(k, species, atom, c.mask));
  ir_store(k, out, c.place, c.mask, ir_load(k, element_of, number, c.mask));
  clb_layer_finish(&c.b);
}

static void lower_slopes(ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  places c;
  const ir_type t = clb_ir_type((clb_dtype)p->arithmetic);
  begin_places(&c, k, "dispersion_slopes", p, s);
  const ir_val slopes = ir_buffer(k, IR_F64, false), out = ir_buffer(k, t, true),
               atom = start_places(&c, k), slope = ir_load(k, slopes, atom, c.mask);
  ir_store(k, out, c.place, c.mask, ir_cast(k, t, slope));
  clb_layer_finish(&c.b);
}

/* ---- coordination numbers ---- */

/* The counting function, and the exponential in it. */
static ir_val count(clb_receiver *r, ir_val radius, ir_val inverse, ir_val *power) {
  ir_kernel *k = r->k;
  const ir_val one = ir_real(k, r->t, 1), steep = ir_real(k, r->t, 16);
  *power = ir_1(k, IR_EXP, ir_sub(k, steep, ir_mul(k, ir_mul(k, steep, radius), inverse)));
  return ir_2(k, IR_DIV, one, ir_add(k, one, *power));
}

typedef struct {
  clb_receiver r;
  int sum;
  ir_val radii, radius; /* radius: the receiver's */
} counts;

static void count_neighbour(void *user, const clb_neighbour *j) {
  counts *c = user;
  ir_kernel *k = c->r.k;
  const ir_val inverse = ir_2(k, IR_DIV, ir_real(k, c->r.t, 1), ir_1(k, IR_SQRT, j->square)),
               radius = ir_add(k, c->radius, ir_load(k, c->radii, j->element, j->mask));
  ir_val power;
  const ir_val f = count(&c->r, radius, inverse, &power);
  clb_sum_add(&c->r, c->sum, j, f);
}

static void lower_counts(ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  counts c;
  clb_receiver *r = &c.r;
  clb_receiver_begin(r, k, "dispersion_counts", p, s);
  c.radii = ir_buffer(k, r->t, false);
  const ir_val numbers = ir_buffer(k, IR_F64, true);
  clb_receiver_start(r);
  c.radius = ir_load(k, c.radii, r->element, IR_NONE);
  c.sum = clb_sum_begin(r);
  clb_receiver_walk(r, count_neighbour, &c);
  ir_store(k, numbers, r->atom, clb_first_lane(k), clb_sum_end(r, c.sum));
  clb_receiver_finish(r);
}

/* ---- energies, and forces at given coordination numbers ---- */

typedef struct {
  clb_receiver r;
  clb_c6 c6;
  ir_val roots, root, s6, s8, a1, a2;
  int energy, slope; /* sums */
  clb_pull pull;
} pairs;

static void add_pair(void *user, const clb_neighbour *j) {
  pairs *c = user;
  ir_kernel *k = c->r.k;
  const ir_val one = ir_real(k, c->r.t, 1);
  ir_val both[2];
  clb_c6_find(&c->r, &c->c6, c->r.own, j, 2, both);
  const ir_val c6 = both[0], slope = both[1];
  const ir_val pp = ir_mul(k, c->root, ir_load(k, c->roots, j->element, j->mask)), r2 = j->square,
               r4 = ir_mul(k, r2, r2), r6 = ir_mul(k, r4, r2), r0 = ir_fma(k, c->a1, pp, c->a2),
               r02 = ir_mul(k, r0, r0), r06 = ir_mul(k, ir_mul(k, r02, r02), r02),
               by6 = ir_2(k, IR_DIV, one, ir_add(k, r6, r06)),
               by8 = ir_2(k, IR_DIV, one, ir_fma(k, r6, r2, ir_mul(k, r06, r02))),
               e6 = ir_mul(k, c->s6, by6), e8 = ir_mul(k, ir_mul(k, c->s8, ir_mul(k, pp, pp)), by8),
               e = ir_add(k, e6, e8);
  /* -de / d(r^2), twice */
  const ir_val six = ir_mul(k, ir_mul(k, ir_real(k, c->r.t, 6), r4), ir_mul(k, e6, by6)),
               eight = ir_mul(k, ir_mul(k, ir_real(k, c->r.t, 8), r6), ir_mul(k, e8, by8));
  clb_sum_add(&c->r, c->energy, j, ir_mul(k, ir_mul(k, c6, ir_real(k, c->r.t, -0.5)), e));
  clb_sum_add(&c->r, c->slope, j, ir_mul(k, slope, ir_1(k, IR_NEG, e)));
  clb_pull_add(&c->r, &c->pull, j, ir_mul(k, c6, ir_add(k, six, eight)));
}

static void lower_pairs(ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  pairs c;
  clb_receiver *r = &c.r;
  clb_receiver_begin(r, k, "dispersion_pairs", p, s);
  c.roots = ir_buffer(k, r->t, false);
  c.c6 = clb_c6_begin(r);
  ir_val *const damping[] = {&c.s6, &c.s8, &c.a1, &c.a2};
  for (int i = 0; i < 4; i++) *damping[i] = ir_scalar(k, r->t);
  const ir_val slopes = ir_buffer(k, IR_F64, true), sums = ir_buffer(k, IR_F64, true);
  const clb_added energies = clb_added_begin(k), forces = clb_added_begin(k),
                  virials = clb_added_begin(k);
  clb_receiver_start(r);
  c.root = ir_load(k, c.roots, r->element, IR_NONE);
  c.energy = clb_sum_begin(r);
  c.slope = clb_sum_begin(r);
  c.pull = clb_pull_begin(r);
  clb_receiver_walk(r, add_pair, &c);
  ir_val row[CLB_DISPERSION_COLUMNS];
  row[0] = clb_sum_end(r, c.energy);
  clb_pull_end(r, &c.pull, &forces, &virials, row + 1);
  clb_add_to(k, &energies, r->row, 1, row);
  ir_store(k, slopes, r->atom, clb_first_lane(k), clb_sum_end(r, c.slope));
  clb_store_sums(r, sums, 0, CLB_DISPERSION_COLUMNS, row, false);
  clb_receiver_finish(r);
}

/* ---- forces through coordination numbers ---- */

typedef struct {
  clb_receiver r;
  ir_val radii, radius, slopes, slope;
  clb_pull pull;
} chain;

static void add_through(void *user, const clb_neighbour *j) {
  chain *c = user;
  ir_kernel *k = c->r.k;
  const ir_val inverse = ir_2(k, IR_DIV, ir_real(k, c->r.t, 1), ir_1(k, IR_SQRT, j->square)),
               radius = ir_add(k, c->radius, ir_load(k, c->radii, j->element, j->mask)),
               slope = ir_add(k, c->slope, ir_load(k, c->slopes, j->place, j->inside));
  ir_val power;
  const ir_val f = count(&c->r, radius, inverse, &power),
               df = ir_mul(k, ir_mul(k, ir_real(k, c->r.t, -16), radius),
                           ir_mul(k, ir_mul(k, f, f), power)),
               cube = ir_mul(k, inverse, ir_mul(k, inverse, inverse));
  clb_pull_add(&c->r, &c->pull, j, ir_mul(k, ir_mul(k, slope, df), cube));
}

static void lower_chain(ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  chain c;
  clb_receiver *r = &c.r;
  clb_receiver_begin(r, k, "dispersion_chain", p, s);
  c.radii = ir_buffer(k, r->t, false);
  c.slopes = ir_buffer(k, r->t, false);
  const ir_val sums = ir_buffer(k, IR_F64, true);
  const clb_added forces = clb_added_begin(k), virials = clb_added_begin(k);
  clb_receiver_start(r);
  c.radius = ir_load(k, c.radii, r->element, IR_NONE);
  c.slope = ir_load(k, c.slopes, r->own, IR_NONE);
  c.pull = clb_pull_begin(r);
  clb_receiver_walk(r, add_through, &c);
  ir_val virial[6];
  clb_pull_end(r, &c.pull, &forces, &virials, virial);
  clb_store_sums(r, sums, 1, 6, virial, true);
  clb_receiver_finish(r);
}

/* ---- sums ---- */

static void lower_sums(ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  (void)p;
  clb_row_kernel b;
  clb_layer_begin(&b, k, "dispersion_sums", s, CLB_F64);
  const ir_val n = ir_scalar(k, IR_I64), block = ir_scalar(k, IR_I64),
               sums = ir_buffer(k, IR_F64, false), out = ir_buffer(k, IR_F64, true);
  const clb_added energy = clb_added_begin(k), virial = clb_added_begin(k);
  clb_layer_start(&b);
  const ir_val columns = clb_i64(k, CLB_DISPERSION_COLUMNS), begin = ir_mul(k, b.unit, block),
               end = ir_2(k, IR_MIN, ir_add(k, begin, block), n);
  ir_val sum[CLB_DISPERSION_COLUMNS], all[CLB_DISPERSION_COLUMNS];
  for (int i = 0; i < CLB_DISPERSION_COLUMNS; i++) sum[i] = ir_var(k, ir_real(k, IR_F64, 0), false);
  const ir_val first = ir_loop(k, begin, end, clb_i64(k, s->lanes)),
               row = ir_add(k, first, wide(k, ir_lane(k))), mask = ir_2(k, IR_LT, row, end);
  for (int i = 0; i < CLB_DISPERSION_COLUMNS; i++) {
    const ir_val at = ir_add(k, ir_mul(k, row, columns), clb_i64(k, i));
    ir_set(k, sum[i], ir_add(k, ir_get(k, sum[i]), ir_load(k, sums, at, mask)));
  }
  ir_end(k);
  for (int i = 0; i < CLB_DISPERSION_COLUMNS; i++) {
    const ir_val at = ir_add(k, ir_mul(k, b.unit, columns), clb_i64(k, i));
    all[i] = ir_reduce_add(k, ir_get(k, sum[i]));
    ir_store(k, out, at, clb_first_lane(k), all[i]);
  }
  const ir_val square[9] = {all[1], all[6], all[5], all[6], all[2], all[4], all[5], all[4], all[3]};
  ir_if(k, ir_2(k, IR_EQ, b.unit, clb_i64(k, 0)));
  clb_add_to(k, &energy, clb_i64(k, 0), 1, all);
  clb_add_to(k, &virial, clb_i64(k, 0), 9, square);
  ir_end(k);
  clb_layer_finish(&b);
}

/* ---- the kind ---- */

enum { TEAM = 256 }; /* lanes */

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  if (p->dispersion.step < 0 || p->dispersion.step >= CLB_DISPERSION_STEPS)
    return clb_fail(error, CLB_ERROR_INTERNAL, "dispersion: there is no step %d",
                    (int)p->dispersion.step);
  return limits->f64 ? CLB_OK
                     : clb_fail(error, CLB_ERROR_UNSUPPORTED,
                                "dispersion: the device has no double precision");
}

/* Sub-groups that share a receiver's triples: few atoms would not fill a GPU. */
static int team_of(const clb_limits *limits, int lanes) {
  int team = TEAM / lanes;
  while (team > 1 && (team > limits->max_subgroups ||
                      clb_team_bytes(IR_F64, lanes, team, CLB_RECEIVER_SUMS) > limits->local_bytes))
    team /= 2;
  return team;
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const int step = p->dispersion.step;
  const int32_t type = step == CLB_DISPERSION_SUMS ? CLB_F64 : p->arithmetic;
  clb_layer_schedule(limits, type, step != CLB_DISPERSION_ELEMENTS && step != CLB_DISPERSION_SLOPES,
                     s);
  s->layer.wide_vectors = limits->simd;
  if (step == CLB_DISPERSION_TRIPLES && s->subgroups > 1) s->subgroups = team_of(limits, s->lanes);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static void (*const steps[CLB_DISPERSION_STEPS])(ir_kernel *, const clb_problem *,
                                                   const clb_schedule *) = {
      lower_elements,    lower_counts, clb_lower_weights, lower_pairs,
      clb_lower_triples, lower_slopes, lower_chain,       lower_sums};
  steps[p->dispersion.step](k, p, s);
}

static void print(const clb_problem *p, clb_text *out) {
  static const char *const names[] = {"elements", "counts", "weights", "pairs",
                                      "triples",  "slopes", "chain",   "sums"};
  clb_text_add(out, "%s", names[p->dispersion.step]);
}

const clb_kernel_kind clb_kind_dispersion = {
    .name = "dispersion", .check = check, .schedule = schedule, .lower = lower, .print = print};
