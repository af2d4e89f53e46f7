/* kernels/dispersion/receiver.c - a sub-group that goes through the atoms around its receiver. */
#include "kernels/dispersion/receiver.h"

static ir_val wide(ir_kernel *k, ir_val a) { return ir_cast(k, IR_I64, a); }
static ir_val both(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_AND, a, b); }

/* Sub-groups that a multiprocessor should hold at once: the grid's numbers, which only the loops
   over columns of bins need, else take registers of the loop over neighbours, where two warps would
   wait for each other. */
enum { SUBGROUPS_AT_ONCE = 24 };

void clb_receiver_begin(clb_receiver *r, ir_kernel *k, const char *name, const clb_problem *p,
                        const clb_schedule *s) {
  *r = (clb_receiver){.k = k, .t = clb_ir_type((clb_dtype)p->arithmetic)};
  clb_cell_begin(&r->w, k, name, s, p->arithmetic, true);
  k->min_blocks_per_sm = s->subgroups < SUBGROUPS_AT_ONCE ? SUBGROUPS_AT_ONCE / s->subgroups : 1;
  r->atoms = ir_buffer(k, IR_I32, false);
  r->x = ir_buffer(k, IR_F64, false);
  r->starts = ir_buffer(k, IR_I32, false);
  r->elements = ir_buffer(k, IR_I32, false);
  r->share = ir_scalar(k, IR_F64);
  r->squared = ir_scalar(k, IR_F64);
  r->first = ir_scalar(k, IR_I64);
  r->n_rows = ir_scalar(k, IR_I64);
}

void clb_receiver_share(clb_receiver *r) {
  r->w.b.shared = r->w.b.s->subgroups > 1;
  if (r->w.b.shared) r->k->rows = 1;
}

void clb_receiver_start(clb_receiver *r) {
  ir_kernel *k = r->k;
  if (r->w.b.shared) clb_team_begin(&r->team, k, IR_F64, CLB_RECEIVER_SUMS);
  clb_layer_start(&r->w.b);
  if (r->w.b.shared) r->turn = ir_var(k, clb_i32(k, 0), true);
  r->own = r->w.b.unit;
  r->atom = wide(k, ir_load(k, r->atoms, r->own, IR_NONE));
  r->row = ir_sub(k, r->atom, r->first);
  ir_if(k, both(k, ir_2(k, IR_LE, clb_i64(k, 0), r->row), ir_2(k, IR_LT, r->row, r->n_rows)));
  r->element = wide(k, ir_load(k, r->elements, r->own, IR_NONE));
  clb_cell_load_grid(&r->w, r->atom, IR_NONE);
  r->at = clb_cell_locate(&r->w, r->atom, IR_NONE);
}

void clb_receiver_finish(clb_receiver *r) {
  if (r->w.b.shared) ir_end(r->k);
  ir_end(r->k);
  clb_layer_finish(&r->w.b);
}

static void add(ir_kernel *k, ir_val var, ir_val value) {
  ir_set(k, var, ir_add(k, ir_get(k, var), value));
}

int clb_sum_begin(clb_receiver *r) {
  ir_kernel *k = r->k;
  r->part[r->n_sums] = ir_var(k, ir_real(k, r->t, 0), false);
  r->sum[r->n_sums] = ir_var(k, ir_real(k, IR_F64, 0), false);
  return r->n_sums++;
}

void clb_sum_add(clb_receiver *r, int sum, const clb_neighbour *j, ir_val value) {
  ir_kernel *k = r->k;
  add(k, r->part[sum], ir_select(k, j->mask, value, ir_real(k, r->t, 0)));
}

ir_val clb_sum_end(clb_receiver *r, int sum) {
  return ir_reduce_add(r->k, ir_get(r->k, r->sum[sum]));
}

