/* tools/new/new_network.h - networks of random weights, as model files (docs/model-format.md). */
#ifndef CLB_TOOLS_NEW_NEW_NETWORK_H
#define CLB_TOOLS_NEW_NEW_NETWORK_H

#include <argp.h>

#include "tools/convert/convert.h"
#include "tools/new/label_statistics.h"

typedef enum { NEW_NEQUIP, NEW_NEQUIX, NEW_SEVENNET, NEW_MACE, NEW_KINDS } new_kind;
extern const char *const new_names[NEW_KINDS]; /* as `architecture` of the files */

enum { MAX_HIDDEN = 7 };
/* 0, n of features too, and l_max and n_hidden of -1: as is usual for the kind. */
typedef struct {
  const char *name; /* of new_names; NULL: none is made */
  irreps features;  /* between layers */
  double r_max;     /* Angstrom */
  int layers, l_max, n_basis, correlation, n_hidden, hidden[MAX_HIDDEN]; /* hidden: of radial
                                                                            networks */
} new_choice;
/* --new, --features, --layers, --r-max, --l-max, --basis, --radial, --correlation; input:
   new_choice, which is cleared first. */
extern const struct argp new_argp;

/* What is made: a choice in which nothing is left open. Exits where it cannot be made. */
typedef struct {
  new_kind kind;
  new_choice c;
  irreps sh;
} new_network;
new_network new_network_of(const new_choice *c);

/* Its file, in memory as long as the descriptor that is returned. Exits, after a message, where
   there is no memory. */
int new_network_make(const new_network *q, const label_statistics *s, uint64_t seed);

/* ---- for the files that make them ---- */

typedef struct {
  const new_network *q;
  const label_statistics *s;
  model *out;
  uint64_t seed;
  irreps features; /* of the atoms, after the current layer */
} new_maker;

/* [n] normal deviates, a function of the seed and the tensor's name; the caller frees them. */
double *new_normal(const new_maker *m, int64_t n, const char *name);
/* Puts such deviates times `deviation`. */
void new_tensor(new_maker *m, double deviation, int rank, const int64_t *shape, const char *name);
/* PREFIX.IRREP for the irreps that both have: [in][out], or [in][inner][out]. */
void new_map(new_maker *m, double deviation, const irreps *in, const irreps *to, int64_t inner,
             const char *prefix);
/* Puts the paths of a layer to the terms of `to`, and its radial network; returns the messages. */
irreps new_paths(new_maker *m, int layer, const irreps *to);
/* The matrices of a readout, of widths [n + 1]. */
void new_readout(new_maker *m, const int64_t *width, int n, const char *prefix);

void new_gated(new_maker *m); /* NequIP, Nequix, SevenNet */
void new_mace(new_maker *m);

#endif
