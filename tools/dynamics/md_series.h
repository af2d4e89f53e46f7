/* tools/dynamics/md_series.h - energies of a run over time: at most some thousand means of equally
   many steps, and the drift. */
#ifndef CLB_TOOLS_DYNAMICS_MD_SERIES_H
#define CLB_TOOLS_DYNAMICS_MD_SERIES_H

#include <stdint.h>

enum { SERIES_ROOM = 2048, SERIES_VALUES = 4 };
enum { SERIES_TIME, SERIES_POTENTIAL, SERIES_KINETIC, SERIES_TEMPERATURE };

typedef struct {
  int n;               /* full means */
  int64_t per, filled; /* steps in each, and in the sum that becomes the next one */
  double sum[SERIES_VALUES], mean[SERIES_ROOM][SERIES_VALUES];
} md_series;

/* Adds a step; where the room is full, pairs of means become one.  A series starts as zeros. */
void series_add(md_series *s, const double values[SERIES_VALUES]);

typedef struct {
  double slope, error; /* of potential + kinetic per unit of time, and its standard error; NAN: too
                          few points */
} md_drift;
/* Least squares.  Energies of neighbouring steps err alike: the error is that of 10 blocks of the
   run (of points where those are few). */
md_drift series_drift(const md_series *s);

#endif
