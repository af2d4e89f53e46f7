/* kernels/dispersion/weights.c - weights of an atom's reference systems, and their products with C6
   (dispersion_steps.h). */
#include "kernels/dispersion/pair_c6.h"

static ir_val wide(ir_kernel *k, ir_val a) { return ir_cast(k, IR_I64, a); }

typedef struct {
  clb_row_kernel b;
  ir_kernel *k;
  ir_type t;
  ir_val n, place, references, columns, numbers, c6;
  ir_val first, number, least, mean, scale; /* row of the element's first system, n_i,
                                               least (n_i - n_a)^2, mean of n_i - n_a, 1 / sum */
} weights;

/* n_i - n_a, and whether there is such a system. */
static ir_val away(const weights *c, ir_val a, ir_val *there) {
  ir_kernel *k = c->k;
  const ir_val n = ir_load(k, c->numbers, ir_add(k, c->first, wide(k, a)), IR_NONE);
  *there = ir_2(k, IR_LE, ir_real(k, c->t, 0), n);
  return ir_sub(k, c->number, n);
}

/* Relative to the largest one, which is 1, so that none of them needs to be representable. */
static ir_val relative_weight(const weights *c, ir_val a, ir_val *difference) {
  ir_kernel *k = c->k;
  ir_val there;
  *difference = away(c, a, &there);
  const ir_val x = ir_sub(k, c->least, ir_mul(k, *difference, *difference)),
               w = ir_1(k, IR_EXP, ir_mul(k, ir_real(k, c->t, 4), x));
  return ir_select(k, there, w, ir_real(k, c->t, 0));
}

static void find_scale(weights *c) {
  ir_kernel *k = c->k;
  const ir_val zero = ir_real(k, c->t, 0), far = ir_real(k, c->t, 1e30),
               least = ir_var(k, far, true);
  ir_val a = ir_loop(k, clb_i32(k, 0), c->references, clb_i32(k, 1)), there, x;
  x = away(c, a, &there);
  ir_set(k, least, ir_2(k, IR_MIN, ir_get(k, least), ir_select(k, there, ir_mul(k, x, x), far)));
  ir_end(k);
  c->least = ir_get(k, least);
  const ir_val sum = ir_var(k, zero, true), moment = ir_var(k, zero, true);
  a = ir_loop(k, clb_i32(k, 0), c->references, clb_i32(k, 1));
  const ir_val w = relative_weight(c, a, &x);
  ir_set(k, sum, ir_add(k, ir_get(k, sum), w));
  ir_set(k, moment, ir_fma(k, w, x, ir_get(k, moment)));
  ir_end(k);
  c->scale = ir_2(k, IR_DIV, ir_real(k, c->t, 1), ir_get(k, sum));
  c->mean = ir_mul(k, ir_get(k, moment), c->scale);
}

static void store_weights(const weights *c, ir_val out) {
  ir_kernel *k = c->k;
  const ir_val a = ir_loop(k, clb_i32(k, 0), c->references, clb_i32(k, 1)),
               at = clb_weight_at(k, c->b.s, c->references, c->n, c->place, wide(k, a));
  ir_val x;
  ir_store(k, out, at, clb_first_lane(k), ir_mul(k, relative_weight(c, a, &x), c->scale));
  ir_end(k);
}

/* Lanes are reference systems of neighbours. */
static void store_products(const weights *c, ir_val out) {
  ir_kernel *k = c->k;
  const ir_val zero = ir_real(k, c->t, 0);
  const ir_val lot = ir_loop(k, clb_i64(k, 0), c->columns, clb_i64(k, c->b.s->lanes)),
               column = ir_add(k, lot, wide(k, ir_lane(k))),
               mask = ir_2(k, IR_LT, column, c->columns), sum = ir_var(k, zero, false),
               slope = ir_var(k, zero, false);
  const ir_val a = ir_loop(k, clb_i32(k, 0), c->references, clb_i32(k, 1));
  ir_val x;
  const ir_val w = ir_mul(k, relative_weight(c, a, &x), c->scale),
               dw = ir_mul(k, w, ir_mul(k, ir_real(k, c->t, -8), ir_sub(k, x, c->mean))),
               row = ir_mul(k, ir_add(k, c->first, wide(k, a)), c->columns),
               c6 = ir_load(k, c->c6, ir_add(k, row, column), mask);
  ir_set(k, sum, ir_fma(k, w, c6, ir_get(k, sum)));
  ir_set(k, slope, ir_fma(k, dw, c6, ir_get(k, slope)));
  ir_end(k);
  const ir_val both[2] = {ir_get(k, sum), ir_get(k, slope)},
               to = ir_add(k, ir_mul(k, c->place, c->columns), column);
  ir_store_wide(k, out, ir_mul(k, to, clb_i64(k, 2)), mask, 2, both);
  ir_end(k);
}

void clb_lower_weights(ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  weights c = {.k = k, .t = clb_ir_type((clb_dtype)p->arithmetic)};
  clb_layer_begin(&c.b, k, "dispersion_weights", s, p->arithmetic);
  c.n = ir_scalar(k, IR_I64);
  const ir_val atoms = ir_buffer(k, IR_I32, false), elements = ir_buffer(k, IR_I32, false),
               counted = ir_buffer(k, IR_F64, false);
  c.references = ir_scalar(k, IR_I32);
  c.columns = ir_scalar(k, IR_I64);
  c.numbers = ir_buffer(k, c.t, false);
  c.c6 = ir_buffer(k, c.t, false);
  const ir_val w = ir_buffer(k, c.t, true), products = ir_buffer(k, c.t, true);
  clb_layer_start(&c.b);
  c.place = c.b.unit;
  const ir_val atom = wide(k, ir_load(k, atoms, c.place, IR_NONE)),
               element = wide(k, ir_load(k, elements, c.place, IR_NONE));
  c.number = ir_cast(k, c.t, ir_load(k, counted, atom, IR_NONE));
  c.first = ir_mul(k, element, wide(k, c.references));
  find_scale(&c);
  store_weights(&c, w);
  store_products(&c, products);
  clb_layer_finish(&c.b);
}
