/* tools/bench/suite_file.h - the file of `bench --suite`, "clebsch run 1": devices and results;
   rewritten whole, under a temporary name, after each result. */
#ifndef CLB_TOOLS_BENCH_SUITE_FILE_H
#define CLB_TOOLS_BENCH_SUITE_FILE_H

#include "tools/measure/measure.h"
#include "tools/bench/suite_list.h"

typedef struct {
  const char *path;
  bool found;                       /* there was such a file, and it goes on */
  json_t *root, *devices, *results; /* of root */
} suite_file;

/* The following return false after a sentence.  Reads the file, if there is one, or starts it;
   `restart`: starts it whatever is there. */
bool suite_file_open(suite_file *f, const char *path, const char *suite, bool restart);
/* Gives an empty file its devices; those of another must be the same.  Takes them; the file's, with
   what was measured, are f->devices. */
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
                                const suite_job *job); /* NULL: none, or one that failed */
/* Seconds of compiling what the job needs, where another job of the file needed the same. */
bool suite_file_compiled(const suite_file *f, const suite_job *job, double *cold, double *warm);
/* Replaces a failed one; trouble: NULL, or why there are no numbers. */
void suite_file_add(suite_file *f, const suite_job *job, const result *r, double warm_seconds,
                    const char *trouble);

#endif
