/* kernels/norm/reduce.c - sums over the elements of a row, and over the rows of a group. */
#include "kernels/norm/norm.h"

/* ---- of a row ---- */

static int groups_of(const clb_norm_kernel *b, int sum) {
  return sum < SUM_OF_GROUPS ? b->plan.n_groups : 1;
}

static bool needed(const clb_norm_kernel *b, int sum) {
  const bool backward = b->p->pass != CLB_FORWARD, twice = b->p->pass == CLB_DOUBLE_BACKWARD,
             centre = b->norm->centre && b->plan.scalars;
  const bool wanted[NORM_SUMS] = {[SUM_SQUARES] = true,
                                  [SUM_PULL] = backward && (b->x || twice),
                                  [SUM_BEND] = twice && b->a && b->x,
                                  [SUM_SLANT] = twice && b->a,
                                  [SUM_TURN] = twice && b->c && b->x,
                                  [SUM_X] = centre,
                                  [SUM_A] = centre && twice && b->a,
                                  [SUM_H] = centre && backward && b->x,
                                  [SUM_CG] = centre && twice && b->c && b->x};
  return wanted[sum];
}

void clb_norm_clear(clb_norm_kernel *b, int first, int last) {
  ir_kernel *k = b->l.k;
  for (int sum = first; sum < last; sum++)
    for (int g = 0; g < groups_of(b, sum); g++) {
      b->total[sum][g] = IR_NONE;
      for (int i = 0; i < CLB_NORM_CHAINS; i++)
        b->chain[sum][g][i] = needed(b, sum) ? ir_var(k, ir_real(k, b->l.t, 0), false) : IR_NONE;
    }
}

void clb_norm_add(clb_norm_kernel *b, const clb_norm_chunk *c, int sum, ir_val a, ir_val x) {
  ir_kernel *k = b->l.k;
  ir_val to = b->chain[sum][sum < SUM_OF_GROUPS ? c->s->group : 0][c->number % CLB_NORM_CHAINS];
  if (needed(b, sum)) ir_set(k, to, ir_fma(k, a, x, ir_get(k, to)));
}

static ir_val sum_of_chains(ir_kernel *k, const ir_val *chain) {
  ir_val v[CLB_NORM_CHAINS];
  for (int i = 0; i < CLB_NORM_CHAINS; i++) v[i] = ir_get(k, chain[i]);
  for (int n = CLB_NORM_CHAINS / 2; n; n /= 2)
    for (int i = 0; i < n; i++) v[i] = ir_add(k, v[i], v[i + n]);
  return v[0];
}

static ir_val over_lanes(clb_norm_kernel *b, ir_val v) {
  ir_kernel *k = b->l.k;
  if (b->rows == 1) return ir_reduce_add(k, v);
  for (int d = b->team / 2; d; d /= 2) v = ir_add(k, v, ir_shuffle_xor(k, v, d));
  return v;
}

/* Of all groups together. */
static int count_sums(const clb_norm_kernel *b) {
  int n = 0;
  for (int sum = 0; sum < NORM_SUMS; sum++) n += needed(b, sum) ? groups_of(b, sum) : 0;
  return n;
}

void clb_norm_exchange_begin(clb_norm_kernel *b) {
  ir_kernel *k = b->l.k;
  if (!b->together) return;
  b->exchange = ir_local(k, b->l.t, 2 * (int64_t)count_sums(b) * k->subgroups);
  b->turn = ir_var(k, clb_i32(k, 0), true);
}

/* Through local memory: an array is written again only after the barrier of the other one. */
static void over_subgroups(clb_norm_kernel *b, ir_val **v, int n) {
  ir_kernel *k = b->l.k;
  const int subgroups = k->subgroups;
  ir_val half = ir_mul(k, ir_get(k, b->turn), clb_i32(k, count_sums(b) * subgroups)),
         mask = ir_2(k, IR_LT, ir_lane(k), clb_i32(k, subgroups));
  for (int i = 0; i < n; i++)
    ir_store(k, b->exchange, ir_add(k, half, ir_add(k, clb_i32(k, i * subgroups), ir_subgroup(k))),
             IR_NONE, *v[i]);
  ir_barrier(k, true);
  for (int i = 0; i < n; i++)
    *v[i] = ir_reduce_add(
        k, ir_load(k, b->exchange,
                   ir_add(k, half, ir_add(k, clb_i32(k, i * subgroups), ir_lane(k))), mask));
  ir_set(k, b->turn, ir_sub(k, clb_i32(k, 1), ir_get(k, b->turn)));
}

void clb_norm_total(clb_norm_kernel *b, int first, int last) {
  ir_val *all[NORM_SUMS * CLB_NORM_MOST_GROUPS];
  int n = 0;
  for (int sum = first; sum < last; sum++)
    for (int g = 0; g < groups_of(b, sum) && needed(b, sum); g++) {
      all[n++] = &b->total[sum][g];
      b->total[sum][g] = over_lanes(b, sum_of_chains(b->l.k, b->chain[sum][g]));
    }
  if (b->together && n) over_subgroups(b, all, n);
}

/* ---- over rows ---- */

