/* kernels/dynamics/motion.c - atoms in motion (motion_record.h). Lanes are atoms; a sub-group goes
   through a block of them, so that sums have a fixed order. */
#include "kernels/dynamics/motion_record.h"

#include "kernels/dynamics/noise.h"
#include "kernels/layers/layer.h"

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)p;
  return limits->f64
             ? CLB_OK
             : clb_fail(error, CLB_ERROR_UNSUPPORTED, "motion: the device has no double precision");
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  enum { GPU_PARTS = 256, CPU_PARTS = 32 };
  (void)p;
  clb_layer_schedule(limits, CLB_F64, true, s);
  s->layer.partial_sums = limits->simd ? CPU_PARTS : GPU_PARTS;
  s->layer.wide_vectors = limits->simd;
}

typedef struct {
  ir_val grow, reach;
} drift;

typedef struct {
  clb_row_kernel b;
  ir_kernel *k;
  ir_val n, block, x, v, mass, places;
  bool noisy;
  ir_val seed[2], step[2]; /* i32, the lower half first */
  clb_row_array force;
  ir_val kick, keep, width, what, adds, record, copied, from, count, checked, most;
  ir_val moves;
  drift drift[2];
  ir_val seen[CLB_SEEN]; /* variables */
} motion;

static drift declare_drift(ir_kernel *k) {
  drift d = {.grow = ir_scalar(k, IR_F64)};
  d.reach = ir_scalar(k, IR_F64);
  return d;
}

static void declare(motion *w, ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  w->noisy = p->pass == CLB_MOTION_NOISY;
  clb_layer_begin(&w->b, k, w->noisy ? "motion_noisy" : "motion", s, CLB_F64);
  w->k = k;
  w->n = ir_scalar(k, IR_I64);
  w->block = ir_scalar(k, IR_I64);
  w->x = ir_buffer(k, IR_F64, true);
  w->v = ir_buffer(k, IR_F64, true);
  w->force = clb_layer_array(&w->b, CLB_F64, false);
  w->mass = ir_buffer(k, IR_F64, false);
  w->places = ir_buffer(k, IR_F64, true);
  for (int i = 0; w->noisy && i < 2; i++) w->seed[i] = ir_scalar(k, IR_I32);
  for (int i = 0; w->noisy && i < 2; i++) w->step[i] = ir_scalar(k, IR_I32);
  w->kick = ir_scalar(k, IR_F64);
  w->drift[0] = declare_drift(k);
  w->keep = ir_scalar(k, IR_F64);
  w->width = ir_scalar(k, IR_F64);
  w->drift[1] = declare_drift(k);
  w->what = ir_scalar(k, IR_I32);
  w->adds = ir_scalar(k, IR_I32);
  w->record = ir_buffer(k, IR_F64, true);
  w->copied = ir_buffer(k, IR_F64, false);
  w->from = ir_scalar(k, IR_I64);
  w->count = ir_scalar(k, IR_I32);
  w->checked = ir_scalar(k, IR_I32);
  w->most = ir_scalar(k, IR_F64);
}

/* ---- an atom in each lane ---- */

static void load_three(motion *w, ir_val array, ir_val row, ir_val mask, ir_val *x) {
  const clb_row_array a = {array, clb_i64(w->k, 0), clb_i64(w->k, 3), IR_F64};
  clb_layer_vector(&w->b, &a, row, mask, x);
}

static void store_three(motion *w, ir_val array, ir_val row, ir_val mask, const ir_val *x) {
  ir_kernel *k = w->k;
  const ir_val at = ir_mul(k, row, clb_i64(k, 3));
  if (w->b.s->layer.wide_vectors) ir_store_wide(k, array, at, mask, 3, x);
  for (int i = 0; i < 3 && !w->b.s->layer.wide_vectors; i++)
    ir_store(k, array, ir_add(k, at, clb_i64(k, i)), mask, x[i]);
}

static ir_val square(ir_kernel *k, const ir_val *a) {
  return ir_add(k, ir_add(k, ir_mul(k, a[0], a[0]), ir_mul(k, a[1], a[1])), ir_mul(k, a[2], a[2]));
}

static void move_along(ir_kernel *k, drift d, ir_val *x, ir_val *v) {
  for (int i = 0; i < 3; i++) {
    x[i] = ir_add(k, ir_mul(k, d.grow, x[i]), ir_mul(k, d.reach, v[i]));
    v[i] = ir_2(k, IR_DIV, v[i], d.grow);
  }
}

