/* kernels/grouped/jacobi.c - singular vectors of a matrix B of no more rows than columns, by
   rotations of pairs of rows until all are orthogonal (one-sided Jacobi): J B, J orthogonal. The
   rows of J are then one side's vectors, the rows of J B those of the other, times singular values.

   A lane has some columns of B and J, and pairs of one round, whose rows are all different, are
   rotated some at a time: their sums over columns meet in local memory. */
#include "kernels/grouped/basis.h"

enum { PAIRS = 4, SUMS = 3 }; /* of a pair: p p, q q, p q */

typedef struct {
  clb_basis_kernel *b;
  int pairs;           /* at most PAIRS: registers hold fewer of f64 */
  ir_val parts, sizes; /* local: sums of sub-groups, in two places by turns; of rows of B */
  ir_val n, length;    /* i32: rows, columns */
  ir_val own;          /* i32: the lane of the group */
  ir_val turn;         /* variable: which place of parts is next */
  ir_val rotated;      /* variable: whether anything was, in this sweep */
} rotations;

/* Rows p and q of up to PAIRS pairs; exists: bool. */
typedef struct {
  ir_val p[PAIRS], q[PAIRS], exists[PAIRS], sum[PAIRS][SUMS];
} batch;

static ir_val i32(rotations *w, int64_t x) { return clb_basis_i32(w->b, x); }

clb_basis_locals clb_jacobi_locals(clb_basis_kernel *b) {
  return (clb_basis_locals){{ir_local(b->k, b->t, 2 * (int64_t)b->s->subgroups * PAIRS * SUMS),
                             ir_local(b->k, b->t, b->side)}};
}

/* ---- columns ---- */

/* Begins a loop over this lane's columns below an end. */
static ir_val begin_columns(rotations *w, ir_val end, ir_val *mask) {
  ir_kernel *k = w->b->k;
  ir_val all = i32(w, (int64_t)w->b->s->lanes * w->b->s->subgroups),
         at = ir_add(k, ir_loop(k, i32(w, 0), end, all), w->own);
  *mask = ir_2(k, IR_LT, at, end);
  return at;
}

static ir_val place(rotations *w, int column, ir_val row, ir_val width, ir_val at) {
  return clb_basis_place(w->b, w->b->at[column], row, ir_cast(w->b->k, IR_I64, width), at);
}

/* ---- sums over all lanes ---- */

/* v[n], n <= PAIRS SUMS: of the sub-groups' sums. */
static void sum_over_group(rotations *w, ir_val *v, int n) {
  ir_kernel *k = w->b->k;
  const int groups = w->b->s->subgroups;
  for (int i = 0; i < n; i++) v[i] = ir_reduce_add(k, v[i]);
  if (groups == 1) return;
  ir_val turn = ir_get(k, w->turn), start = ir_mul(k, turn, i32(w, (int64_t)groups * PAIRS * SUMS)),
         mine = ir_add(k, start, ir_mul(k, w->b->subgroup, i32(w, (int64_t)PAIRS * SUMS)));
  for (int i = 0; i < n; i++) ir_store(k, w->parts, ir_add(k, mine, i32(w, i)), IR_NONE, v[i]);
  ir_barrier(k, true);
  ir_set(k, w->turn, ir_sub(k, i32(w, 1), turn));
  for (int i = 0; i < n; i++)
    for (int g = 0; g < groups; g++) {
      ir_val part =
          ir_load(k, w->parts, ir_add(k, start, i32(w, (int64_t)g * PAIRS * SUMS + i)), IR_NONE);
      v[i] = g ? ir_add(k, v[i], part) : part;
    }
}

