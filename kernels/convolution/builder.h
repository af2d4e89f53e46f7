/* kernels/convolution/builder.h - the loop over a row's edges: how its work is divided among
   sub-groups, and its operands.

   Results of z are sums over the row's edges, kept in registers; all others belong to an edge.  A
   *part* is some terms of x of equal multiplicity and paths from them.  A *role* is a part and a
   block of its channels: on a GPU a sub-group does one role of one row, and the role is the slow
   index of the grid; elsewhere one sub-group does all
   blocks of all parts, one after the other.

   Where a part has fewer channels than a sub-group has lanes, the sub-group is divided into
   *slices* of `width` lanes, a power of two, each of which processes an edge of its own: slice s
   the one in edge slot `edge_slot + s` (kernels/graph/segment.h says what an edge slot is).  At the
   end of a row, slices without an edge repeat the last one; what they add to sums is 0, and they
   write nothing.

   Where edges are few, the sub-groups of a group are a *team*: they share the edges of one row, and
   the first of them adds up their sums of z (team_sums.c). */
#ifndef CLB_KERNELS_CONVOLUTION_BUILDER_H
#define CLB_KERNELS_CONVOLUTION_BUILDER_H

#include "kernels/common/team_sums.h"
#include "kernels/convolution/frame.h"
#include "kernels/convolution/spline.h"
#include "kernels/graph/segment.h"
#include "kernels/tensor_product/path.h"

/* The operands of the next edges, which are being copied into local memory (pipeline.c).  A chunk
   is one component of x, or one weight, of all channels of a sub-group. */
enum { CLB_MAX_STAGES = 8, CLB_MAX_CHUNKS = 1024 };
typedef struct {
  const clb_form_array *array;
  int n, at;                    /* chunks; offset of the first one in a stage */
  int64_t from[CLB_MAX_CHUNKS]; /* offset of each in the row, for the first channel */
  int step[CLB_MAX_CHUNKS];     /* elements from one channel to the next */
  int source[CLB_MAX_CHUNKS];   /* term of x, or path of a weight */
  int in_run[CLB_MAX_CHUNKS];   /* index in a run of `step` chunks that hold the same
 channels */
} clb_staged_operand;

typedef struct {
  int stages;                /* buffers; 0: operands are not staged */
  int stage_size, edge_size; /* elements of a stage; of one edge in it */
  ir_val array;              /* local */
  ir_val first_stage,
      current; /* where this sub-group's stages start; variable: index of the current stage */
  ir_val sender[CLB_MAX_STAGES], edge[CLB_MAX_STAGES]; /* variables: ends of the edges from the
                            current one to the next to be fetched */
  clb_form_array in[SLOTS][ORDERS]; /* operands; base: rows of the edge that is being fetched */
  clb_staged_operand x[ORDERS], w[ORDERS];
  int y[ORDERS], r; /* offsets of y and of the edge's length in a stage */
  ir_val first;     /* i64: the unit's first channel */
  ir_val base;      /* start of this slice's edge in the current stage */
} clb_stage;

/* A CPU has registers for few components.  There a batch of edges is processed for one part and
   block of channels after the other (batch.c).  Local memory keeps, from one block to the next:
   sums of z, the matrices M_ik = sum_j C_ijk y_j of edges and paths, and the lanes' partial sums of
   gradients of y. */
enum { CLB_MAX_PRODUCTS = 4096 };
typedef struct {
  int y; /* index of an element of y */
  double c;
} clb_batch_term;
typedef struct {
  int order, first, n; /* of y; its terms */
  ir_val value;        /* of the current edge, or IR_NONE: not loaded */
} clb_batch_product;
typedef struct {
  ir_val sums, products, partial_sums; /* local arrays [z.dim], [edges][products],
                       [edges][columns][lanes]; IR_NONE: none */
  int n_products, n_terms;
  clb_batch_product *product;
  clb_batch_term *term;
  ir_val last_slot; /* i32: the last edge slot that may be prefetched */
  ir_val row;       /* i64: start of the current edge in `products` */
  int blocks;       /* blocks of channels of all parts */
} clb_batch;

