/* kernels/graph/cell_walk.c - where atoms are in grids, and those around them (cell_walk.h). */
#include "kernels/graph/cell_walk.h"

static ir_val real(ir_kernel *k, double x) { return ir_real(k, IR_F64, x); }
static ir_val wide(ir_kernel *k, ir_val a) { return ir_cast(k, IR_I64, a); }
static ir_val less(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_LT, a, b); }
static ir_val both(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_AND, a, b); }
static ir_val same(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_EQ, a, b); }

typedef clb_cell_finder finder;

static ir_val number(const finder *w, int what, int d) { return clb_cell_number(w, what, d); }
static ir_val whole(const finder *w, int what, int d) { return clb_cell_whole(w, what, d); }

void clb_cell_begin(finder *w, ir_kernel *k, const char *name, const clb_schedule *s,
                    int32_t arithmetic, bool many) {
  clb_layer_begin(&w->b, k, name, s, arithmetic);
  w->k = k;
  w->n = ir_scalar(k, IR_I64);
  w->positions = ir_buffer(k, IR_F64, false);
  w->grids = ir_buffer(k, IR_F64, false);
  w->system = many ? ir_buffer(k, IR_I32, false) : IR_NONE;
}

void clb_cell_load_grid(finder *w, ir_val atom, ir_val mask) {
  ir_kernel *k = w->k;
  ir_val row = clb_i64(k, 0);
  if (w->system != IR_NONE) {
    ir_val system = ir_load(k, w->system, atom, mask);
    if (mask != IR_NONE) system = ir_select(k, mask, system, clb_i32(k, 0));
    row = ir_mul(k, wide(k, system), clb_i64(k, CLB_CELL_NUMBERS));
  }
  for (int i = 0; i < CLB_CELL_NUMBERS; i++) {
    w->real[i] = ir_load(k, w->grids, ir_add(k, row, clb_i64(k, i)), IR_NONE);
    if (i >= CLB_CELL_BINS && i < CLB_CELL_SQUARED) w->whole[i] = ir_cast(k, IR_I32, w->real[i]);
  }
}

static ir_val dot(ir_kernel *k, const ir_val *a, const ir_val *b) {
  return ir_add(k, ir_add(k, ir_mul(k, a[0], b[0]), ir_mul(k, a[1], b[1])), ir_mul(k, a[2], b[2]));
}

/* ---- where an atom is ---- */

clb_cell_place clb_cell_locate(const finder *w, ir_val atom, ir_val mask) {
  ir_kernel *k = w->k;
  const ir_val zero = real(k, 0), row = ir_mul(k, wide(k, atom), clb_i64(k, 3));
  ir_val at[3], turns[3];
  clb_cell_place s = {.good = IR_NONE};
  for (int i = 0; i < 3; i++)
    s.x[i] = at[i] = ir_load(k, w->positions, ir_add(k, row, clb_i64(k, i)), mask);
  for (int d = 0; d < 3; d++) {
    ir_val reciprocal[3];
    for (int i = 0; i < 3; i++) reciprocal[i] = number(w, CLB_CELL_RECIPROCAL, 3 * d + i);
    const ir_val periodic = less(k, zero, number(w, CLB_CELL_PERIODIC, d)),
                 far = ir_select(k, periodic, real(k, 0x1p29), real(k, 1e300));
    ir_val f = dot(k, at, reciprocal), fits = less(k, ir_1(k, IR_ABS, f), far);
    s.good = d ? both(k, s.good, fits) : fits;
    f = ir_select(k, fits, f, zero);
    const ir_val whole_turns = ir_cast(k, IR_I32, ir_select(k, periodic, f, zero));
    ir_val down = ir_cast(k, IR_F64, whole_turns);
    down = ir_select(k, both(k, periodic, less(k, f, down)), ir_sub(k, down, real(k, 1)), down);
    turns[d] = down;
    s.wrap[d] = ir_cast(k, IR_I32, down);
    const ir_val last = ir_sub(k, number(w, CLB_CELL_BINS, d), real(k, 1));
    ir_val bin = ir_mul(k, ir_sub(k, ir_sub(k, f, down), number(w, CLB_CELL_LOW, d)),
                        number(w, CLB_CELL_PER_UNIT, d));
    bin = ir_2(k, IR_MIN, ir_2(k, IR_MAX, bin, zero), last);
    s.bin[d] = ir_cast(k, IR_I32, bin);
  }
  for (int d = 0; d < 3; d++)
    for (int i = 0; i < 3; i++)
      s.x[i] = ir_sub(k, s.x[i],
                      ir_select(k, same(k, turns[d], zero), zero,
                                ir_mul(k, turns[d], number(w, CLB_CELL_CELL, 3 * d + i))));
  return s;
}

