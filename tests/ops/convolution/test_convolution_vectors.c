/* tests/ops/convolution/test_convolution_vectors.c - graph convolutions that compute y from edge
   vectors, against plain sums with the reference's harmonics; what is refused. */
#include "kernels/convolution/frame.h"
#include "kernels/convolution/host/frames.h"
#include "tests/ops/convolution/convolution_vectored.h"

static const manner plain = {DENSE, MAX}, loose = {APART, MAX};

/* ---- the answer ---- */

typedef struct {
  double *want[MAX_OUT], *scale[MAX_OUT];
} answer;

static answer answer_create(const convolution *c, const edge_list *e, int pass) {
  answer r = {{NULL}, {NULL}};
  for (int o = 0; o < n_outputs[pass]; o++)
    r.want[o] = numbers(count_of(c, e, output_like(pass, o))),
    r.scale[o] = numbers(count_of(c, e, output_like(pass, o)));
  return r;
}

static void answer_destroy(answer *r) {
  for (int o = 0; o < MAX_OUT; o++) free(r->want[o]), free(r->scale[o]);
}

/* The plain sums of these operands, of which `sizes` are the magnitudes of what they are rounded
   from. */
static answer sums_of(const vectored *v, int pass, const edge_list *e, const arrays *exact,
                      const arrays *sizes) {
  answer r = answer_create(v->given, e, pass), other = answer_create(v->given, e, pass);
  plain_sums(v->given, pass, e, exact, r.want, other.scale);
  plain_sums(v->given, pass, e, sizes, other.want, r.scale);
  answer_destroy(&other);
  return r;
}

/* Replaces gradients by harmonics, which are result 1, by those by vectors. */
static void by_vectors(const vectored *v, int n, const double *x, answer *r) {
  double *g = numbers((size_t)(3 * n)), *size = numbers((size_t)(3 * n)),
         *unused = numbers((size_t)(3 * n));
  reference_backward(&v->sh, n, x, r->want[LIKE_Y], g, unused);
  reference_backward(&v->sh, n, x, r->scale[LIKE_Y], unused, size);
  free(r->want[LIKE_Y]), free(r->scale[LIKE_Y]), free(unused);
  r->want[LIKE_Y] = g;
  r->scale[LIKE_Y] = size;
}

/* Turns h into J h in exact and sizes; returns the part of d_v that comes of y's second derivative,
   in result 1. */
static answer go_along(const vectored *v, const edge_list *e, const double *x, const double *h,
                       arrays *exact, arrays *sizes) {
  int n = e->rows[LIKE_Y];
  size_t all = (size_t)(n * v->columns);
  answer g = sums_of(v, CLB_BACKWARD, e, exact, sizes), bend = {{NULL}, {NULL}};
  double *unused = numbers(all + 3 * (size_t)n), *more = numbers(all);
  bend.want[LIKE_Y] = numbers((size_t)(3 * n));
  bend.scale[LIKE_Y] = numbers((size_t)(3 * n));
  exact->in[5] = numbers(all);
  sizes->in[5] = numbers(all);
  reference_double_backward(&v->sh, n, x, g.want[LIKE_Y], h, bend.want[LIKE_Y], exact->in[5],
                            unused, sizes->in[5]);
  reference_double_backward(&v->sh, n, x, g.scale[LIKE_Y], h, unused, more, bend.scale[LIKE_Y],
                            more);
  answer_destroy(&g);
  free(unused);
  free(more);
  return bend;
}

static answer answer_of(vectored *v, int pass, const edge_list *e, const arrays *a) {
  int n = e->rows[LIKE_Y];
  arrays in = with_absent(v->run, e, a), exact = in, sizes = in;
  answer bend = {{NULL}, {NULL}};
  bool along = pass == CLB_DOUBLE_BACKWARD && reads(&v->run->product, 5);
  v->sh.degrees = v->degrees;
  exact.in[LIKE_Y] = numbers((size_t)(n * v->columns));
  sizes.in[LIKE_Y] = numbers((size_t)(n * v->columns));
  reference_forward(&v->sh, n, in.in[LIKE_Y], exact.in[LIKE_Y], sizes.in[LIKE_Y]);
  if (along) bend = go_along(v, e, in.in[LIKE_Y], in.in[5], &exact, &sizes);
  else exact.in[5] = sizes.in[5] = numbers((size_t)(n * v->columns));
  answer r = sums_of(v, pass, e, &exact, &sizes);
  if (pass != CLB_FORWARD) by_vectors(v, n, in.in[LIKE_Y], &r);
  for (int i = 0; i < 3 * n && along; i++)
    r.want[LIKE_Y][i] += bend.want[LIKE_Y][i], r.scale[LIKE_Y][i] += bend.scale[LIKE_Y][i];
  answer_destroy(&bend);
  free(exact.in[LIKE_Y]), free(sizes.in[LIKE_Y]), free(exact.in[5]);
  if (along) free(sizes.in[5]);
  for (int i = 0; i < CONVOLUTION_IN; i++) free(in.in[i]);
  return r;
}

