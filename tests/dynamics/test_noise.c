/* tests/dynamics/test_noise.c - random numbers that devices draw: Philox's published answers, the
   same bits everywhere, and what the distribution must have. */
#include "kernels/dynamics/motion_record.h"
#include "kernels/dynamics/noise.h"
#include "kernels/layers/layer.h"
#include "src/runtime/context.h"
#include "tests/build_kernel.h"
#include "tests/dynamics/motion_rows.h"

enum { COUNTER, KEY = 4, INPUTS = 6, WORDS = 4 };

/* Lanes are rows: counter and key in, words and deviates out; `given`: words in. */
static void build(ir_kernel *k, const clb_limits *limits, bool given) {
  clb_row_kernel b;
  clb_schedule s;
  ir_val in[INPUTS], word[WORDS], normal[3];
  clb_layer_schedule(limits, CLB_F64, false, &s);
  clb_layer_begin(&b, k, "noise", &s, CLB_F64);
  const ir_val n = ir_scalar(k, IR_I64), from = ir_buffer(k, IR_I32, false),
               words = ir_buffer(k, IR_I32, true), normals = ir_buffer(k, IR_F64, true);
  clb_layer_start(&b);
  const ir_val row = ir_add(k, ir_mul(k, b.unit, clb_i64(k, s.lanes)),
                            ir_cast(k, IR_I64, ir_lane(k))),
               mask = ir_2(k, IR_LT, row, n);
  for (int i = 0; i < INPUTS; i++)
    in[i] = ir_load(k, from, ir_add(k, ir_mul(k, row, clb_i64(k, INPUTS)), clb_i64(k, i)), mask);
  clb_philox(k, in + COUNTER, in + KEY, word);
  for (int i = 0; i < WORDS; i++) {
    if (given) word[i] = in[i];
    ir_store(k, words, ir_add(k, ir_mul(k, row, clb_i64(k, WORDS)), clb_i64(k, i)), mask, word[i]);
  }
  clb_normal_triple(k, word, normal);
  for (int i = 0; i < 3; i++)
    ir_store(k, normals, ir_add(k, ir_mul(k, row, clb_i64(k, 3)), clb_i64(k, i)), mask, normal[i]);
  clb_layer_finish(&b);
}

static void run_on(const char *name, int64_t n, const uint32_t *in, bool given, uint32_t *words,
                   double *normals) {
  clb_context *ctx;
  clb_text binary = {0};
  clb_module *module;
  ir_kernel k;
  assert_int_equal(clb_context_create(name, &ctx), CLB_OK);
  clb_device *d = ctx->device;
  clb_memory memory[3] = {{0}};
  const uint64_t bytes[] = {(uint64_t)n * INPUTS * 4, (uint64_t)n * WORDS * 4, (uint64_t)n * 24};
  void *const data[] = {(void *)(uintptr_t)in, words, normals};
  build(&k, &d->limits, given);
  const int64_t units = (n + k.lanes - 1) / k.lanes;
  clb_arg arg[] = {{.type = IR_I64, .i64 = units}, {.type = IR_I64, .i64 = n}, {0}, {0}, {0}};
  memset(words, 0xff, bytes[1]);
  memset(normals, 0xff, bytes[2]);
  OK(ctx, build_kernel(d, &k, &binary));
  OK(ctx, d->backend->load(d, &k, binary.s, binary.n, &module));
  for (int i = 0; i < 3; i++) {
    OK(ctx, d->backend->alloc(d, bytes[i], &memory[i]));
    OK(ctx, d->backend->write(d, &memory[i], 0, data[i], bytes[i]));
    arg[2 + i] = (clb_arg){.type = IR_VOID, .memory = &memory[i]};
  }
  OK(ctx, d->backend->launch(d, module, (units + k.rows - 1) / k.rows, arg, 5));
  OK(ctx, d->backend->wait(d));
  for (int i = 0; i < 3; i++) {
    if (i) OK(ctx, d->backend->read(d, &memory[i], 0, data[i], bytes[i]));
    d->backend->free(d, &memory[i]);
  }
  d->backend->unload(d, module);
  clb_text_free(&binary);
  ir_free(&k);
  clb_context_destroy(&ctx);
}