/* The largest absolute value of the gradient, at least `least`. */
static ir_val largest(rotations *w, double least) {
  ir_kernel *k = w->b->k;
  const int groups = w->b->s->subgroups;
  ir_val most = ir_var(k, ir_real(k, w->b->t, least), false), mask;
  ir_val at = begin_columns(w, w->length, &mask), row = ir_loop(k, i32(w, 0), w->n, i32(w, 1));
  ir_val x =
      ir_load(k, w->b->memory,
              ir_add(k, w->b->at[CLB_ROTATED_GRADIENT],
                     ir_add(k, ir_mul(k, ir_cast(k, IR_I64, row), w->b->at[CLB_ROTATED_ROW]),
                            ir_mul(k, ir_cast(k, IR_I64, at), w->b->at[CLB_ROTATED_COLUMN]))),
              mask);
  ir_set(k, most, ir_2(k, IR_MAX, ir_get(k, most), ir_1(k, IR_ABS, x)));
  ir_end(k);
  ir_end(k);
  ir_val m = ir_get(k, most);
  for (int d = w->b->s->lanes / 2; d; d /= 2) m = ir_2(k, IR_MAX, m, ir_shuffle_xor(k, m, d));
  if (groups == 1) return m;
  ir_store(k, w->parts, w->b->subgroup, ir_2(k, IR_LT, w->b->lane, i32(w, 1)), m);
  ir_barrier(k, true);
  for (int g = 0; g < groups; g++) m = ir_2(k, IR_MAX, m, ir_load(k, w->parts, i32(w, g), IR_NONE));
  ir_barrier(k, true);
  return m;
}

/* ---- the beginning: B = gradient / its largest element, J = 1 ---- */

static void begin_matrices(rotations *w) {
  ir_kernel *k = w->b->k;
  const ir_type t = w->b->t;
  ir_val divisor = largest(w, t == IR_F64 ? 1e-300 : 1e-37), mask, one = i32(w, 1);
  ir_val at = begin_columns(w, w->length, &mask), row = ir_loop(k, i32(w, 0), w->n, one);
  ir_val from = ir_add(k, w->b->at[CLB_ROTATED_GRADIENT],
                       ir_add(k, ir_mul(k, ir_cast(k, IR_I64, row), w->b->at[CLB_ROTATED_ROW]),
                              ir_mul(k, ir_cast(k, IR_I64, at), w->b->at[CLB_ROTATED_COLUMN])));
  ir_store(k, w->b->memory, place(w, CLB_ROTATED_B, row, w->length, at), mask,
           ir_2(k, IR_DIV, ir_load(k, w->b->memory, from, mask), divisor));
  ir_end(k);
  ir_end(k);
  at = begin_columns(w, w->n, &mask);
  row = ir_loop(k, i32(w, 0), w->n, one);
  ir_store(k, w->b->memory, place(w, CLB_ROTATED_J, row, w->n, at), mask,
           ir_select(k, ir_2(k, IR_EQ, row, at), ir_real(k, t, 1), ir_real(k, t, 0)));
  ir_end(k);
  ir_end(k);
}

/* ---- rotations ---- */

/* sum[i]: products of rows p and q of B, n_sums of the three. */
static void sum_rows(rotations *w, batch *x, int n_sums) {
  ir_kernel *k = w->b->k;
  ir_val sum[PAIRS * SUMS], mask;
  for (int i = 0; i < w->pairs * n_sums; i++) sum[i] = ir_var(k, ir_real(k, w->b->t, 0), false);
  ir_val at = begin_columns(w, w->length, &mask);
  for (int i = 0; i < w->pairs; i++) {
    ir_val here = ir_2(k, IR_AND, mask, x->exists[i]), v[2];
    for (int j = 0; j < 2; j++)
      v[j] = ir_load(k, w->b->memory, place(w, CLB_ROTATED_B, j ? x->q[i] : x->p[i], w->length, at),
                     here);
    for (int j = 0; j < n_sums; j++) {
      ir_val a = v[j == 1], b = v[j > 0], s = sum[i * n_sums + j];
      ir_set(k, s, ir_fma(k, a, b, ir_get(k, s)));
    }
  }
  ir_end(k);
  for (int i = 0; i < w->pairs * n_sums; i++) sum[i] = ir_get(k, sum[i]);
  sum_over_group(w, sum, w->pairs * n_sums);
  for (int i = 0; i < w->pairs; i++)
    for (int j = 0; j < n_sums; j++) x->sum[i][j] = sum[i * n_sums + j];
}

/* Rows p and q of a matrix become c p - s q and s p + c q. */
static void turn_rows(rotations *w, int column, ir_val width, ir_val p, ir_val q, ir_val c,
                      ir_val s) {
  ir_kernel *k = w->b->k;
  ir_val mask, at = begin_columns(w, width, &mask), to_p = place(w, column, p, width, at),
               to_q = place(w, column, q, width, at), x = ir_load(k, w->b->memory, to_p, mask),
               y = ir_load(k, w->b->memory, to_q, mask);
  ir_store(k, w->b->memory, to_p, mask, ir_sub(k, ir_mul(k, c, x), ir_mul(k, s, y)));
  ir_store(k, w->b->memory, to_q, mask, ir_add(k, ir_mul(k, s, x), ir_mul(k, c, y)));
  ir_end(k);
}

