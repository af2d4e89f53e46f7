/* kernels/layers/layer.c - shared by the kernels of kernels/layers/host/layers.h. */
#include "kernels/layers/layer.h"

#include "kernels/common/turns.h"

enum { SUBGROUPS = 4, UNROLLED = 8 };

void clb_layer_schedule(const clb_limits *limits, int32_t arithmetic, bool reduces,
                        clb_schedule *s) {
  int subgroups = limits->simd || (reduces && !limits->subgroups) ? 1 : SUBGROUPS;
  *s = (clb_schedule){.lanes = limits->lanes[arithmetic],
                      .subgroups =
                          subgroups < limits->max_subgroups ? subgroups : limits->max_subgroups};
}

clb_status clb_layer_check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)limits;
  return p->storage == p->arithmetic
             ? CLB_OK
             : clb_fail(error, CLB_ERROR_ARGUMENT, "type is %d; it must be CLB_F64 or CLB_F32",
                        p->storage);
}

ir_val clb_i64(ir_kernel *k, int64_t x) { return ir_int(k, IR_I64, x); }
ir_val clb_i32(ir_kernel *k, int64_t x) { return ir_int(k, IR_I32, x); }

static void begin(clb_row_kernel *b, ir_kernel *k, const char *name, const clb_schedule *s,
                  int32_t arithmetic, bool shared) {
  ir_begin(k, name, s->lanes, s->subgroups, shared ? 1 : s->subgroups);
  *b = (clb_row_kernel){.k = k,
                        .s = s,
                        .t = clb_ir_type((clb_dtype)arithmetic),
                        .n = ir_scalar(k, IR_I64),
                        .shared = shared};
}

void clb_layer_begin(clb_row_kernel *b, ir_kernel *k, const char *name, const clb_schedule *s,
                     int32_t arithmetic) {
  begin(b, k, name, s, arithmetic, false);
}

void clb_layer_begin_shared(clb_row_kernel *b, ir_kernel *k, const char *name,
                            const clb_schedule *s, int32_t arithmetic) {
  begin(b, k, name, s, arithmetic, true);
}

clb_row_array clb_layer_array(clb_row_kernel *b, int32_t type, bool written) {
  clb_row_array a = {.element = clb_ir_type((clb_dtype)type)};
  a.buffer = ir_buffer(b->k, a.element, written);
  a.offset = ir_scalar(b->k, IR_I64);
  a.stride = ir_scalar(b->k, IR_I64);
  return a;
}

void clb_layer_start(clb_row_kernel *b) {
  ir_kernel *k = b->k;
  b->unit = ir_cast(k, IR_I64, ir_group(k));
  if (b->s->subgroups > 1 && !b->shared)
    b->unit = ir_add(k, ir_mul(k, b->unit, clb_i64(k, b->s->subgroups)),
                     ir_cast(k, IR_I64, ir_subgroup(k)));
  ir_if(k, ir_2(k, IR_LT, b->unit, b->n));
}

void clb_layer_finish(clb_row_kernel *b) {
  ir_end(b->k);
  ir_finish(b->k);
}

ir_val clb_layer_row(clb_row_kernel *b, const clb_row_array *a, ir_val row) {
  return ir_add(b->k, ir_mul(b->k, row, a->stride), a->offset);
}

ir_val clb_layer_load(clb_row_kernel *b, const clb_row_array *a, ir_val row_start, ir_val at,
                      ir_val mask) {
  return ir_cast(b->k, b->t, ir_load(b->k, a->buffer, ir_add(b->k, row_start, at), mask));
}

void clb_layer_store(clb_row_kernel *b, const clb_row_array *a, ir_val row_start, ir_val at,
                     ir_val mask, ir_val value) {
  ir_store(b->k, a->buffer, ir_add(b->k, row_start, at), mask,
           ir_cast(b->k, ir_register_type(a->element), value));
}

void clb_layer_vector(clb_row_kernel *b, const clb_row_array *a, ir_val row, ir_val mask,
                      ir_val *v) {
  ir_val start = clb_layer_row(b, a, row);
  if (b->s->layer.wide_vectors) ir_load_wide(b->k, a->buffer, start, mask, 3, v);
  for (int i = 0; i < 3; i++)
    v[i] = b->s->layer.wide_vectors ? ir_cast(b->k, b->t, v[i])
                                    : clb_layer_load(b, a, start, clb_i64(b->k, i), mask);
}

