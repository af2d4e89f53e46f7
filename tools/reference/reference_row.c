/* tools/reference/reference_row.c - one row of the operands of a pass of an op that makes z of x,
   or of x and w. */
#include "tools/reference/reference_row.h"

#include <stddef.h>
#include <string.h>

static double *moved(double *v, int64_t by) { return v ? v + by : NULL; }

reference_row reference_row_at(clb_pass pass, int has_w, reference_place width, reference_place row,
                               double *const *values, double *const *wanted, double *const *scale) {
  static const char *const passes[] = {"xwZ", "xwgXW", "xwgacXWZ"};
  const int64_t at_x = width.x * row.x, at_w = width.w * row.w, at_z = width.z * row.z;
  reference_row r = {0};
  int i = 0;
  for (const char *p = passes[pass]; *p; p++) {
    if (!has_w && (*p == 'w' || *p == 'c' || *p == 'W')) continue;
    switch (*p) {
      case 'x': r.x = moved(values[i], at_x); break;
      case 'w': r.w = moved(values[i], at_w); break;
      case 'g': r.g = moved(values[i], at_z); break;
      case 'a': r.a = moved(values[i], at_x); break;
      case 'c': r.c = moved(values[i], at_w); break;
      case 'X': r.of_x = (reference_result){moved(wanted[i], at_x), moved(scale[i], at_x)}; break;
      case 'W': r.of_w = (reference_result){moved(wanted[i], at_w), moved(scale[i], at_w)}; break;
      default: r.of_z = (reference_result){moved(wanted[i], at_z), moved(scale[i], at_z)};
    }
    i++;
  }
  return r;
}

static void zero(reference_result r, int64_t n) {
  if (r.v) memset(r.v, 0, sizeof *r.v * (size_t)n);
  if (r.scale) memset(r.scale, 0, sizeof *r.scale * (size_t)n);
}

void reference_zero(clb_pass pass, int has_w, reference_place width, reference_place rows,
                    double *const *wanted, double *const *scale) {
  const reference_row r =
      reference_row_at(pass, has_w, width, (reference_place){0, 0, 0}, wanted, wanted, scale);
  zero(r.of_x, width.x * rows.x);
  zero(r.of_w, width.w * rows.w);
  zero(r.of_z, width.z * rows.z);
}

void reference_put(reference_result r, int64_t i, double value, double size) {
  if (r.v) r.v[i] = value;
  if (r.scale) r.scale[i] = size;
}

void reference_add(reference_result r, int64_t i, double value, double size) {
  if (r.v) r.v[i] += value;
  if (r.scale) r.scale[i] += size;
}
