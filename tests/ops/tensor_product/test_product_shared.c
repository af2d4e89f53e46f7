/* tests/ops/tensor_product/test_product_shared.c - tensor products whose weights are one row for
   all rows, on every device that runs here. */
#include "tests/ops/tensor_product/product_problems.h"

enum { N = 100 };

/* More rows than are processed at once with many weights; the interpreter is too slow for them. */
static int rows_on(const device *d) {
  return strcmp(d->name, "cpu:interpreter") ? N : few_cases() ? 11 : 20;
}

/* ---- sums over rows ---- */

/* A sum over no rows. */
static void no_rows(void **state) {
  test_product *p = get(*state, SINGLE_SHARED);
  for (int pass = CLB_BACKWARD; pass <= last_pass(*state); pass++) {
    arrays a = arrays_create(p, 0, 4);
    run_pass(p, pass, &a);
    for (int j = 0; j < p->width[LIKE_W]; j++) assert_true(a.out[LIKE_W][j] == 0);
    arrays_destroy(&a);
  }
}

/* One row of weights for all gives the results of that row repeated, and the sum of its gradients;
   the same bits each time. */
static void shared_weights(void **state) {
  int which = many(*state, SINGLE_SHARED, FEW_SHARED, SHARED);
  clb_tensor_product_desc desc = describe(*state, which);
  desc.shared_weights = 0;
  test_product *shared = get(*state, which);
  test_product *p = product_create(shared->ctx, &desc, dense_golden_3j);
  for (int pass = CLB_FORWARD; pass <= last_pass(*state); pass++) {
    arrays one = arrays_create(shared, N, 15), each = arrays_create(p, N, 15);
    for (int k = 0; k < n_inputs[pass]; k++)
      for (int r = 0, width = p->width[input_like[k]]; r < N; r++)
        memcpy(each.in[k] + r * width, one.in[k] + (input_like[k] == LIKE_W ? 0 : r * width),
               sizeof(double) * (size_t)width);
    run_pass(shared, pass, &one);
    run_pass(p, pass, &each);
    for (int o = 0; o < n_outputs[pass]; o++) {
      int width = p->width[output_like(pass, o)], together = output_like(pass, o) == LIKE_W ? N : 1;
      for (int j = 0; j < width * N / together; j++) {
        double sum = 0, size = 1;
        for (int r = 0; r < together; r++)
          sum += each.out[o][r * width + j], size += fabs(each.out[o][r * width + j]);
        assert_true(fabs(one.out[o][j] - sum) <= 1e-13 * size);
      }
    }
    arrays_destroy(&one);
    arrays_destroy(&each);
  }
  product_destroy(p);
}

/* ---- matrix products ---- */

static int last_of(const device *d) {
  return many(d, CLB_FORWARD, CLB_DOUBLE_BACKWARD, CLB_TRIPLE_BACKWARD);
}

static void passes_agree(device *d, const clb_tensor_product_desc *desc, int rows) {
  test_product *p = product_create(context_of(d), desc, dense_golden_3j);
  for (int pass = CLB_FORWARD; pass <= last_of(d); pass++) run_and_compare(p, pass, rows, 30);
  product_destroy(p);
}

static void mixing(void **state) {
  const int rows[] = {1, rows_on(*state)};
  test_product *p = get(*state, MIXING);
  for (int pass = CLB_FORWARD; pass <= last_of(*state); pass++)
    for (int t = 0; t < 2; t++) run_twice(p, pass, rows[t], 31);
}

/* Other layouts and types, results added to the outputs. */
static void mixing_variants(void **state) {
  for (int i = 0; i < many(*state, 0, 1, 6); i++) {
    clb_tensor_product_desc desc = describe(*state, MIXING);
    desc.accumulate = i != 1;
    desc.layout_x = i % 2 ? CLB_MUL_IR : CLB_IR_MUL;
    desc.layout_y = i % 3 ? CLB_MUL_IR : CLB_IR_MUL;
    if (i == 2) desc.layout_z = CLB_MUL_IR;
    if (i >= 3)
      desc.storage = (const clb_dtype[]){CLB_F32, CLB_F32, CLB_BF16}[i - 3],
      desc.arithmetic = i == 4 ? CLB_F64 : CLB_F32;
    passes_agree(*state, &desc, i ? 5 : rows_on(*state));
  }
}

