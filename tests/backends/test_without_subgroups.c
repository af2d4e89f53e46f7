/* tests/backends/test_without_subgroups.c - on a CPU without sub-groups a kernel has few barriers,
   whatever it sums: there every shuffle takes two barriers of the whole group, and PoCL compiles
   the code between two barriers work-item by work-item. */
#include "tests/test.h"

#include "src/runtime/context.h"
#include "src/codegen/codegen.h"
#include "tools/ops/tensor_product_problems.h"

static const clb_limits limits = {.lanes = {32, 32},
                                  .max_subgroups = 32,
                                  .local_bytes = 1 << 20,
                                  .registers = 32,
                                  .units = 2,
                                  .simd = true,
                                  .f64 = true};

/* Barriers of the two steps of a sum, 16 elements at a time; of assembled rows, and of edges whose
   partial sums are kept per lane. */
enum { PER_SUMS = 4, SUMMED = 16, BESIDES = 4 };

static int barriers(const ir_kernel *k) {
  ir_kernel legal;
  int n = 0;
  if (!clb_lower_shuffles(k, &legal)) fail_msg("%s: %s", k->name, legal.error);
  for (int32_t i = 0; i < legal.n; i++) n += legal.ins[i].op == IR_BARRIER;
  ir_free(&legal);
  return n;
}

/* Checks every kernel of the context. */
static void expect_few(clb_context *ctx, const char *problem, int max) {
  assert_non_null(ctx->kernels);
  for (clb_kernel *k = ctx->kernels; k; k = k->next) {
    int n = barriers(&k->ir);
    if (n > max)
      fail_msg("%s of %s meets at %d barriers, more than %d", k->ir.name, problem, n, max);
  }
}

static clb_context *open_limited(void) {
  clb_context *ctx = NULL;
  OK(ctx, clb_context_create("cpu:interpreter", &ctx));
  ctx->device->limits = limits;
  return ctx;
}

static clb_tensor_product_desc describe(clb_context *ctx, int i, clb_instructions *found) {
  if (standard[i].kind == CHANNEL_WISE)
    OK(ctx,
       clb_channel_wise(ctx, standard[i].x, standard[i].y, standard[i].filter, CLB_SORTED, found));
  else OK(ctx, clb_fully_connected(ctx, standard[i].x, standard[i].y, standard[i].filter, found));
  return (clb_tensor_product_desc){.irreps_x = found->irreps_x,
                                   .irreps_y = found->irreps_y,
                                   .irreps_z = found->irreps_z,
                                   .instructions = found->instructions,
                                   .n_instructions = found->n_instructions,
                                   .layout_x = CLB_IR_MUL,
                                   .layout_z = CLB_IR_MUL,
                                   .shared_weights = standard[i].shared,
                                   .storage = CLB_F32,
                                   .arithmetic = CLB_F32,
                                   .passes = 7};
}

static void products(void **state) {
  static clb_instructions found;
  (void)state;
  for (int i = 0; i < STANDARD; i++) {
    clb_context *ctx = open_limited();
    clb_op *op;
    clb_tensor_product_desc desc = describe(ctx, i, &found);
    OK(ctx, clb_tensor_product_create(ctx, &desc, &op));
    int sums = (op->problem.tensor_product.y.dim + SUMMED - 1) / SUMMED;
    expect_few(ctx, standard[i].name, PER_SUMS * sums + BESIDES);
    clb_op_destroy(&op);
    clb_context_destroy(&ctx);
  }
}

static void convolutions(void **state) {
  static clb_instructions found;
  (void)state;
  for (int i = 0; i < STANDARD; i++) {
    if (standard[i].kind != CHANNEL_WISE) continue;
    clb_context *ctx = open_limited();
    clb_op *op;
    clb_convolution_desc desc = {.product = describe(ctx, i, &found)};
    OK(ctx, clb_convolution_create(ctx, &desc, &op));
    expect_few(ctx, standard[i].name, BESIDES);
    clb_op_destroy(&op);
    clb_context_destroy(&ctx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(convolutions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
