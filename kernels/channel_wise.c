/* channel_wise.c - a product of mode uvu with one y channel, unrolled; lanes are channels.  A row belongs to one sub-group that goes through
   its blocks of channels, or to several (units) that have a block each.

   Per path and block, y being uniform:  beta_i = sum_jk C y_j z_k serves the gradients of x (w beta) and of w (x . beta),  u = w x those of
   z (sum_ij C u_i y_j) and of y (sum_ik C u_i z_k, summed over lanes at the end).  Terms of equal multiplicity share their blocks of
   channels, so that each operand is loaded once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "form.h"
#include "product.h"

enum { MAX_Y = CLB_MAX_CHANNEL_WISE_Y };

/* Sums over the paths that share a term. */
typedef struct {
  ir_val v[MAX_M];
} components;

typedef struct {
  clb_form_builder f;
  int order[CLB_MAX_PATHS];                     /* paths by multiplicity, then term of x */
  ir_val row, unit;                             /* i64; i32: which of the row's sub-groups this is */
  int next_unit;                                /* the first one whose block has not been said yet */
  bool opened;                                  /* the block at hand stands in a LOOP or IF */
  ir_val channel, mask;                         /* of the block of channels: i64 index of this lane's, lanes that have one */
  ir_val y[ORDERS][MAX_Y];                      /* elements of y and its like, uniform */
  ir_val sum[MAX_OUTPUTS][MAX_Y];               /* variables: this lane's share of a gradient of y; IR_NONE: untouched */
  components *by_term[MAX_OUTPUTS];             /* gradients of x and z, by term */
  int left[SLOTS][CLB_MAX_TERMS];               /* paths to come, by term of x and of z */
  /* of the path at hand; loaded when first asked for */
  const clb_path *path;
  clb_entry *entry;
  double *symbol;
  int n;
  bool loaded[SLOTS][ORDERS], contracted[ORDERS][ORDERS];
  ir_val value[SLOTS][ORDERS][MAX_M], beta[ORDERS][ORDERS][MAX_M]; /* beta: by order of y and of z */
} builder;

static ir_kernel *of(builder *b) { return b->f.k; }

/* ---- one path ---- */

static int term_of(const clb_path *p, int slot) { return slot == X ? p->in1 : slot == Y ? p->in2 : p->out; }

static int at_y(const builder *b) { return b->f.tp->y.term[b->path->in2].at; }

/* Components of a vector of x or z; the weight, IR_NONE for 1. */
static const ir_val *value(builder *b, int slot, int order) {
  ir_val *v = b->value[slot][order];
  const clb_form_array *a = &b->f.in[slot][order];
  if (b->loaded[slot][order]) return v;
  b->loaded[slot][order] = true;
  clb_none(v, MAX_M);
  if (slot != W) clb_form_load(&b->f, a, term_of(b->path, slot), b->channel, b->mask, v);
  else if (b->path->has_weight) v[0] = clb_form_load_weight(&b->f, a, b->path, b->channel, b->mask);
  return v;
}

static const ir_val *beta(builder *b, int y, int z) {
  ir_val *v = b->beta[y][z];
  if (b->contracted[y][z]) return v;
  b->contracted[y][z] = true;
  clb_none(v, MAX_M);
  clb_contract_x(&b->f, b->entry, b->n, b->y[y] + at_y(b), value(b, Z, z), v);
  return v;
}

/* Sum of w x over the monomials with these orders of y and z that output o asks for (-1: any, as it is differentiated by it). */
static bool weighted(builder *b, int o, int y, int z, ir_val *u) {
  bool some = false;
  clb_none(u, MAX_M);
  for (int m = 0; m < b->f.form->n_monomials; m++) {
    const int *order = b->f.form->monomial[m];
    if (!clb_form_alive(&b->f, m, o, b->path) || (y >= 0 && order[Y] != y) || (z >= 0 && order[Z] != z)) continue;
    const ir_val *x = value(b, X, order[X]), w = *value(b, W, order[W]);
    for (int i = 0; i < MAX_M && x[i] != IR_NONE; i++) u[i] = clb_plus_weighted(of(b), u[i], w, x[i]);
    some = true;
  }
  return some;
}

static void by_x(builder *b, int o, ir_val *sum) {
  for (int m = 0; m < b->f.form->n_monomials; m++) {
    const int *order = b->f.form->monomial[m];
    if (!clb_form_alive(&b->f, m, o, b->path)) continue;
    const ir_val *v = beta(b, order[Y], order[Z]), w = *value(b, W, order[W]);
    for (int i = 0; i < MAX_M; i++) sum[i] = clb_plus_weighted(of(b), sum[i], w, v[i]);
  }
}

