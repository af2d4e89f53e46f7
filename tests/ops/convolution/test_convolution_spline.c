/* tests/ops/convolution/test_convolution_spline.c - graph convolutions whose weights are splines of
   the edges' lengths: against convolutions with these weights given,
   and what tables are refused. */
#include "tests/ops/convolution/convolution_problems.h"
#include "tools/reference/reference_spline.h"

static const manner plain = {DENSE, MAX}, loose = {APART, MAX};

/* ---- tables ---- */

/* Ends that are exact in all types, and ends that are not; second derivatives that jump. */
static const struct {
  int knots;
  double first, last, break_at;
} grids[] = {{6, 0.5, 3, 0},       {7, 0.3, 4.1, 0}, {4, -1, 0.5, 0},
             {12, 0.3, 4.1, 1.93}, {12, -1, 2, 0},   {200, 0.3, 4.1, 0}};
enum { EXACT, INEXACT, FEW, BROKEN, AROUND_ZERO, GRIDS, FINE = GRIDS };

typedef struct {
  convolution *run, *given; /* of the library: rows of w are lengths; of the plain sums: weights */
  int columns;              /* weights */
  reference_grid grid;
  double *values, *table; /* [knots][weights]; of reference_spline_make */
} spline;

static size_t numbers_of(const spline *s) { return (size_t)(s->grid.knots * s->columns); }

static void new_table(spline *s, uint64_t seed) {
  random_fill(s->run->desc.product.storage, s->values, numbers_of(s), &seed);
  reference_spline_make(&s->grid, s->values, s->table);
}

static spline spline_create(place *at, const clb_convolution_desc *desc, int grid) {
  clb_convolution_desc d = *desc;
  spline s = {.given = convolution_create(context_at(at), &d)};
  s.columns = s.given->product.width[LIKE_W];
  s.grid =
      (reference_grid){grids[grid].knots, grids[grid].first, grids[grid].last, s.columns, 0, 0};
  if (grid == BROKEN) reference_grid_break(&s.grid, d.break_at = grids[grid].break_at);
  d.knots = s.grid.knots;
  d.first_knot = s.grid.first;
  d.last_knot = s.grid.last;
  s.run = convolution_create(context_at(at), &d);
  s.run->product.width[LIKE_W] = s.columns ? 1 : 0;
  s.values = numbers(numbers_of(&s));
  s.table = numbers(2 * (numbers_of(&s) + (size_t)s.columns));
  new_table(&s, 17);
  return s;
}

static void spline_destroy(spline *s) {
  convolution_destroy(s->run);
  convolution_destroy(s->given);
  free(s->values);
  free(s->table);
}

/* W(r), W' and W'' of weight k, and the sizes of what is rounded: of coefficients and the terms
   that they make, and of the next derivative for the position in the grid. */
typedef struct {
  double w, w_size, slope, slope_size, bend, bend_size;
} weight_at;

static weight_at look_up(const spline *s, int k, double r) {
  const reference_position p = reference_position_at(&s->grid, r);
  const reference_weight a = reference_spline_at(&s->grid, s->table, &p, k);
  const double size = a.size * (1 + p.rounding);
  return (weight_at){.w = a.w,
                     .w_size = size,
                     .slope = a.slope,
                     .slope_size = p.rate * size,
                     .bend = a.bend,
                     .bend_size = (p.rate * p.rate + fabs(p.turn)) * size};
}

/* Between knots, on them, below the first, beyond the last, far away. */
static void lengths(const spline *s, int n, double *r, uint64_t seed) {
  const double first = s->grid.first, last = s->grid.last, h = (last - first) / (s->grid.knots - 1);
  const clb_dtype type = s->run->desc.product.storage;
  for (int i = 0; i < n; i++) {
    const double luck = (test_random(&seed) + 1) / 2;
    r[i] = first + luck * (last - first);
    if (i % 7 == 3 && s->grid.knots == grids[EXACT].knots)
      r[i] = reference_knot(&s->grid, i / 7 % s->grid.knots);
    if (i % 7 == 4) r[i] = first - h * (luck + 0.1);
    if (i % 7 == 5) r[i] = i % 3 ? last + 2 * h * (luck + 0.1) : 49152;
    if (type == CLB_F32) r[i] = (float)r[i];
    if (type >= CLB_F16) r[i] = floor(r[i] * 16) / 16;
  }
}

