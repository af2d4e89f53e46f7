/* models/atoms/neighbours.h - neighbour lists: pairs of atoms within a cutoff, from cell lists,
   O(N), in double precision, with a Verlet skin. */
#ifndef CLB_MODELS_ATOMS_NEIGHBOURS_H
#define CLB_MODELS_ATOMS_NEIGHBOURS_H

#include <clebsch/clebsch.h>
#include <stdbool.h>

#include "src/problem/cell_grid.h"

enum { CLB_NEIGHBOUR_ARRAYS = 7 };

/* Initialize to zeros with cutoff and skin, which must not change; release with
   clb_neighbours_free. */
typedef struct {
  double cutoff, skin; /* Angstrom, 0 or more */
  int fineness; /* of a grid for other users: bins of the radius, more along direction 2; 0: 2, as
                   the list itself needs */

  /* Directed edges, both directions of every pair: pairs strictly closer than cutoff + skin at the
     last rebuild, including an atom and its own image, and two atoms at the same position. So with
     a skin some vectors are longer than the cutoff. Sorted by receiver; equal atoms give equal
     lists. Owned by the list, valid until its next rebuild. */
  int64_t n_edges;
  const int32_t *senders, *receivers; /* [n_edges] */
  const int32_t *shifts; /* [n_edges][3]: vector = pos[sender] + shift . cell - pos[receiver] */
  char error[200];       /* the message of the last failure */

  /* Private: the state for which the list was built, and memory that is reused between rebuilds. */
  bool built, periodic[3];
  bool elsewhere; /* built for positions that were not on the host */
  int64_t n;
  double cell[3][3]; /* open directions: 0 */
  void *array[CLB_NEIGHBOUR_ARRAYS];
  size_t bytes[CLB_NEIGHBOUR_ARRAYS];
} clb_neighbours;

/* Updates the list for these atoms. It is rebuilt if an atom has moved by more than skin / 2 since
   the last rebuild, or if n, the cell or its flags have changed; *rebuilt (may be NULL) tells
   whether it was. positions[n][3] and cell[3][3] (rows are the lattice vectors) in Angstrom. Atoms
   may lie outside the cell; it may be skewed, and smaller than the cutoff. Rows of cell in
   directions that are not periodic are ignored; cell may be NULL if none is periodic. Allocates
   only if there are more atoms or edges than ever before. CLB_ERROR_ARGUMENT: positions that are
   not finite or lie over 2^29 cells away, a singular cell, a vector of it over 1e8 Angstrom, a
   negative cutoff, more than 2^31 - 2 atoms or edges, more than 2^14 neighbours of an atom, a cell
   so thin that a search goes through more than 2^21 of its images; CLB_ERROR_MEMORY. The list is
   then empty, and the next update rebuilds it.
 */
clb_status clb_neighbours_update(clb_neighbours *list, int64_t n, const double *positions,
                                 const double *cell, const bool periodic[3], bool *rebuilt);

/* The same in two steps, for edges that are found elsewhere: begin says whether the list must be
   rebuilt, and then by which grid; set_count takes the number of edges, which the list does not
   hold: senders, receivers and shifts are NULL. Instead of it, clb_neighbours_update rebuilds it
   here. */
clb_status clb_neighbours_begin(clb_neighbours *list, int64_t n, const double *positions,
                                const double *cell, const bool periodic[3], bool *rebuild,
                                clb_cell_grid *grid);
clb_status clb_neighbours_set_count(clb_neighbours *list, const double *positions, int64_t n_edges);
/* Instead of begin, of positions that are elsewhere, as set_count's are then (NULL): `moved` says
   whether an atom has moved by more than skin / 2. Where a direction is open the grid needs to know
   positions: only a list that need not be rebuilt can begin so. */
clb_status clb_neighbours_begin_moved(clb_neighbours *list, int64_t n, bool moved,
                                      const double *cell, const bool periodic[3], bool *rebuild,
                                      clb_cell_grid *grid);

/* The next update rebuilds the list. */
static inline void clb_neighbours_forget(clb_neighbours *list) { list->built = false; }

/* vectors[n_edges][3] (Angstrom, from receiver to sender) for the positions[n][3] of the last
   update. */
void clb_neighbours_vectors(const clb_neighbours *list, const double *positions, double *vectors);

/* The vector of one edge. */
void clb_neighbours_vector(const clb_neighbours *list, const double *positions, int64_t edge,
                           double vector[3]);

/* The volume that the rows of cell[3][3] span; 0 where they lie in a plane, or are not finite. */
double clb_cell_volume(const double *cell);
/* How far opposite faces are apart along each vector, where those that are not periodic are taken
   for unit vectors normal to the others; false: the periodic ones do not span a volume. */
bool clb_cell_heights(const double *cell, const bool periodic[3], double height[3]);

void clb_neighbours_free(clb_neighbours *list); /* cutoff and skin are kept */

#endif
