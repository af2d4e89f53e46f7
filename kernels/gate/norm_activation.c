/* kernels/gate/norm_activation.c - each channel of irreps scaled by an activation of its norm;
   lanes are channels, a sub-group does a row.

   With n = |x|, at least epsilon if y is normalised, u = x / n, p = g . u, q = a . u, the bias b
   and y = psi(n, b) x, where psi = f(n + b) or f(n + b) / n; g' = g - p u and a' = a - q u:
     y    psi x
     g_x  psi g' + (psi + n psi_n) p u
     g_b  n psi_b p
     d_g  psi a' + ((psi + n psi_n) q + n psi_b c) u
     d_x  psi_n (a'.g' u + q g' + p a') + (2 psi_n + n psi_nn) p q u
          + c (psi_b g' + (psi_b + n psi_nb) p u)
     d_b  psi_b a'.g' + (psi_b + n psi_nb) p q + c n psi_bb p
   Along u a normalised y has f' and f'', which are no quotients of small numbers: those of scalars,
   of which nothing is across, are as accurate near 0. Where epsilon takes the place of |x|,
   derivatives by n are 0, and a'.g' is a.g - p q; at x = 0 u is 0. */
#include <math.h>

#include "kernels/layers/layer.h"
#include "src/problem/irreps.h"

enum { MOST = 2 * CLB_MAX_L + 1 };

typedef struct {
  clb_row_array a;
  ir_val row; /* its start */
} array;

/* psi, psi_n and psi_b, and what is along u: psi + n psi_n, n psi_b, 2 psi_n + n psi_nn,
   psi_b + n psi_nb and n psi_bb. */
typedef struct {
  ir_val value, n, b, along, along_b, bend, bend_b, bb;
} scaling;

typedef struct {
  clb_row_kernel l;
  const clb_problem *p;
  const clb_norm_activation_problem *act;
  array x, w, g, a, c, y, d_x, d_w;
  const clb_term *term;
  int64_t bias;         /* of the term's first channel */
  ir_val channel, mask; /* this lane's; lanes that have one */
  ir_val norm, clamped; /* clamped: IR_NONE or whether it is epsilon */
  ir_val u[MOST];
} builder;

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  const clb_norm_activation_problem *a = &p->norm_activation;
  (void)limits;
  if (a->layout != CLB_MUL_IR && a->layout != CLB_IR_MUL)
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "layout is %d; a norm activation's is CLB_MUL_IR or CLB_IR_MUL", a->layout);
  if (a->normalize && (!(a->epsilon > 0) || !isfinite(a->epsilon)))
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "epsilon is %g; with normalize it must be finite and above 0, or 0 for 1e-8",
                    a->epsilon);
  if (!a->normalize && a->epsilon != 0)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "epsilon is %g; without normalize it must be 0",
                    a->epsilon);
  return CLB_OK;
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, false, s);
}

/* ---- elements of this lane's channel ---- */

static int components(const builder *b) { return 2 * b->term->l + 1; }
static ir_val real(const builder *b, double x) { return ir_real(b->l.k, b->l.t, x); }
static ir_val times(const builder *b, ir_val x, ir_val y) { return ir_mul(b->l.k, x, y); }

static ir_val place(const builder *b, int c) {
  const bool inner = b->act->layout == CLB_IR_MUL;
  const clb_term *t = b->term;
  ir_kernel *k = b->l.k;
  ir_val channel = inner ? b->channel : ir_mul(k, b->channel, clb_i64(k, components(b)));
  return ir_add(k, clb_i64(k, t->at + (inner ? (int64_t)c * t->mul : c)), channel);
}

static ir_val bias_place(const builder *b) {
  return ir_add(b->l.k, clb_i64(b->l.k, b->bias), b->channel);
}

static ir_val load(builder *b, const array *a, ir_val at) {
  return clb_layer_load(&b->l, &a->a, a->row, at, b->mask);
}

static void load_all(builder *b, const array *a, ir_val *v) {
  for (int c = 0; c < components(b); c++) v[c] = load(b, a, place(b, c));
}

static void store(builder *b, const array *a, ir_val at, ir_val value) {
  if (b->p->accumulate) value = ir_add(b->l.k, load(b, a, at), value);
  clb_layer_store(&b->l, &a->a, a->row, at, b->mask, value);
}

static ir_val dot(const builder *b, const ir_val *v, const ir_val *w) {
  ir_val sum = times(b, v[0], w[0]);
  for (int c = 1; c < components(b); c++) sum = ir_fma(b->l.k, v[c], w[c], sum);
  return sum;
}

/* ---- the norm ---- */

