/* tests/tuning/test_candidates.c - every schedule that may be measured gives right results, on the
   devices that run here and with the limits of GPUs, and fits in the device's local memory. */
#include "tests/ops/convolution/convolution_problems.h"

#include "src/problem/irreps.h"
#include "src/problem/symmetric_basis.h"

/* ---- results ---- */

/* The candidates of an op's pass, the estimate among them. */
static int list_candidates(clb_op *op, int pass, clb_schedule *list) {
  op->problem.pass = pass;
  return clb_kernel_kinds[op->problem.kind]->candidates(&op->problem, &op->ctx->device->limits,
                                                        list);
}

/* On slow devices two of them are enough. */
static int tried(const place *at, int n) {
  return n > 2 && at->gpu < 0 && at->effort != THOROUGH ? 2 : n;
}

static void give(clb_op *op, int pass, const clb_schedule *s) {
  OK(op->ctx, clb_op_set_schedule(op, (clb_pass)pass, s));
}

/* Those of a pass, each right. */
static void each_candidate(place *at, const tool_op *op, const tool_kernel *kernel, int pass,
                           tool_data data) {
  clb_schedule list[CLB_MAX_CANDIDATES];
  clb_op *handle = op_with(context_of(at), op, kernel, CLB_PASS_BIT(pass));
  int n = list_candidates(handle, pass, list);
  for (int s = 0; s < tried(at, n); s++) {
    give(handle, pass, &list[s]);
    if (data.layout) data.layout = s % 2 ? LAYOUT_PADDED : LAYOUT_ALIGNED;
    expect_pass(at->ctx, op, kernel, handle, (clb_pass)pass, &data);
  }
  clb_op_destroy(&handle);
}

static void each_product(void **state) {
  static const int which[] = {PARITIES, BARE, EVEN_MUL_IR, KNOTTED,
                              UNEVEN,   EVEN, COUNTS,      MACE_MEDIUM};
  for (int i = 0;
       i < many(*state, 1, SANITIZED ? 1 : 2, SANITIZED ? 2 : sizeof which / sizeof *which); i++) {
    const tensor_problem p = convolution_list[which[i]].product;
    for (int pass = 0; pass <= (i < 2 ? CLB_TRIPLE_BACKWARD : CLB_DOUBLE_BACKWARD); pass++)
      each_candidate(*state, &tool_op_tensor_product, &(tool_kernel){&p, F64, i % 2}, pass,
                     (tool_data){.rows = pass == CLB_FORWARD ? 37 : 11});
  }
}

static void each_convolution(void **state) {
  static const int which[] = {SMALL, KNOTTED, EVEN, COUNTS, SCALARS, EVEN_MUL_IR, SHORT};
  convolution_graph e = random_edges(11, 13, 40, 1);
  for (int i = 0; i < many(*state, 1, 1, SANITIZED ? 2 : sizeof which / sizeof *which); i++) {
    convolution_problem p = convolution_by(AS_GIVEN, which[i], 0);
    p.edges = &e;
    for (int pass = 0; pass <= CLB_DOUBLE_BACKWARD; pass++)
      each_candidate(*state, &tool_op_convolution, &(tool_kernel){&p, F64, false}, pass,
                     (tool_data){e.n_edges, LAYOUT_ALIGNED, true});
  }
  convolution_graph_free(&e);
}

/* The results are equal to the last bit, because a schedule says only how rows are read and
   written. */
