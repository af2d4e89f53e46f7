/* kernels/optimizer/chunk_step.c - what a step reads before its elements: the gradients' norm, what
   chunks keep, the numbers of groups. */
#include "kernels/optimizer/chunks.h"

static ir_val i32(ir_kernel *k, int64_t x) { return ir_int(k, IR_I32, x); }

void clb_chunk_step_declare(clb_chunk_step *u, bool writes) {
  ir_kernel *k = u->c.k;
  u->numbers = ir_buffer(k, u->c.t, false);
  u->powers = ir_buffer(k, u->c.t, writes);
  u->counts = ir_buffer(k, IR_I32, writes);
}

void clb_chunk_step_declare_sums(clb_chunk_step *u) {
  ir_kernel *k = u->c.k;
  if (!clb_optimizer_sums(u->o)) return;
  u->most = ir_scalar(k, u->c.t);
  u->partials = ir_buffer(k, u->c.t, false);
  u->n = ir_scalar(k, IR_I32);
}

/* ---- the gradients' norm ---- */

/* The sum of one of the two lists of partial sums, in an order that does not change. */
static ir_val total(clb_chunk_step *u, int list) {
  ir_kernel *k = u->c.k;
  ir_val all = ir_var(k, ir_real(k, u->c.t, 0), false),
         i = ir_loop(k, i32(k, 0), u->n, i32(k, u->c.s->lanes)), at = ir_add(k, i, ir_lane(k)),
         mask = ir_2(k, IR_LT, ir_lane(k), ir_sub(k, u->n, i));
  if (list) at = ir_add(k, at, u->n);
  ir_set(k, all, ir_add(k, ir_get(k, all), ir_load(k, u->partials, at, mask)));
  ir_end(k);
  return ir_reduce_add(k, ir_get(k, all));
}

ir_val clb_chunk_step_norm(clb_chunk_step *u) {
  ir_kernel *k = u->c.k;
  const ir_type t = u->c.t;
  ir_val one = ir_real(k, t, 1), zero = ir_real(k, t, 0);
  u->finite = u->factor = IR_NONE;
  if (!clb_optimizer_sums(u->o)) return IR_NONE;
  ir_val norm = ir_1(k, IR_SQRT, total(u, 0)), ratio;
  if (u->o->check_finite) {
    const ir_val zeros = total(u, 1);
    u->finite = ir_2(k, IR_EQ, zeros, zero);
    norm = ir_add(k, norm, zeros);
  }
  if (u->o->clip == CLB_CLIP_TORCH) { /* a norm of NaN makes the gradients NaN, as there */
    ratio = ir_2(k, IR_DIV, u->most, ir_add(k, norm, ir_real(k, t, 1e-6)));
    u->factor = ir_select(k, ir_2(k, IR_LE, one, ratio), one, ratio);
  } else if (u->o->clip == CLB_CLIP_OPTAX) {
    ratio = ir_2(k, IR_DIV, u->most, norm);
    u->factor = ir_select(k, ir_2(k, IR_LT, norm, u->most), one, ratio);
  }
  return norm;
}

/* ---- what the chunk keeps ---- */

/* Only one lane reads and writes, since lanes are not in step. */
static ir_val spread(clb_chunk_step *u, ir_val of_first) {
  return ir_shuffle(u->c.k, of_first, i32(u->c.k, 0));
}

static void read_kept(clb_chunk_step *u) {
  ir_kernel *k = u->c.k;
  const int width = clb_optimizer_width(u->c.p->storage);
  ir_val mine = u->c.first_lane, at = ir_mul(k, u->c.chunk, i32(k, (int64_t)CLB_POWERS)), v[4];
  for (int i = 0; i < CLB_POWERS; i += width)
    ir_load_aligned(k, u->powers, ir_add(k, at, i32(k, i)), mine, width, u->now + i);
  ir_load_aligned(k, u->counts, ir_mul(k, u->c.chunk, i32(k, (int64_t)CLB_COUNTS)), mine, 2, v);
  for (int i = 0; i < CLB_POWERS; i++) u->now[i] = spread(u, u->now[i]);
  u->steps = spread(u, v[0]);
  u->skipped = spread(u, v[1]);
}

void clb_chunk_step_read_numbers(clb_chunk_step *u) {
  ir_kernel *k = u->c.k;
  const int width = clb_optimizer_width(u->c.p->storage);
  ir_val at = ir_mul(k, ir_cast(k, IR_I32, u->c.at[CLB_CHUNK_GROUP]), i32(k, (int64_t)CLB_NUMBERS));
  for (int i = 0; i < CLB_NUMBERS; i += width)
    ir_load_aligned(k, u->numbers, ir_add(k, at, i32(k, i)), IR_NONE, width, u->step.number + i);
}

void clb_chunk_step_read(clb_chunk_step *u) {
  ir_kernel *k = u->c.k;
  read_kept(u);
  clb_chunk_step_read_numbers(u);
  u->step.k = k;
  u->step.t = u->c.t;
  u->step.first = ir_2(k, IR_EQ, u->steps, i32(k, 0));
  u->step.steps = ir_cast(k, u->c.t, ir_add(k, u->steps, i32(k, 1)));
}

void clb_chunk_step_start(clb_chunk_step *u) {
  for (int p = 0; p < CLB_POWERS; p++) u->step.kept[p] = u->now[p];
  clb_rule_prepare(&u->step);
}

/* The chunk's rule and all of a higher number. */
static void rules_from(clb_chunk_step *u, int i, void (*each)(clb_chunk_step *u)) {
  ir_kernel *k = u->c.k;
  const bool last = i == u->o->n_rules - 1;
  if (!last) ir_if(k, ir_2(k, IR_EQ, u->c.at[CLB_CHUNK_RULE], ir_int(k, IR_I64, i)));
  u->step.rule = &u->o->rule[i];
  each(u);
  if (last) return;
  ir_else(k);
  rules_from(u, i + 1, each);
  ir_end(k);
}

void clb_chunk_step_rules(clb_chunk_step *u, void (*each)(clb_chunk_step *u)) {
  rules_from(u, 0, each);
}
