/* tests/tuning/test_wisdom.c - the fastest candidate is found, kept and followed; wrong candidates
   do no harm. */
#include "tests/tuning/wisdom_device.h"

/* ---- choosing ---- */

static void the_fastest_stays(void **state) {
  (void)state;
  for (int fast = 0; fast < 3; fast++) {
    clb_context *ctx = open_fake(fast, -1, -1);
    OK(ctx, clb_wisdom_forget(ctx));
    clb_op *op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD) | CLB_MEASURE), *other;
    assert_int_equal(chosen(op, CLB_FORWARD), fast);
    clb_tuning t = tuning_of(op, CLB_FORWARD);
    assert_int_equal(t.measured, 1);
    assert_true(fast ? t.seconds < 0.97 * t.estimate_seconds : t.seconds == t.estimate_seconds);
    assert_true(t.seconds > 0);
    assert_int_equal(!strcmp(t.schedule, t.estimate), !fast);
    assert_int_equal(fake.alive, fast ? 2 : 1); /* the kernels of the others are freed */
    check_harmonics(op);
    int launches = fake.launches;
    other = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD) |
                               CLB_MEASURE); /* known schedules are not measured again */
    assert_int_equal(chosen(other, CLB_FORWARD), fast);
    assert_int_equal(fake.launches, launches);
    assert_ptr_equal(other->kernel[CLB_FORWARD], op->kernel[CLB_FORWARD]);
    clb_op_destroy(&other);
    close_all(&op, &ctx);
    assert_int_equal(fake.alive, 0);
    ctx = open_genuine(); /* from the file */
    op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD));
    assert_int_equal(chosen(op, CLB_FORWARD), fast);
    assert_int_equal(tuning_of(op, CLB_FORWARD).measured, 1);
    check_harmonics(op);
    close_all(&op, &ctx);
    assert_int_equal(count_lines("wisdom"), 1);
  }
}

static void without_the_flag_nothing_runs(void **state) {
  (void)state;
  clb_context *ctx = open_fake(1, -1, -1);
  clb_op *op = harmonics(ctx, 7);
  assert_int_equal(fake.launches, 0);
  for (int pass = 0; pass < 3; pass++) {
    clb_tuning t = tuning_of(op, (clb_pass)pass);
    assert_int_equal(t.measured, 0);
    assert_string_equal(t.schedule, t.estimate);
    assert_true(t.seconds == 0 && t.estimate_seconds == 0);
  }
  close_all(&op, &ctx);
  assert_int_not_equal(access(path_of("wisdom"), F_OK), 0);
}

/* A candidate with wrong results, one that fails, one that fails later: each would be the fastest
   by far. */
static void bad_candidates_are_dropped(void **state) {
  (void)state;
  for (int bad = 1; bad < 3; bad++)
    for (int fails = 0; fails < 3; fails++) {
      clb_context *ctx = open_fake(bad, fails ? -1 : bad, fails ? bad : -1);
      fake.patience = fails == 2 ? 3 : 0;
      OK(ctx, clb_wisdom_forget(ctx));
      clb_op *op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD) | CLB_MEASURE);
      assert_int_not_equal(chosen(op, CLB_FORWARD), bad);
      assert_true(fake.alive <= 2);
      check_harmonics(op);
      close_all(&op, &ctx);
      assert_int_equal(fake.alive, 0);
    }
}

/* If the estimate itself cannot run, the op is not created. */
static void a_failing_device_is_told_of(void **state) {
  clb_op *op;
  (void)state;
  clb_context *ctx = open_fake(-1, -1, 0);
  const clb_spherical_harmonics_desc d = {degrees, DEGREES, CLB_COMPONENT,  0, CLB_F32,
                                          CLB_F32, 0,       1 | CLB_MEASURE};
  assert_int_equal(clb_spherical_harmonics_create(ctx, &d, &op), CLB_ERROR_DRIVER);
  assert_null(op);
  assert_non_null(strstr(clb_error(ctx), "it fails"));
  clb_context_destroy(&ctx);
  assert_int_equal(fake.alive, 0);
}

/* ---- products and convolutions ---- */

static void products_are_measured(void **state) {
  (void)state;
  measure_products(SANITIZED ? 2 : 6);
}

static void convolutions_are_measured(void **state) {
  (void)state;
  clb_context *ctx = open_genuine();
  for (int how = 0; how < (SANITIZED ? 2 : 5); how++) {
    clb_op *op;
    clb_graph *graph;
    const int32_t ends[] = {0, 1, 2};
    const clb_rows none = {0};
    bool table = how == 1 || how == 3;
    clb_convolution_desc d = {.product = product(ctx, (table ? 3u : 7u) | CLB_MEASURE)};
    if (table) d.knots = 20, d.first_knot = 0.5, d.last_knot = 5;
    if (how >= 2) d.vectors = how < 4;
    if (how == 4) d.atomics = 1, d.product.shared_weights = 1;
    OK(ctx, clb_convolution_create(ctx, &d, &op));
    expect_measured(op, table ? 2 : 3);
    OK(ctx, clb_graph_create(ctx, 3, 3, &graph));
    OK(ctx, clb_graph_update(graph, 3, 3, 3, CLB_I32, (clb_index_list){.host = ends},
                             (clb_index_list){.host = ends}));
    if (table) { /* the made-up table is not the user's */
      assert_int_equal(clb_convolution_forward(op, graph, none, none, none, none, NULL),
                       CLB_ERROR_ARGUMENT);
      assert_non_null(strstr(clb_error(ctx), "clb_convolution_set_table"));
    }
    clb_graph_destroy(&graph);
    clb_op_destroy(&op);
  }
  clb_context_destroy(&ctx);
}

/* The kernels of rows and of sums over rows, which the second op finds in the wisdom. */
static void contractions_are_measured(void **state) {
  static const int degree[] = {0, 1};
  (void)state;
  clb_context *ctx = open_genuine();
  const clb_symmetric_contraction_desc d = {.ell = 1,
                                            .correlation = 2,
                                            .degrees = degree,
                                            .n_degrees = 2,
                                            .channels = 9,
                                            .n_species = 3,
                                            .storage = CLB_F32,
                                            .arithmetic = CLB_F32,
                                            .accumulate = 1,
                                            .passes = 7 | CLB_MEASURE};
  for (int i = 0; i < 2; i++) {
    clb_op *op;
    OK(ctx, clb_symmetric_contraction_create(ctx, &d, &op));
    const clb_op *sums = ((const clb_symmetric_parts *)op->parts)->sums;
    expect_measured(op, 3);
    for (int pass = CLB_BACKWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      assert_true(sums->choice[pass].measured && sums->choice[pass].ns > 0);
    clb_op_destroy(&op);
  }
  clb_context_destroy(&ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_fastest_stays),          TEST(without_the_flag_nothing_runs),
      TEST(bad_candidates_are_dropped), TEST(a_failing_device_is_told_of),
      TEST(products_are_measured),      TEST(convolutions_are_measured),
      TEST(contractions_are_measured)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
