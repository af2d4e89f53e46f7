/* kernels/graph/cell_search.c - finding the pairs of atoms within a radius (cell_search.h). */
#include "kernels/graph/cell_walk.h"

/* Of a distance that the device takes. */
#define NEAREST_SQUARED 1e-6

static ir_val real(ir_kernel *k, double x) { return ir_real(k, IR_F64, x); }
static ir_val wide(ir_kernel *k, ir_val a) { return ir_cast(k, IR_I64, a); }
static ir_val less(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_LT, a, b); }
static ir_val both(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_AND, a, b); }
static ir_val not(ir_kernel * k, ir_val a) { return ir_1(k, IR_NOT, a); }
static ir_val same(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_EQ, a, b); }

typedef clb_cell_finder finder;

static void begin(finder *w, ir_kernel *k, const char *name, const clb_problem *p,
                  const clb_schedule *s) {
  clb_cell_begin(w, k, name, s, CLB_F64, p->cell_list.atoms == CLB_CELL_MANY);
}

static ir_val dot(ir_kernel *k, const ir_val *a, const ir_val *b) {
  return ir_add(k, ir_add(k, ir_mul(k, a[0], b[0]), ir_mul(k, a[1], b[1])), ir_mul(k, a[2], b[2]));
}

/* ---- a lane is an atom ---- */

static void lower_slots(ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  finder w;
  begin(&w, k, "cell_slots", p, s);
  const ir_val out = ir_buffer(k, IR_I32, true);
  clb_layer_start(&w.b);
  const ir_val atom = clb_cell_own_place(&w), mask = less(k, atom, w.n);
  clb_cell_load_grid(&w, atom, mask);
  const clb_cell_place at = clb_cell_locate(&w, atom, mask);
  ir_store(k, out, atom, mask, clb_cell_slot(&w, at.bin));
  clb_layer_finish(&w.b);
}

static void lower_sorted(ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  finder w;
  begin(&w, k, "cell_sorted", p, s);
  const ir_val atoms = ir_buffer(k, IR_I32, false), x = ir_buffer(k, IR_F64, true),
               wrap = ir_buffer(k, IR_I32, true), counts = ir_scalar(k, IR_I64),
               count = ir_buffer(k, IR_I32, true);
  clb_layer_start(&w.b);
  const ir_val place = clb_cell_own_place(&w), mask = less(k, place, w.n),
               atom = ir_load(k, atoms, place, mask);
  clb_cell_load_grid(&w, wide(k, atom), mask);
  const clb_cell_place at = clb_cell_locate(&w, atom, mask);
  for (int d = 0; d < 3; d++) {
    const ir_val to = ir_add(k, ir_mul(k, w.n, clb_i64(k, d)), place);
    ir_store(k, x, to, mask, at.x[d]);
    ir_store(k, wrap, to, mask, at.wrap[d]);
  }
  ir_store(k, count, place, both(k, not(k, mask), less(k, place, counts)), clb_i32(k, 0));
  clb_layer_finish(&w.b);
}

/* ---- a sub-group is a receiver ---- */

typedef struct {
  finder w;
  bool fills, ghosts, pairs;                                    /* ghosts: senders have rows */
  ir_val atoms, x, wrap, starts;                                /* in both steps */
  ir_val counts;                                                /* COUNT */
  ir_val before, base, senders, receivers, shifts, total, room; /* FILL */
  ir_val rows, n_local, senders_as_atoms;                       /* with ghosts */
  ir_val keys, keyed, rest;                                     /* FILL without ghosts */
  ir_val own, receiver, squared, lane;                          /* own: the receiver's place */
  ir_val columns, column;                                       /* of one system: i64 */
  clb_cell_place at;                                            /* of the receiver */
  ir_val found, refused, looked, next; /* variables; found, refused: by lane */
} search;

/* A listed pair's distance, squared. */
static ir_val distance_of_pair(search *f, ir_val place, ir_val mask) {
  ir_kernel *k = f->w.k;
  const ir_val row = ir_mul(k, wide(k, ir_load(k, f->atoms, place, mask)), clb_i64(k, 3));
  ir_val v[3];
  for (int d = 0; d < 3; d++) {
    const ir_val x = ir_load(k, f->w.positions, ir_add(k, row, clb_i64(k, d)), mask);
    v[d] = ir_sub(k, x, f->at.x[d]);
  }
  return dot(k, v, v);
}

