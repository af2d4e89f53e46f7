/* src/tuning/tuning_test_run.h - an op on synthetic data, whose candidates are timed. */
#ifndef CLB_SRC_TUNING_TUNING_TEST_RUN_H
#define CLB_SRC_TUNING_TUNING_TEST_RUN_H

#include "src/runtime/context.h"

typedef struct clb_test_run clb_test_run;

/* What differs from op to op; NULL where there is nothing to do. */
struct clb_test_run_kind {
  int32_t of;                            /* the kind of its ops */
  int (*operands)(clb_test_run *t);      /* lists the operands; returns how many */
  int64_t first_size;                    /* the first size to try */
  int64_t (*rows)(const clb_operand *o); /* rows of an operand for this `size`, where not all
                                            operands have the same number */
  int64_t (*more_bytes)(
      const clb_test_run *t); /* bytes needed for this `size` besides the operands */
  void (*range)(const clb_test_run *t, const clb_operand *o, double *low,
                double *high);         /* range of the operand's values */
  clb_status (*make)(clb_test_run *t); /* creates what is needed besides the operands */
  clb_status (*run)(clb_test_run *t);
};
extern const clb_test_run_kind clb_test_run_of_rows; /* of ops on independent rows, any kind */

struct clb_test_run {
  const clb_test_run_kind *kind;
  clb_op *op, *part; /* what is called, and what it contains; NULL: nothing */
  clb_op *of;        /* whose kernel is exchanged: one of the two */
  clb_pass pass;
  int64_t size; /* number of rows, or of nodes */
  clb_operand operand[CLB_MAX_OPERANDS];
  int n;
  clb_graph *graph;
  clb_buffer *workspace;
};

/* For use by a clb_test_run_kind: a random number in [-1, 1); n random row numbers below a bound.
 */
double clb_test_run_next(uint64_t *seed);
clb_status clb_test_run_numbers(clb_context *ctx, int64_t n, int64_t below, uint64_t seed,
                                clb_buffer **buffer);

/* Lists the operands; returns the bytes needed per row or node. */
int64_t clb_test_run_begin(clb_test_run *t);
/* Allocates buffers for this size and frees those of another size. */
clb_status clb_test_run_make(clb_test_run *t, int64_t size);
void clb_test_run_free(clb_test_run *t);
/* Resets operand i to its initial values. */
clb_status clb_test_run_fill(clb_test_run *t, int i);
clb_status clb_test_run_once(clb_test_run *t);
int64_t clb_test_run_count(const clb_test_run *t, int i); /* number of elements of operand i */
/* Whether results in operand i agree up to rounding. */
bool clb_test_run_agrees(const clb_test_run *t, int i, const void *expected, const void *found);

#endif
