/* kernels/grouped/householder.c - S = (lower triangle) E with reflections, which give orthonormal
   rows whatever S is, also where rows of S are 0 or depend on each other.

   Reflection j makes row j of S zero behind its diagonal. A row belongs to one sub-group, an
   element of it to one lane; the row that reflects is shown to all in local memory, in two places
   by turns. Then E, which begins as 1, is reflected in the opposite order. */
#include "kernels/grouped/basis.h"

typedef struct {
  clb_basis_kernel *b;
  ir_val shown;          /* local */
  ir_val n, s, e, width; /* i32; i64 */
} reflections;

static ir_val i32(reflections *w, int64_t x) { return clb_basis_i32(w->b, x); }

clb_basis_locals clb_householder_locals(clb_basis_kernel *b) {
  return (clb_basis_locals){{ir_local(b->k, b->t, 2 * (int64_t)b->side)}};
}

/* ---- elements of a row, from `first` on ---- */

/* Begins a loop over the blocks of lanes that have some; this lane's element, and whether it is
   one. */
static ir_val begin_elements(reflections *w, ir_val first, ir_val *mask) {
  ir_kernel *k = w->b->k;
  ir_val lanes = i32(w, w->b->s->lanes), start = ir_mul(k, ir_2(k, IR_DIV, first, lanes), lanes),
         at = ir_add(k, ir_loop(k, start, w->n, lanes), w->b->lane);
  *mask = ir_2(k, IR_AND, ir_2(k, IR_LE, first, at), ir_2(k, IR_LT, at, w->n));
  return at;
}

static ir_val place(reflections *w, ir_val start, ir_val row, ir_val at) {
  return clb_basis_place(w->b, start, row, w->width, at);
}

/* Shows elements j ... n - 1 of row j of S in a place of local memory. */
static void show(reflections *w, ir_val j, ir_val stage) {
  ir_kernel *k = w->b->k;
  ir_val mask, owner = ir_2(k, IR_MOD, j, i32(w, w->b->s->subgroups));
  ir_if(k, ir_2(k, IR_EQ, w->b->subgroup, owner));
  ir_val at = begin_elements(w, j, &mask);
  ir_store(k, w->shown, ir_add(k, stage, at), mask,
           ir_load(k, w->b->memory, place(w, w->s, j, at), mask));
  ir_end(k);
  ir_end(k);
  ir_barrier(k, true);
}

/* Of what is shown, from element `first` on. */
static ir_val squares(reflections *w, ir_val stage, ir_val first) {
  ir_kernel *k = w->b->k;
  ir_val sum = ir_var(k, ir_real(k, w->b->t, 0), false), mask;
  ir_val at = begin_elements(w, first, &mask), x = ir_load(k, w->shown, ir_add(k, stage, at), mask);
  ir_set(k, sum, ir_fma(k, x, x, ir_get(k, sum)));
  ir_end(k);
  return ir_reduce_add(k, ir_get(k, sum));
}

/* Reflects the rows of a matrix that are this sub-group's, from row `first` on, by v, which is
   shown but for its element j, `head`; half: |v|^2 / 2, 0: v is 0, nothing is done. */
static void reflect(reflections *w, ir_val matrix, ir_val first, ir_val j, ir_val stage,
                    ir_val head, ir_val half) {
  ir_kernel *k = w->b->k;
  const ir_type t = w->b->t;
  ir_val groups = i32(w, w->b->s->subgroups), zero = ir_real(k, t, 0), mask,
         some = ir_2(k, IR_LT, zero, half),
         over = ir_select(
             k, some, ir_2(k, IR_DIV, ir_real(k, t, 1), ir_select(k, some, half, ir_real(k, t, 1))),
             zero),
         apart = ir_sub(k, ir_add(k, w->b->subgroup, groups), ir_2(k, IR_MOD, first, groups));
  ir_val row = ir_loop(k, ir_add(k, first, ir_2(k, IR_MOD, apart, groups)), w->n, groups),
         sum = ir_var(k, zero, false);
  ir_val at = begin_elements(w, j, &mask), v = ir_load(k, w->shown, ir_add(k, stage, at), mask);
  v = ir_select(k, ir_2(k, IR_EQ, at, j), head, v);
  ir_set(k, sum,
         ir_fma(k, v, ir_load(k, w->b->memory, place(w, matrix, row, at), mask), ir_get(k, sum)));
  ir_end(k);
  ir_val factor = ir_mul(k, ir_reduce_add(k, ir_get(k, sum)), over);
  at = begin_elements(w, j, &mask);
  v = ir_select(k, ir_2(k, IR_EQ, at, j), head, ir_load(k, w->shown, ir_add(k, stage, at), mask));
  ir_val x = ir_load(k, w->b->memory, place(w, matrix, row, at), mask);
  ir_store(k, w->b->memory, place(w, matrix, row, at), mask, ir_sub(k, x, ir_mul(k, factor, v)));
  ir_end(k);
  ir_end(k);
}

