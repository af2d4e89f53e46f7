/* kernels/convolution/builder.h - a row's walk over its edges: how it is divided among sub-groups, and its operands.

   Results of z are sums over the row's edges, kept in registers; the others belong to an edge.  A *part* is some terms of x with equal
   multiplicity and all paths from them; some blocks of its channels together go to one sub-group (a unit), or one sub-group goes through
   them all.

   Where a part has few channels a sub-group falls into *slices* of `width` lanes, a power of two, which do an edge each: in a turn slice s has
   that at place + s.  At the row's end slices that have none left do the last one again, times 0 in sums over edges, and write nothing. */
#ifndef CLB_KERNELS_CONVOLUTION_BUILDER_H
#define CLB_KERNELS_CONVOLUTION_BUILDER_H

#include "kernels/tensor_product/path.h"
#include "kernels/graph/walk.h"

typedef struct {
  int n;                                     /* parts, by multiplicity, the greatest first */
  int of_x[CLB_MAX_TERMS], of_z[CLB_MAX_TERMS]; /* part of a term; -1: none */
  int mul[CLB_MAX_TERMS], together[CLB_MAX_TERMS]; /* of a part; blocks of channels that a unit does */
  int nonzeros;                              /* of the unit that has most */
} clb_parts;
enum { CLB_MAX_TOGETHER = 4 };

/* No term of z gets paths from two parts.  most: components of x and z, most_nonzeros: non-zeros of a unit, unless one block of one term of x has
   more.  lanes: of a block; 0: blocks are not put together. */
void clb_parts_make(const clb_tensor_product_problem *tp, int most, int most_nonzeros, int lanes, clb_parts *parts);
/* Lanes of a slice that does mul channels. */
int clb_slice_width(const clb_schedule *s, int mul);
/* Blocks of channels of all parts. */
int clb_parts_units(const clb_parts *parts, int lanes);

/* What the coefficients of components of z are divided by, so that many are 1 or -1: where sums a_ij are made (pairs) those that start one, else of
   a term as a whole, so that paths share their products c y. */
bool clb_z_scales(const clb_tensor_product_problem *tp, const clb_parts *parts, bool pairs, double scale[][MAX_M]);

/* The operands of the next edges on their way into local memory (pipeline.c).  A block of channels of an operand is `pieces` runs of
   `lanes` elements. */
enum { CLB_MAX_STAGES = 8, CLB_MAX_PIECES = 1024, CLB_MAX_HELD = CLB_MAX_TERMS * MAX_M };
typedef struct {
  clb_form_array *array;
  int n, at, of_block;            /* pieces; where the first one lies in a slot; pieces of one block, which come block by block */
  int64_t from[CLB_MAX_PIECES];   /* where each starts in the row, for the first block of channels */
  int step[CLB_MAX_PIECES];       /* elements from one channel to the next */
  int of[CLB_MAX_PIECES];         /* the term of x, or the path of a weight */
  int within[CLB_MAX_PIECES];     /* number of the piece in a run of `step` pieces that hold the same channels */
} clb_staged_operand;

typedef struct {
  int stages;                     /* slots; 0: nothing is staged */
  int size, own;                  /* elements of a slot; of an edge of the part in it */
  ir_val array, aligned;          /* local array; parameter (i32): 1: operands' rows start at multiples of 16 bytes */
  ir_val start, slot;             /* where this sub-group's slots start; variable: the slot at hand */
  ir_val sender[CLB_MAX_STAGES], edge[CLB_MAX_STAGES]; /* variables: ends of the edges to come, from the one at hand to the next to be fetched */
  ir_val next_sender, next_edge, next_r; /* variables, where knots are staged: ends of the edge after those, and the length of the next to be fetched */
  clb_staged_operand x[ORDERS], w[ORDERS];
  int y[ORDERS], r;               /* where elements of y lie in a slot, and the edge's length */
  ir_val first;                   /* i64: the unit's first channel */
  ir_val base;                    /* of the slot at hand, where this slice's edge starts */
} clb_stage;

/* Weights as cubic Hermite splines W(r) between knots (spline.c).  With u = (r - r_i) / h in the interval:
   W = v_i + u^2 (3-2u) (v_i+1 - v_i) + h (u (1-u)^2 s_i + u^2 (u-1) s_i+1) of values v and slopes s; beyond the ends r is theirs.
   Double backward: the number q that comes in along r makes the vector c = q W', and r's gradient is W' . (gradient of w) + q W'' . (gradient of c). */
