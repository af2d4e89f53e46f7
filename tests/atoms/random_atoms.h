/* tests/atoms/random_atoms.h - random cells, and atoms in them. */
#ifndef CLB_TESTS_ATOMS_RANDOM_ATOMS_H
#define CLB_TESTS_ATOMS_RANDOM_ATOMS_H

#include <math.h>

#include "tests/test.h"

static inline double between(uint64_t *seed, double low, double high) {
  return low + (high - low) * (test_random(seed) + 1) / 2;
}

/* A cell with edges of about this length: cubic, or skewed (its volume at least 1/20 of a
   rectangular one). */
static inline void random_cell(uint64_t *seed, double size, bool skewed, double cell[9]) {
  double volume;
  do {
    for (int i = 0; i < 9; i++)
      cell[i] = skewed ? size * test_random(seed) : i % 4 ? 0 : size * between(seed, .5, 1.5);
    volume = fabs(cell[0] * (cell[4] * cell[8] - cell[5] * cell[7]) +
                  cell[1] * (cell[5] * cell[6] - cell[3] * cell[8]) +
                  cell[2] * (cell[3] * cell[7] - cell[4] * cell[6]));
  } while (volume < size * size * size / 20);
}

/* Atoms in the cell or some cells outside; every other one within 2 Angstrom of the one before. */
static inline void random_positions(uint64_t *seed, double outside, int64_t n, const double cell[9],
                                    double *positions) {
  for (int64_t i = 0; i < n; i++) {
    double *x = positions + 3 * i, f[3];
    for (int d = 0; d < 3; d++) f[d] = between(seed, -outside, 1 + outside);
    for (int k = 0; k < 3; k++)
      x[k] = i % 2 ? x[k - 3] + between(seed, -2, 2)
                   : f[0] * cell[k] + f[1] * cell[3 + k] + f[2] * cell[6 + k];
  }
}

#endif