static ir_val stage_of(reflections *w, ir_val turn) {
  ir_kernel *k = w->b->k;
  return ir_mul(k, ir_2(k, IR_MOD, turn, i32(w, 2)), i32(w, w->b->side));
}

/* ---- S ---- */

/* Its owner keeps the head of v on the diagonal of S. */
static void keep_head(reflections *w, ir_val j, ir_val head) {
  ir_kernel *k = w->b->k;
  ir_val lanes = i32(w, w->b->s->lanes), owner = ir_2(k, IR_MOD, j, i32(w, w->b->s->subgroups)),
         at = ir_add(k, ir_mul(k, ir_2(k, IR_DIV, j, lanes), lanes), w->b->lane);
  ir_if(k, ir_2(k, IR_EQ, w->b->subgroup, owner));
  ir_store(k, w->b->memory, place(w, w->s, j, at), ir_2(k, IR_EQ, at, j), head);
  ir_end(k);
}

static void triangle(reflections *w) {
  ir_kernel *k = w->b->k;
  const ir_type t = w->b->t;
  ir_val one = i32(w, 1), j = ir_loop(k, i32(w, 0), ir_sub(k, w->n, one), one),
         stage = stage_of(w, j), next = ir_add(k, j, one);
  show(w, j, stage);
  ir_val first = ir_load(k, w->shown, ir_add(k, stage, j), IR_NONE), tail = squares(w, stage, next),
         norm = ir_1(k, IR_SQRT, ir_fma(k, first, first, tail)), minus = ir_1(k, IR_NEG, norm),
         below = ir_2(k, IR_LT, first, ir_real(k, t, 0)),
         head = ir_add(k, first, ir_select(k, below, minus, norm));
  ir_val half = ir_mul(k, ir_real(k, t, 0.5), ir_fma(k, head, head, tail));
  keep_head(w, j, head);
  reflect(w, w->s, next, j, stage, head, half);
  ir_end(k);
}

/* ---- E ---- */

static void begin_with_one(reflections *w) {
  ir_kernel *k = w->b->k;
  const ir_type t = w->b->t;
  ir_val mask, row = ir_loop(k, w->b->subgroup, w->n, i32(w, w->b->s->subgroups)),
               at = begin_elements(w, i32(w, 0), &mask);
  ir_store(k, w->b->memory, place(w, w->e, row, at), mask,
           ir_select(k, ir_2(k, IR_EQ, row, at), ir_real(k, t, 1), ir_real(k, t, 0)));
  ir_end(k);
  ir_end(k);
}

/* Rows before j of E are still those of 1, and 0 where v is not. The places of rows that are shown
   take turns as before. */
static void turn_back(reflections *w) {
  ir_kernel *k = w->b->k;
  ir_val one = i32(w, 1), last = ir_sub(k, w->n, i32(w, 2)),
         turn = ir_loop(k, i32(w, 0), ir_sub(k, w->n, one), one), j = ir_sub(k, last, turn),
         stage = stage_of(w, ir_add(k, turn, ir_sub(k, w->n, one)));
  show(w, j, stage);
  ir_val head = ir_load(k, w->shown, ir_add(k, stage, j), IR_NONE),
         half = ir_mul(k, ir_real(k, w->b->t, 0.5), squares(w, stage, j));
  reflect(w, w->e, j, j, stage, head, half);
  ir_end(k);
}

void clb_householder(clb_basis_kernel *b, const clb_basis_locals *l) {
  ir_kernel *k = b->k;
  reflections w = {.b = b,
                   .shown = l->array[0],
                   .n = ir_cast(k, IR_I32, b->at[CLB_SIDE_N]),
                   .s = b->at[CLB_SIDE_S],
                   .e = b->at[CLB_SIDE_E],
                   .width = b->at[CLB_SIDE_N]};
  begin_with_one(&w);
  triangle(&w);
  turn_back(&w);
}
