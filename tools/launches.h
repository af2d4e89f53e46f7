/* launches.h - `clebsch bench launches`: what a launch costs the host, by itself and in a recording. */
#ifndef TOOL_LAUNCHES_H
#define TOOL_LAUNCHES_H

#include <stdbool.h>

bool launches_asked(int argc, char **argv); /* whether that is what the arguments of bench ask for */
int launches_main(int argc, char **argv);

#endif
