/* convolution.h - a row's walk over its edges: how it is divided among sub-groups, and its operands.

   Results of z are sums over the row's edges, kept in registers; the others belong to an edge.  A *part* is some terms of x with equal
   multiplicity and all paths from them; some blocks of its channels together go to one sub-group (a unit), or one sub-group goes through
   them all. */
#ifndef CLB_CONVOLUTION_H
#define CLB_CONVOLUTION_H

#include "path.h"
#include "walk.h"

typedef struct {
  int n;                                     /* parts, by multiplicity, the greatest first */
  int of_x[CLB_MAX_TERMS], of_z[CLB_MAX_TERMS]; /* part of a term; -1: none */
  int mul[CLB_MAX_TERMS], together[CLB_MAX_TERMS]; /* of a part; blocks of channels that a unit does */
} clb_parts;
enum { CLB_MAX_TOGETHER = 4 };

/* No term of z gets paths from two parts.  most: components of x and z, most_nonzeros: non-zeros of a unit, unless one block of one term of x has
   more.  lanes: of a block; 0: blocks are not put together. */
void clb_parts_make(const clb_tensor_product_problem *tp, int most, int most_nonzeros, int lanes, clb_parts *parts);
/* Blocks of channels of all parts. */
int clb_parts_units(const clb_parts *parts, int lanes);

/* What the coefficients of a term of z are divided by, so that many are 1 or -1, and paths share their products c y. */
void clb_z_scales(const clb_tensor_product_problem *tp, const clb_parts *parts, double *scale);

/* The operands of the next edges on their way into local memory (convolution_stage.c).  A block of channels of an operand is `pieces` runs of
   `lanes` elements. */
enum { CLB_MAX_STAGES = 8, CLB_MAX_PIECES = 1024, CLB_MAX_HELD = CLB_MAX_TERMS * MAX_M };
typedef struct {
  clb_form_array *array;
  int n, at, of_block;            /* pieces; where the first one lies in a slot; pieces of one block, which come block by block */
  int64_t from[CLB_MAX_PIECES];   /* where each starts in the row, for the first block of channels */
  int step[CLB_MAX_PIECES];       /* elements from one channel to the next */
} clb_staged_operand;

typedef struct {
  int stages;                     /* slots; 0: nothing is staged */
  int size;                       /* elements of a slot */
  ir_val array, aligned;          /* local array; parameter (i32): 1: operands' rows start at multiples of 16 bytes */
  ir_val start, slot;             /* where this sub-group's slots start; variable: the slot at hand */
  ir_val sender[CLB_MAX_STAGES], edge[CLB_MAX_STAGES]; /* variables: ends of the edges to come, from the one at hand to the next to be fetched */
  clb_staged_operand x[ORDERS], w[ORDERS];
  int y[ORDERS];                  /* where elements of y lie in a slot */
  ir_val first;                   /* i64: the unit's first channel */
  ir_val base;                    /* of the slot at hand */
} clb_stage;

typedef struct {
  clb_form_builder f;
  clb_walk walk;
  clb_path_builder at;
  clb_parts parts;
  double scale[CLB_MAX_TERMS];
  ir_val other, add;              /* parameters: the sender of each place (int32), of results of z (i32): 0 overwrite, 1 add, 2 overwrite where the row has edges */
  ir_val table, grid[3];          /* parameters of the splines: first knot, 1 / spacing (arithmetic), knots (i32) */
  /* of the unit, and of its block of channels at hand */
  int mul, block;
  ir_val unit, first;             /* i32: the unit's number, its first channel */
  ir_val channel, mask;           /* i64; lanes that have a channel, or IR_NONE */
  ir_val z[CLB_MAX_TOGETHER][CLB_MAX_TERMS][MAX_M]; /* components: of g, or variables that sum up a result */
  /* of the edge at hand */
  ir_val edge, sender;            /* i64 */
  ir_val x_sum[CLB_MAX_TERMS][MAX_M], y_sum[CLB_MAX_CHANNEL_WISE_Y + 1];
  clb_stage stage;
  ir_val meeting, turn;           /* local array [edges][units][of y], of units twice, or IR_NONE; i32: 0 or `shares`: which half is in use */
  int shares;
  int n_held;                     /* variables that hold g across batches of edges */
  ir_val held[CLB_MAX_HELD];
} clb_convolution;

/* Of a convolution's y: its columns, and where weights are splines that of r. */
static inline int clb_y_columns(const clb_problem *p) { return p->tensor_product.y.dim + (p->convolution.spline ? 1 : 0); }

/* ---- staged operands ---- */

/* Declares the parameter, and the local array if the schedule asks for stages. */
void clb_stage_begin(clb_convolution *c);
/* Turns to a part's block of channels; then starts with places first ... last - 1 of a part's block of channels. */
void clb_stage_plan(clb_convolution *c, int part);
void clb_stage_open(clb_convolution *c, int part, ir_val first, ir_val last);
/* Waits for the place at hand, sends for one more; then elements of y are there, and vectors of x and w can be read. */
void clb_stage_edge(clb_convolution *c, ir_val place, ir_val last);
void clb_stage_load(clb_convolution *c, int slot, int order, ir_val *v);
/* At the end of the edge. */
void clb_stage_next(clb_convolution *c);
/* Elements that a sub-group's slot takes. */
int clb_stage_size(const clb_problem *p, const clb_parts *parts, int lanes);
bool clb_reads(const clb_tensor_product_problem *tp, int slot, int order);

/* Whether the gradient of y is among a pass's results. */
static inline bool clb_wants_y(const clb_problem *p) { return p->pass != CLB_FORWARD && p->tensor_product.gradients & CLB_Y; }

/* Which output is of this slot and asked for; -1: none. */
int clb_wanted_output(const clb_form_builder *f, int slot);

/* ---- sums over lanes (lanes.c) ---- */

/* Sums v[0 ... n-1] (IR_NONE: 0) over the lanes, n <= lanes: the sum of element t is returned in the lanes whose number / *share is t.
   Halves the values from step to step, not only the lanes. */
ir_val clb_sum_over_lanes(ir_kernel *k, ir_type t, int lanes, const ir_val *v, int n, int *share);

#endif
