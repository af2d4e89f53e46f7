/* models/passes/passes.h - what is done to the list of layers of every architecture, in this
   order. */
#ifndef CLB_MODELS_PASSES_PASSES_H
#define CLB_MODELS_PASSES_PASSES_H

#include "models/layers/network.h"

/* Once a file is read: */

/* What depends on the species of an atom alone becomes a table. */
clb_status clb_pass_fold(clb_network *n);
/* Drops the layers, paths and channels that the energy does not depend on. */
clb_status clb_pass_prune(clb_network *n);
/* Joins adjacent terms of one irrep in messages, so that the linear map that reads them needs one
   matrix product for each irrep. */
void clb_pass_merge(clb_network *n);

/* Once the device is known: */

/* With knots: radial networks become tables of their convolutions, or by pairs of species. */
clb_status clb_pass_tables(clb_network *n);
/* Marks the arrays that depend on positions. */
void clb_pass_moves(clb_network *n);
/* Convolutions work in frames of edges where all of them can. */
clb_status clb_pass_frames(clb_network *n);
/* Matrices by species, and all of networks that train, are put into rows; those that do not change
   are transposed once, for gradients on devices with lanes. */
clb_status clb_pass_transpose(clb_network *n);
/* Linear maps of one array that no others stand between become pairs; after transposing. */
clb_status clb_pass_join(clb_network *n);
/* Whether an array lives in one phase of the order: those of edges in blocks of atoms do, but for
   vectors. */
static inline bool clb_passing(const clb_network *n, int array) {
  return n->blocked && array > CLB_VECTORS && n->array[array]->per == CLB_PER_EDGE;
}
/* Whether an array's gradient is computed once more when a layer that reads it runs in reverse. */
static inline bool clb_learns_again(const clb_network *n, int array) {
  return array >= 0 && clb_passing(n, array) && clb_network_learns(n, array);
}
/* Decides in which order layers run, forward and backward, and which of them add. */
clb_status clb_pass_order(clb_network *n);
/* Once layers are built: finds out how long arrays are needed, and gives those that are never
   needed together one slot of memory. Layers run again only where that saves memory. */
clb_status clb_pass_memory(clb_network *n);

#endif
