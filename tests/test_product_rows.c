/* test_product_rows.c - the rows that a tensor product reads and writes, and what of its derivatives is asked for, on every device that runs here. */
#define _GNU_SOURCE
#include "product_problems.h"

#include <sys/mman.h>

/* ---- numbers of rows ---- */

/* No row, one, some past a block: what plain sums say, and not a bit different when done again. */
static void numbers_of_rows(void **state) {
  static const int rows[] = {0, 1, 33, 65, 130}, which[] = {MIXED, WEIGHTLESS, MODES, SHARED, EDGES};
  for (size_t i = 0; i < sizeof which / sizeof *which; i++)
    for (int pass = CLB_FORWARD; pass < PASSES; pass++)
      for (size_t t = 0; t < sizeof rows / sizeof *rows; t++) {
        const test_product *p = get(*state, which[i]);
        if (rows[t] == 0 && p->desc.shared_weights) continue; /* see `no_rows` */
        arrays a = arrays_create(p, rows[t], 4), again = arrays_create(p, rows[t], 4);
        run_pass(p, pass, &a);
        compare(p, pass, &a, NULL);
        run_pass(p, pass, &again);
        same_bits(p, pass, &a, &again);
        arrays_destroy(&a);
        arrays_destroy(&again);
      }
}

/* A sum over no rows. */
static void no_rows(void **state) {
  const test_product *p = get(*state, SHARED);
  for (int pass = CLB_BACKWARD; pass < PASSES; pass++) {
    arrays a = arrays_create(p, 0, 4);
    run_pass(p, pass, &a);
    for (int j = 0; j < p->width[LIKE_W]; j++) assert_true(a.out[LIKE_W][j] == 0);
    arrays_destroy(&a);
  }
}

/* ---- strides ---- */

/* Rows `width` long, `stride` apart from `offset` on; n of them, NaN between. */
static clb_rows lay_out(const test_product *p, const double *from, int n, int width, int offset, int stride) {
  size_t all = (size_t)(offset + n * stride + width);
  double *x = numbers(all);
  for (size_t i = 0; i < all; i++) x[i] = NAN;
  for (int r = 0; r < n && from; r++) memcpy(x + offset + r * stride, from + r * width, sizeof(double) * (size_t)width);
  clb_rows rows = {.buffer = buffer_of(p, x, all, all), .offset = offset, .stride = stride};
  free(x);
  return rows;
}

/* Padded rows with an offset, and inputs that are one row for all: the bits of dense rows, and what lies between stays. */
static void strides(void **state) {
  enum { N = 35, PAD = 3, OFFSET = 5 };
  static const int which[] = {MIXED, MODES, SHARED};
  for (size_t i = 0; i < sizeof which / sizeof *which; i++)
    for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
      const test_product *p = get(*state, which[i]);
      arrays a = arrays_create(p, N, 8);
      operands o = {0};
      for (int k = 0; k < n_inputs[pass]; k++) {
        int width = p->width[input_like[k]], same = k % 2, n = rows_like(p, input_like[k], N);
        for (int r = 1; r < n && same; r++) memcpy(a.in[k] + r * width, a.in[k], sizeof(double) * (size_t)width);
        o.in[k] = lay_out(p, a.in[k], same ? 1 : n, width, OFFSET + k, same ? 0 : width + PAD + k);
      }
      for (int k = 0; k < n_outputs[pass]; k++) {
        int width = p->width[output_like(pass, k)];
        o.out[k] = lay_out(p, NULL, rows_like(p, output_like(pass, k), N), width, OFFSET + k, width + PAD + k);
      }
      OK(p->ctx, call(p->op, pass, N, &o));
      run_pass(p, pass, &a);
      for (int k = 0; k < n_outputs[pass]; k++) {
        int width = p->width[output_like(pass, k)], stride = width + PAD + k, n = rows_like(p, output_like(pass, k), N), all = OFFSET + k + n * stride + width;
        double *got = read_buffer(p, o.out[k].buffer, (size_t)all);
        for (int j = 0; j < all; j++) {
          int r = (j - OFFSET - k) / stride, c = (j - OFFSET - k) % stride;
          if (j >= OFFSET + k && r < n && c < width) assert_true(got[j] == a.out[k][r * width + c]);
          else assert_true(isnan(got[j]));
        }
        free(got);
      }
      operands_destroy(&o);
      arrays_destroy(&a);
    }
}

