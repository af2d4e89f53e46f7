/* tests/ops/matrices/matrices_reference.h - Newton-Schulz and singular values in double precision,
   of row-major matrices. */
#ifndef CLB_TESTS_OPS_MATRICES_MATRICES_REFERENCE_H
#define CLB_TESTS_OPS_MATRICES_MATRICES_REFERENCE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* c[m][n] = a b; strides: from row to row and from column to column. */
typedef struct {
  const double *x;
  int64_t row, column;
} reference_matrix;

static inline void reference_product(reference_matrix a, reference_matrix b, int64_t m, int64_t n,
                                     int64_t k, double *c) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t l = 0; l < k; l++)
        sum += a.x[i * a.row + l * a.column] * b.x[l * b.row + j * b.column];
      c[i * n + j] = sum;
    }
}

/* x as a matrix of no more rows than columns. */
static inline void reference_newton_schulz(double *x, int64_t rows, int64_t columns, double floor,
                                           double epsilon) {
  const int64_t n = rows < columns ? rows : columns, larger = rows + columns - n;
  const bool tall = rows > columns;
  double *a = malloc((size_t)(n * n + 1) * sizeof *a), *b = malloc((size_t)(n * n + 1) * sizeof *b),
         *y = malloc((size_t)(n * larger + 1) * sizeof *y), norm = 0;
  const reference_matrix wide = {x, tall ? 1 : columns, tall ? columns : 1},
                         turned = {x, wide.column, wide.row};
  for (int64_t i = 0; i < n * larger; i++) norm += x[i] * x[i];
  for (int64_t i = 0; i < n * larger; i++) x[i] /= fmax(sqrt(norm), floor) + epsilon;
  for (int step = 0; step < 5; step++) {
    reference_product(wide, turned, n, n, larger, a);
    reference_product((reference_matrix){a, n, 1}, (reference_matrix){a, n, 1}, n, n, n, b);
    for (int64_t i = 0; i < n * n; i++) b[i] = -4.7750 * a[i] + 2.0315 * b[i];
    reference_product((reference_matrix){b, n, 1}, wide, n, larger, n, y);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < larger; j++) {
        double *to = &x[i * wide.row + j * wide.column];
        *to = 3.4445 * *to + y[i * larger + j];
      }
  }
  free(a);
  free(b);
  free(y);
}

/* By rotations of pairs of rows (or columns, of which there are fewer) until all are orthogonal;
   x is overwritten. */
static inline void reference_singular_values(double *x, int64_t rows, int64_t columns,
                                             double *least, double *most) {
  const bool tall = rows > columns;
  const int64_t n = tall ? columns : rows, m = tall ? rows : columns, down = tall ? 1 : columns,
                along = tall ? columns : 1;
  for (int sweep = 0; sweep < 12; sweep++)
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) {
        double pp = 0, qq = 0, pq = 0;
        for (int64_t i = 0; i < m; i++) {
          const double a = x[p * down + i * along], b = x[q * down + i * along];
          pp += a * a, qq += b * b, pq += a * b;
        }
        if (pq == 0) continue;
        const double angle = 0.5 * atan2(2 * pq, pp - qq), c = cos(angle), s = sin(angle);
        for (int64_t i = 0; i < m; i++) {
          double *a = &x[p * down + i * along], *b = &x[q * down + i * along], old = *a;
          *a = c * old + s * *b;
          *b = c * *b - s * old;
        }
      }
  *least = INFINITY, *most = 0;
  for (int64_t p = 0; p < n; p++) {
    double sum = 0;
    for (int64_t i = 0; i < m; i++) sum += pow(x[p * down + i * along], 2);
    *least = fmin(*least, sqrt(sum)), *most = fmax(*most, sqrt(sum));
  }
}

#endif
