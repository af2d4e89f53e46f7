/* tests/ops/convolution/test_convolution_lengths.c - graph convolutions that compute y, and the
   lengths at which splines are read, from edge vectors: against those with given lengths. */
#include "tests/ops/convolution/convolution_vectored.h"

static const manner plain = {DENSE, MAX}, loose = {APART, MAX};

/* ---- with splines: assembled here from the results of a convolution by lengths ---- */

enum { KNOTS = 5 };

static double square(const double *r) { return r[0] * r[0] + r[1] * r[1] + r[2] * r[2]; }

typedef struct {
  vectored v;
  int weights;
  double *values; /* [KNOTS][weights] */
} splined;

static splined splined_create(place *at, clb_convolution_desc desc) {
  uint64_t seed = 5;
  desc.knots = KNOTS;
  desc.last_knot = 2;
  splined s = {.v = vectored_create(at, &desc)};
  s.weights = s.v.run->product.width[LIKE_W];
  s.v.run->product.width[LIKE_W] = 0;
  s.v.given->product.width[LIKE_W] = s.weights ? 1 : 0;
  s.v.given->desc.product.accumulate = 0; /* its ops are created later */
  s.v.given->desc.product.gradients = s.v.given->product.desc.gradients = 0;
  if (desc.product.incoming)
    s.v.given->desc.product.incoming = s.v.given->product.desc.incoming =
        desc.product.incoming & CLB_OPERAND_Y ? desc.product.incoming | CLB_OPERAND_W
                                              : desc.product.incoming;
  size_t n = (size_t)(KNOTS * s.weights);
  s.values = numbers(n);
  random_fill(desc.product.storage, s.values, n, &seed);
  return s;
}

static void run_splined(const splined *s, convolution *c, int pass, const edge_list *e,
                        clb_graph *g, arrays *a) {
  OK(c->product.ctx, clb_convolution_set_table(convolution_op(c, pass), s->values));
  run_convolution(c, pass, e, g, c == s->v.run ? loose : plain, a);
}

/* The gradient by vectors: of harmonics, and of lengths. */
static void put_together(const splined *s, int n, const double *x, const arrays *by, double *want) {
  double *unused = numbers((size_t)(3 * n));
  reference_backward(&s->v.sh, n, x, by->out[LIKE_Y], want, unused);
  for (int i = 0; i < 3 * n && s->weights; i++) {
    double r = sqrt(square(x + i / 3 * 3));
    want[i] += r > 0 ? by->out[LIKE_W][i / 3] * x[i] / r : 0;
  }
  free(unused);
}

/* before: the contents that results were added to, or NULL. */
static void expect_near(const splined *s, const char *name, size_t n, const double *got,
                        const double *want, const double *before) {
  double largest = 1;
  for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(want[i]));
  for (size_t i = 0; i < n; i++) {
    double result = got[i] - (before ? before[i] : 0);
    if (!(fabs(result - want[i]) <= 20 * tolerance(&s->v.run->product) * largest))
      fail_msg("%s: element %zu is %.17g, not %.17g", name, i, result, want[i]);
  }
}

/* Turns h into what comes in along harmonics and lengths; bend: what gradients by those, in
   by->out, become for vectors then. */
static void go_along(const splined *s, int n, const double *x, const double *h, arrays *by,
                     double *bend) {
  double *unused = numbers((size_t)(3 * n)), *more = numbers((size_t)(n * s->v.columns));
  reference_double_backward(&s->v.sh, n, x, by->out[LIKE_Y], h, bend, by->in[5], unused, more);
  for (int i = 0; i < n && s->weights; i++) {
    const double *u = x + 3 * i, r = sqrt(square(u)),
                 q = r > 0 ? (u[0] * h[3 * i] + u[1] * h[3 * i + 1] + u[2] * h[3 * i + 2]) / r : 0;
    by->in[6][i] = q;
    for (int k = 3 * i; k < 3 * i + 3; k++)
      bend[k] += r > 0 ? by->out[LIKE_W][i] * (h[k] - x[k] * q / r) / r : 0;
  }
  free(unused);
  free(more);
}

/* After the backward pass of `given`, whose results are in by->out. */
static void twice_agrees(const splined *s, const edge_list *e, clb_graph *g, arrays *a, arrays *by,
                         const arrays *before) {
  const vectored *v = &s->v;
  const int n = e->rows[LIKE_Y], like[] = {LIKE_X, LIKE_Y, LIKE_W, LIKE_Z};
  double *want = numbers((size_t)(3 * n)), *bend = numbers((size_t)(3 * n));
  memcpy(by->in[4], a->in[4], count_of(v->run, e, LIKE_X) * sizeof(double));
  if (reads(&v->run->product, 5)) go_along(s, n, a->in[LIKE_Y], a->in[5], by, bend);
  else
    memset(by->in[6], 0,
           count_of(v->given, e, LIKE_W) *
               sizeof(double)); /* no gradient comes in along lengths, whatever `incoming` says of
                                   weights */
  for (int o = 0; o < CONVOLUTION_OUT; o++)
    memcpy(a->out[o], before->out[o], count_of(v->run, e, like[o]) * sizeof(double));
  run_splined(s, v->run, CLB_DOUBLE_BACKWARD, e, g, a);
  run_splined(s, v->given, CLB_DOUBLE_BACKWARD, e, g, by);
  put_together(s, n, a->in[LIKE_Y], by, want);
  for (int i = 0; i < 3 * n; i++) want[i] += bend[i];
  const double *const wants[] = {by->out[0], want, NULL, by->out[3]};
  static const char *const names[] = {"d_x", "d_v", "", "d_g"};
  for (int o = 0; o < CONVOLUTION_OUT; o++)
    if (o != LIKE_W && gives(&v->run->product, CLB_DOUBLE_BACKWARD, o))
      expect_near(s, names[o], count_of(v->run, e, like[o]), a->out[o], wants[o],
                  v->run->desc.product.accumulate ? before->out[o] : NULL);
  free(want);
  free(bend);
}

