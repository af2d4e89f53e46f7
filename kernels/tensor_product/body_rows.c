/* kernels/tensor_product/body_rows.c - a product whose paths all mix channels by one row of weights
   for all rows: lanes are rows, so that none is idle where channels are few, and read the same
   weight at once, from local memory.

   Either all of z is in registers, and the kernel goes through the channels of x, or all of x is,
   and it goes through those of z, a block of channels at a time. Gradients by weights are summed
   over a sub-group's rows, in local memory: a row of them is that of a group. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/common/lane_sums.h"
#include "kernels/tensor_product/local_weights.h"
#include "kernels/tensor_product/modes.h"
#include "kernels/tensor_product/product.h"

enum {
  PIECE = 32,         /* columns that are transposed together */
  MOST_BLOCK = 8,     /* channels of a block */
  GROUPS_AT_ONCE = 3, /* where three quarters of the registers are enough */
  MOST_Z = 512,       /* bytes of z and of results by it in a lane, */
  MOST_X = 256,       /* of x, */
  MOST_Y = 216,       /* and of y */
  MOST_CHANNELS = 64, /* of a term of z that is in registers */
  LONGEST = 7000      /* products in the code */
};

typedef struct {
  clb_pair_builder p; /* of which each channel of z is a block */
  clb_row_block rows;
  clb_schedule staged; /* of rows: they go through local memory */
  bool keeps_x;
  int block, first_x[CLB_MAX_TERMS];
  clb_local_weights local;
  ir_val first;                                      /* i32: the first channel of the block of z */
  clb_components sum_x[MAX_OUTPUTS][CLB_PAIR_MAX_U]; /* variables */
} builder;

static ir_kernel *of(builder *b) { return b->p.f.k; }
static ir_val number(builder *b, int64_t n) { return ir_int(of(b), IR_I32, n); }
static ir_val wide(builder *b, ir_val i) { return ir_cast(of(b), IR_I64, i); }

/* ---- which products can be lowered so ---- */

static int channels(const clb_irreps *irreps) {
  int n = 0;
  for (int t = 0; t < irreps->n; t++) n += irreps->term[t].mul;
  return n;
}

static bool all_mix(const clb_tensor_product_problem *tp) {
  for (int q = 0; q < tp->n_paths; q++)
    if (tp->path[q].mode != CLB_UVW || !tp->path[q].has_weight ||
        !clb_path_weights(tp, &tp->path[q]))
      return false;
  return tp->n_paths > 0;
}

/* Vectors of x and of z that a pass reads and writes. */
static const int of_x[] = {1, 2, 3}, of_z[] = {1, 1, 2};

static bool keeps_z(const clb_problem *p, int pass) {
  const clb_irreps *z = &p->tensor_product.z;
  for (int t = 0; t < z->n; t++)
    if (z->term[t].mul > MOST_CHANNELS) return false;
  return channels(z) <= CLB_PAIR_MAX_Z && z->dim * of_z[pass] * clb_arithmetic_bytes(p) <= MOST_Z;
}

static bool keeps_x(const clb_problem *p, int pass) {
  const clb_irreps *x = &p->tensor_product.x;
  return channels(x) <= CLB_PAIR_MAX_U && x->dim * of_x[pass] * clb_arithmetic_bytes(p) <= MOST_X;
}

static int block_of(int mul, int most) {
  while (mul % most) most /= 2;
  return most;
}

/* Channels of a block, at most, with which the code is not too long; 0: it is. */
static int find_block(const clb_tensor_product_problem *tp, int pass, bool by_z) {
  static const int repeats[] = {1, 3, 8};
  for (int most = MOST_BLOCK; most > 1; most /= 2) {
    int64_t products = 0;
    for (int q = 0; q < tp->n_paths; q++) {
      const clb_path *p = &tp->path[q];
      const clb_term *x = &tp->x.term[p->in1], *z = &tp->z.term[p->out];
      const int64_t u = by_z ? x->mul : block_of(x->mul, most),
                    w = by_z ? block_of(z->mul, most) : z->mul;
      products += u * tp->y.term[p->in2].mul * (clb_form_path_size(tp, p) + w * clb_width(z));
    }
    if (products * repeats[pass] <= LONGEST) return most;
  }
  return 0;
}