/* ---- comparing ---- */

static void compare_vectored(vectored *v, int pass, const edge_list *e, const arrays *a,
                             const arrays *before) {
  const clb_tensor_product_desc *d = &v->run->desc.product;
  answer r = answer_of(v, pass, e, a);
  for (int o = 0; o < n_outputs[pass]; o++)
    for (size_t j = 0;
         j < count_of(v->run, e, output_like(pass, o)) && gives(&v->run->product, pass, o); j++) {
      double old = before ? before->out[o][j] : 0, size = r.scale[o][j] + fabs(old),
             max = 2 * tolerance(&v->run->product) * size + (d->storage == CLB_F16) * 0x1p-20;
      if (!(fabs(a->out[o][j] - old - r.want[o][j]) <= max))
        fail_msg("%s (x) %s, pass %d, gradients %u, incoming %u, %d edges, result %d, element %zu: "
                 "%.17g, not %.17g",
                 d->irreps_x, d->irreps_y, pass, d->gradients, d->incoming, e->rows[LIKE_Y], o, j,
                 a->out[o][j] - old, r.want[o][j]);
    }
  answer_destroy(&r);
}

static void agrees(vectored *v, int pass, const edge_list *e, clb_graph *g, manner m,
                   uint64_t seed) {
  arrays a = vectored_arrays(v, e, seed), before = vectored_arrays(v, e, seed);
  run_convolution(v->run, pass, e, g, m, &a);
  compare_vectored(v, pass, e, &a, v->run->desc.product.accumulate ? &before : NULL);
  arrays_destroy(&a);
  arrays_destroy(&before);
}

static void passes_agree(place *at, const clb_convolution_desc *desc, int passes,
                         const edge_list *e, manner m) {
  vectored v = vectored_create(at, desc);
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
    if (passes >> pass & 1) agrees(&v, pass, e, graph_at(at, e), m, 7);
  vectored_destroy(&v);
}

/* ---- tests ---- */

enum { F = 1 << CLB_FORWARD, B = 1 << CLB_BACKWARD, D = 1 << CLB_DOUBLE_BACKWARD };

/* Degrees in no order, with a gap and one twice; l = 4 is called odd. */
static clb_convolution_desc describe_shuffled(void) {
  static const clb_instruction paths[] = {{0, 1, 1, CLB_UVU, 1, 1}, {0, 0, 0, CLB_UVU, 1, 1},
                                          {1, 2, 1, CLB_UVU, 1, 1}, {1, 2, 0, CLB_UVU, 0, 2},
                                          {0, 3, 3, CLB_UVU, 1, 1}, {1, 4, 1, CLB_UVU, 1, 1}};
  return (clb_convolution_desc){.product = {.irreps_x = "5x0e+5x1o",
                                            .irreps_y = "2e+0e+1o+4o+1o",
                                            .irreps_z = "5x2e+5x0e+5x1o+5x4o",
                                            .instructions = paths,
                                            .n_instructions = 6,
                                            .storage = CLB_F64,
                                            .arithmetic = CLB_F64}};
}

static void products(void **state) {
  static const int which[] = {SMALL,   EVEN,     MIXED,       COUNTS,     HIGH,
                              SCALARS, PARITIES, MACE_MEDIUM, NEQUIX_MAIN};
  place *at = *state;
  edge_list e = random_edges(11, 13, SANITIZED ? 14 : 40, 1);
  for (int i = -1; i < many(&at->device, 0, SANITIZED ? 7 : 5, sizeof which / sizeof *which); i++) {
    clb_convolution_desc desc = i < 0 ? describe_shuffled() : describe(at, which[i]);
    desc.normalization = (clb_normalization)((i + 1) % 3);
    vectored v = vectored_create(at, &desc);
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      for (int spacing = DENSE; spacing <= APART; spacing++)
        agrees(&v, pass, &e, graph_at(at, &e), (manner){spacing, MAX}, 3);
    vectored_destroy(&v);
  }
  edges_destroy(&e);
}