typedef struct {
  clb_form_array table;           /* [knots][W][2]; base (i64): the row of an edge's interval, of that at hand or, where knots are staged, of that sent for */
  ir_val at, first, inverse, spacing, knots; /* parameters: the table starts at element `at` (i64); r_0, 1 / h, h (arithmetic); i32 */
  /* of the edge at hand */
  ir_val weight[3], slope[3], bend[3]; /* what v_i+1 - v_i, s_i, s_i+1 are multiplied with in W, W' and q W'' */
  ir_val along;                   /* q, or IR_NONE */
  ir_val knot[3], by_r;           /* these three and W' of the path at hand */
  ir_val sum[2][3];               /* of these three over paths, times gradients by w and by c; IR_NONE: nothing yet */
} clb_spline;

/* On a CPU, whose registers hold few components: some edges at a time, for one part and block of channels after the other (batch.c).
   What stays between these turns lies in local memory: sums of z, products c y of the edges, vectors whose lanes add up to gradients of y. */
enum { CLB_MAX_PRODUCTS = 2048 };
typedef struct {
  int order, y;                   /* an element of y or its like */
  double c;
  ir_val value;                   /* of the edge at hand, or IR_NONE */
} clb_batch_product;
typedef struct {
  ir_val sums, products, shares;  /* local arrays [Z], [edges][products], [edges][columns][lanes]; IR_NONE: none */
  int n_products;
  clb_batch_product *product;
  ir_val limit;                   /* i32: no place beyond this is asked for */
  ir_val row;                     /* i64: of the edge at hand in `products` */
  ir_val turn;                    /* i32: number of the part's block of channels among the `turns` that an edge goes through */
  int turns;
} clb_batch;

typedef struct {
  clb_form_builder f;
  clb_walk walk;
  clb_path_builder at;
  clb_parts parts;
  double scale[CLB_MAX_TERMS][MAX_M];
  ir_val other, add;              /* parameters: the sender of each place (int32), of results of z (i32): 0 overwrite, 1 add, 2 overwrite where the row has edges */
  clb_spline spline;
  /* of the unit, and of its block of channels at hand */
  int mul, block, width;          /* width: lanes of a slice */
  ir_val lane, slice;             /* i32: the lane's number in its slice; the slice's, or IR_NONE where there is but one */
  ir_val unit, first;             /* i32: the unit's number, its first channel */
  ir_val channel, mask;           /* i64; lanes that have a channel, or IR_NONE */
  ir_val there, write;            /* lanes whose slice has an edge of its own; these of `mask`; or IR_NONE */
  ir_val z[CLB_MAX_TOGETHER][CLB_MAX_TERMS][MAX_M]; /* components: of g, or variables that sum up a result */
  /* of the edge at hand */
  ir_val edge, sender;            /* i64 */
  ir_val x_sum[CLB_MAX_TERMS][MAX_M], y_sum[CLB_MAX_CHANNEL_WISE_Y + 1];
  clb_stage stage;
  clb_batch batch;
  ir_val meeting, turn;           /* local array [edges][units][of y][pitch], of units twice, or IR_NONE; i32: 0 or `shares`: which half is in use */
  int shares, pitch;              /* pitch: 1, or without shuffles one for each lane and one more */
  int n_held;                     /* variables that hold g across batches of edges */
  ir_val held[CLB_MAX_HELD];
} clb_convolution;

/* Sums over channels that an edge asks for: gradients of y, and where weights are splines that of r, the last one. */
static inline int clb_y_columns(const clb_problem *p) { return p->tensor_product.y.dim + (p->convolution.spline ? 1 : 0); }

/* Where this lane's slice reads in the turn that starts at `place`, of places up to last - 1. */
ir_val clb_slice_place(clb_convolution *c, ir_val place, ir_val last);
static inline int clb_slices(const clb_convolution *c) { return c->f.s->lanes / c->width; }

/* ---- the walk (convolution.c) ---- */

/* Opens the blocks of channels of a part: the next units do some each, or this sub-group goes through them; whether that is to be ended. */
bool clb_part_open(clb_convolution *c, int part, int *next_unit);
/* Turns to block number j of the unit's. */
void clb_turn_to(clb_convolution *c, int j);
/* The turns of a part's slices over places first ... last - 1; the place at hand. */
ir_val clb_turns_open(clb_convolution *c, ir_val first, ir_val last);
void clb_turns_close(clb_convolution *c);
/* Turns to a place: where its operands are, and the elements of y. */
void clb_edge_begin(clb_convolution *c, ir_val place, ir_val last);
/* The elements of a term of y and its like, of the edge at hand. */
void clb_load_y(clb_convolution *c, int term);
/* Where registers are few, a batch's paths come in the order of the terms of y, whose elements and gradients then are at hand for a while only. */
bool clb_by_terms_of_y(const clb_convolution *c);
/* Components of g, scaled. */
void clb_load_scaled(clb_convolution *c, int term, ir_val *v);

void clb_results_of_z(clb_convolution *c, int o);
void clb_results_of_edges(clb_convolution *c);

/* ---- staged operands ---- */