/* Of a scalar, exactly. */
static void find_sign(builder *b, ir_val x) {
  ir_kernel *k = b->l.k;
  ir_val zero = real(b, 0), below = ir_select(k, ir_2(k, IR_LT, x, zero), real(b, -1), zero);
  b->norm = ir_1(k, IR_ABS, x);
  b->u[0] = ir_select(k, ir_2(k, IR_LT, zero, x), real(b, 1), below);
}

/* Squares of very large and very small numbers are scaled by powers of two. */
static void find_direction(builder *b, const ir_val *x) {
  ir_kernel *k = b->l.k;
  const int most = b->l.t == IR_F64 ? 500 : 60;
  ir_val largest = real(b, 0), one = real(b, 1), zero = real(b, 0), small[MOST];
  for (int c = 0; c < components(b); c++) largest = ir_2(k, IR_MAX, largest, ir_1(k, IR_ABS, x[c]));
  ir_val high = ir_2(k, IR_LT, real(b, ldexp(1, most)), largest),
         low = ir_2(k, IR_LT, largest, real(b, ldexp(1, -most)));
  ir_val shrink = ir_select(k, high, real(b, ldexp(1, -most)),
                            ir_select(k, low, real(b, ldexp(1, most)), one)),
         grow = ir_select(k, high, real(b, ldexp(1, most)),
                          ir_select(k, low, real(b, ldexp(1, -most)), one));
  for (int c = 0; c < components(b); c++) small[c] = times(b, x[c], shrink);
  ir_val length = ir_1(k, IR_SQRT, dot(b, small, small)),
         inverse = ir_select(k, ir_2(k, IR_EQ, length, zero), zero, ir_2(k, IR_DIV, one, length));
  b->norm = times(b, length, grow);
  for (int c = 0; c < components(b); c++) b->u[c] = times(b, small[c], inverse);
}

static void find_norm(builder *b, const ir_val *x) {
  ir_kernel *k = b->l.k;
  if (b->term->l) find_direction(b, x);
  else find_sign(b, x[0]);
  b->clamped = IR_NONE;
  if (!b->act->normalize) return;
  b->clamped = ir_2(k, IR_LT, b->norm, real(b, b->act->epsilon));
  b->norm = ir_select(k, b->clamped, real(b, b->act->epsilon), b->norm);
  for (int c = 0; c < components(b); c++)
    b->u[c] = ir_select(k, b->clamped, times(b, x[c], real(b, 1 / b->act->epsilon)), b->u[c]);
}

static ir_val if_clamped(const builder *b, ir_val clamped, ir_val v) {
  return b->clamped == IR_NONE ? v : ir_select(b->l.k, b->clamped, clamped, v);
}

static scaling scale(builder *b) {
  ir_kernel *k = b->l.k;
  const bool twice = b->p->pass == CLB_DOUBLE_BACKWARD;
  ir_val f, slope, bend = IR_NONE, by = real(b, b->act->scale), at = b->norm, zero = real(b, 0);
  if (b->act->bias) at = ir_add(k, at, load(b, &b->w, bias_place(b)));
  clb_activate(k, b->l.t, b->act->activation, at, &f, &slope, twice ? &bend : NULL);
  f = times(b, f, by);
  scaling s = {.value = b->act->normalize ? ir_2(k, IR_DIV, f, b->norm) : f};
  if (!b->p->pass) return s;
  slope = times(b, slope, by);
  if (twice) bend = times(b, bend, by);
  if (b->act->normalize) {
    s.along = if_clamped(b, s.value, slope);
    s.along_b = slope;
    s.n = if_clamped(b, zero, ir_2(k, IR_DIV, ir_sub(k, slope, s.value), b->norm));
    s.b = ir_2(k, IR_DIV, slope, b->norm);
    if (twice) {
      s.bend = if_clamped(b, zero, bend);
      s.bend_b = if_clamped(b, s.b, bend);
      s.bb = bend;
    }
    return s;
  }
  s.n = s.b = slope;
  s.along_b = times(b, b->norm, slope);
  s.along = ir_add(k, f, s.along_b);
  if (twice) {
    s.bb = times(b, b->norm, bend);
    s.bend_b = ir_add(k, slope, s.bb);
    s.bend = ir_add(k, slope, s.bend_b);
  }
  return s;
}

/* ---- passes ---- */

static void forward(builder *b, const scaling *s, const ir_val *x) {
  for (int c = 0; c < components(b); c++) store(b, &b->y, place(b, c), times(b, s->value, x[c]));
}

