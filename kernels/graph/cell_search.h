/* kernels/graph/cell_search.h - the steps of finding the pairs of atoms within a radius, and the
   arguments of their kernels.

   An atom's slot in the grid (src/problem/cell_grid.h) is its row in a graph whose edges are the
   atoms, so that sorting the atoms is sorting that graph by receiver. SORTED then writes them in
   that order. A sub-group takes one receiver and goes through the slots around it, its lanes
   through the atoms in them: once to count (COUNT), and, when the counts have become the places
   where rows start (SCAN of sort.h), again to write (FILL). Bins, order and rounding are those of
   models/atoms/neighbours.c: the lists are equal, number by number. Atoms of many systems are found
   together: each has a grid, with slots of its own. */
#ifndef CLB_KERNELS_GRAPH_CELL_SEARCH_H
#define CLB_KERNELS_GRAPH_CELL_SEARCH_H

#include "kernels/kernel.h"

/* The first parameters of all: units of work (i64), number of atoms (i64), positions (f64 [n][3]),
   grids (f64 [systems][CLB_CELL_NUMBERS]), and of many systems that of each atom. Then
     SLOTS   out slot of each atom
     SORTED  atom in each place, out x (f64 [3][n]: inside the cell), out wrap [3][n], number of
             counts (i64; a multiple of CLB_CELL_ROW, n or more), out counts (0 from the n-th on)
     COUNT   atom in each place, x, wrap, first place of each slot, out count of each atom:
             its neighbours, or CLB_CELL_REFUSED; without ghosts, into how many columns of slots
             those around an atom are divided, which are units then and have counts (i64)
     TOTAL   edges of each row of CLB_CELL_ROW atoms, out those before it, out their total (-1: an
             atom was refused, or they are beyond int32), the same as f64, where, whether (i32)
     FILL    that of COUNT without counts; edges before each atom in its row, and before each such
             row, out senders, out receivers, out shifts (clb_edge_shift); columns as in COUNT
     RANKED  slot of each atom, number of slots (i64), out atom in each place, and the rest as
             SORTED, but before the number of counts: out first place of each slot, and of the end,
             and how many counts are used
     ENDS    receivers, senders, edges before each atom in its row, and before each such row,
             columns, total, room (i64); of receivers, then of senders: out where rows start, edge
             and other end in each slot, segments of rows (sort.h); out sender in each of those, or
             n of null edges, how many slots a segment has at most (i64)

   With ghosts, atoms that are only senders, these end with the row of each atom's features (or
   CLB_CELL_ABSENT, CLB_CELL_NO_ROW), the number of local atoms (i64), and in FILL, whose senders
   are rows then, with out the senders as atoms.  FILL ends with the total, and for how many edges
   there is room (i64): where these are more, none is written. Without ghosts, null edges of the
   atoms to themselves, as many for each as can be, after its others, fill what is left of the room;
   before the total are out keys, the sender of each edge, but the number of atoms for null edges,
   and whether they are wanted (i32). Of listed pairs there are COUNT and FILL alone, on places of
   receivers: sender in each place, first place of each receiver (also of counts that there are
   beyond the last one, without any), then out counts; or edges before each atom and row, out
   senders, receivers and shifts, rows, out senders as atoms, total and room. Buffers hold int32
   unless said otherwise. Units are chunks of lanes, in COUNT and FILL places; in RANKED atoms and
   then slots, in ENDS edges (or atoms, if these are more). */
typedef enum {
  CLB_CELL_SLOTS,
  CLB_CELL_SORTED,
  CLB_CELL_COUNT,
  CLB_CELL_TOTAL, /* by one sub-group */
  CLB_CELL_FILL,
  CLB_CELL_RANKED, /* in place of sorting atoms, and SORTED; and of */
  CLB_CELL_ENDS,   /* sorting edges by sender: of one system of few atoms, on a GPU */
  CLB_CELL_STEPS
} clb_cell_list_step;

/* One system of atoms; many, each with a grid of its own; one of which the last atoms are ghosts,
   which are only senders; the same, where pairs to look at are listed and there is no grid; many
   systems, whose atoms are sorted, and that is all: kernels as of MANY. */
typedef enum {
  CLB_CELL_ONE,
  CLB_CELL_MANY,
  CLB_CELL_GHOSTS,
  CLB_CELL_PAIRS,
  CLB_CELL_SORT
} clb_cell_atoms;

/* What the host makes of a grid: cell [3][3], reciprocal [3][3], low, per_unit, bins, reach, slots,
   folds (1 where there are none), whether periodic, turns and images (multiples of slots and folds
   at which numbers of slots and images begin, so that integers that are divided are not negative),
   each [3]; the slots of the systems before it; the square of the radius. */
enum {
  CLB_CELL_CELL = 0,
  CLB_CELL_RECIPROCAL = 9,
  CLB_CELL_LOW = 18,
  CLB_CELL_PER_UNIT = 21,
  CLB_CELL_BINS = 24,
  CLB_CELL_REACH = 27,
  CLB_CELL_SLOTS_OF = 30,
  CLB_CELL_FOLDS = 33,
  CLB_CELL_PERIODIC = 36,
  CLB_CELL_TURNS = 39,
  CLB_CELL_IMAGES = 42,
  CLB_CELL_FIRST_SLOT = 45,
  CLB_CELL_SQUARED = 46,
  CLB_CELL_NUMBERS = 47
};

/* In place of a row: of an atom that has no edges; of one that must have none. */
enum { CLB_CELL_ABSENT = -1, CLB_CELL_NO_ROW = -2 };

/* COUNT refuses an atom that has more neighbours, or looks at more atoms (in a column), has a
   neighbour nearer than 1e-3 Angstrom, without a row or with a shift that clb_edge_shift cannot
   encode, or is not at a finite place: the host sees to these. The sum of a row tells whether one
   was refused: CLB_CELL_ROW times the former is less than the latter. */
enum {
  CLB_CELL_ROW = 256,
  CLB_CELL_MAX_NEIGHBOURS = 4096,
  CLB_CELL_LOOKED_AT = 1 << 20,
  CLB_CELL_REFUSED = 1 << 22
};

#endif
