/* kernels/convolution/builder.h - the loop over a row's edges: how its work is divided among
   sub-groups, and its operands.

   Results of z are sums over the row's edges, kept in registers; all others belong to an edge.  A
   *part* is some terms of x of equal multiplicity and paths from them.  A *role* is a part and a
   block of its channels: on a GPU a sub-group does one role of one row, and the role is the slow
   index of the grid; elsewhere one sub-group does all blocks of all parts in turn.

   Where a part has fewer channels than a sub-group has lanes, the sub-group is divided into
   *slices* of `width` lanes, a power of two, each of which processes an edge of its own: slice s
   the one in edge slot `place + s`.  At the end of a row, slices without an edge repeat the last
   one; what they add to sums is 0, and they write nothing. */
#ifndef CLB_KERNELS_CONVOLUTION_BUILDER_H
#define CLB_KERNELS_CONVOLUTION_BUILDER_H

#include "kernels/convolution/frame.h"
#include "kernels/convolution/spline.h"
#include "kernels/graph/segment.h"
#include "kernels/tensor_product/path.h"

/* The operands of the next edges on their way into local memory (pipeline.c): pieces of as many
   elements as a sub-group has channels. */
enum { CLB_MAX_STAGES = 8, CLB_MAX_CHUNKS = 1024 };
typedef struct {
  const clb_form_array *array;
  int n, at;                    /* pieces; where the first one lies in a slot */
  int64_t from[CLB_MAX_CHUNKS]; /* where each starts in the row, for the first channels */
  int step[CLB_MAX_CHUNKS];     /* elements from one channel to the next */
  int source[CLB_MAX_CHUNKS];   /* the term of x, or the path of a weight */
  int in_run[CLB_MAX_CHUNKS];   /* number of the piece in a run of `step` pieces that hold the same
                                   channels */
} clb_staged_operand;

typedef struct {
  int stages;                /* slots; 0: nothing is staged */
  int stage_size, edge_size; /* elements of a slot; of an edge of the part in it */
  ir_val array;              /* local */
  ir_val first_stage,
      current; /* where this sub-group's stages start; variable: index of the current stage */
  ir_val sender[CLB_MAX_STAGES],
      edge[CLB_MAX_STAGES]; /* variables: ends of the edges to come, from the one at hand to the
                               next to be fetched */
  /* Variables, where knots are staged: ends of the edge after those, the length of the next one. */
  ir_val next_sender, next_edge, next_r;
  clb_form_array in[SLOTS][ORDERS], knots; /* the operands and the table of splines; base: the rows
                                              of the edge that is sent for */
  clb_staged_operand x[ORDERS], w[ORDERS];
  int y[ORDERS], r; /* where elements of y lie in a slot, and the edge's length */
  ir_val first;     /* i64: the unit's first channel */
  ir_val base;      /* of the slot at hand, where this slice's edge starts */
} clb_stage;

/* On a CPU, whose registers hold few components: some edges at a time, for one part and block of
   channels after the other (batch.c). What stays between these turns lies in local memory: sums of
   z, the sums M_ik = sum_j C_ijk y_j of the edges and paths, vectors whose lanes add up to
   gradients of y. */
enum { CLB_MAX_PRODUCTS = 4096 };
typedef struct {
  int y; /* an element of y or its like */
  double c;
} clb_batch_term;
typedef struct {
  int order, first, n; /* of y; its terms */
  ir_val value;        /* of the edge at hand, or IR_NONE */
} clb_batch_product;
typedef struct {
  ir_val sums, products, partial_sums; /* local arrays [Z], [edges][products],
                                          [edges][columns][lanes]; IR_NONE: none */
  int n_products, n_terms;
  clb_batch_product *product;
  clb_batch_term *term;
  ir_val last_slot; /* i32: the last edge slot that may be prefetched */
  ir_val row;       /* i64: of the edge at hand in `products` */
  int blocks;       /* blocks of channels of all parts */
} clb_batch;

/* The frame of the edge at hand (frame_rotation.c, frame_path.c). */
enum { CLB_FRAME_QUAD = 4 };
typedef struct {
  int l;            /* its highest degree; 0: paths are worked on where they are */
  bool has_tangent; /* the pass has a tangent of the edge's vector */
  ir_val cosine[CLB_MAX_FRAME_L + 1], sine[CLB_MAX_FRAME_L + 1];
  ir_val tangent[CLB_FRAME_QUAD]; /* its row (frame.h) */
  ir_val omega[2];                /* the rotation that it makes of the frame, about x and z */
  int cached_at;                  /* numbers kept_at ... of its row are in kept[]; -1: none */
  ir_val cached[CLB_FRAME_QUAD];
  int generator_l; /* of which degree generator[] are; 0: none */
  double generator[2][MAX_M * MAX_M];
} clb_frame;

