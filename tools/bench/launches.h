/* tools/bench/launches.h - `clebsch bench launches`: the host's cost of a launch, single and in a
   recording. */
#ifndef CLB_TOOLS_BENCH_LAUNCHES_H
#define CLB_TOOLS_BENCH_LAUNCHES_H

#include <stdbool.h>

bool launches_asked(int argc, char **argv); /* whether the arguments of bench select this */
int launches_main(int argc, char **argv);

#endif