/* Takes what is along u away, and returns how much it is. */
static ir_val split(const builder *b, ir_val *v) {
  ir_kernel *k = b->l.k;
  ir_val along = dot(b, v, b->u), less = ir_sub(k, real(b, 0), along);
  for (int c = 0; c < components(b); c++) v[c] = ir_fma(k, less, b->u[c], v[c]);
  return along;
}

static void backward(builder *b, const scaling *s, ir_val *g) {
  ir_kernel *k = b->l.k;
  ir_val p = split(b, g), along = times(b, s->along, p);
  for (int c = 0; c < components(b); c++)
    store(b, &b->d_x, place(b, c), ir_fma(k, s->value, g[c], times(b, along, b->u[c])));
  if (b->act->bias) store(b, &b->d_w, bias_place(b), times(b, s->along_b, p));
}

static void twice(builder *b, const scaling *s, ir_val *g) {
  ir_kernel *k = b->l.k;
  const bool bias = b->act->bias;
  ir_val a[MOST];
  load_all(b, &b->a, a);
  ir_val ag = dot(b, a, g), p = split(b, g), q = split(b, a), pq = times(b, p, q),
         across = if_clamped(b, ir_sub(k, ag, pq), dot(b, a, g)),
         c = bias ? load(b, &b->c, bias_place(b)) : IR_NONE, pull = times(b, s->along, q),
         of_g = times(b, s->n, q), of_a = times(b, s->n, p),
         along = ir_fma(k, s->n, across, times(b, s->bend, pq));
  if (bias) {
    pull = ir_fma(k, s->along_b, c, pull);
    of_g = ir_fma(k, c, s->b, of_g);
    along = ir_fma(k, times(b, c, s->bend_b), p, along);
    ir_val d_b = ir_fma(k, s->b, across, times(b, s->bend_b, pq));
    store(b, &b->d_w, bias_place(b), ir_fma(k, times(b, c, s->bb), p, d_b));
  }
  for (int m = 0; m < components(b); m++) {
    store(b, &b->y, place(b, m), ir_fma(k, s->value, a[m], times(b, pull, b->u[m])));
    store(b, &b->d_x, place(b, m),
          ir_fma(k, along, b->u[m], ir_fma(k, of_g, g[m], times(b, of_a, a[m]))));
  }
}

static void channel(void *user, ir_val number, ir_val mask) {
  builder *b = user;
  ir_val x[MOST], g[MOST];
  b->channel = number;
  b->mask = mask;
  load_all(b, &b->x, x);
  if (b->p->pass) load_all(b, &b->g, g);
  find_norm(b, x);
  const scaling s = scale(b);
  if (b->p->pass == CLB_FORWARD) forward(b, &s, x);
  if (b->p->pass == CLB_BACKWARD) backward(b, &s, g);
  if (b->p->pass == CLB_DOUBLE_BACKWARD) twice(b, &s, g);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[] = {"norm_activation", "norm_activation_backward",
                                      "norm_activation_double_backward"};
  builder b = {.p = p, .act = &p->norm_activation};
  /* in the order of the calls; the number of inputs */
  array *const lists[][8] = {{&b.x, &b.w, &b.y},
                             {&b.x, &b.w, &b.g, &b.d_x, &b.d_w},
                             {&b.x, &b.w, &b.g, &b.a, &b.c, &b.d_x, &b.d_w, &b.y}};
  static const int arrays[] = {3, 5, 8}, inputs[] = {2, 3, 5};
  array *const *list = lists[p->pass];
  clb_layer_begin(&b.l, k, names[p->pass], s, p->arithmetic);
  for (int i = 0; i < arrays[p->pass]; i++)
    list[i]->a = clb_layer_array(&b.l, p->storage, i >= inputs[p->pass]);
  clb_layer_start(&b.l);
  for (int i = 0; i < arrays[p->pass]; i++)
    list[i]->row = clb_layer_row(&b.l, &list[i]->a, b.l.unit);
  for (int i = 0; i < b.act->irreps.n; i++) {
    b.term = &b.act->irreps.term[i];
    clb_layer_channels(&b.l, b.term->mul, channel, &b);
    b.bias += b.term->mul;
  }
  clb_layer_finish(&b.l);
}

static void print(const clb_problem *p, clb_text *out) {
  const clb_norm_activation_problem *a = &p->norm_activation;
  clb_irreps_print(&a->irreps, out);
  clb_text_add(out, ", %s%s%s", clb_activation_name((clb_activation)a->activation),
               a->normalize ? ", normalize" : "", a->bias ? ", bias" : "");
}

const clb_kernel_kind clb_kind_norm_activation = {.name = "norm_activation",
                                                  .check = check,
                                                  .schedule = schedule,
                                                  .lower = lower,
                                                  .print = print,
                                                  .passes = 3};
