/* kernels/grouped/tile.h - C = alpha A B + beta D for a list of matrices of all shapes, in one
   launch: a group computes one tile of one C.

   All matrices lie in one memory, of which the host knows every place, so that both lists are on
   the device: of tiles, each a row of i32, and of products, each a row of i64 and one of reals.
   Arguments, in order: tiles, products, reals, in, out; with `gated` the gates and the least.

   scaled: A, B and D may be multiplied by a power of s = 1 / (max(|X|, floor) + epsilon), where
   |X|^2 is the sum of a diagonal, that of X X^T: Newton-Schulz needs no launch for a norm.
   gated: a product whose gate, an i32 on the device, is below `least` is left out. */
#ifndef CLB_KERNELS_GROUPED_TILE_H
#define CLB_KERNELS_GROUPED_TILE_H

#include "kernels/kernel.h"

/* Columns of a tile; MIRRORED: 1: its transpose is stored, too, as C is symmetric. */
enum { CLB_TILE_PRODUCT, CLB_TILE_ROW, CLB_TILE_COLUMN, CLB_TILE_MIRRORED, CLB_TILE_COLUMNS };

/* Columns of a product. A[i][k] is element A + i A_ROW + k A_DEPTH, B[k][j] is element B + k
   B_DEPTH
   + j B_COLUMN; one of the strides of A is 1, and one of B. SCALE: the power of s. */
enum {
  CLB_PRODUCT_M,
  CLB_PRODUCT_N,
  CLB_PRODUCT_K,
  CLB_PRODUCT_GATE,
  CLB_PRODUCT_A,
  CLB_PRODUCT_A_ROW,
  CLB_PRODUCT_A_DEPTH,
  CLB_PRODUCT_B,
  CLB_PRODUCT_B_COLUMN,
  CLB_PRODUCT_B_DEPTH,
  CLB_PRODUCT_C,
  CLB_PRODUCT_C_ROW,
  CLB_PRODUCT_D,
  CLB_PRODUCT_D_ROW,
  CLB_PRODUCT_DIAGONAL, /* its first element, from one to the next, their number */
  CLB_PRODUCT_DIAGONAL_STEP,
  CLB_PRODUCT_DIAGONAL_COUNT,
  CLB_PRODUCT_SCALE_A,
  CLB_PRODUCT_SCALE_B,
  CLB_PRODUCT_SCALE_D,
  CLB_PRODUCT_COLUMNS
};

enum {
  CLB_REAL_ALPHA,
  CLB_REAL_BETA, /* 0: D is not read */
  CLB_REAL_FLOOR,
  CLB_REAL_EPSILON,
  CLB_PRODUCT_REALS
};

/* ---- while a kernel is built ---- */

typedef struct {
  ir_kernel *k;
  const clb_schedule *s;
  ir_type t; /* of arithmetic */
  ir_val in, out;
  ir_val at[CLB_PRODUCT_COLUMNS], real[CLB_PRODUCT_REALS];
  ir_val m, n, depth;           /* i32 */
  ir_val row, column, mirrored; /* of the tile: i32, i32, bool */
  ir_val scale_a, scale_b, scale_d;
  ir_val local, sums, diagonal; /* local arrays; sums: of panels, diagonal: where scaled */
} clb_grouped_tile;

/* value times scale; IR_NONE: 1 */
static inline ir_val clb_grouped_scaled(ir_kernel *k, ir_val value, ir_val scale) {
  return scale == IR_NONE ? value : ir_mul(k, value, scale);
}

/* A sum of products becomes the element of C (element.c); row and column may be uniform or not. */
void clb_grouped_store(clb_grouped_tile *b, ir_val row, ir_val column, ir_val mask, ir_val sum);

/* tiles.c, for GPUs: lanes share operands through local memory. panels.c, for CPUs: lanes are
   columns. _locals: declares the local arrays, which must stand outside of the gate. */
void clb_grouped_tiles_locals(clb_grouped_tile *b);
void clb_grouped_panels_locals(clb_grouped_tile *b);
void clb_grouped_tiles(clb_grouped_tile *b);
void clb_grouped_panels(clb_grouped_tile *b);

/* Elements of a lane's block along rows and along columns, in tiles; of padding after each row that
   is staged, so that blocks stay aligned and transposing meets few bank conflicts. */
enum { CLB_GROUPED_BLOCK = 4, CLB_GROUPED_PADDING = 4 };

#endif