/* How often the slots of direction d repeat below a bin, which is not negative. */
static ir_val turn_of(const finder *w, int d, ir_val bin) {
  ir_kernel *k = w->k;
  const ir_val offset = whole(w, CLB_CELL_TURNS, d), n = whole(w, CLB_CELL_SLOTS_OF, d);
  return ir_sub(k, ir_2(k, IR_DIV, ir_add(k, bin, ir_mul(k, offset, n)), n), offset);
}

/* The image of the cell in which that repetition lies. */
static ir_val image_of(const finder *w, int d, ir_val turn) {
  ir_kernel *k = w->k;
  const ir_val offset = whole(w, CLB_CELL_IMAGES, d), folds = whole(w, CLB_CELL_FOLDS, d);
  const ir_val image =
      ir_sub(k, ir_2(k, IR_DIV, ir_add(k, turn, ir_mul(k, offset, folds)), folds), offset);
  return ir_select(k, same(k, whole(w, CLB_CELL_PERIODIC, d), clb_i32(k, 0)), clb_i32(k, 0), image);
}

ir_val clb_cell_slot_in(const finder *w, int d, ir_val bin, ir_val turn) {
  return ir_sub(w->k, bin, ir_mul(w->k, turn, whole(w, CLB_CELL_SLOTS_OF, d)));
}

ir_val clb_cell_slot(const finder *w, const ir_val bin[3]) {
  ir_kernel *k = w->k;
  ir_val slot = IR_NONE;
  for (int d = 0; d < 3; d++) {
    const ir_val own = clb_cell_slot_in(w, d, bin[d], turn_of(w, d, bin[d]));
    slot = d ? ir_add(k, ir_mul(k, slot, whole(w, CLB_CELL_SLOTS_OF, d)), own) : own;
  }
  return w->system == IR_NONE ? slot : ir_add(k, slot, whole(w, CLB_CELL_FIRST_SLOT, 0));
}

ir_val clb_cell_own_place(const finder *w) {
  ir_kernel *k = w->k;
  return ir_add(k, ir_mul(k, w->b.unit, clb_i64(k, w->b.s->lanes)), wide(k, ir_lane(k)));
}

/* ---- around an atom ---- */

typedef struct {
  const finder *w;
  const clb_cell_place *at;
  const ir_val *reach;
  ir_val starts;
  clb_cell_visit visit;
  void *user;
} walk;

/* The range of bins of direction 2, [low, high] around the own one. */
typedef struct {
  ir_val low, high, there; /* there: whether there is one */
} range;

/* Slots that are adjacent in direction 2 and in one image are gone through together. */
static void walk_along(const walk *f, range bins, ir_val slot, ir_val *image) {
  ir_kernel *k = f->w->k;
  const finder *w = f->w;
  const ir_val n = whole(w, CLB_CELL_SLOTS_OF, 2), low = bins.low, high = bins.high;
  const ir_val turn =
      ir_loop(k, turn_of(w, 2, low), ir_add(k, turn_of(w, 2, high), clb_i32(k, 1)), clb_i32(k, 1));
  const ir_val begins = ir_mul(k, turn, n);
  ir_val row = ir_sub(k, ir_mul(k, slot, n), begins);
  if (w->system != IR_NONE) row = ir_add(k, row, whole(w, CLB_CELL_FIRST_SLOT, 0));
  const ir_val a = ir_2(k, IR_MAX, low, begins),
               b = ir_2(k, IR_MIN, ir_add(k, high, clb_i32(k, 1)), ir_add(k, begins, n));
  image[2] = image_of(w, 2, turn);
  const ir_val first = ir_load(k, f->starts, ir_add(k, row, a), IR_NONE),
               end = ir_load(k, f->starts, ir_add(k, row, b), IR_NONE);
  f->visit(f->user, first, end, image);
  ir_end(k);
}

/* ---- bins within a sphere ---- */

/* A_d is the vector from bin to bin in direction d, and a column the bins of one place in
   directions 0 and 1. Lengths along columns are in units of A_2. */