/* The shift of an edge in one number, and whether it fits (clb_edge_shift). */
static ir_val shift_of(search *f, ir_val place, ir_val mask, const ir_val *image, ir_val *fits) {
  ir_kernel *k = f->w.k;
  const ir_val size = clb_i32(k, CLB_EDGE_SHIFTS);
  ir_val packed = IR_NONE;
  for (int d = 2; d >= 0; d--) {
    const ir_val from = ir_add(k, ir_mul(k, f->w.n, clb_i64(k, d)), place),
                 wrap = ir_load(k, f->wrap, from, mask);
    const ir_val shift = ir_add(k, ir_add(k, ir_sub(k, image[d], wrap), f->at.wrap[d]),
                                clb_i32(k, CLB_EDGE_SHIFTS / 2));
    const ir_val good = both(k, ir_2(k, IR_LE, clb_i32(k, 0), shift), less(k, shift, size));
    *fits = d == 2 ? good : both(k, *fits, good);
    packed = d == 2 ? shift : ir_add(k, ir_mul(k, packed, size), shift);
  }
  return packed;
}

/* With ghosts: where the features of the atom in a place are. */
static ir_val row_of(search *f, ir_val place, ir_val mask) {
  ir_kernel *k = f->w.k;
  return f->ghosts ? ir_load(k, f->rows, wide(k, ir_load(k, f->atoms, place, mask)), mask)
                   : IR_NONE;
}

/* Remembers what the lanes found; bad: the host must see to it. */
static void count_edges(search *f, ir_val near, ir_val bad) {
  ir_kernel *k = f->w.k;
  const ir_val one = clb_i32(k, 1);
  ir_set(k, f->found, ir_add(k, ir_get(k, f->found), ir_select(k, near, one, clb_i32(k, 0))));
  ir_set(k, f->refused, ir_select(k, bad, one, ir_get(k, f->refused)));
}

/* Writes the edges of the lanes that found one, in the lanes' order. */
static void write_edges(search *f, ir_val place, ir_val near, ir_val shift, ir_val row) {
  ir_kernel *k = f->w.k;
  const int lanes = f->w.b.s->lanes;
  const ir_val zero = clb_i32(k, 0), own = ir_select(k, near, clb_i32(k, 1), zero);
  ir_val sum = own;
  for (int d = 1; d < lanes; d *= 2) {
    const ir_val there = ir_2(k, IR_LE, clb_i32(k, d), f->lane),
                 from =
                     ir_2(k, IR_MOD, ir_add(k, f->lane, clb_i32(k, lanes - d)), clb_i32(k, lanes));
    sum = ir_add(k, sum, ir_select(k, there, ir_shuffle(k, sum, from), zero));
  }
  const ir_val to = ir_add(k, ir_get(k, f->next), wide(k, ir_sub(k, sum, own)));
  const ir_val atom = ir_load(k, f->atoms, place, near);
  ir_store(k, f->senders, to, near, f->ghosts ? row : atom);
  if (f->ghosts) ir_store(k, f->senders_as_atoms, to, near, atom);
  ir_store(k, f->receivers, to, near, f->receiver);
  ir_store(k, f->shifts, to, near, shift);
  if (!f->ghosts) ir_store(k, f->keys, to, both(k, near, f->keyed), atom);
  const ir_val all = lanes > 1 ? ir_shuffle(k, sum, clb_i32(k, lanes - 1)) : sum;
  ir_set(k, f->next, ir_add(k, ir_get(k, f->next), wide(k, all)));
}

/* The last place that the receiver looks at; it refuses to look at more than it may. */
static ir_val end_of(search *f, ir_val first, ir_val end) {
  ir_kernel *k = f->w.k;
  const ir_val looked = ir_add(k, ir_get(k, f->looked), ir_sub(k, end, first)),
               most = clb_i32(k, CLB_CELL_LOOKED_AT), few = ir_2(k, IR_LE, looked, most);
  ir_set(k, f->looked, ir_select(k, few, looked, ir_add(k, most, clb_i32(k, 1))));
  return ir_select(k, few, end, first);
}

