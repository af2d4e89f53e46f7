/* src/tuning/trial_kind.h - an op on made-up data, of which candidates are timed. */
#ifndef CLB_SRC_TUNING_TRIAL_KIND_H
#define CLB_SRC_TUNING_TRIAL_KIND_H

#include "src/runtime/context.h"

typedef struct clb_trial clb_trial;

/* What differs from op to op; NULL where nothing is to be done. */
typedef struct {
  int (*operands)(clb_trial *t);             /* lists them; returns how many */
  int64_t first_size;                        /* to try */
  int64_t (*rows)(const clb_operand *o);     /* that one of `size` takes, where not all share one */
  int64_t (*more_bytes)(const clb_trial *t); /* that one of `size` takes beside the operands */
  void (*range)(const clb_trial *t, const clb_operand *o, double *low,
                double *high);      /* of its numbers */
  clb_status (*make)(clb_trial *t); /* what there is beside the operands */
  clb_status (*run)(clb_trial *t);
} clb_trial_kind;
extern const clb_trial_kind clb_trial_of_rows, clb_trial_of_convolution;

struct clb_trial {
  const clb_trial_kind *kind;
  clb_op *op, *of; /* what is called; whose kernel is exchanged: op, or a part of it */
  clb_pass pass;
  bool results;                     /* the double backward pass gives d_g, too */
  const clb_convolution_desc *desc; /* of a convolution */
  int64_t size;                     /* rows, or nodes */
  clb_operand operand[CLB_MAX_OPERANDS];
  int n;
  clb_graph *graph;
  clb_buffer *workspace, *table;
};

/* For clb_trial_kind: a number in [-1, 1); number i stored as a clb_dtype; n row numbers below a
   bound. */
double clb_trial_next(uint64_t *seed);
void clb_trial_put(int32_t type, void *to, int64_t i, double v);
clb_status clb_trial_numbers(clb_context *ctx, int64_t n, int64_t below, uint64_t seed,
                             clb_buffer **buffer);

/* Lists the operands; returns the bytes that one row or node takes. */
int64_t clb_trial_begin(clb_trial *t);
/* Buffers for this size; those of another one go. */
clb_status clb_trial_make(clb_trial *t, int64_t size);
void clb_trial_free(clb_trial *t);
/* Gives operand i the numbers it started with. */
clb_status clb_trial_fill(clb_trial *t, int i);
clb_status clb_trial_run(clb_trial *t);
int64_t clb_trial_count(const clb_trial *t, int i); /* elements of operand i */
/* Whether results that are operand i agree but for rounding. */
bool clb_trial_agrees(const clb_trial *t, int i, const void *expected, const void *found);

#endif
