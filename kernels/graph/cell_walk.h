/* kernels/graph/cell_walk.h - atoms that are sorted by the slots of grids (cell_search.h): where an
   atom is, and the atoms around it. */
#ifndef CLB_KERNELS_GRAPH_CELL_WALK_H
#define CLB_KERNELS_GRAPH_CELL_WALK_H

#include "kernels/graph/cell_search.h"
#include "kernels/layers/layer.h"

/* Where an atom is. */
typedef struct {
  ir_val x[3];            /* inside the cell */
  ir_val bin[3], wrap[3]; /* i32 */
  ir_val good;            /* its place is finite, and not too far away */
} clb_cell_place;

/* A kernel on atoms in grids. The first parameters of it are units of work, and what all steps of
   cell_search.h have. */
typedef struct {
  clb_row_kernel b;
  ir_kernel *k;
  ir_val n, positions, grids, system;                     /* n: i64; IR_NONE: there is one */
  ir_val real[CLB_CELL_NUMBERS], whole[CLB_CELL_NUMBERS]; /* of the grid; whole: as i32 */
} clb_cell_finder;
void clb_cell_begin(clb_cell_finder *w, ir_kernel *k, const char *name, const clb_schedule *s,
                    int32_t arithmetic, bool many);
/* Loads the grid of this atom's system; lanes without an atom load the first, whose divisors are
   positive. */
void clb_cell_load_grid(clb_cell_finder *w, ir_val atom, ir_val mask);
static inline ir_val clb_cell_number(const clb_cell_finder *w, int what, int d) {
  return w->real[what + d];
}
static inline ir_val clb_cell_whole(const clb_cell_finder *w, int what, int d) {
  return w->whole[what + d];
}
/* What clb_cells_locate computes, in the grid that was loaded. */
clb_cell_place clb_cell_locate(const clb_cell_finder *w, ir_val atom, ir_val mask);
/* The slot of a bin in direction d, and of all three, counted from the first of all systems. */
ir_val clb_cell_slot_in(const clb_cell_finder *w, int d, ir_val bin, ir_val turn);
ir_val clb_cell_slot(const clb_cell_finder *w, const ir_val bin[3]);
/* This lane's place, where a unit is a chunk of lanes. */
ir_val clb_cell_own_place(const clb_cell_finder *w);

/* Goes through the slots that are at most `reach` bins away from those of a place: `visit` is
   called inside of loops, for places [first, end) of sorted atoms (i32) in one image of the cell
   (i32 [3]). starts: buffer of the first place of each slot. squared: of a radius (f64): where all
   directions are periodic, slots that are farther away are left out; IR_NONE: none are. only:
   number of the column of slots along the last direction to which it keeps (i32; below 0: to
   none); IR_NONE: to none. */
typedef void (*clb_cell_visit)(void *user, ir_val first, ir_val end, const ir_val *image);
void clb_cell_walk(const clb_cell_finder *w, const clb_cell_place *at, const ir_val reach[3],
                   ir_val squared, ir_val only, ir_val starts, clb_cell_visit visit, void *user);

/* How far the atoms of an image are away. */
void clb_cell_offset(const clb_cell_finder *w, const ir_val *image, ir_val by[3]);
/* The vector, f64, from x to the atom in a place of an image that is `by` away, as the host rounds
   it. sorted: f64 [3][n]. */
void clb_cell_vector(const clb_cell_finder *w, ir_val sorted, ir_val place, ir_val mask,
                     const ir_val x[3], const ir_val by[3], ir_val v[3]);

/* The number of edges; *fits: there is one, and room for so many. */
ir_val clb_cell_total(ir_kernel *k, ir_val total, ir_val room, ir_val *fits);
/* How many null edges of `rest` (i64), which FILL deals out, are before those of an atom (i64). */
ir_val clb_cell_nulls_before(const clb_cell_finder *w, ir_val rest, ir_val atom);
/* The sum over lanes of an i32. */
ir_val clb_cell_sum_of_lanes(const clb_cell_finder *w, ir_val sum);

/* TOTAL of cell_search.h, which needs no walk (kernels/graph/cell_total.c). */
void clb_cell_lower_total(ir_kernel *k, const clb_problem *p, const clb_schedule *s);
/* RANKED and ENDS (kernels/graph/cell_rank.c). */
void clb_cell_lower_ranked(ir_kernel *k, const clb_problem *p, const clb_schedule *s);
void clb_cell_lower_ends(ir_kernel *k, const clb_problem *p, const clb_schedule *s);

#endif