/* Whether this is the image of the receiver's own cell, and how far its atoms are away. */
static ir_val place_image(clb_receiver *r, const ir_val *image, ir_val by[3]) {
  ir_kernel *k = r->k;
  ir_val here = IR_NONE;
  clb_cell_offset(&r->w, image, by);
  for (int d = 0; d < 3; d++) {
    const ir_val same = ir_2(k, IR_EQ, image[d], clb_i32(k, 0));
    here = d ? both(k, here, same) : same;
  }
  return here;
}

/* The atom in a place (i32) of an image, of lanes that have one (IR_NONE: all). */
static clb_neighbour look(clb_receiver *r, ir_val place, ir_val inside, ir_val here,
                          const ir_val by[3]) {
  ir_kernel *k = r->k;
  clb_neighbour j = {.place = wide(k, place), .inside = inside};
  ir_val v[3];
  clb_cell_vector(&r->w, r->x, j.place, inside, r->at.x, by, v);
  const ir_val square = ir_fma(k, v[0], v[0], ir_fma(k, v[1], v[1], ir_mul(k, v[2], v[2]))),
               self = both(k, here, ir_2(k, IR_EQ, j.place, r->own)), other = ir_1(k, IR_NOT, self);
  j.mask = both(k, inside == IR_NONE ? other : both(k, inside, other),
                ir_2(k, IR_LT, square, r->squared));
  j.square = ir_select(k, j.mask, ir_cast(k, r->t, square), ir_real(k, r->t, 1));
  for (int d = 0; d < 3; d++)
    j.v[d] = ir_select(k, j.mask, ir_cast(k, r->t, v[d]), ir_real(k, r->t, 0));
  j.element = wide(k, ir_load(k, r->elements, j.place, inside));
  return j;
}

/* Opens what the sub-group does whose turn it is. */
static void take_turn(clb_receiver *r) {
  ir_kernel *k = r->k;
  const ir_val turn = ir_get(k, r->turn), next = ir_add(k, turn, clb_i32(k, 1)),
               last = ir_2(k, IR_EQ, next, clb_i32(k, r->w.b.s->subgroups));
  ir_set(k, r->turn, ir_select(k, last, clb_i32(k, 0), next));
  ir_if(k, ir_2(k, IR_EQ, turn, ir_subgroup(k)));
}

static void look_at(void *user, ir_val first, ir_val end, const ir_val *image) {
  clb_receiver *r = user;
  ir_kernel *k = r->k;
  ir_val by[3];
  const ir_val here = place_image(r, image, by);
  for (int i = 0; i < r->n_sums; i++) ir_set(k, r->part[i], ir_real(k, r->t, 0));
  const int lanes = r->w.b.s->lanes;
  const ir_val lot = ir_loop(k, first, end, clb_i32(k, lanes)), place = ir_add(k, lot, ir_lane(k)),
               inside = ir_2(k, IR_LT, ir_lane(k), ir_sub(k, end, lot));
  if (r->w.b.shared) take_turn(r);
  const clb_neighbour j = look(r, place, inside, here, by);
  r->each(r->user, &j);
  if (r->w.b.shared) ir_end(k);
  ir_end(k);
  for (int i = 0; i < r->n_sums; i++)
    ir_set(k, r->sum[i],
           ir_add(k, ir_get(k, r->sum[i]), ir_cast(k, IR_F64, ir_get(k, r->part[i]))));
}

static void look_at_thirds(void *user, ir_val first, ir_val end, const ir_val *image) {
  clb_receiver *r = user;
  ir_kernel *k = r->k;
  ir_val by[3];
  const ir_val here = place_image(r, image, by), place = ir_loop(k, first, end, clb_i32(k, 1));
  clb_neighbour j = look(r, place, IR_NONE, here, by);
  ir_if(k, j.mask);
  j.mask = IR_NONE;
  r->each_third(r->user, &j);
  ir_end(k);
  ir_end(k);
}

/* A radius that is this share of the grid's reaches as many bins, and what it has of another. */
static ir_val reach_of(clb_receiver *r, int d) {
  ir_kernel *k = r->k;
  const ir_val exact = ir_mul(k, r->share, clb_cell_number(&r->w, CLB_CELL_REACH, d)),
               down = ir_cast(k, IR_I32, exact),
               more = ir_2(k, IR_LT, ir_cast(k, IR_F64, down), exact);
  return ir_add(k, down, ir_select(k, more, clb_i32(k, 1), clb_i32(k, 0)));
}

