/* models/edges/known.h - how many edges the atoms of structures receive that were searched before,
   so that the host need not wait to know how many a batch of them has. A structure is known by a
   hash of its positions and its grid. */
#ifndef CLB_MODELS_EDGES_KNOWN_H
#define CLB_MODELS_EDGES_KNOWN_H

#include <stdbool.h>

#include "kernels/graph/host/cell_list.h"

/* Systems one after the other in the arrays, with a grid for each that has slots. */
typedef struct {
  int64_t n, n_atoms;
  const clb_cell_grid *grid; /* [n] */
  const int32_t *system;     /* [n_atoms] */
  const int32_t *species;
  const double *positions; /* [n_atoms][3] */
} clb_edges_systems;

typedef struct {
  uint64_t key; /* 0: none */
  int64_t at;   /* its atoms' numbers in `received` */
} clb_known_structure;

/* Zeroed at first. */
typedef struct {
  clb_known_structure *slot; /* [n_slots] */
  int64_t n, n_slots;        /* n_slots: 0, or a power of 2 */
  int32_t *received;         /* [n_received]: edges of each atom */
  int64_t n_received, received_capacity;
  int32_t *start; /* [n_atoms + 1]: of the last batch, edges before those of each atom */
  int64_t start_capacity;
  uint64_t *key; /* [n]: of its structures */
  int64_t key_capacity;
} clb_known_edges;

void clb_known_edges_free(clb_known_edges *k);
/* The number of edges of all systems, and `start`; -1: not all are known, and `start` is to be
   filled; -2: there is no memory. */
int64_t clb_known_edges_find(clb_known_edges *k, const clb_edges_systems *all);
/* Keeps what `start` says of those systems, if there is memory. */
void clb_known_edges_add(clb_known_edges *k, const clb_edges_systems *all);

#endif
