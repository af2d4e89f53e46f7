/* tools/relax/lbfgs.c - directions of search, by L-BFGS: Nocedal (1980). */
#include "tools/relax/lbfgs.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"

/* Sums side by side do not wait for each other. */
double lbfgs_dot(int64_t n, const double *a, const double *b) {
  enum { SUMS = 8 };
  double sum[SUMS] = {0}, all = 0;
  int64_t i = 0;
  for (; i + SUMS <= n; i += SUMS)
    for (int k = 0; k < SUMS; k++) sum[k] += a[i + k] * b[i + k];
  for (; i < n; i++) all += a[i] * b[i];
  for (int k = 0; k < SUMS; k++) all += sum[k];
  return all;
}

static void add(int64_t n, double by, const double *a, double *to) {
  for (int64_t i = 0; i < n; i++) to[i] += by * a[i];
}

/* Moves the oldest array to the front, or a new one. */
static double *front_of(double *array[LBFGS_STEPS], int64_t n) {
  double *first = array[LBFGS_STEPS - 1];
  if (!first) first = allocate((size_t)n, sizeof *first);
  memmove(array + 1, array, (LBFGS_STEPS - 1) * sizeof *array);
  return array[0] = first;
}

void lbfgs_learn(lbfgs *l, const double *step, const double *change) {
  const size_t bytes = (size_t)l->n * sizeof *step;
  const double curvature = lbfgs_dot(l->n, step, change);
  if (!(curvature > 0)) {
    l->known = 0;
    return;
  }
  memmove(l->curvature + 1, l->curvature, (LBFGS_STEPS - 1) * sizeof curvature);
  l->curvature[0] = curvature;
  memcpy(front_of(l->step, l->n), step, bytes);
  memcpy(front_of(l->change, l->n), change, bytes);
  if (l->known < LBFGS_STEPS) l->known++;
}

void lbfgs_direction(const lbfgs *l, double first, const double *gradient, double *direction) {
  double part[LBFGS_STEPS];
  for (int64_t i = 0; i < l->n; i++) direction[i] = -gradient[i];
  for (int k = 0; k < l->known; k++) {
    part[k] = lbfgs_dot(l->n, l->step[k], direction) / l->curvature[k];
    add(l->n, -part[k], l->change[k], direction);
  }
  if (l->known) first = l->curvature[0] / lbfgs_dot(l->n, l->change[0], l->change[0]);
  for (int64_t i = 0; i < l->n; i++) direction[i] *= first;
  for (int k = l->known; k-- > 0;) {
    const double now = lbfgs_dot(l->n, l->change[k], direction) / l->curvature[k];
    add(l->n, part[k] - now, l->step[k], direction);
  }
}

void lbfgs_free(lbfgs *l) {
  for (int k = 0; k < LBFGS_STEPS; k++) free(l->step[k]), free(l->change[k]);
}
