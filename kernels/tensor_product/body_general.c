/* kernels/tensor_product/body_general.c - a product of any modes, unrolled per path or driven by
   tables (then body_table.c has the results).

   Lanes are the channels of one result at a time: each term of each result is processed block by
   block, accumulates the contributions of all paths and monomials, and is written once; operands
   are read again from cache for each result. `lanes_per_row` lanes share a row, so that a sub-group
   handles several rows if there are few channels. A path is a nest of loops over those of the
   channels u, v, w connected by its mode that the result's channel does not determine. With the
   pair products t = C x y and h =
   sum_w w z the contributions are to z: w t      to w: t . z      to x: C y h      to y: C x h
   If a result has few channels and its partner many, lanes are the partner's channels and are
   summed (`across`). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/tensor_product/modes.h"
#include "kernels/tensor_product/form.h"
#include "kernels/tensor_product/product.h"

typedef struct {
  clb_form_builder f;
  clb_connection at; /* position in the loops of the current path */
  ir_val row_mask;   /* lanes that have a row; IR_NONE: all */
  clb_entry *entry;
  double *symbol;
  int n;
  const clb_path *path;
} builder;

static ir_kernel *of(builder *b) { return b->f.k; }
static ir_val number(builder *b, int64_t n) { return ir_int(b->f.k, IR_I32, n); }

/* ---- operands at the current channels ---- */

static void load(builder *b, int slot, int order, ir_val *v) {
  const clb_path *p = b->path;
  ir_val channel = slot == X ? b->at.u : slot == Y ? b->at.v : clb_connection_z(&b->at);
  clb_no_values(v, MAX_M);
  clb_form_load(&b->f, &b->f.in[slot][order],
                slot == X   ? p->in1
                : slot == Y ? p->in2
                            : p->out,
                ir_cast(of(b), IR_I64, channel), clb_connection_mask(&b->at, channel), v);
}

/* Weights of n adjacent channels w, starting at the current one. */
static void load_weights(builder *b, int order, int n, ir_val *weight) {
  const clb_form_array *a = &b->f.in[W][order];
  *weight = IR_NONE;
  if (!b->path->has_weight) return;
  ir_val channel = clb_connection_weight(&b->at),
         index = ir_add(of(b), clb_form_weight(&b->f, a, b->path), ir_cast(of(b), IR_I64, channel));
  ir_load_wide(of(b), a->rows.buffer, index, clb_connection_mask(&b->at, channel), n, weight);
  for (int i = 0; i < n; i++) weight[i] = ir_cast(of(b), b->f.t, weight[i]);
}

static ir_val load_weight(builder *b, int order) {
  ir_val weight;
  load_weights(b, order, 1, &weight);
  return weight;
}

/* Whether some monomial of output o combines these orders of `slot` and `other` with order `mine`
   of slot `with`. */
static bool together(builder *b, int o, int with, int mine, int slot, int order, int other,
                     int second) {
  for (int m = 0; m < b->f.form->n_monomials; m++) {
    const int *orders = b->f.form->monomial[m];
    if (orders[with] == mine && orders[slot] == order && orders[other] == second &&
        clb_form_alive(&b->f, m, o, b->path))
      return true;
  }
  return false;
}

/* t_k = sum of C x y over the monomials of output o whose vector of slot `with` has order `mine`.
   false: there are none. */
static bool pair(builder *b, int o, int with, int mine, ir_val *t) {
  ir_val x[MAX_M], y[MAX_M];
  bool some = false;
  clb_no_values(t, MAX_M);
  for (int i = 0; i < ORDERS; i++)
    for (int j = 0; j < ORDERS; j++) {
      if (!together(b, o, with, mine, X, i, Y, j)) continue;
      load(b, X, i, x);
      load(b, Y, j, y);
      clb_contract_z(&b->f, b->entry, b->n, x, y, t);
      some = true;
    }
  return some;
}

/* h_k += w z for n adjacent channels w, over the monomials of output o whose vector of slot `with`
   has order `mine`. */
