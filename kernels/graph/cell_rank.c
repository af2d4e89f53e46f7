/* kernels/graph/cell_rank.c - the search of one system of few atoms, in few launches: sorts by
   counting what comes before (cell_search.h). A sub-group does one atom, slot or edge. */
#include "kernels/graph/cell_walk.h"

static ir_val wide(ir_kernel *k, ir_val a) { return ir_cast(k, IR_I64, a); }
static ir_val less(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_LT, a, b); }
static ir_val both(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_AND, a, b); }
static ir_val same(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_EQ, a, b); }
static ir_val not(ir_kernel * k, ir_val a) { return ir_1(k, IR_NOT, a); }
static ir_val least(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_MIN, a, b); }
static ir_val input(ir_kernel *k) { return ir_buffer(k, IR_I32, false); }
static ir_val output(ir_kernel *k) { return ir_buffer(k, IR_I32, true); }

typedef clb_cell_finder finder;

/* A number that is the same in all lanes is stored by the first, where `mask` is true. */
static void store_one(ir_kernel *k, ir_val to, ir_val at, ir_val mask, ir_val value) {
  ir_store(k, to, ir_add(k, at, wide(k, ir_lane(k))), both(k, clb_first_lane(k), mask), value);
}

static void count_if(ir_kernel *k, ir_val sum, ir_val counts) {
  ir_set(k, sum, ir_add(k, ir_get(k, sum), ir_select(k, counts, clb_i32(k, 1), clb_i32(k, 0))));
}

/* Unit u < n: the place of atom u, after those of slots before its own and those before it in its
   own. Others: the first place of slot u - n, after those of slots before it; the last is the end
   of all. */
void clb_cell_lower_ranked(ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  finder w;
  clb_cell_begin(&w, k, "cell_ranked", s, CLB_F64, p->cell_list.atoms == CLB_CELL_MANY);
  const ir_val slots = input(k), n_slots = ir_scalar(k, IR_I64), atoms = output(k),
               x = ir_buffer(k, IR_F64, true), wrap = output(k), starts = output(k),
               used = ir_scalar(k, IR_I64), counts = ir_scalar(k, IR_I64), count = output(k);
  clb_layer_start(&w.b);
  const ir_val unit = w.b.unit, lane = ir_lane(k), zero = clb_i32(k, 0), one = clb_i64(k, 1),
               is_atom = less(k, unit, w.n), slot = ir_sub(k, unit, w.n),
               is_slot = both(k, not(k, is_atom), ir_2(k, IR_LE, slot, n_slots)),
               near = least(k, unit, ir_sub(k, w.n, one)), own = ir_load(k, slots, near, IR_NONE),
               key = ir_select(k, is_atom, own, ir_cast(k, IR_I32, slot)),
               atom = ir_select(k, is_atom, ir_cast(k, IR_I32, unit), zero),
               sum = ir_var(k, zero, false);
  const ir_val lot = ir_loop(k, clb_i64(k, 0), w.n, clb_i64(k, s->lanes)),
               other = ir_add(k, lot, wide(k, lane)), mask = less(k, other, w.n),
               its = ir_load(k, slots, other, mask),
               earlier = both(k, same(k, its, key), less(k, ir_cast(k, IR_I32, other), atom));
  count_if(k, sum, both(k, mask, ir_2(k, IR_OR, less(k, its, key), earlier)));
  ir_end(k);
  const ir_val before = clb_cell_sum_of_lanes(&w, ir_get(k, sum)), place = wide(k, before);
  clb_cell_load_grid(&w, clb_i64(k, 0), IR_NONE);
  const clb_cell_place at = clb_cell_locate(&w, ir_cast(k, IR_I32, near), IR_NONE);
  store_one(k, atoms, place, is_atom, atom);
  store_one(k, starts, slot, is_slot, before);
  for (int d = 0; d < 3; d++) {
    const ir_val to = ir_add(k, ir_mul(k, w.n, clb_i64(k, d)), place);
    store_one(k, x, to, is_atom, at.x[d]);
    store_one(k, wrap, to, is_atom, at.wrap[d]);
  }
  const ir_val tail =
      ir_add(k, used, ir_add(k, ir_mul(k, unit, clb_i64(k, s->lanes)), wide(k, lane)));
  ir_store(k, count, tail, less(k, tail, counts), zero);
  clb_layer_finish(&w.b);
}

/* ---- the graph ---- */

typedef struct {
  finder w;
  ir_val receivers, senders, before, base, columns;
  ir_val all, rest; /* edges, null edges (i64) */
  ir_val fits;
} ends;

/* How many edges are before those that an atom (i64; n: the end) receives, without null edges, */
static ir_val edges_before(const ends *f, ir_val atom) {
  ir_kernel *k = f->w.k;
  const ir_val near = least(k, atom, ir_sub(k, f->w.n, clb_i64(k, 1))),
               first = ir_mul(k, near, f->columns),
               row = ir_2(k, IR_DIV, first, clb_i64(k, CLB_CELL_ROW)),
               sum = wide(k, ir_add(k, ir_load(k, f->before, first, IR_NONE),
                                    ir_load(k, f->base, row, IR_NONE)));
  return ir_select(k, both(k, f->fits, less(k, atom, f->w.n)), sum, f->all);
}

