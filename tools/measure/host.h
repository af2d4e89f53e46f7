/* tools/measure/host.h - what the host's processors give to this process, measured by plain
   threads, one for each. */
#ifndef CLB_TOOLS_MEASURE_HOST_H
#define CLB_TOOLS_MEASURE_HOST_H

#include <stdbool.h>

typedef struct {
  int threads;
  double read;  /* bytes per second that all of them read from memory */
  double cores; /* how many times the arithmetic of one they do together */
  double gap;   /* seconds: the longest time for which one of them stood still */
} host_rates;

/* Takes some tenths of a second. false: no memory, or no threads. */
bool measure_host(host_rates *h);

#endif
