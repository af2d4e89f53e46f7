/* kernels/graph/host/cell_list.h - pairs of atoms within a radius, found by kernels
   (kernels/graph/cell_search.h): the list of models/atoms/neighbours.h, number by number. */
#ifndef CLB_KERNELS_GRAPH_HOST_CELL_LIST_H
#define CLB_KERNELS_GRAPH_HOST_CELL_LIST_H

#include "kernels/graph/cell_search.h"
#include "kernels/graph/host/graph.h"
#include "src/problem/cell_grid.h"

typedef struct clb_cell_list clb_cell_list;

/* Compiles the kernels for such atoms. CLB_ERROR_UNSUPPORTED: the device has no f64. */
clb_status clb_cell_list_create(clb_context *ctx, clb_cell_atoms kind, clb_cell_list **list);
void clb_cell_list_destroy(clb_cell_list **list); /* NULL is fine */

/* Counts the directed edges of atoms closer than the radius, and waits for their number. -1: the
   device leaves them to the host, because an atom has over CLB_CELL_MAX_NEIGHBOURS neighbours or
   over CLB_CELL_LOOKED_AT atoms in the slots around it or pairs, two are at one place, an image is
   over 511 cells away, a position is not finite, a ghost with an edge has no row, or the grid or
   the number of edges is beyond int32. positions: f64 [n][3] from the buffer's start; they must
   stay until `fill` is done, which was submitted for the same atoms.  n >= 1; the grid has slots.
   Memory grows with some headroom. Of many systems: a grid for each, which has slots if the system
   has atoms; system: int32 [n] of the atoms, one system after the other. */
clb_status clb_cell_list_count(clb_cell_list *list, const clb_cell_grid *grid, double radius,
                               int64_t n, const clb_buffer *positions, int64_t *n_edges);
/* show: the number goes there, too, if there is a buffer (clb_cell_list_submit_count). */
clb_status clb_cell_list_count_many(clb_cell_list *list, int64_t n_systems,
                                    const clb_cell_grid *grids, const int32_t *system,
                                    double radius, int64_t n, const clb_buffer *positions,
                                    clb_rows show, int64_t *n_edges);
/* Of that count of many systems: how many edges are before those of each atom, start[n]. Waits. */
clb_status clb_cell_list_read_starts(clb_cell_list *list, int32_t *start);
/* Of the last count: grids as in cell_search.h, of which the first 9 numbers are the cell, and of
   many systems that of each atom. */
const clb_memory *clb_cell_list_grids(const clb_cell_list *list);
const clb_memory *clb_cell_list_systems(const clb_cell_list *list);

/* Submits the sorting of atoms of many systems by the slots of their grids, of a list that was
   created for it; false: a grid is beyond int32. grids NULL: those of the last call. What
   kernels/graph/cell_walk.h reads of it stays valid until the next call. */
typedef struct {
  const clb_memory *grids, *systems, *atoms, *x, *starts; /* atoms: in each place */
} clb_cell_sorted;
clb_status clb_cell_list_sort(clb_cell_list *list, int64_t n_systems, const clb_cell_grid *grids,
                              const int32_t *system, int64_t n, const clb_buffer *positions,
                              bool *fits);
clb_cell_sorted clb_cell_list_sorted(const clb_cell_list *list);

/* Before a count, of a list with ghosts: the first n_local atoms receive edges. rows: of each
   atom's features, as in cell_search.h; the buffer must stay. */
void clb_cell_list_set_rows(clb_cell_list *list, const clb_buffer *rows, int64_t n_local);

/* Before a count, of listed pairs, whose n is n_local, and whose grid is NULL. senders: int32,
   those of each receiver together; starts: int32, where those of each begin, up to
   clb_cell_list_starts numbers, of which those from n_local on are the number of pairs. The buffers
   must stay. */
void clb_cell_list_set_pairs(clb_cell_list *list, const clb_buffer *rows, const clb_buffer *starts,
                             const clb_buffer *senders);
int64_t clb_cell_list_starts(int64_t n_local);

/* Submits the writing of the edges that were counted: int32 senders, receivers (ascending) and
   clb_edge_shift. Equal atoms give equal lists. There is room for so many edges; if they are more,
   none is written. With ghosts senders are rows; atoms: which atoms they are. Without ghosts, null
   edges of atoms to themselves, in the cell, fill the room; atoms: the senders of the others, and n
   of null edges; NULL: not wanted. */
clb_status clb_cell_list_fill(clb_cell_list *list, int64_t room, const clb_memory *senders,
                              const clb_memory *receivers, const clb_memory *shifts,
                              const clb_memory *atoms);

/* A count without the host, which learns the number of edges later, or knows it. take: grows
   memory, and writes the grids unless they are the last one; *fits: they are within int32; slots,
   columns: how many it has, on which the launches depend. submit_count only submits, as fill does,
   and can be recorded; show: where the number of edges goes, as f64 (-1: the device leaves them to
   the host), if there is a buffer. */
clb_status clb_cell_list_take(clb_cell_list *list, int64_t n_systems, const clb_cell_grid *grids,
                              const int32_t *system, double radius, int64_t n,
                              const clb_buffer *positions, bool *fits);
int64_t clb_cell_list_slots(const clb_cell_list *list);
int64_t clb_cell_list_columns(const clb_cell_list *list);
clb_status clb_cell_list_submit_count(clb_cell_list *list, clb_rows show);

/* Of few atoms, on a GPU: after a fill, with room for edges, which are then the graph's, by
   receiver and by sender. */
bool clb_cell_list_is_small(const clb_cell_list *list);
clb_status clb_cell_list_ends(clb_cell_list *list, int64_t room, clb_graph *graph);

uint64_t clb_cell_list_bytes(const clb_cell_list *list); /* of device memory */

#endif
