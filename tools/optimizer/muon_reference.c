/* tools/optimizer/muon_reference.c - a step of Muon on one matrix in float64. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/optimizer/optimizer_tool.h"

/* x of rows x columns becomes 3.4445 x + (-4.7750 A + 2.0315 A A) x, A = x x^T. */
static void iterate(double *x, int64_t rows, int64_t columns) {
  double *a = allocate((size_t)(rows * rows), sizeof *a), *b = allocate((size_t)rows, sizeof *b),
         *y = allocate((size_t)(rows * columns), sizeof *y);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < rows; j++)
      for (int64_t k = 0; k < columns; k++)
        a[i * rows + j] += x[i * columns + k] * x[j * columns + k];
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < rows; j++) {
      b[j] = -4.7750 * a[i * rows + j];
      for (int64_t k = 0; k < rows; k++) b[j] += 2.0315 * a[i * rows + k] * a[k * rows + j];
    }
    for (int64_t j = 0; j < columns; j++) {
      y[i * columns + j] = 3.4445 * x[i * columns + j];
      for (int64_t k = 0; k < rows; k++) y[i * columns + j] += b[k] * x[k * columns + j];
    }
  }
  memcpy(x, y, (size_t)(rows * columns) * sizeof *x);
  free(a);
  free(b);
  free(y);
}

void reference_muon(const clb_optimizer_group *g, int step, int64_t rows, int64_t columns,
                    const double *gradient, double *m, double *p) {
  const double b = g->momentum == 0 ? 0.95 : g->momentum, r = (double)rows, c = (double)columns;
  const bool optax = g->muon == CLB_MUON_OPTAX, torch = g->muon >= CLB_MUON_TORCH,
             turned = rows > columns;
  const double factor = g->muon == CLB_MUON_TORCH_RMS ? 0.2 * sqrt(fmax(r, c))
                        : optax                       ? sqrt(fmax(1, c / r))
                                                      : sqrt(fmax(1, r / c));
  double *x = allocate((size_t)(rows * columns + 1), sizeof *x), norm = 0;
  for (int64_t i = 0; i < rows * columns; i++) {
    m[i] = b * m[i] + (1 - b) * gradient[i];
    const double u =
        optax ? b * m[i] / (1 - pow(b, step + 1)) + (1 - b) * gradient[i] / (1 - pow(b, step))
              : b * m[i] + (1 - b) * gradient[i];
    x[turned ? i % columns * rows + i / columns : i] = u;
    norm += u * u;
  }
  norm = torch ? fmax(sqrt(norm), 1e-7) : sqrt(norm) + (optax ? 1e-8 : 1e-7);
  for (int64_t i = 0; i < rows * columns; i++) x[i] /= norm;
  for (int i = 0; i < 5; i++) iterate(x, turned ? columns : rows, turned ? rows : columns);
  for (int64_t i = 0; i < rows * columns; i++)
    p[i] -= g->lr *
            (factor * x[turned ? i % columns * rows + i / columns : i] + g->weight_decay * p[i]);
  free(x);
}
