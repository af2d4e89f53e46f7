/* kernels/tensor_product/body_channel_wise.c - a product of mode uvu with one y channel, unrolled;
   lanes are channels.  A row belongs to one sub-group that goes through its blocks of channels, or
   to several (units) that have a block each.

   Gradients of y are summed over lanes at the end.  Terms of equal multiplicity share their blocks
   of channels, so that each operand is loaded once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/tensor_product/channels.h"
#include "kernels/tensor_product/path.h"

enum { MAX_Y = CLB_MAX_CHANNEL_WISE_Y };

/* Sums over the paths that share a term. */
typedef struct {
  ir_val v[MAX_M];
} components;

typedef struct {
  clb_channels c;
  int order[CLB_MAX_PATHS]; /* paths by multiplicity, then term of x */
  clb_path_builder at;      /* the current path */
  ir_val sum[MAX_OUTPUTS]
            [MAX_Y]; /* variables: this lane's contribution to a gradient of y; IR_NONE: none */
  ir_val meeting;    /* local array for sums of gradients of y over lanes, or IR_NONE */
  components *by_term[MAX_OUTPUTS]; /* gradients of x and z, by term */
  int left[SLOTS][CLB_MAX_TERMS],
      paths[SLOTS][CLB_MAX_TERMS]; /* number of remaining paths, and of all, by term of x and of
                                      z */
} builder;

static ir_kernel *of(builder *b) { return b->c.f.k; }

/* ---- parity pairs: a path and its twin, the same from a term of the other parity ---- */

static bool alike(const clb_tensor_product_problem *tp, const clb_path *p, const clb_path *q) {
  const clb_term *x = &tp->x.term[p->in1], *z = &tp->z.term[p->out], *x2 = &tp->x.term[q->in1],
                 *z2 = &tp->z.term[q->out];
  return p->in2 == q->in2 && x->l == x2->l && x->mul == x2->mul && z->l == z2->l &&
         z->mul == z2->mul && p->has_weight == q->has_weight && p->coefficient == q->coefficient &&
         p->out != q->out;
}

/* The first unused path from x term `term` that does the same as order[at]. */
static int twin_of(const clb_tensor_product_problem *tp, const int *order, int n, int path,
                   int term, const bool *taken) {
  for (int i = 0; i < n; i++)
    if (!taken[order[i]] && tp->path[order[i]].in1 == term &&
        alike(tp, &tp->path[path], &tp->path[order[i]]))
      return order[i];
  return -1;
}

/* Pairs all n paths, so that those of a term of x are paired with those of one other term; each
   output belongs to one path. twin[]: -1, or the path's partner, for one of the two only. false:
   the paths cannot be paired like this. */
static bool pair_paths(const clb_tensor_product_problem *tp, const int *order, int n,
                       const int *left_z, int *twin) {
  bool taken[CLB_MAX_PATHS] = {false};
  int partner[CLB_MAX_TERMS], left = n;
  for (int t = 0; t < CLB_MAX_TERMS; t++) partner[t] = -1;
  for (int i = 0; i < n; i++) twin[order[i]] = -1;
  for (int i = 0; i < n; i++) {
    const clb_path *p = &tp->path[order[i]];
    if (left_z[p->out] != 1) return false;
    if (taken[order[i]]) continue;
    int found = -1;
    taken[order[i]] = true;
    for (int t = 0; t < tp->x.n && found < 0; t++)
      if (t != p->in1 && (partner[p->in1] == t || (partner[p->in1] < 0 && partner[t] < 0)))
        found = twin_of(tp, order, n, order[i], t, taken);
    if (found < 0) return false;
    partner[p->in1] = tp->path[found].in1;
    partner[tp->path[found].in1] = p->in1;
    taken[found] = true;
    twin[order[i]] = found;
    left -= 2;
  }
  return !left;
}

bool clb_has_parity_pairs(const clb_tensor_product_problem *tp) {
  int order[CLB_MAX_PATHS], twin[CLB_MAX_PATHS], left[CLB_MAX_TERMS] = {0};
  for (int q = 0; q < tp->n_paths; q++) order[q] = q, left[tp->path[q].out]++;
  return pair_paths(tp, order, tp->n_paths, left, twin);
}

