/* models/arch/nequip.h - shared by the files that read networks like NequIP's. */
#ifndef CLB_MODELS_ARCH_NEQUIP_H
#define CLB_MODELS_ARCH_NEQUIP_H

#include "models/arch/arch_parts.h"

typedef enum { CLB_NEQUIP_NO_NORM, CLB_NEQUIP_RMS, CLB_NEQUIP_CENTRED } clb_nequip_norm;
typedef enum { CLB_NEQUIP_NO_RESIDUAL, CLB_NEQUIP_IDENTITY, CLB_NEQUIP_LINEAR } clb_nequip_residual;

typedef struct {
  clb_irreps sh;
  clb_arch_radial_desc radial;
  clb_nequip_norm norm, feed_forward_norm;
  clb_nequip_residual residual, feed_forward_residual;
  bool bilinear;
  double neighbours, norm_epsilon; /* neighbours: 0, those of senders' species, */
  int64_t of_species;              /* which are these weights */
  clb_energy energy;
  int harmonics, basis, features; /* arrays; features: of the last block that was read */
} clb_nequip;

/* What is between two linear maps: a gate, or a bilinear gate. */
typedef struct {
  bool bilinear;
  clb_irreps linear, scalars, gates, gated;
  clb_irreps second;        /* of a bilinear gate, whose first term is 1 in each channel, */
  clb_arch_product product; /* and the other factor and the products */
} clb_nequip_nonlinear;

typedef struct {
  clb_arch_product messages;
  clb_irreps out;
  clb_nequip_nonlinear nonlinear, feed_forward;
  bool feeds; /* it has a feed-forward */
} clb_nequip_irreps;

/* Those of block n, which must agree. */
void clb_nequip_read_irreps(clb_model_reader *r, const clb_nequip *q, int n, clb_nequip_irreps *y);
/* Reads block n: its irreps and paths, then its layers and weights. */
void clb_nequip_block(clb_model_reader *r, clb_nequip *q, int n);

/* The layers of a gate; returns its array. */
int clb_nequip_gate(clb_model_reader *r, int n, const clb_nequip_nonlinear *f, int in);
/* Those of a bilinear gate of the map `linear` of an array; sets the parts of its result and
   returns their number. */
enum { CLB_NEQUIP_PARTS = 2 };
int clb_nequip_bilinear(clb_model_reader *r, int n, const clb_nequip_nonlinear *f,
                        const char *linear, int from, clb_arch_terms parts[CLB_NEQUIP_PARTS]);

#endif
