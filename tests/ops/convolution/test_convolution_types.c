/* tests/ops/convolution/test_convolution_types.c - graph convolutions of every type, with sums by
   atomics, added to the outputs, and of sets of gradients. */
#include "tests/ops/convolution/convolution_problems.h"

#include "tools/ops/convolution/convolution_data.h"

/* Where sanitizers run, too, whatever the device. */
static int effort_of(const place *at) { return SANITIZED ? THOROUGH : (int)at->effort; }

/* i: of convolution_by. */
static const struct {
  int way, product, i;
  clb_dtype storage, arithmetic;
  bool accumulate, atomics;
  int passes, effort;
} cases[] = {
#define MIXED_TYPES CLB_F32, CLB_F64
    {AS_GIVEN, SMALL, 0, BF16, 0, 0, F | B, SLOW},
    {AS_GIVEN, EVEN, 0, F32, 0, 0, F | B | D, BRISK},
    {AS_GIVEN, PARITIES, 0, F16, 0, 0, F | B, BRISK},
    {AS_GIVEN, KNOTTED, 0, F32, 0, 0, F | B | D, BRISK},
    {AS_GIVEN, GAPS, 0, MIXED_TYPES, 0, 0, F | B | D, THOROUGH},
    {AS_GIVEN, COUNTS, 0, BF16, 0, 0, F | B, THOROUGH},
    {AS_GIVEN, UNEVEN, 0, F16, 0, 0, F | B | D, THOROUGH},
    {AS_GIVEN, UNEVEN, 0, F32, 0, 0, F | B | D, THOROUGH},
    {AS_GIVEN, COUNTS, 0, F32, 0, 0, F | B | D, THOROUGH},
    {AS_GIVEN, SCALARS, 0, F32, 0, 0, F | B | D, THOROUGH},
    {AS_GIVEN, PARITIES, 0, F32, 0, 0, F | B | D, THOROUGH},
    {AS_GIVEN, KNOTTED, 0, F16, 0, 0, F | B, THOROUGH},
    {AS_GIVEN, PARITIES, 0, BF16, 0, 0, F | B, THOROUGH},
    {AS_GIVEN, EVEN_MUL_IR, 0, F32, 0, 0, F | B | D, THOROUGH},
    {AS_GIVEN, EVEN, 0, F16, 0, 0, F | B | D, THOROUGH},
    {AS_GIVEN, NEQUIX_MAIN, 0, F32, 0, 0, F | B | D, THOROUGH},
    {AS_GIVEN, SMALL, 0, F32, 0, 0, F | B | D, BRISK},
    {AS_GIVEN, SMALL, 0, F16, 0, 0, F | B, BRISK},
    {AS_GIVEN, SMALL, 0, F64, 1, 0, F | B, SLOW},
    {AS_GIVEN, SMALL, 0, F64, 1, 0, D, BRISK},
    {AS_GIVEN, KNOTTED, 0, F64, 1, 0, F | B | D, BRISK},
    {AS_GIVEN, SMALL, 0, F64, 1, 1, F | B | D, BRISK},
    {AS_GIVEN, KNOTTED, 0, F64, 1, 1, F | B | D, BRISK},
    {AS_GIVEN, SMALL, 0, F64, 0, 1, B, SLOW},
    {AS_GIVEN, UNEVEN, 0, F64, 0, 1, B | D, BRISK},
    {AS_GIVEN, SMALL, 0, F32, 0, 1, B | D, BRISK},
    {AS_GIVEN, UNEVEN, 0, F32, 0, 1, B | D, BRISK},
    {ONE_WEIGHT, EVEN, 0, F32, 0, 0, F | B | D, SLOW},
    {ONE_WEIGHT, SMALL, 0, BF16, 0, 0, F | B | D, BRISK},
    {ONE_WEIGHT, SMALL, 0, F16, 0, 0, F | B | D, BRISK},
    {ONE_WEIGHT, SMALL, 0, MIXED_TYPES, 0, 0, F | B | D, BRISK},
    {BY_SPLINES, SMALL, EXACT, F16, 0, 0, F | B | D, SLOW},
    {BY_SPLINES, EVEN, INEXACT, F32, 1, 0, F | B | D, BRISK},
    {BY_SPLINES, COUNTS, EXACT, F32, 0, 0, F | B | D, BRISK},
    {BY_SPLINES, UNEVEN, NARROW, MIXED_TYPES, 1, 0, F | B | D, BRISK},
    {BY_SPLINES, KNOTTED, EXACT, BF16, 0, 0, F | B | D, THOROUGH},
    {BY_SPLINES, KNOTTED, EXACT, F32, 1, 0, F | B | D, THOROUGH},
    {BY_SPLINES, EVEN_MUL_IR, NARROW, F32, 0, 0, F | B | D, THOROUGH},
    {BY_SPLINES, SHORT, EXACT, F32, 1, 0, F | B | D, THOROUGH},
    {BY_SPLINES, NEQUIX_MAIN, INEXACT, F32, 0, 0, F | B | D, THOROUGH},
    {BY_SPLINES, KNOTTED, BROKEN, MIXED_TYPES, 1, 0, F | B | D, THOROUGH},
    {BY_SPLINES, COUNTS, BROKEN, F32, 0, 0, F | B | D, THOROUGH},
    {BY_VECTORS, EVEN, 0, F32, 0, 0, F | B | D, SLOW},
    {BY_VECTORS, SMALL, 0, F16, 1, 0, F | B | D, BRISK},
    {BY_VECTORS, SMALL, 0, BF16, 0, 0, F | B | D, BRISK},
    {BY_VECTORS, UNEVEN, 0, MIXED_TYPES, 1, 0, F | B | D, THOROUGH},
    {BY_VECTORS, PARITIES, 0, F16, 0, 0, F | B, THOROUGH},
    {BY_VECTORS, NEQUIX_MAIN, 0, F32, 1, 0, F | B | D, THOROUGH},
    {BY_LENGTHS, SMALL, 0, F32, 1, 0, F | B | D, BRISK},
    {BY_LENGTHS, UNEVEN, 0, MIXED_TYPES, 0, 0, F | B | D, THOROUGH},
};