/* By the smaller of the two angles that make the rows orthogonal. */
static void rotate(rotations *w, batch *x, int i) {
  ir_kernel *k = w->b->k;
  const ir_type t = w->b->t;
  ir_val pp = x->sum[i][0], qq = x->sum[i][1], pq = x->sum[i][2], one = ir_real(k, t, 1),
         zero = ir_real(k, t, 0), tolerance = ir_real(k, t, t == IR_F64 ? 1e-15 : 5e-7);
  ir_val both = ir_mul(k, ir_1(k, IR_SQRT, pp), ir_1(k, IR_SQRT, qq));
  ir_if(k, ir_2(k, IR_LT, ir_mul(k, tolerance, both), ir_1(k, IR_ABS, pq)));
  ir_val z = ir_2(k, IR_DIV, ir_sub(k, qq, pp), ir_add(k, pq, pq)),
         tangent = ir_2(k, IR_DIV, one,
                        ir_add(k, ir_1(k, IR_ABS, z), ir_1(k, IR_SQRT, ir_fma(k, z, z, one))));
  tangent = ir_select(k, ir_2(k, IR_LT, z, zero), ir_1(k, IR_NEG, tangent), tangent);
  ir_val c = ir_2(k, IR_DIV, one, ir_1(k, IR_SQRT, ir_fma(k, tangent, tangent, one))),
         s = ir_mul(k, c, tangent);
  turn_rows(w, CLB_ROTATED_B, w->length, x->p[i], x->q[i], c, s);
  turn_rows(w, CLB_ROTATED_J, w->n, x->p[i], x->q[i], c, s);
  ir_set(k, w->rotated, i32(w, 1));
  ir_end(k);
}

/* Pair i of a round: one row stays, the others go round in a circle. */
static void find_pair(rotations *w, batch *x, int at, ir_val round, ir_val i, ir_val circle) {
  ir_kernel *k = w->b->k;
  ir_val p = ir_2(k, IR_MOD, ir_add(k, round, i), circle),
         back = ir_sub(k, ir_add(k, round, circle), ir_2(k, IR_MIN, i, circle)),
         q = ir_2(k, IR_MOD, back, circle);
  p = ir_select(k, ir_2(k, IR_EQ, i, i32(w, 0)), circle, p);
  x->exists[at] =
      ir_2(k, IR_AND, ir_2(k, IR_LT, i, ir_2(k, IR_DIV, ir_add(k, circle, i32(w, 1)), i32(w, 2))),
           ir_2(k, IR_AND, ir_2(k, IR_LT, p, w->n), ir_2(k, IR_LT, q, w->n)));
  x->p[at] = p;
  x->q[at] = q;
}

static void sweep(rotations *w) {
  ir_kernel *k = w->b->k;
  ir_val one = i32(w, 1), two = i32(w, 2),
         half = ir_2(k, IR_DIV, ir_add(k, w->n, one), two), /* pairs of a round */
      circle = ir_sub(k, ir_mul(k, half, two), one);
  batch x;
  ir_val round = ir_loop(k, i32(w, 0), circle, one),
         first = ir_loop(k, i32(w, 0), half, i32(w, w->pairs));
  for (int i = 0; i < w->pairs; i++)
    find_pair(w, &x, i, round, ir_add(k, first, i32(w, i)), circle);
  sum_rows(w, &x, SUMS);
  for (int i = 0; i < w->pairs; i++) rotate(w, &x, i);
  ir_end(k);
  ir_end(k);
}

/* ---- the end: rows in the order of their size, the largest first ---- */

static void measure_rows(rotations *w) {
  ir_kernel *k = w->b->k;
  batch x;
  ir_val first = ir_loop(k, i32(w, 0), w->n, i32(w, w->pairs));
  for (int i = 0; i < w->pairs; i++) {
    x.p[i] = x.q[i] = ir_add(k, first, i32(w, i));
    x.exists[i] = ir_2(k, IR_LT, x.p[i], w->n);
  }
  sum_rows(w, &x, 1);
  ir_if(k, ir_2(k, IR_EQ, w->b->subgroup, i32(w, 0)));
  for (int i = 0; i < w->pairs; i++) ir_store(k, w->sizes, x.p[i], x.exists[i], x.sum[i][0]);
  ir_end(k);
  ir_end(k);
  if (w->b->s->subgroups > 1) ir_barrier(k, true);
}