static void by_weight(builder *b, int o) {
  ir_val sum = IR_NONE;
  if (!b->path->has_weight) return;
  for (int m = 0; m < b->f.form->n_monomials; m++) {
    const int *order = b->f.form->monomial[m];
    if (!clb_form_alive(&b->f, m, o, b->path)) continue;
    const ir_val *v = beta(b, order[Y], order[Z]), *x = value(b, X, order[X]);
    for (int i = 0; i < MAX_M; i++) sum = clb_plus(of(b), sum, v[i], x[i]);
  }
  clb_form_store_weight(&b->f, &b->f.out[o], b->path, b->channel, b->mask, sum);
}

static void by_z(builder *b, int o, ir_val *sum) {
  ir_val u[MAX_M];
  for (int y = 0; y < ORDERS; y++)
    if (weighted(b, o, y, -1, u)) clb_contract_z(&b->f, b->entry, b->n, u, b->y[y] + at_y(b), sum);
}

static void by_y(builder *b, int o) {
  ir_val u[MAX_M], sum[MAX_M], *to = b->sum[o] + at_y(b);
  clb_none(sum, MAX_M);
  for (int z = 0; z < ORDERS; z++)
    if (weighted(b, o, -1, z, u)) clb_contract_y(&b->f, b->entry, b->n, u, value(b, Z, z), sum);
  for (int j = 0; j < MAX_M; j++)
    if (sum[j] != IR_NONE) ir_set(of(b), to[j], ir_add(of(b), ir_get(of(b), to[j]), sum[j]));
}

/* x and w share beta, y and z share w x: so in this order. */
static void one_path(builder *b, const clb_path *p) {
  static const int slots[] = {X, W, Z, Y};
  b->path = p;
  b->n = clb_form_entries(b->f.tp, p, b->symbol, b->entry);
  memset(b->loaded, 0, sizeof b->loaded);
  memset(b->contracted, 0, sizeof b->contracted);
  for (int s = 0; s < SLOTS; s++)
    for (int o = 0; o < b->f.form->n_outputs; o++) {
      if (b->f.form->output[o].slot != slots[s] || !clb_form_wanted(&b->f, o)) continue;
      if (slots[s] == W) by_weight(b, o);
      else if (slots[s] == Y) by_y(b, o);
      else (slots[s] == X ? by_x : by_z)(b, o, b->by_term[o][term_of(p, slots[s])].v);
    }
}

/* Writes what has all its paths. */
static void store_complete(builder *b, const clb_path *p, int slot) {
  int term = term_of(p, slot);
  if (--b->left[slot][term]) return;
  for (int o = 0; o < b->f.form->n_outputs; o++)
    if (b->f.form->output[o].slot == slot && clb_form_wanted(&b->f, o)) clb_form_store(&b->f, &b->f.out[o], term, b->channel, b->mask, b->by_term[o][term].v);
}

/* ---- channels ---- */

/* Opens what goes over mul channels, lanes at a time; close with end_channels.  `alone`: by the first unit, others do nothing. */
static void begin_channels(builder *b, int mul, bool alone) {
  ir_kernel *k = of(b);
  int lanes = b->f.s->lanes, blocks = (mul - 1) / lanes + 1, units = b->f.s->units;
  ir_val lane = ir_lane(k), first = ir_int(k, IR_I32, 0), one = ir_int(k, IR_I32, 1);
  b->opened = true;
  if (units && !alone) {
    ir_val block = ir_sub(k, b->unit, ir_int(k, IR_I32, b->next_unit));
    ir_val mine = ir_2(k, IR_AND, ir_2(k, IR_LE, first, block), ir_2(k, IR_LT, block, ir_int(k, IR_I32, blocks)));
    b->opened = blocks < units;
    b->next_unit += blocks;
    if (b->opened) ir_if(k, mine);
    first = ir_mul(k, block, ir_int(k, IR_I32, lanes));
  } else if (mul > lanes) {
    first = ir_mul(k, ir_loop(k, first, ir_int(k, IR_I32, blocks), one), ir_int(k, IR_I32, lanes));
  } else b->opened = false;
  b->channel = ir_cast(k, IR_I64, ir_add(k, first, lane));
  b->mask = mul % lanes ? ir_2(k, IR_LT, lane, ir_sub(k, ir_int(k, IR_I32, mul), first)) : IR_NONE;
}

static void end_channels(builder *b) {
  if (b->opened) ir_end(of(b));
}

