/* src/tuning/autotune.h - the candidates of an op's passes, timed on made-up data when it is created. */
#ifndef CLB_SRC_TUNING_AUTOTUNE_H
#define CLB_SRC_TUNING_AUTOTUNE_H

#include "src/runtime/context.h"

/* What gives passes without wisdom the kernel that is fastest here, and the context wisdom of it; NULL where `passes` does not ask for it, or
   the context goes without optimisations, which would be measured, too. */
clb_tuner clb_tuner_asked(const clb_context *ctx, unsigned passes);

/* ---- made-up data (trial.c) ---- */

typedef struct {
  clb_op *op, *of;                   /* what is called; whose kernel is exchanged: op, or a part of it */
  clb_pass pass;
  bool results;                      /* the double backward pass gives d_g, too */
  const clb_convolution_desc *desc;  /* NULL: it is no convolution */
  int64_t size;                      /* rows, or nodes, each of which has CLB_TRIAL_EDGES */
  clb_operand operand[CLB_MAX_OPERANDS];
  int n;
  clb_graph *graph;
  clb_buffer *workspace, *table;
} clb_trial;
enum { CLB_TRIAL_EDGES = 64 };

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
