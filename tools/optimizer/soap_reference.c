/* tools/optimizer/soap_reference.c - a step of SOAP on one matrix in float64, of which the side of
   no more than LONGEST numbers is rotated, or none. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/optimizer/optimizer_tool.h"

enum { LONGEST = SOAP_LONGEST };

/* Rows of q become eigenvectors of the symmetric a, which is overwritten, by rotations. */
static void eigenvectors(double a[LONGEST][LONGEST], int64_t n, double q[LONGEST][LONGEST]) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) q[i][j] = i == j;
  for (int sweep = 0; sweep < 20; sweep++)
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = i + 1; j < n; j++) {
        const double angle = 0.5 * atan2(2 * a[i][j], a[i][i] - a[j][j]), c = cos(angle),
                     s = sin(angle);
        for (int64_t k = 0; k < n; k++) {
          const double x = a[i][k], y = q[i][k];
          a[i][k] = c * x + s * a[j][k], a[j][k] = c * a[j][k] - s * x;
          q[i][k] = c * y + s * q[j][k], q[j][k] = c * q[j][k] - s * y;
        }
        for (int64_t k = 0; k < n; k++) {
          const double x = a[k][i];
          a[k][i] = c * x + s * a[k][j], a[k][j] = c * a[k][j] - s * x;
        }
      }
}

static void sort_rows(const double *size, int64_t n, double q[LONGEST][LONGEST]) {
  double sorted[LONGEST][LONGEST];
  for (int64_t i = 0; i < n; i++) {
    int64_t rank = 0;
    for (int64_t j = 0; j < n; j++) rank += size[j] > size[i];
    memcpy(sorted[rank], q[i], sizeof sorted[rank]);
  }
  memcpy(q, sorted, sizeof sorted);
}

/* One power iteration, and rows made orthonormal, twice. */
static void follow(double sum[LONGEST][LONGEST], int64_t n, double q[LONGEST][LONGEST]) {
  double s[LONGEST][LONGEST] = {{0}};
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t k = 0; k < n; k++) s[i][j] += q[i][k] * sum[k][j];
  for (int64_t i = 0; i < n; i++)
    for (int again = 0; again < 2; again++) {
      double size = 0;
      for (int64_t j = 0; j < i; j++) {
        double d = 0;
        for (int64_t k = 0; k < n; k++) d += s[i][k] * s[j][k];
        for (int64_t k = 0; k < n; k++) s[i][k] -= d * s[j][k];
      }
      for (int64_t k = 0; k < n; k++) size += s[i][k] * s[i][k];
      for (int64_t k = 0; k < n; k++) s[i][k] /= sqrt(size);
    }
  memcpy(q, s, sizeof s);
}

/* y = x turned along the side, or back; length: of the other side. */
static void turn(double q[LONGEST][LONGEST], int64_t n, int64_t length, int64_t step, int64_t other,
                 bool back, double *x) {
  for (int64_t a = 0; a < length; a++) {
    double y[LONGEST] = {0};
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) y[i] += (back ? q[j][i] : q[i][j]) * x[a * other + j * step];
    for (int64_t i = 0; i < n; i++) x[a * other + i * step] = y[i];
  }
}

static void first_basis(soap_side *side, int64_t n) {
  double a[LONGEST][LONGEST], size[LONGEST];
  memcpy(a, side->sum, sizeof a);
  eigenvectors(a, n, side->basis);
  for (int64_t i = 0; i < n; i++) size[i] = a[i][i];
  sort_rows(size, n, side->basis);
}

void reference_soap(const clb_optimizer_group *g, int step, int64_t rows, int64_t columns,
                    const double *gradient, soap_side *side, double *m, double *v, double *p) {
  const double b = 0.95, epsilon = 1e-8, k = step - 1;
  const bool left = rows <= columns;
  const int64_t n = left ? rows : columns, length = left ? columns : rows, all = rows * columns,
                along = left ? columns : 1, other = left ? 1 : columns;
  const bool turns = rows > 1 && columns > 1 && n <= LONGEST;
  double *x = allocate((size_t)all + 1, sizeof *x), *mean = allocate((size_t)all + 1, sizeof *mean);
  for (int64_t i = 0; i < all && step > 1; i++) {
    x[i] = gradient[i];
    mean[i] = m[i] = b * m[i] + (1 - b) * gradient[i];
  }
  if (turns) turn(side->basis, n, length, along, other, false, x);
  if (turns) turn(side->basis, n, length, along, other, false, mean);
  for (int64_t i = 0; i < all && step > 1; i++) {
    v[i] = b * v[i] + (1 - b) * x[i] * x[i];
    mean[i] /= sqrt(v[i]) + epsilon;
  }
  if (turns) turn(side->basis, n, length, along, other, true, mean);
  for (int64_t i = 0; i < all && step > 1; i++)
    p[i] = (p[i] - g->lr * sqrt(1 - pow(b, k)) / (1 - pow(b, k)) * mean[i]) *
           (1 - g->lr * g->weight_decay);
  for (int64_t i = 0; i < n && turns; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t a = 0; a < length; a++)
        sum += gradient[a * other + i * along] * gradient[a * other + j * along];
      side->sum[i][j] = b * side->sum[i][j] + (1 - b) * sum;
    }
  if (turns && step == 1) first_basis(side, n);
  else if (turns && (step - 1) % 10 == 0) follow(side->sum, n, side->basis);
  free(x);
  free(mean);
}