/* From Random123's own tests: counter, key, words. */
static void has_the_published_words(void **state) {
  (void)state;
  static const uint32_t in[][INPUTS] = {
      {0, 0, 0, 0, 0, 0},
      {~0u, ~0u, ~0u, ~0u, ~0u, ~0u},
      {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0}};
  static const uint32_t wanted[][WORDS] = {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                                           {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
                                           {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};
  for (int d = 0; d < devices.n; d++) {
    uint32_t words[3][WORDS];
    double normals[3][3];
    run_on(devices.name[d], 3, in[0], false, words[0], normals[0]);
    if (memcmp(words, wanted, sizeof words)) fail_msg("%s draws other words", devices.name[d]);
  }
}

/* Of all pairs of words at the ends of ranges: the transform itself, and the same bits on all
   devices. */
static void transforms_any_words(void **state) {
  (void)state;
  static const uint32_t ends[] = {0,           1,           2,          0xffff,     0x10000,
                                  0x3fffffff,  0x40000000,  0x7fffffff, 0x80000000, 0x95f61998,
                                  0xb504f333u, 0xbfffffffu, 0xc0000000, 0xfffffffe, 0xffffffff};
  enum { ENDS = sizeof ends / sizeof *ends, N = ENDS * ENDS };
  static uint32_t in[N][INPUTS], words[N][WORDS];
  static double first[N][3], normals[N][3];
  const long double two_pi = 2 * 3.14159265358979323846264338327950288L;
  for (int i = 0; i < N; i++) {
    const uint32_t a = ends[i / ENDS], b = ends[i % ENDS];
    const uint32_t row[] = {a, b, b, a};
    memcpy(in[i], row, sizeof row);
  }
  for (int d = 0; d < devices.n; d++) {
    run_on(devices.name[d], N, in[0], true, words[0], normals[0]);
    if (!d) memcpy(first, normals, sizeof first);
    if (memcmp(first, normals, sizeof first)) fail_msg("%s has other bits", devices.name[d]);
  }
  for (int i = 0; i < N; i++) {
    long double u[4];
    for (int k = 0; k < 4; k++) u[k] = (in[i][k] + 0.5L) * 0x1p-32L;
    const long double r = sqrtl(-2 * logl(u[0])), q = sqrtl(-2 * logl(u[2]));
    const double wanted[] = {(double)(r * cosl(two_pi * u[1])), (double)(r * sinl(two_pi * u[1])),
                             (double)(q * cosl(two_pi * u[3]))};
    close_to("normal", 3, first[i], wanted, 2e-15);
    assert_true(fabs(first[i][0]) < CLB_LARGEST_DEVIATE);
  }
}

/* ---- the distribution ---- */

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov: the largest distance from the normal distribution, times sqrt(n), is
   above 1.95 once in a thousand. */
static void expect_normal(int64_t n, double *z) {
  double most = 0;
  qsort(z, (size_t)n, sizeof *z, ascending);
  for (int64_t i = 0; i < n; i++) {
    const double p = erfc(-z[i] / sqrt(2)) / 2;
    most = fmax(most, fmax(fabs(p - (double)i / (double)n), fabs((double)(i + 1) / (double)n - p)));
  }
  assert_true(most * sqrt((double)n) < 1.95);
}

/* Moments of each component to 5 of their errors, no correlation between components, atoms and
   steps, and the whole distribution, of some steps of some atoms of a run. */
static void is_normal(void **state) {
  (void)state;
  enum { STEPS = 40, ATOMS = 500, N = STEPS * ATOMS };
  static uint32_t in[N][INPUTS], words[N][WORDS];
  static double z[N][3];
  const double moments[] = {0, 1, 0, 3}, variances[] = {1, 2, 15, 96};
  for (uint32_t i = 0; i < N; i++) {
    const uint32_t row[] = {i % ATOMS, 0, i / ATOMS, 0, 7, 0};
    memcpy(in[i], row, sizeof row);
  }
  run_on("cpu", N, in[0], false, words[0], z[0]);
  for (int k = 0; k < 3; k++) {
    double moment[4] = {0}, product[3] = {0};
    for (int i = 0; i < N; i++) {
      double power = 1;
      for (int p = 0; p < 4; p++) moment[p] += (power *= z[i][k]) / N;
      product[0] += z[i][k] * z[i][(k + 1) % 3];
      product[1] += z[i][k] * z[(i + 1) % N][k];
      product[2] += z[i][k] * z[(i + ATOMS) % N][k];
    }
    for (int p = 0; p < 4; p++) {
      if (!(fabs(moment[p] - moments[p]) < 5 * sqrt(variances[p] / N)))
        fail_msg("moment %d is %g", p + 1, moment[p]);
    }
    for (int p = 0; p < 3; p++)
      if (!(fabs(product[p]) < 5 * sqrt(N))) fail_msg("product %d is %g", p, product[p]);
  }
  expect_normal(3 * N, z[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(has_the_published_words),
                                     cmocka_unit_test(transforms_any_words),
                                     cmocka_unit_test(is_normal)};
  clb_devices(remember, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
