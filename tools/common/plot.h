/* tools/common/plot.h - curves over a common axis, as one self-contained SVG file that follows the
   viewer's dark mode. */
#ifndef CLB_TOOLS_COMMON_PLOT_H
#define CLB_TOOLS_COMMON_PLOT_H

#include <stdbool.h>
#include <stdio.h>

enum { PLOT_CURVES = 3 };

typedef struct {
  const char *title; /* including the unit */
  int n_curves;
  const char *names[PLOT_CURVES]; /* NULL: no legend for that curve */
  const double *y[PLOT_CURVES];   /* [n] */
} plot_panel;

typedef struct {
  const char *title, *subtitle, *x_title;
  int n;           /* number of points, 1 or more, all finite */
  const double *x; /* [n], ascending */
  int n_panels;
  const plot_panel *panels; /* one below the other */
} plot;

/* false: f has an error. */
bool plot_write(FILE *f, const void *plot);

#endif