/* How many rows come before row p. */
static ir_val rank_of(rotations *w, ir_val p) {
  ir_kernel *k = w->b->k;
  const ir_type t = w->b->t;
  ir_val before = ir_var(k, ir_real(k, t, 0), false), size = ir_load(k, w->sizes, p, IR_NONE),
         q = ir_add(k, ir_loop(k, i32(w, 0), w->n, i32(w, w->b->s->lanes)), w->b->lane),
         mask = ir_2(k, IR_LT, q, w->n), other = ir_load(k, w->sizes, q, mask);
  ir_val equal = ir_2(k, IR_AND, ir_2(k, IR_EQ, other, size), ir_2(k, IR_LT, q, p)),
         ahead = ir_2(k, IR_AND, mask, ir_2(k, IR_OR, ir_2(k, IR_LT, size, other), equal));
  ir_set(k, before,
         ir_add(k, ir_get(k, before), ir_select(k, ahead, ir_real(k, t, 1), ir_real(k, t, 0))));
  ir_end(k);
  return ir_cast(k, IR_I32, ir_reduce_add(k, ir_get(k, before)));
}

static void copy_row(rotations *w, int from, ir_val p, int to, ir_val row, ir_val width) {
  ir_kernel *k = w->b->k;
  ir_val mask, at = begin_columns(w, width, &mask);
  ir_store(k, w->b->memory, place(w, to, row, width, at), mask,
           ir_load(k, w->b->memory, place(w, from, p, width, at), mask));
  ir_end(k);
}

/* The vectors of the longer side that are not there yet are 0: ORTHOGONALISE makes some up. */
static void store_sorted(rotations *w) {
  ir_kernel *k = w->b->k;
  ir_val one = i32(w, 1),
         longer = ir_2(k, IR_LE, ir_int(k, IR_I64, 0), w->b->at[CLB_ROTATED_S_LONG]),
         p = ir_loop(k, i32(w, 0), w->n, one), row = rank_of(w, p), mask;
  copy_row(w, CLB_ROTATED_J, p, CLB_ROTATED_S_SHORT, row, w->n);
  ir_if(k, longer);
  copy_row(w, CLB_ROTATED_B, p, CLB_ROTATED_S_LONG, row, w->length);
  ir_end(k);
  ir_end(k);
  ir_if(k, longer);
  row = ir_loop(k, w->n, w->length, one);
  ir_val at = begin_columns(w, w->length, &mask);
  ir_store(k, w->b->memory, place(w, CLB_ROTATED_S_LONG, row, w->length, at), mask,
           ir_real(k, w->b->t, 0));
  ir_end(k);
  ir_end(k);
  ir_end(k);
}

void clb_jacobi(clb_basis_kernel *b, const clb_basis_locals *l) {
  ir_kernel *k = b->k;
  const int sweeps = b->t == IR_F64 ? 16 : 12;
  rotations w = {.b = b,
                 .pairs = b->t == IR_F64 ? PAIRS / 2 : PAIRS,
                 .parts = l->array[0],
                 .sizes = l->array[1],
                 .n = ir_cast(k, IR_I32, b->at[CLB_ROTATED_SHORT]),
                 .length = ir_cast(k, IR_I32, b->at[CLB_ROTATED_LONG])};
  w.own = ir_add(k, ir_mul(k, b->subgroup, i32(&w, b->s->lanes)), b->lane);
  w.turn = ir_var(k, i32(&w, 0), true);
  w.rotated = ir_var(k, i32(&w, 1), true);
  begin_matrices(&w);
  ir_loop(k, i32(&w, 0), i32(&w, sweeps), i32(&w, 1));
  ir_if(k, ir_2(k, IR_EQ, ir_get(k, w.rotated), i32(&w, 1)));
  ir_set(k, w.rotated, i32(&w, 0));
  sweep(&w);
  ir_end(k);
  ir_end(k);
  measure_rows(&w);
  store_sorted(&w);
}