/* Sets of gradients and of incoming gradients; one op for all passes. */
static void mixing_subsets(void **state) {
  for (unsigned i = 1; i < 16; i++) {
    clb_tensor_product_desc desc = describe(*state, MIXING);
    desc.gradients = i;
    desc.incoming = (i * 5 + 2) % 8;
    test_product *p = product_create(context_of(*state), &desc, dense_golden_3j);
    p->together = 1;
    for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
      arrays a = arrays_create(p, 3, 32);
      for (int k = 4; k < 7; k++)
        if (!reads(p, k)) memset(a.in[k], 0, sizeof(double) * count_like(p, input_like[k], 3));
      run_pass(p, pass, &a);
      compare(p, pass, &a, NULL);
      arrays_destroy(&a);
    }
    product_destroy(p);
  }
}

/* Rows by number, padded; the weights' row at an offset. */
static void mixing_rows(void **state) {
  enum { OFFSET = 4, PAD = 3, TABLE = 7 };
  const int n = rows_on(*state);
  clb_tensor_product_desc desc = describe(*state, MIXING);
  test_product *plain = get(*state, MIXING);
  desc.indexed = CLB_OPERAND_X | CLB_OPERAND_Y;
  test_product *p = product_create(plain->ctx, &desc, dense_golden_3j);
  for (int pass = CLB_FORWARD; pass <= last_of(*state); pass++) {
    arrays want = arrays_create(p, n, 33);
    operands o = {0};
    for (int k = 0; k < n_inputs[pass]; k++) {
      int width = p->width[input_like[k]], rows = rows_like(p, input_like[k], n), indexed = k < 2;
      int32_t index[N];
      for (int r = 0; r < n && indexed; r++) { /* the first rows are the table */
        index[r] = r < TABLE ? r : (r * 3 + k + r / 10) % TABLE;
        memcpy(want.in[k] + r * width, want.in[k] + index[r] * width,
               sizeof(double) * (size_t)width);
      }
      o.in[k] = lay_out(p, want.in[k], indexed ? TABLE : rows, width, OFFSET + k, width + PAD);
      if (!indexed) continue;
      OK(p->ctx, clb_buffer_create(p->ctx, sizeof index, &o.in[k].index));
      OK(p->ctx, clb_buffer_write(o.in[k].index, 0, index, sizeof index));
    }
    for (int k = 0; k < n_outputs[pass]; k++) {
      int like = output_like(pass, k);
      o.out[k] =
          lay_out(p, NULL, rows_like(p, like, n), p->width[like], OFFSET + k, p->width[like] + PAD);
    }
    OK(p->ctx, call(p, pass, n, &o));
    for (int k = 0; k < n_outputs[pass]; k++) {
      int like = output_like(pass, k), width = p->width[like], stride = width + PAD,
          rows = rows_like(p, like, n), all = OFFSET + k + rows * stride + width;
      double *got = read_buffer(p, o.out[k].buffer, (size_t)all);
      for (int j = 0; j < all; j++) {
        int r = (j - OFFSET - k) / stride, c = (j - OFFSET - k) % stride;
        if (j >= OFFSET + k && r < rows && c < width) want.out[k][r * width + c] = got[j];
        else assert_true(isnan(got[j]));
      }
      free(got);
    }
    compare(plain, pass, &want, NULL);
    operands_destroy(&o);
    arrays_destroy(&want);
  }
  product_destroy(p);
}

int main(void) {
  static const device_test tests[] = {{"no_rows", no_rows, EVERYWHERE},
                                      {"equal_rows", shared_weights, EVERYWHERE},
                                      {"mixing", mixing, EVERYWHERE},
                                      {"mixing_variants", mixing_variants, EVERYWHERE},
                                      {"mixing_subsets", mixing_subsets, WHERE_THOROUGH},
                                      {"mixing_rows", mixing_rows, EVERYWHERE}};
  return run_on_devices("product_shared", tests, sizeof tests / sizeof *tests);
}
