/* tools/common/random.h - random numbers that are the same on all machines. */
#ifndef CLB_TOOLS_COMMON_RANDOM_H
#define CLB_TOOLS_COMMON_RANDOM_H

#include <stdint.h>

double random_number(uint64_t *seed); /* in [-1, 1) */

#endif