/* Every operand beyond 2^31 elements, rows 2^30 apart: sparse memory of the cpu devices; x by row numbers. */
static void far_offsets(void **state) {
  enum { N = 3 };
  const int64_t start = ((int64_t)1 << 31) + 5, stride = ((int64_t)1 << 30) + 1, room = 1 << 12;
  const size_t bytes = sizeof(float) * (size_t)(start + N * stride);
  static const int32_t order[N] = {2, 0, 1};
  clb_tensor_product_desc desc = describe(*state, MODES);
  desc.storage = desc.arithmetic = CLB_F32;
  desc.indexed = CLB_X;
  test_product *p = product_create(context_of(*state), &desc, dense_golden_3j);
  float *far = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert_true(far != MAP_FAILED);
  for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
    operands o = {0};
    arrays a = arrays_create(p, N, 9);
    clb_buffer *buffer = NULL, *index = NULL;
    OK(p->ctx, clb_buffer_wrap(p->ctx, CLB_POINTER, far, bytes, &buffer));
    OK(p->ctx, clb_buffer_create(p->ctx, sizeof order, &index));
    OK(p->ctx, clb_buffer_write(index, 0, order, sizeof order));
    for (int k = 0; k < n_inputs[pass] + n_outputs[pass]; k++) {
      int in = k < n_inputs[pass], like = in ? input_like[k] : output_like(pass, k - n_inputs[pass]), width = p->width[like];
      clb_rows rows = {.buffer = buffer, .offset = start + k * room, .stride = stride, .index = k == LIKE_X ? index : NULL};
      if (in) o.in[k] = rows;
      else o.out[k - n_inputs[pass]] = rows;
      assert_true(width <= room && start + k * room + (N - 1) * stride + width <= (int64_t)(bytes / sizeof(float)));
      for (int r = 0; r < N; r++)
        for (int j = 0; j < width; j++) far[rows.offset + (k == LIKE_X ? order[r] : r) * stride + j] = in ? (float)a.in[k][r * width + j] : NAN;
    }
    OK(p->ctx, call(p->op, pass, N, &o));
    OK(p->ctx, clb_wait(p->ctx));
    for (int k = 0; k < n_outputs[pass]; k++)
      for (int r = 0, width = p->width[output_like(pass, k)]; r < N; r++)
        for (int j = 0; j < width; j++) a.out[k][r * width + j] = far[o.out[k].offset + r * stride + j];
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
  } cases[] = {{MIXED, CLB_X}, {CHANNELS, CLB_X}, {MODES, CLB_X | CLB_Y | CLB_W}, {SHARED, CLB_X | CLB_Y}, {ONE_PATH, CLB_W}};
  for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
    clb_tensor_product_desc desc = describe(*state, cases[t].product);
    const test_product *plain = get(*state, cases[t].product);
    desc.indexed = cases[t].like;
    test_product *p = product_create(plain->ctx, &desc, dense_golden_3j);
    for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
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
          memcpy(gathered.in[k] + r * p->width[k], table + index[r] * p->width[k], sizeof(double) * (size_t)p->width[k]);
        }
        clb_buffer_destroy(&o.in[k].buffer);
        o.in[k] = lay_out(p, table, TABLE, p->width[k], OFFSET, p->width[k] + PAD);
        OK(p->ctx, clb_buffer_create(p->ctx, sizeof index, &o.in[k].index));
        OK(p->ctx, clb_buffer_write(o.in[k].index, 0, index, sizeof index));
        free(table);
      }
      OK(p->ctx, call(p->op, pass, N, &o));
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

/* ---- what is asked for ---- */

/* Each set of gradients: what is not in it is not touched, and needs no buffer. */
static void gradients(void **state) {
  enum { N = 34 };
  static const int which[] = {MIXED, MODES, SHARED};
  static const unsigned few[] = {CLB_X, CLB_Y, CLB_W, CLB_Z, CLB_X | CLB_W};
  int all = !strcmp(((const device *)*state)->name, "cpu:interpreter");
  for (int t = 0; t < 3; t++)
    for (unsigned i = 0; i < (all ? 15 : t ? 5 : 0); i++) {
      clb_tensor_product_desc desc = describe(*state, which[t]);
      desc.gradients = all ? i + 1 : few[i];
      if (desc.gradients == CLB_Z) desc.passes &= ~CLB_PASS_BIT(CLB_BACKWARD); /* which has none */
      test_product *p = product_create(context_of(*state), &desc, dense_golden_3j);
      for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
        if (!(desc.passes & CLB_PASS_BIT(pass))) continue;
        run_and_compare(p, pass, N, 12); /* looks at what is not in the set, too */
        arrays a = arrays_create(p, N, 12);
        operands o = operands_create(p, pass, &a);
        for (int k = 0; k < n_outputs[pass]; k++)
          if (!gives(p, pass, k)) clb_buffer_destroy(&o.out[k].buffer), o.out[k] = (clb_rows){0};
        OK(p->ctx, call(p->op, pass, N, &o));
        operands_take(p, pass, &o, &a);
        compare(p, pass, &a, NULL);
        operands_destroy(&o);
        arrays_destroy(&a);
      }
      product_destroy(p);
    }
}

