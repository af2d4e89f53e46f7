/* models/arch/nequip.h - shared by the two files that read networks like NequIP's. */
#ifndef CLB_MODELS_ARCH_NEQUIP_H
#define CLB_MODELS_ARCH_NEQUIP_H

#include "models/arch/arch.h"
#include "models/layers/kinds.h"

typedef struct {
  clb_irreps sh;
  int n_radial;
  bool fan_in, species_self, rms;
  double radial_scale, neighbours, norm_epsilon;
  clb_energy energy;
  int harmonics, basis, features; /* arrays; features: of the last block that was read */
} clb_nequip;

typedef struct {
  clb_irreps in, message, linear, scalars, gates, gated, out;
  clb_instruction path[CLB_MAX_PATHS];
  int n_paths;
  int64_t n_weights; /* of all paths */
} clb_nequip_irreps;

/* "layers.N.what" */
const char *clb_nequip_key(char key[CLB_MODEL_KEY], int block, const char *what);
/* Those of block n, which must agree. */
void clb_nequip_read_irreps(clb_model_reader *r, const clb_nequip *q, int n, clb_nequip_irreps *y);
/* Reads block n: its irreps and paths, then its layers and weights. */
void clb_nequip_block(clb_model_reader *r, clb_nequip *q, int n);

#endif
