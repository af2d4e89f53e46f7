/* kernels/linear/linear_tiles.h - a tile of a term of a linear map's result: its rows are pairs of
   a row of x and a component, its columns are channels, and each lane sums a block of it.  The
   sub-groups of a group share the sum over channels of x: each takes some chunks of it, which it
   puts into local memory.

   Where each species has weights of its own, their sums are made for one species of the tile after
   the other, with zeros for the rows of others. */
#ifndef CLB_KERNELS_LINEAR_LINEAR_TILES_H
#define CLB_KERNELS_LINEAR_LINEAR_TILES_H

#include "kernels/linear/linear_gate.h"
#include "kernels/linear/linear_sums.h"

/* Channels of x in a chunk; of a lane's block, columns and at most rows. */
enum { CLB_LINEAR_CHUNK = 8, CLB_LINEAR_COLUMNS = 4, CLB_LINEAR_BLOCK = 8 };

/* How a sub-group divides a tile: lanes side by side, and one above the other; rows of a lane's
   block, which are `down` apart; rows and columns of the tile. */
typedef struct {
  int across, down, block, rows, columns;
} clb_linear_shape;
enum { CLB_LINEAR_TILE_ROWS = 64 }; /* at most */

clb_linear_shape clb_linear_shape_of(const clb_term *t, const clb_schedule *s);
/* Tiles of `columns` channels side by side. */
int64_t clb_linear_tiles_across(const clb_term *t, const clb_schedule *s);
/* Elements of local memory for a sub-group: a chunk's operands, and later its sums. */
int64_t clb_linear_tile_elements(const clb_term *t, const clb_schedule *s, ir_type type);
/* Elements that one access of 8 or 16 bytes can have of arrays of this storage; 1: only one. */
int clb_linear_width(const clb_problem *p);
/* Whether channels of a term are accessed so where rows start at multiples of the width. */
static inline bool clb_linear_is_wide(clb_linear_term t, int width) {
  return width > 1 && t.layout == CLB_IR_MUL && t.term->mul % width == 0 && t.term->at % width == 0;
}

typedef struct {
  const clb_linear_result *r;
  int number, width; /* of the term; of accesses to arrays: 1 where rows start anywhere */
  clb_linear_term term;
  clb_linear_shape shape;
  ir_val first, n;       /* i32: the tile's first row, and how many there are of all tiles */
  ir_val channel;        /* i32: the tile's first */
  ir_val species, leads; /* by species: local arrays of rows, of the species of each (i32), and of
                            whether it is the first one of it (0 or 1); IR_NONE */
  ir_val now;            /* i32: the species whose sums are made; IR_NONE: those of all rows are */
  ir_val weights;        /* i64: the row of weights that is used; IR_NONE: there is one */
  ir_val local, mine;    /* array; i32: where this sub-group's part of it starts */
  ir_val sum[CLB_LINEAR_BLOCK][CLB_LINEAR_COLUMNS]; /* variables */
} clb_linear_tiling;

/* Where row `at` (i32) of all tiles is: its row of x (i64), and its component (i32). */
void clb_linear_locate(const clb_linear_tiling *t, ir_val at, ir_val *row, ir_val *component);
/* Sets the sums to this sub-group's share of them. */
void clb_linear_sum_tile(clb_linear_tiling *t);
/* Puts them into local memory, [row][column]. */
void clb_linear_keep_sums(const clb_linear_tiling *t);

#endif