/* Goes through the atoms in places [first, end) in an image of the cell. */
static void look_at(void *user, ir_val first, ir_val end, const ir_val *image) {
  search *f = user;
  ir_kernel *k = f->w.k;
  ir_val by[3], v[3];
  if (!f->fills) end = end_of(f, first, end);
  clb_cell_offset(&f->w, image, by);
  const ir_val zero = clb_i32(k, 0),
               here = both(k, both(k, same(k, image[0], zero), same(k, image[1], zero)),
                           same(k, image[2], zero));
  const ir_val lot = ir_loop(k, first, end, clb_i32(k, f->w.b.s->lanes)),
               place = ir_add(k, lot, f->lane), inside = less(k, place, end), at = wide(k, place);
  clb_cell_vector(&f->w, f->x, at, inside, f->at.x, by, v);
  const ir_val square = dot(k, v, v), self = both(k, here, same(k, place, f->own)),
               close = both(k, both(k, inside, not(k, self)), less(k, square, f->squared));
  const ir_val row = row_of(f, at, close),
               near = f->ghosts ? both(k, close, not(k, same(k, row, clb_i32(k, CLB_CELL_ABSENT))))
                                : close;
  ir_val fits = IR_NONE;
  const ir_val shift = shift_of(f, at, inside, image, &fits);
  if (f->fills) write_edges(f, at, near, shift, row);
  else {
    ir_val bad = ir_2(k, IR_OR, not(k, fits), less(k, square, real(k, NEAREST_SQUARED)));
    if (f->ghosts) bad = ir_2(k, IR_OR, bad, same(k, row, clb_i32(k, CLB_CELL_NO_ROW)));
    count_edges(f, near, both(k, near, bad));
  }
  ir_end(k);
}

/* Goes through the pairs that are listed for the receiver. */
static void look_at_pairs(search *f) {
  ir_kernel *k = f->w.k;
  const ir_val first = ir_load(k, f->starts, f->w.b.unit, IR_NONE),
               next = ir_load(k, f->starts, ir_add(k, f->w.b.unit, clb_i64(k, 1)), IR_NONE),
               end = f->fills ? next : end_of(f, first, next),
               lot = ir_loop(k, first, end, clb_i32(k, f->w.b.s->lanes)),
               place = ir_add(k, lot, f->lane), inside = less(k, place, end), at = wide(k, place);
  const ir_val square = distance_of_pair(f, at, inside),
               near = both(k, inside, less(k, square, f->squared));
  if (f->fills) write_edges(f, at, near, clb_i32(k, CLB_EDGE_HOME), row_of(f, at, near));
  else {
    const ir_val far = less(k, square, real(k, 1e300)),
                 good = both(k, far, ir_2(k, IR_LE, real(k, NEAREST_SQUARED), square));
    count_edges(f, near, both(k, inside, not(k, good)));
  }
  ir_end(k);
}

/* Which count is the unit's. */
static ir_val count_of(const search *f) {
  ir_kernel *k = f->w.k;
  const ir_val receiver = wide(k, f->receiver);
  return !f->ghosts ? ir_add(k, ir_mul(k, receiver, f->columns), f->column) : receiver;
}

static void store_count(search *f) {
  ir_kernel *k = f->w.k;
  const ir_val many = clb_i32(k, 2 * CLB_CELL_LOOKED_AT), zero = clb_i32(k, 0);
  const ir_val own = ir_add(k, ir_get(k, f->found), ir_mul(k, ir_get(k, f->refused), many)),
               sum = clb_cell_sum_of_lanes(&f->w, own),
               few = ir_2(k, IR_LE, ir_get(k, f->looked), clb_i32(k, CLB_CELL_LOOKED_AT)),
               fit = both(k, few, ir_2(k, IR_LE, sum, clb_i32(k, CLB_CELL_MAX_NEIGHBOURS))),
               good = f->pairs ? fit : both(k, fit, f->at.good),
               to = f->pairs ? f->w.b.unit : count_of(f);
  ir_store(k, f->counts, ir_add(k, to, wide(k, f->lane)),
           less(k, f->lane, ir_add(k, zero, clb_i32(k, 1))),
           ir_select(k, good, sum, clb_i32(k, CLB_CELL_REFUSED)));
}

/* Whether the receiver is a local atom that is there. */
static ir_val receives(search *f) {
  ir_kernel *k = f->w.k;
  const ir_val row = ir_load(k, f->rows, wide(k, f->receiver), IR_NONE);
  return both(k, less(k, wide(k, f->receiver), f->n_local), ir_2(k, IR_LE, clb_i32(k, 0), row));
}

