/* kernels/linear/linear_sums.h - the sums of products of linear maps, of some rows and channels:
   what the two ways to divide them among groups share.

   Each result is a sum of products of rows with blocks of weights,
     z[w] = sum_u x[u] W[u][w], or transposed, g_x[u] = sum_w g[w] W[u][w],
   for each component: forward x W + b; backward g W^T; double backward d_x = g C^T and
   d_g = a W + x C + b of c.  Elements of rows are uniform loads, and weights are used for several
   rows, unless each row has its own. */
#ifndef CLB_KERNELS_LINEAR_LINEAR_SUMS_H
#define CLB_KERNELS_LINEAR_LINEAR_SUMS_H

#include "kernels/linear/linear_parts.h"

enum { CLB_LINEAR_ROWS = 8 }; /* of a group */

/* A row of operands times blocks of weights. */
typedef struct {
  const clb_row_array *rows, *weights;
} clb_linear_factor;

typedef struct {
  clb_linear_kernel *b;
  clb_linear_factor factor[2];
  int n_factors;
  bool transposed;           /* the result is like x */
  const clb_row_array *bias; /* weights that have it; NULL: none is added */
  const clb_row_array *to;   /* NULL: there is no such result */
} clb_linear_result;

/* Some rows and channels of a result. */
typedef struct {
  const clb_linear_result *r;
  int number; /* of the term */
  clb_linear_term term;
  ir_val row[CLB_LINEAR_ROWS], sum[CLB_LINEAR_ROWS][CLB_LINEAR_COMPONENTS]; /* sum: variables */
  int n_rows;
  ir_val channel, left, mask;
  ir_val weights; /* i64: the row of weights; IR_NONE: there is one */
} clb_linear_tile;

/* The results of a pass, like x and like z. */
void clb_linear_results(clb_linear_kernel *b, clb_linear_result results[2]);
/* A tile without rows and channels. */
clb_linear_tile clb_linear_tile_of(const clb_linear_result *r, int number);
void clb_linear_begin_sums(clb_linear_tile *t, ir_val first);
void clb_linear_add_products(const clb_linear_tile *t);
/* A term of the result. */
clb_linear_term clb_linear_term_of(const clb_linear_result *r, int number);
/* What a path multiplies: a term of the factor's rows. */
clb_linear_term clb_linear_source(const clb_linear_result *r, const clb_linear_path *path);
/* The bias of the tile's channels; IR_NONE: they have none. */
ir_val clb_linear_bias(const clb_linear_tile *t);

#endif
