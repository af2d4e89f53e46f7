/* kernels/layers/loss_columns.h - the columns of what a loss reads and makes of a structure. */
#ifndef CLB_KERNELS_LAYERS_LOSS_COLUMNS_H
#define CLB_KERNELS_LAYERS_LOSS_COLUMNS_H

enum { CLB_LOSS_TERMS = 3 }; /* energy, forces, stress */

/* What is known; NaN: not known. */
enum {
  CLB_KNOWN_WEIGHT,
  CLB_KNOWN_VOLUME, /* 0: there is none, and no stress */
  CLB_KNOWN_ENERGY,
  CLB_KNOWN_STRESS, /* [9] */
  CLB_KNOWN_COLUMNS = CLB_KNOWN_STRESS + 9
};

/* What is made: the structure's part of the terms; and of energies per atom, components of forces,
   and of the stress: how many are known, the sums of |d| and of d^2. */
enum {
  CLB_MADE_TERMS,                   /* [terms] */
  CLB_MADE_ERRORS = CLB_LOSS_TERMS, /* [terms][3] */
  CLB_MADE_COLUMNS = CLB_MADE_ERRORS + 3 * CLB_LOSS_TERMS
};

#endif