/* ---- comparing ---- */

/* Results of a pass, and the magnitudes of what they are rounded from. */
typedef struct {
  double *want[MAX_OUT], *scale[MAX_OUT];
} answer;

static void answer_destroy(answer *r) {
  for (int o = 0; o < MAX_OUT; o++) free(r->want[o]), free(r->scale[o]);
}

static answer sums_of(const spline *s, int pass, const edge_list *e, const arrays *exact,
                      const arrays *sizes) {
  answer r = {{NULL}, {NULL}}, other = {{NULL}, {NULL}};
  for (int o = 0; o < n_outputs[pass]; o++) {
    const size_t all = count_of(s->given, e, output_like(pass, o)) + (size_t)e->rows[LIKE_Y];
    r.want[o] = numbers(all), r.scale[o] = numbers(all), other.want[o] = numbers(all),
    other.scale[o] = numbers(all);
  }
  plain_sums(s->given, pass, e, exact, r.want, other.scale);
  plain_sums(s->given, pass, e, sizes, other.want, r.scale);
  answer_destroy(&other);
  return r;
}

/* The gradient by r of what is that by w, in its place; q: what came in along r, g: the backward
   pass's gradient of w, or NULL. */
static void by_lengths(const spline *s, int n, const double *r, const double *q, const answer *g,
                       answer *to) {
  double *want = to->want[LIKE_W], *scale = to->scale[LIKE_W];
  for (int i = 0; i < n; i++) {
    double sum = 0, size = 0;
    for (int k = 0; k < s->columns; k++) {
      const weight_at a = look_up(s, k, r[i]);
      const int j = i * s->columns + k;
      sum += want[j] * a.slope + (g ? q[i] * g->want[LIKE_W][j] * a.bend : 0);
      size += scale[j] * a.slope_size + (g ? fabs(q[i]) * g->scale[LIKE_W][j] * a.bend_size : 0);
    }
    want[i] = sum;
    scale[i] = size;
  }
}

static void compare_results(const spline *s, int pass, const edge_list *e, const arrays *a,
                            const arrays *before, const answer *r) {
  const clb_tensor_product_desc *d = &s->run->desc.product;
  const double relative = tolerance(&s->run->product);
  for (int o = 0; o < n_outputs[pass]; o++)
    for (size_t j = 0;
         j < count_of(s->run, e, output_like(pass, o)) && gives(&s->run->product, pass, o); j++) {
      double old = before ? before->out[o][j] : 0, got = a->out[o][j] - old,
             max = relative * (r->scale[o][j] + fabs(old)) + (d->storage == CLB_F16) * 0x1p-24;
      if (!(fabs(got - r->want[o][j]) <= max))
        fail_msg("%s (x) %s, %d knots, pass %d, gradients %u, incoming %u, %d edges, result %d, "
                 "element %zu: %.17g, not %.17g",
                 d->irreps_x, d->irreps_y, s->grid.knots, pass, d->gradients, d->incoming,
                 e->rows[LIKE_Y], o, j, got, r->want[o][j]);
    }
}

enum { ALONG_R = 6 };

static answer expected(const spline *s, int pass, const edge_list *e, const arrays *a) {
  static const int of[] = {LIKE_W, ALONG_R};
  const int n = e->rows[LIKE_Y];
  const arrays in = with_absent(s->run, e, a);
  const double *r = in.in[LIKE_W], *q = in.in[ALONG_R];
  arrays exact = in, sizes = in; /* weights, and the magnitudes of what they are rounded from */
  for (int i = 0; i < 2; i++)
    exact.in[of[i]] = numbers((size_t)(n * s->columns)),
    sizes.in[of[i]] = numbers((size_t)(n * s->columns));
  for (int i = 0; i < n * s->columns; i++) {
    const weight_at w = look_up(s, i % s->columns, r[i / s->columns]);
    exact.in[LIKE_W][i] = w.w, sizes.in[LIKE_W][i] = w.w_size;
    exact.in[ALONG_R][i] = q[i / s->columns] * w.slope,
    sizes.in[ALONG_R][i] = fabs(q[i / s->columns]) * w.slope_size;
  }
  answer want = sums_of(s, pass, e, &exact, &sizes), g = {{NULL}, {NULL}};
  if (pass == CLB_DOUBLE_BACKWARD) g = sums_of(s, CLB_BACKWARD, e, &exact, &sizes);
  if (pass != CLB_FORWARD) by_lengths(s, n, r, q, pass == CLB_BACKWARD ? NULL : &g, &want);
  answer_destroy(&g);
  for (int i = 0; i < 2; i++) free(exact.in[of[i]]), free(sizes.in[of[i]]);
  for (int i = 0; i < CONVOLUTION_IN; i++) free(in.in[i]);
  return want;
}