bool clb_goes_by_rows(const clb_problem *p, int pass, const clb_limits *limits) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  if (limits->simd || !limits->subgroups || limits->registers <= 128 || !tp->shared_weights ||
      tp->indexed || tp->edges || pass > CLB_DOUBLE_BACKWARD || !all_mix(tp) ||
      channels(&tp->y) > CLB_PAIR_MAX_Y ||
      tp->y.dim * of_x[pass] * clb_arithmetic_bytes(p) > MOST_Y)
    return false;
  const bool z = keeps_z(p, pass);
  const int lanes = limits->lanes[p->arithmetic], subgroups = clb_usual_subgroups(limits, lanes);
  const int64_t stage = (int64_t)subgroups * lanes * (PIECE + 1) * clb_arithmetic_bytes(p);
  return (z || keeps_x(p, pass)) && find_block(tp, pass, !z) &&
         clb_local_weights_bytes(p, pass, subgroups) + stage <= limits->local_bytes;
}

/* ---- rows ---- */

/* Calls for each piece of the columns of n channels of a term: those of one component, or all. */
static void move(builder *b, const clb_form_array *a, int term, ir_val first, int n,
                 clb_components *v, bool store) {
  const clb_term *t = &a->irreps->term[term];
  const int width = clb_width(t), runs = a->layout == CLB_MUL_IR ? 1 : width,
            length = n * width / runs;
  clb_row_array rows = a->rows;
  if (first != IR_NONE)
    rows.offset = ir_add(of(b), rows.offset,
                         ir_mul(of(b), wide(b, first), ir_int(of(b), IR_I64, width / runs)));
  for (int r = 0; r < runs; r++)
    for (int i = 0; i < length; i += PIECE) {
      const int some = length - i < PIECE ? length - i : PIECE,
                column = (int)(t->at + (runs > 1 ? r * clb_component_stride(t) : 0)) + i;
      ir_val piece[PIECE];
      if (!store) clb_rows_load(&b->rows, &rows, column, some, piece);
      for (int j = 0; j < some; j++) {
        ir_val *to = runs > 1 ? &v[i + j][r] : &v[(i + j) / width][(i + j) % width];
        if (!store) *to = piece[j];
        else piece[j] = *to == IR_NONE ? ir_real(of(b), b->p.f.t, 0) : *to;
      }
      if (store) clb_rows_store(&b->rows, &rows, column, some, piece, a->adds);
    }
}

static void read_channels(builder *b, int slot, int order, int term, ir_val first, int n,
                          clb_components *v) {
  for (int i = 0; i < n; i++) clb_no_values(v[i], MAX_M);
  move(b, &b->p.f.in[slot][order], term, first, n, v, false);
}

static void start_sums(builder *b, int n, int width, clb_components *sum) {
  for (int i = 0; i < n; i++) {
    clb_no_values(sum[i], MAX_M);
    for (int k = 0; k < width; k++) sum[i][k] = ir_var(of(b), ir_real(of(b), b->p.f.t, 0), false);
  }
}

static void write_sums(builder *b, int o, int term, ir_val first, int n, clb_components *sum) {
  clb_components v[CLB_PAIR_MAX_Z];
  for (int i = 0; i < n; i++) {
    clb_no_values(v[i], MAX_M);
    for (int k = 0; k < MAX_M && sum[i][k] != IR_NONE; k++) v[i][k] = ir_get(of(b), sum[i][k]);
  }
  move(b, &b->p.f.out[o], term, first, n, v, true);
}

static bool gives(const builder *b, int o, int slot) {
  return clb_pairs_slot(&b->p, o) == slot && clb_form_wanted(&b->p.f, o);
}

/* ---- pairs ---- */

static void give_weights(clb_pair_builder *pair, const clb_pair *p, int o) {
  builder *b = (builder *)pair;
  ir_kernel *k = of(b);
  clb_components t[ORDERS];
  bool some[ORDERS];
  ir_val v[CLB_PAIR_MAX_LOADED];
  const int n = pair->blocks[p->path->out], lanes = b->p.f.s->lanes;
  clb_pairs_products(pair, p, o, t, some);
  if (!some[0] && !some[1] && !some[2]) return;
  for (int i = 0; i < n; i++) v[i] = clb_pairs_by_weight(pair, p, t, some, i);
  for (int first = 0, share; first < n; first += lanes) {
    const int m = n - first < lanes ? n - first : lanes;
    ir_val sum = clb_sum_over_lanes(k, b->p.f.t, lanes, v + first, m, &share),
           i = ir_2(k, IR_DIV, ir_lane(k), number(b, share)),
           own = ir_2(k, IR_EQ, ir_2(k, IR_MOD, ir_lane(k), number(b, share)), number(b, 0)),
           mask = clb_and(k, own, ir_2(k, IR_LT, i, number(b, m))),
           at = ir_add(k,
                       ir_add(k, clb_local_weight_at(&b->local, pair, p->path, p->u, p->v, first),
                              b->first),
                       i);
    at = ir_add(k, at, ir_mul(k, ir_subgroup(k), number(b, b->local.n)));
    ir_store(k, b->local.sums, at, mask, ir_add(k, ir_load(k, b->local.sums, at, mask), sum));
  }
}