static void add_weighted(builder *b, int o, int with, int mine, int n, ir_val *h) {
  ir_val z[MAX_M], weight[IR_MAX_WIDTH], first = b->at.w;
  for (int w = 0; w < ORDERS; w++)
    for (int i = 0, loaded = 0; i < ORDERS; i++) {
      if (!together(b, o, with, mine, W, w, Z, i)) continue;
      if (!loaded++) load_weights(b, w, n, weight);
      for (int j = 0; j < n; j++, b->at.w = first) {
        if (j) b->at.w = ir_add(of(b), first, number(b, j));
        load(b, Z, i, z);
        for (int k = 0; k < clb_width(&b->f.tp->z.term[b->path->out]); k++)
          h[k] = clb_plus_weighted(of(b), h[k], *weight == IR_NONE ? IR_NONE : weight[j], z[k]);
      }
    }
}

/* h_k = sum of w z over the weights of the pair; several at a time, as set by the schedule, because
   those of different lanes are far apart. false: there are none. */
static bool weighted(builder *b, int o, int with, int mine, ir_val *h) {
  const clb_term *out = &b->f.tp->z.term[b->path->out];
  int n3 = clb_width(out), n = b->f.s->product.weights_per_access;
  ir_val sum[MAX_M];
  bool mixes = clb_mode_mixes(b->path->mode), some = false;
  for (int w = 0; w < ORDERS && !some; w++)
    for (int i = 0; i < ORDERS; i++) some |= together(b, o, with, mine, W, w, Z, i);
  if (!some) return false;
  clb_no_values(h, MAX_M);
  if (!mixes) {
    add_weighted(b, o, with, mine, 1, h);
    return true;
  }
  while (out->mul % n) n /= 2;
  for (int k = 0; k < n3; k++) sum[k] = ir_var(of(b), ir_real(of(b), b->f.t, 0), false);
  clb_connection_open_w(&b->at, n);
  add_weighted(b, o, with, mine, n, h);
  for (int k = 0; k < n3; k++) ir_set(of(b), sum[k], ir_add(of(b), ir_get(of(b), sum[k]), h[k]));
  clb_connection_close_w(&b->at);
  for (int k = 0; k < n3; k++) h[k] = ir_get(of(b), sum[k]);
  return true;
}

/* ---- contributions of a path to one result, at the current channels ---- */

/* Sums over the partner's channels, of z and of weights, take their products one by one, as fused
   multiply-adds. Those of x and y, where a product is itself a sum, would hold more in registers.
 */
static void contribute(builder *b, int o, const ir_val *sum) {
  int slot = b->f.form->output[o].slot;
  bool fused = slot == Z || slot == W;
  ir_val t[MAX_M], v[MAX_M], old[MAX_M], total[MAX_M];
  clb_no_values(total, MAX_M);
  for (int k = 0; k < MAX_M; k++) old[k] = sum[k] == IR_NONE ? IR_NONE : ir_get(of(b), sum[k]);
  if (fused) memcpy(total, old, sizeof total);
  for (int order = 0; order < ORDERS; order++) {
    if (slot == Z && pair(b, o, W, order, t)) {
      ir_val w = load_weight(b, order);
      for (int k = 0; k < MAX_M; k++) total[k] = clb_plus_weighted(of(b), total[k], w, t[k]);
    }
    if (slot == W && pair(b, o, Z, order, t)) {
      load(b, Z, order, v);
      for (int k = 0; k < MAX_M; k++) total[0] = clb_add_product(of(b), total[0], t[k], v[k]);
    }
    if (slot == X && weighted(b, o, Y, order, t)) {
      load(b, Y, order, v);
      clb_contract_x(&b->f, b->entry, b->n, v, t, total);
    }
    if (slot == Y && weighted(b, o, X, order, t)) {
      load(b, X, order, v);
      clb_contract_y(&b->f, b->entry, b->n, v, t, total);
    }
  }
  for (int k = 0; k < MAX_M; k++)
    if (total[k] != IR_NONE && total[k] != old[k])
      ir_set(of(b), sum[k], fused ? total[k] : ir_add(of(b), old[k], total[k]));
}

