/* tests/ops/tensor_product/test_product_rows.c - the rows that a tensor product reads and writes,
   on every device that runs here. */
#define _GNU_SOURCE
#include "tests/ops/tensor_product/product_problems.h"

#include <sys/mman.h>

/* ---- numbers of rows ---- */

/* No row, one, a few more than a block: right by plain sums, and the same bits when run again. */
static void numbers_of_rows(void **state) {
  static const int rows[] = {0, 1, 33, 65, 130},
                   which[] = {SINGLE,     SINGLE_SHARED, TANGLED, FEW,   FEW_SHARED,
                              WEIGHTLESS, EDGES,         MIXED,   MODES, SHARED};
  for (int i = 0; i < many(*state, 3, 6, 10); i++)
    for (int pass = CLB_FORWARD; pass <= last_pass(*state); pass++)
      for (size_t t = 0; t < sizeof rows / sizeof *rows; t++) {
        test_product *p = get(*state, which[i]);
        if (rows[t] == 0 && p->desc.shared_weights)
          continue; /* then sums are 0: test_product_shared.c */
        run_twice(p, pass, rows[t], 4);
      }
}

/* Lanes without a channel, under two masks: after the last row there is NaN, which no sum over
   lanes may contain. */
static void masked_lanes(void **state) {
  static const clb_instruction every_pair[] = {{0, 0, 0, CLB_UVW, 1, 1},
                                               {0, 1, 1, CLB_UVW, 1, 1},
                                               {1, 0, 1, CLB_UVW, 1, 1},
                                               {1, 1, 0, CLB_UVW, 1, 1}};
  static const unsigned gradients[] = {CLB_OPERAND_Y, CLB_OPERAND_X | CLB_OPERAND_Y, 0};
  for (int t = 0; t < 3; t++) {
    clb_layout layout = t == 2 ? CLB_MUL_IR : CLB_IR_MUL;
    clb_tensor_product_desc desc = {.irreps_x = "9x0e+5x1o",
                                    .irreps_y = "0e+1o",
                                    .irreps_z = "7x0e+33x1o",
                                    .instructions = every_pair,
                                    .n_instructions = 4,
                                    .layout_x = layout,
                                    .layout_y = layout,
                                    .layout_z = layout,
                                    .storage = CLB_F32,
                                    .arithmetic = CLB_F32,
                                    .gradients = gradients[t],
                                    .passes = 15};
    test_product *p = product_create(context_of(*state), &desc, dense_golden_3j);
    for (int pass = CLB_BACKWARD; pass <= last_pass(*state); pass++)
      run_and_compare(p, pass, 19, 18);
    product_destroy(p);
  }
}

/* Channels that are no multiple of the lanes, side by side: terms end and begin in the middle of a
   memory line. */
static void tails_of_channels(void **state) {
  static clb_instructions found;
  clb_context *ctx = context_of(*state);
  OK(ctx, clb_channel_wise(ctx, "19x0e+19x1o+21x1e", "0e+1o", "0e+1o", CLB_AS_FOUND, &found));
  for (clb_dtype type = CLB_F32; type <= CLB_F16; type++) {
    clb_tensor_product_desc desc = {.irreps_x = found.irreps_x,
                                    .irreps_y = found.irreps_y,
                                    .irreps_z = found.irreps_z,
                                    .instructions = found.instructions,
                                    .n_instructions = found.n_instructions,
                                    .layout_x = CLB_IR_MUL,
                                    .layout_y = CLB_IR_MUL,
                                    .layout_z = CLB_IR_MUL,
                                    .storage = type,
                                    .arithmetic = type == CLB_F64 ? CLB_F64 : CLB_F32};
    test_product *p = product_create(ctx, &desc, dense_golden_3j);
    run_twice(p, CLB_FORWARD, 37, 6);
    product_destroy(p);
  }
}

/* ---- offsets ---- */

/* Every operand beyond 2^31 elements, rows 2^30 apart: sparse memory of the cpu devices; x by row
   numbers. */
