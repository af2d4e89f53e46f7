/* models/arch/mace_network.h - shared by the two files that read MACE's networks. */
#ifndef CLB_MODELS_ARCH_MACE_NETWORK_H
#define CLB_MODELS_ARCH_MACE_NETWORK_H

#include "models/arch/arch_parts.h"

typedef struct {
  clb_irreps sh;
  clb_arch_radial_desc radial;
  bool gated;                                  /* interactions have a gate */
  clb_scaled_activation readout, scalar, gate; /* the last two: of that */
  double neighbours;                           /* that messages are divided by */
  /* Arrays: of edges (cutoff: apart from the basis, or -1); features of the last block that was
     read; one number for each atom, to which blocks add. */
  int harmonics, basis, cutoff, features, energies;
} clb_mace;

/* Reads block n: its irreps and paths, then its layers and weights. */
void clb_mace_block(clb_model_reader *r, clb_mace *q, int n);

#endif
