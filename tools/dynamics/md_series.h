/* tools/dynamics/md_series.h - energies of a run over time: a few thousand means, each over the
   same number of steps, and the drift. */
#ifndef CLB_TOOLS_DYNAMICS_MD_SERIES_H
#define CLB_TOOLS_DYNAMICS_MD_SERIES_H

#include <stdint.h>

enum { SERIES_ROOM = 2048, SERIES_VALUES = 5 };
enum { SERIES_TIME, SERIES_POTENTIAL, SERIES_KINETIC, SERIES_TEMPERATURE, SERIES_CONSERVED };

typedef struct {
  int n;               /* number of complete means */
  int64_t per, filled; /* steps per mean; steps in the next, incomplete mean */
  double sum[SERIES_VALUES], mean[SERIES_ROOM][SERIES_VALUES];
} md_series;

/* Adds a step; when the array is full, pairs of means are merged. Initialize a series to zeros. */
void series_add(md_series *s, const double values[SERIES_VALUES]);

typedef struct {
  double slope, error; /* drift of the conserved energy per unit of time, and its standard
                          error; NAN: too few points */
} md_drift;
/* Least squares. Errors of nearby steps are correlated, so the error is estimated from 10 blocks of
   the run (from the points if there are few). */
md_drift series_drift(const md_series *s);

#endif
