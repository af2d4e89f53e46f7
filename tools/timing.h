/* timing.h - the time of one launch of an op, and the memory that keeps caches from flattering it. */
#ifndef TOOL_TIMING_H
#define TOOL_TIMING_H

#include "trial.h"

/* The largest cache of a device, in bytes, erring high. */
uint64_t cache_bytes(const clb_device_info *info);

typedef struct {
  double seconds, seconds_min; /* of one launch: median and least over the batches */
  int repeats;                 /* batches */
} timing;

/* Launches in turn on each of the sets, in batches of at least a millisecond that end with a wait. */
clb_status time_launches(const trial *t, clb_context *ctx, clb_op *op, const trial_set *sets, int n_sets, timing *result);

#endif
