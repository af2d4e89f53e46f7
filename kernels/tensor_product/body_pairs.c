/* kernels/tensor_product/body_pairs.c - a product whose paths all mix channels by weights of each
   row, all results in one pass, so that each weight is read once: pair by pair of channels of x and
   y, lanes are channels w of z.

   z, and the sums of gradients by it, stay in registers, y too. With h_k = the sum over a lane's w
   of W z_k and t = C x y, a pair (u, v) contributes to w: t . z   to z: W t   to x: C y h   to y:
   C x h; contributions to x and y are summed over lanes when they are complete: those to x after
   all paths of some channels u, those to y at the end. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/common/lane_sums.h"
#include "kernels/tensor_product/channel_pair.h"
#include "kernels/tensor_product/modes.h"
#include "kernels/tensor_product/product.h"

enum {
  MAX_Y = CLB_PAIR_MAX_Y,
  MAX_Z = 48,      /* numbers of z in a lane */
  MAX_LOADED = 32, /* weights of a lane that are read together */
  MAX_U = 4,       /* channels of x that are processed together */
  LONGEST = 4200   /* products in the code */
};

typedef clb_pair_builder builder;

static ir_kernel *of(builder *b) { return b->f.k; }
static ir_val number(builder *b, int64_t n) { return ir_int(b->f.k, IR_I32, n); }
static ir_val wide(builder *b, ir_val i) { return ir_cast(b->f.k, IR_I64, i); }

/* ---- which products can be lowered so ---- */

static int blocks_of(const clb_term *z, int lanes) { return (z->mul + lanes - 1) / lanes; }

/* Weights of a lane for one channel of x. */
static int loads_of_term(const clb_tensor_product_problem *tp, int term, int lanes) {
  int n = 0;
  for (int q = 0; q < tp->n_paths; q++)
    if (tp->path[q].in1 == term)
      n += tp->y.term[tp->path[q].in2].mul * blocks_of(&tp->z.term[tp->path[q].out], lanes);
  return n;
}

/* Channels of x that are processed together, which divide those of the term. */
static int together_of(const clb_tensor_product_problem *tp, int term, int lanes) {
  const clb_term *x = &tp->x.term[term];
  int n = MAX_U;
  while (n > 1 && (x->mul % n || n * clb_width(x) > lanes ||
                   n * loads_of_term(tp, term, lanes) > MAX_LOADED))
    n /= 2;
  return n;
}

bool clb_goes_by_pairs(const clb_tensor_product_problem *tp, int lanes, int repeats) {
  int y = 0, z = 0;
  int64_t products = 0;
  for (int t = 0; t < tp->y.n; t++)
    if ((y += tp->y.term[t].mul) > MAX_Y) return false;
  for (int t = 0; t < tp->z.n; t++)
    if ((z += blocks_of(&tp->z.term[t], lanes) * clb_width(&tp->z.term[t])) > MAX_Z) return false;
  for (int t = 0; t < tp->x.n; t++)
    if (loads_of_term(tp, t, lanes) > MAX_LOADED || clb_width(&tp->x.term[t]) > lanes) return false;
  for (int q = 0; q < tp->n_paths; q++) {
    const clb_path *p = &tp->path[q];
    if (p->mode != CLB_UVW || !p->has_weight) return false;
    products += (int64_t)together_of(tp, p->in1, lanes) * tp->y.term[p->in2].mul *
                clb_form_path_size(tp, p);
  }
  return tp->n_paths && products * repeats <= LONGEST;
}

/* ---- operands ---- */

/* This lane's channel of a block of a term of z (i32); lanes that have one. */
static ir_val channel_of(builder *b, int block) {
  return ir_add(of(b), ir_lane(of(b)), number(b, (int64_t)block * b->f.s->lanes));
}
static ir_val mask_of(builder *b, const clb_term *z, int block) {
  return z->mul >= (block + 1) * b->f.s->lanes
             ? IR_NONE
             : ir_2(of(b), IR_LT, channel_of(b, block), number(b, z->mul));
}