/* Weights of a pair and the channels of z that are in registers. */
static void read_weights(builder *b, const clb_path *path, ir_val u, int v) {
  const int n = b->p.blocks[path->out], all = clb_local_weights_step(b->p.f.p),
            step = b->keeps_x && n % all ? 1 : all;
  for (int order = 0; order < ORDERS; order++)
    for (int i = 0; i < n && b->local.weights[order] != IR_NONE; i += step) {
      const ir_val at =
          ir_add(of(b), clb_local_weight_at(&b->local, &b->p, path, u, v, i), b->first);
      if (step > 1)
        ir_load_aligned(of(b), b->local.weights[order], at, IR_NONE, step, b->p.weight[order] + i);
      else b->p.weight[order][i] = ir_load(of(b), b->local.weights[order], at, IR_NONE);
    }
}

/* All pairs of n channels of a term of x, from u on; the first one's number among those in
   registers. */
static void add_pairs(builder *b, int term, ir_val u, int first, int n) {
  for (int q = 0; q < b->p.tp->n_paths; q++) {
    const clb_path *path = &b->p.tp->path[q];
    if (path->in1 != term || !b->p.blocks[path->out]) continue;
    b->p.n = clb_form_entries(b->p.tp, path, b->p.symbol, b->p.entry);
    for (int j = 0; j < n; j++)
      for (int v = 0; v < b->p.tp->y.term[path->in2].mul; v++) {
        const ir_val channel = ir_add(of(b), u, number(b, j));
        read_weights(b, path, channel, v);
        clb_pairs_add(&b->p,
                      &(clb_pair){path, channel, first + j, v, b->p.first_y[path->in2] + v, 0},
                      give_weights);
      }
  }
}

static void clear_x(builder *b) {
  for (int o = 0; o < MAX_OUTPUTS; o++)
    for (int i = 0; i < CLB_PAIR_MAX_U; i++) clb_no_values(b->p.by_x[o][i], MAX_M);
}

/* ---- channels of x, with all of z in registers ---- */

static void through_x(builder *b, int term) {
  const int mul = b->p.tp->x.term[term].mul, n = mul ? block_of(mul, b->block) : 0;
  if (!mul) return;
  const ir_val u =
      mul > n ? ir_loop(of(b), number(b, 0), number(b, mul), number(b, n)) : number(b, 0);
  for (int order = 0; order < ORDERS; order++)
    if (clb_pairs_use(&b->p, X, order)) read_channels(b, X, order, term, u, n, b->p.x[order]);
  clear_x(b);
  add_pairs(b, term, u, 0, n);
  for (int o = 0; o < b->p.f.form->n_outputs; o++)
    if (gives(b, o, X)) move(b, &b->p.f.out[o], term, u, n, b->p.by_x[o], true);
  if (mul > n) ir_end(of(b));
}

/* Reads n channels of z from `first` on, and starts sums by them, as numbers `at` on. */
static void start_z(builder *b, int term, ir_val first, int n, int at) {
  b->p.first_block[term] = at;
  b->p.blocks[term] = n;
  for (int order = 0; order < ORDERS; order++)
    if (clb_pairs_use(&b->p, Z, order))
      read_channels(b, Z, order, term, first, n, b->p.z[order] + at);
  for (int o = 0; o < b->p.f.form->n_outputs; o++)
    if (gives(b, o, Z)) start_sums(b, n, clb_width(&b->p.tp->z.term[term]), b->p.sum_z[o] + at);
}

static void give_z(builder *b, int term, ir_val first) {
  for (int o = 0; o < b->p.f.form->n_outputs; o++)
    if (gives(b, o, Z))
      write_sums(b, o, term, first, b->p.blocks[term], b->p.sum_z[o] + b->p.first_block[term]);
}

static void keeping_z(builder *b) {
  for (int t = 0, at = 0; t < b->p.tp->z.n; at += b->p.tp->z.term[t++].mul)
    start_z(b, t, IR_NONE, b->p.tp->z.term[t].mul, at);
  for (int t = 0; t < b->p.tp->x.n; t++) through_x(b, t);
  for (int t = 0; t < b->p.tp->z.n; t++) give_z(b, t, IR_NONE);
}

/* ---- channels of z, with all of x in registers ---- */