static void far_offsets(void **state) {
  enum { N = 3 };
  const int64_t start = ((int64_t)1 << 31) + 5, stride = ((int64_t)1 << 30) + 1, capacity = 1 << 12;
  const size_t bytes = sizeof(float) * (size_t)(start + N * stride);
  static const int32_t order[N] = {2, 0, 1};
  clb_tensor_product_desc desc = describe(*state, many(*state, SINGLE, SINGLE, FEW));
  desc.storage = desc.arithmetic = CLB_F32;
  desc.indexed = CLB_OPERAND_X;
  test_product *p = product_create(context_of(*state), &desc, dense_golden_3j);
  float *far =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert_true(far != MAP_FAILED);
  for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
    operands o = {0};
    arrays a = arrays_create(p, N, 9);
    clb_buffer *buffer = NULL, *index = NULL;
    OK(p->ctx, clb_buffer_wrap(p->ctx, CLB_POINTER, far, bytes, &buffer));
    OK(p->ctx, clb_buffer_create(p->ctx, sizeof order, &index));
    OK(p->ctx, clb_buffer_write(index, 0, order, sizeof order));
    for (int k = 0; k < n_inputs[pass] + n_outputs[pass]; k++) {
      int in = k < n_inputs[pass],
          like = in ? input_like[k] : output_like(pass, k - n_inputs[pass]), width = p->width[like];
      clb_rows rows = {.buffer = buffer,
                       .offset = start + k * capacity,
                       .stride = stride,
                       .index = k == LIKE_X ? index : NULL};
      if (in) o.in[k] = rows;
      else o.out[k - n_inputs[pass]] = rows;
      assert_true(width <= capacity && start + k * capacity + (N - 1) * stride + width <=
                                           (int64_t)(bytes / sizeof(float)));
      for (int r = 0; r < N; r++)
        for (int j = 0; j < width; j++)
          far[rows.offset + (k == LIKE_X ? order[r] : r) * stride + j] =
              in ? (float)a.in[k][r * width + j] : NAN;
    }
    OK(p->ctx, call(p, pass, N, &o));
    OK(p->ctx, clb_wait(p->ctx));
    for (int k = 0; k < n_outputs[pass]; k++)
      for (int r = 0, width = p->width[output_like(pass, k)]; r < N; r++)
        for (int j = 0; j < width; j++)
          a.out[k][r * width + j] = far[o.out[k].offset + r * stride + j];
    compare(p, pass, &a, NULL);
    clb_buffer_destroy(&buffer);
    clb_buffer_destroy(&index);
    arrays_destroy(&a);
  }
  munmap(far, bytes);
  product_destroy(p);
}

/* ---- rows by their numbers ---- */