/* Gradients of the edge at hand, and where those of y of several edges meet (edge_results.c). */
typedef struct {
  ir_val x_sum[CLB_MAX_TERMS][CLB_MAX_PER_LANE][MAX_M], y_sum[CLB_MAX_CHANNEL_WISE_Y + 1];
  ir_val local_sums;              /* local array [edges][of y][pitch], or IR_NONE */
  ir_val role_sums, role_sums_at; /* parameters, where roles share an edge: array [edge -
                             e0][role][of y], of arithmetic precision, and where it starts (i64) */
  int n_sums, pitch;              /* pitch: 1, or without shuffles one for each lane and one more */
} clb_edge_results;

/* The owner of a channel's builder of paths. */
typedef struct clb_convolution clb_convolution;
typedef struct {
  clb_convolution *c;
  int number;
} clb_channel;
/* The vector of a slot and order that was loaded last, of all channels of a lane. */
typedef struct {
  int source; /* the term of x, or the path; -1: none */
  ir_val v[CLB_MAX_PER_LANE][MAX_M];
} clb_cached_operand;

/* A convolution being lowered.  Each piece writes its own state alone and reads the rest; edge.c
   and the two files of results drive them. */
struct clb_convolution {
  clb_form_builder f;
  const clb_convolution_settings *s; /* of the schedule f.s */
  clb_segment walk;
  clb_channel channel[CLB_MAX_PER_LANE];
  clb_path_builder builder[CLB_MAX_PER_LANE]; /* of each channel that lies in a lane */
  clb_cached_operand cached[SLOTS][ORDERS];
  clb_parts parts;
  double scale[CLB_MAX_TERMS][MAX_M];
  ir_val other, add; /* parameters: the sender of each place (int32), of results of z (i32): 0
                        overwrite, 1 add, 2 overwrite where the row has edges */
  clb_spline spline;
  clb_unit unit;
  ir_val z[CLB_MAX_PER_LANE][CLB_MAX_TERMS]
          [MAX_M]; /* components: of g, or variables that sum up a result */
  /* of the edge at hand */
  ir_val edge, sender; /* i64 */
  clb_stage stage;
  clb_frame frame;
  clb_batch batch;
  clb_edge_results results;
};

/* Sums over channels that an edge asks for: gradients of y, and where weights are splines that of
   r, the last one. */
static inline int clb_y_columns(const clb_problem *p, const clb_schedule *s) {
  return s->convolution.frame ? clb_frame_sums((clb_pass)p->pass, p->convolution.spline)
                              : p->tensor_product.y.dim + (p->convolution.spline ? 1 : 0);
}
/* Numbers of y and its like (order 1), or of the frame and a tangent, that an edge has. */
static inline int clb_y_size(const clb_problem *p, const clb_schedule *s, int order) {
  return !s->convolution.frame ? p->tensor_product.y.dim
         : order               ? CLB_TANGENT_SIZE
                               : clb_frame_size(clb_frame_degree(&p->tensor_product));
}

/* Whether a pass reads the vector of this slot and order. */
static inline bool clb_reads(const clb_tensor_product_problem *tp, int slot, int order) {
  return order == 0 || (order == 1 && tp->incoming >> slot & 1);
}

/* ---- the edge at hand (edge.c) ---- */

/* Opens the blocks of channels of a part: the next units do some each, or this sub-group goes
   through them; whether that is to be ended. */
bool clb_part_open(clb_convolution *c, int part, int *next_role);
/* Turns to channel number j of those that lie side by side in a lane. */
void clb_select_channel(clb_convolution *c, int j);
/* Nothing of x and w is at hand. */
void clb_invalidate_operands(clb_convolution *c);
/* The turns of a part's slices over places first ... last - 1; the place at hand. */
ir_val clb_edge_loop_open(const clb_convolution *c, ir_val first, ir_val last);
void clb_edge_loop_close(clb_convolution *c);
/* Turns to a place: where its operands are, and the elements of y. */
void clb_edge_begin(clb_convolution *c, ir_val edge_slot, ir_val last);
/* The elements of a term of y and its like, of the edge at hand. */
void clb_load_y(clb_convolution *c, int term);
/* Where registers are few, a batch's paths come in the order of the terms of y, whose elements and
   gradients then are at hand for a while only. */
bool clb_by_terms_of_y(const clb_convolution *c);
/* A vector of x or w of a path, of all channels of a lane. */
const ir_val (*clb_edge_vectors(clb_convolution *c, int slot, int order, const clb_path *p))[MAX_M];
/* The same of one channel, for its builder of paths, whose owner is a clb_channel. */
void clb_edge_load(void *owner, int slot, int order, ir_val *v);
/* Components of g, scaled. */
void clb_load_scaled(clb_convolution *c, int term, ir_val *v);

/* Writes to output o what a term of x or z, or (term -1) a path's weight, has in the channels of a
   lane; IR_NONE stands for 0. */
void clb_store_channels(clb_convolution *c, int o, int term, const clb_path *p, ir_val v[][MAX_M],
                        ir_val mask, bool add);
/* The gradient of a term of x. */
void clb_store_x(clb_convolution *c, int term, int o, ir_val v[][MAX_M], bool add);

/* ---- in the edge's frame (frame_path.c) ---- */

