/* tools/common/parity.h - what was predicted over what is known, as one self-contained SVG file. */
#ifndef CLB_TOOLS_COMMON_PARITY_H
#define CLB_TOOLS_COMMON_PARITY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
  const char *title, *note; /* above the panel, at its left and right */
  int64_t n;                /* number of points, 1 or more, all finite */
  const double *x, *y;      /* [n] */
} parity_panel;

typedef struct {
  const char *title, *subtitle, *x_title, *y_title;
  int n_panels;
  const parity_panel *panels; /* one below the other, each square */
} parity_plot;

/* false: f has an error. */
bool parity_write(FILE *f, const void *plot);

#endif