/* and how many null edges. */
static ir_val nulls_before(const ends *f, ir_val atom) {
  return clb_cell_nulls_before(&f->w, f->rest, atom);
}

/* Of the edges first ... end - 1, how many have a sender before this one; or this one. */
static ir_val senders_in(ends *f, ir_val first, ir_val end, ir_val sender, bool before) {
  ir_kernel *k = f->w.k;
  const ir_val sum = ir_var(k, clb_i32(k, 0), false),
               lot = ir_loop(k, first, end, clb_i64(k, f->w.b.s->lanes)),
               at = ir_add(k, lot, wide(k, ir_lane(k))), mask = less(k, at, end),
               its = ir_load(k, f->senders, at, mask);
  count_if(k, sum, both(k, mask, before ? less(k, its, sender) : same(k, its, sender)));
  ir_end(k);
  return wide(k, clb_cell_sum_of_lanes(&f->w, ir_get(k, sum)));
}

/* A row's first segment (sort.h), of so many slots at most. */
static void store_segment(ir_kernel *k, ir_val to, ir_val row, ir_val mask, ir_val first,
                          ir_val end, ir_val most) {
  const ir_val at = ir_mul(k, row, clb_i64(k, 3)),
               numbers[] = {row, first, least(k, ir_sub(k, end, first), most)};
  for (int i = 0; i < 3; i++)
    store_one(k, to, ir_add(k, at, clb_i64(k, i)), mask, ir_cast(k, IR_I32, numbers[i]));
}

/* Unit e: edge e, and where the edges of atom e begin. An edge has another one for the way back:
   whoever sends to receivers before its own is a sender before it to its sender. */
void clb_cell_lower_ends(ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  ends f;
  clb_cell_begin(&f.w, k, "cell_ends", s, CLB_F64, p->cell_list.atoms == CLB_CELL_MANY);
  f.receivers = input(k), f.senders = input(k), f.before = input(k), f.base = input(k);
  f.columns = ir_scalar(k, IR_I64);
  const ir_val total = input(k), room = ir_scalar(k, IR_I64);
  ir_val start[2], edge[2], other[2], segments[2];
  for (int d = 0; d < 2; d++) {
    start[d] = output(k), edge[d] = output(k), other[d] = output(k);
    segments[d] = output(k);
  }
  const ir_val nodes = output(k), most = ir_scalar(k, IR_I64);
  clb_layer_start(&f.w.b);
  const ir_val unit = f.w.b.unit, one = clb_i64(k, 1), zero = clb_i64(k, 0), n = f.w.n,
               found = clb_cell_total(k, total, room, &f.fits);
  f.all = ir_select(k, f.fits, found, zero);
  f.rest = ir_sub(k, room, f.all);
  const ir_val atom = least(k, unit, n), begins = edges_before(&f, atom),
               is_atom = ir_2(k, IR_LE, unit, n), is_edge = less(k, unit, room),
               at = least(k, unit, ir_sub(k, room, one));
  const ir_val next = ir_add(k, atom, one), ends_at = edges_before(&f, next),
               has_row = less(k, unit, n);
  const ir_val rows[2][2] = {
      {ir_add(k, begins, nulls_before(&f, atom)), ir_add(k, ends_at, nulls_before(&f, next))},
      {begins, ends_at}};
  for (int d = 0; d < 2; d++) {
    store_one(k, start[d], unit, is_atom, ir_cast(k, IR_I32, rows[d][0]));
    store_segment(k, segments[d], unit, has_row, rows[d][0], rows[d][1], most);
  }
  const ir_val receiver = ir_load(k, f.receivers, at, IR_NONE),
               sender = ir_load(k, f.senders, at, IR_NONE), i = wide(k, receiver),
               j = wide(k, sender), mine = edges_before(&f, i),
               after = edges_before(&f, ir_add(k, i, one)),
               first = ir_add(k, mine, nulls_before(&f, i)),
               is_null = ir_2(k, IR_LE, ir_add(k, first, ir_sub(k, after, mine)), at),
               back = edges_before(&f, j), back_first = ir_add(k, back, nulls_before(&f, j)),
               back_end =
                   ir_add(k, back_first, ir_sub(k, edges_before(&f, ir_add(k, j, one)), back));
  const ir_val earlier = senders_in(&f, back_first, back_end, receiver, true),
               here = senders_in(&f, first, at, sender, false),
               place = ir_select(k, is_null, ir_add(k, f.all, ir_sub(k, at, after)),
                                 ir_add(k, back, ir_add(k, earlier, here)));
  store_one(k, edge[0], unit, is_edge, ir_cast(k, IR_I32, at));
  store_one(k, other[0], unit, is_edge, sender);
  store_one(k, edge[1], place, is_edge, ir_cast(k, IR_I32, at));
  store_one(k, other[1], place, is_edge, receiver);
  store_one(k, nodes, place, is_edge, ir_select(k, is_null, ir_cast(k, IR_I32, n), sender));
  clb_layer_finish(&f.w.b);
}