/* Chooses scales of terms of z, so that one coefficient of a path is 1. */
void clb_frame_scales(clb_convolution *c);
/* Reads what all paths of the edge at hand need. */
void clb_frame_begin(clb_convolution *c);
/* Adds what the edge gives to the part's components of z; makes the gradients of the part's x and
   w, and adds to the torques (the first two of y_sum) and the gradient of the edge's length. */
void clb_frame_to_z(clb_convolution *c, int part);
void clb_frame_to_edge(clb_convolution *c, int part);

/* ---- receiver_results.c, edge_results.c ---- */

void clb_results_of_z(clb_convolution *c, int o);
/* Declares where gradients of y meet. */
void clb_edge_results_begin(clb_edge_results *r, const clb_convolution *c);
void clb_results_of_edges(clb_convolution *c);

/* ---- staged operands ---- */

/* Declares the parameter, and the local array if the schedule asks for stages. */
void clb_stage_begin(clb_stage *g, const clb_convolution *c);
/* Starts with places first ... last - 1 of the part's block of channels. */
void clb_stage_open(clb_stage *g, const clb_convolution *c, int part, ir_val first, ir_val last);
/* Waits for the place at hand, sends for one more; the edge's ends.  Then its elements of y, and
   vectors of x and w, can be read. */
void clb_stage_edge(clb_stage *g, const clb_convolution *c, ir_val edge_slot, ir_val last,
                    ir_val *sender, ir_val *edge);
void clb_stage_y(const clb_stage *g, const clb_convolution *c, int order, ir_val *y);
/* CLB_FRAME_QUAD numbers of the frame's row (order 0) or the tangent's (1), from a multiple of as
   many on. */
void clb_stage_numbers(const clb_stage *g, const clb_convolution *c, int order, int at, ir_val *v);
void clb_stage_load(const clb_stage *g, const clb_convolution *c, int slot, int order,
                    const clb_path *p, ir_val v[][MAX_M]);
/* Knots of splines are staged where copies are little of the work; else an edge's are loaded where
   they are needed. */
static inline bool clb_stages_knots(const clb_problem *p) {
  return p->convolution.spline && p->pass == CLB_FORWARD;
}
/* Of the path at hand: the coefficients of all channels of a lane. */
void clb_stage_knots(const clb_stage *g, const clb_convolution *c, const clb_path *p,
                     ir_val v[][CLB_SPLINE_ORDER]);
/* At the end of the edge. */
void clb_stage_next(clb_stage *g, const clb_convolution *c);
/* Elements that a sub-group's slot takes. */
int clb_stage_size(const clb_problem *p, const clb_parts *parts, const clb_schedule *s);

/* Whether such sums are among a pass's results. */
static inline bool clb_wants_sums(const clb_problem *p) {
  const int gradients = p->tensor_product.gradients;
  return p->pass != CLB_FORWARD && ((gradients & CLB_OPERAND_Y && p->tensor_product.y.dim) ||
                                    (gradients & CLB_OPERAND_W && p->convolution.spline));
}

/* ---- batches ---- */

void clb_batch_begin(clb_batch *b, const clb_convolution *c);
void clb_batch_free(clb_batch *b);
/* Adds a path's contribution to output o, z, in all channels of a lane, from the sums M_ik. */
void clb_batch_add_z(clb_convolution *c, const clb_path *p, int o, ir_val sum[][MAX_M]);
/* After clb_segment_begin. */
void clb_batch_find_last_slot(clb_batch *b, const clb_convolution *c);
/* Bytes of operands and results that so many edges have. */
int64_t clb_batch_bytes(const clb_problem *p, int edges);
/* Sets n elements, whole vectors or the last one in part, to 0. */
void clb_batch_clear(const clb_convolution *c, ir_val array, int64_t n);
/* Asks for rows of the edge that is a batch ahead of the place: in each turn for as many lines, in
   the order of the memory, which processors take up and run ahead of. */
void clb_batch_prefetch(const clb_convolution *c, ir_val edge_slot);
/* Makes the products of the edge at hand, the batch's number `number` (i32); turns to those of an
   edge. */
void clb_batch_multiply(clb_batch *b, const clb_convolution *c, ir_val number);
void clb_batch_select(clb_batch *b, const clb_convolution *c, ir_val number);
/* Where component i of the block at hand of a term of z is summed up (i64, of `sums`). */
ir_val clb_batch_sum(const clb_convolution *c, int term, int i);
/* Sums of those of n columns from `first` on that paths from a term of x (-1: any) add to, of the
   edge of this number. */
void clb_batch_load_sums(const clb_convolution *c, int x, int first, int n, ir_val number,
                         ir_val *sum);
void clb_batch_store_sums(const clb_convolution *c, int x, int first, int n, ir_val number,
                          const ir_val *sum);

/* Vectors of x, y and w that a pass may read. */
static inline int clb_orders(const clb_problem *p) {
  return p->pass == CLB_DOUBLE_BACKWARD ? 2 : 1;
}

/* The walk itself, in IR (convolution.c). */
void clb_convolution_lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k);

#endif
