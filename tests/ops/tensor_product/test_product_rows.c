/* tests/ops/tensor_product/test_product_rows.c - the rows that a tensor product reads and writes,
   on every device that runs here. */
#define _GNU_SOURCE
#include "tests/ops/tensor_product/product_problems.h"

#include <sys/mman.h>

static unsigned passes_on(const place *at) { return (unsigned)many(at, F | B, 15, 15); }

/* No row, one, a few more than a block: right, and the same bits when run again. Sums over no rows
   are 0. */
static void numbers_of_rows(void **state) {
  static const int rows[] = {0, 1, 33, 65, 130},
                   which[] = {SINGLE,     SINGLE_SHARED, TANGLED, FEW,   FEW_SHARED,
                              WEIGHTLESS, NARROWEST,     MIXED,   MODES, SHARED};
  static const tool_layout twice[] = {LAYOUT_DENSE, LAYOUT_DENSE};
  clb_context *ctx = context_of(*state);
  for (int i = 0; i < many(*state, 3, 6, 10); i++)
    for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
      const tensor_problem p = product(which[i]);
      const tool_kernel kernel = {&p, F64, false};
      if (!(passes_on(*state) >> pass & 1)) continue;
      clb_op *op = op_with(ctx, &tool_op_tensor_product, &kernel, CLB_PASS_BIT(pass));
      for (size_t t = 0; t < sizeof rows / sizeof *rows; t++)
        expect_layouts(ctx, &tool_op_tensor_product, &kernel, op, (clb_pass)pass,
                       (tool_data){.rows = rows[t]}, twice, 2);
      clb_op_destroy(&op);
    }
}

/* Lanes without a channel, under two masks: behind rows there is NaN, which no sum over lanes may
   contain. */
static void masked_lanes(void **state) {
  static const unsigned gradients[] = {CLB_OPERAND_Y, CLB_OPERAND_X | CLB_OPERAND_Y, 0};
  for (int t = 0; t < 3; t++) {
    tensor_problem p = {.kind = FULLY_CONNECTED, .x = "9x0e+5x1o", .y = "0e+1o", .z = "7x0e+33x1o"};
    p.desc.gradients = gradients[t];
    set_layouts(&p, t == 2 ? 0 : 7);
    product_agrees(*state, &p, F32, false, passes_on(*state) & ~F, 19);
  }
}

/* Channels that are no multiple of the lanes, side by side: terms end and begin in the middle of a
   memory line. */
static void tails_of_channels(void **state) {
  static const tensor_problem p = FOUND("19x0e+19x1o+21x1e", "0e+1o", "0e+1o", CLB_AS_FOUND,
                                        LAYOUTS_OF(IR_MUL, IR_MUL, IR_MUL));
  for (clb_dtype type = CLB_F32; type <= CLB_F16; type++)
    product_agrees(*state, &p, type, usual_arithmetic(type), false, F, 37);
}

/* Every operand beyond 2^31 elements, rows 2^30 apart: sparse memory of the cpu devices; x by row
   numbers. The bits are those of rows side by side. */
