/* tools/bench/suite.h - `clebsch bench --suite`: many problems on every device, into one file. */
#ifndef CLB_TOOLS_BENCH_SUITE_H
#define CLB_TOOLS_BENCH_SUITE_H

#include <stdbool.h>

bool suite_asked(int argc, char **argv); /* whether --suite is among the arguments of bench */
int suite_main(int argc, char **argv);

#endif