typedef struct {
  ir_val open;         /* a direction is: atoms may lie beside their bins, and all are looked at */
  ir_val u[3];         /* where the atom is, in bins */
  ir_val across[2][3]; /* of A_0, A_1: what is perpendicular to A_2, */
  ir_val along[2];     /* and the rest */
  ir_val radius, extent;  /* of a column: across, and along */
  ir_val squared, length; /* of the sphere's radius; 1 / A_2^2 */
} sphere;

static ir_val absolute(ir_kernel *k, ir_val a) { return ir_1(k, IR_ABS, a); }

static void find_column(ir_kernel *k, sphere *b) {
  ir_val sum[3], difference[3];
  for (int i = 0; i < 3; i++) {
    sum[i] = ir_add(k, b->across[0][i], b->across[1][i]);
    difference[i] = ir_sub(k, b->across[0][i], b->across[1][i]);
  }
  const ir_val half = real(k, 0.5),
               most = ir_2(k, IR_MAX, dot(k, sum, sum), dot(k, difference, difference));
  b->radius = ir_mul(k, half, ir_1(k, IR_SQRT, most));
  b->extent = ir_mul(k, half, ir_add(k, absolute(k, b->along[0]), absolute(k, b->along[1])));
}

static sphere sphere_around(const finder *w, const clb_cell_place *at, ir_val squared) {
  ir_kernel *k = w->k;
  sphere b = {.open = IR_NONE, .squared = squared};
  ir_val step[3][3];
  for (int d = 0; d < 3; d++) {
    const ir_val open = same(k, whole(w, CLB_CELL_PERIODIC, d), clb_i32(k, 0)),
                 per_unit = number(w, CLB_CELL_PER_UNIT, d);
    ir_val reciprocal[3];
    b.open = d ? ir_2(k, IR_OR, b.open, open) : open;
    for (int i = 0; i < 3; i++) {
      step[d][i] = ir_2(k, IR_DIV, number(w, CLB_CELL_CELL, 3 * d + i), per_unit);
      reciprocal[i] = number(w, CLB_CELL_RECIPROCAL, 3 * d + i);
    }
    b.u[d] = ir_mul(k, ir_sub(k, dot(k, at->x, reciprocal), number(w, CLB_CELL_LOW, d)), per_unit);
  }
  b.length = ir_2(k, IR_DIV, real(k, 1), dot(k, step[2], step[2]));
  for (int d = 0; d < 2; d++) {
    b.along[d] = ir_mul(k, dot(k, step[d], step[2]), b.length);
    for (int i = 0; i < 3; i++)
      b.across[d][i] = ir_sub(k, step[d][i], ir_mul(k, b.along[d], step[2][i]));
  }
  find_column(k, &b);
  return b;
}

/* A number from bin - reach - 1 on, rounded down; a bin is not negative. */
static ir_val rounded(ir_kernel *k, ir_val x, ir_val reach) {
  const ir_val by = ir_add(k, reach, clb_i32(k, 1));
  return ir_sub(k, ir_cast(k, IR_I32, ir_add(k, x, ir_cast(k, IR_F64, by))), by);
}

/* Bins of a column that may hold a place in the sphere. */
static range within(const walk *f, const sphere *b, const ir_val bin[2]) {
  ir_kernel *k = f->w->k;
  const ir_val slack = real(k, 1e-6), zero = real(k, 0), one = clb_i32(k, 1), own = f->at->bin[2],
               reach = f->reach[2], low = ir_sub(k, own, reach), high = ir_add(k, own, reach),
               least = ir_cast(k, IR_F64, ir_sub(k, low, one)),
               most = ir_cast(k, IR_F64, ir_add(k, high, one));
  ir_val by[2], v[3];
  for (int d = 0; d < 2; d++)
    by[d] = ir_sub(k, ir_add(k, ir_cast(k, IR_F64, bin[d]), real(k, 0.5)), b->u[d]);
  for (int i = 0; i < 3; i++)
    v[i] = ir_add(k, ir_mul(k, by[0], b->across[0][i]), ir_mul(k, by[1], b->across[1][i]));
  const ir_val away = ir_sub(k, ir_sub(k, ir_1(k, IR_SQRT, dot(k, v, v)), b->radius), slack),
               near = ir_2(k, IR_MAX, away, zero),
               left = ir_sub(k, b->squared, ir_mul(k, near, near)),
               half = ir_1(k, IR_SQRT, ir_mul(k, ir_2(k, IR_MAX, left, zero), b->length)),
               far = ir_add(k, ir_add(k, half, b->extent), slack),
               shift = ir_add(k, ir_mul(k, by[0], b->along[0]), ir_mul(k, by[1], b->along[1])),
               middle = ir_sub(k, b->u[2], shift);
  const ir_val ends[2] = {ir_sub(k, middle, far), ir_add(k, middle, far)};
  ir_val bins[2];
  for (int i = 0; i < 2; i++)
    bins[i] = rounded(k, ir_2(k, IR_MIN, ir_2(k, IR_MAX, ends[i], least), most), reach);
  range r = {.low = ir_select(k, b->open, low, ir_2(k, IR_MAX, low, bins[0])),
             .high = ir_select(k, b->open, high, ir_2(k, IR_MIN, high, bins[1]))};
  r.there =
      ir_2(k, IR_OR, b->open, both(k, ir_2(k, IR_LE, zero, left), ir_2(k, IR_LE, r.low, r.high)));
  return r;
}