/* ---- one path ---- */

static void load(void *owner, int slot, int order, ir_val *v) {
  builder *b = owner;
  const clb_form_array *a = &b->c.f.in[slot][order];
  if (slot == W) v[0] = clb_form_load_weight(&b->c.f, a, b->at.path, b->c.channel, b->c.mask);
  else clb_form_load(&b->c.f, a, clb_path_term(b->at.path, slot), b->c.channel, b->c.mask, v);
}

static void by_y(builder *b, int o) {
  ir_val sum[MAX_M], *to = b->sum[o] + b->c.f.tp->y.term[b->at.path->in2].at;
  clb_no_values(sum, MAX_M);
  clb_path_y(&b->at, o, sum);
  for (int j = 0; j < MAX_M; j++)
    if (sum[j] != IR_NONE) ir_set(of(b), to[j], ir_add(of(b), ir_get(of(b), to[j]), sum[j]));
}

static void one_path(builder *b, const clb_path *p) {
  static const int slots[] = {X, W, Z, Y};
  clb_path_open(&b->at, p, NULL);
  for (int s = 0; s < SLOTS; s++)
    for (int o = 0; o < b->c.f.form->n_outputs; o++) {
      if (b->c.f.form->output[o].slot != slots[s] || !clb_form_wanted(&b->c.f, o)) continue;
      if (slots[s] == Y) by_y(b, o);
      else if (slots[s] != W)
        (slots[s] == X ? clb_path_x : clb_path_z)(&b->at, o,
                                                  b->by_term[o][clb_path_term(p, slots[s])].v);
      else if (p->has_weight)
        clb_form_store_weight(&b->c.f, &b->c.f.out[o], p, b->c.channel, b->c.write,
                              clb_path_w(&b->at, o));
    }
}

/* Writes results that are complete; if sums are in memory, adds the path's contribution. */
static void store_complete(builder *b, const clb_path *p, int slot) {
  int term = clb_path_term(p, slot), all = b->paths[slot][term];
  bool last = !--b->left[slot][term], in_memory = b->c.f.s->accumulate_in_memory && all > 1 &&
                                                  !(slot == Z && b->c.whole != IR_NONE);
  bool later = b->left[slot][term] + 1 < all;
  for (int o = 0; o < b->c.f.form->n_outputs && (last || in_memory); o++) {
    ir_val *v = b->by_term[o][term].v;
    if (b->c.f.form->output[o].slot != slot || !clb_form_wanted(&b->c.f, o)) continue;
    if (!in_memory) clb_channels_store(&b->c, &b->c.f.out[o], term, v);
    else
      clb_form_put(&b->c.f, &b->c.f.out[o], term, b->c.channel, b->c.write, v,
                   later || b->c.f.out[o].adds),
          clb_no_values(v, MAX_M);
  }
}

/* Terms that no path reaches are 0. */
static void store_unreached(builder *b, int o, const int *paths) {
  const clb_irreps *irreps = b->c.f.out[o].irreps;
  ir_val nothing[MAX_M];
  clb_no_values(nothing, MAX_M);
  for (int t = 0; t < irreps->n; t++)
    if (!paths[t] && irreps->term[t].mul) {
      clb_channels_open(&b->c, irreps->term[t].mul, true);
      clb_channels_store(&b->c, &b->c.f.out[o], t, nothing);
      clb_channels_close(&b->c);
    }
}

/* ---- y: uniform when read, summed over lanes when written ---- */

static void load_y(builder *b, int order) {
  const clb_form_array *a = &b->c.f.in[Y][order];
  ir_kernel *k = of(b);
  for (int j = 0; j < b->c.f.tp->y.dim; j++)
    b->at.y[order][j] = ir_cast(
        k, b->c.f.t, ir_load(k, a->rows.buffer, ir_add(k, a->base, ir_int(k, IR_I64, j)), IR_NONE));
}

/* Lane j takes element first + j of the sub-group's sum, so that one store writes one element per
   lane. */
