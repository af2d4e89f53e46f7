/* tools/common/plot_parts.h - what all plots have in common: size, style, titles, axes. */
#ifndef CLB_TOOLS_COMMON_PLOT_PARTS_H
#define CLB_TOOLS_COMMON_PLOT_PARTS_H

#include <stdbool.h>
#include <stdio.h>

/* User units; at the width of a phone (360 pixels) a letter is 11 pixels high. */
enum { PLOT_WIDTH = 440, PLOT_LEFT = 58, PLOT_RIGHT = 14, PLOT_TOP = 58 };

/* The file's head, with the title and the line below it. */
void plot_begin(FILE *f, int height, const char *title, const char *subtitle);
bool plot_end(FILE *f); /* false: f has an error */
void plot_label(FILE *f, double x, double y, const char *classes, const char *anchor,
                const char *text);

typedef struct {
  double low, high, step; /* step: between ticks */
  int decimals;
} plot_axis;
/* Steps of 1, 2 or 5 times a power of ten: at most `max` of them. */
plot_axis plot_axis_of(double low, double high, int max);
/* The same, but low and high become multiples of the step. */
plot_axis plot_axis_around(double low, double high, int max);
void plot_tick(char text[32], const plot_axis *a, double at);

#endif
