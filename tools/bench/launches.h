/* tools/bench/launches.h - `clebsch bench launches`: what a launch costs the host, by itself and in
   a recording. */
#ifndef CLB_TOOLS_BENCH_LAUNCHES_H
#define CLB_TOOLS_BENCH_LAUNCHES_H

#include <stdbool.h>

bool launches_asked(int argc,
                    char **argv); /* whether that is what the arguments of bench ask for */
int launches_main(int argc, char **argv);

#endif