static ir_val sum_of_lanes(builder *b, const ir_val *sum, int n) {
  ir_kernel *k = of(b);
  ir_val out = ir_real(k, b->c.f.t, 0);
  for (int j = 0; j < n; j++)
    if (sum[j] != IR_NONE)
      out = ir_select(k, ir_2(k, IR_EQ, ir_lane(k), ir_int(k, IR_I32, j)),
                      ir_reduce_add(k, ir_get(k, sum[j])), out);
  return out;
}

/* If several sub-groups share the row, the first adds up their sums in order through local memory.
   Called by whole groups. */
static ir_val sum_of_units(builder *b, ir_val own) {
  ir_kernel *k = of(b);
  const clb_schedule *s = b->c.f.s;
  ir_val lanes = ir_int(k, IR_I32, s->lanes),
         at = ir_add(k, ir_mul(k, ir_subgroup(k), lanes), ir_lane(k));
  ir_barrier(k, true);
  ir_store(k, b->meeting, at, IR_NONE, own);
  ir_barrier(k, true);
  for (int u = 1; u < s->product.subgroups_per_row; u++) {
    ir_val last = ir_int(k, IR_I32, s->subgroups * s->lanes - 1),
           other = ir_add(k, at, ir_int(k, IR_I32, u * s->lanes));
    own = ir_add(k, own,
                 ir_load(k, b->meeting, ir_2(k, IR_MIN, other, last),
                         IR_NONE)); /* the units after the first; the values that other units read
                                       are unused */
  }
  return own;
}

/* Without shuffles: every thread of the row stores its contribution to n <= lanes elements; then
   `parts` of the row's threads sum the contributions to an element, and lane j of the first unit
   sums their results for element j. Called by whole groups. */
static ir_val sum_of_threads(builder *b, const ir_val *sum, int n) {
  ir_kernel *k = of(b);
  int lanes = b->c.f.s->lanes, threads = b->c.units * lanes, pitch = threads + 1,
      parts = threads / n, share = (threads + parts - 1) / parts;
  ir_val in_row = ir_add(k, ir_mul(k, b->c.unit, ir_int(k, IR_I32, lanes)), ir_lane(k)),
         start = ir_mul(k, b->c.row_in_group, ir_int(k, IR_I32, (int64_t)lanes * pitch));
  if (n > 1) ir_barrier(k, true);
  for (int j = 0; j < n && n > 1; j++)
    ir_store(k, b->meeting, ir_add(k, ir_add(k, start, in_row), ir_int(k, IR_I32, j * pitch)),
             IR_NONE, sum[j] == IR_NONE ? ir_real(k, b->c.f.t, 0) : ir_get(k, sum[j]));
  if (n > 1) ir_barrier(k, true);
  ir_val element = ir_2(k, IR_DIV, in_row, ir_int(k, IR_I32, parts)),
         part = ir_sub(k, in_row, ir_mul(k, element, ir_int(k, IR_I32, parts)));
  ir_val first = ir_mul(k, part, ir_int(k, IR_I32, share)),
         row = ir_add(k, start, ir_mul(k, element, ir_int(k, IR_I32, pitch))),
         total = ir_real(k, b->c.f.t, 0);
  ir_val some = ir_2(k, IR_LT, element, ir_int(k, IR_I32, n));
  if (n == 1 && sum[0] != IR_NONE)
    total = ir_get(k, sum[0]); /* a part is one thread's
                                  contribution */
  for (int i = 0; i < share && n > 1; i++) {
    ir_val at = ir_add(k, first, ir_int(k, IR_I32, i)),
           there = ir_2(k, IR_AND, some, ir_2(k, IR_LT, at, ir_int(k, IR_I32, threads)));
    total = ir_add(k, total, ir_load(k, b->meeting, ir_add(k, row, at), there));
  }
  if (parts == 1) return total; /* lane j of the first unit has the sum of element j */
  ir_barrier(k, true);
  ir_store(k, b->meeting, ir_add(k, start, in_row), IR_NONE, total);
  ir_barrier(k, true);
  ir_val lane = ir_add(k, start, ir_mul(k, ir_lane(k), ir_int(k, IR_I32, parts))),
         out = ir_real(k, b->c.f.t, 0), mine = ir_2(k, IR_LT, ir_lane(k), ir_int(k, IR_I32, n));
  for (int i = 0; i < parts; i++)
    out = ir_add(k, out, ir_load(k, b->meeting, ir_add(k, lane, ir_int(k, IR_I32, i)), mine));
  return out;
}