/* Friction and noise; returns how much less m v^2 is. */
static ir_val thermalise(motion *w, ir_val row, ir_val mass, ir_val *v) {
  ir_kernel *k = w->k;
  const ir_val before = square(k, v);
  for (int i = 0; i < 3; i++) v[i] = ir_mul(k, w->keep, v[i]);
  if (w->noisy) {
    const ir_val width = ir_1(k, IR_SQRT, ir_2(k, IR_DIV, w->width, mass)),
                 counter[] = {ir_cast(k, IR_I32, row), clb_i32(k, 0), w->step[0], w->step[1]};
    ir_val word[4], normal[3];
    clb_philox(k, counter, w->seed, word);
    clb_normal_triple(k, word, normal);
    for (int i = 0; i < 3; i++) v[i] = ir_add(k, v[i], ir_mul(k, width, normal[i]));
  }
  return ir_mul(k, mass, ir_sub(k, before, square(k, v)));
}

/* The square of the way from the atom's place. */
static ir_val way_from_place(motion *w, ir_val row, ir_val mask, const ir_val *before,
                             const ir_val *x) {
  ir_kernel *k = w->k;
  const ir_val set = ir_2(k, IR_EQ, w->what, clb_i32(k, CLB_PLACES_SET)),
               compared = ir_2(k, IR_EQ, w->what, clb_i32(k, CLB_PLACES_COMPARED)),
               read = ir_2(k, IR_AND, mask, compared);
  ir_val place[3], way[3];
  load_three(w, w->places, row, read, place);
  store_three(w, w->places, row, ir_2(k, IR_AND, mask, set), before);
  for (int i = 0; i < 3; i++) way[i] = ir_sub(k, x[i], ir_select(k, set, before[i], place[i]));
  return ir_select(k, ir_2(k, IR_OR, set, compared), square(k, way), ir_real(k, IR_F64, 0));
}

static void see_sum(motion *w, int what, ir_val value) {
  ir_set(w->k, w->seen[what], ir_add(w->k, ir_get(w->k, w->seen[what]), value));
}

/* The first of the largest, and its atom. */
static void see_largest(motion *w, int what, ir_val value, ir_val atom) {
  ir_kernel *k = w->k;
  const ir_val most = ir_get(k, w->seen[what]), more = ir_2(k, IR_LT, most, value);
  ir_set(k, w->seen[what], ir_select(k, more, value, most));
  if (atom != IR_NONE)
    ir_set(k, w->seen[what + 1], ir_select(k, more, atom, ir_get(k, w->seen[what + 1])));
}

/* Whether atoms move. */
static ir_val find_moves(const motion *w) {
  ir_kernel *k = w->k;
  const ir_val free = ir_2(k, IR_EQ, w->checked, clb_i32(k, 0)),
               number = ir_load(k, w->copied, w->from, ir_1(k, IR_NOT, free)),
               good = ir_2(k, IR_AND, ir_2(k, IR_LE, ir_real(k, IR_F64, 0), number),
                           ir_2(k, IR_LE, number, w->most));
  return ir_2(k, IR_OR, free, good);
}

static void move_atoms(motion *w) {
  ir_kernel *k = w->k;
  const ir_val lanes = clb_i64(k, w->b.s->lanes), zero = ir_real(k, IR_F64, 0),
               begin = ir_mul(k, w->b.unit, w->block),
               end = ir_2(k, IR_MIN, ir_add(k, begin, w->block), w->n),
               first = ir_loop(k, begin, end, lanes),
               row = ir_add(k, first, ir_cast(k, IR_I64, ir_lane(k))),
               left = ir_cast(k, IR_I32, ir_2(k, IR_MIN, ir_sub(k, end, first), lanes)),
               mask = ir_2(k, IR_LT, ir_lane(k), left);
  ir_val x[3], v[3], f[3], before[3];
  load_three(w, w->x, row, mask, x);
  load_three(w, w->v, row, mask, v);
  clb_layer_vector(&w->b, &w->force, row, mask, f);
  const ir_val mass = ir_select(k, mask, ir_load(k, w->mass, row, mask), ir_real(k, IR_F64, 1)),
               by = ir_2(k, IR_DIV, w->kick, mass);
  for (int i = 0; i < 3; i++) before[i] = x[i], v[i] = ir_add(k, v[i], ir_mul(k, by, f[i]));
  move_along(k, w->drift[0], x, v);
  const ir_val heat = thermalise(w, row, mass, v);
  move_along(k, w->drift[1], x, v);
  const ir_val way = way_from_place(w, row, mask, before, x);
  const ir_val moves = ir_2(k, IR_AND, mask, w->moves);
  store_three(w, w->x, row, moves, x);
  store_three(w, w->v, row, moves, v);
  const ir_val speed = ir_select(k, mask, square(k, v), zero), atom = ir_cast(k, IR_F64, row);
  see_sum(w, CLB_SEEN_MOTION, ir_mul(k, mass, speed));
  see_sum(w, CLB_SEEN_HEAT, ir_select(k, moves, heat, zero));
  see_largest(w, CLB_SEEN_SPEED, speed, atom);
  see_largest(w, CLB_SEEN_FORCE, square(k, f), atom);
  see_largest(w, CLB_SEEN_WAY, ir_select(k, mask, way, zero), IR_NONE);
  ir_end(k);
}

