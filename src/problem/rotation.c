/* src/problem/rotation.c - how real spherical harmonics turn with the frame. */
#include "src/problem/rotation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/problem/wigner.h"

enum { ORDERS = 2 * CLB_MAX_ROTATED_L + 1 };

/* C[i][axis][k] of the symbol (l, 1, l), whose matrices are all generators times one number. */
static double symbol_at(const double *C, int n, int i, int axis, int k) {
  return C[(i * 3 + axis) * n + k];
}

/* That number follows from J_x J_y - J_y J_x = J_z, at the symbol's largest element of z. */
void clb_rotation_generator(int l, int axis, double *J) {
  static const int z = 2;
  double C[ORDERS * 3 * ORDERS], commutator = 0;
  int n = 2 * l + 1, row = 0, column = 0;
  clb_wigner_3j(l, 1, l, C);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++)
      if (fabs(symbol_at(C, n, i, z, k)) > fabs(symbol_at(C, n, row, z, column)))
        row = i, column = k;
  for (int j = 0; j < n; j++)
    commutator += symbol_at(C, n, row, 0, j) * symbol_at(C, n, j, 1, column) -
                  symbol_at(C, n, row, 1, j) * symbol_at(C, n, j, 0, column);
  double by = symbol_at(C, n, row, z, column) / commutator;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) J[i * n + k] = by * symbol_at(C, n, i, axis, k);
}

static void multiply(int n, const long double *a, const long double *b, long double *out) {
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) {
      long double sum = 0;
      for (int j = 0; j < n; j++) sum += a[i * n + j] * b[j * n + k];
      out[i * n + k] = sum;
    }
}

/* exp(t J) of an angle below 1: a Taylor series at t / 2^HALVINGS, squared as often.  work: two
   matrices. */
static void exponential(int n, const double *J, long double t, long double *out,
                        long double *work) {
  enum { HALVINGS = 8, TERMS = 12 };
  long double *next = work, *term = work + n * n;
  for (int i = 0; i < n * n; i++) out[i] = term[i] = i % (n + 1) == 0;
  for (int q = 1; q <= TERMS; q++) {
    for (int i = 0; i < n; i++)
      for (int k = 0; k < n; k++) {
        long double sum = 0;
        for (int j = 0; j < n; j++) sum += term[i * n + j] * J[j * n + k];
        next[i * n + k] = sum * t / (1 << HALVINGS) / q;
      }
    memcpy(term, next, sizeof *term * (size_t)(n * n));
    for (int i = 0; i < n * n; i++) out[i] += term[i];
  }
  for (int q = 0; q < HALVINGS; q++) {
    multiply(n, out, out, next);
    memcpy(out, next, sizeof *out * (size_t)(n * n));
  }
}

/* The mean of D cos(m t) and D sin(m t) over equal steps of t, which is exact for so few waves. */
bool clb_rotation_series(int l, double *cosine, double *sine) {
  const int n = 2 * l + 1, steps = 2 * l + 3, size = n * n;
  const long double step = 2 * acosl(-1) / steps;
  double J[ORDERS * ORDERS];
  long double *all = calloc((size_t)(4 + 2 * (l + 1)) * (size_t)size, sizeof *all), *turn = all,
              *D = all + size, *work = all + 2 * size, *sum = all + 4 * size;
  if (!all) return false;
  clb_rotation_generator(l, 0, J);
  exponential(n, J, -step, turn, work);
  for (int i = 0; i < size; i++) D[i] = i % (n + 1) == 0;
  for (int s = 0; s < steps; s++) {
    for (int m = 0; m <= l; m++)
      for (int i = 0; i < size; i++) {
        sum[2 * m * size + i] += D[i] * cosl(m * s * step);
        sum[(2 * m + 1) * size + i] += D[i] * sinl(m * s * step);
      }
    multiply(n, D, turn, work);
    memcpy(D, work, sizeof *D * (size_t)size);
  }
  for (int m = 0; m <= l; m++)
    for (int i = 0; i < size; i++) {
      long double c = sum[2 * m * size + i] * (m ? 2 : 1) / steps,
                  s = sum[(2 * m + 1) * size + i] * 2 / steps;
      cosine[m * size + i] = fabsl(c) < 1e-12L ? 0 : (double)c;
      sine[m * size + i] = fabsl(s) < 1e-12L ? 0 : (double)s;
    }
  free(all);
  return true;
}
