/* models/atoms/cells.c - the grid of a neighbour list. */
#include "models/atoms/cells.h"

#include <stdarg.h>
#include <stdio.h>

enum { MAX_BINS = 1 << 29 };
static const double max_images = 0x1p21,
                    max_steps = 0x1p29; /* limits on images of the cell around an atom, and on the
                                           steps of a search through them */
static const double max_length = 1e8; /* Angstrom, maximum length of a cell vector: shifting an atom
                                         by it keeps its position to 1.5e-8 */
static const double slack = 1e-6; /* in bins: tolerance for the rounding of positions in units of
                                     the cell */

clb_status clb_neighbours_fail(clb_neighbours *l, clb_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(l->error, sizeof l->error, format, args);
  va_end(args);
  l->built = false;
  l->n_edges = 0;
  return status;
}

/* ---- geometry ---- */

static void cross(const double a[3], const double b[3], double c[3]) {
  for (int k = 0; k < 3; k++)
    c[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
}

static void scale(double a[3], double by) {
  for (int k = 0; k < 3; k++) a[k] *= by;
}

/* Gives open directions unit vectors normal to all others. */
static void complete(double cell[3][3], const bool periodic[3]) {
  int set[3], n = 0;
  for (int d = 0; d < 3; d++)
    if (periodic[d]) set[n++] = d;
  for (int d = 0; d < 3; d++) {
    if (periodic[d]) continue;
    const double *a = n ? cell[set[0]] : NULL;
    int flat = d; /* the axis most perpendicular to a */
    for (int k = 0; a && k < 3; k++)
      if (!k || fabs(a[k]) < fabs(a[flat])) flat = k;
    double axis[3] = {flat == 0, flat == 1, flat == 2};
    if (a) cross(a, n == 2 ? cell[set[1]] : axis, cell[d]);
    else memcpy(cell[d], axis, sizeof axis);
    scale(cell[d], 1 / sqrt(clb_dot(cell[d], cell[d])));
    set[n++] = d;
  }
}

/* false: singular. */
static bool invert(double cell[3][3], double reciprocal[3][3]) {
  double unit[3][3], length[3];
  for (int d = 0; d < 3; d++) {
    length[d] = sqrt(clb_dot(cell[d], cell[d]));
    for (int k = 0; k < 3; k++) unit[d][k] = cell[d][k] / length[d];
  }
  for (int d = 0; d < 3; d++) cross(unit[(d + 1) % 3], unit[(d + 2) % 3], reciprocal[d]);
  double volume = clb_dot(unit[0], reciprocal[0]);
  for (int d = 0; d < 3; d++) scale(reciprocal[d], 1 / (volume * length[d]));
  return fabs(volume) > 1e-6 && isfinite(length[0] * length[1] * length[2]);
}

double clb_cell_volume(const double *cell) {
  double rows[3][3], reciprocal[3][3], normal[3];
  memcpy(rows, cell, sizeof rows);
  cross(rows[0], rows[1], normal);
  const double volume = fabs(clb_dot(normal, rows[2]));
  return invert(rows, reciprocal) && isfinite(volume) ? volume : 0;
}

static void heights_of(double reciprocal[3][3], double height[3]) {
  for (int d = 0; d < 3; d++) height[d] = 1 / sqrt(clb_dot(reciprocal[d], reciprocal[d]));
}

bool clb_cell_heights(const double *cell, const bool periodic[3], double height[3]) {
  double rows[3][3], reciprocal[3][3];
  memcpy(rows, cell, sizeof rows);
  complete(rows, periodic);
  const bool good = invert(rows, reciprocal);
  heights_of(reciprocal, height);
  return good;
}

static clb_status check_lengths(clb_neighbours *l) {
  for (int d = 0; d < 3; d++) {
    const double length = sqrt(clb_dot(l->cell[d], l->cell[d]));
    if (length > max_length)
      return clb_neighbours_fail(l, CLB_ERROR_ARGUMENT,
                                 "cell[%d] is %g Angstrom long: it must be at most %g", d, length,
                                 max_length);
  }
  return CLB_OK;
}

/* ---- the grid ---- */

/* Halves the longest direction until the number of slots is O(n), unless that left less than
   2 reach + 1 of them. */
static void fold(clb_cell_grid *g, int64_t n) {
  while ((double)g->slots[0] * g->slots[1] * g->slots[2] > 2 * (double)n + 1000) {
    int longest = g->slots[1] > g->slots[0];
    if (g->slots[2] > g->slots[longest]) longest = 2;
    const int32_t half = (g->slots[longest] + 1) / 2;
    if (half < 2 * g->reach[longest] + 1) break;
    g->slots[longest] = half;
  }
}

/* Bins of an open direction from low to high, a periodic one from 0 to 1. Users that go through
   columns of bins along the last direction at once have shorter ones there. */
static clb_status lay(clb_neighbours *l, const double low[3], const double high[3], double radius,
                      clb_cell_grid *g) {
  enum { ALONG = 4 };
  const int fineness = l->fineness ? l->fineness : 2;
  double images = 1, max = 0, height[3], side = radius / fineness * (1 + 2 * slack);
  heights_of(g->reciprocal, height);
  for (int d = 0; d < 3; d++) {
    if (!l->periodic[d]) continue;
    images *= 2 * radius / height[d] + 1;
    max = fmax(max, radius / height[d]);
  }
  if (!(images < max_images && images * (double)l->n < max_steps + 8 * (double)l->n &&
        max < 0x1p28))
    return clb_neighbours_fail(
        l, CLB_ERROR_ARGUMENT,
        "cutoff + skin, %g Angstrom, reaches too many images of a cell only %g x %g x %g "
        "Angstrom high",
        radius, height[0], height[1], height[2]);
  for (int d = 0; d < 3; d++) {
    double extent = l->periodic[d] ? height[d] : high[d] - low[d],
           finest = fmax(d == 2 && l->fineness ? side / ALONG : side, extent / MAX_BINS);
    if (!isfinite(extent))
      return clb_neighbours_fail(l, CLB_ERROR_ARGUMENT,
                                 "positions lie further apart than numbers reach");
    g->low[d] = l->periodic[d] ? 0 : low[d];
    g->bins[d] =
        l->periodic[d] ? (int32_t)fmax(1, extent / finest) : (int32_t)(extent / finest) + 1;
    if (l->periodic[d]) finest = height[d] / g->bins[d];
    g->reach[d] = (int32_t)(radius / finest + slack) + 1;
    g->slots[d] = l->periodic[d] ? g->bins[d] : g->bins[d] + 2 * g->reach[d];
    g->per_unit[d] = 1 / finest;
  }
  fold(g, l->n);
  for (int d = 0; d < 3; d++) {
    if (!l->periodic[d]) continue;
    g->folds[d] = g->bins[d] / g->slots[d];
    g->bins[d] = g->folds[d] * g->slots[d];
    g->per_unit[d] = g->bins[d];
  }
  return CLB_OK;
}

/* Checks the positions, and finds the ends of open directions. */
static clb_status survey(clb_neighbours *l, const clb_cell_grid *g, const double *positions,
                         double low[3], double high[3]) {
  for (int64_t i = 0; i < l->n; i++) {
    for (int d = 0; d < 3; d++)
      if (!isfinite(positions[3 * i + d]))
        return clb_neighbours_fail(l, CLB_ERROR_ARGUMENT,
                                   "positions[%lld][%d] is %g: it must be finite", (long long)i, d,
                                   positions[3 * i + d]);
    for (int d = 0; d < 3; d++) {
      double f = clb_dot(positions + 3 * i, g->reciprocal[d]);
      if (!isfinite(f) || (l->periodic[d] && fabs(f) >= 0x1p29))
        return clb_neighbours_fail(l, CLB_ERROR_ARGUMENT,
                                   "positions[%lld] lies too far away: %g cells along direction %d",
                                   (long long)i, f, d);
      if (!i || f < low[d]) low[d] = f;
      if (!i || f > high[d]) high[d] = f;
    }
  }
  return CLB_OK;
}

/* ---- public functions ---- */

clb_status clb_cells_check(clb_neighbours *l, const clb_cell_grid *g, const double *positions) {
  double low[3], high[3];
  return survey(l, g, positions, low, high);
}

clb_status clb_cells_make_grid(clb_neighbours *l, const double *positions, clb_cell_grid *g) {
  const double radius = l->cutoff + l->skin;
  double low[3] = {0}, high[3] = {0};
  complete(g->cell, l->periodic);
  if (!invert(g->cell, g->reciprocal))
    return clb_neighbours_fail(
        l, CLB_ERROR_ARGUMENT,
        "cell is singular: its periodic vectors must be finite and span a volume");
  clb_status s = check_lengths(l);
  const bool open = !(l->periodic[0] && l->periodic[1] && l->periodic[2]);
  if (!s && open) s = survey(l, g, positions, low, high);
  return s || !l->n || radius == 0 ? s : lay(l, low, high, radius, g);
}
