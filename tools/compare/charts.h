/* tools/compare/charts.h - the charts of a comparison, each a section of the page; nothing where
   there are no data for it. */
#ifndef CLB_TOOLS_COMPARE_CHARTS_H
#define CLB_TOOLS_COMPARE_CHARTS_H

#include <stdio.h>

#include "tools/compare/compare.h"

void chart_speeds(
    FILE *f,
    const comparison *c); /* of the other devices against the baseline, with geometric means */
void chart_rooflines(
    FILE *f,
    const comparison *c); /* operations per second over operations per byte, a device at a time */
void chart_times(FILE *f, const comparison *c); /* of every problem, against the device's ceiling */
void chart_rows(FILE *f, const comparison *c);  /* rows per second over rows */
void chart_degrees(FILE *f, const comparison *c); /* time per row over l */

#endif