static void take_buffers(search *f) {
  ir_kernel *k = f->w.k;
  f->atoms = ir_buffer(k, IR_I32, false);
  if (!f->pairs) {
    f->x = ir_buffer(k, IR_F64, false);
    f->wrap = ir_buffer(k, IR_I32, false);
  }
  f->starts = ir_buffer(k, IR_I32, false);
  if (f->fills) {
    f->before = ir_buffer(k, IR_I32, false);
    f->base = ir_buffer(k, IR_I32, false);
    f->senders = ir_buffer(k, IR_I32, true);
    f->receivers = ir_buffer(k, IR_I32, true);
    f->shifts = ir_buffer(k, IR_I32, true);
  } else f->counts = ir_buffer(k, IR_I32, true);
  if (!f->ghosts) f->columns = ir_scalar(k, IR_I64);
  if (f->ghosts && (f->fills || !f->pairs)) f->rows = ir_buffer(k, IR_I32, false);
  if (f->ghosts && !f->pairs) f->n_local = ir_scalar(k, IR_I64);
  if (f->ghosts && f->fills) f->senders_as_atoms = ir_buffer(k, IR_I32, true);
  if (!f->fills) return;
  if (!f->ghosts) {
    f->keys = ir_buffer(k, IR_I32, true);
    f->keyed = not(k, same(k, ir_scalar(k, IR_I32), clb_i32(k, 0)));
  }
  f->total = ir_buffer(k, IR_I32, false);
  f->room = ir_scalar(k, IR_I64);
}

/* How many of the null edges are before those of an atom (i64). */
static ir_val nulls_before(const search *f, ir_val atom) {
  return clb_cell_nulls_before(&f->w, f->rest, atom);
}

/* Where the receiver's edges begin; *fits: there is room for all that were found. */
static void begin_row(search *f, ir_val *fits) {
  ir_kernel *k = f->w.k;
  const ir_val own = count_of(f), row = ir_2(k, IR_DIV, own, clb_i64(k, CLB_CELL_ROW)),
               before = wide(k, ir_add(k, ir_load(k, f->before, own, IR_NONE),
                                       ir_load(k, f->base, row, IR_NONE))),
               zero = clb_i64(k, 0), all = clb_cell_total(k, f->total, f->room, fits);
  ir_val first = ir_select(k, *fits, before, zero);
  if (!f->ghosts) {
    f->rest = ir_sub(k, f->room, ir_select(k, *fits, all, zero));
    first = ir_add(k, first, nulls_before(f, wide(k, f->receiver)));
  }
  f->next = ir_var(k, first, true);
}

/* Of the atom to itself, in its cell, which senders do not see: by the unit of its last edges. */
static void write_nulls(search *f) {
  ir_kernel *k = f->w.k;
  ir_if(k, same(k, ir_add(k, f->column, clb_i64(k, 1)), f->columns));
  const ir_val own = wide(k, f->receiver), first = ir_get(k, f->next),
               n = ir_sub(k, nulls_before(f, ir_add(k, own, clb_i64(k, 1))), nulls_before(f, own)),
               end = ir_add(k, first, n), lot = ir_loop(k, first, end, clb_i64(k, f->w.b.s->lanes)),
               to = ir_add(k, lot, wide(k, f->lane)), mask = less(k, to, end);
  ir_store(k, f->senders, to, mask, f->receiver);
  ir_store(k, f->receivers, to, mask, f->receiver);
  ir_store(k, f->shifts, to, mask, clb_i32(k, CLB_EDGE_HOME));
  ir_store(k, f->keys, to, both(k, mask, f->keyed), ir_cast(k, IR_I32, f->w.n));
  ir_end(k);
  ir_end(k);
}