/* Of small products on a hub, whose rows are cut into pieces, which are kept in the storage type.
 */
static void types(place *at, int part, int parts) {
  convolution_graph some = random_edges(11, 9, SANITIZED ? 14 : 40, 1),
                    hub = hub_edges(20, 30, SANITIZED ? 700 : 1200, SANITIZED ? 500 : 900, 4);
  for (int i = part; i < (int)(sizeof cases / sizeof *cases); i += parts) {
    convolution_problem p = convolution_by(cases[i].way, cases[i].product, cases[i].i);
    const bool small = cases[i].product == SMALL;
    p.atomics = cases[i].atomics;
    if (cases[i].effort <= effort_of(at))
      convolution_agrees(at, &p, cases[i].storage, cases[i].arithmetic, cases[i].accumulate,
                         (unsigned)cases[i].passes, small ? &hub : &some,
                         spacings + (small || cases[i].way ? i % 3 : 0),
                         small || p.atomics || cases[i].way ? 1 : SPACINGS);
  }
  convolution_graph_free(&some);
  convolution_graph_free(&hub);
}
/* Slow devices take turns. */
static void types_0(void **state) { types(*state, 0, 3); }
static void types_1(void **state) { types(*state, 1, 3); }
static void types_2(void **state) { types(*state, 2, 3); }

/* Of splines by the lengths of vectors: every gradient and incoming one is made of several. */
static void subsets(void **state) {
  static const unsigned gradients[] = {0,
                                       CLB_OPERAND_Y,
                                       CLB_OPERAND_X | CLB_OPERAND_W,
                                       CLB_OPERAND_Y | CLB_OPERAND_W | CLB_OPERAND_Z,
                                       CLB_OPERAND_W,
                                       CLB_OPERAND_X | CLB_OPERAND_Y},
                        incoming[] = {0, CLB_OPERAND_Y, CLB_OPERAND_X | CLB_OPERAND_W,
                                      CLB_OPERAND_W, CLB_OPERAND_X | CLB_OPERAND_Y};
  convolution_graph some = edges_of(SQUARE), hub = hub_edges(20, 30, 700, 500, 4);
  for (int i = 0; i < many(*state, 1, 2, 30); i++) {
    convolution_problem p = convolution_by(BY_LENGTHS,
                                           i == 2       ? BARE
                                           : i % 6 == 1 ? UNEVEN
                                                        : SMALL,
                                           0);
    p.product.desc.gradients = gradients[i % 6];
    p.product.desc.incoming = incoming[i % 5];
    convolution_agrees(*state, &p, i == 3 || i == 5 ? CLB_F32 : CLB_F64, i == 3 ? CLB_F32 : CLB_F64,
                       i / 2 % 2, F | B | D, i % 3 ? &some : &hub, spacings + 2, 1);
  }
  convolution_graph_free(&some);
  convolution_graph_free(&hub);
}

/* Slopes are differences of coefficients times the number of knots: those of weights that are
   straight lines keep the precision of storage, however many knots there are. Another table for the
   same op. */
static void slopes_of_halves(void **state) {
  clb_context *ctx = context_of(*state);
  convolution_graph e = edges_of(SQUARE);
  convolution_problem p = convolution_by(BY_SPLINES, SMALL, INEXACT);
  const tool_kernel kernel = {&p, F16, false};
  const tool_data data = {.rows = e.n_edges, .hard = true};
  p.edges = &e, p.knots = 200;
  clb_op *op = op_with(ctx, &tool_op_convolution, &kernel, B);
  for (int second = 0; second < 2; second++) {
    double max = 0, *got[MAX_ARRAYS] = {NULL};
    test_run t;
    test_run_make(&t, &tool_op_convolution, &kernel, CLB_BACKWARD, &data, data.rows);
    convolution_data *d = t.graph;
    const int w = (int)d->sizes.w, g_w = t.n - 1;
    for (int i = 0; i < d->grid.knots; i++)
      for (int k = 0; k < w; k++)
        d->weights[i * w + k] = 1 - 2 * second + (k + 1) * reference_knot(&d->grid, i) / 8;
    reference_spline_make(&d->grid, d->weights, d->table);
    test_run_answer(&t);
    take_results(ctx, op, &t, got);
    for (int i = 0; i < e.n_edges; i++) max = fmax(max, fabs(t.wanted[g_w][i]));
    for (int i = 0; i < e.n_edges; i++)
      if (!(fabs(got[g_w][i] - t.wanted[g_w][i]) <= 2e-3 * max))
        fail_msg("edge %d: %g, not %g", i, got[g_w][i], t.wanted[g_w][i]);
    free_results(got);
    test_run_free(&t);
  }
  clb_op_destroy(&op);
  convolution_graph_free(&e);
}

int main(void) {
  static const place_test tests[] = {{"types_0", types_0, SLOW},
                                     {"types_1", types_1, SLOW},
                                     {"types_2", types_2, SLOW},
                                     {"subsets", subsets, SLOW},
                                     {"slopes_of_halves", slopes_of_halves, BRISK}};
  return RUN_CONVOLUTIONS("convolution_types", tests);
}