static void walk(clb_receiver *r, clb_cell_visit visit) {
  ir_val reach[3];
  for (int d = 0; d < 3; d++) reach[d] = reach_of(r, d);
  clb_cell_walk(&r->w, &r->at, reach, r->squared, IR_NONE, r->starts, visit, r);
}

void clb_receiver_walk(clb_receiver *r, clb_receiver_visit each, void *user) {
  r->each = each;
  r->user = user;
  walk(r, look_at);
}

void clb_receiver_walk_thirds(clb_receiver *r, clb_receiver_visit each_third) {
  r->each_third = each_third;
  walk(r, look_at_thirds);
}

void clb_receiver_join(clb_receiver *r) {
  ir_kernel *k = r->k;
  ir_val v[CLB_RECEIVER_SUMS];
  if (!r->w.b.shared) return;
  for (int i = 0; i < r->n_sums; i++) v[i] = ir_get(k, r->sum[i]);
  clb_team_sum(&r->team, k, v, r->n_sums);
  for (int i = 0; i < r->n_sums; i++) ir_set(k, r->sum[i], v[i]);
}

/* ---- results ---- */

clb_added clb_added_begin(ir_kernel *k) {
  clb_added a = {.buffer = ir_buffer(k, IR_F64, true)};
  a.offset = ir_scalar(k, IR_I64);
  a.wanted = ir_scalar(k, IR_I32);
  return a;
}

void clb_add_to(ir_kernel *k, const clb_added *to, ir_val at, int n, const ir_val *values) {
  const ir_val lane = clb_wanted_lanes(k, to->wanted, clb_i32(k, 1));
  for (int i = 0; i < n; i++) {
    const ir_val place = ir_add(k, ir_add(k, to->offset, at), clb_i64(k, i));
    ir_store(k, to->buffer, place, lane, ir_add(k, ir_load(k, to->buffer, place, lane), values[i]));
  }
}

static const int pairs[6][2] = {{0, 0}, {1, 1}, {2, 2}, {1, 2}, {0, 2}, {0, 1}};

clb_pull clb_pull_begin(clb_receiver *r) {
  clb_pull p;
  for (int i = 0; i < 3; i++) p.force[i] = clb_sum_begin(r);
  for (int i = 0; i < 6; i++) p.virial[i] = clb_sum_begin(r);
  return p;
}

void clb_pull_add(clb_receiver *r, const clb_pull *p, const clb_neighbour *j, ir_val g) {
  ir_kernel *k = r->k;
  ir_val pull[3];
  for (int i = 0; i < 3; i++) {
    pull[i] = ir_mul(k, g, j->v[i]);
    add(k, r->part[p->force[i]], pull[i]);
  }
  for (int i = 0; i < 6; i++)
    add(k, r->part[p->virial[i]], ir_mul(k, pull[pairs[i][0]], j->v[pairs[i][1]]));
}

void clb_pull_end(clb_receiver *r, const clb_pull *p, const clb_added *forces,
                  const clb_added *virials, ir_val virial[6]) {
  ir_kernel *k = r->k;
  ir_val force[3], square[9];
  for (int i = 0; i < 3; i++) force[i] = clb_sum_end(r, p->force[i]);
  for (int i = 0; i < 6; i++) {
    virial[i] = ir_mul(k, clb_sum_end(r, p->virial[i]), ir_real(k, IR_F64, 0.5));
    square[3 * pairs[i][0] + pairs[i][1]] = square[3 * pairs[i][1] + pairs[i][0]] = virial[i];
  }
  clb_add_to(k, forces, ir_mul(k, r->row, clb_i64(k, 3)), 3, force);
  clb_add_to(k, virials, ir_mul(k, r->row, clb_i64(k, 9)), 9, square);
}