/* The receiver, and where it is. Counts beyond the last atom's are those of no pairs of it. */
static void find_receiver(search *f) {
  ir_kernel *k = f->w.k;
  if (!f->pairs) {
    ir_val place = f->w.b.unit;
    if (!f->ghosts) {
      place = ir_2(k, IR_DIV, place, f->columns);
      f->column = ir_sub(k, f->w.b.unit, ir_mul(k, place, f->columns));
    }
    f->own = ir_cast(k, IR_I32, place);
    f->receiver = ir_load(k, f->atoms, place, IR_NONE);
    clb_cell_load_grid(&f->w, wide(k, f->receiver), IR_NONE);
    f->at = clb_cell_locate(&f->w, f->receiver, IR_NONE);
    f->squared = clb_cell_number(&f->w, CLB_CELL_SQUARED, 0);
    return;
  }
  const ir_val atom = ir_2(k, IR_MIN, f->w.b.unit, ir_sub(k, f->w.n, clb_i64(k, 1))),
               row = ir_mul(k, atom, clb_i64(k, 3));
  f->receiver = ir_cast(k, IR_I32, atom);
  for (int d = 0; d < 3; d++)
    f->at.x[d] = ir_load(k, f->w.positions, ir_add(k, row, clb_i64(k, d)), IR_NONE);
  f->squared = ir_load(k, f->w.grids, clb_i64(k, CLB_CELL_SQUARED), IR_NONE);
}

static void lower_search(ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  const bool fills = p->cell_list.step == CLB_CELL_FILL,
             pairs = p->cell_list.atoms == CLB_CELL_PAIRS,
             ghosts = pairs || p->cell_list.atoms == CLB_CELL_GHOSTS;
  search f = {.fills = fills, .ghosts = ghosts, .pairs = pairs};
  begin(&f.w, k, fills ? "cell_fill" : "cell_count", p, s);
  take_buffers(&f);
  clb_layer_start(&f.w.b);
  f.lane = s->lanes > 1 ? ir_lane(k) : clb_i32(k, 0);
  find_receiver(&f);
  if (fills) {
    ir_val fits;
    begin_row(&f, &fits);
    ir_if(k, fits);
  } else {
    f.found = ir_var(k, clb_i32(k, 0), false);
    f.refused = ir_var(k, clb_i32(k, 0), false);
    f.looked = ir_var(k, clb_i32(k, 0), true);
  }
  if (pairs) look_at_pairs(&f);
  else {
    if (ghosts) ir_if(k, receives(&f));
    const ir_val *reach = f.w.whole + CLB_CELL_REACH;
    ir_val only = IR_NONE;
    if (!ghosts)
      only = ir_select(k, same(k, f.columns, clb_i64(k, 1)), clb_i32(k, -1),
                       ir_cast(k, IR_I32, f.column));
    clb_cell_walk(&f.w, &f.at, reach, IR_NONE, only, f.starts, look_at, &f);
    if (ghosts) ir_end(k);
  }
  if (fills) ir_end(k);
  else store_count(&f);
  if (fills && !ghosts) write_nulls(&f);
  clb_layer_finish(&f.w.b);
}

/* ---- the kind ---- */

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  const int first = p->cell_list.atoms == CLB_CELL_PAIRS ? CLB_CELL_COUNT : CLB_CELL_SLOTS;
  if (p->cell_list.step < first || p->cell_list.step >= CLB_CELL_STEPS)
    return clb_fail(error, CLB_ERROR_INTERNAL, "cell_list: there is no step %d",
                    (int)p->cell_list.step);
  return limits->f64 ? CLB_OK
                     : clb_fail(error, CLB_ERROR_UNSUPPORTED,
                                "cell_list: the device has no double precision");
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const int step = p->cell_list.step;
  clb_layer_schedule(limits, CLB_F64, step >= CLB_CELL_COUNT, s);
  /* Where an edge goes depends on those before it: a CPU is faster without sums over lanes. */
  if (limits->simd && step == CLB_CELL_FILL) s->lanes = 1;
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  switch ((clb_cell_list_step)p->cell_list.step) {
    case CLB_CELL_SLOTS: lower_slots(k, p, s); break;
    case CLB_CELL_SORTED: lower_sorted(k, p, s); break;
    case CLB_CELL_TOTAL: clb_cell_lower_total(k, p, s); break;
    case CLB_CELL_RANKED: clb_cell_lower_ranked(k, p, s); break;
    case CLB_CELL_ENDS: clb_cell_lower_ends(k, p, s); break;
    default: lower_search(k, p, s);
  }
}

static void print(const clb_problem *p, clb_text *out) {
  static const char *const names[] = {"slots", "sorted", "count", "total",
                                      "fill",  "ranked", "ends"};
  static const char *const of[] = {"", " of many", " with ghosts", " of pairs"};
  clb_text_add(out, "%s%s", names[p->cell_list.step], of[p->cell_list.atoms]);
}

const clb_kernel_kind clb_kind_cell_list = {
    .name = "cell_list", .check = check, .schedule = schedule, .lower = lower, .print = print};
