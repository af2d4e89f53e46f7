/* tests/ops/symmetric_contraction/test_symmetric_contraction.c - the symmetric contraction, on
   every device that runs here; its schedules that may be measured, also with the limits of GPUs. */
#include "tests/ops/op_runs.h"
#include "tests/ops/places.h"

#include "kernels/symmetric_contraction/host/symmetric_contraction.h"

static const tool_op *const op = &tool_op_symmetric_contraction;
static const int degrees[] = {0, 1, 2, 3}, backwards[] = {2, 0, 1}, one[] = {1}, scalar[] = {0},
                 first_1[] = {1, 0, 2};
enum { ALL_PASSES = 7 };

/* To the first n of these degrees; 3 species. */
#define PROBLEM(top, order, list, n, K, lx, lz)                                                    \
  {                                                                                                \
    .ell = top, .correlation = order, .degrees = list, .n_degrees = n, .channels = K,              \
    .n_species = 3, .layout_x = CLB_##lx, .layout_z = CLB_##lz                                     \
  }

/* Degrees and orders, small to large, by instructions and tables; numbers of channels; layouts;
   types. */
static const struct {
  clb_symmetric_contraction_desc problem;
  clb_dtype storage, arithmetic;
  bool accumulate;
  tool_layout layout;
  int rows, effort;
} cases[] = {
    {PROBLEM(2, 3, degrees, 2, 5, IR_MUL, IR_MUL), F64, 0, LAYOUT_DENSE, 7, SLOW},
    {PROBLEM(1, 2, degrees, 2, 5, IR_MUL, IR_MUL), F64, 0, LAYOUT_DENSE, 7, SLOW},
    {PROBLEM(3, 3, degrees, 2, 5, IR_MUL, IR_MUL), F64, 0, LAYOUT_DENSE, 7, BRISK},
    {PROBLEM(0, 4, degrees, 1, 5, IR_MUL, IR_MUL), F64, 0, LAYOUT_DENSE, 7, BRISK},
    {PROBLEM(1, 4, backwards, 3, 5, IR_MUL, IR_MUL), F64, 0, LAYOUT_DENSE, 7, BRISK},
    {PROBLEM(2, 1, degrees, 3, 5, IR_MUL, IR_MUL), F64, 0, LAYOUT_DENSE, 7, BRISK},
    {PROBLEM(1, 1, degrees, 4, 5, IR_MUL, IR_MUL), F64, 0, LAYOUT_DENSE, 7, BRISK},
    {PROBLEM(3, 2, one, 1, 5, IR_MUL, IR_MUL), F64, 0, LAYOUT_DENSE, 7, BRISK},
    {PROBLEM(2, 4, backwards, 3, 5, IR_MUL, IR_MUL), F64, 0, LAYOUT_DENSE, 7, BRISK},
    {PROBLEM(3, 4, degrees, 2, 5, IR_MUL, IR_MUL), F64, 0, LAYOUT_DENSE, 7, BRISK},
    {PROBLEM(4, 3, scalar, 1, 5, IR_MUL, IR_MUL), F64, 0, LAYOUT_DENSE, 7, BRISK},
    {PROBLEM(2, 2, degrees, 2, 33, MUL_IR, IR_MUL), F32, 0, LAYOUT_DENSE, 9, SLOW},
    {PROBLEM(2, 2, degrees, 2, 1, MUL_IR, MUL_IR), F64, 0, LAYOUT_PADDED, 9, BRISK},
    {PROBLEM(2, 2, degrees, 2, 3, IR_MUL, MUL_IR), F32, 0, LAYOUT_DENSE, 9, BRISK},
    {PROBLEM(2, 2, degrees, 2, 5, IR_MUL, IR_MUL), F64, 0, LAYOUT_PADDED, 9, BRISK},
    {PROBLEM(2, 2, degrees, 2, 7, MUL_IR, MUL_IR), F32, 0, LAYOUT_DENSE, 9, BRISK},
    {PROBLEM(2, 2, degrees, 2, 13, MUL_IR, MUL_IR), F64, 0, LAYOUT_PADDED, 9, BRISK},
    {PROBLEM(2, 2, degrees, 2, 89, IR_MUL, IR_MUL), F32, 0, LAYOUT_DENSE, 9, BRISK},
    {PROBLEM(2, 2, degrees, 2, 123, IR_MUL, MUL_IR), F64, 0, LAYOUT_PADDED, 9, BRISK},
    {PROBLEM(1, 2, degrees, 2, 3, BY_CHANNEL, IR_MUL), F32, 0, LAYOUT_DENSE, 9, SLOW},
    {PROBLEM(2, 3, backwards, 3, 7, BY_CHANNEL, BY_CHANNEL), F64, 0, LAYOUT_PADDED, 9, SLOW},
    {PROBLEM(1, 2, degrees, 2, 11, IR_MUL, BY_CHANNEL), F16, 1, LAYOUT_DENSE, 9, SLOW},
    {PROBLEM(2, 3, backwards, 3, 15, BY_CHANNEL, IR_MUL), BF16, 0, LAYOUT_PADDED, 9, BRISK},
    {PROBLEM(1, 2, degrees, 2, 19, BY_CHANNEL, BY_CHANNEL), F32, 0, LAYOUT_DENSE, 9, BRISK},
    {PROBLEM(3, 4, backwards, 3, 3, IR_MUL, BY_CHANNEL), F64, 0, LAYOUT_PADDED, 9, BRISK},
    {PROBLEM(2, 3, backwards, 3, 11, BY_CHANNEL, BY_CHANNEL), BF16, 0, LAYOUT_PADDED, 9, THOROUGH},
    {PROBLEM(2, 3, degrees, 2, 6, IR_MUL, IR_MUL), F32, 0, LAYOUT_PADDED, 6, SLOW},
    {PROBLEM(2, 3, degrees, 2, 6, IR_MUL, IR_MUL), F64, 1, LAYOUT_PADDED, 6, SLOW},
    {PROBLEM(2, 3, degrees, 2, 6, IR_MUL, IR_MUL), F16, 0, LAYOUT_PADDED, 6, SLOW},
    {PROBLEM(2, 3, degrees, 2, 6, IR_MUL, IR_MUL), BF16, 1, LAYOUT_PADDED, 6, SLOW},
};
enum { CASES = sizeof cases / sizeof *cases };