/* ---- what a sub-group has seen ---- */

/* Over the lanes: of equal ones the first atom. */
static void reduce_largest(motion *w, int what, bool atoms, ir_val *most, ir_val *atom) {
  ir_kernel *k = w->k;
  *most = ir_get(k, w->seen[what]);
  if (atoms) *atom = ir_get(k, w->seen[what + 1]);
  for (int d = w->b.s->lanes / 2; d; d /= 2) {
    const ir_val other = ir_shuffle_xor(k, *most, d);
    ir_val more = ir_2(k, IR_LT, *most, other);
    if (atoms) {
      const ir_val its = ir_shuffle_xor(k, *atom, d),
                   same = ir_2(k, IR_AND, ir_2(k, IR_EQ, *most, other), ir_2(k, IR_LT, its, *atom));
      *atom = ir_select(k, ir_2(k, IR_OR, more, same), its, *atom);
    }
    *most = ir_select(k, more, other, *most);
  }
}

static void store_seen(motion *w) {
  ir_kernel *k = w->k;
  const ir_val at =
      ir_add(k, ir_mul(k, w->b.unit, clb_i64(k, CLB_SEEN)), clb_i64(k, CLB_RECORD_COPIED));
  ir_val all[CLB_SEEN];
  for (int i = 0; i <= CLB_SEEN_HEAT; i++) all[i] = ir_reduce_add(k, ir_get(k, w->seen[i]));
  reduce_largest(w, CLB_SEEN_SPEED, true, &all[CLB_SEEN_SPEED], &all[CLB_SEEN_FASTEST]);
  reduce_largest(w, CLB_SEEN_FORCE, true, &all[CLB_SEEN_FORCE], &all[CLB_SEEN_STRONGEST]);
  reduce_largest(w, CLB_SEEN_WAY, false, &all[CLB_SEEN_WAY], NULL);
  const ir_val lane = clb_first_lane(k), heat = ir_add(k, at, clb_i64(k, CLB_SEEN_HEAT)),
               last = clb_wanted_lanes(k, w->adds, clb_i32(k, 1));
  all[CLB_SEEN_HEAT] = ir_add(k, all[CLB_SEEN_HEAT], ir_load(k, w->record, heat, last));
  for (int i = 0; i < CLB_SEEN; i++)
    ir_store(k, w->record, ir_add(k, at, clb_i64(k, i)), lane, all[i]);
}

static void copy_numbers(motion *w) {
  ir_kernel *k = w->k;
  ir_if(k, ir_2(k, IR_EQ, w->b.unit, clb_i64(k, 0)));
  const ir_val first = ir_loop(k, clb_i32(k, 0), w->count, clb_i32(k, w->b.s->lanes)),
               place = ir_add(k, first, ir_lane(k)), mask = ir_2(k, IR_LT, place, w->count),
               at = ir_cast(k, IR_I64, place);
  ir_store(k, w->record, at, mask, ir_load(k, w->copied, ir_add(k, w->from, at), mask));
  ir_end(k);
  ir_end(k);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  motion w;
  declare(&w, k, p, s);
  clb_layer_start(&w.b);
  w.moves = find_moves(&w);
  for (int i = 0; i < CLB_SEEN; i++) w.seen[i] = ir_var(k, ir_real(k, IR_F64, 0), false);
  move_atoms(&w);
  store_seen(&w);
  copy_numbers(&w);
  clb_layer_finish(&w.b);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, p->pass == CLB_MOTION_NOISY ? "with noise" : "without noise");
}

const clb_kernel_kind clb_kind_motion = {.name = "motion",
                                         .check = check,
                                         .schedule = schedule,
                                         .lower = lower,
                                         .print = print,
                                         .passes = 2};