static void each_harmonics(void **state) {
  static const int degrees[] = {0, 1, 2, 3, 4, 5, 0};
  static const clb_spherical_harmonics_desc desc = {
      .degrees = degrees, .n_degrees = 7, .normalization = CLB_INTEGRAL, .normalize = 1};
  const tool_kernel kernel = {&desc, F64, false};
  const tool_data data = {.rows = 131};
  clb_context *ctx = context_of(*state);
  clb_op *op = op_with(ctx, &tool_op_spherical_harmonics, &kernel, 7);
  for (int pass = 0; pass <= CLB_DOUBLE_BACKWARD; pass++) {
    double *want[MAX_ARRAYS] = {NULL}, *found[MAX_ARRAYS] = {NULL};
    clb_schedule list[CLB_MAX_CANDIDATES];
    test_run t;
    int n = list_candidates(op, pass, list);
    test_run_make(&t, &tool_op_spherical_harmonics, &kernel, (clb_pass)pass, &data, data.rows);
    expect_right(ctx, op, &t, want);
    for (int s = 1; s < tried(*state, n); s++) {
      give(op, pass, &list[s]);
      take_results(ctx, op, &t, found);
      expect_same(&t, want, found);
      free_results(found);
    }
    free_results(want);
    test_run_free(&t);
  }
  clb_op_destroy(&op);
}

/* ---- all named problems ---- */

static const int targets[] = {LIMITS_NVIDIA, LIMITS_AMD, LIMITS_INTEL, LIMITS_NO_SUBGROUPS,
                              LIMITS_CPU};
enum { TARGETS = sizeof targets / sizeof *targets };

/* The schedule's text reads back as the same schedule: it has no setting of another kind, whose
   name would be read as one of this kind or not at all. */
static void check_names(const clb_schedule *s, const clb_kernel_kind *kind) {
  clb_text text = {0};
  clb_schedule read = {0};
  clb_schedule_print(s, &text);
  for (const char *at = text.s; *at; at += strcspn(at, " "), at += *at == ' ')
    assert_true(clb_schedule_set(&read, kind->settings, at, strcspn(at, "="),
                                 strtoll(strchr(at, '=') + 1, NULL, 10)));
  assert_memory_equal(&read, s, sizeof read);
  clb_text_free(&text);
}

static int lowered; /* kernels */

static void check_list(const char *problem, clb_problem *p, int target, bool lowers) {
  const clb_kernel_kind *kind = clb_kernel_kinds[p->kind];
  const clb_limits *limits = &device_limits[targets[target]].limits;
  const char *target_name = device_limits[targets[target]].name;
  clb_schedule list[CLB_MAX_CANDIDATES + 1], first;
  memset(&list[CLB_MAX_CANDIDATES], 0x5a, sizeof *list);
  int n = kind->candidates(p, limits, list);
  kind->schedule(p, limits, &first);
  assert_in_range(n, 1, CLB_MAX_CANDIDATES);
  assert_memory_equal(&list[0], &first, sizeof first);
  for (int i = 0; i < n; i++) {
    char mistake[256] = "";
    ir_kernel k;
    for (int j = 0; j < i; j++) assert_memory_not_equal(&list[i], &list[j], sizeof *list);
    assert_in_range(list[i].subgroups, 1, limits->max_subgroups);
    check_names(&list[i], kind);
    if (!lowers) continue;
    kind->lower(p, &list[i], &k);
    lowered++;
    if (k.error[0] || !ir_verify(&k, mistake, sizeof mistake))
      fail_msg("%s, pass %d, %s, candidate %d: %s%s", problem, p->pass, target_name, i, k.error,
               mistake);
    if (ir_local_bytes(&k) > (k.min_blocks_per_sm || list[i].convolution.pipeline_stages
                                  ? limits->max_local_bytes
                                  : limits->local_bytes))
      fail_msg("%s, pass %d, %s, candidate %d has %lld bytes of local memory", problem, p->pass,
               target_name, i, (long long)ir_local_bytes(&k));
    ir_free(&k);
  }
}

/* Each pass is lowered for one target only, as all would take long: the targets take turns. */
static void check_problem(const char *name, clb_problem *p, int turn, int passes) {
  for (int pass = 0; pass < passes; pass++)
    for (int target = 0; target < TARGETS; target++) {
      p->pass = pass;
      check_list(name, p, target, (turn + pass) % TARGETS == target && !SANITIZED);
    }
}

