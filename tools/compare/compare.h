/* tools/compare/compare.h - what `clebsch compare` reads from run files, and the comparison that it
   makes of them. */
#ifndef CLB_TOOLS_COMPARE_COMPARE_H
#define CLB_TOOLS_COMPARE_COMPARE_H

#include "tools/cli/tool.h"

/* Unknown numbers are NAN, unknown texts "". */

typedef struct {
  const char *path, *suite, *version, *started;
  bool plain; /* the array printed by `clebsch bench OP --json`, without information on devices */
  bool complete; /* false: the suite was interrupted */
  json_t *root;  /* owns all texts of this run */
} compare_run;

typedef struct {
  double copy, f32, f64; /* bytes and operations per second */
} compare_peaks;

typedef struct {
  int run;
  const char *name, *backend, *vendor, *description, *driver,
      *sheet;  /* sheet: the product whose vendor specs are used */
  char *label; /* the name, followed by the file's if several files have the same name */
  bool runs;
  double memory, launch;
  compare_peaks measured, vendor_specs;
  int n_results, n_times; /* n_times: number of results with a time */
} compare_device;

typedef enum { CHECK_UNKNOWN, CHECK_GOOD, CHECK_WRONG } compare_check;

typedef struct {
  const char *op, *problem, *graph, *options, *pass, *dtype, *limited_by, *failed;
  /* failed: why there is no time */
  int device, order; /* order: among all results as read */
  bool bound;        /* the time is a roofline bound computed from instruction counts, not a
                        measurement */
  compare_check check;
  double rows, halved, seconds, seconds_min, spread, bytes, flops, copy_fraction, peak_fraction,
      error, tolerance, compile_seconds, warm_seconds, memory;
  double loads, stores, fmas, registers, spills, occupancy, bound_seconds;
} compare_result;

/* The same work on every device. */
typedef struct {
  const compare_result *is; /* a result that describes it */
  int group, block; /* group: by op, pass and dtype; block: by everything but rows; lines of a block
                       are adjacent, with ascending rows */
  double rows;      /* before any halving */
  const compare_result **cells; /* [n_devices], NULL: none */
} compare_line;

enum { MAX_COMPARED_DEVICES = 64, MAX_COMPARED_GROUPS = 256 };

typedef struct {
  int n_runs, n_devices, n_results, n_lines, n_groups, baseline,
      twice; /* twice: number of results replaced by a later one of the same work */
  compare_run *runs;
  compare_device devices[MAX_COMPARED_DEVICES];
  compare_result *results;
  compare_line *lines;
  int *order;                                        /* lines in the order of the files */
  const compare_result *groups[MAX_COMPARED_GROUPS]; /* a result that describes op, pass and dtype;
                                                         in order of appearance */
  const compare_result **cells;                      /* of all lines */
  struct compare_mean *means; /* [1 + n_groups][n_devices]: of all, then of each group */
} comparison;

/* Adds the runs, devices and results of a file. false, after a message, on failure. */
bool compare_read(comparison *c, const char *path);
/* Makes the comparison of everything that was read; baseline: a device's name or label, NULL: cpu,
   or else the device that is the fastest most often. Returns the exit status; prints a message on
   failure. */
int compare_make(comparison *c, const char *baseline);
void compare_free(comparison *c);

/* Time of the baseline / time of the device: above 1 the device is faster. */
typedef struct {
  double value;                  /* NAN: cannot be compared */
  bool per_row;                  /* numbers of rows differ: times are divided by them */
  bool upper_bound, lower_bound; /* the value is an upper or a lower limit, because the device's or
                       the baseline's time is a bound */
} compare_speed;
compare_speed speed_of(const comparison *c, const compare_line *line, int device);

/* Geometric mean of speeds; bounds are used only if there is no measurement. */
typedef struct compare_mean {
  double value, low, high;
  const compare_line *slowest, *fastest;
  int n;
  bool upper_bound, lower_bound;
} compare_mean;
compare_mean mean_of(const comparison *c, int group, int device); /* group -1: all */

double time_of(const compare_result *r); /* seconds, measured or a bound; NAN: none */
double fraction_of(const compare_result *r, const char **of); /* fraction of the peak that it comes
                                                                 closest to: "copy" or "FMA" */
/* "problem, graph, options", in `out`; returns it. */
const char *work_of(const compare_result *r, char *out, size_t size);
/* x with n significant digits, without an exponent if that is short; "" if x is not finite. */
const char *figures(char out[32], double x, int n);
/* "1.2 T": significant digits, then the SI prefix and the unit. */
const char *scaled(char out[48], double x, int n, const char *unit);

/* Summarizes the comparison, one sentence at a time. */
void compare_sentences(const comparison *c, void (*say)(void *user, const char *sentence),
                       void *user);

enum compare_format { COMPARE_TEXT, COMPARE_CSV, COMPARE_MARKDOWN, COMPARE_JSON, COMPARE_FORMATS };
void compare_print(const comparison *c, enum compare_format format);
/* All of it: devices, groups, and lines with a cell for each device. */
json_t *compare_json(const comparison *c);
bool compare_html(FILE *f, const void *comparison);

#endif
