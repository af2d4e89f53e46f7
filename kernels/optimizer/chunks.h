/* kernels/optimizer/chunks.h - one step of an optimizer: elements of all tensors, in chunks.

   A chunk is a run of elements of one tensor, and a row of the device's table of chunks says where
   they are in each array. A sub-group takes a chunk, and then the one `units` later. What changes
   from step to step, the number of steps and the powers of betas, is kept once for each chunk: the
   sub-group reads it with its chunk and writes it back, so that one launch is enough, nothing is
   read that another sub-group writes, and a recorded launch does the next step. */
#ifndef CLB_KERNELS_OPTIMIZER_CHUNKS_H
#define CLB_KERNELS_OPTIMIZER_CHUNKS_H

#include "kernels/common/rows.h"
#include "kernels/kernel.h"

/* The kernels: the pass of the problem. Their arguments, in order, after chunks, units, table (but
   CLEAR):
     UPDATE   numbers, powers, counts, parameters, gradients; copy; average; states 0 ... n - 1;
              matrices; with an average, its decay and 1 - decay; sums; norms
     SUMS     gradients, partial sums
     AVERAGE  numbers, parameters, average, states 0 ... n - 1
     CLEAR    elements (i64), what becomes 0
     GATHER   numbers, powers, counts, gradients, state 0, matrices; gates; sums
     MOMENTS  numbers, gates, state 1, matrices
   Copy, average, matrices, gates (of SOAP) where there are any; sums and norms with SUMS. Sums: the
   most the norm may be, partial sums, their number.

   Rules of matrices take more launches: GATHER puts what comes of the gradients into `matrices`,
   products of matrices follow (kernels/grouped/host), and UPDATE reads their result. SOAP's second
   moments are computed in between, and each of its chunks has a gate. */
enum {
  CLB_OPTIMIZER_UPDATE,
  CLB_OPTIMIZER_SUMS,
  CLB_OPTIMIZER_AVERAGE,
  CLB_OPTIMIZER_CLEAR,
  CLB_OPTIMIZER_GATHER,
  CLB_OPTIMIZER_MOMENTS,
  CLB_OPTIMIZER_KERNELS
};

/* A row of the table of chunks, in i64: where the chunk starts in each array, in elements. */
enum { CLB_OPTIMIZER_STATES = 3 };
enum {
  CLB_CHUNK_PARAMETERS,
  CLB_CHUNK_GRADIENTS,
  CLB_CHUNK_COPY,
  CLB_CHUNK_AVERAGE,
  CLB_CHUNK_STATE,
  CLB_CHUNK_GATHERED = CLB_CHUNK_STATE + CLB_OPTIMIZER_STATES, /* in matrices, as these: */
  CLB_CHUNK_MEAN,                                              /* SOAP: of gradients */
  CLB_CHUNK_ROTATED,      /* SOAP: gradients, then the direction */
  CLB_CHUNK_ROTATED_MEAN, /* SOAP */
  CLB_CHUNK_DIRECTION,    /* the result */
  CLB_CHUNK_COUNT,
  CLB_CHUNK_RULE,  /* its number in the problem */
  CLB_CHUNK_GROUP, /* whose numbers it takes */
  CLB_CHUNK_WIDE,  /* 1: starts and count are multiples of clb_optimizer_width */
  CLB_CHUNK_COLUMNS = 16
};

/* The numbers of a group; _LOW: what the number before lacks to be exact. */
enum {
  CLB_NUMBER_LR,
  CLB_NUMBER_LR_LOW,
  CLB_NUMBER_BETA1, /* momentum of SGD and Muon */
  CLB_NUMBER_BETA1_LOW,
  CLB_NUMBER_BETA2,
  CLB_NUMBER_BETA2_LOW,
  CLB_NUMBER_ONE_MINUS_BETA1, /* momentum's and dampening's for SGD */
  CLB_NUMBER_ONE_MINUS_BETA2,
  CLB_NUMBER_EPSILON,
  CLB_NUMBER_WEIGHT_DECAY,
  CLB_NUMBER_KEPT,       /* 1 - lr weight_decay */
  CLB_NUMBER_WARM_UP,    /* steps */
  CLB_NUMBER_TO_AVERAGE, /* 1 - 1 / beta1 */
  CLB_NUMBER_REFRESH,    /* steps from one of SOAP's bases to the next */
  CLB_NUMBERS = 16
};

/* What a chunk keeps, in the type of the parameters, 1, 0, 1, 0, 0, 0, 0, 0 before the first step;
   and two counts, of steps and of steps left out. */
enum {
  CLB_POWER_BETA1, /* beta1^t, as a sum of two numbers */
  CLB_POWER_BETA2 = 2,
  CLB_WEIGHT_SUM = 4, /* of schedule-free: the same */
  CLB_LARGEST_LR = 6,
  CLB_POWERS = 8,
  CLB_COUNTS = 2
};

/* Gates of SOAP: a step that changes nothing; one; one with new bases; the first, which has bases
   alone. */
enum { CLB_GATE_REST, CLB_GATE_STEP, CLB_GATE_REFRESH, CLB_GATE_FIRST };

/* Whether it is a rule of matrices. */
bool clb_optimizer_gathers(const clb_optimizer_rule *rule);
/* Arrays of state that a rule keeps for its tensors. */
int clb_optimizer_states(const clb_optimizer_rule *rule);
/* Whether the step needs a sum over all gradients first. */
static inline bool clb_optimizer_sums(const clb_optimizer_problem *p) {
  return p->clip || p->check_finite;
}
/* Elements of a wide access. */
int clb_optimizer_width(int32_t type);
/* Elements of a chunk, for so many in all. */
int64_t clb_optimizer_chunk(const clb_limits *limits, int32_t type, int64_t elements);
/* Groups of sub-groups that SUMS should be launched with, at most. */
int64_t clb_optimizer_sum_groups(const clb_limits *limits);

