/* tools/dynamics/md_report.h - the summary and the plot of `clebsch md`. */
#ifndef CLB_TOOLS_DYNAMICS_MD_REPORT_H
#define CLB_TOOLS_DYNAMICS_MD_REPORT_H

#include "tools/dynamics/md_motion.h"
#include "tools/dynamics/md_series.h"

/* Energies per atom and the temperature over time as SVG; false, after a message on standard error,
 on failure. */
bool report_plot(const char *path, const md_system *y, const md_motion *m, const md_series *s);

typedef struct {
  int64_t steps;
  double seconds; /* spent in the steps */
} md_effort;
void report_print(const md_system *y, const md_state *state, const md_motion *m, const md_series *s,
                  const md_effort *effort);

/* ", NS ns/day, H:MM:SS left" of `steps` steps; nothing before the first. */
void report_rate(char *text, size_t size, const md_motion *m, const md_effort *effort,
                 int64_t steps);

#endif