/* The bins of directions 0 and 1: those within reach, or those of one column. */
static void bound_columns(ir_kernel *k, const clb_cell_place *at, const ir_val reach[3],
                          ir_val only, ir_val low[2], ir_val end[2]) {
  const ir_val one = clb_i32(k, 1), wide = ir_add(k, ir_add(k, reach[1], reach[1]), one);
  for (int d = 0; d < 2; d++) {
    low[d] = ir_sub(k, at->bin[d], reach[d]);
    end[d] = ir_add(k, ir_add(k, at->bin[d], reach[d]), one);
  }
  if (only == IR_NONE) return;
  const ir_val keeps = ir_2(k, IR_LE, clb_i32(k, 0), only),
               column = ir_2(k, IR_MAX, only, clb_i32(k, 0)), row = ir_2(k, IR_DIV, column, wide);
  const ir_val by[2] = {row, ir_sub(k, column, ir_mul(k, row, wide))};
  for (int d = 0; d < 2; d++) {
    low[d] = ir_add(k, low[d], by[d]);
    end[d] = ir_select(k, keeps, ir_add(k, low[d], one), end[d]);
  }
}

void clb_cell_walk(const finder *w, const clb_cell_place *at, const ir_val reach[3], ir_val squared,
                   ir_val only, ir_val starts, clb_cell_visit visit, void *user) {
  const walk f = {w, at, reach, starts, visit, user};
  ir_kernel *k = w->k;
  const bool trims = squared != IR_NONE;
  sphere ball = {0};
  if (trims) ball = sphere_around(w, at, squared);
  ir_val image[3], bin[2], low[2], end[2], slot = IR_NONE;
  bound_columns(k, at, reach, only, low, end);
  for (int d = 0; d < 2; d++) {
    bin[d] = ir_loop(k, low[d], end[d], clb_i32(k, 1));
    const ir_val turn = turn_of(w, d, bin[d]), own = clb_cell_slot_in(w, d, bin[d], turn);
    image[d] = image_of(w, d, turn);
    slot = d ? ir_add(k, ir_mul(k, slot, whole(w, CLB_CELL_SLOTS_OF, 1)), own) : own;
  }
  range bins = {ir_sub(k, at->bin[2], reach[2]), ir_add(k, at->bin[2], reach[2]), IR_NONE};
  if (trims) bins = within(&f, &ball, bin);
  if (trims) ir_if(k, bins.there);
  walk_along(&f, bins, slot, image);
  if (trims) ir_end(k);
  ir_end(k);
  ir_end(k);
}

void clb_cell_offset(const finder *w, const ir_val *image, ir_val by[3]) {
  ir_kernel *k = w->k;
  for (int i = 0; i < 3; i++) {
    ir_val term[3];
    for (int d = 0; d < 3; d++)
      term[d] = ir_mul(k, ir_cast(k, IR_F64, image[d]), number(w, CLB_CELL_CELL, 3 * d + i));
    by[i] = ir_add(k, ir_add(k, term[0], term[1]), term[2]);
  }
}

void clb_cell_vector(const finder *w, ir_val sorted, ir_val place, ir_val mask, const ir_val x[3],
                     const ir_val by[3], ir_val v[3]) {
  ir_kernel *k = w->k;
  for (int d = 0; d < 3; d++) {
    const ir_val from = ir_add(k, ir_mul(k, w->n, clb_i64(k, d)), place);
    v[d] = ir_add(k, ir_sub(k, ir_load(k, sorted, from, mask), x[d]), by[d]);
  }
}