/* Where the sums of a chunk's weights, or biases, are in the group's partial row. */
static ir_val place_of(clb_norm_kernel *b, const clb_norm_chunk *c, ir_val start, bool biases) {
  int64_t at = biases ? b->norm->irreps.dim + c->s->first_bias : c->s->at;
  return ir_add(b->l.k, start, ir_add(b->l.k, c->from, clb_i64(b->l.k, at)));
}

static bool biased(const clb_norm_kernel *b, const clb_norm_chunk *c) {
  return b->plan.biases && c->s->scalar;
}

static void clear(clb_norm_kernel *b, const clb_norm_chunk *c) {
  ir_kernel *k = b->l.k;
  ir_val zero = ir_real(k, b->l.t, 0);
  for (int biases = 0; biases <= biased(b, c); biases++)
    for (int e = 0; e < b->width; e++)
      if (b->kept)
        (biases ? b->bias_sum : b->sum)[c->number * b->width + e] = ir_var(k, zero, false);
      else
        ir_store(k, b->partial, ir_add(k, place_of(b, c, b->partial_start, biases), clb_i64(k, e)),
                 c->mask, zero);
}

void clb_norm_partial_begin(clb_norm_kernel *b) {
  if (b->w) clb_norm_chunks(b, clear);
}

void clb_norm_partial_add(clb_norm_kernel *b, const clb_norm_chunk *c, const ir_val *weights,
                          const ir_val *biases) {
  ir_kernel *k = b->l.k;
  for (int which = 0; which <= (biases && biased(b, c)) && b->w; which++)
    for (int e = 0; e < b->width; e++) {
      ir_val v = (which ? biases : weights)[e];
      ir_val var = (which ? b->bias_sum : b->sum)[c->number * b->width + e];
      ir_val at =
          b->kept ? IR_NONE : ir_add(k, place_of(b, c, b->partial_start, which), clb_i64(k, e));
      if (b->kept) ir_set(k, var, ir_add(k, ir_get(k, var), v));
      else ir_store(k, b->partial, at, c->mask, ir_add(k, ir_load(k, b->partial, at, c->mask), v));
    }
}

/* The sums that this lane's team has of an element; those of the sub-group's teams together. */
static ir_val kept_sum(clb_norm_kernel *b, ir_val var) {
  ir_kernel *k = b->l.k;
  ir_val v = ir_get(k, var);
  for (int d = b->team; b->rows > 1 && d < b->l.s->lanes; d *= 2)
    v = ir_add(k, v, ir_shuffle_xor(k, v, d));
  return v;
}

static ir_val one_team(clb_norm_kernel *b, ir_val mask) {
  ir_kernel *k = b->l.k;
  if (b->rows == 1) return mask;
  ir_val first = ir_2(k, IR_LT, ir_lane(k), clb_i32(k, b->team));
  return mask == IR_NONE ? first : ir_2(k, IR_AND, mask, first);
}

/* To the partial row, or, where sub-groups have sums of their own, to local memory. */
static void put_sums(clb_norm_kernel *b, const clb_norm_chunk *c) {
  ir_kernel *k = b->l.k;
  const bool local = b->stage != IR_NONE;
  const int64_t columns = clb_norm_partial_columns(b->norm, &b->plan);
  ir_val start = b->partial_start, mask = one_team(b, c->mask);
  if (local)
    start = ir_add(k, b->place, ir_mul(k, ir_cast(k, IR_I64, ir_subgroup(k)), clb_i64(k, columns)));
  for (int biases = 0; biases <= biased(b, c); biases++)
    for (int e = 0; e < b->width; e++)
      ir_store(k, local ? b->stage : b->partial,
               ir_add(k, place_of(b, c, start, biases), clb_i64(k, e)), mask,
               kept_sum(b, (biases ? b->bias_sum : b->sum)[c->number * b->width + e]));
}

/* The sums of the sub-groups, in their order. */
static void add_subgroups(clb_norm_kernel *b) {
  ir_kernel *k = b->l.k;
  const int lanes = b->l.s->lanes, all = lanes * k->subgroups;
  const int64_t columns = clb_norm_partial_columns(b->norm, &b->plan);
  ir_barrier(k, true);
  ir_val from = ir_loop(k, clb_i32(k, 0), clb_i32(k, columns), clb_i32(k, all));
  ir_val mine = ir_add(k, from, ir_mul(k, ir_subgroup(k), clb_i32(k, lanes))),
         column = ir_add(k, mine, ir_lane(k)),
         mask = ir_2(k, IR_LT, ir_lane(k), ir_sub(k, clb_i32(k, columns), mine)), sum = IR_NONE;
  for (int i = 0; i < k->subgroups; i++) {
    ir_val v = ir_load(k, b->stage, ir_add(k, column, clb_i32(k, i * columns)), mask);
    sum = i ? ir_add(k, sum, v) : v;
  }
  ir_val row = ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), clb_i64(k, columns));
  ir_store(k, b->partial, ir_add(k, row, ir_cast(k, IR_I64, column)), mask, sum);
  ir_end(k);
}

void clb_norm_partial_end(clb_norm_kernel *b) {
  ir_kernel *k = b->l.k;
  if (!b->w || !b->kept) return;
  const bool several = k->subgroups > 1 && !b->together;
  b->stage = several
                 ? ir_local(k, b->l.t, k->subgroups * clb_norm_partial_columns(b->norm, &b->plan))
                 : IR_NONE;
  clb_norm_chunks(b, put_sums);
  if (several) add_subgroups(b);
}
