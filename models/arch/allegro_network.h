/* models/arch/allegro_network.h - shared by the files that read Allegro's networks. */
#ifndef CLB_MODELS_ARCH_ALLEGRO_NETWORK_H
#define CLB_MODELS_ARCH_ALLEGRO_NETWORK_H

#include "models/arch/arch_parts.h"

/* Scalars of edges, one array after the other, which a matrix reads as if they were one; scale: of
   the activation that they come from. */
typedef struct {
  int n, array[CLB_ARCH_BLOCKS + 2];
  double scale;
} clb_allegro_scalars;

typedef struct {
  clb_irreps sh;
  int64_t n_scalars, channels;
  double neighbours;  /* that sums over edges are divided by the root of; 0: those of species, */
  int64_t of_species; /* which are these weights */
  int harmonics, features, weights; /* arrays of edges; weights: of the next environment */
  clb_allegro_scalars scalars;      /* so far */
} clb_allegro;

/* ---- scalars: `tensor` is a key, or of a block's ---- */

/* The matrix `tensor` of the scalars, into an array of so many columns; factor: besides that of its
   rows. */
int clb_allegro_map(clb_model_reader *r, int block, const char *tensor,
                    const clb_allegro_scalars *from, int64_t columns, double factor);
/* What hidden layers make of the scalars, of matrices `what`.0, ...; the keys `of`_layers, their
   number, `of`_activation and its scale say how. */
clb_allegro_scalars clb_allegro_hidden(clb_model_reader *r, int block, const char *what,
                                       const char *of, const clb_allegro_scalars *from);

/* ---- */

/* Degrees 0 to l_max of the harmonics, with so many channels each. */
clb_irreps clb_allegro_channels(const clb_irreps *sh, int l_max, int64_t channels);
/* The sum over edges into each atom of weights, `channels` for each degree from 0 to l_max, times
   harmonics; over the root of the neighbours, if they are of all atoms, times `scale`. */
int clb_allegro_sum(clb_model_reader *r, const clb_allegro *q, int block, int l_max,
                    int64_t channels, int weights, double scale);
/* Where neighbours are those of species: 1 over the root of a species'; else 1. */
double clb_allegro_share(const clb_model_reader *r, const clb_allegro *q, int64_t species);
/* Reads layer n. */
void clb_allegro_layer(clb_model_reader *r, clb_allegro *q, int n);

#endif
