/* tools/measure/measure.h - one pass of an op on one device: its time, bytes, operations and error.
 */
#ifndef CLB_TOOLS_MEASURE_MEASURE_H
#define CLB_TOOLS_MEASURE_MEASURE_H

#include <signal.h>

#include "tools/ops/op.h"

/* What a device reaches; bytes and operations per second. */
typedef struct {
  double copy, fma[2]; /* by clb_dtype of the arithmetic */
} ceilings;
clb_status measure_ceilings(clb_context *ctx, ceilings *top);
/* Of one launch of a kernel that does next to nothing, among many. */
clb_status measure_launch(clb_context *ctx, double *seconds);

typedef struct {
  const tool_op *op;
  tool_kernel kernel;
  clb_pass pass;
  int64_t rows; /* 0: what the op says */
  bool halve;   /* rows, as often as it takes until the memory is enough; not those of a graph */
  const char *label; /* of its progress */
  const volatile sig_atomic_t
      *stop; /* NULL, or: not 0 is the wish to end, after the launch at hand, with some failure */
} measurement;

/* Numbers that are not known are NAN or negative. */
typedef struct {
  const char *device, *pass, *dtype;
  clb_dtype arithmetic;
  char problem[320];
  bool runs, tuned; /* tuned: the schedule is of an earlier measurement (wisdom) */
  int64_t rows;
  int rows_halved;
  double seconds, seconds_min, spread, compile_seconds, bytes, flops, copy_fraction, peak_fraction,
      error, tolerance, memory;
  double floor, more_floor; /* seconds that a copy of as many bytes takes, without and with those of
                               a workspace */
  int repeats;
  clb_report report;
  char compared[80];
  char *trouble; /* the sentence of a failure, the caller's to free */
} result;

/* On a device that runs, data are made, the time is taken and the error of the timed outputs; of
   one that only compiles, what its compiler says. An error beyond the tolerance is no failure. */
clb_status measure(const measurement *m, clb_context *ctx, const clb_device_info *info,
                   const ceilings *top, result *r);
bool is_correct(const result *r);

#endif