/* ---- while a kernel is built ---- */

typedef struct {
  ir_kernel *k;
  const clb_schedule *s;
  const clb_problem *p;
  ir_type t; /* of parameters, states and numbers */
  ir_val chunks, units, table;
  ir_val chunk, first_lane;
  ir_val at[CLB_CHUNK_COLUMNS]; /* the chunk's row */
} clb_chunks;

/* A set of elements that a lane handles together: `width` adjacent ones. */
typedef struct {
  ir_val offset, mask; /* from the chunk's start, i64 */
  int width;
} clb_elements;

void clb_chunks_begin(clb_chunks *b, ir_kernel *k, const char *name, const clb_problem *p,
                      const clb_schedule *s);
ir_val clb_chunks_unit(clb_chunks *b); /* number of the sub-group */
void clb_chunks_loop(clb_chunks *b);
/* What is done with all elements of the chunk, n places at a time: they are loaded, which is first
   of all where a GPU waits for memory, then `start` computes what is the same for the chunk, and
   `finish` does the rest. */
enum { CLB_MOST_PLACES = 4 };
typedef struct {
  void (*load)(void *user, const clb_elements *place, int n);
  void (*start)(void *user); /* may be NULL */
  void (*finish)(void *user, const clb_elements *place, int n);
  void *user;
} clb_sweep;
void clb_chunks_sweep(clb_chunks *b, const clb_sweep *sweep);
/* The elements of a place in an array whose chunk starts at at[column]; in the type t. */
void clb_chunks_load(clb_chunks *b, ir_val array, int column, const clb_elements *place, ir_val *v);
void clb_chunks_store(clb_chunks *b, ir_val array, int column, const clb_elements *place,
                      const ir_val *v);
/* from + weight (to - from), as torch rounds it. */
ir_val clb_lerp(ir_kernel *k, ir_val from, ir_val to, ir_val weight);

/* ---- rules ---- */

/* A number as the sum of two. */
typedef struct {
  ir_val high, low;
} clb_pair;

/* What a rule works with: numbers of the group, what the chunk keeps (new values are put in their
   place), and numbers of this step that `prepare` computes. */
enum { CLB_RULE_SCALARS = 6 };
typedef struct {
  ir_kernel *k;
  ir_type t;
  const clb_optimizer_rule *rule;
  ir_val number[CLB_NUMBERS], kept[CLB_POWERS];
  ir_val first, steps; /* whether this is the first step; number of this step, from 1 on, in t */
  ir_val scalar[CLB_RULE_SCALARS];
} clb_rule_step;

/* One element. */
typedef struct {
  ir_val parameter, gradient, state[CLB_OPTIMIZER_STATES];
} clb_rule_element;

void clb_rule_prepare(clb_rule_step *step);
void clb_rule_apply(clb_rule_step *step, clb_rule_element *e);
/* Of a rule of matrices, whose `apply` takes the direction in the place of the gradient: the
   gradient becomes what is gathered. */
void clb_rule_gather(clb_rule_step *step, clb_rule_element *e);
/* SOAP's second moment v of a rotated gradient; the direction of a rotated mean. */
void clb_soap_moment(clb_rule_step *step, ir_val gradient, ir_val mean, ir_val *v,
                     ir_val *direction);

/* ---- what a step reads before its elements ---- */

/* Kernels of steps begin with this struct. */
typedef struct {
  clb_chunks c;
  const clb_optimizer_problem *o;
  ir_val numbers, powers, counts, most, partials, n; /* parameters; the last three with SUMS */
  ir_val factor, finite; /* of the gradients; whether they are; IR_NONE: not asked */
  ir_val now[CLB_POWERS], steps, skipped; /* what the chunk keeps, and its counts */
  clb_rule_step step;
} clb_chunk_step;

/* Parameters; writes: of what chunks keep. _sums: of SUMS, if there are such. */
void clb_chunk_step_declare(clb_chunk_step *u, bool writes);
void clb_chunk_step_declare_sums(clb_chunk_step *u);
/* Computes factor and finite; returns the norm, with check_finite NaN where gradients are not;
   IR_NONE without SUMS. */
ir_val clb_chunk_step_norm(clb_chunk_step *u);
/* What the chunk keeps, and its group's numbers; _numbers: these alone. */
void clb_chunk_step_read(clb_chunk_step *u);
void clb_chunk_step_read_numbers(clb_chunk_step *u);
/* Calls each() for the rule that the chunk has. */
void clb_chunk_step_start(clb_chunk_step *u); /* of a rule: clb_rule_prepare */
void clb_chunk_step_rules(clb_chunk_step *u, void (*each)(clb_chunk_step *u));

void clb_optimizer_lower_update(const clb_problem *p, const clb_schedule *s, ir_kernel *k);
void clb_optimizer_lower_moments(const clb_problem *p, const clb_schedule *s, ir_kernel *k);
void clb_optimizer_lower_gather(const clb_problem *p, const clb_schedule *s, ir_kernel *k);
void clb_optimizer_lower_sums(const clb_problem *p, const clb_schedule *s, ir_kernel *k);
void clb_optimizer_lower_average(const clb_problem *p, const clb_schedule *s, ir_kernel *k);
void clb_optimizer_lower_clear(const clb_problem *p, const clb_schedule *s, ir_kernel *k);

#endif
