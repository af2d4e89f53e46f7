/* tests/ops/layers/test_linear_blas.c - cuBLAS and rocBLAS behind matrix products, on fake drivers
   and libraries. */
#define _GNU_SOURCE /* link.h */
#include "backends/cuda_hip/gpu.h"
#include "tests/fakes/fake_blas.h"
#include "tests/fakes/find_fakes.h"
#include "tests/ops/layers/linear_products.h"

static struct {
  fake_driver gpu;
  fake_blas_state blas;
  void *gpus, *libraries;
} here; /* filled once, by main */

static void reset(void) {
  here.gpu = (fake_driver){.devices = 1, .left = -1};
  here.blas = (fake_blas_state){0};
}

static clb_context *open_context(const char *name) {
  clb_context *ctx = NULL;
  if (!here.gpus || !here.libraries)
    skip_because("CLB_TEST_FAKE_GPU or CLB_TEST_FAKE_BLAS does not name the fakes");
  reset();
  OK(ctx, clb_context_create(name, &ctx));
  return ctx;
}

static void close_context(clb_context *ctx) {
  clb_context_destroy(&ctx);
  assert_int_equal(here.blas.handles, 0);
  assert_int_equal(here.gpu.alive, 0);
  assert_string_equal(here.blas.mistake, "");
  assert_string_equal(here.gpu.mistake, "");
}

static void products(void **state) {
  enum { CASES = 100 };
  clb_context *ctx = open_context(*state);
  for (int type = CLB_F32; type <= CLB_F64; type++) {
    clb_op *op;
    uint64_t seed = 11;
    assert_true(type != CLB_F32 || !ctx->device->blas); /* opening a device stays fast */
    OK(ctx, clb_gemm_create(ctx, (clb_dtype)type, &op));
    assert_true(op->blas && !op->kernel[0]);
    assert_string_equal(ctx->device->blas,
                        !strcmp(*state, "cuda") ? "libcublas.so.12" : "librocblas.so.5");
    assert_ptr_equal(here.blas.stream, ((clb_gpu *)ctx->device)->stream);
    for (int i = 0; i < CASES; i++)
      try_product(ctx, op, (clb_dtype)type, random_product(&seed, EMPTY, LARGE), 0, (uint64_t)i,
                  false);
    clb_op_destroy(&op);
  }
  assert_true(here.blas.products > CASES);
  assert_int_equal(here.blas.handles, 1);
  close_context(ctx);
}

/* Sizes beyond the library's 32-bit numbers are cut up, or refused. */
static void too_large(void **state) {
  clb_context *ctx = open_context(*state);
  clb_op *op;
  clb_memory m = {.bytes = UINT64_MAX};
  clb_gemm_desc p = {.m = 2,
                     .n = 1,
                     .k = 1,
                     .count = 1,
                     .a = &m,
                     .b = &m,
                     .c = &m,
                     .ld_a = INT64_C(1) << 31,
                     .ld_b = 1,
                     .ld_c = 1};
  OK(ctx, clb_gemm_create(ctx, CLB_F32, &op));
  assert_int_equal(clb_gemm_run(op, &p), CLB_ERROR_UNSUPPORTED);
  assert_non_null(strstr(clb_error(ctx), "2147483648"));
  assert_int_equal(here.blas.products, 0);
  clb_op_destroy(&op);
  close_context(ctx);
}

/* A library that does not start counts as none; one that fails later gives an error. */
static void failures(void **state) {
  static const char *const starts[] = {"create", "set stream"};
  for (int i = 0; i < 2; i++) {
    clb_context *ctx = open_context(*state);
    clb_op *op;
    here.blas.failing = starts[i];
    OK(ctx, clb_gemm_create(ctx, CLB_F32, &op));
    assert_true(!op->blas && op->kernel[0] && !ctx->device->blas);
    clb_op_destroy(&op);
    close_context(ctx);
  }
  clb_context *ctx = open_context(*state);
  clb_op *op;
  float x[3] = {1, 2, 3};
  clb_memory m = {.handle = x, .bytes = sizeof x};
  OK(ctx, clb_gemm_create(ctx, CLB_F32, &op));
  here.blas.failing = "gemm";
  assert_int_equal(clb_gemm_run(op, &(clb_gemm_desc){.m = 1,
                                                     .n = 1,
                                                     .k = 1,
                                                     .count = 1,
                                                     .a = &m,
                                                     .b = &m,
                                                     .c = &m,
                                                     .ld_a = 1,
                                                     .ld_b = 1,
                                                     .ld_c = 1}),
                   CLB_ERROR_DRIVER);
  assert_non_null(strstr(clb_error(ctx), "BLAS: gemm: told to fail (13)"));
  clb_op_destroy(&op);
  close_context(ctx);
}

int main(void) {
  static char cuda[] = "cuda", hip[] = "hip";
  const struct CMUnitTest tests[] = {{"linear_cublas", products, NULL, NULL, cuda},
                                     {"linear_rocblas", products, NULL, NULL, hip},
                                     {"linear_cublas_too_large", too_large, NULL, NULL, cuda},
                                     {"linear_rocblas_too_large", too_large, NULL, NULL, hip},
                                     {"linear_cublas_failures", failures, NULL, NULL, cuda},
                                     {"linear_rocblas_failures", failures, NULL, NULL, hip}};
  reset();
  here.gpus = find_fake_gpus(&here.gpu);
  here.libraries = connect_fakes("CLB_TEST_FAKE_BLAS", "fake_blas_use", &here.blas);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