/* The frame of the current edge (frame_rotation.c, frame_path.c). */
enum { CLB_FRAME_QUAD = 4 };
typedef struct {
  int l;            /* its highest degree; 0: no path is computed in the frame */
  bool has_tangent; /* the pass has a tangent of the edge's vector */
  ir_val cosine[CLB_MAX_FRAME_L + 1], sine[CLB_MAX_FRAME_L + 1];
  ir_val tangent[CLB_FRAME_QUAD]; /* its row (frame.h) */
  ir_val omega[2];                /* the rotation that it makes of the frame, about x and z */
  int cached_at;                  /* numbers cached_at ... of its row are in cached[]; -1: none */
  ir_val cached[CLB_FRAME_QUAD];
  int generator_l; /* the degree of generator[]; 0: none */
  double generator[2][MAX_M * MAX_M];
} clb_frame;

/* On a GPU without stages each lane finds the ends, and the place in the table, of one of the next
   edges of its slice, for as many as a slice has lanes; then one after the other is passed to all
   lanes by shuffles (edge.c).  Variables. */
typedef struct {
  ir_val turn; /* i32, uniform: which of them is the current edge */
  ir_val sender, edge;
  clb_spline_place place;
} clb_ahead;

/* Gradients of the current edge, and the array in which those of y of several edges are summed
   (edge_results.c). */
typedef struct {
  ir_val x_sum[CLB_MAX_TERMS][CLB_MAX_PER_LANE][MAX_M], y_sum[CLB_MAX_CHANNEL_WISE_Y + 1];
  ir_val local_sums; /* local array [edges][columns][pitch], or IR_NONE */
  ir_val role_sums, role_sums_at, role_sums_pitch; /* parameters, where roles share an edge: array
 [role][edge][columns] of arithmetic precision; where edge e0 of the first role starts (i64), and
 how far roles are apart (i64) */
  int n_sums, pitch; /* elements of local_sums; pitch: 1, or without shuffles lanes + 1 */
} clb_edge_results;

/* One of the channels of a lane: the owner of its builder of paths. */
typedef struct clb_convolution clb_convolution;
typedef struct {
  clb_convolution *c;
  int number;
} clb_channel;
/* The vector of an operand that was loaded last, of all channels of a lane. */
typedef struct {
  int source; /* term of x, or path; -1: none */
  ir_val v[CLB_MAX_PER_LANE][MAX_M];
} clb_cached_operand;

/* The state of lowering a convolution.  Each file writes its own struct and reads the others;
   edge.c and the two files of results call the rest. */
struct clb_convolution {
  clb_form_builder f;
  clb_problem all; /* the problem of one walk, whose gradients include those of z */
  const clb_convolution_settings *s; /* of the schedule f.s */
  clb_segment walk;
  clb_channel channel[CLB_MAX_PER_LANE];
  clb_path_builder builder[CLB_MAX_PER_LANE]; /* one for each channel of a lane */
  clb_cached_operand cached[SLOTS][ORDERS];
  clb_parts parts;
  double scale[CLB_MAX_TERMS][MAX_M];
  ir_val other, add; /* parameters: the sender of each edge slot (int32); results of z (i32): 0
                        overwrite, 1 add, 2 overwrite rows that have edges */
  clb_spline spline;
  clb_unit unit;
  ir_val g[CLB_MAX_PER_LANE][CLB_MAX_TERMS][MAX_M], z[CLB_MAX_PER_LANE][CLB_MAX_TERMS][MAX_M];
  /* components of g; variables with the sums of results of z */
  ir_val local_g; /* local array with g instead; IR_NONE: none */
  /* the current edge */
  ir_val edge, sender; /* i64 */
  clb_stage stage;
  clb_ahead ahead;
  clb_team_sums team;
  clb_frame frame;
  clb_batch batch;
  clb_edge_results results;
};

/* Sums over channels of an edge: gradients of y and, last, where weights are splines, that of r. */
static inline int clb_y_columns(const clb_problem *p, const clb_schedule *s) {
  return s->convolution.frame ? clb_frame_sums((clb_pass)p->pass, p->convolution.spline)
                              : p->tensor_product.y.dim + (p->convolution.spline ? 1 : 0);
}
/* Numbers of an edge: of y (order 0) or its incoming gradient (1), or of the frame and a tangent.
 */
static inline int clb_y_size(const clb_problem *p, const clb_schedule *s, int order) {
  return !s->convolution.frame ? p->tensor_product.y.dim
         : order               ? CLB_TANGENT_SIZE
                               : clb_frame_size(clb_frame_degree(&p->tensor_product));
}

