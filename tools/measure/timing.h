/* tools/measure/timing.h - the time of one launch of an op, and the memory that keeps caches from
   flattering it. */
#ifndef CLB_TOOLS_MEASURE_TIMING_H
#define CLB_TOOLS_MEASURE_TIMING_H

#include "tools/cli/tool.h"

double seconds_now(void);
double median(double *x, int n); /* of n > 0 numbers, which are sorted */

/* Whether it computes on the host's processor, through whatever driver. */
bool is_on_this_cpu(const clb_device_info *info);

/* The largest cache of a device, in bytes, erring high. */
uint64_t cache_bytes(const clb_device_info *info);

/* What buffers may take of its memory, in bytes; 0: it does not say.  Of a CPU, through whatever
   driver: what is free now, less some. */
uint64_t memory_bytes(const clb_device_info *info);

typedef struct {
  double seconds, seconds_min; /* of one launch: median and least over the batches */
  double spread;               /* between the 10th and the 90th of 100 batches, of the median */
  int repeats;                 /* batches */
} timing;

/* launch(user, set), in turn on each of the sets, in batches of at least a millisecond that end
   with a wait. */
typedef clb_status launch_function(void *user, int set);
clb_status time_launches(clb_context *ctx, launch_function *launch, void *user, int n_sets,
                         timing *result);

#endif
