/* tests/ops/layers/layer_rows.h - for tests of kernels/layers/host/layers.h: rows of numbers with
   guard elements around them, and comparisons. */
#ifndef CLB_TESTS_OPS_LAYERS_LAYER_ROWS_H
#define CLB_TESTS_OPS_LAYERS_LAYER_ROWS_H

#include "tests/fakes/simulated_devices.h"

#include "kernels/layers/host/layers.h"

/* ---- rows ---- */

typedef struct {
  array a;
  int64_t n, columns, offset, stride;
  bool dense;
} table;

/* NaN everywhere. */
static inline table make_table(clb_dtype type, int64_t n, int64_t columns, bool dense) {
  table t = {.n = n,
             .columns = columns,
             .offset = dense ? 0 : 3,
             .stride = dense ? columns : columns + 2,
             .dense = dense};
  t.a = make(type, t.offset + n * t.stride + 1);
  return t;
}

static inline double at(const table *t, const void *numbers, int64_t row, int64_t column) {
  return number_at(t->a.type, numbers, t->offset + row * t->stride + column);
}

/* Numbers in [-size, size), on the device too. */
static inline table random_table_around(clb_context *ctx, clb_dtype type, int64_t n,
                                        int64_t columns, bool dense, double middle, double size,
                                        uint64_t *seed) {
  table t = make_table(type, n, columns, dense);
  for (int64_t i = 0; i < n * columns; i++)
    put(type, t.a.host, t.offset + i / columns * t.stride + i % columns,
        middle + size * test_random(seed));
  upload(ctx, &t.a);
  return t;
}
static inline table random_table(clb_context *ctx, clb_dtype type, int64_t n, int64_t columns,
                                 bool dense, double size, uint64_t *seed) {
  return random_table_around(ctx, type, n, columns, dense, 0, size, seed);
}

/* Where results go: NaN, or numbers to which they are added. */
static inline table result_table(clb_context *ctx, clb_dtype type, int64_t n, int64_t columns,
                                 bool dense, bool add, uint64_t *seed) {
  if (add) return random_table(ctx, type, n, columns, dense, 1, seed);
  table t = make_table(type, n, columns, dense);
  upload(ctx, &t.a);
  return t;
}

static inline clb_rows rows_of(const table *t) {
  return (clb_rows){t->a.buffer, t->offset, t->dense ? CLB_DENSE : t->stride, NULL};
}

static inline double *plain(const table *t) {
  double *x = malloc(sizeof *x * (size_t)(t->n * t->columns + 1));
  for (int64_t i = 0; i < t->n * t->columns; i++)
    x[i] = at(t, t->a.host, i / t->columns, i % t->columns);
  return x;
}

/* The rows equal `must` (plus the earlier contents) within `error` times (1 + |must|), and nothing
   else was written. */
static inline void expect_rows(clb_context *ctx, const char *name, const table *t, bool add,
                               const double *must, double error) {
  char *got = download(ctx, &t->a), *host = t->a.host;
  int64_t bytes = (int64_t)dtype_bytes(t->a.type);
  for (int64_t i = 0; i < t->a.n; i++) {
    int64_t row = t->stride ? (i - t->offset) / t->stride : 0,
            column = i - t->offset - row * t->stride;
    if (i < t->offset || row >= t->n || column >= t->columns) {
      if (memcmp(got + i * bytes, host + i * bytes, (size_t)bytes))
        fail_msg("%s: element %lld, which is nobody's, was written", name, (long long)i);
      continue;
    }
    double want = must[row * t->columns + column] + (add ? number_at(t->a.type, host, i) : 0),
           is = number_at(t->a.type, got, i);
    if (!(fabs(is - want) <= error * (1 + fabs(want))))
      fail_msg("%s: row %lld of %lld, column %lld of %lld: %.17g, must be %.17g", name,
               (long long)row, (long long)t->n, (long long)column, (long long)t->columns, is, want);
  }
  free(got);
}

/* The same bits; `second` is gone afterwards. */
static inline void expect_same(clb_context *ctx, const table *first, table *second) {
  void *a = download(ctx, &first->a), *b = download(ctx, &second->a);
  assert_memory_equal(a, b, (size_t)first->a.n * dtype_bytes(first->a.type));
  free(a);
  free(b);
  drop(&second->a);
}

/* Random numbers 0 ... n_species - 1 on the device, two others before them; *host: malloc'ed,
   without those. */
static inline clb_rows random_species(clb_context *ctx, int64_t n, int n_species, uint64_t *seed,
                                      int32_t **host) {
  int32_t *all = malloc(sizeof *all * (size_t)(n + 2));
  clb_rows r = {.offset = 2};
  all[0] = all[1] = -1000000;
  for (int64_t i = 0; i < n; i++) all[i + 2] = (int32_t)pick(seed, n_species);
  OK(ctx, clb_buffer_create(ctx, (uint64_t)(n + 2) * 4, &r.buffer));
  OK(ctx, clb_buffer_write(r.buffer, 0, all, (uint64_t)(n + 2) * 4));
  memmove(all, all + 2, (size_t)n * 4);
  *host = all;
  return r;
}

/* ---- references ---- */

/* A function of one row. */
typedef void (*row_function)(const void *user, const double *x, double *out);

static inline double *apply(row_function f, const void *user, const double *x, int64_t n,
                            int64_t columns, int64_t columns_out) {
  double *out = calloc((size_t)(n * columns_out + 1), sizeof *out);
  for (int64_t i = 0; i < n; i++) f(user, x + i * columns, out + i * columns_out);
  return out;
}

/* The gradient of sum g f(x), by central differences of fourth order: good to about 1e-10. */
static inline double *differences(row_function f, const void *user, const double *x,
                                  const double *g, int64_t n, int64_t columns,
                                  int64_t columns_out) {
  static const double steps[] = {-4e-4, -2e-4, 2e-4, 4e-4}, weights[] = {1, -8, 8, -1};
  double *gradient = calloc((size_t)(n * columns + 1), sizeof *gradient),
         *moved = malloc(sizeof *moved * (size_t)(columns + 1)),
         *out = malloc(sizeof *out * (size_t)(columns_out + 1));
  for (int64_t i = 0; i < n * columns; i++) {
    int64_t row = i / columns;
    memcpy(moved, x + row * columns, sizeof *moved * (size_t)columns);
    for (int s = 0; s < 4; s++) {
      moved[i % columns] = x[i] + steps[s];
      f(user, moved, out);
      for (int64_t j = 0; j < columns_out; j++)
        gradient[i] += weights[s] * g[row * columns_out + j] * out[j] / (12 * 2e-4);
    }
  }
  free(moved);
  free(out);
  return gradient;
}

#endif
