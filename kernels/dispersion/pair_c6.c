/* kernels/dispersion/pair_c6.c - C6 of two atoms, and sums of receivers. */
#include "kernels/dispersion/pair_c6.h"

static ir_val wide(ir_kernel *k, ir_val a) { return ir_cast(k, IR_I64, a); }

clb_c6 clb_c6_begin(clb_receiver *r) {
  clb_c6 c = {.references = ir_scalar(r->k, IR_I32)};
  c.columns = ir_scalar(r->k, IR_I64);
  c.weights = ir_buffer(r->k, r->t, false);
  c.products = ir_buffer(r->k, r->t, false);
  return c;
}

ir_val clb_weight_at(ir_kernel *k, const clb_schedule *s, ir_val references, ir_val n, ir_val place,
                     ir_val system) {
  return s->layer.wide_vectors ? ir_add(k, ir_mul(k, system, n), place)
                               : ir_add(k, ir_mul(k, place, wide(k, references)), system);
}

/* Adds the products of the weights of a system, of lanes whose neighbour has it. */
static void add_products(ir_kernel *k, const clb_c6 *c, ir_val at, ir_val weight, ir_val mask,
                         int n, const ir_val *sum) {
  ir_val v[2];
  ir_load_aligned(k, c->products, ir_mul(k, at, clb_i64(k, 2)), mask, 2, v);
  for (int i = 0; i < n; i++) ir_set(k, sum[i], ir_fma(k, v[i], weight, ir_get(k, sum[i])));
}

/* Where lanes are those of a CPU, which loads lane by lane what is not adjacent, all elements are
   gone through. */
static void go_through_elements(const clb_receiver *r, const clb_c6 *c, ir_val row,
                                const clb_neighbour *j, int n, const ir_val *sum) {
  ir_kernel *k = r->k;
  const ir_val step = wide(k, c->references),
               system = ir_loop(k, clb_i64(k, 0), step, clb_i64(k, 1)),
               from = clb_weight_at(k, r->w.b.s, c->references, r->w.n, j->place, system),
               w = ir_load(k, c->weights, from, j->inside), at = ir_add(k, row, system),
               first = ir_loop(k, clb_i64(k, 0), c->columns, step),
               own = ir_2(k, IR_EQ, ir_mul(k, j->element, step), first);
  add_products(k, c, ir_add(k, at, first), ir_select(k, own, w, ir_real(k, r->t, 0)), IR_NONE, n,
               sum);
  ir_end(k);
  ir_end(k);
}

/* The same of two adjacent systems; 16 bytes are loaded at once. */
static void add_adjacent(ir_kernel *k, const clb_c6 *c, ir_type t, ir_val at, const ir_val *weight,
                         ir_val mask, int n, const ir_val *sum) {
  ir_val v[4];
  if (t != IR_F32) {
    for (int i = 0; i < 2; i++)
      add_products(k, c, ir_add(k, at, clb_i64(k, i)), weight[i], mask, n, sum);
    return;
  }
  ir_load_aligned(k, c->products, ir_mul(k, at, clb_i64(k, 2)), mask, 4, v);
  for (int i = 0; i < 4; i++)
    if (i % 2 < n) ir_set(k, sum[i % 2], ir_fma(k, v[i], weight[i / 2], ir_get(k, sum[i % 2])));
}

/* Two systems at once: there is an even number of them. */
static void go_through_systems(const clb_receiver *r, const clb_c6 *c, ir_val row,
                               const clb_neighbour *j, int n, const ir_val *sum) {
  ir_kernel *k = r->k;
  const ir_val step = wide(k, c->references), own = ir_add(k, row, ir_mul(k, j->element, step)),
               system = ir_loop(k, clb_i64(k, 0), step, clb_i64(k, 2)), at = ir_add(k, own, system);
  ir_val w[2];
  ir_load_aligned(k, c->weights,
                  clb_weight_at(k, r->w.b.s, c->references, r->w.n, j->place, system), j->inside, 2,
                  w);
  add_adjacent(k, c, r->t, at, w, j->mask, n, sum);
  ir_end(k);
}

void clb_c6_find(const clb_receiver *r, const clb_c6 *c, ir_val place, const clb_neighbour *j,
                 int n, ir_val *c6) {
  ir_kernel *k = r->k;
  const ir_val row = ir_mul(k, place, c->columns);
  ir_val sum[2];
  for (int i = 0; i < n; i++) sum[i] = ir_var(k, ir_real(k, r->t, 0), false);
  (r->w.b.s->layer.wide_vectors ? go_through_elements : go_through_systems)(r, c, row, j, n, sum);
  for (int i = 0; i < n; i++) c6[i] = ir_get(k, sum[i]);
}

void clb_store_sums(clb_receiver *r, ir_val sums, int first, int n, const ir_val *values,
                    bool adds) {
  ir_kernel *k = r->k;
  const clb_added to = {sums, clb_i64(k, first), clb_i32(k, 1)};
  const ir_val row = ir_mul(k, r->row, clb_i64(k, CLB_DISPERSION_COLUMNS));
  if (adds) clb_add_to(k, &to, row, n, values);
  for (int i = 0; i < n && !adds; i++)
    ir_store(k, sums, ir_add(k, row, clb_i64(k, first + i)), clb_first_lane(k), values[i]);
}