/* Declares the parameter, and the local array if the schedule asks for stages. */
void clb_stage_begin(clb_convolution *c);
/* Turns to a part's block of channels; then starts with places first ... last - 1 of a part's block of channels. */
void clb_stage_plan(clb_convolution *c, int part);
void clb_stage_open(clb_convolution *c, int part, ir_val first, ir_val last);
/* Waits for the place at hand, sends for one more; then elements of y are there, and vectors of x and w can be read. */
void clb_stage_edge(clb_convolution *c, ir_val place, ir_val last);
void clb_stage_load(clb_convolution *c, int slot, int order, ir_val *v);
/* Knots of splines are staged where copies are little of the work; else an edge's are loaded where they are needed. */
static inline bool clb_stages_knots(const clb_problem *p) { return p->convolution.spline && p->pass == CLB_FORWARD; }
/* Of the path at hand: value and slope at both ends of the edge's interval. */
void clb_stage_knots(clb_convolution *c, ir_val v[4]);
/* At the end of the edge. */
void clb_stage_next(clb_convolution *c);
/* Elements that a sub-group's slot takes. */
int clb_stage_size(const clb_problem *p, const clb_parts *parts, const clb_schedule *s);
bool clb_reads(const clb_tensor_product_problem *tp, int slot, int order);

/* Whether such sums are among a pass's results. */
static inline bool clb_wants_sums(const clb_problem *p) {
  return p->pass != CLB_FORWARD && p->tensor_product.gradients & (CLB_Y | (p->convolution.spline ? CLB_W : 0));
}

/* ---- batches ---- */

/* Parts of some terms of z each, of `most` components unless one has more, and the paths to them. */
void clb_parts_of_z(const clb_tensor_product_problem *tp, int most, clb_parts *parts);

void clb_batch_begin(clb_convolution *c);
void clb_batch_free(clb_convolution *c);
/* After clb_walk_begin. */
void clb_batch_limit(clb_convolution *c);
/* Bytes of operands and results that so many edges have. */
int64_t clb_batch_bytes(const clb_problem *p, int edges);
/* Sets n elements, whole vectors or the last one in part, to 0. */
void clb_batch_clear(clb_convolution *c, ir_val array, int64_t n);
/* Asks for rows of the edge that is a batch ahead of the place: in each turn for as many lines, in the order of the memory, which processors
   take up and run ahead of. */
void clb_batch_ask(clb_convolution *c, ir_val place);
/* Makes the products of the edge at hand, the batch's number `number` (i32); turns to those of an edge. */
void clb_batch_multiply(clb_convolution *c, ir_val number);
void clb_batch_turn(clb_convolution *c, ir_val number);
/* Where component i of the block at hand of a term of z is summed up (i64, of `sums`). */
ir_val clb_batch_sum(clb_convolution *c, int term, int i);
/* y_sum of those of n columns from `first` on that paths from a term of x (-1: any) add to, of the edge of this number. */
void clb_batch_recall(clb_convolution *c, int x, int first, int n, ir_val number);
void clb_batch_keep(clb_convolution *c, int x, int first, int n, ir_val number);

/* ---- splines ---- */

void clb_spline_parameters(clb_convolution *c);
/* i64: where the table's row of a length r (arithmetic, uniform) starts.  find: it is that of `table`. */
ir_val clb_spline_row(clb_convolution *c, ir_val r);
void clb_spline_find(clb_convolution *c, ir_val r);
/* Turns to an edge of length r[0]; r[1]: what comes in along it, or IR_NONE. */
void clb_spline_edge(clb_convolution *c, const ir_val *r);
/* The weight of the path at hand and its derivative by r. */
ir_val clb_spline_weight(clb_convolution *c);
/* Adds the share that the path at hand, whose weight (0) or what comes in along it (1) has the gradient g, has of the gradient by r; adds all shares
   to `slope` (IR_NONE: nothing). */
void clb_spline_add(clb_convolution *c, int of_what, ir_val g);
ir_val clb_spline_slope(clb_convolution *c, ir_val slope);

/* Vectors of x, y and w that a pass may read. */
static inline int clb_orders(const clb_problem *p) { return p->pass == CLB_DOUBLE_BACKWARD ? 2 : 1; }

/* The walk itself, in IR (convolution.c). */
void clb_convolution_lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k);

/* Which output is of this slot and asked for; -1: none. */
int clb_wanted_output(const clb_form_builder *f, int slot);

/* ---- sums over lanes (lanes.c) ---- */

/* Sums v[0 ... n-1] (IR_NONE: 0) over the lanes, n <= lanes: the sum of element t is returned in the lanes whose number / *share is t.
   Halves the values from step to step, not only the lanes. */
ir_val clb_sum_over_lanes(ir_kernel *k, ir_type t, int lanes, const ir_val *v, int n, int *share);

#endif
