/* tools/bench/suite_file.h - results in the file of `bench --suite`. */
#ifndef CLB_TOOLS_BENCH_SUITE_FILE_H
#define CLB_TOOLS_BENCH_SUITE_FILE_H

#include "tools/measure/measure.h"
#include "tools/bench/suite_list.h"
#include "tools/common/results.h"

/* One job: a pass of a problem on a device. */
typedef struct {
  const suite_problem *problem;
  clb_pass pass;
  clb_dtype dtype;
  const char *device;
} suite_job;

const json_t *suite_file_result(const results_file *f,
                                const suite_job *job); /* NULL: there is none, or it failed */
/* Compile times in seconds, if another job of the file needed the same kernels. */
bool suite_file_compiled(const results_file *f, const suite_job *job, double *cold, double *warm);
/* Adds a result, replacing a failed one; trouble: NULL, or why there are no numbers. */
void suite_file_add(results_file *f, const suite_job *job, const result *r, double warm_seconds,
                    const char *trouble);
json_t *suite_file_now(void); /* "2026-01-31T12:00:00Z" */

#endif