/* Whether a pass reads the vector of this slot and order. */
static inline bool clb_reads(const clb_tensor_product_problem *tp, int slot, int order) {
  return order == 0 || (order == 1 && tp->incoming >> slot & 1);
}

/* ---- the current edge (edge.c) ---- */

/* Opens the blocks of channels of a part: an IF of the roles that have one each, or a loop over
   them. Returns whether the caller has to end it. */
bool clb_part_open(clb_convolution *c, int part, int *next_role);
/* Makes channel j of a lane the current one. */
void clb_select_channel(clb_convolution *c, int j);
/* The loop over edge slots first ... last - 1, in steps of the number of slices; returns the slot
   of the first slice. */
ir_val clb_edge_loop_open(clb_convolution *c, ir_val first, ir_val last);
void clb_edge_loop_close(clb_convolution *c);
/* Starts an edge slot: finds its operands and loads the elements of y. */
void clb_edge_begin(clb_convolution *c, ir_val edge_slot, ir_val last);
/* i64: the number of the current edge among those in range. */
ir_val clb_edge_in_block(const clb_convolution *c);
/* Whether the weights of slices without an edge are set to 0, so that nothing is added to sums;
   else other operands are. */
bool clb_weights_clear(const clb_convolution *c);
/* Loads the elements of a term of y, and of its incoming gradient, of the current edge. */
void clb_load_y(clb_convolution *c, int term);
/* Whether paths come in the order of the terms of y, so that the elements and gradients of only one
   term are in registers: in batches, as a CPU has few. */
bool clb_by_terms_of_y(const clb_convolution *c);
/* The vector of x or w of a path, of all channels of a lane. */
const ir_val (*clb_edge_vectors(clb_convolution *c, int slot, int order, const clb_path *p))[MAX_M];
/* The same of one channel, for its builder of paths, whose owner is a clb_channel. */
void clb_edge_load(void *owner, int slot, int order, ir_val *v);
/* Components of g, scaled. */
void clb_load_scaled(clb_convolution *c, int term, ir_val *v);

/* Stores or adds to output o the components of a term of x or z, or (term -1) a path's weight, of
   all channels of a lane; IR_NONE: 0. */
void clb_store_channels(clb_convolution *c, int o, int term, const clb_path *p, ir_val v[][MAX_M],
                        ir_val mask, bool add);
/* The gradient of a term of x. */
void clb_store_x(clb_convolution *c, int term, int o, ir_val v[][MAX_M], bool add);

/* ---- g of a row (edge.c) ---- */

/* Components of g of a term, of all channels of a lane; and moves them to local memory, where the
   schedule asks for it. */
const ir_val (*clb_edge_g(clb_convolution *c, int term))[MAX_M];
void clb_keep_g(clb_convolution *c, int part);
/* Elements that a sub-group keeps there. */
int clb_local_g_size(const clb_problem *p, const clb_parts *parts, const clb_schedule *s);

/* ---- in the edge's frame (frame_path.c) ---- */

/* Chooses scales of terms of z, so that one coefficient of a path is 1. */
void clb_frame_scales(clb_convolution *c);
/* Loads what all paths of the current edge need. */
void clb_frame_begin(clb_convolution *c);
/* Forward: adds the edge's contribution to the part's components of z.  Backward: stores the
   gradients of the part's x and w, and adds to the torques (the first two of y_sum) and to the
   gradient of the edge's length. */
void clb_frame_to_z(clb_convolution *c, int part);
void clb_frame_to_edge(clb_convolution *c, int part);

/* ---- receiver_results.c, edge_results.c ---- */

void clb_results_of_z(clb_convolution *c, int o);
/* Of its rows, for a walk that also gives results of edges: opens and closes a row; makes the
   part's sums, adds a path's contribution in the current edge, and stores them. */
void clb_z_rows_open(clb_convolution *c, int o);
void clb_z_rows_close(clb_convolution *c, int o);
void clb_z_sums_begin(clb_convolution *c, int part);
void clb_z_sums_store(clb_convolution *c, int part, int o);
/* Declares the arrays in which gradients of y are summed. */
void clb_edge_results_begin(clb_edge_results *r, const clb_convolution *c);
void clb_results_of_edges(clb_convolution *c);

/* ---- staged operands ---- */