/* An incoming gradient that there is not has no buffer, and is 0. */
static void incoming(void **state) {
  enum { N = 34 };
  static const int which[] = {MIXED, MODES, SHARED};
  int all = !strcmp(((const device *)*state)->name, "cpu:interpreter");
  for (int t = 0; t < 3; t++)
    for (unsigned set = 1; set < 7; set++) {
      if (!all && (t == 0 || set % 3)) continue;
      clb_tensor_product_desc desc = describe(*state, which[t]);
      desc.incoming = set;
      desc.passes = CLB_PASS_BIT(CLB_DOUBLE_BACKWARD) | CLB_PASS_BIT(CLB_TRIPLE_BACKWARD);
      test_product *p = product_create(context_of(*state), &desc, dense_golden_3j);
      for (int pass = CLB_DOUBLE_BACKWARD; pass < PASSES; pass++) {
        arrays a = arrays_create(p, N, 13), zeros = arrays_create(p, N, 13);
        for (int k = 4; k < 7; k++)
          if (!reads(p, k)) memset(zeros.in[k], 0, sizeof(double) * count_like(p, input_like[k], N));
        run_pass(p, pass, &a);
        for (int k = 0; k < n_outputs[pass]; k++) memcpy(zeros.out[k], a.out[k], sizeof(double) * count_like(p, output_like(pass, k), N));
        compare(p, pass, &zeros, NULL);
        arrays_destroy(&a);
        arrays_destroy(&zeros);
      }
      product_destroy(p);
    }
}

static void accumulate(void **state) {
  static const int which[] = {MIXED, MODES, SHARED};
  for (int t = 0; t < 3; t++) {
    clb_tensor_product_desc desc = describe(*state, which[t]);
    desc.accumulate = 1;
    test_product *p = product_create(context_of(*state), &desc, dense_golden_3j);
    for (int pass = CLB_FORWARD; pass < PASSES; pass++) run_and_compare(p, pass, 34, 14);
    product_destroy(p);
  }
}

/* One row of weights for all is as many equal rows, the gradients summed; the same bits each time. */
static void shared_weights(void **state) {
  enum { N = 70 };
  clb_tensor_product_desc desc = describe(*state, SHARED);
  desc.shared_weights = 0;
  const test_product *shared = get(*state, SHARED);
  test_product *p = product_create(shared->ctx, &desc, dense_golden_3j);
  for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
    arrays one = arrays_create(shared, N, 15), many = arrays_create(p, N, 15);
    for (int k = 0; k < n_inputs[pass]; k++)
      for (int r = 0, width = p->width[input_like[k]]; r < N; r++)
        memcpy(many.in[k] + r * width, one.in[k] + (input_like[k] == LIKE_W ? 0 : r * width), sizeof(double) * (size_t)width);
    run_pass(shared, pass, &one);
    run_pass(p, pass, &many);
    for (int o = 0; o < n_outputs[pass]; o++) {
      int width = p->width[output_like(pass, o)], together = output_like(pass, o) == LIKE_W ? N : 1;
      for (int j = 0; j < width * N / together; j++) {
        double sum = 0, size = 1;
        for (int r = 0; r < together; r++) sum += many.out[o][r * width + j], size += fabs(many.out[o][r * width + j]);
        assert_true(fabs(one.out[o][j] - sum) <= 1e-13 * size);
      }
    }
    arrays_destroy(&one);
    arrays_destroy(&many);
  }
  product_destroy(p);
}

int main(void) {
  static const device_test tests[] = {{"numbers_of_rows", numbers_of_rows, EVERYWHERE}, {"no_rows", no_rows, EVERYWHERE},
                                      {"strides", strides, EVERYWHERE},                 {"far_offsets", far_offsets, HOST},
                                      {"indexed", indexed, EVERYWHERE},                 {"gradients", gradients, EVERYWHERE},
                                      {"incoming", incoming, EVERYWHERE},               {"accumulate", accumulate, EVERYWHERE},
                                      {"shared_weights", shared_weights, EVERYWHERE}};
  return run_on_devices("product_rows", tests, sizeof tests / sizeof *tests);
}
