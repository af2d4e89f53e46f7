/* tools/bench/suite_table.h - what `bench --suite` prints as it goes: a line per result. */
#ifndef CLB_TOOLS_BENCH_SUITE_TABLE_H
#define CLB_TOOLS_BENCH_SUITE_TABLE_H

#include "tools/bench/suite_file.h"

enum { NAME_BYTES = 256 };
/* "convolution mace-large carbon table" */
const char *suite_title(const suite_problem *p, char title[NAME_BYTES]);

/* The heading of one device; launch: seconds. */
void suite_table_start(table *t, const clb_device_info *info, const device_peaks *top,
                       double launch, const suite_list *list, int64_t jobs);
/* The result is number `done` of `jobs`. */
void suite_table_line(const table *t, const suite_job *job, const result *r, double warm,
                      int64_t done, int64_t jobs);

#endif