static void compare_spline(const spline *s, int pass, const edge_list *e, const arrays *a,
                           const arrays *before) {
  answer want = expected(s, pass, e, a);
  compare_results(s, pass, e, a, before, &want);
  answer_destroy(&want);
}

static void run_spline(const spline *s, int pass, const edge_list *e, clb_graph *g, manner m,
                       arrays *a) {
  OK(s->run->product.ctx, clb_convolution_set_table(convolution_op(s->run, pass), s->values));
  run_convolution(s->run, pass, e, g, m, a);
}

static arrays spline_arrays(const spline *s, const edge_list *e, uint64_t seed) {
  arrays a = convolution_arrays(s->run, e, seed);
  if (s->columns) lengths(s, e->rows[LIKE_Y], a.in[LIKE_W], seed + 1);
  return a;
}

static void spline_agrees(const spline *s, int pass, const edge_list *e, clb_graph *g, manner m,
                          uint64_t seed) {
  arrays a = spline_arrays(s, e, seed), before = spline_arrays(s, e, seed);
  run_spline(s, pass, e, g, m, &a);
  compare_spline(s, pass, e, &a, s->run->desc.product.accumulate ? &before : NULL);
  arrays_destroy(&a);
  arrays_destroy(&before);
}

static void passes_agree(place *at, const clb_convolution_desc *desc, int grid, const edge_list *e,
                         manner m) {
  spline s = spline_create(at, desc, grid);
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
    spline_agrees(&s, pass, e, graph_at(at, e), m, 7);
  spline_destroy(&s);
}

/* ---- tests ---- */

static void products(void **state) {
  static const int which[] = {COUNTS, KNOTTED, EVEN,  EVEN_MUL_IR,  SMALL,       PARITIES,
                              BARE,   MIXED,   SHORT, SHORT_MUL_IR, NEQUIX_MAIN, MACE_MEDIUM};
  place *at = *state;
  edge_list e = random_edges(11, 13, SANITIZED ? 14 : 40, 1);
  for (int i = 0; i < many(&at->device, 0, SANITIZED ? 7 : 4, sizeof which / sizeof *which); i++) {
    clb_convolution_desc desc = describe(at, which[i]);
    spline s = spline_create(at, &desc, i % GRIDS);
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      for (int spacing = DENSE; spacing <= APART; spacing++)
        spline_agrees(&s, pass, &e, graph_at(at, &e), (manner){spacing, MAX}, 3);
    spline_destroy(&s);
  }
  edges_destroy(&e);
}

static void all_graphs(void **state) {
  place *at = *state;
  clb_convolution_desc desc = describe(at, SMALL);
  spline s = spline_create(at, &desc, EXACT);
  for (int i = 0; i < GRAPHS; i++) {
    edge_list e = edges_of(i);
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      spline_agrees(&s, pass, &e, graph_at(at, &e), i % 2 ? plain : loose, (uint64_t)i);
    edges_destroy(&e);
  }
  spline_destroy(&s);
}

