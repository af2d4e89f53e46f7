/* kernels/optimizer/chunks.c - the loop over chunks and over the elements of one. */
#include "kernels/optimizer/chunks.h"

enum { WIDE_PLACES = 2, NARROW_PLACES = CLB_MOST_PLACES };

static ir_val i32(ir_kernel *k, int64_t x) { return ir_int(k, IR_I32, x); }

void clb_chunks_begin(clb_chunks *b, ir_kernel *k, const char *name, const clb_problem *p,
                      const clb_schedule *s) {
  ir_begin(k, name, s->lanes, s->subgroups, s->subgroups);
  k->scalar_access = s->scalar_access;
  *b = (clb_chunks){.k = k, .s = s, .p = p, .t = p->storage == CLB_F64 ? IR_F64 : IR_F32};
  b->chunks = ir_scalar(k, IR_I32);
  b->units = ir_scalar(k, IR_I32);
  b->table = ir_buffer(k, IR_I64, false);
}

ir_val clb_chunks_unit(clb_chunks *b) {
  ir_kernel *k = b->k;
  return b->s->subgroups == 1
             ? ir_group(k)
             : ir_add(k, ir_mul(k, ir_group(k), i32(k, b->s->subgroups)), ir_subgroup(k));
}

void clb_chunks_loop(clb_chunks *b) {
  ir_kernel *k = b->k;
  b->chunk = ir_loop(k, clb_chunks_unit(b), b->chunks, b->units);
  b->first_lane = ir_2(k, IR_LT, ir_lane(k), i32(k, 1));
  ir_val row =
      ir_mul(k, ir_cast(k, IR_I64, b->chunk), ir_int(k, IR_I64, (int64_t)CLB_CHUNK_COLUMNS));
  for (int i = 0; i < CLB_CHUNK_COLUMNS; i += 2)
    ir_load_aligned(k, b->table, ir_add(k, row, ir_int(k, IR_I64, i)), IR_NONE, 2, b->at + i);
}

/* ---- elements ---- */

int clb_optimizer_width(int32_t type) { return type == CLB_F64 ? 2 : 4; }

/* `places` of `width` elements in each lane, from `first` on; masked: as many as there are. */
static void find_places(clb_chunks *b, ir_val first, ir_val end, int places, int width, bool masked,
                        clb_elements *place) {
  ir_kernel *k = b->k;
  const int64_t step = b->s->lanes * width;
  ir_val left = ir_sub(k, end, first), own = ir_mul(k, ir_lane(k), i32(k, width));
  for (int i = 0; i < places; i++)
    place[i] = (clb_elements){
        .offset = ir_cast(k, IR_I64, ir_add(k, ir_add(k, first, i32(k, i * step)), own)),
        .mask = masked ? ir_2(k, IR_LT, own, ir_sub(k, left, i32(k, i * step))) : IR_NONE,
        .width = width};
}

/* The elements begin ... end - 1; not masked: a multiple of those that are done together. */
static void run(clb_chunks *b, const clb_sweep *w, ir_val begin, ir_val end, int places, int width,
                bool masked) {
  ir_kernel *k = b->k;
  clb_elements place[CLB_MOST_PLACES];
  ir_val first = ir_loop(k, begin, end, i32(k, (int64_t)b->s->lanes * width * places));
  find_places(b, first, end, places, width, masked, place);
  w->load(w->user, place, places);
  w->finish(w->user, place, places);
  ir_end(k);
}

static void start(const clb_sweep *w) {
  if (w->start) w->start(w->user);
}

static void run_all(clb_chunks *b, const clb_sweep *w, ir_val count, int places, int width) {
  ir_kernel *k = b->k;
  clb_elements place[CLB_MOST_PLACES];
  if (!b->s->optimizer.load_first) {
    start(w);
    run(b, w, i32(k, 0), count, places, width, true);
    return;
  }
  find_places(b, i32(k, 0), count, places, width, true, place);
  w->load(w->user, place, places);
  start(w);
  w->finish(w->user, place, places);
  run(b, w, i32(k, (int64_t)b->s->lanes * width * places), count, places, width, true);
}

/* On CPUs masks cost much: whole steps go without. */
static void run_whole_steps(clb_chunks *b, const clb_sweep *w, ir_val count) {
  ir_kernel *k = b->k;
  ir_val step = i32(k, (int64_t)b->s->lanes * NARROW_PLACES),
         whole = ir_mul(k, ir_2(k, IR_DIV, count, step), step);
  start(w);
  run(b, w, i32(k, 0), whole, NARROW_PLACES, 1, false);
  run(b, w, whole, count, 1, 1, true);
}

void clb_chunks_sweep(clb_chunks *b, const clb_sweep *sweep) {
  ir_kernel *k = b->k;
  ir_val count = ir_cast(k, IR_I32, b->at[CLB_CHUNK_COUNT]);
  if (b->s->optimizer.whole_steps) {
    run_whole_steps(b, sweep, count);
    return;
  }
  if (b->s->optimizer.wide) {
    ir_if(k, ir_2(k, IR_EQ, b->at[CLB_CHUNK_WIDE], ir_int(k, IR_I64, 1)));
    run_all(b, sweep, count, WIDE_PLACES, clb_optimizer_width(b->p->storage));
    ir_else(k);
  }
  run_all(b, sweep, count, NARROW_PLACES, 1);
  if (b->s->optimizer.wide) ir_end(k);
}

/* Halves have no aligned accesses. */
static bool aligned(ir_type element, int width) {
  return width > 1 && ir_register_type(element) == element && ir_type_bytes(element) * width >= 8;
}

void clb_chunks_load(clb_chunks *b, ir_val array, int column, const clb_elements *place,
                     ir_val *v) {
  ir_kernel *k = b->k;
  ir_val index = ir_add(k, b->at[column], place->offset);
  const int width = place->width;
  if (aligned(ir_element_type(k, array), width))
    ir_load_aligned(k, array, index, place->mask, width, v);
  else ir_load_wide(k, array, index, place->mask, width, v);
  for (int i = 0; i < width; i++) v[i] = ir_cast(k, b->t, v[i]);
}

void clb_chunks_store(clb_chunks *b, ir_val array, int column, const clb_elements *place,
                      const ir_val *v) {
  ir_kernel *k = b->k;
  const ir_type element = ir_element_type(k, array);
  ir_val index = ir_add(k, b->at[column], place->offset), rounded[IR_MAX_WIDTH];
  for (int i = 0; i < place->width; i++) rounded[i] = ir_cast(k, ir_register_type(element), v[i]);
  if (aligned(element, place->width))
    ir_store_aligned(k, array, index, place->mask, place->width, rounded);
  else ir_store_wide(k, array, index, place->mask, place->width, rounded);
}

ir_val clb_lerp(ir_kernel *k, ir_val from, ir_val to, ir_val weight) {
  const ir_type t = ir_value_type(k, weight);
  ir_val way = ir_sub(k, to, from),
         near = ir_2(k, IR_LT, ir_1(k, IR_ABS, weight), ir_real(k, t, 0.5)),
         rest = ir_sub(k, ir_real(k, t, 1), weight);
  return ir_select(k, near, ir_add(k, from, ir_mul(k, weight, way)),
                   ir_sub(k, to, ir_mul(k, way, rest)));
}