static void indexed(void **state) {
  enum { N = 35, TABLE = 6, OFFSET = 3, PAD = 2 };
  static const struct {
    int product;
    unsigned like;
  } cases[] = {{SINGLE, CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W},
               {TANGLED, CLB_OPERAND_X},
               {FEW, CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W},
               {MIXED, CLB_OPERAND_X},
               {CHANNELS, CLB_OPERAND_Y},
               {MODES, CLB_OPERAND_X},
               {SHARED, CLB_OPERAND_X | CLB_OPERAND_Y},
               {ONE_PATH, CLB_OPERAND_W},
               {MANY_CHANNEL_WISE, CLB_OPERAND_X | CLB_OPERAND_W}};
  for (int t = 0; t < many(*state, 1, 2, 9); t++) {
    clb_tensor_product_desc desc = describe(*state, cases[t].product);
    test_product *plain = get(*state, cases[t].product);
    desc.indexed = cases[t].like;
    test_product *p = product_create(plain->ctx, &desc, dense_golden_3j);
    p->together = many(*state, 0, 0, 1);
    for (int pass = CLB_FORWARD; pass <= last_pass(*state); pass++) {
      arrays gathered = arrays_create(p, N, 10), got = arrays_create(p, N, 10);
      operands o = operands_create(p, pass, &got);
      for (int k = 0; k < 3; k++) {
        if (!(desc.indexed >> k & 1)) continue;
        int32_t index[N];
        double *table = numbers((size_t)(TABLE * p->width[k]));
        uint64_t seed = 11 + (uint64_t)k;
        random_fill(CLB_F64, table, (size_t)(TABLE * p->width[k]), &seed);
        for (int r = 0; r < N; r++) {
          index[r] = (r * 5 + k + r / 7) % TABLE;
          memcpy(gathered.in[k] + r * p->width[k], table + index[r] * p->width[k],
                 sizeof(double) * (size_t)p->width[k]);
        }
        clb_buffer_destroy(&o.in[k].buffer);
        o.in[k] = lay_out(p, table, TABLE, p->width[k], OFFSET, p->width[k] + PAD);
        OK(p->ctx, clb_buffer_create(p->ctx, sizeof index, &o.in[k].index));
        OK(p->ctx, clb_buffer_write(o.in[k].index, 0, index, sizeof index));
        free(table);
      }
      OK(p->ctx, call(p, pass, N, &o));
      operands_take(p, pass, &o, &got);
      run_pass(plain, pass, &gathered);
      same_bits(p, pass, &got, &gathered);
      operands_destroy(&o);
      arrays_destroy(&gathered);
      arrays_destroy(&got);
    }
    product_destroy(p);
  }
}

/* ---- what the calls refuse ---- */

#define FAILS(status, says, call)                                                                  \
  do {                                                                                             \
    assert_int_equal(call, status);                                                                \
    if (!strstr(clb_error(p->ctx), says))                                                          \
      fail_msg("instead of \"%s\": %s", says, clb_error(p->ctx));                                  \
  } while (0)

/* Each operand of each pass by its name: without a buffer, too short, at a wrong offset. */
static void refuses_operands(void **state) {
  static const char *const inputs[] = {"x", "y", "w", "g", "a", "b", "c", "p", "q", "r", "s"};
  static const char *const outputs[PASSES][MAX_OUT] = {
      {"z"},
      {"g_x", "g_y", "g_w"},
      {"d_x", "d_y", "d_w", "d_g"},
      {"e_x", "e_y", "e_w", "e_g", "e_a", "e_b", "e_c"}};
  enum { N = 3 };
  test_product *p = get(*state, SINGLE);
  for (int pass = CLB_FORWARD; pass <= last_pass(*state); pass++) {
    arrays a = arrays_create(p, N, 16);
    operands o = operands_create(p, pass, &a);
    for (int k = 0; k < n_inputs[pass] + n_outputs[pass]; k++) {
      int out = k - n_inputs[pass];
      clb_rows *rows = out < 0 ? &o.in[k] : &o.out[out], kept = *rows;
      char buffer_of_it[32], of_it[32], stride_of_it[32], offset_of_it[32], index_of_it[32];
      const char *name = out < 0 ? inputs[k] : outputs[pass][out];
      snprintf(buffer_of_it, sizeof buffer_of_it, "buffer of %s is NULL", name);
      snprintf(of_it, sizeof of_it, "bytes of %s", name);
      snprintf(stride_of_it, sizeof stride_of_it, "stride of %s is", name);
      snprintf(offset_of_it, sizeof offset_of_it, "offset of %s is", name);
      snprintf(index_of_it, sizeof index_of_it, "index of %s", name);
      *rows = (clb_rows){0};
      FAILS(CLB_ERROR_ARGUMENT, buffer_of_it, call(p, pass, N, &o));
      *rows = (clb_rows){kept.buffer, 0, 10000, NULL};
      FAILS(CLB_ERROR_ARGUMENT, of_it, call(p, pass, N, &o));
      *rows = (clb_rows){kept.buffer, 0, out < 0 ? -2 : CLB_SAME_ROW, NULL};
      FAILS(CLB_ERROR_ARGUMENT, stride_of_it, call(p, pass, N, &o));
      *rows = (clb_rows){kept.buffer, -1, CLB_DENSE, NULL};
      FAILS(CLB_ERROR_ARGUMENT, offset_of_it, call(p, pass, N, &o));
      *rows = (clb_rows){kept.buffer, 0, CLB_DENSE, kept.buffer};
      FAILS(CLB_ERROR_ARGUMENT, index_of_it, call(p, pass, N, &o));
      *rows = kept;
    }
    FAILS(CLB_ERROR_ARGUMENT, "n is -1", call(p, pass, -1, &o));
    operands_destroy(&o);
    arrays_destroy(&a);
  }
}