static void types(void **state) {
  static const struct {
    clb_dtype storage, arithmetic;
    int product, grid;
  } cases[] = {{CLB_F16, CLB_F32, SMALL, EXACT},         {CLB_F32, CLB_F32, EVEN, INEXACT},
               {CLB_F32, CLB_F32, COUNTS, EXACT},        {CLB_F32, CLB_F64, MIXED, FEW},
               {CLB_BF16, CLB_F32, KNOTTED, EXACT},      {CLB_F32, CLB_F32, KNOTTED, EXACT},
               {CLB_F32, CLB_F32, EVEN_MUL_IR, FEW},     {CLB_F32, CLB_F32, SHORT, EXACT},
               {CLB_F32, CLB_F32, NEQUIX_MAIN, INEXACT}, {CLB_F32, CLB_F64, KNOTTED, BROKEN},
               {CLB_F32, CLB_F32, COUNTS, BROKEN}};
  place *at = *state;
  edge_list some = random_edges(11, 9, SANITIZED ? 14 : 40, 1),
            hub = hub_edges(20, 30, 700, 500, 4);
  for (int i = 0; i < many(&at->device, 1, SANITIZED ? 7 : 4, sizeof cases / sizeof *cases); i++) {
    clb_convolution_desc desc = describe(at, cases[i].product);
    desc.product.storage = cases[i].storage;
    desc.product.arithmetic = cases[i].arithmetic;
    desc.product.accumulate = i % 2;
    passes_agree(at, &desc, cases[i].grid, cases[i].product == SMALL ? &hub : &some,
                 i % 2 ? loose : plain);
  }
  edges_destroy(&some);
  edges_destroy(&hub);
}

/* Slopes are differences of coefficients times the number of knots: those of weights that are
   straight lines keep the precision of storage, however many knots there are. */
static void slopes_of_halves(void **state) {
  place *at = *state;
  edge_list e = edges_of(SQUARE);
  clb_convolution_desc desc = describe(at, SMALL);
  desc.product.storage = CLB_F16;
  desc.product.arithmetic = CLB_F32;
  spline s = spline_create(at, &desc, FINE);
  for (int i = 0; i < s.grid.knots; i++)
    for (int k = 0; k < s.columns; k++)
      s.values[i * s.columns + k] = 1 + (k + 1) * reference_knot(&s.grid, i) / 8;
  reference_spline_make(&s.grid, s.values, s.table);
  arrays a = spline_arrays(&s, &e, 3);
  run_spline(&s, CLB_BACKWARD, &e, graph_at(at, &e), plain, &a);
  answer want = expected(&s, CLB_BACKWARD, &e, &a);
  double max = 0;
  for (int i = 0; i < e.rows[LIKE_Y]; i++) max = fmax(max, fabs(want.want[LIKE_W][i]));
  for (int i = 0; i < e.rows[LIKE_Y]; i++)
    if (!(fabs(a.out[LIKE_W][i] - want.want[LIKE_W][i]) <= 2e-3 * max))
      fail_msg("edge %d: %g, not %g", i, a.out[LIKE_W][i], want.want[LIKE_W][i]);
  answer_destroy(&want);
  arrays_destroy(&a);
  spline_destroy(&s);
  edges_destroy(&e);
}

/* The same bits from equal calls and, except for sums over parts of the edges, from calls with less
   workspace. */
static void gives_same_bits(const spline *s, const edge_list *e, clb_graph *g) {
  arrays a = spline_arrays(s, e, 5), again = spline_arrays(s, e, 5), less = spline_arrays(s, e, 5);
  run_spline(s, CLB_DOUBLE_BACKWARD, e, g, plain, &a);
  run_spline(s, CLB_DOUBLE_BACKWARD, e, g, plain, &again);
  run_spline(s, CLB_DOUBLE_BACKWARD, e, g, (manner){DENSE, MIN}, &less);
  expect_same_bits(s->run, CLB_DOUBLE_BACKWARD, e, &a, &again);
  for (int o = LIKE_Y; o <= LIKE_Z; o++)
    assert_memory_equal(a.out[o], less.out[o], sizeof(double) * count_of(s->run, e, o));
  arrays_destroy(&a);
  arrays_destroy(&again);
  arrays_destroy(&less);
}

