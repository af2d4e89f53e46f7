/* wigner.c - Wigner 3j symbols, from exact integers.

   Racah's formula for <l1 m1 l2 m2 | l3 m3>, with (l1+l2-l3)! (l3+l1-l2)! (l3-l1+l2)! multiplied in, is
     S / sqrt(C(2 l1, l1+m1) C(2 l2, l2+m2) C(2 l3, l3+m3))  times a positive number that no m enters,
     S = sum_k (-1)^k C(l1+l2-l3, k) C(l3+l1-l2, l1-m1-k) C(l3-l1+l2, l2+m2-k),
   where |S| < 2^(l1+l2+l3) fits in 64 bits.  The number is fixed by the norm. */
#include "wigner.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int64_t choose(int n, int k) {
  if (k < 0 || k > n) return 0;
  int64_t c = 1;
  for (int i = 1; i <= k; i++) c = c * (n - k + i) / i; /* C(n-k+i, i): exact, and below 2^63 for n <= 60 */
  return c;
}

static long double clebsch_gordan(int l1, int m1, int l2, int m2, int l3, int m3) {
  int64_t sum = 0;
  for (int k = 0; k <= l1 + l2 - l3; k++)
    sum += (k & 1 ? -1 : 1) * choose(l1 + l2 - l3, k) * choose(l3 + l1 - l2, l1 - m1 - k) * choose(l3 - l1 + l2, l2 + m2 - k);
  return (long double)sum / sqrtl((long double)choose(2 * l1, l1 + m1) * (long double)choose(2 * l2, l2 + m2) * (long double)choose(2 * l3, l3 + m3));
}

/* Row m of the complex-to-real matrix times (-i)^l has entries i^power scale in columns l + |m| and l - |m|. */
static int power(int l, int m, int column) {
  int p = m < 0 ? (column > l ? 0 : 3) : m == 0 ? 0 : 2 * m + (column < l);
  return (p + 3 * l) & 3;
}

void clb_wigner_3j(int l1, int l2, int l3, double *C) {
  int n1 = 2 * l1 + 1, n2 = 2 * l2 + 1, n3 = 2 * l3 + 1;
  memset(C, 0, sizeof *C * (size_t)(n1 * n2 * n3));
  if (l3 < l1 - l2 || l3 < l2 - l1 || l3 > l1 + l2) return;
  for (int m1 = -l1; m1 <= l1; m1++)
    for (int m2 = -l2; m2 <= l2; m2++) {
      int m3 = m1 + m2;
      if (m3 < -l3 || m3 > l3) continue;
      long double g = clebsch_gordan(l1, m1, l2, m2, l3, m3) * sqrtl((long double)((m1 ? 1 : 2) * (m2 ? 1 : 2) * (m3 ? 1 : 2)));
      int s1 = abs(m1), s2 = abs(m2), s3 = abs(m3); /* columns l - |m| and l + |m|, once where m = 0 */
      for (int a = l1 - s1; a <= l1 + s1; a += s1 ? 2 * s1 : 1)
        for (int b = l2 - s2; b <= l2 + s2; b += s2 ? 2 * s2 : 1)
          for (int c = l3 - s3; c <= l3 + s3; c += s3 ? 2 * s3 : 1) {
            int p = (power(l1, m1, a) + power(l2, m2, b) - power(l3, m3, c)) & 3;
            if (p == 0) C[(a * n2 + b) * n3 + c] += (double)g;
            if (p == 2) C[(a * n2 + b) * n3 + c] -= (double)g;
          }
    }
  long double norm = 0;
  for (int i = 0; i < n1 * n2 * n3; i++) norm += (long double)C[i] * C[i];
  for (int i = 0; i < n1 * n2 * n3; i++) C[i] = (double)(C[i] / sqrtl(norm));
}