static ir_val zero_sum(builder *b) { return ir_var(of(b), ir_real(of(b), b->f.t, 0), false); }

static void start(builder *b) {
  for (int t = 0, n = 0; t < b->tp->y.n; n += b->tp->y.term[t++].mul) {
    const clb_term *y = &b->tp->y.term[t];
    b->first_y[t] = n;
    for (int v = 0; v < y->mul; v++) {
      for (int order = 0; order < ORDERS; order++)
        if (clb_pairs_use(b, Y, order))
          clb_form_load(&b->f, &b->f.in[Y][order], t, ir_int(of(b), IR_I64, v), IR_NONE,
                        b->y[order][n + v]);
      for (int o = 0; o < b->f.form->n_outputs; o++)
        for (int j = 0; j < clb_width(y) && clb_pairs_slot(b, o) == Y && clb_form_wanted(&b->f, o);
             j++)
          b->sum_y[o][n + v][j] = zero_sum(b);
    }
  }
  for (int t = 0, n = 0; t < b->tp->z.n; n += b->blocks[t++]) {
    const clb_term *z = &b->tp->z.term[t];
    b->first_block[t] = n;
    b->blocks[t] = blocks_of(z, b->f.s->lanes);
    for (int i = 0; i < b->blocks[t]; i++) {
      for (int order = 0; order < ORDERS; order++)
        if (clb_pairs_use(b, Z, order))
          clb_form_load(&b->f, &b->f.in[Z][order], t, wide(b, channel_of(b, i)), mask_of(b, z, i),
                        b->z[order][n + i]);
      for (int o = 0; o < b->f.form->n_outputs; o++)
        for (int k = 0; k < clb_width(z) && clb_pairs_slot(b, o) == Z && clb_form_wanted(&b->f, o);
             k++)
          b->sum_z[o][n + i][k] = zero_sum(b);
    }
  }
}

/* i64: the weight of the pair and this lane's channel. */
static ir_val weight_index(builder *b, const clb_form_array *a, const clb_path *p, ir_val u, int v,
                           int block) {
  const int64_t w = b->tp->z.term[p->out].mul, V = b->tp->y.term[p->in2].mul;
  ir_val row = ir_add(of(b), ir_mul(of(b), u, number(b, V * w)), number(b, p->weight_at + v * w));
  return ir_add(of(b), a->base, wide(b, ir_add(of(b), row, channel_of(b, block))));
}

/* The weights of a channel of x, those of all paths, to b->weight from `at` on; returns how
   many. */
static int load_weights(builder *b, int term, ir_val u, int at) {
  for (int q = 0; q < b->tp->n_paths; q++) {
    const clb_path *p = &b->tp->path[q];
    if (p->in1 != term) continue;
    for (int v = 0; v < b->tp->y.term[p->in2].mul; v++)
      for (int i = 0; i < b->blocks[p->out]; i++, at++)
        for (int order = 0; order < ORDERS; order++) {
          const clb_form_array *a = &b->f.in[W][order];
          if (clb_pairs_use(b, W, order))
            b->weight[order][at] =
                ir_cast(of(b), b->f.t,
                        ir_load(of(b), a->rows.buffer, weight_index(b, a, p, u, v, i),
                                mask_of(b, &b->tp->z.term[p->out], i)));
        }
  }
  return at;
}

/* ---- one pair of channels ---- */

static void give_weights(builder *b, const clb_pair *p, int o) {
  const clb_form_array *a = &b->f.out[o];
  clb_components t[ORDERS];
  bool some[ORDERS];
  clb_pairs_products(b, p, o, t, some);
  for (int i = 0; i < b->blocks[p->path->out]; i++) {
    ir_val sum = clb_pairs_by_weight(b, p, t, some, i);
    const ir_val at = weight_index(b, a, p->path, p->u, p->v, i),
                 mask = mask_of(b, &b->tp->z.term[p->path->out], i);
    if (a->adds)
      sum = ir_add(of(b), sum, ir_cast(of(b), b->f.t, ir_load(of(b), a->rows.buffer, at, mask)));
    ir_store(of(b), a->rows.buffer, at, mask,
             ir_cast(of(b), ir_register_type(a->rows.element), sum));
  }
}

