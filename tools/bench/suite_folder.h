/* tools/bench/suite_folder.h - a folder for the caches and temporary files of a suite: empty at
   first, removed at the end. */
#ifndef CLB_TOOLS_BENCH_SUITE_FOLDER_H
#define CLB_TOOLS_BENCH_SUITE_FOLDER_H

#include "tools/bench/suite_file.h"

bool suite_folder_make(void); /* false after a message */
/* Selects the kernel cache: a folder per kernel, so that none finds the results of another. */
void suite_folder_choose(const char *device, const suite_job *job);

#endif