ir_val clb_first_lane(ir_kernel *k) { return ir_2(k, IR_LT, ir_lane(k), clb_i32(k, 1)); }

clb_atom_species clb_atom_species_begin(ir_kernel *k) {
  clb_atom_species a = {.species = ir_buffer(k, IR_I32, false)};
  a.offset = ir_scalar(k, IR_I64);
  a.first = ir_scalar(k, IR_I64);
  return a;
}

ir_val clb_species_of(ir_kernel *k, const clb_atom_species *a, bool receiver, ir_val atom,
                      ir_val mask) {
  if (receiver) atom = ir_add(k, atom, a->first);
  return ir_cast(k, IR_I64, ir_load(k, a->species, ir_add(k, atom, a->offset), mask));
}

clb_ends clb_ends_begin(ir_kernel *k) {
  clb_ends e;
  for (int i = 0; i < 2; i++) e.list[i] = ir_buffer(k, IR_I32, false);
  e.atoms = clb_atom_species_begin(k);
  return e;
}

ir_val clb_end_species(ir_kernel *k, const clb_ends *e, int end, ir_val edge, ir_val mask) {
  ir_val atom = ir_cast(k, IR_I64, ir_load(k, e->list[end], edge, mask));
  return clb_species_of(k, &e->atoms, !end, atom, mask);
}

clb_received clb_received_begin(ir_kernel *k) {
  clb_received list;
  list.row_start = ir_buffer(k, IR_I32, false);
  list.edge = ir_buffer(k, IR_I32, false);
  list.other = ir_buffer(k, IR_I32, false);
  return list;
}

void clb_received_start(clb_row_kernel *b, const clb_received *list, ir_val *edge, ir_val *sender,
                        ir_val *mask) {
  ir_kernel *k = b->k;
  ir_val begin = ir_load(k, list->row_start, b->unit, IR_NONE),
         end = ir_load(k, list->row_start, ir_add(k, b->unit, clb_i64(k, 1)), IR_NONE),
         n = ir_sub(k, end, begin), first = ir_loop(k, clb_i32(k, 0), n, clb_i32(k, b->s->lanes));
  *mask = ir_2(k, IR_LT, ir_lane(k), ir_sub(k, n, first));
  ir_val slot =
      ir_add(k, ir_cast(k, IR_I64, ir_add(k, begin, first)), ir_cast(k, IR_I64, ir_lane(k)));
  *edge = ir_cast(k, IR_I64, ir_load(k, list->edge, slot, *mask));
  *sender = ir_cast(k, IR_I64, ir_load(k, list->other, slot, *mask));
}

/* Sub-groups take blocks in turn, from the one on after which those before ended. */
static void shared_channels(clb_row_kernel *b, int64_t mul,
                            void (*each)(void *user, ir_val channel, ir_val mask), void *user) {
  ir_kernel *k = b->k;
  const int64_t lanes = b->s->lanes, blocks = (mul + lanes - 1) / lanes;
  if (!blocks) return;
  const ir_val block = clb_take_turns(k, blocks, &b->blocks),
               start = ir_mul(k, block, clb_i32(k, lanes)), channel = ir_add(k, start, ir_lane(k));
  each(user, ir_cast(k, IR_I64, channel),
       mul % lanes ? ir_2(k, IR_LT, channel, clb_i32(k, mul)) : IR_NONE);
  ir_end(k);
}

void clb_layer_channels(clb_row_kernel *b, int64_t mul,
                        void (*each)(void *user, ir_val channel, ir_val mask), void *user) {
  if (b->shared && b->s->subgroups > 1) {
    shared_channels(b, mul, each, user);
    return;
  }
  ir_kernel *k = b->k;
  int64_t lanes = b->s->lanes, whole = mul / lanes, looped = whole > UNROLLED ? whole : 0;
  ir_val lane = ir_cast(k, IR_I64, ir_lane(k));
  if (looped) {
    ir_val first = ir_loop(k, clb_i64(k, 0), clb_i64(k, whole * lanes), clb_i64(k, lanes));
    each(user, ir_add(k, first, lane), IR_NONE);
    ir_end(k);
  }
  for (int64_t i = looped; i < whole; i++)
    each(user, ir_add(k, clb_i64(k, i * lanes), lane), IR_NONE);
  if (mul % lanes)
    each(user, ir_add(k, clb_i64(k, whole * lanes), lane),
         ir_2(k, IR_LT, ir_lane(k), clb_i32(k, mul % lanes)));
}
