/* tools/serve/serve_engine.c - what computes for other programs, whatever their protocol. */
#include "tools/serve/serve_engine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool all_finite(const double *x, int64_t n) {
  bool finite = true;
  for (int64_t i = 0; i < n; i++) finite = finite && isfinite(x[i]);
  return finite;
}

bool serve_engine_compute(serve_engine *e, char *error, size_t size) {
  if (!e->compute(e, error, size)) return false;
  if (all_finite(&e->energy, 1) && all_finite(e->forces, 3 * e->n) &&
      all_finite(&e->virial[0][0], 9))
    return true;
  return snprintf(error, size, "the model's energy, forces or virial are not finite"), false;
}

bool serve_take_numbers(const void *from, int64_t n, double unit, double *x) {
  if (n) memcpy(x, from, (size_t)n * sizeof *x);
  for (int64_t i = 0; i < n; i++) x[i] *= unit;
  return all_finite(x, n);
}
