/* tools/data/test_run.h - a test run of one pass of an op on synthetic data: values, reference
   results, buffers on a device, the comparison. */
#ifndef CLB_TOOLS_DATA_TEST_RUN_H
#define CLB_TOOLS_DATA_TEST_RUN_H

#include "tools/ops/op.h"

/* Values repeat after `period` rows, so that the reference of many rows is computed once per
   distinct row. */
typedef struct {
  const tool_op *op;
  const tool_kernel *kernel;
  clb_pass pass;
  tool_data data;
  bool answered;
  int64_t period;
  void *graph; /* of an op on graphs */
  int n;
  tool_array array[MAX_ARRAYS];
  double *values[MAX_ARRAYS]; /* [period][width] of the array; inputs: as stored; outputs: initial
                                 contents, NaN unless accumulating */
  double *stored[MAX_ARRAYS]; /* indexed inputs: the array in memory, of whose rows found[period]
                                 are `values` */
  int32_t *found[MAX_ARRAYS];
  double *wanted[MAX_ARRAYS], *scale[MAX_ARRAYS]; /* for outputs: [period][width], or of the rows
                                                     that are compared */
} test_run;

/* data NULL: the data of `bench`, of an op on graphs. */
void test_run_make(test_run *t, const tool_op *op, const tool_kernel *kernel, clb_pass pass,
                   const tool_data *data, int64_t max_period);
/* Computes wanted and scale, if they are not there. */
void test_run_answer(test_run *t);
void test_run_free(test_run *t);

/* Buffers of one test run on one device. */
typedef struct {
  clb_rows rows[MAX_ARRAYS];
  void *at; /* what an op on graphs needs besides */
} test_run_set;

uint64_t test_run_bytes(const test_run *t); /* bytes of one set */
/* Release with test_run_set_free, whatever the status. */
clb_status test_run_set_make(const test_run *t, clb_context *ctx, clb_op *op, test_run_set *set);
void test_run_set_free(const test_run *t, test_run_set *set);
clb_status test_run_once(const test_run *t, clb_op *op, const test_run_set *set);
/* The largest |got - wanted| / scale over every element of every output; infinite if one is NaN or
   was not written, or if anything was written between or behind the rows. Differences below the
   smallest normal number (f16: the smallest subnormal) are ignored: devices may flush those. */
clb_status test_run_error(const test_run *t, const test_run_set *set, double *error);
/* Reads every row of the outputs, got[a] for array a (NULL: not this one). */
clb_status test_run_read(const test_run *t, const test_run_set *set, double *const *got);
/* All of it, once: the error of one pass. */
clb_status test_run_try(const test_run *t, clb_context *ctx, clb_op *op, double *error);

#endif
