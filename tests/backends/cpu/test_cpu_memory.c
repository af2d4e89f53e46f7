/* tests/backends/cpu/test_cpu_memory.c - what the interpreter's device knows of its memory: reads
   by the host, by matrix products and by kernels of what nothing has written are errors that say
   where; memory that the caller brings, or whose address he has, counts as written. */
#include "kernels/graph/host/graph.h"
#include "kernels/linear/host/matmul.h"
#include "tests/test.h"

static clb_context *interpreter(void) {
  clb_context *ctx;
  OK(ctx, clb_context_create("cpu:interpreter", &ctx));
  return ctx;
}

static clb_buffer *buffer(clb_context *ctx, uint64_t bytes) {
  clb_buffer *b;
  OK(ctx, clb_buffer_create(ctx, bytes, &b));
  return b;
}

static void fails(clb_context *ctx, clb_status status, clb_status wanted, const char *const *says) {
  if (status != wanted) fail_msg("status %d, must be %d: %s", status, wanted, clb_error(ctx));
  for (; *says; says++)
    if (!strstr(clb_error(ctx), *says)) fail_msg("'%s' should say '%s'", clb_error(ctx), *says);
}
#define FAILS(ctx, status, call, ...)                                                              \
  fails(ctx, call, status, (const char *const[]){__VA_ARGS__, NULL})

/* Bytes 8 ... 11 of 16 are written last. */
static void host_reads(void **state) {
  (void)state;
  clb_context *ctx = interpreter();
  clb_device *d = ctx->device;
  clb_buffer *b = buffer(ctx, 16);
  const int32_t x[4] = {1, 2, 3, 4};
  int32_t y[4] = {0};
  OK(ctx, clb_buffer_write(b, 0, x, 8));
  OK(ctx, clb_buffer_write(b, 12, x + 3, 4));
  OK(ctx, clb_buffer_read(b, 0, y, 8));
  OK(ctx, clb_buffer_read(b, 8, y, 0));
  FAILS(ctx, CLB_ERROR_ARGUMENT, clb_buffer_read(b, 4, y, 12), "clb_buffer_read",
        "bytes 4 ... 15 of a buffer of 16", "byte 8");
  FAILS(ctx, CLB_ERROR_INTERNAL, d->backend->read(d, &b->memory, 4, y, 12), "the host reads byte 8",
        "16 bytes");
  OK(ctx, clb_buffer_write(b, 8, x + 2, 4));
  OK(ctx, clb_buffer_read(b, 0, y, 16));
  assert_memory_equal(x, y, sizeof x);
  clb_memory_discard(&b->memory);
  FAILS(ctx, CLB_ERROR_ARGUMENT, clb_buffer_read(b, 15, y, 1), "byte 15");
  clb_buffer_destroy(&b);
  clb_context_destroy(&ctx);
}

/* Memory that the caller owns, and memory whose address he was given. */
static void callers(void **state) {
  (void)state;
  clb_context *ctx = interpreter();
  int32_t own[4] = {1, 2, 3, 4}, y[4];
  clb_memory_kind kind;
  void *address;
  clb_buffer *wrapped, *b = buffer(ctx, 16);
  OK(ctx, clb_buffer_wrap(ctx, CLB_POINTER, own, sizeof own, &wrapped));
  OK(ctx, clb_buffer_read(wrapped, 0, y, sizeof y));
  OK(ctx, clb_buffer_native(b, &kind, &address));
  memcpy(address, own, sizeof own);
  OK(ctx, clb_buffer_read(b, 0, y, sizeof y));
  assert_memory_equal(own, y, sizeof own);
  clb_buffer_destroy(&wrapped);
  clb_buffer_destroy(&b);
  clb_context_destroy(&ctx);
}

/* Lists in a buffer of which the last receiver is not written. */
static void kernels(void **state) {
  (void)state;
  clb_context *ctx = interpreter();
  clb_buffer *b = buffer(ctx, 32);
  clb_graph *g;
  const int32_t x[8] = {0, 1, 2, 3, 3, 2, 1, 0};
  const clb_index_list senders = {.buffer = b}, receivers = {.buffer = b, .offset = 4};
  OK(ctx, clb_graph_create(ctx, 0, 0, &g));
  OK(ctx, clb_buffer_write(b, 0, x, 28));
  FAILS(ctx, CLB_ERROR_DRIVER, clb_graph_update(g, 4, 4, 4, CLB_I32, senders, receivers),
        "interpreter: graph_check: unwritten: instruction", "LOAD", "reads element 7 of %",
        "byte 28 of 32 of argument 2");
  OK(ctx, clb_buffer_write(b, 28, x + 7, 4));
  OK(ctx, clb_graph_update(g, 4, 4, 4, CLB_I32, senders, receivers));
  clb_graph_destroy(&g);
  clb_buffer_destroy(&b);
  clb_context_destroy(&ctx);
}

/* C[2][3] += A[2][2] B[2][3] in rows of 4, by a BLAS: without the last number of each matrix, and
   with it. What lies between rows is neither read nor written. */
static void products(void **state) {
  (void)state;
  const double one[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  static const int64_t last[3] = {5, 6, 6};
  clb_context *ctx = interpreter();
  clb_device *d = ctx->device;
  bool partly;
  if (d->backend->open_blas(d, CLB_F64, &partly)) skip_because("there is no BLAS for CPUs");
  clb_buffer *m[3];
  for (int i = 0; i < 3; i++) m[i] = buffer(ctx, sizeof one);
  const clb_gemm_desc p = {.m = 2,
                           .n = 3,
                           .k = 2,
                           .count = 1,
                           .ld_a = 4,
                           .ld_b = 4,
                           .ld_c = 4,
                           .a = &m[0]->memory,
                           .b = &m[1]->memory,
                           .c = &m[2]->memory,
                           .add = true};
  for (int missing = 0; missing < 4; missing++) {
    for (int i = 0; i < 3; i++) {
      clb_memory_discard(&m[i]->memory);
      OK(ctx, clb_buffer_write(m[i], 0, one, 8 * (uint64_t)(last[i] + (i != missing))));
    }
    const clb_status s = d->backend->gemm(d, CLB_F64, &p);
    if (missing == 3) OK(ctx, s);
    else
      FAILS(ctx, CLB_ERROR_INTERNAL, s,
            missing == 0   ? "A of a matrix product reads byte 40"
            : missing == 1 ? "B of a matrix product reads byte 48"
                           : "C of a matrix product reads byte 48");
  }
  clb_memory_discard(&m[2]->memory);
  clb_gemm_desc fresh = p;
  fresh.add = false;
  OK(ctx, d->backend->gemm(d, CLB_F64, &fresh));
  double c[3];
  OK(ctx, clb_buffer_read(m[2], 32, c, sizeof c));
  for (int i = 0; i < 3; i++) assert_true(c[i] == 2);
  FAILS(ctx, CLB_ERROR_ARGUMENT, clb_buffer_read(m[2], 0, c, 32), "byte 24");
  for (int i = 0; i < 3; i++) clb_buffer_destroy(&m[i]);
  clb_context_destroy(&ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(host_reads), cmocka_unit_test(callers),
                                     cmocka_unit_test(kernels), cmocka_unit_test(products)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
