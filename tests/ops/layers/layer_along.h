/* tests/ops/layers/layer_along.h - for tests of derivatives along tangents, and of their
   gradients. */
#ifndef CLB_TESTS_OPS_LAYERS_LAYER_ALONG_H
#define CLB_TESTS_OPS_LAYERS_LAYER_ALONG_H

#include "tests/ops/layers/layer_functions.h"

/* The derivative of f along a, as good as `differences`. */
static inline void slope_along(row_function f, const void *user, const double *x, const double *a,
                               int64_t columns, int64_t columns_out, double *slope) {
  static const double steps[] = {-4e-4, -2e-4, 2e-4, 4e-4}, weights[] = {1, -8, 8, -1};
  double *moved = malloc(sizeof *moved * (size_t)(columns + 1)),
         *out = malloc(sizeof *out * (size_t)(columns_out + 1));
  memset(slope, 0, sizeof *slope * (size_t)columns_out);
  for (int s = 0; s < 4; s++) {
    for (int64_t i = 0; i < columns; i++) moved[i] = x[i] + steps[s] * a[i];
    f(user, moved, out);
    for (int64_t j = 0; j < columns_out; j++) slope[j] += weights[s] * out[j] / (12 * 2e-4);
  }
  free(moved);
  free(out);
}

/* The sum of the products of rows as they are on the device; *size: of their sizes. */
static inline double product_of(clb_context *ctx, const table *a, const table *b, double *size) {
  void *x = download(ctx, &a->a), *y = download(ctx, &b->a);
  double sum = 0;
  for (int64_t i = 0; i < a->n * a->columns; i++) {
    const int64_t row = i / a->columns, column = i % a->columns;
    const double product = at(a, x, row, column) * at(b, y, row, column);
    sum += product;
    *size += fabs(product);
  }
  free(x);
  free(y);
  return sum;
}

/* sum h . along = sum of the gradients from h times the tangents, to rounding. */
static inline void expect_adjoint(clb_context *ctx, const char *name, const table *const along[][2],
                                  int n_along, const table *const back[][2], int n_back) {
  double size = 0, left = 0, right = 0;
  for (int i = 0; i < n_along; i++) left += product_of(ctx, along[i][0], along[i][1], &size);
  for (int i = 0; i < n_back; i++) right += product_of(ctx, back[i][0], back[i][1], &size);
  const double error = along[0][0]->a.type == CLB_F64 ? 1e-14 : 1e-6;
  if (!(fabs(left - right) <= error * size))
    fail_msg("%s: %.17g along tangents, %.17g by gradients", name, left, right);
}

static inline void drop_tables(table *const *tables, int n) {
  for (int i = 0; i < n; i++) drop(&tables[i]->a);
}

#endif