/* Elements that are summed and stored together. */
static int y_step(const builder *b) {
  return b->c.f.s->product.shuffle_sums || b->c.f.s->lanes < 16 ? b->c.f.s->lanes : 16;
}

static void store_y(builder *b, int o) {
  ir_kernel *k = of(b);
  const clb_form_array *a = &b->c.f.out[o];
  const clb_schedule *s = b->c.f.s;
  ir_val lane = ir_lane(k), due = ir_2(k, IR_LT, b->c.row, b->c.f.n);
  for (int first = 0, step = y_step(b), n; first < a->irreps->dim; first += step) {
    n = a->irreps->dim - first < step ? a->irreps->dim - first : step;
    ir_val out = s->product.shuffle_sums ? sum_of_lanes(b, b->sum[o] + first, n)
                                         : sum_of_threads(b, b->sum[o] + first, n);
    ir_val index =
               ir_add(k, ir_add(k, a->base, ir_int(k, IR_I64, first)), ir_cast(k, IR_I64, lane)),
           mask = n == s->lanes ? IR_NONE : ir_2(k, IR_LT, lane, ir_int(k, IR_I32, n));
    if (s->product.shuffle_sums && s->product.subgroups_per_row > 1) out = sum_of_units(b, out);
    if (s->subgroups > 1)
      ir_if(k, ir_2(k, IR_AND, due, ir_2(k, IR_EQ, b->c.unit, ir_int(k, IR_I32, 0))));
    if (a->adds)
      out = ir_add(k, out, ir_cast(k, b->c.f.t, ir_load(k, a->rows.buffer, index, mask)));
    ir_store(k, a->rows.buffer, index, mask, ir_cast(k, ir_register_type(a->rows.element), out));
    if (s->subgroups > 1) ir_end(k);
  }
}

static bool gives_y(const builder *b, int o) {
  return b->c.f.form->output[o].slot == Y && clb_form_wanted(&b->c.f, o);
}

/* Creates variables for sums that some path contributes to; returns whether there are any. */
static bool start_sums(builder *b) {
  bool some = false;
  for (int o = 0; o < b->c.f.form->n_outputs; o++) {
    clb_no_values(b->sum[o], MAX_Y);
    for (int q = 0; q < b->c.f.tp->n_paths && gives_y(b, o); q++) {
      const clb_term *t = &b->c.f.tp->y.term[b->c.f.tp->path[q].in2];
      for (int j = t->at; j < t->at + clb_width(t); j++)
        if (b->sum[o][j] == IR_NONE)
          b->sum[o][j] = ir_var(of(b), ir_real(of(b), b->c.f.t, 0), false);
      some = true;
    }
  }
  return some;
}

/* ---- the kernel ---- */

static int channels(const builder *b, int path) {
  return b->c.f.tp->x.term[b->c.f.tp->path[path].in1].mul;
}

/* Paths by multiplicity, then term of x: simple insertion, stable. */
static void sort_paths(builder *b) {
  for (int q = 0; q < b->c.f.tp->n_paths; q++) {
    int at = q, in1 = b->c.f.tp->path[q].in1, mul = channels(b, q);
    for (; at > 0; at--) {
      int other = b->order[at - 1];
      if (channels(b, other) > mul ||
          (channels(b, other) == mul && b->c.f.tp->path[other].in1 <= in1))
        break;
      b->order[at] = other;
    }
    b->order[at] = q;
    b->left[X][in1]++;
    b->left[Z][b->c.f.tp->path[q].out]++;
  }
}

