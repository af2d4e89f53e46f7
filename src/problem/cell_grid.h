/* src/problem/cell_grid.h - the grid of bins by which neighbours are found: what host
   (models/atoms/cells.h) and device (kernels/graph/cell_search.h) know of it. */
#ifndef CLB_SRC_PROBLEM_CELL_GRID_H
#define CLB_SRC_PROBLEM_CELL_GRID_H

#include <stdint.h>

/* Space is divided into bins of half the radius, parallel to the cell's faces; an atom's neighbours
   are at most `reach` bins away. Bins are stored modulo `slots` in each direction, so that memory
   is O(N) however far atoms are apart: distant atoms that share a slot are found and rejected by
   their distance. No pair is found twice, because slots >= 2 reach + 1 wherever one slot is used
   for several bins. Lengths in Angstrom. */
typedef struct {
  double cell[3][3], reciprocal[3][3]; /* open directions: unit vectors normal to the others; x =
                                          sum_d (x . reciprocal[d]) cell[d] */
  double low[3], per_unit[3];          /* bin = (x . reciprocal - low) per_unit */
  int32_t bins[3], reach[3], slots[3]; /* slots 0: no atom has a neighbour */
  int32_t folds[3];                    /* bins / slots; 0 in open directions */
} clb_cell_grid;

static inline int64_t clb_cell_grid_slots(const clb_cell_grid *g) {
  return (int64_t)g->slots[0] * g->slots[1] * g->slots[2];
}

#endif
