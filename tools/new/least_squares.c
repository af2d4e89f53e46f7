/* tools/new/least_squares.c - normal equations, by Jacobi's rotations. */
#include <math.h>
#include <stdlib.h>

#include "tools/cli/tool.h"
#include "tools/new/label_statistics.h"

/* Rotates rows and columns p and q so that G[p][q] becomes 0; V gets the same rotation. */
static void rotate(int n, double *G, double *V, int p, int q) {
  const double a = G[p * n + q];
  if (a == 0) return;
  const double t = (G[q * n + q] - G[p * n + p]) / (2 * a),
               tangent = (t < 0 ? -1 : 1) / (fabs(t) + sqrt(1 + t * t)),
               c = 1 / sqrt(1 + tangent * tangent), s = c * tangent;
  for (int k = 0; k < n; k++) {
    const double x = G[k * n + p], y = G[k * n + q], v = V[k * n + p], w = V[k * n + q];
    G[k * n + p] = c * x - s * y, G[k * n + q] = s * x + c * y;
    V[k * n + p] = c * v - s * w, V[k * n + q] = s * v + c * w;
  }
  for (int k = 0; k < n; k++) {
    const double x = G[p * n + k], y = G[q * n + k];
    G[p * n + k] = c * x - s * y, G[q * n + k] = s * x + c * y;
  }
  G[p * n + q] = G[q * n + p] = 0;
}

void least_squares(int n, double *G, const double *b, double *x) {
  enum { SWEEPS = 40 };
  const double rank = 1e-12; /* eigenvalues below this part of the largest count as 0 */
  double *V = allocate((size_t)(n * n), sizeof *V), largest = 0;
  for (int i = 0; i < n; i++) V[i * n + i] = 1, x[i] = 0;
  for (int sweep = 0; sweep < SWEEPS; sweep++)
    for (int p = 0; p < n; p++)
      for (int q = p + 1; q < n; q++) rotate(n, G, V, p, q);
  for (int i = 0; i < n; i++) largest = fmax(largest, G[i * n + i]);
  for (int i = 0; i < n; i++) {
    double along = 0;
    if (!(G[i * n + i] > rank * largest)) continue;
    for (int k = 0; k < n; k++) along += V[k * n + i] * b[k];
    for (int k = 0; k < n; k++) x[k] += V[k * n + i] * along / G[i * n + i];
  }
  free(V);
}