/* Weights that mix channels, with and without adding to the outputs. */
static void mixing(void **state) {
  static clb_instructions found;
  place *at = *state;
  edge_list e = random_edges(11, 13, SANITIZED ? 14 : 40, 1);
  OK(context_at(at), clb_fully_connected(context_at(at), "3x0e+5x1o", SH2, "5x0e+3x1o", &found));
  for (int adds = 0; adds < 2; adds++) {
    clb_convolution_desc desc = {.product = {.irreps_x = found.irreps_x,
                                             .irreps_y = found.irreps_y,
                                             .irreps_z = found.irreps_z,
                                             .instructions = found.instructions,
                                             .n_instructions = found.n_instructions,
                                             .accumulate = adds,
                                             .storage = CLB_F64,
                                             .arithmetic = CLB_F64}};
    passes_agree(at, &desc, F | B | D, &e, adds ? loose : plain);
  }
  edges_destroy(&e);
}

static void all_graphs(void **state) {
  place *at = *state;
  clb_convolution_desc desc = describe(at, SMALL);
  vectored v = vectored_create(at, &desc);
  for (int i = 0; i < GRAPHS; i++) {
    edge_list e = edges_of(i);
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      agrees(&v, pass, &e, graph_at(at, &e), i % 2 ? plain : loose, (uint64_t)i);
    edges_destroy(&e);
  }
  vectored_destroy(&v);
}

static void types(void **state) {
  static const struct {
    clb_dtype storage, arithmetic;
    int product, passes;
  } cases[] = {{CLB_F32, CLB_F32, EVEN, F | B | D},   {CLB_F16, CLB_F32, SMALL, F | B | D},
               {CLB_BF16, CLB_F32, SMALL, F | B | D}, {CLB_F32, CLB_F64, MIXED, F | B | D},
               {CLB_F16, CLB_F32, PARITIES, F | B},   {CLB_F32, CLB_F32, NEQUIX_MAIN, F | B | D}};
  place *at = *state;
  edge_list some = random_edges(11, 9, SANITIZED ? 14 : 40, 1),
            hub = hub_edges(20, 30, 700, 500, 4);
  for (int i = 0; i < many(&at->device, 1, SANITIZED ? 5 : 3, sizeof cases / sizeof *cases); i++) {
    clb_convolution_desc desc = describe(at, cases[i].product);
    desc.product.storage = cases[i].storage;
    desc.product.arithmetic = cases[i].arithmetic;
    desc.product.accumulate = i % 2;
    passes_agree(at, &desc, cases[i].passes, cases[i].product == SMALL ? &hub : &some,
                 i % 2 ? loose : plain);
  }
  edges_destroy(&some);
  edges_destroy(&hub);
}

/* Elements of an edge's frame. */
static int frame_of(const clb_op *op) {
  return clb_frame_size(clb_frame_degree(&op->problem.tensor_product));
}

/* What vectors take is there in addition, whatever else there is; the same bits each time. */
static void workspaces(void **state) {
  place *at = *state;
  clb_convolution_desc desc = describe(at, TINY);
  edge_list e = hub_edges(200, 300, 9500, 6000, 6);
  clb_graph *g = graph_at(at, &e);
  vectored v = vectored_create(at, &desc);
  for (int pass = CLB_FORWARD;
       pass <= many(&at->device, CLB_BACKWARD, CLB_DOUBLE_BACKWARD, CLB_DOUBLE_BACKWARD); pass++) {
    uint64_t min, max, given, max_given;
    OK(v.run->product.ctx,
       clb_convolution_workspace(convolution_op(v.run, pass), (clb_pass)pass, g, &min, &max));
    OK(v.run->product.ctx, clb_convolution_workspace(convolution_op(v.given, pass), (clb_pass)pass,
                                                     g, &given, &max_given));
    uint64_t rows =
        9500 * 32 *
        (uint64_t)(pass +
                   1); /* three harmonics and what makes them multiples of 16 bytes, in f64 */
    const clb_op *op = convolution_op(v.run, pass);
    if (clb_convolution_in_frame(op, (clb_pass)pass)) /* its rows, and sums that are torques */
      assert_true(min >= 9500 * 8 * (uint64_t)frame_of(op) && max >= min);
    else
      assert_true(min >= given + rows && min <= given + rows + 1024 && max >= max_given + rows &&
                  max <= max_given + rows + 1024);
    for (int r = MIN; r <= (pass == CLB_FORWARD ? MIN : MAX); r += few_cases() ? 2 : 1)
      agrees(&v, pass, &e, g, (manner){DENSE, (capacity)r}, 9);
    arrays a = vectored_arrays(&v, &e, 5), again = vectored_arrays(&v, &e, 5);
    run_convolution(v.run, pass, &e, g, plain, &a);
    run_convolution(v.run, pass, &e, g, plain, &again);
    expect_same_bits(v.run, pass, &e, &a, &again);
    arrays_destroy(&a);
    arrays_destroy(&again);
  }
  vectored_destroy(&v);
  edges_destroy(&e);
}