static clb_extents turn_to(builder *b, const clb_path *p) {
  const clb_tensor_product_problem *tp = b->f.tp;
  b->path = p;
  b->n = clb_form_entries(tp, p, b->symbol, b->entry);
  return (clb_extents){number(b, tp->x.term[p->in1].mul), number(b, tp->y.term[p->in2].mul),
                       number(b, tp->z.term[p->out].mul)};
}

static void one_path(builder *b, int o, const clb_path *p, ir_val channel, ir_val mask, bool across,
                     const ir_val *sum) {
  clb_extents n = turn_to(b, p);
  clb_connection_open(&b->at, of(b), b->f.s, p->mode, n, b->f.form->output[o].slot, channel, mask,
                      b->row_mask, across);
  contribute(b, o, sum);
  clb_connection_close(&b->at);
}

/* ---- results ---- */

static void start(builder *b, int n, ir_val *sum) {
  clb_no_values(sum, MAX_M);
  for (int i = 0; i < n; i++) sum[i] = ir_var(of(b), ir_real(of(b), b->f.t, 0), false);
}

/* Whether lanes are the partner's channels, which requires that every path of the term has a
   partner. */
static bool goes_across(const builder *b, int slot, int term) {
  const clb_tensor_product_problem *tp = b->f.tp;
  int own = (slot == X ? &tp->x : &tp->y)->term[term].mul, partner = 0;
  if ((slot != X && slot != Y) || own >= b->f.s->product.lanes_per_row ||
      !b->f.s->product.shuffle_sums)
    return false;
  for (int q = 0; q < tp->n_paths; q++) {
    const clb_path *p = &tp->path[q];
    int mul = (slot == X ? &tp->y : &tp->x)->term[slot == X ? p->in2 : p->in1].mul;
    if (clb_path_term(p, slot) != term) continue;
    if (!clb_mode_has_partner(p->mode)) return false;
    if (mul > partner) partner = mul;
  }
  return partner > own;
}

static void one_term(builder *b, int o, int term) {
  ir_kernel *k = of(b);
  const clb_form_array *a = &b->f.out[o];
  const clb_term *t = &a->irreps->term[term];
  int slot = b->f.form->output[o].slot;
  bool across = goes_across(b, slot, term);
  ir_val sum[MAX_M], v[MAX_M], channel, mask;
  clb_mode_block block = clb_mode_block_open(k, b->f.s, across ? 1 : b->f.s->product.lanes_per_row,
                                             number(b, t->mul), b->row_mask, &channel, &mask);
  start(b, clb_width(t), sum);
  for (int q = 0; q < b->f.tp->n_paths; q++)
    if (clb_path_term(&b->f.tp->path[q], slot) == term)
      one_path(b, o, &b->f.tp->path[q], channel, mask, across, sum);
  clb_no_values(v, MAX_M);
  for (int i = 0; i < clb_width(t); i++)
    v[i] = across ? clb_sum_of_span(k, b->f.s, ir_get(k, sum[i])) : ir_get(k, sum[i]);
  if (across) mask = clb_first_of_span(k, b->f.s, b->row_mask);
  clb_form_store(&b->f, a, term, ir_cast(k, IR_I64, channel), mask, v);
  clb_mode_block_close(k, block);
}

/* Pair by pair, with lanes over w: the index of the pair and the product of x and y are the same in
   all lanes. */
static void weights_by_pairs(builder *b, int o, const clb_path *p) {
  ir_kernel *k = of(b);
  ir_val sum[MAX_M], q, w, mask;
  clb_extents n = turn_to(b, p);
  int64_t mul = b->f.tp->z.term[p->out].mul;
  clb_mode_block pairs = clb_mode_block_open(
      k, b->f.s, 1, number(b, clb_path_weights(b->f.tp, p) / mul), b->row_mask, &q, &mask);
  clb_mode_block block = clb_mode_block_open(k, b->f.s, b->f.s->product.lanes_per_row, n.mul_z,
                                             b->row_mask, &w, &mask);
  start(b, 1, sum);
  clb_connection_open_pair(&b->at, k, p->mode, n, q, w, mask, b->row_mask);
  contribute(b, o, sum);
  clb_form_store_weight(&b->f, &b->f.out[o], p, ir_cast(k, IR_I64, clb_connection_weight(&b->at)),
                        mask, ir_get(k, sum[0]));
  clb_connection_close(&b->at);
  clb_mode_block_close(k, block);
  clb_mode_block_close(k, pairs);
}

