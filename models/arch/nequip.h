/* models/arch/nequip.h - shared by the two files that read networks like NequIP's. */
#ifndef CLB_MODELS_ARCH_NEQUIP_H
#define CLB_MODELS_ARCH_NEQUIP_H

#include "models/arch/arch_parts.h"

typedef struct {
  clb_irreps sh;
  clb_arch_radial_desc radial;
  bool rms;
  double neighbours, norm_epsilon; /* neighbours: 0, those of senders' species, */
  int64_t of_species;              /* which are these weights */
  clb_energy energy;
  int harmonics, basis, features; /* arrays; features: of the last block that was read */
} clb_nequip;

typedef struct {
  clb_arch_product messages;
  clb_irreps linear, scalars, gates, gated, out;
} clb_nequip_irreps;

/* Those of block n, which must agree. */
void clb_nequip_read_irreps(clb_model_reader *r, const clb_nequip *q, int n, clb_nequip_irreps *y);
/* Reads block n: its irreps and paths, then its layers and weights. */
void clb_nequip_block(clb_model_reader *r, clb_nequip *q, int n);

#endif