/* ---- results ---- */

/* Sums of n values over lanes go to the elements `at` (i64) of those lanes that hold them. */
static void store_sums(builder *b, const clb_form_array *a, const ir_val *v, int n,
                       ir_val (*at)(builder *b, const clb_form_array *a, const void *what,
                                    ir_val i),
                       const void *what) {
  ir_kernel *k = of(b);
  int share;
  ir_val sum = clb_sum_over_lanes(k, b->f.t, b->f.s->lanes, v, n, &share),
         i = ir_2(k, IR_DIV, ir_lane(k), number(b, share)),
         first = ir_2(k, IR_EQ, ir_2(k, IR_MOD, ir_lane(k), number(b, share)), number(b, 0)),
         mask = clb_and(k, first, ir_2(k, IR_LT, i, number(b, n)));
  const ir_val index = ir_add(k, a->base, wide(b, at(b, a, what, i)));
  if (a->adds) sum = ir_add(k, sum, ir_cast(k, b->f.t, ir_load(k, a->rows.buffer, index, mask)));
  ir_store(k, a->rows.buffer, index, mask, ir_cast(k, ir_register_type(a->rows.element), sum));
}

typedef struct {
  const clb_term *term;
  ir_val u; /* i32: the first channel */
  int n;    /* channels together */
} channels_of_x;

/* Value i of some channels of x, in memory order. */
static ir_val place_of_x(builder *b, const clb_form_array *a, const void *what, ir_val i) {
  ir_kernel *k = of(b);
  const channels_of_x *c = what;
  if (a->layout == CLB_MUL_IR)
    return ir_add(
        k, ir_add(k, ir_mul(k, c->u, number(b, clb_width(c->term))), number(b, c->term->at)), i);
  const ir_val m = ir_2(k, IR_DIV, i, number(b, c->n)), j = ir_2(k, IR_MOD, i, number(b, c->n));
  return ir_add(k, ir_add(k, ir_add(k, c->u, number(b, c->term->at)), j),
                ir_mul(k, m, number(b, clb_component_stride(c->term))));
}

static ir_val place_of_y(builder *b, const clb_form_array *a, const void *what, ir_val i) {
  (void)a;
  return ir_add(of(b), i, number(b, *(const int *)what));
}

static void give_x(builder *b, int o, const channels_of_x *c) {
  const int width = clb_width(c->term);
  ir_val v[MAX_U * MAX_M];
  for (int j = 0; j < c->n; j++)
    for (int i = 0; i < width; i++)
      v[b->f.out[o].layout == CLB_MUL_IR ? j * width + i : i * c->n + j] = b->by_x[o][j][i];
  store_sums(b, &b->f.out[o], v, c->n * width, place_of_x, c);
}

/* Elements of y in memory order. */
static void give_y(builder *b, int o) {
  const clb_form_array *a = &b->f.out[o];
  const int lanes = b->f.s->lanes;
  ir_val v[MAX_Y * MAX_M];
  clb_no_values(v, MAX_Y * MAX_M);
  for (int t = 0; t < b->tp->y.n; t++) {
    const clb_term *y = &b->tp->y.term[t];
    for (int c = 0; c < y->mul; c++)
      for (int j = 0; j < clb_width(y); j++)
        v[y->at +
          (a->layout == CLB_MUL_IR ? c * clb_width(y) + j : j * (int)clb_component_stride(y) + c)] =
            ir_get(of(b), b->sum_y[o][b->first_y[t] + c][j]);
  }
  for (int first = 0; first < b->tp->y.dim; first += lanes)
    store_sums(b, a, v + first, b->tp->y.dim - first < lanes ? b->tp->y.dim - first : lanes,
               place_of_y, &first);
}

