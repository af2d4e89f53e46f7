/* tools/bench/suite_file.h - the file of `bench --suite`, "clebsch run 1": devices and results;
   rewritten whole, under a temporary name, after each result. */
#ifndef CLB_TOOLS_BENCH_SUITE_FILE_H
#define CLB_TOOLS_BENCH_SUITE_FILE_H

#include "tools/measure/measure.h"
#include "tools/bench/suite_list.h"

typedef struct {
  const char *path;
  bool found;                       /* the file existed and is continued */
  json_t *root, *devices, *results; /* members of root */
} suite_file;

/* The following print a message when they return false. Reads the file if it exists, or starts a
   new one; `force`: always starts a new one. */
bool suite_file_open(suite_file *f, const char *path, const char *suite, bool force);
/* Sets the devices of an empty file; if the file has devices already, they must be the same. Takes
   ownership; the file's devices, with their measurements, are f->devices. */
bool suite_file_devices(suite_file *f, json_t *devices);
bool suite_file_write(suite_file *f, bool complete);
void suite_file_close(suite_file *f);

/* One job: a pass of a problem on a device. */
typedef struct {
  const suite_problem *problem;
  clb_pass pass;
  clb_dtype dtype;
  const char *device;
} suite_job;

const json_t *suite_file_result(const suite_file *f,
                                const suite_job *job); /* NULL: there is none, or it failed */
/* Compile times in seconds, if another job of the file needed the same kernels. */
bool suite_file_compiled(const suite_file *f, const suite_job *job, double *cold, double *warm);
/* Adds a result, replacing a failed one; trouble: NULL, or why there are no numbers. */
void suite_file_add(suite_file *f, const suite_job *job, const result *r, double warm_seconds,
                    const char *trouble);

#endif
