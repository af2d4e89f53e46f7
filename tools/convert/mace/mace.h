/* tools/convert/mace/mace.h - what the files that convert MACE's models share. */
#ifndef CLB_TOOLS_CONVERT_MACE_MACE_H
#define CLB_TOOLS_CONVERT_MACE_MACE_H

#include <clebsch/clebsch.h>

#include "tools/convert/maps.h"

enum { MACE_LAYERS = 64, MACE_ELEMENTS = 128, MACE_BASIS = 64, MACE_CORRELATION = 4 };

typedef struct {
  torch *t;
  value network; /* MACE's own module */
  model *out;
  clb_context *ctx; /* for bases of symmetric contractions; runs nothing */
  bool last_readout_only;
  int n_layers, n_species, l_max; /* l_max: of harmonics and messages */
  int head, n_heads;
  int atomic_number[MACE_ELEMENTS]; /* of a species */
  int64_t n_basis;
  double basis_factor; /* MACE's radial basis over the format's */
  bool gated;          /* its interactions are */
  irreps features;     /* of the atoms, after the current layer */
  irreps edge;         /* of what atoms send in it */
  irreps sh;
} mace;

/* A module of the network, which must be of that class. */
value mace_module(const mace *q, value parent, const char *path, const char *class);
/* A tensor of `count` numbers. */
weights mace_numbers(const mace *q, value object, const char *path, int64_t count);
/* The weights of e3nn's Linear at the path, which has no bias and `count` numbers. */
weights mace_linear(const mace *q, value object, const char *path, int64_t count);
/* Refuses an activation that is not silu. */
void mace_expect_silu(const mace *q, value object, const char *path);

/* K channels of every degree up to l_max, with natural parity. */
irreps mace_uniform(int mul, int l_max);
/* A Linear of an interaction, as layers.N.NAME. */
void mace_put_linear(mace *q, int layer, value block, const char *path, const irreps *in,
                     const irreps *to, const char *name);

/* Messages are in the order of their degree, then the sent features', then the harmonics', as are
   the radial network's columns. sign: of a path; MACE's vectors point from the sender to the
   receiver, so that harmonics of odd degree are negated. */
typedef struct {
  irreps messages;
  double sign[MAX_TERMS];
} message_paths;
/* Those between q->edge and harmonics, which are also put. */
message_paths mace_paths(mace *q, int layer);
/* The tensor product of an interaction must have these messages. */
void mace_check_messages(const mace *q, value block, const message_paths *p);

/* Whether an interaction has a gate; puts one that has, of which the layer's output is `out`. */
bool mace_is_gated(value interaction);
void mace_gated(mace *q, int layer, value block, const irreps *out);
/* Refuses a gate whose scalars have another activation than silu, with its usual scale. */
void mace_expect_gate_silu(const mace *q, value gate);

/* Embeddings of charge and spin, if there are any, after that of species. scale: of energies. */
void mace_states(mace *q, double scale);

/* Layer `layer`: interaction, product basis, readout. */
void mace_layer(mace *q, int layer);
/* The symmetric contraction of a layer to the irreps `to`. */
void mace_product(mace *q, int layer, value product, const irreps *to);

#endif