/* Declares the parameter, and the local array if the schedule asks for stages. */
void clb_stage_begin(clb_stage *g, const clb_convolution *c);
/* Prefetches the first of edge slots first ... last - 1, for the part's block of channels. */
void clb_stage_open(clb_stage *g, const clb_convolution *c, int part, ir_val first, ir_val last);
/* Waits for the operands of an edge slot, prefetches one more, and returns the edge's ends.  Then
   its elements of y, and vectors of x and w, can be read. */
void clb_stage_edge(clb_stage *g, const clb_convolution *c, ir_val edge_slot, ir_val last,
                    ir_val *sender, ir_val *edge);
void clb_stage_y(const clb_stage *g, const clb_convolution *c, int order, ir_val *y);
/* CLB_FRAME_QUAD numbers of the frame's row (order 0) or the tangent's (1), from a multiple of as
   many on. */
void clb_stage_numbers(const clb_stage *g, const clb_convolution *c, int order, int at, ir_val *v);
void clb_stage_load(const clb_stage *g, const clb_convolution *c, int slot, int order,
                    const clb_path *p, ir_val v[][MAX_M]);
/* Advances to the next stage, at the end of an edge. */
void clb_stage_next(clb_stage *g, const clb_convolution *c);
/* Numbers of z that a lane sums at most at once: those of a term. */
int clb_team_values(const clb_tensor_product_problem *tp, const clb_parts *parts);
/* Elements of a sub-group's stage. */
int clb_stage_size(const clb_problem *p, const clb_parts *parts, const clb_schedule *s);

/* Whether sums over channels (clb_y_columns) are among a pass's results. */
static inline bool clb_wants_sums(const clb_problem *p) {
  const int gradients = p->tensor_product.gradients;
  return p->pass != CLB_FORWARD && ((gradients & CLB_OPERAND_Y && p->tensor_product.y.dim) ||
                                    (gradients & CLB_OPERAND_W && p->convolution.spline));
}

/* ---- batches ---- */

void clb_batch_begin(clb_batch *b, const clb_convolution *c);
void clb_batch_free(clb_batch *b);
/* Adds a path's contribution to output o, z, in all channels of a lane, from its matrix M_ik. */
void clb_batch_add_z(clb_convolution *c, const clb_path *p, int o, ir_val sum[][MAX_M]);
/* Finds the last edge slot that may be prefetched; after clb_segment_begin. */
void clb_batch_find_last_slot(clb_batch *b, const clb_convolution *c);
/* Bytes of the operands and results of so many edges. */
int64_t clb_batch_bytes(const clb_problem *p, int edges);
/* Sets n elements to 0. */
void clb_batch_clear(const clb_convolution *c, ir_val array, int64_t n);
/* Prefetches the rows of the edge that is one batch ahead: in each block of channels as many cache
   lines, in ascending order, which the processor's own prefetcher recognises and continues. */
void clb_batch_prefetch(const clb_convolution *c, ir_val edge_slot);
/* Computes the matrices M_ik of the current edge, number `number` (i32) of the batch, and stores
   them; selects those of an edge for clb_batch_add_z. */
void clb_batch_multiply(clb_batch *b, const clb_convolution *c, ir_val number);
void clb_batch_select(clb_batch *b, const clb_convolution *c, ir_val number);
/* i64: index in `sums` of component i of a term of z, for the current channels. */
ir_val clb_batch_sum(const clb_convolution *c, int term, int i);
/* Load and store an edge's partial sums of those of columns first ... first + n - 1 to which paths
   from a term of x (-1: any) add. */
void clb_batch_load_sums(const clb_convolution *c, int x, int first, int n, ir_val number,
                         ir_val *sum);
void clb_batch_store_sums(const clb_convolution *c, int x, int first, int n, ir_val number,
                          const ir_val *sum);

/* How many vectors of each of x, y and w a pass may read: the operand and its incoming gradient. */
static inline int clb_orders(const clb_problem *p) {
  return p->pass == CLB_DOUBLE_BACKWARD ? 2 : 1;
}

/* Makes a schedule one of teams, for rows of z; false: there can be none (schedule.c). */
bool clb_convolution_team(const clb_problem *p, const clb_limits *limits, clb_schedule *s);

/* Writes the kernel (convolution.c). */
void clb_convolution_lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k);

#endif