static void weights(builder *b, int o, const clb_path *p) {
  ir_kernel *k = of(b);
  ir_val sum[MAX_M], channel, mask;
  if (!p->has_weight || !clb_path_weights(b->f.tp, p)) return;
  if (b->f.s->product.weights_per_access > 1 && clb_mode_mixes(p->mode)) {
    weights_by_pairs(b, o, p);
    return;
  }
  clb_mode_block block =
      clb_mode_block_open(k, b->f.s, b->f.s->product.lanes_per_row,
                          number(b, clb_path_weights(b->f.tp, p)), b->row_mask, &channel, &mask);
  start(b, 1, sum);
  one_path(b, o, p, channel, mask, false, sum);
  clb_form_store_weight(&b->f, &b->f.out[o], p, ir_cast(k, IR_I64, channel), mask,
                        ir_get(k, sum[0]));
  clb_mode_block_close(k, block);
}

static void results(builder *b) {
  for (int o = 0; o < b->f.form->n_outputs; o++) {
    if (!clb_form_wanted(&b->f, o)) continue;
    if (b->f.form->output[o].slot == W)
      for (int q = 0; q < b->f.tp->n_paths; q++) weights(b, o, &b->f.tp->path[q]);
    else
      for (int t = 0; t < b->f.out[o].irreps->n; t++)
        if (b->f.out[o].irreps->term[t].mul) one_term(b, o, t);
  }
}

/* The first row of this lane's, `rows` of them to a sub-group. */
static ir_val first_row(builder *b, int rows) {
  ir_kernel *k = of(b);
  const clb_schedule *s = b->f.s;
  ir_val row = ir_cast(k, IR_I64, ir_group(k));
  if (s->subgroups > 1)
    row = ir_add(k, ir_mul(k, row, ir_int(k, IR_I64, s->subgroups)),
                 ir_cast(k, IR_I64, ir_subgroup(k)));
  if (rows > 1) row = ir_mul(k, row, ir_int(k, IR_I64, rows));
  return s->product.lanes_per_row < s->lanes
             ? ir_add(k, row, ir_cast(k, IR_I64, clb_row_of_lane(k, s)))
             : row;
}

static void whole(builder *b) {
  ir_kernel *k = of(b);
  const clb_schedule *s = b->f.s;
  int rows = s->lanes / s->product.lanes_per_row;
  ir_val row = first_row(b, rows);
  b->row_mask = rows > 1 ? ir_2(k, IR_LT, row, b->f.n) : IR_NONE;
  bool guard = rows == 1 && s->subgroups > 1;
  clb_form_rows(&b->f, row);
  if (guard) ir_if(k, ir_2(k, IR_LT, row, b->f.n));
  clb_form_indexed_rows(&b->f, row, b->row_mask);
  results(b);
  if (guard) ir_end(k);
}

static void by_tables(builder *b) {
  const clb_schedule *s = b->f.s;
  int rows = s->lanes / s->product.lanes_per_row;
  ir_val numbers = ir_buffer(of(b), IR_I32, false), reals = ir_buffer(of(b), b->f.t, false);
  clb_table_results(&b->f, first_row(b, rows * s->product.rows_per_lane), rows, numbers, reals);
}

void clb_lower_general(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  builder *b = calloc(1, sizeof *b);
  bool memory = b && (b->entry = malloc(sizeof *b->entry * MAX_M * MAX_M * MAX_M)) &&
                (b->symbol = malloc(sizeof *b->symbol * MAX_M * MAX_M * MAX_M));
  if (memory) {
    clb_form_begin(&b->f, k, p, s);
    (s->product.variant == CLB_VARIANT_TABLE ? by_tables : whole)(b);
  } else snprintf(k->error, sizeof k->error, "no memory");
  if (b) free(b->symbol), free(b->entry);
  free(b);
}