/* ---- what is refused ---- */

static void refused(place *at, const char *irreps_y, clb_normalization normalization,
                    const char *words) {
  static const clb_instruction scalar[] = {{0, 0, 0, CLB_UVU, 1, 1}};
  clb_convolution_desc d = {.product = {.irreps_x = "2x0e+2x1o",
                                        .irreps_y = irreps_y,
                                        .irreps_z = "2x0e+2x0o",
                                        .instructions = scalar,
                                        .n_instructions = 1,
                                        .storage = CLB_F64,
                                        .arithmetic = CLB_F64,
                                        .passes = F},
                            .vectors = 1,
                            .normalization = normalization};
  clb_op *op = NULL;
  clb_context *ctx = context_at(at);
  assert_int_not_equal(clb_convolution_create(ctx, &d, &op), CLB_OK);
  assert_null(op);
  if (!strstr(clb_error(ctx), words)) fail_msg("instead of \"%s\": %s", words, clb_error(ctx));
}

static void descriptions(void **state) {
  refused(*state, "0e+2x1o", CLB_COMPONENT,
          "term 1 of irreps_y is 2x1o; with vectors its multiplicity must be 1");
  refused(*state, "0e+1o", (clb_normalization)3, "normalization is 3");
}

/* Each is checked under its own name, and has three columns; with knots, weights are not checked.
 */
static void calls(void **state) {
  place *at = *state;
  clb_context *ctx = context_at(at);
  edge_list e = edges_of(SQUARE);
  clb_graph *g = graph_at(at, &e);
  for (int knots = 0; knots < 2; knots++) {
    clb_convolution_desc desc = describe(at, TINY);
    desc.knots = 4 * knots;
    desc.last_knot = 1;
    vectored v = vectored_create(at, &desc);
    clb_op *op = convolution_op(v.run, CLB_BACKWARD);
    clb_buffer *workspace, *some = buffer_of(&v.run->product, NULL, 4096, 4096);
    clb_buffer *results = buffer_of(&v.run->product, NULL, 3 * 4096, 3 * 4096);
    double values[4096] = {0};
    if (knots) OK(ctx, clb_convolution_set_table(op, values));
    workspace = workspace_of(v.run, CLB_BACKWARD, g, MIN);
    const clb_rows rows = {.buffer = some}, none = {.offset = -1, .stride = -7},
                   w = knots ? none : rows;
    const clb_rows g_x = {.buffer = results}, g_y = {.buffer = results, .offset = 4096};
    const clb_rows own = {.buffer = results, .offset = 2 * 4096}, g_w = knots ? none : own;
    clb_rows y = {.buffer = some, .offset = 4096 - 61 * 3 + 1};
    assert_int_equal(clb_convolution_backward(op, g, rows, y, w, rows, g_x, g_y, g_w, workspace),
                     CLB_ERROR_ARGUMENT);
    assert_non_null(strstr(clb_error(ctx), "61 rows of 3 elements"));
    y.offset--;
    OK(ctx, clb_convolution_backward(op, g, rows, y, w, rows, g_x, g_y, g_w, workspace));
    assert_int_equal(clb_convolution_backward(op, g, rows, y, w, rows, g_x, none, g_w, workspace),
                     CLB_ERROR_ARGUMENT);
    assert_non_null(strstr(clb_error(ctx), "the buffer of g_y is NULL"));
    assert_int_equal(clb_convolution_backward(op, g, rows, y, w, rows, g_x, g_y, g_w, NULL),
                     CLB_ERROR_ARGUMENT);
    assert_non_null(strstr(clb_error(ctx), "workspace has 0 bytes"));
    clb_buffer_destroy(&workspace);
    clb_buffer_destroy(&some);
    clb_buffer_destroy(&results);
    vectored_destroy(&v);
  }
  edges_destroy(&e);
}

int main(void) {
  static const place_test tests[] = {{"products", products, BRISK},
                                     {"mixing", mixing, BRISK},
                                     {"graphs", all_graphs, SLOW},
                                     {"types", types, SLOW},
                                     {"workspaces", workspaces, BRISK},
                                     {"descriptions", descriptions, BRISK},
                                     {"calls", calls, BRISK}};
  return run_at_places("convolution_vectors", tests, sizeof tests / sizeof *tests);
}