static void refuses(void **state) {
  test_product *p = get(*state, SINGLE);
  clb_tensor_product_desc desc = describe(*state, SINGLE);
  clb_op *op = op_of(p, CLB_FORWARD), *other = op;
  clb_rows none = {0};
  FAILS(CLB_ERROR_ARGUMENT, "not spherical_harmonics",
        clb_spherical_harmonics_forward(op, 2, none, none));
  FAILS(CLB_ERROR_ARGUMENT, "double backward",
        clb_op_counts(op, CLB_DOUBLE_BACKWARD, &(clb_counts){0}));
  FAILS(CLB_ERROR_ARGUMENT, "triple backward",
        clb_tensor_product_triple_backward(op, 2, &(clb_triple_operands){0}));
  FAILS(CLB_ERROR_ARGUMENT, "operands is NULL", clb_tensor_product_triple_backward(op, 2, NULL));
  assert_int_equal(clb_tensor_product_forward(NULL, 1, none, none, none, none), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_tensor_product_triple_backward(NULL, 1, NULL), CLB_ERROR_ARGUMENT);
  desc.passes = 0;
  FAILS(CLB_ERROR_ARGUMENT, "passes", clb_tensor_product_create(p->ctx, &desc, &other));
  assert_null(other);
  desc.passes = 1 << PASSES;
  FAILS(CLB_ERROR_ARGUMENT, "passes", clb_tensor_product_create(p->ctx, &desc, &other));
  FAILS(CLB_ERROR_ARGUMENT, "desc is NULL", clb_tensor_product_create(p->ctx, NULL, &other));
  FAILS(CLB_ERROR_ARGUMENT, "op is NULL", clb_tensor_product_create(p->ctx, &desc, NULL));
  FAILS(CLB_ERROR_ARGUMENT, "sizes is NULL", clb_tensor_product_measure(p->ctx, &desc, NULL));
  assert_int_equal(clb_tensor_product_create(NULL, &desc, &other), CLB_ERROR_ARGUMENT);
  desc.passes = 1;
  desc.indexed = CLB_OPERAND_X;
  OK(p->ctx, clb_tensor_product_create(p->ctx, &desc, &other));
  arrays a = arrays_create(p, 3, 17);
  operands o = operands_create(p, CLB_FORWARD, &a);
  FAILS(CLB_ERROR_ARGUMENT, "index of x",
        clb_tensor_product_forward(other, 3, o.in[0], o.in[1], o.in[2], o.out[0]));
  OK(p->ctx, clb_buffer_create(p->ctx, 8, &o.in[0].index));
  FAILS(CLB_ERROR_ARGUMENT, "index of x",
        clb_tensor_product_forward(other, 3, o.in[0], o.in[1], o.in[2], o.out[0]));
  operands_destroy(&o);
  arrays_destroy(&a);
  clb_op_destroy(&other);
}

int main(void) {
  static const device_test tests[] = {{"numbers_of_rows", numbers_of_rows, EVERYWHERE},
                                      {"masked_lanes", masked_lanes, EVERYWHERE},
                                      {"far_offsets", far_offsets, HOST},
                                      {"indexed", indexed, EVERYWHERE},
                                      {"refuses_operands", refuses_operands, EVERYWHERE},
                                      {"refuses", refuses, EVERYWHERE},
                                      {"tails_of_channels", tails_of_channels, EVERYWHERE}};
  return run_on_devices("product_rows", tests, sizeof tests / sizeof *tests);
}