static void all_paths(builder *b) {
  int n_paths = b->c.f.tp->n_paths, twin[CLB_MAX_PATHS];
  for (int first = 0, end; first < n_paths; first = end) {
    int mul = channels(b, b->order[first]);
    for (end = first; end < n_paths && channels(b, b->order[end]) == mul;) end++;
    for (int o = 0; o < b->c.f.form->n_outputs; o++)
      for (int t = 0; t < CLB_MAX_TERMS; t++) clb_no_values(b->by_term[o][t].v, MAX_M);
    clb_channels_open(&b->c, mul, false);
    clb_path_forget(&b->at);
    bool paired = b->c.f.s->product.parity_pairs &&
                  pair_paths(b->c.f.tp, b->order + first, end - first, b->left[Z], twin);
    b->c.f.second = paired ? ir_loop(of(b), ir_int(of(b), IR_I64, 0), ir_int(of(b), IR_I64, 2),
                                     ir_int(of(b), IR_I64, 1))
                           : IR_NONE;
    for (int q = first; q < end; q++) {
      const clb_path *p = &b->c.f.tp->path[b->order[q]];
      if (paired && twin[b->order[q]] < 0) continue;
      b->c.f.twin = paired ? &b->c.f.tp->path[twin[b->order[q]]] : NULL;
      b->c.f.path = p;
      if (b->c.f.s->product.lockstep) ir_rendezvous(of(b));
      one_path(b, p);
      store_complete(b, p, Z);
      store_complete(b, p, X);
    }
    if (paired) ir_end(of(b));
    b->c.f.twin = NULL;
    clb_channels_close(&b->c);
  }
}

static void whole(builder *b) {
  ir_kernel *k = of(b);
  const clb_schedule *s = b->c.f.s;
  const clb_form *form = b->c.f.form;
  int y = b->c.f.tp->y.dim < y_step(b) ? b->c.f.tp->y.dim : y_step(b);
  bool sums = start_sums(b);
  b->meeting = IR_NONE;
  if (sums && !s->product.shuffle_sums)
    b->meeting =
        ir_local(k, b->c.f.t,
                 (int64_t)(b->c.rows_of_group - 1) * s->lanes * (b->c.units * s->lanes + 1) +
                     (int64_t)y * (b->c.units * s->lanes + 1));
  else if (sums && s->product.subgroups_per_row > 1)
    b->meeting = ir_local(k, b->c.f.t, (int64_t)s->subgroups * s->lanes);
  clb_channels_guard(&b->c);
  for (int order = 0, n = b->c.f.p->pass > CLB_BACKWARD ? b->c.f.p->pass : 1; order < n; order++)
    load_y(b, order); /* y; y b; y b q */
  memcpy(b->paths, b->left, sizeof b->paths);
  all_paths(b);
  if (b->c.units > 1) ir_if(k, ir_2(k, IR_EQ, b->c.unit, ir_int(k, IR_I32, 0)));
  for (int o = 0; o < form->n_outputs; o++) {
    int slot = form->output[o].slot;
    bool needs = !b->c.f.out[o].adds || (slot == Z && b->c.whole != IR_NONE);
    if ((slot == X || slot == Z) && needs && clb_form_wanted(&b->c.f, o))
      store_unreached(b, o, b->paths[slot]);
  }
  if (b->c.units > 1) ir_end(k);
  for (int o = 0; o < form->n_outputs; o++)
    if (form->output[o].slot == Z && b->c.whole != IR_NONE && clb_form_wanted(&b->c.f, o))
      clb_channels_flush(&b->c, &b->c.f.out[o]);
  clb_channels_end_guard(&b->c);
  for (int o = 0; o < form->n_outputs; o++)
    if (gives_y(b, o)) store_y(b, o);
}

void clb_lower_channel_wise(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  builder *b = calloc(1, sizeof *b);
  if (b) b->at.pairs = s->product.component_pairs;
  bool memory = b && clb_path_begin(&b->at, &b->c.f, load, b);
  for (int o = 0; memory && o < MAX_OUTPUTS; o++)
    memory = (b->by_term[o] = malloc(sizeof **b->by_term * CLB_MAX_TERMS)) != NULL;
  if (memory) {
    clb_channels_begin(&b->c, k, p, s);
    sort_paths(b);
    whole(b);
  } else snprintf(k->error, sizeof k->error, "no memory");
  for (int o = 0; b && o < MAX_OUTPUTS; o++) free(b->by_term[o]);
  if (b) clb_path_free(&b->at);
  free(b);
}
