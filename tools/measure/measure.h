/* tools/measure/measure.h - one pass of an op on one device: its time, bytes, operations and error.
 */
#ifndef CLB_TOOLS_MEASURE_MEASURE_H
#define CLB_TOOLS_MEASURE_MEASURE_H

#include <signal.h>

#include "tools/measure/host.h"
#include "tools/ops/op.h"

/* Measured peaks of a device: bytes and operations per second. */
typedef struct {
  double copy, fma[2]; /* by clb_dtype of the arithmetic: f32, f64 */
  host_rates host;     /* where the device is the host's CPU; else 0 */
} device_peaks;
clb_status measure_peaks(clb_context *ctx, const clb_device_info *info, device_peaks *top);
/* Seconds in which the device copies so many bytes, of which it reads some: copies at the rate of
   copies, or reads alone at that of reads, whichever takes longer. */
double floor_of(const device_peaks *top, double bytes, double read_bytes);
/* Seconds per launch of a nearly empty kernel, averaged over many launches. */
clb_status measure_launch(clb_context *ctx, double *seconds);

typedef struct {
  const tool_op *op;
  tool_kernel kernel;
  clb_pass pass;
  int64_t rows;      /* 0: the op's default */
  bool halve;        /* halve the number of rows until the memory is sufficient; not for graphs */
  const char *label; /* prefix of progress messages */
  const volatile sig_atomic_t *stop; /* NULL, or a flag: if it becomes nonzero, the measurement
                                        fails after the current launch */
} measurement;

/* Unknown numbers are NAN or negative. */
typedef struct {
  const char *device, *pass, *dtype;
  clb_dtype arithmetic;
  char problem[320];
  bool runs, tuned; /* tuned: the schedule comes from an earlier measurement (wisdom) */
  int64_t rows;
  int rows_halved;
  double seconds, seconds_tenth, seconds_min, spread, compile_seconds, bytes, flops, copy_fraction,
      peak_fraction, error, tolerance, memory, read_bytes;
  double floor, more_floor; /* floor_of the bytes, without and with those of a workspace */
  int repeats;
  clb_report report;
  char compared[80];
  char *trouble; /* the message of a failure, freed by the caller */
} result;

/* On a device that runs, makes data and measures the time and the error of the timed outputs; on a
   compile-only device, collects what the compiler reports. An error beyond the tolerance is not a
   failure. */
clb_status measure(const measurement *m, clb_context *ctx, const clb_device_info *info,
                   const device_peaks *top, result *r);
bool is_correct(const result *r);

#endif