static void far_offsets(void **state) {
  enum { N = 3 };
  const int64_t start = ((int64_t)1 << 31) + 5, stride = ((int64_t)1 << 30) + 1, capacity = 1 << 12;
  const size_t bytes = sizeof(float) * (size_t)(start + N * stride);
  place *at = *state;
  if (strncmp(at->name, "cpu", 3))
    return; /* where a pointer of the host is not one of the device */
  clb_context *ctx = context_of(at);
  tensor_problem p = product(many(at, SINGLE, SINGLE, FEW));
  p.desc.indexed = CLB_OPERAND_X;
  const tool_kernel kernel = {&p, F32, false};
  clb_op *op = op_with(ctx, &tool_op_tensor_product, &kernel, 15);
  float *far =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert_true(far != MAP_FAILED);
  for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
    double *want[MAX_ARRAYS] = {NULL};
    test_run t;
    test_run_set set;
    clb_rows rows[MAX_ARRAYS];
    clb_buffer *buffer = NULL;
    test_run_make(&t, &tool_op_tensor_product, &kernel, (clb_pass)pass, &(tool_data){.rows = N}, N);
    take_results(ctx, op, &t, want);
    OK(ctx, test_run_set_make(&t, ctx, op, &set));
    OK(ctx, clb_buffer_wrap(ctx, CLB_POINTER, far, bytes, &buffer));
    for (int a = 0; a < t.n; a++) {
      const double *from = t.stored[a] ? t.stored[a] : t.values[a];
      rows[a] = (clb_rows){buffer, start + a * capacity, stride, set.rows[a].index};
      assert_true(t.array[a].width <= capacity);
      for (int r = 0; r < N; r++)
        for (int j = 0; j < t.array[a].width; j++)
          far[rows[a].offset + r * stride + j] = (float)from[r * t.array[a].width + j];
    }
    OK(ctx, t.op->run(op, (clb_pass)pass, N, rows));
    OK(ctx, clb_wait(ctx));
    for (int a = 0; a < t.n; a++)
      for (int r = 0; r < N && t.array[a].output; r++)
        for (int j = 0; j < t.array[a].width; j++)
          assert_true(far[rows[a].offset + r * stride + j] ==
                      (float)want[a][r * t.array[a].width + j]);
    clb_buffer_destroy(&buffer);
    free_results(want);
    test_run_set_free(&t, &set);
    test_run_free(&t);
  }
  munmap(far, bytes);
  clb_op_destroy(&op);
}

/* Each operand is loaded once and each result stored once, except for lanes without a channel. */
static void counts(void **state) {
  static const tensor_problem p =
      FOUND("128x0e+128x1o+128x2e", SH3, SH3, CLB_SORTED, LAYOUTS_OF(IR_MUL, IR_MUL, IR_MUL));
  clb_context *ctx = context_of(*state);
  clb_op *op = op_with(ctx, &tool_op_tensor_product, &(tool_kernel){&p, F64, false}, B);
  tool_array a[MAX_ARRAYS];
  double in = 0, out = 0;
  clb_counts c;
  for (int n = op_arrays(&tool_op_tensor_product, &p, CLB_BACKWARD, a), i = 0; i < n; i++)
    *(a[i].output ? &out : &in) += a[i].width;
  OK(ctx, clb_op_counts(op, CLB_BACKWARD, &c));
  assert_true(c.loads >= in && c.loads <= 1.1 * in && c.stores >= out && c.stores <= 1.1 * out);
  assert_true(c.bytes_loaded == 8 * c.loads && c.bytes_stored == 8 * c.stores);
  assert_true(c.flops > 100000 && c.flops < 248000); /* fewer than without sharing of products */
  clb_op_destroy(&op);
}

static void nulls(void **state) {
  const tensor_problem problem = product(SINGLE);
  const clb_tensor_product_desc *d = &problem.desc;
  clb_context *ctx = context_of(*state);
  clb_op *op = op_with(ctx, &tool_op_tensor_product, &(tool_kernel){&problem, F64, false}, F | T),
         *none = op;
#define NO(words, call) NOT_OK(ctx, CLB_ERROR_ARGUMENT, words, call)
  NO("double backward", clb_op_counts(op, CLB_DOUBLE_BACKWARD, &(clb_counts){0}));
  NO("operands is NULL", clb_tensor_product_triple_backward(op, 2, NULL));
  assert_int_equal(clb_tensor_product_triple_backward(NULL, 1, NULL), CLB_ERROR_ARGUMENT);
  NO("desc is NULL", clb_tensor_product_create(ctx, NULL, &none));
  assert_null(none);
  NO("op is NULL", clb_tensor_product_create(ctx, d, NULL));
  NO("sizes is NULL", clb_tensor_product_measure(ctx, d, NULL));
  assert_int_equal(clb_tensor_product_create(NULL, d, &none), CLB_ERROR_ARGUMENT);
  clb_op_destroy(&op);
}

int main(void) {
  static const place_test tests[] = {{"numbers_of_rows", numbers_of_rows, SLOW},
                                     {"masked_lanes", masked_lanes, SLOW},
                                     {"far_offsets", far_offsets, BRISK},
                                     {"tails_of_channels", tails_of_channels, SLOW},
                                     {"counts", counts, THOROUGH},
                                     {"nulls", nulls, THOROUGH}};
  return RUN_AT_PLACES("product_rows", tests);
}