static void splines_agree(place *at, const clb_convolution_desc *desc, const edge_list *e) {
  splined s = splined_create(at, *desc);
  vectored *v = &s.v;
  int n = e->rows[LIKE_Y], adds = desc->product.accumulate;
  arrays a = vectored_arrays(v, e, 3), by = convolution_arrays(v->given, e, 3),
         before = vectored_arrays(v, e, 3);
  double *unused = numbers((size_t)(n * v->columns)), *want = numbers((size_t)(3 * n));
  v->sh.degrees = v->degrees;
  reference_forward(&v->sh, n, a.in[LIKE_Y], by.in[LIKE_Y], unused);
  memcpy(by.in[LIKE_X], a.in[LIKE_X], count_of(v->run, e, LIKE_X) * sizeof(double));
  memcpy(by.in[LIKE_Z], a.in[LIKE_Z], count_of(v->run, e, LIKE_Z) * sizeof(double));
  for (int i = 0; i < n && s.weights; i++) by.in[LIKE_W][i] = sqrt(square(a.in[LIKE_Y] + 3 * i));
  run_splined(&s, v->run, CLB_FORWARD, e, graph_at(at, e), &a);
  run_splined(&s, v->given, CLB_FORWARD, e, graph_at(at, e), &by);
  expect_near(&s, "z", count_of(v->run, e, LIKE_Z), a.out[0], by.out[0],
              adds ? before.out[0] : NULL);
  memcpy(a.out[0], before.out[0], count_of(v->run, e, LIKE_X) * sizeof(double));
  run_splined(&s, v->run, CLB_BACKWARD, e, graph_at(at, e), &a);
  run_splined(&s, v->given, CLB_BACKWARD, e, graph_at(at, e), &by);
  if (gives(&v->run->product, CLB_BACKWARD, LIKE_X))
    expect_near(&s, "g_x", count_of(v->run, e, LIKE_X), a.out[0], by.out[0],
                adds ? before.out[0] : NULL);
  put_together(&s, n, a.in[LIKE_Y], &by, want);
  if (gives(&v->run->product, CLB_BACKWARD, LIKE_Y))
    expect_near(&s, "g_v", (size_t)(3 * n), a.out[LIKE_Y], want, adds ? before.out[LIKE_Y] : NULL);
  twice_agrees(&s, e, graph_at(at, e), &a, &by, &before);
  free(unused);
  free(want);
  arrays_destroy(&a);
  arrays_destroy(&by);
  arrays_destroy(&before);
  free(s.values);
  vectored_destroy(v);
}

static void splines(void **state) {
  static const unsigned gradients[] = {0,
                                       CLB_OPERAND_Y,
                                       CLB_OPERAND_X | CLB_OPERAND_W,
                                       CLB_OPERAND_Y | CLB_OPERAND_W | CLB_OPERAND_Z,
                                       CLB_OPERAND_W,
                                       CLB_OPERAND_X | CLB_OPERAND_Y},
                        incoming[] = {0, CLB_OPERAND_Y, CLB_OPERAND_X | CLB_OPERAND_W,
                                      CLB_OPERAND_W, CLB_OPERAND_X | CLB_OPERAND_Y};
  place *at = *state;
  edge_list some = edges_of(SQUARE), hub = hub_edges(20, 30, 700, 500, 4);
  for (int i = 0; i < many(&at->device, 1, 4, 30); i++) {
    clb_convolution_desc desc = describe(at, i == 2 ? BARE : i % 6 == 1 ? MIXED : SMALL);
    desc.product.gradients = gradients[i % 6];
    desc.product.incoming = incoming[i % 5];
    desc.product.accumulate = i / 2 % 2;
    desc.product.storage = desc.product.arithmetic = i == 3 ? CLB_F32 : CLB_F64;
    if (i == 5) desc.product.storage = CLB_F32;
    splines_agree(at, &desc, i % 3 ? &some : &hub);
  }
  edges_destroy(&some);
  edges_destroy(&hub);
}

/* Where no path has weights, lengths are unused, and their gradients are not written anywhere, not
   even into the graph. */
static void no_weights(void **state) {
  place *at = *state;
  edge_list e = edges_of(SQUARE);
  splined s = splined_create(at, describe(at, BARE));
  convolution *both[] = {s.v.run, s.v.given};
  for (int i = 0; i < 2; i++) {
    clb_graph *g = graph_at(at, &e);
    arrays a = convolution_arrays(both[i], &e, 3), again = convolution_arrays(both[i], &e, 3);
    run_splined(&s, both[i], CLB_BACKWARD, &e, g, &a);
    run_splined(&s, both[i], CLB_BACKWARD, &e, g, &again);
    expect_same_bits(both[i], CLB_BACKWARD, &e, &a, &again);
    arrays_destroy(&a);
    arrays_destroy(&again);
  }
  free(s.values);
  vectored_destroy(&s.v);
  edges_destroy(&e);
}

int main(void) {
  static const place_test tests[] = {{"splines", splines, SLOW}, {"no_weights", no_weights, BRISK}};
  return run_at_places("convolution_lengths", tests, sizeof tests / sizeof *tests);
}
