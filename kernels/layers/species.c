/* kernels/layers/species.c - linear maps of irreps whose weights depend on the row's species; lanes
   are channels of the result, a sub-group does a row.

   out_T[c][v] = sum_u x_T[c][u] W_T[u][species][v].  The backward pass is the same with
   W_T[v][species][u], which follows all of W. */
#include "kernels/layers/layer.h"

enum { TOGETHER = 4, MAX_COMPONENTS = 25 }; /* channels of x loaded together */

typedef struct {
  clb_row_kernel l;
  const clb_term *x, *out;      /* x NULL: x has no such irrep */
  int64_t n_species, weight_at; /* of the current block */
  clb_row_array from, to;
  ir_val from_row, to_row, species, weights, add;
} builder;

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  if (p->species_linear.n_species < 1)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "n_species is %d; it must be at least 1",
                    (int)p->species_linear.n_species);
  return clb_layer_check(p, limits, error);
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, false, s);
}

/* Adds x[.][u ... u + n - 1] W[u ...][species][channel]; u: i64, uniform. */
static void add_channels(builder *b, ir_val u, int n, ir_val channel, ir_val mask,
                         const ir_val *sum) {
  ir_kernel *k = b->l.k;
  ir_val w[TOGETHER], x[TOGETHER][MAX_COMPONENTS];
  int components = 2 * b->x->l + 1;
  for (int i = 0; i < n; i++) {
    ir_val one = ir_add(k, u, clb_i64(k, i)),
           row = ir_add(k, ir_mul(k, one, clb_i64(k, b->n_species)), b->species);
    ir_val at = ir_add(
        k, ir_add(k, ir_mul(k, row, clb_i64(k, b->out->mul)), clb_i64(k, b->weight_at)), channel);
    w[i] = ir_load(k, b->weights, at, mask);
    for (int c = 0; c < components; c++)
      x[i][c] =
          clb_layer_load(&b->l, &b->from, b->from_row,
                         ir_add(k, clb_i64(k, b->x->at + (int64_t)c * b->x->mul), one), IR_NONE);
  }
  for (int i = 0; i < n; i++)
    for (int c = 0; c < components; c++)
      ir_set(k, sum[c], ir_fma(k, x[i][c], w[i], ir_get(k, sum[c])));
}

static void channels(void *user, ir_val channel, ir_val mask) {
  builder *b = user;
  ir_kernel *k = b->l.k;
  ir_val sum[MAX_COMPONENTS],
      left = mask == IR_NONE ? clb_i32(k, b->l.s->lanes) : clb_i32(k, b->out->mul % b->l.s->lanes),
      adding = clb_wanted_lanes(k, b->add, left);
  int components = 2 * b->out->l + 1;
  for (int c = 0; c < components; c++) {
    ir_val at = ir_add(k, clb_i64(k, b->out->at + (int64_t)c * b->out->mul), channel);
    sum[c] = ir_var(k, clb_layer_load(&b->l, &b->to, b->to_row, at, adding), false);
  }
  if (b->x) {
    int64_t n = b->x->mul, whole = n / TOGETHER * TOGETHER;
    if (whole) {
      ir_val u = ir_loop(k, clb_i64(k, 0), clb_i64(k, whole), clb_i64(k, TOGETHER));
      add_channels(b, u, TOGETHER, channel, mask, sum);
      ir_end(k);
    }
    if (n > whole) add_channels(b, clb_i64(k, whole), (int)(n - whole), channel, mask, sum);
  }
  for (int c = 0; c < components; c++) {
    ir_val at = ir_add(k, clb_i64(k, b->out->at + (int64_t)c * b->out->mul), channel);
    clb_layer_store(&b->l, &b->to, b->to_row, at, mask, ir_get(k, sum[c]));
  }
}

static const clb_term *same(const clb_irreps *irreps, const clb_term *t) {
  for (int i = 0; i < irreps->n; i++)
    if (irreps->term[i].l == t->l && irreps->term[i].parity == t->parity && irreps->term[i].mul &&
        t->mul)
      return &irreps->term[i];
  return NULL;
}

/* Offset of the block of a term of irreps `in` in the weights; past the last term: the number of
   weights. */
static int64_t weight_at(const clb_species_linear_problem *s, const clb_term *x) {
  int64_t at = 0;
  for (int i = 0; i < s->in.n && &s->in.term[i] != x; i++) {
    const clb_term *out = same(&s->out, &s->in.term[i]);
    if (out) at += (int64_t)s->in.term[i].mul * s->n_species * out->mul;
  }
  return at;
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const clb_species_linear_problem *sp = &p->species_linear;
  const clb_irreps *to = p->pass ? &sp->in : &sp->out;
  builder b = {.n_species = sp->n_species};
  clb_layer_begin(&b.l, k, p->pass ? "species_linear_backward" : "species_linear", s,
                  p->arithmetic);
  b.from = clb_layer_array(&b.l, p->storage, false);
  b.to = clb_layer_array(&b.l, p->storage, true);
  ir_val numbers = ir_buffer(k, IR_I32, false), offset = ir_scalar(k, IR_I64);
  b.weights = ir_buffer(k, b.l.t, false);
  b.add = ir_scalar(k, IR_I32);
  clb_layer_start(&b.l);
  b.species = ir_cast(k, IR_I64, ir_load(k, numbers, ir_add(k, offset, b.l.unit), IR_NONE));
  b.from_row = clb_layer_row(&b.l, &b.from, b.l.unit);
  b.to_row = clb_layer_row(&b.l, &b.to, b.l.unit);
  for (int i = 0; i < to->n; i++) {
    b.out = &to->term[i];
    b.x = same(p->pass ? &sp->out : &sp->in, b.out);
    b.weight_at =
        (p->pass ? weight_at(sp, NULL) : 0) + (b.x ? weight_at(sp, p->pass ? b.out : b.x) : 0);
    clb_layer_channels(&b.l, b.out->mul, channels, &b);
  }
  clb_layer_finish(&b.l);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%d -> %d columns of %d species", (int)p->species_linear.in.dim,
               (int)p->species_linear.out.dim, (int)p->species_linear.n_species);
}

const clb_kernel_kind clb_kind_species_linear = {.name = "species_linear",
                                                 .check = check,
                                                 .schedule = schedule,
                                                 .lower = lower,
                                                 .print = print,
                                                 .passes = 2};