static void through_z(builder *b, int term) {
  ir_kernel *k = of(b);
  const clb_tensor_product_problem *tp = b->p.tp;
  const int mul = tp->z.term[term].mul, n = mul ? block_of(mul, b->block) : 0;
  if (!mul) return;
  b->first = mul > n ? ir_loop(k, number(b, 0), number(b, mul), number(b, n)) : number(b, 0);
  start_z(b, term, b->first, n, 0);
  clear_x(b);
  for (int t = 0; t < tp->x.n; t++) add_pairs(b, t, number(b, 0), b->first_x[t], tp->x.term[t].mul);
  give_z(b, term, b->first);
  for (int o = 0; o < b->p.f.form->n_outputs; o++)
    for (int i = 0; i < CLB_PAIR_MAX_U && gives(b, o, X); i++)
      for (int m = 0; m < MAX_M; m++) {
        const ir_val v = b->p.by_x[o][i][m], sum = b->sum_x[o][i][m];
        if (v != IR_NONE) ir_set(k, sum, ir_add(k, ir_get(k, sum), v));
      }
  if (mul > n) ir_end(k);
  b->p.blocks[term] = 0;
}

static void keeping_x(builder *b) {
  const clb_irreps *x = &b->p.tp->x;
  for (int t = 0, at = 0; t < x->n; at += x->term[t++].mul) {
    b->first_x[t] = at;
    for (int order = 0; order < ORDERS; order++)
      if (clb_pairs_use(&b->p, X, order))
        read_channels(b, X, order, t, IR_NONE, x->term[t].mul, b->p.x[order] + at);
    for (int o = 0; o < b->p.f.form->n_outputs; o++)
      if (gives(b, o, X)) start_sums(b, x->term[t].mul, clb_width(&x->term[t]), b->sum_x[o] + at);
  }
  for (int t = 0; t < b->p.tp->z.n; t++) through_z(b, t);
  for (int t = 0; t < x->n; t++)
    for (int o = 0; o < b->p.f.form->n_outputs; o++)
      if (gives(b, o, X)) write_sums(b, o, t, IR_NONE, x->term[t].mul, b->sum_x[o] + b->first_x[t]);
}

/* ---- the kernel ---- */

static void start_y(builder *b) {
  for (int t = 0, at = 0; t < b->p.tp->y.n; at += b->p.tp->y.term[t++].mul) {
    const clb_term *y = &b->p.tp->y.term[t];
    b->p.first_y[t] = at;
    for (int order = 0; order < ORDERS; order++)
      if (clb_pairs_use(&b->p, Y, order))
        read_channels(b, Y, order, t, IR_NONE, y->mul, b->p.y[order] + at);
    for (int o = 0; o < b->p.f.form->n_outputs; o++)
      if (gives(b, o, Y)) start_sums(b, y->mul, clb_width(y), b->p.sum_y[o] + at);
  }
}

static void whole(builder *b) {
  const clb_problem *p = b->p.f.p;
  b->keeps_x = !keeps_z(p, p->pass);
  if (b->p.f.t == IR_F32 && !(b->keeps_x && p->pass)) of(b)->min_blocks_per_sm = GROUPS_AT_ONCE;
  b->block = find_block(b->p.tp, p->pass, b->keeps_x);
  b->first = number(b, 0);
  b->staged = *b->p.f.s;
  b->staged.rows.through_local = 1;
  b->rows = (clb_row_block){.k = of(b),
                            .schedule = &b->staged,
                            .arithmetic = b->p.f.t,
                            .n = b->p.f.n,
                            .stage = IR_NONE,
                            .staged_n = -1};
  clb_rows_start(&b->rows, (clb_dtype)p->storage, PIECE);
  clb_local_weights_start(&b->local, &b->p);
  start_y(b);
  (b->keeps_x ? keeping_x : keeping_z)(b);
  for (int o = 0; o < b->p.f.form->n_outputs; o++)
    for (int t = 0; t < b->p.tp->y.n && gives(b, o, Y); t++)
      write_sums(b, o, t, IR_NONE, b->p.tp->y.term[t].mul, b->p.sum_y[o] + b->p.first_y[t]);
  for (int o = 0; o < b->p.f.form->n_outputs; o++)
    if (gives(b, o, W)) clb_local_weights_give(&b->local, &b->p, o);
}

void clb_lower_rows(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  builder *b = calloc(1, sizeof *b);
  if (b && clb_pairs_begin(&b->p, k, p, s)) whole(b);
  else snprintf(k->error, sizeof k->error, "no memory");
  if (b) clb_pairs_free(&b->p);
  free(b);
}
