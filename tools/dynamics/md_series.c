/* tools/dynamics/md_series.c - means over time, and the drift of the conserved energy. */
#include "tools/dynamics/md_series.h"

#include <math.h>
#include <string.h>

static void halve(md_series *s) {
  s->n /= 2;
  s->per *= 2;
  for (int i = 0; i < s->n; i++)
    for (int k = 0; k < SERIES_VALUES; k++)
      s->mean[i][k] = (s->mean[2 * i][k] + s->mean[2 * i + 1][k]) / 2;
}

void series_add(md_series *s, const double values[SERIES_VALUES]) {
  if (!s->per) s->per = 1;
  if (s->n == SERIES_ROOM)
    halve(s); /* at this point no sum has begun, so means cover consecutive steps */
  for (int k = 0; k < SERIES_VALUES; k++) s->sum[k] += values[k];
  if (++s->filled < s->per) return;
  for (int k = 0; k < SERIES_VALUES; k++) s->mean[s->n][k] = s->sum[k] / (double)s->per;
  s->n++;
  s->filled = 0;
  memset(s->sum, 0, sizeof s->sum);
}

/* Relative to the first, so that large energies lose no digits. */
static double conserved(const md_series *s, int i) {
  return s->mean[i][SERIES_CONSERVED] - s->mean[0][SERIES_CONSERVED];
}

md_drift series_drift(const md_series *s) {
  const int n = s->n, blocks = n < 20 ? n : 10;
  double t = 0, e = 0, tt = 0, te = 0, square = 0, block = 0;
  if (n < 3) return (md_drift){NAN, NAN};
  for (int i = 0; i < n; i++) {
    t += s->mean[i][SERIES_TIME] / n;
    e += conserved(s, i) / n;
  }
  for (int i = 0; i < n; i++) {
    const double x = s->mean[i][SERIES_TIME] - t;
    tt += x * x;
    te += x * (conserved(s, i) - e);
  }
  const double slope = te / tt;
  for (int i = 0; i < n; i++) {
    const double x = s->mean[i][SERIES_TIME] - t;
    block += x * (conserved(s, i) - e - slope * x);
    if ((int64_t)(i + 1) * blocks / n == (int64_t)i * blocks / n) continue;
    square += block * block;
    block = 0;
  }
  return (md_drift){slope, sqrt(square * blocks / (blocks - 2)) / tt};
}
