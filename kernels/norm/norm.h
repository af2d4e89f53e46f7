/* kernels/norm/norm.h - shared by the files of the norm's kernel.

   A team of lanes processes a row: a part of a sub-group, a sub-group or a whole group. A chunk is
   what a team accesses at once: each lane `width` adjacent elements. A group goes through many
   rows, and adds up gradients by weights on its way; the sums of all groups, "partial" rows with an
   entry for each element (and bias), are added up by a second kernel (sum.c). */
#ifndef CLB_KERNELS_NORM_NORM_H
#define CLB_KERNELS_NORM_NORM_H

#include "kernels/layers/layer.h"
#include "kernels/norm/plan.h"

enum {
  CLB_NORM_MOST_WIDTH = 8,
  CLB_NORM_MOST_KEPT = 64, /* elements of a row in a lane's registers */
  CLB_NORM_CHAINS = 4      /* sums that a lane adds to in turn */
};

/* Rows that are read, in the order of the calls; a row of weights is another matter. */
enum { NORM_X, NORM_G, NORM_A, NORM_INPUTS };

/* Sums over a row. Of 0e: what follows from means that are subtracted. h = w g; x, a centred:
     SQUARES f x^2   PULL h x   BEND a h   SLANT f a x   TURN c g x     f: the segment's factor */
enum {
  SUM_SQUARES,
  SUM_PULL,
  SUM_BEND,
  SUM_SLANT,
  SUM_TURN,
  SUM_OF_GROUPS, /* those above are one for each group */
  SUM_X = SUM_OF_GROUPS,
  SUM_A,
  SUM_H,
  SUM_CG,
  NORM_SUMS
};

typedef struct {
  const clb_norm_segment *s;
  ir_val from; /* i64, uniform: its first element, counted in the segment */
  ir_val mask; /* lanes that have elements, or IR_NONE */
  int number;  /* in the row, if it is kept; else of the copy in the loop's body */
} clb_norm_chunk;

typedef struct {
  clb_row_kernel l;
  const clb_problem *p;
  const clb_rms_norm_problem *norm;
  clb_norm_plan plan;
  int width, team, rows;          /* elements of an access, lanes of a team, teams of a sub-group */
  bool kept, local, weights_kept; /* of the schedule; local: through_local */
  bool together;                  /* the group is one team */
  bool x, w, z;                   /* gradients by these are asked for */
  bool a, c;                      /* these are given */
  int n_in;
  clb_row_array in[NORM_INPUTS], out[2], weights, c_row;
  ir_val partial, apart, step, span;                      /* parameters */
  ir_val member;                                          /* i32: number of this lane in its team */
  ir_val place;                                           /* i64: of its first element in a chunk */
  ir_val row_mask;                                        /* lanes that have a row, or IR_NONE */
  ir_val start[NORM_INPUTS], out_start[2], partial_start; /* this lane's first element */
  /* of a row that is kept, by chunk and element */
  ir_val value[NORM_INPUTS][CLB_NORM_MOST_KEPT], weight[CLB_NORM_MOST_KEPT],
      bias[CLB_NORM_MOST_KEPT], c_weight[CLB_NORM_MOST_KEPT], c_bias[CLB_NORM_MOST_KEPT],
      sum[CLB_NORM_MOST_KEPT], bias_sum[CLB_NORM_MOST_KEPT];
  /* of the row; IR_NONE: not needed */
  ir_val chain[NORM_SUMS][CLB_NORM_MOST_GROUPS][CLB_NORM_CHAINS];
  ir_val total[NORM_SUMS][CLB_NORM_MOST_GROUPS];
  ir_val mean[NORM_INPUTS]; /* of 0e, subtracted from inputs; IR_NONE: nothing is */
  ir_val root[CLB_NORM_MOST_GROUPS];
  ir_val row;            /* [inputs][numbers of a row] in local memory */
  ir_val spread;         /* weights and c of each element, in local memory; IR_NONE: they are not */
  ir_val stage;          /* sums of gradients of each sub-group, in local memory */
  ir_val exchange, turn; /* sums of a group that is one team go through two arrays in turn */
} clb_norm_kernel;

typedef void clb_norm_each(clb_norm_kernel *b, const clb_norm_chunk *c);

/* team.c: the loop over rows. */
void clb_norm_begin_rows(clb_norm_kernel *b);
void clb_norm_end_rows(clb_norm_kernel *b);

/* emit.c: chunks of a row; what of it is kept. */
void clb_norm_chunks(clb_norm_kernel *b, clb_norm_each *each);
clb_norm_each clb_norm_keep_weights, clb_norm_spread_weights, clb_norm_keep_inputs;
/* Elements of an input, centred; weights with the offset, biases, and those of c. */
void clb_norm_input(clb_norm_kernel *b, const clb_norm_chunk *c, int input, ir_val *v);
void clb_norm_weights(clb_norm_kernel *b, const clb_norm_chunk *c, ir_val *v);
void clb_norm_biases(clb_norm_kernel *b, const clb_norm_chunk *c, ir_val *v);
void clb_norm_c(clb_norm_kernel *b, const clb_norm_chunk *c, ir_val *v);
void clb_norm_c_biases(clb_norm_kernel *b, const clb_norm_chunk *c, ir_val *v);
void clb_norm_write(clb_norm_kernel *b, const clb_norm_chunk *c, int output, const ir_val *v);

/* reduce.c: sums over a row, and over rows. */
void clb_norm_exchange_begin(clb_norm_kernel *b);
void clb_norm_clear(clb_norm_kernel *b, int first, int last); /* sums first ... last - 1 */
void clb_norm_add(clb_norm_kernel *b, const clb_norm_chunk *c, int sum, ir_val a, ir_val x);
void clb_norm_total(clb_norm_kernel *b, int first, int last);
void clb_norm_partial_begin(clb_norm_kernel *b);
void clb_norm_partial_add(clb_norm_kernel *b, const clb_norm_chunk *c, const ir_val *weights,
                          const ir_val *biases); /* biases NULL: none of them */
void clb_norm_partial_end(clb_norm_kernel *b);

/* passes.c: a row. */
void clb_norm_row(clb_norm_kernel *b);

/* schedule.c */
void clb_norm_schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s);
int clb_norm_candidates(const clb_problem *p, const clb_limits *limits, clb_schedule *list);

#endif