static void read_named(clb_context *ctx, int i, int turn, clb_problem *p) {
  static clb_instructions found;
  clb_status s =
      standard[i].kind == CHANNEL_WISE
          ? clb_channel_wise(ctx, standard[i].x, standard[i].y, standard[i].filter, CLB_AS_FOUND,
                             &found)
          : clb_fully_connected(ctx, standard[i].x, standard[i].y, standard[i].filter, &found);
  OK(ctx, s);
  clb_layout layout = turn % 3 ? CLB_IR_MUL : CLB_MUL_IR;
  const clb_tensor_product_desc desc = {.irreps_x = found.irreps_x,
                                        .irreps_y = found.irreps_y,
                                        .irreps_z = found.irreps_z,
                                        .instructions = found.instructions,
                                        .n_instructions = found.n_instructions,
                                        .layout_x = layout,
                                        .layout_z = layout,
                                        .shared_weights = standard[i].shared};
  memset(p, 0, sizeof *p);
  OK(ctx, clb_tensor_product_read(&desc, &p->tensor_product, &ctx->error));
  p->storage = p->arithmetic = turn % 4 == 3 ? CLB_F64 : CLB_F32;
}

static void contractions(clb_context *ctx, clb_problem *p) {
  static const int degrees[] = {1, 0, 2};
  for (int i = 0; i < 6; i++) {
    const clb_symmetric_contraction_desc desc = {.ell = 1 + i / 2,
                                                 .correlation = i < 5 ? 3 : 4,
                                                 .degrees = degrees,
                                                 .n_degrees = 1 + i % 3,
                                                 .channels = 1 + 42 * i,
                                                 .n_species = 2};
    memset(p, 0, sizeof *p);
    p->storage = p->arithmetic = i % 2 ? CLB_F64 : CLB_F32;
    OK(ctx, clb_symmetric_contraction_read(&desc, &p->symmetric_contraction, &ctx->error));
    p->kind = CLB_SYMMETRIC_CONTRACTION;
    check_problem("contraction", p, i, 3);
    p->kind = CLB_SYMMETRIC_WEIGHTS;
    check_problem("sums of a contraction", p, i + 1, 3);
  }
}

static void named_problems(void **state) {
  clb_context *ctx;
  static clb_problem p;
  (void)state;
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  for (int i = 0, turn = 0; i < STANDARD; i++, turn++) {
    read_named(ctx, i, turn, &p);
    p.kind = CLB_TENSOR_PRODUCT;
    check_problem(standard[i].name, &p, turn, CLB_DOUBLE_BACKWARD + 1);
    if (standard[i].kind != CHANNEL_WISE) continue;
    p.kind = CLB_CONVOLUTION;
    p.tensor_product.gradients = CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W;
    p.convolution.spline = i % 3 == 0;
    check_problem(standard[i].name, &p, turn, p.convolution.spline ? 2 : 3);
  }
  for (int l = 0; l <= 12; l++) {
    memset(&p, 0, sizeof p);
    p.kind = CLB_SPHERICAL_HARMONICS;
    p.storage = p.arithmetic = l % 2 ? CLB_F64 : CLB_F32;
    p.spherical_harmonics.n_degrees = l + 1;
    for (int i = 0; i <= l; i++) p.spherical_harmonics.degrees[i] = i;
    for (int turn = 0; turn < TARGETS; turn++) check_problem("harmonics", &p, turn, 3);
  }
  contractions(ctx, &p);
  assert_true(lowered > 550 || SANITIZED);
  clb_context_destroy(&ctx);
}

int main(void) {
  static const place_test tests[] = {{"products", each_product, 0},
                                     {"convolutions", each_convolution, 0},
                                     {"harmonics", each_harmonics, 0}};
  const struct CMUnitTest all[] = {cmocka_unit_test(named_problems)};
  int failed = cmocka_run_group_tests(all, NULL, NULL);
  return failed + RUN_CONVOLUTIONS("candidates", tests);
}