/* Terms that no path reaches are 0. */
static void store_unreached(builder *b, int o, const int *paths) {
  const clb_irreps *irreps = b->f.out[o].irreps;
  ir_val nothing[MAX_M];
  clb_none(nothing, MAX_M);
  for (int t = 0; t < irreps->n; t++)
    if (!paths[t] && irreps->term[t].mul) {
      begin_channels(b, irreps->term[t].mul, true);
      clb_form_store(&b->f, &b->f.out[o], t, b->channel, b->mask, nothing);
      end_channels(b);
    }
}

/* ---- y: uniform when read, summed over lanes when written ---- */

static void load_y(builder *b, int order) {
  const clb_form_array *a = &b->f.in[Y][order];
  ir_kernel *k = of(b);
  for (int j = 0; j < b->f.tp->y.dim; j++) b->y[order][j] = ir_cast(k, b->f.t, ir_load(k, a->rows.buffer, ir_add(k, a->base, ir_int(k, IR_I64, j)), IR_NONE));
}

/* Lane j takes element first + j of the sub-group's sum, so that one store writes as many as there are lanes. */
static ir_val sum_of_lanes(builder *b, const ir_val *sum, int n) {
  ir_kernel *k = of(b);
  ir_val out = ir_real(k, b->f.t, 0);
  for (int j = 0; j < n; j++)
    if (sum[j] != IR_NONE) out = ir_select(k, ir_2(k, IR_EQ, ir_lane(k), ir_int(k, IR_I32, j)), ir_reduce_add(k, ir_get(k, sum[j])), out);
  return out;
}

/* Where several sub-groups share the row, they meet in local memory and the first adds them up in order.  Called by whole groups. */
static ir_val sum_of_units(builder *b, ir_val stage, ir_val own) {
  ir_kernel *k = of(b);
  const clb_schedule *s = b->f.s;
  ir_val lanes = ir_int(k, IR_I32, s->lanes), at = ir_add(k, ir_mul(k, ir_subgroup(k), lanes), ir_lane(k));
  ir_barrier(k, true);
  ir_store(k, stage, at, IR_NONE, own);
  ir_barrier(k, true);
  for (int u = 1; u < s->units; u++) {
    ir_val last = ir_int(k, IR_I32, s->subgroups * s->lanes - 1), other = ir_add(k, at, ir_int(k, IR_I32, u * s->lanes));
    own = ir_add(k, own, ir_load(k, stage, ir_2(k, IR_MIN, other, last), IR_NONE)); /* the first unit's neighbours; others read anything */
  }
  return own;
}

static void store_y(builder *b, int o, ir_val stage) {
  ir_kernel *k = of(b);
  const clb_form_array *a = &b->f.out[o];
  const clb_schedule *s = b->f.s;
  ir_val lane = ir_lane(k), due = ir_2(k, IR_LT, b->row, b->f.n);
  for (int first = 0; first < a->irreps->dim; first += s->lanes) {
    int n = a->irreps->dim - first < s->lanes ? a->irreps->dim - first : s->lanes;
    ir_val out = sum_of_lanes(b, b->sum[o] + first, n), index = ir_add(k, ir_add(k, a->base, ir_int(k, IR_I64, first)), ir_cast(k, IR_I64, lane));
    ir_val mask = n == s->lanes ? IR_NONE : ir_2(k, IR_LT, lane, ir_int(k, IR_I32, n));
    if (s->units > 1) out = sum_of_units(b, stage, out);
    if (s->subgroups > 1) ir_if(k, ir_2(k, IR_AND, due, ir_2(k, IR_EQ, b->unit, ir_int(k, IR_I32, 0))));
    if (b->f.p->accumulate) out = ir_add(k, out, ir_cast(k, b->f.t, ir_load(k, a->rows.buffer, index, mask)));
    ir_store(k, a->rows.buffer, index, mask, ir_cast(k, ir_register_type(a->rows.element), out));
    if (s->subgroups > 1) ir_end(k);
  }
}

static bool gives_y(const builder *b, int o) { return b->f.form->output[o].slot == Y && clb_form_wanted(&b->f, o); }

/* Variables for what some path adds to; returns whether there are any. */
static bool start_sums(builder *b) {
  bool some = false;
  for (int o = 0; o < b->f.form->n_outputs; o++) {
    clb_none(b->sum[o], MAX_Y);
    for (int q = 0; q < b->f.tp->n_paths && gives_y(b, o); q++) {
      const clb_term *t = &b->f.tp->y.term[b->f.tp->path[q].in2];
      for (int j = t->at; j < t->at + clb_width(t); j++)
        if (b->sum[o][j] == IR_NONE) b->sum[o][j] = ir_var(of(b), ir_real(of(b), b->f.t, 0), false);
      some = true;
    }
  }
  return some;
}