/* Edges in parts, one length for all edges, another table. */
static void calls(void **state) {
  place *at = *state;
  clb_convolution_desc desc = describe(at, TINY);
  spline s = spline_create(at, &desc, EXACT);
  edge_list e = hub_edges(200, 300, 9500, 6000, 6);
  for (int r = MIN; r <= MAX; r += few_cases() ? 2 : 1) {
    new_table(&s, 30 + (uint64_t)r);
    for (int pass = CLB_BACKWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      spline_agrees(&s, pass, &e, graph_at(at, &e), (manner){DENSE, (capacity)r}, 9);
  }
  gives_same_bits(&s, &e, graph_at(at, &e));
  arrays a = spline_arrays(&s, &e, 2);
  for (int i = 0; i < e.rows[LIKE_Y]; i++) a.in[LIKE_W][i] = 1.125;
  clb_rows in[4], out = rows_of(s.run, &e, LIKE_Z, 0, NULL, true, &plain);
  for (int i = 0; i < 3; i++) in[i] = rows_of(s.run, &e, i, i, a.in[i], false, &plain);
  clb_buffer_destroy(&in[LIKE_W].buffer);
  in[LIKE_W] =
      (clb_rows){.buffer = buffer_of(&s.run->product, a.in[LIKE_W], 1, 1), .stride = CLB_SAME_ROW};
  clb_op *op = convolution_op(s.run, CLB_FORWARD);
  clb_graph *g = graph_at(at, &e);
  clb_buffer *workspace = workspace_of(s.run, CLB_FORWARD, g, MAX);
  OK(s.run->product.ctx, clb_convolution_set_table(op, s.values));
  OK(s.run->product.ctx, clb_convolution_forward(op, g, in[0], in[1], in[2], out, workspace));
  take_rows(s.run, &e, LIKE_Z, CLB_FORWARD, &out, &plain, a.out[0]);
  compare_spline(&s, CLB_FORWARD, &e, &a, NULL);
  for (int i = 0; i < 3; i++) clb_buffer_destroy(&in[i].buffer);
  clb_buffer_destroy(&out.buffer);
  clb_buffer_destroy(&workspace);
  arrays_destroy(&a);
  edges_destroy(&e);
  spline_destroy(&s);
}

/* ---- what is refused ---- */

#define REFUSED(call, words)                                                                       \
  do {                                                                                             \
    assert_int_equal(call, CLB_ERROR_ARGUMENT);                                                    \
    if (!strstr(clb_error(ctx), words)) fail_msg("instead of \"%s\": %s", words, clb_error(ctx));  \
  } while (0)

static void tables(void **state) {
  place *at = *state;
  clb_context *ctx = context_at(at);
  clb_convolution_desc desc = describe(at, SMALL);
  spline s = spline_create(at, &desc, EXACT);
  edge_list e = edges_of(SQUARE);
  static const clb_rows none[CONVOLUTION_IN];
  clb_op *op = convolution_op(s.run, CLB_FORWARD), *plain_op = convolution_op(s.given, CLB_FORWARD);
  double r[8] = {0};
  REFUSED(convolution_call(op, CLB_FORWARD, graph_at(at, &e), none, none, NULL),
          "call clb_convolution_set_table first");
  assert_int_equal(clb_convolution_set_table(NULL, s.values), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_convolution_knots(NULL, r), CLB_ERROR_ARGUMENT);
  REFUSED(clb_convolution_set_table(plain_op, s.values), "created without knots");
  REFUSED(clb_convolution_knots(plain_op, r), "created without knots");
  REFUSED(clb_convolution_set_table(op, NULL), "the host pointer is NULL");
  REFUSED(clb_convolution_knots(op, NULL), "the host pointer is NULL");
  REFUSED(convolution_call(op, CLB_FORWARD, graph_at(at, &e), none, none, NULL),
          "call clb_convolution_set_table first");
  OK(ctx, clb_convolution_knots(op, r));
  for (int i = 0; i < s.grid.knots; i++)
    if (fabs(r[i] - reference_knot(&s.grid, i)) > 1e-15) fail_msg("knot %d is at %.17g", i, r[i]);
  assert_true(r[0] == s.grid.first && r[s.grid.knots - 1] == s.grid.last && r[s.grid.knots] == 0);
  OK(ctx, clb_convolution_set_table(op, s.values));
  REFUSED(convolution_call(op, CLB_FORWARD, graph_at(at, &e), none, none, NULL),
          "the buffer of x is NULL");
  edges_destroy(&e);
  spline_destroy(&s);
}

int main(void) {
  static const place_test tests[] = {
      {"products", products, BRISK}, {"graphs", all_graphs, SLOW},
      {"types", types, SLOW},        {"slopes_of_halves", slopes_of_halves, BRISK},
      {"calls", calls, BRISK},       {"tables", tables, BRISK}};
  return run_at_places("convolution_spline", tests, sizeof tests / sizeof *tests);
}
