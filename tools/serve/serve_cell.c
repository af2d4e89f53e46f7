/* tools/serve/serve_cell.c - the cell that a client sends beside that of the structure's file. */
#include "tools/serve/serve_cell.h"

#include <math.h>

#include "tools/cli/tool.h"

static bool is_there(const double *cell) {
  bool any = false;
  for (int k = 0; k < 9; k++) any = any || cell[k] != 0;
  return any;
}

void serve_periodic(const structure *file, const double *sent, bool periodic[3]) {
  const bool ours = is_there(&file->cell[0][0]), theirs = is_there(sent);
  for (int d = 0; d < 3; d++) periodic[d] = ours ? file->periodic[d] : theirs;
}

static double dot(const double a[3], const double b[3]) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Three lengths and three angles in degrees, which do not change when a cell is turned. */
static void lengths_and_angles(const double *cell, double abc[6]) {
  for (int i = 0; i < 3; i++) abc[i] = sqrt(dot(cell + 3 * i, cell + 3 * i));
  for (int i = 0; i < 3; i++) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    const double both = abc[j] * abc[k];
    abc[3 + i] =
        both > 0 ? acos(fmax(-1, fmin(1, dot(cell + 3 * j, cell + 3 * k) / both))) / acos(-1) * 180
                 : 90;
  }
}

static bool near(const double a[6], const double b[6]) {
  for (int i = 0; i < 6; i++) /* files have five digits or more */
    if (!(fabs(a[i] - b[i]) <= (i < 3 ? 1e-4 * fmax(a[i], b[i]) : 0.01))) return false;
  return true;
}

void serve_compare_cells(const structure *file, const char *path, const double *sent) {
  double ours[6], theirs[6];
  if (!is_there(sent)) return;
  lengths_and_angles(sent, theirs);
  if (!is_there(&file->cell[0][0])) {
    warn("%s has no cell: all directions are periodic in the cell that is sent, %g %g %g A, %g %g "
         "%g degrees",
         path, theirs[0], theirs[1], theirs[2], theirs[3], theirs[4], theirs[5]);
    return;
  }
  lengths_and_angles(&file->cell[0][0], ours);
  if (!near(ours, theirs))
    warn("the cell that is sent, %g %g %g A, %g %g %g degrees, is taken, and not that of %s, %g %g "
         "%g A, %g %g %g degrees",
         theirs[0], theirs[1], theirs[2], theirs[3], theirs[4], theirs[5], path, ours[0], ours[1],
         ours[2], ours[3], ours[4], ours[5]);
}