/* ---- the whole ---- */

static int channels(const builder *b, int path) { return b->f.tp->x.term[b->f.tp->path[path].in1].mul; }

/* Paths by multiplicity, then term of x: simple insertion, stable. */
static void sort_paths(builder *b) {
  for (int q = 0; q < b->f.tp->n_paths; q++) {
    int at = q, in1 = b->f.tp->path[q].in1, mul = channels(b, q);
    for (; at > 0; at--) {
      int other = b->order[at - 1];
      if (channels(b, other) > mul || (channels(b, other) == mul && b->f.tp->path[other].in1 <= in1)) break;
      b->order[at] = other;
    }
    b->order[at] = q;
    b->left[X][in1]++;
    b->left[Z][b->f.tp->path[q].out]++;
  }
}

static void all_paths(builder *b) {
  int n_paths = b->f.tp->n_paths;
  for (int first = 0, end; first < n_paths; first = end) {
    int mul = channels(b, b->order[first]);
    for (end = first; end < n_paths && channels(b, b->order[end]) == mul;) end++;
    for (int o = 0; o < b->f.form->n_outputs; o++)
      for (int t = 0; t < CLB_MAX_TERMS; t++) clb_none(b->by_term[o][t].v, MAX_M);
    begin_channels(b, mul, false);
    for (int q = first; q < end; q++) {
      const clb_path *p = &b->f.tp->path[b->order[q]];
      one_path(b, p);
      store_complete(b, p, Z);
      store_complete(b, p, X);
    }
    end_channels(b);
  }
}

static void whole(builder *b) {
  ir_kernel *k = of(b);
  const clb_schedule *s = b->f.s;
  int units = s->units ? s->units : 1, rows_of_group = s->subgroups / units, reached[SLOTS][CLB_MAX_TERMS];
  ir_val in_group = ir_2(k, IR_DIV, ir_subgroup(k), ir_int(k, IR_I32, units)), stage = IR_NONE;
  b->unit = units > 1 ? ir_sub(k, ir_subgroup(k), ir_mul(k, in_group, ir_int(k, IR_I32, units))) : ir_int(k, IR_I32, 0);
  b->row = ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), ir_int(k, IR_I64, rows_of_group));
  if (rows_of_group > 1) b->row = ir_add(k, b->row, ir_cast(k, IR_I64, in_group));
  clb_form_rows(&b->f, b->row);
  if (start_sums(b) && units > 1) stage = ir_local(k, b->f.t, (int64_t)s->subgroups * s->lanes);
  if (rows_of_group > 1) ir_if(k, ir_2(k, IR_LT, b->row, b->f.n));
  clb_form_indexed_rows(&b->f, b->row, IR_NONE);
  for (int order = 0, n = b->f.p->pass > CLB_BACKWARD ? b->f.p->pass : 1; order < n; order++) load_y(b, order); /* y; y b; y b q */
  memcpy(reached, b->left, sizeof reached);
  all_paths(b);
  if (units > 1) ir_if(k, ir_2(k, IR_EQ, b->unit, ir_int(k, IR_I32, 0)));
  for (int o = 0; o < b->f.form->n_outputs && !b->f.p->accumulate; o++) {
    int slot = b->f.form->output[o].slot;
    if ((slot == X || slot == Z) && clb_form_wanted(&b->f, o)) store_unreached(b, o, reached[slot]);
  }
  if (units > 1) ir_end(k);
  if (rows_of_group > 1) ir_end(k);
  for (int o = 0; o < b->f.form->n_outputs; o++)
    if (gives_y(b, o)) store_y(b, o, stage);
}

void clb_lower_channel_wise(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  builder *b = calloc(1, sizeof *b);
  bool memory = b && (b->entry = malloc(sizeof *b->entry * MAX_M * MAX_M * MAX_M)) && (b->symbol = malloc(sizeof *b->symbol * MAX_M * MAX_M * MAX_M));
  for (int o = 0; memory && o < MAX_OUTPUTS; o++) memory = (b->by_term[o] = malloc(sizeof **b->by_term * CLB_MAX_TERMS)) != NULL;
  if (memory) {
    clb_form_begin(&b->f, k, p, s);
    sort_paths(b);
    whole(b);
  } else snprintf(k->error, sizeof k->error, "no memory");
  for (int o = 0; b && o < MAX_OUTPUTS; o++) free(b->by_term[o]);
  if (b) free(b->symbol), free(b->entry);
  free(b);
}
