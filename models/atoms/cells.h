/* models/atoms/cells.h - the grid of a neighbour list: where it lies, and in which bin and slot an
   atom is. */
#ifndef CLB_MODELS_ATOMS_CELLS_H
#define CLB_MODELS_ATOMS_CELLS_H

#include "models/atoms/neighbours.h"
#include "src/problem/cell_grid.h"

#include <math.h>
#include <string.h>

/* Leaves the message in the list, which is then empty; returns the status. */
clb_status clb_neighbours_fail(clb_neighbours *l, clb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Lays the grid for the list's n, cell and flags; cell of the grid holds the periodic vectors.
   CLB_ERROR_ARGUMENT: positions or a cell that neighbours.h excludes. Without atoms or radius there
   are not slots. */
clb_status clb_cells_make_grid(clb_neighbours *l, const double *positions, clb_cell_grid *g);
/* Whether all positions are finite and not too far away, which a grid without open directions
   leaves to its users to check. */
clb_status clb_cells_check(clb_neighbours *l, const clb_cell_grid *g, const double *positions);

typedef struct {
  double x[3]; /* inside the cell: position - wrap . cell */
  int32_t bin[3], wrap[3];
} clb_cell_spot;

static inline double clb_dot(const double a[3], const double b[3]) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static inline void clb_cells_locate(const clb_cell_grid *g, const double *position,
                                    clb_cell_spot *at) {
  memcpy(at->x, position, sizeof at->x);
  for (int d = 0; d < 3; d++) {
    double f = clb_dot(position, g->reciprocal[d]), turns = g->folds[d] ? floor(f) : 0;
    at->wrap[d] = (int32_t)turns;
    if (turns != 0)
      for (int k = 0; k < 3; k++) at->x[k] -= turns * g->cell[d][k];
    double bin = (f - turns - g->low[d]) * g->per_unit[d], last = g->bins[d] - 1;
    at->bin[d] = (int32_t)(bin < 0 ? 0 : bin > last ? last : bin);
  }
}

/* A bin's slot, and the image of the cell in which it lies. */
static inline int32_t clb_cells_slot(const clb_cell_grid *g, int d, int32_t bin, int32_t *image) {
  int32_t n = g->slots[d], turns = 0;
  if (bin < 0 || bin >= n) turns = bin / n - (bin % n < 0);
  *image = 0;
  if (turns && g->folds[d]) *image = turns / g->folds[d] - (turns % g->folds[d] < 0);
  return bin - turns * n;
}

static inline int64_t clb_cells_number(const clb_cell_grid *g, const int32_t slot[3]) {
  return ((int64_t)slot[0] * g->slots[1] + slot[1]) * g->slots[2] + slot[2];
}

static inline int64_t clb_cells_slot_at(const clb_cell_grid *g, const clb_cell_spot *at) {
  int32_t slot[3], image;
  for (int d = 0; d < 3; d++) slot[d] = clb_cells_slot(g, d, at->bin[d], &image);
  return clb_cells_number(g, slot);
}

#endif
