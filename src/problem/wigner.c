/* src/problem/wigner.c - Wigner 3j symbols, from exact integers.

   Racah's formula for <l1 m1 l2 m2 | l3 m3>, with (l1+l2-l3)! (l3+l1-l2)! (l3-l1+l2)! multiplied
   in, is S / sqrt(C(2 l1, l1+m1) C(2 l2, l2+m2) C(2 l3, l3+m3)) times a positive number that does
   not depend on the m, S = sum_k (-1)^k C(l1+l2-l3, k) C(l3+l1-l2, l1-m1-k) C(l3-l1+l2, l2+m2-k),
   where |S| < 2^(l1+l2+l3) fits in 64 bits. That number follows from the norm. */
#include "src/problem/wigner.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int64_t choose(int n, int k) {
  if (k < 0 || k > n) return 0;
  int64_t c = 1;
  for (int i = 1; i <= k; i++)
    c = c * (n - k + i) / i; /* C(n-k+i, i): exact, and below 2^63 for n <= 60 */
  return c;
}

static long double clebsch_gordan(int l1, int m1, int l2, int m2, int l3, int m3) {
  int64_t sum = 0;
  for (int k = 0; k <= l1 + l2 - l3; k++)
    sum += (k & 1 ? -1 : 1) * choose(l1 + l2 - l3, k) * choose(l3 + l1 - l2, l1 - m1 - k) *
           choose(l3 - l1 + l2, l2 + m2 - k);
  return (long double)sum /
         sqrtl((long double)choose(2 * l1, l1 + m1) * (long double)choose(2 * l2, l2 + m2) *
               (long double)choose(2 * l3, l3 + m3));
}

/* Row m of the complex-to-real matrix times (-i)^l has entries i^power * scale in columns l + |m|
   and l - |m|. */
static int power(int l, int m, int column) {
  int p = m < 0 ? (column > l ? 0 : 3) : m == 0 ? 0 : 2 * m + (column < l);
  return (p + 3 * l) & 3;
}

/* Entries in columns l - |m| ([0]) and l + |m| ([1]) for these |m|, before division by the norm: at
   most 2 x 2 x 2. */
static void make_block(const int l[3], const int s[3], double block[2][2][2]) {
  memset(block, 0, 8 * sizeof(double));
  for (int m1 = -s[0]; m1 <= s[0]; m1 += s[0] ? 2 * s[0] : 1)
    for (int m2 = -s[1]; m2 <= s[1]; m2 += s[1] ? 2 * s[1] : 1) {
      int m3 = m1 + m2;
      if (abs(m3) != s[2]) continue;
      long double g = clebsch_gordan(l[0], m1, l[1], m2, l[2], m3) *
                      sqrtl((long double)((m1 ? 1 : 2) * (m2 ? 1 : 2) * (m3 ? 1 : 2)));
      for (int a = 0; a <= (s[0] > 0); a++)
        for (int b = 0; b <= (s[1] > 0); b++)
          for (int c = 0; c <= (s[2] > 0); c++) {
            int p = (power(l[0], m1, l[0] + (2 * a - 1) * s[0]) +
                     power(l[1], m2, l[1] + (2 * b - 1) * s[1]) -
                     power(l[2], m3, l[2] + (2 * c - 1) * s[2])) &
                    3;
            if (p == 0) block[a][b][c] += (double)g;
            if (p == 2) block[a][b][c] -= (double)g;
          }
    }
}

/* C before division by the norm; C may be NULL. Returns the number of non-zero entries. */
static int make_blocks(int l1, int l2, int l3, double *C) {
  const int l[3] = {l1, l2, l3}, n2 = 2 * l2 + 1, n3 = 2 * l3 + 1;
  int n = 0;
  double block[2][2][2];
  if (l3 < l1 - l2 || l3 < l2 - l1 || l3 > l1 + l2) return 0;
  for (int s1 = 0; s1 <= l1; s1++)
    for (int s2 = 0; s2 <= l2; s2++)
      for (int s3 = abs(s1 - s2); s3 <= s1 + s2 && s3 <= l3;
           s3 += s1 && s2 ? 2 * (s1 < s2 ? s1 : s2) : 1) {
        make_block(l, (const int[3]){s1, s2, s3}, block);
        for (int i = 0; i < 8; i++) {
          const double value = block[i >> 2][i >> 1 & 1][i & 1];
          if (value == 0) continue;
          const int a = l1 + ((i >> 2) * 2 - 1) * s1, b = l2 + ((i >> 1 & 1) * 2 - 1) * s2,
                    c = l3 + ((i & 1) * 2 - 1) * s3;
          if (C) C[(a * n2 + b) * n3 + c] = value;
          n++;
        }
      }
  return n;
}

int clb_wigner_nonzeros(int l1, int l2, int l3) { return make_blocks(l1, l2, l3, NULL); }

void clb_wigner_3j(int l1, int l2, int l3, double *C) {
  const int n = (2 * l1 + 1) * (2 * l2 + 1) * (2 * l3 + 1);
  long double norm = 0;
  memset(C, 0, sizeof *C * (size_t)n);
  if (!make_blocks(l1, l2, l3, C)) return;
  for (int i = 0; i < n; i++) norm += (long double)C[i] * C[i];
  for (int i = 0; i < n; i++) C[i] = (double)(C[i] / sqrtl(norm));
}
