/* kernels/layers/norm.c - the norm of a row of irreps; lanes are channels, a sub-group does a row.

   y = x w s, s = (t + epsilon)^(-1/2), t = sum_T c_T sum_{m,u} x^2, c_T = 1 / (N (2l+1)^2) for term
   T of N. g_x = w g_y s - c_T s^3 x sum (g_y w x). Each row is read twice, the second time from
   cache. */
#include "kernels/layers/layer.h"

enum { MAX_COMPONENTS = 25 };

typedef struct {
  clb_layer l;
  bool backward;
  const clb_term *term;
  double c;                /* of the term */
  int64_t first_weight;    /* of the term */
  clb_row_array x, g, out; /* g: backward only */
  ir_val x_row, g_row, out_row, weights;
  ir_val squares, products; /* VARs: c_T x^2, g_y w x */
  ir_val scale, pull;       /* s; s^3 sum (g_y w x) */
} builder;

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  const clb_irreps *x = &p->rms_norm.irreps;
  for (int i = 0; i < x->n; i++)
    if (2 * x->term[i].l + 1 > MAX_COMPONENTS)
      return clb_fail(error, CLB_ERROR_ARGUMENT,
                      "the degree of term %d is %d; it must be at most 12", i, (int)x->term[i].l);
  if (!(p->rms_norm.epsilon >= 0))
    return clb_fail(error, CLB_ERROR_ARGUMENT, "epsilon is %g; it must be at least 0",
                    p->rms_norm.epsilon);
  return clb_layer_check(p, limits, error);
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, true, s);
}

static ir_val element(builder *b, int64_t component, ir_val channel) {
  return ir_add(b->l.k, clb_i64(b->l.k, b->term->at + component * b->term->mul), channel);
}

static ir_val weight(builder *b, ir_val channel, ir_val mask) {
  return ir_load(b->l.k, b->weights, ir_add(b->l.k, clb_i64(b->l.k, b->first_weight), channel),
                 mask);
}

static void add_up(void *user, ir_val channel, ir_val mask) {
  builder *b = user;
  ir_kernel *k = b->l.k;
  ir_val squares = ir_real(k, b->l.t, 0), products = squares;
  for (int64_t c = 0; c < 2 * b->term->l + 1; c++) {
    ir_val x = clb_layer_load(&b->l, &b->x, b->x_row, element(b, c, channel), mask);
    squares = ir_fma(k, x, x, squares);
    if (b->backward)
      products = ir_fma(k, clb_layer_load(&b->l, &b->g, b->g_row, element(b, c, channel), mask), x,
                        products);
  }
  ir_set(k, b->squares, ir_fma(k, ir_real(k, b->l.t, b->c), squares, ir_get(k, b->squares)));
  if (b->backward)
    ir_set(k, b->products, ir_fma(k, weight(b, channel, mask), products, ir_get(k, b->products)));
}

static void write(void *user, ir_val channel, ir_val mask) {
  builder *b = user;
  ir_kernel *k = b->l.k;
  ir_val factor = ir_mul(k, weight(b, channel, mask), b->scale), value[MAX_COMPONENTS];
  for (int c = 0; c < 2 * b->term->l + 1; c++) {
    ir_val at = element(b, c, channel), x = clb_layer_load(&b->l, &b->x, b->x_row, at, mask);
    value[c] = ir_mul(k, factor, x);
    if (!b->backward) continue;
    ir_val pull = ir_mul(k, ir_mul(k, ir_real(k, b->l.t, -b->c), b->pull), x);
    value[c] = ir_fma(k, factor, clb_layer_load(&b->l, &b->g, b->g_row, at, mask), pull);
  }
  for (int c = 0; c < 2 * b->term->l + 1; c++)
    clb_layer_store(&b->l, &b->out, b->out_row, element(b, c, channel), mask, value[c]);
}

static void each_term(builder *b, const clb_irreps *irreps, void (*each)(void *, ir_val, ir_val)) {
  b->first_weight = 0;
  for (int i = 0; i < irreps->n; i++) {
    double width = 2 * irreps->term[i].l + 1;
    b->term = &irreps->term[i];
    b->c = 1 / (irreps->n * width * width);
    clb_layer_channels(&b->l, b->term->mul, each, b);
    b->first_weight += b->term->mul;
  }
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  builder b = {.backward = p->pass};
  clb_layer_begin(&b.l, k, b.backward ? "rms_norm_backward" : "rms_norm", s, p->arithmetic);
  b.x = clb_layer_array(&b.l, p->storage, true); /* out may be x or g */
  if (b.backward) b.g = clb_layer_array(&b.l, p->storage, true);
  b.out = clb_layer_array(&b.l, p->storage, true);
  b.weights = ir_buffer(k, b.l.t, false);
  clb_layer_start(&b.l);
  ir_val zero = ir_real(k, b.l.t, 0), one = ir_real(k, b.l.t, 1);
  b.x_row = clb_layer_row(&b.l, &b.x, b.l.unit);
  b.out_row = clb_layer_row(&b.l, &b.out, b.l.unit);
  if (b.backward) b.g_row = clb_layer_row(&b.l, &b.g, b.l.unit);
  b.squares = ir_var(k, zero, false);
  b.products = ir_var(k, zero, false);
  each_term(&b, &p->rms_norm.irreps, add_up);
  ir_val t =
      ir_add(k, ir_reduce_add(k, ir_get(k, b.squares)), ir_real(k, b.l.t, p->rms_norm.epsilon));
  b.scale = ir_2(k, IR_DIV, one, ir_1(k, IR_SQRT, t));
  if (b.backward)
    b.pull = ir_mul(k, ir_mul(k, ir_mul(k, b.scale, b.scale), b.scale),
                    ir_reduce_add(k, ir_get(k, b.products)));
  each_term(&b, &p->rms_norm.irreps, write);
  clb_layer_finish(&b.l);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%d columns", (int)p->rms_norm.irreps.dim);
}

const clb_kernel_kind clb_kind_rms_norm = {.name = "rms_norm",
                                           .check = check,
                                           .schedule = schedule,
                                           .lower = lower,
                                           .print = print,
                                           .passes = 2};