static void agree(place *at, int part) {
  for (int i = part; i < CASES && at->gpu < 0; i += 3) {
    const tool_kernel kernel = {&cases[i].problem, cases[i].storage, cases[i].arithmetic,
                                cases[i].accumulate};
    const tool_data data = {cases[i].rows, cases[i].layout, false};
    if (cases[i].effort > (int)at->effort) continue;
    clb_op *made = op_with(context_of(at), op, &kernel, ALL_PASSES);
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      expect_pass(at->ctx, op, &kernel, made, (clb_pass)pass, &data);
    clb_op_destroy(&made);
  }
}
/* Slow devices take turns. */
static void cases_0(void **state) { agree(*state, 0); }
static void cases_1(void **state) { agree(*state, 1); }
static void cases_2(void **state) { agree(*state, 2); }

/* Species in runs, alternating, nearly all of one, or absent. */
static void numbers_of_rows(void **state) {
  static const int rows[] = {0, 1, 2, 17, 300, 2100};
  static const clb_symmetric_contraction_desc problem =
      PROBLEM(1, 3, degrees, 2, 4, IR_MUL, IR_MUL);
  if (((place *)*state)->gpu >= 0) return;
  for (int accumulate = 0; accumulate < 2; accumulate++) {
    const tool_kernel kernel = {&problem, F64, accumulate};
    clb_op *made = op_with(context_of(*state), op, &kernel, ALL_PASSES);
    for (int r = 0; r < many(*state, 5, 6, 5); r++)
      for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
        expect_pass(made->ctx, op, &kernel, made, (clb_pass)pass,
                    &(tool_data){rows[r], r % 2 ? LAYOUT_PADDED : LAYOUT_DENSE, false});
    clb_op_destroy(&made);
  }
}

/* Without the optimisations that a context can disable. */
static void disabled(void **state) {
  static const clb_symmetric_contraction_desc problem =
      PROBLEM(2, 3, degrees, 2, 5, MUL_IR, IR_MUL);
  clb_context *ctx = context_of(*state);
  OK(ctx, clb_context_disable(ctx, CLB_WIDE_ACCESSES | CLB_REGISTER_SUMS));
  expect_passes(ctx, op, &(tool_kernel){&problem, F64, false}, ALL_PASSES,
                &(tool_data){.rows = 19});
  OK(ctx, clb_context_disable(ctx, 0));
}

/* ---- schedules ---- */

/* Of both kernels of each pass, that of rows and that of sums over rows: `max` candidates of each.
 */
static void each_candidate(clb_context *ctx, int problems, int max) {
  static const clb_symmetric_contraction_desc list[] = {
      PROBLEM(1, 3, first_1, 2, 37, IR_MUL, MUL_IR), PROBLEM(2, 2, first_1, 3, 5, IR_MUL, MUL_IR),
      PROBLEM(3, 4, first_1, 1, 3, IR_MUL, MUL_IR)};
  for (int i = 0; i < problems; i++) {
    const tool_kernel kernel = {&list[i], F64, false};
    clb_op *made = op_with(ctx, op, &kernel, ALL_PASSES);
    const clb_symmetric_parts *parts = made->parts;
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      for (int part = 0; part < 2; part++) {
        clb_op *of = part ? parts->sums : made;
        clb_schedule found[CLB_MAX_CANDIDATES];
        of->problem.pass = pass;
        int n = clb_kernel_kinds[of->problem.kind]->candidates(&of->problem, &ctx->device->limits,
                                                               found);
        for (int s = 0; s < n && s < max; s++) {
          OK(ctx, clb_op_set_schedule(of, (clb_pass)pass, &found[s]));
          expect_pass(ctx, op, &kernel, made, (clb_pass)pass,
                      &(tool_data){s % 2 ? 19 : 73, s % 3 ? LAYOUT_DENSE : LAYOUT_PADDED, false});
        }
      }
    clb_op_destroy(&made);
  }
}

static void candidates(void **state) {
  const place *at = *state;
  const int n = at->gpu < 0 ? many(at, 1, 1, 2) : at->gpu != LIMITS_NVIDIA || SANITIZED ? 1 : 3;
  each_candidate(context_of(*state), n, many(at, 3, 5, 12));
}

int main(void) {
  static const int gpus[] = {LIMITS_NVIDIA, LIMITS_AMD, LIMITS_INTEL, LIMITS_NO_SUBGROUPS};
  static const place_test tests[] = {
      {"cases_0", cases_0, SLOW},     {"cases_1", cases_1, THOROUGH}, /* on others `check` does */
      {"cases_2", cases_2, THOROUGH}, {"numbers_of_rows", numbers_of_rows, SLOW},
      {"disabled", disabled, SLOW},   {"candidates", candidates, SLOW}};
  return RUN_AS_GPUS("symmetric_contraction", tests, gpus);
}
