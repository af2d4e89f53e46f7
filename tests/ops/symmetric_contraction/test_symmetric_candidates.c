/* tests/ops/symmetric_contraction/test_symmetric_candidates.c - every schedule of a symmetric
   contraction that may be measured gives right results, on the devices that run here and with the
   limits of GPUs. */
#include "tests/fakes/device_limits.h"
#include "tests/ops/symmetric_contraction/contraction_arrays.h"

#include "kernels/symmetric_contraction/host/symmetric_contraction.h"

static const int degrees[] = {1, 0, 2};

/* Both kernels of each pass, that of rows and that of sums over rows: `most` candidates of each. */
static void each_candidate(clb_context *ctx, int problems, int most) {
  static const struct {
    int ell, correlation, n, channels;
  } list[] = {{1, 3, 2, 37}, {2, 2, 3, 5}, {3, 4, 1, 3}};
  for (int i = 0; i < problems; i++) {
    const clb_symmetric_contraction_desc desc = {.ell = list[i].ell,
                                                 .correlation = list[i].correlation,
                                                 .degrees = degrees,
                                                 .n_degrees = list[i].n,
                                                 .channels = list[i].channels,
                                                 .n_species = 3,
                                                 .layout_x = CLB_IR_MUL,
                                                 .layout_z = CLB_MUL_IR,
                                                 .storage = CLB_F64,
                                                 .arithmetic = CLB_F64};
    test_contraction *t = contraction_create(ctx, &desc);
    const clb_symmetric_parts *parts = t->op->parts;
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      for (int part = 0; part < 2; part++) {
        clb_op *of = part ? parts->sums : t->op;
        clb_schedule choices[CLB_MAX_CANDIDATES];
        of->problem.pass = pass;
        int n = clb_kernel_kinds[of->problem.kind]->candidates(&of->problem, &ctx->device->limits,
                                                               choices);
        for (int s = 0; s < n && s < most; s++) {
          OK(ctx, clb_op_set_schedule(of, (clb_pass)pass, &choices[s]));
          contraction_check(t, pass, 19, s % 2 ? SORTED : MIXED_UP, s % 3 == 0);
        }
      }
    contraction_destroy(t);
  }
}

static void candidates(void **state) {
  each_candidate(context_of(*state), many(*state, 1, 3, 2), many(*state, 3, 12, 12));
}

/* The interpreter with the limits of GPUs. */
static void of_gpus(void **state) {
  static const int gpus[] = {LIMITS_NVIDIA, LIMITS_AMD, LIMITS_INTEL, LIMITS_NO_SUBGROUPS};
  (void)state;
  for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
    clb_context *ctx = NULL;
    assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
    ctx->device->limits = device_limits[gpus[i]].limits;
    each_candidate(ctx, i || SANITIZED ? 1 : 3, 12);
    clb_context_destroy(&ctx);
  }
}

int main(void) {
  static const device_test tests[] = {{"candidates", candidates, EVERYWHERE}};
  const struct CMUnitTest all[] = {cmocka_unit_test(of_gpus)};
  int failed = cmocka_run_group_tests(all, NULL, NULL);
  return failed + run_on_devices("symmetric", tests, sizeof tests / sizeof *tests);
}