static void give_sums_z(builder *b, int o) {
  clb_components v;
  for (int t = 0; t < b->tp->z.n; t++)
    for (int i = 0; i < b->blocks[t]; i++) {
      clb_no_values(v, MAX_M);
      for (int k = 0; k < clb_width(&b->tp->z.term[t]); k++)
        v[k] = ir_get(of(b), b->sum_z[o][b->first_block[t] + i][k]);
      clb_form_store(&b->f, &b->f.out[o], t, wide(b, channel_of(b, i)),
                     mask_of(b, &b->tp->z.term[t], i), v);
    }
}

/* ---- the kernel ---- */

/* All paths of a term of x, for the channels from `first` on. */
static void channels(builder *b, int term, ir_val first, int n) {
  ir_val u[MAX_U];
  for (int j = 0, loaded = 0; j < n; j++) {
    u[j] = ir_add(of(b), first, number(b, j));
    for (int order = 0; order < ORDERS; order++)
      if (clb_pairs_use(b, X, order))
        clb_form_load(&b->f, &b->f.in[X][order], term, wide(b, u[j]), IR_NONE, b->x[order][j]);
    loaded = load_weights(b, term, u[j], loaded);
  }
  for (int j = 0, at = 0; j < n; j++) {
    for (int o = 0; o < b->f.form->n_outputs; o++) clb_no_values(b->by_x[o][j], MAX_M);
    for (int q = 0; q < b->tp->n_paths; q++) {
      const clb_path *p = &b->tp->path[q];
      if (p->in1 != term) continue;
      b->n = clb_form_entries(b->tp, p, b->symbol, b->entry);
      for (int v = 0; v < b->tp->y.term[p->in2].mul; v++, at += b->blocks[p->out])
        clb_pairs_add(b, &(clb_pair){p, u[j], j, v, b->first_y[p->in2] + v, at}, give_weights);
    }
  }
}

static void one_term(builder *b, int term) {
  const clb_term *x = &b->tp->x.term[term];
  channels_of_x c = {x, IR_NONE, together_of(b->tp, term, b->f.s->lanes)};
  if (!x->mul) return;
  c.u =
      x->mul > c.n ? ir_loop(of(b), number(b, 0), number(b, x->mul), number(b, c.n)) : number(b, 0);
  channels(b, term, c.u, c.n);
  for (int o = 0; o < b->f.form->n_outputs; o++)
    if (clb_pairs_slot(b, o) == X && clb_form_wanted(&b->f, o)) give_x(b, o, &c);
  if (x->mul > c.n) ir_end(of(b));
}

static void whole(builder *b) {
  ir_kernel *k = of(b);
  const clb_schedule *s = b->f.s;
  ir_val row = wide(b, ir_group(k));
  if (s->subgroups > 1)
    row = ir_add(k, ir_mul(k, row, ir_int(k, IR_I64, s->subgroups)), wide(b, ir_subgroup(k)));
  clb_form_rows(&b->f, row);
  if (s->subgroups > 1) ir_if(k, ir_2(k, IR_LT, row, b->f.n));
  clb_form_indexed_rows(&b->f, row, IR_NONE);
  start(b);
  for (int t = 0; t < b->tp->x.n; t++) one_term(b, t);
  for (int o = 0; o < b->f.form->n_outputs; o++) {
    if (!clb_form_wanted(&b->f, o)) continue;
    if (clb_pairs_slot(b, o) == Y) give_y(b, o);
    if (clb_pairs_slot(b, o) == Z) give_sums_z(b, o);
  }
  if (s->subgroups > 1) ir_end(k);
}

void clb_lower_pairs(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  builder *b = calloc(1, sizeof *b);
  if (b && clb_pairs_begin(b, k, p, s)) whole(b);
  else snprintf(k->error, sizeof k->error, "no memory");
  if (b) clb_pairs_free(b);
  free(b);
}
