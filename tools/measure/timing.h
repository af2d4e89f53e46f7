/* tools/measure/timing.h - the time of one launch of an op, and the amount of memory needed for
   caches not to distort it. */
#ifndef CLB_TOOLS_MEASURE_TIMING_H
#define CLB_TOOLS_MEASURE_TIMING_H

#include "tools/cli/tool.h"

double seconds_now(void);
double median(double *x, int n); /* of n > 0 numbers; sorts them */

/* Whether it computes on the host's CPU, through any driver. */
bool is_on_this_cpu(const clb_device_info *info);

/* The size of a device's largest cache in bytes, if in doubt an overestimate. */
uint64_t cache_bytes(const clb_device_info *info);

/* Bytes of its memory that buffers may use; 0: unknown. For a CPU, through any driver: slightly
   less than what is free now. */
uint64_t memory_bytes(const clb_device_info *info);

typedef struct {
  double seconds, seconds_tenth, seconds_min; /* of one launch: median, tenth percentile and minimum
                                                 over the batches */
  double spread; /* difference of the 90th and the 10th percentile of the batches,
                    relative to the median */
  double host;   /* seconds of the call that submits a launch: median */
  int repeats;   /* number of batches */
} timing;

/* Submits a launch, or waits for those before. */
typedef clb_status launch_function(void *user, int which);

/* Tasks that are timed alternately, so that other load on the machine affects all of them, in
   batches that end with a wait. */
typedef struct {
  clb_context *ctx;
  int n;
  launch_function *launch, *wait; /* of a task; wait NULL: for the context */
  void *user;
  double batch, seconds; /* a batch takes this long at least, all batches together about so long */
  int fewest, enough,
      most; /* batches of each: `fewest` suffice if all together take 4 times as long */
} timed_tasks;
clb_status time_tasks(const timed_tasks *t, timing *results);

/* Times launch(user, set), which is called for the sets in rotation, in batches of at least a
   millisecond. */
clb_status time_launches(clb_context *ctx, launch_function *launch, void *user, int n_sets,
                         timing *result);

#endif
